package flows

import (
	"bytes"
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
)

// The schemas of what principals sign in a flow.
const (
	schemaDecision   = "proveto/decision/v1"
	schemaSubmission = "proveto/submission/v1"
	schemaWaiver     = "proveto/flow.waiver/v1"
	schemaRevocation = "proveto/revocation/v1"
)

// statement is what a principal signs for a decision.
type statement struct {
	Schema     string          `json:"schema"`
	LedgerID   string          `json:"ledger_id"`
	Run        string          `json:"run"`
	Stage      string          `json:"stage"`
	Attempt    int             `json:"attempt"`
	Input      evidence.Digest `json:"input"`
	Decision   string          `json:"decision"`
	NoteSHA256 evidence.Digest `json:"note_sha256"`
	Cites      []string        `json:"cites"`
	Waivers    []string        `json:"waivers"`
	Findings   evidence.Digest `json:"findings_sha256,omitempty"`
	Policy     evidence.Digest `json:"policy"`
	SeenSeq    int64           `json:"seen_seq"`
	Time       time.Time       `json:"time"`
	Nonce      string          `json:"nonce"`
}

// parseStatement reads a statement that was signed elsewhere: exactly the bytes
// that sign prints, one line feed at the end forgiven.
func parseStatement(text []byte) (statement, []byte, error) {
	var s statement
	text = bytes.TrimSuffix(text, []byte("\n"))
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(&s)
	var canonical []byte
	if err == nil {
		canonical, err = evidence.Canonical(s)
	}
	if err != nil || !bytes.Equal(canonical, text) || s.Schema != schemaDecision {
		return s, nil, fault.Wrap(err, fault.Usage, "usage", "the statement is not what proveto flow sign prints").Hint("proveto flow sign --help")
	}
	return s, text, nil
}

// elsewhere is the caller of a decision that was signed elsewhere: whose key the
// signature is by.
func elsewhere(b belief, q Request) (caller, error) {
	s, text, err := parseStatement(q.Statement)
	if err != nil {
		return caller{}, err
	}
	p, key, err := b.verify(text, string(q.Signature))
	if err != nil {
		return caller{}, err
	}
	role := ""
	switch {
	case q.Actor == "" || q.Actor == p.Name:
	case slices.Contains(identity.Roles(), q.Actor) && p.Holds(q.Actor):
		role = q.Actor
	default:
		return caller{}, fault.New(fault.Refused, identity.CodeNotAuthenticated, "the signature is by %s, not by %.80s", p.Name, q.Actor).Hint("proveto flow principals list")
	}
	print, err := identity.Fingerprint(key)
	if err != nil {
		return caller{}, err
	}
	c := callerOf(p, role, print)
	c.made = &made{statement: s, signed: &flow.Signature{Statement: text, Namespace: identity.FlowNamespace, Key: key, Armored: string(q.Signature)}}
	return c, nil
}

// verify finds whose a signature is. One that does not hold is a request that is
// not authenticated, not a record that was tampered with.
func (b belief) verify(statement []byte, armored string) (identity.Principal, string, error) {
	p, key, err := b.roster.Verify(statement, armored, b.at, b.revoked)
	if fault.Has(err, identity.CodeSignatureBad) {
		return p, key, fault.Wrap(err, fault.Refused, identity.CodeNotAuthenticated, "the signature does not hold").Hint("proveto flow principals list")
	}
	if err != nil {
		return p, key, err
	}
	print, err := identity.Fingerprint(key)
	if err != nil {
		return p, key, err
	}
	return p, key, b.revoked.Check(identity.Who{Principal: p.Name, Operator: p.Operator, Key: print})
}

// made is a decision that was signed elsewhere.
type made struct {
	statement statement
	signed    *flow.Signature
}

// audience refuses a statement that was made for another ledger, run or stage.
func (m *made) audience(k known, stage string) error {
	s := m.statement
	for _, c := range []struct{ what, is, want string }{{"ledger", s.LedgerID, k.ledgerID}, {"run", s.Run, k.ID}, {"stage", s.Stage, stage}} {
		if c.is != c.want {
			return fault.New(fault.Refused, identity.CodeWrongAudience, "the statement is for %s %.80s, not for %s", c.what, c.is, c.want).
				Hint("proveto flow sign %s --stage %s --decision %s", k.ID, stage, flow.Approve)
		}
	}
	return nil
}

