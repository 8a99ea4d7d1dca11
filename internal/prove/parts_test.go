package prove

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

func runOf(t *testing.T, rec evidence.RunRecord, events ...evidence.Event) evidence.Run {
	t.Helper()
	r, err := evidence.RecordRun(rec, events)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A run on a probe gets a multiple of the time that its tests took on the
// original, never less than the floor, and bounded memory, output and processes.
func TestLimitsFollowTheTests(t *testing.T) {
	t.Parallel()
	u := &Unit{durations: map[string]time.Duration{"TestA": time.Second, "TestB": 500 * time.Millisecond, "TestC": time.Hour}}
	for _, tt := range []struct {
		tests []string
		cpu   time.Duration
	}{{nil, LimitFloor}, {[]string{"TestA"}, LimitFactor*time.Second + LimitFloor}, {[]string{"TestA", "TestB", "TestNew"}, LimitFactor*1500*time.Millisecond + LimitFloor}} {
		want := evidence.Limits{CPU: tt.cpu, Idle: tt.cpu, Wall: 3*tt.cpu + 5*time.Second, OutputBytes: outputKept, Processes: 512, MemoryBytes: 8 << 30}
		if d := cmp.Diff(want, u.limits(tt.tests)); d != "" {
			t.Errorf("%v: %s", tt.tests, d)
		}
	}
	want := evidence.Limits{CPU: 10 * time.Minute, Wall: 5 * time.Minute, OutputBytes: 1 << 20, Processes: 512, MemoryBytes: 8 << 30}
	if d := cmp.Diff(want, baselineLimits()); d != "" {
		t.Errorf("baseline: %s", d)
	}
}

// Every run of a suite is bounded by what its purpose allows.
func TestRunsAreBounded(t *testing.T) {
	t.Parallel()
	s := newMemory(looks("TestDouble"))
	u := ready(t, s)
	if _, err := u.Attempt(t.Context(), double, Options{}); err != nil {
		t.Fatal(err)
	}
	for i, r := range *s.log {
		want := u.limits([]string{"TestDouble"})
		if r.Purpose == evidence.PurposeBaseline {
			want = baselineLimits()
		}
		if d := cmp.Diff(want, r.Limits); d != "" {
			t.Errorf("run %d, a %s run: %s", i, r.Purpose, d)
		}
	}
}

// A survivor is a test without the input, or a test that does not look.
func TestInfectionTellsWhatTheTestsSaw(t *testing.T) {
	t.Parallel()
	differ := evidence.Event{Kind: evidence.EventDiffer, Values: []string{"6", "0"}}
	sites := evidence.Event{Kind: evidence.EventSites, Index: []int64{1}}
	tests := []struct {
		name   string
		events []evidence.Event
		note   string
		values []string
	}{
		{"never executed", []evidence.Event{{Kind: evidence.EventEnd}}, "not_infected", nil},
		{"executed, nothing to compare", []evidence.Event{sites}, "infected_not_asserted", nil},
		{"another value", []evidence.Event{differ}, "infected_not_asserted", []string{"6", "0"}},
		{"executed, then another value", []evidence.Event{sites, differ}, "infected_not_asserted", []string{"6", "0"}},
		{"the first of two values", []evidence.Event{differ, {Kind: evidence.EventDiffer, Values: []string{"8", "0"}}}, "infected_not_asserted", []string{"6", "0"}},
	}
	for _, tt := range tests {
		note, values := infection(runOf(t, evidence.RunRecord{}, tt.events...))
		if note != tt.note || !slices.Equal(values, tt.values) {
			t.Errorf("%s: %s %q, want %s %q", tt.name, note, values, tt.note, tt.values)
		}
	}
}

// ended says why a run of the original cannot be believed.
func TestEndedSaysWhy(t *testing.T) {
	t.Parallel()
	limits := evidence.Limits{Wall: 90 * time.Second}
	tests := []struct {
		rec  evidence.RunRecord
		kind fault.Kind
		code fault.Code
		says string
	}{
		{evidence.RunRecord{Report: evidence.ReportComplete}, "", "", ""},
		{evidence.RunRecord{Report: evidence.ReportComplete, Exit: evidence.Exit{Code: 1}}, "", "", ""},
		{evidence.RunRecord{Exit: evidence.Exit{Stopped: evidence.StopCancelled}}, fault.Interrupted, "interrupted", "it was stopped"},
		{evidence.RunRecord{Exit: evidence.Exit{Stopped: evidence.StopCPU}, Limits: limits}, fault.Unmeasured, lang.TimedOut, "it did not end within 1m30s"},
		{evidence.RunRecord{Exit: evidence.Exit{Stopped: evidence.StopWall}, Limits: limits}, fault.Unmeasured, lang.TimedOut, "it did not end within 1m30s"},
		{evidence.RunRecord{Exit: evidence.Exit{Stopped: evidence.StopMemory}}, fault.Unmeasured, lang.Configuration, "it hit our memory limit"},
		{evidence.RunRecord{Report: evidence.ReportTampered}, fault.Unmeasured, evidence.CodeTampered, "the report of it was tampered with"},
		{evidence.RunRecord{Report: evidence.ReportIncomplete, Exit: evidence.Exit{Code: 3}}, fault.Unmeasured, evidence.CodeIncomplete, "it left before the end of the suite (exit 3)"},
		{evidence.RunRecord{Report: evidence.ReportIncomplete, Exit: evidence.Exit{Code: -1, Signal: "SIGSEGV"}}, fault.Unmeasured, evidence.CodeIncomplete, "it left before the end of the suite (SIGSEGV)"},
	}
	for i, tt := range tests {
		err := ended(runOf(t, tt.rec), "it")
		switch e := fault.From(err); {
		case tt.says == "" && err != nil:
			t.Errorf("run %d: %v", i, err)
		case tt.says != "" && (e == nil || e.Error() != tt.says || e.Code != tt.code || e.Kind != tt.kind):
			t.Errorf("run %d: %v, want %s (%s, %s)", i, err, tt.says, tt.kind, tt.code)
		}
	}
}

// What was red alone on the original once vouches for nothing from then on, for
// the reason that was seen first.
func TestSetAsideStays(t *testing.T) {
	t.Parallel()
	u := &Unit{Unfit: []TestState{{Test: "TestRed", Code: evidence.CodeBaselineRed}}}
	if err := u.steadiness.refused("TestA"); err != nil {
		t.Errorf("refused before anything was seen: %v", err)
	}
	u.steadiness.setAside("TestA", fault.New(fault.Unmeasured, evidence.CodeFlaky, "once green, once red"))
	u.steadiness.setAside("TestA", fault.New(fault.Unmeasured, evidence.CodeOrderDependent, "later"))
	if err := u.steadiness.refused("TestA"); err == nil || !fault.Has(err, evidence.CodeFlaky) || err.Error() != "once green, once red" {
		t.Errorf("refused = %v, want the first reason", err)
	}
	if err := u.steadiness.refused("TestB"); err != nil {
		t.Errorf("another test is refused: %v", err)
	}
	want := []TestState{{Test: "TestRed", Code: evidence.CodeBaselineRed}, {Test: "TestA", Code: evidence.CodeFlaky, Detail: "once green, once red"}}
	if d := cmp.Diff(want, u.CannotVouch()); d != "" {
		t.Error(d)
	}
}

func TestRandomOrderIsHalfAndHalf(t *testing.T) {
	t.Parallel()
	orders := map[string]bool{}
	for range 200 {
		got := inRandomOrder(3)
		on := 0
		order := ""
		for _, b := range got {
			if b {
				on++
			}
			order += map[bool]string{true: "p", false: "o"}[b]
		}
		if len(got) != 6 || on != 3 {
			t.Fatalf("%v is not three of each", got)
		}
		orders[order] = true
	}
	// All 20 but with a probability of less than one in a thousand; 10 are enough
	// to show that the order is drawn.
	if len(orders) < 10 {
		t.Errorf("only %d orders in 200 drawings", len(orders))
	}
}

func TestPrepareNamesTheTestThatCannotVouch(t *testing.T) {
	t.Parallel()
	red := scripted{"TestDouble", []string{double}, func(world) string { return fails }}
	skipped := scripted{"TestDouble", []string{double}, func(world) string { return skips }}
	for _, tt := range []struct {
		suite *memory
		says  string
		unfit int
	}{
		{newMemory(red), "no test of " + unitID + " can vouch: TestDouble (baseline failed) no", 1},
		{newMemory(skipped), "every test of " + unitID + " is skipped", 0},
		{newMemory(), "no test of " + unitID + " ran", 0},
	} {
		_, err := Prepare(t.Context(), tt.suite, NewToday(scanOf(tt.suite), lang.Workspace{}), testTree)
		var unfit *UnfitError
		if err == nil || err.Error() != tt.says || errors.As(err, &unfit) != (tt.unfit > 0) {
			t.Errorf("Prepare = %v, want %s", err, tt.says)
		} else if unfit != nil && len(unfit.Tests) != tt.unfit {
			t.Errorf("%d unfit tests, want %d", len(unfit.Tests), tt.unfit)
		}
	}
}

// The likeliest test comes first, then the fastest.
func TestCandidatesAreOrdered(t *testing.T) {
	t.Parallel()
	s := newMemory(blind("TestA"), blind("TestB"), blind("TestB/sub"), blind("TestC"))
	u := ready(t, s)
	u.reach[double] = []string{"TestA", "TestB", "TestB/sub", "TestC"}
	tests := []struct {
		o    Options
		want []string
	}{
		{Options{}, []string{"TestA", "TestB", "TestB/sub", "TestC"}},
		{Options{First: &evidence.Facts{Test: "TestC"}}, []string{"TestC", "TestA", "TestB", "TestB/sub"}},
		{Options{First: &evidence.Facts{Test: "TestGone"}}, []string{"TestA", "TestB", "TestB/sub", "TestC"}},
		{Options{Tests: []string{"TestB"}}, []string{"TestB", "TestB/sub"}},
		{Options{Tests: []string{"TestB/sub", "TestC"}}, []string{"TestB/sub", "TestC"}},
		{Options{Tests: []string{"TestB", "TestA"}, First: &evidence.Facts{Test: "TestC"}}, []string{"TestA", "TestB", "TestB/sub"}},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, u.candidates(double, tt.o)); d != "" {
			t.Errorf("%+v: %s", tt.o, d)
		}
	}
	if got := u.Reaching(triple); len(got) != 0 {
		t.Errorf("Triple is reached by %v", got)
	}
	if d := cmp.Diff([]string{"TestA", "TestB", "TestB/sub", "TestC"}, u.Reaching(double)); d != "" {
		t.Errorf("what was asked for changed what is known: %s", d)
	}
}

