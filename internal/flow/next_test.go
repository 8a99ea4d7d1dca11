package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// bench is a run that events are put into, with the ledger beside it.
type bench struct {
	t       testing.TB
	run     Run
	entries []Entry
	now     time.Time
	gates   map[string]evidence.Digest
	n       int
}

func token(plan, leaf string) string { return "pt_" + plan + leaf }

func human(name string, roles ...policy.Role) Event {
	return Event{Actor: Actor{Principal: name, Kind: kindHuman, Key: "SHA256:" + name}, Roles: roles, Rights: []string{"reopen", "cancel", "deliver", "waive:*", "release", "principals"}}
}

func local(role policy.Role) Event {
	e := human("local", policy.Roles()...)
	e.Actor.Role = role
	return e
}

func open(t testing.TB, name string, enforced bool) *bench {
	t.Helper()
	p, err := policy.Builtin().Named(name)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, now: start, gates: map[string]evidence.Digest{}}
	for _, s := range p.Stages {
		for _, g := range s.Gates {
			b.gates[g] = evidence.DigestOf([]byte(g))
		}
	}
	o := Opened{
		Head: Head{Run: "run_1"}, Task: "t", Project: "default", Policy: name, PolicyDigest: evidence.DigestOf(body), PolicyBody: body,
		Enforced: enforced, Holders: map[string][]string{"planner": {"alice"}, "developer": {"bob"}, "reviewer": {"alice", "carol"}},
		Base: Base{Tree: tree("base")},
	}
	ev := human("alice")
	ev.Do = Open{o}
	b.must(ev)
	return b
}

func tree(s string) evidence.Tree { return evidence.Tree(evidence.DigestOf([]byte(s)).Hex()[:40]) }

// put asks the rules and, when they agree, records the facts. It checks what
// must hold after every event: the fold of the facts is the run that Next gave.
func (b *bench) put(e Event) (Step, *fault.Error) {
	b.t.Helper()
	if e.Now.IsZero() {
		b.now = b.now.Add(time.Second)
		e.Now = b.now
	}
	e.Gates = b.gates
	was, err := json.Marshal(shown(b.run))
	if err != nil {
		b.t.Fatal(err)
	}
	after, step, ferr := Next(b.run, e)
	if now, err := json.Marshal(shown(b.run)); err != nil || string(now) != string(was) {
		b.t.Fatalf("Next changed the run that it was given:\n%s\n%s", was, now)
	}
	if ferr != nil {
		return step, ferr
	}
	for _, f := range step.Facts {
		body, err := evidence.Canonical(f)
		if err != nil {
			b.t.Fatal(err)
		}
		b.n++
		b.entries = append(b.entries, Entry{Seq: int64(b.n), Kind: f.kind(), Leaf: fmt.Sprint("leaf", b.n), Body: body})
	}
	folded, err := Fold(b.entries, token)
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(shown(after), shown(folded), cmpopts.EquateEmpty()); diff != "" {
		b.t.Fatalf("the fold is not what Next gave (-Next +Fold):\n%s", diff)
	}
	if len(step.Facts) > 0 {
		if diff := cmp.Diff(folded.After(), step.Facts[len(step.Facts)-1].head().After); diff != "" {
			b.t.Fatalf("the last fact does not say what the run is (-fold +said):\n%s", diff)
		}
	}
	b.run = folded
	return step, nil
}

// shown is a run without what differs between a provisional and a real fold.
func shown(r Run) map[string]any {
	r = r.clone()
	if r.Plan != nil {
		p := *r.Plan
		p.Token = ""
		r.Plan = &p
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		panic(err)
	}
	return m
}

func (b *bench) must(e Event) Step {
	b.t.Helper()
	s, err := b.put(e)
	if err != nil {
		b.t.Fatalf("%T: %v (%s)", e.Do, err, err.Code)
	}
	return s
}

func (b *bench) refuse(e Event, code fault.Code) {
	b.t.Helper()
	before := len(b.entries)
	_, err := b.put(e)
	if err == nil || err.Code != code {
		b.t.Fatalf("%T: error %v, want %s", e.Do, err, code)
	}
	if len(b.entries) != before {
		b.t.Fatal("a refusal left facts")
	}
	if err.Kind != fault.Usage && len(err.Hints) == 0 {
		b.t.Errorf("refusal %q has no command that helps", err)
	}
}

