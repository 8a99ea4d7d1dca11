package app

import (
	"context"
	"encoding/json"
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
	target, err := survived(ctx, led, id.Digest)
	if err != nil {
		return nil, err
	}
	w := ledger.Waiver{LedgerID: led.ID(), Probe: id.Digest, Symbol: target.Symbol, SymbolDigest: target.SymbolDigest, Reason: reason, Until: o.Until.UTC(), Principal: person.Principal, Nonce: newID()}
	statement, err := w.Statement()
	if err != nil {
		return nil, err
	}
	if w.Signature, err = person.SignStatement(ctx, statement, ledger.WaiverNamespace); err != nil {
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
		Text:  fmt.Sprintf("mutant %s is waived until %s by %s, from the next start on and as long as its function stays as it is; it stays visible and gives no credit", w.Probe.Short(), w.Until.Format(time.DateOnly), w.Principal),
		Facts: map[string]any{"mutant": w.Probe, "until": w.Until, "principal": w.Principal, "reason": w.Reason},
	}, nil
}

// survived is the target of the newest measurement that names a probe: what was
// judged when it was seen to survive.
func survived(ctx context.Context, led *ledger.Ledger, probe evidence.Digest) (evidence.Target, error) {
	entries, err := led.Entries(ctx, 1, 0, ledger.KindMeasurement)
	if err != nil {
		return evidence.Target{}, err
	}
	for _, e := range slices.Backward(entries) {
		var m evidence.MeasurementRecord
		if err := json.Unmarshal(e.Body, &m); err != nil {
			return evidence.Target{}, fmt.Errorf("ledger entry %d: %w", e.Seq, err)
		}
		if slices.ContainsFunc(m.Trials, func(t evidence.TrialRecord) bool { return t.ProbeDigest == probe }) {
			return m.Target, nil
		}
	}
	return evidence.Target{}, fault.New(fault.NotFound, "not_found", "no measurement names mutant %s, so it was not seen to survive", probe.Short()).Hint("proveto gaps")
}

// waivedToday lists the probes that are waived, each with what its symbol was,
// sorted.
func (a *App) waivedToday() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for d, w := range a.waivers {
		if w.Until.After(a.now()) {
			out = append(out, string(d)+" "+string(w.SymbolDigest))
		}
	}
	slices.Sort(out)
	return out
}

// waivedFunc tells which probes of a symbol, as it is by its digest, are waived
// today, and why. A probe is known by what it changes, often a line or two, so a
// waiver does not pass to another body in which the same lines stand.
func (a *App) waivedFunc() func(probe evidence.Probe, symbol evidence.Digest) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, waivers := a.now(), a.waivers
	return func(probe evidence.Probe, symbol evidence.Digest) (string, bool) {
		for _, d := range probe.Digests() {
			if w, ok := waivers[d]; ok && w.Until.After(now) && (w.SymbolDigest == "" || w.SymbolDigest == symbol) {
				return "waived until " + w.Until.Format(time.DateOnly) + ": " + w.Reason, true
			}
		}
		return "", false
	}
}
