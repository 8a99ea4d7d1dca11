// Package queue runs jobs on River, in the database of package store: an entry
// of the ledger, its projection and the job that it causes commit together.
//
// A queue is named by the invocation that needs its results, a ULID; the workers
// are in the same process. A job is worth tens of milliseconds or more. Its
// result is written in the transaction that completes it ([Queue.CompleteTx]),
// which is refused with code superseded when the job is no longer that attempt's:
// what a lost worker reports late counts nothing.
//
// One driver a database, both over database/sql, so that there is one type of
// transaction (see docs/decisions/0010-river-through-database-sql.md). Nobody listens
// for notifications: workers look every [PollInterval].
package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

const (
	// PollInterval is how often a worker without work looks for some. A look costs
	// about a millisecond of CPU; workers that find work look again by themselves.
	PollInterval = 100 * time.Millisecond
	// fetchCooldown is the least time between two looks.
	fetchCooldown = 5 * time.Millisecond
	// JobLimit ends a job that has no limit of its own.
	JobLimit = 30 * time.Minute
	// StopLimit is how long Stop waits for jobs whose context was cancelled.
	StopLimit = 10 * time.Second
)

// CodeSuperseded is the code of a result that comes from an attempt which no
// longer holds the job.
const CodeSuperseded fault.Code = "superseded"

const codeInternal fault.Code = "internal"

// Queue enqueues jobs. It starts nothing.
type Queue struct {
	db     *store.DB
	driver riverdriver.Driver[*sql.Tx]
	client *river.Client[*sql.Tx]
}

// Job is one attempt at a job.
type Job struct {
	ID      int64
	Attempt int // the fencing number: only the last attempt can complete the job
	Queue   string
	Kind    string
	Args    json.RawMessage

	row    *river.Job[envelope]
	worker string
}

// envelope is the only kind of job that River knows of: ours is inside.
type envelope struct {
	What string          `json:"what"`
	Args json.RawMessage `json:"args"`
}

// Kind implements [river.JobArgs].
func (envelope) Kind() string { return "proveto" }

const metaRiver = "river_schema"

// Open brings River's schema up to date, which costs one small read when it is,
// and returns the queue.
func Open(ctx context.Context, db *store.DB) (*Queue, error) {
	q := &Queue{db: db}
	if db.Dialect() == store.SQLite {
		q.driver = riversqlite.New(db.SQL())
	} else {
		q.driver = riverdatabasesql.New(db.SQL())
	}
	if err := q.migrate(ctx); err != nil {
		return nil, fmt.Errorf("queue schema in %s: %w", db.Name(), err)
	}
	var err error
	if q.client, err = river.NewClient(q.driver, &river.Config{Logger: quiet()}); err != nil {
		return nil, fault.Wrap(err, fault.Internal, codeInternal, "open queue in %s", db.Name())
	}
	return q, nil
}

// quiet: everything that matters comes back as an error.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (q *Queue) migrate(ctx context.Context) error {
	m, err := rivermigrate.New(q.driver, &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return err
	}
	all := m.AllVersions()
	newest := strconv.Itoa(all[len(all)-1].Version)
	current := func(tx *store.Tx) (string, error) {
		v, err := tx.Meta(ctx, metaRiver)
		if errors.Is(err, store.ErrNoRow) {
			return "", nil
		}
		return v, err
	}
	var have string
	if err := q.db.Read(ctx, func(tx *store.Tx) (err error) { have, err = current(tx); return err }); err != nil || have == newest {
		return err
	}
	return q.db.Migrating(ctx, func(tx *store.Tx) error {
		if tx != nil {
			if have, err := current(tx); err != nil || have == newest {
				return err
			}
			if _, err := m.MigrateTx(ctx, tx.SQL(), rivermigrate.DirectionUp, nil); err != nil { //nolint:staticcheck // the version note is written in the same transaction
				return err
			}
			return tx.SetMeta(ctx, metaRiver, newest)
		}
		if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return err
		}
		return q.db.Write(ctx, func(tx *store.Tx) error { return tx.SetMeta(ctx, metaRiver, newest) })
	})
}

