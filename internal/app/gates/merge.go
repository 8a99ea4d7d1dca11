package gates

import (
	"context"
	"fmt"
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
)

// previewed are the gates that a merge preview must pass, with what holds when the
// policy says nothing about them.
var previewed = []struct {
	name   string
	policy Policy
}{
	{"build", Policy{Kind: gate.KindBuild}},
	{"suite.full", Policy{Kind: gate.KindSuite, Tests: "all", Repeat: 3}},
}

// merge judges the preview that git made of target and snapshot. Where it is the
// snapshot, what was measured about that holds; otherwise it is built and tested,
// each with its own probe.
func (m *measurement) merge(ctx context.Context) (found, error) {
	f := found{Answer: gate.Answer{Outcome: gate.Pass}, metrics: map[string]float64{"conflicts": float64(len(m.r.Conflicts)), "differs": 0}}
	switch {
	case len(m.r.Conflicts) > 0:
		f.Answer = gate.Answer{Outcome: gate.No, Code: gate.CodeMergeConflict, Reason: fmt.Sprintf("%d paths conflict with the target, the first is %q", len(m.r.Conflicts), m.r.Conflicts[0])}
		for _, p := range m.r.Conflicts {
			f.issues = append(f.issues, gate.Issue{Category: gate.Defect, Code: gate.CodeMergeConflict, File: p, Message: "it was changed on the target, too", Repro: []string{"git", "merge-tree"}})
		}
		return f, nil
	case m.r.MergeTree == "":
		return found{}, fault.New(fault.Usage, "usage", "gate %s has neither a preview nor conflicts", m.r.Gate)
	case m.r.MergeTree == m.r.Tree:
		return f, nil
	}
	f.metrics["differs"] = 1
	for _, g := range previewed {
		r := m.r
		r.Gate, r.Policy, r.Tree, r.MergeTree, r.Baseline = g.name, g.policy, m.r.MergeTree, "", nil
		if p, ok := m.r.Policy.Gates[g.name]; ok {
			r.Policy = p
		}
		r.Policy.IsolationMin = stronger(r.Policy.IsolationMin, m.r.Policy.IsolationMin)
		res, err := Measure(ctx, m.app, r)
		if err != nil {
			return found{}, err
		}
		e := res.Evidence
		f.runs = append(f.runs, slices.DeleteFunc(e.Runs, func(d evidence.Digest) bool { return slices.Contains(f.runs, d) })...)
		f.certs = append(f.certs, e.Certificates...)
		if e.Probe != "" {
			f.certs = append(f.certs, e.Probe)
		}
		f.issues = append(f.issues, res.Issues...)
		f.isolation = evidence.Isolation{Level: weaker(f.isolation.Level, e.Isolation), Network: e.Network}
		if e.Tests != nil {
			f.tests = e.Tests
		}
		// Empty has nothing to say against the preview.
		if e.Outcome == gate.No || e.Outcome == gate.NotMeasured {
			f.Answer = gate.Answer{Outcome: e.Outcome, Code: e.Code, Reason: g.name + " on the preview: " + e.Reason}
			return f, nil
		}
	}
	return f, nil
}

func stronger(a, b evidence.Level) evidence.Level {
	if b.Rank() > a.Rank() {
		return b
	}
	return a
}

func weaker(a, b evidence.Level) evidence.Level {
	if a == "" || (b != "" && b.Rank() < a.Rank()) {
		return b
	}
	return a
}
