package golang

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/sandbox"
)

// toolchain is the go command that is used for one module, and its settings.
type toolchain struct {
	goBin      string // absolute path of the go command
	GOROOT     string
	GOVERSION  string
	CGOEnabled string `json:"CGO_ENABLED"`
	cache      string // GOCACHE, writable
	modCache   string // GOMODCACHE
	env        []string
	path       string
}

// defaultPath is searched when neither the workspace nor the process has a PATH.
const defaultPath = "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin"

// kept are the settings of the go command that the user may have made, in the
// environment or in the file of go env -w. Those that the driver decides are
// not among them.
var kept = []string{
	"GOFLAGS", "GOEXPERIMENT", "GOAMD64", "GOARM64", "GODEBUG", "GOPRIVATE", "GONOSUMDB", "GOFIPS140", "GOWORK",
	"CGO_ENABLED", "CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_CXXFLAGS", "CGO_LDFLAGS", "CC", "CXX", "PKG_CONFIG",
}

// settings reads names from the workspace, the process and the go command's own
// file, in this order.
type settings struct {
	env  []string
	file map[string]string
}

func newSettings(w lang.Workspace) (settings, error) {
	s := settings{env: w.Env, file: map[string]string{}}
	name := os.Getenv("GOENV")
	if name == "off" {
		return s, nil
	}
	if name == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return s, nil //nolint:nilerr // no home directory, so no settings there
		}
		name = filepath.Join(dir, "go", "env")
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fault.Wrap(err, fault.Unmeasured, lang.Permission, "read the settings of go env")
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(k, "#") {
			s.file[k] = v
		}
	}
	return s, nil
}

func (s settings) get(name string) string {
	for i := len(s.env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(s.env[i], name+"="); ok {
			return v
		}
	}
	if v := os.Getenv(name); v != "" {
		return v
	}
	return s.file[name]
}

// tools finds the toolchain of the module; m.mu is held.
func (m *module) tools(ctx context.Context, d *Driver, w lang.Workspace) (*toolchain, error) {
	if m.toolchain != nil {
		return m.toolchain, nil
	}
	s, err := newSettings(w)
	if err != nil {
		return nil, err
	}
	tc := &toolchain{path: trustedPath(s.get("PATH"), w.Root, w.Origin)}
	if tc.goBin = findGo(tc.path); tc.goBin == "" {
		return nil, noGo()
	}
	if err := tc.caches(s, w); err != nil {
		return nil, err
	}
	if err := tc.ask(ctx, d, w, s); err != nil {
		return nil, err
	}
	need := required(filepath.Join(w.Root, filepath.FromSlash(m.project.Dir)))
	if version.Compare(tc.GOVERSION, need) < 0 {
		other := tc.downloaded(need)
		if other == "" {
			return nil, fault.New(fault.Unmeasured, lang.ToolMissing, "go.mod of %s needs %s, the toolchain here is %s", m.project.Name, need, tc.GOVERSION).
				Hint("GOTOOLCHAIN=%s go version", need)
		}
		tc.goBin = filepath.Join(other, "bin", "go")
		if err := tc.ask(ctx, d, w, s); err != nil {
			return nil, err
		}
	}
	if err := tc.outsideModCache(ctx, d, w, s); err != nil {
		return nil, err
	}
	// Whoever starts "go" by its name gets this one.
	tc.path = filepath.Join(tc.GOROOT, "bin") + string(filepath.ListSeparator) + tc.path
	tc.env = append(tc.env, "PATH="+tc.path)
	m.toolchain = tc
	return tc, nil
}

// caches finds module cache and build cache.
func (tc *toolchain) caches(s settings, w lang.Workspace) error {
	home, err := os.UserHomeDir()
	if err != nil {
		home = w.Cache
	}
	gopath := s.get("GOPATH")
	if gopath == "" {
		gopath = filepath.Join(home, "go")
	}
	if tc.modCache = s.get("GOMODCACHE"); tc.modCache == "" {
		tc.modCache = filepath.Join(filepath.SplitList(gopath)[0], "pkg", "mod")
	}
	tc.cache = s.get("GOCACHE")
	if tc.cache == "" {
		if dir, err := os.UserCacheDir(); err == nil {
			tc.cache = filepath.Join(dir, "go-build")
		}
	}
	if !filepath.IsAbs(tc.cache) || os.MkdirAll(tc.cache, 0o777) != nil || unix.Access(tc.cache, unix.W_OK) != nil {
		tc.cache = filepath.Join(w.Cache, "go", "build")
		if err := os.MkdirAll(tc.cache, 0o777); err != nil {
			return fmt.Errorf("build cache: %w", err)
		}
	}
	tc.env = []string{
		"PATH=" + tc.path, "GOENV=off", "GOTOOLCHAIN=local", "GOPROXY=off", "GOSUMDB=off", "GOTELEMETRY=off", "GO111MODULE=on",
		"GOPATH=" + gopath, "GOMODCACHE=" + tc.modCache, "GOCACHE=" + tc.cache, "LC_ALL=C",
	}
	for _, name := range kept {
		if v := s.get(name); v != "" {
			tc.env = append(tc.env, name+"="+v)
		}
	}
	return nil
}

