package flow

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
)

// doubt is about a principal: gone now, and not believed from a time on; the zero
// time leaves what was said before.
func doubt(name string, since time.Time) Doubt {
	why := name + " was revoked"
	return Doubt{
		Gone: func(a Actor) string {
			if a.Principal == name || a.Operator == name {
				return why
			}
			return ""
		},
		Void: func(a Actor, at time.Time) string {
			if (a.Principal == name || a.Operator == name) && !since.IsZero() && !at.Before(since) {
				return why
			}
			return ""
		},
	}
}

// takeBack does all that the doubt asks for, and checks that nothing is left.
func (b *bench) takeBack(d Doubt) {
	b.t.Helper()
	for _, act := range b.run.TakeBack(d) {
		b.must(Event{Actor: Engine(), Do: act})
	}
	if again := b.run.TakeBack(d); len(again) > 0 {
		b.t.Fatalf("taken back, and still there: %+v", again)
	}
}

// reviewed is a run with work by bob that carol has approved.
func reviewed(t *testing.T) (b *bench, before time.Time) {
	t.Helper()
	b = open(t, policy.Default, true)
	b.plan("plan_1")
	b.must(work("bob", "one"))
	for _, s := range []string{"developer", "verifier", "tester", "reviewer"} {
		b.pass(s)
	}
	before = b.now.Add(time.Second)
	b.must(judge("carol", "reviewer", Approve, ""))
	b.status(StatusApproved, "", Done)
	return b, before
}

func TestApprovalOfALostKeyCountsNoMore(t *testing.T) {
	t.Parallel()
	b, before := reviewed(t)
	if acts := b.run.TakeBack(doubt("carol", time.Time{})); len(acts) > 0 {
		t.Fatalf("without a time nothing is void: %+v", acts)
	}
	if acts := b.run.TakeBack(doubt("carol", b.now.Add(time.Second))); len(acts) > 0 {
		t.Fatalf("what was said before the time is void: %+v", acts)
	}
	if acts := b.run.TakeBack(doubt("dora", before)); len(acts) > 0 {
		t.Fatalf("somebody else's word is void: %+v", acts)
	}
	b.takeBack(doubt("carol", before))
	if got := b.states(); got != "passed passed passed passed stale" {
		t.Fatalf("states %s", got)
	}
	s := b.run.Stage("reviewer")
	if s.Given[0].Void == "" || s.Because != "carol was revoked" || b.run.Approvals(s).Have != 0 {
		t.Errorf("stage %+v", s)
	}
	e := human("alice")
	e.Do = Deliver{}
	b.refuse(e, CodeOutOfOrder)

	// It goes on: the stage is measured again, and somebody else decides.
	e.Do = Remeasure{Stage: "reviewer"}
	b.must(e)
	b.pass("reviewer")
	b.must(judge("dora", "reviewer", Approve, ""))
	b.status(StatusApproved, "", Done)
}

func TestContractOfALostKeyTakesEverythingAlong(t *testing.T) {
	t.Parallel()
	b, _ := reviewed(t)
	b.takeBack(doubt("alice", start))
	if got := b.states(); got != "stale stale stale stale stale" {
		t.Fatalf("states %s", got)
	}
	b.plan("plan_2") // and the work is judged again under it
	if got := b.states(); got != "passed measuring stale stale stale" {
		t.Errorf("states %s", got)
	}
}

func TestVetoOfALostKeyFalls(t *testing.T) {
	t.Parallel()
	for _, d := range []Decision{Reject, RequestChanges} {
		b := open(t, policy.Manual, true)
		e := withPlan(decide(policy.Planner, Approve, "plan"), "plan_1")
		b.must(e)
		b.must(withToken(decide(policy.Developer, Approve, "work"), b.run.Plan.Token))
		mallory := decide(policy.Developer, d, "no")
		mallory.Actor.Principal = "mallory"
		b.must(mallory)
		b.status(StatusBlocked, ReasonReturned, "developer")
		b.takeBack(doubt("mallory", start))
		b.status(StatusOpen, "", "developer")
		b.must(withToken(decide(policy.Developer, Approve, "work"), b.run.Plan.Token))
		b.status(StatusOpen, "", "verifier")
	}
}

func TestLeaseOfALostKeyEnds(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Default, true)
	b.plan("plan_1")
	take := human("mallory", policy.Developer)
	take.Do = Take{Stage: "developer"}
	b.must(take)
	b.refuse(work("bob", "one"), CodeLeaseHeld)
	b.takeBack(doubt("mallory", time.Time{}))
	b.must(work("bob", "one"))
}

