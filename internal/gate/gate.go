// Package gate holds the words and the rules of the gates of a flow: what a gate
// can answer, the evidence that it leaves, what it found, and the rule that a gate
// counts only after it was seen to refuse a bad subject.
//
// It is pure: no clock, no process, no store. Package app/gates measures; whoever
// keeps the evidence stores it as [Evidence.Canonical].
package gate

import (
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// Outcome is what a gate answers. Only pass opens it. The words are stored.
type Outcome string

// The outcomes.
const (
	Pass        Outcome = "pass"
	No          Outcome = "no"           // measured, and the answer is no
	NotMeasured Outcome = "not_measured" // always with a code and a reason
	Empty       Outcome = "empty"        // nothing to check; satisfies only where the policy says so
)

// Outcomes lists the outcomes.
func Outcomes() []Outcome { return []Outcome{Pass, No, NotMeasured, Empty} }

// Kind is what a gate does. The names are those of the policy.
type Kind string

// The kinds.
const (
	KindPlanLint Kind = "plan_lint"
	KindPlanDiff Kind = "plan_diff"
	KindSuite    Kind = "suite"
	KindBuild    Kind = "build"
	KindSecrets  Kind = "secrets"
	KindProve    Kind = "prove"
	KindMerge    Kind = "merge"
	KindFindings Kind = "findings"
	KindCommand  Kind = "command"
)

// Kinds lists the kinds.
func Kinds() []Kind {
	return []Kind{KindPlanLint, KindPlanDiff, KindSuite, KindBuild, KindSecrets, KindProve, KindMerge, KindFindings, KindCommand}
}

// The codes of a gate that gave no pass.
const (
	CodeFailed                   = evidence.CodeGateFailed // measured: no
	CodeBlind                    = evidence.CodeGateBlind  // it accepted its probe
	CodeTimedOut                 = evidence.CodeTimedOut
	CodeFlaky                    = evidence.CodeFlaky
	CodeUnmeasured               = evidence.CodeUnmeasured
	CodeBaselineRed   fault.Code = "baseline_red"
	CodeToolMissing   fault.Code = "tool_missing"
	CodeTooLow        fault.Code = "isolation_too_low"
	CodeNotProven     fault.Code = "gate_not_proven" // there is no probe that it could refuse
	CodeMergeConflict fault.Code = "merge_conflict"
)

// Issue is one thing that a gate found. The flow makes a finding of it.
type Issue struct {
	Category string     `json:"category"` // a key of the policy's categories: defect, test_gap, environment …
	Code     fault.Code `json:"code"`
	File     string     `json:"file,omitempty"` // relative to the tree
	Line     int        `json:"line,omitempty"`
	Message  string     `json:"message"`
	Repro    []string   `json:"repro,omitempty"` // argv that shows it, at the root of the tree
	Expected string     `json:"expected,omitempty"`
	Actual   string     `json:"actual,omitempty"`
	Diff     string     `json:"diff,omitempty"` // of the mutant that survived
}

// The categories of issues.
const (
	Defect      = "defect"
	TestGap     = "test_gap"
	Scope       = "scope"
	Environment = "environment"
)

// Answer is what a gate says about one subject, before the question whether it
// can be believed.
type Answer struct {
	Outcome Outcome
	Code    fault.Code // empty for pass
	Reason  string     // a sentence; empty for pass
}

// Of makes an answer of what runs show.
func Of(v evidence.GateVerdict) Answer {
	switch {
	case v.Accepted:
		return Answer{Outcome: Pass}
	case v.Rejected:
		return Answer{No, v.Code, v.Detail}
	}
	return Answer{NotMeasured, v.Code, v.Detail}
}

// Unmeasured makes the answer of an error that stopped the measurement; ok is
// false for an error of ours and for an interruption, which are no answers.
func Unmeasured(err error) (a Answer, ok bool) {
	e := fault.From(err)
	if e.Kind != fault.Unmeasured {
		return Answer{}, false
	}
	code := e.Code
	switch code {
	case "timeout":
		code = CodeTimedOut
	case "baseline_failed":
		code = CodeBaselineRed
	}
	known := []fault.Code{CodeTimedOut, CodeFlaky, CodeBaselineRed, CodeToolMissing, CodeTooLow, CodeBlind, CodeNotProven, evidence.CodeRunnerBlind}
	reason := e.Error()
	if !slices.Contains(known, code) {
		code = CodeUnmeasured
	}
	return Answer{NotMeasured, code, reason}, true
}

// Believed applies the blind rule: a pass counts only beside the certificate that
// the gate refused its probe. probeErr is why there is none.
func Believed(a Answer, certificate evidence.Digest, probeErr error) Answer {
	if a.Outcome != Pass || certificate != "" {
		return a
	}
	if e := fault.From(probeErr); e != nil {
		if e.Code == CodeBlind {
			return Answer{NotMeasured, CodeBlind, "gate accepted a bad tree: " + e.Error()}
		}
		if b, ok := Unmeasured(e); ok {
			b.Reason = "the gate was not seen to refuse its probe: " + b.Reason
			return b
		}
	}
	return Answer{NotMeasured, CodeNotProven, "the gate was not seen to refuse any bad tree"}
}
