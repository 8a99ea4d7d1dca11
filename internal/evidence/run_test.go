package evidence_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
)

// recorded seals a run.
func recorded(t *testing.T, rec evidence.RunRecord, events []evidence.Event) evidence.Run {
	t.Helper()
	r, err := evidence.RecordRun(rec, events)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunIsReadBackAsItWasRecorded(t *testing.T) {
	t.Parallel()
	local := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("somewhere", 3600))
	for name, events := range map[string][]evidence.Event{"with events": pass(), "with one event": pass()[:1], "without events": nil} {
		r := recorded(t, evidence.RunRecord{Schema: "a lie", Events: digest("a lie"), Purpose: evidence.PurposeControl, Started: local, Nonce: "n"}, events)
		rec := r.Record()
		var stored []byte
		var want evidence.Digest
		if events != nil {
			var err error
			if stored, err = evidence.EncodeEvents(events); err != nil {
				t.Fatal(err)
			}
			want = evidence.DigestOf(stored)
		}
		switch {
		case rec.Schema != evidence.RunSchema:
			t.Errorf("%s: schema %q", name, rec.Schema)
		case rec.Events != want:
			t.Errorf("%s: the record names events %q, want %q", name, rec.Events, want)
		case rec.Started.Location() != time.UTC || !rec.Started.Equal(local):
			t.Errorf("%s: started %v, want %v in UTC", name, rec.Started, local)
		case r.Digest() != evidence.DigestOf(r.Body()) || r.IsZero():
			t.Errorf("%s: digest %s is not that of the body", name, r.Digest())
		}
		again, err := evidence.LoadRun(r.Digest(), r.Body(), stored)
		if err != nil || again.Digest() != r.Digest() || !bytes.Equal(again.Body(), r.Body()) {
			t.Fatalf("%s: LoadRun = %v, %v", name, again.Digest(), err)
		}
		if d := cmp.Diff(rec, again.Record()) + cmp.Diff(events, again.Events()); d != "" {
			t.Errorf("%s: read back differently:\n%s", name, d)
		}
	}
	odd, err := evidence.RecordRun(evidence.RunRecord{Started: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, nil)
	if err == nil || !odd.IsZero() {
		t.Errorf("a run that cannot be written was recorded as %s", odd.Digest())
	}
	if !(evidence.Run{}).IsZero() {
		t.Error("a run that was never made is not zero")
	}
}

func TestRunIsNotReadBack(t *testing.T) {
	t.Parallel()
	r := recorded(t, evidence.RunRecord{Purpose: evidence.PurposeProbe, Nonce: "n"}, pass())
	events, err := evidence.EncodeEvents(pass())
	if err != nil {
		t.Fatal(err)
	}
	forged, err := evidence.EncodeEvents(fail(evidence.ByAssertion, 9))
	if err != nil {
		t.Fatal(err)
	}
	body := func(rec evidence.RunRecord) []byte {
		b, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	odd := []byte("no events")
	tests := []struct {
		name         string
		want         evidence.Digest // empty: that of the body
		body, events []byte
		says         string
	}{
		{"another body", r.Digest(), append(bytes.Clone(r.Body()), ' '), events, "its bytes have digest "},
		{"other events", "", r.Body(), forged, "its events have digest " + evidence.DigestOf(forged).Short() + ", want " + evidence.DigestOf(events).Short()},
		{"no events", "", r.Body(), nil, "its events have digest "},
		{"no JSON", "", []byte("{"), nil, "unexpected end of JSON input"},
		{"another schema", "", body(evidence.RunRecord{Schema: "proveto/run/v2"}), nil, `unknown schema "proveto/run/v2"`},
		{"events that do not parse", "", body(evidence.RunRecord{Schema: evidence.RunSchema, Events: evidence.DigestOf(odd)}), odd, "events: "},
	}
	for _, tt := range tests {
		want := tt.want
		if want == "" {
			want = evidence.DigestOf(tt.body)
		}
		got, err := evidence.LoadRun(want, tt.body, tt.events)
		if !got.IsZero() || err == nil {
			t.Errorf("%s: read back as %s", tt.name, got.Digest())
		} else if s := err.Error(); !strings.HasPrefix(s, "run "+want.Short()+": ") || !strings.Contains(s, tt.says) {
			t.Errorf("%s: %q does not say %q", tt.name, s, tt.says)
		}
	}
}

func TestLevelsAreRanked(t *testing.T) {
	t.Parallel()
	for i, l := range []evidence.Level{"unknown", evidence.LimitsOnly, evidence.Landlock, evidence.Namespaces} {
		if got := l.Rank(); got != i {
			t.Errorf("Rank of %s = %d, want %d", l, got, i)
		}
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	r := recorded(t, evidence.RunRecord{}, []evidence.Event{
		{Kind: evidence.EventBegin, Test: "TestBegun"},
		{Kind: evidence.EventPass, Test: "TestPassed"},
		{Kind: evidence.EventFail, Test: "TestComplained"},
		{Kind: evidence.EventFailed, Test: "TestFailed"},
		{Kind: evidence.EventSkip, Test: "TestSkipped"},
		{Kind: evidence.EventPass, Test: "TestTwice"},
		{Kind: evidence.EventFailed, Test: "TestTwice"},
	})
	for test, want := range map[string]evidence.Outcome{
		"TestBegun": evidence.NotRun, "TestPassed": evidence.Passed, "TestComplained": evidence.NotRun, "TestFailed": evidence.Failed,
		"TestSkipped": evidence.Skipped, "TestTwice": evidence.Failed, "TestAbsent": evidence.NotRun, "TestPass": evidence.NotRun,
	} {
		if got := r.Outcome(test); got != want {
			t.Errorf("Outcome of %s = %s, want %s", test, got, want)
		}
	}
}

func TestFailuresAreThoseOfLeaves(t *testing.T) {
	t.Parallel()
	first := evidence.Event{Kind: evidence.EventFail, Test: "TestA/b", By: evidence.ByPanic, File: "a_test.go", Line: 3, Message: "m"}
	second := evidence.Event{Kind: evidence.EventFail, Test: "TestC"}
	r := recorded(t, evidence.RunRecord{}, []evidence.Event{
		{Kind: evidence.EventBegin, Test: "TestA"}, first, {Kind: evidence.EventFailed, Test: "TestA/b"}, {Kind: evidence.EventFailed, Test: "TestA"}, second,
	})
	if d := cmp.Diff([]evidence.Event{first, second}, r.Failures()); d != "" {
		t.Error(d)
	}
	if got := recorded(t, evidence.RunRecord{}, pass()).Failures(); got != nil {
		t.Errorf("a green run has failures: %v", got)
	}
}

// What belongs to a test: itself, its parents, its subtests, and what ran before
// any test; not a test whose name only begins in the same way.
func TestReachOfATest(t *testing.T) {
	t.Parallel()
	reach := func(test string, index ...int64) evidence.Event {
		return evidence.Event{Kind: evidence.EventReach, Test: test, Index: index}
	}
	r := recorded(t, evidence.RunRecord{}, []evidence.Event{
		{Kind: evidence.EventSymbols, Names: []string{"parent", "init"}},
		{Kind: evidence.EventSymbols, Base: 2, Names: []string{"child", "grandchild", "sibling", "longer", "again"}},
		reach(evidence.InitTest, 1), reach("TestA", 0), reach("TestA/b", 2), reach("TestA/b/c", 3), reach("TestA/x", 4), reach("TestAB", 5),
		reach("TestA", 6), reach("TestA/b", 6, 99),
		{Kind: evidence.EventBegin, Test: "TestA", Index: []int64{5}},
	}).Reach()
	for test, want := range map[string][]string{
		"TestA":     {"again", "child", "grandchild", "init", "parent", "sibling"},
		"TestA/b":   {"again", "child", "grandchild", "init", "parent"},
		"TestA/b/c": {"again", "child", "grandchild", "init", "parent"},
		"TestA/x":   {"again", "init", "parent", "sibling"},
		"TestAB":    {"init", "longer"},
		"TestA/bc":  {"again", "init", "parent"},
		"Test":      {"init"},
		"TestAxb":   {"init"},
	} {
		if d := cmp.Diff(want, r.Of(test)); d != "" {
			t.Errorf("Of(%s): %s", test, d)
		}
	}
	if d := cmp.Diff([]string{"again", "parent"}, r.By("TestA")); d != "" {
		t.Errorf("By: %s", d)
	}
	if got := r.By("TestA/bc"); len(got) != 0 {
		t.Errorf("By of a test that was not run: %v", got)
	}
	if d := cmp.Diff([]string{"init"}, r.Init()); d != "" {
		t.Errorf("Init: %s", d)
	}
}

func TestEventsAreReadBack(t *testing.T) {
	t.Parallel()
	b, err := evidence.EncodeEvents(fail(evidence.ByRace, 9))
	if err != nil {
		t.Fatal(err)
	}
	got, err := evidence.DecodeEvents(b)
	if d := cmp.Diff(fail(evidence.ByRace, 9), got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	if got, err := evidence.DecodeEvents([]byte("[")); got != nil || err == nil || !strings.HasPrefix(err.Error(), "events: ") {
		t.Errorf("DecodeEvents of half a document = %v, %v", got, err)
	}
}
