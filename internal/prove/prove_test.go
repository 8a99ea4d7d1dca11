package prove

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

func TestAttemptProvesOnceAndAsksTheTestOnce(t *testing.T) {
	t.Parallel()
	s := newMemory(looks("TestDouble"))
	s.addProbe(double, evidence.ProbeCondition, "condition negated")
	u := ready(t, s)
	steady := func() (n int) {
		for _, r := range *s.log {
			if r.Purpose == evidence.PurposeControl {
				n++
			}
		}
		return n
	}
	out, err := u.Attempt(t.Context(), double, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := out.Measurement.Record(); m.Word != evidence.Proven || len(m.Trials) != 1 || len(out.Certificates) != 1 {
		t.Fatalf("%s after %d trials, %d certificates, want proven by the first", m.Word, len(m.Trials), len(out.Certificates))
	}
	if out.Certificates[0].Record().Runs.Plain == "" {
		t.Error("the first certificate of a unit has no plain run")
	}
	// Its own control, and those that show it to be steady.
	if got := steady(); got != 1+evidence.SteadyRounds {
		t.Errorf("%d controls, want %d", got, 1+evidence.SteadyRounds)
	}
	if m := attemptOf(t, u, double, Options{Score: true}); len(m.Trials) != 3 {
		t.Errorf("with score %d trials, want all 3", len(m.Trials))
	}
	if got := steady(); got != 1+evidence.SteadyRounds+1 {
		t.Errorf("%d controls, want one more, which three more certificates share", got)
	}
}

func TestAttemptReason(t *testing.T) {
	t.Parallel()
	counter := 0
	disagrees := func() *memory {
		return newMemory(scripted{"TestDouble", []string{double}, func(w world) string {
			if w.probe != "" && !w.plain {
				return fails
			}
			return passes
		}})
	}
	early := disagrees()
	early.atInit = true
	tests := []struct {
		name   string
		suite  *memory
		word   evidence.Word
		reason string
	}{
		{"nobody looks", newMemory(blind("TestDouble")), evidence.Refuted, "survived"},
		{"panics only", newMemory(scripted{"TestDouble", []string{double}, func(w world) string {
			if w.probe != "" {
				return panics
			}
			return passes
		}}), evidence.NotMeasured, "killed_by_error_only"},
		{"leaves only", newMemory(scripted{"TestDouble", []string{double}, func(w world) string {
			if w.probe != "" {
				return exits
			}
			return passes
		}}), evidence.NotMeasured, "killed_by_error_only"},
		{"fails when chosen", newMemory(blind("TestOther"), scripted{"TestDouble", []string{double}, func(w world) string {
			if w.alone && !w.switched {
				return fails
			}
			if w.probe != "" {
				return fails
			}
			return passes
		}}), evidence.NotMeasured, "order_dependent"},
		{"the plain build disagrees", disagrees(), evidence.NotMeasured, "fast_lane_disagreed"},
		{"the plain build has it from the start", early, evidence.Proven, ""},
		{"a probe that acts by chance", newMemory(scripted{"TestDouble", []string{double}, func(w world) string {
			if w.probe == "" {
				return passes
			}
			if counter++; counter%6 == 0 {
				return passes
			}
			return fails
		}}), evidence.NotMeasured, "flaky"},
		{"a flaky neighbour comes first", newMemory(scripted{"TestAChance", []string{double}, func(w world) string {
			if w.alone && w.n%2 == 0 {
				return fails
			}
			return passes
		}}, looks("TestDouble")), evidence.Proven, ""},
	}
	for _, tt := range tests {
		m := attemptOf(t, ready(t, tt.suite), double, Options{})
		if m.Word != tt.word || m.Reason != tt.reason {
			t.Errorf("%s: %s (%s), want %s (%s)", tt.name, m.Word, m.Reason, tt.word, tt.reason)
		}
	}
}

// Endless probes are confirmed no more often than needed: each costs its whole
// limit.
func TestAttemptTimeoutIsConfirmedOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		how       string
		confirmed []bool
	}{{sleeps, []bool{true, false}}, {loops, []bool{false, false}}} {
		m := attemptOf(t, ready(t, newMemory(scripted{"TestDouble", []string{double}, func(w world) string {
			if w.probe != "" {
				return tt.how
			}
			return passes
		}})), double, Options{})
		if m.Reason != "timeout" || len(m.Trials) != 2 {
			t.Errorf("%s: %s (%s) after %d trials, want timeout after 2", tt.how, m.Word, m.Reason, len(m.Trials))
			continue
		}
		for i, want := range tt.confirmed {
			if got := m.Trials[i].Confirmed != ""; got != want {
				t.Errorf("%s: probe %d confirmed %v, want %v", tt.how, i, got, want)
			}
		}
	}
}

