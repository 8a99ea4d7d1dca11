package flows

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/view"
)

// VerbOptions are a verb that says something about a run or one of its stages.
type VerbOptions struct {
	Request
	Stage    string
	Note     string
	Decision string // withdraw: the veto; empty: the newest of the caller
}

// Take takes a lease on a stage.
func (f *Flows) Take(ctx context.Context, o VerbOptions) (*view.FlowAdvance, error) {
	return f.simply(ctx, o, flow.Take{Stage: o.Stage}, "stage %s of run %s is taken", o.Stage)
}

// Release ends a lease.
func (f *Flows) Release(ctx context.Context, o VerbOptions) (*view.FlowAdvance, error) {
	return f.simply(ctx, o, flow.Release{Stage: o.Stage, Note: o.Note}, "the lease on stage %s of run %s is released", o.Stage)
}

// Claim records what somebody says.
func (f *Flows) Claim(ctx context.Context, o VerbOptions) (*view.FlowAdvance, error) {
	if strings.TrimSpace(o.Note) == "" {
		return nil, fault.New(fault.Usage, flow.CodeNoteMissing, "a claim needs a text").Hint("proveto flow claim %s --text TEXT", o.Run)
	}
	return f.simply(ctx, o, flow.Say{ID: "clm_" + ulid.Make().String(), Stage: o.Stage, Text: o.Note}, "the claim is recorded in run %s; it counts for nothing")
}

// Reopen sends a run back to a stage.
func (f *Flows) Reopen(ctx context.Context, o VerbOptions) (*view.FlowAdvance, error) {
	return f.simply(ctx, o, flow.Reopen{Stage: o.Stage, Note: o.Note}, "stage %s of run %s is open again", o.Stage)
}

// Withdraw takes back a submission, or a veto.
func (f *Flows) Withdraw(ctx context.Context, o VerbOptions) (*view.FlowAdvance, error) {
	return f.simply(ctx, o, flow.Withdraw{Stage: o.Stage, Decision: o.Decision, Note: o.Note}, "withdrawn at stage %s of run %s", o.Stage)
}

// Pause stops a run for a while.
func (f *Flows) Pause(ctx context.Context, o VerbOptions) (*view.FlowAdvance, error) {
	return f.simply(ctx, o, flow.Pause{Note: o.Note}, "run %s is paused")
}

// Resume lets a paused run go on.
func (f *Flows) Resume(ctx context.Context, o VerbOptions) (*view.FlowAdvance, error) {
	return f.simply(ctx, o, flow.Resume{Note: o.Note}, "run %s goes on")
}

// Cancel ends a run for good.
func (f *Flows) Cancel(ctx context.Context, o VerbOptions) (*view.FlowAdvance, error) {
	return f.simply(ctx, o, flow.Cancel{Note: o.Note}, "run %s is cancelled")
}

// Amend says that the plan does not fit.
func (f *Flows) Amend(ctx context.Context, o VerbOptions) (*view.FlowAdvance, error) {
	return f.simply(ctx, o, flow.Amend{Note: o.Note}, "the plan of run %s is open for a new revision")
}

// AnswerOptions are an answer to a finding.
type AnswerOptions struct {
	Request
	Finding                    string
	Addressed, Disputed, Close bool
	Paths                      []string
	Note                       string
}

// Answer claims something about a finding, or closes it.
func (f *Flows) Answer(ctx context.Context, o AnswerOptions) (*view.FlowAdvance, error) {
	return f.simply(ctx, VerbOptions{Request: o.Request, Note: o.Note}, flow.Answer{
		Finding: o.Finding, Addressed: o.Addressed, Disputed: o.Disputed, Close: o.Close, Paths: o.Paths, Note: o.Note,
	}, "finding %s of run %s is answered; only a measurement or its author closes it", o.Finding)
}

// WaiveOptions are an exception as the user gives it.
type WaiveOptions struct {
	Request
	Gate, Stage, Reason string
	Paths               []string
	Expires             time.Duration
}

// Waive signs an exception.
func (f *Flows) Waive(ctx context.Context, o WaiveOptions) (*view.FlowAdvance, error) {
	if err := checkText("--reason", o.Reason, MaxNote); err != nil {
		return nil, err
	}
	k, err := f.load(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	d, err := f.change(ctx, o.Request, k, func(k known) (flow.Event, error) {
		o.signs = true
		ev, who, err := f.event(ctx, k, o.Request, "")
		ev.Do = flow.Waive{Stage: o.Stage, Gate: o.Gate} // of a refusal
		if err != nil {
			return ev, err
		}
		act := flow.Waive{ID: "wvr_" + ulid.Make().String(), Gate: o.Gate, Stage: o.Stage, Reason: o.Reason, Paths: o.Paths, Expires: ev.Now.Add(o.Expires).UTC()}
		act.Signed, err = who.sign(ctx, map[string]any{
			"schema": schemaWaiver, "ledger_id": k.ledgerID, "run": k.ID, "gate": o.Gate, "stage": o.Stage, "paths": o.Paths,
			"reason_sha256": evidence.DigestOf([]byte(o.Reason)), "expires": act.Expires, "nonce": act.ID,
		})
		ev.Do = act
		return ev, err
	})
	if err != nil {
		return f.refusal(d, o.Stage, err), err
	}
	v := f.answer(d, o.Stage)
	v.Text = fmt.Sprintf("gate %s of run %s is waived until %s; every view shows it as waived", o.Gate, d.ID, f.app.Now().Add(o.Expires).Format(time.RFC3339))
	return v, f.measure(ctx, &d, measureOptions{})
}

// simply carries an act that needs no more than who asks. The text ends with the
// run's id.
func (f *Flows) simply(ctx context.Context, o VerbOptions, act flow.Act, text string, args ...any) (*view.FlowAdvance, error) {
	if err := checkText("--note", o.Note, MaxNote); err != nil {
		return nil, err
	}
	k, err := f.load(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	d, err := f.change(ctx, o.Request, k, func(k known) (flow.Event, error) {
		ev, _, err := f.event(ctx, k, o.Request, o.Stage)
		ev.Do = act
		return ev, err
	})
	if err != nil {
		return f.refusal(d, o.Stage, err), err
	}
	v := f.answer(d, o.Stage)
	v.Text = fmt.Sprintf(text, append(args, any(d.ID))...)
	return v, nil
}