func (b *bench) status(word Status, reason, stage string) {
	b.t.Helper()
	st := b.run.StatusAt(b.now)
	if st.Word != word || st.Reason != reason || st.Stage != stage {
		b.t.Fatalf("status = %s (%s) at %s, want %s (%s) at %s", st.Word, st.Reason, st.Stage, word, reason, stage)
	}
	if word == StatusBlocked && len(st.Unblock) == 0 {
		b.t.Fatal("a blocked run names no way on")
	}
}

func (b *bench) states() string {
	var out []string
	for _, s := range b.run.Stages {
		out = append(out, string(s.State))
	}
	return strings.Join(out, " ")
}

func decide(role policy.Role, d Decision, note string) Event {
	e := local(role)
	e.Do = Decide{
		Stage: string(role), ID: "dec_" + note + string(d), Decision: d, Note: note,
		Submission: Submission{Note: note, Subject: Subject{Note: evidence.DigestOf([]byte(note))}, NeedToken: d == Approve},
	}
	return e
}

func withPlan(e Event, plan string) Event {
	d := e.Do.(Decide)
	d.Contract, d.Subject.Plan = json.RawMessage(`{"version":1}`), plan
	e.Do = d
	return e
}

func withToken(e Event, tok string) Event {
	d := e.Do.(Decide)
	d.Token = tok
	e.Do = d
	return e
}

func TestEveryStateAndMoveIsInTheTable(t *testing.T) {
	t.Parallel()
	for _, s := range StageStates() {
		if len(table[s]) != len(Moves()) {
			t.Errorf("state %s has %d moves, want %d", s, len(table[s]), len(Moves()))
		}
		for _, m := range Moves() {
			c, ok := table[s][m]
			if !ok {
				t.Errorf("%s × %s is not in the table", s, m)
			}
			if c.to != "" && c.refuse != "" {
				t.Errorf("%s × %s both moves and refuses", s, m)
			}
			if c.to != "" && !slices.Contains(StageStates(), c.to) {
				t.Errorf("%s × %s leads to %q, which is no state", s, m, c.to)
			}
			engine := m == MoveAllPass || m == MoveNo || m == MoveNotMeasured || m == MoveLeaseLost
			if c.ignored() && !engine {
				t.Errorf("%s × %s is ignored: only a late event of the engine may be", s, m)
			}
			if c.to == Passed && m != MoveApprove {
				t.Errorf("%s passes by %s", s, m)
			}
		}
	}
}

// TestManualWalk rejects and approves again at every stage, reading the status
// after every step.
func TestManualWalk(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Manual, false)
	for _, role := range policy.Roles() {
		stage := string(role)
		b.status(StatusOpen, "", stage)
		with := func(e Event) Event {
			switch {
			case role == policy.Planner:
				e = withPlan(e, "plan_"+e.Do.(Decide).Note)
			case role == policy.Developer && e.Do.(Decide).Decision == Approve:
				e = withToken(e, b.run.Plan.Token)
			}
			return e
		}
		b.refuse(decide(otherRole(role), Approve, "wrong stage first"), wrongFor(role))
		wrong := with(decide(role, Approve, "x"))
		wrong.Actor.Role = otherRole(role)
		b.refuse(wrong, CodeWrongRole)
		if role == policy.Developer {
			b.refuse(decide(role, Approve, "no token"), plan.CodeTokenMissing)
			b.refuse(withToken(decide(role, Approve, "no token"), b.run.Plan.Token[:9]), plan.CodeTokenInvalid)
		}
		b.refuse(with(decide(role, Reject, " ")), CodeNoteMissing)
		if s := b.must(with(decide(role, Reject, "not good: "+stage))); s.Answer != CodeRejected {
			t.Fatalf("answer %s", s.Answer)
		}
		b.status(StatusBlocked, ReasonReturned, stage)
		b.refuse(with(decide(role, Approve, "")), CodeVetoStands)
		if s := b.must(with(decide(role, Approve, "changed: "+stage))); s.Answer != CodeApproved {
			t.Fatalf("answer %s", s.Answer)
		}
		if got := b.run.Stage(stage).Attempt; got != 2 {
			t.Errorf("stage %s has attempt %d after a new approval, want 2", stage, got)
		}
		b.refuse(with(decide(role, Approve, "again")), CodeAlreadyPassed)
	}
	b.status(StatusApproved, "", Done)
	if b.run.Plan == nil || !strings.HasPrefix(b.run.Plan.Token, "pt_") {
		t.Error("no plan token")
	}
}

