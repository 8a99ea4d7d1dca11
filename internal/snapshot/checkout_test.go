package snapshot

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// onDisk lists a checkout as content lists a tree, directories included when
// they are empty, with "x " before the bytes of executables.
func onDisk(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel := strings.TrimPrefix(p, dir+"/")
		st, err := os.Lstat(p)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			if list, err := os.ReadDir(p); err != nil || len(list) == 0 {
				out[rel] = "empty directory"
				return err
			}
		case st.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			out[rel] = "-> " + target
			return err
		case st.Mode().IsRegular():
			body, err := os.ReadFile(p)
			out[rel] = string(body)
			if st.Mode()&0o100 != 0 {
				out[rel] = "x " + out[rel]
			}
			return err
		default:
			out[rel] = st.Mode().Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (b *bundle) checkout(repo Repo, tree evidence.Tree) *Checkout {
	b.t.Helper()
	c, err := b.store.Checkout(b.t.Context(), repo, tree)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *bundle) release(c *Checkout) {
	b.t.Helper()
	if err := c.Release(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func TestCheckoutKeepsPathAndUnchangedFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1", "same": "s", "d/e": "2", "gone/x": "3"})
	first := b.seal(dir)
	c1 := b.checkout(first.Repo, first.Tree)
	st1, err := os.Stat(filepath.Join(c1.Dir(), "same"))
	if err != nil {
		t.Fatal(err)
	}
	b.release(c1)
	if err := os.RemoveAll(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"a": "one", "new": "n", "gone": "a file now"})
	if err := os.Chmod(filepath.Join(dir, "d/e"), 0o755); err != nil {
		t.Fatal(err)
	}
	second := b.seal(dir)
	c2 := b.checkout(second.Repo, second.Tree)
	if c2.Dir() != c1.Dir() {
		t.Errorf("second checkout at %s, want %s", c2.Dir(), c1.Dir())
	}
	want := map[string]string{"a": "one", "same": "s", "d/e": "x 2", "gone": "a file now", "new": "n"}
	if diff := cmp.Diff(want, onDisk(t, c2.Dir())); diff != "" {
		t.Errorf("second checkout (-want +got):\n%s", diff)
	}
	st2, err := os.Stat(filepath.Join(c2.Dir(), "same"))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(st1, st2) || !st1.ModTime().Equal(st2.ModTime()) {
		t.Error("an unchanged file was written again")
	}
	// Held: another one gets another directory; given back: the tree finds its slot.
	c3 := b.checkout(first.Repo, first.Tree)
	if c3.Dir() == c2.Dir() {
		t.Fatal("two checkouts share a slot")
	}
	b.release(c2)
	b.release(c3)
	c4 := b.checkout(first.Repo, first.Tree)
	if c4.Dir() != c3.Dir() {
		t.Errorf("the tree was checked out again at %s, want the slot %s that has it", c4.Dir(), c3.Dir())
	}
	b.release(c4)
}

func TestCheckoutRemovesWhatWasLeft(t *testing.T) {
	t.Parallel()
	damage := map[string]func(t *testing.T, dir string){
		"extra files":  func(t *testing.T, dir string) { write(t, dir, map[string]string{"x": "", "deep/er/y": "", "d/z": ""}) },
		"ignored file": func(t *testing.T, dir string) { write(t, dir, map[string]string{"build.log": "x"}) },
		"git directory": func(t *testing.T, dir string) {
			write(t, dir, map[string]string{".git/config": "x", "d/.git/HEAD": "x"})
		},
		"empty directory": func(t *testing.T, dir string) { must(t, os.MkdirAll(filepath.Join(dir, "d/empty"), 0o755)) },
		"pipe":            func(t *testing.T, dir string) { must(t, syscall.Mkfifo(filepath.Join(dir, "d/pipe"), 0o644)) },
		"pipe for a file": func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "a")))
			must(t, syscall.Mkfifo(filepath.Join(dir, "a"), 0o644))
		},
		"changed file": func(t *testing.T, dir string) { write(t, dir, map[string]string{"a": "2"}) },
		"same size and time": func(t *testing.T, dir string) {
			st, err := os.Stat(filepath.Join(dir, "a"))
			must(t, err)
			write(t, dir, map[string]string{"a": "2"})
			must(t, os.Chtimes(filepath.Join(dir, "a"), st.ModTime(), st.ModTime()))
		},
		"missing file": func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "d/e"))) },
		"mode":         func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, "a"), 0o755)) },
		"closed directory": func(t *testing.T, dir string) {
			write(t, dir, map[string]string{"m/n/o": ""})
			must(t, os.Chmod(filepath.Join(dir, "m/n"), 0))
			must(t, os.Chmod(filepath.Join(dir, "d"), 0))
		},
		"symlink for a directory": func(t *testing.T, dir string) {
			moved := filepath.Join(filepath.Dir(dir), "moved")
			must(t, os.Rename(filepath.Join(dir, "d"), moved))
			must(t, os.Symlink(moved, filepath.Join(dir, "d")))
		},
		"directory for a file": func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "a")))
			write(t, dir, map[string]string{"a/b": "x"})
		},
		"broken index": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "../index"), []byte("x"), 0o600))
		},
		"lock left behind": func(t *testing.T, dir string) { must(t, os.WriteFile(filepath.Join(dir, "../index.lock"), nil, 0o600)) },
		"no sources":       func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) },
	}
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			dir := b.repo("r", map[string]string{".gitignore": "*.log", "a": "1", "d/e": "2"})
			snap := b.seal(dir)
			want := map[string]string{".gitignore": "*.log", "a": "1", "d/e": "2"}
			c := b.checkout(snap.Repo, snap.Tree)
			outside := filepath.Join(c.slot, "moved")
			harm(t, c.Dir())
			b.release(c)
			if diff := cmp.Diff(want, onDisk(t, c.Dir())); diff != "" {
				t.Errorf("after Release (-want +got):\n%s", diff)
			}
			// The same damage while nobody holds the slot.
			must(t, os.RemoveAll(outside))
			harm(t, c.Dir())
			c = b.checkout(snap.Repo, snap.Tree)
			if diff := cmp.Diff(want, onDisk(t, c.Dir())); diff != "" {
				t.Errorf("after Checkout (-want +got):\n%s", diff)
			}
			if found, err := c.Verify(t.Context()); err != nil || len(found) > 0 {
				t.Errorf("Verify = %q, %v, want nothing", found, err)
			}
			if name == "symlink for a directory" {
				if _, err := os.Stat(filepath.Join(outside, "e")); err != nil {
					t.Errorf("a symlink was followed: %v", err)
				}
			}
			b.release(c)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestVerifyNamesEveryDifference(t *testing.T) {
	t.Parallel()
	b := setup(t)
	snap := b.seal(b.repo("r", map[string]string{"a": "1", "d/e": "2", "f": "3"}))
	c := b.checkout(snap.Repo, snap.Tree)
	write(t, c.Dir(), map[string]string{"a": "2", "d/new": "", ".git/HEAD": ""})
	must(t, os.Remove(filepath.Join(c.Dir(), "f")))
	got, err := c.Verify(t.Context())
	must(t, err)
	if diff := cmp.Diff([]string{".git", "a", "d/new", "f"}, got); diff != "" {
		t.Errorf("Verify (-want +got):\n%s", diff)
	}
	b.release(c)
}

