package flows

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

// manual is the use cases on a database of their own, in a directory that is no
// repository.
func manual(t testing.TB, c store.Config) *Flows {
	t.Helper()
	none := func(string) string { return "" }
	a, err := app.New(app.Settings{Dir: t.TempDir(), State: t.TempDir(), DatabaseURL: c.DatabaseURL, Getenv: none, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(a)
}

// fiveStages are the stages of the policy manual, which are its roles too.
var fiveStages = []string{"planner", "developer", "verifier", "tester", "reviewer"}

func open(t testing.TB, f *Flows) string {
	t.Helper()
	v, err := f.Init(t.Context(), InitOptions{Task: "Add OAuth login", Policy: "manual"})
	if err != nil {
		t.Fatal(err)
	}
	return v.RunID
}

// through approves the stages of a run, one decision after the other, and gives
// the time of each.
func through(ctx context.Context, t testing.TB, f *Flows, run string, stages ...string) []time.Duration {
	t.Helper()
	var took []time.Duration
	token := ""
	for _, s := range stages {
		o := AdvanceOptions{Request: Request{Run: run, Actor: s}, Stage: s, Decision: flow.Approve, Note: "done: " + s}
		if s == "developer" {
			o.Token = token
		}
		begun := time.Now()
		v, err := f.Advance(ctx, o)
		took = append(took, time.Since(begun))
		if err != nil {
			t.Fatal(err)
		}
		if v.PlanTokenIssued != nil {
			token = *v.PlanTokenIssued
		}
	}
	return took
}

// report adds the median and the 95th percentile to a benchmark.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	at := func(p int) float64 { return float64(took[min(len(took)-1, len(took)*p/100)]) / 1e6 }
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(95), "p95-ms")
}

func onEach(b *testing.B, bench func(b *testing.B, f *Flows)) {
	b.Run("sqlite", func(b *testing.B) { bench(b, manual(b, store.Config{})) })
	b.Run("postgresql", func(b *testing.B) { bench(b, manual(b, storetest.PostgreSQL(b))) })
}

// A signed decision, durable, in a process that runs already.
func BenchmarkDecision(b *testing.B) {
	onEach(b, func(b *testing.B, f *Flows) {
		var took []time.Duration
		for len(took) < b.N {
			b.StopTimer()
			run := open(b, f)
			b.StartTimer()
			took = append(took, through(b.Context(), b, f, run, fiveStages[:min(len(fiveStages), b.N-len(took))]...)...)
		}
		report(b, took)
	})
}

// The status of a run of 1,000 entries.
func BenchmarkStatus(b *testing.B) {
	onEach(b, func(b *testing.B, f *Flows) {
		run := open(b, f)
		for n := 1; n < 1000; n++ {
			if _, err := f.Claim(b.Context(), VerbOptions{Request: Request{Run: run}, Note: fmt.Sprint("claim ", n)}); err != nil {
				b.Fatal(err)
			}
		}
		var took []time.Duration
		b.ResetTimer()
		for range b.N {
			begun := time.Now()
			if _, _, err := f.Status(b.Context(), run); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begun))
		}
		report(b, took)
	})
}

// 10,000 entries with 2,000 signed decisions: tree, checkpoints, projections, the
// fold of each run and each signature.
func BenchmarkVerify(b *testing.B) {
	onEach(b, func(b *testing.B, f *Flows) {
		ctx := b.Context()
		for range 400 {
			run := open(b, f)
			for n := range 8 {
				if _, err := f.Claim(ctx, VerbOptions{Request: Request{Run: run}, Note: fmt.Sprint("claim ", n)}); err != nil {
					b.Fatal(err)
				}
			}
			through(ctx, b, f, run, fiveStages...)
		}
		led, err := f.app.Ledger(ctx)
		if err != nil {
			b.Fatal(err)
		}
		var r ledger.Report
		var signed atomic.Int64
		b.ResetTimer()
		for range b.N {
			signed.Store(0)
			r, err = led.Verify(ctx, ledger.Options{Fold: func(_ string, entries []ledger.Entry) error {
				run, err := flow.Fold(facts(entries), token)
				if err != nil {
					return err
				}
				for i := range run.Stages {
					for _, g := range run.Stages[i].Given {
						if signed.Add(1); g.Signed == nil {
							return fault.New(fault.Tampered, ledger.CodeSignatureBad, "decision %s is not signed", g.ID)
						}
						if err := verifyDecision(run, g); err != nil {
							return err
						}
					}
				}
				return nil
			}})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(r.Entries), "entries")
		b.ReportMetric(float64(signed.Load()), "signatures")
	})
}

// The five stages of the policy manual, from the first to the last.
func TestManualRunIsApproved(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		f := manual(t, store.Config{DatabaseURL: c.DatabaseURL})
		run := open(t, f)
		through(t.Context(), t, f, run, fiveStages...)
		v, head, err := f.Status(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if v.Run.Status != string(flow.StatusApproved) || v.Run.CurrentStage != "done" {
			t.Errorf("the run is %s at stage %s, want approved and done", v.Run.Status, v.Run.CurrentStage)
		}
		now, err := f.app.Head(t.Context())
		if err != nil || *now != *head {
			t.Errorf("the status names head %v, the ledger has %v, %v", head, now, err)
		}
	})
}
