package golang

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang/controller"
	"github.com/proveto/proveto/internal/lang/golang/mutate"
	"github.com/proveto/proveto/internal/lang/golang/source"
	"github.com/proveto/proveto/internal/sandbox"
	"github.com/proveto/proveto/internal/wholefile"
)

// siteBits is the width of a site's number inside its package; above it is the
// number of the package. Together they are lang.Probe.Switch.
const siteBits = 20

// module is what the driver knows of one sealed module. The fields below mu are
// set in this order, each at most once except when sites are dropped.
type module struct {
	project lang.Project

	mu        sync.Mutex
	toolchain *toolchain
	dropped   []evidence.Digest
	probed    *probed
}

// probed is one instrumentation of a module. Dropping a site makes another one;
// a suite keeps the one that it was built from, because its numbers differ.
type probed struct {
	answer   *source.Answer
	packages []source.Package  // sorted by path: the index + 1 is the package's number
	testing  map[string]string // package testing with the controller
	overlay  overlay

	mu    sync.Mutex
	sites map[string][]mutate.Site // by path, as far as they were needed
}

// overlay is a list of replaced files: original to replacement, both absolute.
type overlay struct {
	file    string // for -overlay
	replace map[string]string
	digest  evidence.Digest // of names and contents
}

// ask runs the source helper in a box.
func (m *module) ask(ctx context.Context, d *Driver, w lang.Workspace, tc *toolchain, instrument bool) (*source.Answer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("own executable: %w", err)
	}
	key := evidence.DigestParts(source.Driver, w.Root, m.project.Dir, tc.GOROOT, tc.GOVERSION, strings.Join(tc.env, "\n"))
	out := filepath.Join(w.Cache, "go", "source", key.Hex())
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, fmt.Errorf("cache of the Go helper: %w", err)
	}
	// The helper uses its own environment: only the box knows TMPDIR and HOME.
	req, err := json.Marshal(source.Request{
		Root: w.Root, Project: m.project, Out: out, Instrument: instrument, Drop: m.dropped,
	})
	if err != nil {
		return nil, fmt.Errorf("request to the Go helper: %w", err)
	}
	spec := tc.spec(w, out)
	spec.ReadOnly = append(spec.ReadOnly, filepath.Dir(self))
	run, res, err := d.run(ctx, w, spec, sandbox.Command{
		Purpose: evidence.PurposeTool, Snapshot: w.Tree, Root: w.Root, Dir: slashDir(m.project.Dir),
		Argv: []string{self, source.Argument}, Env: tc.environ(w), Stdin: req, Limits: toolLimits,
	})
	if err != nil {
		return nil, fmt.Errorf("load Go module %s: %w", m.project.Name, err)
	}
	if rec := run.Record(); len(res.Stdout) == 0 || rec.Exit.Stopped != "" {
		return nil, stopped(rec, "load Go module "+m.project.Name, res.Stderr)
	}
	a, err := source.Decode(res.Stdout)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// stopped says why a tool gave no answer.
func stopped(rec evidence.RunRecord, what string, stderr []byte) error {
	switch stop := rec.Exit.Stopped; {
	case stop == evidence.StopCancelled:
		return fault.New(fault.Interrupted, "interrupted", "%s was stopped", what)
	case stop.Timeout():
		return fault.New(fault.Unmeasured, lang.TimedOut, "%s took longer than %s", what, rec.Limits.Wall)
	case stop == "":
		return classify(stderr, what)
	}
	return fault.New(fault.Unmeasured, lang.BuildFailed, "%s hit our %s", what, strings.ReplaceAll(string(rec.Exit.Stopped), "_", " "))
}

// environ is the whole environment of a process of the toolchain.
func (tc *toolchain) environ(w lang.Workspace) []string { return slices.Concat(w.Env, tc.env) }

// slashDir is a project or unit directory as the sandbox takes it.
func slashDir(dir string) string {
	if dir == "." {
		return ""
	}
	return filepath.FromSlash(dir)
}

// instrumented is the instrumentation that new suites are built from.
func (m *module) instrumented(ctx context.Context, d *Driver, w lang.Workspace) (*toolchain, *probed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.instrument(ctx, d, w); err != nil {
		return nil, nil, err
	}
	return m.toolchain, m.probed, nil
}

// without is an instrumentation in which the given sites of p are left out too.
func (m *module) without(ctx context.Context, d *Driver, w lang.Workspace, p *probed, drop []evidence.Digest) (*probed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stale := m.probed == p // else the build of another unit replaced it
	for _, site := range drop {
		if !slices.Contains(m.dropped, site) {
			m.dropped = append(m.dropped, site)
			stale = true
		}
	}
	if stale {
		m.probed = nil
	}
	if err := m.instrument(ctx, d, w); err != nil {
		return nil, err
	}
	return m.probed, nil
}

