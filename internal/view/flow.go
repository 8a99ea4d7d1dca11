package view

import (
	"encoding/json"
	"time"
)

// FlowRun is the status of a run.
type FlowRun struct {
	Run        FlowHead         `json:"run"`
	Plan       *FlowPlan        `json:"plan"` // null before one is accepted
	Stages     []FlowStage      `json:"stages"`
	Findings   []FlowFinding    `json:"findings"` // newest first, at most 50
	FindingsN  FlowFindingCount `json:"findings_total"`
	Waivers    []FlowWaiver     `json:"waivers"`
	Unplanned  *FlowUnplanned   `json:"unplanned"`
	Claims     int              `json:"claims"`
	Separation []FlowSeparation `json:"separation"`
	Refused    int              `json:"refused"`
	Delivery   *FlowDelivery    `json:"delivery"`
	Ledger     FlowLedger       `json:"ledger"`
	Evidence   string           `json:"evidence,omitempty"` // said when the policy needs none
}

// FlowHead is the run as a whole.
type FlowHead struct {
	ID           string     `json:"id"`
	Task         string     `json:"task"`
	Project      string     `json:"project"`
	Status       string     `json:"status"`
	Reason       string     `json:"reason,omitempty"`
	Unblock      []string   `json:"unblock"`
	CurrentStage string     `json:"current_stage"`
	Needs        []string   `json:"needs"`               // principals, one of whom can move the run
	DecideBy     *time.Time `json:"decide_by,omitempty"` // of waiting, when the policy sets a decision_sla
	Overdue      bool       `json:"overdue,omitempty"`   // that time has passed
	Base         string     `json:"base,omitempty"`
	BaseTree     string     `json:"base_tree,omitempty"`
	Target       string     `json:"target,omitempty"`
	Policy       FlowPolicy `json:"policy"`
	Round        int        `json:"round"`
	Created      time.Time  `json:"created"`
	Expires      *time.Time `json:"expires"`
	Dir          string     `json:"run_dir,omitempty"`
}

// FlowPolicy names a policy.
type FlowPolicy struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// FlowPlan is the contract that binds.
type FlowPlan struct {
	ID           string                     `json:"id"`
	Revision     int                        `json:"revision"`
	Token        string                     `json:"token"`
	Contract     json.RawMessage            `json:"contract"`
	Requirements map[string]FlowRequirement `json:"requirements"`
}

// FlowRequirement is the state of a requirement: proven, refuted, not_measured,
// stale.
type FlowRequirement struct {
	State        string   `json:"state"`
	Reason       string   `json:"reason,omitempty"`
	Text         string   `json:"text,omitempty"`
	Certificates []string `json:"certificates"`
}

// FlowStage is a stage with its current attempt.
type FlowStage struct {
	ID         string         `json:"id"`
	Role       string         `json:"role"`
	State      string         `json:"state"`
	Attempt    int            `json:"attempt"`
	Input      string         `json:"input,omitempty"`
	Tree       string         `json:"tree,omitempty"`
	Producer   string         `json:"producer,omitempty"`
	TakenBy    string         `json:"taken_by,omitempty"`
	LeaseUntil *time.Time     `json:"lease_until,omitempty"`
	Gates      []FlowGate     `json:"gates"`
	Decisions  []FlowDecision `json:"decisions"`
	Approvals  FlowApprovals  `json:"approvals"`
	Because    string         `json:"stale_because,omitempty"`
	Earlier    int            `json:"earlier_attempts"`
}

