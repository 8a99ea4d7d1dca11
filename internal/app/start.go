package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/config"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/prove"
	"github.com/proveto/proveto/internal/snapshot"
	"github.com/proveto/proveto/internal/view"
)

// StartSchema names the saved result of a start.
const StartSchema = "proveto/prove.start/v1"

// StartOptions are the controls of the prove lane, each scoped as its name says.
type StartOptions struct {
	Rev         string        // seal this commit instead of the working copy
	Base        string        // the changed scope is what differs from here
	Only        []string      // symbols, files or packages
	Limit       int           // attempts; negative: no limit
	Budget      time.Duration // of proof; 0: none
	NoBudget    bool          // the user asked for none; otherwise 0 takes the configured one
	NoProof     bool          // baseline, no probe
	StaticOnly  bool          // runs no code of the project
	Score       bool          // every probe of every kind
	Strength    float64       // least strength, with Score; 0: none
	Gate        bool
	Again       bool // measure again what is already known; prove TARGET does
	ChangedOnly bool
	Test        string   // restrict to this test
	Mutants     []string // restrict to these operators or probe digests
	Formats     []string
	ReportDir   string

	// Trees measures a sealed tree against a sealed base, in the repository given:
	// no working copy, revision or flag of a command is involved, and no report is
	// written.
	Trees *Trees
	// MinIsolation is the least isolation, where the configuration asks for less.
	MinIsolation evidence.Level
}

// Trees are two sealed trees of a repository.
type Trees struct {
	Repo       snapshot.Repo
	Base, Tree evidence.Tree
}

// Progress hears what happens while it happens. Calls come from several
// goroutines.
type Progress interface {
	Phase(name, detail string)
	Count(phase string, done, total int, subject string)
	Proven(c view.Certificate, after time.Duration)
	Note(text string)
}

// Start is the whole prove lane (see docs/tour.md). Whatever could be measured
// is returned also beside an error.
func (a *App) Start(ctx context.Context, o StartOptions, p Progress) (*view.Start, view.Subject, error) {
	v, subject, err := a.start(ctx, o, p)
	return v, subject, resumable(err)
}

// resumable says how an interrupted start goes on, wherever it was stopped.
func resumable(err error) error {
	// A statement of the database that was cancelled says so without a kind.
	if f := fault.From(err); f == nil || f.Kind != fault.Interrupted && !errors.Is(err, context.Canceled) {
		return err
	}
	return fault.Wrap(err, fault.Interrupted, "interrupted", "stopped; what was measured is kept, and the next start goes on").Hint("proveto start")
}

func (a *App) start(ctx context.Context, o StartOptions, p Progress) (*view.Start, view.Subject, error) {
	inv, err := a.invoke(ctx, a.configured(o), p)
	if err != nil {
		return nil, subjectOf(inv), err
	}
	defer inv.close()
	if inv.past, err = inv.remember(ctx); err != nil {
		inv.warn("previous_result", err.Error())
	}
	if saved, err := inv.reuse(ctx); err != nil {
		return nil, inv.subject, err
	} else if saved != nil {
		err := inv.judge(saved)
		return saved, inv.subject, err
	}
	sealed, err := ledger.SnapshotDraft(ledger.Snapshot{Tree: inv.snap.Tree, Commit: inv.snap.Commit, Repo: inv.repo.ID, Dirty: inv.snap.Dirty})
	if err != nil {
		return nil, inv.subject, err
	}
	if err := a.append(ctx, sealed); err != nil {
		return nil, inv.subject, err
	}
	if err := inv.scan(ctx); err != nil {
		return nil, inv.subject, err
	}
	if err := inv.checkNames(); err != nil {
		return nil, inv.subject, err
	}
	proofErr := inv.prove(ctx)
	if proofErr != nil && fault.From(proofErr).Kind != fault.Interrupted {
		return nil, inv.subject, proofErr
	}
	if err := inv.noMatch(); err != nil && proofErr == nil {
		return nil, inv.subject, err
	}
	// An interrupted run still says what it found; its context is done.
	ctx = context.WithoutCancel(ctx)
	v := inv.view()
	if err := inv.compare(v); err != nil {
		inv.warn("previous_result", err.Error())
	}
	if err := inv.report(ctx, v); err != nil {
		v.Artifacts = nil
		inv.warn("report_failed", err.Error())
	}
	if err := inv.save(ctx, v); err != nil {
		return v, inv.subject, err
	}
	if proofErr != nil {
		return v, inv.subject, proofErr
	}
	return v, inv.subject, inv.judge(v)
}

