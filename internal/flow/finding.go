package flow

import (
	"github.com/proveto/proveto/internal/evidence"
)

// Finding is something that must be answered, or is worth knowing. A person
// writes it, or the engine makes it of what a gate found.
type Finding struct {
	ID          string       `json:"id"`       // F-<n>, counted in the run
	Category    string       `json:"category"` // defect, test_gap, scope, plan_gap, grader_fault, environment
	Severity    Severity     `json:"severity"`
	Requirement string       `json:"requirement,omitempty"`
	File        string       `json:"file,omitempty"`
	Line        int          `json:"line,omitempty"`
	Message     string       `json:"message"`
	Detail      string       `json:"detail,omitempty"` // a mutant's diff, the end of an output
	Evidence    []string     `json:"evidence,omitempty"`
	Repro       []string     `json:"repro,omitempty"`
	Expected    string       `json:"expected,omitempty"`
	Actual      string       `json:"actual,omitempty"`
	MustKeep    []string     `json:"must_keep,omitempty"`
	Author      string       `json:"author"`         // principal, or engine
	Gate        string       `json:"gate,omitempty"` // that found it
	Target      string       `json:"target"`         // stage that has to answer it; operator: no stage
	Round       int          `json:"round"`
	State       FindingState `json:"state"`
	// Disputes counts how often it was disputed; NotCorrected says that it was
	// answered as addressed and then measured again.
	Disputes     int  `json:"disputes,omitempty"`
	NotCorrected bool `json:"not_corrected,omitempty"`
}

// Severity says whether a finding stops the run.
type Severity string

// The severities.
const (
	Block Severity = "block"
	Warn  Severity = "warn"
	Note  Severity = "note"
)

// Severities lists every severity once.
func Severities() []Severity { return []Severity{Block, Warn, Note} }

// FindingState is where a finding stands.
type FindingState string

// The states of a finding.
const (
	FindingOpen      FindingState = "open"
	FindingAddressed FindingState = "addressed" // a claim
	FindingDisputed  FindingState = "disputed"  // a claim
	FindingSettled   FindingState = "closed"
	FindingWaived    FindingState = "waived"
)

// key tells two findings of a gate apart: the same thing found again has the
// same key.
func (f Finding) key() evidence.Digest {
	b, err := evidence.Canonical([]string{f.Gate, f.Category, f.Requirement, f.File, f.Message})
	if err != nil {
		return "" // strings that are no UTF-8 are refused before
	}
	return evidence.DigestOf(b)
}

// done tells a finding that needs no more answer.
func (f Finding) done() bool { return f.State == FindingSettled || f.State == FindingWaived }

// blocks tells a finding that stops the run until it is answered or closed.
func (f Finding) blocks() bool { return f.Severity == Block && !f.done() }
