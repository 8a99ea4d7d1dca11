package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

const (
	runA = "run_01ARZ3NDEKTSV4RRFFQ69G5FAA"
	runB = "run_01ARZ3NDEKTSV4RRFFQ69G5FBB"
)

// step is the body of an entry of a flow.
type step struct {
	ledger.FlowHead
	Note string `json:"note,omitempty"`
}

func flowDraft(t testing.TB, k ledger.Kind, h ledger.FlowHead) ledger.Draft {
	t.Helper()
	if h.Schema == "" {
		h.Schema = "proveto/flow/v1"
	}
	return must[ledger.Draft](t)(ledger.NewDraft(k, step{h, "n"}))
}

func after(status, stage string, needs ...string) *ledger.FlowAfter {
	return &ledger.FlowAfter{Status: status, CurrentStage: stage, Needs: needs, Target: "refs/heads/main", Repo: "/r"}
}

// flow appends two runs and one principal: six entries.
func (b *bench) flow(t testing.TB) []ledger.Entry {
	t.Helper()
	return b.append(
		t,
		flowDraft(t, ledger.KindFlowOpened, ledger.FlowHead{Run: runA, Project: "web", Task: "a" + strings.Repeat("é", 150), Idem: "open-1", After: after("open", "planner", "alice")}),
		flowDraft(t, ledger.KindPrincipalAdded, ledger.FlowHead{}),
		flowDraft(t, ledger.KindFlowOpened, ledger.FlowHead{Run: runB, Project: "api", Task: "b", After: after("open", "planner")}),
		flowDraft(t, "flow.taken", ledger.FlowHead{Run: runA, Stage: "planner", Idem: "k", After: after("open", "planner")}),
		flowDraft(t, "flow.decided", ledger.FlowHead{Run: runB, Stage: "planner", Idem: "k", After: after("blocked", "planner", "alice", "bob")}),
		flowDraft(t, "flow.decided", ledger.FlowHead{Run: runA, Stage: "planner", After: after("waiting", "developer", "bob")}),
	)
}

func TestRunsAreListedAsTheirLastEntryLeavesThem(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		es := b.flow(t)
		all := must[[]ledger.FlowRun](t)(b.Runs(t.Context(), ledger.RunFilter{}))
		want := ledger.FlowRun{
			ID: runA, Opened: es[0].Time, Updated: es[5].Time, OpenedSeq: es[0].Seq, LastSeq: es[5].Seq, Project: "web", Task: "a" + strings.Repeat("é", 99),
			FlowAfter: *after("waiting", "developer", "bob"),
		}
		if len(all) != 2 || all[1].ID != runB {
			t.Fatalf("Runs = %+v, want the one that moved last first", all)
		}
		if d := cmp.Diff(want, all[0]); d != "" {
			t.Errorf("run (-want +got):\n%s", d)
		}
		for _, x := range []struct {
			what string
			f    ledger.RunFilter
			want []string
		}{
			{"status", ledger.RunFilter{Status: "blocked"}, []string{runB}},
			{"project", ledger.RunFilter{Project: "web"}, []string{runA}},
			{"both", ledger.RunFilter{Project: "web", Status: "blocked"}, nil},
			{"alice", ledger.RunFilter{Needs: "alice"}, []string{runB}},
			{"bob", ledger.RunFilter{Needs: "bob"}, []string{runA, runB}},
			{"one of bob's", ledger.RunFilter{Needs: "bob", Limit: 1}, []string{runA}},
			{"limit", ledger.RunFilter{Limit: 1}, []string{runA}},
			{"before", ledger.RunFilter{Before: all[0].LastSeq}, []string{runB}},
			{"since", ledger.RunFilter{Since: es[5].Time}, []string{runA, runB}}, // one append has one time
			{"later", ledger.RunFilter{Since: es[5].Time.Add(time.Hour)}, nil},
		} {
			var got []string
			for _, r := range must[[]ledger.FlowRun](t)(b.Runs(t.Context(), x.f)) {
				got = append(got, r.ID)
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("%s: Runs = %v, want %v", x.what, got, x.want)
			}
		}
		var seqs []int64
		for _, e := range must[[]ledger.Entry](t)(b.RunEntries(t.Context(), runA)) {
			seqs = append(seqs, e.Seq)
		}
		if !slices.Equal(seqs, []int64{es[0].Seq, es[3].Seq, es[5].Seq}) {
			t.Errorf("entries of %s = %v", runA, seqs)
		}
		if got := must[[]ledger.Entry](t)(b.RunEntries(t.Context(), "run_none")); len(got) != 0 {
			t.Errorf("entries of no run = %v", got)
		}
		wantSound(t, b, ledger.Options{})
	})
}

