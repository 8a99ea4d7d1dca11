package snapshot

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/proveto/proveto/internal/fault"
)

func TestComposeMakesATreeAndTouchesNothing(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		dir, own := t.TempDir(), t.TempDir()
		git := func(args ...string) string {
			cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=T", "-c", "user.email=t@example.com"}, args...)...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
			return string(out)
		}
		git("init", "-q", "--object-format="+format)
		for name, body := range map[string]string{"a.txt": "a\n", "d/b.txt": "b\n", ".gitattributes": "* text eol=crlf\n"} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git("add", "-A")
		git("commit", "-q", "-m", "one")
		s, err := Open(t.Context(), Config{State: filepath.Join(own, "state"), Cache: filepath.Join(own, "cache")})
		if err != nil {
			t.Fatal(err)
		}
		repo, err := s.Locate(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := s.Seal(t.Context(), repo, Options{Rev: "HEAD"})
		if err != nil {
			t.Fatal(err)
		}
		before := git("count-objects", "-v") + git("status", "--porcelain")
		files, err := s.Files(t.Context(), repo, snap.Tree)
		if err != nil {
			t.Fatal(err)
		}
		var blob string
		for _, f := range files {
			if f.Path == "a.txt" {
				blob = f.Blob
			}
		}
		made, err := s.Compose(t.Context(), repo, snap.Tree, []Edit{
			{Path: "d/b.txt"}, {Path: "d/b.txt/c", Mode: Executable, Blob: blob}, {Path: "new.txt", Mode: Regular, Content: []byte("new\n")},
		})
		if err != nil {
			t.Fatal(err)
		}
		changes, err := s.Diff(t.Context(), repo, snap.Tree, made)
		if err != nil || len(changes) != 3 {
			t.Errorf("%s: composed %+v, %v, want three changes", format, changes, err)
		}
		c, err := s.Checkout(t.Context(), repo, made)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(c.Dir(), "new.txt")); err != nil || string(b) != "new\n" {
			t.Errorf("%s: new.txt = %q, %v", format, b, err)
		}
		if b, err := os.ReadFile(filepath.Join(c.Dir(), "d", "b.txt", "c")); err != nil || string(b) != "a\n" {
			t.Errorf("%s: d/b.txt/c = %q, %v", format, b, err)
		}
		if err := c.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if same, err := s.Compose(t.Context(), repo, snap.Tree, nil); err != nil || same != snap.Tree {
			t.Errorf("%s: without edits %s, %v, want the tree itself", format, same, err)
		}
		if after := git("count-objects", "-v") + git("status", "--porcelain"); after != before {
			t.Errorf("%s: the user's repository changed:\n%s\n%s", format, before, after)
		}
		if _, err := s.Compose(t.Context(), repo, "1111", nil); fault.From(err) == nil || fault.From(err).Kind != fault.Usage {
			t.Errorf("Compose of no tree = %v", err)
		}
	}
}