// A probe of another kind proves nothing, however well it is noticed.
func TestAttemptOtherKindsDoNotProve(t *testing.T) {
	t.Parallel()
	s := newMemory(scripted{"TestDouble", []string{double}, func(w world) string {
		if w.probe == "condition negated" {
			return fails
		}
		return passes
	}})
	s.addProbe(double, evidence.ProbeCondition, "condition negated")
	out, err := ready(t, s).Attempt(t.Context(), double, Options{Score: true})
	if err != nil {
		t.Fatal(err)
	}
	if m := out.Measurement.Record(); m.Word != evidence.Refuted || len(out.Certificates) != 1 {
		t.Errorf("%s with %d certificates, want refuted with one", m.Word, len(out.Certificates))
	}
}

// A test that fails by chance, on one line, is all that reaches a symbol with
// many probes that nobody could notice. It earns nothing, ever: the seeds are
// fixed, so the answer is too.
func TestAttemptFlakyTestEarnsNothing(t *testing.T) {
	t.Parallel()
	judged := 0
	for _, p := range []float64{0.02, 0.1, 0.3, 0.5, 0.7} {
		for seed := range uint64(150) {
			r := rand.New(rand.NewPCG(seed, uint64(p*100)))
			s := newMemory(scripted{"TestChance", []string{double}, func(world) string {
				if r.Float64() < p {
					return fails
				}
				return passes
			}})
			for i := range 30 {
				s.addProbe(double, evidence.ProbeResult, fmt.Sprint("result ", 2+i))
			}
			u, err := Prepare(t.Context(), s, NewToday(scanOf(s), lang.Workspace{}), testTree)
			if err != nil {
				continue // it was found out at once
			}
			judged++
			if m := attemptOf(t, u, double, Options{}); m.Word == evidence.Proven {
				t.Errorf("p = %.2f, seed %d: proven", p, seed)
			}
		}
	}
	if judged < 100 {
		t.Errorf("only %d suites came as far as probes", judged)
	}
}

