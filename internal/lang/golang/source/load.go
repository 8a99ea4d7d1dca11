package source

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

// metadata asks go list for names, files, imports and export data, and for
// nothing that makes go/packages type-check.
const metadata = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps |
	packages.NeedExportFile | packages.NeedModule | packages.NeedForTest | packages.NeedEmbedFiles | packages.NeedTypesSizes

// module is a loaded module before its packages are parsed.
type module struct {
	req   Request
	dir   string // absolute directory of the module
	path  string // module path
	env   []string
	extra []string // what Answer.Env reports
	roots []*packages.Package
	all   map[string]*packages.Package // by ID: roots and everything they import
	units []*unitSource
	tools string // "go1.26.8 linux/amd64", with the settings of the build

	problems []lang.Problem // of no unit
}

// unitSource is a directory with Go files: a package, its external tests, or both.
type unitSource struct {
	path     string
	dir      string            // absolute
	pkg      *packages.Package // with its in-package tests
	plain    *packages.Package // without; nil when there is nothing but tests
	xtest    *packages.Package
	embed    []string // absolute
	other    []string // assembly, C
	problems []lang.Problem
	// build is what the go command says of the build: shown when our own type
	// check, which names lines, finds nothing (C code, embedded files).
	build []lang.Problem
	// failures are both, as reasons for which the suite cannot be built.
	failures []lang.Broken
}

// Load reads one module. Files that cannot be used are problems of the scan; an
// error has kind unmeasured and a category of package lang as its code when
// nothing of the module can be loaded.
func Load(req Request) (*Answer, error) {
	if !filepath.IsAbs(req.Root) || !filepath.IsAbs(req.Out) {
		return nil, fault.New(fault.Usage, "bad_request", "root %q and out %q must be absolute", req.Root, req.Out)
	}
	if !filepath.IsLocal(filepath.FromSlash(req.Project.Dir)) {
		return nil, fault.New(fault.Usage, "bad_request", "project directory %q is not below the root", req.Project.Dir)
	}
	m := &module{req: req, dir: filepath.Join(req.Root, filepath.FromSlash(req.Project.Dir)), path: req.Project.Name}
	if err := m.list(); err != nil {
		return nil, err
	}
	facts, pkgs, reused, err := m.readAll()
	if err != nil {
		return nil, err
	}
	scan, err := m.join(facts)
	if err != nil {
		return nil, err
	}
	loaded := 0
	for _, u := range m.units {
		for _, p := range []*packages.Package{u.pkg, u.xtest} {
			if p != nil {
				loaded++
			}
		}
	}
	return &Answer{Scan: scan, Packages: pkgs, Env: m.extra, Reused: reused, Loaded: loaded - reused}, nil
}

// list runs go list through go/packages and sorts what it reports into units.
func (m *module) list() error {
	env := m.req.Env
	if env == nil {
		env = os.Environ()
	}
	if m.outsideWorkspace(env) {
		m.extra = append(m.extra, "GOWORK=off")
	}
	// A driver named by the environment would run in the place of the go command.
	m.env = slices.Concat(env, m.extra, []string{"GOPACKAGESDRIVER=off", "PWD=" + m.dir})
	cfg := &packages.Config{Mode: metadata, Dir: m.dir, Env: m.env, Tests: true}
	if len(m.req.Tags) > 0 {
		cfg.BuildFlags = []string{"-tags=" + strings.Join(m.req.Tags, ",")}
	}
	roots, err := packages.Load(cfg, "./...")
	if err != nil {
		return classify(strings.ReplaceAll(err.Error(), m.req.Root+string(filepath.Separator), ""), m.req.Project)
	}
	m.roots, m.all = roots, map[string]*packages.Package{}
	packages.Visit(roots, nil, func(p *packages.Package) { m.all[p.ID] = p })
	m.sort()
	m.tools = m.toolchain()
	return m.loadable()
}

