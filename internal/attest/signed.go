package attest

import (
	"encoding/json"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
)

// checker checks what people signed, entry by entry.
type checker struct {
	ledger string
	nonces map[string]int64 // entry by nonce: a statement is used once
}

// signed is what every signed statement says.
type signed struct {
	Schema   string          `json:"schema"`
	LedgerID string          `json:"ledger_id"`
	Run      string          `json:"run"`
	Stage    string          `json:"stage"`
	Attempt  int             `json:"attempt"`
	Input    evidence.Digest `json:"input"`
	Decision flow.Decision   `json:"decision"`
	Note     evidence.Digest `json:"note_sha256"`
	Cites    []string        `json:"cites"`
	Policy   evidence.Digest `json:"policy"`
	Plan     string          `json:"plan"`
	Tree     evidence.Tree   `json:"tree"`
	SeenSeq  int64           `json:"seen_seq"`
	Nonce    string          `json:"nonce"`
	// Of a waiver.
	Gate    string          `json:"gate"`
	Paths   []string        `json:"paths"`
	Reason  evidence.Digest `json:"reason_sha256"`
	Expires time.Time       `json:"expires"`
}

// The schemas of signed statements.
const (
	schemaDecision   = "proveto/decision/v1"
	schemaSubmission = "proveto/submission/v1"
	schemaWaiver     = "proveto/flow.waiver/v1"
)

// check checks one entry against the run before it.
func (c *checker) check(r *flow.Run, e ledger.Entry) error {
	switch flow.Kind(e.Kind) {
	case flow.KindMeasured:
		return parsed(e, func(f *flow.Measured) error {
			if _, err := f.Evidence.Canonical(); err != nil {
				return bad("entry %d: %s", e.Seq, err)
			}
			return nil
		})
	case flow.KindDecided:
		return parsed(e, func(f *flow.Decided) error { return c.decision(r, e, f) })
	case flow.KindPassed:
		return parsed(e, func(f *flow.PassedFact) error { return standsOn(r, e, f.Stage, f.Outcome) })
	case flow.KindCarried:
		return parsed(e, func(f *flow.Carried) error { return standsOn(r, e, f.Stage, f.Outcome) })
	case flow.KindSubmitted:
		return parsed(e, func(f *flow.Submitted) error {
			if f.Input != r.InputOf(f.Stage, f.Attempt, f.Subject, f.Gates) || f.Subject.Plan != "" && r.Plan == nil {
				return bad("entry %d: its input is not what the run was", e.Seq)
			}
			return c.submission(r, e, f.Head, f.Signed, f.Input, f.Note, f.Subject.Plan, f.Subject.Tree)
		})
	case flow.KindPlanSubmitted:
		return parsed(e, func(f *flow.PlanSubmitted) error {
			// Without gates the note is part of the input; the decision has it.
			if s := r.Stage(f.Stage); s != nil && len(s.Gates) > 0 && f.Input != r.InputOf(f.Stage, f.Attempt, flow.Subject{Plan: f.Plan}, f.Gates) {
				return bad("entry %d: its input is not what the run was", e.Seq)
			}
			return c.submission(r, e, f.Head, f.Signed, f.Input, f.Note, f.Plan, "")
		})
	case flow.KindWaived:
		return parsed(e, func(f *flow.Waived) error { return c.waiver(r, e, f) })
	}
	return nil
}

func parsed[F any](e ledger.Entry, check func(*F) error) error {
	var f F
	if err := json.Unmarshal(e.Body, &f); err != nil {
		return bad("entry %d is no %s", e.Seq, e.Kind)
	}
	return check(&f)
}

// standsOn wants a pass to say what the entries before it add up to.
func standsOn(r *flow.Run, e ledger.Entry, stage string, outcome evidence.Digest) error {
	if s := r.Stage(stage); s == nil || s.OutcomeOf() != outcome {
		return bad("entry %d: the pass does not stand on what the entries before it hold", e.Seq)
	}
	return nil
}

// decision wants every decision signed, about this run, attempt and input, and
// citing only evidence of the attempt.
func (c *checker) decision(r *flow.Run, e ledger.Entry, f *flow.Decided) error {
	st, err := c.statement(r, e, f.Signed, f.Actor, schemaDecision)
	if err != nil {
		return err
	}
	if err := c.once(st, e); err != nil {
		return err
	}
	about := st.Run == f.Run && st.Stage == f.Stage && st.Attempt == f.Attempt && st.Input == f.Input && st.Decision == f.Decision &&
		st.Note == evidence.DigestOf([]byte(f.Note)) && st.Policy == r.PolicyDigest && st.SeenSeq < e.Seq
	if !about {
		return notSaid(e, "decision "+f.ID+" is not what was signed")
	}
	s := r.Stage(f.Stage)
	if s == nil || s.Attempt != f.Attempt || s.Input != f.Input {
		return notSaid(e, "decision "+f.ID+" is about another input than the stage had")
	}
	for _, id := range st.Cites {
		known := false
		for _, ev := range s.Evidence {
			known = known || ev.ID == id
		}
		if !known {
			return notSaid(e, "decision "+f.ID+" cites evidence that the attempt did not have")
		}
	}
	return nil
}

