package golang

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/sandbox"
)

func TestSuiteKillsAndSpares(t *testing.T) {
	t.Parallel()
	b := setup(t, "testdata/calc.txtar")
	scan := b.scan(".")
	s := b.suite(".", "example.com/calc")
	base := b.run(s, lang.Request{Purpose: evidence.PurposeBaseline, Observe: true})
	if rec := base.Record(); rec.Report != evidence.ReportComplete || rec.Exit.Code != 0 {
		t.Fatalf("baseline: %s exit %d\n%s", rec.Report, rec.Exit.Code, b.words(base))
	}
	add, not := symbol(t, scan, "calc.Add"), symbol(t, scan, "calc.Unreached")
	if got := base.Reach().Of("TestAdd"); !contains(got, add.ID) || contains(got, not.ID) {
		t.Errorf("Reach of TestAdd = %v, want %s and not %s", got, add.ID, not.ID)
	}
	for _, want := range []struct {
		symbol string
		status evidence.Status
	}{
		{"calc.Add", evidence.Killed},
		{"calc.Unasserted", evidence.Survived},
	} {
		sym := symbol(t, scan, want.symbol)
		probes := s.Probes(sym.ID, []evidence.Run{base}, false)
		if len(probes) == 0 {
			t.Fatalf("no probes of %s", want.symbol)
		}
		for _, p := range probes {
			r := b.run(s, lang.Request{Purpose: evidence.PurposeProbe, Probe: &p, Differ: true})
			if j := evidence.Judge(r); j.Status != want.status {
				t.Errorf("%s with %s: %s %s, want %s\n%s", want.symbol, p.Summary, j.Status, j.Code, want.status, b.words(r))
			}
			if !differed(r) {
				t.Errorf("%s with %s: the values never differed", want.symbol, p.Summary)
			}
			if r.Record().Probe != p.Digest() {
				t.Errorf("the run names probe %s, want %s", r.Record().Probe, p.Digest())
			}
		}
	}
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

func differed(r evidence.Run) bool {
	for _, e := range r.Events() {
		if e.Kind == evidence.EventDiffer && len(e.Values) == 2 && e.Values[0] != e.Values[1] {
			return true
		}
	}
	return false
}

// A result that a baseline saw is not put in the place of that result.
func TestProbesLeaveSeenConstantsOut(t *testing.T) {
	t.Parallel()
	b := setup(t, "testdata/calc.txtar")
	scan := b.scan(".")
	s := b.suite(".", "example.com/calc").(*suite)
	sym := symbol(t, scan, "calc.Zero")
	base := b.run(s, lang.Request{Purpose: evidence.PurposeBaseline, Observe: true})
	consts := func(seen []evidence.Run) []string {
		var out []string
		for _, p := range s.Probes(sym.ID, seen, false) {
			_, site, err := s.p.site(p)
			if err != nil {
				t.Fatal(err)
			}
			if site.Const != "" {
				out = append(out, site.Const)
			}
		}
		return out
	}
	if blind := consts(nil); !contains(blind, "0") {
		t.Errorf("without baselines the constants are %v, want 0 among them", blind)
	}
	if seeing := consts([]evidence.Run{base}); contains(seeing, "0") || len(seeing) == 0 {
		t.Errorf("after a baseline that saw 0 the constants are %v, want some and not 0", seeing)
	}
	all := s.Probes(symbol(t, scan, "calc.Add").ID, []evidence.Run{base}, true)
	first := s.Probes(symbol(t, scan, "calc.Add").ID, []evidence.Run{base}, false)
	if len(all) <= len(first) {
		t.Errorf("%d probes of all kinds, %d of the first, want more", len(all), len(first))
	}
	for i := 1; i < len(all); i++ {
		if all[i-1].Kind.Order() > all[i].Kind.Order() {
			t.Errorf("probe %d is of kind %s after %s", i, all[i].Kind, all[i-1].Kind)
		}
	}
}

func TestSuiteSelectsExactly(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	s := b.suite(".", "example.com/suite/names")
	all := ended(b.run(s, lang.Request{Purpose: evidence.PurposeBaseline}))
	if len(all) < 24 {
		t.Fatalf("%d tests ran, want all: %v", len(all), all)
	}
	for _, test := range all {
		if strings.Count(test, "/") == 0 {
			continue // a parent: below
		}
		var want []string
		for _, other := range all {
			if other == test || strings.HasPrefix(test, other+"/") || strings.HasPrefix(other, test+"/") {
				want = append(want, other)
			}
		}
		got := ended(b.run(s, lang.Request{Tests: []string{test}}))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("selecting %q (-want +got):\n%s", test, d)
		}
	}
	got := ended(b.run(s, lang.Request{Tests: []string{"TestOther", "FuzzNames/seed#1", "ExampleNames"}}))
	if d := cmp.Diff([]string{"TestOther", "FuzzNames/seed#1", "FuzzNames", "ExampleNames"}, got); d != "" {
		t.Errorf("selecting three (-want +got):\n%s", d)
	}
	if n := len(ended(b.run(s, lang.Request{Tests: []string{"TestNames"}}))); n != 19 {
		t.Errorf("a parent selects %d tests, want itself and its 18 subtests", n)
	}
}

