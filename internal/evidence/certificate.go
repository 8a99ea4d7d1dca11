package evidence

import (
	"encoding/json"
	"fmt"

	"github.com/proveto/proveto/internal/fault"
)

// CertificateSchema names the stored form of a certificate.
const CertificateSchema = "proveto/certificate/v1"

// KindDiscrimination is the kind of certificate that a test earns: it accepted
// the original and rejected a probe.
const KindDiscrimination = "discrimination"

// Facts are what a certificate is bound to. When one of the digests is no longer
// today's, the certificate is stale.
type Facts struct {
	Language     string            `json:"language"`
	Project      string            `json:"project"` // directory of the module, relative to the checkout; "." for the root
	Unit         string            `json:"unit"`    // what the tests are built as: a Go package's import path
	Symbol       string            `json:"symbol"`
	SymbolDigest Digest            `json:"symbol_digest"`
	Probe        Probe             `json:"probe"`
	Test         string            `json:"test"` // full name of the crediting leaf test
	TestDigest   Digest            `json:"test_digest"`
	Reached      map[string]Digest `json:"reached"` // project symbols that the test executed, test code included
	// Reads are the files of the checkout and the variables that the test was seen
	// to consult, by the names of [EventReads], as they were then.
	Reads     map[string]Digest `json:"reads,omitempty"`
	Setup     Digest            `json:"setup"` // code that runs before and around the tests: initialisers of all that is linked, TestMain
	Data      Digest            `json:"data"`  // files beside the sources that the tests can read
	Locks     Digest            `json:"locks"` // manifests and lock files
	Toolchain string            `json:"toolchain"`
	Driver    string            `json:"driver"`
}

// Runs are the measurements behind a certificate, in the order in which they
// were made.
type Runs struct {
	Baselines [2]Run // the whole suite on the original, the second shuffled
	Null      Run    // the switch on, nothing changed
	Planted   Run    // a failing assertion planted in a test of the same suite
	Kill      Run    // the crediting test alone on the probe
	Control   Run    // the same test alone on the original, after Kill
	Repeat    Run    // the same test alone on the probe, after Control
	// Steady are runs of the crediting test alone, made in random order once it had
	// killed for the first time: SteadyRounds on the original and as many on one
	// probe, of any symbol. All certificates by this test share them.
	Steady []Run
	Plain  *Run // optional: the same test on a plainly mutated build
}

// RunDigests names the runs of a certificate.
type RunDigests struct {
	Baselines [2]Digest `json:"baselines"`
	Null      Digest    `json:"null"`
	Planted   Digest    `json:"planted"`
	Kill      Digest    `json:"kill"`
	Control   Digest    `json:"control"`
	Repeat    Digest    `json:"repeat"`
	Steady    []Digest  `json:"steady"`
	Plain     Digest    `json:"plain,omitempty"`
}

// All lists the digests, without the absent plain run.
func (d RunDigests) All() []Digest {
	out := append([]Digest{d.Baselines[0], d.Baselines[1], d.Null, d.Planted, d.Kill, d.Control, d.Repeat}, d.Steady...)
	if d.Plain != "" {
		out = append(out, d.Plain)
	}
	return out
}

// Assertion is the assertion that failed on the probe.
type Assertion struct {
	File          string `json:"file"`
	Line          int    `json:"line"`
	Message       string `json:"message"` // of the first kill; clipped
	MessageDigest Digest `json:"message_digest"`
}

// CertificateRecord is the stored form of a certificate. Of a gate's, Facts,
// Assertion, Artifact and Runs are absent; of a test's, Gate is.
type CertificateRecord struct {
	Schema    string      `json:"schema"`
	Kind      string      `json:"kind"`
	Snapshot  Tree        `json:"snapshot"` // the original, or the good subject
	Facts     Facts       `json:"facts,omitzero"`
	Assertion Assertion   `json:"assertion,omitzero"`
	Isolation Isolation   `json:"isolation"`
	Artifact  Digest      `json:"artifact,omitzero"`
	Runs      RunDigests  `json:"runs,omitzero"`
	Gate      *GateRecord `json:"gate,omitempty"` // do not change it
}

// Cites lists the digests of the runs behind the certificate, whatever its kind.
func (r CertificateRecord) Cites() []Digest {
	if r.Gate != nil {
		return r.Gate.All()
	}
	return r.Runs.All()
}

