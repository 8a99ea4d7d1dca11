package flow

import (
	"maps"
	"slices"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
)

// take folds one fact. It asks nothing: that a fact may follow was decided when
// it was made, by [Next], which folds its own facts here as well.
func (r *Run) take(f Fact, seq int64, leaf string, token TokenFunc) error {
	h := f.head()
	r.Seq, r.Last = seq, h.At
	if h.Idem != "" {
		if r.idem == nil {
			r.idem = map[string]Replay{}
		}
		r.idem[h.Idem] = Replay{Request: h.Request, Answer: h.Answer, Seq: seq, Stage: h.Stage}
	}
	var s *Stage
	if h.Stage != "" {
		if s = r.Stage(h.Stage); s == nil && r.ID != "" {
			return fault.New(fault.Tampered, "ledger_broken", "run %s has no stage %.60q", r.ID, h.Stage)
		}
	}
	if s == nil && ofStage(f) {
		return fault.New(fault.Tampered, "ledger_broken", "a %s names no stage", f.kind())
	}
	switch f := f.(type) {
	case *Opened:
		r.BaseSeq = seq
		if err := r.opened(f); err != nil {
			return err
		}
	case *PlanSubmitted:
		r.Proposed = &Plan{ID: f.Plan, Revision: f.Revision, Supersedes: f.Supersedes, Contract: f.Contract, Kind: f.PlanKind, Producer: f.Actor, At: f.At}
		r.Plans = append(r.Plans, *r.Proposed)
		s.submitted(Subject{Plan: f.Plan}, f.Input, f.Gates, f.Fence, h)
		r.remark(h, "submit", f.Note, "")
	case *PlanAccepted:
		if r.Proposed == nil || r.Proposed.ID != f.Plan {
			return fault.New(fault.Tampered, "ledger_broken", "plan %.20s was accepted and never submitted", f.Plan)
		}
		p := *r.Proposed
		if token != nil {
			p.Token = token(p.ID, leaf)
		}
		r.Plan = &p
	case *TakenFact:
		s.State, s.Fence, s.Lease = Taken, f.Fence, &Lease{Holder: f.Actor, Until: f.Until}
	case *LeaseLost:
		s.State, s.Lease = table[s.State][MoveLeaseLost].to, nil
	case *Submitted:
		s.submitted(f.Subject, f.Input, f.Gates, f.Fence, h)
		s.Failed, s.Carries = f.Retry, f.Carries
		if f.Risk != "" {
			r.Risk = f.Risk
		}
		if f.Unplanned {
			r.Unplanned = &Unplanned{By: f.Actor, Reason: f.Note}
		}
		r.remark(h, "submit", f.Note, "")
	case *Claim:
		r.Claims++
		r.remark(h, "claim", f.Text, f.ID)
	case *Probed:
		if r.Probes == nil {
			r.Probes = map[evidence.Digest]Probed{}
		}
		r.Probes[f.GateDigest] = *f
	case *Measured:
		r.measured(s, f, seq)
	case *Decided:
		r.decided(s, f, seq)
	case *Withdrawn:
		r.withdrawn(s, f)
	case *PassedFact:
		s.State, s.Outcome, s.Because = Passed, f.Outcome, ""
		s.passed = &pass{attempt: s.Attempt, subject: s.Subject, plan: s.Subject.Plan, given: s.approvals()}
	case *Carried:
		var given []string
		if s.passed != nil {
			given = s.passed.given
		}
		s.State, s.Outcome, s.Because = Passed, f.Outcome, ""
		s.Carried = &Carry{Rule: f.Rule, From: f.From}
		s.passed = &pass{attempt: s.Attempt, subject: s.Subject, plan: s.Subject.Plan, given: given}
	case *Rebased:
		r.BaseSeq = seq
		if err := r.rebased(f); err != nil {
			return err
		}
	case *StaleFact:
		if len(f.Void) > 0 {
			r.void(s, f)
		} else {
			s.inputChanged(f.Because)
		}
	case *Reopened:
		s.close()
		s.State, s.Round, s.Lease = Ready, f.Round, nil
		if f.Rejected != "" {
			s.Vetoes = append(s.Vetoes, Veto{Author: f.Actor, Tree: f.Rejected})
		}
	case *FeedbackDelivered:
		if r.Delivery == nil {
			r.Delivery = map[string]int{}
		}
		r.Delivery[f.To] = f.Round
	case *FindingOpened:
		r.Findings = append(r.Findings, f.Finding)
	case *FindingAnswered:
		r.answered(f)
	case *FindingClosed:
		if x := r.Finding(f.Finding); x != nil {
			x.State = f.State
		}
		r.remark(h, "close "+f.Finding, f.Note, "")
	case *Waived:
		r.Waivers = append(r.Waivers, Waiver{
			ID: f.ID, Gate: f.Gate, Stage: h.Stage, Paths: f.Paths, Reason: f.Reason, By: f.Actor, At: f.At, Expires: f.Expires,
		})
	case *WaiverUsed:
		r.used(s, f)
	case *Noted:
		r.noted(f)
	case *Delivered:
		r.Delivered, r.DeliveredSeq = f, seq
	case *Exported:
		r.Exports = append(r.Exports, *f)
	case *Refused:
		r.Refusals += max(1, f.Count)
		r.refusedAt = append(r.refusedAt, h.At)
		r.refusedAt = r.refusedAt[max(0, len(r.refusedAt)-MostRefusals):]
	}
	r.unlock()
	r.stamp()
	return nil
}

