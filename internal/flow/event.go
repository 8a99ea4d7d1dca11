package flow

import (
	"encoding/json"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
)

// Event is something that somebody wants to do, or that was found out.
type Event struct {
	// Now is the clock; an event never happens before the last one.
	Now    time.Time
	Actor  Actor
	Roles  []policy.Role // that the actor holds
	Rights []string      // that the actor has: cancel, waive:build, waive:*
	// Check is what was wrong before the rules were asked: another head than the
	// expected one, a signature or a capability that does not hold. Nil when
	// nothing was.
	Check error
	// Gone are the principals who are not believed any more.
	Gone []string
	// Gates are today's digests of the gates of the policy, by name.
	Gates   map[string]evidence.Digest
	Idem    string
	Request evidence.Digest
	Do      Act
}

// Act is what an event does. The types below are all there are.
type Act interface{ verb() string }

// Open begins a run; it is the only act on the empty one.
type Open struct{ Opened }

// Submission is what somebody hands in: a contract at the planner stage, a
// snapshot at the developer stage, a note where a policy has no gates.
type Submission struct {
	Subject   Subject
	Contract  json.RawMessage // of a plan
	PlanKind  string          // behaviour, refactor, docs, config
	Empty     bool            // the snapshot is the base
	Note      string
	Token     string // of the plan, as it was shown
	Unplanned bool   // go ahead without the token
	// NeedToken says that the verb wants the token: advance does, submit does not.
	NeedToken bool
	Risk      policy.RiskLevel // of the change
	Signed    *Signature
}

// Take asks for a lease.
type Take struct{ Stage string }

// Release gives a lease back, or takes it from who holds it, with the right to.
type Release struct{ Stage, Note string }

// LoseLease ends a lease whose holder is gone.
type LoseLease struct{ Stage, Why string }

// Submit hands in the subject of a stage.
type Submit struct {
	Stage string
	Submission
}

// Measure is the outcome of one gate.
type Measure struct {
	Stage    string
	Attempt  int
	Fence    int
	Gate     string
	Evidence gate.Evidence
	Merged   evidence.Tree // that a merge gate judged
	Issues   []Finding     // what it found; category, message, place and detail are used
	Probed   *Probed       // what the gate did with its probe, when that was tried now
}

// Remeasure starts the gates of a stage that could not be measured again.
type Remeasure struct{ Stage string }

// Decide judges the subject of a stage. With a submission it hands that in
// first, as the owner of a stage without gates does.
type Decide struct {
	Stage    string
	ID       string
	Decision Decision
	Note     string
	Findings []Finding
	Submission
	// Attempt and Input are what the signed statement names; an attempt of 0 asks
	// what would be judged, and nothing may be recorded of the answer.
	Attempt int
	Input   evidence.Digest
}

// Withdraw takes back the submission of a stage, or a veto.
type Withdraw struct{ Stage, Decision, Note string }

// Reopen sends the run back to a stage.
type Reopen struct{ Stage, Note string }

// Invalidate makes a pass stale.
type Invalidate struct {
	Stage, Because string
	// Void are decisions, waivers and contracts that do not count any more. With
	// them the stage is stale only if its pass stands on one of them.
	Void []string
}

// Waive signs an exception.
type Waive struct {
	ID, Gate, Stage, Reason string
	Paths                   []string
	Expires                 time.Time
	Signed                  *Signature
}

// Answer claims something about a finding. Close ends it; only its author may,
// or another holder of the role after two disputes.
type Answer struct {
	Finding                    string
	Addressed, Disputed, Close bool
	Paths                      []string
	Note                       string
}

// Amend says that the plan does not fit.
type Amend struct{ Note string }

// Say records a claim.
type Say struct{ ID, Stage, Text string }

// Feedback says that a bundle reached somebody.
type Feedback struct {
	Stage, To, Transport string
	Bundle               evidence.Digest
}

// Pause stops the run as a whole for a while.
type Pause struct{ Note string }

// Resume lets it go on.
type Resume struct{ Note string }

// Cancel ends it for good.
type Cancel struct{ Note string }

// Rebase pins another base.
type Rebase struct {
	Rebased
	// Subject is the developer's snapshot on the new base; nil when it does not
	// apply there.
	Subject *Subject
	Note    string
}

// Deliver says that the approved tree stands on a ref.
type Deliver struct{ Delivered }

// Export says that a snapshot left the run.
type Export struct{ Exported }

// Attest says that an attestation was made.
type Attest struct{ Envelope evidence.Digest }

// Refuse records what was refused.
type Refuse struct{ Refused }

func (Open) verb() string       { return "init" }
func (Take) verb() string       { return "take" }
func (Release) verb() string    { return "release" }
func (LoseLease) verb() string  { return "lease" }
func (Submit) verb() string     { return "submit" }
func (Measure) verb() string    { return "measure" }
func (Remeasure) verb() string  { return "measure" }
func (Decide) verb() string     { return "advance" }
func (Withdraw) verb() string   { return "withdraw" }
func (Reopen) verb() string     { return "reopen" }
func (Invalidate) verb() string { return "stale" }
func (Waive) verb() string      { return "waive" }
func (Answer) verb() string     { return "answer" }
func (Amend) verb() string      { return "amend" }
func (Say) verb() string        { return "claim" }
func (Feedback) verb() string   { return "feedback" }
func (Pause) verb() string      { return "pause" }
func (Resume) verb() string     { return "resume" }
func (Cancel) verb() string     { return "cancel" }
func (Rebase) verb() string     { return "rebase" }
func (Deliver) verb() string    { return "deliver" }
func (Export) verb() string     { return "export" }
func (Attest) verb() string     { return "attest" }
func (Refuse) verb() string     { return "refused" }
