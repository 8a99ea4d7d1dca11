package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/policy"
)

// Overlap is a rule of separation of duties that does not hold for a decider.
type Overlap struct {
	Rule  policy.Separation
	Stage string // where the same one contributed
	Who   string // principal, operator, launch or model
}

// separated asks every rule about the actor's approval of a stage. The overlaps
// that are only reported come back; the first that refuses is the error.
func (t *turn) separated(s *Stage) ([]Overlap, *fault.Error) {
	overlaps := t.run.Overlaps(s, t.e.Actor)
	for _, o := range overlaps {
		if t.e.Actor.Kind == kindAgent || t.run.Enforced && o.Rule.OnViolation == policy.Refuse {
			return nil, fault.New(fault.Refused, CodeSeparation, "%s %s contributed to stage %s and may not decide on stage %s (distinct: %s, by %s)",
				o.Rule.By, o.Who, o.Stage, s.ID, strings.Join(o.Rule.Distinct, ", "), o.Rule.By).
				Hint("proveto flow status %s", t.run.ID)
		}
	}
	return overlaps, nil
}

// Overlaps lists the rules of the policy that somebody's decision on a stage
// would break. Contributors come from the records of the run alone.
func (r *Run) Overlaps(s *Stage, who Actor) []Overlap {
	var out []Overlap
	for _, rule := range r.Policy.Separation {
		if !slices.Contains(rule.Distinct, s.ID) {
			continue
		}
		mine := facet(rule.By, who)
		if mine == "" {
			continue
		}
		for _, id := range rule.Distinct {
			other := r.Stage(id)
			if other == nil || other.ID == s.ID {
				continue
			}
			if slices.ContainsFunc(r.contributors(other), func(a Actor) bool { return facet(rule.By, a) == mine }) {
				out = append(out, Overlap{Rule: rule, Stage: id, Who: mine})
				break
			}
		}
	}
	return out
}

// contributors are those who made what a stage stands on: every producer of its
// work in this run, and who approved it.
func (r *Run) contributors(s *Stage) []Actor {
	var out []Actor
	if s.Producer.Kind != kindEngine && s.Attempt > 0 {
		out = append(out, s.Producer)
	}
	out = append(out, s.Producers...)
	for _, g := range s.Given {
		if g.Decision == Approve && !g.Withdrawn && g.Void == "" {
			out = append(out, g.Actor)
		}
	}
	for _, x := range r.Answers {
		if x.Stage == s.ID {
			out = append(out, x.Actor)
		}
	}
	return out
}

// Answered says who answered a finding of which stage.
type Answered struct {
	Stage string
	Actor Actor
}

// facet is the part of an actor that a rule compares; empty when the actor has
// none.
func facet(by policy.SeparateBy, a Actor) string {
	switch by {
	case policy.ByPrincipal:
		return a.Principal
	case policy.ByOperator: // a human operates their own work
		if a.Kind == kindHuman {
			return a.Principal
		}
		return a.Operator
	case policy.ByLaunch:
		return a.Launch
	case policy.ByModel:
		return a.Model
	}
	panic(fmt.Sprintf("no separation by %s", by)) // the decoder of policies refuses it
}
