package flows

import (
	"context"
	"fmt"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/view"
)

// CodeReplayDiffers says that a gate measured again gave another answer.
const CodeReplayDiffers fault.Code = "replay_differs"

// The words of a replay.
const (
	replaySame    = "same"
	replayDiffers = "differs"
	replayCannot  = "cannot"
)

// ReplayOptions say what is measured again.
type ReplayOptions struct {
	Run  string
	Gate string // only this one; empty: all
}

// Replay measures the gates of the current attempts of a run again, in clean
// checkouts, and compares. The runs that it makes are in the ledger; the run of
// the flow stays as it is. The view is returned also beside the error that says
// that something differs.
func (f *Flows) Replay(ctx context.Context, o ReplayOptions, tell func(gate string)) (*view.FlowReplay, error) {
	k, err := f.load(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	v := &view.FlowReplay{Run: k.ID, Gates: []view.FlowReplayGate{}}
	for i := range k.Stages {
		s := &k.Stages[i]
		for _, name := range s.Gates {
			e, ok := s.Evidence[name]
			if !ok || o.Gate != "" && o.Gate != name {
				continue
			}
			tell(name)
			g, err := f.again(ctx, k, s, name, e)
			if err != nil {
				return v, err
			}
			v.Gates = append(v.Gates, g)
			switch g.Word {
			case replaySame:
				v.Same++
			case replayDiffers:
				v.Differs++
			default:
				v.Cannot++
			}
		}
	}
	v.Text = fmt.Sprintf("%d same, %d differ, %d cannot be measured again", v.Same, v.Differs, v.Cannot)
	switch {
	case len(v.Gates) == 0 && o.Gate != "":
		return nil, fault.New(fault.NotFound, flow.CodeNotFound, "run %s has no evidence of a gate %.60q on a current attempt", k.ID, o.Gate).Hint("proveto flow evidence %s", k.ID)
	case len(v.Gates) == 0:
		return nil, fault.New(fault.NotFound, flow.CodeNotFound, "run %s has no evidence that could be measured again", k.ID).Hint("proveto flow status %s", k.ID)
	case v.Differs > 0:
		return v, fault.New(fault.Negative, CodeReplayDiffers, "run %s measured again: %s", k.ID, v.Text).Hint("proveto flow evidence %s", k.ID)
	case v.Cannot > 0:
		return v, fault.New(fault.Unmeasured, gate.CodeUnmeasured, "run %s measured again: %s", k.ID, v.Text).Hint("proveto doctor")
	}
	return v, nil
}

// again measures one gate again.
func (f *Flows) again(ctx context.Context, k known, s *flow.Stage, name string, e flow.Evidence) (view.FlowReplayGate, error) {
	v := view.FlowReplayGate{Stage: s.ID, Attempt: s.Attempt, Gate: name, Evidence: e.ID, Word: replayCannot, Before: string(e.Outcome)}
	if why := cannotReplay(k, name, e); why != "" {
		v.Why = why
		return v, nil
	}
	k.replay = &e
	act, err := f.gate(ctx, k, s.ID, name)
	if ctx.Err() != nil {
		return v, context.Cause(ctx)
	}
	if err != nil {
		if c := fault.From(err); c.Kind == fault.Internal || c.Kind == fault.Tampered {
			return v, err
		}
		v.Why = err.Error()
		return v, nil
	}
	now := act.Evidence
	v.Now, v.Again = string(now.Outcome), now.ID
	v.Word, v.Why = compared(e.Evidence, now)
	if v.Word != replaySame && now.GateDigest != e.GateDigest {
		v.Why += "; the gate was measured with other tools or another version then"
	}
	return v, nil
}

// cannotReplay says why a gate cannot be asked the same question again.
func cannotReplay(k known, name string, e flow.Evidence) string {
	g, ok := k.Policy.Gate(name)
	switch {
	case !ok:
		return "the policy has no such gate any more"
	case g.Kind == policy.GateMerge && e.Merged == "":
		return "where the target stood then is not recorded"
	case g.Kind == policy.GatePlanDiff && e.Outcome == gate.No:
		return "its no may be about where the target stood then, which is not recorded"
	}
	return ""
}

// compared says whether two measurements of one subject agree: in the outcome,
// its code and the tests that were counted. Certificates and runs are new ones
// each time.
func compared(then, now gate.Evidence) (word, why string) {
	switch {
	case now.Outcome == gate.NotMeasured && then.Outcome != gate.NotMeasured:
		return replayCannot, now.Reason
	case now.Outcome != then.Outcome:
		return replayDiffers, fmt.Sprintf("%s then, %s now: %s", then.Outcome, now.Outcome, orText(now.Reason, orText(then.Reason, "no reason was given")))
	case now.Code != then.Code:
		return replayDiffers, fmt.Sprintf("%s then, %s now", orText(string(then.Code), "no code"), orText(string(now.Code), "no code"))
	case then.Tests != nil && now.Tests != nil && *then.Tests != *now.Tests:
		return replayDiffers, fmt.Sprintf("of the tests, %d executed, %d skipped, %d failed then; %d, %d, %d now",
			then.Tests.Executed, then.Tests.Skipped, then.Tests.Failed, now.Tests.Executed, now.Tests.Skipped, now.Tests.Failed)
	}
	return replaySame, ""
}
