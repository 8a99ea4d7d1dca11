package flows

import (
	"context"
	"fmt"
	"time"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/view"
)

// answer is what a verb that moves a run shows.
func (f *Flows) answer(d done, stage string) *view.FlowAdvance {
	st := d.StatusAt(d.at(f.app.Now()))
	v := &view.FlowAdvance{
		RunID: d.ID, RunStatus: string(st.Word), Reason: st.Reason, CurrentStage: st.Stage, Stage: stage,
		Findings: []view.FlowFinding{}, Replayed: d.replayed, Head: app.HeadOf(d.head),
	}
	if s := d.Stage(stage); s != nil {
		v.Attempt, v.Input = s.Attempt, string(s.Input)
		if n := len(s.Given); n > 0 {
			g := givenView(s.Given[n-1])
			v.Decision = &g
		}
	}
	for _, x := range d.facts {
		switch x := x.(type) {
		case *flow.PlanAccepted:
			if d.Plan != nil {
				v.PlanTokenIssued = &d.Plan.Token
			}
		case *flow.FindingOpened:
			v.Findings = append(v.Findings, findingView(x.Finding))
		}
	}
	if s := d.Stage(stage); d.replayed && d.answer == flow.CodeApproved && s != nil && s.Role == policy.Planner && d.Plan != nil {
		v.PlanTokenIssued = &d.Plan.Token
	}
	v.Text = fmt.Sprintf("run %s is %s, current stage %s", d.ID, st.Word, st.Stage)
	return v
}

// refusal is what is shown beside an error of a change: where the run stands, and
// no decision, since none was taken. Nil for an error that is about no run.
func (f *Flows) refusal(d done, stage string, err error) *view.FlowAdvance {
	if d.ID == "" || !refusals[fault.From(err).Kind] {
		return nil
	}
	v := f.answer(d, stage)
	v.Decision, v.Head, v.Text = nil, nil, "" // the refusal itself is an entry
	return v
}

// at is the later of the clock and the last fact; for a replay, when it was
// measured.
func (k known) at(now time.Time) time.Time {
	if k.replay != nil {
		return k.replay.Started
	}
	if now.Before(k.Last) {
		return k.Last
	}
	return now
}

// Head is the ledger's head of a status.
func (f *Flows) Head(ctx context.Context) (*view.Head, error) { return f.app.Head(ctx) }

// mostFindings are shown in a status.
const mostFindings = 50

