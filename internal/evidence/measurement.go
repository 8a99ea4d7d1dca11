package evidence

import (
	"encoding/json"

	"github.com/proveto/proveto/internal/fault"
)

// MeasurementSchema names the stored form of a measurement.
const MeasurementSchema = "proveto/measurement/v1"

// Trial is one probe of a symbol with the run that was made of it. Certificate
// is set when the kill was confirmed.
type Trial struct {
	Probe       Probe
	Reason      string // why no run was made: no_coverage, invalid, waived, pending; empty when Run is set
	Run         Run    // of all reaching tests, or of as many as were needed to see one fail
	Confirmed   Run    // a second run alone, for a timeout or a disagreement; zero when there was none
	Certificate Digest
	Note        string // not_infected or infected_not_asserted for survivors
	Values      []string
}

// TrialRecord is the stored form of a trial.
type TrialRecord struct {
	Probe       Probe    `json:"probe"`
	ProbeDigest Digest   `json:"probe_digest"`
	Status      Status   `json:"status"`
	Code        string   `json:"code,omitempty"`
	Run         Digest   `json:"run,omitempty"`
	Confirmed   Digest   `json:"confirmed,omitempty"`
	Certificate Digest   `json:"certificate,omitempty"`
	Test        string   `json:"test,omitempty"` // that noticed, credited or not
	Message     string   `json:"message,omitempty"`
	Note        string   `json:"note,omitempty"`
	Values      []string `json:"values,omitempty"` // original, changed; as seen while the tests stayed green
}

// What a choice by hand leaves out of a measurement.
const (
	PartialProbes = "probes"
	PartialTests  = "tests" // and perhaps probes: its survivors survived these tests only
)

// Target is what a measurement is about and the digest of everything that can
// change its outcome: an unchanged refuted target is not tried again.
type Target struct {
	Language     string   `json:"language"`
	Project      string   `json:"project"`
	Unit         string   `json:"unit"`
	Symbol       string   `json:"symbol"`
	SymbolDigest Digest   `json:"symbol_digest"`
	Tests        []string `json:"tests"`           // that reach it, in the order in which they were tried
	Reached      []string `json:"reached"`         // project symbols that these tests executed
	Reads        []string `json:"reads,omitempty"` // files and variables that these tests consulted
	// Partial says what a choice by hand left out: probes or tests. Such a
	// measurement adds trials to one that left out nothing, and refutes nothing.
	Partial string `json:"partial,omitempty"`
	Inputs  Digest `json:"inputs"` // of the symbol, the suite, what was reached, data, locks, toolchain, driver
}

// MeasurementRecord is the stored form of a measurement.
type MeasurementRecord struct {
	Schema   string        `json:"schema"`
	Snapshot Tree          `json:"snapshot"`
	Target   Target        `json:"target"`
	Word     Word          `json:"word"`
	Reason   string        `json:"reason,omitempty"`
	Detail   string        `json:"detail,omitempty"`
	Trials   []TrialRecord `json:"trials"`
}

// Measurement is what was measured about one symbol: the probes tried, how each
// ended, and the word that follows. Like a certificate it is derived from runs.
type Measurement struct {
	rec    MeasurementRecord
	body   []byte
	digest Digest
}

// NewMeasurement derives the word from the trials. With no trials at all, reason
// says why nothing could be measured (needs_setup, out_of_budget, no_coverage …)
// and detail is the sentence for people; with trials both are derived unless
// they add a fact about the attempt.
func NewMeasurement(t Target, tree Tree, trials []Trial, reason, detail string) (Measurement, error) {
	rec := MeasurementRecord{Schema: MeasurementSchema, Snapshot: tree, Target: t, Reason: reason, Detail: detail, Trials: []TrialRecord{}}
	for _, tr := range trials {
		r, err := tr.record(t)
		if err != nil {
			return Measurement{}, err
		}
		rec.Trials = append(rec.Trials, r)
	}
	rec.Word, rec.Reason = conclude(rec.Trials, reason)
	if t.Partial != "" && rec.Word == Refuted {
		rec.Word, rec.Reason = NotMeasured, "partial"
	}
	body, err := Canonical(rec)
	if err != nil {
		return Measurement{}, err
	}
	return Measurement{rec: rec, body: body, digest: DigestOf(body)}, nil
}

