// Package flow is the rules of a task that is carried through gated stages:
// planner, developer, verifier, tester, reviewer, or whatever a policy names.
//
// A pass of a stage is a verdict over exact inputs: change an input and the pass
// is stale. The package says what an event does to a run ([Next]), which facts
// follow from it, and what a run is ([Fold] over its facts); the status of a run
// is derived, never stored.
//
// It is pure: no clock, no random value, no file, no database. Time, identity and
// measurements come in the event, already made and already checked; what comes
// out are facts for the ledger. Package app appends them, in the same transaction
// in which it read the run.
//
// Invariants, each held by a test:
//   - [Next] is total: every stage state × move is in the table of [Moves].
//   - Fold of the facts that Next gave equals the run that Next gave.
//   - No stage passes without every gate passed or waived, nor over a veto of the
//     same input; a closed run never moves.
package flow

import "github.com/proveto/proveto/internal/fault"

// The codes of this package.
const (
	CodeOutOfOrder       fault.Code = "stage_out_of_order"
	CodeRunClosed        fault.Code = "run_closed"
	CodeRunPaused        fault.Code = "run_paused"
	CodeWrongRole        fault.Code = "wrong_role"
	CodeNotPermitted     fault.Code = "not_permitted"
	CodeSeparation       fault.Code = "separation"
	CodeWaiverMissing    fault.Code = "waiver_missing"
	CodePlanSuperseded   fault.Code = "plan_superseded"
	CodeSameTree         fault.Code = "same_tree"
	CodeFindingsOpen     fault.Code = "findings_open"
	CodeEvidenceMissing  fault.Code = "evidence_missing"
	CodeNothingSubmitted fault.Code = "nothing_submitted"
	CodeEvidencePending  fault.Code = "evidence_pending"
	CodeStaleSubject     fault.Code = "stale_subject"
	CodeVetoStands       fault.Code = "veto_stands"
	CodeAlreadyPassed    fault.Code = "already_passed"
	CodeAlreadyRejected  fault.Code = "already_rejected"
	CodeLeaseHeld        fault.Code = "lease_held"
	CodeLeaseLost        fault.Code = "lease_lost"
	CodeRoundsExhausted  fault.Code = "rounds_exhausted"
	CodeBusy             fault.Code = "busy"
	CodeNotFound         fault.Code = "not_found"
	CodeNoteMissing      fault.Code = "note_missing"
	CodeUnknownStage     fault.Code = "unknown_stage"
	CodeContradictory    fault.Code = "contradictory_flags"
	CodeEmptySubmission  fault.Code = "empty_submission"
	CodeSuperseded       fault.Code = "superseded" // a late result of a lost worker

	// What a recorded answer says.
	CodeApproved         fault.Code = "approved"
	CodeRejected         fault.Code = "rejected"
	CodeChangesRequested fault.Code = "changes_requested"
	CodeAbstained        fault.Code = "abstained"
	CodeApprovalsMissing fault.Code = "approvals_missing"
)
