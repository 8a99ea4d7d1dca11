package view

import (
	"encoding/json"
	"time"
)

// FlowAttestation is an attestation that was made.
type FlowAttestation struct {
	RunID      string            `json:"run_id"`
	RunStatus  string            `json:"run_status"`
	Digest     string            `json:"digest"` // of the file
	Subject    []AttestedSubject `json:"subject"`
	Properties []string          `json:"properties"`         // that the result says
	Evidence   string            `json:"evidence,omitempty"` // said when the policy asks for none: then there is no result
	Approvals  AttestedApprovals `json:"approvals"`
	Envelopes  []json.RawMessage `json:"envelopes"` // the lines of the file
	Text       string            `json:"text"`
}

// AttestedSubject is what an attestation is about: a commit, a tree.
type AttestedSubject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// AttestedApprovals are who approved; an agent is never one of the humans.
type AttestedApprovals struct {
	Humans      []string `json:"humans"`
	Independent []string `json:"independent_humans"` // who handed in nothing in the run
	Agents      []string `json:"agents"`
}

// FlowVerified is what an attestation says, after every byte of it was derived
// again.
type FlowVerified struct {
	Run        string             `json:"run"`
	Task       string             `json:"task"`
	Status     string             `json:"status"`
	Policy     string             `json:"policy"`
	Evidence   string             `json:"evidence,omitempty"`
	Created    time.Time          `json:"created"`
	Ledger     string             `json:"ledger"`
	Head       Head               `json:"head"`
	Subject    []AttestedSubject  `json:"subject"`
	Properties []string           `json:"properties"`
	Approvals  AttestedApprovals  `json:"approvals"`
	Decisions  []VerifiedDecision `json:"decisions"`
	Waivers    []FlowWaiver       `json:"waivers"`
	Unplanned  *FlowUnplanned     `json:"unplanned"`
	Separation []FlowSeparation   `json:"separation"`
	Enforced   bool               `json:"separation_enforced"`
	Refused    []VerifiedRefusal  `json:"refused"`
	Entries    int                `json:"entries"` // that the ledger's signed head was shown to hold
}

// VerifiedDecision is a judgement whose signature holds.
type VerifiedDecision struct {
	ID        string    `json:"id"`
	Stage     string    `json:"stage"`
	Attempt   int       `json:"attempt"`
	Principal string    `json:"principal"`
	Kind      string    `json:"kind"`
	Key       string    `json:"key"`
	Decision  string    `json:"decision"`
	Tree      string    `json:"tree,omitempty"`
	At        time.Time `json:"at"`
	Withdrawn bool      `json:"withdrawn,omitempty"`
	Void      string    `json:"void,omitempty"`
}

// VerifiedRefusal is a request that was refused.
type VerifiedRefusal struct {
	Seq   int64  `json:"seq"`
	Verb  string `json:"verb"`
	Code  string `json:"code"`
	Stage string `json:"stage,omitempty"`
	By    string `json:"by"`
	Count int    `json:"count"`
}

// FlowEvidence lists the evidence of a run, oldest first, or shows one record of
// it.
type FlowEvidence struct {
	Run     string               `json:"run"`
	Records []FlowEvidenceRecord `json:"records"`
}

// FlowEvidenceRecord is what a gate measured, as the ledger has it.
type FlowEvidenceRecord struct {
	ID       string          `json:"id"`
	Seq      int64           `json:"seq"`
	At       time.Time       `json:"at"`
	Stage    string          `json:"stage"`
	Attempt  int             `json:"attempt"`
	Gate     string          `json:"gate"`
	Outcome  string          `json:"outcome"`
	Code     string          `json:"code,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Waived   string          `json:"waived,omitempty"` // id of the waiver
	Current  bool            `json:"current"`          // of the current attempt of its stage
	Tree     string          `json:"tree,omitempty"`
	Probe    FlowProbe       `json:"probe"`
	Evidence json.RawMessage `json:"evidence,omitempty"` // the whole record, where one is shown
}

// FlowProbe is what the gate did with the input that it must refuse.
type FlowProbe struct {
	// State is refused, accepted, none (the gate measures no verdict on a tree, or
	// was not tried), or itself (the certificates of its tests are its probes).
	State       string `json:"state"`
	Certificate string `json:"certificate,omitempty"` // empty for a gate that is a rule of ours
	Seq         int64  `json:"seq,omitempty"`         // of the entry that says so
	Reason      string `json:"reason,omitempty"`
}

// FlowReplay is a run measured again.
type FlowReplay struct {
	Run     string           `json:"run"`
	Same    int              `json:"same"`
	Differs int              `json:"differs"`
	Cannot  int              `json:"cannot"`
	Gates   []FlowReplayGate `json:"gates"`
	Text    string           `json:"text"`
}

// FlowReplayGate is one record of evidence beside what a measurement says now.
type FlowReplayGate struct {
	Stage    string `json:"stage"`
	Attempt  int    `json:"attempt"`
	Gate     string `json:"gate"`
	Evidence string `json:"evidence"` // id
	Word     string `json:"word"`     // same, differs, cannot
	Before   string `json:"before"`   // outcome
	Now      string `json:"now,omitempty"`
	Why      string `json:"why,omitempty"`
	Again    string `json:"again,omitempty"` // id of the evidence of now; it is not recorded in the run
}

// FlowWatched is an entry of a run as it comes.
type FlowWatched struct {
	Type string `json:"type"` // entry
	FlowLogLine
	RunStatus    string   `json:"run_status"` // after it
	Reason       string   `json:"reason,omitempty"`
	CurrentStage string   `json:"current_stage"`
	Needs        []string `json:"needs"`
}