func TestWaiverOfALostKeyWaivesNoMore(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) *bench {
		b := open(t, policy.Default, true)
		b.plan("plan_1")
		b.must(work("bob", "one"))
		b.pass("developer")
		b.pass("verifier")
		return b
	}
	waive := human("mallory")
	waive.Do = Waive{ID: "wvr_1", Gate: "suite.full", Reason: "because", Expires: start.Add(time.Hour)}

	b := setup(t) // used: what went through by it is judged again
	b.must(waive)
	b.must(measured(b.run.Stage("tester"), "suite.full", gate.No))
	if got := b.run.Stage("tester").State; got != Passed {
		t.Fatalf("the waiver does not work: the tester's stage is %s", got)
	}
	b.takeBack(doubt("mallory", start))
	if got := b.run.Stage("tester").State; got != Stale {
		t.Errorf("the tester's stage is %s, want stale", got)
	}

	b = setup(t) // not used yet: it is worth nothing, and no stage is stale for it
	b.must(waive)
	was := b.states()
	b.takeBack(doubt("mallory", start))
	if got := b.states(); got != was {
		t.Errorf("states %s, want %s", got, was)
	}
	b.must(measured(b.run.Stage("tester"), "suite.full", gate.No))
	if got := b.run.Stage("tester").Evidence["suite.full"].Waiver; got != "" {
		t.Errorf("waiver %s was used", got)
	}
}

func TestFindingOfSomebodyGoneIsClosedByAnother(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Default, true)
	b.plan("plan_1")
	b.must(work("bob", "one"))
	for _, s := range []string{"developer", "verifier", "tester", "reviewer"} {
		b.pass(s)
	}
	b.must(judge("carol", "reviewer", RequestChanges, "", Finding{Category: "defect", Severity: Block, Message: "wrong"}))
	shut := human("dora", policy.Reviewer)
	shut.Do = Answer{Finding: "F-1", Close: true, Note: "it is right"}
	b.refuse(shut, CodeNotPermitted)
	shut.Gone = []string{"carol"}
	own := shut
	own.Actor.Principal = "bob"
	b.refuse(own, CodeNotPermitted) // not by who made the work
	b.must(shut)
	if x := b.run.Finding("F-1"); !x.done() {
		t.Errorf("finding %+v", x)
	}
}

func TestTakingBackLeavesOtherCopiesAlone(t *testing.T) {
	t.Parallel()
	b, before := reviewed(t)
	copied := b.run.Copy()
	b.takeBack(doubt("carol", before))
	if slices.ContainsFunc(copied.Stage("reviewer").Given, func(g Given) bool { return g.Void != "" }) || strings.Contains(b.states(), "rejected") {
		t.Error("the copy was changed")
	}
}

// TestCarriedPassOfALostKey takes back an approval on an attempt before: the
// pass was carried over a rebase.
func TestCarriedPassOfALostKey(t *testing.T) {
	t.Parallel()
	b, before := reviewed(t)
	body, err := json.Marshal(b.run.Policy)
	if err != nil {
		t.Fatal(err)
	}
	e := human("alice")
	e.Do = Rebase{
		Rebased: Rebased{Base: Base{Tree: tree("base2")}, PolicyDigest: b.run.PolicyDigest, PolicyBody: body, Enforced: true, Holders: b.run.Holders},
		Subject: &Subject{Tree: tree("two"), Diff: b.run.Work().Diff, Plan: "plan_1"},
	}
	b.must(e)
	for _, s := range []string{"developer", "verifier", "tester", "reviewer"} {
		b.pass(s)
	}
	b.status(StatusApproved, "", Done)
	if s := b.run.Stage("reviewer"); len(s.Given) != 0 || s.Attempt != 2 {
		t.Fatalf("the approval was not carried: %+v", s)
	}
	b.takeBack(doubt("carol", before))
	if got := b.states(); got != "passed passed passed passed stale" {
		t.Fatalf("states %s", got)
	}
	e.Do = Remeasure{Stage: "reviewer"}
	b.must(e)
	b.pass("reviewer")
	if got := b.run.Stage("reviewer").State; got != Deciding {
		t.Errorf("the reviewer's stage is %s: a pass of a lost key was carried again", got)
	}
}
