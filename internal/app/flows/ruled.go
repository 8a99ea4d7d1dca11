package flows

import (
	"context"
	"fmt"
	"strings"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
)

// ruled measures a gate that is a pure function of ours: nothing runs. It has a
// probe all the same, tried each time, for it costs nothing.
func (f *Flows) ruled(_ context.Context, k known, s *flow.Stage, g policy.Gate, act *flow.Measure) error {
	if g.Kind == policy.GateFindings {
		f.findingsClosed(k, s, act)
		return nil
	}
	return fault.New(fault.Internal, "internal", "no rule for gate %s", act.Gate)
}

// findingsClosed says whether a blocking finding is open.
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
	return plan.Parse("the plan of run "+k.ID, p.Contract)
}
