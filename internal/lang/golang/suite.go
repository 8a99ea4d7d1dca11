package golang

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang/controller"
	"github.com/proveto/proveto/internal/sandbox"
)

// switchVariable is set to a random id in every run of an instrumented suite,
// sabotaged or not: code that looks for it learns nothing.
const switchVariable = "PROVETO_SWITCH"

// suite implements [lang.Suite] for one unit.
type suite struct {
	d     *Driver
	w     lang.Workspace
	m     *module
	p     *probed
	tc    *toolchain
	unit  lang.Unit
	bin   binary
	plain *evidence.Probe // written into the source; nil for an instrumented suite
	boxes *pool
}

func newSuite(d *Driver, w lang.Workspace, m *module, tc *toolchain, p *probed, u lang.Unit, bin binary) *suite {
	s := &suite{d: d, w: w, m: m, p: p, tc: tc, unit: u, bin: bin}
	spec := s.tc.spec(w)
	spec.Network = w.Network
	spec.Writable = nil
	s.boxes = &pool{openFunc: func(ctx context.Context) (box, error) { return d.openFunc(ctx, spec) }}
	return s
}

// Unit implements [lang.Suite].
func (s *suite) Unit() string { return s.unit.ID }

// Run implements [lang.Suite].
func (s *suite) Run(ctx context.Context, r lang.Request) (evidence.Run, error) {
	in, err := s.instructions(r)
	if err != nil {
		return evidence.Run{}, err
	}
	report, err := json.Marshal(in)
	if err != nil {
		return evidence.Run{}, fmt.Errorf("instructions: %w", err)
	}
	cmd := sandbox.Command{
		Purpose: r.Purpose, Snapshot: s.w.Tree, Root: s.w.Root, Dir: slashDir(s.unit.Dir),
		Argv: append([]string{s.bin.Path}, arguments(r)...), Env: s.environ(r),
		Artifact: s.bin.Artifact, Tests: r.Tests, Planted: r.Plant, Limits: s.w.Bound(r.Purpose, r.Limits), Report: report,
	}
	if s.plain != nil {
		cmd.Probe = s.plain.Digest()
	} else if r.Probe != nil {
		cmd.Probe = r.Probe.Digest()
	}
	b, err := s.boxes.take(ctx)
	if err != nil {
		return evidence.Run{}, fmt.Errorf("tests of %s: %w", s.unit.ID, err)
	}
	run, out, err := b.Run(ctx, cmd)
	if err != nil {
		return evidence.Run{}, errors.Join(fmt.Errorf("tests of %s: %w", s.unit.ID, err), b.Close())
	}
	s.boxes.give(b)
	if s.w.Record != nil {
		if err := s.w.Record(run, out); err != nil {
			return evidence.Run{}, err
		}
	}
	return run, nil
}

// instructions are what the controller of this run is told.
func (s *suite) instructions(r lang.Request) (controller.Instructions, error) {
	in := controller.Instructions{Root: s.w.Root, Plant: r.Plant, Tests: map[string]bool{}}
	for _, t := range r.Tests {
		in.Tests[t] = true
	}
	switch {
	case s.plain != nil:
		if r.Probe != nil && r.Probe.Digest() != s.plain.Digest() {
			return in, fault.New(fault.Internal, "internal", "a plain suite has no probe but its own")
		}
	case (r.Observe || r.Reach) && r.Probe != nil:
		return in, fault.New(fault.Internal, "internal", "observe is for runs on the original")
	case r.Observe:
		in.Mode, in.Bases = controller.Observe, s.p.bases()
	case r.Reach:
		in.Mode = controller.Reach
	case r.Probe != nil:
		p, _, err := s.p.site(*r.Probe)
		if err != nil {
			return in, err
		}
		in.Mode, in.Package, in.Site = controller.Probe, p.Path, int(r.Probe.Switch&(1<<siteBits-1))
		in.AtInit, in.Differ = r.Probe.AtInit, r.Differ
		in.Bases = map[string]int64{p.Path: r.Probe.Switch - int64(in.Site)}
	case r.Purpose == evidence.PurposeNull || r.Purpose == evidence.PurposeControl:
		// The machinery of a probe is on, and nothing is changed.
		in.Mode, in.Package = controller.Probe, s.unit.ID
	}
	return in, nil
}

// arguments of the test binary. Which tests it runs is told to the controller.
// Its own time limit is off: limits are ours. An
// os.Exit(0) inside a test is not turned into a panic, as go test does, because
// the missing end mark shows it.
func arguments(r lang.Request) []string {
	out := []string{"-test.timeout=0"}
	if r.Shuffle != 0 {
		out = append(out, "-test.shuffle="+strconv.FormatInt(r.Shuffle, 10))
	}
	if r.FailFast {
		out = append(out, "-test.failfast")
	}
	if r.Observe || r.Reach {
		// One test at a time, so that what is executed belongs to the one that runs.
		out = append(out, "-test.parallel=1")
	}
	return out
}

// environ is the environment of one run, as go test gives it: the go command
// first on PATH, GOROOT, and the directory of the package.
func (s *suite) environ(r lang.Request) []string {
	tc := s.tc
	env := slices.Concat(s.w.Env, []string{
		"PATH=" + tc.path,
		"GOROOT=" + tc.GOROOT, "GOMODCACHE=" + tc.modCache, "GOPROXY=off", "GOTOOLCHAIN=local", "GOENV=off", "GOTELEMETRY=off",
		"PWD=" + filepath.Join(s.w.Root, filepath.FromSlash(s.unit.Dir)),
	})
	if s.plain == nil {
		env = append(env, switchVariable+"="+rand.Text())
	}
	if r.OtherEnv {
		env = append(env, otherEnv...)
	}
	return env
}

// otherEnv is the second environment: code that behaves by these is found out.
var otherEnv = []string{
	"USER=builder", "LOGNAME=builder", "HOSTNAME=elsewhere", "TZ=Pacific/Chatham", "LANG=tr_TR.UTF-8",
	"CI=true", "CONTINUOUS_INTEGRATION=true", "GITHUB_ACTIONS=true", "BUILD_NUMBER=7", "TERM=dumb",
}

// Close implements [lang.Suite].
func (s *suite) Close() error { return s.boxes.close() }

// pool keeps the boxes of a suite: one for each run at the same time.
type pool struct {
	openFunc func(context.Context) (box, error)

	mu     sync.Mutex
	free   []box
	closed bool
}

func (p *pool) take(ctx context.Context) (box, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, fault.New(fault.Internal, "internal", "the suite is closed")
	}
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return b, nil
	}
	p.mu.Unlock()
	return p.openFunc(ctx)
}

// give takes a box back. One that comes back late, after close, is closed.
func (p *pool) give(b box) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.free = append(p.free, b)
		return
	}
	_ = b.Close() // the run is made, and whoever closed the suite has gone
}

func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var err error
	for _, b := range p.free {
		err = errors.Join(err, b.Close())
	}
	p.free = nil
	return err
}