// A certificate is bound to all that can change it, and to nothing else.
func TestFactsBindWhatWasExecuted(t *testing.T) {
	t.Parallel()
	s := newMemory(scripted{"TestDouble", []string{double, triple}, looks("TestDouble").doFn}, blind("TestOther"))
	out, err := ready(t, s).Attempt(t.Context(), double, Options{})
	if err != nil || len(out.Certificates) != 1 {
		t.Fatalf("%v, %d certificates", err, len(out.Certificates))
	}
	of := func(s string) evidence.Digest { return evidence.DigestOf([]byte(s)) }
	today := NewToday(scanOf(s), lang.Workspace{})
	want := evidence.Facts{
		Language: "go", Project: ".", Unit: unitID, Symbol: double, SymbolDigest: of(double), Probe: s.probes[0].Probe,
		Test: "TestDouble", TestDigest: of("calc TestDouble()."),
		Reached: map[string]evidence.Digest{double: of(double), triple: of(triple), "calc TestDouble().": of("calc TestDouble().")},
		Reads:   map[string]evidence.Digest{configured: today.Read(configured)},
		Setup:   today.Setup(unitID), Data: of("data"), Locks: of("locks"), Toolchain: "go1.26.8 linux/amd64", Driver: "go 1",
	}
	if d := cmp.Diff(want, out.Certificates[0].Record().Facts); d != "" {
		t.Error(d)
	}
	target := out.Measurement.Record().Target
	wanted := evidence.Target{
		Language: "go", Project: ".", Unit: unitID, Symbol: double, SymbolDigest: of(double), Tests: []string{"TestDouble", "TestOther"},
		Reached: []string{double, "calc TestDouble().", triple}, Reads: []string{configured},
		Inputs: today.Inputs(double, unitID, []string{double, "calc TestDouble().", triple}, []string{configured}),
	}
	if d := cmp.Diff(wanted, target); d != "" {
		t.Error(d)
	}
}

