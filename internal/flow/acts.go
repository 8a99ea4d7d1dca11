package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/policy"
)

// withdraw takes back a submission, or a veto, by who made it.
func (t *turn) withdraw(s *Stage, a Withdraw) *fault.Error {
	if _, err := t.move(s, MoveWithdraw); err != nil {
		return err
	}
	if blankText(a.Note) {
		return t.noteMissing("withdraw")
	}
	if s.State != Returned && s.State != Rejected {
		if who := t.holder(s); who.Principal != t.e.Actor.Principal || who.Launch != t.e.Actor.Launch {
			return fault.New(fault.Refused, CodeNotPermitted, "only %s, whose work it is, may withdraw it from stage %s", who.Principal, s.ID).
				Hint("proveto flow status %s", t.run.ID)
		}
		t.add(&Withdrawn{Note: a.Note}, s)
		return nil
	}
	for i := len(s.Given) - 1; i >= 0; i-- {
		g := s.Given[i]
		veto := g.Decision == Reject || g.Decision == RequestChanges
		if !veto || g.Withdrawn || a.Decision != "" && a.Decision != g.ID || g.Actor.Principal != t.e.Actor.Principal {
			continue
		}
		t.add(&Withdrawn{Decision: g.ID, Note: a.Note}, s)
		return nil
	}
	return fault.New(fault.Refused, CodeNotPermitted, "%s has no veto on stage %s to withdraw: only its author may", t.e.Actor.Principal, s.ID).
		Hint("proveto flow status %s", t.run.ID)
}

// holder is whose work a stage holds.
func (t *turn) holder(s *Stage) Actor {
	if s.State == Taken && s.Lease != nil {
		return s.Lease.Holder
	}
	return s.Producer
}

// reopenByHand sends the run back to a stage; guard 11.
func (t *turn) reopenByHand(s *Stage, a Reopen) *fault.Error {
	if err := t.right("reopen"); err != nil {
		return err
	}
	if _, err := t.move(s, MoveReopen); err != nil {
		return err
	}
	if blankText(a.Note) {
		return t.noteMissing("reopen")
	}
	if limit := t.run.Policy.Limits.Rounds[s.ID]; t.run.Capped || limit > 0 && s.Round+1 >= limit {
		if t.run.waiver("P014", s.ID, t.at) == nil {
			return fault.New(fault.Refused, CodeRoundsExhausted, "stage %s of run %s came back %d times, and the policy allows %d rounds", s.ID, t.run.ID, s.Round, limit).
				Hint("proveto flow report %s", t.run.ID)
		}
	}
	f := &Reopened{Why: a.Note, Round: s.Round + 1}
	if s.Role == policy.Developer && s.State == Rejected {
		f.Rejected = s.Subject.Tree
	}
	t.add(f, s)
	t.staleBelow(s, "stage "+s.ID+" was reopened: "+a.Note)
	return nil
}

// invalidate makes a pass stale because something under it does not hold any
// more: a decision by a revoked key, a target that moved.
func (t *turn) invalidate(s *Stage, a Invalidate) *fault.Error {
	if s.State != Passed && len(a.Void) == 0 {
		return nil
	}
	was := s.State
	t.add(&StaleFact{Head: Head{Actor: Engine()}, Because: a.Because, Void: a.Void}, s)
	if len(a.Void) == 0 || was == Passed && s.State != Passed {
		t.staleBelow(s, "stage "+s.ID+" is stale: "+a.Because)
	}
	return nil
}

// MaxWaiver is how long a waiver may hold.
const MaxWaiver = 30 * 24 * time.Hour