func (tr Trial) record(t Target) (TrialRecord, error) {
	if tr.Probe.Symbol != t.Symbol {
		return TrialRecord{}, fault.New(fault.Internal, CodeMismatch, "a probe of %s in a measurement of %s", tr.Probe.Symbol, t.Symbol)
	}
	r := TrialRecord{Probe: tr.Probe, ProbeDigest: tr.Probe.Digest(), Certificate: tr.Certificate, Note: tr.Note, Values: tr.Values}
	if tr.Run.IsZero() {
		r.Status = Status(tr.Reason)
		return r, nil
	}
	if tr.Run.rec.Probe != r.ProbeDigest {
		return TrialRecord{}, fault.New(fault.Internal, CodeMismatch, "run %s is not about probe %s", tr.Run.digest.Short(), r.ProbeDigest.Short())
	}
	j := Judge(tr.Run)
	r.Run, r.Status, r.Code, r.Test, r.Message = tr.Run.digest, j.Status, string(j.Code), j.Failure.Test, j.Failure.Message
	if !tr.Confirmed.IsZero() {
		if tr.Confirmed.rec.Probe != r.ProbeDigest {
			return TrialRecord{}, fault.New(fault.Internal, CodeMismatch, "the second run %s is not about probe %s", tr.Confirmed.digest.Short(), r.ProbeDigest.Short())
		}
		r.Confirmed = tr.Confirmed.digest
		if again := Judge(tr.Confirmed); again.Status != j.Status {
			r.Status, r.Code = Flaky, string(CodeFlaky)
		}
	}
	if r.Status == Killed && tr.Certificate == "" {
		// Nominated, never convicted.
		r.Status, r.Code = Flaky, string(CodeFlaky)
		if tr.Reason != "" {
			r.Code = tr.Reason
		}
	}
	return r, nil
}

// conclude is the rule of the four words for one symbol.
func conclude(trials []TrialRecord, reason string) (Word, string) {
	var results, survived, errored, timedOut, flaky, pending, waived int
	unsteady := ""
	for _, t := range trials {
		if t.Status == Killed && t.Probe.Kind == ProbeResult {
			return Proven, ""
		}
		if t.Probe.Kind != ProbeResult {
			continue
		}
		switch t.Status {
		case Survived:
			results, survived = results+1, survived+1
		case KilledByError:
			results, errored = results+1, errored+1
		case TimedOut:
			results, timedOut = results+1, timedOut+1
		case Flaky:
			results, flaky = results+1, flaky+1
			if unsteady == "" {
				unsteady = t.Code
			}
		case PendingProbe:
			results, pending = results+1, pending+1
		case Waived:
			waived++
		}
	}
	switch {
	case results > 0 && survived == results:
		return Refuted, "survived"
	case reason != "":
		return NotMeasured, reason
	case results == 0 && waived > 0:
		return NotMeasured, string(Waived)
	case results == 0:
		return NotMeasured, "no_probe"
	case pending > 0:
		return NotMeasured, "out_of_budget"
	case flaky > 0:
		if unsteady == "" {
			unsteady = string(CodeFlaky)
		}
		return NotMeasured, unsteady
	case errored > 0:
		return NotMeasured, "killed_by_error_only"
	case timedOut > 0:
		return NotMeasured, "timeout"
	}
	return NotMeasured, "no_probe"
}

// RederiveMeasurement makes the stored measurement anew from its stored runs and
// compares the bytes.
func RederiveMeasurement(body []byte, runFunc func(Digest) (Run, error)) (Measurement, error) {
	var rec MeasurementRecord
	if err := json.Unmarshal(body, &rec); err != nil {
		return Measurement{}, fault.Wrap(err, fault.Tampered, CodeMismatch, "measurement does not parse")
	}
	var trials []Trial
	for _, r := range rec.Trials {
		tr := Trial{Probe: r.Probe, Certificate: r.Certificate, Note: r.Note, Values: r.Values}
		var err error
		if r.Run == "" {
			tr.Reason = string(r.Status)
		} else if tr.Run, err = runFunc(r.Run); err != nil {
			return Measurement{}, err
		}
		if r.Run != "" && r.Status == Flaky {
			tr.Reason = r.Code
		}
		if r.Confirmed != "" {
			if tr.Confirmed, err = runFunc(r.Confirmed); err != nil {
				return Measurement{}, err
			}
		}
		trials = append(trials, tr)
	}
	m, err := NewMeasurement(rec.Target, rec.Snapshot, trials, rec.Reason, rec.Detail)
	if err != nil {
		return Measurement{}, fault.Wrap(err, fault.Tampered, CodeMismatch, "the stored runs do not derive this measurement")
	}
	if m.digest != DigestOf(body) {
		return Measurement{}, fault.New(fault.Tampered, CodeMismatch, "the stored runs derive measurement %s, not %s", m.digest.Short(), DigestOf(body).Short())
	}
	return m, nil
}

// Digest identifies the measurement.
func (m Measurement) Digest() Digest { return m.digest }

// Record is a copy of the stored form.
func (m Measurement) Record() MeasurementRecord { return m.rec }

// Body is the canonical JSON of the record. Do not change it.
func (m Measurement) Body() []byte { return m.body }
