package flows

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/proveto/proveto/internal/app/gates"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/view"
)

// MeasureOptions ask for the measurements of a run.
type MeasureOptions struct {
	Request
	Gate string // only this one; empty: all that is missing
}

type measureOptions struct {
	gate string
}

// Measure measures what a run misses, and starts again what could not be
// measured.
func (f *Flows) Measure(ctx context.Context, o MeasureOptions) (*view.FlowAdvance, error) {
	k, err := f.load(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	if o.Gate != "" && !slices.ContainsFunc(k.Stages, func(s flow.Stage) bool { return slices.Contains(s.Gates, o.Gate) }) {
		return nil, fault.New(fault.Usage, "usage", "no stage of run %s has a gate %.60q", k.ID, o.Gate).Hint("proveto flow policy explain %s", k.ID)
	}
	d := done{known: k, answer: fault.OK}
	for i := range k.Stages {
		if s := &k.Stages[i]; (s.State == flow.Ready && (s.Failed > 0 || !policy.Produces(s.Stage)) || s.State == flow.Stale) && (o.Gate == "" || slices.Contains(s.Gates, o.Gate)) {
			if d, err = f.change(ctx, o.Request, d.known, func(k known) (flow.Event, error) {
				ev, _, err := f.event(ctx, k, o.Request, s.ID)
				ev.Do = flow.Remeasure{Stage: s.ID}
				return ev, err
			}); err != nil {
				return nil, err
			}
		}
	}
	err = f.measure(ctx, &d, measureOptions{gate: o.Gate})
	return f.answer(d, ""), err
}

// measure runs the gates that the run waits for, one after the other, until
// nothing is left to measure. What a gate says is recorded before the next one
// begins: a process that dies loses the gate in hand, and the next command
// measures it. One process a run works at a time; the others wait for it.
func (f *Flows) measure(ctx context.Context, d *done, o measureOptions) (err error) {
	if d.ID == "" || d.nextGate(o.gate) == nil {
		return nil
	}
	unlock, err := f.alone(ctx, d.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if d.known, err = f.load(ctx, d.ID); err != nil {
		return err
	}
	before := len(d.facts)
	for {
		t := d.nextGate(o.gate)
		if t == nil {
			return f.verdict(*d, before)
		}
		act, err := f.gate(ctx, d.known, t.stage, t.gate)
		if err != nil {
			return err
		}
		facts := d.facts
		next, err := f.change(ctx, Request{}, d.known, func(known) (flow.Event, error) {
			digests, err := f.gateDigests(d.Policy)
			return flow.Event{Now: f.app.Now(), Actor: flow.Engine(), Gates: digests, Do: act}, err
		})
		switch {
		case fault.Has(err, flow.CodeSuperseded): // the stage went on while we measured
			if d.known, err = f.load(ctx, d.ID); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		next.answer, next.facts = d.answer, append(facts, next.facts...)
		*d = next
	}
}

// task is a gate that wants to be measured.
type task struct{ stage, gate string }

// nextGate finds the first gate without an outcome, in the order of the policy.
func (k known) nextGate(only string) *task {
	if k.Paused {
		return nil
	}
	for i := range k.Stages {
		for _, g := range k.Stages[i].Missing() {
			if only == "" || g == only {
				return &task{k.Stages[i].ID, g}
			}
		}
	}
	return nil
}

// alone holds the measuring of a run; the lock ends with the process.
func (f *Flows) alone(ctx context.Context, run string) (func() error, error) {
	dir := f.dir(run)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "io", "make %s", dir)
	}
	file, err := os.OpenFile(filepath.Join(dir, ".measuring"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "io", "lock the measuring of run %s", run)
	}
	got := make(chan error, 1)
	go func() { got <- syscall.Flock(int(file.Fd()), syscall.LOCK_EX) }()
	select {
	case err := <-got:
		if err != nil {
			return nil, errors.Join(fault.Wrap(err, fault.Internal, "io", "lock the measuring of run %s", run), file.Close())
		}
		return file.Close, nil
	case <-ctx.Done():
		go func() {
			if err := <-got; err != nil {
				return // the file is closed with the process
			}
			_ = file.Close() // the lock is given back when it comes
		}()
		return nil, context.Cause(ctx)
	}
}

// verdict is the error of a run that was measured and did not pass: a gate that
// said no, or one that could not be asked.
func (f *Flows) verdict(d done, from int) error {
	var refused, unknown []string
	code := fault.Code("")
	first := ""
	for _, x := range d.facts[from:] {
		m, ok := x.(*flow.Measured)
		if !ok || d.Stage(m.Stage) == nil {
			continue
		}
		if w := d.Stage(m.Stage).Evidence[m.Gate].Waiver; w != "" {
			continue
		}
		switch m.Evidence.Outcome {
		case gate.No:
			refused = append(refused, m.Gate)
			if first == "" {
				first = m.Evidence.Reason
			}
		case gate.NotMeasured:
			unknown = append(unknown, m.Gate)
			if code == "" {
				code = m.Evidence.Code
			}
			if first == "" {
				first = m.Evidence.Reason
			}
		}
	}
	why := func(list []string, word string) string {
		s := fmt.Sprintf("%s %s", strings.Join(list, ", "), word)
		if first != "" {
			s += ": " + first
		}
		return s
	}
	switch {
	case len(refused) > 0:
		c := fault.Code("gate_failed")
		switch {
		case slices.Contains(refused, policy.PlanDiff), slices.Contains(refused, policy.PlanLint):
			c = "plan_violated"
		case slices.ContainsFunc(d.facts[from:], func(x flow.Fact) bool {
			m, ok := x.(*flow.Measured)
			return ok && m.Evidence.Code == gate.CodeMergeConflict
		}):
			c = "merge_conflict"
		}
		return fault.New(fault.Negative, c, "%s", why(refused, "said no")).Hint("proveto flow feedback %s", d.ID)
	case len(unknown) > 0:
		return fault.New(fault.Unmeasured, code, "%s", why(unknown, "could not be measured")).Hint("proveto flow status %s", d.ID)
	}
	return nil
}

// gate measures one gate of a stage.
func (f *Flows) gate(ctx context.Context, k known, stage, name string) (flow.Measure, error) {
	s := k.Stage(stage)
	act := flow.Measure{Stage: stage, Attempt: s.Attempt, Fence: s.Fence, Gate: name}
	g, ok := k.Policy.Gate(name)
	if !ok {
		return act, fault.New(fault.Internal, "internal", "the policy of run %s has no gate %s", k.ID, name)
	}
	var err error
	switch g.Kind {
	case policy.GatePlanLint, policy.GatePlanDiff, policy.GateFindings:
		err = f.ruled(ctx, k, s, g, &act)
	case policy.GateGrader:
		err = f.unmeasured(k, s, &act, gate.CodeToolMissing, "this version runs no graders")
	default:
		err = f.ran(ctx, k, s, g, &act)
	}
	if err != nil {
		return act, err
	}
	if act.Evidence.ID == "" {
		act.Evidence, err = act.Evidence.Seal()
	}
	return act, err
}

// unmeasured is evidence that a gate could not be asked.
func (f *Flows) unmeasured(k known, s *flow.Stage, act *flow.Measure, code fault.Code, reason string) error {
	e := f.evidence(k, s, act.Gate)
	e.Outcome, e.Code, e.Reason = gate.NotMeasured, code, reason
	act.Evidence = e
	return nil
}

// evidence begins the evidence of a gate that is a pure function of ours.
func (f *Flows) evidence(k known, s *flow.Stage, name string) gate.Evidence {
	e := gate.Evidence{Gate: name, Run: k.ID, Stage: s.ID, Attempt: s.Attempt, Started: f.app.Now()}
	e.Subject = gate.Subject{Tree: s.Subject.Tree, Base: k.Base.Tree, Plan: planDigest(s.Subject.Plan)}
	for i, g := range s.Gates {
		if g == name && i < len(s.GateIDs) {
			e.GateDigest = s.GateIDs[i]
		}
	}
	return e
}

// planDigest is the id of a plan as a digest.
func planDigest(id string) evidence.Digest {
	if hex, ok := strings.CutPrefix(id, "plan_"); ok {
		return evidence.Digest("sha256:" + hex)
	}
	return ""
}

// ran measures a gate that runs something, in the sandbox.
func (f *Flows) ran(ctx context.Context, k known, s *flow.Stage, g policy.Gate, act *flow.Measure) error {
	snaps, repo, err := f.repoOf(ctx, k)
	if err != nil {
		return err
	}
	r := gates.Request{
		Gate: act.Gate, Policy: gatePolicy(k, act.Gate, g, s), Repo: repo, BaseTree: k.Base.Tree, Tree: s.Subject.Tree,
		Run: k.ID, Stage: s.ID, Attempt: s.Attempt, Plan: planDigest(s.Subject.Plan), Probed: probedFunc(k),
	}
	if r.Again = k.replay != nil; !r.Again {
		r.Known = knownFunc(k)
	}
	if r.Tree == "" {
		r.Tree = k.Base.Tree
	}
	if g.Kind == policy.GateProve && act.Gate == policy.ProveRequirements {
		if r.Acceptance, r.Added, err = acceptances(k); err != nil {
			return err
		}
	}
	if g.Kind == policy.GateMerge && k.replay != nil {
		r.MergeTree, act.Merged = k.replay.Merged, k.replay.Merged
	} else if g.Kind == policy.GateMerge {
		m, err := f.merged(ctx, k, snaps, repo, s.Subject.Tree)
		if err != nil {
			return err
		}
		r.MergeTree, act.Merged = m.Tree, m.Tree
		for _, c := range m.Conflicts {
			r.Conflicts = append(r.Conflicts, c.Path)
		}
	}
	res, err := gates.Measure(ctx, f.app, r)
	if err != nil {
		return err
	}
	act.Evidence = res.Evidence
	if act.Gate == policy.ProveRequirements {
		if err := unproven(k, act); err != nil {
			return err
		}
	}
	for _, i := range res.Issues {
		act.Issues = append(act.Issues, flow.Finding{
			Category: i.Category, Severity: flow.Block, File: i.File, Line: i.Line, Message: i.Message, Repro: i.Repro, Expected: i.Expected,
			Actual: i.Actual, Detail: i.Diff,
		})
	}
	if p := res.Probe; !p.Reused && (p.Certificate != "" || p.Err != nil) {
		act.Probed = &flow.Probed{Gate: act.Gate, GateDigest: res.Evidence.GateDigest, Base: k.Base.Tree, Refused: p.Refused, Certificate: p.Certificate}
		if p.Err != nil {
			act.Probed.Reason = p.Err.Error()
		}
	}
	return nil
}

// unproven takes the pass from a gate whose plan has a requirement that is not
// measured whole: this version runs no graders, so that what they vouch for is not
// measured, whatever its tests say.
func unproven(k known, act *flow.Measure) error {
	c, err := contract(k)
	if err != nil || act.Evidence.Outcome != gate.Pass {
		return err
	}
	said := map[string]gate.Requirement{}
	maps.Copy(said, act.Evidence.Requirements)
	act.Evidence.Requirements = said
	for _, r := range c.Requirements {
		for _, a := range r.Acceptance {
			if a.Grader != "" {
				said[r.ID] = gate.Requirement{State: evidence.NotMeasured}
			}
		}
	}
	states := map[string]plan.State{}
	for id, q := range said {
		states[id] = plan.State(q.State)
	}
	if missing := plan.Unproven(c, states); len(missing) > 0 {
		act.Evidence.Outcome, act.Evidence.Code, act.Evidence.Reason = gate.NotMeasured, gate.CodeUnmeasured, "P008: "+missing[0].Message
		act.Evidence, err = act.Evidence.Seal()
	}
	return err
}

// gatePolicy is what the policy says about a gate, as it is measured.
func gatePolicy(k known, name string, g policy.Gate, s *flow.Stage) gates.Policy {
	p := gates.Policy{
		Kind: gate.Kind(g.Kind), Tests: string(g.Tests), Repeat: g.Repeat, Time: g.Time, Argv: g.Run, MinProven: g.MinProven, MaxRefuted: g.MaxRefuted,
		MaxNotMeasured: g.MaxNotMeasured,
	}
	if g.At == policy.AtBase {
		p.At = "base"
	}
	if k.Policy.EmptyPasses(name, planKind(k)) {
		p.WhenEmpty = "pass"
	}
	if c, ok := k.Policy.Command(name); ok {
		p.Kind, p.Argv, p.Time = gate.KindCommand, c.Run, c.Time
		p.Probe = gates.Probe{Patch: c.Probe.Patch, Mutant: c.Probe.Mutant, Break: c.Probe.Break}
	}
	// What an agent made is measured at the isolation that the policy asks for.
	if dev := k.Stage(s.ID); dev != nil && madeByAgent(k) {
		p.IsolationMin = evidence.Level(k.Policy.Isolation.Min)
	}
	if g.Kind == policy.GateMerge {
		p.Gates = map[string]gates.Policy{}
		for _, n := range []string{"build", "suite.full"} {
			if x, ok := k.Policy.Gate(n); ok {
				p.Gates[n] = gatePolicy(k, n, x, s)
			}
		}
	}
	return p
}

func madeByAgent(k known) bool {
	return slices.ContainsFunc(k.Stages, func(s flow.Stage) bool {
		return slices.ContainsFunc(s.Producers, func(a flow.Actor) bool { return a.Kind == "agent" })
	})
}

func planKind(k known) string {
	if k.Plan == nil {
		return ""
	}
	return k.Plan.Kind
}

// knownFunc finds what the same gate said about the same subject earlier in the
// run. A no is measured again: its findings are part of the answer.
func knownFunc(k known) func(context.Context, evidence.Digest, gate.Subject) (gate.Evidence, []gate.Issue, bool) {
	return func(_ context.Context, d evidence.Digest, subject gate.Subject) (gate.Evidence, []gate.Issue, bool) {
		match := func(all map[string]flow.Evidence) (gate.Evidence, bool) {
			for _, e := range all {
				if e.GateDigest == d && e.Subject == subject && e.Outcome == gate.Pass {
					return e.Evidence, true
				}
			}
			return gate.Evidence{}, false
		}
		for i := range k.Stages {
			if e, ok := match(k.Stages[i].Evidence); ok {
				return e, nil, true
			}
			for _, p := range k.Stages[i].Past {
				if e, ok := match(p.Evidence); ok {
					return e, nil, true
				}
			}
		}
		return gate.Evidence{}, nil, false
	}
}

// probedFunc finds the certificate that a gate earned on the base earlier in the
// run.
func probedFunc(k known) func(context.Context, evidence.Digest, evidence.Tree) (evidence.Digest, bool) {
	return func(_ context.Context, d evidence.Digest, base evidence.Tree) (evidence.Digest, bool) {
		p, ok := k.Probes[d]
		return p.Certificate, ok && p.Refused && p.Base == base && p.Certificate != ""
	}
}

// acceptances are the tests and commands of the plan, and the symbols that it
// declares as added.
func acceptances(k known) ([]gates.Acceptance, []string, error) {
	c, err := contract(k)
	if err != nil {
		return nil, nil, err
	}
	var out []gates.Acceptance
	for _, r := range c.Requirements {
		for _, a := range r.Acceptance {
			if a.Test != "" || len(a.Command) > 0 {
				out = append(out, gates.Acceptance{Requirement: r.ID, ID: a.ID, Test: a.Test, Before: string(a.Before), Command: a.Command})
			}
		}
	}
	var added []string
	for _, i := range c.Interfaces {
		if i.Change == "add" {
			added = append(added, i.Symbol)
		}
	}
	return out, added, nil
}
