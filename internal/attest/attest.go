// Package attest makes the attestation of a run of a flow, and checks one.
//
// An attestation is a file of lines. The first is a DSSE envelope of the engine
// around an in-toto statement whose predicate, [Predicate], holds a [Summary] of
// the run beside all entries of the run, each with its proof of inclusion under a
// signed checkpoint. The second, absent where a policy asks for no evidence, is a
// Simple Verification Result: a list of properties for those who trust the engine
// and want to know no more. docs/formats/flow-run-v1.md has the fields.
//
// Nothing in it is believed because it is written there. [Make] folds the entries
// and derives summary and properties from the fold; [Open] does the same with the
// entries inside and wants the same bytes. It also checks every signature of a
// person: by a key that spoke for them then, about this run, this attempt and
// this input. What an attestation cannot show is that no entry is missing; the
// engine's signature stands for that.
//
// The package reads no clock and no ledger.
package attest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
)

// The names of the two statements.
const (
	PredicateType       = "https://proveto.dev/attestation/flow-run/v1"
	ResultPredicateType = "https://in-toto.io/attestation/svr/v0.1"
	// VerifierID names the rules by which properties are given; other rules get
	// another version.
	VerifierID = "https://proveto.dev/flow/v1"
)

// MaxBytes is the largest file that is read.
const MaxBytes = 64 << 20

// Statement is an in-toto statement around a predicate.
type Statement[P any] struct {
	Type          string           `json:"_type"`
	Subject       []ledger.Subject `json:"subject"`
	PredicateType string           `json:"predicateType"`
	Predicate     P                `json:"predicate"`
}

// Predicate is a run with everything that derives its summary again.
type Predicate struct {
	Summary Summary                `json:"summary"`
	Created time.Time              `json:"created"`
	Result  evidence.Digest        `json:"result,omitempty"` // of the payload of the second line
	Ledger  ledger.ExportedEntries `json:"ledger"`
}

// Result is a Simple Verification Result.
type Result struct {
	Verifier    Verifier  `json:"verifier"`
	TimeCreated time.Time `json:"timeCreated"`
	Properties  []string  `json:"properties"`
}

// Verifier says by which rules, and under which policy.
type Verifier struct {
	ID     string `json:"id"`
	Policy Policy `json:"policy"`
}

// Policy names the policy of a run.
type Policy struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"` // sha256
}

// Attestation is what an attestation says, derived.
type Attestation struct {
	Summary    Summary
	Subject    []ledger.Subject
	Properties []string // none where no result is given
	Created    time.Time
	Ledger     string // id
	Signer     string // verifier key
	Head       ledger.Head
}

// Make derives the statements of an approved run from its entries, as canonical
// JSON: the run, and the result, nil where the policy asks for no evidence. A run
// that is not approved gets none: refused with code stage_out_of_order.
func Make(x ledger.ExportedEntries, created time.Time) (run, result []byte, a Attestation, err error) {
	st, res, a, err := derive(x, created)
	if err != nil {
		return nil, nil, a, err
	}
	if res != nil {
		if result, err = evidence.Canonical(res); err != nil {
			return nil, nil, a, err
		}
		st.Predicate.Result = evidence.DigestOf(result)
	}
	run, err = evidence.Canonical(st)
	return run, result, a, err
}

// SignFunc wraps a statement as an envelope in one line: [ledger.Ledger.Sign].
type SignFunc func(ctx context.Context, statement []byte) ([]byte, error)

// File makes the file of an attestation.
func File(ctx context.Context, x ledger.ExportedEntries, created time.Time, sign SignFunc) ([]byte, Attestation, error) {
	run, result, a, err := Make(x, created)
	if err != nil {
		return nil, a, err
	}
	var out []byte
	for _, st := range [][]byte{run, result} {
		if st == nil {
			continue
		}
		line, err := sign(ctx, st)
		if err != nil {
			return nil, a, err
		}
		out = append(append(out, line...), '\n')
	}
	return out, a, nil
}