func TestTodayKnowsTheTree(t *testing.T) {
	t.Parallel()
	s := newMemory(looks("TestDouble"), looks("TestOther"))
	scan := scanOf(s)
	scan.Calls = append(scan.Calls, lang.Call{From: double, To: triple})
	today := NewToday(scan, lang.Workspace{})
	if got, ok := today.Symbol(triple); !ok || got.ID != triple {
		t.Errorf("Symbol = %v, %v", got.ID, ok)
	}
	if _, ok := today.Symbol("gone"); ok {
		t.Error("a symbol is known that is not there")
	}
	if got, ok := today.TestSymbol(unitID, "TestDouble/three/four"); !ok || got.ID != "calc TestDouble()." {
		t.Errorf("TestSymbol = %v, %v", got.ID, ok)
	}
	if _, ok := today.TestSymbol(unitID+"/helper", "TestDouble"); ok {
		t.Error("a test belongs to another package too")
	}
	for symbol, want := range map[string]bool{double: true, triple: true, "calc TestDouble().": true, "calc TestOther().": false} {
		if got := today.Calls(unitID, "TestDouble/three", symbol); got != want {
			t.Errorf("TestDouble calls %s: %v, want %v", symbol, got, want)
		}
	}
	if today.Calls(unitID, "TestGone", double) {
		t.Error("a test that is gone calls something")
	}
	suite := func(change func(*lang.Scan)) evidence.Digest {
		scan := scanOf(s)
		change(scan)
		return NewToday(scan, lang.Workspace{}).SuiteDigest(unitID)
	}
	own := today.SuiteDigest(unitID)
	if own == "" || own == today.SuiteDigest(unitID+"/helper") {
		t.Errorf("suites are not told apart: %s", own)
	}
	if got := suite(func(s *lang.Scan) { slices.Reverse(s.Symbols) }); got != own {
		t.Error("the order of the symbols changes the suite")
	}
	if got := suite(func(s *lang.Scan) { s.Symbols[0].Digest = "x" }); got != own {
		t.Error("an edit of the code changes the suite")
	}
	if got := suite(func(s *lang.Scan) { s.Symbols[2].Digest = "x" }); got == own {
		t.Error("an edit of a test does not change the suite")
	}
}

