package evidence_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// TestRefusalSaysWhy holds the sentence that a person reads, its code and its
// kind. Where two conditions share a code, only the sentence tells which of them
// refused.
func TestRefusalSaysWhy(t *testing.T) {
	t.Parallel()
	const incomplete = "a certificate names a symbol, a test and what runs around it, with their digests"
	every := func(change func(rec *evidence.RunRecord)) func(*scene) {
		return func(s *scene) {
			for _, d := range s.runs {
				change(&d.rec)
			}
		}
	}
	at := func(n string, change func(rec *evidence.RunRecord)) func(*scene) {
		return func(s *scene) { change(&s.runs[n].rec) }
	}
	no, mismatch := fault.Negative, evidence.CodeMismatch
	tests := []struct {
		name string
		kind fault.Kind // empty: unmeasured
		code fault.Code
		says string
		do   func(*scene)
	}{
		{"no symbol", "", mismatch, incomplete, func(s *scene) { s.facts.Symbol = "" }},
		{"no symbol, consistently", "", mismatch, incomplete, func(s *scene) {
			s.facts.Symbol, s.facts.Probe.Symbol, s.facts.Reached[""] = "", "", s.facts.SymbolDigest
		}},
		{"no test", "", mismatch, incomplete, func(s *scene) { s.facts.Test = "" }},
		{"no digest of the symbol", "", mismatch, incomplete, func(s *scene) { s.facts.SymbolDigest, s.facts.Reached = "", nil }},
		{"no digest of the test", "", mismatch, incomplete, func(s *scene) { s.facts.TestDigest = "" }},
		{"no digest of the setup", "", mismatch, incomplete, func(s *scene) { s.facts.Setup = "" }},
		{"another symbol", "", mismatch, "the probe breaks another, not " + symbol, func(s *scene) { s.facts.Probe.Symbol = "another" }},
		{"no diff", "", mismatch, "the probe has no diff", func(s *scene) { s.facts.Probe.Diff = "" }},
		{"not executed", "", mismatch, testName + " was not seen to execute " + symbol, func(s *scene) { s.facts.Reached = nil }},
		{"a helper left out", "", mismatch, testName + " executed helper, whose digest is missing", func(s *scene) {
			s.runs["baseline"].events[0].Names, s.runs["baseline"].events[2].Index = []string{symbol, "helper"}, []int64{0, 1}
		}},
		{"no baseline", "", mismatch, "the first baseline is missing", func(s *scene) { s.runs["baseline"].absent = true }},
		{"no second baseline", "", mismatch, "the second baseline is missing", func(s *scene) { s.runs["shuffled"].absent = true }},
		{"no null run", "", mismatch, "the null run is missing", func(s *scene) { s.runs["null"].absent = true }},
		{"no planted run", "", mismatch, "the planted run is missing", func(s *scene) { s.runs["planted"].absent = true }},
		{"no control", "", mismatch, "the control is missing", func(s *scene) { s.runs["control"].absent = true }},
		{"no repeat", "", mismatch, "the repeat is missing", func(s *scene) { s.runs["repeat"].absent = true }},
		{"no kill", "", mismatch, "the first baseline is about another snapshot", func(s *scene) { s.runs["kill"].absent = true }},
		{"one baseline twice", "", mismatch, "the second baseline is used twice", func(s *scene) { s.runs["shuffled"] = s.runs["baseline"] }},
		{"one steady run twice", "", mismatch, "the steady runs are not in the order in which they were made", func(s *scene) { s.runs["steady2"] = s.runs["steady0"] }},
		{"another purpose", "", mismatch, "the null run is a build run", at("null", func(rec *evidence.RunRecord) { rec.Purpose = evidence.PurposeBuild })},
		{"a steady run of another purpose", "", mismatch, "the steady run on a probe is a build run", at("steady1", func(rec *evidence.RunRecord) { rec.Purpose = evidence.PurposeBuild })},
		{"a control with a probe", "", mismatch, `the control ran with probe "x"`, at("control", func(rec *evidence.RunRecord) { rec.Probe = "x" })},
		{"a steady control with a probe", "", mismatch, `the steady run on the original ran with probe "x"`, at("steady0", func(rec *evidence.RunRecord) { rec.Probe = "x" })},
		{"another snapshot", "", mismatch, "the repeat is about another snapshot", at("repeat", func(rec *evidence.RunRecord) { rec.Snapshot = "x" })},
		{"no snapshot at all", "", mismatch, "the first baseline is about another snapshot", every(func(rec *evidence.RunRecord) { rec.Snapshot = "" })},
		{"another executable", "", mismatch, "the control ran another executable", at("control", func(rec *evidence.RunRecord) { rec.Artifact = "x" })},
		{"no executable at all", "", mismatch, "the first baseline ran another executable", every(func(rec *evidence.RunRecord) { rec.Artifact = "" })},
		{"not alone", "", mismatch, "the kill did not run " + testName + " alone", at("kill", func(rec *evidence.RunRecord) { rec.Tests = []string{testName, "TestOther"} })},
		{"control together with the kill", "", mismatch, "kill, control and repeat were not made in this order", func(s *scene) {
			s.runs["control"].rec.Started = s.runs["kill"].rec.Started
		}},
		{"repeat together with the control", "", mismatch, "kill, control and repeat were not made in this order", func(s *scene) {
			s.runs["repeat"].rec.Started = s.runs["control"].rec.Started
		}},
		{"steady runs in another order", "", mismatch, "the steady runs are not in the order in which they were made", func(s *scene) {
			a, b := &s.runs["steady0"].rec.Started, &s.runs["steady1"].rec.Started
			*a, *b = *b, *a
		}},
		{"two steady runs at once", "", mismatch, "the steady runs are not in the order in which they were made", func(s *scene) {
			s.runs["steady11"].rec.Started = s.runs["steady10"].rec.Started
		}},
		{"a steady run too few", "", mismatch, "5 runs on the original and 6 on a probe do not show that a test is steady: want 6 of each", func(s *scene) { s.runs["steady0"].absent = true }},
		{"a plain run of another purpose", "", mismatch, "the plain run is about something else", at("plain", func(rec *evidence.RunRecord) { rec.Purpose = evidence.PurposeProbe })},
		{"baseline red", "", evidence.CodeBaselineRed, testName + " failed in the first baseline", red("baseline")},
		{"skipped", "", evidence.CodeBaselineRed, testName + " skipped in the first baseline", func(s *scene) { s.runs["baseline"].events[3].Kind = evidence.EventSkip }},
		{"second baseline red", "", evidence.CodeOrderDependent, testName + " failed in the second, shuffled baseline", red("shuffled")},
		{"null run red", "", evidence.CodeSwitchSensitive, testName + " failed in the null run (switch on, nothing changed)", red("null")},
		{"control red", "", evidence.CodeFlaky, testName + " failed in the control", red("control")},
		{"control without end", "", evidence.CodeIncomplete, "the control has no end mark", at("control", func(rec *evidence.RunRecord) { rec.Report = evidence.ReportIncomplete })},
		{"null run tampered", "", evidence.CodeTampered, "the report of the null run (switch on, nothing changed) was tampered with", at("null", func(rec *evidence.RunRecord) { rec.Report = evidence.ReportTampered })},
		{"survived", no, evidence.CodeSurvived, testName + ": survived", green("kill")},
		{"panic", "", evidence.CodeKilledByError, testName + ": killed_by_error", func(s *scene) { s.runs["kill"].events = fail(evidence.ByPanic, 9) }},
		{"another test failed", "", evidence.CodeFlaky, "another test than " + testName + " failed", func(s *scene) { s.runs["kill"].events[1].Test = "TestOther" }},
		{"only the plant failed", "", evidence.CodeFlaky, "another test than " + testName + " failed", func(s *scene) { s.runs["kill"].events = fail(evidence.ByPlanted, 9) }},
		{"the repeat survived", "", evidence.CodeFlaky, "the repeat disagreed with the first kill: " + testName + ": survived", green("repeat")},
		{"the repeat failed elsewhere", "", evidence.CodeFlaky, "the first kill failed at calc_test.go:9, the repeat at calc_test.go:10", func(s *scene) { s.runs["repeat"].events = fail(evidence.ByAssertion, 10) }},
		{"the plain build survived", "", evidence.CodeFastLane, "a plainly mutated build without a switch disagreed: " + testName + ": survived", green("plain")},
		{"noticed only sometimes", "", evidence.CodeFlaky, testName + " does not notice the same probe every time: " + testName + ": survived", green("steady1")},
		{"red on the original once", "", evidence.CodeFlaky, testName + " failed when it ran alone on the original once more", red("steady0")},
	}
	for _, tt := range tests {
		s := honest()
		tt.do(s)
		if tt.kind == "" {
			tt.kind = fault.Unmeasured
		}
		c, err := evidence.NewDiscrimination(s.seal(t))
		if err == nil || !c.IsZero() {
			t.Errorf("%s: a certificate was earned", tt.name)
			continue
		}
		if e := fault.From(err); err.Error() != tt.says || e.Code != tt.code || e.Kind != tt.kind {
			t.Errorf("%s: %q (%s, %s), want %q (%s, %s)", tt.name, err, e.Code, e.Kind, tt.says, tt.code, tt.kind)
		}
	}
}