// ended lists the tests of a run in the order in which they ended.
func ended(r evidence.Run) []string {
	var out []string
	for _, e := range r.Events() {
		if e.Kind == evidence.EventPass || e.Kind == evidence.EventFailed {
			out = append(out, e.Test)
		}
	}
	return out
}

func TestSuiteOrderAndFailFast(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	s := b.suite(".", "example.com/suite/order")
	if r := b.run(s, lang.Request{Purpose: evidence.PurposeBaseline}); r.Outcome("TestB") != evidence.Passed {
		t.Errorf("in order TestB %s, want passed", r.Outcome("TestB"))
	}
	if r := b.run(s, lang.Request{Tests: []string{"TestB"}}); r.Outcome("TestB") != evidence.Failed || r.Record().Exit.Code != 1 {
		t.Errorf("alone TestB %s, want failed", r.Outcome("TestB"))
	}
	// Seed 2 puts TestB first.
	r := b.run(s, lang.Request{Purpose: evidence.PurposeBaseline, Shuffle: 2, FailFast: true})
	if d := cmp.Diff([]string{"TestB"}, ended(r)); d != "" {
		t.Errorf("shuffled, stopping at the first failure (-want +got):\n%s\n%s", d, b.words(r))
	}
}

func TestPlantedFailureComesOutRed(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	for unit, exit := range map[string]int{"order": 1, "hidesfailure": 0} {
		s := b.suite(".", "example.com/suite/"+unit)
		r := b.run(s, lang.Request{Purpose: evidence.PurposePlanted, Plant: "TestA"})
		if r.Outcome("TestA") != evidence.Failed || r.Record().Exit.Code != exit || r.Record().Planted != "TestA" {
			t.Errorf("planted in %s: %s, exit %d, want failed, exit %d", unit, r.Outcome("TestA"), r.Record().Exit.Code, exit)
		}
		if f := r.Failures(); len(f) == 0 || f[0].By != evidence.ByPlanted {
			t.Errorf("planted in %s: failures %+v, want planted", unit, f)
		}
	}
}

func TestReportsAreOnlyOurs(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	for unit, want := range map[string]evidence.ReportState{"garbage": evidence.ReportTampered, "prints": evidence.ReportComplete, "twice": evidence.ReportComplete} {
		r := b.run(b.suite(".", "example.com/suite/"+unit), lang.Request{})
		if got := r.Record().Report; got != want {
			t.Errorf("report of %s = %s, want %s", unit, got, want)
		}
		if unit == "prints" && r.Outcome("TestPrints") != evidence.Failed {
			t.Errorf("a test that prints PASS %s, want failed", r.Outcome("TestPrints"))
		}
	}
}