// sort makes the units: of the variants of a package the one with the most files
// is read, so that each file is read once.
func (m *module) sort() {
	units := map[string]*unitSource{}
	unit := func(path, dir string) *unitSource {
		u := units[path]
		if u == nil {
			u = &unitSource{path: path, dir: dir}
			units[path] = u
			m.units = append(m.units, u)
		}
		return u
	}
	for _, p := range m.roots {
		if m.path == "" && p.Module != nil {
			m.path = p.Module.Path
		}
	}
	for _, p := range m.roots {
		switch {
		case isTestMain(p):
			continue
		case strings.Contains(p.ID, " ") && !strings.HasSuffix(p.ID, ".test]"):
			// go/packages cuts an id at the blank; the go command cannot build it either.
			dir := filepath.Join(m.dir, filepath.FromSlash(dirOf(m.path, p.ID)))
			m.problems = append(m.problems, lang.Problem{File: m.rel(dir), Reason: "malformed import path"})
			continue
		case p.ForTest != "" && p.PkgPath != p.ForTest:
			u := unit(p.ForTest, p.Dir)
			u.xtest = p
			u.embed = append(u.embed, p.EmbedFiles...)
			continue
		}
		u := unit(p.PkgPath, p.Dir)
		if u.dir == "" {
			u.dir = p.Dir
		}
		u.embed = append(u.embed, p.EmbedFiles...)
		u.other = append(u.other, p.OtherFiles...)
		if len(p.GoFiles) > 0 && (u.pkg == nil || len(p.GoFiles) > len(u.pkg.GoFiles)) {
			u.pkg = p
		}
		if p.ForTest == "" && len(p.GoFiles) > 0 {
			u.plain = p
		}
	}
	for _, u := range m.units {
		for _, l := range []*[]string{&u.embed, &u.other} {
			slices.Sort(*l)
			*l = slices.Compact(*l)
		}
	}
	slices.SortFunc(m.units, func(a, b *unitSource) int { return strings.Compare(a.path, b.path) })
}

// isTestMain tells the generated main package of a test binary: its file lies in
// the build cache.
func isTestMain(p *packages.Package) bool {
	if p.Name != "main" || !strings.HasSuffix(p.ID, ".test") {
		return false
	}
	for _, f := range p.GoFiles {
		if filepath.Dir(f) == p.Dir {
			return false
		}
	}
	return true
}

// loadable turns what go list complained about into problems, and into an error
// when the packages of no unit can be loaded. Tests that cannot are a problem of
// their unit alone.
func (m *module) loadable() error {
	usable := len(m.units) == 0
	var first *fault.Error
	for _, u := range m.units {
		broken := false
		for _, e := range m.unitErrors(u) {
			err := classify(e.Msg, m.req.Project)
			file, line := m.place(e.Pos)
			if file == "" {
				file = m.rel(u.dir)
			}
			problem := lang.Problem{File: file, Line: line, Reason: string(err.Code) + ": " + firstLine(e.Msg)}
			u.failures = append(u.failures, m.failure(u, e, err))
			if err.Code == lang.BuildFailed {
				u.build = append(u.build, problem)
			} else {
				u.problems = append(u.problems, problem)
			}
			if err.Code != lang.BuildFailed && !e.test {
				broken = true
				if first == nil {
					first = err
				}
			}
		}
		usable = usable || !broken
	}
	if !usable && first != nil {
		return first
	}
	return nil
}

// unitError is an error of a package or of one that it imports.
type unitError struct {
	packages.Error
	test bool // concerns the tests alone
}

// unitErrors are the errors of all variants of a unit and of the other modules'
// packages that they import, each once. That a directory holds only tests is
// none.
func (m *module) unitErrors(u *unitSource) []unitError {
	var out []unitError
	seen := map[string]bool{}
	own := map[string]bool{}
	for _, p := range m.roots {
		own[p.PkgPath] = true
	}
	add := func(p *packages.Package, test bool) {
		for _, e := range p.Errors {
			msg := firstLine(e.Msg)
			if _, output, ok := strings.Cut(strings.TrimSpace(e.Msg), "\n"); ok && strings.HasPrefix(msg, "# ") {
				e.Msg = output // of the compiler; the line before names the package
				msg = firstLine(output)
			}
			if seen[msg] || strings.Contains(msg, "no non-test Go files") {
				continue
			}
			seen[msg] = true
			out = append(out, unitError{e, test})
		}
	}
	for _, test := range []bool{false, true} {
		for _, p := range m.roots {
			if p.PkgPath == u.path && (p.ForTest != "") == test || test && (p.ForTest == u.path || p.PkgPath == u.path+".test") {
				packages.Visit([]*packages.Package{p}, func(q *packages.Package) bool {
					if q != p && own[q.PkgPath] {
						return false // a unit, or variant of a unit, with errors of its own
					}
					add(q, test)
					return true
				}, nil)
			}
		}
	}
	return out
}

// toolchain reads the version from the header of compiled export data, which
// names what really compiled, and adds the settings of the build. Empty when nothing was compiled.
func (m *module) toolchain() string {
	for _, id := range []string{"runtime", "testing"} {
		p := m.all[id]
		if p == nil || p.ExportFile == "" {
			continue
		}
		f, err := os.Open(p.ExportFile)
		if err != nil {
			continue // the next one may be there
		}
		head := make([]byte, 512)
		n, _ := f.Read(head) // a short or failed read has no header
		f.Close()
		_, rest, ok := strings.Cut(string(head[:n]), "go object ")
		if fields := strings.Fields(rest); ok && len(fields) >= 3 {
			return strings.Join(append([]string{fields[2], fields[0] + "/" + fields[1]}, m.settings()...), " ")
		}
	}
	return ""
}