// invocation is the state of one start.
type invocation struct {
	app      *App
	o        StartOptions
	p        Progress
	id       string // ULID
	began    time.Time
	subject  view.Subject
	repo     snapshot.Repo
	snap     snapshot.Snapshot
	baseTree evidence.Tree
	base     *config.Config              // read from baseTree; nil: there is no base
	changed  map[string][]snapshot.Lines // path → changed lines, none for a path that is gone; nil: everything is in scope
	touched  map[string]bool             // symbols that the change touches elsewhere than in their lines
	scope    string
	checkout *snapshot.Checkout
	release  snapshot.Release // lets removal go on; see [snapshot.Store.Use]
	projects []*project
	excluded []view.Excluded
	failed   []failedProject
	then     map[string]bool // files that held targets at the base, as far as it was read
	leftOver []view.Broken   // of then: those that are here and in no package any more
	tools    string          // fingerprints of the drivers, part of the run key
	past     past
	recorder
	work
}

// project is one module of the checkout with what is known about its symbols.
type project struct {
	lang.Project
	driver lang.Driver
	today  *prove.Today
	known  map[string]*known
	order  []prove.Ranked
	units  map[string]*unit
	base   *lang.Scan // what it was; nil when that is not known

	certificates []ledger.Stored[evidence.CertificateRecord] // all that the ledger has, oldest first
	revoked      map[evidence.Digest]string                  // why a certificate gives no credit any more
}

// lapses are the reasons for which a certificate gives no credit today.
func (p *project) lapses(c ledger.Stored[evidence.CertificateRecord]) []prove.Cause {
	causes := p.today.Lapses(c.Record)
	if why, ok := p.revoked[c.Digest]; ok {
		causes = append([]prove.Cause{{Code: codeRerunDiffers, Text: why}}, causes...)
	}
	return causes
}

func subjectOf(inv *invocation) view.Subject {
	if inv == nil {
		return view.Subject{}
	}
	return inv.subject
}

// invoke seals the snapshot and works out the changed scope.
func (a *App) invoke(ctx context.Context, o StartOptions, p Progress) (inv *invocation, err error) {
	inv = &invocation{app: a, o: o, p: p, id: newID(), began: a.now(), recorder: recorder{app: a}}
	snaps, err := a.Snapshots(ctx)
	if err != nil {
		return inv, err
	}
	if inv.release, err = snaps.Use(ctx); err != nil {
		return inv, err
	}
	defer func() {
		if err != nil {
			inv.close()
		}
	}()
	if err := a.loadWaivers(ctx); err != nil {
		return inv, err
	}
	p.Phase("snapshot", "")
	if o.Trees != nil {
		inv.repo = o.Trees.Repo
		inv.o.Base = fmt.Sprintf("tree %.12s", o.Trees.Base)
	} else if inv.repo, err = snaps.Locate(ctx, a.dir("")); err != nil {
		return inv, err
	}
	inv.o.Only = inv.fromHere(inv.o.Only)
	inv.subject = view.Subject{Repository: inv.repo.Name, Dir: inv.repo.Root}
	if o.Trees != nil {
		inv.snap = snapshot.Snapshot{Repo: inv.repo, Tree: o.Trees.Tree, Base: o.Trees.Base}
	} else if inv.snap, err = snaps.Seal(ctx, inv.repo, snapshot.Options{Rev: o.Rev}); err != nil {
		return inv, err
	}
	inv.subject.Commit, inv.subject.Branch = inv.snap.Commit, inv.snap.Branch
	inv.subject.Tree, inv.subject.Dirty, inv.subject.Changed = string(inv.snap.Tree), inv.snap.Dirty, len(inv.snap.Changed)
	for _, n := range inv.snap.Notes {
		inv.warn("snapshot", n)
	}
	if inv.scope, err = inv.findScope(ctx, snaps); err != nil {
		return inv, err
	}
	if err := inv.readBase(ctx, snaps); err != nil {
		return inv, err
	}
	for _, d := range a.Drivers {
		print, err := d.Fingerprint()
		if err != nil {
			// Missing tools are a reason to measure nothing, said by Scan.
			print = "none: " + err.Error()
		}
		inv.tools += d.Language() + " " + print + "\n"
	}
	return inv, nil
}

