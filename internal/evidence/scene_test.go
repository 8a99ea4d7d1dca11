package evidence_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/evidence"
)

const (
	tree     = evidence.Tree("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
	testName = "TestDouble/three"
	symbol   = "scip-go gomod example.test/calc . Double()."
)

// scene is what was measured for one certificate, still to be sealed: a test
// changes one thing in it and sees what follows.
type scene struct {
	facts evidence.Facts
	runs  map[string]*draft
}

// draft is a run before it is recorded.
type draft struct {
	rec    evidence.RunRecord
	events []evidence.Event
	absent bool
}

func digest(s string) evidence.Digest { return evidence.DigestOf([]byte(s)) }

// steadyName is the name of a steady run: even ones are on the original.
func steadyName(i int) string { return fmt.Sprintf("steady%d", i) }

func pass() []evidence.Event {
	return []evidence.Event{
		{Kind: evidence.EventSymbols, Names: []string{symbol}},
		{Kind: evidence.EventBegin, Test: testName},
		{Kind: evidence.EventReach, Test: testName, Index: []int64{0}},
		{Kind: evidence.EventPass, Test: testName},
		{Kind: evidence.EventEnd},
	}
}

func fail(by evidence.By, line int) []evidence.Event {
	return []evidence.Event{
		{Kind: evidence.EventBegin, Test: testName},
		{Kind: evidence.EventFail, Test: testName, By: by, File: "calc_test.go", Line: line, Message: "Double(3) = 0, want 6"},
		{Kind: evidence.EventFailed, Test: testName},
		{Kind: evidence.EventEnd},
	}
}

// honest is a scene that earns a certificate.
func honest() *scene {
	probe := evidence.Probe{
		Symbol: symbol, Kind: evidence.ProbeResult, Operator: "RESULT_ZERO", Summary: "result 0", File: "calc.go", Line: 5,
		Diff: "--- a/calc.go\n+++ b/calc.go\n@@ -5 +5 @@\n-\treturn n * 2\n+\treturn 0\n",
	}
	s := &scene{
		facts: evidence.Facts{
			Language: "go", Project: ".", Unit: "example.test/calc", Symbol: symbol, SymbolDigest: digest("symbol"), Probe: probe,
			Test: testName, TestDigest: digest("test"), Reached: map[string]evidence.Digest{symbol: digest("symbol")},
			Setup: digest("setup"), Data: digest("data"), Locks: digest("locks"), Toolchain: "go1.26.8 linux/amd64", Driver: "go 1",
		},
		runs: map[string]*draft{},
	}
	add := func(name string, p evidence.Purpose, alone, red bool) {
		d := &draft{events: pass(), rec: evidence.RunRecord{
			Purpose: p, Snapshot: tree, Argv: []string{"calc.test"}, Dir: ".", Artifact: digest("binary"), Report: evidence.ReportComplete,
			Isolation: evidence.Isolation{Level: evidence.Namespaces, Network: evidence.Loopback},
			Started:   time.Date(2026, 1, 2, 3, 4, len(s.runs), 0, time.UTC), Nonce: name,
		}}
		if alone {
			d.rec.Tests = []string{testName}
		}
		if red {
			d.rec.Exit.Code, d.events = 1, fail(evidence.ByAssertion, 9)
		}
		if p == evidence.PurposeProbe || p == evidence.PurposePlain {
			d.rec.Probe = probe.Digest()
		}
		s.runs[name] = d
	}
	add("baseline", evidence.PurposeBaseline, false, false)
	add("shuffled", evidence.PurposeBaseline, false, false)
	add("null", evidence.PurposeNull, false, false)
	add("planted", evidence.PurposePlanted, true, true)
	s.runs["planted"].rec.Planted, s.runs["planted"].events = testName, fail(evidence.ByPlanted, 0)
	add("kill", evidence.PurposeProbe, true, true)
	add("control", evidence.PurposeControl, true, false)
	add("repeat", evidence.PurposeProbe, true, true)
	for i := range 2 * evidence.SteadyRounds {
		if i%2 == 0 {
			add(steadyName(i), evidence.PurposeControl, true, false)
		} else {
			add(steadyName(i), evidence.PurposeProbe, true, true)
		}
	}
	add("plain", evidence.PurposePlain, true, true)
	s.runs["plain"].rec.Artifact = digest("plain binary")
	return s
}

// seal records the runs.
func (s *scene) seal(t fataler) (evidence.Facts, evidence.Runs) {
	t.Helper()
	run := func(name string) evidence.Run {
		d := s.runs[name]
		if d.absent {
			return evidence.Run{}
		}
		r, err := evidence.RecordRun(d.rec, d.events)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	rs := evidence.Runs{
		Baselines: [2]evidence.Run{run("baseline"), run("shuffled")}, Null: run("null"), Planted: run("planted"),
		Kill: run("kill"), Control: run("control"), Repeat: run("repeat"),
	}
	for i := range 2 * evidence.SteadyRounds {
		if r := run(steadyName(i)); !r.IsZero() {
			rs.Steady = append(rs.Steady, r)
		}
	}
	if p := run("plain"); !p.IsZero() {
		rs.Plain = &p
	}
	return s.facts, rs
}

type fataler interface {
	Helper()
	Fatal(...any)
}

var _ fataler = (*testing.T)(nil)
