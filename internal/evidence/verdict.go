package evidence

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/fault"
)

// GateRule says how the runs of a gate are read. Names are stored.
type GateRule string

// The rules.
const (
	// RuleExit: every process ended by itself with exit code 0.
	RuleExit GateRule = "exit"
	// RuleGreen: every test of every unit passed or was skipped, in each run.
	RuleGreen GateRule = "green"
	// RuleKept: every test function that passed in the reference runs passes, and no
	// fewer cases than there are run. Subtests may have other names.
	RuleKept GateRule = "kept"
	// RuleHeld: every test that passed in the reference runs passes, subtests too.
	RuleHeld GateRule = "held"
)

// The codes of a verdict, beside those of a run.
const (
	CodeTimedOut   fault.Code = "timed_out"        // a limit of time of ours ended a run
	CodeUnmeasured fault.Code = "unmeasured"       // another limit of ours did
	CodeGateFailed fault.Code = "gate_failed"      // measured, and the answer is no
	CodeGateBlind  fault.Code = "gate_blind"       // the probe was accepted
	CodeFewerCases fault.Code = "denominator_fell" // fewer cases are run than before
)

// UnitRun is a run with the unit that it is about: a package with its tests, or
// what a command is called.
type UnitRun struct {
	Unit string
	Run  Run
}

// GateVerdict is what runs of a gate show. Accepted and Rejected are never both
// set; neither says that the runs decide nothing, for the reason in Code.
type GateVerdict struct {
	Accepted, Rejected bool
	Code               fault.Code // empty when accepted
	Detail             string     // one sentence; empty when accepted
	Faults             []GateFault
	Flaky              []GateFault // red in some runs of the same inputs, green in others
	Tests              GateTests
}

// GateFault is one thing that is wrong. Test is empty when it concerns the unit
// as a whole.
type GateFault struct {
	Unit, Test string
	Code       fault.Code
	Want, Got  string
	File       string // of the assertion that failed; relative to the checkout
	Line       int
	Message    string
}

// GateTests counts leaf tests, the largest count of one run of each unit.
type GateTests struct{ Discovered, Executed, Skipped, Failed, Flaky int }

// JudgeGate reads the runs of a gate by its rule. Reference is for the rules that
// compare, and empty for the others.
func JudgeGate(rule GateRule, reference, runs []UnitRun) GateVerdict {
	var v GateVerdict
	switch {
	case len(runs) == 0 && len(reference) == 0:
		v.Code, v.Detail = CodeUnmeasured, "nothing was run"
		return v
	case rule == RuleExit:
		judgeExit(&v, runs)
		return v
	}
	suite := tally(runs)
	for _, name := range suite.order {
		suite.units[name].judge(&v, rule)
	}
	if rule == RuleKept || rule == RuleHeld {
		judgeKept(&v, rule, reference, suite)
	}
	if rule == RuleGreen && v.Code == "" && len(v.Faults) == 0 && len(v.Flaky) == 0 && v.Tests.Executed == 0 {
		v.Faults = append(v.Faults, GateFault{Code: CodeNoTestsRan, Want: "tests that run", Got: "every test was skipped"})
	}
	v.conclude()
	return v
}

// conclude makes the verdict of what was found. A limit of ours that ended a run
// comes first: such a run decides nothing.
func (v *GateVerdict) conclude() {
	v.Tests.Flaky = len(v.Flaky)
	switch {
	case v.Code != "":
	case len(v.Faults) > 0:
		v.Rejected, v.Code, v.Detail = true, v.Faults[0].Code, v.Faults[0].String()
		if n := len(v.Faults) - 1; n > 0 {
			v.Detail += fmt.Sprintf(" (and %d more)", n)
		}
	case len(v.Flaky) > 0:
		v.Code, v.Detail = CodeFlaky, v.Flaky[0].String()
	default:
		v.Accepted = true
	}
}

// String is a fault in a sentence.
func (f GateFault) String() string {
	name := f.Test
	if name == "" {
		name = f.Unit
	} else if f.Unit != "" {
		name += " of " + f.Unit
	}
	s := fmt.Sprintf("%s: want %s, got %s", name, f.Want, f.Got)
	if name == "" {
		s = s[2:]
	}
	if f.Message != "" {
		s += ": " + strings.TrimSpace(firstOf(f.Message))
	}
	return s
}

func firstOf(s string) string { line, _, _ := strings.Cut(strings.TrimSpace(s), "\n"); return line }

func judgeExit(v *GateVerdict, runs []UnitRun) {
	for _, u := range runs {
		if v.stopped(u) {
			continue
		}
		if rec := u.Run.rec; rec.Exit.Code != 0 || rec.Exit.Signal != "" {
			v.Faults = append(v.Faults, GateFault{Unit: u.Unit, Code: CodeGateFailed, Want: "exit 0", Got: exitWords(rec.Exit)})
		}
	}
	v.conclude()
}

