package render

import (
	"strings"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/view"
)

func TestFlowStatusSaysWhoIsLate(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 1, 2, 3, 4, 0, 0, time.FixedZone("", 3600))
	for _, overdue := range []bool{false, true} {
		var b strings.Builder
		v := view.FlowRun{Run: view.FlowHead{ID: "run_1", Status: "waiting", Needs: []string{"alice", "bob"}, DecideBy: &due, Overdue: overdue}}
		if err := FlowStatus(&b, v, "text", Style{}); err != nil {
			t.Fatal(err)
		}
		want := "waiting     for alice or bob; decide by 2026-01-02 02:04 UTC"
		if overdue {
			want += " (overdue)"
		}
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("status says\n%s\nwant %q", b.String(), want)
		}
	}
}
