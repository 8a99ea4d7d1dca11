package flows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/app/gates"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/view"
)

// PlanSkeleton is a contract to be filled in.
func (f *Flows) PlanSkeleton(ctx context.Context, ref string) ([]byte, error) {
	k, err := f.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	return plan.Skeleton(k.Task)
}

// PlanLint judges a contract that is not handed in. The error says that it would
// be refused; the view is returned beside it.
func (f *Flows) PlanLint(ctx context.Context, ref, name string, text []byte) (*view.FlowLint, error) {
	k, err := f.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	c, err := f.parsePlan(name, text)
	if err != nil {
		return nil, err
	}
	v := &view.FlowLint{Run: k.ID, Problems: []view.FlowProblem{}}
	r, err := rules(k)
	if err != nil {
		return nil, err
	}
	var base []string
	if k.Repo != "" {
		snaps, repo, err := f.repoOf(ctx, k)
		if err != nil {
			return nil, err
		}
		if base, err = paths(ctx, snaps, repo, k.Base.Tree); err != nil {
			return nil, err
		}
	}
	problems, err := plan.Lint(c, base, r)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		v.Problems = append(v.Problems, view.FlowProblem{Code: string(p.Fault), Severity: string(p.Severity), Where: p.Where, Message: p.Message})
	}
	if !plan.Clean(problems) {
		first := problems[slices.IndexFunc(problems, func(p plan.Problem) bool { return p.Severity == plan.Error })]
		return v, fault.New(fault.Negative, "plan_violated", "the plan would be refused: %s: %s", first.Where, first.Message).Hint("proveto flow plan new %s", k.ID)
	}
	return v, nil
}

// parsePlan reads a contract, and says what of it this version cannot measure.
func (f *Flows) parsePlan(name string, text []byte) (*plan.Contract, error) {
	c, err := plan.Parse(name, text)
	if err != nil {
		return nil, err
	}
	for _, r := range c.Requirements {
		for _, a := range r.Acceptance {
			if a.Grader != "" {
				f.app.Warn("grader_unmeasured", fmt.Sprintf("acceptance %s is by a grader, and flow runs none: requirement %s will stay not measured", a.ID, r.ID))
			}
		}
	}
	return c, nil
}

// PlanShow is the contract that binds, or the one handed in last.
func (f *Flows) PlanShow(ctx context.Context, ref string) (*view.FlowPlan, error) {
	k, err := f.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	p := k.Plan
	if p == nil {
		p = k.Proposed
	}
	if p == nil {
		return nil, fault.New(fault.NotFound, flow.CodeNotFound, "run %s has no plan yet", k.ID).Hint("proveto flow plan new %s", k.ID)
	}
	v := &view.FlowPlan{ID: p.ID, Revision: p.Revision, Token: p.Token, Contract: p.Contract, Requirements: map[string]view.FlowRequirement{}}
	if k.Plan != nil {
		v.Requirements = requirements(&k.Run)
	}
	return v, nil
}

// PlanDiff lists where two revisions of a run's contract differ.
func (f *Flows) PlanDiff(ctx context.Context, ref string, old, now int) (*view.FlowPlanDiff, error) {
	k, err := f.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	find := func(n int) (*plan.Contract, error) {
		for _, p := range k.Plans {
			if p.Revision == n {
				return plan.ParseKept(fmt.Sprintf("revision %d", n), p.Contract)
			}
		}
		return nil, fault.New(fault.NotFound, flow.CodeNotFound, "run %s has no revision %d of its plan", k.ID, n).Hint("proveto flow log %s", k.ID)
	}
	a, err := find(old)
	if err != nil {
		return nil, err
	}
	b, err := find(now)
	if err != nil {
		return nil, err
	}
	deltas, err := plan.Diff(a, b)
	if err != nil {
		return nil, err
	}
	v := &view.FlowPlanDiff{Run: k.ID, Old: old, New: now, Changes: []string{}}
	for _, d := range deltas {
		v.Changes = append(v.Changes, d.String())
	}
	return v, nil
}

// PolicyShow is a policy of the working directory's repository with every value
// resolved.
func (f *Flows) PolicyShow(ctx context.Context, name string) (*view.Sentence, error) {
	p, err := f.policyHere(ctx, name)
	if err != nil {
		return nil, err
	}
	d, err := p.Digest()
	return &view.Sentence{Text: p.Show(), Facts: map[string]any{"name": p.Name, "digest": d, "policy": p}}, err
}

