package flows

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/snapshot"
	"github.com/proveto/proveto/internal/view"
)

// SubmitOptions hand in work, or a contract.
type SubmitOptions struct {
	Request
	Stage    string // empty: the stage whose role hands this in
	Snapshot string // rev or "."; of work
	Plan     []byte // of a contract
	Note     string
	Token    string
	NoWait   bool
}

// Submit hands in work at the developer's stage and measures it.
func (f *Flows) Submit(ctx context.Context, o SubmitOptions) (*view.FlowAdvance, error) {
	if o.Snapshot == "" {
		o.Snapshot = "."
	}
	return f.submitAt(ctx, o, policy.Developer)
}

// SubmitPlan hands in a contract at the planner's stage and measures it.
func (f *Flows) SubmitPlan(ctx context.Context, o SubmitOptions) (*view.FlowAdvance, error) {
	return f.submitAt(ctx, o, policy.Planner)
}

func (f *Flows) submitAt(ctx context.Context, o SubmitOptions, role policy.Role) (*view.FlowAdvance, error) {
	if err := checkText("--note", o.Note, MaxNote); err != nil {
		return nil, err
	}
	k, err := f.load(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	for i := range k.Stages {
		if s := &k.Stages[i]; s.Role == role && o.Stage == "" {
			o.Stage = s.ID
		}
	}
	if o.Stage == "" {
		return nil, fault.New(fault.Refused, flow.CodeUnknownStage, "no stage of policy %s is for role %s", k.Policy.Name, role).Hint("proveto flow status %s", k.ID)
	}
	return f.handIn(ctx, o, k, false)
}

// handOver is an approval of a stage that hands something in and has gates.
func (f *Flows) handOver(ctx context.Context, o AdvanceOptions, k known) (*view.FlowAdvance, error) {
	so := SubmitOptions{Request: o.Request, Stage: o.Stage, Snapshot: o.Snapshot, Plan: o.Plan, Note: o.Note, Token: o.Token, NoWait: o.NoWait}
	s := k.Stage(o.Stage)
	switch {
	case s.Role == policy.Planner && o.Plan == nil && s.State != flow.Passed:
		return nil, fault.New(fault.Usage, "usage", "stage %s hands in a plan: --plan FILE", s.ID).Hint("proveto flow plan new %s", k.ID)
	case s.Role == policy.Developer && o.Snapshot == "":
		so.Snapshot = "."
	}
	return f.handInUnplanned(ctx, so, k, o.Unplanned)
}

func (f *Flows) handIn(ctx context.Context, o SubmitOptions, k known, unplanned bool) (*view.FlowAdvance, error) {
	return f.carryIn(ctx, o, k, unplanned, false)
}

func (f *Flows) handInUnplanned(ctx context.Context, o SubmitOptions, k known, unplanned bool) (*view.FlowAdvance, error) {
	return f.carryIn(ctx, o, k, unplanned, true)
}

// carryIn submits, with the token of the plan where the verb wants it, and
// measures.
func (f *Flows) carryIn(ctx context.Context, o SubmitOptions, k known, unplanned, needToken bool) (*view.FlowAdvance, error) {
	d, err := f.change(ctx, o.Request, k, func(k known) (flow.Event, error) {
		o.signs = true
		ev, who, err := f.event(ctx, k, o.Request, o.Stage)
		ev.Do = flow.Submit{Stage: o.Stage} // of a refusal
		if err != nil {
			return ev, err
		}
		act := flow.Submit{Stage: o.Stage, Submission: flow.Submission{Note: o.Note, Token: o.Token, Unplanned: unplanned, NeedToken: needToken}}
		ev.Do = act
		if err := f.subject(ctx, o, k, &act.Submission); err != nil {
			return ev, err
		}
		ev.Do = act
		after, _, ferr := flow.Next(k.Run, ev)
		if ferr != nil {
			return ev, ferr
		}
		s := after.Stage(o.Stage)
		act.Signed, err = who.sign(ctx, map[string]any{
			"schema": schemaSubmission, "ledger_id": k.ledgerID, "run": k.ID, "stage": o.Stage, "attempt": s.Attempt, "input": s.Input,
			"note_sha256": evidence.DigestOf([]byte(o.Note)), "plan": s.Subject.Plan, "tree": s.Subject.Tree, "policy": k.PolicyDigest,
			"seen_seq": k.Seq, "time": ev.Now.UTC(), "nonce": ulid.Make().String(),
		})
		ev.Do = act
		return ev, err
	})
	if err != nil {
		return f.refusal(d, o.Stage, err), err
	}
	return f.measured(ctx, d, o.Stage, o.NoWait)
}

// measured measures what a change asks for, and answers.
func (f *Flows) measured(ctx context.Context, d done, stage string, noWait bool) (*view.FlowAdvance, error) {
	var merr error
	switch {
	case !noWait:
		merr = f.measure(ctx, &d, measureOptions{})
	case d.StatusAt(d.Last).Word == flow.StatusMeasuring:
		merr = fault.New(fault.Pending, "pending", "run %s is recorded and not measured yet", d.ID).Hint("proveto flow measure %s", d.ID)
	}
	v := f.answer(d, stage)
	if merr == nil {
		merr = answerFault(d, stage)
	}
	return v, merr
}

// subject makes what is handed in: a contract, or a snapshot.
func (f *Flows) subject(ctx context.Context, o SubmitOptions, k known, sub *flow.Submission) error {
	s := k.Stage(o.Stage)
	if s == nil {
		return nil // the rules name the stages that there are
	}
	if s.Role == policy.Planner {
		if o.Plan == nil {
			return nil
		}
		c, err := f.parsePlan("the plan", o.Plan)
		if err != nil {
			return err
		}
		return contractOf(c, sub)
	}
	if s.State == flow.Locked || s.State == flow.Measuring || s.State == flow.Passed || s.State == flow.Rejected {
		return nil // refused whatever it is; nothing need be sealed
	}
	return f.snapshotOf(ctx, k, o.Snapshot, sub)
}

// snapshotOf seals the work and keeps it for the run.
func (f *Flows) snapshotOf(ctx context.Context, k known, ref string, sub *flow.Submission) error {
	snaps, err := f.app.Snapshots(ctx)
	if err != nil {
		return err
	}
	if k.Repo == "" {
		return fault.New(fault.Refused, "base_unresolved", "run %s stands in no repository, so it takes no snapshot", k.ID).Hint("proveto flow status %s", k.ID)
	}
	repo, err := snaps.Locate(ctx, f.app.Where(""))
	if err != nil {
		return err
	}
	if repo.ID != k.Repo {
		return fault.New(fault.Refused, "base_unresolved", "run %s is about another repository than %s", k.ID, repo.Root).Hint("proveto -C DIR flow submit %s --snapshot .", k.ID)
	}
	opts := snapshot.Options{Gitlinks: true}
	if ref != "." {
		opts.Rev = ref
	}
	snap, kept, err := snaps.SealRun(ctx, repo, opts, snapshot.Keep{
		Run: k.ID, N: int(k.Seq) + 1, Parents: []string{k.Base.Commit}, Message: "snapshot of run " + k.ID + "\n", Time: f.app.Now(),
	})
	if err != nil {
		return err
	}
	sub.Subject.Tree, sub.Subject.Commit, sub.Subject.Ref = snap.Tree, kept.Commit, kept.Ref
	sub.Empty = snap.Tree == k.Base.Tree
	deltas, err := snaps.Deltas(ctx, repo, k.Base.Tree, snap.Tree)
	if err != nil {
		return err
	}
	if sub.Subject.Diff, err = diffDigest(deltas); err != nil {
		return err
	}
	sub.Risk, err = riskOf(k, deltas)
	return err
}

// diffDigest is the difference from the base, whatever the base is: what each
// changed path was and is.
func diffDigest(deltas []snapshot.Delta) (evidence.Digest, error) {
	var lines []string
	for _, d := range deltas {
		lines = append(lines, fmt.Sprintf("%q %s %s %s %s", d.Path, d.OldMode, d.OldBlob, d.NewMode, d.NewBlob))
	}
	return digest(lines)
}

// riskOf is the level of a change: what the plan says, raised by what it touches.
func riskOf(k known, deltas []snapshot.Delta) (policy.RiskLevel, error) {
	var c struct {
		Risk policy.RiskLevel `json:"risk"`
	}
	if k.Plan != nil {
		if err := json.Unmarshal(k.Plan.Contract, &c); err != nil {
			return "", fmt.Errorf("the contract of run %s: %w", k.ID, err)
		}
	}
	var bad error
	level := k.Policy.RiskOf(c.Risk, func(patterns []string) bool {
		set, err := plan.CompileSet(patterns)
		if err != nil {
			bad = err
			return true
		}
		for _, d := range deltas {
			if set.Match(d.Path) {
				return true
			}
		}
		return false
	})
	return level, bad
}

// repoOf is the repository of a run: the one of the working directory when it is
// that one, else as it was found on this machine before.
func (f *Flows) repoOf(ctx context.Context, k known) (*snapshot.Store, snapshot.Repo, error) {
	snaps, err := f.app.Snapshots(ctx)
	if err != nil {
		return nil, snapshot.Repo{}, err
	}
	if f.insideRepository() {
		if repo, err := snaps.Locate(ctx, f.app.Where("")); err == nil && repo.ID == k.Repo {
			return snaps, repo, nil
		}
	}
	repo, err := snaps.Lookup(k.Repo)
	if err != nil {
		return nil, repo, err
	}
	// What stands in the record may have moved on: heads are read again.
	fresh, err := snaps.Locate(ctx, repo.Root)
	if err == nil && fresh.ID != k.Repo {
		err = fault.New(fault.Refused, "base_unresolved", "the repository of run %s is not at %s any more", k.ID, repo.Root).Hint("proveto -C DIR flow status %s", k.ID)
	}
	return snaps, fresh, err
}
