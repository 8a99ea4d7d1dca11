package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/policy"
)

const timeFormat = time.RFC3339

// decide judges the subject of a stage. A stage without gates takes its subject
// from the same request: the owner's word is the hand-over.
func (t *turn) decide(s *Stage, a Decide) *fault.Error {
	if err := t.role(s); err != nil {
		return err
	}
	if err := t.evidenceHere(s, a); err != nil {
		return err
	}
	if t.handsOver(s, a) {
		said := a.Submission.Note
		if err := t.submit(s, a.Submission); err != nil {
			return err
		}
		if !a.Unplanned {
			t.unsaid(said)
		}
	}
	move := Move(a.Decision)
	if _, err := t.move(s, move); err != nil {
		return err
	}
	if a.Attempt != 0 && (a.Attempt != s.Attempt || a.Input != s.Input) {
		return fault.New(fault.Refused, CodeStaleSubject, "the decision is about attempt %d of stage %s, input %s; now it is attempt %d, input %s",
			a.Attempt, s.ID, a.Input.Short(), s.Attempt, s.Input.Short()).Hint("proveto flow status %s", t.run.ID)
	}
	if a.Decision != Approve && blankText(a.Note) && len(a.Findings) == 0 {
		return t.noteMissing(strings.ReplaceAll(string(a.Decision), "_", " "))
	}
	if a.Decision == Approve {
		if err := t.mayApprove(s, a); err != nil {
			return err
		}
	}
	was := s.State
	t.add(&Decided{ID: a.ID, Decision: a.Decision, Input: s.Input, Note: a.Note, Token: a.Token, Unplanned: a.Unplanned, Signed: a.Signed}, s)
	switch a.Decision {
	case Approve:
		t.quorum(s)
	case Abstain:
		t.answer = CodeAbstained
	default:
		t.returned(s, a, was)
	}
	return nil
}

// unsaid takes the note off the hand-over that a decision brought along: it is on
// the decision.
func (t *turn) unsaid(note string) {
	for _, f := range t.facts {
		switch f := f.(type) {
		case *PlanSubmitted:
			f.Note = ""
		case *Submitted:
			f.Note = ""
		}
	}
	n := len(t.run.Remarks)
	if n > 0 && t.run.Remarks[n-1].Word == "submit" && t.run.Remarks[n-1].Text == note {
		t.run.Remarks = t.run.Remarks[:n-1]
	}
}

// evidenceHere names the two mistakes that a later guard would name worse.
func (t *turn) evidenceHere(s *Stage, a Decide) *fault.Error {
	if !slices.Contains(Decisions(), a.Decision) {
		return fault.New(fault.Usage, "usage", "%.40q is no decision: want approve, request_changes, reject or abstain", string(a.Decision))
	}
	if s.State == Locked {
		return t.refusal(s, Move(a.Decision), CodeOutOfOrder)
	}
	return nil
}

// handsOver tells a decision that brings its subject along.
func (t *turn) handsOver(s *Stage, a Decide) bool {
	if len(s.Gates) > 0 || a.Decision == Abstain {
		return false
	}
	switch s.State {
	case Ready, Taken, Stale:
		return true
	case Returned, Rejected:
		return t.run.stays() && a.Decision == Approve && !blankText(a.Note)
	}
	return false
}

// mayApprove is guard 8 but for the quorum, and separation of duties.
func (t *turn) mayApprove(s *Stage, a Decide) *fault.Error {
	if s.vetoed(s.Input) {
		return fault.New(fault.Refused, CodeVetoStands, "a veto stands against this input of stage %s: no approval of the same thing passes", s.ID).
			Hint("proveto flow status %s", t.run.ID)
	}
	if _, err := t.separated(s); err != nil {
		return err
	}
	if t.run.decide(s).Note == policy.NoteRequired && blankText(a.Note) {
		return t.noteMissing("approval of stage " + s.ID)
	}
	for _, x := range t.run.Findings {
		if x.blocks() && x.Author != t.e.Actor.Principal && x.Author != kindEngine {
			return fault.New(fault.Refused, CodeFindingsOpen, "finding %s of %s is %s: its author has to close it", x.ID, x.Author, x.State).
				Hint("proveto flow answer %s %s --close --note TEXT", t.run.ID, x.ID)
		}
	}
	return nil
}

