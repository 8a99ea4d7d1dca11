package evidence_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

const badTree = evidence.Tree("1111111111111111111111111111111111111111")

// gateScene makes runs of a gate.
type gateScene struct {
	t *testing.T
	n int
}

func (s *gateScene) run(at evidence.Tree, exit int, edit func(*evidence.RunRecord), tests ...string) evidence.Run {
	s.t.Helper()
	s.n++
	var events []evidence.Event
	report := evidence.ReportNone
	for _, t := range tests {
		how, name := evidence.EventKind(t[:4]), t[5:]
		events = append(events, evidence.Event{Kind: evidence.EventBegin, Test: name})
		switch how {
		case "fail":
			events = append(events, evidence.Event{Kind: evidence.EventFail, Test: name, By: evidence.ByAssertion, File: "a_test.go", Line: 3, Message: "no"})
			events = append(events, evidence.Event{Kind: evidence.EventFailed, Test: name})
		default:
			events = append(events, evidence.Event{Kind: how, Test: name})
		}
		report = evidence.ReportComplete
	}
	rec := evidence.RunRecord{
		Purpose: evidence.PurposeBaseline, Snapshot: at, Argv: []string{"check"}, Dir: ".", Exit: evidence.Exit{Code: exit}, Report: report,
		Isolation: evidence.Isolation{Level: evidence.Namespaces, Network: evidence.Loopback},
		Started:   time.Date(2026, 1, 2, 3, 4, s.n, 0, time.UTC), Nonce: fmt.Sprint(s.n),
	}
	if edit != nil {
		edit(&rec)
	}
	r, err := evidence.RecordRun(rec, events)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func units(runs ...evidence.Run) (out []evidence.UnitRun) {
	for _, r := range runs {
		out = append(out, evidence.UnitRun{Unit: "m/a", Run: r})
	}
	return out
}

func exitFacts() evidence.GateFacts {
	return evidence.GateFacts{
		Gate: "build", Digest: digest("gate"), Rule: evidence.RuleExit,
		Sabotage: evidence.Sabotage{Kind: evidence.SabotageSyntax, Summary: "syntax error in a.go", Tree: badTree},
	}
}

func TestGateCertificate(t *testing.T) {
	t.Parallel()
	s := &gateScene{t: t}
	good, bad, accepted := s.run(tree, 0, nil), s.run(badTree, 2, nil), s.run(badTree, 0, nil)
	slow := s.run(badTree, -1, func(r *evidence.RunRecord) { r.Exit.Stopped = evidence.StopWall })
	other := s.run(badTree, 1, func(r *evidence.RunRecord) { r.Argv = []string{"false"} })
	red := s.run(tree, 1, nil)
	for _, row := range []struct {
		name      string
		facts     func(*evidence.GateFacts)
		good, bad evidence.Run
		code      fault.Code
	}{
		{"refused its probe", nil, good, bad, ""},
		{"blind", nil, good, accepted, evidence.CodeGateBlind},
		{"the probe hung", nil, good, slow, evidence.CodeTimedOut},
		{"the good tree was refused", nil, red, bad, evidence.CodeGateFailed},
		{"another command", nil, good, other, evidence.CodeMismatch},
		{"the bad tree is the good one", func(f *evidence.GateFacts) { f.Sabotage.Tree = tree }, good, red, evidence.CodeMismatch},
		{"a run of another tree", func(f *evidence.GateFacts) { f.Sabotage.Tree = "2222222222222222222222222222222222222222" }, good, bad, evidence.CodeMismatch},
		{"no name", func(f *evidence.GateFacts) { f.Gate = "" }, good, bad, evidence.CodeMismatch},
		{"a rule that compares, with nothing", func(f *evidence.GateFacts) { f.Rule = evidence.RuleKept }, good, bad, evidence.CodeMismatch},
		{"one run twice", nil, good, good, evidence.CodeMismatch},
	} {
		f := exitFacts()
		if row.facts != nil {
			row.facts(&f)
		}
		c, err := evidence.NewGate(f, evidence.GateRuns{Good: units(row.good), Bad: units(row.bad)})
		if row.code == "" {
			if err != nil {
				t.Errorf("%s: %v", row.name, err)
				continue
			}
			runs := map[evidence.Digest]evidence.Run{row.good.Digest(): row.good, row.bad.Digest(): row.bad}
			load := func(d evidence.Digest) (evidence.Run, error) { return runs[d], nil }
			again, err := evidence.Rederive(c.Body(), load)
			if err != nil || again.Digest() != c.Digest() {
				t.Errorf("%s: derived again: %v, %s, want %s", row.name, err, again.Digest(), c.Digest())
			}
			// A run that shows the contrary under the same name does not derive it.
			runs[row.bad.Digest()] = accepted
			if _, err := evidence.Rederive(c.Body(), load); fault.From(err) == nil || fault.From(err).Kind != fault.Tampered {
				t.Errorf("%s: derived from other runs: %v", row.name, err)
			}
			continue
		}
		if !fault.Has(err, row.code) {
			t.Errorf("%s: %v, want code %s", row.name, err, row.code)
		}
	}
}

func TestGateVerdictOfSuites(t *testing.T) {
	t.Parallel()
	s := &gateScene{t: t}
	pass := func(names ...string) evidence.Run { return s.run(tree, 0, nil, names...) }
	early := func(r *evidence.RunRecord) { r.Report = evidence.ReportIncomplete }
	base := []evidence.Run{pass("pass TestA", "pass TestB", "pass TestB/x"), pass("pass TestA", "pass TestB", "pass TestB/x")}
	redBase := []evidence.Run{s.run(tree, 1, nil, "pass TestA", "fail TestB")}
	for _, row := range []struct {
		name            string
		rule            evidence.GateRule
		reference, runs []evidence.Run
		accept, reject  bool
		code            fault.Code
	}{
		{"green", evidence.RuleGreen, nil, []evidence.Run{pass("pass TestA"), pass("pass TestA", "skip TestB")}, true, false, ""},
		{"red every time", evidence.RuleGreen, nil, []evidence.Run{s.run(tree, 1, nil, "fail TestA"), s.run(tree, 1, nil, "fail TestA")}, false, true, evidence.CodeGateFailed},
		{"red once", evidence.RuleGreen, nil, []evidence.Run{s.run(tree, 1, nil, "fail TestA"), pass("pass TestA")}, false, false, evidence.CodeFlaky},
		{"red by exit alone", evidence.RuleGreen, nil, []evidence.Run{s.run(tree, 3, nil, "pass TestA")}, false, true, evidence.CodeGateFailed},
		{"left early", evidence.RuleGreen, nil, []evidence.Run{s.run(tree, 0, early, "pass TestA")}, false, true, evidence.CodeIncomplete},
		{"red turned into exit 0", evidence.RuleGreen, nil, []evidence.Run{s.run(tree, 0, nil, "fail TestA")}, false, true, evidence.CodeRunnerBlind},
		{"all skipped", evidence.RuleGreen, nil, []evidence.Run{pass("skip TestA")}, false, true, evidence.CodeNoTestsRan},
		{"hung", evidence.RuleGreen, nil, []evidence.Run{s.run(tree, -1, func(r *evidence.RunRecord) { r.Exit.Stopped = evidence.StopWall; r.Report = evidence.ReportIncomplete }, "pass TestA")}, false, false, evidence.CodeTimedOut},
		{"kept", evidence.RuleKept, base, []evidence.Run{pass("pass TestA", "pass TestB", "pass TestB/renamed")}, true, false, ""},
		{"skipped", evidence.RuleKept, base, []evidence.Run{pass("skip TestA", "pass TestB", "pass TestB/x")}, false, true, evidence.CodeTestsNotRun},
		{"gone", evidence.RuleKept, base, []evidence.Run{pass("pass TestB", "pass TestB/x")}, false, true, evidence.CodeTestsNotRun},
		{"a case fewer", evidence.RuleKept, append(base[:1:1], pass("pass TestA", "pass TestB", "pass TestB/x", "pass TestB/y")), []evidence.Run{pass("pass TestA", "pass TestB", "pass TestB/x")}, true, false, ""},
		{"fewer cases", evidence.RuleKept, []evidence.Run{pass("pass TestA", "pass TestB", "pass TestB/x", "pass TestB/y")}, []evidence.Run{pass("pass TestA", "pass TestB", "pass TestB/x")}, false, true, evidence.CodeFewerCases},
		{"what was red need not be green", evidence.RuleKept, redBase, []evidence.Run{s.run(tree, 1, nil, "pass TestA", "fail TestB")}, true, false, ""},
		{"held", evidence.RuleHeld, base, []evidence.Run{pass("pass TestA", "pass TestB", "pass TestB/x")}, true, false, ""},
		{"a case renamed", evidence.RuleHeld, base, []evidence.Run{pass("pass TestA", "pass TestB", "pass TestB/renamed")}, false, true, evidence.CodeTestsNotRun},
		{"left early beside a reference", evidence.RuleHeld, base, []evidence.Run{s.run(tree, 0, early, "pass TestA")}, false, true, evidence.CodeIncomplete},
	} {
		v := evidence.JudgeGate(row.rule, units(row.reference...), units(row.runs...))
		if v.Accepted != row.accept || v.Rejected != row.reject || v.Code != row.code {
			t.Errorf("%s: accepted %v, rejected %v, %s (%s), want %v, %v, %s", row.name, v.Accepted, v.Rejected, v.Code, v.Detail, row.accept, row.reject, row.code)
		}
		if !v.Accepted && v.Detail == "" {
			t.Errorf("%s: no reason", row.name)
		}
	}
}
