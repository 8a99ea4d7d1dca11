package flows

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/view"
)

// revocation is the body of the entry that revokes a principal or a key, for all
// runs of the ledger.
type revocation struct {
	Schema string     `json:"schema"`
	Actor  flow.Actor `json:"actor"`
	identity.Revocation
	Roster evidence.Digest `json:"roster_digest"` // by which the actor may
	Signed *flow.Signature `json:"signed"`
}

// me is the principal whose key is here, in the repository of the working
// directory.
func (f *Flows) me(ctx context.Context) (string, error) {
	g, err := f.groundHere(ctx)
	if err != nil {
		return "", err
	}
	now, err := f.believedHere(ctx, g.roster)
	if err != nil {
		return "", err
	}
	who, err := f.caller(ctx, now, Request{})
	return who.Principal, err
}

// groundHere is what a run that began now would stand on.
func (f *Flows) groundHere(ctx context.Context) (ground, error) {
	name := ""
	if !f.insideRepository() {
		name = "manual"
	}
	return f.ground(ctx, name, "", "")
}

// Principals lists who is who for a run that began now, and who is revoked.
func (f *Flows) Principals(ctx context.Context) (*view.Principals, error) {
	g, err := f.groundHere(ctx)
	if err != nil {
		return nil, err
	}
	b, err := f.believedHere(ctx, g.roster)
	if err != nil {
		return nil, err
	}
	v := &view.Principals{Enforced: b.roster.Enforced, Principals: []view.Principal{}, Revoked: []view.Revocation{}}
	if v.Enforced {
		v.Commit = g.base.Commit
	} else {
		v.Note = "1 principal, separation not enforced"
	}
	for _, p := range b.roster.Principals {
		x := view.Principal{
			Name: p.Name, Kind: string(p.Kind), Roles: append([]string{}, p.Roles...), Rights: append([]string{}, p.Rights...), Operator: p.Operator,
			Keys: []view.PrincipalKey{},
		}
		if word, r := b.revoked.Judge(identity.Who{Principal: p.Name, Operator: p.Operator}, b.at); word == identity.WordVoid {
			x.Revoked = r.String()
		}
		for _, l := range b.roster.Signers {
			if !slices.Contains(l.Principals, p.Name) {
				continue
			}
			k, err := b.keyView(l)
			if err != nil {
				return nil, err
			}
			x.Keys = append(x.Keys, k)
		}
		v.Principals = append(v.Principals, x)
	}
	for _, r := range b.revoked {
		v.Revoked = append(v.Revoked, revocationView(r))
	}
	if g.repo.Root != "" && !g.repo.Bare && v.Note == "" {
		v.Note, err = f.uncommitted(ctx, g)
	}
	return v, err
}

func (b belief) keyView(l identity.SignerLine) (view.PrincipalKey, error) {
	print, err := identity.Fingerprint(l.Key)
	if err != nil {
		return view.PrincipalKey{}, err
	}
	_, st := identity.Signers{l}.Speakers(l.Key, identity.FlowNamespace, b.at)
	k := view.PrincipalKey{Fingerprint: print, State: string(st)}
	k.Type, _, _ = strings.Cut(l.Key, " ")
	if b.revoked.Check(identity.Who{Key: print}) != nil {
		k.State = "revoked"
	}
	if !l.After.IsZero() {
		k.After = &l.After
	}
	if !l.Before.IsZero() {
		k.Before = &l.Before
	}
	return k, nil
}

func revocationView(r identity.Revocation) view.Revocation {
	v := view.Revocation{Principal: r.Principal, Key: r.Key, At: r.At, Reason: r.Reason}
	if !r.Since.IsZero() {
		v.Since = &r.Since
	}
	return v
}

// RevokeOptions say who is not to be believed any more.
type RevokeOptions struct {
	Request
	Who    string // principal, or the fingerprint or line of a key
	Reason string
	Since  time.Time // what was said from then on does not count; zero: it stays, and is flagged
}

