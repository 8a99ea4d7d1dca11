package view

import "time"

// FlowReport is a run from its verdict down to where each word comes from. It is
// as of the run's last entry, so that the same head gives the same report.
type FlowReport struct {
	Verdict    FlowVerdict       `json:"verdict"`
	Missing    []FlowMissing     `json:"missing"`
	Changed    FlowChanged       `json:"changed"`
	Run        FlowHead          `json:"run"`
	Plan       *FlowReportPlan   `json:"plan"`
	Stages     []FlowReportStage `json:"stages"`
	Findings   []FlowFinding     `json:"findings"` // oldest first
	Waivers    []FlowWaiver      `json:"waivers"`
	Unplanned  *FlowUnplanned    `json:"unplanned"`
	Separation []FlowSeparation  `json:"separation"`
	Enforced   bool              `json:"separation_enforced"`
	Refused    []FlowRefused     `json:"refused"`
	Claims     []FlowClaim       `json:"claims"` // what was said; nothing of it counted
	Delivery   *FlowDelivery     `json:"delivery"`
	Evidence   string            `json:"evidence,omitempty"` // said when the policy asks for none
	Provenance FlowProvenance    `json:"provenance"`
}

// FlowVerdict is the run in a word and a sentence.
type FlowVerdict struct {
	Word string `json:"word"` // passed: approved or delivered; no: blocked, cancelled, expired; open
	Text string `json:"text"`
}

// FlowMissing is something that the run needs and has not.
type FlowMissing struct {
	Stage string `json:"stage,omitempty"`
	What  string `json:"what"`
	Run   string `json:"run,omitempty"` // the command that gets on with it
}

// FlowChanged is the work: what differs from the base.
type FlowChanged struct {
	Tree    string     `json:"tree,omitempty"`
	Commit  string     `json:"commit,omitempty"`
	Files   []FlowFile `json:"files"` // at most 500
	Total   int        `json:"total"`
	Added   int        `json:"added"`
	Deleted int        `json:"deleted"`
	Why     string     `json:"why,omitempty"` // there is no list
}

// FlowFile is a file of the work.
type FlowFile struct {
	Path    string `json:"path"`
	Op      string `json:"op"` // create, modify, delete, rename, mode
	From    string `json:"from,omitempty"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

// FlowReportPlan is the contract that binds.
type FlowReportPlan struct {
	ID           string               `json:"id"`
	Revision     int                  `json:"revision"`
	Token        string               `json:"token"`
	Requirements []FlowRequirementRow `json:"requirements"`
}

// FlowRequirementRow is a requirement with its name.
type FlowRequirementRow struct {
	ID string `json:"id"`
	FlowRequirement
}

// FlowReportStage is a stage with all its attempts, oldest first.
type FlowReportStage struct {
	ID        string              `json:"id"`
	Role      string              `json:"role"`
	State     string              `json:"state"`
	Because   string              `json:"stale_because,omitempty"`
	Approvals FlowApprovals       `json:"approvals"`
	Attempts  []FlowReportAttempt `json:"attempts"`
}

// FlowReportAttempt is one attempt at a stage.
type FlowReportAttempt struct {
	N            int              `json:"n"`
	Current      bool             `json:"current"`
	State        string           `json:"state"`
	Input        string           `json:"input"`
	Tree         string           `json:"tree,omitempty"`
	Producer     string           `json:"producer,omitempty"`
	ProducerKind string           `json:"producer_kind,omitempty"`
	Carried      string           `json:"carried,omitempty"` // by which rule, from which attempt
	Gates        []FlowReportGate `json:"gates"`
	Decisions    []FlowDecision   `json:"decisions"`
}

// FlowReportGate is a gate with its evidence.
type FlowReportGate struct {
	FlowGate
	Tests        string    `json:"tests,omitempty"` // counts, in words
	Isolation    string    `json:"isolation,omitempty"`
	Probe        FlowProbe `json:"probe"`
	Certificates []string  `json:"certificates"`
	Runs         int       `json:"runs"`
	TookMS       int64     `json:"took_ms"`
}

// FlowRefused is a request that was refused.
type FlowRefused struct {
	Seq   int64     `json:"seq"`
	At    time.Time `json:"at"`
	Verb  string    `json:"verb"`
	Code  string    `json:"code"`
	What  string    `json:"what"`
	Stage string    `json:"stage,omitempty"`
	By    string    `json:"by"`
	Count int       `json:"count"`
}

// FlowClaim is something that somebody said.
type FlowClaim struct {
	At    time.Time `json:"at"`
	Stage string    `json:"stage,omitempty"`
	Who   string    `json:"who"`
	Kind  string    `json:"kind"` // of the principal
	Word  string    `json:"word"` // with what: a decision, a submission, a claim
	Text  string    `json:"text"`
}

// FlowProvenance is where the report comes from.
type FlowProvenance struct {
	AsOf        time.Time `json:"as_of"` // the run's last entry
	Ledger      string    `json:"ledger"`
	VerifierKey string    `json:"verifier_key"`
	Head        Head      `json:"head"`
	Seq         int64     `json:"seq"` // of the run's last entry
	Entries     int       `json:"entries"`
	Signatures  string    `json:"signatures"` // what was checked of them, in words
	Policy      string    `json:"policy_digest"`
	Principals  string    `json:"principals_digest"`
	Base        string    `json:"base,omitempty"`
	Target      string    `json:"target,omitempty"`
	Version     string    `json:"version"`
}
