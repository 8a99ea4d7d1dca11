package flow

import (
	"github.com/proveto/proveto/internal/fault"
)

// Copy is the run on its own: changing one leaves the other as it is.
func (r *Run) Copy() Run { return r.clone() }

// Asked is what an event asks for, as canonical JSON can hold it: equal for the
// same request made twice, although times, ids and signatures differ.
func Asked(e Event) map[string]any {
	m := map[string]any{"verb": e.Do.verb(), "principal": e.Actor.Principal, "role": e.Actor.Role}
	switch a := e.Do.(type) {
	case Open:
		m["task"], m["project"], m["base"], m["target"], m["policy"], m["after"] = a.Task, a.Project, a.Base, a.Target, a.Policy, a.AfterRun
	case Take:
		m["stage"] = a.Stage
	case Release:
		m["stage"], m["note"] = a.Stage, a.Note
	case Submit:
		m["stage"] = a.Stage
		a.asked(m)
	case Decide:
		m["stage"], m["decision"], m["note"], m["findings"] = a.Stage, a.Decision, a.Note, a.Findings
		a.asked(m)
	case Withdraw:
		m["stage"], m["decision"], m["note"] = a.Stage, a.Decision, a.Note
	case Reopen:
		m["stage"], m["note"] = a.Stage, a.Note
	case Waive:
		m["gate"], m["stage"], m["reason"], m["paths"] = a.Gate, a.Stage, a.Reason, a.Paths
	case Answer:
		m["finding"], m["addressed"], m["disputed"], m["close"], m["paths"], m["note"] = a.Finding, a.Addressed, a.Disputed, a.Close, a.Paths, a.Note
	case Amend:
		m["note"] = a.Note
	case Say:
		m["stage"], m["text"] = a.Stage, a.Text
	case Pause:
		m["note"] = a.Note
	case Resume:
		m["note"] = a.Note
	case Cancel:
		m["note"] = a.Note
	case Rebase:
		m["base"] = a.Base
	case Deliver:
		m["ref"], m["tree"] = a.Ref, a.Tree
	case Export:
		m["ref"], m["tree"] = a.Ref, a.Tree
	}
	return m
}

func (s Submission) asked(m map[string]any) {
	m["plan"], m["tree"], m["token"], m["unplanned"] = s.Subject.Plan, s.Subject.Tree, s.Token, s.Unplanned
	m["subject_note"] = s.Subject.Note
}

// Refusal is the fact that a request was refused. The claimed actor is what the
// request said, whoever it was.
func Refusal(e Event, err *fault.Error, claimed string) Refused {
	r := Refused{Head: Head{Actor: e.Actor}, Code: err.Code, What: err.Error(), Claim: claimed}
	if r.Actor.Principal == "" {
		r.Actor = Actor{Principal: "unknown", Kind: "unknown"}
	}
	switch a := e.Do.(type) {
	case nil:
		return r
	case Decide:
		r.Stage, r.Input, r.Token = a.Stage, a.Input, a.Token
	case Submit:
		r.Stage, r.Token = a.Stage, a.Token
	case Take:
		r.Stage = a.Stage
	case Release:
		r.Stage = a.Stage
	case Withdraw:
		r.Stage = a.Stage
	case Reopen:
		r.Stage = a.Stage
	case Waive:
		r.Stage = a.Stage
	}
	r.Verb = e.Do.verb()
	return r
}
