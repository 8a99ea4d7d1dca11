package flow

import (
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// Step is what an event leads to.
type Step struct {
	Facts  []Fact
	Answer fault.Code // ok, approved, rejected, approvals_missing …
}

// Next says what an event does to a run: the run after it, and the facts to
// record. It is pure and total. An error means that nothing may be recorded but
// the refusal itself.
func Next(r Run, e Event) (Run, Step, *fault.Error) {
	t := &turn{run: r.clone(), before: r.Seq, e: e, answer: fault.OK}
	if t.at = e.Now; t.at.Before(r.Last) {
		t.at, t.back = r.Last, true
	}
	if err := t.act(); err != nil {
		return r, Step{}, err
	}
	return t.run, t.finish(), nil
}

// turn is one call of Next.
type turn struct {
	run    Run
	before int64 // last entry of the run before this
	e      Event
	at     time.Time
	back   bool
	facts  []Fact
	answer fault.Code
}

// add folds a fact into the run and keeps it for the ledger. An empty actor is
// the one of the event.
func (t *turn) add(f Fact, s *Stage) {
	h := f.head()
	h.Schema, h.At, h.ClockBack = "proveto/"+string(f.kind())+"/v1", t.at, t.back
	if h.Run == "" {
		h.Run = t.run.ID
	}
	if s != nil {
		h.Stage = s.ID
		if h.Attempt == 0 {
			h.Attempt = s.Attempt
		}
	}
	if h.Actor == (Actor{}) {
		h.Actor = t.e.Actor
	}
	// A fact that does not fit is a broken invariant of ours.
	if err := t.run.take(f, t.run.Seq+1, "", nil); err != nil {
		panic(err)
	}
	t.facts = append(t.facts, f)
}

// finish names the request and says on every fact what the run is after all of
// them.
func (t *turn) finish() Step {
	after := t.run.After()
	for i, f := range t.facts {
		h := f.head()
		h.After = after
		if i == 0 {
			h.Prev = t.before
		}
		if i == 0 && t.e.Idem != "" {
			h.Idem, h.Request, h.Answer = t.e.Idem, t.e.Request, t.answer
		}
	}
	if t.e.Idem != "" && len(t.facts) > 0 {
		if t.run.idem == nil {
			t.run.idem = map[string]Replay{}
		}
		t.run.idem[t.e.Idem] = Replay{Request: t.e.Request, Answer: t.answer, Seq: t.run.Seq - int64(len(t.facts)) + 1, Stage: t.facts[0].head().Stage}
	}
	return Step{Facts: t.facts, Answer: t.answer}
}

func (t *turn) act() *fault.Error {
	if open, ok := t.e.Do.(Open); ok {
		return t.open(open)
	}
	if t.run.ID == "" {
		return fault.New(fault.NotFound, CodeNotFound, "there is no such run").Hint("proveto flow list")
	}
	if f, ok := t.e.Do.(Refuse); ok {
		s := t.run.Stage(f.Stage)
		if s == nil {
			f.Stage = ""
		}
		t.add(&f.Refused, s)
		return nil
	}
	if err := t.sound(); err != nil {
		return err
	}
	if err := t.do(); err != nil {
		return err
	}
	if _, stays := t.e.Do.(Invalidate); !stays {
		t.settle()
	}
	return nil
}

func (t *turn) do() *fault.Error {
	switch a := t.e.Do.(type) {
	case Take:
		return t.doTake(a)
	case Release:
		return t.doRelease(a)
	case LoseLease:
		return t.doLoseLease(a)
	case Submit:
		return t.onStage(a.Stage, func(s *Stage) *fault.Error { return t.submit(s, a.Submission) })
	case Measure:
		return t.doMeasure(a)
	case Remeasure:
		return t.onStage(a.Stage, t.remeasure)
	case Decide:
		return t.onStage(a.Stage, func(s *Stage) *fault.Error { return t.decide(s, a) })
	case Withdraw:
		return t.onStage(a.Stage, func(s *Stage) *fault.Error { return t.withdraw(s, a) })
	case Reopen:
		return t.onStage(a.Stage, func(s *Stage) *fault.Error { return t.reopenByHand(s, a) })
	case Invalidate:
		return t.onStage(a.Stage, func(s *Stage) *fault.Error { return t.invalidate(s, a) })
	case Waive:
		return t.waive(a)
	case Answer:
		return t.answerFinding(a)
	case Amend:
		return t.amend(a)
	case Say:
		if a.Stage != "" && t.run.Stage(a.Stage) == nil {
			return t.unknownStage(a.Stage)
		}
		t.add(&Claim{Head: Head{Stage: a.Stage}, ID: a.ID, Text: a.Text}, t.run.Stage(a.Stage))
	case Feedback:
		return t.onStage(a.Stage, func(s *Stage) *fault.Error {
			t.add(&FeedbackDelivered{To: a.To, Transport: a.Transport, Bundle: a.Bundle, Round: s.Round}, s)
			return nil
		})
	case Pause:
		return t.whole(KindPaused, a.Note, "")
	case Resume:
		return t.whole(KindResumed, a.Note, "")
	case Cancel:
		return t.whole(KindCancelled, a.Note, "cancel")
	case Rebase:
		return t.rebase(a)
	case Deliver:
		return t.deliver(a)
	case Export:
		t.add(&a.Exported, nil)
	case Attest:
		t.add(&Attested{Envelope: a.Envelope}, nil)
	default:
		return fault.New(fault.Internal, "internal", "no act %T", a)
	}
	return nil
}

// sound is guard 0: the run is open and the request is what it seems to be.
func (t *turn) sound() *fault.Error {
	verb := t.e.Do.verb()
	switch t.e.Do.(type) {
	case Export, Attest, Say: // of a closed run, too
	default:
		if s := t.run.StatusAt(t.at).Word; s.Closed() {
			if _, again := t.e.Do.(Deliver); s != StatusDelivered || !again {
				return fault.New(fault.Refused, CodeRunClosed, "run %s is %s: %s is not possible any more", t.run.ID, s, verb).
					Hint("proveto flow report %s", t.run.ID)
			}
		}
	}
	switch t.e.Do.(type) {
	case Resume, Cancel, Pause, Export, Attest, Say, Measure, LoseLease, Feedback, Invalidate:
	default:
		if t.run.Paused {
			return fault.New(fault.Refused, CodeRunPaused, "run %s is paused: %s", t.run.ID, orText(t.run.Why, "no reason was given")).
				Hint("proveto flow resume %s --note TEXT", t.run.ID)
		}
	}
	if t.e.Check != nil {
		return fault.From(t.e.Check)
	}
	return nil
}

// onStage finds the stage.
func (t *turn) onStage(id string, fn func(*Stage) *fault.Error) *fault.Error {
	s := t.run.Stage(id)
	if s == nil {
		return t.unknownStage(id)
	}
	return fn(s)
}

func (t *turn) unknownStage(id string) *fault.Error {
	var names []string
	for _, s := range t.run.Stages {
		names = append(names, s.ID)
	}
	return fault.New(fault.Usage, CodeUnknownStage, "the policy of run %s has no stage %.60q: want %s", t.run.ID, id, strings.Join(names, ", ")).
		Hint("proveto flow status %s", t.run.ID)
}

// move looks the move up in the table.
func (t *turn) move(s *Stage, m Move) (cell, *fault.Error) {
	c := table[s.State][m]
	if c.refuse == "" {
		return c, nil
	}
	return c, t.refusal(s, m, c.refuse)
}

// role is the part of guard 0 about roles.
func (t *turn) role(s *Stage) *fault.Error {
	if t.e.Actor.Kind == kindEngine {
		return nil
	}
	if r := t.e.Actor.Role; r != "" && r != s.Role || !slices.Contains(t.e.Roles, s.Role) {
		who := t.e.Actor.Principal
		if r != "" {
			who = string(r)
		}
		return fault.New(fault.Refused, CodeWrongRole, "stage %s is for role %s, and %s acts here", s.ID, s.Role, who).
			Hint("proveto flow status %s", t.run.ID)
	}
	t.e.Actor.Role = s.Role
	return nil
}

// right is the part of guard 0 about rights.
func (t *turn) right(right string) *fault.Error {
	kind, _, _ := strings.Cut(right, ":")
	if slices.Contains(t.e.Rights, right) || kind == "waive" && slices.Contains(t.e.Rights, "waive:*") {
		return nil
	}
	return fault.New(fault.Refused, CodeNotPermitted, "%s has no right %s", t.e.Actor.Principal, right).
		Hint("proveto flow principals list")
}

const (
	kindEngine = "engine"
	kindHuman  = "human"
	kindAgent  = "agent"
)

// WaiveUnplanned is what a waiver is for that lets a submission go ahead without
// the token of the plan.
const WaiveUnplanned = "unplanned"

func (t *turn) open(a Open) *fault.Error {
	if t.run.ID != "" {
		return fault.New(fault.Internal, "internal", "run %s is open already", t.run.ID)
	}
	if t.e.Check != nil {
		return fault.From(t.e.Check)
	}
	if _, err := decodePolicy(a.PolicyBody); err != nil {
		return fault.From(err)
	}
	f := a.Opened
	t.add(&f, nil)
	t.settle()
	return nil
}

// whole changes the run as a whole.
func (t *turn) whole(k Kind, note, right string) *fault.Error {
	if right != "" {
		if err := t.right(right); err != nil {
			return err
		}
	}
	if blankText(note) {
		return t.noteMissing(strings.TrimPrefix(string(k), "flow."))
	}
	t.add(&Noted{What: k, Note: note}, nil)
	return nil
}

func (t *turn) noteMissing(what string) *fault.Error {
	return fault.New(fault.Usage, CodeNoteMissing, "%s needs a note that says why", what).Hint("proveto flow %s --help", t.e.Do.verb())
}

func blankText(s string) bool { return strings.TrimSpace(s) == "" }

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// gates are today's digests of the gates of a stage.
func (t *turn) gates(s *Stage) []evidence.Digest {
	out := make([]evidence.Digest, len(s.Gates))
	for i, g := range s.Gates {
		out[i] = t.e.Gates[g]
	}
	return out
}
