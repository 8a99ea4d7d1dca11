package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/flow/policy"
)

// Requirement is a requirement of the plan as it is measured.
type Requirement struct {
	ID, Text     string
	State        evidence.Word
	Reason       string // why it is not proven
	Certificates []evidence.Digest
}

// Requirements are those of the plan that binds, in its order; none without one.
func (r *Run) Requirements() []Requirement {
	if r.Plan == nil {
		return nil
	}
	var c struct {
		Requirements []struct {
			ID   string `json:"id"`
			Text string `json:"text"`
		} `json:"requirements"`
	}
	if err := json.Unmarshal(r.Plan.Contract, &c); err != nil {
		return nil
	}
	var out []Requirement
	for _, q := range c.Requirements {
		out = append(out, Requirement{ID: q.ID, Text: q.Text, State: evidence.NotMeasured, Reason: "no gate has measured it yet"})
	}
	for i := range r.Stages {
		s := &r.Stages[i]
		e, ok := s.Evidence[policy.ProveRequirements]
		if !ok {
			continue
		}
		for j := range out {
			q := &out[j]
			m, said := e.Requirements[q.ID]
			switch {
			case !said:
			case s.State == Stale || s.Subject.Plan != r.Plan.ID:
				q.State, q.Reason = evidence.Stale, orText(s.Because, "the plan is another one")
			case m.State == evidence.Proven:
				q.State, q.Reason, q.Certificates = m.State, "", m.Certificates
			default:
				q.State, q.Reason = m.State, e.Reason
			}
		}
	}
	return out
}

// Separated is how a rule of separation stands.
type Separated struct {
	Rule  string
	State string // holds, violated, not_enforced
	Note  string
}

// NotEnforced is said of a run whose base names no principals.
const NotEnforced = "1 principal, separation not enforced"

// Separated says how each rule of separation stands, whoever decides next.
func (r *Run) Separated() []Separated {
	var out []Separated
	for _, rule := range r.Policy.Separation {
		v := Separated{Rule: fmt.Sprintf("%s distinct by %s", strings.Join(rule.Distinct, ", "), rule.By), State: "holds"}
		for _, id := range rule.Distinct {
			s := r.Stage(id)
			if s == nil {
				continue
			}
			for _, g := range s.Standing() {
				for _, o := range r.Overlaps(s, g.Actor) {
					if slices.Equal(o.Rule.Distinct, rule.Distinct) && o.Rule.By == rule.By {
						v.State, v.Note = "violated", fmt.Sprintf("%s %s contributed to %s and decided on %s", rule.By, o.Who, o.Stage, id)
					}
				}
			}
		}
		if !r.Enforced {
			v.Note = strings.TrimSpace(NotEnforced + ". " + v.Note)
			if v.State == "holds" {
				v.State = "not_enforced"
			}
		}
		out = append(out, v)
	}
	return out
}

// Standing are the approvals that the current attempt of a stage stands by: those
// on it, or, when its pass is carried, those on the attempt that it is carried
// from. Of a principal the last word counts.
func (s *Stage) Standing() []Given {
	given, carried := s.Given, s.Carried
	for n := s.Attempt; len(given) == 0 && carried != nil; {
		i := slices.IndexFunc(s.Past, func(a Attempt) bool { return a.N == carried.From })
		if i < 0 || s.Past[i].N >= n {
			return nil
		}
		n, given, carried = s.Past[i].N, s.Past[i].Given, s.Past[i].Carried
	}
	var out []Given
	for i, g := range given {
		again := slices.ContainsFunc(given[i+1:], func(x Given) bool { return x.Actor.Principal == g.Actor.Principal && !x.Withdrawn && x.Void == "" })
		if g.Decision == Approve && !g.Withdrawn && g.Void == "" && !again {
			out = append(out, g)
		}
	}
	return out
}
