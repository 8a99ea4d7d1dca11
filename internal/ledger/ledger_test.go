package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

func TestWhatIsAppendedComesBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		s := b.fill(t, 0)
		ctx := t.Context()

		for _, want := range s.runs {
			got, err := b.Run(ctx, want.Run.Digest())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want.Run.Record(), got.Record()); d != "" {
				t.Errorf("run:\n%s", d)
			}
			if d := cmp.Diff(want.Run.Events(), got.Events()); d != "" {
				t.Errorf("events:\n%s", d)
			}
		}
		cert, err := b.Certificate(ctx, s.cert.Digest())
		if err != nil || cert.Digest() != s.cert.Digest() {
			t.Errorf("Certificate = %v, %v", cert, err)
		}
		mea, err := b.Measurement(ctx, s.mea.Digest())
		if err != nil || mea.Record().Word != evidence.Proven {
			t.Errorf("Measurement = %v, %v, want proven", mea.Record().Word, err)
		}
		certs, err := b.CertificatesFor(ctx, "go", ".")
		if err != nil || len(certs) != 1 || certs[0].Digest != s.cert.Digest() {
			t.Errorf("CertificatesFor = %v, %v", certs, err)
		}
		if certs, err := b.CertificatesFor(ctx, "go", "other"); err != nil || len(certs) != 0 {
			t.Errorf("CertificatesFor another project = %v, %v", certs, err)
		}
		if d := cmp.Diff(s.cert.Record(), certs[0].Record); d != "" {
			t.Errorf("certificate record:\n%s", d)
		}
		ws, err := b.Waivers(ctx)
		if err != nil || len(ws) != 1 || ws[0].Reason != "only logging" {
			t.Errorf("Waivers = %v, %v", ws, err)
		}
		st, err := b.Starts(ctx, "/r")
		if err != nil || len(st) != 1 || st[0].Record.Invocation != invocation || st[0].Record.Key != evidence.DigestOf([]byte("key")) {
			t.Errorf("Starts = %+v, %v", st, err)
		}
		last, err := b.LastStart(ctx, "/r")
		if err != nil || last != st[0].Record {
			t.Errorf("LastStart = %+v, %v, want %+v", last, err, st[0].Record)
		}
		if none, err := b.Starts(ctx, "/elsewhere"); err != nil || len(none) != 0 {
			t.Errorf("Starts elsewhere = %+v, %v", none, err)
		}
		_, err = b.LastStart(ctx, "/elsewhere")
		wantFault(t, err, fault.NotFound, ledger.CodeNotFound)
		_, err = b.Run(ctx, evidence.DigestOf([]byte("no run")))
		wantFault(t, err, fault.NotFound, ledger.CodeNotFound)
		_, err = b.Run(ctx, "../../etc/passwd")
		wantFault(t, err, fault.Usage, ledger.CodeBadID)

		r := wantSound(t, b, ledger.Options{})
		if r.Entries != 26 || r.Runs != 19 || r.Certificates != 1 || r.Measurements != 1 || r.Sound != 26 || r.Outside != "none" {
			t.Errorf("report = %+v", r)
		}
		if h, err := b.Head(ctx); err != nil || h != r.Head || h.Seq != 26 {
			t.Errorf("Head = %+v, %v, want %+v", h, err, r.Head)
		}
	})
}