// asNow refuses a statement that is not the one that would be signed now, but for
// its time, its nonce, and how much of the run its signer had seen.
func (m *made) asNow(k known, now time.Time, want statement) error {
	s := m.statement
	again := func(code fault.Code, kind fault.Kind, what string) error {
		return fault.New(kind, code, "the statement %s", what).Hint("proveto flow sign %s --stage %s --decision %s", k.ID, want.Stage, want.Decision)
	}
	flags := func(what, flag string) error {
		return again(flow.CodeContradictory, fault.Usage, fmt.Sprintf("has another %s than %s", what, flag))
	}
	switch {
	case s.Decision != want.Decision:
		return flags("decision", "--decision")
	case s.NoteSHA256 != want.NoteSHA256:
		return flags("note", "--note")
	case s.Findings != want.Findings:
		return flags("list of findings", "--finding")
	case s.Attempt != want.Attempt || s.Input != want.Input:
		return again(flow.CodeStaleSubject, fault.Refused, fmt.Sprintf("is about attempt %d, input %s; now it is attempt %d, input %s", s.Attempt, s.Input.Short(), want.Attempt, want.Input.Short()))
	case !slices.Equal(s.Cites, want.Cites) || !slices.Equal(s.Waivers, want.Waivers):
		return again(flow.CodeStaleSubject, fault.Refused, "cites other evidence than there is now")
	case s.Policy != want.Policy:
		return again(flow.CodeStaleSubject, fault.Refused, "is about another policy")
	case s.SeenSeq < 1 || s.SeenSeq > k.Seq:
		return again(flow.CodeStaleSubject, fault.Refused, fmt.Sprintf("has seen entry %d, and the run ends with entry %d", s.SeenSeq, k.Seq))
	case s.Time.After(k.at(now)) || s.Time.Before(k.Opened):
		return again(flow.CodeStaleSubject, fault.Refused, "was made at "+s.Time.Format(time.RFC3339)+", which is to come or before the run")
	}
	if _, err := ulid.ParseStrict(s.Nonce); err != nil {
		return again("usage", fault.Usage, "has no nonce of ours")
	}
	return nil
}

// vouched refuses to record a signature that does not hold: each is verified in
// the transaction that writes it, against the principals of the run and what is
// revoked at this moment, and must say what the fact says.
func (f *Flows) vouched(ctx context.Context, led *ledger.Ledger, tx *store.Tx, k known, ev flow.Event, made []flow.Fact) error {
	var want int
	switch ev.Do.(type) {
	case flow.Submit, flow.Decide, flow.Waive:
		if ev.Actor.Kind != flow.Engine().Kind {
			want = 1
		}
	}
	var b belief
	for _, x := range made {
		s := signedBy(x)
		if s == nil {
			continue
		}
		if b.at.IsZero() {
			var err error
			if k.revoked, err = revocationsIn(ctx, led, tx); err != nil {
				return err
			}
			if b, err = f.believed(ctx, k, ev.Now); err != nil {
				return err
			}
		}
		if err := b.vouch(k, led.ID(), ev.Actor, x, s); err != nil {
			return err
		}
		want--
	}
	if want > 0 {
		return fault.New(fault.Refused, identity.CodeNotAuthenticated, "nobody signed for this").Hint("proveto flow principals list")
	}
	return nil
}

func signedBy(x flow.Fact) *flow.Signature {
	switch x := x.(type) {
	case *flow.Submitted:
		return x.Signed
	case *flow.PlanSubmitted:
		return x.Signed
	case *flow.Decided:
		return x.Signed
	case *flow.Waived:
		return x.Signed
	}
	return nil
}

// said is what the statements of all schemas say about their subject.
type said struct {
	Schema       string          `json:"schema"`
	LedgerID     string          `json:"ledger_id"`
	Run          string          `json:"run"`
	Stage        string          `json:"stage"`
	Attempt      int             `json:"attempt"`
	Input        evidence.Digest `json:"input"`
	Decision     string          `json:"decision"`
	NoteSHA256   evidence.Digest `json:"note_sha256"`
	Plan         string          `json:"plan"`
	Tree         evidence.Tree   `json:"tree"`
	Gate         string          `json:"gate"`
	Paths        []string        `json:"paths"`
	ReasonSHA256 evidence.Digest `json:"reason_sha256"`
	Expires      time.Time       `json:"expires"`
	Nonce        string          `json:"nonce"`
}

