package source

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

// maxTypeErrors bounds the problems of one package; the first ones tell enough.
const maxTypeErrors = 10

// checker type-checks packages, one after another. It is not safe for concurrent
// use: each worker has its own, with its own copy of what is imported.
type checker struct {
	m     *module
	known map[string]bool
	fset  *token.FileSet
	plain map[string]*types.Package // imports of packages, by path
}

func newChecker(m *module, known map[string]bool) *checker {
	return &checker{m: m, known: known, fset: token.NewFileSet(), plain: map[string]*types.Package{}}
}

// world is what one package sees: external tests can see a variant of a package
// that its in-package tests extend, so they get a world of their own.
type world struct {
	c    *checker
	have map[string]*types.Package
	pkg  *packages.Package // importing
	busy map[string]bool
}

func (c *checker) world(p *packages.Package) *world {
	w := &world{c: c, have: c.plain, pkg: p, busy: map[string]bool{}}
	for _, imp := range p.Imports {
		if imp.ForTest != "" {
			w.have = map[string]*types.Package{}
			break
		}
	}
	return w
}

// Import implements types.Importer.
func (w *world) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	p := w.pkg.Imports[path]
	if p == nil {
		return nil, fmt.Errorf("package %s was not listed", path)
	}
	if t := w.have[p.PkgPath]; t != nil && t.Complete() {
		return t, nil
	}
	if p.ExportFile == "" {
		return w.fromSource(p)
	}
	f, err := os.Open(p.ExportFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := gcexportdata.NewReader(f) //nolint:staticcheck // export data comes out of the build cache as the compiler wrote it
	if err != nil {
		return nil, fmt.Errorf("export data of %s: %w", p.PkgPath, err)
	}
	return gcexportdata.Read(in, w.c.fset, w.have, p.PkgPath)
}

// fromSource reads the declarations of a package that did not compile, so that
// its importers can still be read.
func (w *world) fromSource(p *packages.Package) (*types.Package, error) {
	if len(p.GoFiles) == 0 || w.busy[p.ID] {
		return nil, fmt.Errorf("package %s has no export data", p.PkgPath)
	}
	w.busy[p.ID] = true
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(w.c.fset, name, nil, parser.SkipObjectResolution)
		if f == nil {
			return nil, err
		}
		files = append(files, f)
	}
	cfg := w.c.config(p, &world{c: w.c, have: w.have, pkg: p, busy: w.busy})
	cfg.IgnoreFuncBodies = true
	cfg.Error = func(error) {} // its own reading lists them
	t, _ := cfg.Check(p.PkgPath, w.c.fset, files, nil)
	t.MarkComplete()
	w.have[p.PkgPath] = t
	return t, nil
}

func (c *checker) config(p *packages.Package, imp types.Importer) *types.Config {
	cfg := &types.Config{Importer: imp, FakeImportC: true, Sizes: p.TypesSizes}
	if cfg.Sizes == nil {
		cfg.Sizes = types.SizesFor("gc", build.Default.GOARCH)
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		cfg.GoVersion = "go" + p.Module.GoVersion
	}
	return cfg
}

// parsed is one package ready to be read.
type parsed struct {
	fset     *token.FileSet // of this package alone, so that it can be freed
	files    []*ast.File
	sources  map[string][]byte
	pkg      *types.Package
	info     *types.Info
	problems []lang.Problem
	errors   int // type errors and files that do not parse
	// undefined is the first name that the compiler would not know: "calc.go:3:
	// undefined: x".
	undefined string
}

// check parses and type-checks a package from the given sources. Of a file that
// does not parse there is what the parser could make of it, so that its functions
// are known.
func (c *checker) check(p *packages.Package, names []string, sources map[string][]byte) *parsed {
	out := &parsed{fset: token.NewFileSet(), sources: sources}
	for _, name := range names {
		f, err := parser.ParseFile(out.fset, name, sources[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			out.errors++
			pos, msg := parseError(err)
			out.problems = append(out.problems, lang.Problem{File: c.m.rel(name), Line: pos, Reason: notParsed + msg})
			if f = c.torn(out.fset, name, sources[name]); f == nil {
				continue
			}
		}
		out.files = append(out.files, f)
	}
	out.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Instances: map[*ast.Ident]types.Instance{},
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Scopes: map[ast.Node]*types.Scope{}, FileVersions: map[*ast.File]string{},
	}
	cfg := c.config(p, c.world(p))
	cfg.Error = func(err error) {
		out.errors++
		var te types.Error
		if errors.As(err, &te) && strings.HasPrefix(te.Msg, "undefined: ") {
			// One outside tests goes first: it concerns whoever imports the package.
			pos := out.fset.PositionFor(te.Pos, false)
			if out.undefined == "" || strings.Contains(out.undefined, "_test.go:") && !strings.HasSuffix(pos.Filename, "_test.go") {
				out.undefined = fmt.Sprintf("%s:%d: %s", c.m.rel(pos.Filename), pos.Line, te.Msg)
			}
		}
		if errors.As(err, &te) && !te.Soft || out.errors == 1 {
			out.typeError(c, err)
		}
	}
	out.pkg, _ = cfg.Check(p.PkgPath, out.fset, out.files, out.info) // Error received every error
	return out
}

