package gates

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/snapshot"
)

// codeOriginChanged says that code of others comes from elsewhere than before.
const codeOriginChanged fault.Code = "origin_changed"

// baselineRuns is how often the suite runs at the base.
const baselineRuns = 2

// baseline runs the suite at the base: a fact, not a check. Red and flaky tests
// are named; what does not run to its end is not measured.
func (m *measurement) baseline(ctx context.Context) (found, error) {
	b, err := m.bench(ctx, m.r.BaseTree)
	if err != nil {
		return found{}, err
	}
	runs, broken, err := m.suiteAt(ctx, b, max(m.r.Policy.Repeat, baselineRuns))
	if err != nil {
		return found{}, err
	}
	if len(broken) == 0 && len(runs) == 0 {
		return found{Answer: gate.Answer{Outcome: gate.Empty, Code: evidence.CodeNoTestsRan, Reason: "the base has no tests"}}, nil
	}
	v := evidence.JudgeGate(evidence.RuleGreen, nil, runs)
	f := found{Answer: gate.Answer{Outcome: gate.Pass}, tests: counts(v), named: map[string][]string{}, baseline: unitDigests(runs)}
	for _, t := range v.Faults {
		if t.Test != "" {
			f.named["red"] = append(f.named["red"], t.Unit+" "+t.Test)
		}
	}
	for _, t := range v.Flaky {
		if t.Test != "" {
			f.named["flaky"] = append(f.named["flaky"], t.Unit+" "+t.Test)
		}
	}
	f.metrics = map[string]float64{"red": float64(len(f.named["red"])), "flaky": float64(len(f.named["flaky"]))}
	switch crash := crashed(v); {
	case len(broken) > 0:
		id := slices.Sorted(maps.Keys(broken))[0]
		f.Answer = gate.Answer{Outcome: gate.NotMeasured, Code: gate.CodeBaselineRed, Reason: fmt.Sprintf("the tests of %s cannot be built at the base: %s", id, broken[id])}
		if a, ok := gate.Unmeasured(broken[id]); ok && a.Code != gate.CodeUnmeasured {
			f.Code = a.Code
		}
	case v.Code == evidence.CodeTimedOut, v.Code == evidence.CodeUnmeasured:
		f.Answer = gate.Of(v)
	case crash != nil:
		f.Answer = gate.Answer{Outcome: gate.NotMeasured, Code: gate.CodeBaselineRed, Reason: "the suite of the base does not run to its end: " + crash.String()}
	}
	if f.Outcome == gate.NotMeasured {
		f.issues = environment(f.Answer)
	}
	return f, nil
}

// crashed is what is wrong with a unit as a whole: a process that left early, a
// report that cannot be believed.
func crashed(v evidence.GateVerdict) *evidence.GateFault {
	for _, f := range slices.Concat(v.Faults, v.Flaky) {
		if f.Test == "" && f.Code != evidence.CodeNoTestsRan {
			return &f
		}
	}
	return nil
}

// suiteAt runs every suite of a tree. A project that cannot be loaded is an error.
func (m *measurement) suiteAt(ctx context.Context, b *bench, times int) ([]evidence.UnitRun, map[string]error, error) {
	if err := b.scan(ctx); err != nil {
		return nil, nil, err
	}
	if p, err := b.unloadable(); err != nil {
		return nil, map[string]error{p.Name: err}, nil //nolint:nilerr // the error is the answer
	}
	return b.runAll(ctx, b.tested(), times)
}