func (t *turn) waive(a Waive) *fault.Error {
	s := t.run.Stage(a.Stage)
	if a.Stage != "" && s == nil {
		return t.unknownStage(a.Stage)
	}
	if err := t.right("waive:" + a.Gate); err != nil {
		return err
	}
	if t.e.Actor.Kind != kindHuman {
		return fault.New(fault.Refused, CodeNotPermitted, "a waiver needs a human: %s is of kind %s", t.e.Actor.Principal, t.e.Actor.Kind).
			Hint("proveto flow principals list")
	}
	if blankText(a.Reason) {
		return t.noteMissing("waive")
	}
	if !a.Expires.After(t.at) || a.Expires.After(t.at.Add(MaxWaiver)) {
		return fault.New(fault.Usage, "usage", "a waiver ends within 30 days, and after now").Hint("proveto flow waive %s --gate %s --reason TEXT --expires 24h", t.run.ID, a.Gate)
	}
	if unwaivable[a.Gate] {
		return fault.New(fault.Refused, CodeNotPermitted, "%s cannot be waived", a.Gate).Hint("proveto flow status %s", t.run.ID)
	}
	for i := range t.run.Stages {
		x := &t.run.Stages[i]
		if (s == nil || s.ID == x.ID) && slices.Contains(x.Gates, a.Gate) && t.enforcedSame(x) {
			return fault.New(fault.Refused, CodeSeparation, "%s contributed to stage %s and may not waive its gate %s", t.e.Actor.Principal, x.ID, a.Gate).
				Hint("proveto flow principals list")
		}
	}
	t.add(&Waived{ID: a.ID, Gate: a.Gate, Paths: a.Paths, Reason: a.Reason, Expires: a.Expires, Signed: a.Signed}, s)
	for i := range t.run.Stages {
		x := &t.run.Stages[i]
		if (s == nil || s.ID == x.ID) && slices.Contains(x.Gates, a.Gate) && !t.run.opens(a.Gate, x.Evidence[a.Gate]) && x.Evidence[a.Gate].ID != "" {
			t.useWaiver(x, a.Gate)
			for _, y := range slices.Clone(t.run.Findings) {
				if y.Gate == a.Gate && !y.done() {
					t.add(&FindingClosed{Head: Head{Actor: Engine()}, Finding: y.ID, State: FindingWaived, Why: "waived"}, x)
				}
			}
		}
	}
	return nil
}

// enforcedSame tells a waiver by somebody whose own work the gate judges.
func (t *turn) enforcedSame(s *Stage) bool {
	if !t.run.Enforced {
		return false
	}
	same := func(a Actor) bool { return a.Principal == t.e.Actor.Principal || a.Operator == t.e.Actor.Principal }
	if dev := t.run.developer(); dev != nil && s.Role != policy.Planner && slices.ContainsFunc(dev.Producers, same) {
		return true
	}
	return slices.ContainsFunc(s.Producers, same)
}

// unwaivable are the codes and gates that nobody can sign away.
var unwaivable = map[string]bool{"P003": true, "P009": true, "P012": true, "P013": true, "findings.closed": true}

func (t *turn) answerFinding(a Answer) *fault.Error {
	x := t.run.Finding(a.Finding)
	if x == nil {
		return fault.New(fault.NotFound, CodeNotFound, "run %s has no finding %.40q", t.run.ID, a.Finding).Hint("proveto flow feedback %s", t.run.ID)
	}
	if x.done() {
		return fault.New(fault.Refused, CodeOutOfOrder, "finding %s is %s already", x.ID, x.State).Hint("proveto flow feedback %s", t.run.ID)
	}
	if a.Close {
		return t.closeFinding(x, a)
	}
	if a.Addressed == a.Disputed {
		return fault.New(fault.Usage, "usage", "an answer is --addressed or --disputed").Hint("proveto flow answer %s %s --addressed", t.run.ID, x.ID)
	}
	if a.Disputed && blankText(a.Note) {
		return t.noteMissing("a dispute")
	}
	s := t.run.Stage(x.Target)
	if s != nil {
		if err := t.role(s); err != nil {
			return err
		}
	}
	t.add(&FindingAnswered{Finding: x.ID, Addressed: a.Addressed, Disputed: a.Disputed, Paths: a.Paths, Note: a.Note}, s)
	return nil
}

func (t *turn) closeFinding(x *Finding, a Answer) *fault.Error {
	if x.Author == kindEngine {
		return fault.New(fault.Refused, CodeNotPermitted, "finding %s is the engine's: it closes when its gate is measured again and does not find it", x.ID).
			Hint("proveto flow measure %s", t.run.ID)
	}
	if blankText(a.Note) {
		return t.noteMissing("closing a finding")
	}
	if x.Author != t.e.Actor.Principal {
		// Who is gone closes nothing any more.
		other := (x.Disputes >= 2 || slices.Contains(t.e.Gone, x.Author)) && slices.ContainsFunc(t.e.Roles, func(r policy.Role) bool { return r != policy.Developer && r != policy.Planner })
		if dev := t.run.Stage(x.Target); dev != nil && slices.ContainsFunc(dev.Producers, func(p Actor) bool { return p.Principal == t.e.Actor.Principal }) {
			other = false
		}
		if !other {
			return fault.New(fault.Refused, CodeNotPermitted, "finding %s is %s's: only they may close it", x.ID, x.Author).
				Hint("proveto flow answer %s %s --disputed --note TEXT", t.run.ID, x.ID)
		}
	}
	t.add(&FindingClosed{Finding: x.ID, State: FindingSettled, Why: "closed by " + t.e.Actor.Principal, Note: a.Note}, nil)
	return nil
}

