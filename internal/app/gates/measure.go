package gates

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/snapshot"
)

// probes is the version of the probe set: part of every gate digest.
const probes = "probes/1"

// measurement is the state of one [Measure].
type measurement struct {
	app      *app.App
	r        Request
	digest   evidence.Digest
	site     *app.Site
	changes  []snapshot.Change // from base to tree
	trees    map[evidence.Tree]*bench
	sabotage evidence.Sabotage // what the probe was, once it was made
}

// found is what a kind of gate makes of the subject.
type found struct {
	gate.Answer
	issues    []gate.Issue
	metrics   map[string]float64
	tests     *gate.Counts
	named     map[string][]string
	certs     []evidence.Digest
	runs      []evidence.Digest // beside those of the site
	outputs   []gate.Output
	isolation evidence.Isolation // of runs that others recorded
	suite     []evidence.UnitRun // the runs that passed
	baseline  []evidence.UnitDigest
	said      map[string]gate.Requirement
	// probeFunc puts the bad subject before the gate. Nil: the gate needs none.
	probeFunc func(context.Context) (evidence.Certificate, error)
}

// Measure measures one gate. What could not be measured is an outcome, not an
// error: an error is ours, a request that makes no sense, or an interruption.
func Measure(ctx context.Context, a *app.App, r Request) (res Result, err error) {
	m := &measurement{app: a, r: r, trees: map[evidence.Tree]*bench{}}
	if err := m.check(); err != nil {
		return Result{}, err
	}
	began := a.Now()
	if m.digest, err = m.gateDigest(); err != nil {
		return Result{}, err
	}
	if res, ok, err := m.known(ctx, began); ok || err != nil {
		return res, err
	}
	if m.site, err = a.Site(ctx, r.Repo); err != nil {
		return Result{}, err
	}
	defer func() {
		if cerr := m.close(); err == nil {
			err = cerr
		}
	}()
	if r.BaseTree != "" && r.Tree != "" && r.BaseTree != r.Tree {
		if m.changes, err = m.site.Snapshots().Diff(ctx, r.Repo, r.BaseTree, r.Tree); err != nil {
			return Result{}, err
		}
	}
	var f found
	if err := m.within(ctx, func(ctx context.Context) (err error) { f, err = m.judge(ctx); return err }); err != nil {
		answer, ok := gate.Unmeasured(err)
		if !ok {
			return Result{}, err
		}
		f = found{Answer: answer, issues: environment(answer)}
	}
	if f.Outcome == gate.Empty && r.Policy.WhenEmpty == "pass" {
		f.Answer, f.probeFunc = gate.Answer{Outcome: gate.Pass}, nil
	}
	p, err := m.probe(ctx, &f)
	if err != nil {
		return Result{}, err
	}
	if err := m.site.Commit(context.WithoutCancel(ctx)); err != nil {
		return Result{}, err
	}
	return m.result(f, p, began)
}

// check refuses requests that make no sense.
func (m *measurement) check() error {
	r := m.r
	bad := func(format string, args ...any) error {
		return fault.New(fault.Usage, "usage", "gate %s: %s", r.Gate, fmt.Sprintf(format, args...))
	}
	atBase := r.Policy.Kind == gate.KindSuite && r.Policy.At == "base"
	switch {
	case r.Gate == "":
		return bad("it has no name")
	case !slices.Contains([]gate.Kind{gate.KindSuite, gate.KindBuild, gate.KindSecrets, gate.KindCommand, gate.KindProve, gate.KindMerge}, r.Policy.Kind):
		return bad("kind %q is not measured by runs", r.Policy.Kind)
	case r.BaseTree == "":
		return bad("it has no base")
	case r.Tree == "" && !atBase:
		return bad("it has no tree")
	case r.Policy.Kind == gate.KindCommand && len(r.Policy.Argv) == 0:
		return bad("it has no command")
	}
	return nil
}

// gateDigest covers everything but the subject that decides the answer.
func (m *measurement) gateDigest() (evidence.Digest, error) {
	policy, err := evidence.Canonical(m.r.Policy)
	if err != nil {
		return "", err
	}
	parts := []string{"gate/v1", m.r.Gate, string(policy), probes, m.app.Version}
	for _, d := range m.app.Drivers {
		print, err := d.Fingerprint()
		if err != nil {
			print = "none: " + err.Error()
		}
		parts = append(parts, d.Language(), print)
	}
	for _, a := range m.r.Acceptance {
		parts = append(parts, "acceptance", a.Requirement, a.ID, a.Test, a.Before)
		parts = append(append(parts, strconv.Itoa(len(a.Command))), a.Command...)
	}
	parts = append(parts, m.r.Added...)
	if m.r.Policy.Kind == gate.KindMerge {
		parts = append(parts, "merge", string(m.r.MergeTree), strings.Join(m.r.Conflicts, "\x00"))
	}
	return evidence.DigestParts(parts...), nil
}