// trustedPath keeps the absolute directories of a PATH that lie outside the
// checkout and the working copy that it was sealed from: a program in the tree is
// not a tool. Links count by where they lead.
func trustedPath(path string, trees ...string) string {
	if path == "" {
		path = defaultPath
	}
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		inTree := func(root string) bool { return root != "" && (within(root, dir) || within(real(root), real(dir))) }
		if filepath.IsAbs(dir) && !slices.ContainsFunc(trees, inTree) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// findGo searches a trusted path.
func findGo(path string) string {
	for _, dir := range filepath.SplitList(path) {
		name := filepath.Join(dir, "go")
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return name
		}
	}
	return ""
}

// real follows links; a path that leads nowhere is itself.
func real(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}

func within(root, dir string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

// ask learns version and root from the go command itself.
func (tc *toolchain) ask(ctx context.Context, d *Driver, w lang.Workspace, s settings) error {
	run, out, err := d.run(ctx, w, tc.spec(w), sandbox.Command{
		Purpose: evidence.PurposeTool, Snapshot: w.Tree, Root: w.Root, Env: tc.env,
		Argv:   []string{tc.goBin, "env", "-json", "GOROOT", "GOVERSION", "CGO_ENABLED"},
		Limits: toolLimits,
	})
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	if err := json.Unmarshal(out.Stdout, tc); err != nil || run.Record().Exit.Code != 0 {
		return classify(append(out.Stderr, out.Stdout...), "go env")
	}
	if tc.GOROOT == "" || !version.IsValid(goVersion(tc.GOVERSION)) {
		return fault.New(fault.Unmeasured, lang.UnsupportedRunner, "go env of %s reports root %q and version %q", tc.goBin, tc.GOROOT, tc.GOVERSION)
	}
	tc.GOVERSION = goVersion(tc.GOVERSION)
	return nil
}

// goVersion drops what a distribution or an experiment adds:
// "devel go1.27-abc X:foo".
func goVersion(s string) string {
	for f := range strings.FieldsSeq(s) {
		if v, _, _ := strings.Cut(f, "-"); version.IsValid(v) {
			return v
		}
	}
	return s
}

// required is the version that a module asks for; "go1" when it asks for none
// or when the file does not parse, which the loader reports.
func required(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "go1"
	}
	f, err := modfile.ParseLax("go.mod", b, nil)
	if err != nil || f.Go == nil {
		return "go1"
	}
	return "go" + f.Go.Version
}

// downloaded finds a toolchain in the module cache that is new enough, the
// oldest first.
func (tc *toolchain) downloaded(need string) string {
	suffix := "." + runtime.GOOS + "-" + runtime.GOARCH
	dirs, err := filepath.Glob(filepath.Join(tc.modCache, "golang.org", "toolchain@v0.0.1-go*"+suffix))
	if err != nil {
		return ""
	}
	of := func(dir string) string {
		_, v, _ := strings.Cut(filepath.Base(dir), "@v0.0.1-")
		return strings.TrimSuffix(v, suffix)
	}
	slices.SortFunc(dirs, func(a, b string) int { return version.Compare(of(a), of(b)) })
	for _, dir := range dirs {
		if version.Compare(of(dir), need) >= 0 {
			return dir
		}
	}
	return ""
}

// outsideModCache gives a toolchain that lies below the module cache another
// path, because the go command refuses to overlay files there.
func (tc *toolchain) outsideModCache(ctx context.Context, d *Driver, w lang.Workspace, s settings) error {
	if !within(tc.modCache, tc.GOROOT) {
		return nil
	}
	link := filepath.Join(w.Cache, "go", "root", evidence.DigestParts(tc.GOROOT).Short())
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return fmt.Errorf("link to the toolchain: %w", err)
	}
	if to, err := os.Readlink(link); err != nil || to != tc.GOROOT {
		tmp := fmt.Sprintf("%s.%d", link, os.Getpid())
		err := os.Symlink(tc.GOROOT, tmp)
		if err == nil {
			err = os.Rename(tmp, link)
		}
		if err != nil {
			return fmt.Errorf("link to the toolchain: %w", err)
		}
	}
	tc.env = append(tc.env, "GOROOT="+link)
	tc.goBin = filepath.Join(link, "bin", "go")
	return tc.ask(ctx, d, w, s)
}

// toolLimits bound one process of the toolchain.
var toolLimits = evidence.Limits{
	CPU: 60 * time.Minute, Wall: 20 * time.Minute, OutputBytes: 4 << 20, Processes: 2048,
}

// spec is a box for the toolchain: no network, the build cache and the given
// directories writable.
func (tc *toolchain) spec(w lang.Workspace, writable ...string) sandbox.Spec {
	return sandbox.Spec{
		Min: w.Min, Max: w.Max, Hidden: w.Hidden, Sources: []string{w.Root},
		Writable: append([]string{tc.cache}, writable...),
		ReadOnly: tc.readOnly(w),
	}
}

// readOnly lists what a toolchain needs to see, also inside a hidden directory.
func (tc *toolchain) readOnly(w lang.Workspace) []string {
	var out []string
	add := func(dir string) {
		if dir == "" || slices.Contains(out, dir) {
			return
		}
		if _, err := os.Stat(dir); err == nil {
			out = append(out, dir)
		}
	}
	add(tc.GOROOT)
	if tc.goBin != "" {
		if real, err := filepath.EvalSymlinks(tc.goBin); err == nil {
			add(filepath.Dir(filepath.Dir(real)))
		}
	}
	add(tc.modCache)
	add(filepath.Join(w.Cache, "go"))
	return out
}