// reference are the runs of the suite at the base: those that the request names,
// read back from the ledger, or new ones.
func (m *measurement) reference(ctx context.Context) (found, []evidence.UnitRun, error) {
	if len(m.r.Baseline) > 0 {
		led, err := m.app.Ledger(ctx)
		if err != nil {
			return found{}, nil, err
		}
		var runs []evidence.UnitRun
		for _, u := range m.r.Baseline {
			r, err := led.Run(ctx, u.Run)
			if err != nil {
				return found{}, nil, err
			}
			if rec := r.Record(); rec.Snapshot != m.r.BaseTree || rec.Purpose != evidence.PurposeBaseline || rec.Planted != "" || rec.Probe != "" {
				return found{}, nil, fault.New(fault.Usage, "stale_subject", "run %s is no run of the suite at base %.12s", u.Run.Short(), m.r.BaseTree)
			}
			runs = append(runs, evidence.UnitRun{Unit: u.Unit, Run: r})
		}
		return found{Answer: gate.Answer{Outcome: gate.Pass}}, runs, nil
	}
	f, err := m.baseline(ctx)
	if err != nil {
		return f, nil, err
	}
	var runs []evidence.UnitRun
	byDigest := map[evidence.Digest]evidence.Run{}
	for _, r := range m.site.Runs() {
		byDigest[r.Run.Digest()] = r.Run
	}
	for _, u := range f.baseline {
		runs = append(runs, evidence.UnitRun{Unit: u.Unit, Run: byDigest[u.Run]})
	}
	return f, runs, nil
}

// kept asks whether what the base's tests showed still holds. The base's version
// of every file of tests is laid over the tree, and each test that was green at
// the base must be green there. Where the change touches files of tests, its own
// version must still have and run these tests, and no fewer cases. The probe is a
// base test that skips itself.
func (m *measurement) kept(ctx context.Context) (found, error) {
	fact, reference, err := m.reference(ctx)
	if err != nil {
		return found{}, err
	}
	if fact.Outcome != gate.Pass {
		return found{Answer: fact.Answer, issues: fact.issues, named: fact.named}, nil
	}
	if len(green(reference)) == 0 {
		a := gate.Answer{Outcome: gate.NotMeasured, Code: gate.CodeBaselineRed, Reason: "no test of the base is green"}
		return found{Answer: a, issues: environment(a), named: fact.named}, nil
	}
	if i, err := m.origins(ctx); err != nil {
		return found{}, err
	} else if len(i) > 0 {
		return found{Answer: gate.Answer{Outcome: gate.No, Code: codeOriginChanged, Reason: i[0].Message}, issues: i, named: fact.named}, nil
	}
	laid, err := m.laid(ctx)
	if err != nil {
		return found{}, err
	}
	f := found{Answer: gate.Answer{Outcome: gate.Pass}, named: fact.named}
	if laid != m.r.Tree {
		if f, err = m.held(ctx, f, laid, evidence.RuleHeld, reference, "the tests of the base, laid over the change"); err != nil || f.Outcome != gate.Pass {
			return f, err
		}
	}
	b, err := m.bench(ctx, m.r.Tree)
	if err != nil {
		return found{}, err
	}
	rule := evidence.RuleKept
	if laid == m.r.Tree {
		rule = evidence.RuleHeld // the very tests of the base
	}
	own, err := m.held(ctx, f, m.r.Tree, rule, reference, "the tests of the change")
	if err != nil || own.Outcome != gate.Pass {
		return own, err
	}
	own.probeFunc = func(ctx context.Context) (evidence.Certificate, error) {
		return m.skipProbe(ctx, b, rule, reference, own.suite)
	}
	return own, nil
}

// held runs the suites that the reference names on a tree and compares.
func (m *measurement) held(ctx context.Context, f found, tree evidence.Tree, rule evidence.GateRule, reference []evidence.UnitRun, what string) (found, error) {
	b, err := m.bench(ctx, tree)
	if err != nil {
		return f, err
	}
	runs, broken, err := m.suiteAt(ctx, b, max(1, m.r.Policy.Repeat))
	if err != nil {
		return f, err
	}
	if len(broken) > 0 {
		f.Answer, f.issues = m.brokenAnswer(broken, what)
		return f, nil
	}
	v := evidence.JudgeGate(rule, reference, runs)
	f.Answer, f.tests, f.issues, f.suite = gate.Of(v), counts(v), m.testIssues(b, v), runs
	if f.Outcome == gate.NotMeasured && v.Code != evidence.CodeFlaky {
		f.issues = environment(f.Answer)
	}
	if f.Outcome != gate.Pass {
		f.Reason = what + ": " + f.Reason
	}
	if f.Outcome == gate.Pass {
		// A planted failure must come out red, else green says nothing.
		if a, err := m.honest(ctx, b, runs); err != nil || a.Outcome != gate.Pass {
			f.Answer, f.issues = a, nil
			if err == nil {
				f.issues = []gate.Issue{{Category: gate.Defect, Code: a.Code, Message: a.Reason}}
			}
			return f, err
		}
	}
	return f, nil
}