// derive reads the run from its entries and says what holds of it.
func derive(x ledger.ExportedEntries, created time.Time) (st Statement[Predicate], res *Statement[Result], a Attestation, err error) {
	created = created.UTC()
	entries, head, err := x.Open()
	if err != nil {
		return st, nil, a, err
	}
	r, err := read(entries, x.ID)
	if err != nil {
		return st, nil, a, err
	}
	at := created
	if at.Before(r.Last) {
		at = r.Last // the clock went back; what happened, happened
	}
	standing := r.StatusAt(at)
	if standing.Word != flow.StatusApproved && standing.Word != flow.StatusDelivered {
		return st, nil, a, fault.New(fault.Refused, flow.CodeOutOfOrder, "run %s is %s, at stage %s: only an approved run can be attested", r.ID, standing.Word, standing.Stage).
			Hint("proveto flow status %s", r.ID)
	}
	s, err := summarise(&r, entries, standing.Word)
	if err != nil {
		return st, nil, a, err
	}
	a = Attestation{Summary: s, Subject: subjects(&r), Created: created, Ledger: x.ID, Signer: x.VerifierKey, Head: head}
	st = Statement[Predicate]{Type: ledger.StatementType, Subject: a.Subject, PredicateType: PredicateType, Predicate: Predicate{Summary: s, Created: created, Ledger: x}}
	if a.Properties = properties(&r, s); len(a.Properties) > 0 {
		res = &Statement[Result]{Type: ledger.StatementType, Subject: a.Subject, PredicateType: ResultPredicateType, Predicate: Result{
			Verifier:    Verifier{VerifierID, Policy{r.Policy.Name, map[string]string{"sha256": r.PolicyDigest.Hex()}}},
			TimeCreated: created, Properties: a.Properties,
		}}
	}
	return st, res, a, nil
}

// read folds the entries, and checks each signature against who was who when it
// was made.
func read(entries []ledger.Entry, ledgerID string) (flow.Run, error) {
	var r flow.Run
	c := checker{ledger: ledgerID, nonces: map[string]int64{}}
	for _, e := range entries {
		x := flow.Entry{Seq: e.Seq, Kind: flow.Kind(e.Kind), Leaf: e.LeafHash(), Body: e.Body}
		if err := c.check(&r, e); err != nil {
			return r, err
		}
		if err := r.Apply(x, token); err != nil {
			return r, err
		}
		if err := pinned(&r, e); err != nil {
			return r, err
		}
	}
	if r.ID == "" {
		return r, bad("it holds no entry of a run")
	}
	var last struct {
		After flow.After `json:"after"`
	}
	if err := json.Unmarshal(entries[len(entries)-1].Body, &last); err != nil {
		return r, bad("its last entry does not parse")
	}
	said, err := evidence.Canonical(last.After)
	if err != nil {
		return r, err
	}
	now, err := evidence.Canonical(r.After())
	if err != nil {
		return r, err
	}
	if string(said) != string(now) {
		return r, bad("its entries do not add up to the run that the last one leaves")
	}
	return r, nil
}

// pinned wants the policy and the principals that an entry pins to have their
// digests: those are what is signed.
func pinned(r *flow.Run, e ledger.Entry) error {
	if k := flow.Kind(e.Kind); k != flow.KindOpened && k != flow.KindRebased {
		return nil
	}
	policy, err := r.Policy.Digest()
	if err != nil {
		return err
	}
	var roster identity.Roster
	if err := json.Unmarshal(r.Roster, &roster); err != nil {
		return bad("entry %d: its principals do not parse: %s", e.Seq, err)
	}
	principals, err := roster.Digest()
	if err != nil {
		return err
	}
	if policy != r.PolicyDigest || principals != r.RosterDigest {
		return bad("entry %d: its policy or its principals do not have their digests", e.Seq)
	}
	return nil
}

func token(id, leaf string) string {
	t, err := plan.NewToken(plan.ID(id), leaf)
	if err != nil {
		return "" // an id that is none derives no token, and the summary shows that
	}
	return string(t)
}

// subjects are what the attestation is about: the delivered commit and its tree;
// before delivery the approved tree; without any tree what the last stage passed
// on.
func subjects(r *flow.Run) []ledger.Subject {
	if d := r.Delivered; d != nil {
		return []ledger.Subject{
			{Name: d.Ref, Digest: map[string]string{"gitCommit": d.Commit}},
			{Name: "tree", Digest: map[string]string{"gitTree": string(d.Tree)}},
		}
	}
	if t := tree(r); t != "" {
		return []ledger.Subject{{Name: "tree", Digest: map[string]string{"gitTree": string(t)}}}
	}
	last := r.Stages[len(r.Stages)-1]
	return []ledger.Subject{{Name: r.ID, Digest: map[string]string{"sha256": last.Outcome.Hex()}}}
}

// tree is the tree that was approved.
func tree(r *flow.Run) evidence.Tree {
	if r.Delivered != nil {
		return r.Delivered.Tree
	}
	if t := r.Approved(); t != "" {
		return t
	}
	return r.Work().Tree
}

func bad(what string, args ...any) *fault.Error {
	return fault.New(fault.Tampered, ledger.CodeCertificateBad, "attestation: "+what, args...)
}
