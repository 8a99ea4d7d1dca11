package flows

import (
	"testing"
	"time"

	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/store"
)

func TestStatusTellsWhatIsOverdue(t *testing.T) {
	t.Parallel()
	f := manual(t, store.Config{})
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	k := known{Run: flow.Run{
		ID:     "run_1",
		Policy: policy.Policy{Limits: policy.Limits{DecisionSLA: 24 * time.Hour}},
		Stages: []flow.Stage{{
			Stage: policy.Stage{ID: "reviewer", Role: "reviewer", Decide: policy.Decide{Approvals: 1, Humans: 1}},
			State: flow.Deciding, Since: since,
		}},
	}}
	due := since.Add(24 * time.Hour)
	for at, overdue := range map[time.Time]bool{since: false, due: false, due.Add(time.Second): true} {
		v, err := f.statusAt(k, at)
		if err != nil {
			t.Fatal(err)
		}
		if v.Run.DecideBy == nil || !v.Run.DecideBy.Equal(due) || v.Run.Overdue != overdue {
			t.Errorf("at %s: decide by %v, overdue %v; want %s, %v", at, v.Run.DecideBy, v.Run.Overdue, due, overdue)
		}
	}
	k.Policy.Limits.DecisionSLA = 0
	if v, err := f.statusAt(k, due.Add(time.Hour)); err != nil || v.Run.DecideBy != nil || v.Run.Overdue {
		t.Errorf("no limit: %+v, %v", v.Run, err)
	}
}