// honest plants a failing assertion in each unit. A runner that turns it green is
// blind: what it reports decides nothing.
func (m *measurement) honest(ctx context.Context, b *bench, runs []evidence.UnitRun) (gate.Answer, error) {
	for _, u := range b.tested() {
		i := slices.IndexFunc(runs, func(r evidence.UnitRun) bool { return r.Unit == u.ID })
		if i < 0 {
			continue
		}
		test := firstPassed(runs[i].Run)
		if test == "" {
			continue
		}
		planted, err := b.run(ctx, u, lang.Request{Purpose: evidence.PurposePlanted, Tests: []string{test}, Plant: test})
		if err != nil {
			return gate.Answer{}, err
		}
		if stop := planted.Run.Record().Exit.Stopped; stop.Timeout() {
			return gate.Answer{Outcome: gate.NotMeasured, Code: gate.CodeTimedOut, Reason: "a planted failure in " + test + " did not come to its end"}, nil
		}
		if err := evidence.HonestRunner(planted.Run); err != nil {
			e := fault.From(err)
			return gate.Answer{Outcome: gate.NotMeasured, Code: e.Code, Reason: u.ID + ": " + e.Error()}, nil
		}
	}
	return gate.Answer{Outcome: gate.Pass}, nil
}

// firstPassed is a top-level test that passed.
func firstPassed(r evidence.Run) string {
	for _, e := range r.Events() {
		if e.Kind == evidence.EventPass && !strings.Contains(e.Test, "/") {
			return e.Test
		}
	}
	return ""
}

// brokenAnswer is the answer when suites of the change cannot be built: no when
// its code does it, not measured when something around it is missing.
func (m *measurement) brokenAnswer(broken map[string]error, what string) (gate.Answer, []gate.Issue) {
	var issues []gate.Issue
	a := gate.Answer{}
	for _, id := range slices.Sorted(maps.Keys(broken)) {
		err := broken[id]
		e := fault.From(err)
		one, _ := gate.Unmeasured(err)
		i := gate.Issue{Category: gate.Environment, Code: one.Code, Message: e.Error(), Expected: "tests that build", Actual: string(e.Code)}
		if e.Code == lang.BuildFailed || e.Code == lang.NoTests {
			one = gate.Answer{Outcome: gate.No, Code: lang.BuildFailed, Reason: fmt.Sprintf("%s: %s", what, e.Error())}
			i.Category, i.Code = gate.Defect, lang.BuildFailed
		}
		if len(e.Hints) > 0 {
			i.Repro = strings.Fields(e.Hints[0])
		}
		issues = append(issues, i)
		if a.Outcome == "" || one.Outcome == gate.No && a.Outcome != gate.No {
			a = one
		}
	}
	return a, issues
}

// laid seals the tree with the base's version of every file of tests: its own
// files of tests and their data that the base does not have are left out.
func (m *measurement) laid(ctx context.Context) (evidence.Tree, error) {
	var edits []snapshot.Edit
	for _, c := range m.changes {
		if !m.judged(c.Path) {
			continue
		}
		if c.Status == snapshot.Added {
			edits = append(edits, snapshot.Edit{Path: c.Path})
			continue
		}
		edits = append(edits, snapshot.Edit{Path: c.Path, Mode: c.OldMode, Blob: c.OldBlob})
	}
	if len(edits) == 0 {
		return m.r.Tree, nil
	}
	// Removals first: a file may stand where a directory was.
	slices.SortStableFunc(edits, func(a, b snapshot.Edit) int { return len(a.Mode) - len(b.Mode) })
	return m.compose(ctx, m.r.Tree, edits...)
}

// judged tells a file of tests, or of their data.
func (m *measurement) judged(path string) bool {
	for _, d := range m.app.Drivers {
		if d.TestFile(path) {
			return true
		}
		if _, ok := d.TestData(path); ok {
			return true
		}
	}
	return false
}

