package app

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/prove"
)

// findTouched finds the symbols that a change touches elsewhere than in their own
// lines, by comparing the project with the one at the base: those that use a
// constant or a variable that changed, those of which a test called at the base
// was weakened, those that were proven at the base and are not any more, and those
// that were in no package of the project: new ones, and all of a new project.
func (inv *invocation) findTouched(ctx context.Context, d lang.Driver, in *project) error {
	if !inv.changeAsked() {
		return nil
	}
	now := in.today
	if inv.touched == nil {
		inv.touched = map[string]bool{}
	}
	p := now.Scan.Project
	return inv.projectThen(ctx, d, p, func(then *prove.Today) {
		inv.noteThen(then)
		if then == nil {
			then = prove.NewToday(&lang.Scan{Project: p}, inv.workspace())
		}
		in.base = then.Scan
		for _, s := range slices.Concat(now.Scan.Symbols, now.Scan.Values) {
			if was, ok := then.Symbol(s.ID); ok && was.Values != s.Values || !ok && !s.TestCode && !had(then.Scan.Values, s.ID) {
				inv.touched[s.ID] = true
			}
		}
		for _, id := range weakened(then.Scan, now.Scan, inv.fed(d)) {
			inv.touched[id] = true
		}
		lost, held := map[string]bool{}, map[string]bool{}
		for _, c := range in.certificates {
			if in.revoked[c.Digest] != "" || !proves(c.Record) {
				continue
			}
			id := c.Record.Facts.Symbol
			lost[id] = lost[id] || len(then.Lapses(c.Record)) == 0
			held[id] = held[id] || len(now.Lapses(c.Record)) == 0
		}
		for id := range lost {
			if lost[id] && !held[id] {
				inv.touched[id] = true
			}
		}
	})
}

// had tells whether an id is among symbols.
func had(symbols []lang.Symbol, id string) bool {
	return slices.ContainsFunc(symbols, func(s lang.Symbol) bool { return s.ID == id })
}

// fed are the directories whose tests have data files that changed.
func (inv *invocation) fed(d lang.Driver) map[string]bool {
	out := map[string]bool{}
	for name := range inv.changed {
		if dir, ok := d.TestData(name); ok {
			out[dir] = true
		}
	}
	return out
}

// weakened lists what the tests called at the base that were edited or removed
// since: a change that only weakens, skips or removes a test changes what it
// guarded. A test is edited with each helper that it calls, with what runs around
// it (TestMain, the init functions of test files), and with the data of its
// directory in fed. Calls are followed through helpers of tests, and no further.
func weakened(then, now *lang.Scan, fed map[string]bool) []string {
	was, is := testCode(then), testCode(now)
	calls, callers := map[string][]string{}, map[string][]string{}
	for _, c := range then.Calls {
		if _, ok := was[c.From]; ok {
			calls[c.From] = append(calls[c.From], c.To)
			callers[c.To] = append(callers[c.To], c.From)
		}
	}
	tests := map[string][]string{} // by unit
	for _, t := range then.Tests {
		tests[t.Unit] = append(tests[t.Unit], t.Symbol)
	}
	for _, s := range slices.Concat(then.Symbols, now.Symbols) {
		if s.TestCode && (s.Kind == "test_main" || s.Kind == "init") {
			callers[s.ID] = append(callers[s.ID], tests[s.Unit]...)
		}
	}
	edited := prove.Reachable(differing(was, is, fed), func(id string) []string {
		return slices.DeleteFunc(slices.Clone(callers[id]), func(from string) bool { _, ok := was[from]; return !ok })
	})
	return prove.Reachable(edited, func(id string) []string { return calls[id] })
}

// differing lists the functions of tests that are not the same; one that is new
// counts where it runs around other tests, which only callers of its id say.
func differing(was, is map[string]lang.Symbol, fed map[string]bool) []string {
	var out []string
	for id, sy := range was {
		if is[id].Digest != sy.Digest || fed[path.Dir(sy.File)] {
			out = append(out, id)
		}
	}
	for id := range is {
		if _, ok := was[id]; !ok {
			out = append(out, id)
		}
	}
	return out
}

// testCode are the functions of tests, by id.
func testCode(s *lang.Scan) map[string]lang.Symbol {
	out := map[string]lang.Symbol{}
	for _, sy := range s.Symbols {
		if sy.TestCode {
			out[sy.ID] = sy
		}
	}
	return out
}

// projectThen calls f with the project as it was at the base, while its files are
// there: nil when it was not there, and not at all when it could not be loaded.
func (inv *invocation) projectThen(ctx context.Context, d lang.Driver, p lang.Project, f func(*prove.Today)) error {
	inv.p.Phase("scan", p.Name+" at "+orText(inv.o.Base, "HEAD"))
	return inv.withBase(ctx, d, func(was []lang.Project, w lang.Workspace) error {
		for _, then := range was {
			if then.Dir == p.Dir {
				return inv.readThen(ctx, d, w, then, f)
			}
		}
		f(nil)
		return nil
	})
}

// withBase calls f with the projects of the base, while their files are there.
func (inv *invocation) withBase(ctx context.Context, d lang.Driver, f func([]lang.Project, lang.Workspace) error) (err error) {
	snaps, err := inv.app.Snapshots(ctx)
	if err != nil {
		return err
	}
	c, err := snaps.Checkout(ctx, inv.repo, inv.baseTree)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Release(context.WithoutCancel(ctx))) }()
	was, err := d.Detect(c.Dir())
	if err != nil {
		return err
	}
	w := inv.workspace()
	w.Root, w.Tree, w.Builds = c.Dir(), inv.baseTree, false
	return f(was, w)
}

// readThen calls f with a project of the base; not at all when it cannot be loaded.
func (inv *invocation) readThen(ctx context.Context, d lang.Driver, w lang.Workspace, p lang.Project, f func(*prove.Today)) error {
	s, err := d.Scan(ctx, w, p)
	switch {
	case err == nil:
		f(prove.NewToday(s, w))
	case !credibleSetup(err):
		return err
	default:
		inv.warn("base_not_read", "what was proven and what tests called at "+orText(inv.o.Base, "HEAD")+" is not known: "+err.Error())
	}
	return nil
}
