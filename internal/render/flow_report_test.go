package render

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/view"
)

var flowTime = time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)

// hostile is text of others that tries to be more than text.
const hostile = "</script><b>bold</b> @bob #1 [x](http://evil.example) `code` | \u202e\x1b[31m\n# forged"

const digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func flowReport() view.FlowReport {
	gate := func(id, outcome string) view.FlowReportGate {
		return view.FlowReportGate{
			FlowGate: view.FlowGate{ID: id, Need: "required", Outcome: outcome, Evidence: "ev_" + strings.Repeat("b", 64)}, Certificates: []string{},
			Probe: view.FlowProbe{State: "refused", Certificate: digestA, Seq: 7}, Tests: "3 executed, 0 failed, 0 skipped, 0 flaky, of 3", Isolation: "namespaces", Runs: 4, TookMS: 1200,
		}
	}
	waived, blind, proof := gate("secrets", "no"), gate("suite.full", "not_measured"), gate("prove.changed", "pass")
	waived.Waived, waived.Reason = "wvr_1", hostile
	blind.Blind, blind.Code, blind.Probe, blind.Tests = true, "gate_blind", view.FlowProbe{State: "accepted"}, ""
	proof.Probe, proof.Certificates = view.FlowProbe{State: "itself"}, []string{digestA}
	decision := view.FlowDecision{ID: "dec_1", Principal: "bob", Kind: "human", Key: "SHA256:key", Decision: "request_changes", At: flowTime, Verified: true, Note: hostile}
	bad := decision
	bad.Verified, bad.Decision, bad.Principal, bad.Kind = false, "approve", "helper", "agent"
	return view.FlowReport{
		Verdict: view.FlowVerdict{Word: "open", Text: "Not approved: stage reviewer waits for bob."},
		Missing: []view.FlowMissing{{Stage: "reviewer", What: hostile, Run: "proveto flow status run_1"}},
		Changed: view.FlowChanged{
			Tree: strings.Repeat("c", 40), Total: 3, Added: 4, Deleted: 1,
			Files: []view.FlowFile{{Path: "a|b`" + hostile, Op: "create", Added: 4}, {Path: "new.bin", From: "old.bin", Op: "rename", Binary: true}},
		},
		Run: view.FlowHead{
			ID: "run_1", Task: hostile, Project: hostile, Status: "waiting", Unblock: []string{}, CurrentStage: "reviewer", Needs: []string{"bob"},
			Policy: view.FlowPolicy{Name: "default", Digest: digestA}, Created: flowTime,
		},
		Plan: &view.FlowReportPlan{ID: "plan_1", Revision: 2, Token: "pt_1", Requirements: []view.FlowRequirementRow{
			{ID: "R1", FlowRequirement: view.FlowRequirement{State: "proven", Text: hostile, Certificates: []string{digestA}}},
			{ID: "R2", FlowRequirement: view.FlowRequirement{State: "not_measured", Reason: hostile, Text: "x", Certificates: []string{}}},
		}},
		Stages: []view.FlowReportStage{
			{
				ID: "developer", Role: "developer", State: "passed", Attempts: []view.FlowReportAttempt{
					{N: 1, State: "returned", Tree: strings.Repeat("d", 40), Gates: []view.FlowReportGate{waived, blind}, Decisions: []view.FlowDecision{decision}},
					{N: 2, Current: true, State: "passed", Producer: "alice", ProducerKind: "human", Gates: []view.FlowReportGate{proof}, Carried: "by rule same_diff, from attempt 1"},
				},
			},
			{
				ID: "reviewer", Role: "reviewer", State: "deciding", Approvals: view.FlowApprovals{Need: 2, Have: 1, HumansNeed: 1, Agents: 1},
				Attempts: []view.FlowReportAttempt{{N: 1, Current: true, State: "deciding", Decisions: []view.FlowDecision{bad}}},
			},
			{ID: "tester", Role: "tester", State: "locked"},
		},
		Findings: []view.FlowFinding{
			{ID: "F-1", Category: "test_gap", Severity: "block", State: "open", File: "a.go", Line: 3, Message: hostile, Detail: "-old\n+" + hostile + "\n", Author: "engine", Gate: "prove.changed", Target: "developer", Repro: []string{"go", "test"}, NotCorrected: true},
			{ID: "F-2", Category: "scope", Severity: "warn", State: "waived", Message: "x", Author: "bob", Target: "developer", Expected: "1", Actual: "2"},
		},
		Waivers:    []view.FlowWaiver{{ID: "wvr_1", Gate: "secrets", Reason: hostile, By: "bob", Expires: flowTime, Used: true}},
		Unplanned:  &view.FlowUnplanned{By: "alice", Reason: hostile},
		Separation: []view.FlowSeparation{{Rule: "developer, reviewer distinct by principal", State: "violated", Note: hostile}},
		Refused:    []view.FlowRefused{{Seq: 9, At: flowTime, Verb: "submit", Code: "same_tree", What: hostile, Stage: "developer", By: "alice", Count: 3}},
		Claims:     []view.FlowClaim{{At: flowTime, Stage: "developer", Who: "helper", Kind: "agent", Word: "claim", Text: hostile}},
		Provenance: view.FlowProvenance{
			AsOf: flowTime, Ledger: "abc", VerifierKey: "proveto-abc+1+key", Head: view.Head{Seq: 12, Root: digestA}, Seq: 11, Entries: 10, Signatures: "checked", Policy: digestA,
			Principals: digestA, Base: strings.Repeat("e", 40), Target: "refs/heads/main", Version: "1.0.0",
		},
	}
}

