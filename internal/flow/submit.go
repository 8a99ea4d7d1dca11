package flow

import (
	"fmt"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/flow/policy"
)

func (t *turn) doTake(a Take) *fault.Error {
	return t.onStage(a.Stage, func(s *Stage) *fault.Error {
		if err := t.role(s); err != nil {
			return err
		}
		t.endLease(s)
		if _, err := t.move(s, MoveTake); err != nil {
			return err
		}
		if err := t.turnOf(s); err != nil {
			return err
		}
		t.add(&TakenFact{Until: t.at.Add(t.run.Policy.Limits.Lease), Fence: s.Fence + 1}, s)
		return nil
	})
}

// endLease ends a lease that is over.
func (t *turn) endLease(s *Stage) {
	if s.State == Taken && s.Lease != nil && !t.at.Before(s.Lease.Until) {
		t.add(&LeaseLost{Head: Head{Actor: Engine()}, Why: "its time is over"}, s)
	}
}

func (t *turn) doRelease(a Release) *fault.Error {
	return t.onStage(a.Stage, func(s *Stage) *fault.Error {
		if s.State != Taken || s.Lease == nil {
			return fault.New(fault.Refused, CodeOutOfOrder, "stage %s of run %s has no lease to release", s.ID, t.run.ID).
				Hint("proveto flow status %s", t.run.ID)
		}
		if s.Lease.Holder.Principal != t.e.Actor.Principal {
			if err := t.right("release"); err != nil {
				return err
			}
			if blankText(a.Note) {
				return t.noteMissing("release of the lease of somebody else")
			}
		}
		t.add(&LeaseLost{Why: orText(a.Note, "released by its holder")}, s)
		return nil
	})
}

func (t *turn) doLoseLease(a LoseLease) *fault.Error {
	return t.onStage(a.Stage, func(s *Stage) *fault.Error {
		if s.State == Taken {
			t.add(&LeaseLost{Head: Head{Actor: Engine()}, Why: a.Why}, s)
		}
		return nil
	})
}

// submit hands in the subject of a stage.
func (t *turn) submit(s *Stage, sub Submission) *fault.Error {
	if err := t.role(s); err != nil {
		return err
	}
	t.endLease(s)
	if l := s.Lease; s.State == Taken && l != nil && (l.Holder.Principal != t.e.Actor.Principal || l.Holder.Launch != t.e.Actor.Launch) {
		return fault.New(fault.Refused, CodeLeaseHeld, "stage %s of run %s is taken by %s until %s", s.ID, t.run.ID, l.Holder.Principal, l.Until.Format(timeFormat)).
			Hint("proveto flow status %s", t.run.ID)
	}
	if !t.stayAgain(s, sub.Note) {
		if _, err := t.move(s, MoveSubmit); err != nil {
			return err
		}
	}
	if err := t.turnOf(s); err != nil {
		return err
	}
	if err := t.capped(s); err != nil {
		return err
	}
	if s.Role == policy.Planner {
		return t.submitPlan(s, sub)
	}
	return t.submitWork(s, sub)
}

// turnOf is the part of guard 1 about what stands above a stage: one that is stale
// or came back is no longer locked, and waits all the same.
func (t *turn) turnOf(s *Stage) *fault.Error {
	for _, id := range s.Needs {
		if n := t.run.Stage(id); n == nil || n.State != Passed {
			return fault.New(fault.Refused, CodeOutOfOrder, "stage %s of run %s is %s, and its turn comes when stage %s has passed", s.ID, t.run.ID, s.State, id).
				Hint("proveto flow status %s", t.run.ID)
		}
	}
	return nil
}

// stayAgain tells a new attempt at a stage that was rejected, under a policy that
// keeps such a stage.
func (t *turn) stayAgain(s *Stage, note string) bool {
	return t.run.stays() && (s.State == Returned || s.State == Rejected) && !blankText(note)
}

