package flow

import (
	"fmt"
	"strings"

	"github.com/proveto/proveto/internal/fault"
)

// StageState is where a stage stands.
type StageState string

// The states of a stage.
const (
	Locked    StageState = "locked"    // an upstream stage is not passed
	Ready     StageState = "ready"     // somebody may take it or submit
	Taken     StageState = "taken"     // a lease is held
	Measuring StageState = "measuring" // gates are being measured
	Deciding  StageState = "deciding"  // the evidence is in, decisions are missing
	Passed    StageState = "passed"
	Returned  StageState = "returned" // changes were requested here
	Rejected  StageState = "rejected"
	Stale     StageState = "stale" // had passed, its inputs changed
)

// StageStates lists every state once.
func StageStates() []StageState {
	return []StageState{Locked, Ready, Taken, Measuring, Deciding, Passed, Returned, Rejected, Stale}
}

// Move is what can happen to a stage.
type Move string

// The moves of a stage.
const (
	MoveTake           Move = "take"
	MoveSubmit         Move = "submit"
	MoveAllPass        Move = "all_pass"
	MoveNo             Move = "a_no"
	MoveNotMeasured    Move = "not_measured"
	MoveApprove        Move = "approve"
	MoveRequestChanges Move = "request_changes"
	MoveReject         Move = "reject"
	MoveAbstain        Move = "abstain"
	MoveWithdraw       Move = "withdraw"
	MoveReopen         Move = "reopen"
	MoveInputChanged   Move = "input_changed"
	MoveLeaseLost      Move = "lease_lost"
)

// Moves lists every move once, in the order of the columns of the table.
func Moves() []Move {
	return []Move{
		MoveTake, MoveSubmit, MoveAllPass, MoveNo, MoveNotMeasured, MoveApprove, MoveRequestChanges, MoveReject,
		MoveAbstain, MoveWithdraw, MoveReopen, MoveInputChanged, MoveLeaseLost,
	}
}

// cell is what a move does in a state: a next state, a refusal, or nothing at
// all (an engine event that comes too late).
type cell struct {
	to     StageState
	refuse fault.Code
}

// ignored tells a late event of the engine: no entry, no refusal.
func (c cell) ignored() bool { return c.to == "" && c.refuse == "" }

var (
	late  = cell{}
	early = cell{refuse: CodeOutOfOrder}
)

func to(s StageState) cell    { return cell{to: s} }
func no(code fault.Code) cell { return cell{refuse: code} }

// table is the whole machine of a stage, a row a state and a column a move. What
// else must hold for a move is said by the guards of [Next]. Under a policy with
// on_reject: stay, an approval of a stage that was returned or rejected opens a
// new attempt instead of the refusal that stands here.
var table = map[StageState]map[Move]cell{
	Locked: {
		MoveTake: early, MoveSubmit: early, MoveAllPass: late, MoveNo: late, MoveNotMeasured: late,
		MoveApprove: early, MoveRequestChanges: early, MoveReject: early, MoveAbstain: early,
		MoveWithdraw: early, MoveReopen: early, MoveInputChanged: to(Locked), MoveLeaseLost: late,
	},
	Ready: {
		MoveTake: to(Taken), MoveSubmit: to(Measuring), MoveAllPass: late, MoveNo: late, MoveNotMeasured: late,
		MoveApprove: no(CodeEvidenceMissing), MoveRequestChanges: no(CodeNothingSubmitted), MoveReject: no(CodeNothingSubmitted), MoveAbstain: early,
		MoveWithdraw: early, MoveReopen: to(Ready), MoveInputChanged: to(Ready), MoveLeaseLost: late,
	},
	Taken: {
		MoveTake: no(CodeLeaseHeld), MoveSubmit: to(Measuring), MoveAllPass: late, MoveNo: late, MoveNotMeasured: late,
		MoveApprove: no(CodeEvidenceMissing), MoveRequestChanges: no(CodeNothingSubmitted), MoveReject: no(CodeNothingSubmitted), MoveAbstain: early,
		MoveWithdraw: to(Ready), MoveReopen: to(Ready), MoveInputChanged: to(Ready), MoveLeaseLost: to(Ready),
	},
	Measuring: {
		MoveTake: no(CodeLeaseHeld), MoveSubmit: no(CodeBusy), MoveAllPass: to(Deciding), MoveNo: to(Returned), MoveNotMeasured: to(Ready),
		MoveApprove: no(CodeEvidencePending), MoveRequestChanges: to(Returned), MoveReject: to(Rejected), MoveAbstain: no(CodeEvidencePending),
		MoveWithdraw: to(Ready), MoveReopen: to(Ready), MoveInputChanged: to(Ready), MoveLeaseLost: late,
	},
	Deciding: {
		MoveTake: early, MoveSubmit: to(Measuring), MoveAllPass: late, MoveNo: late, MoveNotMeasured: late,
		MoveApprove: to(Passed), MoveRequestChanges: to(Returned), MoveReject: to(Rejected), MoveAbstain: to(Deciding),
		MoveWithdraw: to(Ready), MoveReopen: to(Ready), MoveInputChanged: to(Ready), MoveLeaseLost: late,
	},
	Passed: {
		MoveTake: early, MoveSubmit: no(CodeAlreadyPassed), MoveAllPass: late, MoveNo: late, MoveNotMeasured: late,
		MoveApprove: no(CodeAlreadyPassed), MoveRequestChanges: to(Returned), MoveReject: to(Rejected), MoveAbstain: early,
		MoveWithdraw: early, MoveReopen: to(Ready), MoveInputChanged: to(Stale), MoveLeaseLost: late,
	},
	Returned: {
		MoveTake: to(Taken), MoveSubmit: to(Measuring), MoveAllPass: late, MoveNo: late, MoveNotMeasured: late,
		MoveApprove: no(CodeVetoStands), MoveRequestChanges: to(Returned), MoveReject: to(Rejected), MoveAbstain: early,
		MoveWithdraw: to(Deciding), MoveReopen: to(Ready), MoveInputChanged: to(Ready), MoveLeaseLost: late,
	},
	Rejected: {
		MoveTake: early, MoveSubmit: no(CodeVetoStands), MoveAllPass: late, MoveNo: late, MoveNotMeasured: late,
		MoveApprove: no(CodeVetoStands), MoveRequestChanges: no(CodeVetoStands), MoveReject: no(CodeAlreadyRejected), MoveAbstain: early,
		MoveWithdraw: to(Deciding), MoveReopen: to(Ready), MoveInputChanged: to(Rejected), MoveLeaseLost: late,
	},
	Stale: {
		MoveTake: to(Taken), MoveSubmit: to(Measuring), MoveAllPass: late, MoveNo: late, MoveNotMeasured: late,
		MoveApprove: no(CodeStaleSubject), MoveRequestChanges: early, MoveReject: early, MoveAbstain: early,
		MoveWithdraw: early, MoveReopen: to(Ready), MoveInputChanged: to(Stale), MoveLeaseLost: late,
	},
}

// Diagram is the machine of a stage as a Mermaid state diagram, for the docs.
func Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n  [*] --> locked\n  locked --> ready: upstream passed\n")
	for _, s := range StageStates() {
		for _, m := range Moves() {
			if c := table[s][m]; c.to != "" && c.to != s {
				fmt.Fprintf(&b, "  %s --> %s: %s\n", s, c.to, m)
			}
		}
	}
	return b.String()
}
