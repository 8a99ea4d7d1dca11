package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/proveto/proveto/internal/blob"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

const (
	tree     = evidence.Tree("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
	artifact = evidence.Digest("sha256:1111111111111111111111111111111111111111111111111111111111111111")
	testName = "TestCompare"
)

// bench is a ledger with everything below it.
type bench struct {
	*ledger.Ledger
	config store.Config
	db     *store.DB
	blobs  *blob.Store
	keys   *identity.Keys
	state  string
}

func setup(t testing.TB, c store.Config) *bench {
	t.Helper()
	b := &bench{config: c, state: t.TempDir()}
	b.open(t)
	return b
}

func (b *bench) open(t testing.TB) {
	t.Helper()
	var err error
	b.db = storetest.Open(t, b.config)
	if b.blobs, err = blob.Open(filepath.Join(b.state, "blobs")); err != nil {
		t.Fatal(err)
	}
	blobs := b.blobs
	t.Cleanup(func() {
		if err := blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	if b.keys, err = identity.Open(b.state); err != nil {
		t.Fatal(err)
	}
	if b.Ledger, err = ledger.Open(t.Context(), b.db, b.blobs, b.keys.Engine); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) append(t testing.TB, drafts ...ledger.Draft) []ledger.Entry {
	t.Helper()
	var out []ledger.Entry
	err := b.db.Write(t.Context(), func(tx *store.Tx) (err error) {
		out, err = b.Append(t.Context(), tx, drafts...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantFault(t *testing.T, err error, kind fault.Kind, code fault.Code) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Kind != kind || f.Code != code {
		t.Errorf("error = %v, want %s/%s", err, kind, code)
	}
}

func wantSound(t *testing.T, b *bench, o ledger.Options) ledger.Report {
	t.Helper()
	r, err := b.Verify(t.Context(), o)
	if err != nil || len(r.Findings) != 0 {
		t.Errorf("Verify = %v, findings %+v, want sound", err, r.Findings)
	}
	return r
}

// sample are runs with their outputs, and what they earn.
type sample struct {
	runs []ledger.RunOutput
	cert evidence.Certificate
	mea  evidence.Measurement
}

// makeSample makes the runs behind one certificate, as the sandbox would, with
// nothing in them that depends on when it is called but the nonces.
func makeSample(t testing.TB, n int) sample {
	t.Helper()
	var s sample
	symbol := fmt.Sprintf("scip-go gomod example.com/m . pkg/Compare%d().", n)
	probe := evidence.Probe{
		Symbol: symbol, Kind: evidence.ProbeResult, Operator: "RESULT_NEGATION", Summary: "result negated",
		File: "pkg/a.go", Line: 7, Diff: "--- a/pkg/a.go\n+++ b/pkg/a.go\n@@ -7 +7 @@\n-\treturn a < b\n+\treturn !(a < b)\n",
	}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	record := func(p evidence.Purpose, probe evidence.Digest, alone bool, exit int, events ...evidence.Event) evidence.Run {
		rec := evidence.RunRecord{
			Purpose: p, Snapshot: tree, Argv: []string{"/build/pkg.test"}, Dir: "pkg", Env: evidence.DigestOf(nil), Artifact: artifact,
			Probe: probe, Isolation: evidence.Isolation{Level: evidence.Namespaces, Network: evidence.Loopback},
			Started: start.Add(time.Duration(len(s.runs)) * time.Second), WallNS: 1e6, Exit: evidence.Exit{Code: exit},
			Report: evidence.ReportComplete, Nonce: fmt.Sprintf("%d-%d", n, len(s.runs)),
		}
		if alone {
			rec.Tests = []string{testName}
		}
		if p == evidence.PurposePlanted {
			rec.Planted = testName
		}
		out := fmt.Appendf(nil, "<output> of sample %d run %d\n", n, len(s.runs))
		rec.Stdout = evidence.Output{Digest: evidence.DigestOf(out), Bytes: int64(len(out))}
		r := must[evidence.Run](t)(evidence.RecordRun(rec, append(events, evidence.Event{Kind: evidence.EventEnd})))
		s.runs = append(s.runs, ledger.RunOutput{Run: r, Stdout: out})
		return r
	}
	green := []evidence.Event{
		{Kind: evidence.EventSymbols, Names: []string{symbol}},
		{Kind: evidence.EventBegin, Test: testName},
		{Kind: evidence.EventReach, Test: testName, Index: []int64{0}},
		{Kind: evidence.EventPass, Test: testName},
	}
	red := func(by evidence.By) []evidence.Event {
		return []evidence.Event{
			{Kind: evidence.EventBegin, Test: testName},
			{Kind: evidence.EventFail, Test: testName, By: by, File: "pkg/a_test.go", Line: 12, Message: "Compare(1, 2) = false, want true"},
			{Kind: evidence.EventFailed, Test: testName},
		}
	}
	rs := evidence.Runs{
		Baselines: [2]evidence.Run{record(evidence.PurposeBaseline, "", false, 0, green...), record(evidence.PurposeBaseline, "", false, 0, green...)},
		Null:      record(evidence.PurposeNull, "", false, 0, green...),
		Planted:   record(evidence.PurposePlanted, "", false, 1, red(evidence.ByPlanted)...),
		Kill:      record(evidence.PurposeProbe, probe.Digest(), true, 1, red(evidence.ByAssertion)...),
		Control:   record(evidence.PurposeControl, "", true, 0, green...),
		Repeat:    record(evidence.PurposeProbe, probe.Digest(), true, 1, red(evidence.ByAssertion)...),
	}
	for range evidence.SteadyRounds {
		rs.Steady = append(rs.Steady, record(evidence.PurposeControl, "", true, 0, green...),
			record(evidence.PurposeProbe, probe.Digest(), true, 1, red(evidence.ByAssertion)...))
	}
	facts := evidence.Facts{
		Language: "go", Project: ".", Unit: "example.com/m/pkg", Symbol: symbol, SymbolDigest: evidence.DigestParts("symbol", symbol),
		Probe: probe, Test: testName, TestDigest: evidence.DigestOf([]byte("test")),
		Reached: map[string]evidence.Digest{symbol: evidence.DigestParts("symbol", symbol)},
		Setup:   evidence.DigestOf([]byte("setup")),
		Data:    evidence.DigestOf(nil), Locks: evidence.DigestOf(nil), Toolchain: "go1.26.8 linux/amd64", Driver: "go/1",
	}
	s.cert = must[evidence.Certificate](t)(evidence.NewDiscrimination(facts, rs))
	target := evidence.Target{
		Language: "go", Project: ".", Unit: facts.Unit, Symbol: symbol, SymbolDigest: facts.SymbolDigest,
		Tests: []string{testName}, Inputs: evidence.DigestParts("inputs", symbol),
	}
	s.mea = must[evidence.Measurement](t)(evidence.NewMeasurement(target, tree, []evidence.Trial{
		{Probe: probe, Run: rs.Kill, Certificate: s.cert.Digest()},
	}, "", ""))
	return s
}

func (s sample) drafts() []ledger.Draft {
	var ds []ledger.Draft
	for _, r := range s.runs {
		ds = append(ds, ledger.RunDraft(r.Run))
	}
	return append(ds, ledger.CertificateDraft(s.cert), ledger.MeasurementDraft(s.mea))
}

// fill appends one sample, with a waiver, a snapshot, a start and a refusal when
// n is 0.
func (b *bench) fill(t testing.TB, n int) sample {
	t.Helper()
	s := makeSample(t, n)
	if err := b.KeepRuns(t.Context(), s.runs...); err != nil {
		t.Fatal(err)
	}
	ds := s.drafts()
	if n == 0 {
		d := must[ledger.Draft](t)
		result := must[evidence.Digest](t)(b.blobs.Put(t.Context(), []byte(`{"proven":1}`)))
		ds = append(ds,
			d(ledger.WaiverDraft(b.waiver(t, s.cert.Record().Facts.Probe))),
			d(ledger.SnapshotDraft(ledger.Snapshot{Tree: tree, Commit: strings.Repeat("a", 40), Repo: "/r", Dirty: true})),
			d(ledger.StartDraft(ledger.Start{Key: evidence.DigestOf([]byte("key")), Invocation: invocation, Result: result, Tree: tree, Repo: "/r"})),
			d(ledger.RefusalDraft(ledger.Refusal{Verb: "accept", Code: "stale_subject", What: "the tree changed"})))
	}
	b.append(t, ds...)
	return s
}

const invocation = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

func (b *bench) waiver(t testing.TB, p evidence.Probe) ledger.Waiver {
	t.Helper()
	w := ledger.Waiver{
		LedgerID: b.ID(), Probe: p.Digest(), Symbol: p.Symbol, Reason: "only logging", Until: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		Principal: identity.LocalPrincipal, Nonce: ulid.Make().String(), Key: b.keys.Local.AuthorizedKey(),
	}
	w.Signature = must[string](t)(b.keys.Local.SignStatement(context.Background(), must[[]byte](t)(w.Statement()), ledger.WaiverNamespace))
	return w
}
