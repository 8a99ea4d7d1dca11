package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/view"
)

// past is what earlier starts of the repository left that bears on the tree as it
// is now. What is asked twice about one tree is answered from the same result,
// whichever branch was measured in between.
type past struct {
	starts []ledger.Stored[ledger.Start] // newest first
	same   *savedStart                   // the newest of this very tree; nil when there is none
	around bool                          // what is around the tree is as it was for same, too
	stands bool                          // same answers for the tree as it is: no evidence came since
	near   *savedStart                   // what says why something was not measured: same, else one of the same branch or commit, else the last
}

// remember finds the past of the tree.
func (inv *invocation) remember(ctx context.Context) (past, error) {
	var p past
	led, err := inv.app.Ledger(ctx)
	if err != nil {
		return p, err
	}
	if p.starts, err = led.Starts(ctx, inv.repo.ID); err != nil || len(p.starts) == 0 {
		return p, err
	}
	row := p.starts[0]
	for _, is := range []func(ledger.Start) bool{inv.ofTree, inv.ofLine, inv.ofCommit} {
		if i := slices.IndexFunc(p.starts, func(s ledger.Stored[ledger.Start]) bool { return is(s.Record) }); i >= 0 {
			row = p.starts[i]
			break
		}
	}
	if p.near, err = inv.app.loadSaved(row.Record); err != nil || !inv.ofTree(row.Record) {
		return p, err
	}
	p.same = p.near
	p.around = p.same.Around == inv.surroundings() && !p.same.Outside
	if p.around {
		p.stands, err = inv.app.untouched(ctx, led, p.same, row.Seq)
	}
	return p, err
}

func (inv *invocation) ofTree(s ledger.Start) bool { return s.Tree == inv.snap.Tree }

// ofLine tells whether a start was on the same branch, as far as branches are
// known: what was measured on another one says nothing about what changed here.
func (inv *invocation) ofLine(s ledger.Start) bool {
	if inv.snap.Branch == "" && inv.snap.Commit != "" {
		return inv.ofTree(s)
	}
	return s.Branch == inv.snap.Branch && (s.Branch != "" || s.Commit == "")
}

func (inv *invocation) ofCommit(s ledger.Start) bool {
	return s.Commit != "" && s.Commit == inv.snap.Commit
}

// full is the newest result of those starts that was about everything; nil when
// there is none.
func (p past) full(a *App, is func(ledger.Start) bool) (*savedStart, error) {
	for _, s := range p.starts {
		if s.Record.Narrow || !is(s.Record) {
			continue
		}
		saved, err := a.loadSaved(s.Record)
		if err != nil || !saved.Narrow {
			return saved, err
		}
	}
	return nil, nil
}

// untouched tells whether the ledger got no evidence about the symbols of a saved
// result after an entry.
func (a *App) untouched(ctx context.Context, led *ledger.Ledger, saved *savedStart, seq int64) (bool, error) {
	since, err := led.SymbolsSince(ctx, seq)
	if err != nil || slices.ContainsFunc(saved.Symbols, func(s view.Symbol) bool { return since[s.ID] }) {
		return false, err
	}
	reruns, err := led.Entries(ctx, seq+1, 0, kindRerun)
	if err != nil {
		return false, err
	}
	for _, e := range reruns {
		var b rerunBody
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return false, fmt.Errorf("ledger entry %d: %w", e.Seq, err)
		}
		if slices.ContainsFunc(saved.Certificates, func(c view.Certificate) bool { return c.ID == string(b.Certificate) }) {
			return false, nil
		}
	}
	return true, nil
}

// stillUnreached takes over that no test reaches a symbol, when that was found out
// about the very tree.
func (inv *invocation) stillUnreached(k *known) bool {
	if inv.past.same == nil || !inv.past.around || !k.bare() {
		return false
	}
	for _, s := range inv.past.same.Symbols {
		if s.ID != k.ranked.ID || s.Word != string(evidence.NotMeasured) || s.Detail != reasonSentence(s.Reason) {
			continue
		}
		if s.Reason == string(lang.NoTests) || s.Reason == string(evidence.NoCoverage) {
			k.reason = s.Reason
			return true
		}
	}
	return false
}

// compare says what moved since the last result about everything on the same
// branch. Nothing is said where there is none that was asked the same.
func (inv *invocation) compare(v *view.Start) error {
	saved, err := inv.past.full(inv.app, inv.ofLine)
	if err != nil || saved == nil || !slices.Equal(saved.SwitchedOff, v.SwitchedOff) {
		return err
	}
	before := saved.Counts
	v.Before = &before
	v.BeforeIs = &view.Earlier{
		Run: saved.Run, Started: saved.Started, Branch: saved.Subject.Branch, Commit: saved.Subject.Commit, Tree: saved.Subject.Tree, Dirty: saved.Subject.Dirty,
	}
	return nil
}

// standing is the evidence of the tree as it is now: the saved result of this
// very tree, with what the ledger got since; without one, today's digests against
// the ledger. It runs no code of the project and appends nothing.
func (inv *invocation) standing(ctx context.Context) (*view.Start, error) {
	if inv.past.starts == nil {
		var err error
		if inv.past, err = inv.remember(ctx); err != nil {
			return nil, err
		}
	}
	same := inv.past.same
	if inv.past.stands {
		same.Scope = inv.scope
		return same.Start, nil
	}
	if err := inv.scan(ctx); err != nil {
		return nil, err
	}
	inv.carryReasons(func(*known) bool { return true })
	v := inv.view()
	v.SwitchedOff = []string{}
	if same != nil {
		v.Run, v.Started, v.TookMS, v.SwitchedOff = same.Run, same.Started, same.TookMS, same.SwitchedOff
	}
	return v, nil
}

// reported is the result that reports are about: what stands for the tree as it
// is now when a start was about it, else the last result about everything, of the
// same branch where there is one.
func (inv *invocation) reported(ctx context.Context) (*view.Start, view.Subject, error) {
	p, err := inv.remember(ctx)
	switch inv.past = p; {
	case err != nil:
		return nil, inv.subject, err
	case len(p.starts) == 0:
		return nil, inv.subject, fault.New(fault.NotFound, "not_found", "nothing was measured in %s yet", inv.repo.Root).Hint("proveto start")
	case p.same == nil:
		return p.older(inv)
	}
	asked, narrow := p.same.Scope, p.same.Narrow
	whole, err := p.full(inv.app, inv.ofTree)
	if err != nil {
		return nil, inv.subject, err
	}
	if whole != nil {
		asked, narrow = whole.Scope, false
	}
	v, err := inv.standing(ctx)
	if err != nil {
		return nil, inv.subject, err
	}
	v.Scope, v.Narrow = asked, narrow
	return v, p.same.Subject, nil
}

// older is the last result about everything, of the same branch where there is
// one, else the last.
func (p past) older(inv *invocation) (*view.Start, view.Subject, error) {
	for _, is := range []func(ledger.Start) bool{inv.ofLine, func(ledger.Start) bool { return true }} {
		saved, err := p.full(inv.app, is)
		if err != nil {
			return nil, inv.subject, err
		}
		if saved != nil {
			return saved.Start, saved.Subject, nil
		}
	}
	return p.near.Start, p.near.Subject, nil
}
