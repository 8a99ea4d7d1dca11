package prove

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

// The adaptive limit of a run: so many times the tests' own time, and a floor
// for starting the process. It holds for the CPU that the tests use, and for a
// time in which they use none: what waits for ever need not be waited for. The
// wall limit is the backstop for those that do a little now and then.
const (
	LimitFactor = 10
	LimitFloor  = 2 * time.Second
)

// fewTests is how many of the likeliest tests are tried on a probe before all
// that reach the target are.
const fewTests = 4

// maxNominees is how many tests may fail on a probe and earn nothing before it
// is given up.
const maxNominees = 3

// Options say how far an attempt goes.
type Options struct {
	// Score tries every probe of every kind; otherwise an attempt stops at the
	// first certified kill of a result probe.
	Score bool
	// Tests restricts the tests that may vouch; empty: all that reach the target.
	Tests []string
	// Probe restricts the probes to those it accepts; nil: all.
	Probe func(lang.Probe) bool
	// Kinds restricts the kinds of probes; empty: all.
	Kinds []evidence.ProbeKind
	// Waived tells which probes a person signed away, with the reason.
	Waived func(evidence.Probe) (string, bool)
	// First names a probe (by operator and summary) and a test to try before the
	// others: those of a certificate that lapsed.
	First *evidence.Facts
}

// Outcome is what an attempt found. Certificates are those that Measurement
// names.
type Outcome struct {
	Measurement  evidence.Measurement
	Certificates []evidence.Certificate
}

// Attempt measures one target. A red test is a result, not an error; an error
// means that no run could be made or that ctx ended, and leaves nothing behind.
func (u *Unit) Attempt(ctx context.Context, symbol string, o Options) (Outcome, error) {
	s, ok := u.Today.Symbol(symbol)
	if !ok {
		return Outcome{}, fault.New(fault.NotFound, "not_found", "no symbol %s in this tree", symbol)
	}
	tests := u.candidates(symbol, o)
	a := &attempt{unit: u, symbol: s, options: o, tests: tests, target: u.target(s, tests)}
	switch {
	case len(o.Tests) > 0:
		a.target.Partial = evidence.PartialTests
	case o.Probe != nil:
		a.target.Partial = evidence.PartialProbes
	}
	if len(tests) == 0 {
		return a.outcome(string(evidence.NoCoverage), "no test reaches it")
	}
	wide := o.Score || o.Probe != nil || (len(o.Kinds) > 0 && !slices.Contains(o.Kinds, evidence.ProbeResult))
	probes := u.Suite.Probes(symbol, u.Baselines[:], wide)
	if len(o.Kinds) > 0 {
		probes = slices.DeleteFunc(slices.Clone(probes), func(p lang.Probe) bool { return !slices.Contains(o.Kinds, p.Kind) })
	}
	if o.Probe != nil {
		probes = slices.DeleteFunc(slices.Clone(probes), func(p lang.Probe) bool { return !o.Probe(p) })
	}
	for _, p := range a.ordered(probes) {
		if err := a.try(ctx, p); err != nil {
			return Outcome{}, err
		}
		if o.Score || o.Probe != nil {
			continue // convictions later, so that they can share their controls
		}
		if err := a.prosecute(ctx); err != nil {
			return Outcome{}, err
		}
		if a.proven {
			break
		}
	}
	if err := a.prosecute(ctx); err != nil {
		return Outcome{}, err
	}
	if len(a.trials) == 0 {
		return a.outcome("no_probe", "nothing in it can be changed by a probe of this version")
	}
	return a.outcome("", "")
}

// candidates are the tests that may vouch for a symbol, likeliest and fastest
// first.
func (u *Unit) candidates(symbol string, o Options) []string {
	tests := u.Reaching(symbol)
	if len(o.Tests) > 0 {
		tests = slices.DeleteFunc(slices.Clone(tests), func(t string) bool { return !slices.Contains(o.Tests, t) && !slices.Contains(o.Tests, topLevel(t)) })
	}
	if o.First != nil && slices.Contains(tests, o.First.Test) {
		rest := slices.DeleteFunc(slices.Clone(tests), func(t string) bool { return t == o.First.Test })
		tests = append([]string{o.First.Test}, rest...)
	}
	return tests
}

func (u *Unit) target(s lang.Symbol, tests []string) evidence.Target {
	var reached, reads []string
	for _, t := range tests {
		reached, reads = append(reached, u.Executed(t)...), append(reads, u.Consulted(t)...)
	}
	reached, reads = union(reached, nil), union(reads, nil)
	return evidence.Target{
		Language: u.Today.Scan.Project.Language, Project: u.Today.Scan.Project.Dir, Unit: u.ID,
		Symbol: s.ID, SymbolDigest: s.Digest, Tests: nonNil(tests), Reached: nonNil(reached), Reads: reads,
	}
}

func nonNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// attempt is the state of one [Unit.Attempt].
type attempt struct {
	unit    *Unit
	symbol  lang.Symbol
	options Options
	tests   []string
	target  evidence.Target
	trials  []evidence.Trial
	certs   []evidence.Certificate
	proven  bool
	endless bool // a probe hit the time limit twice, the second time alone

	charges  []charge                // kills that are not judged yet
	killer   string                  // the test that failed last: it is tried first
	controls map[string]evidence.Run // by test, the last one on the original
}

// charge is a probe on which a test failed: trials[trial] nominated it, kill is
// that test alone on the probe.
type charge struct {
	trial int
	probe lang.Probe
	test  string
	kill  evidence.Run
}

func (a *attempt) outcome(reason, detail string) (Outcome, error) {
	// What a certificate is bound to decides the measurement that names it, too.
	for _, c := range a.certs {
		f := c.Record().Facts
		a.target.Reached, a.target.Reads = union(a.target.Reached, sortedIDs(f.Reached)), union(a.target.Reads, sortedIDs(f.Reads))
	}
	a.target.Inputs = a.unit.Today.Inputs(a.target.Symbol, a.target.Unit, a.target.Reached, a.target.Reads)
	m, err := evidence.NewMeasurement(a.target, a.unit.Tree, a.trials, reason, detail)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Measurement: m, Certificates: a.certs}, nil
}

// ordered puts the probe of a lapsed certificate first.
func (a *attempt) ordered(probes []lang.Probe) []lang.Probe {
	f := a.options.First
	if f == nil {
		return probes
	}
	known := func(p lang.Probe) bool { return p.Operator == f.Probe.Operator && p.Summary == f.Probe.Summary }
	out := slices.Clone(probes)
	slices.SortStableFunc(out, func(x, y lang.Probe) int {
		switch {
		case known(x) && !known(y):
			return -1
		case known(y) && !known(x):
			return 1
		}
		return 0
	})
	return out
}

// try makes one trial: nominate with the reaching tests, and charge the test that
// failed.
func (a *attempt) try(ctx context.Context, p lang.Probe) error {
	if o := a.options; o.Waived != nil {
		if why, ok := o.Waived(p.Probe); ok {
			a.trials = append(a.trials, evidence.Trial{Probe: p.Probe, Reason: string(evidence.Waived), Note: why})
			return nil
		}
	}
	r, err := a.nominate(ctx, p, a.tests)
	if err != nil {
		return err
	}
	tr := evidence.Trial{Probe: p.Probe, Run: r}
	switch evidence.Judge(r).Status {
	case evidence.Killed:
		c, err := a.charge(ctx, p, r)
		if err != nil {
			return err
		}
		c.trial = len(a.trials)
		a.charges = append(a.charges, c)
	case evidence.TimedOut:
		// Alone, so that a busy machine is not taken for an endless loop; once a
		// target, and not where one test used up its own CPU time, which no other
		// process can make longer. A timeout is never credited either way.
		if a.endless || (r.Record().Exit.Stopped == evidence.StopCPU && len(r.Record().Tests) == 1) {
			break
		}
		if tr.Confirmed, err = a.unit.run(ctx, lang.Request{Purpose: evidence.PurposeProbe, Probe: &p, Tests: r.Record().Tests, FailFast: true}, a.unit.limits(a.tests)); err != nil {
			return err
		}
		a.endless = evidence.Judge(tr.Confirmed).Status == evidence.TimedOut
	case evidence.Survived:
		tr.Note, tr.Values = infection(r)
	}
	a.trials = append(a.trials, tr)
	return nil
}

// charge names the test that failed first in a nominating run, with its run
// alone on the probe, which is the nominating one when that had no other test.
func (a *attempt) charge(ctx context.Context, p lang.Probe, r evidence.Run) (charge, error) {
	c := charge{probe: p, test: evidence.Judge(r).Failure.Test, kill: r}
	a.killer = c.test
	if ts := r.Record().Tests; len(ts) == 1 && ts[0] == c.test {
		return c, nil
	}
	var err error
	c.kill, err = a.unit.alone(ctx, c.test, &p)
	return c, err
}

