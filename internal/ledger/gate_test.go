package ledger_test

import (
	"testing"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

// A certificate of a gate is an entry like that of a test: its runs come before
// it, verification derives it again, a rebuild projects it again, and it is none
// of a project's.
func TestGateCertificateIsKeptAndDerivedAgain(t *testing.T) {
	b := setup(t, storetest.SQLite(t))
	bad := evidence.Tree("1111111111111111111111111111111111111111")
	record := func(at evidence.Tree, exit int, nonce string) evidence.Run {
		return must[evidence.Run](t)(evidence.RecordRun(evidence.RunRecord{
			Purpose: evidence.PurposeBuild, Snapshot: at, Argv: []string{"/usr/bin/go", "build"}, Dir: ".", Exit: evidence.Exit{Code: exit},
			Isolation: evidence.Isolation{Level: evidence.Namespaces, Network: evidence.Loopback}, Started: time.Unix(1, 0), Report: evidence.ReportNone, Nonce: nonce,
		}, nil))
	}
	good, refused := record(tree, 0, "good"), record(bad, 1, "bad")
	c := must[evidence.Certificate](t)(evidence.NewGate(evidence.GateFacts{
		Gate: "build", Digest: evidence.DigestOf([]byte("gate")), Rule: evidence.RuleExit,
		Sabotage: evidence.Sabotage{Kind: evidence.SabotageSyntax, Summary: "syntax error in a.go", Tree: bad},
	}, evidence.GateRuns{Good: []evidence.UnitRun{{Unit: "go build", Run: good}}, Bad: []evidence.UnitRun{{Unit: "go build", Run: refused}}}))

	err := b.db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := b.Append(t.Context(), tx, ledger.CertificateDraft(c))
		return err
	})
	wantFault(t, err, fault.Refused, ledger.CodeMissing)
	b.append(t, ledger.RunDraft(good), ledger.RunDraft(refused), ledger.CertificateDraft(c))
	b.fill(t, 1)

	if got, err := b.Certificate(t.Context(), c.Digest()); err != nil || got.Digest() != c.Digest() {
		t.Errorf("Certificate = %v, %v", got, err)
	}
	wantSound(t, b, ledger.Options{})
	if err := b.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantSound(t, b, ledger.Options{})
	if own, err := b.CertificatesFor(t.Context(), "go", "."); err != nil || len(own) != 1 || own[0].Digest == c.Digest() {
		t.Errorf("CertificatesFor the project = %d, %v, want the one of its test", len(own), err)
	}
	if _, err := b.Export(t.Context(), c.Digest()); fault.From(err) == nil || fault.From(err).Kind != fault.Usage {
		t.Errorf("Export of a gate's certificate = %v, want a usage error", err)
	}
}