// FlowGate is what a gate says about the current attempt.
type FlowGate struct {
	ID       string `json:"id"`
	Need     string `json:"need"`
	Outcome  string `json:"outcome"` // pass, no, not_measured, empty; empty text: not tried yet
	Code     string `json:"code,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	Waived   string `json:"waived,omitempty"` // id of the waiver
	Blind    bool   `json:"blind,omitempty"`
}

// FlowDecision is a signed judgement.
type FlowDecision struct {
	ID         string    `json:"id"`
	Principal  string    `json:"principal"`
	Kind       string    `json:"kind"`
	Key        string    `json:"key"`
	Decision   string    `json:"decision"`
	At         time.Time `json:"at"`
	Verified   bool      `json:"verified"`
	Note       string    `json:"note,omitempty"`
	NoteSHA256 string    `json:"note_sha256,omitempty"`
	Withdrawn  bool      `json:"withdrawn,omitempty"`
	Void       string    `json:"void,omitempty"`
	Revoked    string    `json:"revoked,omitempty"` // what became later of the trust in the key or the principal
}

// FlowApprovals counts approvals; an agent never counts as a human.
type FlowApprovals struct {
	Need       int `json:"need"`
	Have       int `json:"have"`
	HumansNeed int `json:"humans_need"`
	HumansHave int `json:"humans_have"`
	Agents     int `json:"agents_have"`
}

// FlowFinding is a finding as it stands.
type FlowFinding struct {
	ID           string   `json:"id"`
	Category     string   `json:"category"`
	Severity     string   `json:"severity"`
	State        string   `json:"state"`
	Requirement  string   `json:"requirement,omitempty"`
	File         string   `json:"file,omitempty"`
	Line         int      `json:"line,omitempty"`
	Message      string   `json:"message"`
	Detail       string   `json:"detail,omitempty"`
	Author       string   `json:"author"`
	Gate         string   `json:"gate,omitempty"`
	Target       string   `json:"target"`
	Round        int      `json:"round"`
	Repro        []string `json:"repro,omitempty"`
	Expected     string   `json:"expected,omitempty"`
	Actual       string   `json:"actual,omitempty"`
	Evidence     []string `json:"evidence,omitempty"`
	NotCorrected bool     `json:"not_corrected,omitempty"`
}

// FlowFindingCount counts all findings of a run.
type FlowFindingCount struct {
	Total    int `json:"total"`
	Blocking int `json:"blocking"`
}

// FlowWaiver is a signed exception.
type FlowWaiver struct {
	ID      string    `json:"id"`
	Gate    string    `json:"gate"`
	Stage   string    `json:"stage,omitempty"`
	Reason  string    `json:"reason"`
	By      string    `json:"by"`
	Expires time.Time `json:"expires"`
	Used    bool      `json:"used"`
	Void    string    `json:"void,omitempty"` // why it does not count any more
}

// FlowUnplanned says that work went ahead without the token of the plan.
type FlowUnplanned struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	Waiver string `json:"waiver,omitempty"`
}

// FlowSeparation is how a rule of separation stands.
type FlowSeparation struct {
	Rule  string `json:"rule"`
	State string `json:"state"` // holds, violated, not_enforced
	Note  string `json:"note,omitempty"`
}

// FlowDelivery is where the approved tree stands.
type FlowDelivery struct {
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	Ref    string `json:"ref"`
	Old    string `json:"old"`
}

// FlowLedger is where the run stands in the ledger.
type FlowLedger struct {
	Verified bool   `json:"verified"` // the signatures of the run's decisions hold, and the facts fold
	Seq      int64  `json:"seq"`      // of the run's last entry
	Root     string `json:"root"`     // of the ledger
}

// FlowAdvance answers every verb that moves a run.
type FlowAdvance struct {
	RunID           string        `json:"run_id"`
	RunDir          string        `json:"run_dir,omitempty"`
	RunStatus       string        `json:"run_status"`
	Reason          string        `json:"reason,omitempty"`
	CurrentStage    string        `json:"current_stage"`
	Stage           string        `json:"stage,omitempty"`
	Attempt         int           `json:"attempt,omitempty"`
	Decision        *FlowDecision `json:"decision"`
	PlanTokenIssued *string       `json:"plan_token_issued"`
	Input           string        `json:"input,omitempty"`
	Findings        []FlowFinding `json:"findings"`
	Replayed        bool          `json:"replayed"`
	Text            string        `json:"text"` // the answer in a sentence
	Head            *Head         `json:"-"`    // of the ledger, as the verb left it
}

// FlowList lists runs, newest first.
type FlowList struct {
	Runs []FlowListed `json:"runs"`
	Next int64        `json:"next_before,omitempty"` // where the list goes on; 0: it ends here
}

// FlowListed is a run in a list.
type FlowListed struct {
	ID           string    `json:"id"`
	Project      string    `json:"project"`
	Task         string    `json:"task"`
	Status       string    `json:"status"`
	Reason       string    `json:"reason,omitempty"`
	CurrentStage string    `json:"current_stage"`
	Needs        []string  `json:"needs"`
	Updated      time.Time `json:"updated"`
	Seq          int64     `json:"seq"`
}

// FlowLog is what happened to a run, oldest first.
type FlowLog struct {
	Run     string        `json:"run"`
	Entries []FlowLogLine `json:"entries"`
}

// FlowLogLine is one entry in a line.
type FlowLogLine struct {
	Seq       int64     `json:"seq"`
	Time      time.Time `json:"time"`
	Kind      string    `json:"kind"`
	Stage     string    `json:"stage,omitempty"`
	Attempt   int       `json:"attempt,omitempty"`
	Principal string    `json:"principal"`
	Key       string    `json:"key,omitempty"`
	Launch    string    `json:"launch,omitempty"`
	Decision  string    `json:"decision,omitempty"`
	Note      string    `json:"note,omitempty"`
	Token     string    `json:"token,omitempty"`
	Unplanned bool      `json:"unplanned,omitempty"`
	Code      string    `json:"code,omitempty"` // of a refusal
	Summary   string    `json:"summary"`
}

// FlowFeedback is what a stage is told after its work came back.
type FlowFeedback struct {
	Schema        string        `json:"schema"`
	Run           string        `json:"run"`
	Round         int           `json:"round"`
	ToStage       string        `json:"to_stage"`
	Plan          string        `json:"plan"`
	PlanToken     string        `json:"plan_token"`
	RejectedTree  string        `json:"rejected_tree,omitempty"`
	Findings      []FlowFinding `json:"findings"` // that need an answer
	Closed        []FlowFinding `json:"closed"`
	ClaimsRefuted []string      `json:"claims_refuted"`
	Remaining     FlowRemaining `json:"remaining"`
	Digest        string        `json:"digest"` // of all of the above
}

// FlowRemaining is what is left of the budget of a run; null: no bound.
type FlowRemaining struct {
	Rounds *int `json:"rounds"`
}

// FlowLint is what is wrong with a contract.
type FlowLint struct {
	Run      string        `json:"run"`
	Problems []FlowProblem `json:"problems"`
}

// FlowProblem is one rule that a contract breaks.
type FlowProblem struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Where    string `json:"where"`
	Message  string `json:"message"`
}

// FlowPlanDiff is where two revisions of a contract differ, a line a place.
type FlowPlanDiff struct {
	Run     string   `json:"run"`
	Old     int      `json:"old"`
	New     int      `json:"new"`
	Changes []string `json:"changes"`
}

// FlowExplained says what a run needs, has and lacks.
type FlowExplained struct {
	Run    string     `json:"run"`
	Policy string     `json:"policy"`
	Lines  []FlowNeed `json:"lines"`
}

// FlowNeed is one thing that a stage needs. Missing is empty when it is there.
type FlowNeed struct {
	Stage   string `json:"stage"`
	Need    string `json:"need"`
	Have    string `json:"have,omitempty"`
	Missing string `json:"missing,omitempty"`
}

// FlowPolicyCheck is what the command gates of a policy did with their probes.
type FlowPolicyCheck struct {
	Policy string       `json:"policy"`
	Gates  []FlowProbed `json:"gates"`
}

// FlowProbed is what one gate did with a good tree and with a bad one.
type FlowProbed struct {
	Gate        string `json:"gate"`
	Accepts     bool   `json:"accepts_good"`
	Refuses     bool   `json:"refuses_bad"`
	Reason      string `json:"reason,omitempty"`
	Certificate string `json:"certificate,omitempty"`
}
