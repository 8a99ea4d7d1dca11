// Package flows holds the use cases of flow: a function a command. It joins the
// rules of package flow with the ledger, the keys and the gates.
//
// There is one way to write: a run is read and folded, the event is made and
// signed, and in one transaction the run is read again to its end, the rules are
// asked ([flow.Next]), and the facts that they give are appended. What the rules
// refuse is an entry, too. After the commit the copies in the run's directory are
// written; nothing reads them back.
package flows

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/plan"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
)

// Flows are the use cases. Safe for use by several goroutines.
type Flows struct {
	app *app.App
	// Passphrase asks for the passphrase of a key file; nil where nobody is there to
	// be asked.
	Passphrase func(ctx context.Context, file string) ([]byte, error)
}

// New makes the use cases on an application.
func New(a *app.App) *Flows { return &Flows{app: a} }

// Request is what every verb that writes has in common.
type Request struct {
	Run   string // id, its unique end, or @latest
	Actor string // principal or role that acts; empty: who the key is
	Key   string // file or fingerprint of the key to sign with; empty: the usual choice
	Idem  string // the same key gives the same answer
	// Statement and Signature are a decision that was signed elsewhere; nil where a
	// key signs here.
	Statement, Signature []byte

	signs bool // a statement is signed, which proves the key
}

// known is a run as it was read, and the ledger around it.
type known struct {
	flow.Run
	ledgerID string
	head     ledger.Head
	revoked  identity.Revocations
	tip      *tip
	// replay is the evidence that is measured again, instead of what is missing.
	replay *flow.Evidence
}

// load reads a run by its id, its end or @latest.
func (f *Flows) load(ctx context.Context, ref string) (known, error) {
	var k known
	repo := f.repoFor(ctx, ref)
	err := f.app.Read(ctx, func(led *ledger.Ledger, tx *store.Tx) error {
		found, err := led.ResolveRunIn(ctx, tx, ref, repo)
		if err != nil {
			return err
		}
		entries, err := led.RunEntriesIn(ctx, tx, found.ID, 0)
		if err != nil {
			return err
		}
		if k.Run, err = flow.Fold(facts(entries), token); err != nil {
			return err
		}
		k.ledgerID, k.tip = led.ID(), &tip{}
		if k.revoked, err = revocationsIn(ctx, led, tx); err != nil {
			return err
		}
		k.head, err = led.HeadIn(ctx, tx)
		return err
	})
	return k, err
}

// resolve reads a run's id, its end or @latest.
func (f *Flows) resolve(ctx context.Context, ref string) (string, error) {
	led, err := f.app.Ledger(ctx)
	if err != nil {
		return "", err
	}
	run, err := led.ResolveRun(ctx, ref, f.repoFor(ctx, ref))
	return run.ID, err
}

// repoFor is the repository whose runs a reference means; empty for all.
func (f *Flows) repoFor(ctx context.Context, ref string) string {
	if ref != ledger.Latest {
		return ""
	}
	return f.repoHere(ctx)
}

// token derives the token of a plan; a leaf of the ledger and the id of a plan
// always give one.
func token(id, leaf string) string {
	t, err := plan.NewToken(plan.ID(id), leaf)
	if err != nil {
		return ""
	}
	return string(t)
}

// facts are entries as the rules read them.
func facts(entries []ledger.Entry) []flow.Entry {
	out := make([]flow.Entry, len(entries))
	for i, e := range entries {
		out[i] = flow.Entry{Seq: e.Seq, Kind: flow.Kind(e.Kind), Leaf: e.LeafHash(), Body: e.Body}
	}
	return out
}

// done is what a change of a run came to.
type done struct {
	known
	answer   fault.Code
	replayed bool
	facts    []flow.Fact
}

// change carries one event into a run. The event is made by prepare, for the run
// as it was read; when the run has gone on since, the rules judge the same event
// against what it is then. A refusal is recorded in a transaction of its own.
func (f *Flows) change(ctx context.Context, q Request, k known, prepare func(known) (flow.Event, error)) (done, error) {
	d := done{known: k}
	if q.Idem != "" {
		if p, ok := k.Replay(q.Idem); ok {
			return d.again(p, q, prepare)
		}
	}
	k, err := f.takeBack(ctx, k)
	if err != nil {
		return d, err
	}
	d.known = k
	if err := badSignaturesFault(k.ID, badSignatures(k.Run)); err != nil {
		return d, err
	}
	ev, err := prepare(k)
	if err != nil {
		return d, f.refused(ctx, q, k, ev, err)
	}
	ev.Idem = q.Idem
	if ev.Request, err = requestDigest(ev); err != nil {
		return d, err
	}
	err = f.app.Record(ctx, func(led *ledger.Ledger, tx *store.Tx) ([]ledger.Entry, error) {
		entries, derr := f.apply(ctx, led, tx, k, ev, &d)
		return entries, derr
	})
	if err != nil {
		return d, f.refused(ctx, q, k, ev, err)
	}
	if d.replayed {
		p, _ := d.Replay(q.Idem)
		if p.Request != ev.Request {
			return d, idemConflict(q.Idem)
		}
		return d, nil
	}
	return d, f.copies(d.known)
}