func TestCheckoutRefusesNamesThatLie(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		paths []string
		want  fault.Code
	}{
		"case":                {[]string{"Read.me", "read.me"}, CodePathCollision},
		"case of a directory": {[]string{"Dir/a", "dir/b"}, CodePathCollision},
		"file and directory":  {[]string{"X", "x/y"}, CodePathCollision},
		"unicode form":        {[]string{"\u00e9", "e\u0301"}, CodePathCollision},
		"git, other case":     {[]string{".GIT/config"}, CodeBadPath},
		"git, short name":     {[]string{"d/git~1"}, CodeBadPath},
		"git, trailing dot":   {[]string{".git. /x"}, CodeBadPath},
		"git, stream":         {[]string{".git::$INDEX_ALLOCATION/config"}, CodeBadPath},
		"git, invisible":      {[]string{".g\u200cit/config"}, CodeBadPath},
		"parent":              {[]string{"../x"}, CodeBadPath},
		"long":                {[]string{strings.Repeat("n", 256)}, CodeBadPath},
		"deep":                {[]string{strings.Repeat("nnnnnnnnn/", 400) + "f"}, CodeBadPath},
		"honest":              {[]string{".gitignore", ".github/x", "git", "a.git", "Ünï/ß", "\xff", "a\nb", "digit~1"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var files []File
			for _, p := range tt.paths {
				files = append(files, File{Path: p, Mode: Regular})
			}
			err := checkNames(files)
			if tt.want == "" && err != nil || tt.want != "" && !fault.Has(err, tt.want) {
				t.Errorf("checkNames(%.60q) = %v, want code %q", tt.paths, err, tt.want)
			}
		})
	}
	b := setup(t)
	dir := b.repo("r", map[string]string{"A": "1", "a": "2"})
	snap := b.seal(dir)
	if _, err := b.store.Checkout(t.Context(), snap.Repo, snap.Tree); !fault.Has(err, CodePathCollision) {
		t.Errorf("Checkout = %v, want %s", err, CodePathCollision)
	}
}