// Revoke takes back the trust in a principal or a key, at once and for every run
// of the ledger: leases end, and with a time what was said since does not count.
func (f *Flows) Revoke(ctx context.Context, o RevokeOptions) (*view.PrincipalRevoked, error) {
	if err := checkText("--reason", o.Reason, MaxNote); err != nil {
		return nil, err
	}
	if strings.TrimSpace(o.Reason) == "" {
		return nil, fault.New(fault.Usage, flow.CodeNoteMissing, "a revocation needs a reason").Hint("proveto flow principals revoke NAME --reason TEXT")
	}
	g, err := f.groundHere(ctx)
	if err != nil {
		return nil, err
	}
	b, err := f.believedHere(ctx, g.roster)
	if err != nil {
		return nil, err
	}
	o.signs = true
	who, err := f.caller(ctx, b, o.Request)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(who.Rights, identity.RightPrincipals) {
		return nil, fault.New(fault.Refused, flow.CodeNotPermitted, "%s has no right %s", who.Principal, identity.RightPrincipals).Hint("proveto flow principals list")
	}
	if o.Who == identity.LocalPrincipal { // another person on each machine
		return nil, fault.New(fault.Usage, "usage", "principal %s is whoever is at a machine: revoke the key", o.Who).Hint("proveto flow principals revoke %s --reason TEXT", who.Key)
	}
	r, err := b.roster.Revoke(o.Who, o.Reason, o.Since.UTC(), b.at.UTC())
	if err != nil {
		return nil, err
	}
	body := revocation{Schema: "proveto/" + string(ledger.KindPrincipalRevoked) + "/v1", Actor: who.Actor, Revocation: r}
	if body.Roster, err = g.roster.Digest(); err != nil {
		return nil, err
	}
	led, err := f.app.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	if body.Signed, err = who.sign(ctx, map[string]any{
		"schema": schemaRevocation, "ledger_id": led.ID(), "principal": r.Principal, "key": r.Key, "since": r.Since, "at": r.At,
		"reason_sha256": evidence.DigestOf([]byte(r.Reason)), "roster": body.Roster, "nonce": ulid.Make().String(),
	}); err != nil {
		return nil, err
	}
	v := &view.PrincipalRevoked{Revocation: revocationView(r)}
	if err := f.revoke(ctx, b, body, v); err != nil {
		return nil, err
	}
	v.Text = r.String() + fmt.Sprintf("; open runs that changed: %d", len(v.Runs))
	f.lonely(b, r)
	return v, nil
}

// revoke writes the entry and, in the same transaction, what it means for every
// open run.
func (f *Flows) revoke(ctx context.Context, b belief, body revocation, v *view.PrincipalRevoked) error {
	return f.app.Record(ctx, func(led *ledger.Ledger, tx *store.Tx) ([]ledger.Entry, error) {
		var err error
		if b.revoked, err = revocationsIn(ctx, led, tx); err != nil {
			return nil, err
		}
		if _, _, err := b.verify(body.Signed.Statement, body.Signed.Armored); err != nil {
			return nil, err
		}
		d, err := ledger.NewDraft(ledger.KindPrincipalRevoked, body)
		if err != nil {
			return nil, err
		}
		out, err := led.Append(ctx, tx, d)
		if err != nil {
			return nil, err
		}
		v.Seq, v.Runs = out[0].Seq, []view.RunRevoked{}
		rows, err := led.Runs(ctx, ledger.RunFilter{})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if flow.Status(row.Status).Closed() {
				continue
			}
			entries, err := led.RunEntriesIn(ctx, tx, row.ID, 0)
			if err != nil {
				return nil, err
			}
			run, err := flow.Fold(facts(entries), token)
			if err != nil {
				return nil, err
			}
			run, made, err := f.forget(ctx, led, tx, run, identity.Revocations{body.Revocation})
			if err != nil {
				return nil, err
			}
			out = append(out, made...)
			if len(made) > 0 {
				x, err := runRevoked(run, made)
				if err != nil {
					return nil, err
				}
				v.Runs = append(v.Runs, x)
			}
		}
		return out, nil
	})
}

func runRevoked(run flow.Run, made []ledger.Entry) (view.RunRevoked, error) {
	x := view.RunRevoked{Run: run.ID, Status: string(run.StatusAt(run.Last).Word), Leases: []string{}, Stale: []string{}, Void: []string{}}
	for _, e := range made {
		var b struct {
			Stage string   `json:"stage"`
			Void  []string `json:"void"`
		}
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return x, err
		}
		switch flow.Kind(e.Kind) {
		case flow.KindLeaseLost:
			x.Leases = append(x.Leases, b.Stage)
		case flow.KindStale:
			x.Void = append(x.Void, b.Void...)
			if s := run.Stage(b.Stage); s.State == flow.Stale && !slices.Contains(x.Stale, b.Stage) {
				x.Stale = append(x.Stale, b.Stage)
			}
		}
	}
	return x, nil
}

// lonely warns when nobody is left who may revoke.
func (f *Flows) lonely(b belief, r identity.Revocation) {
	b.revoked = append(b.revoked, r)
	if !b.roster.Enforced {
		return
	}
	for _, l := range b.roster.Signers {
		p, err := b.roster.SignedBy(l.Key, b.at, b.revoked)
		if err == nil && p.May(identity.RightPrincipals) {
			return
		}
	}
	f.app.Warn("principals", "nobody is left with a key and the right "+identity.RightPrincipals+" in this repository: commit another to "+identity.PrincipalsFile)
}
