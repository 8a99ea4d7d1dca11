package ledger

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/store"
)

// ExportedEntries are entries that can be checked without their ledger: each is
// proven to be a leaf of the tree that the checkpoint signs. That none is missing
// is not proven by it.
type ExportedEntries struct {
	ID          string          `json:"id"`
	VerifierKey string          `json:"verifier_key"`
	Checkpoint  string          `json:"checkpoint"` // the head when they were exported
	Entries     []ExportedEntry `json:"entries"`
}

// ExportedEntry is an entry with its place in the tree.
type ExportedEntry struct {
	Seq   int64           `json:"seq"`
	Time  string          `json:"time"`
	Kind  Kind            `json:"kind"`
	Body  json.RawMessage `json:"body"`  // canonical, as it was hashed
	Proof []string        `json:"proof"` // RFC 6962 inclusion proof, base64
}

// ExportEntriesIn proves the places of entries under the last checkpoint.
func (l *Ledger) ExportEntriesIn(ctx context.Context, tx *store.Tx, entries []Entry) (ExportedEntries, error) {
	out := ExportedEntries{ID: l.id, VerifierKey: l.vkey, Entries: []ExportedEntry{}}
	c, err := tx.LastCheckpoint(ctx)
	if err != nil {
		return out, err
	}
	out.Checkpoint = c.Note
	t := &tree{size: c.Size, known: map[int64]tlog.Hash{}}
	for _, e := range entries {
		proof, err := tlog.ProveRecord(c.Size, e.Seq-1, t.reader(ctx, tx))
		if err != nil {
			return out, err
		}
		x := ExportedEntry{Seq: e.Seq, Time: e.Time.Format(timeFormat), Kind: e.Kind, Body: e.Body, Proof: []string{}}
		for _, h := range proof {
			x.Proof = append(x.Proof, h.String())
		}
		out.Entries = append(out.Entries, x)
	}
	return out, nil
}

// Open checks the checkpoint and the place of every entry, with the key that is
// named inside, and gives the entries back with the head that was signed.
// Anything that does not hold is tampered.
func (x ExportedEntries) Open() ([]Entry, Head, error) {
	v, err := note.NewVerifier(x.VerifierKey)
	if err != nil {
		return nil, Head{}, badExport(CodeCheckpointBad, "its verifier key does not parse")
	}
	size, root, err := openCheckpoint([]byte(x.Checkpoint), x.ID, note.VerifierList(v))
	if err != nil {
		return nil, Head{}, err
	}
	out := make([]Entry, 0, len(x.Entries))
	for _, e := range x.Entries {
		got, err := e.open(size, root)
		if err != nil {
			return nil, Head{}, err
		}
		out = append(out, got)
	}
	return out, headOf(size, root), nil
}

func (e ExportedEntry) open(size int64, root tlog.Hash) (Entry, error) {
	at, err := time.Parse(timeFormat, e.Time)
	if err != nil || !validKind(e.Kind) || at.UTC().Format(timeFormat) != e.Time {
		return Entry{}, badExport(CodeBroken, "entry %d does not parse", e.Seq)
	}
	proof, err := parseProof(e.Proof)
	if err != nil {
		return Entry{}, err
	}
	if e.Seq < 1 || e.Seq > size {
		return Entry{}, badExport(CodeBroken, "entry %d is not in the signed ledger", e.Seq)
	}
	leaf := tlog.RecordHash(encode(nil, e.Seq, e.Time, string(e.Kind), string(e.Body)))
	if err := tlog.CheckRecord(proof, size, root, e.Seq-1, leaf); err != nil {
		return Entry{}, errors.Join(badExport(CodeBroken, "entry %d is not in the signed ledger", e.Seq), err)
	}
	return Entry{Seq: e.Seq, Time: at.UTC(), Kind: e.Kind, Body: e.Body}, nil
}

func parseProof(list []string) (tlog.RecordProof, error) {
	proof := tlog.RecordProof{}
	for _, s := range list {
		raw, err := base64.StdEncoding.Strict().DecodeString(s)
		if err != nil || len(raw) != tlog.HashSize {
			return nil, badExport(CodeBroken, "its inclusion proof does not parse")
		}
		proof = append(proof, tlog.Hash(raw))
	}
	return proof, nil
}

// Sign wraps the canonical JSON of an in-toto statement as a DSSE envelope that
// the engine signed, in one line.
func (l *Ledger) Sign(ctx context.Context, statement []byte) ([]byte, error) {
	return SignStatement(ctx, l.engine, statement)
}

// SignStatement is [Ledger.Sign] with an engine that is at hand.
func SignStatement(ctx context.Context, engine identity.Engine, statement []byte) ([]byte, error) {
	signer, err := dsse.NewEnvelopeSigner(engine)
	if err != nil {
		return nil, err
	}
	env, err := signer.SignPayload(ctx, PayloadType, statement)
	if err != nil {
		return nil, err
	}
	return json.Marshal(env)
}

// PeekStatement reads the statement of an envelope and checks nothing about its
// signature: only what [OpenStatement] gives back may be believed.
func PeekStatement(envelope []byte) ([]byte, error) {
	var env dsse.Envelope
	if err := json.Unmarshal(envelope, &env); err != nil || env.PayloadType != PayloadType {
		return nil, badExport(CodeSignatureBad, "it is no DSSE envelope around an in-toto statement")
	}
	payload, err := env.DecodeB64Payload()
	if err != nil {
		return nil, badExport(CodeSignatureBad, "it holds no in-toto statement")
	}
	return payload, nil
}

// OpenStatement gives back the statement of an envelope that the engine of a
// verifier key signed. The envelope must be, byte for byte, what [Ledger.Sign]
// writes; anything else is tampered with code signature_bad.
func OpenStatement(ctx context.Context, envelope []byte, verifierKey string) ([]byte, error) {
	engine, _, err := identity.ParseVerifierKey(verifierKey)
	if err != nil {
		return nil, err
	}
	var env dsse.Envelope
	if err := json.Unmarshal(envelope, &env); err != nil || len(env.Signatures) != 1 || env.PayloadType != PayloadType {
		return nil, badExport(CodeSignatureBad, "it is no DSSE envelope with one signature around an in-toto statement")
	}
	verifier, err := dsse.NewEnvelopeVerifier(engine)
	if err != nil {
		return nil, err
	}
	_, payload, err := verifier.VerifyAndDecode(ctx, &env)
	if err != nil {
		return nil, fault.Wrap(err, fault.Tampered, CodeSignatureBad, "exported statement: its signature does not verify")
	}
	id, err := engine.KeyID()
	if err != nil {
		return nil, err
	}
	sig, err := base64.StdEncoding.DecodeString(env.Signatures[0].Sig)
	if err != nil {
		return nil, badExport(CodeSignatureBad, "its signature does not parse")
	}
	whole, err := json.Marshal(dsse.Envelope{
		PayloadType: PayloadType, Payload: base64.StdEncoding.EncodeToString(payload),
		Signatures: []dsse.Signature{{KeyID: id, Sig: base64.StdEncoding.EncodeToString(sig)}},
	})
	if err != nil {
		return nil, err
	}
	if string(whole) != string(envelope) {
		return nil, badExport(CodeSignatureBad, "something was added around its signed statement")
	}
	return payload, nil
}
