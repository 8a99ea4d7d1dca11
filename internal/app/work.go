package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/prove"
	"github.com/proveto/proveto/internal/queue"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/view"
)

// codeOutOfBudget is the reason of what was not begun before the budget ended.
const codeOutOfBudget fault.Code = "out_of_budget"

// batchSize is how many targets one job attempts: enough that a job is worth its
// row, few enough that two workers end together.
const batchSize = 6

// The kinds of jobs of a start, in a queue named by the invocation.
const (
	jobPrepare = "prove_prepare" // build a unit's suite, run its baselines and controls
	jobAttempt = "prove_attempt" // measure a batch of targets with a prepared suite
)

// newJob is a job before it is enqueued.
type newJob struct {
	kind string
	args jobArgs
}

type jobArgs struct {
	Project string   `json:"project"` // directory
	Unit    string   `json:"unit"`
	Targets []string `json:"targets,omitempty"`
}

// work is the part of an invocation that changes while its jobs run.
type work struct {
	mu         sync.Mutex
	queue      *queue.Queue
	deadline   time.Time // zero: no budget
	left       int       // attempts still allowed; negative: any number
	open       int       // jobs enqueued and not ended
	suites     int       // units to prepare
	building   int       // units whose build has begun
	preparing  int       // units whose prepare job has not ended
	waiting    []*unit   // units whose prepare job is not enqueued yet
	crossed    bool      // targets that their own unit does not reach were given out
	done       int
	total      int
	firstProof time.Duration
	failure    error
	ended      chan struct{} // closed when open falls to zero, or at the first failure
}

// unit is a suite of the project and what became of it.
type unit struct {
	project *project
	id      string
	tests   int
	targets []string // symbols of its own that need measuring
	needed  bool
	ready   *prove.Unit
	failure error
}

// prove measures every target that has no live evidence, within the budget.
// What it could not measure is a reason in known, not an error.
func (inv *invocation) prove(ctx context.Context) error {
	inv.plan()
	if inv.o.StaticOnly {
		inv.everyOpen("static_only", "")
		return nil
	}
	var units []*unit
	for _, p := range inv.projects {
		for _, u := range p.units {
			if u.needed && u.tests > 0 && u.failure == nil {
				units = append(units, u)
			}
		}
	}
	if len(units) == 0 {
		inv.cross() // what is open has no test at all
		return nil
	}
	sort.Slice(units, func(i, j int) bool { return units[i].before(units[j]) })
	q, err := inv.app.Queue(ctx)
	if err != nil {
		return err
	}
	inv.work.queue, inv.ended, inv.left = q, make(chan struct{}), inv.o.Limit
	if inv.o.Budget > 0 {
		inv.deadline = inv.began.Add(inv.o.Budget)
	}
	inv.p.Phase("prove", plural(len(units), "suite"))
	// Enqueued first: a lane looks at once when it starts.
	if err := inv.enqueueAll(ctx, units); err != nil {
		inv.everyOpen("interrupted", "")
		return err
	}
	lane, err := q.Invocation(ctx, inv.id, inv.app.slots(), inv.job)
	if err != nil {
		return err
	}
	select {
	case <-inv.ended:
	case <-ctx.Done():
		err = fault.Wrap(context.Cause(ctx), fault.Interrupted, "interrupted", "stopped")
	}
	stopErr := lane.Stop()
	inv.work.mu.Lock()
	failure := inv.failure
	inv.work.mu.Unlock()
	if cerr := inv.commit(context.WithoutCancel(ctx), nil, nil); cerr != nil {
		stopErr = errors.Join(stopErr, cerr)
	}
	switch {
	case failure != nil:
		return failure
	case err != nil:
		inv.everyOpen("interrupted", "")
		return err
	}
	return stopErr
}

