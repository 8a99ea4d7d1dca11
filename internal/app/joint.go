package app

import (
	"context"
	"time"

	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/view"
)

// What the use cases of the other jobs share with those of this package.

// Keys are the keys of this machine.
func (a *App) Keys(ctx context.Context) (*identity.Keys, error) {
	if _, err := a.Ledger(ctx); err != nil {
		return nil, err
	}
	return a.keys, nil
}

// Now is the clock.
func (a *App) Now() time.Time { return a.now() }

// Where is the directory that a command works in, or a path seen from there.
func (a *App) Where(path string) string { return a.dir(path) }

// Warn keeps what did not stop the work.
func (a *App) Warn(code, message string) { a.warn(code, message) }

// Record runs fn in one write transaction of the ledger's database. The head is
// compared with the expected one first. fn may run more than once; it gives back
// the entries that it appended.
func (a *App) Record(ctx context.Context, fn func(*ledger.Ledger, *store.Tx) ([]ledger.Entry, error)) error {
	led, err := a.Ledger(ctx)
	if err != nil {
		return err
	}
	if err := a.checkHead(ctx, led); err != nil {
		return err
	}
	return a.db.Write(ctx, func(tx *store.Tx) error {
		entries, err := fn(led, tx)
		if err != nil {
			return err
		}
		return a.follows(entries)
	})
}

// Read runs fn in one read transaction: all that it sees is of one moment.
func (a *App) Read(ctx context.Context, fn func(*ledger.Ledger, *store.Tx) error) error {
	led, err := a.Ledger(ctx)
	if err != nil {
		return err
	}
	return a.db.Read(ctx, func(tx *store.Tx) error { return fn(led, tx) })
}

// HeadOf is the head as answers show it.
func HeadOf(h ledger.Head) *view.Head { return &view.Head{Seq: h.Seq, Root: string(h.Root)} }
