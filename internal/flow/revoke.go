package flow

import (
	"slices"
	"time"

	"github.com/proveto/proveto/internal/flow/policy"
)

// Doubt is what is not believed any more. Each function gives the reason, or
// nothing where there is no doubt.
type Doubt struct {
	Gone func(Actor) string            // somebody as of now: they hold no lease
	Void func(Actor, time.Time) string // what they said at a time: it does not count
}

// TakeBack lists what a run has to give up for a doubt: leases of those who are
// gone; decisions, waivers and contracts that do not count. Nothing when that was
// done before.
func (r *Run) TakeBack(d Doubt) []Act {
	var out []Act
	for i := range r.Stages {
		s := &r.Stages[i]
		if s.State == Taken && s.Lease != nil {
			if why := d.Gone(s.Lease.Holder); why != "" {
				out = append(out, LoseLease{Stage: s.ID, Why: why})
			}
		}
		v := Invalidate{Stage: s.ID}
		doubt := func(id string, who Actor, at time.Time) {
			if why := d.Void(who, at); why != "" {
				v.Because, v.Void = why, append(v.Void, id)
			}
		}
		for _, g := range r.standing(s) {
			doubt(g.ID, g.Actor, g.At)
		}
		if p := r.Plan; p != nil && s.Role == policy.Planner && s.State == Passed && s.Subject.Plan == p.ID {
			doubt(p.ID, p.Producer, p.At)
		}
		for _, w := range r.Waivers {
			if w.Void == "" && r.waives(w) == s {
				doubt(w.ID, w.By, w.At)
			}
		}
		if len(v.Void) > 0 {
			out = append(out, v)
		}
	}
	return out
}

// waives is the stage that a waiver is taken back at: one that uses it, else the
// one that it was signed for, else the first with its gate, else the first.
func (r *Run) waives(w Waiver) *Stage {
	for i := range r.Stages {
		for _, e := range r.Stages[i].Evidence {
			if e.Waiver == w.ID {
				return &r.Stages[i]
			}
		}
	}
	if s := r.Stage(w.Stage); s != nil {
		return s
	}
	for i := range r.Stages {
		if slices.Contains(r.Stages[i].Gates, w.Gate) {
			return &r.Stages[i]
		}
	}
	return &r.Stages[0]
}

// standing lists the decisions on which a stage stands: those on its current
// attempt, and those on an earlier one whose pass was carried to it.
func (r *Run) standing(s *Stage) []Given {
	var out []Given
	for _, g := range s.Given {
		if g.Void == "" {
			out = append(out, g)
		}
	}
	if s.passed == nil {
		return out
	}
	for _, a := range s.Past {
		for _, g := range a.Given {
			if g.Void == "" && slices.Contains(s.passed.given, g.ID) && !slices.ContainsFunc(out, func(o Given) bool { return o.ID == g.ID }) {
				out = append(out, g)
			}
		}
	}
	return out
}

// approvals are the ids of the approvals of the current attempt that count.
func (s *Stage) approvals() []string {
	var out []string
	for _, g := range s.Given {
		if g.Decision == Approve && !g.Withdrawn && g.Void == "" {
			out = append(out, g.ID)
		}
	}
	return out
}

// void folds a fact that takes back decisions, waivers or a contract: they are
// marked, vetoes fall, and a pass that stood on one of them is stale.
func (r *Run) void(s *Stage, f *StaleFact) {
	gone := func(id string) bool { return slices.Contains(f.Void, id) }
	fell := s.Role == policy.Planner && r.Plan != nil && gone(r.Plan.ID) || slices.ContainsFunc(s.approvals(), gone)
	if s.passed != nil && (fell || slices.ContainsFunc(s.passed.given, gone)) {
		s.passed, fell = nil, true // what a lost key approved carries nothing
	}
	mark(s.Given, gone, f.Because)
	for i := range s.Past {
		s.Past[i].Given = slices.Clone(s.Past[i].Given) // copies of the run share them
		mark(s.Past[i].Given, gone, f.Because)
	}
	for i := range r.Waivers {
		if gone(r.Waivers[i].ID) {
			r.Waivers[i].Void = f.Because
		}
	}
	waived := false
	for name, e := range s.Evidence {
		if e.Waiver != "" && gone(e.Waiver) {
			e.Waiver, waived = "", true
			s.Evidence[name] = e
		}
	}
	freed := false
	for i := range s.Vetoes {
		if v := &s.Vetoes[i]; v.Decision != "" && gone(v.Decision) {
			v.Withdrawn, freed = true, true
		}
	}
	switch {
	case s.State == Passed && (fell || waived), s.State == Deciding && waived:
		s.inputChanged(f.Because)
	case (s.State == Returned || s.State == Rejected) && freed && !s.vetoed(s.Input):
		s.close()
		s.State, s.Because, s.Failed = Ready, f.Because, 0
	}
}

func mark(list []Given, gone func(string) bool, because string) {
	for i := range list {
		if gone(list[i].ID) {
			list[i].Void = because
		}
	}
}