// TestNothingPassesBelowAStageThatCameBack: what stands on a stage that was
// reopened waits for it, and is decided anew by somebody: a run without trees has
// nothing by which a pass could stand.
func TestNothingPassesBelowAStageThatCameBack(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Manual, false)
	b.must(withPlan(decide(policy.Planner, Approve, "p"), "plan_p"))
	again := func(note string) { b.must(withToken(decide(policy.Developer, Approve, note), b.run.Plan.Token)) }
	again("first")
	for _, role := range policy.Roles()[2:] {
		b.must(decide(role, Approve, "good"))
	}
	e := local(policy.Developer)
	e.Do, e.Rights = Reopen{Stage: "developer", Note: "back"}, []string{"reopen"}
	b.must(e)
	for _, role := range policy.Roles()[2:] {
		b.refuse(decide(role, Approve, "too early"), CodeOutOfOrder)
		take := local(role)
		take.Do = Take{Stage: string(role)}
		b.refuse(take, CodeOutOfOrder)
	}
	again("second")
	for _, role := range policy.Roles()[2:] {
		b.status(StatusOpen, "", string(role))
		b.must(decide(role, Approve, "good again"))
	}
	b.status(StatusApproved, "", Done)
}

func otherRole(r policy.Role) policy.Role {
	if r == policy.Reviewer {
		return policy.Planner
	}
	return policy.Roles()[slices.Index(policy.Roles(), r)+1]
}

func wrongFor(r policy.Role) fault.Code {
	if r == policy.Reviewer {
		return CodeAlreadyPassed // planner, who is through
	}
	return CodeOutOfOrder
}

func measured(s *Stage, name string, o gate.Outcome, issues ...Finding) Event {
	ev := gate.Evidence{Gate: name, Outcome: o}
	if o == gate.NotMeasured {
		ev.Code, ev.Reason = "baseline_red", "the suite is red"
	}
	ev, err := ev.Seal()
	if err != nil {
		panic(err)
	}
	return Event{Actor: Engine(), Do: Measure{Stage: s.ID, Attempt: s.Attempt, Fence: s.Fence, Gate: name, Evidence: ev, Issues: issues}}
}

// pass measures every gate of a stage as passed.
func (b *bench) pass(stage string) {
	b.t.Helper()
	for _, g := range b.run.Stage(stage).Missing() {
		b.must(measured(b.run.Stage(stage), g, gate.Pass))
	}
}

func (b *bench) plan(id string) {
	b.t.Helper()
	e := human("alice", policy.Planner)
	e.Do = Submit{Stage: "planner", Submission: Submission{Subject: Subject{Plan: id}, Contract: json.RawMessage(`{"version":1}`), PlanKind: "behaviour"}}
	b.must(e)
	b.pass("planner")
}

func work(by, name string) Event {
	e := human(by, policy.Developer)
	e.Do = Submit{Stage: "developer", Submission: Submission{Subject: Subject{Tree: tree(name), Diff: evidence.DigestOf([]byte(name))}}}
	return e
}

func judge(by, stage string, d Decision, note string, found ...Finding) Event {
	e := human(by, policy.Roles()...)
	e.Do = Decide{Stage: stage, ID: "dec_" + by + note, Decision: d, Note: note, Findings: found}
	return e
}