func TestDiscriminationSaysWhatWasSeen(t *testing.T) {
	t.Parallel()
	s := honest()
	// Loopback may be wider than closed, and neither is open.
	s.runs["control"].rec.Isolation.Network = evidence.Closed
	f, rs := s.seal(t)
	c, err := evidence.NewDiscrimination(f, rs)
	if err != nil {
		t.Fatal(err)
	}
	steady := make([]evidence.Digest, 0, len(rs.Steady))
	for _, r := range rs.Steady {
		steady = append(steady, r.Digest())
	}
	want := evidence.CertificateRecord{
		Schema: "proveto/certificate/v1", Kind: "discrimination", Snapshot: tree, Facts: f,
		Assertion: evidence.Assertion{File: "calc_test.go", Line: 9, Message: "Double(3) = 0, want 6", MessageDigest: digest("Double(3) = 0, want 6")},
		Isolation: evidence.Isolation{Level: evidence.Namespaces, Network: evidence.Loopback}, Artifact: digest("binary"),
		Runs: evidence.RunDigests{
			Baselines: [2]evidence.Digest{rs.Baselines[0].Digest(), rs.Baselines[1].Digest()}, Null: rs.Null.Digest(), Planted: rs.Planted.Digest(),
			Kill: rs.Kill.Digest(), Control: rs.Control.Digest(), Repeat: rs.Repeat.Digest(), Steady: steady, Plain: rs.Plain.Digest(),
		},
	}
	if d := cmp.Diff(want, c.Record()); d != "" {
		t.Error(d)
	}
	if got := evidence.DigestOf(c.Body()); c.Digest() != got || c.IsZero() {
		t.Errorf("the certificate says it has digest %s, its body has %s", c.Digest(), got)
	}
	if got, want := c.String(), "certificate "+c.Digest().Short()+`: TestDouble/three rejects "result 0" in `+symbol; got != want {
		t.Errorf("String = %s, want %s", got, want)
	}
}