// quorum passes the stage when its decisions are enough.
func (t *turn) quorum(s *Stage) {
	for i := range t.run.Findings { // who approves has seen their own findings answered
		if x := &t.run.Findings[i]; x.blocks() && x.Author == t.e.Actor.Principal && x.State != FindingOpen {
			t.add(&FindingClosed{Finding: x.ID, State: FindingSettled, Why: "its author approved what answers it"}, s)
		}
	}
	if n := t.run.Approvals(s); n.Have < n.Need || n.HumansHave < n.HumansNeed {
		t.answer = CodeApprovalsMissing
		return
	}
	t.pass(s, "decisions")
	t.answer = CodeApproved
}

// pass closes the attempt of a stage.
func (t *turn) pass(s *Stage, by string) {
	actor := t.e.Actor
	if by == kindEngine {
		actor = Engine()
	}
	if s.Role == policy.Planner && t.run.Proposed != nil && (t.run.Plan == nil || t.run.Plan.ID != t.run.Proposed.ID || t.run.Plan.Revision != t.run.Proposed.Revision) {
		t.add(&PlanAccepted{Head: Head{Actor: actor}, Plan: t.run.Proposed.ID, Revision: t.run.Proposed.Revision}, s)
	}
	t.add(&PassedFact{Head: Head{Actor: actor}, Input: s.Input, Outcome: s.outcome(), By: by}, s)
}

// returned follows a veto: findings, and the stage to which the run goes back.
func (t *turn) returned(s *Stage, a Decide, was StageState) {
	t.answer = CodeChangesRequested
	if a.Decision == Reject {
		t.answer = CodeRejected
	}
	if was == Passed {
		t.staleBelow(s, fmt.Sprintf("stage %s was taken back", s.ID))
	}
	findings := a.Findings
	if len(findings) == 0 && a.Decision == RequestChanges && !t.run.stays() {
		findings = []Finding{{Category: "defect", Severity: Block, Message: a.Note}}
	}
	for _, x := range findings {
		t.find(s, x, t.e.Actor.Principal)
	}
	if a.Decision == RequestChanges && !t.run.stays() {
		t.sendBack(s)
	}
}

// find records a finding.
func (t *turn) find(s *Stage, x Finding, author string) {
	x.ID, x.Author, x.Round, x.State = fmt.Sprintf("F-%d", len(t.run.Findings)+1), author, s.Round, FindingOpen
	if x.Severity == "" {
		x.Severity = Block
	}
	if x.Target == "" {
		x.Target = t.run.Policy.Categories[policy.Category(x.Category)]
	}
	if x.Target == "" {
		x.Target = "operator"
	}
	actor := t.e.Actor
	if author == kindEngine {
		actor = Engine()
	}
	t.add(&FindingOpened{Head: Head{Actor: actor}, Finding: x}, s)
}

// sendBack reopens the earliest stage that a blocking finding is for.
func (t *turn) sendBack(from *Stage) {
	for i := range t.run.Stages {
		s := &t.run.Stages[i]
		for _, x := range t.run.Findings {
			if x.Target != s.ID || !x.blocks() || x.State != FindingOpen {
				continue
			}
			switch {
			case s.ID == from.ID:
				t.cap(s, s.Round)
			case s.State == Passed, s.State == Stale:
				t.backTo(s, from, "finding "+x.ID)
			}
			return
		}
	}
}

// backTo sends the run back to a stage, unless its rounds are used up.
func (t *turn) backTo(s, from *Stage, why string) {
	var tree evidence.Tree // a plan that does not fit is no fault of the tree
	if s.Role == policy.Developer {
		tree = from.Subject.Tree
	}
	if t.cap(s, s.Round+1) {
		return
	}
	t.add(&Reopened{Head: Head{Actor: Engine()}, Why: why, Round: s.Round + 1, Rejected: tree}, s)
	t.staleBelow(s, "stage "+s.ID+" was reopened: "+why)
}

// cap ends the rounds of a run when a stage came back once too often.
func (t *turn) cap(s *Stage, round int) bool {
	limit := t.run.Policy.Limits.Rounds[s.ID]
	if limit == 0 || round < limit || t.run.waiver("P014", s.ID, t.at) != nil {
		return false
	}
	t.add(&Noted{Head: Head{Actor: Engine()}, What: KindCapped, Note: fmt.Sprintf("stage %s was returned %d times, and the policy allows %d rounds", s.ID, round, limit)}, nil)
	return true
}

// staleBelow makes what stands on a stage stale.
func (t *turn) staleBelow(s *Stage, why string) {
	for _, d := range t.run.downstream(s.ID) {
		if c := table[d.State][MoveInputChanged]; c.to != d.State || d.Failed > 0 {
			t.add(&StaleFact{Head: Head{Actor: Engine()}, Because: why}, d)
		}
	}
}
