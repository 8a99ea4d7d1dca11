package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/view"
)

// WaiveOptions are a waiver as the user gives it.
type WaiveOptions struct {
	Mutant string
	Reason string
	Until  time.Time
}

// Waive records a signed waiver of a surviving mutant. It stays visible and is
// never credit.
func (a *App) Waive(ctx context.Context, o WaiveOptions) (*view.Sentence, error) {
	reason := strings.TrimSpace(o.Reason)
	again := fmt.Sprintf("proveto waive %s --reason TEXT --until %s", quoteArg(o.Mutant), a.now().AddDate(0, 3, 0).Format(time.DateOnly))
	switch {
	case reason == "":
		return nil, fault.New(fault.Usage, "usage", "a waiver needs a reason").Hint("%s", again)
	case !o.Until.After(a.now()):
		return nil, fault.New(fault.Usage, "usage", "a waiver ends in the future, not on %s", o.Until.Format(time.DateOnly)).Hint("%s", again)
	}
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	id, err := led.Resolve(ctx, o.Mutant)
	if err != nil {
		return nil, err
	}
	if id.What != "probe" {
		return nil, fault.New(fault.Usage, "bad_id", "%s is a %s, not a mutant", o.Mutant, id.What).Hint("proveto gaps")
	}
	person := a.keys.Local
	if p := a.Principal; p != "" && p != person.Principal {
		return nil, fault.New(fault.Refused, "not_authenticated", "no key of principal %q is here", p).Hint("proveto waive %s --as %s", o.Mutant, person.Principal)
	}
	w := ledger.Waiver{LedgerID: led.ID(), Probe: id.Digest, Reason: reason, Until: o.Until.UTC(), Principal: person.Principal, Nonce: newID()}
	statement, err := w.Statement()
	if err != nil {
		return nil, err
	}
	if w.Signature, err = person.SignStatement(statement, ledger.WaiverNamespace); err != nil {
		return nil, err
	}
	w.Key = person.AuthorizedKey()
	d, err := ledger.WaiverDraft(w)
	if err != nil {
		return nil, err
	}
	if err := a.append(ctx, d); err != nil {
		return nil, err
	}
	return &view.Sentence{
		Text:  fmt.Sprintf("mutant %s is waived until %s by %s, from the next start on; it stays visible and gives no credit", w.Probe.Short(), w.Until.Format(time.DateOnly), w.Principal),
		Facts: map[string]any{"mutant": w.Probe, "until": w.Until, "principal": w.Principal, "reason": w.Reason},
	}, nil
}

// waivedToday lists the digests of the probes that are waived, sorted.
func (a *App) waivedToday() []string {
	waived := a.waivedFunc()
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for d := range a.waivers {
		if _, ok := waived(d); ok {
			out = append(out, string(d))
		}
	}
	slices.Sort(out)
	return out
}

// waivedFunc tells which probes are waived today, and why.
func (a *App) waivedFunc() func(evidence.Digest) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	return func(d evidence.Digest) (string, bool) {
		w, ok := a.waivers[d]
		if !ok || !w.Until.After(now) {
			return "", false
		}
		return "waived until " + w.Until.Format(time.DateOnly) + ": " + w.Reason, true
	}
}