// Status shows where a run stands. It writes nothing.
func (f *Flows) Status(ctx context.Context, ref string) (*view.FlowRun, *view.Head, error) {
	k, err := f.load(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	v, err := f.statusView(k)
	if err != nil {
		return v, nil, err
	}
	return v, app.HeadOf(k.head), nil
}

func (f *Flows) statusView(k known) (*view.FlowRun, error) {
	return f.statusAt(k, k.at(f.app.Now()))
}

// statusAt is the status of a run at a time.
func (f *Flows) statusAt(k known, at time.Time) (*view.FlowRun, error) {
	st := k.StatusAt(at)
	v := &view.FlowRun{
		Run: view.FlowHead{
			ID: k.ID, Task: k.Task, Project: k.Project, Status: string(st.Word), Reason: st.Reason, Unblock: st.Unblock, CurrentStage: st.Stage,
			Needs: k.Needs(), Base: k.Base.Commit, BaseTree: string(k.Base.Tree), Target: k.Target,
			Policy: view.FlowPolicy{Name: k.Policy.Name, Digest: string(k.PolicyDigest)}, Created: k.Opened, Dir: f.dir(k.ID),
		},
		Stages: []view.FlowStage{}, Findings: []view.FlowFinding{}, Waivers: []view.FlowWaiver{}, Separation: separationView(&k.Run),
		Claims: k.Claims, Refused: k.Refusals, Ledger: view.FlowLedger{Seq: k.Seq, Root: string(k.head.Root)},
	}
	if v.Run.Unblock == nil {
		v.Run.Unblock = []string{}
	}
	if !k.Expires.IsZero() {
		v.Run.Expires = &k.Expires
	}
	if !st.DecideBy.IsZero() {
		v.Run.DecideBy, v.Run.Overdue = &st.DecideBy, at.After(st.DecideBy)
	}
	bad := badSignatures(k.Run)
	v.Ledger.Verified = len(bad) == 0
	gates := 0
	for i := range k.Stages {
		s := &k.Stages[i]
		gates += len(s.Gates)
		v.Run.Round = max(v.Run.Round, s.Round)
		v.Stages = append(v.Stages, stageView(k, s, at, bad))
	}
	if gates == 0 {
		v.Evidence = fmt.Sprintf("none required by policy %q", k.Policy.Name)
	}
	for i := len(k.Findings) - 1; i >= 0; i-- {
		if x := k.Findings[i]; len(v.Findings) < mostFindings {
			v.Findings = append(v.Findings, findingView(x))
		}
		if x := k.Findings[i]; x.Severity == flow.Block && x.State != flow.FindingSettled && x.State != flow.FindingWaived {
			v.FindingsN.Blocking++
		}
	}
	v.FindingsN.Total = len(k.Findings)
	for _, w := range k.Waivers {
		v.Waivers = append(v.Waivers, view.FlowWaiver{ID: w.ID, Gate: w.Gate, Stage: w.Stage, Reason: w.Reason, By: w.By.Principal, Expires: w.Expires, Used: w.Used, Void: w.Void})
	}
	if u := k.Unplanned; u != nil {
		v.Unplanned = &view.FlowUnplanned{By: u.By.Principal, Reason: u.Reason, Waiver: u.Waiver}
	}
	if d := k.Delivered; d != nil {
		v.Delivery = &view.FlowDelivery{Commit: d.Commit, Tree: string(d.Tree), Ref: d.Ref, Old: d.Old}
	}
	if p := k.Plan; p != nil {
		v.Plan = &view.FlowPlan{ID: p.ID, Revision: p.Revision, Token: p.Token, Contract: p.Contract, Requirements: requirements(&k.Run)}
	}
	return v, badSignaturesFault(k.ID, bad)
}

func stageView(k known, s *flow.Stage, at time.Time, bad map[string]bool) view.FlowStage {
	n := k.Approvals(s)
	v := view.FlowStage{
		ID: s.ID, Role: string(s.Role), State: string(s.State), Attempt: s.Attempt, Input: string(s.Input), Tree: string(s.Subject.Tree),
		Producer: s.Producer.Principal, Gates: []view.FlowGate{}, Decisions: []view.FlowDecision{}, Because: s.Because, Earlier: len(s.Past),
		Approvals: view.FlowApprovals{Need: n.Need, Have: n.Have, HumansNeed: n.HumansNeed, HumansHave: n.HumansHave, Agents: n.Agents},
	}
	if l := s.Lease; l != nil && l.Until.After(at) {
		v.TakenBy, v.LeaseUntil = l.Holder.Principal, &l.Until
	}
	for _, g := range s.Gates {
		e := s.Evidence[g]
		x := view.FlowGate{ID: g, Need: "required", Outcome: string(e.Outcome), Code: string(e.Code), Reason: e.Reason, Evidence: e.ID, Waived: e.Waiver}
		x.Blind = e.Code == gate.CodeBlind
		v.Gates = append(v.Gates, x)
	}
	for _, g := range s.Given {
		d := givenView(g)
		d.Verified = !bad[g.ID]
		if word, why := k.worth(g); word == string(identity.WordFlagged) || word == string(identity.WordVoid) && d.Void == "" {
			d.Revoked = why
		}
		v.Decisions = append(v.Decisions, d)
	}
	return v
}

func givenView(g flow.Given) view.FlowDecision {
	d := view.FlowDecision{
		ID: g.ID, Principal: g.Actor.Principal, Kind: g.Actor.Kind, Key: g.Actor.Key, Decision: string(g.Decision), At: g.At, Verified: true,
		Note: g.Note, Withdrawn: g.Withdrawn, Void: g.Void,
	}
	if g.Note != "" {
		d.NoteSHA256 = string(evidence.DigestOf([]byte(g.Note)))
	}
	return d
}

func findingView(x flow.Finding) view.FlowFinding {
	return view.FlowFinding{
		ID: x.ID, Category: x.Category, Severity: string(x.Severity), State: string(x.State), Requirement: x.Requirement, File: x.File, Line: x.Line,
		Message: x.Message, Detail: x.Detail, Author: x.Author, Gate: x.Gate, Target: x.Target, Round: x.Round, Repro: x.Repro, Expected: x.Expected,
		Actual: x.Actual, Evidence: x.Evidence, NotCorrected: x.NotCorrected,
	}
}

// separationView says how each rule of separation stands, whoever decides next.
func separationView(r *flow.Run) []view.FlowSeparation {
	out := []view.FlowSeparation{}
	for _, x := range r.Separated() {
		out = append(out, view.FlowSeparation{Rule: x.Rule, State: x.State, Note: x.Note})
	}
	if len(out) == 0 && !r.Enforced {
		out = append(out, view.FlowSeparation{Rule: "the policy has none", State: "not_enforced", Note: "1 principal, separation not enforced"})
	}
	return out
}

// requirements are the requirements of the plan as they are measured.
func requirements(r *flow.Run) map[string]view.FlowRequirement {
	out := map[string]view.FlowRequirement{}
	for _, q := range r.Requirements() {
		v := view.FlowRequirement{State: string(q.State), Reason: q.Reason, Text: q.Text, Certificates: []string{}}
		for _, d := range q.Certificates {
			v.Certificates = append(v.Certificates, string(d))
		}
		out[q.ID] = v
	}
	return out
}