func TestMeasuredWalk(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Default, true)
	b.refuse(work("bob", "w1"), CodeOutOfOrder)
	b.plan("plan_1")
	if b.run.Plan == nil || b.run.Plan.Token == "" {
		t.Fatal("the plan was not accepted by its planner's signature")
	}
	b.must(work("bob", "w1"))
	b.status(StatusMeasuring, "", "developer")
	b.refuse(work("bob", "w2"), CodeBusy)
	b.refuse(judge("carol", "developer", Approve, ""), CodeEvidencePending)
	b.pass("developer")
	if got := b.states(); got != "passed passed measuring measuring locked" {
		t.Fatalf("states %s", got)
	}
	b.pass("verifier")
	b.pass("tester")
	b.pass("reviewer")
	b.status(StatusWaiting, "", "reviewer")
	since := b.run.Stage("reviewer").Since
	b.now = b.now.Add(time.Hour)
	b.refuse(judge("bob", "reviewer", Approve, ""), CodeSeparation)
	if by := b.run.StatusAt(b.now).DecideBy; !since.Equal(b.run.Stage("reviewer").Since) || !by.Equal(since.Add(24*time.Hour)) {
		t.Fatalf("to be decided by %s, want a day after %s, whatever happens in between", by, since)
	}
	if s := b.must(judge("carol", "reviewer", Approve, "")); s.Answer != CodeApproved {
		t.Fatalf("answer %s", s.Answer)
	}
	b.status(StatusApproved, "", Done)
	e := human("alice")
	e.Do = Deliver{Delivered{Commit: "c", Tree: tree("w1"), Ref: "refs/heads/x"}}
	b.must(e)
	b.status(StatusDelivered, "", Done)
	e = human("alice")
	e.Do = Cancel{Note: "late"}
	b.refuse(e, CodeRunClosed)
}

func TestGateThatSaysNoSendsTheWorkBack(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Default, true)
	b.plan("plan_1")
	b.must(work("bob", "w1"))
	b.pass("developer")
	b.pass("verifier")
	found := Finding{Category: "defect", Message: "TestX is red"}
	b.must(measured(b.run.Stage("tester"), "suite.full", gate.No, found))
	if got := b.states(); got != "passed ready locked locked locked" && got != "passed ready stale locked locked" {
		t.Fatalf("states %s", got)
	}
	b.status(StatusOpen, "", "developer")
	b.refuse(work("bob", "w1"), CodeSameTree)
	b.refuse(work("bob", "w2"), CodeFindingsOpen)
	e := human("bob", policy.Developer)
	e.Do = Answer{Finding: "F-1", Addressed: true}
	b.must(e)
	b.refuse(work("bob", "w2"), CodeFindingsOpen) // the bundle was not delivered
	e = human("bob", policy.Developer)
	e.Do = Feedback{Stage: "developer", To: "bob", Transport: "cli"}
	b.must(e)
	b.must(work("bob", "w2"))
	b.pass("developer")
	b.pass("verifier")
	b.must(measured(b.run.Stage("tester"), "suite.full", gate.No, found))
	if f := b.run.Finding("F-1"); !f.NotCorrected || f.State != FindingOpen || len(b.run.Findings) != 1 {
		t.Fatalf("the same finding again: %+v", b.run.Findings)
	}
	for _, e := range []Event{
		{Actor: human("bob").Actor, Roles: []policy.Role{policy.Developer}, Do: Answer{Finding: "F-1", Addressed: true}},
		{Actor: human("bob").Actor, Roles: []policy.Role{policy.Developer}, Do: Feedback{Stage: "developer", To: "bob", Transport: "cli"}},
		work("bob", "w3"),
	} {
		b.must(e)
	}
	b.pass("developer")
	b.pass("verifier")
	b.pass("tester")
	if f := b.run.Finding("F-1"); f.State != FindingSettled {
		t.Errorf("measured again and not found, the finding is %s", f.State)
	}
}

func TestUnmeasuredIsNeverAPass(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Default, true)
	b.plan("plan_1")
	b.must(work("bob", "w1"))
	for _, g := range b.run.Stage("developer").Missing()[1:] {
		b.must(measured(b.run.Stage("developer"), g, gate.Pass))
	}
	late := measured(b.run.Stage("developer"), "plan.diff", gate.Pass)
	b.must(measured(b.run.Stage("developer"), "plan.diff", gate.NotMeasured))
	b.status(StatusBlocked, ReasonUnmeasured, "developer")
	b.refuse(late, CodeSuperseded)
	e := human("bob", policy.Developer)
	e.Do = Remeasure{Stage: "developer"}
	b.must(e)
	b.refuse(late, CodeSuperseded)
	b.pass("developer")
	if got := b.run.Stage("developer").State; got != Passed {
		t.Errorf("developer is %s", got)
	}
}

