package flows

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/snapshot"
)

// ruled measures a gate that is a pure function of ours: nothing runs. It has a
// probe all the same, tried each time, for it costs next to nothing.
func (f *Flows) ruled(ctx context.Context, k known, s *flow.Stage, g policy.Gate, act *flow.Measure) error {
	switch g.Kind {
	case policy.GatePlanLint:
		return f.planLint(ctx, k, s, act)
	case policy.GatePlanDiff:
		return f.planDiff(ctx, k, s, act)
	case policy.GateFindings:
		f.findingsClosed(k, s, act)
		return nil
	}
	return fault.New(fault.Internal, "internal", "no rule for gate %s", act.Gate)
}

// findingsClosed says whether a blocking finding is open. An answer of its author
// is seen at the approval.
func (f *Flows) findingsClosed(k known, s *flow.Stage, act *flow.Measure) {
	e := f.evidence(k, s, act.Gate)
	var open []string
	for _, x := range k.Findings {
		if x.Severity == flow.Block && (x.State == flow.FindingOpen || x.State == flow.FindingDisputed) {
			open = append(open, x.ID)
		}
	}
	e.Outcome = gate.Pass
	if len(open) > 0 {
		e.Outcome, e.Code = gate.No, gate.CodeFailed
		e.Reason = fmt.Sprintf("blocking findings are open: %s", strings.Join(open, ", "))
	}
	act.Evidence = e
}

// contract is the plan that the subject of a run is held to: the accepted one,
// or, at the planner's stage, the one handed in.
func contract(k known) (*plan.Contract, error) {
	p := k.Plan
	if p == nil {
		p = k.Proposed
	}
	if p == nil {
		return nil, fault.New(fault.Refused, flow.CodeNothingSubmitted, "run %s has no plan", k.ID).Hint("proveto flow plan new %s", k.ID)
	}
	return plan.ParseKept("the plan of run "+k.ID, p.Contract)
}

// rules are what the policy in force says about plans.
func rules(k known) (plan.Rules, error) {
	p := k.Policy
	r := plan.Rules{MaxScope: p.Limits.MaxScope}
	roster, err := rosterOf(k.Run)
	if err != nil {
		return r, err
	}
	// A plan of who may change principals may open protected paths, and nothing else.
	if k.Proposed != nil && k.Enforced {
		who, ok := roster.Principal(k.Proposed.Producer.Principal)
		r.Guarded = ok && who.May(identity.RightPrincipals)
	}
	if r.Protected, err = plan.CompileSet(p.Protected); err != nil {
		return r, fmt.Errorf("protected paths of policy %s: %w", p.Name, err)
	}
	if r.DocsPaths, err = plan.CompileSet(p.DocsPaths); err != nil {
		return r, fmt.Errorf("docs_paths of policy %s: %w", p.Name, err)
	}
	for _, g := range p.Graders {
		r.Graders = append(r.Graders, g.Path)
	}
	slices.Sort(r.Graders)
	return r, nil
}

// planLint judges a contract against the base and the policy.
func (f *Flows) planLint(ctx context.Context, k known, s *flow.Stage, act *flow.Measure) error {
	e := f.evidence(k, s, act.Gate)
	c, err := plan.ParseKept("the plan of run "+k.ID, k.Proposed.Contract)
	if err != nil {
		return err
	}
	snaps, repo, err := f.repoOf(ctx, k)
	if err != nil {
		return err
	}
	base, err := paths(ctx, snaps, repo, k.Base.Tree)
	if err != nil {
		return err
	}
	r, err := rules(k)
	if err != nil {
		return err
	}
	problems, err := plan.Lint(c, base, r)
	if err != nil {
		return err
	}
	// What a contract of its own kind must not say, the probe says.
	probe, err := plan.Lint(plan.LintProbe(c), base, r)
	if err != nil {
		return err
	}
	seen := slices.ContainsFunc(probe, func(p plan.Problem) bool { return p.Fault == plan.RequirementUnknown })
	act.Probed = &flow.Probed{Gate: act.Gate, GateDigest: e.GateDigest, Base: k.Base.Tree, Refused: seen}
	e.Outcome = gate.Pass
	var first string
	for _, p := range problems {
		sev := flow.Warn
		if p.Severity == plan.Error {
			sev = flow.Block
			e.Outcome, e.Code = gate.No, gate.CodeFailed
			if first == "" {
				first = p.Where + ": " + p.Message
			}
		}
		act.Issues = append(act.Issues, flow.Finding{
			Category: string(policy.PlanGap), Severity: sev, Message: fmt.Sprintf("%s: %s: %s", p.Fault, p.Where, p.Message),
			Repro: []string{"proveto", "flow", "plan", "lint", k.ID, "FILE"},
		})
	}
	e.Reason = first
	e.Metrics = map[string]float64{"problems": float64(len(problems))}
	act.Evidence = believed(e, seen)
	return nil
}