// Certificate says that a check accepted the real subject and rejected a probe.
// It is derived from runs; there is no other way to make one.
type Certificate struct {
	rec    CertificateRecord
	body   []byte
	digest Digest
}

// NewDiscrimination derives a certificate for a test from runs, or says with a
// [fault.Error] why the runs do not earn one. The code is the reason that is
// shown: survived, flaky, runner_blind, switch_sensitive and so on.
func NewDiscrimination(f Facts, rs Runs) (Certificate, error) {
	if err := sameSubject(f, rs); err != nil {
		return Certificate{}, err
	}
	if err := greenOriginal(f.Test, rs); err != nil {
		return Certificate{}, err
	}
	if err := HonestRunner(rs.Planted); err != nil {
		return Certificate{}, err
	}
	kill, err := killedBy(f.Test, rs.Kill)
	if err != nil {
		return Certificate{}, err
	}
	repeat, err := killedBy(f.Test, rs.Repeat)
	if err != nil {
		return Certificate{}, fault.Wrap(err, fault.Unmeasured, CodeFlaky, "the repeat disagreed with the first kill")
	}
	if kill.File != repeat.File || kill.Line != repeat.Line {
		return Certificate{}, fault.New(fault.Unmeasured, CodeFlaky, "the first kill failed at %s:%d, the repeat at %s:%d",
			kill.File, kill.Line, repeat.File, repeat.Line)
	}
	if err := steady(f.Test, rs.Steady); err != nil {
		return Certificate{}, err
	}
	digests := RunDigests{
		Baselines: [2]Digest{rs.Baselines[0].digest, rs.Baselines[1].digest},
		Null:      rs.Null.digest, Planted: rs.Planted.digest,
		Kill: rs.Kill.digest, Control: rs.Control.digest, Repeat: rs.Repeat.digest,
	}
	for _, r := range rs.Steady {
		digests.Steady = append(digests.Steady, r.digest)
	}
	if rs.Plain == nil && f.Reads[ReadProcess] != "" {
		return Certificate{}, fault.New(fault.Unmeasured, CodeFastLane, "%s looks at processes, and no build without a switch was tried", f.Test)
	}
	if rs.Plain != nil {
		if _, err := killedBy(f.Test, *rs.Plain); err != nil {
			return Certificate{}, fault.Wrap(err, fault.Unmeasured, CodeFastLane, "a plainly mutated build without a switch disagreed")
		}
		digests.Plain = rs.Plain.digest
	}
	rec := CertificateRecord{
		Schema: CertificateSchema, Kind: KindDiscrimination, Snapshot: rs.Kill.rec.Snapshot, Facts: f,
		Assertion: Assertion{File: kill.File, Line: kill.Line, Message: kill.Message, MessageDigest: DigestOf([]byte(kill.Message))},
		Isolation: weakest(rs), Artifact: rs.Kill.rec.Artifact, Runs: digests,
	}
	return seal(rec)
}

func seal(rec CertificateRecord) (Certificate, error) {
	body, err := Canonical(rec)
	if err != nil {
		return Certificate{}, err
	}
	return Certificate{rec: rec, body: body, digest: DigestOf(body)}, nil
}

// Rederive makes the stored certificate anew from its stored runs and compares
// the bytes. Any difference, and any run that cannot be had, is an error; a
// difference has kind tampered.
func Rederive(body []byte, runFunc func(Digest) (Run, error)) (Certificate, error) {
	var rec CertificateRecord
	if err := json.Unmarshal(body, &rec); err != nil {
		return Certificate{}, fault.Wrap(err, fault.Tampered, CodeMismatch, "certificate does not parse")
	}
	if rec.Schema != CertificateSchema || (rec.Kind != KindDiscrimination && rec.Kind != KindGate) || (rec.Kind == KindGate) != (rec.Gate != nil) {
		return Certificate{}, fault.New(fault.Tampered, CodeMismatch, "certificate has schema %q and kind %q, which this version cannot derive", rec.Schema, rec.Kind)
	}
	var err error
	load := func(d Digest) Run {
		if err != nil {
			return Run{}
		}
		var r Run
		r, err = runFunc(d)
		return r
	}
	var deriveFunc func() (Certificate, error)
	if rec.Kind == KindGate {
		f, rs := rederiveGate(*rec.Gate, load)
		deriveFunc = func() (Certificate, error) { return NewGate(f, rs) }
	} else {
		rs := loadRuns(rec.Runs, load)
		deriveFunc = func() (Certificate, error) { return NewDiscrimination(rec.Facts, rs) }
	}
	if err != nil {
		return Certificate{}, err
	}
	c, err := deriveFunc()
	if err != nil {
		return Certificate{}, fault.Wrap(err, fault.Tampered, CodeMismatch, "the stored runs do not earn this certificate")
	}
	if c.digest != DigestOf(body) {
		return Certificate{}, fault.New(fault.Tampered, CodeMismatch, "the stored runs derive certificate %s, not %s", c.digest.Short(), DigestOf(body).Short())
	}
	return c, nil
}

