package flows

import (
	"context"
	"encoding/json"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/identity"
)

// caller is who acts, with the key that proves it.
type caller struct {
	flow.Actor
	Roles  []policy.Role
	Rights []string
	key    identity.Key
	made   *made // what was signed elsewhere, when the key is not here
}

// sign signs a statement in the namespace of flow.
func (c caller) sign(ctx context.Context, statement any) (*flow.Signature, error) {
	if c.made != nil {
		return nil, fault.New(fault.Usage, "usage", "a signature made elsewhere is for decisions, not for what is handed in").Hint("proveto flow submit --help")
	}
	b, err := evidence.Canonical(statement)
	if err != nil {
		return nil, err
	}
	armored, err := c.key.SignStatement(ctx, b, identity.FlowNamespace)
	if err != nil {
		return nil, err
	}
	return &flow.Signature{Statement: json.RawMessage(b), Namespace: identity.FlowNamespace, Key: c.key.AuthorizedKey(), Armored: armored}, nil
}

// event begins an event by the caller on a run.
func (f *Flows) event(ctx context.Context, k known, q Request, stage string) (flow.Event, caller, error) {
	ev := flow.Event{Now: f.app.Now()}
	now, err := f.believed(ctx, k, ev.Now)
	if err != nil {
		return ev, caller{}, err
	}
	who, err := f.caller(ctx, now, q)
	if err != nil {
		return ev, who, err
	}
	ev.Actor, ev.Roles, ev.Rights, ev.Check, ev.Gone = who.Actor, who.Roles, who.Rights, nil, now.gone()
	ev.Gates, err = f.gateDigests(k.Policy)
	return ev, who, err
}

// rosterOf is who is who in a run.
func rosterOf(r flow.Run) (identity.Roster, error) {
	var out identity.Roster
	if err := json.Unmarshal(r.Roster, &out); err != nil {
		return out, fault.Wrap(err, fault.Tampered, "ledger_broken", "the principals that run %s is pinned to", r.ID)
	}
	return out, nil
}

// caller finds who acts and with which key. --actor and --as select; the key
// proves, or the signature that was made with it elsewhere.
func (f *Flows) caller(ctx context.Context, b belief, q Request) (caller, error) {
	if q.Signature != nil {
		return elsewhere(b, q)
	}
	keys, err := f.app.Keys(ctx)
	if err != nil {
		return caller{}, err
	}
	actor := q.Actor
	if actor == "" {
		actor = f.app.Principal
	}
	c, err := identity.Choose(ctx, identity.ChooseOptions{
		Roster: b.roster, Revoked: b.revoked, At: b.at, Actor: actor, Key: q.Key, VariableKey: f.app.Getenv("PROVETO_KEY"),
		GitKeyFunc: f.gitKey, Agent: f.app.Getenv("SSH_AUTH_SOCK"), Generated: keys.Local, PassphraseFunc: f.Passphrase,
	})
	if err != nil {
		return caller{}, err
	}
	if !q.signs {
		if err := c.Key.Prove(ctx); err != nil {
			return caller{}, err
		}
	}
	out := callerOf(c.Principal, c.Role, c.Key.Fingerprint())
	out.key = c.Key
	return out, nil
}

func callerOf(p identity.Principal, role, key string) caller {
	out := caller{
		Actor:  flow.Actor{Principal: p.Name, Kind: string(p.Kind), Role: policy.Role(role), Key: key, Operator: p.Operator},
		Rights: p.Rights,
	}
	for _, r := range p.Roles {
		out.Roles = append(out.Roles, policy.Role(r))
	}
	return out
}

// gitKey is git's user.signingkey here; empty outside a repository.
func (f *Flows) gitKey(ctx context.Context) (string, error) {
	snaps, err := f.app.Snapshots(ctx)
	if err != nil {
		return "", err
	}
	repo, err := snaps.Locate(ctx, f.app.Where(""))
	if err != nil {
		return "", nil //nolint:nilerr // no repository, no key
	}
	id, err := snaps.Identity(ctx, repo)
	return id.SigningKey, err
}

// badSignatures lists the decisions on the current attempts of a run whose
// signature does not hold. Those of the past are checked by ledger verify.
func badSignatures(r flow.Run) map[string]bool {
	bad := map[string]bool{}
	for i := range r.Stages {
		for _, g := range r.Stages[i].Given {
			if g.Signed == nil || verifyDecision(r, g) != nil {
				bad[g.ID] = true
			}
		}
	}
	return bad
}

// verifyDecision asks whether the statement was signed by the key, and says what
// the fact says.
func verifyDecision(r flow.Run, g flow.Given) error {
	if err := identity.VerifyStatement(g.Signed.Key, g.Signed.Statement, g.Signed.Armored, identity.FlowNamespace); err != nil {
		return err
	}
	var s statement
	if err := json.Unmarshal(g.Signed.Statement, &s); err != nil {
		return fault.Wrap(err, fault.Tampered, identity.CodeSignatureBad, "the statement of decision %s does not parse", g.ID)
	}
	if s.Run != r.ID || s.Attempt != g.Attempt || s.Input != g.Input || s.Decision != string(g.Decision) || s.NoteSHA256 != evidence.DigestOf([]byte(g.Note)) {
		return fault.New(fault.Tampered, identity.CodeSignatureBad, "decision %s is not what was signed", g.ID)
	}
	return nil
}

func badSignaturesFault(run string, bad map[string]bool) error {
	if len(bad) == 0 {
		return nil
	}
	id := ""
	for b := range bad {
		if id == "" || b < id {
			id = b
		}
	}
	return fault.New(fault.Tampered, identity.CodeSignatureBad, "%d signatures of run %s do not hold, first that of decision %s", len(bad), run, id).Hint("proveto ledger verify")
}
