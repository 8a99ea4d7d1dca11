package gates

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/snapshot"
	"github.com/proveto/proveto/internal/view"
)

// silent is an [app.Progress] that nobody listens to.
type silent struct{}

func (silent) Phase(string, string)                   {}
func (silent) Count(string, int, int, string)         {}
func (silent) Proven(view.Certificate, time.Duration) {}
func (silent) Note(string)                            {}

// start proves the change, by the rules of the base. Its own thresholds do not
// count here: whatever could be measured is the result.
func (m *measurement) start(ctx context.Context, edit func(*app.StartOptions)) (*view.Start, error) {
	limit := m.r.Policy.Time
	if limit <= 0 {
		limit = DefaultTime
	}
	o := app.StartOptions{
		Trees: &app.Trees{Repo: m.r.Repo, Base: m.r.BaseTree, Tree: m.r.Tree}, MinIsolation: m.r.Policy.IsolationMin,
		ChangedOnly: true, Again: m.r.Again, Gate: true, Limit: -1, Budget: limit * 3 / 4, // the rest is for what has begun
	}
	if edit != nil {
		edit(&o)
	}
	v, _, err := m.app.Start(ctx, o, silent{})
	if v != nil && (err == nil || fault.From(err).Kind == fault.Unmeasured || fault.From(err).Kind == fault.Negative) {
		return v, nil
	}
	return nil, err
}

// gaps are the reasons that lie in the tests, not around them.
var gaps = []string{"no_coverage", "no_tests", "tests_not_run", "no_tests_ran", "killed_by_error_only"}

// changed asks how much of the change is proven. The certificates are their own
// probes.
func (m *measurement) changed(ctx context.Context) (found, error) {
	v, err := m.start(ctx, nil)
	if fault.Has(err, "no_project") {
		return found{Answer: gate.Bar{}.Judge(gate.Proof{})}, nil
	}
	if err != nil {
		return found{}, err
	}
	f := found{isolation: evidence.Isolation{Level: evidence.Level(v.Isolation), Network: evidence.Network(v.Network)}}
	var p gate.Proof
	left := 0
	for _, s := range v.Symbols {
		if !s.Changed {
			continue
		}
		switch {
		case s.Word == string(evidence.Proven):
			p.Proven++
			f.certs = append(f.certs, evidence.Digest(s.Certificate))
		case s.Word == string(evidence.Refuted):
			p.Refuted++
		case s.Reason == "no_probe", s.Reason == string(evidence.Waived):
			left++
			continue
		case slices.Contains(gaps, s.Reason), s.Word == string(evidence.Stale) && s.Blocked == "":
			p.Unguarded++
		default:
			p.Unmeasured++
		}
		f.runs = appendRuns(f.runs, v, s)
		if s.Word != string(evidence.Proven) {
			f.issues = append(f.issues, m.proofIssue(s))
		}
	}
	f.metrics = map[string]float64{
		"changed": float64(p.Total() + left), "proven": float64(p.Proven), "refuted": float64(p.Refuted), "unguarded": float64(p.Unguarded),
		"not_measured": float64(p.Unmeasured), "without_mutant": float64(left),
	}
	bar := gate.Bar{MinProven: m.r.Policy.MinProven, MaxRefuted: m.r.Policy.MaxRefuted, MaxNotMeasured: m.r.Policy.MaxNotMeasured}
	f.Answer = bar.Judge(p)
	for _, b := range v.Broken {
		if b.Changed {
			f.Answer = gate.Answer{Outcome: gate.NotMeasured, Code: gate.CodeUnmeasured, Reason: b.Text + ": what cannot be built cannot be judged"}
			f.issues = append(f.issues, gate.Issue{Category: gate.Defect, Code: fault.Code(b.Code), File: b.File, Line: b.Line, Message: b.Text})
			break
		}
	}
	if f.Outcome == gate.NotMeasured && f.Reason != "" {
		for _, s := range v.Symbols {
			if s.Changed && s.Word == string(evidence.NotMeasured) && !slices.Contains(gaps, s.Reason) {
				f.Reason += fmt.Sprintf("; %s: %s", s.Name, orElse(s.Detail, s.Reason))
				break
			}
		}
	}
	return f, nil
}

// appendRuns names the runs behind what is said of a symbol.
func appendRuns(runs []evidence.Digest, v *view.Start, s view.Symbol) []evidence.Digest {
	add := func(d string) {
		if d != "" && !slices.Contains(runs, evidence.Digest(d)) {
			runs = append(runs, evidence.Digest(d))
		}
	}
	for _, mu := range s.Mutants {
		add(mu.Run)
	}
	for _, c := range v.Certificates {
		if c.ID == s.Certificate {
			for _, st := range c.Steps {
				add(st.Run)
			}
		}
	}
	return runs
}

