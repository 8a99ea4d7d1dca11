package flows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/view"
	"github.com/proveto/proveto/internal/wholefile"
)

// Sign gives the statement of a decision, to be signed on another machine. It
// records nothing; that the decision would be taken now was asked.
func (f *Flows) Sign(ctx context.Context, o AdvanceOptions) (*view.FlowStatement, error) {
	if err := checkText("--note", o.Note, MaxNote); err != nil {
		return nil, err
	}
	k, err := f.load(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	if s := k.Stage(o.Stage); s != nil && len(s.Gates) > 0 && policy.Produces(s.Stage) && o.Decision == flow.Approve {
		return nil, fault.New(fault.Usage, "usage", "an approval of stage %s hands something in, and judges nothing: there is no decision to sign", s.ID).
			Hint("proveto flow submit %s --snapshot .", k.ID)
	}
	ev := flow.Event{Now: f.app.Now()}
	b, err := f.believed(ctx, k, ev.Now)
	if err != nil {
		return nil, err
	}
	p, ok := b.roster.Principal(o.Actor)
	if !ok {
		return nil, fault.New(fault.NotFound, identity.CodeNotFound, "%.80q is no principal of run %s: say with --actor who will sign", o.Actor, k.ID).Hint("proveto flow principals list")
	}
	who := identity.Who{Principal: p.Name, Operator: p.Operator}
	if err := b.revoked.Check(who); err != nil {
		return nil, err
	}
	c := callerOf(p, "", "")
	ev.Actor, ev.Roles, ev.Rights, ev.Gone = c.Actor, c.Roles, c.Rights, b.gone()
	if ev.Gates, err = f.gateDigests(k.Policy); err != nil {
		return nil, err
	}
	_, st, err := f.judgement(ctx, o, k, ev)
	if err != nil {
		return nil, err
	}
	text, err := evidence.Canonical(st)
	return &view.FlowStatement{Run: k.ID, Statement: string(text), Namespace: identity.FlowNamespace}, err
}

// Decision gives a recorded decision with its signature, so that anybody can check
// it with ssh-keygen; with a directory as files there.
func (f *Flows) Decision(ctx context.Context, ref, id, dir string) (*view.FlowSigned, error) {
	k, err := f.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	g, err := k.decision(id)
	if err != nil {
		return nil, err
	}
	if g.Signed == nil {
		return nil, fault.New(fault.Tampered, identity.CodeSignatureBad, "decision %s has no signature", g.ID).Hint("proveto ledger verify")
	}
	if err := verifyDecision(k.Run, g); err != nil {
		return nil, err
	}
	r, err := f.rosterWhen(ctx, k, g.Seq)
	if err != nil {
		return nil, err
	}
	v := &view.FlowSigned{
		FlowStatement: view.FlowStatement{Run: k.ID, Decision: g.ID, Statement: string(g.Signed.Statement), Namespace: g.Signed.Namespace},
		Principal:     g.Actor.Principal, Key: g.Actor.Key, At: g.At, Signature: g.Signed.Armored, Signers: string(r.Signers.Text()), Files: []string{},
	}
	v.Worth, v.Why = k.worth(g)
	v.Verify = fmt.Sprintf("ssh-keygen -Y verify -f allowed_signers -I %s -n %s -O verify-time=%s -s %s.json.sig < %s.json",
		v.Principal, v.Namespace, g.At.UTC().Format("20060102150405Z"), g.ID, g.ID)
	if dir == "" {
		return v, nil
	}
	return v, writeSigned(v, f.app.Where(dir))
}

// worth is what a decision of a run is worth today, and why.
func (k known) worth(g flow.Given) (word, why string) {
	w, r := k.revoked.Judge(identity.Who{Principal: g.Actor.Principal, Operator: g.Actor.Operator, Key: g.Actor.Key}, g.At)
	switch {
	case g.Withdrawn:
		return "withdrawn", ""
	case g.Void != "":
		return string(identity.WordVoid), g.Void
	case w != identity.WordCounts:
		return string(w), r.String()
	}
	return string(identity.WordCounts), ""
}

// minEnd is how much of an id names a decision.
const minEnd = 6

// decision finds a decision by its id or its unique end.
func (k known) decision(id string) (flow.Given, error) {
	var found []flow.Given
	for _, g := range k.decisions() {
		if g.ID == id || len(id) >= minEnd && strings.HasSuffix(g.ID, id) {
			found = append(found, g)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return flow.Given{}, fault.New(fault.NotFound, flow.CodeNotFound, "run %s has no decision %.80q", k.ID, id).Hint("proveto flow log %s", k.ID)
	}
	return flow.Given{}, fault.New(fault.Usage, "ambiguous_id", "%.80s may be %d decisions", id, len(found)).Hint("proveto flow log %s", k.ID)
}

// rosterWhen is who was who in a run at an entry: a rebase pins others.
func (f *Flows) rosterWhen(ctx context.Context, k known, seq int64) (identity.Roster, error) {
	led, err := f.app.Ledger(ctx)
	if err != nil {
		return identity.Roster{}, err
	}
	entries, err := led.RunEntries(ctx, k.ID)
	if err != nil {
		return identity.Roster{}, err
	}
	end := slices.IndexFunc(entries, func(e ledger.Entry) bool { return e.Seq > seq })
	if end < 0 {
		end = len(entries)
	}
	run, err := flow.Fold(facts(entries[:end]), token)
	if err != nil {
		return identity.Roster{}, err
	}
	return rosterOf(run)
}

// writeSigned writes the files of a decision into a directory, which is made when
// it is not there.
func writeSigned(v *view.FlowSigned, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // made for others to read
		return fault.Wrap(err, fault.Usage, "usage", "make %s", dir)
	}
	var errs []error
	for _, w := range [][2]string{{v.Decision + ".json", v.Statement}, {v.Decision + ".json.sig", v.Signature}, {"allowed_signers", v.Signers}} {
		full := filepath.Join(dir, w[0])
		if err := wholefile.Write(full, []byte(w[1]), 0o644, false); err != nil {
			errs = append(errs, fault.Wrap(err, fault.Usage, "usage", "write %s", full))
			continue
		}
		v.Files = append(v.Files, full)
	}
	return errors.Join(errs...)
}
