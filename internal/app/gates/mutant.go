package gates

import (
	"context"
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/lang"
)

// maxMutants bounds how many mutants of the change are put before the suite until
// one turns it red.
const maxMutants = 40

// changedSymbols are the functions of a unit whose lines the change touches.
func (m *measurement) changedSymbols(ctx context.Context, b *bench) (map[string]bool, error) {
	lines, err := m.site.Snapshots().ChangedLines(ctx, m.r.Repo, m.r.BaseTree, b.tree)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, p := range b.projects {
		if p.scan == nil {
			continue
		}
		for _, s := range p.scan.Symbols {
			if s.TestCode || s.Excluded != "" {
				continue
			}
			for _, l := range lines[s.File] {
				if l.First <= s.EndLine && s.Line <= l.Last {
					out[s.ID] = true
				}
			}
		}
	}
	return out, nil
}

// mutant is a probe of a changed function in a unit whose tests may notice it.
type mutant struct {
	u unit
	lang.Probe
}

// mutants lists those of the change, or of all code: first in the unit of the
// function itself, then in the units that import it.
func (m *measurement) mutants(ctx context.Context, b *bench, everywhere bool) ([]mutant, error) {
	changed, err := m.changedSymbols(ctx, b)
	if err != nil {
		return nil, err
	}
	var own, others []mutant
	for _, u := range b.tested() {
		s, err := b.suite(ctx, u)
		if err != nil {
			return nil, err
		}
		for _, sy := range u.p.scan.Symbols {
			if sy.TestCode || sy.Excluded != "" || !everywhere && !changed[sy.ID] || (sy.Unit != u.ID && !slices.Contains(u.Imports, sy.Unit)) {
				continue
			}
			for _, p := range s.Probes(sy.ID, nil, false) {
				if sy.Unit == u.ID {
					own = append(own, mutant{u, p})
				} else {
					others = append(others, mutant{u, p})
				}
			}
		}
	}
	return append(own, others...), nil
}

// mutantProbe looks for a mutant of the change that turns the suite red. A change
// without code to mutate gets a planted assertion instead, and says so.
func (m *measurement) mutantProbe(ctx context.Context, b *bench, good []evidence.UnitRun, metrics map[string]float64) (evidence.Certificate, error) {
	all, err := m.mutants(ctx, b, false)
	if err != nil {
		return evidence.Certificate{}, err
	}
	metrics["mutants"] = float64(len(all))
	if len(all) == 0 {
		return m.plantProbe(ctx, b, good)
	}
	var blind error
	for _, p := range all[:min(len(all), maxMutants)] {
		bad, err := b.run(ctx, p.u, lang.Request{Purpose: evidence.PurposeProbe, Probe: &p.Probe, FailFast: true})
		if err != nil {
			return evidence.Certificate{}, err
		}
		s := evidence.Sabotage{Kind: evidence.SabotageMutant, Summary: p.Summary + " in " + p.File, Probe: p.Digest(), Diff: p.Diff}
		c, err := evidence.NewGate(m.facts(evidence.RuleGreen, s), evidence.GateRuns{Good: good, Bad: []evidence.UnitRun{bad}})
		if err == nil {
			m.sabotage = s
			return c, nil
		}
		if e := fault.From(err); e.Kind != fault.Unmeasured || blind == nil || e.Code == gate.CodeBlind {
			blind, m.sabotage = err, s
		}
		if fault.From(err).Kind != fault.Unmeasured {
			return c, err
		}
	}
	return evidence.Certificate{}, blind
}

// plantProbe plants a failing assertion: nothing of the change can be mutated.
func (m *measurement) plantProbe(ctx context.Context, b *bench, good []evidence.UnitRun) (evidence.Certificate, error) {
	for _, u := range b.tested() {
		i := slices.IndexFunc(good, func(r evidence.UnitRun) bool { return r.Unit == u.ID })
		if i < 0 || firstPassed(good[i].Run) == "" {
			continue
		}
		test := firstPassed(good[i].Run)
		m.sabotage = evidence.Sabotage{Kind: evidence.SabotagePlanted, Summary: "the change has no code to mutate: a failing assertion planted in " + test + " of " + u.ID}
		bad, err := b.run(ctx, u, lang.Request{Purpose: evidence.PurposePlanted, Tests: []string{test}, Plant: test})
		if err != nil {
			return evidence.Certificate{}, err
		}
		return evidence.NewGate(m.facts(evidence.RuleGreen, m.sabotage), evidence.GateRuns{Good: good, Bad: []evidence.UnitRun{bad}})
	}
	return evidence.Certificate{}, fault.New(fault.Unmeasured, gate.CodeNotProven, "no test passed in which an assertion could be planted")
}
