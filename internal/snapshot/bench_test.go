package snapshot

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fiveThousand is a repository of 5,000 files in 250 directories.
func fiveThousand(b *testing.B) (*Store, string) {
	b.Helper()
	dir := b.TempDir()
	s, err := Open(b.Context(), Config{State: filepath.Join(dir, "state"), Cache: filepath.Join(dir, "cache")})
	if err != nil {
		b.Fatal(err)
	}
	root := filepath.Join(dir, "r")
	files := map[string]string{}
	for i := range 5000 {
		files[fmt.Sprintf("d%03d/f%04d.go", i%250, i)] = strings.Repeat(fmt.Sprintf("line %d\n", i), 100)
	}
	if err := makeRepo(root, files); err != nil {
		b.Fatal(err)
	}
	return s, root
}

// reportCPU adds what the git processes took, which a busy machine changes less
// than the clock.
func reportCPU(b *testing.B, before syscall.Rusage) {
	b.Helper()
	after := childUsage(b)
	spent := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(spent)/1e6/float64(b.N), "git-cpu-ms/op")
}

func childUsage(b *testing.B) syscall.Rusage {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		b.Fatal(err)
	}
	return u
}

func BenchmarkSeal(b *testing.B) {
	s, root := fiveThousand(b)
	for _, name := range []string{"unchanged", "one_file_changed"} {
		b.Run(name, func(b *testing.B) {
			if _, err := s.Seal(b.Context(), mustLocate(b, s, root), Options{}); err != nil {
				b.Fatal(err) // the first one hashes everything
			}
			before := childUsage(b)
			for i := 0; b.Loop(); i++ {
				if name != "unchanged" {
					if err := writeFile(filepath.Join(root, "d001/f0001.go"), fmt.Appendf(nil, "change %d", i)); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := s.Seal(b.Context(), mustLocate(b, s, root), Options{}); err != nil {
					b.Fatal(err)
				}
			}
			reportCPU(b, before)
		})
	}
}

func BenchmarkCheckoutOfNearTree(b *testing.B) {
	s, root := fiveThousand(b)
	repo := mustLocate(b, s, root)
	var snaps []Snapshot
	for i := range 2 {
		if err := writeFile(filepath.Join(root, "d001/f0001.go"), fmt.Appendf(nil, "change %d", i)); err != nil {
			b.Fatal(err)
		}
		snap, err := s.Seal(b.Context(), repo, Options{})
		if err != nil {
			b.Fatal(err)
		}
		snaps = append(snaps, snap)
	}
	before := childUsage(b)
	for i := 0; b.Loop(); i++ {
		c, err := s.Checkout(b.Context(), repo, snaps[i%2].Tree)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	reportCPU(b, before)
}

func mustLocate(b *testing.B, s *Store, root string) Repo {
	b.Helper()
	repo, err := s.Locate(b.Context(), root)
	if err != nil {
		b.Fatal(err)
	}
	return repo
}