// origins compares where the code of others comes from.
func (m *measurement) origins(ctx context.Context) ([]gate.Issue, error) {
	was, err := m.originsAt(ctx, m.r.BaseTree)
	if err != nil {
		return nil, err
	}
	is, err := m.originsAt(ctx, m.r.Tree)
	if err != nil {
		return nil, err
	}
	var out []gate.Issue
	for _, key := range slices.Sorted(maps.Keys(is)) {
		then, had := was[key]
		now := is[key]
		stands := strings.HasPrefix(now, "directory ") || strings.HasPrefix(now, "edited copy ")
		if !stands || (had && then == now) {
			continue // a version of it, which plan.diff judges
		}
		name := key[strings.IndexByte(key, ' ')+1:]
		if !had {
			then = "no such dependency"
		}
		out = append(out, gate.Issue{
			Category: gate.Defect, Code: codeOriginChanged, Message: fmt.Sprintf("%s is replaced by code of the tree: %s", name, now), Expected: then, Actual: now,
		})
	}
	return out, nil
}

func (m *measurement) originsAt(ctx context.Context, tree evidence.Tree) (map[string]string, error) {
	b, err := m.bench(ctx, tree)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, p := range b.projects {
		o, ok := p.driver.(lang.Origins)
		if !ok {
			continue
		}
		from, err := o.Origins(b.w, p.Project)
		if err != nil {
			return nil, err
		}
		for name, at := range from {
			out[p.Dir+" "+name] = at
		}
	}
	return out, nil
}

// green lists the tests that passed in every reference run, by unit.
func green(reference []evidence.UnitRun) map[string][]string {
	bad, order := map[[2]string]bool{}, map[string][]string{}
	seen := map[[2]string]bool{}
	for _, u := range reference {
		for _, e := range u.Run.Events() {
			key := [2]string{u.Unit, e.Test}
			if e.Kind == evidence.EventBegin && !seen[key] {
				seen[key] = true
				order[u.Unit] = append(order[u.Unit], e.Test)
			}
		}
	}
	for _, u := range reference {
		for _, test := range order[u.Unit] {
			if u.Run.Outcome(test) != evidence.Passed {
				bad[[2]string{u.Unit, test}] = true
			}
		}
	}
	out := map[string][]string{}
	for unit, tests := range order {
		for _, t := range tests {
			if !bad[[2]string{unit, t}] {
				out[unit] = append(out[unit], t)
			}
		}
	}
	return out
}

// skipProbe puts a tree before the gate in which a test of the base skips itself.
func (m *measurement) skipProbe(ctx context.Context, b *bench, rule evidence.GateRule, reference, good []evidence.UnitRun) (evidence.Certificate, error) {
	kept := green(reference)
	for _, u := range b.tested() {
		s, ok := u.p.driver.(lang.Saboteur)
		if !ok {
			continue
		}
		for _, t := range u.p.scan.Tests {
			if t.Unit != u.ID || !slices.Contains(kept[u.ID], t.Name) {
				continue
			}
			src, err := m.file(ctx, b.tree, t.File)
			if err != nil {
				return evidence.Certificate{}, err
			}
			bad, ok := s.SkipTest(t.File, src, t.Name)
			if !ok {
				continue
			}
			tree, err := m.replaced(ctx, b.tree, t.File, bad)
			if err != nil {
				return evidence.Certificate{}, err
			}
			m.sabotage = evidence.Sabotage{Kind: evidence.SabotageSkip, Summary: t.Name + " of " + u.ID + " skips itself", Tree: tree, Diff: DiffText(t.File, src, bad)}
			return m.skipped(ctx, u.ID, rule, reference, good)
		}
	}
	return evidence.Certificate{}, fault.New(fault.Unmeasured, gate.CodeNotProven, "no test of the base could be made to skip itself")
}

