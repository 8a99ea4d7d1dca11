package prove

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

const (
	unitID   = "example.test/calc"
	double   = "calc Double()."
	triple   = "calc Triple()."
	testTree = evidence.Tree("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
)

// world is what one test can see of the process in which it runs.
type world struct {
	probe    string   // summary of the probe that is on; empty on the original
	planted  bool     // a failure is planted in this test
	observed bool     // what is executed is recorded
	switched bool     // the machinery of a probe is on, also without one
	plain    bool     // the probe is written into the source
	otherEnv bool     //
	alone    bool     // the test was chosen by name
	before   []string // tests that ran before in this process
	n        int      // of the run, counted over the whole suite
}

// What a test does.
const (
	passes = "pass"
	fails  = "fail"
	panics = "panic"
	skips  = "skip"
	exits  = "exit"
	loops  = "loop"  // uses up its CPU time
	sleeps = "sleep" // waits for ever
	floods = "flood" // writes more than is allowed
)

type scripted struct {
	name  string
	reach []string
	doFn  func(w world) string
}

// memory is an honest suite without processes: it runs scripted tests in order,
// reports what they do, and decides nothing.
type memory struct {
	tests  []scripted
	probes []lang.Probe
	hides  bool // a hook turns red into green
	early  bool // the process leaves before any test
	plain  bool // this is the plain build
	atInit bool // Double runs before the tests, too
	// By test: what it consults, and what it consults and executes only when no
	// other test ran before.
	reads, alone, aloneReach map[string][]string

	mu   *sync.Mutex
	log  *[]lang.Request
	runs *int
}

func newMemory(tests ...scripted) *memory {
	s := &memory{tests: tests, mu: &sync.Mutex{}, log: &[]lang.Request{}, runs: new(int)}
	s.addProbe(double, evidence.ProbeResult, "result 0")
	s.addProbe(double, evidence.ProbeResult, "result 1")
	return s
}

func (s *memory) addProbe(symbol string, k evidence.ProbeKind, summary string) {
	s.probes = append(s.probes, lang.Probe{Switch: int64(len(s.probes) + 1), Probe: evidence.Probe{
		Symbol: symbol, Kind: k, Operator: "OP", Summary: summary, File: "calc.go", Line: 5, Diff: "+" + summary,
	}})
}

func (s *memory) Unit() string { return unitID }

func (s *memory) Close() error { return nil }

func (s *memory) Probes(symbol string, _ []evidence.Run, all bool) []lang.Probe {
	var out []lang.Probe
	for _, p := range s.probes {
		if p.Symbol == symbol && (all || p.Kind == evidence.ProbeResult) {
			out = append(out, p)
		}
	}
	return out
}

func (s *memory) Plain(context.Context, lang.Probe) (lang.Suite, error) {
	p := *s
	p.plain = true
	return &p, nil
}

func (s *memory) Run(_ context.Context, r lang.Request) (evidence.Run, error) {
	s.mu.Lock()
	*s.runs++
	n := *s.runs
	*s.log = append(*s.log, r)
	s.mu.Unlock()
	rec := evidence.RunRecord{
		Purpose: r.Purpose, Snapshot: testTree, Argv: []string{"calc.test"}, Dir: ".", Artifact: evidence.DigestOf([]byte("binary")),
		Tests: r.Tests, Planted: r.Plant, Report: evidence.ReportComplete, Nonce: fmt.Sprint(n),
		Isolation: evidence.Isolation{Level: evidence.Namespaces, Network: evidence.Loopback},
		Started:   time.Date(2026, 1, 2, 3, 4, 5, n, time.UTC),
	}
	if r.Probe != nil {
		rec.Probe = r.Probe.Digest()
	}
	var events []evidence.Event
	if s.early {
		rec.Report = evidence.ReportIncomplete
		return evidence.RecordRun(rec, nil)
	}
	observed := r.Observe || r.Reach
	if observed {
		events = append(events, evidence.Event{Kind: evidence.EventSymbols, Names: []string{double, triple}})
	}
	if observed && s.atInit {
		events = append(events, evidence.Event{Kind: evidence.EventReach, Test: evidence.InitTest, Index: []int64{0}})
	}
	tests := slices.Clone(s.tests)
	if r.Shuffle != 0 {
		slices.Reverse(tests)
	}
	var before []string
	for _, te := range tests {
		if len(r.Tests) > 0 && !slices.Contains(r.Tests, te.name) {
			continue
		}
		w := world{planted: r.Plant == te.name, observed: observed, switched: r.Probe != nil || r.Purpose == evidence.PurposeNull, plain: s.plain, otherEnv: r.OtherEnv, alone: len(r.Tests) > 0, before: before, n: n}
		if r.Probe != nil {
			w.probe = r.Probe.Summary
		}
		what, by := te.doFn(w), evidence.ByAssertion
		if w.planted && what != floods {
			what, by = fails, evidence.ByPlanted
		}
		before = append(before, te.name)
		events = append(events, evidence.Event{Kind: evidence.EventBegin, Test: te.name})
		names, reach := s.reads[te.name], te.reach
		if len(r.Tests) > 0 {
			names, reach = append(slices.Clone(names), s.alone[te.name]...), append(slices.Clone(reach), s.aloneReach[te.name]...)
		}
		if observed && len(names) > 0 {
			events = append(events, evidence.Event{Kind: evidence.EventReads, Test: te.name, Names: names})
		}
		if observed && what != skips {
			for i, id := range []string{double, triple} {
				if slices.Contains(reach, id) {
					events = append(events, evidence.Event{Kind: evidence.EventReach, Test: te.name, Index: []int64{int64(i)}})
				}
			}
		}
		switch what {
		case passes:
			events = append(events, evidence.Event{Kind: evidence.EventPass, Test: te.name, Duration: int64(time.Millisecond)})
			continue
		case skips:
			events = append(events, evidence.Event{Kind: evidence.EventSkip, Test: te.name})
			continue
		case exits:
			rec.Report = evidence.ReportIncomplete
			return evidence.RecordRun(rec, events)
		case loops, sleeps, floods:
			rec.Report = evidence.ReportIncomplete
			rec.Exit.Stopped = map[string]evidence.Stop{loops: evidence.StopCPU, sleeps: evidence.StopWall, floods: evidence.StopOutput}[what]
			return evidence.RecordRun(rec, events)
		case panics:
			by = evidence.ByPanic
		}
		if !s.hides {
			rec.Exit.Code = 1
		}
		events = append(events, evidence.Event{Kind: evidence.EventFail, Test: te.name, By: by, File: "calc_test.go", Line: 9, Message: "no"},
			evidence.Event{Kind: evidence.EventFailed, Test: te.name})
		if r.FailFast {
			break
		}
	}
	return evidence.RecordRun(rec, append(events, evidence.Event{Kind: evidence.EventEnd}))
}

// scanOf describes the suite as a driver would.
func scanOf(s *memory) *lang.Scan {
	out := &lang.Scan{
		Project: lang.Project{Language: "go", Dir: ".", Name: unitID}, Toolchain: "go1.26.8 linux/amd64", Driver: "go 1", Locks: evidence.DigestOf([]byte("locks")),
		Units: []lang.Unit{
			{ID: unitID, Dir: ".", Imports: []string{unitID + "/helper"}, Tests: len(s.tests), Data: evidence.DigestOf([]byte("data"))},
			{ID: unitID + "/helper", Dir: "helper"},
		},
	}
	for _, id := range []string{double, triple} {
		out.Symbols = append(out.Symbols, lang.Symbol{ID: id, Name: id, Kind: "function", Unit: unitID, File: "calc.go", Digest: evidence.DigestOf([]byte(id))})
	}
	for _, te := range s.tests {
		if strings.Contains(te.name, "/") {
			continue
		}
		id := "calc " + te.name + "()."
		out.Symbols = append(out.Symbols, lang.Symbol{ID: id, Name: te.name, Kind: "test", Unit: unitID, File: "calc_test.go", Digest: evidence.DigestOf([]byte(id)), TestCode: true})
		out.Tests = append(out.Tests, lang.Test{Name: te.name, Kind: "test", Unit: unitID, File: "calc_test.go", Symbol: id})
		for _, to := range te.reach {
			out.Calls = append(out.Calls, lang.Call{From: id, To: to})
		}
	}
	return out
}

func ready(t testing.TB, s *memory) *Unit {
	t.Helper()
	u, err := Prepare(t.Context(), s, NewToday(scanOf(s), lang.Workspace{}), testTree)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func attemptOf(t testing.TB, u *Unit, symbol string, o Options) evidence.MeasurementRecord {
	t.Helper()
	out, err := u.Attempt(t.Context(), symbol, o)
	if err != nil {
		t.Fatal(err)
	}
	return out.Measurement.Record()
}

// looks notices every probe of Double; blind reaches it and never looks.
func looks(name string) scripted {
	return scripted{name, []string{double}, func(w world) string {
		if w.probe != "" {
			return fails
		}
		return passes
	}}
}

func blind(name string) scripted {
	return scripted{name, []string{double}, func(world) string { return passes }}
}