// stamp notes since when each stage is in its state.
func (r *Run) stamp() {
	for i := range r.Stages {
		if s := &r.Stages[i]; s.State != s.stamped {
			s.stamped, s.Since = s.State, r.Last
		}
	}
}

// ofStage tells the facts that are about a stage.
func ofStage(f Fact) bool {
	switch f.(type) {
	case *PlanSubmitted, *TakenFact, *LeaseLost, *Submitted, *Measured, *Decided, *Withdrawn, *PassedFact, *Carried, *StaleFact, *Reopened:
		return true
	}
	return false
}

func (r *Run) opened(f *Opened) error {
	p, err := decodePolicy(f.PolicyBody)
	if err != nil {
		return err
	}
	r.ID, r.Task, r.Project, r.Repo, r.Base, r.Target = f.Run, f.Task, f.Project, f.Repo, f.Base, f.Target
	r.Policy, r.PolicyDigest, r.Roster, r.RosterDigest, r.Enforced, r.Holders = p, f.PolicyDigest, f.Roster, f.RosterDigest, f.Enforced, f.Holders
	r.Parent, r.AfterRuns, r.Opener, r.Opened, r.Expires = f.Parent, f.AfterRun, f.Actor, f.At, f.Expires
	for _, d := range p.Stages {
		r.Stages = append(r.Stages, Stage{Stage: d, State: Locked})
	}
	r.unlock()
	return nil
}

func (r *Run) rebased(f *Rebased) error {
	p, err := decodePolicy(f.PolicyBody)
	if err != nil {
		return err
	}
	r.Base, r.PolicyDigest, r.Roster, r.RosterDigest, r.Enforced, r.Holders = f.Base, f.PolicyDigest, f.Roster, f.RosterDigest, f.Enforced, f.Holders
	// Stages keep what happened to them by their name; a policy that has others
	// begins those anew.
	old := r.Stages
	r.Policy, r.Stages = p, nil
	for _, d := range p.Stages {
		s := Stage{Stage: d, State: Locked}
		if i := slices.IndexFunc(old, func(o Stage) bool { return o.ID == d.ID }); i >= 0 {
			s = old[i]
			s.Stage = d
		}
		r.Stages = append(r.Stages, s)
	}
	r.unlock()
	return nil
}

// unlock keeps what locked and ready mean: locked while an upstream stage is not
// passed.
func (r *Run) unlock() {
	for i := range r.Stages {
		s := &r.Stages[i]
		switch up := r.upstream(s); {
		case s.State == Locked && up:
			s.State = Ready
		case s.State == Ready && !up:
			s.State = Locked
		}
	}
}