func TestReviewersVetoAndItsWithdrawal(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Default, true)
	b.plan("plan_1")
	b.must(work("bob", "w1"))
	for _, s := range []string{"developer", "verifier", "tester", "reviewer"} {
		b.pass(s)
	}
	b.must(judge("carol", "reviewer", Reject, "no"))
	b.status(StatusBlocked, ReasonRejected, "reviewer")
	b.refuse(judge("alice", "reviewer", Approve, "yes"), CodeVetoStands)
	e := human("alice", policy.Reviewer)
	e.Do = Withdraw{Stage: "reviewer", Note: "x"}
	b.refuse(e, CodeNotPermitted)
	e = human("carol", policy.Reviewer)
	e.Do = Withdraw{Stage: "reviewer", Note: "I misread"}
	b.must(e)
	b.must(judge("alice", "reviewer", Approve, "yes"))
	b.status(StatusApproved, "", Done)
	// Until delivery a pass can be taken back.
	b.must(judge("carol", "reviewer", RequestChanges, "on second thought"))
	b.status(StatusOpen, "", "developer")
	if f := b.run.Findings; len(f) != 1 || f[0].Author != "carol" || f[0].Target != "developer" {
		t.Errorf("findings %+v", f)
	}
}

func TestWaiverLetsAGateThrough(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Default, true)
	b.plan("plan_1")
	b.must(work("bob", "w1"))
	for _, g := range b.run.Stage("developer").Missing() {
		o := gate.Pass
		if g == "secrets" {
			o = gate.No
		}
		b.must(measured(b.run.Stage("developer"), g, o, issuesFor(g)...))
	}
	if got := b.run.Stage("developer").State; got == Passed {
		t.Fatal("a no passed")
	}
	waive := func(by string) Event {
		e := human(by, policy.Roles()...)
		e.Do = Waive{ID: "wvr_1", Gate: "secrets", Reason: "a test vector", Expires: b.now.Add(time.Hour)}
		return e
	}
	b.refuse(waive("bob"), CodeSeparation)
	agent := waive("robot")
	agent.Actor.Kind = kindAgent
	b.refuse(agent, CodeNotPermitted)
	none := waive("carol")
	none.Rights = nil
	b.refuse(none, CodeNotPermitted)
	b.must(waive("carol"))
	if got := b.run.Stage("developer").State; got != Passed {
		t.Fatalf("developer is %s after the waiver; run %s", got, b.states())
	}
	if e := b.run.Stage("developer").Evidence["secrets"]; e.Waiver != "wvr_1" || e.Outcome != gate.No {
		t.Errorf("the gate counts as %+v, not as waived", e)
	}
}

func issuesFor(g string) []Finding {
	if g == "secrets" {
		return []Finding{{Category: "defect", Message: "a key"}}
	}
	return nil
}

func TestUnplannedNeedsAnothersWaiver(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Default, true)
	b.plan("plan_1")
	e := work("bob", "w1")
	s := e.Do.(Submit)
	s.Unplanned, s.NeedToken = true, true
	e.Do = s
	b.refuse(e, CodeWaiverMissing)
	w := human("bob", policy.Developer)
	w.Do = Waive{ID: "wvr_1", Gate: WaiveUnplanned, Reason: "r", Expires: b.now.Add(time.Hour)}
	b.must(w) // his own waiver does not help him
	b.refuse(e, CodeWaiverMissing)
	w = human("carol", policy.Reviewer)
	w.Do = Waive{ID: "wvr_2", Gate: WaiveUnplanned, Reason: "r", Expires: b.now.Add(time.Hour)}
	agent := e
	agent.Actor.Kind = kindAgent
	b.run.Waivers = nil
	b.refuse(agent, CodeNotPermitted)
}

func TestIdempotencyKeyIsKept(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Manual, false)
	e := withPlan(decide(policy.Planner, Approve, "p"), "plan_p")
	e.Idem, e.Request = "k1", evidence.DigestOf([]byte("r"))
	b.must(e)
	p, ok := b.run.Replay("k1")
	if !ok || p.Answer != CodeApproved || p.Request != e.Request {
		t.Errorf("replay = %+v, %v", p, ok)
	}
}