func TestEntriesAreCanonicalAndOrdered(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	b.fill(t, 0)
	es, err := b.Entries(t.Context(), 1, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range es {
		if e.Seq != int64(i+1) {
			t.Errorf("entry %d has seq %d", i, e.Seq)
		}
		want, err := evidence.Canonical(map[string]any{
			"seq": e.Seq, "time": e.Time.Format("2006-01-02T15:04:05.999999999Z07:00"), "kind": e.Kind, "body": e.Body,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := ledger.Encode(e); string(got) != string(want) {
			t.Errorf("entry %d is hashed as\n%s\nwant\n%s", e.Seq, got, want)
		}
	}
	var kinds []ledger.Kind
	for _, e := range es[len(es)-6:] {
		kinds = append(kinds, e.Kind)
	}
	want := []ledger.Kind{"certificate", "measurement", "waiver", "snapshot", "start", "refusal"}
	if !slices.Equal(kinds, want) || es[0].Kind != ledger.KindGenesis {
		t.Errorf("kinds = %v, want %v", kinds, want)
	}
	runs, err := b.Entries(t.Context(), 3, 5, ledger.KindRun)
	if err != nil || len(runs) != 3 || runs[0].Seq != 3 {
		t.Errorf("Entries(3, 5, run) = %d entries, %v", len(runs), err)
	}
}

func TestEvidenceComesBeforeWhatCitesIt(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	s := makeSample(t, 1)
	try := func(ds ...ledger.Draft) error {
		return b.db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := b.Append(t.Context(), tx, ds...)
			return err
		})
	}
	wantFault(t, try(s.drafts()...), fault.Refused, ledger.CodeMissing) // no blobs
	if err := b.KeepRuns(t.Context(), s.runs...); err != nil {
		t.Fatal(err)
	}
	wantFault(t, try(ledger.CertificateDraft(s.cert)), fault.Refused, ledger.CodeMissing)
	all := s.drafts()
	wantFault(t, try(append(all[:len(s.runs):len(s.runs)], all[len(s.runs)+1])...), fault.Refused, ledger.CodeMissing) // measurement without its certificate
	wantFault(t, try(ledger.Draft{}), fault.Internal, "internal")
	if h, err := b.Head(t.Context()); err != nil || h.Seq != 1 {
		t.Errorf("Head = %+v, %v, want only the genesis", h, err)
	}
	if err := b.KeepRun(t.Context(), s.runs[0].Run, []byte("other output"), nil); err == nil {
		t.Error("KeepRun kept an output that the run does not name")
	}
	for _, k := range []ledger.Kind{"run", "certificate", "genesis", "", "UPPER", `a"b`} {
		if _, err := ledger.NewDraft(k, struct{}{}); err == nil {
			t.Errorf("NewDraft(%q) is not refused", k)
		}
	}
	d, err := ledger.NewDraft("test.note", map[string]string{"b": "x", "a": "y"})
	if err != nil {
		t.Fatal(err)
	}
	es := b.append(t, d)
	if string(es[0].Body) != `{"a":"y","b":"x"}` {
		t.Errorf("body = %s, want canonical", es[0].Body)
	}
}

func TestWaiverNeedsItsSignature(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	w := b.waiver(t, makeSample(t, 1).cert.Record().Facts.Probe)
	if _, err := ledger.WaiverDraft(w); err != nil {
		t.Fatal(err)
	}
	w.Reason = "another reason"
	_, err := ledger.WaiverDraft(w)
	wantFault(t, err, fault.Tampered, ledger.CodeSignatureBad)
	w.Reason = ""
	_, err = ledger.WaiverDraft(w)
	wantFault(t, err, fault.Usage, "usage")
}

func TestRepeatedObjectsAreProjectedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		s := b.fill(t, 0)
		b.append(t, s.drafts()...)
		b.append(t, must[ledger.Draft](t)(ledger.WaiverDraft(b.waiver(t, s.cert.Record().Facts.Probe))))
		wantSound(t, b, ledger.Options{})
		ms, err := b.MeasurementsFor(t.Context(), "go", ".")
		if err != nil || len(ms) != 2 || ms[0].Seq != 47 || ms[0].Digest != ms[1].Digest {
			t.Errorf("MeasurementsFor = %+v, %v, want that of entry 47 and the same before it", ms, err)
		}
		for after, want := range map[int64]int{ms[1].Seq: 1, ms[0].Seq: 0} {
			since, err := b.SymbolsSince(t.Context(), after)
			if err != nil || len(since) != want || (want > 0 && !since[ms[0].Record.Target.Symbol]) {
				t.Errorf("SymbolsSince(%d) = %v, %v, want %d", after, since, err, want)
			}
		}
	})
}

func TestRebuildIsTheProjection(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		for n := range 4 {
			b.fill(t, n)
		}
		b.append(t, makeSample(t, 1).drafts()...)
		b.flow(t)
		want := b.projections(t)
		if len(want.FlowEntries) != 6 || len(want.FlowOpened) != 2 || len(want.Runs) != 76 || len(want.Certificates) != 4 || len(want.Measurements) != 5 || len(want.Probes) != 4 || len(want.Waivers) != 1 || len(want.Starts) != 1 {
			t.Fatalf("projections: %+v", want)
		}
		err := b.db.Write(t.Context(), func(tx *store.Tx) error { return tx.ClearProjections(t.Context()) })
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Verify(t.Context(), ledger.Options{})
		wantFault(t, err, fault.Tampered, ledger.CodeProjection)
		if err := b.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, b.projections(t)); d != "" {
			t.Errorf("rebuilt (-written +rebuilt):\n%s", d)
		}
		wantSound(t, b, ledger.Options{})
	})
}

