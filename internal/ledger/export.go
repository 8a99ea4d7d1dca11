package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/store"
)

// The names of an exported certificate; see docs/formats/discrimination-v1.md.
const (
	StatementType     = "https://in-toto.io/Statement/v1"
	PredicateType     = "https://proveto.dev/attestation/discrimination/v1"
	PayloadType       = "application/vnd.in-toto+json"
	maxExportedEvents = 64 << 20 // bytes of one envelope
)

// Statement is an in-toto statement about one certificate.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject is the sealed tree.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"` // gitTree
}

// Predicate is the certificate with everything that derives it again.
type Predicate struct {
	Certificate ExportedCertificate `json:"certificate"`
	Runs        []ExportedRun       `json:"runs"`
	Ledger      ExportedLedger      `json:"ledger"`
}

// ExportedCertificate is the record; its canonical bytes have the digest.
type ExportedCertificate struct {
	Digest evidence.Digest `json:"digest"`
	Record json.RawMessage `json:"record"`
}

// ExportedRun is a run record with its events.
type ExportedRun struct {
	Digest evidence.Digest  `json:"digest"`
	Record json.RawMessage  `json:"record"`
	Events []evidence.Event `json:"events"`
}

// ExportedLedger proves that the certificate is an entry of a signed ledger.
type ExportedLedger struct {
	ID          string   `json:"id"`
	VerifierKey string   `json:"verifier_key"`
	Checkpoint  string   `json:"checkpoint"` // the head when it was exported
	Seq         int64    `json:"seq"`        // of the certificate's entry
	Time        string   `json:"time"`
	Proof       []string `json:"proof"` // RFC 6962 inclusion proof of the entry, base64
}