func (t *turn) submitPlan(s *Stage, sub Submission) *fault.Error {
	if sub.Subject.Plan == "" || len(sub.Contract) == 0 {
		return fault.New(fault.Refused, CodeNothingSubmitted, "stage %s of run %s needs a plan", s.ID, t.run.ID).
			Hint("proveto flow plan new %s", t.run.ID)
	}
	f := &PlanSubmitted{
		Plan: sub.Subject.Plan, Revision: 1, Contract: sub.Contract, PlanKind: sub.PlanKind, Gates: t.gates(s), Fence: s.Fence + 1, Note: sub.Note, Signed: sub.Signed,
	}
	if p := t.run.Proposed; p != nil {
		f.Revision = p.Revision + 1
	}
	if p := t.run.Plan; p != nil {
		f.Supersedes = p.ID
	}
	f.Attempt = s.Attempt + 1
	f.Input = t.run.input(s, f.Attempt, Subject{Plan: f.Plan, Note: sub.Subject.Note}, f.Gates)
	t.add(f, s)
	return nil
}

func (t *turn) submitWork(s *Stage, sub Submission) *fault.Error {
	if err := t.planned(s, sub); err != nil {
		return err
	}
	subject := sub.Subject
	if t.run.Plan != nil {
		if subject.Plan != "" && subject.Plan != t.run.Plan.ID {
			return fault.New(fault.Refused, CodePlanSuperseded, "the work is for plan %.17s…, and plan %.17s… holds now", subject.Plan, t.run.Plan.ID).
				Hint("proveto flow plan show %s", t.run.ID)
		}
		subject.Plan = t.run.Plan.ID
	}
	if len(s.Gates) > 0 && s.Role == policy.Developer {
		if err := t.freshTree(s, sub); err != nil {
			return err
		}
	}
	if err := t.answeredAll(s); err != nil {
		return err
	}
	f := &Submitted{
		Subject: subject, Gates: t.gates(s), Fence: s.Fence + 1, Note: sub.Note, Signed: sub.Signed, Token: sub.Token, Unplanned: sub.Unplanned, Risk: sub.Risk,
	}
	f.Attempt = s.Attempt + 1
	f.Input = t.run.input(s, f.Attempt, subject, f.Gates)
	t.add(f, s)
	if sub.Unplanned {
		if w := t.run.waiver(WaiveUnplanned, s.ID, t.at); w != nil {
			t.add(&WaiverUsed{Head: Head{Actor: Engine()}, Waiver: w.ID, For: WaiveUnplanned}, s)
		}
	}
	return nil
}

// freshTree is the part of guard 2 about trees.
func (t *turn) freshTree(s *Stage, sub Submission) *fault.Error {
	switch {
	case sub.Subject.Tree == "":
		return fault.New(fault.Refused, CodeNothingSubmitted, "stage %s of run %s needs a snapshot of the work", s.ID, t.run.ID).
			Hint("proveto flow submit %s --snapshot .", t.run.ID)
	case sub.Empty:
		return fault.New(fault.Refused, CodeEmptySubmission, "the snapshot is the tree of the base: nothing was changed").
			Hint("proveto flow plan show %s", t.run.ID)
	}
	for _, v := range s.Vetoes {
		if v.Tree == sub.Subject.Tree && !v.Withdrawn {
			return fault.New(fault.Refused, CodeSameTree, "tree %.12s was returned or rejected at stage %s before: a new message does not change it", v.Tree, s.ID).
				Hint("proveto flow feedback %s", t.run.ID)
		}
	}
	return nil
}

// answeredAll is the part of guard 2 about findings: the bundle of the round
// reached the submitter, and each blocking finding is answered.
func (t *turn) answeredAll(s *Stage) *fault.Error {
	if len(s.Gates) == 0 {
		return nil
	}
	var open []string
	blocking := false
	for _, x := range t.run.Findings {
		if x.Target == s.ID && x.blocks() {
			blocking = true
			if x.State == FindingOpen {
				open = append(open, x.ID)
			}
		}
	}
	who := t.e.Actor.Principal
	if t.e.Actor.Launch != "" {
		who = t.e.Actor.Launch
	}
	round, got := t.run.Delivery[who]
	switch {
	case len(open) > 0:
		return fault.New(fault.Refused, CodeFindingsOpen, "findings %s are not answered", Some(open)).
			Hint("proveto flow feedback %s", t.run.ID).Hint("proveto flow answer %s %s --addressed", t.run.ID, open[0])
	case blocking && (!got || round < s.Round):
		return fault.New(fault.Refused, CodeFindingsOpen, "the feedback of round %d was not delivered to %s", s.Round, who).
			Hint("proveto flow feedback %s", t.run.ID)
	}
	return nil
}

