package flow

import (
	"encoding/json"
	"runtime"
	"sync"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
)

// Kind is the kind of a fact, as the ledger stores it.
type Kind string

// The kinds of facts about a run.
const (
	KindOpened            Kind = "flow.opened"
	KindPlanSubmitted     Kind = "flow.plan.submitted"
	KindPlanAccepted      Kind = "flow.plan.accepted"
	KindTaken             Kind = "flow.taken"
	KindLeaseLost         Kind = "flow.lease.lost"
	KindSubmitted         Kind = "flow.submitted"
	KindClaim             Kind = "flow.claim"
	KindProbed            Kind = "flow.gate.probed"
	KindMeasured          Kind = "flow.measured"
	KindDecided           Kind = "flow.decided"
	KindWithdrawn         Kind = "flow.withdrawn"
	KindPassed            Kind = "flow.passed"
	KindCarried           Kind = "flow.carried"
	KindRebased           Kind = "flow.rebased"
	KindStale             Kind = "flow.stale"
	KindReopened          Kind = "flow.reopened"
	KindFeedbackDelivered Kind = "flow.feedback.delivered"
	KindFindingOpened     Kind = "flow.finding.opened"
	KindFindingAnswered   Kind = "flow.finding.answered"
	KindFindingClosed     Kind = "flow.finding.closed"
	KindWaived            Kind = "flow.waived"
	KindWaiverUsed        Kind = "flow.waiver.used"
	KindPaused            Kind = "flow.paused"
	KindResumed           Kind = "flow.resumed"
	KindCancelled         Kind = "flow.cancelled"
	KindExpired           Kind = "flow.expired"
	KindCapped            Kind = "flow.capped"
	KindDelivered         Kind = "flow.delivered"
	KindExported          Kind = "flow.exported"
	KindAttested          Kind = "flow.attested"
	KindRefused           Kind = "flow.refused"
)

// Actor is who did something, as the facts name them.
type Actor struct {
	Principal string      `json:"principal"`
	Kind      string      `json:"kind"`           // human, agent, engine, service
	Role      policy.Role `json:"role,omitempty"` // the role in which they act
	Key       string      `json:"key,omitempty"`  // SHA256:… of the key that signed
	Launch    string      `json:"launch,omitempty"`
	Operator  string      `json:"operator,omitempty"` // the human who launched or configured an agent
	Model     string      `json:"model,omitempty"`    // family as configured
}

// Engine is the actor of what follows by itself.
func Engine() Actor { return Actor{Principal: "engine", Kind: "engine"} }

