package flows

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/view"
)

// InitOptions are a new run as the user gives it.
type InitOptions struct {
	Request
	Task    string
	Project string // default
	Base    string // rev; HEAD
	Target  string // ref; the current branch
	Policy  string // name; default
	After   []string
}

// The longest texts that are taken.
const (
	MaxTask = 64 << 10
	MaxNote = 1 << 20
)

// Init opens a run.
func (f *Flows) Init(ctx context.Context, o InitOptions) (*view.FlowAdvance, error) {
	if err := checkText("--task", o.Task, MaxTask); err != nil {
		return nil, err
	}
	if strings.TrimSpace(o.Task) == "" {
		return nil, fault.New(fault.Usage, "usage", "the task is blank").Hint("proveto flow init --task 'Add OAuth login'")
	}
	if o.Project == "" {
		o.Project = "default"
	}
	if err := checkText("--project", o.Project, 200); err != nil {
		return nil, err
	}
	g, err := f.ground(ctx, o.Policy, o.Base, o.Target)
	if err != nil {
		return nil, err
	}
	for i, ref := range o.After {
		if o.After[i], err = f.resolve(ctx, ref); err != nil {
			return nil, err
		}
	}
	if g.roster.Enforced { // its target can take back trust, from wherever the run is worked on
		snaps, err := f.app.Snapshots(ctx)
		if err == nil {
			err = snaps.Remember(ctx, g.repo)
		}
		if err != nil {
			return nil, err
		}
	}
	now, err := f.believedHere(ctx, g.roster)
	if err != nil {
		return nil, err
	}
	who, err := f.caller(ctx, now, o.Request)
	if err != nil {
		return nil, err
	}
	opened, err := g.opened(f.app.Now())
	if err != nil {
		return nil, err
	}
	opened.Task, opened.Project = o.Task, o.Project
	opened.Run = "run_" + ulid.Make().String()
	ev := flow.Event{Now: f.app.Now(), Actor: who.Actor, Roles: who.Roles, Rights: who.Rights, Gates: g.gates, Idem: o.Idem}
	var d done
	err = f.app.Record(ctx, func(led *ledger.Ledger, tx *store.Tx) ([]ledger.Entry, error) {
		d = done{}
		opened.AfterRun = o.After
		ev.Do = flow.Open{Opened: opened}
		if ev.Request, err = requestDigest(ev); err != nil {
			return nil, err
		}
		switch e, was, err := led.ByIdem(ctx, tx, "", o.Idem); {
		case err != nil:
			return nil, err
		case was:
			d, err = f.replayOpen(ctx, led, tx, e, ev)
			return nil, err
		}
		_, step, ferr := flow.Next(flow.Run{}, ev)
		if ferr != nil {
			return nil, ferr
		}
		entries, err := appendFacts(ctx, led, tx, step.Facts)
		if err != nil {
			return nil, err
		}
		d.answer, d.ledgerID = step.Answer, led.ID()
		if d.Run, err = flow.Fold(facts(entries), token); err != nil {
			return nil, err
		}
		d.head, err = led.HeadIn(ctx, tx)
		return entries, err
	})
	if err != nil {
		return nil, err
	}
	if err := f.copies(d.known); err != nil {
		return nil, err
	}
	v := f.answer(d, "")
	v.RunDir = f.dir(d.ID)
	v.Text = fmt.Sprintf("run %s is open: %s", d.ID, firstStep(d.Run))
	return v, nil
}

func (f *Flows) replayOpen(ctx context.Context, led *ledger.Ledger, tx *store.Tx, e ledger.Entry, ev flow.Event) (done, error) {
	var d done
	var h flow.Head
	if err := json.Unmarshal(e.Body, &h); err != nil {
		return d, err
	}
	entries, err := led.RunEntriesIn(ctx, tx, h.Run, 0)
	if err != nil {
		return d, err
	}
	if d.Run, err = flow.Fold(facts(entries), token); err != nil {
		return d, err
	}
	p, _ := d.Replay(ev.Idem)
	if p.Request != ev.Request {
		return d, idemConflict(ev.Idem)
	}
	d.answer, d.replayed, d.ledgerID = p.Answer, true, led.ID()
	d.head, err = led.HeadIn(ctx, tx)
	return d, err
}

func firstStep(r flow.Run) string {
	st := r.StatusAt(r.Last)
	return fmt.Sprintf("stage %s is first", st.Stage)
}

// checkText refuses what is no text or too long, before anything happens.
func checkText(flag, s string, most int) error {
	switch {
	case len(s) > most:
		return fault.New(fault.Usage, "too_large", "%s has %d bytes; %d is the most", flag, len(s), most)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return fault.New(fault.Usage, "bad_utf8", "%s is not valid UTF-8 text", flag)
	}
	return nil
}
