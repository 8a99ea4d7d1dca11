package ledger_test

import (
	"slices"
	"testing"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

func TestSeqOfNamesTheEntry(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		s := b.fill(t, 0)
		for what, d := range map[ledger.Kind]evidence.Digest{
			ledger.KindCertificate: s.cert.Digest(), ledger.KindMeasurement: s.mea.Digest(), ledger.KindRun: s.runs[3].Run.Digest(),
		} {
			seq, err := b.SeqOf(t.Context(), ledger.Ref{What: string(what), Digest: d})
			if err != nil {
				t.Fatal(err)
			}
			e := must[[]ledger.Entry](t)(b.Entries(t.Context(), seq, seq, ""))
			if len(e) != 1 || e[0].Kind != what || evidence.DigestOf(e[0].Body) != d {
				t.Errorf("the %s is said to be entry %d, which is %+v", what, seq, e)
			}
		}
		probe := s.cert.Record().Facts.Probe.Digest()
		if seq, err := b.SeqOf(t.Context(), ledger.Ref{What: "probe", Digest: probe}); err != nil || seq < 1 {
			t.Errorf("the probe: entry %d, %v", seq, err)
		}
		for _, r := range []ledger.Ref{{What: "blob", Digest: s.runs[0].Run.Record().Events}, {What: "run", Digest: s.cert.Digest()}} {
			seq, err := b.SeqOf(t.Context(), r)
			wantFault(t, err, fault.NotFound, ledger.CodeNotFound)
			if want := "no entry records the " + r.What + " " + string(r.Digest); seq != 0 || err == nil || err.Error() != want {
				t.Errorf("%d, %v, want %s", seq, err, want)
			}
		}
	})
}

// An empty database becomes a ledger once; whoever opens it later finds the same.
func TestOpenFoundsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	again, err := ledger.Open(t.Context(), b.db, b.blobs, b.keys.Engine)
	if err != nil {
		t.Fatal(err)
	}
	entries := must[[]ledger.Entry](t)(b.Entries(t.Context(), 1, 0, ""))
	if len(b.ID()) != 32 || again.ID() != b.ID() || again.VerifierKey() != b.VerifierKey() || b.VerifierKey() == "" {
		t.Errorf("opened as %q with key %q, then as %q with key %q", b.ID(), b.VerifierKey(), again.ID(), again.VerifierKey())
	}
	if len(entries) != 1 || entries[0].Kind != ledger.KindGenesis {
		t.Errorf("it holds %+v, want one genesis entry", entries)
	}
}

func TestUncitedBlobsAreThoseOfNoEntry(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	b.fill(t, 0)
	if got, err := b.Uncited(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("Uncited = %v, %v, want none", got, err)
	}
	lost := must[evidence.Digest](t)(b.blobs.Put(t.Context(), []byte("nobody cites this")))
	if got, err := b.Uncited(t.Context()); err != nil || !slices.Equal(got, []evidence.Digest{lost}) {
		t.Errorf("Uncited = %v, %v, want %s", got, err, lost)
	}
}