// Head is what every fact about a run begins with. Next fills in all of it but
// the actor, the id and the idempotency key of the request.
type Head struct {
	Schema  string `json:"schema"` // proveto/<kind>/v1
	Run     string `json:"run"`
	Stage   string `json:"stage,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Actor   Actor  `json:"actor"`
	// At is when it happened: never before what happened before it. ClockBack says
	// that the clock disagreed.
	At        time.Time `json:"at"`
	ClockBack bool      `json:"clock_back,omitempty"`
	// Prev is the entry of the run before this one; 0 for its first entry, and for one
	// that follows directly on the entry before it in the ledger.
	Prev int64 `json:"prev,omitempty"`
	// Idem names the request, Request is the digest of what it asked for, Answer the
	// code that it got: on the first fact of a request that gave a key.
	Idem    string          `json:"idem,omitempty"`
	Request evidence.Digest `json:"request,omitempty"`
	Answer  fault.Code      `json:"answer,omitempty"`
	After   After           `json:"after"`
}

// After is what the run is after the fact: lists are read from it, and a fold of
// the facts must give the same.
type After struct {
	Status       Status   `json:"status"`
	Reason       string   `json:"reason"`
	CurrentStage string   `json:"current_stage"`
	Needs        []string `json:"needs"`   // principals, one of whom can move the run
	Expires      string   `json:"expires"` // RFC 3339, or empty
	Target       string   `json:"target"`
	Repo         string   `json:"repo"`
}

// Fact is one body that the ledger keeps.
type Fact interface {
	kind() Kind
	head() *Head
}

// KindOf is the kind under which the ledger keeps a fact.
func KindOf(f Fact) Kind { return f.kind() }

func (h *Head) head() *Head { return h }

// Entry is a fact as the ledger gives it back.
type Entry struct {
	Seq  int64
	Kind Kind
	Leaf string // hash of the entry in the ledger's tree
	Body json.RawMessage
}

// Base is the commit on which a run stands.
type Base struct {
	Commit string        `json:"commit,omitempty"` // absent outside a repository
	Tree   evidence.Tree `json:"tree,omitempty"`
}

// Opened begins a run.
type Opened struct {
	Head
	Task         string          `json:"task"`
	Project      string          `json:"project"`
	Repo         string          `json:"repo,omitempty"`
	Base         Base            `json:"base"`
	Target       string          `json:"target,omitempty"` // full name of the ref that the work is for
	Policy       string          `json:"policy"`           // its name
	PolicyDigest evidence.Digest `json:"policy_digest"`
	PolicyBody   json.RawMessage `json:"policy_body"` // resolved, so that the fact explains itself
	Roster       json.RawMessage `json:"roster"`      // principals and their keys
	RosterDigest evidence.Digest `json:"roster_digest"`
	// Enforced says that the base names principals; without, separation of duties
	// is reported, not enforced.
	Enforced bool `json:"enforced"`
	// Holders are the principals by role.
	Holders  map[string][]string `json:"holders"`
	Parent   string              `json:"parent,omitempty"`
	AfterRun []string            `json:"after_runs,omitempty"`
	Expires  time.Time           `json:"expires,omitzero"`
}

// Signature is a signed statement: what was signed is kept whole, so that anyone
// can check it with ssh-keygen.
type Signature struct {
	Statement json.RawMessage `json:"statement"` // canonical JSON
	Namespace string          `json:"namespace"`
	Key       string          `json:"key"` // type and base64
	Armored   string          `json:"armored"`
}

// PlanSubmitted hands in a contract. It is the submission of the planner stage.
type PlanSubmitted struct {
	Head
	Plan       string            `json:"plan"` // plan_<64 hex>
	Revision   int               `json:"revision"`
	Supersedes string            `json:"supersedes,omitempty"`
	Contract   json.RawMessage   `json:"contract"`
	PlanKind   string            `json:"plan_kind,omitempty"`
	Input      evidence.Digest   `json:"input"`
	Gates      []evidence.Digest `json:"gates"`
	Fence      int               `json:"fence"`
	Note       string            `json:"note,omitempty"`
	Signed     *Signature        `json:"signed,omitempty"`
}

// PlanAccepted makes a contract the one that binds. The plan token derives from
// this fact's place in the ledger.
type PlanAccepted struct {
	Head
	Plan     string `json:"plan"`
	Revision int    `json:"revision"`
}

// TakenFact is a lease on a stage.
type TakenFact struct {
	Head
	Until time.Time `json:"until"`
	Fence int       `json:"fence"`
}

// LeaseLost ends a lease without a submission.
type LeaseLost struct {
	Head
	Why string `json:"why"`
}

// Subject is what a stage is asked to judge. A stage that uses a field not has
// it empty.
type Subject struct {
	Plan   string          `json:"plan,omitempty"`
	Tree   evidence.Tree   `json:"tree,omitempty"`
	Commit string          `json:"commit,omitempty"`
	Ref    string          `json:"ref,omitempty"`  // where the commit is kept in our object store
	Diff   evidence.Digest `json:"diff,omitempty"` // of the difference from the base
	Note   evidence.Digest `json:"note,omitempty"` // under a policy without gates the note is the subject
}

// Submitted hands in the subject of a stage.
type Submitted struct {
	Head
	Subject Subject           `json:"subject"`
	Input   evidence.Digest   `json:"input"`
	Gates   []evidence.Digest `json:"gates"`
	Fence   int               `json:"fence"`
	Note    string            `json:"note,omitempty"`
	Signed  *Signature        `json:"signed,omitempty"`
	Retry   int               `json:"retry,omitempty"` // measurements of the same input that could not be made
	// Carries is the rule by which the last pass stands when the gates pass.
	Carries string `json:"carries,omitempty"`
	// What the submitter showed: the token, or the flag that asks for a waiver.
	Token     string `json:"token,omitempty"`
	Unplanned bool   `json:"unplanned,omitempty"`
	// Risk is the level of the change: it can ask for more approvals.
	Risk policy.RiskLevel `json:"risk,omitempty"`
}

// Claim is what somebody says. It never counts.
type Claim struct {
	Head
	ID   string `json:"id"` // clm_<ULID>
	Text string `json:"text"`
}

// Probed is what a gate did with the input that it must refuse.
type Probed struct {
	Head
	Gate       string          `json:"gate"`
	GateDigest evidence.Digest `json:"gate_digest"`
	Refused    bool            `json:"refused"`
	Reason     string          `json:"reason,omitempty"`
	Base       evidence.Tree   `json:"base,omitempty"`
	// Certificate derives from the runs on the good input and on the probe; empty
	// for a gate that is a pure function of ours.
	Certificate evidence.Digest `json:"certificate,omitempty"`
}

// Measured is the outcome of a gate on the subject of an attempt.
type Measured struct {
	Head
	Gate     string        `json:"gate"`
	Fence    int           `json:"fence"`
	Evidence gate.Evidence `json:"evidence"`
	// Merged is the tree that a merge gate judged: work and target together.
	Merged evidence.Tree `json:"merged_tree,omitempty"`
	// Issues are the keys of what the gate found: a finding whose key is here was
	// seen again.
	Issues []evidence.Digest `json:"issues,omitempty"`
}

// Decided is a signed judgement.
type Decided struct {
	Head
	ID        string          `json:"id"` // dec_<ULID>
	Decision  Decision        `json:"decision"`
	Input     evidence.Digest `json:"input"`
	Note      string          `json:"note,omitempty"`
	Token     string          `json:"token,omitempty"` // as it was shown
	Unplanned bool            `json:"unplanned,omitempty"`
	Signed    *Signature      `json:"signed,omitempty"`
}

// Decision is the word of a judgement.
type Decision string

// The decisions.
const (
	Approve        Decision = "approve"
	RequestChanges Decision = "request_changes"
	Reject         Decision = "reject"
	Abstain        Decision = "abstain"
)

// Decisions lists every decision once.
func Decisions() []Decision { return []Decision{Approve, RequestChanges, Reject, Abstain} }

// Withdrawn takes back a submission, or a veto.
type Withdrawn struct {
	Head
	Decision string `json:"decision,omitempty"` // id of the veto; empty: the submission
	Note     string `json:"note"`
}

// PassedFact closes an attempt.
type PassedFact struct {
	Head
	Input   evidence.Digest `json:"input"`
	Outcome evidence.Digest `json:"outcome"` // of what the pass stands on
	By      string          `json:"by"`      // engine or decisions
}

// Carried keeps a pass although an input changed: a rule of the policy was
// measured to hold.
type Carried struct {
	Head
	Rule    string          `json:"rule"`
	From    int             `json:"from"` // attempt
	Input   evidence.Digest `json:"input"`
	Outcome evidence.Digest `json:"outcome"` // of what the pass stands on now
}

// Rebased pins another base.
type Rebased struct {
	Head
	Base         Base                `json:"base"`
	PolicyDigest evidence.Digest     `json:"policy_digest"`
	PolicyBody   json.RawMessage     `json:"policy_body"`
	Roster       json.RawMessage     `json:"roster"`
	RosterDigest evidence.Digest     `json:"roster_digest"`
	Enforced     bool                `json:"enforced"`
	Holders      map[string][]string `json:"holders"`
	Conflicts    []string            `json:"conflicts,omitempty"`
}

// StaleFact says that the inputs of a stage changed.
type StaleFact struct {
	Head
	Because string `json:"because"`
	// Void are decisions, waivers and contracts that do not count any more.
	Void []string `json:"void,omitempty"`
}

// Reopened sends the run back to a stage.
type Reopened struct {
	Head
	Why   string `json:"why"`
	Round int    `json:"round"` // of the stage, after this
	// Rejected is the tree that may not come back; empty when none was judged.
	Rejected evidence.Tree `json:"rejected,omitempty"`
}

// FeedbackDelivered says that a bundle reached somebody; not that it was read.
type FeedbackDelivered struct {
	Head
	To        string          `json:"to"` // principal or launch
	Transport string          `json:"transport"`
	Bundle    evidence.Digest `json:"bundle"`
	Round     int             `json:"round"`
}

// FindingOpened is a finding of a person or of the engine.
type FindingOpened struct {
	Head
	Finding Finding `json:"finding"`
}

// FindingAnswered is a claim about a finding.
type FindingAnswered struct {
	Head
	Finding   string   `json:"finding"`
	Disputed  bool     `json:"disputed,omitempty"`
	Addressed bool     `json:"addressed,omitempty"`
	Paths     []string `json:"paths,omitempty"`
	Note      string   `json:"note,omitempty"`
}

// FindingClosed ends a finding.
type FindingClosed struct {
	Head
	Finding string       `json:"finding"`
	State   FindingState `json:"state"` // closed or waived
	Why     string       `json:"why"`
	Note    string       `json:"note,omitempty"`
}

// Waived is a signed exception.
type Waived struct {
	Head
	ID      string     `json:"id"`   // wvr_<ULID>
	Gate    string     `json:"gate"` // a gate, a P-code, or unplanned
	Paths   []string   `json:"paths,omitempty"`
	Reason  string     `json:"reason"`
	Expires time.Time  `json:"expires"`
	Signed  *Signature `json:"signed,omitempty"`
}

// WaiverUsed says that something passed by a waiver.
type WaiverUsed struct {
	Head
	Waiver string `json:"waiver"`
	For    string `json:"for"`
}

// Noted is a change of the run as a whole with a reason: paused, resumed,
// cancelled, expired, capped.
type Noted struct {
	Head
	What Kind   `json:"-"`
	Note string `json:"note,omitempty"`
}

// Delivered says where the approved tree stands now.
type Delivered struct {
	Head
	Commit string        `json:"commit"`
	Tree   evidence.Tree `json:"tree"`
	Ref    string        `json:"ref"`
	Old    string        `json:"old"` // zeros for a new ref
	// Revert takes it back while the ref still stands there.
	Revert []string `json:"revert,omitempty"`
}

// Exported says that a snapshot left without credit.
type Exported struct {
	Head
	Commit     string        `json:"commit"`
	Tree       evidence.Tree `json:"tree"`
	Ref        string        `json:"ref"`
	Unapproved bool          `json:"unapproved"`
}

// Attested says that an attestation was made.
type Attested struct {
	Head
	Envelope evidence.Digest `json:"envelope"`
}

// Refused is a request that was refused. It changes no stage.
type Refused struct {
	Head
	Verb  string          `json:"verb"`
	Code  fault.Code      `json:"code"`
	What  string          `json:"what"`
	Claim string          `json:"claimed_actor,omitempty"`
	Token string          `json:"token,omitempty"` // as it was shown; never a capability
	Input evidence.Digest `json:"input,omitempty"`
	Count int             `json:"count,omitempty"` // more than one: folded
}

func (Opened) kind() Kind            { return KindOpened }
func (PlanSubmitted) kind() Kind     { return KindPlanSubmitted }
func (PlanAccepted) kind() Kind      { return KindPlanAccepted }
func (TakenFact) kind() Kind         { return KindTaken }
func (LeaseLost) kind() Kind         { return KindLeaseLost }
func (Submitted) kind() Kind         { return KindSubmitted }
func (Claim) kind() Kind             { return KindClaim }
func (Probed) kind() Kind            { return KindProbed }
func (Measured) kind() Kind          { return KindMeasured }
func (Decided) kind() Kind           { return KindDecided }
func (Withdrawn) kind() Kind         { return KindWithdrawn }
func (PassedFact) kind() Kind        { return KindPassed }
func (Carried) kind() Kind           { return KindCarried }
func (Rebased) kind() Kind           { return KindRebased }
func (StaleFact) kind() Kind         { return KindStale }
func (Reopened) kind() Kind          { return KindReopened }
func (FeedbackDelivered) kind() Kind { return KindFeedbackDelivered }
func (FindingOpened) kind() Kind     { return KindFindingOpened }
func (FindingAnswered) kind() Kind   { return KindFindingAnswered }
func (FindingClosed) kind() Kind     { return KindFindingClosed }
func (Waived) kind() Kind            { return KindWaived }
func (WaiverUsed) kind() Kind        { return KindWaiverUsed }
func (n Noted) kind() Kind           { return n.What }
func (Delivered) kind() Kind         { return KindDelivered }
func (Exported) kind() Kind          { return KindExported }
func (Attested) kind() Kind          { return KindAttested }
func (Refused) kind() Kind           { return KindRefused }

// facts lists every kind once, with an empty fact to decode into.
var facts = []struct {
	kind  Kind
	blank func() Fact
}{
	{KindOpened, func() Fact { return &Opened{} }},
	{KindPlanSubmitted, func() Fact { return &PlanSubmitted{} }},
	{KindPlanAccepted, func() Fact { return &PlanAccepted{} }},
	{KindTaken, func() Fact { return &TakenFact{} }},
	{KindLeaseLost, func() Fact { return &LeaseLost{} }},
	{KindSubmitted, func() Fact { return &Submitted{} }},
	{KindClaim, func() Fact { return &Claim{} }},
	{KindProbed, func() Fact { return &Probed{} }},
	{KindMeasured, func() Fact { return &Measured{} }},
	{KindDecided, func() Fact { return &Decided{} }},
	{KindWithdrawn, func() Fact { return &Withdrawn{} }},
	{KindPassed, func() Fact { return &PassedFact{} }},
	{KindCarried, func() Fact { return &Carried{} }},
	{KindRebased, func() Fact { return &Rebased{} }},
	{KindStale, func() Fact { return &StaleFact{} }},
	{KindReopened, func() Fact { return &Reopened{} }},
	{KindFeedbackDelivered, func() Fact { return &FeedbackDelivered{} }},
	{KindFindingOpened, func() Fact { return &FindingOpened{} }},
	{KindFindingAnswered, func() Fact { return &FindingAnswered{} }},
	{KindFindingClosed, func() Fact { return &FindingClosed{} }},
	{KindWaived, func() Fact { return &Waived{} }},
	{KindWaiverUsed, func() Fact { return &WaiverUsed{} }},
	{KindPaused, noted(KindPaused)},
	{KindResumed, noted(KindResumed)},
	{KindCancelled, noted(KindCancelled)},
	{KindExpired, noted(KindExpired)},
	{KindCapped, noted(KindCapped)},
	{KindDelivered, func() Fact { return &Delivered{} }},
	{KindExported, func() Fact { return &Exported{} }},
	{KindAttested, func() Fact { return &Attested{} }},
	{KindRefused, func() Fact { return &Refused{} }},
}

func noted(k Kind) func() Fact { return func() Fact { return &Noted{What: k} } }

// Kinds lists every kind once.
func Kinds() []Kind {
	out := make([]Kind, len(facts))
	for i, f := range facts {
		out[i] = f.kind
	}
	return out
}

// decode reads the body of an entry.
func decode(e Entry) (Fact, error) {
	for _, f := range facts {
		if f.kind != e.Kind {
			continue
		}
		v := f.blank()
		if err := json.Unmarshal(e.Body, v); err != nil {
			return nil, fault.Wrap(err, fault.Tampered, "ledger_broken", "ledger entry %d is no %s", e.Seq, e.Kind)
		}
		return v, nil
	}
	return nil, fault.New(fault.Tampered, "ledger_broken", "ledger entry %d has kind %.60q, which no run has", e.Seq, e.Kind)
}

// decoded is what the body of an entry says, or why it says nothing.
type decoded struct {
	fact Fact
	err  error
}

// perReader is how many entries are worth another goroutine.
const perReader = 64

// decodeAll reads the bodies of entries. Reading is most of a fold, and no body
// depends on another: a long run is read on all processors.
func decodeAll(entries []Entry) []decoded {
	out := make([]decoded, len(entries))
	part := max(perReader, (len(entries)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for from := 0; from < len(entries); from += part {
		read := func() {
			for i := from; i < min(from+part, len(entries)); i++ {
				out[i].fact, out[i].err = decode(entries[i])
			}
		}
		if from+part < len(entries) {
			wg.Go(read)
		} else {
			read() // the last part is ours
		}
	}
	wg.Wait()
	return out
}
