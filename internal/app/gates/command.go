package gates

import (
	"context"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/ledger"
)

// command runs the policy's own command at the root of the tree. Exit 0 passes,
// once the command was seen to refuse the probe that the policy names.
func (m *measurement) command(ctx context.Context) (found, error) {
	b, err := m.bench(ctx, m.r.Tree)
	if err != nil {
		return found{}, err
	}
	f, runs, err := m.steps(ctx, b, b.buildSteps)
	if err != nil {
		return found{}, err
	}
	f.probeFunc = func(ctx context.Context) (evidence.Certificate, error) {
		s, err := m.commandProbe(ctx, b)
		if err != nil {
			return evidence.Certificate{}, err
		}
		m.sabotage = s
		return m.refused(ctx, runs, s, (*bench).buildSteps)
	}
	return f, nil
}

// commandAcceptance measures one command of the plan: exit 0 on the tree, and not
// on the base, which lacks what the command asks for. A command that the base
// satisfies was never seen to refuse anything.
func (m *measurement) commandAcceptance(ctx context.Context, a Acceptance, f *found) (gate.Answer, gate.Issue, error) {
	issue := gate.Issue{Category: gate.Defect, Code: gate.CodeFailed, Repro: a.Command, Expected: "the base is refused, the tree accepted"}
	unmeasured := func(code fault.Code, reason string) (gate.Answer, gate.Issue, error) {
		issue.Category, issue.Code, issue.Message = gate.Environment, code, reason
		return gate.Answer{Outcome: gate.NotMeasured, Code: code, Reason: reason}, issue, nil
	}
	only := func(b *bench, _ context.Context) ([]step, error) { return b.oneStep(a.Command), nil }
	b, err := m.bench(ctx, m.r.Tree)
	if err != nil {
		return gate.Answer{}, issue, err
	}
	good, runs, err := m.steps(ctx, b, func(ctx context.Context) ([]step, error) { return only(b, ctx) })
	switch e := fault.From(err); {
	case err != nil && e.Kind == fault.Unmeasured:
		return unmeasured(e.Code, e.Error())
	case err != nil:
		return gate.Answer{}, issue, err
	case good.Outcome == gate.NotMeasured:
		return unmeasured(good.Code, good.Reason)
	}
	f.outputs = append(f.outputs, good.outputs...)
	if good.Outcome != gate.Pass {
		issue = good.issues[0]
		return good.Answer, issue, nil
	}
	s := evidence.Sabotage{Kind: evidence.SabotageBase, Summary: "the base, before the change", Tree: m.r.BaseTree}
	cert, err := m.refused(ctx, runs, s, only)
	switch e := fault.From(err); {
	case fault.Has(err, gate.CodeBlind):
		return unmeasured(gate.CodeBlind, "it accepts the base as well, so nothing has shown that it can refuse; a command that holds before and after is a gate of the policy, with a probe")
	case err != nil && e.Kind == fault.Unmeasured:
		return unmeasured(e.Code, e.Error())
	case err != nil:
		return gate.Answer{}, issue, err
	}
	f.certs = append(f.certs, cert.Digest())
	return gate.Answer{Outcome: gate.Pass}, issue, m.site.Commit(context.WithoutCancel(ctx), ledger.CertificateDraft(cert))
}

// commandProbe makes the bad tree that the policy names.
func (m *measurement) commandProbe(ctx context.Context, b *bench) (evidence.Sabotage, error) {
	switch p := m.r.Policy.Probe; {
	case p.Patch != "":
		// From the base, like the policy: the change cannot weaken its own probe.
		diff, err := m.file(ctx, m.r.BaseTree, p.Patch)
		if err != nil {
			return evidence.Sabotage{}, fault.Wrap(err, fault.Unmeasured, gate.CodeNotProven, "probe %s of the base", p.Patch)
		}
		tree, err := m.patched(ctx, b.tree, string(diff))
		return evidence.Sabotage{Kind: evidence.SabotagePatch, Summary: "the patch " + p.Patch, Tree: tree, Diff: string(diff)}, err
	case p.Mutant:
		return m.writtenMutant(ctx, b)
	case p.Break == "build":
		return m.syntaxError(ctx, b)
	}
	return evidence.Sabotage{}, fault.New(fault.Unmeasured, gate.CodeNotProven, "the policy names no probe that command %q must refuse", m.r.Policy.Argv)
}

// writtenMutant seals the tree with a mutant written into the source: one of the
// change that its tests notice, where there is one; else one of another function.
func (m *measurement) writtenMutant(ctx context.Context, b *bench) (evidence.Sabotage, error) {
	if err := b.scan(ctx); err != nil {
		return evidence.Sabotage{}, err
	}
	all, err := m.mutants(ctx, b, false)
	if err == nil && len(all) == 0 {
		all, err = m.mutants(ctx, b, true)
	}
	if err != nil {
		return evidence.Sabotage{}, err
	}
	if len(all) == 0 {
		return evidence.Sabotage{}, fault.New(fault.Unmeasured, gate.CodeNotProven, "the tree has no code that a mutant could change")
	}
	chosen := all[0]
	for _, p := range all[:min(len(all), maxMutants)] {
		r, err := b.run(ctx, p.u, lang.Request{Purpose: evidence.PurposeProbe, Probe: &p.Probe, FailFast: true})
		if err != nil {
			return evidence.Sabotage{}, err
		}
		if evidence.Judge(r.Run).Status == evidence.Killed {
			chosen = p
			break
		}
	}
	tree, err := m.patched(ctx, b.tree, chosen.Diff)
	return evidence.Sabotage{Kind: evidence.SabotageMutant, Summary: chosen.Summary + " in " + chosen.File, Tree: tree, Diff: chosen.Diff}, err
}
