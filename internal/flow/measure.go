package flow

import (
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
)

// doMeasure takes in the outcome of one gate. What comes from an attempt, or from
// a start of work, that is over is refused: a lost worker reports late.
func (t *turn) doMeasure(a Measure) *fault.Error {
	s := t.run.Stage(a.Stage)
	if s == nil {
		return t.unknownStage(a.Stage)
	}
	if s.Attempt != a.Attempt || s.Fence != a.Fence || !slices.Contains(s.Missing(), a.Gate) {
		return fault.New(fault.Conflict, CodeSuperseded, "gate %s of attempt %d of stage %s was measured for nothing: the stage went on", a.Gate, a.Attempt, a.Stage).
			Hint("proveto flow status %s", t.run.ID)
	}
	if a.Probed != nil {
		p := *a.Probed
		p.Actor = Engine()
		t.add(&p, s)
	}
	if a.Evidence.Outcome == gate.No && len(a.Issues) == 0 {
		a.Issues = []Finding{{Category: t.fault(s), Message: orText(a.Evidence.Reason, "gate "+a.Gate+" says no")}}
	}
	f := &Measured{Head: Head{Actor: Engine()}, Gate: a.Gate, Fence: a.Fence, Evidence: a.Evidence, Merged: a.Merged}
	for _, x := range a.Issues {
		x.Gate = a.Gate
		f.Issues = append(f.Issues, x.key())
	}
	slices.Sort(f.Issues)
	f.Issues = slices.Compact(f.Issues)
	t.add(f, s)
	t.useWaiver(s, a.Gate)
	t.newFindings(s, a)
	if s.State == Returned {
		t.sendBack(s)
	}
	return nil
}

// fault is the category of a no that a gate did not explain.
func (t *turn) fault(s *Stage) string {
	if s.Role == policy.Planner {
		return string(policy.PlanGap)
	}
	return string(policy.Defect)
}

// useWaiver lets a gate that gave no pass through where somebody signed for it.
func (t *turn) useWaiver(s *Stage, name string) {
	e, ok := s.Evidence[name]
	if !ok || t.run.opens(name, e) {
		return
	}
	if w := t.run.waiver(name, s.ID, t.at); w != nil && w.By.Principal != s.Producer.Principal {
		t.add(&WaiverUsed{Head: Head{Actor: Engine()}, Waiver: w.ID, For: name}, s)
	}
}

// newFindings opens what the gate found, and closes what it does not find any
// more.
func (t *turn) newFindings(s *Stage, a Measure) {
	e := s.Evidence[a.Gate]
	if e.Outcome == gate.NotMeasured {
		return
	}
	state, seen := FindingSettled, map[evidence.Digest]bool{}
	if e.Waiver != "" {
		state = FindingWaived
	}
	for _, x := range a.Issues {
		x.Gate = a.Gate
		seen[x.key()] = true
	}
	for i := range t.run.Findings {
		x := t.run.Findings[i]
		if x.Gate != a.Gate || x.done() {
			continue
		}
		if !seen[x.key()] {
			t.add(&FindingClosed{Head: Head{Actor: Engine()}, Finding: x.ID, State: FindingSettled, Why: "measured again and not found"}, s)
		} else if state == FindingWaived {
			t.add(&FindingClosed{Head: Head{Actor: Engine()}, Finding: x.ID, State: state, Why: "waived"}, s)
		}
		delete(seen, x.key())
	}
	for _, x := range a.Issues {
		if x.Gate = a.Gate; !seen[x.key()] {
			continue
		}
		delete(seen, x.key())
		x.Evidence = []string{a.Evidence.ID}
		t.find(s, x, kindEngine)
		if state == FindingWaived {
			t.add(&FindingClosed{Head: Head{Actor: Engine()}, Finding: t.run.Findings[len(t.run.Findings)-1].ID, State: state, Why: "waived"}, s)
		}
	}
}

