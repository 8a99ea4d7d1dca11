package flows

import (
	"context"
	"fmt"
	"slices"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/ledger"
)

// CodeScopeOverlap is a contract that may touch what another open run may touch.
const CodeScopeOverlap fault.Code = "scope_overlap"

// scopeFree refuses a contract whose scope may have a path in common with that of
// another open run on the same target. Runs that it comes after are let be: it
// waits for them. Called with the write lock held, so that of two contracts
// handed in at once the later one sees the first.
func (f *Flows) scopeFree(ctx context.Context, k known, c *plan.Contract) error {
	others, err := f.openRuns(ctx, k)
	if err != nil {
		return err
	}
	for _, o := range others {
		if slices.Contains(k.AfterRuns, o.ID) || slices.Contains(o.AfterRuns, k.ID) {
			continue
		}
		theirs, err := contract(o)
		if err != nil {
			return err
		}
		overlaps, err := plan.Overlaps(c, theirs)
		if err != nil {
			return err
		}
		if len(overlaps) > 0 {
			x := overlaps[0]
			return fault.New(fault.Refused, CodeScopeOverlap, "rule %s (%s) may touch what rule %s (%s) of run %s may touch, on %s", x.Rule, x.Pattern, x.Other, x.With, o.ID, k.Target).
				Hint("proveto flow status %s", o.ID).Hint("proveto flow init --task TEXT --after %s", o.ID)
		}
	}
	return nil
}

// openRuns are the other runs of the same repository and target that go on and
// have a contract.
func (f *Flows) openRuns(ctx context.Context, k known) ([]known, error) {
	led, err := f.app.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := led.Runs(ctx, ledger.RunFilter{})
	if err != nil {
		return nil, err
	}
	var out []known
	for _, r := range rows {
		if r.ID == k.ID || r.Repo != k.Repo || r.Target != k.Target || k.Repo == "" || flow.Status(r.Status).Closed() {
			continue
		}
		o, err := f.load(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		if o.StatusAt(o.at(f.app.Now())).Word.Closed() || o.Proposed == nil && o.Plan == nil || contractless(o) {
			continue
		}
		out = append(out, o)
	}
	return out, nil
}

// contractless tells a run whose contract has no scope, as those of the manual
// policy.
func contractless(k known) bool {
	c, err := contract(k)
	return err == nil && len(c.Scope) == 0
}

// turnCome refuses work of a run that comes after others which are not delivered,
// or which it does not stand on yet.
func (f *Flows) turnCome(ctx context.Context, k known) error {
	for _, id := range k.AfterRuns {
		o, err := f.load(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case o.Delivered == nil && !o.StatusAt(o.at(f.app.Now())).Word.Closed():
			return fault.New(fault.Refused, CodeScopeOverlap, "run %s comes after run %s, which is not delivered", k.ID, o.ID).
				Hint("proveto flow status %s", o.ID)
		case o.Delivered != nil && k.BaseSeq < o.DeliveredSeq:
			return fault.New(fault.Refused, CodeScopeOverlap, "run %s comes after run %s, which is delivered on %s: stand on that first", k.ID, o.ID, o.Delivered.Ref).
				Hint("proveto flow rebase %s --base %s", k.ID, o.Delivered.Ref)
		}
	}
	return nil
}

// scopeGuard is guard 1 for what is handed in: it looks at other runs, which the
// rules of one run cannot.
func (f *Flows) scopeGuard(ctx context.Context, k known, ev flow.Event) error {
	var sub flow.Submission
	switch a := ev.Do.(type) {
	case flow.Submit:
		sub = a.Submission
	case flow.Decide:
		sub = a.Submission
	default:
		return nil
	}
	if len(sub.Contract) > 0 {
		c, err := plan.ParseKept("the plan", sub.Contract)
		if err != nil {
			return fmt.Errorf("scope of the plan: %w", err)
		}
		if len(c.Scope) == 0 {
			return nil
		}
		return f.scopeFree(ctx, k, c)
	}
	if sub.Subject.Tree != "" {
		return f.turnCome(ctx, k)
	}
	return nil
}
