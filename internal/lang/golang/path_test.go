package golang

import (
	"os"
	"path/filepath"
	"testing"
)

// A directory of the sealed checkout, or of the working copy that it came from,
// holds no tools, by whatever name it is reached.
func TestTrustedPathLeavesOutTheTree(t *testing.T) {
	t.Parallel()
	root, origin, outside := t.TempDir(), t.TempDir(), t.TempDir()
	link := filepath.Join(outside, "link")
	if err := os.MkdirAll(filepath.Join(origin, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(origin, "bin"), link); err != nil {
		t.Fatal(err)
	}
	join := func(dirs ...string) (out string) {
		for i, d := range dirs {
			if i > 0 {
				out += string(filepath.ListSeparator)
			}
			out += d
		}
		return out
	}
	got := trustedPath(join(filepath.Join(root, "bin"), "relative", filepath.Join(origin, "bin"), origin, link, outside), root, origin)
	if got != outside {
		t.Errorf("trustedPath = %q, want %q", got, outside)
	}
}