func (f *Flows) policyHere(ctx context.Context, name string) (policy.Policy, error) {
	if !f.insideRepository() {
		return policy.Builtin().Named(orText(name, policy.Default))
	}
	g, err := f.ground(ctx, name, "", "")
	return g.policy, err
}

// PolicyExplain says, gate by gate, what a run needs, has and lacks.
func (f *Flows) PolicyExplain(ctx context.Context, ref string) (*view.FlowExplained, error) {
	k, err := f.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	v := &view.FlowExplained{Run: k.ID, Policy: k.Policy.Name, Lines: []view.FlowNeed{}}
	for i := range k.Stages {
		v.Lines = append(v.Lines, needs(k, &k.Stages[i])...)
	}
	return v, nil
}

// PolicyCheck runs the probes of the command gates of a policy on the base, before
// a run needs them. The error names the first that accepted a bad tree, or could
// not be tried; the view is returned beside it.
func (f *Flows) PolicyCheck(ctx context.Context, name string) (*view.FlowPolicyCheck, error) {
	if !f.insideRepository() {
		return nil, fault.New(fault.Refused, "base_unresolved", "%s is in no git repository, so there is no tree to try a gate on", f.app.Where("")).
			Hint("proveto flow policy show %s", orText(name, policy.Default))
	}
	g, err := f.ground(ctx, name, "", "")
	if err != nil {
		return nil, err
	}
	v := &view.FlowPolicyCheck{Policy: g.policy.Name, Gates: []view.FlowProbed{}}
	var first error
	for _, s := range g.policy.Stages {
		for _, gateName := range s.Gates {
			c, ok := g.policy.Command(gateName)
			if !ok {
				continue
			}
			x, err := f.probe(ctx, g, gateName, c)
			if err != nil && first == nil {
				first = err
			}
			v.Gates = append(v.Gates, x)
		}
	}
	return v, first
}

// probe tries a command on the base, which it should accept, and on its probe.
func (f *Flows) probe(ctx context.Context, g ground, name string, c policy.Command) (view.FlowProbed, error) {
	x := view.FlowProbed{Gate: name}
	res, err := gates.Measure(ctx, f.app, gates.Request{
		Gate: name, Repo: g.repo, BaseTree: g.base.Tree, Tree: g.base.Tree,
		Policy: gates.Policy{Kind: gate.KindCommand, Argv: c.Run, Time: c.Time, Probe: gates.Probe{Patch: c.Probe.Patch, Mutant: c.Probe.Mutant, Break: c.Probe.Break}},
	})
	if err != nil {
		x.Reason = err.Error()
		return x, err
	}
	x.Accepts, x.Refuses, x.Certificate = res.Evidence.Outcome == gate.Pass || res.Evidence.Code == gate.CodeBlind, res.Probe.Refused, string(res.Probe.Certificate)
	x.Reason = res.Evidence.Reason
	switch {
	case res.Evidence.Outcome == gate.Pass && x.Refuses:
		return x, nil
	case res.Evidence.Outcome == gate.No:
		return x, fault.New(fault.Negative, gate.CodeFailed, "gate %s refuses the base itself: %s", name, x.Reason).Hint("proveto flow policy show %s", g.policy.Name)
	}
	return x, fault.New(fault.Unmeasured, res.Evidence.Code, "gate %s: %s", name, x.Reason).Hint("proveto flow policy show %s", g.policy.Name)
}

// needs is what a stage needs, gate by gate, and then its approvals.
func needs(k known, s *flow.Stage) []view.FlowNeed {
	var out []view.FlowNeed
	for _, g := range s.Gates {
		x, _ := k.Policy.Gate(g)
		n := view.FlowNeed{Stage: s.ID, Need: fmt.Sprintf("gate %s (%s)", g, x.Kind)}
		e, ok := s.Evidence[g]
		switch {
		case !ok:
			n.Missing = "not measured yet"
		case e.Waiver != "":
			n.Have = "waived"
		case e.Outcome == "pass":
			n.Have = "pass"
		default:
			n.Have, n.Missing = strings.ReplaceAll(string(e.Outcome), "_", " "), e.Reason
		}
		out = append(out, n)
	}
	a := k.Approvals(s)
	if a.Need > 0 {
		n := view.FlowNeed{Stage: s.ID, Need: fmt.Sprintf("%d approvals, %d by humans", a.Need, a.HumansNeed), Have: fmt.Sprintf("%d, %d by humans", a.Have, a.HumansHave)}
		if a.Have < a.Need || a.HumansHave < a.HumansNeed {
			n.Missing = fmt.Sprintf("who may: %s", strings.Join(k.Holders[string(s.Role)], ", "))
		}
		out = append(out, n)
	}
	return out
}
