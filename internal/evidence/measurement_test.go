package evidence_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// trial is a probe of a kind with a run that ended in a way.
func trial(t *testing.T, kind evidence.ProbeKind, way string, certified bool) evidence.Trial {
	t.Helper()
	s := honest()
	p := s.facts.Probe
	p.Kind = kind
	d := s.runs["kill"]
	d.rec.Probe, d.rec.Nonce = p.Digest(), string(kind)+way
	switch way {
	case "green":
		green("kill")(s)
	case "panic":
		d.events = fail(evidence.ByPanic, 9)
	case "time":
		d.rec.Exit.Stopped = evidence.StopCPU
	case "tampered":
		d.rec.Report = evidence.ReportTampered
	}
	r, err := evidence.RecordRun(d.rec, d.events)
	if err != nil {
		t.Fatal(err)
	}
	tr := evidence.Trial{Probe: p, Run: r}
	if certified {
		tr.Certificate = digest("certificate")
	}
	return tr
}

func TestMeasurementWord(t *testing.T) {
	t.Parallel()
	result := func(way string, certified bool) evidence.Trial { return trial(t, evidence.ProbeResult, way, certified) }
	other := func(way string, certified bool) evidence.Trial {
		return trial(t, evidence.ProbeCondition, way, certified)
	}
	refused := result("red", false)
	refused.Reason = string(evidence.CodeOrderDependent)
	waived := evidence.Trial{Probe: result("green", false).Probe, Reason: string(evidence.Waived)}
	pending := evidence.Trial{Probe: waived.Probe, Reason: string(evidence.PendingProbe)}
	tests := []struct {
		name   string
		trials []evidence.Trial
		reason string
		word   evidence.Word
		want   string
	}{
		{"certified kill of a result", []evidence.Trial{result("green", false), result("red", true)}, "", evidence.Proven, ""},
		{"certified kill of another probe", []evidence.Trial{other("red", true)}, "", evidence.NotMeasured, "no_probe"},
		{"the result survived, another probe did not", []evidence.Trial{result("green", false), other("red", true)}, "", evidence.Refuted, "survived"},
		{"survived", []evidence.Trial{result("green", false)}, "", evidence.Refuted, "survived"},
		{"another probe survived", []evidence.Trial{other("green", false)}, "", evidence.NotMeasured, "no_probe"},
		{"nominated, never convicted", []evidence.Trial{result("red", false)}, "", evidence.NotMeasured, "flaky"},
		{"refused for a reason", []evidence.Trial{refused}, "", evidence.NotMeasured, "order_dependent"},
		{"tampered", []evidence.Trial{result("tampered", false)}, "", evidence.NotMeasured, "report_tampered"},
		{"survived and crashed", []evidence.Trial{result("green", false), result("panic", false)}, "", evidence.NotMeasured, "killed_by_error_only"},
		{"out of time", []evidence.Trial{result("time", false)}, "", evidence.NotMeasured, "timeout"},
		{"waived", []evidence.Trial{waived}, "", evidence.NotMeasured, "waived"},
		{"waived, and another crashed", []evidence.Trial{waived, result("panic", false)}, "", evidence.NotMeasured, "killed_by_error_only"},
		{"waived, and another survived", []evidence.Trial{waived, result("green", false)}, "", evidence.Refuted, "survived"},
		{"waived before that was a reason", []evidence.Trial{waived}, "no_probe", evidence.NotMeasured, "no_probe"},
		{"pending", []evidence.Trial{result("green", false), pending}, "", evidence.NotMeasured, "out_of_budget"},
		{"survived and ran out of time", []evidence.Trial{result("green", false), result("time", false)}, "", evidence.NotMeasured, "timeout"},
		{"ran out of time and survived", []evidence.Trial{result("time", false), result("green", false)}, "", evidence.NotMeasured, "timeout"},
		{"survived and was never convicted", []evidence.Trial{result("green", false), refused, result("red", false)}, "", evidence.NotMeasured, "order_dependent"},
		{"crashed and was never convicted", []evidence.Trial{result("panic", false), refused}, "", evidence.NotMeasured, "order_dependent"},
		{"ran out of time and crashed", []evidence.Trial{result("time", false), result("panic", false)}, "", evidence.NotMeasured, "killed_by_error_only"},
		{"never convicted and pending", []evidence.Trial{refused, pending}, "", evidence.NotMeasured, "out_of_budget"},
		{"only pending", []evidence.Trial{pending}, "", evidence.NotMeasured, "out_of_budget"},
		{"out of time only once", []evidence.Trial{again(t, result("time", false), "green")}, "", evidence.NotMeasured, "flaky"},
		{"out of time twice", []evidence.Trial{again(t, result("time", false), "time")}, "", evidence.NotMeasured, "timeout"},
		{"another probe first", []evidence.Trial{other("red", true), result("red", true)}, "", evidence.Proven, ""},
		{"another probe, then a survivor", []evidence.Trial{other("time", false), result("green", false)}, "", evidence.Refuted, "survived"},
		{"survived, and something was said", []evidence.Trial{result("green", false)}, "limit", evidence.Refuted, "survived"},
		{"not all survived, and something was said", []evidence.Trial{result("green", false), result("panic", false)}, "limit", evidence.NotMeasured, "limit"},
		{"another probe, and something was said", []evidence.Trial{other("green", false)}, "limit", evidence.NotMeasured, "limit"},
		{"nothing tried, nothing said", nil, "", evidence.NotMeasured, "no_probe"},
		{"nothing tried", nil, "no_coverage", evidence.NotMeasured, "no_coverage"},
	}
	for _, tt := range tests {
		m, err := evidence.NewMeasurement(target(), tree, tt.trials, tt.reason, "")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if rec := m.Record(); rec.Word != tt.word || rec.Reason != tt.want {
			t.Errorf("%s: %s (%s), want %s (%s)", tt.name, rec.Word, rec.Reason, tt.word, tt.want)
		}
		from := func(d evidence.Digest) (evidence.Run, error) {
			for _, tr := range tt.trials {
				for _, r := range []evidence.Run{tr.Run, tr.Confirmed} {
					if !r.IsZero() && r.Digest() == d {
						return r, nil
					}
				}
			}
			return evidence.Run{}, fault.New(fault.NotFound, "not_found", "no run %s", d)
		}
		again, err := evidence.RederiveMeasurement(m.Body(), from)
		if err != nil || !bytes.Equal(again.Body(), m.Body()) || again.Digest() != m.Digest() {
			t.Errorf("%s: RederiveMeasurement = %v, want the same bytes", tt.name, err)
		}
		if tt.word == evidence.Proven {
			continue
		}
		lie := bytes.Replace(m.Body(), []byte(`"word":"`+string(tt.word)), []byte(`"word":"proven`), 1)
		_, err = evidence.RederiveMeasurement(lie, from)
		mustRefuse(t, tt.name+", and says proven", err, fault.Tampered,
			fmt.Sprintf("the stored runs derive measurement %s, not %s", m.Digest().Short(), evidence.DigestOf(lie).Short()))
	}
}

