package snapshot

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/proveto/proveto/internal/evidence"
)

// bundle is a store and the directory of a user.
type bundle struct {
	t     *testing.T
	store *Store
	home  string // where repositories are made
}

func setup(t *testing.T) *bundle {
	t.Helper()
	dir := t.TempDir()
	b := &bundle{t: t, home: filepath.Join(dir, "home")}
	if err := os.Mkdir(b.home, 0o755); err != nil {
		t.Fatal(err)
	}
	b.store = openStore(t, dir)
	return b
}

func openStore(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{State: filepath.Join(dir, "state"), Cache: filepath.Join(dir, "cache")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run is the user's own git, with the user's own configuration.
func (b *bundle) run(dir string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+b.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@x", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@x")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// repo makes a repository with one commit of the given files.
func (b *bundle) repo(name string, files map[string]string, initArgs ...string) string {
	b.t.Helper()
	dir := filepath.Join(b.home, name)
	b.run(b.home, append([]string{"init", "-q", "-b", "main"}, append(initArgs, dir)...)...)
	write(b.t, dir, files)
	b.run(dir, "add", "-A", "-f")
	b.run(dir, "commit", "-q", "--allow-empty", "-m", "first")
	return dir
}

// write makes files; a value "-> x" makes a symlink to x.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, body := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(body, "-> "); ok {
			err = os.Symlink(target, p)
		} else {
			err = os.WriteFile(p, []byte(body), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bundle) locate(dir string) Repo {
	b.t.Helper()
	r, err := b.store.Locate(b.t.Context(), dir)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bundle) seal(dir string) Snapshot {
	b.t.Helper()
	return b.sealRev(dir, "")
}

func (b *bundle) sealRev(dir, rev string) Snapshot {
	b.t.Helper()
	snap, err := b.store.Seal(b.t.Context(), b.locate(dir), Options{Rev: rev})
	if err != nil {
		b.t.Fatal(err)
	}
	return snap
}

// content lists a sealed tree: path to bytes, "-> target" for a symlink,
// "commit" for a submodule that was left out.
func (b *bundle) content(repo Repo, tree evidence.Tree) map[string]string {
	b.t.Helper()
	files, err := b.store.Files(b.t.Context(), repo, tree)
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		if f.Mode == Submodule {
			out[f.Path] = "commit"
			continue
		}
		body, err := b.store.File(b.t.Context(), repo, tree, f.Path)
		if err != nil {
			b.t.Fatal(err)
		}
		out[f.Path] = string(body)
		if f.Mode == Symlink {
			out[f.Path] = "-> " + string(body)
		}
	}
	return out
}

// fingerprint is every name below dir with mode, size, time stamps, inode and
// bytes: what must not change. Access times are left out.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := os.Lstat(p)
		if err != nil {
			return err
		}
		sys := st.Sys().(*syscall.Stat_t)
		body := ""
		if st.Mode().IsRegular() {
			raw, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			body = fmt.Sprintf("%x", sha256.Sum256(raw))
		} else if st.Mode()&fs.ModeSymlink != 0 {
			if body, err = os.Readlink(p); err != nil {
				return err
			}
		}
		lines = append(lines, fmt.Sprintf("%q %v %d %d %v %v %s", p, st.Mode(), st.Size(), sys.Ino, sys.Mtim, sys.Ctim, body))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func mkfifo(p string) error { return syscall.Mkfifo(p, 0o644) }

// makeRepo is repo for benchmarks.
func makeRepo(dir string, files map[string]string) error {
	for name, body := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, []byte(body), 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=u", "-c", "user.email=u@x", "commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}