func (m *measurement) skipped(ctx context.Context, id string, rule evidence.GateRule, reference, good []evidence.UnitRun) (evidence.Certificate, error) {
	bad, err := m.bench(ctx, m.sabotage.Tree)
	if err != nil {
		return evidence.Certificate{}, err
	}
	if err := bad.scan(ctx); err != nil {
		return evidence.Certificate{}, err
	}
	only := slices.DeleteFunc(bad.tested(), func(u unit) bool { return u.ID != id })
	runs, broken, err := bad.runAll(ctx, only, max(1, m.r.Policy.Repeat))
	if err != nil {
		return evidence.Certificate{}, err
	}
	if err := broken[id]; err != nil {
		return evidence.Certificate{}, err
	}
	return evidence.NewGate(m.facts(rule, m.sabotage), evidence.GateRuns{Reference: reference, Good: good, Bad: runs})
}

// full runs the whole suite of the tree, repeatedly and shuffled. The probe is a
// mutant of the change that a test notices.
func (m *measurement) full(ctx context.Context) (found, error) {
	b, err := m.bench(ctx, m.r.Tree)
	if err != nil {
		return found{}, err
	}
	if i, err := m.origins(ctx); err != nil {
		return found{}, err
	} else if len(i) > 0 {
		return found{Answer: gate.Answer{Outcome: gate.No, Code: codeOriginChanged, Reason: i[0].Message}, issues: i}, nil
	}
	times := max(1, m.r.Policy.Repeat)
	runs, broken, err := m.suiteAt(ctx, b, times)
	if err != nil {
		return found{}, err
	}
	f := found{metrics: map[string]float64{"repeat": float64(times), "units": float64(len(b.tested()))}}
	switch {
	case len(broken) > 0:
		f.Answer, f.issues = m.brokenAnswer(broken, "the suite")
		return f, nil
	case len(runs) == 0:
		f.Answer = gate.Answer{Outcome: gate.Empty, Code: evidence.CodeNoTestsRan, Reason: "the tree has no tests"}
		return f, nil
	}
	v := evidence.JudgeGate(evidence.RuleGreen, nil, runs)
	f.Answer, f.tests, f.issues = gate.Of(v), counts(v), m.testIssues(b, v)
	if f.Outcome == gate.NotMeasured && v.Code != evidence.CodeFlaky {
		f.issues = environment(f.Answer)
	}
	if f.Outcome == gate.Pass {
		if a, err := m.honest(ctx, b, runs); err != nil {
			return f, err
		} else if a.Outcome != gate.Pass {
			f.Answer, f.issues = a, []gate.Issue{{Category: gate.Defect, Code: a.Code, Message: a.Reason}}
			return f, nil
		}
	}
	f.probeFunc = func(ctx context.Context) (evidence.Certificate, error) { return m.mutantProbe(ctx, b, runs, f.metrics) }
	return f, nil
}

// testIssues makes issues of the tests that a verdict names.
func (m *measurement) testIssues(b *bench, v evidence.GateVerdict) []gate.Issue {
	var out []gate.Issue
	for _, f := range slices.Concat(v.Faults, v.Flaky) {
		i := gate.Issue{Category: gate.Defect, Code: f.Code, File: f.File, Line: f.Line, Message: f.String(), Expected: f.Want, Actual: f.Got}
		switch f.Code {
		case evidence.CodeTestsNotRun, evidence.CodeFewerCases, evidence.CodeNoTestsRan:
			i.Category = gate.TestGap
		case evidence.CodeFlaky:
			i.Category = gate.Environment
		}
		i.Repro = b.repro(f.Unit, f.Test)
		out = append(out, i)
	}
	return out
}

// repro is the command by which a person runs one test.
func (b *bench) repro(unitID, test string) []string {
	for _, u := range b.tested() {
		c, ok := u.p.driver.(lang.Commander)
		if u.ID != unitID || !ok || test == "" {
			continue
		}
		return []string{"sh", "-c", c.TestCommand(".", u.Dir, test, 1)}
	}
	return nil
}

func counts(v evidence.GateVerdict) *gate.Counts {
	c := gate.Counts(v.Tests)
	return &c
}

func unitDigests(runs []evidence.UnitRun) []evidence.UnitDigest {
	var out []evidence.UnitDigest
	for _, u := range runs {
		out = append(out, evidence.UnitDigest{Unit: u.Unit, Run: u.Run.Digest()})
	}
	return out
}
