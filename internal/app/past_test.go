package app

import (
	"testing"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/prove"
	"github.com/proveto/proveto/internal/snapshot"
	"github.com/proveto/proveto/internal/view"
)

func TestNextOfAStatus(t *testing.T) {
	t.Parallel()
	gap := view.Gap{Name: "calc.Max", Word: "refuted", Commands: []string{"proveto why calc.Max"}}
	stale, open := view.Counts{Stale: 2, Total: 3}, view.Counts{Refuted: 1, NotMeasured: 2, Total: 3}
	same := past{same: &savedStart{}, around: true}
	for _, c := range []struct {
		what string
		past past
		now  view.Start
		want string
	}{
		{"another tree", past{}, view.Start{Counts: open, Gaps: []view.Gap{gap}}, "the tree changed since the last start"},
		{"another tree, which made something stale", past{}, view.Start{Counts: stale, Gaps: []view.Gap{gap}}, "2 behaviours went stale since the last start"},
		{"a start that was stopped", same, view.Start{Counts: open, Gaps: []view.Gap{gap}, Unmeasured: []view.Unmeasured{{Reason: "interrupted", Count: 2}}}, "the last start was stopped before 2 behaviours"},
		{"a waiver since", past{same: &savedStart{}}, view.Start{Counts: open, Gaps: []view.Gap{gap}}, "a waiver, or what is around the tree, changed since the last start"},
		{"a gap", same, view.Start{Counts: open, Gaps: []view.Gap{gap}}, "see how calc.Max can break unseen"},
		{"nothing", same, view.Start{Counts: view.Counts{Proven: 3, Total: 3}}, "everything is proven; run the verdicts again"},
	} {
		if got := c.past.next(&c.now); got.Why != c.want {
			t.Errorf("after %s: %+v, want %q", c.what, got, c.want)
		}
	}
}

func TestOneBranchIsNotAnother(t *testing.T) {
	t.Parallel()
	at := func(branch, commit string) *invocation {
		return &invocation{snap: snapshot.Snapshot{Branch: branch, Commit: commit, Tree: "t"}}
	}
	for _, c := range []struct {
		what string
		inv  *invocation
		then ledger.Start
		want bool
	}{
		{"the same branch", at("main", "c2"), ledger.Start{Branch: "main", Commit: "c1"}, true},
		{"another branch", at("main", "c2"), ledger.Start{Branch: "other", Commit: "c2"}, false},
		{"an unknown branch", at("main", "c2"), ledger.Start{}, false},
		{"no git at all", at("", ""), ledger.Start{}, true},
		{"a detached head, another tree", at("", "c2"), ledger.Start{Commit: "c1", Tree: "u"}, false},
		{"a detached head, the same tree", at("", "c2"), ledger.Start{Commit: "c1", Tree: "t"}, true},
	} {
		if got := c.inv.ofLine(c.then); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// trialOf is a probe of the result and how it ended.
func trialOf(summary string, st evidence.Status, note string) evidence.TrialRecord {
	p := evidence.Probe{Symbol: "s", Kind: evidence.ProbeResult, Summary: summary, Diff: "@@\n-a\n+" + summary + "\n", Nth: 1}
	return evidence.TrialRecord{Probe: p, ProbeDigest: p.Digest(), Status: st, Note: note}
}

func notWaived(evidence.Probe, evidence.Digest) (string, bool) { return "", false }

// The sentence and the diff of a gap are about one mutant.
func TestGapIsAboutOneMutant(t *testing.T) {
	t.Parallel()
	k := known{ranked: prove.Ranked{}, measurement: &evidence.MeasurementRecord{Word: evidence.Refuted, Reason: "survived", Trials: []evidence.TrialRecord{
		trialOf("first", evidence.Survived, "not_infected"), trialOf("second", evidence.Survived, "infected_not_asserted"), trialOf("third", evidence.Survived, "infected_not_asserted"),
	}}}
	s := symbolView(k, notWaived)
	g := gaps([]view.Symbol{s})
	if want := "with second every test stays green: they run it and do not look at what it does"; g[0].Why != want || g[0].Diff != "@@\n-a\n+second\n" {
		t.Errorf("gap = %+v, want the second mutant", g[0])
	}
	k.measurement.Trials = k.measurement.Trials[:1]
	k.measurement.Trials = append(k.measurement.Trials, trialOf("last", evidence.Survived, "not_infected"))
	if g := gaps([]view.Symbol{symbolView(k, notWaived)}); g[0].Diff != "@@\n-a\n+first\n" {
		t.Errorf("gap = %+v, want the first mutant, as the sentence says", g[0])
	}
	waived := func(p evidence.Probe, _ evidence.Digest) (string, bool) {
		return "waived until then: x", p.Summary == "first"
	}
	s = symbolView(k, waived)
	if g := gaps([]view.Symbol{s}); g[0].Diff != "@@\n-a\n+last\n" || s.Mutants[0].Waived == "" || s.Mutants[1].Waived != "" {
		t.Errorf("gap = %+v of %+v, want the mutant that is not waived", g[0], s.Mutants)
	}
}

// What was chosen by hand adds to what is known and takes nothing away.
func TestTrialsOfAChoiceByHandAreAdded(t *testing.T) {
	t.Parallel()
	partial := func(left string, trials ...evidence.TrialRecord) evidence.MeasurementRecord {
		return evidence.MeasurementRecord{Target: evidence.Target{Partial: left}, Word: evidence.NotMeasured, Trials: trials}
	}
	k := known{measurement: &evidence.MeasurementRecord{Word: evidence.Proven, Trials: []evidence.TrialRecord{trialOf("a", evidence.Killed, "")}}}
	k.partial = []evidence.MeasurementRecord{
		partial(evidence.PartialProbes, trialOf("b", evidence.Survived, "")),
		partial(evidence.PartialTests, trialOf("a", evidence.Survived, ""), trialOf("c", evidence.Survived, ""), trialOf("d", evidence.Killed, "")),
		partial(evidence.PartialProbes, trialOf("b", evidence.Killed, "")),
	}
	var got []string
	for _, t := range k.trials() {
		got = append(got, t.Probe.Summary+" "+string(t.Status))
	}
	if want := []string{"a killed", "b killed", "d killed"}; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("trials = %v, want %v", got, want)
	}
	one := trialOf("e", evidence.Killed, "")
	k.live = &stored{Record: evidence.CertificateRecord{Facts: evidence.Facts{Probe: one.Probe, Test: "TestE"}}}
	if ts := k.trials(); len(ts) != 4 || ts[3].Status != evidence.Killed || ts[3].Test != "TestE" {
		t.Errorf("trials = %+v, want the kill of the certificate that proves, too", ts)
	}
	k = known{partial: k.partial[:1]}
	if s := symbolView(k, notWaived); s.Word != string(evidence.NotMeasured) || s.Reason != "partial" || s.Strength != (view.Share{Num: 0, Den: 1}) {
		t.Errorf("a choice by hand alone: %+v, want not measured, partial", s)
	}
}
