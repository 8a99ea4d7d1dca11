package app

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/prove"
	"github.com/proveto/proveto/internal/snapshot"
	"github.com/proveto/proveto/internal/view"
)

// findScope decides which lines count as changed: since --base, else the
// uncommitted ones, else all.
func (inv *invocation) findScope(ctx context.Context, snaps *snapshot.Store) (string, error) {
	switch {
	case inv.o.Base != "":
		commit, err := inv.mergeBase(ctx, snaps)
		if err != nil {
			return "", err
		}
		base, err := snaps.Seal(ctx, inv.repo, snapshot.Options{Rev: commit})
		if err != nil {
			return "", err
		}
		inv.baseTree = base.Tree
		if inv.changed, err = snaps.ChangedLines(ctx, inv.repo, inv.baseTree, inv.snap.Tree); err != nil {
			return "", err
		}
		return "changed since " + inv.o.Base, nil
	case inv.snap.Dirty && inv.snap.Commit != "":
		inv.baseTree = inv.snap.Base
		var err error
		if inv.changed, err = snaps.ChangedLines(ctx, inv.repo, inv.baseTree, inv.snap.Tree); err != nil {
			return "", err
		}
		return "uncommitted changes first", nil
	}
	return "everything", nil
}

// mergeBase is the newest commit that the snapshot and --base share: what the
// base got since is no part of the change.
func (inv *invocation) mergeBase(ctx context.Context, snaps *snapshot.Store) (string, error) {
	base, err := snaps.ResolveCommit(ctx, inv.repo, inv.o.Base)
	if err != nil {
		return "", err
	}
	if inv.snap.Commit == "" {
		return base, nil
	}
	return snaps.MergeBase(ctx, inv.repo, base, inv.snap.Commit)
}

// isChanged tells whether a symbol is in the changed scope: its own lines changed,
// or what its behaviour or its proof stood on.
func (inv *invocation) isChanged(s lang.Symbol) bool {
	if inv.touched[s.ID] {
		return true
	}
	for _, l := range inv.changed[s.File] {
		if l.First <= s.EndLine && s.Line <= l.Last {
			return true
		}
	}
	return false
}

// findTouched finds the symbols that a change touches elsewhere than in their own
// lines, by comparing the project with the one at the base: those that use a
// constant or a variable that changed, those of which a test called at the base
// was weakened, and those that were proven at the base and are not any more.
func (inv *invocation) findTouched(ctx context.Context, d lang.Driver, led *ledger.Ledger, now *prove.Today) error {
	asked := inv.o.Base != "" || inv.o.Gate || inv.o.ChangedOnly
	if !asked || len(inv.changed) == 0 {
		return nil
	}
	if inv.touched == nil {
		inv.touched = map[string]bool{}
	}
	p := now.Scan.Project
	certs, err := led.CertificatesFor(ctx, p.Language, p.Dir)
	if err != nil {
		return err
	}
	revoked, err := inv.app.revoked(ctx)
	if err != nil {
		return err
	}
	return inv.atBase(ctx, d, p, func(then *prove.Today) {
		for _, s := range then.Scan.Symbols {
			if today, ok := now.Symbol(s.ID); ok && today.Values != s.Values {
				inv.touched[s.ID] = true
			}
		}
		for _, id := range weakened(then.Scan, now.Scan) {
			inv.touched[id] = true
		}
		lost, held := map[string]bool{}, map[string]bool{}
		for _, c := range certs {
			if revoked[c.Digest] != "" || !proves(c.Record) {
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

// weakened lists what the tests called at the base that were edited or removed
// since: a change that only weakens, skips or removes a test changes what it
// guarded. A test is edited with each helper that it calls, and with what runs
// around it (TestMain, the init functions of test files). Calls are followed
// through helpers of tests, and no further.
func weakened(then, now *lang.Scan) []string {
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
	edited := reach(differing(was, is), func(id string) []string {
		return slices.DeleteFunc(slices.Clone(callers[id]), func(from string) bool { _, ok := was[from]; return !ok })
	})
	return reach(edited, func(id string) []string { return calls[id] })
}

// differing lists the functions of tests that are not the same; one that is new
// counts where it runs around other tests, which only callers of its id say.
func differing(was, is map[string]evidence.Digest) []string {
	var out []string
	for id := range was {
		if is[id] != was[id] {
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

// reach lists what can be come to from some ids, these included.
func reach(from []string, next func(string) []string) []string {
	seen := map[string]bool{}
	for work := from; len(work) > 0; {
		id := work[len(work)-1]
		work = work[:len(work)-1]
		if !seen[id] {
			seen[id] = true
			work = append(work, next(id)...)
		}
	}
	return slices.Collect(maps.Keys(seen))
}

// testCode are the digests of the functions of tests, by id.
func testCode(s *lang.Scan) map[string]evidence.Digest {
	out := map[string]evidence.Digest{}
	for _, sy := range s.Symbols {
		if sy.TestCode {
			out[sy.ID] = sy.Digest
		}
	}
	return out
}

// atBase calls f with the project as it was at the base, while its files are
// there; not at all when it was not there, or could not be loaded then.
func (inv *invocation) atBase(ctx context.Context, d lang.Driver, p lang.Project, f func(*prove.Today)) (err error) {
	snaps, err := inv.app.Snapshots(ctx)
	if err != nil {
		return err
	}
	base := orText(inv.o.Base, "HEAD")
	inv.p.Phase("scan", p.Name+" at "+base)
	c, err := snaps.Checkout(ctx, inv.repo, inv.baseTree)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Release(context.WithoutCancel(ctx))) }()
	found, err := d.Detect(c.Dir())
	if err != nil {
		return err
	}
	w := inv.workspace()
	w.Root, w.Tree, w.Builds = c.Dir(), inv.baseTree, false
	for _, then := range found {
		if then.Dir != p.Dir {
			continue
		}
		s, err := d.Scan(ctx, w, then)
		if err == nil {
			f(prove.NewToday(s, w))
			return nil
		}
		if !credibleSetup(err) {
			return err
		}
		inv.warn("base_not_read", "what was proven and what tests called at "+base+" is not known: "+err.Error())
	}
	return nil
}

// gatesChange tells whether a gate judges what changed: where a change was asked
// for, or where there is one and nothing was named. Otherwise it judges all that
// was asked for, so that a clean checkout does not pass on an empty scope.
func (inv *invocation) gatesChange() bool {
	return inv.o.ChangedOnly || (inv.changed != nil && len(inv.o.Only) == 0)
}

// gated are the symbols that a gate judges.
func (inv *invocation) gated(v *view.Start) []view.Symbol {
	scope := []view.Symbol{}
	for _, s := range v.Symbols {
		asked := len(inv.o.Only) == 0 || slices.ContainsFunc(inv.o.Only, func(want string) bool {
			return names(lang.Symbol{ID: s.ID, Name: s.Name, Unit: s.Package, File: s.File}, want)
		})
		if asked && (s.Changed || !inv.gatesChange()) {
			scope = append(scope, s)
		}
	}
	return scope
}