// Export wraps a certificate, derived anew, as a DSSE envelope that the engine
// signed: what another machine needs to check it without this ledger, and to run
// it again.
func (l *Ledger) Export(ctx context.Context, d evidence.Digest) ([]byte, error) {
	var st Statement
	err := l.db.Read(ctx, func(tx *store.Tx) error {
		e, err := find(ctx, tx, KindCertificate, d, tx.CertificateSeq)
		if err != nil {
			return err
		}
		var runs []evidence.Run
		c, err := evidence.Rederive(e.Body, func(d evidence.Digest) (evidence.Run, error) {
			r, err := l.run(ctx, tx, d)
			runs = append(runs, r)
			return r, err
		})
		if err != nil {
			return err
		}
		if c.Record().Kind != evidence.KindDiscrimination {
			return fault.New(fault.Usage, "bad_id", "it is of kind %s, and %s statements are about tests", c.Record().Kind, PredicateType).
				Hint("proveto verify %s", d.Short())
		}
		st = statement(c, runs)
		st.Predicate.Ledger, err = l.exported(ctx, tx, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("export certificate %s: %w", d.Short(), err)
	}
	payload, err := evidence.Canonical(st)
	if err != nil {
		return nil, err
	}
	signer, err := dsse.NewEnvelopeSigner(l.engine)
	if err != nil {
		return nil, err
	}
	env, err := signer.SignPayload(ctx, PayloadType, payload)
	if err != nil {
		return nil, fmt.Errorf("sign certificate %s: %w", d.Short(), err)
	}
	return json.MarshalIndent(env, "", "  ")
}

func statement(c evidence.Certificate, runs []evidence.Run) Statement {
	st := Statement{
		Type: StatementType, PredicateType: PredicateType,
		Subject: []Subject{{Name: c.Record().Facts.Unit, Digest: map[string]string{"gitTree": string(c.Record().Snapshot)}}},
	}
	st.Predicate.Certificate = ExportedCertificate{c.Digest(), c.Body()}
	for _, r := range runs {
		if r.IsZero() || slices.ContainsFunc(st.Predicate.Runs, func(x ExportedRun) bool { return x.Digest == r.Digest() }) {
			continue
		}
		events := r.Events()
		if events == nil {
			events = []evidence.Event{}
		}
		st.Predicate.Runs = append(st.Predicate.Runs, ExportedRun{r.Digest(), r.Body(), events})
	}
	return st
}

func (l *Ledger) exported(ctx context.Context, tx *store.Tx, e Entry) (ExportedLedger, error) {
	x, err := l.ExportEntriesIn(ctx, tx, []Entry{e})
	if err != nil {
		return ExportedLedger{}, err
	}
	return ExportedLedger{
		ID: x.ID, VerifierKey: x.VerifierKey, Checkpoint: x.Checkpoint, Seq: e.Seq, Time: x.Entries[0].Time, Proof: x.Entries[0].Proof,
	}, nil
}

// OpenExport verifies an exported certificate without any ledger: the envelope's
// signature, the entry's place in the signed tree, and the verdict, derived from
// the runs inside. verifierKey is the key to trust; empty takes the one inside,
// which says only that the file is whole. Anything that does not hold is
// tampered.
func OpenExport(ctx context.Context, envelope []byte, verifierKey string) (evidence.Certificate, Statement, error) {
	st, err := openEnvelope(ctx, envelope, verifierKey)
	if err != nil {
		return evidence.Certificate{}, st, err
	}
	c, err := st.derive()
	if err == nil {
		err = st.included()
	}
	return c, st, err
}

func badExport(code fault.Code, what string, args ...any) error {
	return fault.New(fault.Tampered, code, "exported certificate: "+what, args...)
}

func openEnvelope(ctx context.Context, envelope []byte, verifierKey string) (st Statement, err error) {
	if len(envelope) > maxExportedEvents {
		return st, fault.New(fault.Usage, "too_large", "an exported certificate has at most %d bytes", maxExportedEvents)
	}
	var env dsse.Envelope
	if err := json.Unmarshal(envelope, &env); err != nil {
		return st, badExport(CodeSignatureBad, "it is no DSSE envelope")
	}
	payload, err := env.DecodeB64Payload()
	if err != nil || env.PayloadType != PayloadType {
		return st, badExport(CodeSignatureBad, "it holds no in-toto statement")
	}
	if err := json.Unmarshal(payload, &st); err != nil {
		return st, badExport(CodeSignatureBad, "its statement does not parse")
	}
	if verifierKey == "" {
		verifierKey = st.Predicate.Ledger.VerifierKey
	}
	engine, name, err := identity.ParseVerifierKey(verifierKey)
	if err != nil {
		return st, err
	}
	verifier, err := dsse.NewEnvelopeVerifier(engine)
	if err != nil {
		return st, err
	}
	if _, err := verifier.Verify(ctx, &env); err != nil {
		return st, fault.Wrap(err, fault.Tampered, CodeSignatureBad, "exported certificate: its signature does not verify")
	}
	if st.Predicate.Ledger.VerifierKey != verifierKey || identity.NoteName(st.Predicate.Ledger.ID) != name {
		return st, badExport(CodeSignatureBad, "it is about ledger %.40q, not the one of the key", st.Predicate.Ledger.ID)
	}
	if st.Type != StatementType || st.PredicateType != PredicateType {
		return st, badExport(CodeCertificateBad, "it is a statement of another type: %.80q", st.PredicateType)
	}
	return st, nil
}

// derive makes the certificate from the runs inside.
func (st Statement) derive() (evidence.Certificate, error) {
	p := st.Predicate
	c, err := evidence.Rederive(p.Certificate.Record, func(d evidence.Digest) (evidence.Run, error) {
		i := slices.IndexFunc(p.Runs, func(r ExportedRun) bool { return r.Digest == d })
		if i < 0 {
			return evidence.Run{}, badExport(CodeMissing, "run %s is not inside", d.Short())
		}
		var events []byte
		if len(p.Runs[i].Events) > 0 {
			var err error
			if events, err = evidence.EncodeEvents(p.Runs[i].Events); err != nil {
				return evidence.Run{}, err
			}
		}
		r, err := evidence.LoadRun(d, p.Runs[i].Record, events)
		if err != nil {
			return r, badExport(CodeCertificateBad, "%s", err)
		}
		return r, nil
	})
	if err != nil {
		return c, err
	}
	if c.Record().Kind != evidence.KindDiscrimination {
		return c, badExport(CodeCertificateBad, "it holds a certificate of kind %s", c.Record().Kind)
	}
	if c.Digest() != p.Certificate.Digest || len(st.Subject) != 1 || st.Subject[0].Digest["gitTree"] != string(c.Record().Snapshot) {
		return c, badExport(CodeCertificateBad, "its subject or digest is not the certificate's")
	}
	return c, nil
}

// included checks that the certificate is the entry of the ledger that the
// checkpoint signs.
func (st Statement) included() error {
	x := st.Predicate.Ledger
	_, _, err := ExportedEntries{ID: x.ID, VerifierKey: x.VerifierKey, Checkpoint: x.Checkpoint, Entries: []ExportedEntry{
		{Seq: x.Seq, Time: x.Time, Kind: KindCertificate, Body: st.Predicate.Certificate.Record, Proof: x.Proof},
	}}.Open()
	return err
}