// believed applies the blind rule: what accepts its probe says nothing.
func believed(e gate.Evidence, refused bool) gate.Evidence {
	if e.Outcome == gate.Pass && !refused {
		e.Outcome, e.Code, e.Reason = gate.NotMeasured, gate.CodeBlind, "gate accepted a bad subject"
	}
	return e
}

// paths lists the files of a tree.
func paths(ctx context.Context, snaps *snapshot.Store, repo snapshot.Repo, tree evidence.Tree) ([]string, error) {
	files, err := snaps.Files(ctx, repo, tree)
	out := make([]string, len(files))
	for i, x := range files {
		out[i] = x.Path
	}
	return out, err
}

// maxSource is the largest file that the diff check reads.
const maxSource = 8 << 20

// planDiff judges the change against its contract: nothing is built for it.
func (f *Flows) planDiff(ctx context.Context, k known, s *flow.Stage, act *flow.Measure) error {
	e := f.evidence(k, s, act.Gate)
	in, err := f.diffInput(ctx, k, s)
	if err != nil {
		return err
	}
	res, err := plan.Check(in)
	if err != nil {
		return err
	}
	if over := plan.Overspent(in.Contract.Budget, plan.Spent{Rounds: s.Round + 1, Wall: k.at(f.app.Now()).Sub(k.Opened)}); len(over) > 0 {
		res.Outcome, res.Violations = plan.No, append(res.Violations, over...)
	}
	res = res.Judged(func(v plan.Violation) bool { return f.waivedCode(k, s, v) })
	refused, err := plan.ProbeRefused(in)
	if err != nil {
		return err
	}
	act.Probed = &flow.Probed{Gate: act.Gate, GateDigest: e.GateDigest, Base: k.Base.Tree, Refused: refused}
	e.Outcome = gate.Outcome(res.Outcome)
	e.Metrics = map[string]float64{"changes": float64(len(in.Changes)), "violations": float64(len(res.Violations))}
	for _, v := range res.Violations {
		sev := flow.Warn
		if v.Severity == plan.Error && !f.waivedCode(k, s, v) {
			sev = flow.Block
			if e.Reason == "" {
				e.Reason = fmt.Sprintf("%s %s: %s", v.Code, v.Path, v.Message)
			}
		}
		act.Issues = append(act.Issues, flow.Finding{
			Category: string(policy.Scope), Severity: sev, File: v.Path, Message: fmt.Sprintf("%s: %s", v.Code, v.Message), Detail: hunk(v),
		})
	}
	for _, w := range res.Weakened {
		act.Issues = append(act.Issues, flow.Finding{Category: string(policy.Scope), Severity: flow.Block, File: policy.FileName, Message: "policy_weakened: " + w})
	}
	if e.Outcome == gate.No {
		e.Code = "plan_violated"
	}
	act.Evidence = believed(e, refused)
	return nil
}

func hunk(v plan.Violation) string {
	if v.Hunk == "" {
		return ""
	}
	return "at line " + strings.TrimPrefix(v.Hunk, "+")
}

// waivedCode tells whether somebody signed for a violation.
func (f *Flows) waivedCode(k known, s *flow.Stage, v plan.Violation) bool {
	at := k.at(f.app.Now())
	for _, w := range k.Waivers {
		if w.Gate != string(v.Code) || w.Stage != "" && w.Stage != s.ID || !w.Expires.After(at) || w.Void != "" {
			continue
		}
		if slices.ContainsFunc(s.Producers, func(a flow.Actor) bool { return k.Enforced && a.Principal == w.By.Principal }) {
			continue
		}
		set, err := plan.CompileSet(w.Paths)
		if len(w.Paths) == 0 || err == nil && set.Match(v.Path) {
			return true
		}
	}
	return false
}