func (m *measurement) subject() gate.Subject {
	s := gate.Subject{Tree: m.r.Tree, Plan: m.r.Plan, Base: m.r.BaseTree}
	if s.Tree == "" {
		s.Tree = s.Base
	}
	return s
}

// known repeats what the same gate said about the same subject.
func (m *measurement) known(ctx context.Context, began time.Time) (Result, bool, error) {
	if m.r.Known == nil {
		return Result{}, false, nil
	}
	e, issues, ok := m.r.Known(ctx, m.digest, m.subject())
	if !ok || e.Outcome == gate.NotMeasured || e.GateDigest != m.digest || e.Subject != m.subject() || e.Gate != m.r.Gate {
		return Result{}, false, nil
	}
	if _, err := e.Canonical(); err != nil {
		return Result{}, false, err
	}
	if e.Reused == "" {
		e.Reused = e.ID
	}
	e.Run, e.Stage, e.Attempt, e.Started, e.DurationMS = m.r.Run, m.r.Stage, m.r.Attempt, began, 0
	sealed, err := e.Seal()
	return Result{Evidence: sealed, Issues: issues, Probe: Probed{Certificate: e.Probe, Refused: e.Probe != "", Reused: true}}, err == nil, err
}

// within bounds a part of the measurement. What the time ends is not measured.
func (m *measurement) within(ctx context.Context, do func(context.Context) error) error {
	limit := m.r.Policy.Time
	if limit <= 0 {
		limit = DefaultTime
	}
	over := fault.New(fault.Unmeasured, gate.CodeTimedOut, "gate %s did not end within %s", m.r.Gate, limit)
	timed, cancel := context.WithTimeoutCause(ctx, limit, over)
	defer cancel()
	err := do(timed)
	if timed.Err() != nil && ctx.Err() == nil {
		return over
	}
	if ctx.Err() != nil {
		return fault.Wrap(context.Cause(ctx), fault.Interrupted, "interrupted", "gate %s was stopped", m.r.Gate)
	}
	return err
}

func (m *measurement) judge(ctx context.Context) (found, error) {
	switch p := m.r.Policy; p.Kind {
	case gate.KindBuild:
		return m.build(ctx)
	case gate.KindSecrets:
		return m.secrets(ctx)
	case gate.KindCommand:
		return m.command(ctx)
	case gate.KindProve:
		if m.r.Gate == "prove.requirements" || len(m.r.Acceptance) > 0 {
			return m.requirements(ctx)
		}
		return m.changed(ctx)
	case gate.KindMerge:
		return m.merge(ctx)
	default:
		switch {
		case p.At == "base":
			return m.baseline(ctx)
		case p.Tests == "base":
			return m.kept(ctx)
		}
		return m.full(ctx)
	}
}

// probe applies the blind rule to a pass.
func (m *measurement) probe(ctx context.Context, f *found) (Probed, error) {
	if f.Outcome != gate.Pass || f.probeFunc == nil {
		return Probed{}, nil
	}
	if p, ok, err := m.probedBefore(ctx); ok || err != nil {
		return p, err
	}
	var c evidence.Certificate
	err := m.within(ctx, func(ctx context.Context) (err error) { c, err = f.probeFunc(ctx); return err })
	p := Probed{Sabotage: m.sabotage}
	switch e := fault.From(err); {
	case err == nil:
		p.Certificate, p.Refused = c.Digest(), true
		if err := m.site.Commit(context.WithoutCancel(ctx), ledger.CertificateDraft(c)); err != nil {
			return p, err
		}
	case e.Kind != fault.Unmeasured && e.Kind != fault.Negative:
		return p, err
	default:
		p.Err = err
		if e.Kind == fault.Negative { // the good tree, run again, was refused
			p.Err = fault.Wrap(err, fault.Unmeasured, gate.CodeFlaky, "the gate gave two answers about one tree")
		}
	}
	f.Answer = gate.Believed(f.Answer, p.Certificate, p.Err)
	if f.Outcome == gate.NotMeasured {
		f.issues = append(f.issues, environment(f.Answer)...)
	}
	return p, nil
}