// prosecute judges every charge. Where one earns nothing, because the test fails
// by chance or needs other tests, the rest of the tests may still notice the
// probe: a flaky neighbour costs nothing. When none of them does, the first kill
// and its reason stay.
func (a *attempt) prosecute(ctx context.Context) error {
	charges := a.charges
	a.charges = nil
	for _, c := range charges {
		if err := a.prosecuteOne(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) prosecuteOne(ctx context.Context, c charge) error {
	tests, tr := a.tests, &a.trials[c.trial]
	r := tr.Run
	for range maxNominees {
		cert, err := a.convict(ctx, c)
		switch {
		case err == nil:
			tr.Run, tr.Certificate, tr.Reason = r, cert.Digest(), ""
			a.certs = append(a.certs, cert)
			a.proven = a.proven || c.probe.Kind == evidence.ProbeResult
			return nil
		case !credible(err):
			return err
		case tr.Reason == "":
			tr.Reason = string(fault.From(err).Code)
		}
		tests = slices.DeleteFunc(slices.Clone(tests), func(t string) bool { return t == c.test || strings.HasPrefix(c.test, t+"/") })
		a.killer = ""
		if len(tests) == 0 {
			return nil
		}
		if r, err = a.nominate(ctx, c.probe, tests); err != nil {
			return err
		}
		if evidence.Judge(r).Status != evidence.Killed {
			return nil
		}
		if c, err = a.charge(ctx, c.probe, r); err != nil {
			return err
		}
	}
	return nil
}

// nominate looks for a test that fails on the probe: the one that noticed the
// last probe, or the likeliest few, then all that reach the target.
func (a *attempt) nominate(ctx context.Context, p lang.Probe, tests []string) (evidence.Run, error) {
	req := lang.Request{Purpose: evidence.PurposeProbe, Probe: &p, FailFast: true}
	switch {
	case len(tests) > 1 && slices.Contains(tests, a.killer):
		req.Tests = []string{a.killer}
	case len(tests) > 2*fewTests:
		req.Tests = tests[:fewTests]
	}
	if len(req.Tests) > 0 {
		r, err := a.unit.run(ctx, req, a.unit.limits(req.Tests))
		if err != nil || evidence.Judge(r).Status == evidence.Killed {
			return r, err
		}
	}
	req.Tests, req.Differ = tests, true
	return a.unit.run(ctx, req, a.unit.limits(req.Tests))
}

// convict repeats a kill in fresh processes: after the test alone on the probe,
// alone on the original, and on the probe again. An error that is [credible] says
// why the kill earns no certificate.
func (a *attempt) convict(ctx context.Context, c charge) (evidence.Certificate, error) {
	u, p, test := a.unit, c.probe, c.test
	if !slices.Contains(u.Tests, test) {
		return evidence.Certificate{}, fault.New(fault.Unmeasured, evidence.CodeFlaky, "%s cannot vouch", test)
	}
	if err := u.steadiness.refused(test); err != nil {
		return evidence.Certificate{}, err
	}
	own, ok := u.Today.TestSymbol(u.ID, test)
	if !ok {
		return evidence.Certificate{}, fault.New(fault.Unmeasured, evidence.CodeMismatch, "%s has no source of its own", test)
	}
	rs := evidence.Runs{Baselines: u.Baselines, Null: u.Null, Planted: u.Planted, Kill: c.kill}
	var err error
	if rs.Control, err = a.control(ctx, c); err != nil {
		return evidence.Certificate{}, err
	}
	if err := evidence.Steady(test, rs.Control); err != nil {
		err = u.whyRedAlone(ctx, test, err)
		if credible(err) {
			u.steadiness.setAside(test, err)
		}
		return evidence.Certificate{}, err
	}
	if rs.Repeat, err = u.alone(ctx, test, &p); err != nil {
		return evidence.Certificate{}, err
	}
	if evidence.Steady(test, rs.Kill) == nil && evidence.Steady(test, rs.Repeat) == nil {
		if rs.Steady, err = u.steady(ctx, p, test); err != nil {
			return evidence.Certificate{}, err
		}
	}
	f := u.facts(a.symbol, p, test, own, rs.Control)
	if f.Reads[evidence.ReadProcess] != "" {
		return u.onPlain(ctx, p, f, rs)
	}
	cert, err := evidence.NewDiscrimination(f, rs)
	if err != nil {
		return evidence.Certificate{}, err
	}
	return u.plain.confirm(ctx, u, p, cert, f, rs)
}

// control is a run of the charged test alone on the original, made after the
// kill: kills that came before the same control share it. What another test did
// first in a suite (a sync.Once, a cache) this one does itself when it is alone:
// the control, which is observed, shows all that it depends on.
func (a *attempt) control(ctx context.Context, c charge) (evidence.Run, error) {
	if r, ok := a.controls[c.test]; ok && r.Record().Started.After(c.kill.Record().Started) {
		return r, nil
	}
	req := lang.Request{Purpose: evidence.PurposeControl, Tests: []string{c.test}, Reach: true}
	r, err := a.unit.run(ctx, req, a.unit.limits(req.Tests))
	if err != nil {
		return evidence.Run{}, err
	}
	if a.controls == nil {
		a.controls = map[string]evidence.Run{}
	}
	a.controls[c.test] = r
	return r, nil
}

// whyRedAlone tells chance from a test that needs another one before it: it runs
// the test alone on the original again and again.
func (u *Unit) whyRedAlone(ctx context.Context, test string, cause error) error {
	if !u.hasOthers(test) {
		return cause
	}
	for range evidence.SteadyRounds {
		r, err := u.alone(ctx, test, nil)
		if err != nil {
			return err
		}
		if r.Outcome(test) != evidence.Failed {
			return cause
		}
	}
	return fault.New(fault.Unmeasured, evidence.CodeOrderDependent, "%s passes after other tests, and fails alone in a fresh process", test)
}

// facts binds a certificate to the digests of everything that can change it.
func (u *Unit) facts(s lang.Symbol, p lang.Probe, test string, own lang.Symbol, alone evidence.Run) evidence.Facts {
	t, seen := u.Today, alone.Reach()
	reached := map[string]evidence.Digest{s.ID: s.Digest, own.ID: own.Digest}
	for _, id := range union(u.Executed(test), seen.Of(test)) {
		sy, ok := t.Symbol(id)
		if ok {
			reached[id] = sy.Digest
		}
	}
	reads := map[string]evidence.Digest{}
	for _, name := range union(u.Consulted(test), seen.Reads(test)) {
		reads[name] = t.Read(name)
	}
	return evidence.Facts{
		Reads:    reads,
		Language: t.Scan.Project.Language, Project: t.Scan.Project.Dir, Unit: u.ID,
		Symbol: s.ID, SymbolDigest: s.Digest, Probe: p.Probe, Test: test, TestDigest: own.Digest, Reached: reached,
		Setup: t.Setup(u.ID), Data: t.units[u.ID].Data, Locks: t.Scan.Locks, Toolchain: t.Scan.Toolchain, Driver: t.Scan.Driver,
	}
}

// credible tells a verdict (the kill earns nothing) from an error of ours or an
// end of the work.
func credible(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && (e.Kind == fault.Unmeasured || e.Kind == fault.Negative)
}

// alone runs one test in a fresh process, on a probe or, without one, on the
// original.
func (u *Unit) alone(ctx context.Context, test string, p *lang.Probe) (evidence.Run, error) {
	req := lang.Request{Purpose: evidence.PurposeControl, Tests: []string{test}}
	if p != nil {
		req.Purpose, req.Probe = evidence.PurposeProbe, p
	}
	return u.run(ctx, req, u.limits(req.Tests))
}

// run makes one run and turns a cancelled one into an error, so that half a
// measurement is never recorded.
func (u *Unit) run(ctx context.Context, r lang.Request, l evidence.Limits) (evidence.Run, error) {
	r.Limits = l
	run, err := u.Suite.Run(ctx, r)
	if err != nil {
		return evidence.Run{}, err
	}
	if run.Record().Exit.Stopped == evidence.StopCancelled {
		return evidence.Run{}, fault.Wrap(context.Cause(ctx), fault.Interrupted, "interrupted", "stopped")
	}
	return run, nil
}

// limits adapts the limits of a run to the tests' own time.
func (u *Unit) limits(tests []string) evidence.Limits {
	var own time.Duration
	for _, t := range tests {
		own += u.durations[t]
	}
	cpu := LimitFactor*own + LimitFloor
	return evidence.Limits{CPU: cpu, Idle: cpu, Wall: 3*cpu + 5*time.Second, OutputBytes: outputKept, Processes: 512, MemoryBytes: 8 << 30}
}

// infection says of a probe that all tests survived whether it changed a value
// at all, and which.
func infection(r evidence.Run) (note string, values []string) {
	ran := false
	for _, e := range r.Events() {
		switch e.Kind {
		case evidence.EventDiffer:
			return "infected_not_asserted", e.Values
		case evidence.EventSites:
			ran = true // it was executed, and has no value that could be compared
		}
	}
	if ran {
		return "infected_not_asserted", nil
	}
	return "not_infected", nil
}