// apply is the transaction of change.
func (f *Flows) apply(ctx context.Context, led *ledger.Ledger, tx *store.Tx, k known, ev flow.Event, d *done) ([]ledger.Entry, error) {
	*d = done{known: k}
	since, err := led.RunEntriesIn(ctx, tx, k.ID, k.Seq)
	if err != nil {
		return nil, err
	}
	run := k.Copy()
	for _, e := range facts(since) {
		if err := run.Apply(e, token); err != nil {
			return nil, err
		}
	}
	if p, ok := run.Replay(ev.Idem); ok && ev.Idem != "" {
		d.Run, d.replayed, d.answer = run, true, p.Answer
		return nil, nil
	}
	_, step, ferr := flow.Next(run, ev)
	if ferr != nil {
		return nil, ferr
	}
	if err := f.vouched(ctx, led, tx, known{Run: run, tip: k.tip}, ev, step.Facts); err != nil {
		return nil, err
	}
	if err := f.scopeGuard(ctx, known{Run: run}, ev); err != nil {
		return nil, err
	}
	entries, err := appendFacts(ctx, led, tx, step.Facts)
	if err != nil {
		return nil, err
	}
	for _, e := range facts(entries) {
		if err := run.Apply(e, token); err != nil {
			return nil, err
		}
	}
	d.Run, d.answer, d.facts = run, step.Answer, step.Facts
	d.head, err = led.HeadIn(ctx, tx)
	return entries, err
}

func appendFacts(ctx context.Context, led *ledger.Ledger, tx *store.Tx, list []flow.Fact) ([]ledger.Entry, error) {
	drafts := make([]ledger.Draft, len(list))
	for i, x := range list {
		d, err := ledger.NewDraft(ledger.Kind(flow.KindOf(x)), x)
		if err != nil {
			return nil, err
		}
		drafts[i] = d
	}
	return led.Append(ctx, tx, drafts...)
}

// again gives a request that was answered before its first answer. That the rules
// would refuse it today is no matter, as long as it asks for the same.
func (d done) again(p flow.Replay, q Request, prepare func(known) (flow.Event, error)) (done, error) {
	ev, err := prepare(d.known)
	if ev.Do == nil {
		return d, err
	}
	ev.Idem = q.Idem
	asked, err := requestDigest(ev)
	if err != nil {
		return d, err
	}
	if asked != p.Request {
		return d, idemConflict(q.Idem)
	}
	d.answer, d.replayed = p.Answer, true
	return d, nil
}

func idemConflict(idem string) error {
	return fault.New(fault.Conflict, "idem_conflict", "request %.80q was made before and asked for something else", idem).
		Hint("use another --idem for another request")
}

// requestDigest is what a request asks for, whoever repeats it: without times,
// ids and signatures, which differ each time.
func requestDigest(ev flow.Event) (evidence.Digest, error) {
	if ev.Idem == "" {
		return "", nil
	}
	b, err := evidence.Canonical(flow.Asked(ev))
	if err != nil {
		return "", err
	}
	return evidence.DigestOf(b), nil
}

// refused records what was refused, in a transaction of its own, and gives the
// refusal back. What is no refusal of the rules is not recorded: a usage error,
// because nothing happened; trouble of ours, because nothing can be said.
func (f *Flows) refused(ctx context.Context, q Request, k known, ev flow.Event, err error) error {
	e := fault.From(err)
	if k.ID == "" || !refusals[e.Kind] || notRecorded[e.Code] {
		return err
	}
	r := flow.Refusal(ev, e, q.Actor)
	now := f.app.Now()
	rerr := f.app.Record(ctx, func(led *ledger.Ledger, tx *store.Tx) ([]ledger.Entry, error) {
		entries, err := led.RunEntriesIn(ctx, tx, k.ID, k.Seq)
		if err != nil {
			return nil, err
		}
		run := k.Copy()
		for _, x := range facts(entries) {
			if err := run.Apply(x, token); err != nil {
				return nil, err
			}
		}
		waiting, err := f.counted(ctx, tx, &run, now)
		if err != nil || waiting < 0 {
			return nil, err
		}
		if waiting > 0 {
			r.Count = waiting + 1
		}
		_, step, ferr := flow.Next(run, flow.Event{Now: now, Actor: r.Actor, Do: flow.Refuse{Refused: r}})
		if ferr != nil {
			return nil, ferr
		}
		return appendFacts(ctx, led, tx, step.Facts)
	})
	if rerr != nil && !fault.Has(rerr, "conflict") {
		return errors.Join(err, rerr)
	}
	return err
}

// counted keeps a flood of refusals out of the ledger: negative says that this one
// was only counted; else it is how many were since the last one recorded.
func (f *Flows) counted(ctx context.Context, tx *store.Tx, run *flow.Run, now time.Time) (int, error) {
	key := "flow_refused:" + run.ID
	n := 0
	switch s, err := tx.Meta(ctx, key); {
	case errors.Is(err, store.ErrNoRow):
	case err != nil:
		return 0, err
	default:
		if n, err = strconv.Atoi(s); err != nil {
			return 0, fault.Wrap(err, fault.Tampered, "ledger_broken", "count of refusals of run %s", run.ID)
		}
	}
	if run.Flooded(now) {
		return -1, tx.SetMeta(ctx, key, strconv.Itoa(n+1))
	}
	if n > 0 {
		return n, tx.SetMeta(ctx, key, "0")
	}
	return 0, nil
}

// refusals are the kinds of errors by which the rules refuse a request.
var refusals = map[fault.Kind]bool{fault.Refused: true, fault.NotFound: true, fault.Conflict: true, fault.Negative: true}

// notRecorded are codes of kind conflict that say nothing about the request.
var notRecorded = map[fault.Code]bool{"busy": true, "no_space": true, "io": true}