// graphOf scripts what ranking asks.
type graphOf map[string][2]int // fan-in, distance of the entry point; -1: none

func (g graphOf) FanIn(id string) int { return g[id][0] }

func (g graphOf) EntryPoint(id string) (string, int, bool) {
	d := g[id][1]
	return "main", d, d >= 0
}

func TestRankPutsTheWorstFirst(t *testing.T) {
	t.Parallel()
	symbols := []lang.Symbol{
		{ID: "b", Name: "p.Plain", File: "cold.go"},
		{ID: "a", Name: "p.Plain", File: "cold.go"},
		{ID: "hot", Name: "p.Plain", File: "hot.go"},
		{ID: "words", Name: "p.VerifyToken", File: "cold.go"},
		{ID: "big", Name: "p.Plain", File: "cold.go", Statements: 12},
		{ID: "called", Name: "p.Plain", File: "cold.go"},
		{ID: "entry", Name: "p.Plain", File: "cold.go"},
		{ID: "near", Name: "p.Plain", File: "cold.go"},
		{ID: "all", Name: "p.Pay", File: "hot.go", Statements: 36},
		{ID: "mine", Name: "p.Plain", File: "cold.go"},
	}
	g := graphOf{
		"a": {0, -1}, "b": {0, -1}, "hot": {0, -1}, "words": {0, -1}, "big": {0, -1}, "called": {8, -1},
		"entry": {0, 0}, "near": {0, 3}, "all": {24, 0}, "mine": {0, -1},
	}
	ranked := Rank(symbols, g, map[string]int{"hot.go": 4, "cold.go": 0}, func(s lang.Symbol) bool { return s.ID == "mine" })
	want := []struct {
		id   string
		risk float64
	}{{"mine", 0}, {"all", 0.91}, {"entry", 0.25}, {"hot", 0.25}, {"words", 0.15}, {"called", 0.1}, {"big", 0.08}, {"near", 0.06}, {"a", 0}, {"b", 0}}
	for i, w := range want {
		r := ranked[i]
		entry := ""
		if g[w.id][1] >= 0 {
			entry = "main"
		}
		if r.ID != w.id || r.Risk != w.risk || r.Changed != (w.id == "mine") || r.EntryPoint != entry {
			t.Errorf("place %d: %s (%v, changed %v, entry %q), want %s (%v, entry %q)", i, r.ID, r.Risk, r.Changed, r.EntryPoint, w.id, w.risk, entry)
		}
	}
}