func (out *parsed) typeError(c *checker, err error) {
	if len(out.problems) >= maxTypeErrors {
		return
	}
	var te types.Error
	if errors.As(err, &te) {
		pos := out.fset.PositionFor(te.Pos, false)
		out.problems = append(out.problems, lang.Problem{File: c.m.rel(pos.Filename), Line: pos.Line, Reason: typeError + te.Msg})
		return
	}
	out.problems = append(out.problems, lang.Problem{Reason: typeError + err.Error()})
}

// read makes the facts of one package, from the cache when nothing that they
// depend on has changed.
func (m *module) read(c *checker, j *job) (*entry, error) {
	sources, sums, err := m.readFiles(j)
	if err != nil {
		return nil, err
	}
	key := m.key(j, sums)
	if e := m.cached(key); e != nil && !m.dropsFrom(e) {
		e.reused = true
		return e, nil
	} else if e != nil {
		key = evidence.DigestParts("drop", string(key), dropText(m.relevantDrops(e)))
		if again := m.cached(key); again != nil {
			again.reused = true
			return again, nil
		}
	}
	names := filesOf(j)
	p := c.check(j.pkg, names, sources)
	r := m.reader(c, j, p)
	r.read()
	e := &entry{Facts: r.out}
	if m.req.Instrument {
		if p.errors > 0 && j.plain != nil {
			// Tests that do not compile leave the package usable for the others.
			r = m.reader(c, j, c.check(j.plain, j.plain.GoFiles, sources))
			r.read()
			p = r.parsed
		}
		if p.errors == 0 {
			if err := m.instrument(r, e, key); err != nil {
				return nil, err
			}
		}
	}
	return e, m.keep(key, e)
}

func (m *module) reader(c *checker, j *job, p *parsed) *reader {
	return &reader{
		m: m, j: j, known: c.known, parsed: p,
		out: &facts{Path: j.pkg.PkgPath, Unit: j.unit.path, XTest: j.xtest, Problems: p.problems, Undefined: p.undefined},
	}
}

// filesOf lists the Go files of a job: originals, with import "C" as written.
func filesOf(j *job) []string { return j.pkg.GoFiles }

func (m *module) readFiles(j *job) (map[string][]byte, []string, error) {
	sources, sums := map[string][]byte{}, []string{}
	for _, name := range filesOf(j) {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		sources[name] = b
		sums = append(sums, m.rel(name), string(evidence.DigestOf(b)))
	}
	return sources, sums, nil
}

// key covers everything that the facts of a package depend on: its files, the
// declarations of the project that it can see, the compiled form of everything
// else, and this program.
func (m *module) key(j *job, sums []string) evidence.Digest {
	parts := []string{"package/v3", Driver, m.tools, m.path, j.pkg.ID, m.rel(m.dir), fmt.Sprint(j.xtest, m.req.Instrument)}
	if j.pkg.Module != nil {
		parts = append(parts, j.pkg.Module.GoVersion)
	}
	parts = append(parts, sums...)
	apis := map[string]evidence.Digest{}
	for _, d := range j.deps {
		if d.out == nil {
			continue
		}
		apis[d.pkg.PkgPath] = d.out.Facts.API
		if j.xtest && d.unit == j.unit {
			apis[d.pkg.PkgPath] = d.out.Facts.APITest
		}
	}
	for _, imp := range sortedImports(j.pkg) {
		if api, ok := apis[imp.PkgPath]; ok {
			parts = append(parts, imp.PkgPath, string(api))
			continue
		}
		// The name of a file in the build cache is the digest of its contents.
		parts = append(parts, imp.PkgPath, filepath.Base(imp.ExportFile))
	}
	return evidence.DigestParts(parts...)
}
