package evidence_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// spoil is one thing that is wrong with an otherwise honest scene, and the code
// with which the certificate is refused.
type spoil struct {
	name  string
	code  fault.Code
	apply func(s *scene)
}

func red(name string) func(*scene) {
	return func(s *scene) {
		s.runs[name].rec.Exit.Code, s.runs[name].events = 1, fail(evidence.ByAssertion, 9)
	}
}

func green(name string) func(*scene) {
	return func(s *scene) { s.runs[name].rec.Exit.Code, s.runs[name].events = 0, pass() }
}

// spoils holds every way to be refused that the constructor knows.
func spoils() []spoil {
	var out []spoil
	add := func(code fault.Code, name string, apply func(*scene)) {
		out = append(out, spoil{name, code, apply})
	}
	every := []string{"baseline", "shuffled", "null", "planted", "kill", "control", "repeat", "plain"}
	for i := range 2 * evidence.SteadyRounds {
		every = append(every, steadyName(i))
	}
	for _, n := range every {
		add(evidence.CodeMismatch, n+" of another purpose", func(s *scene) { s.runs[n].rec.Purpose = evidence.PurposeBuild })
		add(evidence.CodeMismatch, n+" of another tree", func(s *scene) { s.runs[n].rec.Snapshot = evidence.Tree(strings.Repeat("a", 40)) })
		add(evidence.CodeMismatch, n+" with another probe", func(s *scene) { s.runs[n].rec.Probe = digest("another probe " + n) })
		if n != "plain" {
			add(evidence.CodeMismatch, n+" missing", func(s *scene) { s.runs[n].absent = true })
			add(evidence.CodeMismatch, n+" by another executable", func(s *scene) { s.runs[n].rec.Artifact = digest("another") })
		}
	}
	for _, n := range every[4:] {
		add(evidence.CodeMismatch, n+" not alone", func(s *scene) { s.runs[n].rec.Tests = append([]string{"TestOther"}, testName) })
		add(evidence.CodeMismatch, n+" of another test", func(s *scene) { s.runs[n].rec.Tests = []string{"TestOther"} })
	}
	for n, code := range map[string]fault.Code{
		"baseline": evidence.CodeBaselineRed, "shuffled": evidence.CodeOrderDependent, "null": evidence.CodeSwitchSensitive, "control": evidence.CodeFlaky,
	} {
		add(code, n+" red", red(n))
		add(code, n+" without the test", func(s *scene) { s.runs[n].events = s.runs[n].events[:1] })
		add(evidence.CodeIncomplete, n+" without end", func(s *scene) { s.runs[n].rec.Report = evidence.ReportIncomplete })
		add(evidence.CodeTampered, n+" tampered", func(s *scene) { s.runs[n].rec.Report = evidence.ReportTampered })
	}
	// The reach of the first baseline goes with the outcome.
	add(evidence.CodeRunnerBlind, "planted green", green("planted"))
	add(evidence.CodeRunnerBlind, "planted exits with 0", func(s *scene) { s.runs["planted"].rec.Exit.Code = 0 })
	add(evidence.CodeRunnerBlind, "planted without end", func(s *scene) { s.runs["planted"].rec.Report = evidence.ReportIncomplete })
	add(evidence.CodeRunnerBlind, "planted names no test", func(s *scene) { s.runs["planted"].rec.Planted = "" })
	add(evidence.CodeRunnerBlind, "planted fails by itself", func(s *scene) { s.runs["planted"].events = fail(evidence.ByAssertion, 9) })
	add(evidence.CodeTampered, "planted tampered", func(s *scene) { s.runs["planted"].rec.Report = evidence.ReportTampered })
	for n, wrapped := range map[string]fault.Code{"kill": "", "repeat": evidence.CodeFlaky, "plain": evidence.CodeFastLane} {
		or := func(own fault.Code) fault.Code {
			if wrapped != "" {
				return wrapped
			}
			return own
		}
		add(or(evidence.CodeSurvived), n+" green", green(n))
		for _, by := range []evidence.By{evidence.ByPanic, evidence.ByRace, evidence.ByHarness} {
			add(or(evidence.CodeKilledByError), n+" by "+string(by), func(s *scene) { s.runs[n].events = fail(by, 9) })
		}
		add(or(evidence.CodeTimeout), n+" over its time", func(s *scene) { s.runs[n].rec.Exit.Stopped = evidence.StopCPU })
		add(or(evidence.CodeKilledByError), n+" over its memory", func(s *scene) { s.runs[n].rec.Exit.Stopped = evidence.StopMemory })
		add(or(evidence.CodeIncomplete), n+" without end", func(s *scene) { s.runs[n].rec.Report = evidence.ReportIncomplete })
		add(or(evidence.CodeTampered), n+" tampered", func(s *scene) { s.runs[n].rec.Report = evidence.ReportTampered })
		add(or(evidence.CodeRunnerBlind), n+" exits with 0", func(s *scene) { s.runs[n].rec.Exit.Code = 0 })
		add(or(evidence.CodeNoTestsRan), n+" ran nothing", func(s *scene) { s.runs[n].events = nil })
		add(or(evidence.CodeFlaky), n+" by another test", func(s *scene) {
			for i := range s.runs[n].events {
				s.runs[n].events[i].Test = "TestOther"
			}
		})
	}
	add(evidence.CodeFlaky, "repeat at another line", func(s *scene) { s.runs["repeat"].events = fail(evidence.ByAssertion, 10) })
	add(evidence.CodeFlaky, "repeat in another file", func(s *scene) { s.runs["repeat"].events[1].File = "other_test.go" })
	for i := range 2 * evidence.SteadyRounds {
		n := steadyName(i)
		if i%2 == 0 {
			add(evidence.CodeFlaky, n+" red", red(n))
			add(evidence.CodeFlaky, n+" without end", func(s *scene) { s.runs[n].rec.Report = evidence.ReportIncomplete })
			continue
		}
		add(evidence.CodeFlaky, n+" green", green(n))
		add(evidence.CodeFlaky, n+" by panic", func(s *scene) { s.runs[n].events = fail(evidence.ByPanic, 9) })
	}
	add(evidence.CodeMismatch, "one steady run twice", func(s *scene) { s.runs["steady2"] = s.runs["steady0"] })
	add(evidence.CodeMismatch, "steady runs out of order", func(s *scene) { s.runs["steady0"], s.runs["steady4"] = s.runs["steady4"], s.runs["steady0"] })
	add(evidence.CodeMismatch, "control before the kill", func(s *scene) { s.runs["control"].rec.Started = s.runs["null"].rec.Started })
	add(evidence.CodeMismatch, "repeat before the control", func(s *scene) { s.runs["repeat"].rec.Started = s.runs["kill"].rec.Started })
	add(evidence.CodeMismatch, "one run as kill and repeat", func(s *scene) { s.runs["repeat"] = s.runs["kill"] })
	add(evidence.CodeMismatch, "one baseline twice", func(s *scene) { s.runs["shuffled"] = s.runs["baseline"] })
	add(evidence.CodeFastLane, "no plain run of a test that looks at processes", func(s *scene) {
		s.facts.Reads, s.runs["plain"].absent = map[string]evidence.Digest{evidence.ReadProcess: digest("process")}, true
	})
	facts := map[string]func(f *evidence.Facts){
		"no symbol":                   func(f *evidence.Facts) { f.Symbol = "" },
		"no test":                     func(f *evidence.Facts) { f.Test = "" },
		"no digest of the symbol":     func(f *evidence.Facts) { f.SymbolDigest = "" },
		"no digest of the test":       func(f *evidence.Facts) { f.TestDigest = "" },
		"no digest of the setup":      func(f *evidence.Facts) { f.Setup = "" },
		"a probe of another symbol":   func(f *evidence.Facts) { f.Probe.Symbol = "another" },
		"a probe without diff":        func(f *evidence.Facts) { f.Probe.Diff = "" },
		"another probe":               func(f *evidence.Facts) { f.Probe.Diff += " " },
		"a symbol that is not run":    func(f *evidence.Facts) { f.Reached = map[string]evidence.Digest{"another": digest("x")} },
		"a symbol of another digest":  func(f *evidence.Facts) { f.SymbolDigest = digest("another") },
		"another test than was alone": func(f *evidence.Facts) { f.Test = "TestOther" },
	}
	for n, change := range facts {
		add(evidence.CodeMismatch, "facts: "+n, func(s *scene) { change(&s.facts) })
	}
	for _, n := range []string{"baseline", "shuffled", "control"} {
		add(evidence.CodeMismatch, "facts: a symbol of the "+n+" run left out", func(s *scene) {
			s.runs[n].events[0].Names = append(s.runs[n].events[0].Names, "helper")
			s.runs[n].events[2].Index = []int64{0, 1}
		})
		for test, what := range map[string]string{testName: "file", "TestDouble": "parent's file", evidence.InitTest: "initialiser's file"} {
			add(evidence.CodeMismatch, "facts: a "+what+" of the "+n+" run left out", func(s *scene) {
				s.runs[n].events = append([]evidence.Event{{Kind: evidence.EventReads, Test: test, Names: []string{"file testdata/want.txt"}}}, s.runs[n].events...)
			})
		}
	}
	return out
}