func (b *bench) projections(t *testing.T) (rows store.Rows) {
	t.Helper()
	err := b.db.Read(t.Context(), func(tx *store.Tx) error {
		ctx := t.Context()
		var errs [8]error
		rows.Runs, errs[0] = tx.Runs(ctx, 0, 1000)
		rows.Certificates, errs[1] = tx.Certificates(ctx, 0, 1000)
		rows.Measurements, errs[2] = tx.Measurements(ctx, 0, 1000)
		rows.Probes, errs[3] = tx.Probes(ctx, 0, "", 1000)
		rows.Waivers, errs[4] = tx.Waivers(ctx, 0, 1000)
		rows.Starts, errs[5] = tx.Starts(ctx, 0, 1000)
		rows.FlowEntries, errs[6] = tx.FlowEntryRows(ctx, 0, 1000)
		rows.FlowOpened, errs[7] = tx.FlowRuns(ctx, store.FlowRunFilter{Limit: 1000})
		return errors.Join(errs[:]...)
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestTwoLedgersOnOneDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		state := t.TempDir()
		const each = 20
		var wg sync.WaitGroup
		for range 2 { // also founding is a race
			b := &bench{config: c, state: state}
			b.db = storetest.Open(t, c)
			wg.Go(func() {
				keys, err := identity.Open(state)
				if err != nil {
					t.Error(err)
					return
				}
				l, err := ledger.Open(t.Context(), b.db, nil, keys.Engine)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range each {
					d, err := ledger.NewDraft("test.note", i)
					if err == nil {
						err = b.db.Write(t.Context(), func(tx *store.Tx) error {
							_, err := l.Append(t.Context(), tx, d)
							return err
						})
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		b := &bench{config: c, state: state}
		b.open(t)
		if r := wantSound(t, b, ledger.Options{}); r.Entries != 2*each+1 {
			t.Errorf("%d entries, want %d", r.Entries, 2*each+1)
		}
	})
}

func TestAnotherEngineIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	other := must[*identity.Keys](t)(identity.Open(t.TempDir()))
	_, err := ledger.Open(t.Context(), b.db, b.blobs, other.Engine)
	wantFault(t, err, fault.Refused, ledger.CodeEngineUnknown)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		s := b.fill(t, 0)
		events := s.runs[0].Run.Record().Events
		for id, want := range map[string]ledger.Ref{
			string(s.cert.Digest()):                      {What: "certificate", Digest: s.cert.Digest()},
			s.cert.Digest().Hex()[:10]:                   {What: "certificate", Digest: s.cert.Digest()},
			"sha256:" + s.runs[2].Run.Digest().Hex()[:8]: {What: "run", Digest: s.runs[2].Run.Digest()},
			s.mea.Digest().Hex():                         {What: "measurement", Digest: s.mea.Digest()},
			s.cert.Record().Facts.Probe.Digest().Short(): {What: "probe", Digest: s.cert.Record().Facts.Probe.Digest()},
			events.Hex()[:9]:                             {What: "blob", Digest: events},
			invocation:                                   {What: "start", ULID: invocation},
			invocation[len(invocation)-6:]:               {What: "start", ULID: invocation},
		} {
			got, err := b.Resolve(t.Context(), id)
			if err != nil || got != want {
				t.Errorf("Resolve(%s) = %+v, %v, want %+v", id, got, err, want)
			}
		}
		for _, bad := range []string{
			"", "abc", "../../x", "abcdef/", "ABCDEFg", strings.ToUpper(s.cert.Digest().Hex()), "%25%25%25", "______", "abcdef\x00",
			"sha256:", "sha512:" + s.cert.Digest().Hex(), strings.Repeat("a", 65), strings.Repeat("A", 27), "ILOUIL", strings.ToLower(invocation), "@latest",
		} {
			_, err := b.Resolve(t.Context(), bad)
			wantFault(t, err, fault.Usage, ledger.CodeBadID)
		}
		_, err := b.Resolve(t.Context(), "0123456789abcdef")
		wantFault(t, err, fault.NotFound, ledger.CodeNotFound)

		// Two blobs with the same six digits, found by trying.
		seen := map[string][]byte{}
		for i := 0; ; i++ {
			x := fmt.Appendf(nil, "blob %d", i)
			p := evidence.DigestOf(x).Hex()[:6]
			if y, ok := seen[p]; ok {
				if _, err := b.blobs.PutAll(t.Context(), x, y); err != nil {
					t.Fatal(err)
				}
				_, err := b.Resolve(t.Context(), p)
				wantFault(t, err, fault.Usage, ledger.CodeAmbiguous)
				if f := fault.From(err); len(f.Hints) != 2 {
					t.Errorf("hints = %v, want both blobs", f.Hints)
				}
				break
			}
			seen[p] = x
		}
	})
}

func TestCancelledAppendLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	ctx, cancel := context.WithCancel(t.Context())
	err := b.db.Write(ctx, func(tx *store.Tx) error {
		d, err := ledger.NewDraft("test.note", 1)
		if err != nil {
			return err
		}
		_, err = b.Append(ctx, tx, d)
		cancel()
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Write = %v, want cancelled", err)
	}
	if r := wantSound(t, b, ledger.Options{}); r.Entries != 1 {
		t.Errorf("%d entries, want 1", r.Entries)
	}
}