// probedBefore finds the certificate that this gate earned on this base, and
// derives it again: nobody's word is taken for it.
func (m *measurement) probedBefore(ctx context.Context) (Probed, bool, error) {
	if m.r.Probed == nil {
		return Probed{}, false, nil
	}
	d, ok := m.r.Probed(ctx, m.digest, m.r.BaseTree)
	if !ok {
		return Probed{}, false, nil
	}
	led, err := m.app.Ledger(ctx)
	if err != nil {
		return Probed{}, false, err
	}
	c, err := led.Certificate(ctx, d)
	if err != nil {
		return Probed{}, false, err
	}
	g := c.Record().Gate
	if g == nil || g.Digest != m.digest || g.Gate != m.r.Gate {
		return Probed{}, false, nil
	}
	return Probed{Certificate: d, Sabotage: g.Sabotage, Refused: true, Reused: true}, true, nil
}

// result seals the evidence.
func (m *measurement) result(f found, p Probed, began time.Time) (Result, error) {
	e := gate.Evidence{
		Gate: m.r.Gate, Run: m.r.Run, Stage: m.r.Stage, Attempt: m.r.Attempt, Subject: m.subject(), GateDigest: m.digest,
		Certificates: f.certs, Probe: p.Certificate, Outcome: f.Outcome, Code: f.Code, Reason: f.Reason, Metrics: f.metrics, Tests: f.tests, Named: f.named, Requirements: f.said,
		Started: began, DurationMS: m.app.Now().Sub(began).Milliseconds(), Outputs: f.outputs, Runs: slices.Clone(f.runs),
	}
	for _, r := range m.site.Runs() {
		e.Runs = append(e.Runs, r.Run.Digest())
	}
	iso := m.site.Isolation()
	if e.Isolation, e.Network = weaker(iso.Level, f.isolation.Level), iso.Network; f.isolation.Network == evidence.Open || e.Network == "" {
		e.Network = f.isolation.Network
	}
	sealed, err := e.Seal()
	return Result{Evidence: sealed, Issues: f.issues, Probe: p, Baseline: f.baseline}, err
}

func (m *measurement) close() error {
	var err error
	for _, b := range m.trees {
		if cerr := b.close(); err == nil {
			err = cerr
		}
	}
	if cerr := m.site.Close(); err == nil {
		err = cerr
	}
	return err
}

// environment is the issue of something that could not be measured.
func environment(a gate.Answer) []gate.Issue {
	category := gate.Environment
	if a.Code == gate.CodeBlind || a.Code == gate.CodeNotProven {
		category = "grader_fault"
	}
	return []gate.Issue{{Category: category, Code: a.Code, Message: a.Reason}}
}

// changed lists the paths of the change that the tree still has.
func (m *measurement) changedPaths() []string {
	var out []string
	for _, c := range m.changes {
		if c.Status != snapshot.Deleted {
			out = append(out, c.Path)
		}
	}
	return out
}

// outputsOf names what the commands of a gate printed.
func outputsOf(runs []evidence.UnitRun) []gate.Output {
	var out []gate.Output
	for _, u := range runs {
		rec := u.Run.Record()
		for _, s := range []struct {
			name string
			o    evidence.Output
		}{{"stdout", rec.Stdout}, {"stderr", rec.Stderr}} {
			if s.o.Digest != "" {
				out = append(out, gate.Output{Name: u.Unit + " " + s.name, SHA256: s.o.Digest, Bytes: s.o.Bytes, Truncated: s.o.Truncated})
			}
		}
	}
	return out
}

// printed is what a run wrote, standard error first.
func (m *measurement) printed(d evidence.Digest) string {
	for _, r := range m.site.Runs() {
		if r.Run.Digest() == d {
			return strings.TrimSpace(string(r.Stderr) + "\n" + string(r.Stdout))
		}
	}
	return ""
}

// cut shortens what a command printed to its last lines.
func cut(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	if len(all) > lines {
		all = append([]string{"…"}, all[len(all)-lines:]...)
	}
	return strings.Join(all, "\n")
}

func slashDir(dir string) string {
	if dir == "." {
		return ""
	}
	return filepath.FromSlash(dir)
}

// DiffText is a unified diff between two texts of one file, as long as it is
// short: enough for a person to see the sabotage.
func DiffText(path string, was, is []byte) string {
	a, b := strings.SplitAfter(string(was), "\n"), strings.SplitAfter(string(is), "\n")
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	toA, toB := len(a), len(b)
	for toA > from && toB > from && a[toA-1] == b[toB-1] {
		toA, toB = toA-1, toB-1
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- a/%s\n+++ b/%s\n@@ -%d,%d +%d,%d @@\n", path, path, from+1, toA-from, from+1, toB-from)
	line := func(mark, s string) {
		if s != "" {
			out.WriteString(mark + strings.TrimSuffix(s, "\n") + "\n")
		}
	}
	for _, s := range a[from:toA] {
		line("-", s)
	}
	for _, s := range b[from:toB] {
		line("+", s)
	}
	return out.String()
}
