package gate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
)

func TestEvidenceIDIsItsContent(t *testing.T) {
	t.Parallel()
	e, err := gate.Evidence{Gate: "build", Outcome: gate.Pass, Started: time.Unix(1, 0), Metrics: map[string]float64{"share": 0.5}}.Seal()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gate.ParseID(e.ID); err != nil {
		t.Error(err)
	}
	if again, _ := e.Seal(); again.ID != e.ID {
		t.Errorf("sealed twice: %s and %s", e.ID, again.ID)
	}
	if _, err := e.Canonical(); err != nil {
		t.Errorf("Canonical of sealed evidence: %v", err)
	}
	e.Outcome = gate.No
	if _, err := e.Canonical(); fault.From(err) == nil || fault.From(err).Kind != fault.Tampered {
		t.Errorf("Canonical of edited evidence = %v, want tampered", err)
	}
	mute, _ := gate.Evidence{Gate: "build", Outcome: gate.NotMeasured}.Seal()
	if _, err := mute.Canonical(); err == nil {
		t.Error("not measured without a reason was stored")
	}
	own, other := evidence.DigestOf([]byte("own")), evidence.DigestOf([]byte("other"))
	for _, c := range []struct {
		q  gate.Requirement
		ok bool
	}{
		{gate.Requirement{State: evidence.Proven, Certificates: []evidence.Digest{own}}, true},
		{gate.Requirement{State: evidence.NotMeasured}, true},
		{gate.Requirement{State: evidence.Proven}, false},
		{gate.Requirement{State: evidence.Proven, Certificates: []evidence.Digest{own, other}}, false},
	} {
		x, _ := gate.Evidence{Gate: "prove.requirements", Outcome: gate.Pass, Certificates: []evidence.Digest{own}, Requirements: map[string]gate.Requirement{"R1": c.q}}.Seal()
		if _, err := x.Canonical(); (err == nil) != c.ok {
			t.Errorf("%+v: %v, want it stored: %v", c.q, err, c.ok)
		}
	}
	for _, bad := range []string{"", "ev_", "ev_" + strings.Repeat("A", 64), strings.Repeat("a", 64), e.ID + "/.."} {
		if _, err := gate.ParseID(bad); err == nil {
			t.Errorf("ParseID(%q) accepted", bad)
		}
	}
}

func TestPassCountsOnlyBesideARefusedProbe(t *testing.T) {
	t.Parallel()
	pass := gate.Answer{Outcome: gate.Pass}
	no := gate.Answer{Outcome: gate.No, Code: gate.CodeFailed, Reason: "red"}
	for _, row := range []struct {
		name string
		a    gate.Answer
		cert evidence.Digest
		err  error
		want gate.Outcome
		code fault.Code
	}{
		{"refused", pass, evidence.DigestOf(nil), nil, gate.Pass, ""},
		{"blind", pass, "", fault.New(fault.Unmeasured, gate.CodeBlind, "accepted a skip"), gate.NotMeasured, gate.CodeBlind},
		{"probe timed out", pass, "", fault.New(fault.Unmeasured, "timeout", "slow"), gate.NotMeasured, gate.CodeTimedOut},
		{"no probe", pass, "", nil, gate.NotMeasured, gate.CodeNotProven},
		{"a no needs no probe", no, "", nil, gate.No, gate.CodeFailed},
	} {
		if got := gate.Believed(row.a, row.cert, row.err); got.Outcome != row.want || got.Code != row.code {
			t.Errorf("%s: %+v, want %s %s", row.name, got, row.want, row.code)
		}
	}
}

func TestUnmeasuredWords(t *testing.T) {
	t.Parallel()
	for code, want := range map[fault.Code]fault.Code{
		"timeout": gate.CodeTimedOut, "tool_missing": gate.CodeToolMissing, "isolation_too_low": gate.CodeTooLow, "permission": gate.CodeUnmeasured,
	} {
		if a, ok := gate.Unmeasured(fault.New(fault.Unmeasured, code, "x")); !ok || a.Code != want || a.Reason == "" {
			t.Errorf("Unmeasured(%s) = %+v, want code %s", code, a, want)
		}
	}
	if _, ok := gate.Unmeasured(errors.New("disk")); ok {
		t.Error("an error of ours became an answer")
	}
}

func TestBarTellsGapsFromWhatCouldNotBeMeasured(t *testing.T) {
	t.Parallel()
	bar := gate.Bar{MinProven: 0.8, MaxRefuted: 0, MaxNotMeasured: 0.2}
	for _, row := range []struct {
		p    gate.Proof
		want gate.Outcome
	}{
		{gate.Proof{}, gate.Empty},
		{gate.Proof{Proven: 4, Unguarded: 1}, gate.Pass},
		{gate.Proof{Proven: 4, Unmeasured: 1}, gate.Pass},
		{gate.Proof{Proven: 9, Refuted: 1}, gate.No},
		{gate.Proof{Proven: 1, Unguarded: 1}, gate.No},
		{gate.Proof{Proven: 1, Unmeasured: 1}, gate.NotMeasured},
		{gate.Proof{Proven: 1, Unguarded: 3, Unmeasured: 1}, gate.No},
		{gate.Proof{Unmeasured: 2, Refuted: 1}, gate.No},
	} {
		if got := bar.Judge(row.p); got.Outcome != row.want || (got.Outcome != gate.Pass) != (got.Reason != "") {
			t.Errorf("Judge(%+v) = %+v, want %s", row.p, got, row.want)
		}
	}
}