// submitted opens a new attempt unless it is the same input again.
func (s *Stage) submitted(sub Subject, input evidence.Digest, gates []evidence.Digest, fence int, h *Head) {
	s.close()
	s.Attempt, s.Fence, s.Subject, s.Input, s.GateIDs, s.Producer, s.Lease, s.Failed = h.Attempt, fence, sub, input, gates, h.Actor, nil, 0
	s.Evidence, s.Given, s.Because, s.Carries, s.Carried = nil, nil, "", "", nil
	if h.Actor.Kind != kindEngine && !slices.Contains(s.Producers, h.Actor) {
		s.Producers = append(s.Producers, h.Actor)
	}
	s.State = Measuring
	if len(s.Gates) == 0 {
		s.State = Deciding
	}
}

// close puts the current attempt with those of the past.
func (s *Stage) close() {
	if s.Attempt == 0 || len(s.Past) > 0 && s.Past[len(s.Past)-1].N == s.Attempt {
		return
	}
	s.Past = append(s.Past, Attempt{N: s.Attempt, State: s.State, Input: s.Input, Subject: s.Subject, Given: slices.Clone(s.Given), Evidence: maps.Clone(s.Evidence), Carried: s.Carried})
}

func (s *Stage) inputChanged(why string) {
	if c := table[s.State][MoveInputChanged]; c.to != "" {
		s.State = c.to
	}
	s.Because, s.Lease, s.Failed = why, nil, 0
}

func (r *Run) measured(s *Stage, f *Measured, seq int64) {
	if f.Attempt != s.Attempt || f.Fence != s.Fence {
		return
	}
	if s.Evidence == nil {
		s.Evidence = map[string]Evidence{}
	}
	e := Evidence{Evidence: f.Evidence, Merged: f.Merged, Seq: seq}
	if old, ok := s.Evidence[f.Gate]; ok {
		e.Waiver = old.Waiver
	}
	s.Evidence[f.Gate] = e
	for i := range r.Findings {
		x := &r.Findings[i]
		if x.Gate == f.Gate && !x.done() && slices.Contains(f.Issues, x.key()) {
			x.NotCorrected = x.NotCorrected || x.State == FindingAddressed
			x.State = FindingOpen
		}
	}
	r.judge(s)
}

// judge moves a stage whose gates are all measured.
func (r *Run) judge(s *Stage) {
	if s.State != Measuring {
		return
	}
	switch to := r.weigh(s); to {
	case Returned:
		s.comeBack(to)
		s.Vetoes = append(s.Vetoes, Veto{Author: Engine(), Input: s.Input, Tree: s.Subject.Tree})
	case Ready:
		s.State = to
		s.Failed++
	default:
		s.State = to
	}
}

// weigh says where the evidence of the current attempt leads from measuring.
func (r *Run) weigh(s *Stage) StageState {
	missing, refused, unknown := 0, 0, 0
	for _, g := range s.Gates {
		e, ok := s.Evidence[g]
		switch {
		case !ok:
			missing++
		case r.opens(g, e):
		case e.Outcome == gate.No:
			refused++
		default:
			unknown++
		}
	}
	switch {
	case r.hopeless(s): // what breaks the plan is not built
		return table[Measuring][MoveNo].to
	case missing > 0:
		return Measuring
	case refused > 0:
		return table[Measuring][MoveNo].to
	case unknown > 0:
		return table[Measuring][MoveNotMeasured].to
	}
	return table[Measuring][MoveAllPass].to
}

// hopeless tells work, or a plan, that breaks the rules of the plan: nothing else
// about it need be measured.
func (r *Run) hopeless(s *Stage) bool {
	for _, g := range []string{policy.PlanLint, policy.PlanDiff} {
		if e, ok := s.Evidence[g]; ok && e.Outcome == gate.No && e.Waiver == "" {
			return true
		}
	}
	return false
}

// comeBack counts a round of a stage that makes something: it has to make it
// again.
func (s *Stage) comeBack(state StageState) {
	if s.State = state; policy.Produces(s.Stage) {
		s.Round++
	}
}

// opens tells evidence that lets a stage through: a pass, nothing to check where
// the policy is content with that, or a waiver.
func (r *Run) opens(name string, e Evidence) bool {
	return e.Outcome == gate.Pass || e.Waiver != "" || e.Outcome == gate.Empty && r.Policy.EmptyPasses(name, r.planKind())
}

