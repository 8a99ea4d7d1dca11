package ledger

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/proveto/proveto/internal/blob"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/store"
)

// Ledger is an open ledger. It may be used by any number of goroutines.
type Ledger struct {
	db       *store.DB
	blobs    *blob.Store
	engine   identity.Engine
	id       string
	vkey     string
	signer   note.Signer
	verifier note.Verifiers
	sound    atomic.Pointer[string] // the checkpoint that was signed or verified last: the same bytes need no second look
}

// Head is the last entry and the root of the tree that ends with it.
type Head struct {
	Seq  int64           `json:"seq"`
	Root evidence.Digest `json:"root"`
}

// Open opens the ledger in the database, or founds it when the database is
// empty. A ledger that was founded with another engine key is refused.
func Open(ctx context.Context, db *store.DB, blobs *blob.Store, engine identity.Engine) (*Ledger, error) {
	l := &Ledger{db: db, blobs: blobs, engine: engine}
	err := db.Read(ctx, func(tx *store.Tx) error { return l.adopt(ctx, tx) })
	if !errors.Is(err, errEmpty) {
		return l, err
	}
	return l, db.Write(ctx, func(tx *store.Tx) error {
		// Another process may have been first.
		if err := l.adopt(ctx, tx); !errors.Is(err, errEmpty) {
			return err
		}
		return l.found(ctx, tx)
	})
}

var errEmpty = errors.New("the database has no ledger")

// adopt takes id and keys from the genesis entry.
func (l *Ledger) adopt(ctx context.Context, tx *store.Tx) error {
	row, err := tx.Entry(ctx, 1)
	if errors.Is(err, store.ErrNoRow) {
		if n, err := tx.LastSeq(ctx); err != nil || n != 0 {
			return errors.Join(broken(1, "it is not there"), err)
		}
		return errEmpty
	}
	if err != nil {
		return err
	}
	e, err := entryOf(row)
	if err != nil {
		return err
	}
	g, err := decode[Genesis](e)
	if err != nil {
		return err
	}
	if e.Kind != KindGenesis || g.Schema != SchemaGenesis || !validID(g.LedgerID) {
		return broken(1, "it does not found a ledger")
	}
	if err := l.setID(g.LedgerID); err != nil {
		return err
	}
	if g.Engine != l.vkey {
		return fault.New(fault.Refused, CodeEngineUnknown, "ledger %s in %s was founded with engine key %.60s, not ours", g.LedgerID, l.db.Name(), g.Engine).
			Hint("use the keys directory that belongs to this database")
	}
	return nil
}

func validID(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
}

func (l *Ledger) setID(id string) (err error) {
	l.id = id
	if l.vkey, err = l.engine.VerifierKey(id); err != nil {
		return fmt.Errorf("engine key: %w", err)
	}
	if l.signer, err = l.engine.NoteSigner(id); err != nil {
		return err
	}
	v, err := note.NewVerifier(l.vkey)
	if err != nil {
		return fmt.Errorf("engine key: %w", err)
	}
	l.verifier = note.VerifierList(v)
	return nil
}

func (l *Ledger) found(ctx context.Context, tx *store.Tx) error {
	var id [16]byte
	rand.Read(id[:]) // never fails
	if err := l.setID(hex.EncodeToString(id[:])); err != nil {
		return err
	}
	d, err := draft(KindGenesis, Genesis{Schema: SchemaGenesis, LedgerID: l.id, Engine: l.vkey})
	if err != nil {
		return err
	}
	_, err = l.Append(ctx, tx, d)
	return err
}

// ID is the ledger's id: 32 random hexadecimal digits.
func (l *Ledger) ID() string { return l.id }

// VerifierKey is the public key of the engine in note form.
func (l *Ledger) VerifierKey() string { return l.vkey }

// Append writes entries, their leaves, their projections and one checkpoint in
// the transaction. Nothing is recorded unless the transaction commits.
func (l *Ledger) Append(ctx context.Context, tx *store.Tx, drafts ...Draft) ([]Entry, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	t, err := l.openTree(ctx, tx)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	out := make([]Entry, 0, len(drafts))
	for _, d := range drafts {
		if !validKind(d.kind) || len(d.body) == 0 {
			return nil, fault.New(fault.Internal, "internal", "an empty draft of kind %q", d.kind)
		}
		e := Entry{Seq: t.size + 1, Time: now, Kind: d.kind, Body: d.body}
		if e.leaf, err = l.insert(ctx, tx, t, e); err != nil {
			return nil, fmt.Errorf("append %s: %w", d.kind, err)
		}
		out = append(out, e)
	}
	return out, l.sign(ctx, tx, t)
}

