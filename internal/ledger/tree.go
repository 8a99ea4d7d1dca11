package ledger

import (
	"context"
	"encoding/base64"
	"errors"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

// tree is the right edge of the Merkle tree during one append: what it needs of
// the stored hashes is read once.
type tree struct {
	size  int64
	known map[int64]tlog.Hash
}

// openTree reads the right edge and checks it against the last checkpoint, so
// that nothing is ever appended to a tree that was not signed.
func (l *Ledger) openTree(ctx context.Context, tx *store.Tx) (*tree, error) {
	size, want, err := l.lastCheckpoint(ctx, tx)
	if err != nil {
		return nil, err
	}
	last, err := tx.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	t := &tree{size: size, known: map[int64]tlog.Hash{}}
	if size == 0 && last == 0 {
		return t, nil
	}
	got, err := t.root(ctx, tx)
	if err != nil {
		return nil, err
	}
	if got != want || last != size {
		return nil, fault.New(fault.Tampered, CodeBroken, "the ledger ends with entry %d and root %s, the last checkpoint with %d and %s", last, got, size, want).
			Hint("proveto ledger verify")
	}
	return t, nil
}

// reader reads stored hashes through what is known.
func (t *tree) reader(ctx context.Context, tx *store.Tx) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			h, ok := t.known[x]
			if !ok {
				var err error
				if h, err = storedHash(ctx, tx, x); err != nil {
					return nil, err
				}
				t.known[x] = h
			}
			out[i] = h
		}
		return out, nil
	})
}

func storedHash(ctx context.Context, tx *store.Tx, index int64) (tlog.Hash, error) {
	s, err := tx.Hash(ctx, index)
	if errors.Is(err, store.ErrNoRow) {
		return tlog.Hash{}, fault.New(fault.Tampered, CodeBroken, "stored hash %d of the ledger is not there", index).Hint("proveto ledger verify")
	}
	if err != nil {
		return tlog.Hash{}, err
	}
	return parseHash(s, index)
}

func parseHash(s string, index int64) (h tlog.Hash, err error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != tlog.HashSize {
		return h, fault.New(fault.Tampered, CodeBroken, "stored hash %d of the ledger does not parse", index).Hint("proveto ledger verify")
	}
	return tlog.Hash(raw), nil
}

// add stores the hashes that a new leaf completes.
func (t *tree) add(ctx context.Context, tx *store.Tx, leaf tlog.Hash) error {
	hashes, err := tlog.StoredHashesForRecordHash(t.size, leaf, t.reader(ctx, tx))
	if err != nil {
		return err
	}
	first := tlog.StoredHashIndex(0, t.size)
	for i, h := range hashes {
		t.known[first+int64(i)] = h
		if err := tx.InsertHash(ctx, store.HashRow{Index: first + int64(i), Hash: h.String()}); err != nil {
			return err
		}
	}
	t.size++
	return nil
}

func (t *tree) root(ctx context.Context, tx *store.Tx) (tlog.Hash, error) {
	return tlog.TreeHash(t.size, t.reader(ctx, tx))
}
