package snapshot

import (
	"path/filepath"
	"testing"

	"github.com/proveto/proveto/internal/fault"
)

// Removal is alone: it is refused while somebody works, and who comes later waits.
func TestRemovalIsAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := openStore(t, dir), openStore(t, dir)
	first, err := a.Use(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.Use(t.Context())
	if err != nil {
		t.Fatalf("two cannot work at the same time: %v", err)
	}
	if _, err := a.Alone(); !fault.Has(err, CodeBusy) {
		t.Fatalf("Alone beside two = %v, want busy", err)
	}
	if err := first(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Alone(); !fault.Has(err, CodeBusy) {
		t.Fatalf("Alone beside one = %v, want busy", err)
	}
	// The cache alone can be shared with another state directory.
	other, err := Open(t.Context(), Config{State: filepath.Join(dir, "other"), Cache: filepath.Join(dir, "cache")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Alone(); !fault.Has(err, CodeBusy) {
		t.Fatalf("Alone in a shared cache = %v, want busy", err)
	}
	if err := second(); err != nil {
		t.Fatal(err)
	}
	alone, err := a.Alone()
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan error)
	go func() {
		release, err := b.Use(t.Context())
		if err == nil {
			err = release()
		}
		came <- err
	}()
	select {
	case err := <-came:
		t.Fatalf("Use beside a removal did not wait: %v", err)
	default:
	}
	if err := alone(); err != nil {
		t.Fatal(err)
	}
	if err := <-came; err != nil {
		t.Fatal(err)
	}
}
