// Package golang is the Go driver: it detects modules, builds each package's
// tests once with every probe present, and runs them in fresh processes.
//
// Nothing is written into a checkout. Instrumented sources, the patched package
// testing (package controller) and the list of replaced files lie in the cache
// and reach the compiler by -overlay; test binaries are kept there by the digest
// of what they were built from. Every process of the toolchain and every test
// binary runs in a box of package sandbox: the toolchain without network, with
// the build cache writable; test binaries with nothing writable but what the box
// gives them.
//
// Cache layout, below lang.Workspace.Cache:
//
//	go/testing/<digest>/   package testing with the controller
//	go/source/<digest>/    what the source helper keeps of one module
//	go/overlay/<digest>.json
//	go/unit/<digest>/      test binary and build.json of one unit
//	go/build/              build cache, when the user's cannot be written
//	go/root/<name>         links to toolchains below the module cache
package golang

import (
	"context"
	"sync"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/sandbox"
)

// Language is the stored name of this driver's language.
const Language = "go"

// Runner is the stored name of its test runner.
const Runner = "go test"

// box is what the driver needs of sandbox.Box.
type box interface {
	Run(context.Context, sandbox.Command) (evidence.Run, sandbox.Output, error)
	Close() error
}

// Driver implements [lang.Driver]. It may be used by several goroutines.
type Driver struct {
	openFunc func(context.Context, sandbox.Spec) (box, error)

	mu      sync.Mutex
	modules map[string]*module
}

var (
	_ lang.Driver    = (*Driver)(nil)
	_ lang.Explainer = (*Driver)(nil)
	_ lang.Commander = (*Driver)(nil)
)

// New makes a driver. It keeps in memory what it loaded of each sealed module.
func New() *Driver {
	return &Driver{modules: map[string]*module{}, openFunc: func(ctx context.Context, s sandbox.Spec) (box, error) {
		return sandbox.Open(ctx, s)
	}}
}

// Language implements [lang.Driver].
func (d *Driver) Language() string { return Language }

// Explain implements [lang.Explainer].
func (d *Driver) Explain(output []byte) (*fault.Error, bool) { return Explain(output) }

// Scan implements [lang.Driver].
func (d *Driver) Scan(ctx context.Context, w lang.Workspace, p lang.Project) (*lang.Scan, error) {
	m := d.module(w, p)
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.Builds || m.probed != nil {
		// Loading is most of the work; where the probes cannot be made, Build says why.
		if err := m.instrument(ctx, d, w); err == nil {
			return m.probed.answer.Scan, nil
		}
	}
	tc, err := m.tools(ctx, d, w)
	if err != nil {
		return nil, err
	}
	a, err := m.ask(ctx, d, w, tc, false)
	if err != nil {
		return nil, err
	}
	return a.Scan, nil
}

// module finds the memory of one sealed module.
func (d *Driver) module(w lang.Workspace, p lang.Project) *module {
	key := string(evidence.DigestParts(w.Root, string(w.Tree), w.Cache, p.Dir))
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.modules[key]
	if m == nil {
		m = &module{project: p}
		d.modules[key] = m
	}
	return m
}

// Build implements [lang.Driver].
func (d *Driver) Build(ctx context.Context, w lang.Workspace, s *lang.Scan, unit string) (lang.Suite, error) {
	m := d.module(w, s.Project)
	tc, p, err := m.instrumented(ctx, d, w)
	if err != nil {
		return nil, err
	}
	u, ok := p.unit(unit)
	if !ok {
		return nil, fault.New(fault.Unmeasured, lang.NoTests, "module %s has no package %s", m.project.Name, unit)
	}
	if b := u.Broken; b != nil {
		return nil, fault.New(fault.Unmeasured, b.Code, "package %s does not build: %s", unit, b.Text).Hint("%s", b.Hint)
	}
	if u.Tests == 0 {
		return nil, fault.New(fault.Unmeasured, lang.NoTests, "package %s has no tests", unit)
	}
	if place := p.undefined(u); place != "" {
		return nil, fault.New(fault.Unmeasured, lang.BuildFailed, "package %s does not build: %s", unit, place).Hint("go vet %s", unit)
	}
	bin, p, err := m.build(ctx, d, w, tc, p, u)
	if err != nil {
		return nil, err
	}
	return newSuite(d, w, m, tc, p, u, bin), nil
}

// run runs one command in a box of its own and records it.
func (d *Driver) run(ctx context.Context, w lang.Workspace, spec sandbox.Spec, cmd sandbox.Command) (evidence.Run, sandbox.Output, error) {
	b, err := d.openFunc(ctx, spec)
	if err != nil {
		return evidence.Run{}, sandbox.Output{}, err
	}
	run, out, err := b.Run(ctx, cmd)
	if cerr := b.Close(); err == nil {
		err = cerr
	}
	if err == nil && w.Record != nil {
		err = w.Record(run, out)
	}
	return run, out, err
}
