package flows

import (
	"context"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/view"
)

// AdvanceOptions are a decision as the user gives it.
type AdvanceOptions struct {
	Request
	Stage     string
	Decision  flow.Decision
	Note      string
	Findings  []flow.Finding
	Token     string
	Unplanned bool
	Plan      []byte // a contract, for the planner's stage; nil: none
	Snapshot  string // rev or "."; empty: none
	NoWait    bool
}

// Advance records a decision on a stage. On a stage that hands something in and
// has gates, an approval is the hand-over: it submits and measures, and judges
// nothing.
func (f *Flows) Advance(ctx context.Context, o AdvanceOptions) (*view.FlowAdvance, error) {
	if o.Token != "" && o.Unplanned {
		return nil, fault.New(fault.Usage, flow.CodeContradictory, "--plan-token and --allow-unplanned contradict each other: give one of them")
	}
	if err := checkText("--note", o.Note, MaxNote); err != nil {
		return nil, err
	}
	k, err := f.load(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	s := k.Stage(o.Stage)
	if s != nil && len(s.Gates) > 0 && policy.Produces(s.Stage) && o.Decision == flow.Approve {
		return f.handOver(ctx, o, k)
	}
	d, err := f.change(ctx, o.Request, k, func(k known) (flow.Event, error) { return f.decision(ctx, o, k) })
	if err != nil {
		return f.refusal(d, o.Stage, err), err
	}
	if !o.NoWait {
		if err := f.measure(ctx, &d, measureOptions{}); err != nil {
			return f.answer(d, o.Stage), err
		}
	}
	v := f.answer(d, o.Stage)
	v.Text = decidedText(d, o)
	return v, answerFault(d, o.Stage)
}

// decision makes the signed event of a decision.
func (f *Flows) decision(ctx context.Context, o AdvanceOptions, k known) (flow.Event, error) {
	o.signs = true
	ev, who, err := f.event(ctx, k, o.Request, o.Stage)
	ev.Do = flow.Decide{Stage: o.Stage, Decision: o.Decision} // of a refusal
	if err != nil {
		return ev, err
	}
	if who.made != nil {
		if err := who.made.audience(k, o.Stage); err != nil {
			return ev, err
		}
	}
	ev, st, err := f.judgement(ctx, o, k, ev)
	if err != nil {
		return ev, err
	}
	act, _ := ev.Do.(flow.Decide) // made there
	if who.made != nil {
		if err := who.made.asNow(k, ev.Now, st); err != nil {
			return ev, err
		}
		act.Signed = who.made.signed
	} else if act.Signed, err = who.sign(ctx, st); err != nil {
		return ev, err
	}
	ev.Do = act
	return ev, nil
}

// judgement makes the event of a decision without its signature, and what is to
// be signed.
func (f *Flows) judgement(ctx context.Context, o AdvanceOptions, k known, ev flow.Event) (flow.Event, statement, error) {
	act := flow.Decide{
		Stage: o.Stage, ID: "dec_" + ulid.Make().String(), Decision: o.Decision, Note: o.Note, Findings: o.Findings,
		Submission: flow.Submission{Note: o.Note, Token: o.Token, Unplanned: o.Unplanned, NeedToken: o.Decision == flow.Approve},
	}
	if s := k.Stage(o.Stage); s != nil && len(s.Gates) == 0 {
		if err := f.noteSubject(ctx, o, k, s, &act.Submission); err != nil {
			return ev, statement{}, err
		}
	}
	ev.Do = act
	// What would be judged is what is signed.
	after, step, ferr := flow.Next(k.Run, ev)
	if ferr != nil {
		return ev, statement{}, ferr
	}
	st := statement{
		Schema: schemaDecision, LedgerID: k.ledgerID, Run: k.ID, Stage: o.Stage, Attempt: after.Stage(o.Stage).Attempt, Decision: string(o.Decision),
		NoteSHA256: evidence.DigestOf([]byte(o.Note)), Policy: k.PolicyDigest, SeenSeq: k.Seq, Time: ev.Now.UTC(), Nonce: ulid.Make().String(),
	}
	for _, x := range step.Facts {
		if d, ok := x.(*flow.Decided); ok {
			st.Input = d.Input
		}
	}
	cites(k.Stage(o.Stage), &st)
	if len(o.Findings) > 0 {
		var err error
		if st.Findings, err = digest(o.Findings); err != nil {
			return ev, st, err
		}
	}
	act.Attempt, act.Input = st.Attempt, st.Input
	ev.Do = act
	return ev, st, nil
}

// cites names the evidence that the decider was shown.
func cites(s *flow.Stage, st *statement) {
	st.Cites, st.Waivers = []string{}, []string{}
	if s == nil {
		return
	}
	for _, g := range s.Gates {
		if e, ok := s.Evidence[g]; ok {
			st.Cites = append(st.Cites, e.ID)
			if e.Waiver != "" {
				st.Waivers = append(st.Waivers, e.Waiver)
			}
		}
	}
}

// noteSubject makes the subject of a stage without gates: the note, a contract
// at the planner's stage, and a snapshot when one is given.
func (f *Flows) noteSubject(ctx context.Context, o AdvanceOptions, k known, s *flow.Stage, sub *flow.Submission) error {
	sub.Subject.Note = evidence.DigestOf([]byte(o.Note))
	switch {
	case s.Role == policy.Planner && o.Plan != nil:
		c, err := f.parsePlan("--plan", o.Plan)
		if err != nil {
			return err
		}
		return contractOf(c, sub)
	case s.Role == policy.Planner:
		c := plan.Manual(k.Task, o.Note)
		return contractOf(c, sub)
	case o.Snapshot != "":
		return f.snapshotOf(ctx, k, o.Snapshot, sub)
	}
	return nil
}

func contractOf(c *plan.Contract, sub *flow.Submission) error {
	body, err := c.Canonical()
	if err != nil {
		return err
	}
	id, err := c.ID()
	if err != nil {
		return err
	}
	sub.Contract, sub.Subject.Plan, sub.PlanKind = body, string(id), string(c.Kind)
	return nil
}

func digest(v any) (evidence.Digest, error) {
	b, err := evidence.Canonical(v)
	if err != nil {
		return "", err
	}
	return evidence.DigestOf(b), nil
}

func decidedText(d done, o AdvanceOptions) string {
	st := d.StatusAt(d.Last)
	word := map[flow.Decision]string{
		flow.Approve: "approval", flow.RequestChanges: "request for changes", flow.Reject: "rejection", flow.Abstain: "abstention",
	}[o.Decision]
	text := fmt.Sprintf("%s of stage %s is recorded; run %s is %s", word, o.Stage, d.ID, st.Word)
	if st.Reason != "" {
		text += " (" + strings.ReplaceAll(st.Reason, "_", " ") + ")"
	}
	if st.Stage != flow.Done {
		text += ", current stage " + st.Stage
	}
	return text
}

// answerFault is the exit of an answer that was recorded and did not pass.
func answerFault(d done, stage string) error {
	next := "proveto flow status " + d.ID
	switch d.answer {
	case flow.CodeRejected:
		return fault.New(fault.Pending, flow.CodeRejected, "stage %s was rejected; that is recorded", stage).Hint("%s", next)
	case flow.CodeChangesRequested:
		return fault.New(fault.Pending, flow.CodeChangesRequested, "changes were requested at stage %s; that is recorded", stage).Hint("proveto flow feedback %s", d.ID)
	case flow.CodeAbstained:
		return fault.New(fault.Pending, flow.CodeAbstained, "the abstention is recorded; it counts for nothing").Hint("%s", next)
	case flow.CodeApprovalsMissing:
		s := d.Stage(stage)
		n := d.Approvals(s)
		return fault.New(fault.Pending, flow.CodeApprovalsMissing, "the approval is recorded; stage %s has %d of %d approvals, %d of %d by humans", stage, n.Have, n.Need, n.HumansHave, n.HumansNeed).Hint("%s", next)
	}
	return nil
}
