package gates

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/prove"
	"github.com/proveto/proveto/internal/snapshot"
)

// bench is a tree in a fresh checkout, with its projects.
type bench struct {
	m        *measurement
	tree     evidence.Tree
	w        lang.Workspace
	projects []*project
	scanned  bool
}

// project is one module of the tree.
type project struct {
	lang.Project
	driver lang.Driver
	scan   *lang.Scan // nil until scanned, or when it cannot be loaded
	err    error      // why it cannot be loaded
	suites map[string]lang.Suite
	broken map[string]error // units whose suite cannot be built
}

// bench checks a tree out, once for a measurement, and finds its projects.
func (m *measurement) bench(ctx context.Context, tree evidence.Tree) (*bench, error) {
	if b := m.trees[tree]; b != nil {
		return b, nil
	}
	c, err := m.site.Checkout(ctx, tree)
	if err != nil {
		return nil, err
	}
	b := &bench{m: m, tree: tree, w: m.site.Workspace(c, m.r.Policy.IsolationMin)}
	for _, d := range m.app.Drivers {
		found, err := d.Detect(c.Dir())
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			b.projects = append(b.projects, &project{Project: p, driver: d, suites: map[string]lang.Suite{}, broken: map[string]error{}})
		}
	}
	m.trees[tree] = b
	return b, nil
}

// scan reads the projects; one that cannot be loaded keeps its error.
func (b *bench) scan(ctx context.Context) error {
	if b.scanned {
		return nil
	}
	for _, p := range b.projects {
		p.scan, p.err = p.driver.Scan(ctx, b.w, p.Project)
		if p.err != nil && fault.From(p.err).Kind != fault.Unmeasured {
			return p.err
		}
	}
	b.scanned = true
	return nil
}

// unit is a suite of the tree.
type unit struct {
	p *project
	lang.Unit
}

// tested lists the units with tests, of all projects that can be loaded.
func (b *bench) tested() []unit {
	var out []unit
	for _, p := range b.projects {
		if p.scan == nil {
			continue
		}
		for _, u := range p.scan.Units {
			if u.Tests > 0 {
				out = append(out, unit{p, u})
			}
		}
	}
	return out
}

// unloadable is why a project cannot be loaded; nil when all can.
func (b *bench) unloadable() (*project, error) {
	for _, p := range b.projects {
		if p.err != nil {
			return p, p.err
		}
	}
	return nil, nil
}

// suite builds a unit's tests once. An error of kind unmeasured is kept: it says
// why they cannot be built.
func (b *bench) suite(ctx context.Context, u unit) (lang.Suite, error) {
	if s, ok := u.p.suites[u.ID]; ok {
		return s, nil
	}
	if err, ok := u.p.broken[u.ID]; ok {
		return nil, err
	}
	s, err := u.p.driver.Build(ctx, b.w, u.p.scan, u.ID)
	if err != nil {
		if fault.From(err).Kind == fault.Unmeasured && ctx.Err() == nil {
			u.p.broken[u.ID] = err
		}
		return nil, err
	}
	u.p.suites[u.ID] = s
	return s, nil
}

// limits bound one run of a suite.
func (b *bench) limits() evidence.Limits {
	wall := min(prove.BaselineWall, max(b.m.r.Policy.Time, time.Second))
	if b.m.r.Policy.Time <= 0 {
		wall = prove.BaselineWall
	}
	return evidence.Limits{CPU: 4 * wall, Wall: wall, OutputBytes: 1 << 20, Processes: 512, MemoryBytes: 8 << 30}
}

// run makes one run of a suite. One that was ended because the time of the gate
// is over is an error.
func (b *bench) run(ctx context.Context, u unit, r lang.Request) (evidence.UnitRun, error) {
	s, err := b.suite(ctx, u)
	if err != nil {
		return evidence.UnitRun{}, err
	}
	r.Limits = b.limits()
	run, err := s.Run(ctx, r)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return evidence.UnitRun{Unit: u.ID, Run: run}, err
}

// runAll runs the suites of the given units so many times: first in order, then
// shuffled. What cannot be built is listed by unit and is no error.
func (b *bench) runAll(ctx context.Context, units []unit, times int) (runs []evidence.UnitRun, broken map[string]error, err error) {
	broken = map[string]error{}
	for _, u := range units {
		for i := range times {
			r := lang.Request{Purpose: evidence.PurposeBaseline}
			if i > 0 {
				r.Shuffle = int64(i) * 7919
			}
			run, err := b.run(ctx, u, r)
			if _, bad := u.p.broken[u.ID]; bad {
				broken[u.ID] = err
				break
			}
			if err != nil {
				return nil, nil, err
			}
			runs = append(runs, run)
		}
	}
	return runs, broken, nil
}

func (b *bench) close() error {
	var errs []error
	for _, p := range b.projects {
		for _, s := range p.suites {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// compose seals a tree with some paths changed.
func (m *measurement) compose(ctx context.Context, tree evidence.Tree, edits ...snapshot.Edit) (evidence.Tree, error) {
	return m.site.Snapshots().Compose(ctx, m.r.Repo, tree, edits)
}

// replaced seals the tree with one file replaced.
func (m *measurement) replaced(ctx context.Context, tree evidence.Tree, path string, body []byte) (evidence.Tree, error) {
	mode := snapshot.Regular
	files, err := m.site.Snapshots().Files(ctx, m.r.Repo, tree)
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(files, func(f snapshot.File) bool { return f.Path == path }); i >= 0 {
		mode = files[i].Mode
	}
	return m.compose(ctx, tree, snapshot.Edit{Path: path, Mode: mode, Content: body})
}