func flowHTML(t *testing.T, v view.FlowReport) string {
	return written(t, func(w io.Writer) error { return FlowReportHTML(w, v) })
}

func flowMD(t *testing.T, v view.FlowReport) string {
	return written(t, func(w io.Writer) error { return FlowReportMarkdown(w, v) })
}

func TestFlowReportsMatchTheirGoldens(t *testing.T) {
	t.Parallel()
	golden(t, "flow_report.html", []byte(flowHTML(t, flowReport())))
	golden(t, "flow_report.md", []byte(flowMD(t, flowReport())))
	first, second := flowHTML(t, flowReport()), flowHTML(t, flowReport())
	if first != second {
		t.Error("the same view gives two pages")
	}
}

func TestFlowReportShowsForeignTextInert(t *testing.T) {
	t.Parallel()
	page := flowHTML(t, flowReport())
	if n := strings.Count(page, "</script>"); n != 1 {
		t.Errorf("the page closes %d script elements, want 1", n)
	}
	for _, bad := range []string{"\u202e", "\x1b", "<b>bold"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q as it is", bad)
		}
	}
	md := flowMD(t, flowReport())
	for _, bad := range []string{"\u202e", "\x1b", "\n# forged", " @bob", "](http"} {
		// In a block of code text is text.
		if text := regexp.MustCompile("(?s)```+diff.*?\n```+\n").ReplaceAllString(md, ""); strings.Contains(regexp.MustCompile("`[^\n]*`").ReplaceAllString(text, ""), bad) {
			t.Errorf("the Markdown contains %q as it is:\n%s", bad, text)
		}
	}
	for _, out := range []string{page, md} {
		for _, want := range []string{"WAIVED", "UNPLANNED", "separation not enforced", "SIGNATURE DOES NOT VERIFY", "claim of helper (agent)", "3 times", "ACCEPTED, the gate is blind", "violated"} {
			if !strings.Contains(out, want) {
				t.Errorf("a report does not say %q", want)
			}
		}
	}
	for _, outside := range regexp.MustCompile(`(?:src|href)="[^"#]`).FindAllString(page, -1) {
		t.Errorf("the page points outside: %s", outside)
	}
}

func TestFlowReportHasItsTargetsAndItsData(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]view.FlowReport{"fixture": flowReport(), "empty": {Changed: view.FlowChanged{Why: "no work was handed in"}}} {
		page := flowHTML(t, v)
		for _, part := range strings.Split(page, `href="#`)[1:] {
			if id, _, _ := strings.Cut(part, `"`); !strings.Contains(page, ` id="`+id+`"`) {
				t.Errorf("%s: nothing has the id %q", name, id)
			}
		}
		_, data, _ := strings.Cut(page, `id="data">`)
		data, _, _ = strings.Cut(data, "</script>")
		var got view.FlowReport
		if err := json.Unmarshal([]byte(data), &got); err != nil || got.Run.Task != v.Run.Task {
			t.Errorf("%s: the data inside: %v", name, err)
		}
	}
	empty := flowMD(t, view.FlowReport{Changed: view.FlowChanged{Why: "no work was handed in"}})
	for _, want := range []string{"Nothing.", "Not shown: no work was handed in", "None."} {
		if !strings.Contains(empty, want) {
			t.Errorf("an empty report does not say %q:\n%s", want, empty)
		}
	}
}

