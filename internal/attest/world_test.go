package attest_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/proveto/proveto/internal/attest"
	"github.com/proveto/proveto/internal/blob"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

// world is a real ledger with a run in it, and two people with keys.
type world struct {
	t      testing.TB
	led    *ledger.Ledger
	db     *store.DB
	engine identity.Engine
	people map[string]identity.Person
	roster identity.Roster
	run    flow.Run
	gates  map[string]evidence.Digest
	merged evidence.Tree // that the merge gate finds; empty: the work
	// spoil changes a fact before it is recorded, or an outcome before it is judged.
	spoil   func(flow.Fact)
	measure func(*flow.Measure)
	// sign changes a statement before it is signed.
	sign func(map[string]any)
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func person(t testing.TB, name string) (identity.Person, identity.Engine) {
	t.Helper()
	k := must[*identity.Keys](t)(identity.Open(t.TempDir()))
	p := k.Local
	p.Principal = name
	return p, k.Engine
}

// newWorld opens a run under a built-in policy; local: nobody is named at the base.
func newWorld(t testing.TB, name string, local bool) *world {
	t.Helper()
	w := &world{t: t, people: map[string]identity.Person{}, gates: map[string]evidence.Digest{}}
	for _, n := range []string{"alice", "bob", "mallory"} {
		w.people[n], w.engine = person(t, n)
	}
	w.db = storetest.Open(t, storetest.SQLite(t))
	blobs := must[*blob.Store](t)(blob.Open(filepath.Join(t.TempDir(), "blobs")))
	t.Cleanup(func() { _ = blobs.Close() })
	w.led = must[*ledger.Ledger](t)(ledger.Open(t.Context(), w.db, blobs, w.engine))
	if local {
		w.roster = identity.LocalRoster(w.people["alice"])
		p := w.people["alice"]
		p.Principal = identity.LocalPrincipal
		w.people["local"] = p
	} else {
		w.roster = must[identity.Roster](t)(identity.ParseRoster(
			[]byte("alice "+w.people["alice"].AuthorizedKey()+"\nbob "+w.people["bob"].AuthorizedKey()+"\n"),
			[]byte("version: 1\nprincipals:\n  alice: {kind: human, roles: [planner, developer], rights: [deliver]}\n  bob: {kind: human, roles: [reviewer], rights: [\"waive:*\"]}\n")))
	}
	p := must[policy.Policy](t)(policy.Builtin().Named(name))
	for _, s := range p.Stages {
		for _, g := range s.Gates {
			w.gates[g] = evidence.DigestOf([]byte(g))
		}
	}
	o := flow.Opened{
		Head: flow.Head{Run: "run_" + ulid.Make().String()}, Task: "Expired tokens <b>are</b> refused", Project: "default", Base: flow.Base{Commit: strings.Repeat("1", 40), Tree: tree("base")},
		Policy: p.Name, PolicyDigest: must[evidence.Digest](t)(p.Digest()), PolicyBody: must[[]byte](t)(evidence.Canonical(p)), Enforced: w.roster.Enforced,
		Roster: must[[]byte](t)(evidence.Canonical(w.roster)), RosterDigest: must[evidence.Digest](t)(w.roster.Digest()), Holders: w.roster.Holders(),
	}
	w.do(w.by(w.first(), flow.Open{Opened: o}))
	return w
}

func (w *world) first() string {
	if w.roster.Enforced {
		return "alice"
	}
	return "local"
}

func tree(s string) evidence.Tree { return evidence.Tree(evidence.DigestOf([]byte(s)).Hex()[:40]) }

func (w *world) by(name string, do flow.Act) flow.Event {
	ev := flow.Event{Now: time.Now(), Gates: w.gates, Do: do}
	if name == "engine" {
		ev.Actor = flow.Engine()
		return ev
	}
	p, _ := w.roster.Principal(name)
	ev.Actor = flow.Actor{Principal: name, Kind: string(p.Kind), Key: w.people[name].Fingerprint()}
	for _, r := range p.Roles {
		ev.Roles = append(ev.Roles, policy.Role(r))
	}
	ev.Rights = p.Rights
	return ev
}

// do asks the rules and records the facts.
func (w *world) do(ev flow.Event) {
	w.t.Helper()
	_, step, ferr := flow.Next(w.run, ev)
	if ferr != nil {
		w.t.Fatal(ferr)
	}
	var drafts []ledger.Draft
	for _, f := range step.Facts {
		if w.spoil != nil {
			w.spoil(f)
		}
		drafts = append(drafts, must[ledger.Draft](w.t)(ledger.NewDraft(ledger.Kind(flow.KindOf(f)), f)))
	}
	err := w.db.Write(w.t.Context(), func(tx *store.Tx) error {
		entries, err := w.led.Append(w.t.Context(), tx, drafts...)
		if err != nil {
			return err
		}
		run := w.run.Copy()
		for _, e := range entries {
			if err := run.Apply(flow.Entry{Seq: e.Seq, Kind: flow.Kind(e.Kind), Leaf: e.LeafHash(), Body: e.Body}, token); err != nil {
				return err
			}
		}
		w.run = run
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func token(id, leaf string) string {
	t, _ := plan.NewToken(plan.ID(id), leaf)
	return string(t)
}

// signed signs a statement the way the product does.
func (w *world) signed(name string, st map[string]any) *flow.Signature {
	w.t.Helper()
	st["ledger_id"], st["run"] = w.led.ID(), w.run.ID
	if w.sign != nil {
		w.sign(st)
	}
	if by, ok := st["_by"].(string); ok { // somebody else's key
		delete(st, "_by")
		name = by
	}
	b := must[[]byte](w.t)(evidence.Canonical(st))
	p := w.people[name]
	return &flow.Signature{
		Statement: b, Namespace: identity.FlowNamespace, Key: p.AuthorizedKey(),
		Armored: must[string](w.t)(p.SignStatement(context.Background(), b, identity.FlowNamespace)),
	}
}

// judge decides on a stage.
func (w *world) judge(name, stage string, d flow.Decision, note string, sub flow.Submission) {
	w.t.Helper()
	act := flow.Decide{Stage: stage, ID: "dec_" + ulid.Make().String(), Decision: d, Note: note, Submission: sub}
	after, step, ferr := flow.Next(w.run, w.by(name, act))
	if ferr != nil {
		w.t.Fatal(ferr)
	}
	for _, f := range step.Facts {
		if x, ok := f.(*flow.Decided); ok {
			act.Input = x.Input
		}
	}
	act.Attempt = after.Stage(stage).Attempt
	cites := []string{}
	if s := w.run.Stage(stage); len(s.Gates) > 0 {
		for _, g := range s.Gates {
			cites = append(cites, s.Evidence[g].ID)
		}
	}
	act.Signed = w.signed(name, map[string]any{
		"schema": "proveto/decision/v1", "stage": stage, "attempt": act.Attempt, "input": act.Input, "decision": d, "note_sha256": evidence.DigestOf([]byte(note)),
		"cites": cites, "waivers": []string{}, "policy": w.run.PolicyDigest, "seen_seq": w.run.Seq, "time": time.Now().UTC(), "nonce": ulid.Make().String(),
	})
	w.do(w.by(name, act))
}

// submit hands in a subject.
func (w *world) submit(name, stage string, sub flow.Submission) {
	w.t.Helper()
	act := flow.Submit{Stage: stage, Submission: sub}
	after, _, ferr := flow.Next(w.run, w.by(name, act))
	if ferr != nil {
		w.t.Fatal(ferr)
	}
	s := after.Stage(stage)
	act.Signed = w.signed(name, map[string]any{
		"schema": "proveto/submission/v1", "stage": stage, "attempt": s.Attempt, "input": s.Input, "note_sha256": evidence.DigestOf([]byte(sub.Note)),
		"plan": s.Subject.Plan, "tree": s.Subject.Tree, "policy": w.run.PolicyDigest, "seen_seq": w.run.Seq, "time": time.Now().UTC(), "nonce": ulid.Make().String(),
	})
	w.do(w.by(name, act))
}

// measureAll gives a pass to every gate that waits.
func (w *world) measureAll() {
	w.t.Helper()
	for again := true; again; {
		again = false
		for i := range w.run.Stages {
			s := w.run.Stages[i]
			for _, g := range s.Missing() {
				e := gate.Evidence{
					Gate: g, Run: w.run.ID, Stage: s.ID, Attempt: s.Attempt, GateDigest: w.gates[g], Outcome: gate.Pass, Started: time.Now(),
					Subject:   gate.Subject{Tree: s.Subject.Tree, Base: w.run.Base.Tree},
					Isolation: evidence.Namespaces, Network: evidence.Loopback, Runs: []evidence.Digest{evidence.DigestOf([]byte(g + "run"))},
					Metrics: map[string]float64{"share": 0.75}, Tests: &gate.Counts{Discovered: 3, Executed: 3},
				}
				if strings.HasPrefix(g, "prove.") {
					e.Certificates = []evidence.Digest{evidence.DigestOf([]byte("certificate of " + g))}
				}
				if g == "prove.requirements" {
					e.Requirements = map[string]gate.Requirement{"R1": {State: evidence.Proven, Certificates: e.Certificates}}
				}
				m := flow.Measure{Stage: s.ID, Attempt: s.Attempt, Fence: s.Fence, Gate: g, Evidence: e}
				if g == "merge.preview" {
					if m.Merged = s.Subject.Tree; w.merged != "" {
						m.Merged = w.merged
					}
				}
				if w.measure != nil {
					w.measure(&m)
				}
				m.Evidence = must[gate.Evidence](w.t)(m.Evidence.Seal())
				w.do(w.by("engine", m))
				again = true
			}
			if again {
				break
			}
		}
	}
}

const contract = `{"version": 1, "goal": "g", "kind": "behaviour",
 "requirements": [{"id": "R1", "text": "Expired tokens are refused", "acceptance": [{"id": "A1", "test": "a_test.go::TestA", "before": "absent"}]}],
 "scope": [{"id": "S1", "paths": ["a.go"], "ops": ["create"], "for": ["R1"]}]}`

// walk carries the run to its approval, with a return and a refusal on the way.
func (w *world) walk() {
	w.t.Helper()
	w.plan()
	work := func(name string) flow.Submission {
		return flow.Submission{Subject: flow.Subject{Tree: tree(name), Commit: strings.Repeat("2", 40), Diff: evidence.DigestOf([]byte(name))}, Note: "done"}
	}
	w.submit("alice", "developer", work("first"))
	w.measureAll()
	w.judge("bob", "reviewer", flow.RequestChanges, "zero is not tried", flow.Submission{})
	ev := w.by("alice", flow.Refuse{Refused: flow.Refused{Head: flow.Head{Stage: "developer"}, Verb: "submit", Code: "same_tree", What: "the same <i>tree</i>"}})
	w.do(ev)
	w.do(w.by("alice", flow.Feedback{Stage: "developer", To: "alice", Transport: "cli", Bundle: evidence.DigestOf(nil)}))
	for _, x := range w.run.Findings {
		if x.State != flow.FindingOpen {
			continue
		}
		w.do(w.by("alice", flow.Answer{Finding: x.ID, Addressed: true}))
	}
	w.submit("alice", "developer", work("second"))
	w.measureAll()
	w.judge("bob", "reviewer", flow.Approve, "", flow.Submission{})
}

func (w *world) plan() {
	w.t.Helper()
	c := must[*plan.Contract](w.t)(plan.Parse("plan", []byte(contract)))
	id := must[plan.ID](w.t)(c.ID())
	w.submit("alice", "planner", flow.Submission{Subject: flow.Subject{Plan: string(id)}, Contract: must[[]byte](w.t)(c.Canonical()), PlanKind: string(c.Kind)})
	w.measureAll()
}

// manual carries a run of policy manual to its approval.
func (w *world) manual() {
	w.t.Helper()
	for _, s := range []string{"planner", "developer", "verifier", "tester", "reviewer"} {
		sub := flow.Submission{Subject: flow.Subject{Note: evidence.DigestOf([]byte(s))}, Note: s}
		if s == "planner" {
			c := plan.Manual(w.run.Task, s)
			sub.Contract, sub.Subject.Plan = must[[]byte](w.t)(c.Canonical()), string(must[plan.ID](w.t)(c.ID()))
		}
		if w.run.Plan != nil {
			sub.Token, sub.NeedToken = w.run.Plan.Token, true
		}
		w.judge("local", s, flow.Approve, s, sub)
	}
}

func (w *world) deliver() {
	w.t.Helper()
	w.do(w.by("alice", flow.Deliver{Delivered: flow.Delivered{
		Commit: strings.Repeat("3", 40), Tree: w.run.Approved(), Ref: "refs/heads/proveto/x", Old: strings.Repeat("0", 40), Revert: []string{"git", "branch"},
	}}))
}

func (w *world) entries() ledger.ExportedEntries {
	w.t.Helper()
	var x ledger.ExportedEntries
	err := w.db.Read(w.t.Context(), func(tx *store.Tx) error {
		entries, err := w.led.RunEntriesIn(w.t.Context(), tx, w.run.ID, 0)
		if err != nil {
			return err
		}
		x, err = w.led.ExportEntriesIn(w.t.Context(), tx, entries)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return x
}

func (w *world) file() ([]byte, attest.Attestation, error) {
	return attest.File(w.t.Context(), w.entries(), time.Now(), w.led.Sign)
}

// payload is the statement of a line, as JSON.
func payload(t testing.TB, line []byte) (out map[string]any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(must[[]byte](t)(ledger.PeekStatement(line)))))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}
