package flow

import (
	"fmt"
	"slices"
	"time"

	"github.com/proveto/proveto/internal/flow/policy"
)

// Status is where a run stands as a whole. It is derived, never stored.
type Status string

// The statuses of a run, in the order in which they are looked for.
const (
	StatusCancelled Status = "cancelled"
	StatusExpired   Status = "expired"
	StatusDelivered Status = "delivered"
	StatusApproved  Status = "approved"
	StatusPaused    Status = "paused"
	StatusBlocked   Status = "blocked"
	StatusMeasuring Status = "measuring"
	StatusWaiting   Status = "waiting" // only a human can move it
	StatusOpen      Status = "open"
)

// Statuses lists every status once.
func Statuses() []Status {
	return []Status{StatusCancelled, StatusExpired, StatusDelivered, StatusApproved, StatusPaused, StatusBlocked, StatusMeasuring, StatusWaiting, StatusOpen}
}

// Closed tells a status that nothing leads out of.
func (s Status) Closed() bool {
	return s == StatusCancelled || s == StatusExpired || s == StatusDelivered
}

// The reasons of a run that is blocked.
const (
	ReasonRejected   = "rejected"
	ReasonReturned   = "returned" // under a policy that keeps a returned stage the current one
	ReasonRounds     = "rounds_exhausted"
	ReasonUnmeasured = "unmeasured"
	ReasonRevoked    = "principal_revoked"
)

// Done is the current stage of a run all of whose stages have passed.
const Done = "done"

// Standing is the derived status of a run.
type Standing struct {
	Word    Status
	Reason  string   // of blocked
	Unblock []string // commands that end the block
	Stage   string   // first stage in policy order that is not passed, or done
	// Of waiting: when people are to have decided by the policy's decision_sla;
	// zero where it sets none. Nothing happens then but that status says so.
	DecideBy time.Time
}

// StatusAt derives the status at a time.
func (r *Run) StatusAt(at time.Time) Standing {
	st := Standing{Word: StatusOpen, Stage: Done}
	for i := range r.Stages {
		if r.Stages[i].State != Passed {
			st.Stage = r.Stages[i].ID
			break
		}
	}
	switch {
	case r.Cancelled:
		st.Word = StatusCancelled
	case r.Delivered != nil:
		st.Word = StatusDelivered
	case closedAt(r.Expires, at):
		st.Word = StatusExpired
	case st.Stage == Done:
		st.Word = StatusApproved
	case r.Paused:
		st.Word, st.Reason = StatusPaused, r.Why
	default:
		r.open(&st)
	}
	return st
}

// open tells the statuses of a run that goes on.
func (r *Run) open(st *Standing) {
	if st.Reason, st.Unblock = r.blocked(); st.Reason != "" {
		st.Word = StatusBlocked
		return
	}
	for i := range r.Stages {
		if r.Stages[i].State == Measuring {
			st.Word = StatusMeasuring
			return
		}
	}
	if s := r.Stage(st.Stage); s != nil && s.State == Deciding && r.Approvals(s).HumansNeed > 0 {
		st.Word = StatusWaiting
		if sla := r.Policy.Limits.DecisionSLA; sla > 0 {
			st.DecideBy = s.Since.Add(sla)
		}
	}
}

func (r *Run) blocked() (reason string, unblock []string) {
	for i := range r.Stages {
		s := &r.Stages[i]
		switch {
		case s.State == Rejected && r.stays(), s.State == Returned && r.stays():
			return ReasonReturned, []string{
				fmt.Sprintf("proveto flow advance %s --stage %s --actor %s --decision approve --note TEXT", r.ID, s.ID, s.Role),
				fmt.Sprintf("proveto flow withdraw %s --stage %s --note TEXT", r.ID, s.ID),
			}
		case s.State == Rejected:
			return ReasonRejected, []string{
				fmt.Sprintf("proveto flow reopen %s --to %s --note TEXT", r.ID, s.ID),
				fmt.Sprintf("proveto flow withdraw %s --stage %s --note TEXT", r.ID, s.ID),
			}
		case r.Capped:
			return ReasonRounds, []string{fmt.Sprintf("proveto flow report %s", r.ID), fmt.Sprintf("proveto flow cancel %s --note TEXT", r.ID)}
		case s.State == Ready && s.Failed > r.Policy.Limits.Retries, s.State == Ready && s.Failed > 0 && !s.again():
			return ReasonUnmeasured, []string{fmt.Sprintf("proveto flow measure %s", r.ID)}
		}
	}
	return "", nil
}

// After is what the run is after its last fact.
func (r *Run) After() After {
	st := r.StatusAt(r.Last)
	a := After{Status: st.Word, Reason: st.Reason, CurrentStage: st.Stage, Needs: r.Needs(), Target: r.Target, Repo: r.Repo}
	if !r.Expires.IsZero() {
		a.Expires = r.Expires.UTC().Format(time.RFC3339Nano)
	}
	return a
}

// Approvals counts the approvals of a stage beside what its policy asks for. A
// principal counts once; agents of one operator are one, and no agent is a human.
type Approvals struct {
	Need, Have             int
	HumansNeed, HumansHave int
	Agents                 int // approvals by agents, shown apart
}

// Approvals counts the approvals of the current attempt.
func (r *Run) Approvals(s *Stage) Approvals {
	d := r.decide(s)
	n := Approvals{Need: d.Approvals, HumansNeed: d.Humans}
	people, last := map[string]bool{}, map[string]Given{}
	for _, g := range s.Given {
		if g.Input == s.Input && !g.Withdrawn && g.Void == "" {
			last[g.Actor.Principal] = g
		}
	}
	for name, g := range last {
		if g.Decision != Approve {
			continue
		}
		switch g.Actor.Kind {
		case kindHuman:
			n.HumansHave++
			people["p:"+name] = true
		default:
			n.Agents++
			people["o:"+orText(g.Actor.Operator, name)] = true
		}
	}
	n.Have = len(people)
	return n
}

// decide is what it takes to pass the stage.
func (r *Run) decide(s *Stage) policy.Decide {
	risk := r.Risk
	if risk == "" {
		risk = policy.RiskMedium
	}
	return r.Policy.Decides(s.Stage, risk, s.Producer.Kind == kindAgent)
}

// Needs lists the principals one of whom can move the current stage; sorted. A
// run that moves by itself, or not at all, needs nobody.
func (r *Run) Needs() []string {
	out := []string{}
	st := r.StatusAt(r.Last)
	s := r.Stage(st.Stage)
	if s == nil || st.Word.Closed() || st.Word == StatusMeasuring {
		return out
	}
	role := s.Role
	for i := range r.Stages { // a stage that works beside the current one has nobody waiting
		if x := &r.Stages[i]; x.State == Returned {
			role = x.Role
			break
		}
	}
	out = append(out, r.Holders[string(role)]...)
	slices.Sort(out)
	return out
}
