package ledger

import (
	"context"
	"fmt"
	"math"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/store"
)

// Uncited lists the blobs that no entry cites. A blob is kept before the entry
// that cites it, so a blob of a running invocation may be among them: remove
// only what is older than any invocation.
func (l *Ledger) Uncited(ctx context.Context) ([]evidence.Digest, error) {
	kept := map[evidence.Digest]bool{}
	err := l.db.Read(ctx, func(tx *store.Tx) error {
		clear(kept)
		return eachEntry(ctx, tx, 1, math.MaxInt64, "", func(e Entry) error {
			blobs, err := cited(e)
			if err != nil {
				return err
			}
			for _, d := range blobs {
				kept[d] = true
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("find cited blobs: %w", err)
	}
	var out []evidence.Digest
	err = l.blobs.Walk(ctx, func(d evidence.Digest) error {
		if !kept[d] {
			out = append(out, d)
		}
		return nil
	})
	return out, err
}