// diffInput is all that the diff check looks at.
func (f *Flows) diffInput(ctx context.Context, k known, s *flow.Stage) (plan.Input, error) {
	in := plan.Input{Requirements: map[string]plan.State{}}
	c, err := contract(k)
	if err != nil {
		return in, err
	}
	snaps, repo, err := f.repoOf(ctx, k)
	if err != nil {
		return in, err
	}
	deltas, err := snaps.Deltas(ctx, repo, k.Base.Tree, s.Subject.Tree)
	if err != nil {
		return in, err
	}
	in.Contract, in.BuiltOn = c, plan.ID(s.Subject.Plan)
	for _, d := range deltas {
		in.Changes = append(in.Changes, changeOf(d))
	}
	content, err := contents(ctx, snaps, repo, in.Changes)
	if err != nil {
		return in, err
	}
	if in.Facts, err = plan.Read(in.Changes, content); err != nil {
		return in, err
	}
	if in.Policy, err = rules(k); err != nil {
		return in, err
	}
	if in.Base, err = paths(ctx, snaps, repo, k.Base.Tree); err != nil {
		return in, err
	}
	if in.Tree, err = paths(ctx, snaps, repo, s.Subject.Tree); err != nil {
		return in, err
	}
	if in.TargetChanged, err = f.targetChanged(ctx, k, snaps, repo); err != nil {
		return in, err
	}
	for id, q := range requirements(&k.Run) {
		in.Requirements[id] = plan.State(q.State)
	}
	in.Loosened, err = f.loosened(ctx, k, snaps, repo, s, in.Changes)
	return in, err
}

// changeOf is a delta in the words of a contract.
func changeOf(d snapshot.Delta) plan.Change {
	c := plan.Change{
		Path: d.Path, Twin: d.RenamedFrom + d.RenamedTo, OldMode: string(d.OldMode), NewMode: string(d.NewMode), OldBlob: d.OldBlob, NewBlob: d.NewBlob,
		Added: d.Added, Deleted: d.Deleted, Binary: d.Binary, Size: d.NewSize, LFS: d.OldLFS || d.NewLFS,
	}
	return c
}

// contents reads what the check has to look into.
func contents(ctx context.Context, snaps *snapshot.Store, repo snapshot.Repo, changes []plan.Change) (map[string][]byte, error) {
	want := map[string]bool{}
	for _, c := range changes {
		old, now := plan.Wants(c)
		if old {
			want[c.OldBlob] = true
		}
		if now {
			want[c.NewBlob] = true
		}
	}
	return snaps.Blobs(ctx, repo, maxSource, slices.Sorted(maps.Keys(want))...)
}

// targetChanged lists what changed on the target since the base.
func (f *Flows) targetChanged(ctx context.Context, k known, snaps *snapshot.Store, repo snapshot.Repo) ([]string, error) {
	if k.Target == "" || k.replay != nil { // where the target stood then is not recorded
		return nil, nil
	}
	tip, err := snaps.Resolve(ctx, repo, k.Target)
	if err != nil || tip.Commit == k.Base.Commit {
		return nil, err
	}
	deltas, err := snaps.Deltas(ctx, repo, k.Base.Tree, tip.Tree)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range deltas {
		out = append(out, d.Path)
	}
	return out, nil
}

// loosened says what the policy in the change would make looser than the one in
// force.
func (f *Flows) loosened(ctx context.Context, k known, snaps *snapshot.Store, repo snapshot.Repo, s *flow.Stage, changes []plan.Change) ([]string, error) {
	if !slices.ContainsFunc(changes, func(c plan.Change) bool { return c.Path == policy.FileName && c.NewBlob != "" }) {
		return nil, nil
	}
	body, err := snaps.File(ctx, repo, s.Subject.Tree, policy.FileName)
	if err != nil {
		return nil, err
	}
	set, err := policy.Parse(body)
	if err != nil {
		return []string{"the new " + policy.FileName + " is no policy: " + err.Error()}, nil //nolint:nilerr // that is the finding
	}
	next, err := set.Named(k.Policy.Name)
	if err != nil {
		return []string{err.Error()}, nil //nolint:nilerr // that is the finding
	}
	return policy.Loosens(k.Policy, next), nil
}