// buildSettings are the variables by which the go command builds something else
// from the same sources.
var buildSettings = []string{
	"GOFLAGS", "GOEXPERIMENT", "GOAMD64", "GOARM64", "GOFIPS140", "CGO_ENABLED", "CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_CXXFLAGS", "CGO_LDFLAGS",
}

// settings lists those that are set, as NAME=VALUE.
func (m *module) settings() []string {
	var out []string
	for _, name := range buildSettings {
		for _, kv := range slices.Backward(m.env) {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				if v != "" {
					out = append(out, kv)
				}
				break
			}
		}
	}
	return out
}

// rel makes a path relative to the checkout and slash-separated; a path outside
// stays absolute.
func (m *module) rel(name string) string {
	if name == "" {
		return ""
	}
	r, err := filepath.Rel(m.req.Root, name)
	if err != nil || !filepath.IsLocal(r) {
		return filepath.ToSlash(name)
	}
	return filepath.ToSlash(r)
}

// place parses go list's "file:line:col"; an unknown place is empty.
func (m *module) place(pos string) (file string, line int) {
	parts := strings.Split(pos, ":")
	for len(parts) > 1 {
		var n int
		if _, err := fmt.Sscanf(parts[len(parts)-1], "%d", &n); err != nil {
			break
		}
		line, parts = n, parts[:len(parts)-1]
	}
	file = strings.Join(parts, ":")
	if file == "" || file == "-" {
		return "", 0
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(m.dir, file)
	}
	return m.rel(file), line
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// job is one package to read: a unit's package or its external tests.
type job struct {
	unit  *unitSource
	pkg   *packages.Package
	plain *packages.Package // the package without its tests, when it has some
	xtest bool
	deps  []*job // of the same project, earlier in the order
	done  chan struct{}
	out   *entry
	err   error
}

// readAll reads every package, dependencies first, on all cores.
func (m *module) readAll() (facts []*facts, pkgs []Package, reused int, err error) {
	jobs := m.jobs()
	known := map[string]bool{}
	for _, j := range jobs {
		known[j.pkg.PkgPath] = true
	}
	next := make(chan *job)
	var wg sync.WaitGroup
	for range max(1, min(runtime.GOMAXPROCS(0), 8)) {
		wg.Go(func() {
			c := newChecker(m, known)
			for j := range next {
				for _, d := range j.deps {
					<-d.done
				}
				j.out, j.err = m.read(c, j)
				close(j.done)
			}
		})
	}
	for _, j := range jobs {
		next <- j
	}
	close(next)
	wg.Wait()
	for _, j := range jobs {
		if j.err != nil {
			return nil, nil, 0, fmt.Errorf("package %s: %w", j.pkg.PkgPath, j.err)
		}
		facts = append(facts, j.out.Facts)
		if j.out.reused {
			reused++
		}
		if j.out.Package != nil {
			pkgs = append(pkgs, j.out.answer(m))
		}
	}
	return facts, pkgs, reused, nil
}

// jobs lists the packages so that each comes after those of the project that it
// imports. Broken code may hold a cycle: then one edge of it is not waited for.
func (m *module) jobs() []*job {
	byPath := map[string]*job{}
	var all []*job
	for _, u := range m.units {
		if u.pkg != nil {
			j := &job{unit: u, pkg: u.pkg, done: make(chan struct{})}
			if u.plain != u.pkg {
				j.plain = u.plain
			}
			byPath[u.path], all = j, append(all, j)
		}
		if u.xtest != nil {
			all = append(all, &job{unit: u, pkg: u.xtest, xtest: true, done: make(chan struct{})})
		}
	}
	var order []*job
	placed, seen := map[*job]bool{}, map[*job]bool{}
	var visit func(j *job)
	visit = func(j *job) {
		if seen[j] {
			return
		}
		seen[j] = true
		for _, imp := range sortedImports(j.pkg) {
			if d := byPath[imp.PkgPath]; d != nil && d != j {
				visit(d)
				if placed[d] {
					j.deps = append(j.deps, d)
				}
			}
		}
		placed[j] = true
		order = append(order, j)
	}
	for _, j := range all {
		visit(j)
	}
	return order
}

func sortedImports(p *packages.Package) []*packages.Package {
	var out []*packages.Package
	for _, imp := range p.Imports {
		out = append(out, imp)
	}
	slices.SortFunc(out, func(a, b *packages.Package) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// filesDigest covers names and contents; names are relative to the checkout.
func (m *module) filesDigest(files []string) (evidence.Digest, error) {
	parts := []string{"files/v1"}
	for _, f := range files {
		d, err := fileDigest(f)
		if err != nil {
			return "", err
		}
		parts = append(parts, m.rel(f), string(d))
	}
	return evidence.DigestParts(parts...), nil
}