func TestResolveRun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		_, err := b.ResolveRun(t.Context(), ledger.Latest, "")
		wantFault(t, err, fault.NotFound, ledger.CodeNotFound)
		b.flow(t)
		for _, x := range []struct{ id, repo, want string }{
			{runA, "", runA},
			{strings.TrimPrefix(runB, "run_"), "", runB},
			{runB[len(runB)-6:], "", runB},
			{ledger.Latest, "", runB},
			{ledger.Latest, "/r", runB},
		} {
			got, err := b.ResolveRun(t.Context(), x.id, x.repo)
			if err != nil || got.ID != x.want {
				t.Errorf("ResolveRun(%s) = %s, %v, want %s", x.id, got.ID, err, x.want)
			}
			if x.id == ledger.Latest {
				continue
			}
			ref, err := b.Resolve(t.Context(), x.id)
			if err != nil || ref != (ledger.Ref{What: "flow", ULID: x.want}) || ref.String() != x.want {
				t.Errorf("Resolve(%s) = %+v, %v", x.id, ref, err)
			}
			if seq, err := b.SeqOf(t.Context(), ref); err != nil || seq != got.OpenedSeq {
				t.Errorf("SeqOf(%s) = %d, %v, want %d", x.id, seq, err, got.OpenedSeq)
			}
		}
		_, err = b.ResolveRun(t.Context(), ledger.Latest, "/elsewhere")
		wantFault(t, err, fault.NotFound, ledger.CodeNotFound)
		_, err = b.ResolveRun(t.Context(), "run_01ARZ3NDEKTSV4RRFFQ69G5FZZ", "")
		wantFault(t, err, fault.NotFound, ledger.CodeNotFound)
		_, err = b.ResolveRun(t.Context(), "ZZZZZZ", "")
		wantFault(t, err, fault.NotFound, ledger.CodeNotFound)
		for _, bad := range []string{"", "FBB", "run_", "run_" + strings.ToLower(runA[4:]), "run_../../etc/passwd", "%%%%%%", runA + "X", "@oldest", "RUN_" + runA[4:], "0ILOUl"} {
			_, err := b.ResolveRun(t.Context(), bad, "")
			wantFault(t, err, fault.Usage, ledger.CodeBadID)
		}
		b.append(t, flowDraft(t, ledger.KindFlowOpened, ledger.FlowHead{Run: "run_01ARZ3NDEKTSV4RRFFR69G5FAA", After: after("open", "")}))
		_, err = b.ResolveRun(t.Context(), "9G5FAA", "")
		wantFault(t, err, fault.Usage, ledger.CodeAmbiguous)
		_, err = b.Resolve(t.Context(), "9G5FAA")
		wantFault(t, err, fault.Usage, ledger.CodeAmbiguous)
	})
}

func TestAFlowEntryBeginsWithItsHead(t *testing.T) {
	t.Parallel()
	ok := ledger.FlowHead{Schema: "s", Run: runA, After: after("open", "")}
	with := func(change func(h *ledger.FlowHead)) ledger.FlowHead {
		h := ok
		a := *ok.After
		h.After = &a
		change(&h)
		return h
	}
	for name, c := range map[string]struct {
		kind ledger.Kind
		head ledger.FlowHead
	}{
		"unknown kind":      {"flow.open", ok},
		"unknown principal": {"principal.removed", ledger.FlowHead{Schema: "s"}},
		"no schema":         {"flow.taken", with(func(h *ledger.FlowHead) { h.Schema = "" })},
		"no run":            {"flow.taken", with(func(h *ledger.FlowHead) { h.Run = "" })},
		"path for a run":    {"flow.taken", with(func(h *ledger.FlowHead) { h.Run = "run_../../../../../../../../e" })},
		"small letters":     {"flow.taken", with(func(h *ledger.FlowHead) { h.Run = strings.ToLower(h.Run) })},
		"no after":          {"flow.taken", with(func(h *ledger.FlowHead) { h.After = nil })},
		"no status":         {"flow.taken", with(func(h *ledger.FlowHead) { h.After.Status = "" })},
		"NUL":               {"flow.taken", with(func(h *ledger.FlowHead) { h.Stage = "a\x00" })},
		"NUL in whom":       {"flow.taken", with(func(h *ledger.FlowHead) { h.After.Needs = []string{"\x00"} })},
		"NUL in the task":   {"flow.opened", with(func(h *ledger.FlowHead) { h.Task = "\x00" })},
		"large key":         {"flow.taken", with(func(h *ledger.FlowHead) { h.Idem = strings.Repeat("x", 5000) })},
		"principal's run":   {"principal.added", ok},
	} {
		if _, err := ledger.NewDraft(c.kind, c.head); err == nil {
			t.Errorf("%s: it is drafted", name)
		}
	}
	if _, err := ledger.NewDraft("flow.taken", 1); err == nil {
		t.Error("a number is drafted")
	}
	for _, k := range ledger.FlowKinds() {
		h := ok
		if strings.HasPrefix(string(k), "principal.") {
			h = ledger.FlowHead{Schema: "s"}
		}
		if _, err := ledger.NewDraft(k, h); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		try := func(ds ...ledger.Draft) error {
			return b.db.Write(t.Context(), func(tx *store.Tx) error { _, err := b.Append(t.Context(), tx, ds...); return err })
		}
		taken := flowDraft(t, "flow.taken", ok)
		wantFault(t, try(taken), fault.Internal, "internal") // never opened
		opened := flowDraft(t, ledger.KindFlowOpened, ok)
		wantFault(t, try(opened, opened), fault.Conflict, store.CodeConflict)
		keyed := flowDraft(t, "flow.taken", with(func(h *ledger.FlowHead) { h.Idem = "k" }))
		wantFault(t, try(opened, keyed, keyed), fault.Conflict, store.CodeConflict)
		if h := must[ledger.Head](t)(b.Head(t.Context())); h.Seq != 1 {
			t.Errorf("head = %d, want nothing appended", h.Seq)
		}
		if err := try(opened, keyed, taken, taken); err != nil {
			t.Error(err)
		}
	})
}