// key is the digest of everything that decides the result of a start.
func (inv *invocation) key() evidence.Digest {
	o := inv.o
	return evidence.DigestParts("start/v1", inv.app.Version, inv.repo.ID, string(inv.snap.Tree), string(inv.baseTree), inv.tools,
		inv.app.configKey(), strings.Join(o.Only, "\n"), fmt.Sprint(o.Limit, o.Budget, o.NoProof, o.StaticOnly, o.Score, o.Strength, o.ChangedOnly, o.Gate, o.MinIsolation),
		o.Test, strings.Join(o.Mutants, "\n"), strings.Join(o.Formats, ","), o.ReportDir, string(inv.surroundings()))
}

// surroundings is the digest of what is around the tree: the tools, the variables
// that tests see, and what is waived today.
func (inv *invocation) surroundings() evidence.Digest {
	w := lang.Workspace{Env: inv.app.testEnv(), Configured: inv.app.testVariables()}
	return evidence.DigestParts(slices.Concat([]string{"surroundings/v1", inv.tools}, prove.Surroundings(w), []string{"waived"}, inv.app.waivedToday())...)
}

// reuse returns the saved result of the same start, if it left nothing to try.
// It establishes no new execution and says so.
func (inv *invocation) reuse(ctx context.Context) (*view.Start, error) {
	if inv.o.Again {
		return nil, nil
	}
	led, err := inv.app.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	key := inv.key()
	i := slices.IndexFunc(inv.past.starts, func(s ledger.Stored[ledger.Start]) bool { return s.Record.Key == key })
	if i < 0 {
		return nil, nil
	}
	row := inv.past.starts[i]
	saved, err := inv.app.loadSaved(row.Record)
	if err != nil || !saved.Complete {
		return nil, err
	}
	if whole, err := inv.app.untouched(ctx, led, saved, row.Seq); err != nil || !whole {
		return nil, err
	}
	if last := slices.IndexFunc(inv.past.starts, func(s ledger.Stored[ledger.Start]) bool { return inv.ofTree(s.Record) }); last != i {
		// From now on it is this result that answers for the tree.
		if err := inv.enter(ctx, row.Record.Result, saved.Narrow); err != nil {
			return nil, err
		}
	}
	v := saved.Start
	v.Before, v.BeforeIs = nil, nil // nothing moved
	v.Reused = true
	at := v.Started.Add(time.Duration(v.TookMS) * time.Millisecond)
	v.ReusedHead, v.ReusedAt = saved.Head, &at
	v.ProvenNow, v.RefutedNow, v.Attempted, v.FirstProofMS = 0, 0, 0, 0
	for i := range v.Symbols {
		v.Symbols[i].New = false
	}
	v.TookMS = inv.app.now().Sub(inv.began).Milliseconds()
	if !artifactsWhole(v.Artifacts) {
		if err := inv.report(ctx, v); err != nil {
			inv.warn("report_failed", err.Error())
		}
	}
	return v, nil
}