func (l *Ledger) insert(ctx context.Context, tx *store.Tx, t *tree, e Entry) (leaf string, err error) {
	if err := l.complete(ctx, tx, e); err != nil {
		return "", err
	}
	return l.write(ctx, tx, t, e)
}

// write gives the leaf hash of the entry.
func (l *Ledger) write(ctx context.Context, tx *store.Tx, t *tree, e Entry) (string, error) {
	rows, err := project(e)
	if err != nil {
		return "", err
	}
	if err := storable(rows); err != nil {
		return "", err
	}
	row := store.EntryRow{Seq: e.Seq, Time: e.Time.Format(timeFormat), Kind: string(e.Kind), Body: string(e.Body)}
	leaf := leafOf(row)
	row.LeafHash = leaf.String()
	if err := tx.InsertEntry(ctx, row); err != nil {
		return "", err
	}
	if err := t.add(ctx, tx, leaf); err != nil {
		return "", err
	}
	if err := tx.InsertRows(ctx, rows); errors.Is(err, store.ErrNoRow) {
		return "", fault.New(fault.Internal, "internal", "an entry of kind %s of a run that was never opened", e.Kind)
	} else if err != nil {
		return "", err
	}
	return row.LeafHash, nil
}

// complete checks that what the entry cites is there: blobs of a run, runs of a
// certificate, runs and certificates of a measurement.
func (l *Ledger) complete(ctx context.Context, tx *store.Tx, e Entry) error {
	blobs, err := cited(e)
	if err != nil {
		return err
	}
	for _, d := range blobs {
		if ok, err := l.blobs.Has(d); err != nil || !ok {
			return errors.Join(err, fault.New(fault.Refused, CodeMissing, "blob %s is cited but not kept", d.Short()))
		}
	}
	var runs, certs []evidence.Digest
	switch e.Kind {
	case KindCertificate:
		c, err := decode[evidence.CertificateRecord](e)
		if err != nil {
			return err
		}
		runs = c.Cites()
	case KindMeasurement:
		m, err := decode[evidence.MeasurementRecord](e)
		if err != nil {
			return err
		}
		for _, t := range m.Trials {
			for _, d := range []evidence.Digest{t.Run, t.Confirmed} {
				if d != "" {
					runs = append(runs, d)
				}
			}
			if t.Certificate != "" {
				certs = append(certs, t.Certificate)
			}
		}
	}
	for _, d := range runs {
		if _, err := tx.RunSeq(ctx, string(d)); err != nil {
			return absent(err, "run", d)
		}
	}
	for _, d := range certs {
		if _, err := tx.CertificateSeq(ctx, string(d)); err != nil {
			return absent(err, "certificate", d)
		}
	}
	return nil
}

func absent(err error, what string, d evidence.Digest) error {
	if errors.Is(err, store.ErrNoRow) {
		return fault.New(fault.Refused, CodeMissing, "%s %s is cited but not in the ledger", what, d.Short())
	}
	return err
}

// RunOutput is a run with the bytes of its streams.
type RunOutput struct {
	Run            evidence.Run
	Stdout, Stderr []byte
}

// KeepRun puts the blobs of a run: its events and its output. Call it before the
// transaction that records the run.
func (l *Ledger) KeepRun(ctx context.Context, r evidence.Run, stdout, stderr []byte) error {
	return l.KeepRuns(ctx, RunOutput{r, stdout, stderr})
}

// KeepRuns is [Ledger.KeepRun] for several runs, at little more than the cost of
// one.
func (l *Ledger) KeepRuns(ctx context.Context, runs ...RunOutput) error {
	var blobs [][]byte
	for _, o := range runs {
		rec := o.Run.Record()
		var events []byte
		if rec.Events != "" {
			var err error
			if events, err = evidence.EncodeEvents(o.Run.Events()); err != nil {
				return fmt.Errorf("keep run %s: %w", o.Run.Digest().Short(), err)
			}
		}
		for _, b := range []struct {
			what  string
			want  evidence.Digest
			bytes []byte
		}{{"events", rec.Events, events}, {"stdout", rec.Stdout.Digest, o.Stdout}, {"stderr", rec.Stderr.Digest, o.Stderr}} {
			if b.want == "" && len(b.bytes) == 0 {
				continue
			}
			if evidence.DigestOf(b.bytes) != b.want {
				return fault.New(fault.Internal, "internal", "run %s names %s %s, not these %d bytes", o.Run.Digest().Short(), b.what, b.want.Short(), len(b.bytes))
			}
			blobs = append(blobs, b.bytes)
		}
	}
	_, err := l.blobs.PutAll(ctx, blobs...)
	return err
}