func (r *Run) decided(s *Stage, f *Decided, seq int64) {
	g := Given{
		ID: f.ID, Actor: f.Actor, Decision: f.Decision, Attempt: f.Attempt, Input: f.Input, Note: f.Note, At: f.At, Seq: seq, Signed: f.Signed,
	}
	s.Given = append(s.Given, g)
	switch f.Decision {
	case RequestChanges, Reject:
		if f.Decision == Reject && !r.stays() {
			s.State = Rejected
		} else {
			s.comeBack(Returned)
		}
		s.Lease = nil
		s.Vetoes = append(s.Vetoes, Veto{Decision: f.ID, Author: f.Actor, Input: f.Input, Tree: s.Subject.Tree})
	}
	r.remark(&f.Head, string(f.Decision), f.Note, "")
}

// stays tells a policy under which a rejected stage stays the current one.
func (r *Run) stays() bool { return r.Policy.OnReject == policy.Stay }

func (r *Run) withdrawn(s *Stage, f *Withdrawn) {
	r.remark(&f.Head, "withdraw", f.Note, "")
	if f.Decision == "" {
		s.close()
		s.State, s.Lease = table[s.State][MoveWithdraw].to, nil
		return
	}
	standing := false
	for i := range s.Given {
		if s.Given[i].ID == f.Decision {
			s.Given[i].Withdrawn = true
		}
	}
	for i := range s.Vetoes {
		if s.Vetoes[i].Decision == f.Decision {
			s.Vetoes[i].Withdrawn = true
		}
		standing = standing || !s.Vetoes[i].Withdrawn && s.Vetoes[i].Input == s.Input
	}
	if !standing && (s.State == Returned || s.State == Rejected) {
		s.State = r.weigh(s)
	}
}

func (r *Run) answered(f *FindingAnswered) {
	x := r.Finding(f.Finding)
	if x == nil {
		return
	}
	r.Answers = append(r.Answers, Answered{Stage: x.Target, Actor: f.Actor})
	if f.Disputed {
		x.State = FindingDisputed
		x.Disputes++
	} else {
		x.State = FindingAddressed
	}
}

// used lets a gate through by a waiver.
func (r *Run) used(s *Stage, f *WaiverUsed) {
	for i := range r.Waivers {
		if w := &r.Waivers[i]; w.ID == f.Waiver {
			w.Used = true
			if r.Unplanned != nil && f.For == WaiveUnplanned {
				r.Unplanned.Waiver, r.Unplanned.Reason = w.ID, w.Reason
			}
		}
	}
	if s == nil {
		return
	}
	e, ok := s.Evidence[f.For]
	if !ok {
		return
	}
	e.Waiver = f.Waiver
	s.Evidence[f.For] = e
	blocked := slices.ContainsFunc(s.Gates, func(g string) bool { return !r.opens(g, s.Evidence[g]) })
	if s.State == Returned && !blocked {
		for i := range s.Vetoes {
			if v := &s.Vetoes[i]; v.Decision == "" && v.Input == s.Input {
				v.Withdrawn = true
			}
		}
		if !s.vetoed(s.Input) {
			s.State = table[Returned][MoveWithdraw].to
		}
	}
	r.judge(s)
}

// vetoed tells whether a veto stands against the input.
func (s *Stage) vetoed(input evidence.Digest) bool {
	return slices.ContainsFunc(s.Vetoes, func(v Veto) bool { return v.Input == input && !v.Withdrawn })
}

func (r *Run) noted(f *Noted) {
	r.Why = f.Note
	switch f.What {
	case KindPaused:
		r.Paused = true
	case KindResumed:
		r.Paused, r.Why = false, ""
	case KindCancelled:
		r.Cancelled = true
	case KindCapped:
		r.Capped = true
	case KindExpired:
		r.Expires = f.At
	}
	r.remark(&f.Head, string(f.What)[len("flow."):], f.Note, "")
}

func (r *Run) remark(h *Head, word, text, id string) {
	if text == "" {
		return
	}
	r.Remarks = append(r.Remarks, Remark{At: h.At, Stage: h.Stage, Actor: h.Actor, Word: word, Text: text, ID: id})
}

func (r *Run) planKind() string {
	if r.Plan == nil {
		return ""
	}
	return r.Plan.Kind
}

func closedAt(expires, at time.Time) bool { return !expires.IsZero() && !at.Before(expires) }
