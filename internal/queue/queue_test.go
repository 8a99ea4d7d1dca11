package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/queue"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

type bench struct {
	db *store.DB
	q  *queue.Queue
}

func setup(t testing.TB, c store.Config) bench {
	t.Helper()
	db := storetest.Open(t, c)
	q, err := queue.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return bench{db, q}
}

func (b bench) enqueue(t testing.TB, invocation string, n int) {
	t.Helper()
	err := b.db.Write(t.Context(), func(tx *store.Tx) error {
		for i := range n {
			if _, err := b.q.Enqueue(t.Context(), tx, invocation, "count", i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (b bench) work(t testing.TB, invocation string, slots int, fn func(context.Context, queue.Job) error) *queue.Invocation {
	t.Helper()
	inv, err := b.q.Invocation(t.Context(), invocation, slots, fn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inv.Stop(); err != nil {
			t.Error(err)
		}
	})
	return inv
}

// count is a worker that records its result in the transaction that completes
// the job: a second result of the same job would be a conflict.
func (b bench) count(ctx context.Context, j queue.Job) error {
	var n int64
	if err := json.Unmarshal(j.Args, &n); err != nil {
		return err
	}
	return b.db.Write(ctx, func(tx *store.Tx) error {
		if err := tx.InsertHash(ctx, store.HashRow{Index: n, Hash: fmt.Sprint(j.ID)}); err != nil {
			return err
		}
		return b.q.CompleteTx(ctx, tx, j)
	})
}

func (b bench) results(t testing.TB) int {
	t.Helper()
	var n int
	err := b.db.Read(t.Context(), func(tx *store.Tx) error {
		rows, err := tx.Hashes(t.Context(), -1, 1000)
		n = len(rows)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func wantFault(t *testing.T, err error, kind fault.Kind, code fault.Code) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Kind != kind || f.Code != code {
		t.Errorf("error = %v, want %s/%s", err, kind, code)
	}
}

func TestEveryJobHasOneResult(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		id := ulid.Make().String()
		b.enqueue(t, id, 20)
		inv := b.work(t, id, 4, b.count)
		b.enqueue(t, ulid.Make().String(), 3) // another queue, which nobody works here
		if err := inv.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := b.results(t); n != 20 {
			t.Errorf("%d results, want 20", n)
		}
	})
}

func TestARolledBackJobNeverRuns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		id := ulid.Make().String()
		stop := errors.New("stop")
		err := b.db.Write(t.Context(), func(tx *store.Tx) error {
			if _, err := b.q.Enqueue(t.Context(), tx, id, "count", 1); err != nil {
				return err
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		inv := b.work(t, id, 1, b.count)
		if err := inv.Wait(t.Context()); err != nil || b.results(t) != 0 {
			t.Errorf("Wait = %v with %d results, want none", err, b.results(t))
		}
	})
}

func TestFailuresAndPanicsAreReturned(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		id := ulid.Make().String()
		b.enqueue(t, id, 3)
		var runs atomic.Int64
		red := fault.New(fault.Unmeasured, "baseline_failed", "the suite is red")
		inv := b.work(t, id, 2, func(ctx context.Context, j queue.Job) error {
			runs.Add(1)
			switch string(j.Args) {
			case "0":
				return red
			case "1":
				panic("broken invariant")
			}
			return b.count(ctx, j)
		})
		err := inv.Wait(t.Context())
		if !errors.Is(err, red) || !strings.Contains(err.Error(), "broken invariant") {
			t.Errorf("Wait = %v, want both failures", err)
		}
		if runs.Load() != 3 || b.results(t) != 1 {
			t.Errorf("%d runs, %d results, want 3 and 1: a job is tried once", runs.Load(), b.results(t))
		}
	})
}

// The lost worker holds its job until a second invocation has taken over and
// measured again; then it reports.
func TestResultOfALostWorkerIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		lost, second := ulid.Make().String(), ulid.Make().String()
		b.enqueue(t, lost, 1)
		taken, goOn, late := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		b.work(t, lost, 1, func(ctx context.Context, j queue.Job) error {
			close(taken)
			<-goOn
			j.Args = json.RawMessage("8") // no conflict of results hides the fence
			err := b.count(ctx, j)
			late <- err
			return err
		})
		<-taken
		other := setup(t, c) // as another process
		err := other.db.Write(t.Context(), func(tx *store.Tx) error {
			if n, err := other.q.Abandon(t.Context(), tx, lost); err != nil || n != 1 {
				return fmt.Errorf("abandoned %d: %w", n, err)
			}
			_, err := other.q.Enqueue(t.Context(), tx, second, "count", 7)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := other.work(t, second, 1, other.count).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		wantFault(t, <-late, fault.Conflict, queue.CodeSuperseded)
		if n := b.results(t); n != 1 {
			t.Errorf("%d results, want the one of the second invocation", n)
		}
	})
}

// The honest twin: a slow worker that still holds its job is credited.
func TestSlowWorkerThatHoldsItsJobCounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		slow, other := ulid.Make().String(), ulid.Make().String()
		b.enqueue(t, slow, 1)
		taken, goOn := make(chan struct{}), make(chan struct{})
		inv := b.work(t, slow, 1, func(ctx context.Context, j queue.Job) error {
			close(taken)
			<-goOn
			return b.count(ctx, j)
		})
		<-taken
		err := b.db.Write(t.Context(), func(tx *store.Tx) error { _, err := b.q.Abandon(t.Context(), tx, other); return err })
		if err != nil {
			t.Fatal(err)
		}
		close(goOn)
		if err := inv.Wait(t.Context()); err != nil || b.results(t) != 1 {
			t.Errorf("Wait = %v with %d results, want 1", err, b.results(t))
		}
	})
}

func TestCompletingTwiceIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		id := ulid.Make().String()
		b.enqueue(t, id, 1)
		second := make(chan error, 1)
		inv := b.work(t, id, 1, func(ctx context.Context, j queue.Job) error {
			if err := b.count(ctx, j); err != nil {
				return err
			}
			second <- b.db.Write(ctx, func(tx *store.Tx) error { return b.q.CompleteTx(ctx, tx, j) })
			return nil
		})
		wantFault(t, <-second, fault.Conflict, queue.CodeSuperseded)
		if err := inv.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := b.db.Write(t.Context(), func(tx *store.Tx) error { return b.q.CompleteTx(t.Context(), tx, queue.Job{ID: 1}) })
		wantFault(t, err, fault.Internal, "internal")
	})
}

func TestStopCancelsRunningJobs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		id := ulid.Make().String()
		b.enqueue(t, id, 1)
		running, ended := make(chan struct{}), make(chan struct{})
		inv := b.work(t, id, 1, func(ctx context.Context, j queue.Job) error {
			close(running)
			<-ctx.Done()
			close(ended)
			return context.Cause(ctx)
		})
		<-running
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := inv.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v, want cancelled", err)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := inv.Stop(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		<-ended
	})
}

func TestOpenTwiceAndAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		var wg sync.WaitGroup
		for range 3 {
			db := storetest.Open(t, c)
			wg.Go(func() {
				if _, err := queue.Open(t.Context(), db); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		b := setup(t, c)
		_, err := b.q.Invocation(t.Context(), "../x", 1, b.count)
		wantFault(t, err, fault.Usage, "bad_id")
	})
}

func BenchmarkOpenAgain(b *testing.B) {
	s := setup(b, storetest.SQLite(b))
	for range b.N {
		if _, err := queue.Open(b.Context(), s.db); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJob(b *testing.B) {
	s := setup(b, storetest.SQLite(b))
	id := ulid.Make().String()
	s.enqueue(b, id, b.N)
	b.ResetTimer()
	if err := s.work(b, id, 2, s.count).Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
}