func TestByIdem(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		es := b.flow(t)
		for _, x := range []struct {
			run, idem string
			want      int64
		}{{runA, "k", es[3].Seq}, {runB, "k", es[4].Seq}, {"", "open-1", es[0].Seq}, {"", "k", 0}, {runB, "open-1", 0}, {runA, "", 0}} {
			var e ledger.Entry
			var ok bool
			err := b.db.Read(t.Context(), func(tx *store.Tx) (err error) { e, ok, err = b.ByIdem(t.Context(), tx, x.run, x.idem); return err })
			if err != nil || e.Seq != x.want || ok != (x.want > 0) {
				t.Errorf("ByIdem(%s, %q) = %d, %v, %v, want %d", x.run, x.idem, e.Seq, ok, err, x.want)
			}
		}
	})
}

// TestUpdateLosesNothing: every update sees what those before it appended, on two
// handles as from two processes.
func TestUpdateLosesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		b.flow(t)
		other := &bench{config: c, state: b.state}
		other.open(t)
		const each = 20
		var wg sync.WaitGroup
		for _, l := range []*ledger.Ledger{b.Ledger, other.Ledger} {
			wg.Go(func() {
				for range each {
					_, err := l.Update(t.Context(), runA, func(_ *store.Tx, head ledger.Head, entries []ledger.Entry) ([]ledger.Draft, error) {
						if last := entries[len(entries)-1].Seq; head.Seq < last {
							return nil, fmt.Errorf("head %d is before entry %d", head.Seq, last)
						}
						return []ledger.Draft{flowDraft(t, "flow.claim", ledger.FlowHead{Run: runA, Idem: fmt.Sprint(len(entries)), After: after("open", "x")})}, nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n := len(must[[]ledger.Entry](t)(b.RunEntries(t.Context(), runA))); n != 3+2*each {
			t.Errorf("%d entries, want %d", n, 3+2*each)
		}
		before := must[ledger.Head](t)(b.Head(t.Context()))
		stop := errors.New("stop")
		if _, err := b.Update(t.Context(), runA, func(*store.Tx, ledger.Head, []ledger.Entry) ([]ledger.Draft, error) {
			return []ledger.Draft{flowDraft(t, "flow.claim", ledger.FlowHead{Run: runA, After: after("open", "x")})}, stop
		}); !errors.Is(err, stop) {
			t.Errorf("Update = %v", err)
		}
		if out, err := b.Update(t.Context(), runA, func(*store.Tx, ledger.Head, []ledger.Entry) ([]ledger.Draft, error) { return nil, nil }); err != nil || out != nil {
			t.Errorf("Update without drafts = %v, %v", out, err)
		}
		if h := must[ledger.Head](t)(b.Head(t.Context())); h != before {
			t.Errorf("head moved from %v to %v", before, h)
		}
	})
}

func TestTamperedFlowRowsAreFound(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"UPDATE flow_runs SET status = 'approved' WHERE run = '" + runA + "'",
		"UPDATE flow_runs SET needs = '[]' WHERE run = '" + runB + "'",
		"UPDATE flow_runs SET opened_seq = -5 WHERE run = '" + runB + "'",
		"UPDATE flow_runs SET last_seq = -5 WHERE run = '" + runB + "'",
		"DELETE FROM flow_runs WHERE run = '" + runA + "'",
		"INSERT INTO flow_runs SELECT 'run_x', 99, 99, opened, updated, project, repo, target, status, reason, current_stage, needs, expires, task FROM flow_runs WHERE run = '" + runA + "'",
		"DELETE FROM flow_entries WHERE kind = 'flow.taken'",
		"UPDATE flow_entries SET run = '" + runB + "', idem = '' WHERE kind = 'flow.taken'",
		"UPDATE flow_entries SET stage = 'reviewer' WHERE kind = 'flow.taken'",
		"UPDATE flow_entries SET run = '" + runB + "' WHERE kind = 'principal.added'",
	} {
		storetest.Each(t, func(t *testing.T, c store.Config) {
			b := setup(t, c)
			b.flow(t)
			b.sql(t, text)
			_, err := b.Verify(t.Context(), ledger.Options{Fold: func(run string, entries []ledger.Entry) error {
				if len(entries) != map[string]int{runA: 3, runB: 2}[run] {
					t.Errorf("%d entries of %s are folded: not those that it has", len(entries), run)
				}
				return nil
			}})
			wantFault(t, err, fault.Tampered, ledger.CodeProjection)
			if err := b.Rebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantSound(t, b, ledger.Options{})
		})
	}
}

func TestVerifyFoldsEveryRun(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	b.flow(t)
	folded := map[string]int{}
	o := ledger.Options{Fold: func(run string, entries []ledger.Entry) error {
		folded[run] = len(entries)
		return nil
	}}
	if r := wantSound(t, b, o); r.Flows != 2 {
		t.Errorf("flows = %d, want 2", r.Flows)
	}
	if d := cmp.Diff(map[string]int{runA: 3, runB: 2}, folded); d != "" {
		t.Errorf("folded:\n%s", d)
	}
	for code, err := range map[fault.Code]error{
		ledger.CodeProjection:   errors.New("status is approved, the entries say open"),
		ledger.CodeSignatureBad: fault.New(fault.Tampered, ledger.CodeSignatureBad, "decision 7 is not signed"),
	} {
		r, got := b.Verify(t.Context(), ledger.Options{Fold: func(run string, _ []ledger.Entry) error {
			if run == runB {
				return err
			}
			return nil
		}})
		wantFault(t, got, fault.Tampered, code)
		if len(r.Findings) != 1 || r.Findings[0].Seq != 6 || !strings.Contains(r.Findings[0].What, runB) {
			t.Errorf("findings = %+v", r.Findings)
		}
	}
}

// TestALedgerOfSchema1Loads: testdata/schema1.json was written by the version
// before runs of flows, with one engine key of its own.
func TestALedgerOfSchema1Loads(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/schema1.json")
	if err != nil {
		t.Fatal(err)
	}
	var files map[string]string
	if err := json.Unmarshal(raw, &files); err != nil {
		t.Fatal(err)
	}
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := &bench{config: c, state: t.TempDir()}
		for name, text := range files {
			if rest, ok := strings.CutPrefix(name, "state/"); ok {
				path := filepath.Join(b.state, rest)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
		}
		schema, err := os.ReadFile("../store/sql/migrations/0001_ledger.sql")
		if err != nil {
			t.Fatal(err)
		}
		storetest.Exec(t, c, string(schema)+files["database.sql"])
		b.open(t)
		r := wantSound(t, b, ledger.Options{})
		if r.Entries != 47 || r.Certificates != 2 || r.Measurements != 2 {
			t.Errorf("report = %+v, want what was written", r)
		}
		b.flow(t)
		wantSound(t, b, ledger.Options{})
		if err := b.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantSound(t, b, ledger.Options{})
		var version string
		if err := b.db.Read(t.Context(), func(tx *store.Tx) (err error) { version, err = tx.Meta(t.Context(), "schema"); return err }); err != nil || version != fmt.Sprint(store.SchemaVersion) {
			t.Errorf("schema = %q, %v, want %d", version, err, store.SchemaVersion)
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := setup(b, storetest.SQLite(b))
			l.flow(b)
			var ds []ledger.Draft
			for range n {
				ds = append(ds, flowDraft(b, "flow.claim", ledger.FlowHead{Run: runB, After: after("open", "x")}))
			}
			l.append(b, ds...)
			for b.Loop() {
				_, err := l.Update(b.Context(), runB, func(*store.Tx, ledger.Head, []ledger.Entry) ([]ledger.Draft, error) {
					return []ledger.Draft{flowDraft(b, "flow.claim", ledger.FlowHead{Run: runA, After: after("open", "x")})}, nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRuns1000(b *testing.B) {
	l := setup(b, storetest.SQLite(b))
	var ds []ledger.Draft
	for i := range 1000 {
		ds = append(ds, flowDraft(b, ledger.KindFlowOpened, ledger.FlowHead{Run: fmt.Sprintf("run_01ARZ3NDEKTSV4RRFF%08d", i), Task: "t", After: after("open", "x")}))
	}
	l.append(b, ds...)
	for b.Loop() {
		if got, err := l.Runs(b.Context(), ledger.RunFilter{}); err != nil || len(got) != 1000 {
			b.Fatal(len(got), err)
		}
	}
}
