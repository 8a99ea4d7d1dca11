package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/proveto/proveto/internal/store/storetest"
)

// TestStartOnPostgreSQL: the whole lane with the ledger and the queue in a
// database of a team; nothing is kept in a file of ours.
func TestStartOnPostgreSQL(t *testing.T) {
	t.Parallel()
	url := storetest.PostgreSQL(t).DatabaseURL
	w := newWorld(t, shop())
	a := w.must(0, "start", "--database-url", url)
	if c := a.Envelope.Data.Counts; c["proven"] != 3 || c["refuted"] != 1 {
		t.Errorf("counts %v, want 3 proven and 1 refuted", c)
	}
	if a := w.must(0, "start", "--database-url", url); !a.Envelope.Data.Reused {
		t.Error("an unchanged start was not answered from the database")
	}
	w.edit("price.go", "return 2 * n", "return n + n")
	a = w.must(0, "start", "--database-url", url)
	if got := a.fresh(); len(got) != 2 {
		t.Errorf("measured %v after an edit of Double, want it and its caller", got)
	}
	if a := w.must(0, "ledger", "verify", "--database-url", url); !a.Envelope.Data.Sound {
		t.Errorf("ledger verify: %q", a.Envelope.Data.Problems)
	}
	if _, err := os.Lstat(filepath.Join(w.state, "proveto.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a database file was made beside PostgreSQL: %v", err)
	}
}