func TestDiscriminationIsRefused(t *testing.T) {
	t.Parallel()
	for _, sp := range spoils() {
		s := honest()
		sp.apply(s)
		c, err := evidence.NewDiscrimination(s.seal(t))
		if err == nil || !c.IsZero() {
			t.Errorf("%s: a certificate was earned", sp.name)
		} else if got := fault.From(err).Code; got != sp.code {
			t.Errorf("%s: code %s, want %s (%v)", sp.name, got, sp.code, err)
		}
	}
}

// No assignment of runs earns a certificate unless all conditions hold.
func TestDiscriminationProperty(t *testing.T) {
	t.Parallel()
	all := spoils()
	rapid.Check(t, func(t *rapid.T) {
		s := honest()
		if rapid.Bool().Draw(t, "without plain") {
			s.runs["plain"].absent = true
		}
		names := ""
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(all)-1), 0, 4, rapid.ID).Draw(t, "spoils") {
			if strings.HasPrefix(all[i].name, "plain") && s.runs["plain"].absent {
				continue
			}
			if !applies(all[i], s) {
				continue
			}
			names += "; " + all[i].name
		}
		c, err := evidence.NewDiscrimination(s.seal(t))
		if (err == nil) != (names == "") || (err == nil) == c.IsZero() {
			t.Fatalf("with %q: %v, certificate %v", names, err, c)
		}
	})
}