// Missing lists the gates of a stage that have no outcome yet, in the order of
// the policy.
func (s *Stage) Missing() []string {
	if s.State != Measuring {
		return nil
	}
	var out []string
	for _, g := range s.Gates {
		if _, ok := s.Evidence[g]; !ok {
			out = append(out, g)
		}
	}
	return out
}

// settle follows what happened to its end: stages that became free, stages that
// the engine decides, measurements to try again.
func (t *turn) settle() {
	for moved := true; moved; {
		moved = false
		for i := range t.run.Stages {
			if t.settleStage(&t.run.Stages[i]) {
				moved = true
			}
		}
	}
}

func (t *turn) settleStage(s *Stage) bool {
	closed := t.run.Cancelled || t.run.Paused || t.run.Capped
	switch {
	case closed:
	case s.State == Ready && s.Failed > 0 && s.Failed <= t.run.Policy.Limits.Retries && s.again() && t.run.upstream(s):
		t.engineSubmit(s, s.Subject, s.Producer, s.Failed)
		return true
	case s.State == Deciding && s.Carries != "" && s.passed != nil && !s.vetoed(s.Input):
		t.add(&Carried{Head: Head{Actor: Engine()}, Rule: s.Carries, From: s.passed.attempt, Input: s.Input, Outcome: s.outcome()}, s)
		return true
	case s.State == Deciding && t.engineDecides(s) && !s.vetoed(s.Input):
		t.pass(s, kindEngine)
		return true
	case (s.State == Ready && s.Failed == 0 || s.State == Stale) && t.run.upstream(s):
		return t.byItself(s)
	}
	return false
}

// byItself hands in the subject of a stage where nobody has to: a stage that
// produces nothing, and work that stands while the plan under it changed.
func (t *turn) byItself(s *Stage) bool {
	switch {
	case s.Role == policy.Planner || len(s.Needs) == 0:
		return false
	case s.Role == policy.Developer:
		if s.State != Stale || s.Subject.Tree == "" || t.vetoedTree(s) {
			return false
		}
		sub := s.Subject
		if t.run.Plan != nil {
			sub.Plan = t.run.Plan.ID
		}
		t.engineSubmit(s, sub, s.Producer, 0)
		return true
	}
	sub := t.run.tree()
	sub.Note = ""
	if rule, ok := t.carries(s, sub); ok {
		t.engineCarry(s, sub, rule)
		return true
	}
	t.engineSubmit(s, sub, Engine(), 0)
	return true
}

func (t *turn) vetoedTree(s *Stage) bool {
	return slices.ContainsFunc(s.Vetoes, func(v Veto) bool { return v.Tree == s.Subject.Tree && !v.Withdrawn })
}

// carries is guard 12: a rule of the policy keeps a pass although an input
// changed.
func (t *turn) carries(s *Stage, sub Subject) (string, bool) {
	if s.State != Stale || s.passed == nil || s.passed.plan != sub.Plan || s.vetoed(s.Input) {
		return "", false
	}
	for _, rule := range t.run.Policy.Carry[s.ID] {
		old := s.passed.subject
		if rule == policy.SameTree && old.Tree != "" && old.Tree == sub.Tree || rule == policy.SameDiff && old.Diff != "" && old.Diff == sub.Diff {
			return string(rule), true
		}
	}
	return "", false
}

// again tells a stage whose failed measurement may do better on another try.
func (s *Stage) again() bool {
	for _, e := range s.Evidence {
		if e.Outcome == gate.NotMeasured && (e.Code == gate.CodeTimedOut || e.Code == gate.CodeUnmeasured) {
			return true
		}
	}
	return false
}

// engineDecides tells a stage that nobody has to approve.
func (t *turn) engineDecides(s *Stage) bool {
	if t.run.decide(s).Engine {
		return true
	}
	if len(s.Gates) == 0 {
		return false
	}
	n := t.run.Approvals(s)
	return n.Need == 0 && n.HumansNeed == 0
}