// A test that fails by chance is called flaky, or red where it was red every time;
// that it depends on anything else is not said after a few unlucky runs, with or
// without other tests beside it.
func TestChanceIsNoOtherReason(t *testing.T) {
	t.Parallel()
	said := map[fault.Code]int{}
	for _, others := range []bool{false, true} {
		for seed := range uint64(400) {
			r := rand.New(rand.NewPCG(seed, 7))
			tests := []scripted{{"TestChance", []string{double}, func(w world) string {
				if w.probe != "" || r.IntN(2) == 0 {
					return fails
				}
				return passes
			}}}
			if others {
				tests = append(tests, scripted{"TestTriple", []string{triple}, func(world) string { return passes }})
			}
			s := newMemory(tests...)
			u, err := Prepare(t.Context(), s, NewToday(scanOf(s), lang.Workspace{}), testTree)
			if err != nil {
				said[fault.From(err).Code]++
				continue
			}
			if st, ok := u.Hindered(double); ok {
				said[st.Code]++
				continue
			}
			said[fault.Code(attemptOf(t, u, double, Options{}).Reason)]++
		}
	}
	if said[evidence.CodeFlaky] < 400 {
		t.Errorf("flaky %d times of 800: %v", said[evidence.CodeFlaky], said)
	}
	for code, n := range said {
		// Empty: proven. The test does notice, and was green ten times by chance.
		if code != evidence.CodeFlaky && code != evidence.CodeBaselineRed && code != "" {
			t.Errorf("%s, %d times of 800", code, n)
		}
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	hidden, early := newMemory(looks("TestDouble")), newMemory(looks("TestDouble"))
	hidden.hides, early.early = true, true
	when := func(yes func(world) bool) *memory {
		return newMemory(scripted{"TestDouble", []string{double}, func(w world) string {
			if yes(w) {
				return fails
			}
			return passes
		}})
	}
	tests := []struct {
		name  string
		suite *memory
		code  fault.Code
	}{
		{"a hook hides red", hidden, evidence.CodeRunnerBlind},
		{"the process leaves early", early, evidence.CodeIncomplete},
		{"red", when(func(world) bool { return true }), evidence.CodeBaselineRed},
		{"red by chance, twice", when(func(w world) bool { return w.n <= 2 }), evidence.CodeFlaky},
		{"red while observed", when(func(w world) bool { return w.observed }), evidence.CodeSwitchSensitive},
		{"red with the switch on", when(func(w world) bool { return w.switched }), evidence.CodeSwitchSensitive},
		{"too loud when red", newMemory(scripted{"TestDouble", []string{double}, func(w world) string {
			if w.planted {
				return floods
			}
			return passes
		}}), lang.Configuration},
		{"red elsewhere", when(func(w world) bool { return w.otherEnv }), evidence.CodeEnvSensitive},
		{"red the second time", when(func(w world) bool { return w.n == 2 || w.n == 3 }), evidence.CodeFlaky},
		{"skipped", newMemory(scripted{"TestDouble", []string{double}, func(world) string { return skips }}), evidence.CodeNoTestsRan},
		{"no tests", newMemory(), lang.NoTests},
	}
	for _, tt := range tests {
		u, err := Prepare(t.Context(), tt.suite, NewToday(scanOf(tt.suite), lang.Workspace{}), testTree)
		if err == nil {
			t.Errorf("%s: prepared, %v can vouch", tt.name, u.Tests)
		} else if got := fault.From(err); got.Kind != fault.Unmeasured || got.Code != tt.code {
			t.Errorf("%s: %v (%s), want %s", tt.name, err, got.Code, tt.code)
		}
	}
}

// A symbol that only unfit tests reach is hindered by one of them, not without
// coverage.
func TestHinderedSaysWhy(t *testing.T) {
	t.Parallel()
	other := scripted{"TestTriple", []string{triple}, func(world) string { return passes }}
	set := scripted{"TestASet", nil, func(world) string { return passes }}
	tests := []struct {
		name string
		own  scripted
		code fault.Code
	}{
		{"needs another test", scripted{"TestDouble", []string{double}, func(w world) string {
			if slices.Contains(w.before, "TestASet") {
				return passes
			}
			return fails
		}}, evidence.CodeOrderDependent},
		{"red", scripted{"TestDouble", []string{double}, func(world) string { return fails }}, evidence.CodeBaselineRed},
		{"red with the switch on", scripted{"TestDouble", []string{double}, func(w world) string {
			if w.switched {
				return fails
			}
			return passes
		}}, evidence.CodeSwitchSensitive},
		{"leaves", scripted{"TestDouble", []string{double}, func(world) string { return exits }}, evidence.CodeIncomplete},
		{"skipped", scripted{"TestDouble", []string{double}, func(world) string { return skips }}, evidence.CodeTestsNotRun},
	}
	for _, tt := range tests {
		u := ready(t, newMemory(set, tt.own, other))
		if got := u.Reaching(double); len(got) != 0 {
			t.Errorf("%s: %v may vouch", tt.name, got)
		}
		if st, ok := u.Hindered(double); !ok || st.Code != tt.code || st.Test != "TestDouble" {
			t.Errorf("%s: hindered %v by %s (%s), want TestDouble (%s)", tt.name, ok, st.Test, st.Code, tt.code)
		}
		if st, ok := u.Hindered(triple); ok {
			t.Errorf("%s: Triple is hindered by %s", tt.name, st.Test)
		}
	}
}

func TestReproduceMakesEveryRunAgain(t *testing.T) {
	t.Parallel()
	s := newMemory(looks("TestDouble"))
	u := ready(t, s)
	out, err := u.Attempt(t.Context(), double, Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := out.Certificates[0].Record()
	again, err := ready(t, s).Reproduce(t.Context(), first.Facts)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range again.Record().Runs.All() {
		if slices.Contains(first.Runs.All(), d) {
			t.Errorf("run %d is the old one", i)
		}
	}
	s.tests[0] = blind("TestDouble")
	if _, err := ready(t, s).Reproduce(t.Context(), first.Facts); fault.From(err).Code != evidence.CodeSurvived {
		t.Errorf("reproduced by a test that does not look: %v", err)
	}
}

func TestLapsesNamesTheCause(t *testing.T) {
	t.Parallel()
	s := newMemory(looks("TestDouble"))
	s.tests[0].reach = append(s.tests[0].reach, triple)
	out, err := ready(t, s).Attempt(t.Context(), double, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := out.Certificates[0].Record()
	m := out.Measurement.Record()
	other := evidence.DigestOf([]byte("edited"))
	tests := []struct {
		want   string
		change func(s *lang.Scan)
		inputs bool // the measurement's inputs change too
	}{
		{"", func(*lang.Scan) {}, false},
		{"", func(s *lang.Scan) { s.Units[1].TestSetup = other }, false}, // tests of a package that is only imported
		{"build_failed", func(s *lang.Scan) { s.Units[0].Broken = &lang.Broken{Code: lang.BuildFailed} }, false},
		{"", func(s *lang.Scan) { s.Units[0].Broken = &lang.Broken{Code: lang.DependencyMissing} }, false}, // here, but not everywhere
		{"symbol_changed", func(s *lang.Scan) { s.Symbols[0].Digest = other }, true},
		{"symbol_missing", func(s *lang.Scan) { s.Symbols[0].ID = "moved" }, true},
		{"reached_changed", func(s *lang.Scan) { s.Symbols[1].Digest = other }, true},
		{"reached_changed", func(s *lang.Scan) { s.Symbols[1].ID = "moved" }, true},
		{"test_changed", func(s *lang.Scan) { s.Symbols[2].Digest = other }, true},
		{"test_missing", func(s *lang.Scan) { s.Tests = nil }, false},
		{"setup_changed", func(s *lang.Scan) { s.Units[0].Setup = other }, true},
		{"setup_changed", func(s *lang.Scan) { s.Units[0].TestSetup = other }, true},
		{"setup_changed", func(s *lang.Scan) { s.Units[1].Setup = other }, true},
		{"data_changed", func(s *lang.Scan) { s.Units[0].Data = other }, true},
		{"locks_changed", func(s *lang.Scan) { s.Locks = other }, true},
		{"toolchain_changed", func(s *lang.Scan) { s.Toolchain = "go1.27" }, true},
		{"driver_changed", func(s *lang.Scan) { s.Driver = "go 2" }, true},
	}
	for i, tt := range tests {
		scan := scanOf(s)
		tt.change(scan)
		today := NewToday(scan, lang.Workspace{})
		got := ""
		if causes := today.Lapses(rec); len(causes) > 0 {
			got = causes[0].Code
		}
		if got != tt.want {
			t.Errorf("change %d: lapses for %q, want %q", i, got, tt.want)
		}
		if got := !today.Unchanged(m); got != tt.inputs {
			t.Errorf("change %d (%s): inputs changed %v, want %v", i, tt.want, got, tt.inputs)
		}
	}
}

// A suite that prints much prints as much in each of its runs: what one run may
// print, no other run is ended for.
func TestEveryRunMayPrintAsMuch(t *testing.T) {
	t.Parallel()
	s := newMemory(looks("TestDouble"), blind("TestBlind"))
	attemptOf(t, ready(t, s), double, Options{Score: true})
	for _, r := range *s.log {
		if got, want := r.Limits.OutputBytes, (*s.log)[0].Limits.OutputBytes; got != want {
			t.Errorf("a %s run keeps %d bytes, the first baseline %d", r.Purpose, got, want)
		}
	}
}