// proofIssue is a changed behaviour that is not proven; a survivor comes with its
// diff.
func (m *measurement) proofIssue(s view.Symbol) gate.Issue {
	i := gate.Issue{
		Category: gate.TestGap, Code: fault.Code(orElse(s.Reason, s.Word)), File: s.File, Line: s.Line, Message: s.Name + ": " + orElse(s.Detail, s.Word),
		Repro: []string{"proveto", "prove", s.Name}, Expected: "a test that fails when it is changed", Actual: strings.ReplaceAll(s.Word, "_", " "),
	}
	if !slices.Contains(gaps, s.Reason) && s.Word == string(evidence.NotMeasured) {
		i.Category = gate.Environment
	}
	for _, mu := range s.Mutants {
		if mu.Status == string(evidence.Survived) && mu.Kind == string(evidence.ProbeResult) {
			i.File, i.Line, i.Diff, i.Actual = mu.File, mu.Line, mu.Diff, "every test stays green with "+mu.Summary
			break
		}
	}
	return i
}

// requirements asks of every test of the plan whether it was as declared before
// the change, is green after it, and notices when the change is broken; of every
// command whether it refuses the base and accepts the tree.
func (m *measurement) requirements(ctx context.Context) (found, error) {
	if len(m.r.Acceptance) == 0 {
		return found{Answer: gate.Answer{Outcome: gate.Empty, Code: "empty", Reason: "the plan names no test and no command"}}, nil
	}
	f := found{Answer: gate.Answer{Outcome: gate.Pass}, said: map[string]gate.Requirement{}, metrics: map[string]float64{"acceptances": float64(len(m.r.Acceptance))}}
	worst := map[gate.Outcome]int{gate.Pass: 0, gate.NotMeasured: 1, gate.No: 2}
	for _, a := range m.r.Acceptance {
		measure := m.acceptance
		if len(a.Command) > 0 {
			measure = m.commandAcceptance
		}
		before := len(f.certs)
		answer, issue, err := measure(ctx, a, &f)
		if err != nil {
			return found{}, err
		}
		word := map[gate.Outcome]evidence.Word{gate.Pass: evidence.Proven, gate.No: evidence.Refuted, gate.NotMeasured: evidence.NotMeasured}[answer.Outcome]
		q, known := f.said[a.Requirement]
		if !known || q.State == evidence.Proven || word == evidence.Refuted {
			q.State = word
		}
		q.Certificates = append(q.Certificates, f.certs[before:]...)
		f.said[a.Requirement] = q
		if answer.Outcome == gate.Pass {
			f.metrics["proven"]++
			continue
		}
		f.issues = append(f.issues, issue)
		if worst[answer.Outcome] > worst[f.Outcome] {
			f.Answer = answer
			f.Reason = a.ID + " (" + orElse(a.Test, strings.Join(a.Command, " ")) + "): " + f.Reason
		}
	}
	return f, nil
}

// acceptance measures one test of the plan.
func (m *measurement) acceptance(ctx context.Context, a Acceptance, f *found) (gate.Answer, gate.Issue, error) {
	file, test, ok := strings.Cut(a.Test, "::")
	issue := gate.Issue{Category: gate.TestGap, Code: gate.CodeFailed, File: file, Expected: "before: " + a.Before + ", after: passes"}
	no := func(format string, args ...any) (gate.Answer, gate.Issue, error) {
		issue.Message = fmt.Sprintf(format, args...)
		return gate.Answer{Outcome: gate.No, Code: gate.CodeFailed, Reason: issue.Message}, issue, nil
	}
	hung := func(v evidence.GateVerdict) (gate.Answer, gate.Issue, error) {
		issue.Message, issue.Category, issue.Code = v.Detail, gate.Environment, v.Code
		return gate.Answer{Outcome: gate.NotMeasured, Code: v.Code, Reason: v.Detail}, issue, nil
	}
	file = path.Clean(file)
	if !ok || test == "" || strings.HasPrefix(file, "../") || path.IsAbs(file) {
		return gate.Answer{}, issue, fault.New(fault.Usage, "plan_invalid", "%q does not name a test: want path::Test", a.Test)
	}
	before, run, err := m.before(ctx, file, test)
	if err != nil {
		return gate.Answer{}, issue, err
	}
	if !run.IsZero() {
		if stop := run.Record().Exit.Stopped; stop != "" {
			return hung(evidence.JudgeGate(evidence.RuleGreen, nil, []evidence.UnitRun{{Unit: test + " at the base", Run: run}}))
		}
	}
	issue.Actual = "before: " + before
	switch {
	case before == "no file":
		return no("the tree has no file %s", file)
	case a.Before == "absent" && before == "absent" && len(m.r.Added) == 0:
		return no("%s cannot run at the base, and the plan declares no symbol that it adds", test)
	case before != a.Before:
		return no("%s was to be %q at the base, and it is %q", test, a.Before, before)
	}
	after, err := m.one(ctx, m.r.Tree, file, test)
	switch e := fault.From(err); {
	case err != nil && e.Kind == fault.Unmeasured && (e.Code == lang.BuildFailed || e.Code == lang.NoTests):
		return no("%s cannot be built on the tree: %s", test, e.Error())
	case err != nil:
		return gate.Answer{}, issue, err
	}
	v := evidence.JudgeGate(evidence.RuleGreen, nil, []evidence.UnitRun{after})
	if !v.Accepted && !v.Rejected {
		return hung(v)
	}
	if got := after.Run.Outcome(test); v.Rejected || got != evidence.Passed {
		issue.Actual += ", after: " + string(got)
		return no("%s does not pass on the tree: %s", test, orElse(v.Detail, string(got)))
	}
	cert, err := m.discriminates(ctx, after.Unit, test, f)
	if err != nil {
		return gate.Answer{}, issue, err
	}
	if cert == "" {
		return no("%s is green, and stays green when what it reaches of the change is broken", test)
	}
	f.certs = append(f.certs, cert)
	return gate.Answer{Outcome: gate.Pass}, issue, nil
}