func TestProbesAtInit(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	scan := b.scan(".")
	s := b.suite(".", "example.com/suite/atinit")
	base := b.run(s, lang.Request{Purpose: evidence.PurposeBaseline, Observe: true})
	for name, want := range map[string]bool{"atinit.size": true, "atinit.Get": false} {
		probes := s.Probes(symbol(t, scan, name).ID, []evidence.Run{base}, false)
		if len(probes) == 0 || probes[0].AtInit != want {
			t.Fatalf("probes of %s = %+v, want some with AtInit %v", name, probes, want)
		}
		r := b.run(s, lang.Request{Purpose: evidence.PurposeProbe, Probe: &probes[0]})
		if j := evidence.Judge(r); j.Status != evidence.Killed {
			t.Errorf("%s with %s: %s, want killed\n%s", name, probes[0].Summary, j.Status, b.words(r))
		}
	}
}

func TestPlainSuiteHasNoSwitch(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	scan := b.scan(".")
	s := b.suite(".", "example.com/suite/sniffs")
	base := b.run(s, lang.Request{Purpose: evidence.PurposeBaseline, Observe: true})
	null := b.run(s, lang.Request{Purpose: evidence.PurposeNull})
	for what, r := range map[string]evidence.Run{"the baseline": base, "the null run": null} {
		if r.Outcome("TestSwitched") != evidence.Passed {
			t.Errorf("TestSwitched %s in %s, want passed: the variable is set in every run", r.Outcome("TestSwitched"), what)
		}
	}
	p := s.Probes(symbol(t, scan, "sniffs.Switched").ID, []evidence.Run{base}, false)[0]
	if r := b.run(s, lang.Request{Purpose: evidence.PurposeProbe, Probe: &p}); r.Outcome("TestSwitched") != evidence.Failed {
		t.Errorf("TestSwitched %s on %s, want failed", r.Outcome("TestSwitched"), p.Summary)
	}
	plain, err := s.Plain(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	r := b.run(plain, lang.Request{Purpose: evidence.PurposePlain, Probe: &p, Tests: []string{"TestSwitched"}})
	// Negated, and without the variable: what was false is true.
	if rec := r.Record(); r.Outcome("TestSwitched") != evidence.Passed || rec.Probe != p.Digest() || rec.Report != evidence.ReportComplete {
		t.Errorf("plain: TestSwitched %s, report %s\n%s", r.Outcome("TestSwitched"), rec.Report, b.words(r))
	}
	if r.Record().Artifact == base.Record().Artifact || r.Record().Artifact == "" {
		t.Errorf("the plain run names artifact %s", r.Record().Artifact)
	}
}

func TestEnvironmentAndDirectory(t *testing.T) {
	t.Setenv("SECRET", "x")
	t.Setenv("CI", "")
	b := setupShared(t)
	s := b.suite(".", "example.com/suite/env")
	for range 2 {
		if r := b.run(s, lang.Request{}); r.Outcome("TestEnv") != evidence.Passed {
			t.Errorf("TestEnv %s:\n%s", r.Outcome("TestEnv"), b.words(r))
		}
	}
	r := b.run(s, lang.Request{OtherEnv: true})
	if fs := r.Failures(); len(fs) != 1 || fs[0].Message != "in CI" {
		t.Errorf("failures in the other environment = %+v, want only: in CI", fs)
	}
	if _, err := os.Stat(filepath.Join(b.w.Root, "env", "mark")); !os.IsNotExist(err) {
		t.Errorf("a test wrote into the checkout: %v", err)
	}
}

func TestSuiteRunsAtTheSameTime(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	s := b.suite(".", "example.com/suite/order")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			r, err := s.Run(t.Context(), lang.Request{Purpose: evidence.PurposeControl, Limits: limits})
			if err != nil || r.Outcome("TestB") != evidence.Passed {
				t.Errorf("Run = %s, %v", r.Outcome("TestB"), err)
			}
		})
	}
	wg.Wait()
}

