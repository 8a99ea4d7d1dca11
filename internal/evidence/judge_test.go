package evidence_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// TestJudge is the table of everything that one run can show.
func TestJudge(t *testing.T) {
	t.Parallel()
	failure := func(by evidence.By, line int) evidence.Event { return fail(by, line)[1] }
	red := fail(evidence.ByAssertion, 9)
	tests := []struct {
		name   string
		exit   evidence.Exit
		report evidence.ReportState
		events []evidence.Event
		want   evidence.Judgement
	}{
		{"an assertion failed", evidence.Exit{Code: 1}, "complete", red, evidence.Judgement{Status: "killed", Failure: failure("assertion", 9)}},
		{"the planted assertion failed", evidence.Exit{Code: 1}, "complete", fail(evidence.ByPlanted, 9), evidence.Judgement{Status: "killed", Failure: failure("planted", 9)}},
		{"two assertions failed", evidence.Exit{Code: 1}, "complete", append(fail(evidence.ByAssertion, 5)[:3], red...), evidence.Judgement{Status: "killed", Failure: failure("assertion", 5)}},
		{"an assertion failed and a signal came", evidence.Exit{Code: -1, Signal: "SIGKILL"}, "complete", red, evidence.Judgement{Status: "killed", Failure: failure("assertion", 9)}},
		{"a panic", evidence.Exit{Code: 2}, "complete", fail(evidence.ByPanic, 9), evidence.Judgement{Status: "killed_by_error", Code: "killed_by_error", Failure: failure("panic", 9)}},
		{"a race", evidence.Exit{Code: 1}, "complete", fail(evidence.ByRace, 9), evidence.Judgement{Status: "killed_by_error", Code: "killed_by_error", Failure: failure("race", 9)}},
		{"the harness complained", evidence.Exit{Code: 1}, "complete", fail(evidence.ByHarness, 9), evidence.Judgement{Status: "killed_by_error", Code: "killed_by_error", Failure: failure("harness", 9)}},
		{"nobody says how it failed", evidence.Exit{Code: 1}, "complete", fail("", 9), evidence.Judgement{Status: "killed_by_error", Code: "killed_by_error", Failure: failure("", 9)}},
		{"an assertion, then a panic", evidence.Exit{Code: 2}, "complete", append(fail(evidence.ByAssertion, 5)[:3], fail(evidence.ByPanic, 9)...), evidence.Judgement{Status: "killed_by_error", Code: "killed_by_error", Failure: failure("panic", 9)}},
		{"a panic that cut the report", evidence.Exit{Code: 2}, "incomplete", fail(evidence.ByPanic, 9), evidence.Judgement{Status: "killed_by_error", Code: "killed_by_error", Failure: failure("panic", 9)}},
		{"an assertion before the report was cut", evidence.Exit{Code: 1}, "incomplete", red, evidence.Judgement{Status: "killed_by_error", Code: "report_incomplete", Failure: failure("assertion", 9)}},
		{"green, and the report was cut", evidence.Exit{}, "incomplete", pass(), evidence.Judgement{Status: "killed_by_error", Code: "report_incomplete"}},
		{"no report", evidence.Exit{}, "none", nil, evidence.Judgement{Status: "killed_by_error", Code: "report_incomplete"}},
		{"red turned into green", evidence.Exit{}, "complete", red, evidence.Judgement{Status: "flaky", Code: "runner_blind", Failure: failure("assertion", 9)}},
		{"green", evidence.Exit{}, "complete", pass(), evidence.Judgement{Status: "survived", Code: "survived"}},
		{"green, and exit 3", evidence.Exit{Code: 3}, "complete", pass(), evidence.Judgement{Status: "killed_by_error", Code: "killed_by_error"}},
		{"green, and a signal", evidence.Exit{Signal: "SIGSEGV"}, "complete", pass(), evidence.Judgement{Status: "killed_by_error", Code: "killed_by_error"}},
		{"failed through a subtest that says nothing", evidence.Exit{Code: 1}, "complete", red[2:], evidence.Judgement{Status: "killed_by_error", Code: "killed_by_error"}},
		{"nothing ran", evidence.Exit{}, "complete", pass()[:3], evidence.Judgement{Status: "invalid", Code: "no_tests_ran"}},
		{"nothing ran, and exit 1", evidence.Exit{Code: 1}, "complete", pass()[:3], evidence.Judgement{Status: "invalid", Code: "no_tests_ran"}},
		{"everything was skipped", evidence.Exit{}, "complete", []evidence.Event{{Kind: evidence.EventSkip, Test: testName}}, evidence.Judgement{Status: "invalid", Code: "no_tests_ran"}},
		{"tampered", evidence.Exit{Code: 1}, "tampered", red, evidence.Judgement{Status: "flaky", Code: "report_tampered"}},
		{"tampered and out of time", evidence.Exit{Code: -1, Stopped: "cpu_limit"}, "tampered", red, evidence.Judgement{Status: "flaky", Code: "report_tampered"}},
		{"out of processor time", evidence.Exit{Code: -1, Stopped: "cpu_limit"}, "complete", red, evidence.Judgement{Status: "timeout", Code: "timeout"}},
		{"out of time", evidence.Exit{Code: -1, Stopped: "wall_limit"}, "incomplete", pass(), evidence.Judgement{Status: "timeout", Code: "timeout"}},
		{"out of memory", evidence.Exit{Code: -1, Stopped: "memory_limit"}, "complete", red, evidence.Judgement{Status: "killed_by_error", Code: "killed_by_error"}},
		{"cancelled", evidence.Exit{Code: -1, Stopped: "cancelled"}, "complete", red, evidence.Judgement{Status: "killed_by_error", Code: "killed_by_error"}},
	}
	for _, tt := range tests {
		got := evidence.Judge(recorded(t, evidence.RunRecord{Exit: tt.exit, Report: tt.report}, tt.events))
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

func TestHonestRunner(t *testing.T) {
	t.Parallel()
	const blind = "a failing assertion planted in " + testName + " did not come out red"
	tests := []struct {
		name  string
		spoil func(d *draft)
		code  fault.Code
		says  string
	}{
		{"honest", func(*draft) {}, "", ""},
		{"tampered", func(d *draft) { d.rec.Report = evidence.ReportTampered }, evidence.CodeTampered, "the report of the planted run was tampered with"},
		{"exits with 0", func(d *draft) { d.rec.Exit.Code = 0 }, evidence.CodeRunnerBlind, blind},
		{"without end", func(d *draft) { d.rec.Report = evidence.ReportIncomplete }, evidence.CodeRunnerBlind, blind},
		{"green", func(d *draft) { d.events = pass() }, evidence.CodeRunnerBlind, blind},
		{"by an assertion of its own", func(d *draft) { d.events[1].By = evidence.ByAssertion }, evidence.CodeRunnerBlind, blind},
		{"failed, and does not say how", func(d *draft) { d.events = d.events[2:] }, evidence.CodeRunnerBlind, blind},
		{"said to fail, and passed", func(d *draft) { d.events[2].Kind = evidence.EventPass }, evidence.CodeRunnerBlind, blind},
		{"planted elsewhere", func(d *draft) { d.events[1].Test = "TestOther" }, evidence.CodeRunnerBlind, blind},
		{"names no test", func(d *draft) {
			d.rec.Planted = ""
			for i := range d.events {
				d.events[i].Test = ""
			}
		}, evidence.CodeRunnerBlind, "a failing assertion planted in  did not come out red"},
	}
	for _, tt := range tests {
		d := honest().runs["planted"]
		tt.spoil(d)
		err := evidence.HonestRunner(recorded(t, d.rec, d.events))
		switch {
		case tt.code == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.code != "" && (err == nil || !fault.Has(err, tt.code) || err.Error() != tt.says):
			t.Errorf("%s: %v, want %s: %s", tt.name, err, tt.code, tt.says)
		}
	}
}