func TestClockThatGoesBack(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Manual, false)
	e := withPlan(decide(policy.Planner, Approve, "p"), "plan_p")
	e.Now = start.Add(-time.Hour)
	s := b.must(e)
	if h := s.Facts[0].head(); !h.ClockBack || h.At.Before(b.entriesTime(0)) {
		t.Errorf("head %+v", h)
	}
}

func (b *bench) entriesTime(i int) time.Time {
	f, err := decode(b.entries[i])
	if err != nil {
		b.t.Fatal(err)
	}
	return f.head().At
}

// TestRandomEvents puts random events into runs and looks at what must never
// happen.
func TestRandomEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{policy.Manual, policy.Default}).Draw(rt, "policy")
		b := open(t, name, rapid.Bool().Draw(rt, "enforced"))
		for range rapid.IntRange(1, 40).Draw(rt, "events") {
			e := randomEvent(rt, b)
			closed := b.run.StatusAt(b.now).Word.Closed()
			before := len(b.entries)
			_, err := b.put(e)
			if _, claims := e.Do.(Say); closed && !claims && err == nil && len(b.entries) > before {
				rt.Fatalf("a closed run took a %T", e.Do)
			}
			invariants(rt, &b.run)
		}
	})
}

func randomEvent(rt *rapid.T, b *bench) Event {
	who := rapid.SampledFrom([]string{"alice", "bob", "carol"}).Draw(rt, "who")
	stage := rapid.SampledFrom([]string{"planner", "developer", "verifier", "tester", "reviewer"}).Draw(rt, "stage")
	note := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "note")
	e := human(who, policy.Roles()...)
	// Half of the events go forward, so that runs come to their end and back.
	forward := rapid.Bool().Draw(rt, "forward")
	if at := b.run.StatusAt(b.now).Stage; forward && at != Done {
		stage = at
	}
	s := b.run.Stage(stage)
	sub := Submission{Note: note, Subject: Subject{Note: evidence.DigestOf([]byte(note))}}
	switch stage {
	case "planner":
		sub.Contract, sub.Subject.Plan = json.RawMessage(`{}`), "plan_"+note
	case "developer":
		if len(s.Gates) > 0 {
			sub.Subject.Tree = tree(note)
		}
		if b.run.Plan != nil {
			sub.Token = b.run.Plan.Token
		}
	}
	if forward && len(s.Missing()) == 0 {
		e.Do = Decide{Stage: stage, ID: fmt.Sprint("dec_", b.n), Decision: Approve, Note: note, Submission: sub}
		return e
	}
	switch rapid.IntRange(0, 14).Draw(rt, "act") {
	case 0:
		e.Do = Take{Stage: stage}
	case 1, 2:
		e.Do = Submit{Stage: stage, Submission: sub}
	case 3, 4, 5:
		e.Do = Decide{Stage: stage, ID: fmt.Sprint("dec_", b.n), Decision: rapid.SampledFrom(Decisions()).Draw(rt, "decision"), Note: note, Submission: sub}
	case 6, 7, 8, 9:
		if m := s.Missing(); len(m) > 0 {
			e = measured(s, m[0], rapid.SampledFrom(append(gate.Outcomes(), gate.Pass, gate.Pass)).Draw(rt, "outcome"))
		} else {
			e.Do = Say{ID: "clm", Text: note}
		}
	case 10:
		e.Do = Withdraw{Stage: stage, Note: note}
	case 11:
		e.Do = Reopen{Stage: stage, Note: note}
	case 12:
		e.Do = Waive{ID: fmt.Sprint("wvr_", b.n), Gate: rapid.SampledFrom(append(slices.Clone(s.Gates), "P001")).Draw(rt, "gate"), Reason: note, Expires: b.now.Add(time.Hour)}
	case 13:
		e.Do = rapid.SampledFrom([]Act{Pause{note}, Resume{note}, Cancel{note}, Amend{note}, Remeasure{stage}, Release{stage, note}}).Draw(rt, "run")
	default:
		f := "F-1"
		e.Do = rapid.SampledFrom([]Act{
			Answer{Finding: f, Addressed: true, Note: note},
			Answer{Finding: f, Disputed: true, Note: note},
			Answer{Finding: f, Close: true, Note: note},
			Feedback{Stage: stage, To: who},
			Deliver{},
			LoseLease{Stage: stage},
			Invalidate{Stage: stage, Because: "x"},
			lost(&b.run, stage),
		}).Draw(rt, "other")
	}
	return e
}