// vouch checks one signature of one fact.
func (b belief) vouch(k known, ledgerID string, actor flow.Actor, x flow.Fact, s *flow.Signature) error {
	p, key, err := b.verify(s.Statement, s.Armored)
	if err != nil {
		return err
	}
	print, err := identity.Fingerprint(key)
	if err != nil {
		return err
	}
	if p.Name != actor.Principal || print != actor.Key || key != s.Key || s.Namespace != identity.FlowNamespace {
		return fault.New(fault.Refused, identity.CodeNotAuthenticated, "the signature is by key %s of %s, and %s acts with key %s", print, p.Name, actor.Principal, actor.Key).
			Hint("proveto flow principals list")
	}
	var t said
	if err := json.Unmarshal(s.Statement, &t); err != nil {
		return fault.Wrap(err, fault.Refused, identity.CodeNotAuthenticated, "the statement does not parse").Hint("proveto flow status %s", k.ID)
	}
	if t.LedgerID != ledgerID || t.Run != k.ID {
		return fault.New(fault.Refused, identity.CodeWrongAudience, "the statement is for run %.80s of ledger %.80s", t.Run, t.LedgerID).Hint("proveto flow status %s", k.ID)
	}
	return t.says(k, x)
}

// says refuses a statement that does not say what the fact says: the run may have
// gone on between the two.
func (t said) says(k known, x flow.Fact) error {
	ok := false
	switch x := x.(type) {
	case *flow.Decided:
		if id := k.nonceOf(t.Nonce); id != "" {
			return fault.New(fault.Conflict, "conflict", "the statement was recorded before, as decision %s", id).Hint("proveto flow log %s", k.ID)
		}
		ok = t.Schema == schemaDecision && t.about(x.Head, x.Input) && t.Decision == string(x.Decision) && t.NoteSHA256 == evidence.DigestOf([]byte(x.Note))
	case *flow.Submitted:
		ok = t.handed(x.Head, x.Input) && (t.Schema != schemaSubmission || t.Tree == x.Subject.Tree)
	case *flow.PlanSubmitted:
		ok = t.handed(x.Head, x.Input) && (t.Schema != schemaSubmission || t.Plan == x.Plan)
	case *flow.Waived:
		ok = t.Schema == schemaWaiver && t.Gate == x.Gate && t.Stage == x.Stage && slices.Equal(t.Paths, x.Paths) &&
			t.Expires.Equal(x.Expires) && t.ReasonSHA256 == evidence.DigestOf([]byte(x.Reason)) && t.Nonce == x.ID
	}
	if !ok {
		return fault.New(fault.Refused, flow.CodeStaleSubject, "what was signed is not what would be recorded: run %s went on in between", k.ID).
			Hint("proveto flow status %s", k.ID)
	}
	return nil
}

func (t said) about(h flow.Head, input evidence.Digest) bool {
	return t.Stage == h.Stage && t.Attempt == h.Attempt && t.Input == input
}

// handed tells the statement of a submission, or of the decision that brought it
// along.
func (t said) handed(h flow.Head, input evidence.Digest) bool {
	return (t.Schema == schemaSubmission || t.Schema == schemaDecision) && t.about(h, input)
}

// nonceOf finds the decision of a run whose statement has a nonce; empty when
// there is none.
func (k known) nonceOf(nonce string) string {
	has := func(g flow.Given) bool {
		if g.Signed == nil || !strings.Contains(string(g.Signed.Statement), nonce) {
			return false
		}
		var t said
		return json.Unmarshal(g.Signed.Statement, &t) == nil && t.Nonce == nonce
	}
	for _, g := range k.decisions() {
		if has(g) {
			return g.ID
		}
	}
	return ""
}

// decisions are all that were given in a run, each once.
func (k known) decisions() []flow.Given {
	var out []flow.Given
	seen := map[string]bool{}
	for i := range k.Stages {
		s := &k.Stages[i]
		for _, list := range append([][]flow.Given{s.Given}, past(s)...) {
			for _, g := range list {
				if !seen[g.ID] {
					seen[g.ID] = true
					out = append(out, g)
				}
			}
		}
	}
	return out
}

func past(s *flow.Stage) [][]flow.Given {
	var out [][]flow.Given
	for _, a := range s.Past {
		out = append(out, a.Given)
	}
	return out
}