func loadRuns(d RunDigests, load func(Digest) Run) Runs {
	var rs Runs
	rs.Baselines = [2]Run{load(d.Baselines[0]), load(d.Baselines[1])}
	rs.Null, rs.Planted = load(d.Null), load(d.Planted)
	rs.Kill, rs.Control, rs.Repeat = load(d.Kill), load(d.Control), load(d.Repeat)
	for _, s := range d.Steady {
		rs.Steady = append(rs.Steady, load(s))
	}
	if d.Plain != "" {
		p := load(d.Plain)
		rs.Plain = &p
	}
	return rs
}

// Digest identifies the certificate.
func (c Certificate) Digest() Digest { return c.digest }

// Record is a copy of the stored form.
func (c Certificate) Record() CertificateRecord { return c.rec }

// Body is the canonical JSON of the record. Do not change it.
func (c Certificate) Body() []byte { return c.body }

// IsZero tells a certificate that was never derived.
func (c Certificate) IsZero() bool { return c.digest == "" }

// expected is what one run of a certificate must be about.
type expected struct {
	what    string
	run     Run
	purpose Purpose
	probe   Digest
	alone   bool
}

// sameSubject checks that every run is about the sealed tree, the executable and
// the probe that the facts name, made in the order that the certificate claims.
func sameSubject(f Facts, rs Runs) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Unmeasured, CodeMismatch, format, args...)
	}
	if f.Symbol == "" || f.Test == "" || f.SymbolDigest == "" || f.TestDigest == "" || f.Setup == "" {
		return bad("a certificate names a symbol, a test and what runs around it, with their digests")
	}
	if f.Probe.Symbol != f.Symbol {
		return bad("the probe breaks %s, not %s", f.Probe.Symbol, f.Symbol)
	}
	if f.Probe.Diff == "" {
		return bad("the probe has no diff")
	}
	if f.Reached[f.Symbol] != f.SymbolDigest {
		return bad("%s was not seen to execute %s", f.Test, f.Symbol)
	}
	for _, r := range []Run{rs.Baselines[0], rs.Baselines[1], rs.Control} {
		seen := r.Reach()
		for _, id := range seen.Of(f.Test) {
			if f.Reached[id] == "" {
				return bad("%s executed %s, whose digest is missing", f.Test, id)
			}
		}
		for _, name := range seen.Reads(f.Test) {
			if f.Reads[name] == "" {
				return bad("%s read %s, whose digest is missing", f.Test, name)
			}
		}
	}
	probe := f.Probe.Digest()
	want := []expected{
		{"first baseline", rs.Baselines[0], PurposeBaseline, "", false},
		{"second baseline", rs.Baselines[1], PurposeBaseline, "", false},
		{"null run", rs.Null, PurposeNull, "", false},
		{"planted run", rs.Planted, PurposePlanted, "", false},
		{"kill", rs.Kill, PurposeProbe, probe, true},
		{"control", rs.Control, PurposeControl, "", true},
		{"repeat", rs.Repeat, PurposeProbe, probe, true},
	}
	more, err := expectedSteady(rs.Steady)
	if err != nil {
		return err
	}
	want = append(want, more...)
	seen := map[Digest]bool{}
	for _, w := range want {
		rec := w.run.rec
		switch {
		case w.run.IsZero():
			return bad("the %s is missing", w.what)
		case seen[w.run.digest]:
			return bad("the %s is used twice", w.what)
		case rec.Purpose != w.purpose:
			return bad("the %s is a %s run", w.what, rec.Purpose)
		case rec.Probe != w.probe:
			return bad("the %s ran with probe %q", w.what, rec.Probe)
		case rec.Snapshot == "" || rec.Snapshot != rs.Kill.rec.Snapshot:
			return bad("the %s is about another snapshot", w.what)
		case rec.Artifact == "" || rec.Artifact != rs.Kill.rec.Artifact:
			return bad("the %s ran another executable", w.what)
		case w.alone && (len(rec.Tests) != 1 || rec.Tests[0] != f.Test):
			return bad("the %s did not run %s alone", w.what, f.Test)
		}
		seen[w.run.digest] = true
	}
	if !rs.Control.rec.Started.After(rs.Kill.rec.Started) || !rs.Repeat.rec.Started.After(rs.Control.rec.Started) {
		return bad("kill, control and repeat were not made in this order")
	}
	if rs.Plain != nil {
		p := rs.Plain.rec
		if p.Purpose != PurposePlain || p.Probe != probe || p.Snapshot != rs.Kill.rec.Snapshot || len(p.Tests) != 1 || p.Tests[0] != f.Test {
			return bad("the plain run is about something else")
		}
	}
	return nil
}