// submission checks what a person handed in. What the engine hands in again in
// the name of its producer has no signature; where an owner's approval is the
// hand-over, its statement is that of the decision that follows.
func (c *checker) submission(r *flow.Run, e ledger.Entry, h flow.Head, s *flow.Signature, input evidence.Digest, note, plan string, tree evidence.Tree) error {
	if s == nil {
		return nil
	}
	st, err := c.statement(r, e, s, h.Actor, schemaSubmission, schemaDecision)
	if err != nil {
		return err
	}
	if st.Schema == schemaDecision {
		if st.Run != h.Run || st.Stage != h.Stage || st.Attempt != h.Attempt || st.Input != input || st.Policy != r.PolicyDigest {
			return notSaid(e, "the hand-over is not what was signed")
		}
		return nil
	}
	if err := c.once(st, e); err != nil {
		return err
	}
	if st.Run != h.Run || st.Stage != h.Stage || st.Attempt != h.Attempt || st.Input != input || st.Plan != plan || st.Tree != tree ||
		st.Note != evidence.DigestOf([]byte(note)) || st.Policy != r.PolicyDigest || st.SeenSeq >= e.Seq {
		return notSaid(e, "the submission is not what was signed")
	}
	return nil
}

func (c *checker) waiver(r *flow.Run, e ledger.Entry, f *flow.Waived) error {
	st, err := c.statement(r, e, f.Signed, f.Actor, schemaWaiver)
	if err != nil {
		return err
	}
	if err := c.once(st, e); err != nil {
		return err
	}
	if st.Run != f.Run || st.Gate != f.Gate || st.Stage != f.Stage || !slices.Equal(st.Paths, f.Paths) || st.Reason != evidence.DigestOf([]byte(f.Reason)) ||
		!st.Expires.Equal(f.Expires) || st.Nonce != f.ID {
		return notSaid(e, "waiver "+f.ID+" is not what was signed")
	}
	return nil
}

// statement wants the statement signed by the key of the actor, which spoke for
// them at the time of the entry.
func (c *checker) statement(r *flow.Run, e ledger.Entry, s *flow.Signature, a flow.Actor, schemas ...string) (signed, error) {
	var st signed
	if s == nil || s.Namespace != identity.FlowNamespace {
		return st, notSaid(e, "it is not signed in namespace "+identity.FlowNamespace)
	}
	if err := identity.VerifyStatement(s.Key, s.Statement, s.Armored, identity.FlowNamespace); err != nil {
		return st, notSaid(e, err.Error())
	}
	var roster identity.Roster
	if err := json.Unmarshal(r.Roster, &roster); err != nil {
		return st, bad("the principals of the run do not parse: %s", err)
	}
	p, err := roster.SignedBy(s.Key, e.Time, nil)
	if err != nil {
		return st, notSaid(e, err.Error())
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.Key))
	if err != nil {
		return st, notSaid(e, "its key does not parse")
	}
	if p.Name != a.Principal || string(p.Kind) != a.Kind || ssh.FingerprintSHA256(pub) != a.Key {
		return st, notSaid(e, "it is signed by "+p.Name+", and says that "+a.Principal+" did it")
	}
	if err := json.Unmarshal(s.Statement, &st); err != nil {
		return st, notSaid(e, "its statement does not parse")
	}
	if !slices.Contains(schemas, st.Schema) || st.LedgerID != c.ledger {
		return st, notSaid(e, "its statement is for something else")
	}
	return st, nil
}

// once wants a statement to be used for one entry.
func (c *checker) once(st signed, e ledger.Entry) error {
	if old, ok := c.nonces[st.Nonce]; ok || st.Nonce == "" {
		return bad("entries %d and %d have one signed statement", old, e.Seq)
	}
	c.nonces[st.Nonce] = e.Seq
	return nil
}

func notSaid(e ledger.Entry, why string) error {
	return fault.New(fault.Tampered, identity.CodeSignatureBad, "attestation: entry %d: %s", e.Seq, why)
}