// instrument makes the overlay of the whole module; m.mu is held.
func (m *module) instrument(ctx context.Context, d *Driver, w lang.Workspace) error {
	if m.probed != nil {
		return nil
	}
	tc, err := m.tools(ctx, d, w)
	if err != nil {
		return err
	}
	p := &probed{sites: map[string][]mutate.Site{}}
	if p.answer, err = m.ask(ctx, d, w, tc, true); err != nil {
		return err
	}
	if p.testing, err = patched(w.Cache, tc.GOROOT); err != nil {
		return err
	}
	p.packages = slices.Clone(p.answer.Packages)
	slices.SortFunc(p.packages, func(a, b source.Package) int { return strings.Compare(a.Path, b.Path) })
	replace := maps.Clone(p.testing)
	for _, pkg := range p.packages {
		maps.Copy(replace, pkg.Files)
		maps.Copy(replace, pkg.Extra)
	}
	if p.overlay, err = writeOverlay(w.Cache, replace); err != nil {
		return err
	}
	m.probed = p
	return nil
}

// patched writes package testing with the controller into the cache.
func patched(cache, goroot string) (map[string]string, error) {
	files, err := controller.Patch(goroot)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(files))
	parts := []string{goroot}
	for _, n := range names {
		parts = append(parts, n, string(files[n]))
	}
	dir := filepath.Join(cache, "go", "testing", evidence.DigestParts(parts...).Hex())
	out := map[string]string{}
	for _, n := range names {
		to := filepath.Join(dir, filepath.Base(n))
		if err := writeOnce(to, files[n]); err != nil {
			return nil, err
		}
		out[n] = to
	}
	return out, nil
}

// writeOverlay writes the list for -overlay under the digest of all it replaces.
func writeOverlay(cache string, replace map[string]string) (overlay, error) {
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return overlay{}, fmt.Errorf("overlay: %w", err)
	}
	parts := []string{string(body)}
	for _, n := range slices.Sorted(maps.Keys(replace)) {
		b, err := os.ReadFile(replace[n])
		if err != nil {
			return overlay{}, fmt.Errorf("overlay of %s: %w", n, err)
		}
		parts = append(parts, string(evidence.DigestOf(b)))
	}
	o := overlay{replace: replace, digest: evidence.DigestParts(parts...)}
	o.file = filepath.Join(cache, "go", "overlay", o.digest.Hex()+".json")
	return o, writeOnce(o.file, body)
}

// writeOnce writes a file whose name is a digest of its contents, whole or not
// at all.
func writeOnce(name string, b []byte) error {
	if old, err := os.ReadFile(name); err == nil && string(old) == string(b) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("write cache: %w", err)
	}
	if err := wholefile.Write(name, b, 0o644, false); err != nil {
		return fmt.Errorf("write cache: %w", err)
	}
	return nil
}

func (p *probed) unit(id string) (lang.Unit, bool) {
	for _, u := range p.answer.Scan.Units {
		if u.ID == id {
			return u, true
		}
	}
	return lang.Unit{}, false
}

// undefined is a name that a unit or a package that it imports lacks without our
// additions, with its place; empty: none.
func (p *probed) undefined(u lang.Unit) string {
	seen := map[string]bool{u.ID: true}
	for work := []lang.Unit{u}; len(work) > 0; work = work[1:] {
		if place := work[0].Undefined; place != "" && (work[0].ID == u.ID || !strings.Contains(place, "_test.go:")) {
			return place
		}
		for _, id := range work[0].Imports {
			if next, ok := p.unit(id); ok && !seen[id] {
				seen[id] = true
				work = append(work, next)
			}
		}
	}
	return ""
}

// sitesOf reads the probes of a package once.
func (p *probed) sitesOf(pkg source.Package) ([]mutate.Site, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.sites[pkg.Path]; ok {
		return s, nil
	}
	s, err := pkg.Sites()
	if err != nil {
		return nil, err
	}
	p.sites[pkg.Path] = s
	return s, nil
}

// bases are the instructions that make the numbers of sites unique.
func (p *probed) bases() map[string]int64 {
	out := map[string]int64{}
	for i, pkg := range p.packages {
		out[pkg.Path] = int64(i+1) << siteBits
	}
	return out
}

// site finds a probe by its switch.
func (p *probed) site(probe lang.Probe) (source.Package, mutate.Site, error) {
	bad := func(what string) (source.Package, mutate.Site, error) {
		return source.Package{}, mutate.Site{}, fault.New(fault.Internal, "internal", "switch %d of probe %q names %s", probe.Switch, probe.Summary, what)
	}
	i, n := int(probe.Switch>>siteBits)-1, int(probe.Switch&(1<<siteBits-1))
	if i < 0 || i >= len(p.packages) {
		return bad("no package")
	}
	sites, err := p.sitesOf(p.packages[i])
	if err != nil {
		return source.Package{}, mutate.Site{}, err
	}
	if n < 1 || n > len(sites) {
		return bad("no probe")
	}
	if sites[n-1].Digest() != probe.Digest() {
		return bad("another probe")
	}
	return p.packages[i], sites[n-1], nil
}
