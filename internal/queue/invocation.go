package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"

	"github.com/proveto/proveto/internal/fault"
)

// Invocation works one queue in this process.
type Invocation struct {
	q      *Queue
	name   string
	client *river.Client[*sql.Tx]
	ended  chan struct{} // a job has ended; capacity one, so that many are one signal
	events func()        // ends the subscription
	stop   func() error

	mu   sync.Mutex
	errs []error
}

// Invocation starts up to slots workers on the queue of an invocation. Jobs may
// be enqueued before or after. The worker writes its result and calls
// [Queue.CompleteTx] in one transaction; an error, or a panic, ends the job for
// good and is returned by Wait. Call Stop.
func (q *Queue) Invocation(ctx context.Context, invocation string, slots int, workFunc func(context.Context, Job) error) (*Invocation, error) {
	name, err := queueName(invocation)
	if err != nil {
		return nil, err
	}
	inv := &Invocation{q: q, name: name, ended: make(chan struct{}, 1)}
	workers := river.NewWorkers()
	w := &worker{inv: inv, workFunc: workFunc}
	if err := river.AddWorkerSafely(workers, w); err != nil {
		return nil, fault.Wrap(err, fault.Internal, codeInternal, "queue of %s", invocation)
	}
	inv.client, err = river.NewClient(q.driver, &river.Config{
		FetchCooldown: fetchCooldown, FetchPollInterval: PollInterval, PollOnly: true,
		JobTimeout: JobLimit, MaxAttempts: 1, Logger: quiet(),
		// Nobody needs the leader's services here: a job is tried once, and a later
		// invocation abandons what a dead one left.
		LeaderElectionDisabled: true,
		Queues:                 map[string]river.QueueConfig{name: {MaxWorkers: slots}},
		Workers:                workers,
	})
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, codeInternal, "queue of %s", invocation)
	}
	inv.subscribe()
	// The client lives until Stop: a cancelled ctx must not leave jobs running
	// behind a Stop that has nothing to wait for.
	if err := inv.client.Start(context.WithoutCancel(ctx)); err != nil {
		inv.events()
		return nil, fault.Wrap(err, fault.Internal, codeInternal, "start the queue of %s", invocation)
	}
	inv.stop = sync.OnceValue(inv.doStop)
	return inv, nil
}

func (inv *Invocation) subscribe() {
	events, cancel := inv.client.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobCancelled)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range events {
			inv.signal()
		}
	}()
	inv.events = func() { cancel(); <-done }
}

func (inv *Invocation) signal() {
	select {
	case inv.ended <- struct{}{}:
	default:
	}
}

// Wait returns when no job of the queue is left to run, with the errors of those
// that failed. When ctx ends first it returns the cause; the jobs go on until
// Stop.
func (inv *Invocation) Wait(ctx context.Context) error {
	for {
		res, err := inv.client.JobList(ctx, river.NewJobListParams().Queues(inv.name).States(unfinished()...).First(1))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fault.Wrap(err, fault.Internal, codeInternal, "list the jobs of %s", inv.name)
		case len(res.Jobs) == 0:
			inv.mu.Lock()
			defer inv.mu.Unlock()
			return errors.Join(inv.errs...)
		}
		select {
		case <-inv.ended:
		case <-ctx.Done():
		}
	}
}

// Stop cancels the jobs that run, waits for them up to [StopLimit], and removes
// the finished jobs of the queue. It may be called more than once, and at once.
func (inv *Invocation) Stop() error { return inv.stop() }

func (inv *Invocation) doStop() error {
	ctx, cancel := context.WithTimeout(context.Background(), StopLimit)
	defer cancel()
	err := inv.client.StopAndCancel(ctx)
	inv.events()
	if err != nil {
		return fault.Wrap(err, fault.Internal, codeInternal, "stop the queue of %s", inv.name)
	}
	return inv.tidy(ctx)
}

// queueLife is how long the row of a queue is kept after its last worker.
const queueLife = 24 * time.Hour

// tidy removes what River's leader would remove if there were one.
func (inv *Invocation) tidy(ctx context.Context) error {
	for {
		res, err := inv.client.JobDeleteMany(ctx, river.NewJobDeleteManyParams().Queues(inv.name).First(page))
		if err != nil {
			return fault.Wrap(err, fault.Internal, codeInternal, "remove the finished jobs of %s", inv.name)
		}
		if len(res.Jobs) < page {
			break
		}
	}
	_, err := inv.q.driver.GetExecutor().QueueDeleteExpired(ctx, &riverdriver.QueueDeleteExpiredParams{
		Max: page, UpdatedAtHorizon: time.Now().Add(-queueLife),
	})
	if err != nil {
		return fault.Wrap(err, fault.Internal, codeInternal, "remove old queues")
	}
	return nil
}

// worker is the bridge from River to workFunc.
type worker struct {
	river.WorkerDefaults[envelope]
	inv      *Invocation
	workFunc func(context.Context, Job) error
}

// Work implements [river.Worker]. It is the recover boundary of a job.
func (w *worker) Work(ctx context.Context, row *river.Job[envelope]) (err error) {
	j := Job{
		ID: row.ID, Attempt: row.Attempt, Queue: row.Queue, Kind: row.Args.What, Args: row.Args.Args,
		row: row, worker: w.inv.client.ID(),
	}
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Internal, codeInternal, "job %s panicked: %v\n%s", j.Kind, p, debug.Stack())
		}
		if err != nil {
			w.inv.mu.Lock()
			w.inv.errs = append(w.inv.errs, fmt.Errorf("job %d (%s): %w", j.ID, j.Kind, err))
			w.inv.mu.Unlock()
		}
		w.inv.signal()
	}()
	return w.workFunc(ctx, j)
}
