package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

func TestAReadTransactionWritesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		err := db.Read(t.Context(), func(tx *store.Tx) error { return tx.SetMeta(t.Context(), "k", "v") })
		wantFault(t, err, fault.Internal, "internal")
		err = db.Read(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Meta(t.Context(), "k")
			return err
		})
		if !errors.Is(err, store.ErrNoRow) {
			t.Errorf("after it the key gives %v, want no row", err)
		}
	})
}

// One command does one thing after the other: it opens one connection, also when
// it reads, writes and reads again.
func TestReadsAndWritesInTurnShareAConnection(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	write(t, db, func(tx *store.Tx) error { return tx.SetMeta(t.Context(), "k", "v") })
	if err := db.Read(t.Context(), func(tx *store.Tx) error { _, err := tx.Meta(t.Context(), "k"); return err }); err != nil {
		t.Fatal(err)
	}
	if n := db.OpenConnections(); n != 1 {
		t.Errorf("%d connections are open, want 1", n)
	}
}

func TestAReaderDoesNotHoldUpTheWriter(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		err := db.Read(t.Context(), func(*store.Tx) error {
			return db.Write(t.Context(), func(tx *store.Tx) error { return tx.SetMeta(t.Context(), "k", "v") })
		})
		if err != nil {
			t.Errorf("a write while a read is open: %v", err)
		}
	})
}

// A statement of a transaction that was cancelled is not begun.
func TestCancelledStatementIsNotBegun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		write(t, db, func(tx *store.Tx) error {
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if err := tx.SetMeta(gone, "k", "v"); !errors.Is(err, context.Canceled) {
				t.Errorf("SetMeta = %v, want cancelled", err)
			}
			if _, err := tx.Meta(t.Context(), "k"); c.Path != "" && !errors.Is(err, store.ErrNoRow) {
				t.Errorf("the cancelled statement has written: %v", err)
			}
			return nil
		})
	})
}
