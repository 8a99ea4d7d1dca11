package flows

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/snapshot"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/view"
)

// mostFiles are listed in a report.
const mostFiles = 500

// Report tells a run from its verdict down. It is as of the run's last entry and
// writes nothing. A signature that does not hold is an error beside the view.
func (f *Flows) Report(ctx context.Context, ref string) (*view.FlowReport, *view.Head, error) {
	k, err := f.load(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	var entries []ledger.Entry
	var key string
	err = f.app.Read(ctx, func(led *ledger.Ledger, tx *store.Tx) error {
		key = led.VerifierKey()
		entries, err = led.RunEntriesIn(ctx, tx, k.ID, 0)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	entries = slices.DeleteFunc(entries, func(e ledger.Entry) bool { return e.Seq > k.Seq })
	status, badErr := f.statusAt(k, k.Last)
	if status == nil {
		return nil, nil, badErr
	}
	v := &view.FlowReport{
		Run: status.Run, Waivers: status.Waivers, Unplanned: status.Unplanned, Separation: status.Separation, Enforced: k.Enforced, Delivery: status.Delivery,
		Missing: []view.FlowMissing{}, Stages: []view.FlowReportStage{}, Findings: []view.FlowFinding{}, Refused: []view.FlowRefused{}, Claims: []view.FlowClaim{},
	}
	v.Run.Dir = "" // of this machine
	if status.Evidence != "" {
		v.Evidence = "evidence: " + status.Evidence
	}
	v.Missing = f.missing(k, status)
	v.Verdict = verdictOf(status, badErr)
	if v.Changed, err = f.changed(ctx, k); err != nil {
		return nil, nil, err
	}
	if p := k.Plan; p != nil {
		v.Plan = reportPlan(&k.Run)
	}
	records, err := recordsOf(k, entries)
	if err != nil {
		return nil, nil, err
	}
	for i := range k.Stages {
		v.Stages = append(v.Stages, reportStage(k, &k.Stages[i], records, badSignatures(k.Run)))
	}
	for _, x := range k.Findings {
		v.Findings = append(v.Findings, findingView(x))
	}
	if v.Refused, err = refusedRequests(entries); err != nil {
		return nil, nil, err
	}
	for _, n := range k.Remarks {
		v.Claims = append(v.Claims, view.FlowClaim{At: n.At.UTC(), Stage: n.Stage, Who: n.Actor.Principal, Kind: n.Actor.Kind, Word: n.Word, Text: n.Text})
	}
	v.Provenance = view.FlowProvenance{
		AsOf: k.Last.UTC(), Ledger: k.ledgerID, VerifierKey: key, Head: *app.HeadOf(k.head), Seq: k.Seq, Entries: len(entries),
		Signatures: "every decision on a current attempt is signed by the key that it names", Policy: string(k.PolicyDigest), Principals: string(k.RosterDigest),
		Base: k.Base.Commit, Target: k.Target, Version: f.app.Version,
	}
	if badErr != nil {
		v.Provenance.Signatures = badErr.Error()
	}
	return v, app.HeadOf(k.head), badErr
}

// verdictOf is the run in a sentence.
func verdictOf(s *view.FlowRun, badErr error) view.FlowVerdict {
	v := view.FlowVerdict{Word: "open"}
	switch flow.Status(s.Run.Status) {
	case flow.StatusDelivered:
		v.Word, v.Text = "passed", fmt.Sprintf("Delivered: the approved tree is commit %.12s on %s.", s.Delivery.Commit, s.Delivery.Ref)
	case flow.StatusApproved:
		v.Word, v.Text = "passed", "Approved: every stage has passed on today's inputs. It is not delivered."
	case flow.StatusCancelled, flow.StatusExpired:
		v.Word, v.Text = "no", fmt.Sprintf("The run is %s.", s.Run.Status)
	case flow.StatusBlocked:
		v.Word, v.Text = "no", fmt.Sprintf("Blocked at stage %s: %s.", s.Run.CurrentStage, strings.ReplaceAll(s.Run.Reason, "_", " "))
	case flow.StatusWaiting:
		v.Text = fmt.Sprintf("Not approved: stage %s waits for %s.", s.Run.CurrentStage, orText(strings.Join(s.Run.Needs, ", "), "somebody"))
	default:
		v.Text = fmt.Sprintf("Not approved: the run is %s, at stage %s.", s.Run.Status, s.Run.CurrentStage)
	}
	waived := 0
	for _, st := range s.Stages {
		for _, g := range st.Gates {
			if g.Waived != "" {
				waived++
			}
		}
	}
	if waived > 0 {
		v.Text += fmt.Sprintf(" %d gates count only by a waiver.", waived)
	}
	if s.Unplanned != nil {
		v.Text += " Work went ahead without the token of the plan."
	}
	if badErr != nil {
		v.Word, v.Text = "no", "Do not trust this run: "+badErr.Error()+"."
	}
	return v
}

// missing is what the run needs and has not, with the commands that get on.
func (f *Flows) missing(k known, s *view.FlowRun) []view.FlowMissing {
	out := []view.FlowMissing{}
	if flow.Status(s.Run.Status).Closed() {
		return out
	}
	for _, u := range s.Run.Unblock {
		out = append(out, view.FlowMissing{Stage: s.Run.CurrentStage, What: "the run is blocked: " + strings.ReplaceAll(s.Run.Reason, "_", " "), Run: u})
	}
	for _, n := range NextSteps(s) {
		out = append(out, view.FlowMissing{Stage: s.Run.CurrentStage, What: n.Why, Run: n.Run})
	}
	for i := range k.Stages {
		st := &k.Stages[i]
		if st.State == flow.Passed {
			continue
		}
		for _, l := range needs(k, st) {
			if l.Missing != "" {
				out = append(out, view.FlowMissing{Stage: l.Stage, What: l.Need + ": " + l.Missing})
			}
		}
	}
	for _, x := range k.Findings {
		if x.Severity == flow.Block && x.State != flow.FindingSettled && x.State != flow.FindingWaived {
			out = append(out, view.FlowMissing{Stage: x.Target, What: fmt.Sprintf("finding %s is %s: %s", x.ID, x.State, x.Message)})
		}
	}
	return out
}

// changed lists the files of the work. Where the repository is not to be had, it
// says so.
func (f *Flows) changed(ctx context.Context, k known) (view.FlowChanged, error) {
	work := k.Work()
	v := view.FlowChanged{Tree: string(work.Tree), Commit: work.Commit, Files: []view.FlowFile{}}
	switch {
	case work.Tree == "":
		v.Why = "no work was handed in"
		return v, nil
	case k.Repo == "":
		v.Why = "the run stands in no repository"
		return v, nil
	}
	snaps, repo, err := f.repoOf(ctx, k)
	var deltas []snapshot.Delta
	if err == nil {
		deltas, err = snaps.Deltas(ctx, repo, k.Base.Tree, work.Tree)
	}
	if err != nil {
		if ctx.Err() != nil {
			return v, context.Cause(ctx)
		}
		v.Why = "the files cannot be read: " + fault.From(err).What
		return v, nil
	}
	v.Total = len(deltas)
	for _, d := range deltas {
		v.Added, v.Deleted = v.Added+d.Added, v.Deleted+d.Deleted
		if len(v.Files) < mostFiles {
			c := changeOf(d)
			v.Files = append(v.Files, view.FlowFile{Path: d.Path, Op: string(c.Op()), From: d.RenamedFrom, Added: d.Added, Deleted: d.Deleted, Binary: d.Binary})
		}
	}
	return v, nil
}

func reportPlan(r *flow.Run) *view.FlowReportPlan {
	v := &view.FlowReportPlan{ID: r.Plan.ID, Revision: r.Plan.Revision, Token: r.Plan.Token, Requirements: []view.FlowRequirementRow{}}
	all := requirements(r)
	for _, q := range r.Requirements() {
		v.Requirements = append(v.Requirements, view.FlowRequirementRow{ID: q.ID, FlowRequirement: all[q.ID]})
	}
	return v
}

func reportStage(k known, s *flow.Stage, records []view.FlowEvidenceRecord, bad map[string]bool) view.FlowReportStage {
	now := stageView(k, s, time.Time{}, bad)
	v := view.FlowReportStage{ID: s.ID, Role: now.Role, State: now.State, Because: now.Because, Approvals: now.Approvals, Attempts: []view.FlowReportAttempt{}}
	all := slices.DeleteFunc(slices.Clone(s.Past), func(a flow.Attempt) bool { return a.N == s.Attempt })
	if s.Attempt > 0 {
		all = append(all, flow.Attempt{N: s.Attempt, State: s.State, Input: s.Input, Subject: s.Subject, Given: s.Given, Evidence: s.Evidence, Carried: s.Carried})
	}
	for _, a := range all {
		x := view.FlowReportAttempt{
			N: a.N, Current: a.N == s.Attempt, State: string(a.State), Input: string(a.Input), Tree: string(a.Subject.Tree), Gates: []view.FlowReportGate{}, Decisions: []view.FlowDecision{},
		}
		if x.Current {
			x.Producer, x.ProducerKind = s.Producer.Principal, s.Producer.Kind
		}
		if c := a.Carried; c != nil {
			x.Carried = fmt.Sprintf("by rule %s, from attempt %d", c.Rule, c.From)
		}
		for _, name := range s.Gates {
			if e, ok := a.Evidence[name]; ok {
				x.Gates = append(x.Gates, reportGate(name, e, records))
			} else if x.Current {
				x.Gates = append(x.Gates, view.FlowReportGate{FlowGate: view.FlowGate{ID: name, Need: "required"}, Probe: view.FlowProbe{State: "none"}, Certificates: []string{}})
			}
		}
		for _, g := range a.Given {
			d := givenView(g)
			d.Verified = !bad[g.ID]
			x.Decisions = append(x.Decisions, d)
		}
		v.Attempts = append(v.Attempts, x)
	}
	return v
}

func reportGate(name string, e flow.Evidence, records []view.FlowEvidenceRecord) view.FlowReportGate {
	g := view.FlowReportGate{
		FlowGate: view.FlowGate{
			ID: name, Need: "required", Outcome: string(e.Outcome), Code: string(e.Code), Reason: e.Reason, Evidence: e.ID, Waived: e.Waiver, Blind: e.Code == gate.CodeBlind,
		},
		Isolation: string(e.Isolation), Probe: view.FlowProbe{State: "none"}, Certificates: []string{}, Runs: len(e.Runs), TookMS: e.DurationMS,
	}
	if c := e.Tests; c != nil {
		g.Tests = fmt.Sprintf("%d executed, %d failed, %d skipped, %d flaky, of %d", c.Executed, c.Failed, c.Skipped, c.Flaky, c.Discovered)
	}
	for _, d := range e.Certificates {
		g.Certificates = append(g.Certificates, string(d))
	}
	for _, r := range records {
		if r.Seq == e.Seq {
			g.Probe = r.Probe
		}
	}
	return g
}

func refusedRequests(entries []ledger.Entry) ([]view.FlowRefused, error) {
	out := []view.FlowRefused{}
	for _, e := range entries {
		if e.Kind != ledger.Kind(flow.KindRefused) {
			continue
		}
		var r flow.Refused
		if err := json.Unmarshal(e.Body, &r); err != nil {
			return nil, fault.Wrap(err, fault.Tampered, "ledger_broken", "ledger entry %d is no %s", e.Seq, e.Kind)
		}
		out = append(out, view.FlowRefused{
			Seq: e.Seq, At: r.At.UTC(), Verb: r.Verb, Code: string(r.Code), What: r.What, Stage: r.Stage, By: orText(r.Actor.Principal, r.Claim), Count: max(1, r.Count),
		})
	}
	return out, nil
}
