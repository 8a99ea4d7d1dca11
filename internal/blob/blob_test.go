package blob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

func setup(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func wantFault(t *testing.T, err error, kind fault.Kind, code fault.Code) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Kind != kind || f.Code != code {
		t.Errorf("error = %v (%+v), want %s/%s", err, f, kind, code)
	}
}

func file(s *Store, d evidence.Digest) string { return filepath.Join(s.Dir(), path(d)) }

func TestPutThenGetIsTheSameBytes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, want := range [][]byte{{}, []byte("x"), make([]byte, 1<<20)} {
		d, err := s.Put(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		if d != evidence.DigestOf(want) {
			t.Errorf("Put = %s, want the digest of the bytes", d)
		}
		got, err := s.Get(d)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Get(%s) = %d bytes, %v, want %d", d.Short(), len(got), err, len(want))
		}
		fi, err := os.Stat(file(s, d))
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("file of %s: %v %v, want mode 0600", d.Short(), fi, err)
		}
	}
}

func TestParallelPutsOfTheSameBytes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			ds, err := s.PutAll(t.Context(), []byte("same"), fmt.Appendf(nil, "own %d", i), []byte("same"))
			if err != nil {
				t.Error(err)
				return
			}
			if len(ds) != 3 || ds[0] != ds[2] || ds[1] != evidence.DigestOf(fmt.Appendf(nil, "own %d", i)) {
				t.Errorf("PutAll = %v, want digests in the order of the blobs", ds)
			}
		})
	}
	wg.Wait()
	n := 0
	if err := s.Walk(t.Context(), func(evidence.Digest) error { n++; return nil }); err != nil || n != 17 {
		t.Errorf("Walk saw %d blobs, %v, want 17", n, err)
	}
	left, err := os.ReadDir(filepath.Join(s.Dir(), tempDir))
	if err != nil || len(left) != 0 {
		t.Errorf("left in %s: %v, %v, want nothing", tempDir, left, err)
	}
}

func TestDamagedBlobIsNeverReturned(t *testing.T) {
	t.Parallel()
	s := setup(t)
	d, err := s.Put(t.Context(), []byte("what the test printed"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file(s, d), []byte("what the test Printed"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = s.Get(d)
	wantFault(t, err, fault.Tampered, CodeBad)

	// Another size: putting the right bytes heals.
	if err := os.WriteFile(file(s, d), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = s.Get(d)
	wantFault(t, err, fault.Tampered, CodeBad)
	if _, err := s.Put(t.Context(), []byte("what the test printed")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(d); err != nil {
		t.Errorf("Get after a second Put: %v", err)
	}
}

func TestSymbolicLinkIsNoBlob(t *testing.T) {
	t.Parallel()
	s := setup(t)
	d, err := s.Put(t.Context(), []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Rename(file(s, d), outside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, file(s, d)); err != nil {
		t.Fatal(err)
	}
	_, err = s.Get(d)
	wantFault(t, err, fault.Tampered, CodeBad)
	if ok, err := s.Has(d); ok || err != nil {
		t.Errorf("Has(link) = %v, %v, want false", ok, err)
	}
}

func TestAbsentAndMalformed(t *testing.T) {
	t.Parallel()
	s := setup(t)
	absent := evidence.DigestOf([]byte("never put"))
	_, err := s.Get(absent)
	wantFault(t, err, fault.NotFound, CodeMissing)
	if ok, err := s.Has(absent); ok || err != nil {
		t.Errorf("Has(absent) = %v, %v, want false", ok, err)
	}
	for _, bad := range []evidence.Digest{"", "sha256:", "sha256:../../../../etc/passwd", "sha256:" + evidence.Digest(make([]byte, 64)), evidence.Digest(absent.Hex())} {
		_, err := s.Get(bad)
		wantFault(t, err, fault.Usage, "bad_id")
		_, err = s.Has(bad)
		wantFault(t, err, fault.Usage, "bad_id")
		wantFault(t, s.Remove(bad), fault.Usage, "bad_id")
	}
}

func TestPrefixAndRemove(t *testing.T) {
	t.Parallel()
	s := setup(t)
	d, err := s.Put(t.Context(), []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), []byte("b")); err != nil {
		t.Fatal(err)
	}
	got, err := s.WithPrefix(t.Context(), d.Hex()[:6])
	if err != nil || !slices.Equal(got, []evidence.Digest{d}) {
		t.Errorf("WithPrefix = %v, %v, want %v", got, err, d)
	}
	for _, bad := range []string{"", "a", "..", "AB", "a/b"} {
		_, err := s.WithPrefix(t.Context(), bad)
		wantFault(t, err, fault.Usage, "bad_id")
	}
	for range 2 {
		if err := s.Remove(d); err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.Get(d)
	wantFault(t, err, fault.NotFound, CodeMissing)
}

// TestOpenRemovesWhatAKilledWriterLeft: an unfinished file goes with the next
// Open, but never one of a process that writes at this moment.
func TestOpenRemovesWhatAKilledWriterLeft(t *testing.T) {
	t.Parallel()
	s := setup(t)
	if _, err := s.writeTemp([]byte("half")); err != nil {
		t.Fatal(err)
	}
	openAgain := func() int {
		o, err := Open(s.Dir())
		if err != nil {
			t.Fatal(err)
		}
		es, err := os.ReadDir(filepath.Join(s.Dir(), tempDir))
		if err := errors.Join(err, o.Close()); err != nil {
			t.Fatal(err)
		}
		return len(es)
	}
	if err := s.hold(); err != nil {
		t.Fatal(err)
	}
	if n := openAgain(); n != 1 {
		t.Errorf("%d files while their writer lives, want 1", n)
	}
	if err := s.Close(); err != nil { // as the kernel does for the killed
		t.Fatal(err)
	}
	if n := openAgain(); n != 0 {
		t.Errorf("%d files of a writer that is gone, want 0", n)
	}
}

// TestWriterHoldsTheTemporaryDirectory: Put takes the hold that keeps others
// from its files.
func TestWriterHoldsTheTemporaryDirectory(t *testing.T) {
	t.Parallel()
	s := setup(t)
	if _, err := s.Put(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(s.Dir(), tempDir))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("lock of tmp while a writer is open: %v, want would block", err)
	}
}

func TestOpenRefusesALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir, "blobs")); err == nil {
		t.Error("Open(link) succeeded, want refusal")
	}
}

func BenchmarkPut(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "blobs"))
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		if _, err := s.PutAll(b.Context(), fmt.Appendf(nil, "%d", i), fmt.Appendf(nil, "o%d", i), fmt.Appendf(nil, "e%d", i)); err != nil {
			b.Fatal(err)
		}
	}
}