// lost takes back the first decision that a stage stands on, and every waiver.
func lost(r *Run, stage string) Act {
	v := Invalidate{Stage: stage, Because: "a key was lost"}
	if s := r.Stage(stage); s != nil {
		for _, g := range r.standing(s) {
			v.Void = append(v.Void, g.ID)
			break
		}
	}
	for _, w := range r.Waivers {
		v.Void = append(v.Void, w.ID)
	}
	return v
}

func invariants(rt *rapid.T, r *Run) {
	for i := range r.Stages {
		s := &r.Stages[i]
		if s.State != Passed {
			continue
		}
		if !r.upstream(s) {
			rt.Fatalf("stage %s has passed and its upstream has not", s.ID)
		}
		if s.vetoed(s.Input) {
			rt.Fatalf("stage %s passed over a veto of the same input", s.ID)
		}
		for _, g := range s.Gates {
			if e, ok := s.Evidence[g]; !ok || !r.opens(g, e) {
				rt.Fatalf("stage %s passed and gate %s says %q", s.ID, g, e.Outcome)
			}
		}
		if n := r.Approvals(s); n.Have < n.Need || n.HumansHave < n.HumansNeed {
			rt.Fatalf("stage %s passed with %+v", s.ID, n)
		}
	}
	if st := r.StatusAt(r.Last); (st.Word == StatusApproved) != (st.Stage == Done) && !st.Word.Closed() {
		rt.Fatalf("status %s at stage %s", st.Word, st.Stage)
	}
}

func TestFloodOfRefusals(t *testing.T) {
	t.Parallel()
	b := open(t, policy.Manual, false)
	refuse := func(at time.Time) {
		e := local(policy.Planner)
		e.Now, e.Do = at, Refuse{Refused{Verb: "advance", Code: CodeWrongRole, What: "no"}}
		b.must(e)
	}
	at := start
	for range MostRefusals - 1 {
		at = at.Add(100 * time.Millisecond)
		refuse(at)
	}
	if b.run.Flooded(at) {
		t.Error("99 refusals in ten seconds are a flood, want 100")
	}
	refuse(at)
	if !b.run.Flooded(at) || b.run.Flooded(at.Add(time.Minute)) {
		t.Error("100 refusals in a minute are no flood, or one that never ends")
	}
	if b.run.Refusals != MostRefusals {
		t.Errorf("%d refusals, want %d", b.run.Refusals, MostRefusals)
	}
}

// TestVetoEndsWhatAPassCarries: a pass is carried over a rebase with the same
// difference; one that was taken back is not, whatever became of the veto.
func TestVetoEndsWhatAPassCarries(t *testing.T) {
	t.Parallel()
	rebased := func(veto bool) *bench {
		b := open(t, policy.Default, true)
		b.plan("plan_1")
		b.must(work("bob", "w1"))
		for _, s := range []string{"developer", "verifier", "tester", "reviewer"} {
			b.pass(s)
		}
		b.must(judge("carol", "reviewer", Approve, ""))
		if veto {
			b.must(judge("carol", "reviewer", Reject, "on second thought"))
			e := human("carol", policy.Reviewer)
			e.Do = Withdraw{Stage: "reviewer", Note: "no, let me think"}
			b.must(e)
		}
		var o Opened
		if err := json.Unmarshal(b.entries[0].Body, &o); err != nil {
			t.Fatal(err)
		}
		diff := b.run.Work().Diff
		e := human("alice", policy.Roles()...)
		e.Do = Rebase{Rebased: Rebased{
			Base: Base{Tree: tree("base2")}, PolicyDigest: o.PolicyDigest, PolicyBody: o.PolicyBody, Enforced: true, Holders: o.Holders,
		}, Subject: &Subject{Plan: "plan_1", Tree: tree("w1 on base2"), Diff: diff}}
		b.must(e)
		for _, s := range []string{"developer", "verifier", "tester", "reviewer"} {
			b.pass(s)
		}
		return b
	}
	b := rebased(false)
	b.status(StatusApproved, "", Done)
	b = rebased(true)
	b.status(StatusWaiting, "", "reviewer")
}