// applies makes one change, unless an earlier one took away what it needs.
func applies(sp spoil, s *scene) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	before := fmt.Sprintf("%+v", s.snapshot())
	sp.apply(s)
	return before != fmt.Sprintf("%+v", s.snapshot())
}

func (s *scene) snapshot() map[string]draft {
	out := map[string]draft{"facts": {rec: evidence.RunRecord{Dir: fmt.Sprintf("%+v", s.facts)}}}
	for n, d := range s.runs {
		out[n] = *d
	}
	return out
}

func TestDiscriminationIsDerivedAgain(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{true, false} {
		s := honest()
		s.runs["plain"].absent = !plain
		f, rs := s.seal(t)
		c, err := evidence.NewDiscrimination(f, rs)
		if err != nil {
			t.Fatal(err)
		}
		stored := map[evidence.Digest]evidence.Run{}
		for _, r := range append([]evidence.Run{rs.Baselines[0], rs.Baselines[1], rs.Null, rs.Planted, rs.Kill, rs.Control, rs.Repeat}, rs.Steady...) {
			stored[r.Digest()] = r
		}
		if plain {
			stored[rs.Plain.Digest()] = *rs.Plain
		}
		if got := c.Record().Runs.All(); len(got) != len(stored) {
			t.Errorf("the certificate names %d runs, want %d", len(got), len(stored))
		}
		run := func(d evidence.Digest) (evidence.Run, error) {
			r, ok := stored[d]
			if !ok {
				return evidence.Run{}, fault.New(fault.NotFound, "not_found", "no run %s", d)
			}
			return r, nil
		}
		again, err := evidence.Rederive(c.Body(), run)
		if err != nil || !bytes.Equal(again.Body(), c.Body()) || again.Digest() != c.Digest() {
			t.Fatalf("Rederive = %v, %v, want the same bytes", again, err)
		}
		for _, d := range c.Record().Runs.All() {
			r := stored[d]
			delete(stored, d)
			if _, err := evidence.Rederive(c.Body(), run); err == nil {
				t.Errorf("derived without run %s, a %s run", d.Short(), r.Record().Purpose)
			}
			stored[d] = r
		}
		// Every leaf of the record is covered by the derivation.
		for _, edit := range leaves(t, c.Body()) {
			if _, err := evidence.Rederive(edit.body, run); err == nil {
				t.Errorf("derived with %s edited", edit.path)
			}
		}
	}
}

