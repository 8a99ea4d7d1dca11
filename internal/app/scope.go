package app

import (
	"context"
	"fmt"
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
	case inv.o.Trees != nil:
		inv.baseTree = inv.o.Trees.Base
		var err error
		if inv.changed, err = snaps.ChangedLines(ctx, inv.repo, inv.baseTree, inv.snap.Tree); err != nil {
			return "", err
		}
		return inv.named("changed since tree " + string(inv.baseTree)), nil
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

// asked tells whether a symbol is among what was named by hand; all are, where
// nothing was.
func (inv *invocation) asked(s lang.Symbol) bool {
	return len(inv.o.Only) == 0 || slices.ContainsFunc(inv.o.Only, func(want string) bool { return names(s, want) })
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
		if inv.asked(lang.Symbol{ID: s.ID, Name: s.Name, Unit: s.Package, File: s.File, Line: s.Line, EndLine: s.EndLine}) && (s.Changed || !inv.gatesChange()) {
			scope = append(scope, s)
		}
	}
	return scope
}