// before says what a test does at the base: its file, as the change has it, is laid
// over the base tree; where that does not build alone, with the other files of
// tests beside it.
func (m *measurement) before(ctx context.Context, file, test string) (string, evidence.Run, error) {
	files, err := m.site.Snapshots().Files(ctx, m.r.Repo, m.r.Tree)
	if err != nil {
		return "", evidence.Run{}, err
	}
	var own, beside []snapshot.Edit
	for _, x := range files {
		e := snapshot.Edit{Path: x.Path, Mode: x.Mode, Blob: x.Blob}
		dataDir := ""
		for _, d := range m.app.Drivers {
			if at, ok := d.TestData(x.Path); ok {
				dataDir = at
			}
		}
		switch {
		case x.Path == file:
			own = append(own, e)
		case path.Dir(x.Path) == path.Dir(file) && m.judged(x.Path), dataDir == path.Dir(file) && dataDir != "":
			beside = append(beside, e)
		}
	}
	if len(own) == 0 {
		return "no file", evidence.Run{}, nil
	}
	for _, edits := range [][]snapshot.Edit{own, append(own, beside...)} {
		tree, err := m.compose(ctx, m.r.BaseTree, edits...)
		if err != nil {
			return "", evidence.Run{}, err
		}
		u, err := m.one(ctx, tree, file, test)
		if e := fault.From(err); e != nil && e.Kind == fault.Unmeasured && (e.Code == lang.BuildFailed || e.Code == lang.NoTests) {
			continue
		}
		if err != nil {
			return "", evidence.Run{}, err
		}
		j := evidence.Judge(u.Run)
		switch {
		case u.Run.Outcome(test) == evidence.Passed && j.Status == evidence.Survived:
			return "passes", u.Run, nil
		case u.Run.Outcome(test) == evidence.Failed && j.Status == evidence.Killed:
			return "fails", u.Run, nil
		case u.Run.Outcome(test) == evidence.NotRun && j.Code == evidence.CodeNoTestsRan:
			return "absent", u.Run, nil
		case u.Run.Outcome(test) == evidence.Skipped:
			return "skipped", u.Run, nil
		}
		return "failing without an assertion", u.Run, nil
	}
	return "absent", evidence.Run{}, nil
}

// one runs one test of a file on a tree.
func (m *measurement) one(ctx context.Context, tree evidence.Tree, file, test string) (evidence.UnitRun, error) {
	b, err := m.bench(ctx, tree)
	if err != nil {
		return evidence.UnitRun{}, err
	}
	if err := b.scan(ctx); err != nil {
		return evidence.UnitRun{}, err
	}
	if _, err := b.unloadable(); err != nil {
		return evidence.UnitRun{}, err
	}
	for _, u := range b.tested() {
		if orElse(u.Dir, ".") == path.Dir(file) {
			return b.run(ctx, u, lang.Request{Purpose: evidence.PurposeBaseline, Tests: []string{test}})
		}
	}
	return evidence.UnitRun{}, fault.New(fault.Unmeasured, lang.NoTests, "no package with tests is in %s", path.Dir(file))
}

// discriminates finds a live certificate by the test about a changed symbol, or
// earns one.
func (m *measurement) discriminates(ctx context.Context, unitID, test string, f *found) (evidence.Digest, error) {
	for _, edit := range []func(*app.StartOptions){nil, func(o *app.StartOptions) { o.Test, o.Again = test, true }} {
		v, err := m.start(ctx, edit)
		if fault.Has(err, "not_found") {
			return "", nil // the test reaches nothing of the change
		}
		if err != nil {
			return "", err
		}
		f.isolation = evidence.Isolation{Level: evidence.Level(v.Isolation), Network: evidence.Network(v.Network)}
		for _, s := range v.Symbols {
			if !s.Changed || s.Certificate == "" {
				continue
			}
			for _, c := range v.Certificates {
				if top, _, _ := strings.Cut(c.Test, "/"); c.ID == s.Certificate && c.Live && (c.Test == test || top == test) {
					f.runs = appendRuns(f.runs, v, s)
					return evidence.Digest(c.ID), nil
				}
			}
		}
	}
	return "", nil
}
