package evidence_test

import (
	"bytes"
	"testing"

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
		{"waived", []evidence.Trial{waived}, "", evidence.NotMeasured, "no_probe"},
		{"pending", []evidence.Trial{result("green", false), pending}, "", evidence.NotMeasured, "out_of_budget"},
		{"nothing tried", nil, "no_coverage", evidence.NotMeasured, "no_coverage"},
	}
	target := evidence.Target{Language: "go", Project: ".", Unit: "example.test/calc", Symbol: symbol, SymbolDigest: digest("symbol"), Tests: []string{testName}, Reached: []string{symbol}, Inputs: digest("inputs")}
	for _, tt := range tests {
		m, err := evidence.NewMeasurement(target, tree, tt.trials, tt.reason, "")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if rec := m.Record(); rec.Word != tt.word || rec.Reason != tt.want {
			t.Errorf("%s: %s (%s), want %s (%s)", tt.name, rec.Word, rec.Reason, tt.word, tt.want)
		}
		again, err := evidence.RederiveMeasurement(m.Body(), func(d evidence.Digest) (evidence.Run, error) {
			for _, tr := range tt.trials {
				if tr.Run.Digest() == d {
					return tr.Run, nil
				}
			}
			return evidence.Run{}, fault.New(fault.NotFound, "not_found", "no run %s", d)
		})
		if err != nil || !bytes.Equal(again.Body(), m.Body()) {
			t.Errorf("%s: RederiveMeasurement = %v, want the same bytes", tt.name, err)
		}
		if lie := bytes.Replace(m.Body(), []byte(`"word":"`+string(tt.word)), []byte(`"word":"proven`), 1); tt.word != evidence.Proven {
			if _, err := evidence.RederiveMeasurement(lie, func(d evidence.Digest) (evidence.Run, error) {
				for _, tr := range tt.trials {
					if tr.Run.Digest() == d {
						return tr.Run, nil
					}
				}
				return evidence.Run{}, nil
			}); fault.From(err).Kind != fault.Tampered {
				t.Errorf("%s: a measurement that says proven is derived: %v", tt.name, err)
			}
		}
	}
}