// plan chooses the targets: in scope, without live evidence, and not refuted by
// the same inputs before.
func (inv *invocation) plan() {
	defer inv.carryReasons(func(k *known) bool { return !inv.selected(k) })
	for _, p := range inv.projects {
		renew := map[string]bool{}
		for _, r := range p.order {
			k := p.known[r.ID]
			if !inv.selected(k) {
				if k.bare() {
					k.reason, k.detail = "pending", "outside what was asked for"
				}
				continue
			}
			if !inv.o.Again && (inv.settled(k) || inv.stillUnreached(k)) {
				continue
			}
			u := p.units[r.Unit]
			if u == nil {
				continue
			}
			k.reason, k.detail, k.command = "pending", "", ""
			u.targets = append(u.targets, r.ID)
			u.needed = true
			if k.stale != nil {
				renew[k.stale.Record.Facts.Unit] = true
			}
		}
		for id := range renew {
			if u := p.units[id]; u != nil {
				u.needed = true
			}
		}
		for _, r := range p.order {
			// Symbols of a package without tests may be reached from another one.
			if own := p.units[r.Unit]; p.known[r.ID].open() && (own == nil || own.tests == 0 || own.failure != nil) {
				p.needImporters(r.Unit)
			}
		}
	}
}

// open tells whether a target waits for an attempt.
func (k *known) open() bool { return k.reason == "pending" && k.detail == "" }

// needImporters marks the suites with tests that import a unit, also through
// others, as needed, and returns those that were not: no other suite can reach
// what is in the unit.
func (p *project) needImporters(id string) []*unit {
	importers := map[string][]string{}
	for _, u := range p.today.Scan.Units {
		for _, imported := range u.Imports {
			importers[imported] = append(importers[imported], u.ID)
		}
	}
	var woken []*unit
	for _, user := range prove.Reachable(importers[id], func(id string) []string { return importers[id] }) {
		if w := p.units[user]; user != id && w.tests > 0 && !w.needed && w.failure == nil {
			w.needed = true
			woken = append(woken, w)
		}
	}
	return woken
}

// wake finds the suites that were not needed so far and may reach what no other
// one did. Where only a part was asked for, the tests of its own packages answer.
// The caller holds the lock.
func (inv *invocation) wake() []*unit {
	if !inv.proofOn() || inv.narrow() {
		return nil
	}
	var woken []*unit
	for _, p := range inv.projects {
		asked := map[string]bool{}
		for _, r := range p.order {
			if !asked[r.Unit] && p.known[r.ID].open() && p.reacher(r.ID) == nil {
				asked[r.Unit] = true
				woken = append(woken, p.needImporters(r.Unit)...)
			}
		}
	}
	return woken
}

// settled tells whether a target needs no attempt: it has live evidence, or the
// same inputs were measured before and would give the same answer again.
func (inv *invocation) settled(k *known) bool {
	m := k.measurement
	if m != nil && inv.waiversDiffer(m) {
		return false
	}
	if inv.o.Score && (m == nil || !slices.ContainsFunc(m.Trials, func(t evidence.TrialRecord) bool { return t.Probe.Kind != evidence.ProbeResult })) {
		return false
	}
	// A measurement that says proven is worth no more than its certificates.
	return k.live != nil || (m != nil && m.Word != evidence.Proven && !retried[m.Reason])
}

// waiversDiffer tells whether a probe was waived, or its waiver ended, since the
// measurement.
func (inv *invocation) waiversDiffer(m *evidence.MeasurementRecord) bool {
	waived := inv.app.waivedFunc()
	return slices.ContainsFunc(m.Trials, func(t evidence.TrialRecord) bool {
		_, now := waived(t.Probe, m.Target.SymbolDigest)
		return now != (t.Status == evidence.Waived)
	})
}

func (inv *invocation) selected(k *known) bool {
	// An uncommitted change touches also what lost its certificate by it.
	if inv.o.ChangedOnly && !k.ranked.Changed && (inv.o.Base != "" || k.stale == nil || k.live != nil) {
		return false
	}
	return inv.asked(k.ranked.Symbol)
}

