package store_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

// first stands first in the line of a database, as a process does that writes or
// was stopped.
func first(t *testing.T, c store.Config) *os.File {
	t.Helper()
	f, err := os.OpenFile(c.Path+"-line", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWritersWaitInLine(t *testing.T) {
	t.Parallel()
	c := storetest.SQLite(t)
	db := storetest.Open(t, c)
	f := first(t, c)
	done := make(chan error, 1)
	go func() {
		done <- db.Write(t.Context(), func(tx *store.Tx) error { return tx.SetMeta(t.Context(), "k", "v") })
	}()
	// Readers do not wait.
	for range 100 {
		err := db.Read(t.Context(), func(tx *store.Tx) error { _, err := tx.Meta(t.Context(), "k"); return err })
		if !errors.Is(err, store.ErrNoRow) {
			t.Fatalf("read while another is first in line: %v, want no row", err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCancelledInLine(t *testing.T) {
	t.Parallel()
	c := storetest.SQLite(t)
	db := storetest.Open(t, c)
	f := first(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := db.Write(ctx, func(tx *store.Tx) error { return tx.SetMeta(t.Context(), "k", "v") })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Write = %v, want cancelled", err)
	}
	// Who gave up does not keep the others out.
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, db, func(tx *store.Tx) error { return tx.SetMeta(t.Context(), "k", "v") })
}

func TestAStoppedProcessInLineKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	c := storetest.SQLite(t)
	db := storetest.Open(t, c)
	first(t, c)
	begun := time.Now()
	write(t, db, func(tx *store.Tx) error { return tx.SetMeta(t.Context(), "k", "v") })
	if time.Since(begun) < store.BusyTimeout/2 {
		t.Error("it did not wait in line")
	}
}
