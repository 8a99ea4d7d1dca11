package gates

import (
	"context"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/lang"
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