// before orders suites: those with targets in the changed scope, then the small
// ones, so that a first proof comes soon.
func (u *unit) before(o *unit) bool {
	a, b := u.changed(), o.changed()
	switch {
	case a != b:
		return a
	case (len(u.targets) > 0) != (len(o.targets) > 0):
		return len(u.targets) > 0
	case u.tests != o.tests:
		return u.tests < o.tests
	}
	return u.id < o.id
}

func (u *unit) changed() bool {
	return slices.ContainsFunc(u.targets, func(id string) bool { return u.project.known[id].ranked.Changed })
}

func (inv *invocation) enqueueAll(ctx context.Context, units []*unit) error {
	now := units[:min(len(units), inv.app.slots())]
	inv.work.mu.Lock()
	inv.open, inv.suites, inv.preparing, inv.waiting = len(now), len(units), len(units), units[len(now):]
	for _, u := range units {
		inv.total += len(u.targets)
	}
	inv.work.mu.Unlock()
	return inv.commit(ctx, nil, func(tx *store.Tx) error {
		for _, u := range now {
			if err := inv.enqueue(ctx, tx, u.prepareJob()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (u *unit) prepareJob() newJob {
	return newJob{jobPrepare, jobArgs{Project: u.project.Dir, Unit: u.id}}
}

func (inv *invocation) enqueue(ctx context.Context, tx *store.Tx, j newJob) error {
	_, err := inv.work.queue.Enqueue(ctx, tx, inv.id, j.kind, j.args)
	return err
}

// job works one job. An error of ours ends the invocation; what could not be
// measured does not.
func (inv *invocation) job(ctx context.Context, j queue.Job) error {
	var args jobArgs
	err := json.Unmarshal(j.Args, &args)
	if err == nil {
		u := inv.unit(args)
		switch {
		case u == nil:
			err = fmt.Errorf("job %d names unit %q, which is not in this start", j.ID, args.Unit)
		case j.Kind == jobPrepare:
			err = inv.prepare(ctx, j, u)
		default:
			err = inv.attempt(ctx, j, u, args.Targets)
		}
	}
	if err != nil && ctx.Err() == nil {
		inv.work.mu.Lock()
		if inv.failure == nil {
			inv.failure = err
			close(inv.ended)
		}
		inv.work.mu.Unlock()
	}
	return err
}

func (inv *invocation) unit(args jobArgs) *unit {
	for _, p := range inv.projects {
		if p.Dir == args.Project {
			if u := p.units[args.Unit]; u != nil {
				return u
			}
		}
	}
	return nil
}

// finish ends a job: the runs that it made, the jobs that follow from it and its
// completion are one transaction.
func (inv *invocation) finish(ctx context.Context, j queue.Job, next []newJob) error {
	inv.work.mu.Lock()
	inv.open += len(next)
	inv.work.mu.Unlock()
	err := inv.commit(ctx, nil, func(tx *store.Tx) error {
		for _, n := range next {
			if err := inv.enqueue(ctx, tx, n); err != nil {
				return err
			}
		}
		return inv.work.queue.CompleteTx(ctx, tx, j)
	})
	if err != nil {
		return err
	}
	inv.work.mu.Lock()
	defer inv.work.mu.Unlock()
	if inv.open--; inv.open == 0 && inv.failure == nil {
		close(inv.ended)
	}
	return nil
}

// prepare builds a unit and runs its baselines; its targets become jobs, those
// that it does not reach wait for the other units.
func (inv *invocation) prepare(ctx context.Context, j queue.Job, u *unit) error {
	var ready *prove.Unit
	err := inv.inTime()
	if err == nil {
		ready, err = inv.makeReady(ctx, u)
	}
	if err != nil && (ctx.Err() != nil || !credibleSetup(err)) {
		return err
	}
	u.ready, u.failure = ready, err
	var next []newJob
	if u.failure == nil && inv.proofOn() {
		next = u.batches(u.reached(u.targets))
	}
	inv.work.mu.Lock()
	follow := 1
	if inv.preparing--; inv.preparing == 0 {
		inv.waiting, follow = inv.wake(), inv.app.slots()
		inv.preparing = len(inv.waiting)
	}
	follow = min(follow, len(inv.waiting))
	for _, w := range inv.waiting[:follow] {
		// Behind the first results of this unit, before the rest of them.
		next = slices.Insert(next, min(1, len(next)), w.prepareJob())
	}
	inv.waiting = inv.waiting[follow:]
	last := inv.preparing == 0
	inv.work.mu.Unlock()
	if last {
		next = append(next, inv.cross()...)
	}
	return inv.finish(ctx, j, next)
}

// inTime refuses new work once the budget is over. What has begun goes on to its
// end.
func (inv *invocation) inTime() error {
	if inv.deadline.IsZero() || !inv.app.now().After(inv.deadline) {
		return nil
	}
	return fault.New(fault.Unmeasured, codeOutOfBudget, "the budget of %s ended first", inv.o.Budget)
}

func (inv *invocation) proofOn() bool { return !inv.o.NoProof && inv.o.Limit != 0 }

func (inv *invocation) makeReady(ctx context.Context, u *unit) (*prove.Unit, error) {
	inv.work.mu.Lock()
	inv.building++
	n, of := inv.building, inv.suites
	inv.work.mu.Unlock()
	inv.p.Count("build", n, of, u.id)
	s, err := u.project.driver.Build(ctx, inv.workspace(), u.project.today.Scan, u.id)
	if err != nil {
		return nil, err
	}
	inv.p.Phase("baseline", u.id)
	ready, err := prove.Prepare(ctx, s, u.project.today, inv.snap.Tree)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return ready, nil
}

func (u *unit) reached(targets []string) (in []string) {
	for _, id := range targets {
		if len(u.ready.Reaching(id)) > 0 {
			in = append(in, id)
		}
	}
	return in
}

// batches cuts targets into jobs. The first few are the smallest with a fast
// test, so that a first result comes soon; the rest keep their rank.
func (u *unit) batches(targets []string) []newJob {
	rest := slices.Clone(targets)
	sort.SliceStable(rest, func(i, j int) bool {
		a, b := u.project.known[rest[i]].ranked, u.project.known[rest[j]].ranked
		return a.Changed && !b.Changed
	})
	if len(rest) > 2*batchSize {
		quick := slices.Clone(rest)
		sort.SliceStable(quick, func(i, j int) bool {
			a, b := u.project.known[quick[i]].ranked, u.project.known[quick[j]].ranked
			if a.Changed != b.Changed {
				return a.Changed
			}
			return a.Statements < b.Statements
		})
		quick = quick[:batchSize]
		rest = append(quick, slices.DeleteFunc(rest, func(id string) bool { return slices.Contains(quick, id) })...)
	}
	var out []newJob
	for chunk := range slices.Chunk(rest, batchSize) {
		out = append(out, newJob{jobAttempt, jobArgs{Project: u.project.Dir, Unit: u.id, Targets: chunk}})
	}
	return out
}

// cross gives every target that its own unit does not reach to the unit whose
// tests reach it, and a reason to those that none reaches. It runs once, when the
// last unit was prepared.
func (inv *invocation) cross() []newJob {
	inv.work.mu.Lock()
	defer inv.work.mu.Unlock()
	if inv.crossed {
		return nil
	}
	inv.crossed = true
	var out []newJob
	for _, p := range inv.projects {
		given := map[*unit][]string{}
		for _, r := range p.order {
			k := p.known[r.ID]
			own := p.units[r.Unit]
			if !k.open() || (own != nil && own.ready != nil && len(own.ready.Reaching(r.ID)) > 0) {
				continue
			}
			if u := p.reacher(r.ID); u != nil && inv.proofOn() {
				given[u] = append(given[u], r.ID)
				continue
			}
			inv.unreached(k, own)
		}
		for u, targets := range given {
			out = append(out, u.batches(targets)...)
		}
	}
	return out
}

// reacher is the ready unit with the fewest tests that reach the symbol.
func (p *project) reacher(symbol string) *unit {
	var best *unit
	for _, u := range p.units {
		if u.ready == nil || len(u.ready.Reaching(symbol)) == 0 {
			continue
		}
		if best == nil || u.tests < best.tests || (u.tests == best.tests && u.id < best.id) {
			best = u
		}
	}
	return best
}

// unreached words a target that no test reaches: because its unit could not be
// prepared, or because there is no such test.
func (inv *invocation) unreached(k *known, own *unit) {
	k.detail, k.command = "", ""
	switch {
	case own != nil && own.failure != nil:
		e := fault.From(own.explained())
		k.reason, k.detail = string(e.Code), firstLine(e.Error())
		if len(e.Hints) > 0 {
			k.command = inv.inProject(own.project.Project, e.Hints[0])
		} else if unfit := own.unfit(); len(unfit) > 0 {
			k.command = inv.testCommand(own, unfit[0].Test, unfit[0].Code)
		}
	case !inv.proofOn():
		k.reason = "proof_off"
	case own != nil && own.project.outOfBudget():
		// Tests that were not run may reach it.
		k.reason = string(codeOutOfBudget)
	case own == nil || own.tests == 0:
		k.reason = string(lang.NoTests)
	case inv.hindered(k, own):
	default:
		k.reason = string(evidence.NoCoverage)
		switch {
		case own.project.someIdle():
			k.detail = "no test of its own package reaches it; the others were not run"
		case inv.elsewhere(own.project):
			k.detail = "no test of its own module reaches it; those of other modules were not run for it"
		}
	}
}

// outOfBudget tells whether a suite of the project was not run because the budget
// ended first.
func (p *project) outOfBudget() bool {
	for _, u := range p.units {
		if u.failure != nil && fault.From(u.failure).Code == codeOutOfBudget {
			return true
		}
	}
	return false
}

// someIdle tells whether a suite of the project was not run at all.
func (p *project) someIdle() bool {
	for _, u := range p.units {
		if u.tests > 0 && u.ready == nil && u.failure == nil {
			return true
		}
	}
	return false
}

// hindered words a target that is reached only by tests that cannot vouch. Those
// of its own unit come first.
func (inv *invocation) hindered(k *known, own *unit) bool {
	units := []*unit{own}
	for _, id := range slices.Sorted(maps.Keys(own.project.units)) {
		units = append(units, own.project.units[id])
	}
	for _, u := range units {
		if u.ready == nil {
			continue
		}
		if t, ok := u.ready.Hindered(k.ranked.ID); ok {
			k.reason, k.detail = string(t.Code), fmt.Sprintf("only %s reaches it: %s", t.Test, orText(firstLine(t.Detail), reasonSentence(string(t.Code))))
			k.command = inv.testCommand(u, t.Test, t.Code)
			return true
		}
	}
	return false
}

// attempt measures a batch of targets. Each outcome is committed as soon as it is
// known; the last commit also ends the job.
func (inv *invocation) attempt(ctx context.Context, j queue.Job, u *unit, targets []string) error {
	for _, id := range targets {
		k := u.project.known[id]
		if why := inv.stopped(); why != "" {
			inv.settle(k, why)
			continue
		}
		out, err := u.ready.Attempt(ctx, id, inv.attemptOptions(k, u))
		if err != nil {
			return fmt.Errorf("%s: %w", k.ranked.Name, err)
		}
		drafts := make([]ledger.Draft, 0, len(out.Certificates)+1)
		for _, c := range out.Certificates {
			drafts = append(drafts, ledger.CertificateDraft(c))
		}
		if inv.filtered() && len(out.Measurement.Record().Trials) == 0 {
			// What was asked for is not here, which says nothing about the target.
			inv.settle(k, "pending")
			continue
		}
		drafts = append(drafts, ledger.MeasurementDraft(out.Measurement))
		if err := inv.commit(ctx, drafts, nil); err != nil {
			return err
		}
		live, err := inv.kept(ctx, out)
		if err != nil {
			return err
		}
		inv.learn(k, out, live)
	}
	return inv.finish(ctx, j, nil)
}

// filtered tells whether a choice by hand leaves out probes or tests. Such an
// attempt earns certificates and adds what it tried to what is known, but a later
// start does not take it for all there is to know.
func (inv *invocation) filtered() bool { return inv.o.Test != "" || len(inv.o.Mutants) > 0 }

// noMatch is the error of a choice by hand that chose nothing.
func (inv *invocation) noMatch() error {
	tried := false
	for _, p := range inv.projects {
		for _, k := range p.known {
			if k.now {
				return nil
			}
			tried = tried || k.open() && inv.selected(k)
		}
	}
	if !inv.filtered() || !tried {
		return nil
	}
	what := "no mutant of what was named is " + strings.Join(inv.o.Mutants, " or ")
	if len(inv.o.Mutants) == 0 {
		what = "no test " + inv.o.Test + " reaches what was named"
	} else if inv.o.Test != "" {
		what += ", with a test " + inv.o.Test + " that reaches it"
	}
	return fault.New(fault.NotFound, "not_found", "%s", what).Hint("proveto why SYMBOL")
}

// stopped says why no further target may be attempted; empty while one may. It
// takes one from the limit.
func (inv *invocation) stopped() string {
	inv.work.mu.Lock()
	defer inv.work.mu.Unlock()
	if inv.inTime() != nil {
		return string(codeOutOfBudget)
	}
	if inv.left == 0 {
		return "limit"
	}
	if inv.left > 0 {
		inv.left--
	}
	return ""
}

func (inv *invocation) settle(k *known, reason string) {
	inv.work.mu.Lock()
	defer inv.work.mu.Unlock()
	k.reason, k.detail = reason, ""
	inv.done++
}

func (inv *invocation) attemptOptions(k *known, u *unit) prove.Options {
	waived := inv.app.waivedFunc()
	o := prove.Options{
		Score: inv.o.Score, Kinds: inv.kinds(),
		Waived: func(probe evidence.Probe) (string, bool) { return waived(probe, k.ranked.Digest) },
	}
	if inv.o.Test != "" {
		o.Tests = []string{inv.o.Test}
	}
	if want := inv.o.Mutants; len(want) > 0 {
		o.Probe = func(p lang.Probe) bool {
			return slices.ContainsFunc(want, func(w string) bool { return matchesProbe(p, w) })
		}
	}
	if c := orStored(k.stale, k.live); c != nil && c.Record.Facts.Unit == u.id {
		f := c.Record.Facts
		o.First = &f
	}
	return o
}

// kept is the certificate of an outcome that proves its target, with its place in
// the ledger; nil when there is none.
func (inv *invocation) kept(ctx context.Context, out prove.Outcome) (*stored, error) {
	var live *stored
	for _, c := range out.Certificates {
		if proves(c.Record()) {
			live = &stored{Digest: c.Digest(), Record: c.Record()}
		}
	}
	if live == nil {
		return nil, nil
	}
	led, err := inv.app.Ledger(ctx)
	if err == nil {
		live.Seq, err = led.SeqOf(ctx, ledger.Ref{What: string(ledger.KindCertificate), Digest: live.Digest})
	}
	return live, err
}

// learn keeps what an attempt found and tells the user when it is a first proof.
func (inv *invocation) learn(k *known, out prove.Outcome, live *stored) {
	rec := out.Measurement.Record()
	inv.work.mu.Lock()
	k.now, k.reason, k.detail = true, "", ""
	if rec.Target.Partial != "" {
		k.partial = append([]evidence.MeasurementRecord{rec}, k.partial...)
	} else {
		k.measurement, k.measured = &rec, out.Measurement.Digest()
	}
	if live != nil {
		k.live, k.stale, k.causes, k.proved = live, nil, nil, true
	}
	inv.done++
	done, total := inv.done, inv.total
	proven := k.proved && rec.Word == evidence.Proven
	after := inv.app.now().Sub(inv.began)
	if proven && inv.firstProof == 0 {
		inv.firstProof = after
	}
	var c view.Certificate
	if proven {
		c = certificateView(*k.live, k.ranked.Name, nil, true)
	}
	inv.work.mu.Unlock()
	inv.p.Count("prove", done, total, k.ranked.Name)
	if proven {
		inv.p.Proven(c, after)
	}
}

// everyOpen gives every target that is still pending a reason.
func (inv *invocation) everyOpen(reason, detail string) {
	inv.work.mu.Lock()
	defer inv.work.mu.Unlock()
	for _, p := range inv.projects {
		for _, k := range p.known {
			if k.reason == "pending" && k.detail == "" {
				k.reason, k.detail = reason, detail
			}
		}
	}
}

// key names the unit in a saved result.
func (u *unit) key() string { return u.project.Dir + " " + u.id }

// baselines is what the baselines showed, by unit. Where none was run now, what was
// seen of the very tree before holds.
func (inv *invocation) baselines() map[string]view.Suite {
	out := map[string]view.Suite{}
	for _, p := range inv.projects {
		for _, u := range p.units {
			switch {
			case u.ready != nil || u.failure != nil:
				out[u.key()] = inv.suite(u)
			case inv.past.same != nil && inv.past.around:
				if s, ok := inv.past.same.Suites[u.key()]; ok {
					out[u.key()] = s
				}
			}
		}
	}
	return out
}

func (inv *invocation) suite(u *unit) view.Suite {
	var v view.Suite
	if u.ready == nil {
		v.Red, v.Flaky = inv.unfitNotes(v.Red, v.Flaky, u, u.unfit())
		return v
	}
	v.Packages, v.Passed, v.Skipped = 1, u.ready.Leaves, len(u.ready.Skipped)
	v.Tests = u.ready.Leaves + len(u.ready.Skipped) + len(u.ready.Unfit)
	v.Red, v.Flaky = inv.unfitNotes(v.Red, v.Flaky, u, u.ready.CannotVouch())
	return v
}

// suiteView sums up what the baselines showed.
func (inv *invocation) suiteView() view.Suite {
	v := view.Suite{Red: []view.TestNote{}, Flaky: []view.TestNote{}}
	for _, s := range inv.baselines() {
		v.Packages, v.Tests, v.Passed, v.Skipped = v.Packages+s.Packages, v.Tests+s.Tests, v.Passed+s.Passed, v.Skipped+s.Skipped
		v.Red, v.Flaky = append(v.Red, s.Red...), append(v.Flaky, s.Flaky...)
	}
	byName := func(s []view.TestNote) {
		sort.Slice(s, func(i, j int) bool { return s[i].Package+" "+s[i].Test < s[j].Package+" "+s[j].Test })
	}
	byName(v.Red)
	byName(v.Flaky)
	return v
}

// close releases what the invocation holds.
func (inv *invocation) close() {
	for _, p := range inv.projects {
		for _, u := range p.units {
			if u.ready != nil {
				if err := u.ready.Suite.Close(); err != nil {
					inv.app.Log.Warn("close suite", "unit", u.id, "err", err)
				}
			}
		}
	}
	if inv.checkout != nil {
		if err := inv.checkout.Release(context.Background()); err != nil {
			inv.app.Log.Warn("release checkout", "err", err)
		}
	}
	if inv.release != nil {
		if err := inv.release(); err != nil {
			inv.app.Log.Warn("release directories", "err", err)
		}
	}
}