// stopped notes that a limit of ours ended a run.
func (v *GateVerdict) stopped(u UnitRun) bool {
	stop := u.Run.rec.Exit.Stopped
	if stop == "" {
		return false
	}
	if v.Code == "" {
		v.Code, v.Detail = CodeUnmeasured, fmt.Sprintf("%s hit our %s", u.Unit, strings.ReplaceAll(string(stop), "_", " "))
		if stop.Timeout() {
			v.Code, v.Detail = CodeTimedOut, fmt.Sprintf("%s did not end within %s", u.Unit, u.Run.rec.Limits.Wall)
			if stop != StopWall {
				v.Detail = fmt.Sprintf("%s hit our %s", u.Unit, strings.ReplaceAll(string(stop), "_", " "))
			}
		}
	}
	return true
}

func exitWords(e Exit) string {
	if e.Signal != "" {
		return e.Signal
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// suiteTally are the runs of a suite by unit.
type suiteTally struct {
	order []string
	units map[string]*unitTally
}

type unitTally struct {
	name string
	runs []runTally
}

// runTally is one run, read once.
type runTally struct {
	run     UnitRun
	ends    map[string]Outcome
	began   map[string]bool
	parents map[string]bool
	fails   map[string]Event
	order   []string
}

func tally(runs []UnitRun) suiteTally {
	s := suiteTally{units: map[string]*unitTally{}}
	for _, u := range runs {
		t := s.units[u.Unit]
		if t == nil {
			t = &unitTally{name: u.Unit}
			s.units[u.Unit] = t
			s.order = append(s.order, u.Unit)
		}
		t.runs = append(t.runs, tallyRun(u))
	}
	return s
}

func tallyRun(u UnitRun) runTally {
	t := runTally{run: u, ends: map[string]Outcome{}, began: map[string]bool{}, parents: map[string]bool{}, fails: map[string]Event{}}
	for _, e := range u.Run.events {
		switch e.Kind {
		case EventBegin:
			if !t.began[e.Test] {
				t.began[e.Test] = true
				t.order = append(t.order, e.Test)
			}
			for p := e.Test; strings.Contains(p, "/"); {
				p = p[:strings.LastIndexByte(p, '/')]
				t.parents[p] = true
			}
		case EventPass:
			t.ends[e.Test] = Passed
		case EventFailed:
			t.ends[e.Test] = Failed
		case EventSkip:
			t.ends[e.Test] = Skipped
		case EventFail:
			if _, ok := t.fails[e.Test]; !ok {
				t.fails[e.Test] = e
			}
		}
	}
	return t
}

func (t runTally) outcome(test string) Outcome {
	if o, ok := t.ends[test]; ok {
		return o
	}
	return NotRun
}

func (t runTally) counts() GateTests {
	var c GateTests
	for _, name := range t.order {
		if t.parents[name] {
			continue
		}
		c.Discovered++
		switch t.outcome(name) {
		case Passed:
			c.Executed++
		case Failed:
			c.Executed++
			c.Failed++
		case Skipped:
			c.Skipped++
		}
	}
	return c
}

// whole says what is wrong with a run as a whole: the process left early, the
// report is not authentic, or red was turned into green.
func (t runTally) whole() (GateFault, bool) {
	rec := t.run.Run.rec
	f := GateFault{Unit: t.run.Unit, Want: "an orderly end of its suite"}
	switch {
	case rec.Report == ReportTampered:
		f.Code, f.Got = CodeTampered, "a report that was tampered with"
	case rec.Report != ReportComplete:
		f.Code, f.Got = CodeIncomplete, "a process that left before the end ("+exitWords(rec.Exit)+")"
	case len(t.fails) > 0 && rec.Exit.Code == 0:
		f.Code, f.Got = CodeRunnerBlind, "exit 0 beside failing tests"
	default:
		return f, false
	}
	return f, true
}

func (u *unitTally) judge(v *GateVerdict, rule GateRule) {
	most := GateTests{}
	wholes, hung := []GateFault{}, false
	for _, r := range u.runs {
		hung = v.stopped(r.run) || hung
		if f, bad := r.whole(); bad && r.run.Run.rec.Exit.Stopped == "" {
			wholes = append(wholes, f)
		}
		c := r.counts()
		most = GateTests{max(most.Discovered, c.Discovered), max(most.Executed, c.Executed), max(most.Skipped, c.Skipped), max(most.Failed, c.Failed), 0}
	}
	v.Tests.Discovered += most.Discovered
	v.Tests.Executed += most.Executed
	v.Tests.Skipped += most.Skipped
	v.Tests.Failed += most.Failed
	if hung {
		return
	}
	v.split(wholes, len(u.runs))
	if rule != RuleGreen || len(wholes) > 0 {
		return
	}
	for _, name := range u.names() {
		red, f := 0, GateFault{Unit: u.name, Test: name, Code: CodeGateFailed, Want: string(Passed), Got: string(Failed)}
		through := false
		for _, r := range u.runs {
			if r.outcome(name) != Failed {
				continue
			}
			red++
			e, own := r.fails[name]
			through = through || !own && r.parents[name]
			f.File, f.Line, f.Message = e.File, e.Line, e.Message
		}
		if red > 0 && !through { // a parent that fails through a subtest is said there
			v.count(f, red, len(u.runs))
		}
	}
	for _, r := range u.runs {
		if len(r.fails) == 0 && r.run.Run.rec.Exit.Code != 0 {
			v.count(GateFault{Unit: u.name, Code: CodeGateFailed, Want: "exit 0", Got: exitWords(r.run.Run.rec.Exit) + " though no test failed"}, len(u.runs), len(u.runs))
			return
		}
	}
}

// split notes what is wrong with whole runs: in all of them, or in some.
func (v *GateVerdict) split(faults []GateFault, of int) {
	if len(faults) > 0 {
		v.count(faults[0], len(faults), of)
	}
}

func (v *GateVerdict) count(f GateFault, red, of int) {
	if red < of {
		f.Got = fmt.Sprintf("%s in %d of %d runs", f.Got, red, of)
		f.Code = CodeFlaky
		v.Flaky = append(v.Flaky, f)
		return
	}
	v.Faults = append(v.Faults, f)
}

// names lists every test that began in some run, in order.
func (u *unitTally) names() []string {
	var out []string
	seen := map[string]bool{}
	for _, r := range u.runs {
		for _, n := range r.order {
			if !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		}
	}
	return out
}

// passedAlways lists the tests that passed in every run of the unit, in order.
func (u *unitTally) passedAlways() []string {
	return slices.DeleteFunc(u.names(), func(name string) bool {
		return slices.ContainsFunc(u.runs, func(r runTally) bool { return r.outcome(name) != Passed })
	})
}

// leaves counts the leaf tests among names.
func (u *unitTally) leaves(names []string) int {
	n := 0
	for _, name := range names {
		if !slices.ContainsFunc(u.runs, func(r runTally) bool { return r.parents[name] }) {
			n++
		}
	}
	return n
}

// judgeKept compares with the reference: what passed there passes here.
func judgeKept(v *GateVerdict, rule GateRule, reference []UnitRun, now suiteTally) {
	then := tally(reference)
	before, after, missing := 0, 0, false
	for _, name := range then.order {
		was, is := then.units[name], now.units[name]
		kept := was.passedAlways()
		before += was.leaves(kept)
		if is == nil {
			if len(kept) > 0 {
				missing = true
				v.Faults = append(v.Faults, GateFault{Unit: name, Code: CodeTestsNotRun, Want: fmt.Sprintf("%d tests that passed before", len(kept)), Got: string(NotRun)})
			}
			continue
		}
		for _, test := range kept {
			if rule == RuleKept && strings.Contains(test, "/") {
				continue
			}
			missing = is.keeps(v, test) || missing
		}
	}
	for _, name := range now.order {
		u := now.units[name]
		after += u.leaves(u.names()) - u.skipped()
	}
	if !missing && v.Code == "" && len(v.Faults) == 0 && after < before {
		v.Faults = append(v.Faults, GateFault{Code: CodeFewerCases, Want: fmt.Sprintf("at least the %d cases that ran before", before), Got: fmt.Sprintf("%d", after)})
	}
}

// skipped counts the leaf tests that were skipped in every run.
func (u *unitTally) skipped() int {
	n := 0
	for _, name := range u.names() {
		leaf := !slices.ContainsFunc(u.runs, func(r runTally) bool { return r.parents[name] })
		if leaf && !slices.ContainsFunc(u.runs, func(r runTally) bool { return r.outcome(name) == Passed || r.outcome(name) == Failed }) {
			n++
		}
	}
	return n
}

// keeps notes a test that passed before and does not pass in every run now; it
// tells whether it is missing.
func (u *unitTally) keeps(v *GateVerdict, test string) bool {
	bad, f := 0, GateFault{Unit: u.name, Test: test, Want: string(Passed)}
	for _, r := range u.runs {
		got := r.outcome(test)
		if got == Passed || r.run.Run.rec.Exit.Stopped != "" {
			continue
		}
		bad++
		f.Got, f.Code = string(got), CodeGateFailed
		if got != Failed {
			f.Code = CodeTestsNotRun
		}
		if e, ok := r.fails[test]; ok {
			f.File, f.Line, f.Message = e.File, e.Line, e.Message
		}
	}
	if bad > 0 {
		v.count(f, bad, len(u.runs))
	}
	return bad > 0
}