// amend says that the plan does not fit: the planner's stage opens again.
func (t *turn) amend(a Amend) *fault.Error {
	dev := t.run.developer()
	if dev == nil || t.run.Plan == nil {
		return fault.New(fault.Refused, CodeOutOfOrder, "run %s has no accepted plan to amend", t.run.ID).Hint("proveto flow status %s", t.run.ID)
	}
	if err := t.role(dev); err != nil {
		return err
	}
	if blankText(a.Note) {
		return t.noteMissing("amend")
	}
	t.find(dev, Finding{Category: "plan_gap", Severity: Block, Message: a.Note}, t.e.Actor.Principal)
	t.sendBack(dev)
	return nil
}

// rebase pins another base. A snapshot that applies there is handed in again;
// one that does not reopens the developer's stage.
func (t *turn) rebase(a Rebase) *fault.Error {
	if blankText(a.Note) {
		a.Note = "rebase"
	}
	f := a.Rebased
	t.add(&f, nil)
	dev := t.run.developer()
	for i := range t.run.Stages {
		s := &t.run.Stages[i]
		if s.Role == policy.Planner { // the contract stands; its lint is asked again with the next revision
			continue
		}
		if c := table[s.State][MoveInputChanged]; c.to != s.State || s.Failed > 0 {
			t.add(&StaleFact{Head: Head{Actor: Engine()}, Because: "the base is another one"}, s)
		}
	}
	switch {
	case dev == nil || dev.Attempt == 0:
	case a.Subject == nil:
		t.find(dev, Finding{
			Category: "defect", Severity: Block, Message: fmt.Sprintf("the work does not apply to the new base: conflicts in %s", Some(a.Conflicts)),
		}, kindEngine)
		t.backTo(dev, dev, "conflict with the new base")
	case t.run.upstream(dev):
		t.engineSubmit(dev, *a.Subject, dev.Producer, 0)
	}
	return nil
}

func (t *turn) deliver(a Deliver) *fault.Error {
	if err := t.right("deliver"); err != nil {
		return err
	}
	if st := t.run.StatusAt(t.at); st.Word != StatusApproved {
		return fault.New(fault.Refused, CodeOutOfOrder, "run %s is %s, at stage %s: only an approved run is delivered", t.run.ID, st.Word, st.Stage).
			Hint("proveto flow status %s", t.run.ID)
	}
	for i := range t.run.Stages {
		s := &t.run.Stages[i]
		for _, g := range s.Gates {
			if e := s.Evidence[g]; e.Waiver != "" && t.run.waiver(g, s.ID, t.at) == nil {
				return fault.New(fault.Refused, "expired", "gate %s of stage %s passed by waiver %s, which is over", g, s.ID, e.Waiver).
					Hint("proveto flow reopen %s --to %s --note TEXT", t.run.ID, s.ID)
			}
		}
	}
	f := a.Delivered
	t.add(&f, nil)
	return nil
}

// Some lists the first few of many.
func Some(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// refusal is the error of a move that the table refuses in a state.
func (t *turn) refusal(s *Stage, m Move, code fault.Code) *fault.Error {
	what := fmt.Sprintf("%s is not possible: stage %s of run %s is %s", strings.ReplaceAll(string(m), "_", " "), s.ID, t.run.ID, s.State)
	kind := fault.Refused
	if code == CodeBusy {
		kind = fault.Conflict
	}
	e := fault.New(kind, code, "%s", what)
	switch code {
	case CodeEvidenceMissing:
		for _, g := range s.Gates {
			e = e.Hint("proveto flow measure %s --gate %s", t.run.ID, g)
		}
	case CodeVetoStands:
		e = e.Hint("proveto flow feedback %s", t.run.ID)
	}
	if st := t.run.StatusAt(t.at); s.State == Locked {
		e.What += fmt.Sprintf(" until stage %s has passed", st.Stage)
	}
	return e.Hint("proveto flow status %s", t.run.ID)
}
