package ledger

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

// An entry whose bytes or time are not those that were hashed is refused, and
// the refusal names it.
func TestEntryOfDamagedRow(t *testing.T) {
	t.Parallel()
	good := store.EntryRow{Seq: 7, Time: "2026-01-02T03:04:05.6Z", Kind: "refusal", Body: `{"verb":"accept"}`}
	good.LeafHash = leafOf(good).String()
	e, err := entryOf(good)
	if err != nil || e.Seq != 7 || e.Kind != KindRefusal || string(e.Body) != good.Body || e.Time.Format(timeFormat) != good.Time {
		t.Fatalf("entryOf = %+v, %v", e, err)
	}
	if got := e.LeafHash(); got != good.LeafHash {
		t.Errorf("LeafHash = %s, want that of the row, %s", got, good.LeafHash)
	}
	edited := map[string]func(r *store.EntryRow){
		"number": func(r *store.EntryRow) { r.Seq = 8 },
		"time":   func(r *store.EntryRow) { r.Time = "2026-01-02T03:04:05.7Z" },
		"kind":   func(r *store.EntryRow) { r.Kind = "waiver" },
		"body":   func(r *store.EntryRow) { r.Body = `{"verb":"reject"}` },
		"hash":   func(r *store.EntryRow) { r.LeafHash = good.LeafHash[1:] },
	}
	for name, edit := range edited {
		r := good
		edit(&r)
		mustBreak(t, name, r, "its bytes do not have its hash")
	}
	odd := good
	odd.Time = "yesterday"
	odd.LeafHash = leafOf(odd).String()
	mustBreak(t, "time that was hashed and does not parse", odd, "its time does not parse")
}

func mustBreak(t *testing.T, name string, r store.EntryRow, why string) {
	t.Helper()
	got, err := entryOf(r)
	f := fault.From(err)
	if f == nil || got.Seq != 0 {
		t.Errorf("%s: read as %+v", name, got)
		return
	}
	if want := fmt.Sprintf("ledger entry %d: %s", r.Seq, why); f.Error() != want || f.Kind != fault.Tampered || f.Code != CodeBroken || !slices.Equal(f.Hints, []string{"proveto ledger verify"}) {
		t.Errorf("%s: %v (%s, %s, %q), want %s", name, f, f.Kind, f.Code, f.Hints, want)
	}
}

func TestDiffersIsTampering(t *testing.T) {
	t.Parallel()
	f := differs("%s is not there", "x")
	if f == nil || f.Error() != "x is not there" || f.Kind != fault.Tampered || f.Code != CodeProjection || !slices.Equal(f.Hints, []string{"proveto ledger verify"}) {
		t.Errorf("differs = %+v", f)
	}
}

func TestParallelKeepsTheOrderOfErrors(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 50} {
		items, want := make([]int, n), make([]error, n)
		for i := range items {
			items[i] = i
			if i%3 == 0 {
				want[i] = fmt.Errorf("item %d", i)
			}
		}
		var calls atomic.Int64
		got := parallel(items, func(i int) error {
			calls.Add(1)
			return want[i]
		})
		if !slices.EqualFunc(got, want, errors.Is) || int(calls.Load()) != n {
			t.Errorf("%d items: %v after %d calls, want %v", n, got, calls.Load(), want)
		}
	}
}

// The cache keeps what was read last, within its bound, and knows what was
// hashed again.
func TestRunCacheIsBounded(t *testing.T) {
	t.Parallel()
	run := func(n, events int) evidence.Run {
		r, err := evidence.RecordRun(evidence.RunRecord{Nonce: fmt.Sprint(n), Started: time.Unix(int64(n), 0)}, make([]evidence.Event, events))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	c := &runCache{byDigest: map[evidence.Digest]evidence.Run{}}
	half := maxCachedEvents / 2
	a, b, d := run(1, half-1), run(2, half-1), run(3, 0)
	if _, ok := c.get(a.Digest()); ok {
		t.Fatal("an empty cache has a run")
	}
	for _, r := range []evidence.Run{a, a, b} {
		c.add(r)
	}
	for i, r := range []evidence.Run{a, b} {
		if got, ok := c.get(r.Digest()); !ok || got.Digest() != r.Digest() {
			t.Fatalf("run %d is not kept", i)
		}
	}
	c.add(d) // one more than the bound: the oldest goes
	if _, ok := c.get(a.Digest()); ok {
		t.Error("the oldest run was kept over the bound")
	}
	for i, r := range []evidence.Run{b, d} {
		if _, ok := c.get(r.Digest()); !ok {
			t.Errorf("of the two last runs, %d was dropped", i)
		}
	}
	if c.events != half+1 {
		t.Errorf("%d events are counted, want %d", c.events, half+1)
	}
	if want := []evidence.Digest{a.Record().Events, b.Record().Events, d.Record().Events}; !slices.Equal(c.loaded, want) {
		t.Errorf("hashed again: %v, want %v", c.loaded, want)
	}
	huge := run(4, maxCachedEvents+10)
	c.add(huge)
	if _, ok := c.get(huge.Digest()); !ok || len(c.byDigest) != 1 {
		t.Errorf("a run over the bound: kept %v among %d, want it alone", ok, len(c.byDigest))
	}
}

func TestRefIsWrittenInFull(t *testing.T) {
	t.Parallel()
	d := evidence.DigestOf(nil)
	for want, r := range map[string]Ref{string(d): {What: "run", Digest: d}, "01ARZ3NDEKTSV4RRFFQ69G5FAV": {What: "start", ULID: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}} {
		if got := r.String(); got != want {
			t.Errorf("String = %s, want %s", got, want)
		}
	}
}