func greenOriginal(test string, rs Runs) error {
	green := []struct {
		what string
		run  Run
		code fault.Code
	}{
		{"the first baseline", rs.Baselines[0], CodeBaselineRed},
		{"the second, shuffled baseline", rs.Baselines[1], CodeOrderDependent},
		{"the null run (switch on, nothing changed)", rs.Null, CodeSwitchSensitive},
		{"the control", rs.Control, CodeFlaky},
	}
	for _, g := range green {
		rec := g.run.rec
		if rec.Report == ReportTampered {
			return fault.New(fault.Unmeasured, CodeTampered, "the report of %s was tampered with", g.what)
		}
		if rec.Report != ReportComplete {
			return fault.New(fault.Unmeasured, CodeIncomplete, "%s has no end mark", g.what)
		}
		if got := g.run.Outcome(test); got != Passed {
			return fault.New(fault.Unmeasured, g.code, "%s %s in %s", test, got, g.what)
		}
	}
	return nil
}

// HonestRunner checks that a planted failing assertion came out red: in the
// events and in the exit code. Otherwise the runner is blind and nothing that it
// reports is credited.
func HonestRunner(r Run) error {
	rec := r.rec
	if rec.Report == ReportTampered {
		return fault.New(fault.Unmeasured, CodeTampered, "the report of the planted run was tampered with")
	}
	red := rec.Report == ReportComplete && rec.Exit.Code != 0 && rec.Planted != "" && r.Outcome(rec.Planted) == Failed
	planted := false
	for _, e := range r.Failures() {
		planted = planted || (e.Test == rec.Planted && e.By == ByPlanted)
	}
	if !red || !planted {
		return fault.New(fault.Unmeasured, CodeRunnerBlind, "a failing assertion planted in %s did not come out red", rec.Planted)
	}
	return nil
}

// killedBy checks that the named leaf test failed by its own assertion.
func killedBy(test string, r Run) (Event, error) {
	j := Judge(r)
	if j.Status != Killed {
		kind := fault.Unmeasured
		if j.Status == Survived {
			kind = fault.Negative
		}
		return Event{}, fault.New(kind, j.Code, "%s: %s", test, j.Status)
	}
	for _, e := range r.Failures() {
		if e.Test == test && e.By == ByAssertion {
			return e, nil
		}
	}
	return Event{}, fault.New(fault.Unmeasured, CodeFlaky, "another test than %s failed", test)
}

func weakest(rs Runs) Isolation {
	iso := rs.Kill.rec.Isolation
	others := append([]Run{rs.Baselines[0], rs.Baselines[1], rs.Null, rs.Planted, rs.Control, rs.Repeat}, rs.Steady...)
	if rs.Plain != nil {
		others = append(others, *rs.Plain)
	}
	for _, r := range others {
		if r.rec.Isolation.Level.Rank() < iso.Level.Rank() {
			iso.Level = r.rec.Isolation.Level
		}
		if r.rec.Isolation.Network == Open {
			iso.Network = Open
		}
	}
	return iso
}

// String is for logs.
func (c Certificate) String() string {
	if g := c.rec.Gate; g != nil {
		return fmt.Sprintf("certificate %s: gate %s refuses %q", c.digest.Short(), g.Gate, g.Sabotage.Summary)
	}
	return fmt.Sprintf("certificate %s: %s rejects %q in %s", c.digest.Short(), c.rec.Facts.Test, c.rec.Facts.Probe.Summary, c.rec.Facts.Symbol)
}