// checkpointText is the body of a checkpoint note: origin, size, root.
func checkpointText(id string, size int64, root tlog.Hash) string {
	return fmt.Sprintf("%s\n%d\n%s\n", identity.NoteName(id), size, root)
}

// openCheckpoint verifies a checkpoint note and reads it.
func openCheckpoint(msg []byte, id string, verifiers note.Verifiers) (size int64, root tlog.Hash, err error) {
	n, err := note.Open(msg, verifiers)
	if err != nil {
		return 0, root, fault.Wrap(err, fault.Tampered, CodeCheckpointBad, "checkpoint is not signed by the engine of ledger %s", id)
	}
	return readCheckpoint(n.Text, id)
}

// readCheckpoint reads the text of a checkpoint whose signature holds.
func readCheckpoint(text, id string) (size int64, root tlog.Hash, err error) {
	bad := fault.New(fault.Tampered, CodeCheckpointBad, "checkpoint of ledger %s does not parse", id)
	lines := strings.Split(text, "\n")
	if len(lines) < 3 || lines[0] != identity.NoteName(id) {
		return 0, root, bad
	}
	size, err = strconv.ParseInt(lines[1], 10, 64)
	raw, err2 := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || err2 != nil || size < 1 || len(raw) != tlog.HashSize {
		return 0, root, bad
	}
	copy(root[:], raw)
	return size, root, nil
}

func (l *Ledger) sign(ctx context.Context, tx *store.Tx, t *tree) error {
	root, err := t.root(ctx, tx)
	if err != nil {
		return err
	}
	msg, err := note.Sign(&note.Note{Text: checkpointText(l.id, t.size, root)}, l.signer)
	if err != nil {
		return fmt.Errorf("sign checkpoint: %w", err)
	}
	text := string(msg)
	l.sound.Store(&text)
	return tx.InsertCheckpoint(ctx, store.CheckpointRow{Size: t.size, Note: text})
}

// lastCheckpoint is the signed head. Without any entry its size is 0.
func (l *Ledger) lastCheckpoint(ctx context.Context, tx *store.Tx) (size int64, root tlog.Hash, err error) {
	c, err := tx.LastCheckpoint(ctx)
	if errors.Is(err, store.ErrNoRow) {
		return 0, root, nil
	}
	if err != nil {
		return 0, root, err
	}
	if known := l.sound.Load(); known != nil && *known == c.Note {
		text, _, _ := strings.Cut(c.Note, "\n\n")
		size, root, err = readCheckpoint(text, l.id)
	} else if size, root, err = openCheckpoint([]byte(c.Note), l.id, l.verifier); err == nil {
		l.sound.Store(&c.Note)
	}
	if err == nil && size != c.Size {
		err = fault.New(fault.Tampered, CodeCheckpointBad, "checkpoint %d is about %d entries", c.Size, size)
	}
	return size, root, err
}

// Head is the last entry and its root, as the engine signed them.
func (l *Ledger) Head(ctx context.Context) (h Head, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		h, err = l.head(ctx, tx)
		return err
	})
	return h, err
}

// HeadIn is [Ledger.Head] in a transaction: what it is before, or after, what the
// transaction appends.
func (l *Ledger) HeadIn(ctx context.Context, tx *store.Tx) (Head, error) { return l.head(ctx, tx) }

func (l *Ledger) head(ctx context.Context, tx *store.Tx) (Head, error) {
	size, root, err := l.lastCheckpoint(ctx, tx)
	if err != nil {
		return Head{}, err
	}
	last, err := tx.LastSeq(ctx)
	if err == nil && last != size {
		err = fault.New(fault.Tampered, CodeBroken, "the ledger ends with entry %d, and its last checkpoint signs %d: entry %d is missing or was never signed", last, size, min(last, size)+1).
			Hint("proveto ledger verify")
	}
	return headOf(size, root), err
}

func headOf(size int64, root tlog.Hash) Head {
	return Head{Seq: size, Root: evidence.Digest("sha256:" + hex.EncodeToString(root[:]))}
}