// queueName turns a ULID into a name that River takes: lower case.
func queueName(invocation string) (string, error) {
	if _, err := ulid.ParseStrict(invocation); err != nil {
		return "", fault.New(fault.Usage, "bad_id", "invocation %.40q is not a ULID", invocation)
	}
	return strings.ToLower(invocation), nil
}

// Enqueue adds a job to the queue of an invocation, in the transaction.
func (q *Queue) Enqueue(ctx context.Context, tx *store.Tx, invocation, kind string, args any) (id int64, err error) {
	name, err := queueName(invocation)
	if err != nil {
		return 0, err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return 0, fmt.Errorf("arguments of job %s: %w", kind, err)
	}
	res, err := q.client.InsertTx(ctx, tx.SQL(), envelope{kind, raw}, &river.InsertOpts{Queue: name, MaxAttempts: 1})
	if err != nil {
		return 0, fault.Wrap(err, fault.Internal, codeInternal, "enqueue job %s", kind)
	}
	return res.Job.ID, nil
}

// CompleteTx ends the job in the transaction of its result. An attempt that no
// longer holds the job gets a conflict with code superseded; roll back then. ctx
// is the one that the worker was given, or made from it.
func (q *Queue) CompleteTx(ctx context.Context, tx *store.Tx, j Job) error {
	if j.row == nil {
		return fault.New(fault.Internal, codeInternal, "job %d was not taken from a queue", j.ID)
	}
	superseded := fault.New(fault.Conflict, CodeSuperseded, "attempt %d of job %d (%s) no longer holds it", j.Attempt, j.ID, j.Kind)
	row, err := q.client.JobGetTx(ctx, tx.SQL(), j.ID)
	if errors.Is(err, rivertype.ErrNotFound) {
		return superseded
	}
	if err != nil {
		return fault.Wrap(err, fault.Internal, codeInternal, "look at job %d", j.ID)
	}
	holder := ""
	if n := len(row.AttemptedBy); n > 0 {
		holder = row.AttemptedBy[n-1]
	}
	if row.State != rivertype.JobStateRunning || row.Attempt != j.Attempt || holder != j.worker {
		return superseded
	}
	if q.db.Dialect() == store.SQLite {
		_, err = river.JobCompleteTx[*riversqlite.Driver](ctx, tx.SQL(), j.row)
	} else {
		_, err = river.JobCompleteTx[*riverdatabasesql.Driver](ctx, tx.SQL(), j.row)
	}
	if errors.Is(err, rivertype.ErrNotFound) {
		return superseded
	}
	if err != nil {
		return fault.Wrap(err, fault.Internal, codeInternal, "complete job %d", j.ID)
	}
	return nil
}

// unfinished are the states from which a job can still run.
func unfinished() []rivertype.JobState {
	return []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
		rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}
}

const page = 1000

// Abandon ends all jobs of an invocation that are not finished, in the
// transaction: what their workers report later is superseded. A later invocation
// calls it for a dead one before it enqueues what has no result yet.
func (q *Queue) Abandon(ctx context.Context, tx *store.Tx, invocation string) (n int, err error) {
	name, err := queueName(invocation)
	if err != nil {
		return 0, err
	}
	exec := q.driver.UnwrapExecutor(tx.SQL())
	for {
		res, err := q.client.JobListTx(ctx, tx.SQL(), river.NewJobListParams().Queues(name).States(unfinished()...).First(page))
		if err != nil {
			return n, fault.Wrap(err, fault.Internal, codeInternal, "list the jobs of %s", invocation)
		}
		if len(res.Jobs) == 0 {
			return n, nil
		}
		now := time.Now()
		for _, j := range res.Jobs {
			_, err := exec.JobUpdateFull(ctx, &riverdriver.JobUpdateFullParams{
				ID: j.ID, StateDoUpdate: true, State: rivertype.JobStateCancelled, FinalizedAtDoUpdate: true, FinalizedAt: &now,
			})
			if err != nil {
				return n, fault.Wrap(err, fault.Internal, codeInternal, "end job %d", j.ID)
			}
			n++
		}
	}
}
