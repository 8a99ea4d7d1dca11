package attest

import (
	"fmt"
	"regexp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
)

// The properties of a result. Each is said only where it holds of the subject;
// one that is not there was not shown.
const (
	PlanHeld          = "PROVETO_PLAN_HELD"              // the change is what the contract allows; no exception for a rule of it
	RequirementsHeld  = "PROVETO_REQUIREMENTS_PROVEN"    // every requirement has a test that was seen to notice
	ChangeProven      = "PROVETO_CHANGE_PROVEN"          // of the changed behaviours, as many as the policy asks for
	BuildPassed       = "PROVETO_BUILD_PASSED"           // and was seen to refuse a tree that does not build
	BaseTestsKept     = "PROVETO_BASE_TESTS_KEPT"        // the tests of the base, in their old form, are green
	SuitePassed       = "PROVETO_SUITE_PASSED"           // the whole suite is green, and was seen to be red
	SecretsAbsent     = "PROVETO_NO_SECRETS_FOUND"       // in what the change adds
	NoWaivers         = "PROVETO_NO_WAIVERS"             // nobody signed an exception, and the plan's token was shown
	SeparationHeld    = "PROVETO_SEPARATION_HELD"        // between named principals, for every rule of the policy
	HumanApprovals    = "PROVETO_HUMAN_APPROVALS_"       // and how many people
	IndependentHumans = "PROVETO_INDEPENDENT_APPROVALS_" // and how many people who handed in neither plan nor work
)

// planCode is a rule of the diff check that somebody can sign an exception for.
var planCode = regexp.MustCompile(`^P\d{3}$`)

// properties lists what holds of the subject, in a fixed order. What was measured
// on another tree than the approved one, because the target moved, is not said of
// it; only what the merge gate measured on the merged tree is.
func properties(r *flow.Run, s Summary) []string {
	if !gated(r) {
		return nil
	}
	out := []string{}
	add := func(holds bool, name string) {
		if holds {
			out = append(out, name)
		}
	}
	same := s.Trees.Work != "" && s.Trees.Work == s.Trees.Approved
	merged := mergedPasses(r, s.Trees.Approved)
	add(same && passes(r, policy.GatePlanDiff, nil) && r.Unplanned == nil && !planWaived(r), PlanHeld)
	add(same && passes(r, policy.GateProve, requirementsGate) && requirementsProven(s.Plan), RequirementsHeld)
	add(same && passes(r, policy.GateProve, changeGate), ChangeProven)
	add(same && passes(r, policy.GateBuild, nil) || merged, BuildPassed)
	add(same && passes(r, policy.GateSuite, func(g policy.Gate, _ flow.Evidence) bool { return g.Tests == policy.TestsBase }), BaseTestsKept)
	add(same && passes(r, policy.GateSuite, func(g policy.Gate, _ flow.Evidence) bool { return g.At != policy.AtBase && g.Tests != policy.TestsBase }) || merged, SuitePassed)
	add(same && passes(r, policy.GateSecrets, nil), SecretsAbsent)
	add(len(r.Waivers) == 0 && r.Unplanned == nil, NoWaivers)
	add(separationHeld(r, s), SeparationHeld)
	add(len(s.Approvals.Humans) > 0, fmt.Sprintf("%s%d", HumanApprovals, len(s.Approvals.Humans)))
	add(len(s.Approvals.Independent) > 0, fmt.Sprintf("%s%d", IndependentHumans, len(s.Approvals.Independent)))
	return out
}

// passes tells whether the stages that passed have a gate of the kind that is
// wanted, and all of those passed by measurement on the stage's tree: not by a
// waiver, and not because there was nothing to check.
func passes(r *flow.Run, kind policy.GateKind, want func(policy.Gate, flow.Evidence) bool) bool {
	n := 0
	for i := range r.Stages {
		s := &r.Stages[i]
		for _, name := range s.Gates {
			g, ok := r.Policy.Gate(name)
			e := s.Evidence[name]
			if !ok || g.Kind != kind || want != nil && !want(g, e) {
				continue
			}
			if e.Outcome != gate.Pass || e.Waiver != "" || s.State != flow.Passed || e.Subject.Tree != r.Work().Tree {
				return false
			}
			n++
		}
	}
	return n > 0
}

func requirementsGate(_ policy.Gate, e flow.Evidence) bool { return e.Gate == policy.ProveRequirements }

// changeGate is a gate over changed behaviours that found some: a pass over none
// proves nothing.
func changeGate(_ policy.Gate, e flow.Evidence) bool {
	return e.Gate != policy.ProveRequirements && len(e.Certificates) > 0
}

func requirementsProven(p *Plan) bool {
	if p == nil || len(p.Requirements) == 0 {
		return false
	}
	for _, q := range p.Requirements {
		if q.State != evidence.Proven || len(q.Certificates) == 0 {
			return false
		}
	}
	return true
}

// mergedPasses tells whether the merge gate measured the approved tree.
func mergedPasses(r *flow.Run, tree evidence.Tree) bool {
	for i := range r.Stages {
		s := &r.Stages[i]
		for _, name := range s.Gates {
			g, ok := r.Policy.Gate(name)
			if e := s.Evidence[name]; ok && g.Kind == policy.GateMerge && e.Outcome == gate.Pass && e.Waiver == "" && e.Merged == tree && len(e.Runs) > 0 {
				return true
			}
		}
	}
	return false
}

// planWaived tells whether somebody signed an exception for a rule of the plan.
func planWaived(r *flow.Run) bool {
	for _, w := range r.Waivers {
		if planCode.MatchString(w.Gate) || w.Gate == "*" || w.Gate == policy.PlanDiff || w.Gate == flow.WaiveUnplanned {
			return true
		}
	}
	return false
}

func separationHeld(r *flow.Run, s Summary) bool {
	for _, x := range s.Separation {
		if x.State != "holds" {
			return false
		}
	}
	return r.Enforced && len(s.Separation) > 0
}