// again gives a trial a second run that ended in a way.
func again(t *testing.T, tr evidence.Trial, way string) evidence.Trial {
	t.Helper()
	tr.Confirmed = trial(t, tr.Probe.Kind, way, false).Run
	return tr
}

func target() evidence.Target {
	return evidence.Target{Language: "go", Project: ".", Unit: "example.test/calc", Symbol: symbol, SymbolDigest: digest("symbol"), Tests: []string{testName}, Reached: []string{symbol}, Inputs: digest("inputs")}
}

func TestTrialIsStoredAsItWasSeen(t *testing.T) {
	t.Parallel()
	red := trial(t, evidence.ProbeResult, "red", true)
	red.Note, red.Values = "n", []string{"6", "0"}
	timedOut := again(t, trial(t, evidence.ProbeResult, "time", false), "time")
	unsure := again(t, trial(t, evidence.ProbeResult, "time", false), "green")
	nominated := trial(t, evidence.ProbeResult, "red", false)
	crashed := trial(t, evidence.ProbeResult, "panic", false)
	record := func(tr evidence.Trial, st evidence.Status, code string) evidence.TrialRecord {
		r := evidence.TrialRecord{Probe: tr.Probe, ProbeDigest: tr.Probe.Digest(), Status: st, Code: code, Run: tr.Run.Digest(), Certificate: tr.Certificate, Note: tr.Note, Values: tr.Values}
		if !tr.Confirmed.IsZero() {
			r.Confirmed = tr.Confirmed.Digest()
		}
		return r
	}
	noticed := func(r evidence.TrialRecord) evidence.TrialRecord {
		r.Test, r.Message = testName, "Double(3) = 0, want 6"
		return r
	}
	want := []evidence.TrialRecord{
		noticed(record(red, evidence.Killed, "")),
		record(timedOut, evidence.TimedOut, "timeout"),
		record(unsure, evidence.Flaky, "flaky"),
		noticed(record(nominated, evidence.Flaky, "flaky")),
		noticed(record(crashed, evidence.KilledByError, "killed_by_error")),
		{Probe: red.Probe, ProbeDigest: red.Probe.Digest(), Status: evidence.PendingProbe},
	}
	m, err := evidence.NewMeasurement(target(), tree, []evidence.Trial{red, timedOut, unsure, nominated, crashed, {Probe: red.Probe, Reason: "pending"}}, "", "a detail")
	if err != nil {
		t.Fatal(err)
	}
	wanted := evidence.MeasurementRecord{Schema: "proveto/measurement/v1", Snapshot: tree, Target: target(), Word: evidence.Proven, Detail: "a detail", Trials: want}
	if d := cmp.Diff(wanted, m.Record()); d != "" {
		t.Error(d)
	}
	if m.Digest() != evidence.DigestOf(m.Body()) {
		t.Errorf("the measurement says it has digest %s, its body has %s", m.Digest(), evidence.DigestOf(m.Body()))
	}
	lost := errors.New("the disk is gone")
	for _, tt := range []struct {
		what    string
		missing evidence.Digest
	}{{"first", unsure.Run.Digest()}, {"second", unsure.Confirmed.Digest()}} {
		m, err := evidence.NewMeasurement(target(), tree, []evidence.Trial{unsure}, "", "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := evidence.RederiveMeasurement(m.Body(), func(d evidence.Digest) (evidence.Run, error) {
			switch d {
			case tt.missing:
				return evidence.Run{}, lost
			case unsure.Run.Digest():
				return unsure.Run, nil
			}
			return unsure.Confirmed, nil
		})
		if !errors.Is(err, lost) || err.Error() != lost.Error() || got.Digest() != "" {
			t.Errorf("without the %s run: %v", tt.what, err)
		}
	}
}