// planned is the part of guard 2 about the token of the plan.
func (t *turn) planned(s *Stage, sub Submission) *fault.Error {
	if s.Role != policy.Developer || t.run.Plan == nil {
		return nil
	}
	switch {
	case sub.Token != "" && sub.Unplanned:
		return fault.New(fault.Usage, CodeContradictory, "--plan-token and --allow-unplanned contradict each other: give one of them")
	case sub.Token != "":
		return t.shown(sub.Token)
	case sub.Unplanned:
		return t.unplanned(s, sub)
	case sub.NeedToken:
		return t.shown("")
	}
	return nil
}

// shown compares the token that was shown with the one of the plan.
func (t *turn) shown(token string) *fault.Error {
	err := plan.Token(t.run.Plan.Token).Accept(token)
	if err == nil {
		return nil
	}
	e := *fault.From(err)
	e.Hints = []string{fmt.Sprintf("proveto flow status %s --format kv", t.run.ID)}
	return &e
}

func (t *turn) unplanned(s *Stage, sub Submission) *fault.Error {
	switch t.run.Policy.Unplanned {
	case policy.UnplannedNote:
		if blankText(sub.Note) {
			return t.noteMissing("--allow-unplanned")
		}
		return nil
	case policy.UnplannedWaiver:
		if t.e.Actor.Kind == kindAgent {
			return fault.New(fault.Refused, CodeNotPermitted, "no agent may go ahead without the token of the plan").
				Hint("proveto flow amend %s --note TEXT", t.run.ID)
		}
		w := t.run.waiver(WaiveUnplanned, s.ID, t.at)
		if w == nil || w.By.Kind != kindHuman || w.By.Principal == t.e.Actor.Principal {
			return fault.New(fault.Refused, CodeWaiverMissing, "--allow-unplanned needs a waiver that another person signed before").
				Hint("proveto flow amend %s --note TEXT", t.run.ID)
		}
		return nil
	}
	return fault.New(fault.Refused, CodeNotPermitted, "the policy of run %s allows no work without the token of the plan", t.run.ID).
		Hint("proveto flow status %s --format kv", t.run.ID)
}

// capped is guard 11 for a stage whose rounds are used up.
func (t *turn) capped(s *Stage) *fault.Error {
	if !t.run.Capped || t.run.waiver("P014", s.ID, t.at) != nil {
		return nil
	}
	return fault.New(fault.Refused, CodeRoundsExhausted, "the rounds of run %s are used up: %s", t.run.ID, t.run.Why).
		Hint("proveto flow report %s", t.run.ID)
}

// engineSubmit lets a stage judge what its upstream stages passed.
func (t *turn) engineSubmit(s *Stage, subject Subject, producer Actor, retry int) {
	t.byEngine(s, subject, Submitted{Head: Head{Actor: producer}, Retry: retry})
}

// engineCarry does the same for a stage whose last pass stands by a rule of the
// policy, once its gates pass.
func (t *turn) engineCarry(s *Stage, subject Subject, rule string) {
	t.byEngine(s, subject, Submitted{Head: Head{Actor: Engine()}, Carries: rule})
}

func (t *turn) byEngine(s *Stage, subject Subject, f Submitted) {
	f.Attempt, f.Subject, f.Gates, f.Fence = s.Attempt+1, subject, t.gates(s), s.Fence+1
	f.Input = t.run.input(s, f.Attempt, subject, f.Gates)
	t.add(&f, s)
}

// remeasure starts the gates of a stage again whose measurement failed.
func (t *turn) remeasure(s *Stage) *fault.Error {
	switch {
	case s.State == Ready && s.Failed > 0 && t.run.upstream(s):
		f := &Submitted{
			Head: Head{Actor: s.Producer, Attempt: s.Attempt + 1}, Subject: s.Subject, Gates: t.gates(s), Fence: s.Fence + 1,
		}
		f.Input = t.run.input(s, f.Attempt, s.Subject, f.Gates)
		t.add(f, s)
	case s.State == Measuring:
	case (s.State == Stale || s.State == Ready && !policy.Produces(s.Stage)) && t.run.upstream(s): // it is handed in again by itself
	default:
		return fault.New(fault.Refused, CodeOutOfOrder, "stage %s of run %s is %s: there is nothing to measure", s.ID, t.run.ID, s.State).
			Hint("proveto flow status %s", t.run.ID)
	}
	return nil
}