func TestFlowEvidenceTexts(t *testing.T) {
	t.Parallel()
	one := view.FlowEvidenceRecord{
		ID: "ev_" + strings.Repeat("b", 64), Seq: 8, At: flowTime, Stage: "developer", Attempt: 2, Gate: "build", Outcome: "pass", Current: true, Tree: strings.Repeat("c", 40),
		Probe: view.FlowProbe{State: "refused", Certificate: digestA, Seq: 7},
	}
	waived := one
	waived.Outcome, waived.Reason, waived.Waived, waived.Current, waived.Probe = "no", hostile, "wvr_1", false, view.FlowProbe{State: "accepted"}
	var b bytes.Buffer
	list := view.FlowEvidence{Run: "run_1", Records: []view.FlowEvidenceRecord{one, waived}}
	one.Evidence = json.RawMessage(`{"schema":"proveto/evidence/v1","subject":{"tree":"t","base":"b"},"runs":["` + digestA + `"],"certificates":["` + digestA + `"],"metrics":{"share":0.5},
		"tests":{"discovered":3,"executed":2,"skipped":1},"named":{"red":["TestX\u202e"]},"isolation":"namespaces","network":"loopback","started":"2030-01-02T03:04:05Z","duration_ms":7,
		"outputs":[{"name":"go build stderr","sha256":"` + digestA + `","bytes":9,"truncated":true}],"reused":"ev_x"}`)
	for _, v := range []view.FlowEvidence{list, {Run: "run_1", Records: []view.FlowEvidenceRecord{one}}, {Run: "run_1"}} {
		if err := FlowEvidence(&b, v, Style{}); err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
	}
	replay := view.FlowReplay{Run: "run_1", Same: 1, Differs: 1, Cannot: 1, Text: "1 same, 1 differ, 1 cannot be measured again", Gates: []view.FlowReplayGate{
		{Stage: "developer", Gate: "build", Evidence: one.ID, Word: "same", Before: "pass", Now: "pass"},
		{Stage: "tester", Gate: "suite.full", Evidence: one.ID, Word: "differs", Before: "pass", Now: "no", Why: hostile},
		{Stage: "reviewer", Gate: "merge.preview", Evidence: one.ID, Word: "cannot", Before: "pass", Why: "where the target stood then is not recorded"},
	}}
	for _, s := range []Style{{}, {Unicode: true}} {
		if err := FlowReplay(&b, replay, s); err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString("---\n")
	verified := view.Verified{Text: "the signatures are good", Kind: "flow_run", Signed: true, Signer: "proveto-abc+1+key", Trusted: true, Run: &view.FlowVerified{
		Run: "run_1", Task: hostile, Subject: []view.AttestedSubject{{Name: "tree", Digest: map[string]string{"gitTree": strings.Repeat("c", 40)}}}, Properties: []string{"PROVETO_PLAN_HELD"},
		Approvals: view.AttestedApprovals{Humans: []string{"alice", "bob"}, Independent: []string{"bob"}}, Enforced: true,
		Decisions:  []view.VerifiedDecision{{Stage: "reviewer", Attempt: 1, Principal: "bob", Kind: "human", Key: "SHA256:key", Decision: "request_changes", Tree: strings.Repeat("c", 40), Void: hostile}},
		Waivers:    []view.FlowWaiver{{Gate: "secrets", By: "bob", Reason: hostile, Expires: flowTime}},
		Unplanned:  &view.FlowUnplanned{By: "alice", Reason: hostile},
		Separation: []view.FlowSeparation{{Rule: "developer, reviewer distinct by principal", State: "not_enforced"}},
		Refused:    []view.VerifiedRefusal{{Seq: 4, Verb: "submit", Code: "same_tree", By: "alice", Count: 2}}, Entries: 12, Ledger: "abc", Head: view.Head{Seq: 14, Root: digestA},
	}}
	if err := Verified(&b, verified, Style{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "flow_evidence.txt", b.Bytes())
	if strings.ContainsAny(b.String(), "\u202e\x1b") {
		t.Error("the text shows hidden characters as they are")
	}
}

func TestJSONLineIsOneLine(t *testing.T) {
	t.Parallel()
	got := written(t, func(w io.Writer) error {
		return JSONLine(w, view.FlowWatched{Type: "entry", FlowLogLine: view.FlowLogLine{Note: hostile}})
	})
	var back view.FlowWatched
	if err := json.Unmarshal([]byte(got), &back); err != nil || back.Note != hostile || strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\u202e\x1b") {
		t.Errorf("JSONLine: %v\n%s", err, got)
	}
}
