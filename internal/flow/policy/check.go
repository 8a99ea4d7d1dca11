package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/strictyaml"
)

// check looks at how the values of a resolved policy fit together. What was
// written for the stages that a policy took over, and names others than it has,
// is an error; what it merely inherited from default about stages that it does
// not have falls away.
func check(r *reader, p *Policy) error {
	if len(p.Stages) == 0 {
		return r.at("").node.Errorf("policy %s has no stages; only a policy named like a built-in one takes them from there", p.Name)
	}
	if err := checkStages(r, p); err != nil {
		return err
	}
	for _, f := range []func(*reader, *Policy) error{
		checkSeparation, checkRisk, checkStageNames, checkGraders, checkCommands, checkNotify,
	} {
		if err := f(r, p); err != nil {
			return err
		}
	}
	return nil
}

func checkStages(r *reader, p *Policy) error {
	var ids []string
	for i, s := range p.Stages {
		at := fmt.Sprintf("stages[%d]", i)
		bad := func(key, format string, args ...any) error {
			return r.at(join(at, key)).node.Errorf("stage %s "+format, append([]any{s.ID}, args...)...)
		}
		switch {
		case s.ID == "":
			return r.at(at).node.Errorf("a stage has no id")
		case s.Role == "":
			return bad("", "has no role, want one of: planner, developer, verifier, tester, reviewer")
		case slices.Contains(ids, s.ID):
			return bad("id", "is there twice")
		case s.Decide == Decide{}:
			return bad("", "does not say who decides: decide: engine, or decide: {approvals: 1}")
		}
		for _, n := range s.Needs {
			if !slices.Contains(ids, n) {
				e := r.at(join(at, "needs")).node.Errorf("stage %s needs %s, which is no stage above it", s.ID, n)
				if near := strictyaml.Nearest(n, ids); near != "" {
					e = e.Hint("did you mean %s?", near)
				}
				return e
			}
		}
		ids = append(ids, s.ID)
		for _, g := range s.Gates {
			if err := checkStageGate(r, p, s, at, g); err != nil {
				return err
			}
		}
		if err := checkDecide(s, s.Decide, func(format string, args ...any) error { return bad("decide", format, args...) }); err != nil {
			return err
		}
		if s.AgentProducer != nil {
			if err := checkDecide(s, *s.AgentProducer, func(format string, args ...any) error { return bad("agent_producer", format, args...) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkStageGate checks that a gate exists and has what it measures.
func checkStageGate(r *reader, p *Policy, s Stage, at, name string) error {
	n := r.at(join(at, "gates")).node
	g, ok := p.Gate(name)
	if !ok {
		known := p.gateNames()
		e := n.Errorf("stage %s has the gate %s, which is not defined", s.ID, name)
		if near := strictyaml.Nearest(name, known); near != "" {
			return e.Hint("did you mean %s?", near)
		}
		return e.Hint("defined here: %s", strings.Join(known, ", "))
	}
	if g.Kind == GatePlanLint || g.Kind == GateSuite && g.At == AtBase || p.makesTree(s) {
		return nil
	}
	return n.Errorf("stage %s has the gate %s, which measures a tree, and no stage of role developer is at or above it", s.ID, name)
}

// makesTree tells whether a tree exists at a stage: it, or one above it, is a
// developer's.
func (p *Policy) makesTree(s Stage) bool {
	if s.Role == Developer {
		return true
	}
	for _, id := range p.Upstream(s.ID) {
		if up, _ := p.Stage(id); up.Role == Developer {
			return true
		}
	}
	return false
}

func (p *Policy) gateNames() []string {
	out := append(sortedKeys(p.Gates), PlanLint, PlanDiff, FindingsClosed)
	for _, g := range sortedKeys(p.Graders) {
		out = append(out, GraderPrefix+g)
	}
	for _, c := range sortedKeys(p.Commands) {
		out = append(out, CommandPrefix+c)
	}
	return out
}

func checkDecide(s Stage, d Decide, bad func(string, ...any) error) error {
	switch {
	case d.Engine && len(s.Gates) == 0:
		return bad("lets the engine decide and has no gate that it could decide by")
	case d.Humans > d.Approvals:
		return bad("wants %d humans among %d approvals", d.Humans, d.Approvals)
	case !d.Engine && d.Approvals == 0 && !Produces(s):
		return bad("wants no approval, and hands in nothing whose signature could stand for one")
	}
	return nil
}

// own tells whether a value was written for the stages that the policy has: not
// below the layer that has them.
func (r *reader) own(path string) bool { return r.at(path).layer >= r.at("stages").layer }

func (p *Policy) has(id string) bool { _, ok := p.Stage(id); return ok }

func noStage(n strictyaml.Node, p *Policy, what, id string) error {
	e := n.Errorf("%s names the stage %s, which policy %s does not have", what, id, p.Name)
	ids := make([]string, len(p.Stages))
	for i, s := range p.Stages {
		ids[i] = s.ID
	}
	if near := strictyaml.Nearest(id, ids); near != "" {
		return e.Hint("did you mean %s?", near)
	}
	return e.Hint("its stages: %s", strings.Join(ids, ", "))
}

func checkSeparation(r *reader, p *Policy) error {
	kept := make([]Separation, 0, len(p.Separation))
	for i, s := range p.Separation {
		at := fmt.Sprintf("separation[%d]", i)
		n := r.at(at).node
		var here []string
		for _, id := range s.Distinct {
			if p.has(id) {
				here = append(here, id)
			} else if r.own("separation") {
				return noStage(r.at(at+".distinct").node, p, "separation", id)
			}
		}
		switch {
		case s.By == "" || s.OnViolation == "":
			return n.Errorf("a separation rule wants distinct, by and on_violation")
		case len(here) >= 2:
			s.Distinct = here
			kept = append(kept, s)
		case r.own("separation"):
			return n.Errorf("a separation rule keeps at least two stages apart")
		}
	}
	p.Separation = kept
	return nil
}

// checkRisk holds that a level only raises what a stage asks for.
func checkRisk(r *reader, p *Policy) error {
	for _, level := range sortedKeys(p.Risk) {
		for _, id := range sortedKeys(p.Risk[level].Decide) {
			at := fmt.Sprintf("risk.%s.%s", level, id)
			s, ok := p.Stage(id)
			if !ok {
				if r.own(at) {
					return noStage(r.at(at).node, p, "risk."+string(level), id)
				}
				delete(p.Risk[level].Decide, id)
				continue
			}
			d := p.Risk[level].Decide[id]
			if !s.Decide.Engine && (d.Approvals < s.Decide.Approvals || d.Humans < s.Decide.Humans) {
				if !r.own(at) {
					p.Risk[level].Decide[id] = d.raise(s.Decide)
					continue
				}
				return r.at(at).node.Errorf("%s asks for less than stage %s itself: risk may raise a demand, never lower it", at, id)
			}
			if d.Humans > d.Approvals {
				return r.at(at).node.Errorf("%s wants %d humans among %d approvals", at, d.Humans, d.Approvals)
			}
		}
	}
	return nil
}

// checkStageNames looks at the keys that are stages, and at those that name one.
func checkStageNames(r *reader, p *Policy) error {
	for _, c := range sortedKeys(p.Categories) {
		if id := p.Categories[c]; id != Operator && !p.has(id) {
			at := "categories." + string(c)
			if r.own(at) {
				return noStage(r.at(at).node, p, at, id)
			}
			p.Categories[c] = Operator
		}
	}
	for _, id := range sortedKeys(p.Carry) {
		if !p.has(id) && r.own("carry."+id) {
			return noStage(r.at("carry."+id).node, p, "carry", id)
		}
	}
	maps.DeleteFunc(p.Carry, func(id string, _ []CarryRule) bool { return !p.has(id) })
	for _, id := range sortedKeys(p.Limits.Rounds) {
		if !p.has(id) && r.own("limits.rounds."+id) {
			return noStage(r.at("limits.rounds."+id).node, p, "limits.rounds", id)
		}
	}
	maps.DeleteFunc(p.Limits.Rounds, func(id string, _ int) bool { return !p.has(id) })
	if p.Limits.Lease == 0 {
		return r.at("limits.lease").node.Errorf("limits.lease is 0: a lease that never ends holds a stage for ever")
	}
	return nil
}

func checkGraders(r *reader, p *Policy) error {
	for _, name := range sortedKeys(p.Graders) {
		at := "graders." + name
		if p.Graders[name].Path == "" {
			return r.at(at).node.Errorf("%s has no path", at)
		}
		if _, ok := r.where[at+".min"]; !ok {
			return r.at(at).node.Errorf("%s has no min: the score that passes", at)
		}
	}
	return nil
}

func checkCommands(r *reader, p *Policy) error {
	for _, name := range sortedKeys(p.Commands) {
		if at := "commands." + name; len(p.Commands[name].Run) == 0 {
			return r.at(at).node.Errorf("%s has no run: the argv of the command", at)
		}
	}
	return nil
}

func checkNotify(r *reader, p *Policy) error {
	for i, n := range p.Notify {
		at := r.at(fmt.Sprintf("notify[%d]", i)).node
		switch {
		case len(n.On) == 0:
			return at.Errorf("a notice says on what: on: [waiting, blocked, approved, delivered]")
		case (len(n.Exec) > 0) == (n.WebhookEnv != ""):
			return at.Errorf("a notice has either exec or webhook_env")
		case n.HMACEnv != "" && n.WebhookEnv == "":
			return at.Errorf("hmac_env goes with webhook_env")
		}
	}
	return nil
}