func TestCertificateIsNotDerivedAgain(t *testing.T) {
	t.Parallel()
	f, rs := honest().seal(t)
	c, err := evidence.NewDiscrimination(f, rs)
	if err != nil {
		t.Fatal(err)
	}
	runs := map[evidence.Digest]evidence.Run{rs.Plain.Digest(): *rs.Plain}
	for _, r := range append([]evidence.Run{rs.Baselines[0], rs.Baselines[1], rs.Null, rs.Planted, rs.Kill, rs.Control, rs.Repeat}, rs.Steady...) {
		runs[r.Digest()] = r
	}
	from := func(d evidence.Digest) (evidence.Run, error) { return runs[d], nil }
	edit := func(from, to string) []byte {
		if !bytes.Contains(c.Body(), []byte(from)) {
			t.Fatalf("the certificate does not contain %s", from)
		}
		return bytes.Replace(c.Body(), []byte(from), []byte(to), 1)
	}
	again := edit(`"line":9`, `"line":8`)
	tests := []struct {
		name, says string
		body       []byte
	}{
		{"half of it", "certificate does not parse: unexpected end of JSON input", c.Body()[:20]},
		{"another schema", `certificate has schema "proveto/certificate/v2" and kind "discrimination", which this version cannot derive`, edit("certificate/v1", "certificate/v2")},
		{"another kind", `certificate has schema "proveto/certificate/v1" and kind "praise", which this version cannot derive`, edit(`"kind":"discrimination"`, `"kind":"praise"`)},
		{"another symbol", "the stored runs do not earn this certificate: the probe breaks " + symbol + ", not x", edit(`"symbol":"`+symbol+`","symbol_digest"`, `"symbol":"x","symbol_digest"`)},
		{"another line", fmt.Sprintf("the stored runs derive certificate %s, not %s", c.Digest().Short(), evidence.DigestOf(again).Short()), again},
	}
	for _, tt := range tests {
		got, err := evidence.Rederive(tt.body, from)
		if err == nil || !got.IsZero() {
			t.Errorf("%s: derived", tt.name)
		} else if e := fault.From(err); err.Error() != tt.says || e.Kind != fault.Tampered || e.Code != evidence.CodeMismatch {
			t.Errorf("%s: %q (%s, %s), want %q", tt.name, err, e.Kind, e.Code, tt.says)
		}
	}
	// A run that cannot be had is no proof of tampering: its own error is given,
	// and no further run is asked for.
	for i, missing := range c.Record().Runs.All() {
		lost, asked := errors.New("the disk is gone"), 0
		got, err := evidence.Rederive(c.Body(), func(d evidence.Digest) (evidence.Run, error) {
			if asked++; d == missing {
				return evidence.Run{}, lost
			}
			return runs[d], nil
		})
		if !errors.Is(err, lost) || err.Error() != lost.Error() || !got.IsZero() || asked != i+1 {
			t.Errorf("without run %d: %v after %d runs", i, err, asked)
		}
	}
}

// mustRefuse checks that an error was given, that it is ours, and what it says.
func mustRefuse(t *testing.T, name string, err error, kind fault.Kind, says string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", name)
	} else if e := fault.From(err); e.Kind != kind || e.Code != evidence.CodeMismatch || !strings.HasPrefix(err.Error(), says) {
		t.Errorf("%s: %q (%s, %s), want %q (%s)", name, err, e.Kind, e.Code, says, kind)
	}
}

func TestSteadyNeedsItsOwnTest(t *testing.T) {
	t.Parallel()
	green := recorded(t, evidence.RunRecord{Purpose: evidence.PurposeControl, Report: evidence.ReportComplete, Started: time.Unix(1, 0)}, pass())
	if err := evidence.Steady(testName, green); err != nil {
		t.Error(err)
	}
	if err := evidence.Steady("TestOther", green); err == nil || err.Error() != "TestOther not_run when it ran alone on the original once more" {
		t.Errorf("Steady of a test that did not run: %v", err)
	}
}