func TestSecondStartDoesNotBuild(t *testing.T) {
	t.Parallel()
	b := setup(t, "testdata/calc.txtar")
	first := b.run(b.suite(".", "example.com/calc"), lang.Request{})
	builds := func() int {
		n := 0
		for _, r := range b.runs {
			if r.Record().Purpose == evidence.PurposeBuild {
				n++
			}
		}
		return n
	}
	if n := builds(); n != 1 {
		t.Fatalf("%d builds, want 1", n)
	}
	b.d = New()
	second := b.run(b.suite(".", "example.com/calc"), lang.Request{})
	if n := builds(); n != 1 {
		t.Errorf("%d builds after a second start, want 1", n)
	}
	if a, c := first.Record().Artifact, second.Record().Artifact; a != c || a == "" {
		t.Errorf("artifacts %s and %s, want the same", a, c)
	}
	// A binary that was touched in the cache is not used.
	if err := os.WriteFile(second.Record().Argv[0], []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.d = New()
	if third := b.run(b.suite(".", "example.com/calc"), lang.Request{}); third.Outcome("TestAdd") != evidence.Passed {
		t.Errorf("TestAdd %s after the cache was damaged, want passed", third.Outcome("TestAdd"))
	}
}

func TestUnitWithoutTests(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	_, err := b.d.Build(t.Context(), b.w, b.scan("."), "example.com/suite/none")
	if !fault.Has(err, lang.NoTests) || fault.From(err).Kind != fault.Unmeasured {
		t.Errorf("Build = %v, want no_tests", err)
	}
}

// At every level, with the checkout and the cache inside a hidden directory.
func TestSuiteAtEveryLevel(t *testing.T) {
	t.Parallel()
	for _, level := range []evidence.Level{evidence.Namespaces, evidence.Landlock, evidence.LimitsOnly} {
		home := t.TempDir()
		w, err := unpack("testdata/calc.txtar", filepath.Join(home, "checkout"), filepath.Join(home, "cache"))
		if err != nil {
			t.Fatal(err)
		}
		w.Hidden, w.Max, w.Min = []string{home}, level, level
		b := newBundle(t, New(), w)
		s := b.suite(".", "example.com/calc")
		r := b.run(s, lang.Request{Purpose: evidence.PurposeBaseline, Observe: true})
		rec := r.Record()
		if rec.Report != evidence.ReportComplete || r.Outcome("TestAdd") != evidence.Passed || rec.Isolation.Level != level {
			t.Errorf("at %s: report %s, TestAdd %s, level %s\n%s", level, rec.Report, r.Outcome("TestAdd"), rec.Isolation.Level, b.words(r))
		}
	}
}

// watched is a box that looks whether the module is free while a unit is built.
type watched struct {
	box
	buildFunc func()
}

func (w watched) Run(ctx context.Context, c sandbox.Command) (evidence.Run, sandbox.Output, error) {
	if c.Purpose == evidence.PurposeBuild {
		w.buildFunc()
	}
	return w.box.Run(ctx, c)
}

func TestBuildLeavesTheModuleFree(t *testing.T) {
	t.Parallel()
	b := setup(t, "testdata/calc.txtar")
	m := b.d.module(b.w, b.project("."))
	open, builds := b.d.openFunc, 0
	b.d.openFunc = func(ctx context.Context, s sandbox.Spec) (box, error) {
		inner, err := open(ctx, s)
		return watched{inner, func() {
			builds++
			if !m.mu.TryLock() {
				t.Error("the module is locked while a unit is built")
				return
			}
			m.mu.Unlock()
		}}, err
	}
	scan := b.scan(".")
	s := b.suite(".", "example.com/calc")
	p := s.Probes(symbol(t, scan, "calc.Add").ID, nil, false)[0]
	if p.Column != len("func ")+1 {
		t.Errorf("column of a result probe of calc.Add = %d, want that of its name", p.Column)
	}
	plain, err := s.Plain(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if builds != 2 {
		t.Errorf("%d builds seen, want 2", builds)
	}
}
