package ledger

import (
	"context"
	"errors"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

// Anchor is what is put outside the ledger so that a rewrite shows.
type Anchor struct {
	Ref        string // refs/proveto/anchor/<ledger id>
	Checkpoint []byte // a signed note; [Options.Anchor] takes it back
	Head       Head
}

// AnchorRef is the git ref under which a ledger's checkpoint is kept.
func AnchorRef(ledgerID string) string { return "refs/proveto/anchor/" + ledgerID }

// Anchor is the last checkpoint and the ref to write it to. writeFunc, when not
// nil, is called with both; writing git objects is for package snapshot.
func (l *Ledger) Anchor(ctx context.Context, writeFunc func(ref string, checkpoint []byte) error) (Anchor, error) {
	a := Anchor{Ref: AnchorRef(l.id)}
	err := l.db.Read(ctx, func(tx *store.Tx) (err error) {
		c, err := tx.LastCheckpoint(ctx)
		if errors.Is(err, store.ErrNoRow) {
			return fault.New(fault.Tampered, CodeCheckpointBad, "ledger %s has no checkpoint", l.id)
		}
		if err != nil {
			return err
		}
		a.Checkpoint = []byte(c.Note)
		a.Head, err = l.head(ctx, tx)
		return err
	})
	if err == nil && writeFunc != nil {
		err = writeFunc(a.Ref, a.Checkpoint)
	}
	return a, err
}