type edit struct {
	path string
	body []byte
}

// leaves makes one copy of a JSON document a text in it, with that text changed.
// Facts that no run can contradict are bound by digest, not derived: their edit
// gives another certificate, which is not asked for here.
func leaves(t *testing.T, body []byte) []edit {
	t.Helper()
	var out []edit
	var doc any
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, v any, set func(any))
	walk = func(path string, v any, set func(any)) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(path+"."+k, x, func(n any) { v[k] = n })
			}
		case []any:
			for i, x := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), x, func(n any) { v[i] = n })
			}
		case string:
			if strings.HasPrefix(path, ".facts.") && !strings.HasPrefix(path, ".facts.probe") && path != ".facts.symbol" && path != ".facts.test" {
				return
			}
			set(v + "x")
			b, err := evidence.Canonical(doc)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, edit{path, b})
			set(v)
		}
	}
	walk("", doc, nil)
	return out
}

func TestDiscriminationKeepsTheWeakestIsolation(t *testing.T) {
	t.Parallel()
	for _, n := range []string{"baseline", "shuffled", "null", "planted", "control", "repeat", "steady0", "steady11", "plain", "kill"} {
		s := honest()
		s.runs[n].rec.Isolation = evidence.Isolation{Level: evidence.LimitsOnly, Network: evidence.Open}
		c, err := evidence.NewDiscrimination(s.seal(t))
		if want := (evidence.Isolation{Level: evidence.LimitsOnly, Network: evidence.Open}); err != nil || c.Record().Isolation != want {
			t.Errorf("%s ran at %v: the certificate says %v, %v", n, want, c.Record().Isolation, err)
		}
	}
}

// TestSteadyOdds holds the figures of docs/decisions/steady-tests.md: how likely
// a test that fails by chance is to earn a false certificate.
func TestSteadyOdds(t *testing.T) {
	t.Parallel()
	const n = evidence.SteadyRounds
	odds := func(reds, greens int) (worst float64) {
		for p := 0.001; p < 1; p += 0.001 {
			worst = max(worst, math.Pow(p, float64(reds))*math.Pow(1-p, float64(greens)))
		}
		return worst
	}
	// Red: nomination, kill, repeat. Green: baselines, null run, control.
	if got := odds(3+n, 4+n); got > 2.0e-6 {
		t.Errorf("one probe is credited falsely with %.2g, want at most 2.0e-06", got)
	}
	if got := odds(1+n, 4+n); got > 1.0e-5 {
		t.Errorf("any number of probes: %.2g, want at most 1.0e-05", got)
	}
}