func TestMeasurementIsRefused(t *testing.T) {
	t.Parallel()
	good := trial(t, evidence.ProbeResult, "green", false)
	foreign, swapped, unsure := good, good, good
	foreign.Probe.Symbol = "another"
	swapped.Run = trial(t, evidence.ProbeCondition, "green", false).Run
	unsure.Confirmed = swapped.Run
	for _, tt := range []struct {
		name, says string
		tr         evidence.Trial
	}{
		{"a probe of another symbol", "a probe of another in a measurement of " + symbol, foreign},
		{"a run of another probe", fmt.Sprintf("run %s is not about probe %s", swapped.Run.Digest().Short(), swapped.Probe.Digest().Short()), swapped},
		{"a second run of another probe", fmt.Sprintf("the second run %s is not about probe %s", swapped.Run.Digest().Short(), good.Probe.Digest().Short()), unsure},
	} {
		m, err := evidence.NewMeasurement(target(), tree, []evidence.Trial{good, tt.tr}, "", "")
		mustRefuse(t, tt.name, err, fault.Internal, tt.says)
		if m.Body() != nil {
			t.Errorf("%s: a measurement came out", tt.name)
		}
	}
	m, err := evidence.NewMeasurement(target(), tree, []evidence.Trial{good}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = evidence.RederiveMeasurement(m.Body()[:20], nil)
	mustRefuse(t, "half of it", err, fault.Tampered, "measurement does not parse: ")
	_, err = evidence.RederiveMeasurement(m.Body(), func(evidence.Digest) (evidence.Run, error) { return swapped.Run, nil })
	mustRefuse(t, "a run of another probe, stored", err, fault.Tampered, "the stored runs do not derive this measurement: run ")
}

// A choice by hand proves what it proves, and refutes nothing.
func TestPartialMeasurementRefutesNothing(t *testing.T) {
	t.Parallel()
	part := target()
	part.Partial = evidence.PartialTests
	for way, want := range map[string]evidence.Word{"green": evidence.NotMeasured, "red": evidence.Proven} {
		tr := trial(t, evidence.ProbeResult, way, way == "red")
		m, err := evidence.NewMeasurement(part, tree, []evidence.Trial{tr}, "", "")
		if err != nil || m.Record().Word != want {
			t.Errorf("%s: %s, %v, want %s", way, m.Record().Word, err, want)
			continue
		}
		again, err := evidence.RederiveMeasurement(m.Body(), func(evidence.Digest) (evidence.Run, error) { return tr.Run, nil })
		if err != nil || again.Digest() != m.Digest() {
			t.Errorf("%s: derived again: %s, %v", way, again.Digest().Short(), err)
		}
	}
}
