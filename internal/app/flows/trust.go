package flows

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/snapshot"
	"github.com/proveto/proveto/internal/store"
)

// belief is who is believed at a moment: the principals that a run is pinned to,
// without what its target has taken back since, and what was revoked.
type belief struct {
	roster  identity.Roster
	revoked identity.Revocations
	at      time.Time
}

// gone are the principals who are not believed at all any more.
func (b belief) gone() []string {
	var out []string
	for _, p := range b.roster.Principals {
		if b.revoked.Check(identity.Who{Principal: p.Name, Operator: p.Operator}) != nil {
			out = append(out, p.Name)
		}
	}
	return out
}

// tip is what the target of a run says about principals now; it is read once,
// when a verb that writes asks.
type tip struct {
	read   bool
	roster *identity.Roster // nil: nothing else than the base
}

// believed is who is believed in a run at a time.
func (f *Flows) believed(ctx context.Context, k known, at time.Time) (belief, error) {
	b := belief{at: k.at(at), revoked: k.revoked}
	var err error
	if b.roster, err = rosterOf(k.Run); err != nil {
		return b, err
	}
	t, err := f.tipOf(ctx, k)
	if err != nil || t == nil {
		return b, err
	}
	return b.narrowed(*t), nil
}

func (b belief) narrowed(tip identity.Roster) belief {
	b.revoked = append(append(identity.Revocations{}, b.revoked...), b.roster.LostIn(tip, b.at)...)
	b.roster = b.roster.Narrowed(tip)
	return b
}

// believedHere is who is believed where no run is: those of a roster.
func (f *Flows) believedHere(ctx context.Context, r identity.Roster) (belief, error) {
	b := belief{roster: r, at: f.app.Now()}
	err := f.app.Read(ctx, func(led *ledger.Ledger, tx *store.Tx) (err error) {
		b.revoked, err = revocationsIn(ctx, led, tx)
		return err
	})
	return b, err
}

// tipOf reads the principals at the tip of a run's target; nil when they are those
// of the base, when there are none, or when there is no such thing.
func (f *Flows) tipOf(ctx context.Context, k known) (*identity.Roster, error) {
	if k.tip == nil || k.tip.read {
		if k.tip == nil {
			return nil, nil
		}
		return k.tip.roster, nil
	}
	if !k.Enforced || k.Repo == "" || k.Target == "" {
		k.tip.read = true
		return nil, nil
	}
	r, err := f.readTip(ctx, k)
	if err != nil {
		return nil, err
	}
	k.tip.read, k.tip.roster = true, r
	return r, nil
}

func (f *Flows) readTip(ctx context.Context, k known) (*identity.Roster, error) {
	snaps, repo, err := f.repoOf(ctx, k)
	var place snapshot.Place
	if err == nil {
		place, err = snaps.Resolve(ctx, repo, k.Target)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil: // the repository is on another machine, or the branch is gone
		f.app.Warn("target", fmt.Sprintf("what %s says about principals cannot be read: %v; those of the base count", k.Target, err))
		return nil, nil
	case place.Commit == k.Base.Commit:
		return nil, nil
	}
	files, err := snaps.FilesAt(ctx, repo, place.Commit, maxPolicyFile, identity.PrincipalsFile, identity.SignersFile)
	if err != nil {
		return nil, err
	}
	principals, ok := files[identity.PrincipalsFile]
	if !ok {
		return nil, nil
	}
	r, err := identity.ParseRoster(files[identity.SignersFile].Body, principals.Body)
	if err != nil {
		return nil, fmt.Errorf("at the tip of %s: %w", k.Target, err)
	}
	return &r, nil
}

// takeBack does to a run what the target has taken back since the base: leases
// end, decisions after the end of a key count no more. Revocations of the ledger
// did so when they were made.
func (f *Flows) takeBack(ctx context.Context, k known) (known, error) {
	t, err := f.tipOf(ctx, k)
	if err != nil || t == nil || k.StatusAt(k.at(f.app.Now())).Word.Closed() {
		return k, err
	}
	roster, err := rosterOf(k.Run)
	if err != nil {
		return k, err
	}
	lost := roster.LostIn(*t, k.at(f.app.Now()))
	if len(lost) == 0 || len(k.TakeBack(doubt(lost))) == 0 {
		return k, nil
	}
	err = f.app.Record(ctx, func(led *ledger.Ledger, tx *store.Tx) ([]ledger.Entry, error) {
		run, entries, err := f.forget(ctx, led, tx, k.Run.Copy(), lost)
		if err != nil {
			return nil, err
		}
		k.Run = run
		k.head, err = led.HeadIn(ctx, tx)
		return entries, err
	})
	return k, err
}

// forget brings a run up to date and takes back what revocations ask for.
func (f *Flows) forget(ctx context.Context, led *ledger.Ledger, tx *store.Tx, run flow.Run, revoked identity.Revocations) (flow.Run, []ledger.Entry, error) {
	since, err := led.RunEntriesIn(ctx, tx, run.ID, run.Seq)
	if err != nil {
		return run, nil, err
	}
	for _, e := range facts(since) {
		if err := run.Apply(e, token); err != nil {
			return run, nil, err
		}
	}
	now := f.app.Now()
	if run.StatusAt(known{Run: run}.at(now)).Word.Closed() {
		return run, nil, nil
	}
	gates, err := f.gateDigests(run.Policy)
	if err != nil {
		return run, nil, err
	}
	var out []ledger.Entry
	for _, act := range run.TakeBack(doubt(revoked)) {
		_, step, ferr := flow.Next(run, flow.Event{Now: now, Actor: flow.Engine(), Gates: gates, Do: act})
		if ferr != nil {
			return run, nil, ferr
		}
		entries, err := appendFacts(ctx, led, tx, step.Facts)
		if err != nil {
			return run, nil, err
		}
		for _, e := range facts(entries) {
			if err := run.Apply(e, token); err != nil {
				return run, nil, err
			}
		}
		out = append(out, entries...)
	}
	return run, out, nil
}

// doubt is what revocations mean for a run.
func doubt(rs identity.Revocations) flow.Doubt {
	who := func(a flow.Actor) identity.Who {
		return identity.Who{Principal: a.Principal, Operator: a.Operator, Key: a.Key}
	}
	return flow.Doubt{
		Gone: func(a flow.Actor) string {
			for _, r := range rs {
				if (identity.Revocations{r}).Check(who(a)) != nil {
					return r.String()
				}
			}
			return ""
		},
		Void: func(a flow.Actor, at time.Time) string {
			if word, r := rs.Judge(who(a), at); word == identity.WordVoid {
				return r.String()
			}
			return ""
		},
	}
}

// revocationsIn are in force for every run of a ledger.
func revocationsIn(ctx context.Context, led *ledger.Ledger, tx *store.Tx) (identity.Revocations, error) {
	entries, err := led.RunEntriesIn(ctx, tx, "", 0) // what belongs to no run is about principals
	if err != nil {
		return nil, err
	}
	var out identity.Revocations
	for _, e := range entries {
		if e.Kind != ledger.KindPrincipalRevoked {
			continue
		}
		var b revocation
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return nil, fault.Wrap(err, fault.Tampered, "ledger_broken", "ledger entry %d is no %s", e.Seq, e.Kind)
		}
		out = append(out, b.Revocation)
	}
	return out, nil
}
