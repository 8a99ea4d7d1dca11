package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/lang"
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
		return inv.named("changed since " + inv.o.Base), nil
	case inv.snap.Dirty && inv.snap.Commit != "":
		inv.baseTree = inv.snap.Base
		var err error
		if inv.changed, err = snaps.ChangedLines(ctx, inv.repo, inv.baseTree, inv.snap.Tree); err != nil {
			return "", err
		}
	}
	switch {
	case inv.o.ChangedOnly:
		return inv.named("uncommitted changes and what they made stale"), nil
	case inv.narrow():
		return inv.named(""), nil
	case inv.changed != nil:
		return "uncommitted changes first", nil
	}
	return "everything", nil
}

// narrow tells whether less than everything was asked for.
func (inv *invocation) narrow() bool {
	return inv.o.ChangedOnly || len(inv.o.Only) > 0 || inv.filtered()
}

// named adds what was named by hand to a scope.
func (inv *invocation) named(scope string) string {
	parts := []string{}
	if scope != "" {
		parts = append(parts, scope)
	}
	for _, by := range []struct {
		format string
		names  []string
	}{{"only %s", inv.o.Only}, {"only mutants %s", inv.o.Mutants}} {
		if n := by.names; len(n) > 3 {
			parts = append(parts, fmt.Sprintf(by.format+" and %d more", strings.Join(n[:3], ", "), len(n)-3))
		} else if len(n) > 0 {
			parts = append(parts, fmt.Sprintf(by.format, strings.Join(n, ", ")))
		}
	}
	if inv.o.Test != "" {
		parts = append(parts, "only with "+inv.o.Test)
	}
	return strings.Join(parts, ", ")
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
// or a test that called it.
func (inv *invocation) isChanged(s lang.Symbol) bool {
	if inv.weakened[s.ID] {
		return true
	}
	for _, l := range inv.changed[s.File] {
		if l.First <= s.EndLine && s.Line <= l.Last {
			return true
		}
	}
	return false
}

// findWeakened finds what the tests called before the change that were edited or
// removed since, or whose data was: a change that only weakens, skips or removes a
// test changes what it guarded. Calls are followed through helpers of tests, and
// no further.
func (inv *invocation) findWeakened(ctx context.Context, d lang.Driver, now *lang.Scan) error {
	edited, fed := false, map[string]bool{} // fed: directories whose tests read data that changed
	for name := range inv.changed {
		edited = edited || d.TestFile(name)
		if dir, ok := d.TestData(name); ok {
			fed[dir] = true
		}
	}
	if !edited && len(fed) == 0 {
		return nil
	}
	base, err := inv.scanBase(ctx, d, now.Project)
	if err != nil {
		return err
	}
	then, today := testCode(base), testCode(now)
	calls := map[string][]string{}
	for _, c := range base.Calls {
		if _, ok := then[c.From]; ok {
			calls[c.From] = append(calls[c.From], c.To)
		}
	}
	var todo []string
	for id, sy := range then {
		if today[id].Digest != sy.Digest || fed[path.Dir(sy.File)] {
			todo = append(todo, id)
		}
	}
	if inv.weakened == nil {
		inv.weakened = map[string]bool{}
	}
	for len(todo) > 0 {
		id := todo[0]
		todo = todo[1:]
		if !inv.weakened[id] {
			inv.weakened[id] = true
			todo = append(todo, calls[id]...)
		}
	}
	return nil
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

// scanBase reads the project as it was at the base; empty when it was not there,
// or could not be loaded then.
func (inv *invocation) scanBase(ctx context.Context, d lang.Driver, p lang.Project) (_ *lang.Scan, err error) {
	snaps, err := inv.app.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	at := cmp.Or(inv.o.Base, "the last commit")
	inv.p.Phase("scan", p.Name+" at "+at)
	c, err := snaps.Checkout(ctx, inv.repo, inv.baseTree)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Release(context.WithoutCancel(ctx))) }()
	found, err := d.Detect(c.Dir())
	if err != nil {
		return nil, err
	}
	w := inv.workspace()
	w.Root, w.Tree, w.Builds = c.Dir(), inv.baseTree, false
	for _, then := range found {
		if then.Dir != p.Dir {
			continue
		}
		s, err := d.Scan(ctx, w, then)
		if err == nil || !credibleSetup(err) {
			return s, err
		}
		inv.warn("base_not_read", "what tests called at "+at+" is not known: "+err.Error())
	}
	return &lang.Scan{Project: p}, nil
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
