package wholefile

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

func TestWriteTakesOverWhatAKilledWriterLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	left, err := take(filepath.Join(dir, ".report.html"+suffix), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := left.WriteString("longer than what comes after"); err != nil {
		t.Fatal(err)
	}
	left.Close() // as the kernel does for the killed
	if err := Write(path, []byte("whole"), 0o640, true); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "whole" {
		t.Errorf("read %q, %v, want whole", got, err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v, want 0640", fi.Mode(), err)
	}
	if n := names(t, dir); len(n) != 1 {
		t.Errorf("directory holds %q, want the target alone", n)
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(path, "by a directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x"), 0o644, false); err == nil {
		t.Error("Write over a directory succeeded")
	}
	if n := names(t, dir); len(n) != 1 {
		t.Errorf("directory holds %q, want the target alone", n)
	}
}

// TestWritersDoNotMix: every moment has the bytes of one writer.
func TestWritersDoNotMix(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	bodies := [][]byte{bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<17), bytes.Repeat([]byte("c"), 100)}
	var wg sync.WaitGroup
	for _, b := range bodies {
		wg.Go(func() {
			for range 50 {
				if err := Write(path, b, 0o644, false); err != nil {
					t.Error(err)
				}
				got, err := os.ReadFile(path)
				if err != nil || (!bytes.Equal(got, bodies[0]) && !bytes.Equal(got, bodies[1]) && !bytes.Equal(got, bodies[2])) {
					t.Errorf("read %d bytes that nobody wrote, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}