// scan checks the tree out, finds the projects and joins them with the stored
// evidence. A project that cannot be loaded keeps its error as a reason.
func (inv *invocation) scan(ctx context.Context) error {
	snaps, err := inv.app.Snapshots(ctx)
	if err != nil {
		return err
	}
	inv.p.Phase("checkout", "")
	if inv.checkout, err = snaps.Checkout(ctx, inv.repo, inv.snap.Tree); err != nil {
		return err
	}
	led, err := inv.app.Ledger(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, d := range inv.app.Drivers {
		found, err := d.Detect(inv.checkout.Dir())
		if err != nil {
			return err
		}
		for _, lp := range found {
			inv.p.Phase("scan", lp.Name)
			s, err := d.Scan(ctx, inv.workspace(), lp)
			if err != nil {
				if !credibleSetup(err) {
					return err
				}
				e := *fault.From(err)
				e.Hints = slices.Clone(e.Hints)
				for i, h := range e.Hints {
					e.Hints[i] = inv.inProject(lp, h)
				}
				failures = append(failures, fmt.Errorf("%s: %w", lp.Dir, &e))
				if err := inv.fail(ctx, d, lp, err); err != nil {
					return err
				}
				continue
			}
			if err := inv.join(ctx, led, d, s); err != nil {
				return err
			}
		}
		if err := inv.findLeftOver(ctx, d, found); err != nil {
			return err
		}
	}
	inv.callApart()
	switch {
	case len(inv.projects) > 0:
		for _, f := range failures {
			inv.warn(string(fault.From(f).Code), f.Error())
		}
		return nil
	case len(failures) > 0:
		return setupFault(inv.repo.Root, failures[0])
	}
	return noProject(inv.repo.Root)
}

// credibleSetup tells a project that cannot be set up from an error of ours.
func credibleSetup(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && e.Kind == fault.Unmeasured
}

// setupFault is the answer when no project could be loaded: needs_setup with its
// category and the command that would help.
func setupFault(root string, err error) error {
	e := fault.From(err)
	out := fault.New(fault.Unmeasured, "needs_setup", "%s: %s", strings.ReplaceAll(string(e.Code), "_", " "), err)
	out.Hints = append(out.Hints, e.Hints...)
	if len(out.Hints) == 0 && e.Code == lang.BuildFailed {
		out = out.Hint("go -C %s vet ./...", quoteArg(root))
	}
	return out.Hint("proveto doctor")
}

func noProject(root string) error {
	return fault.New(fault.Unmeasured, "no_project", "no project found in %s: looked for go.mod and go.work here and below", root).
		Hint("proveto start -C DIR").Hint("this version reads Go modules")
}

// join adds a project: today's digests against the stored certificates and
// measurements, and the ranking of its targets.
func (inv *invocation) join(ctx context.Context, led *ledger.Ledger, d lang.Driver, s *lang.Scan) error {
	p := &project{Project: s.Project, driver: d, today: prove.NewToday(s, inv.workspace()), known: map[string]*known{}, units: map[string]*unit{}}
	var err error
	if p.certificates, err = led.CertificatesFor(ctx, p.Language, p.Dir); err != nil {
		return err
	}
	if p.revoked, err = inv.app.revoked(ctx); err != nil {
		return err
	}
	g, problems := newGraph(s)
	var targets []lang.Symbol
	for _, sy := range s.Symbols {
		switch {
		case sy.TestCode:
		case sy.Excluded != "":
			inv.excluded = append(inv.excluded, view.Excluded{Name: sy.Name, File: sy.File, Line: sy.Line, Reason: sy.Excluded})
		case inv.leftOut(sy.File) != "":
			inv.excluded = append(inv.excluded, view.Excluded{Name: sy.Name, File: sy.File, Line: sy.Line, Reason: inv.leftOut(sy.File)})
		default:
			targets = append(targets, sy)
		}
	}
	for _, pr := range append(problems, s.Problems...) {
		inv.excluded = append(inv.excluded, view.Excluded{Name: pr.File, File: pr.File, Line: pr.Line, Reason: pr.Reason})
	}
	churn, err := inv.churn(ctx)
	if err != nil {
		inv.warn("churn", err.Error())
	}
	if err := inv.findTouched(ctx, d, p); err != nil {
		return err
	}
	for _, sy := range s.Values {
		if inv.leftOut(sy.File) == "" {
			inv.excluded = append(inv.excluded, view.Excluded{Name: sy.Name, File: sy.File, Line: sy.Line, Reason: sy.Excluded, Changed: inv.isChanged(sy)})
		}
	}
	p.order = prove.Rank(targets, g, churn, inv.isChanged)
	for _, r := range p.order {
		p.known[r.ID] = &known{ranked: r, project: s.Project}
	}
	if err := inv.credit(ctx, led, p); err != nil {
		return err
	}
	for _, u := range s.Units {
		p.units[u.ID] = &unit{project: p, id: u.ID, tests: u.Tests}
		if b := u.Broken; b != nil {
			p.units[u.ID].failure = fault.New(fault.Unmeasured, b.Code, "%s", b.Text).Hint("%s", b.Hint)
		}
	}
	inv.projects = append(inv.projects, p)
	return nil
}

// credit finds for each symbol the newest live certificate, else the one that
// lapsed for the fewest causes with these, the newest of several, and the newest
// measurement that still holds. What is about another branch comes into none of
// them: it lapsed, or it holds here, too.
func (inv *invocation) credit(ctx context.Context, led *ledger.Ledger, p *project) error {
	for _, c := range p.certificates {
		k := p.known[c.Record.Facts.Symbol]
		if k == nil || !proves(c.Record) {
			continue
		}
		st := &stored{Seq: c.Seq, Digest: c.Digest, Record: c.Record}
		causes := p.lapses(c)
		switch {
		case len(causes) == 0:
			k.live = st
		case k.stale == nil || len(causes) <= len(k.causes):
			k.stale, k.causes = st, causes
		}
	}
	for _, k := range p.known {
		if k.live != nil {
			k.stale, k.causes = nil, nil
		}
	}
	measurements, err := led.MeasurementsFor(ctx, p.Language, p.Dir)
	if err != nil {
		return err
	}
	for _, m := range measurements { // newest first
		k, partial := p.known[m.Record.Target.Symbol], m.Record.Target.Partial != ""
		switch {
		case k == nil, !partial && k.measurement != nil, !p.today.Unchanged(m.Record):
		case partial:
			k.partial = append(k.partial, m.Record)
		default:
			k.measurement, k.measured = &m.Record, m.Digest
		}
	}
	p.breaks()
	return nil
}

// proves tells whether a certificate is about a changed result or effect. Those
// of other probes count in the strength and prove nothing.
func proves(c evidence.CertificateRecord) bool { return c.Facts.Probe.Kind == evidence.ProbeResult }

func (inv *invocation) churn(ctx context.Context) (map[string]int, error) {
	snaps, err := inv.app.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	return snaps.Churn(ctx, inv.repo, 200)
}

// view assembles the answer from what is known now.
func (inv *invocation) view() *view.Start {
	v := &view.Start{
		Run: inv.id, Started: inv.began, TookMS: inv.app.now().Sub(inv.began).Milliseconds(),
		Scope: inv.scope, SwitchedOff: inv.switchedOff(), Excluded: inv.excluded, Symbols: []view.Symbol{}, Certificates: []view.Certificate{},
		Suite: inv.suiteView(), FirstProofMS: inv.firstProof.Milliseconds(),
	}
	v.Narrow = inv.narrow()
	waived := inv.app.waivedFunc()
	v.Isolation, v.Network = string(inv.isolation.Level), string(inv.isolation.Network)
	if same := inv.past.same; v.Isolation == "" && same != nil {
		v.Isolation, v.Network = same.Isolation, same.Network // nothing ran
	}
	for _, p := range inv.projects {
		if !slices.Contains(v.Toolchains, p.today.Scan.Toolchain) {
			v.Toolchains = append(v.Toolchains, p.today.Scan.Toolchain)
		}
		for _, r := range p.order {
			k := p.known[r.ID]
			s := symbolView(*k, waived)
			v.Symbols = append(v.Symbols, s)
			if k.now {
				v.Attempted++
				switch evidence.Word(s.Word) {
				case evidence.Proven:
					if k.proved {
						v.ProvenNow++
					}
				case evidence.Refuted:
					v.RefutedNow++
				}
			}
			if c := orStored(k.live, k.stale); c != nil {
				v.Certificates = append(v.Certificates, certificateView(*c, r.Name, k.causes, k.live != nil))
			}
		}
	}
	inv.brokenView(v)
	v.Tests = inv.testViews(v.Symbols)
	summarise(v)
	v.Sources = inv.sources(v)
	return v
}

func orStored(a, b *stored) *stored {
	if a != nil {
		return a
	}
	return b
}

func (inv *invocation) switchedOff() []string {
	out := []string{}
	if inv.o.StaticOnly {
		out = append(out, "static_only")
	}
	if inv.o.NoProof || inv.o.Limit == 0 {
		out = append(out, "proof_off")
	}
	return out
}

// judge turns the result into the answer's error: nothing measured, the gate, or
// a strength that is too low.
func (inv *invocation) judge(v *view.Start) error {
	if inv.o.Gate {
		bar := inv.rules().Gate
		g := view.Gate{
			Base: inv.o.Base, Changed: inv.gatesChange(), MinProven: bar.MinProven, MaxRefuted: bar.MaxRefuted, MaxUnproven: bar.MaxNotMeasured,
		}
		var err error
		values := inv.withoutProbe(v)
		if v.Gate, err = gate(append(inv.gated(v), values...), inv.brokenInScope(v), g, bar.OnUnmeasured == "note"); err != nil {
			for _, s := range values {
				err = fault.From(err).Hint("%s:%d: %s is code in a variable, and no probe changes that; a function can be proven", s.File, s.Line, s.Name)
			}
			return err
		}
	}
	if inv.o.Strength > 0 {
		for _, s := range v.Symbols {
			if s.Strength.Den > 0 && float64(s.Strength.Num) < inv.o.Strength*float64(s.Strength.Den) {
				return fault.New(fault.Negative, "strength_too_low", "%s: %d of %d probes killed, the bar is a share of %g", s.Name, s.Strength.Num, s.Strength.Den, inv.o.Strength).
					Hint("proveto why %s", called(v.Symbols, s))
			}
		}
	}
	left := v.Unmeasured
	if v.Narrow {
		left = unmeasured(inv.gated(v))
	}
	return nothingMeasured(v, left)
}

// nothingMeasured says why, when no behaviour could be measured at all; left is
// what was asked for and not measured.
func nothingMeasured(v *view.Start, left []view.Unmeasured) error {
	c := v.Counts
	if len(v.SwitchedOff) > 0 || c.Proven+c.Refuted > 0 || v.Attempted > 0 {
		return nil
	}
	if c.Total > 0 && len(left) == 0 {
		return nil // what is stale needs no attempt: its tests are gone, say
	}
	if c.Total == 0 && len(v.Broken) > 0 {
		b := v.Broken[0]
		e := fault.New(fault.Unmeasured, "needs_setup", "%s: %s", strings.ReplaceAll(b.Code, "_", " "), b.Text)
		if b.Command != "" {
			e = e.Hint("%s", b.Command)
		}
		return e.Hint("proveto doctor --proof")
	}
	if c.Total == 0 {
		return fault.New(fault.Unmeasured, "no_project", "there is no function with a body outside tests, generated code and what proveto.yaml leaves out").Hint("proveto config show")
	}
	top := left[0]
	switch top.Reason {
	case "no_tests", "no_coverage":
		return fault.New(fault.Unmeasured, "no_tests", "no test was found that reaches any of the %d behaviours: looked for Test, Example and Fuzz functions in *_test.go", c.Total).Hint("proveto gaps")
	case "baseline_failed":
		return redSuite(v)
	case string(codeOutOfBudget):
		return fault.New(fault.Unmeasured, codeOutOfBudget, "the budget ended before any of the %d behaviours could be measured", c.Total).
			Hint("proveto start --budget 0").Hint("proveto start goes on from what is built already")
	case "pending", "limit":
		return nil
	}
	e := fault.New(fault.Unmeasured, "needs_setup", "%s: %s", top.Reason, top.Detail)
	if top.Command != "" {
		e = e.Hint("%s", top.Command)
	}
	return e.Hint("proveto doctor --proof")
}

func redSuite(v *view.Start) error {
	red := v.Suite.Red
	names := []string{}
	for _, t := range red[:min(3, len(red))] {
		names = append(names, t.Test)
	}
	what := fmt.Sprintf("%s on the original: %s", failing(len(red)), strings.Join(names, ", "))
	return fault.New(fault.Unmeasured, "baseline_red", "%s", what).Hint("proveto doctor --proof").Hint("make the suite green, then start again")
}

// failing counts red tests.
func failing(n int) string {
	if n == 1 {
		return "1 test fails"
	}
	return fmt.Sprintf("%d tests fail", n)
}

// save writes the result as a blob and its entry. It is reusable when nothing is
// left to try and the reports were written.
func (inv *invocation) save(ctx context.Context, v *view.Start) error {
	led, err := inv.app.Ledger(ctx)
	if err != nil {
		return err
	}
	h, err := led.Head(ctx)
	if err != nil {
		return err
	}
	body, err := json.Marshal(savedStart{
		Start: v, Suites: inv.baselines(), Sources: v.Sources, Subject: inv.subject, Complete: inv.complete(v), Around: inv.surroundings(), Outside: inv.outside(), Head: &view.Head{Seq: h.Seq, Root: string(h.Root)},
	})
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	digest, err := inv.app.blobs.Put(ctx, body)
	if err != nil {
		return err
	}
	return inv.enter(ctx, digest, v.Narrow)
}

// enter records a result as that of this invocation.
func (inv *invocation) enter(ctx context.Context, result evidence.Digest, narrow bool) error {
	d, err := ledger.StartDraft(ledger.Start{
		Key: inv.key(), Invocation: inv.id, Repo: inv.repo.ID, Tree: inv.snap.Tree, Result: result,
		Branch: inv.snap.Branch, Commit: inv.snap.Commit, Narrow: narrow,
	})
	if err != nil {
		return err
	}
	return inv.commit(ctx, []ledger.Draft{d}, nil)
}

// savedStart is the stored form of a result; the sources are kept so that the
// report can be written again.
type savedStart struct {
	*view.Start
	Sources  map[string][]string `json:"sources"`
	Subject  view.Subject        `json:"saved_subject"`
	Head     *view.Head          `json:"saved_head"`
	Complete bool                `json:"complete"` // nothing was left to try
	// Suites is what the baselines showed, by unit: see [unit.key].
	Suites map[string]view.Suite `json:"suites,omitempty"`
	// Around is the digest of what was around the tree: see [invocation.surroundings].
	Around evidence.Digest `json:"around"`
	// Outside says that a test reads a file that leads out of the tree.
	Outside bool `json:"outside,omitempty"`
}

// retried are the reasons whose cause can lie outside the inputs: each
// invocation tries them again.
var retried = map[string]bool{
	"out_of_budget": true, "interrupted": true, "pending": true, "baseline_failed": true, "flaky": true, "order_dependent": true,
	"environment_sensitive": true, "report_incomplete": true, "tests_not_run": true, "isolation_too_low": true,
	string(lang.DependencyMissing): true, string(lang.ToolMissing): true, string(lang.BuildFailed): true, string(lang.DatabaseOrNetwork): true,
	string(lang.Configuration): true, string(lang.TimedOut): true, string(lang.Permission): true, string(lang.UnsupportedRunner): true,
}

// outside tells whether a test reads a file that leads out of the tree: then an
// equal tree does not say that nothing changed.
func (inv *invocation) outside() bool {
	return slices.ContainsFunc(inv.projects, func(p *project) bool { return p.today.Outside() })
}

func (inv *invocation) complete(v *view.Start) bool {
	if len(v.Artifacts) == 0 || len(v.Broken) > 0 || len(v.Suite.Red)+len(v.Suite.Flaky) > 0 {
		return false
	}
	for _, s := range v.Symbols {
		if s.Blocked != "" || (s.Word == string(evidence.NotMeasured) && retried[s.Reason]) {
			return false
		}
	}
	return !inv.outside()
}
