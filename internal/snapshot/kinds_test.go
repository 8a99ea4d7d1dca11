package snapshot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/fault"
)

func TestSealKnowsEveryKindOfRepository(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a": "1", "d/e": "2"}
	tests := map[string]struct {
		make  func(b *bundle) string // returns where to start from
		rev   string
		want  map[string]string
		dirty bool
		note  string // part of a note
		check func(t *testing.T, s Snapshot)
	}{
		"plain directory": {
			make: func(b *bundle) string {
				dir := filepath.Join(b.home, "plain dir\nü")
				write(b.t, dir, map[string]string{"a": "1", ".gitignore": "x", "x": "", "l": "-> a"})
				return dir
			},
			want: map[string]string{"a": "1", ".gitignore": "x", "l": "-> a"}, note: "not a git repository",
			check: func(t *testing.T, s Snapshot) {
				if s.Repo.Git() || s.Commit != "" || s.Changed != nil {
					t.Errorf("snapshot of a plain directory = %+v", s)
				}
			},
		},
		"unborn": {
			make: func(b *bundle) string {
				dir := filepath.Join(b.home, "r")
				b.run(b.home, "init", "-q", "-b", "new", dir)
				write(b.t, dir, map[string]string{"a": "1", ".gitignore": "*.o", "x.o": "", "y.o": "forced"})
				b.run(dir, "add", "-f", "y.o")
				return dir
			},
			want: map[string]string{"a": "1", ".gitignore": "*.o", "y.o": "forced"}, dirty: true,
			check: func(t *testing.T, s Snapshot) {
				if s.Commit != "" || s.Branch != "new" || len(s.Changed) != 3 {
					t.Errorf("commit %q branch %q, %d changes, want none, new, 3", s.Commit, s.Branch, len(s.Changed))
				}
			},
		},
		"sha256": {
			make: func(b *bundle) string {
				dir := b.repo("r", files, "--object-format=sha256")
				write(b.t, dir, map[string]string{"new": "n"})
				must(b.t, os.Remove(filepath.Join(dir, "a")))
				return dir
			},
			want: map[string]string{"d/e": "2", "new": "n"}, dirty: true,
			check: func(t *testing.T, s Snapshot) {
				if len(s.Tree) != 64 {
					t.Errorf("tree %s, want 64 digits", s.Tree)
				}
			},
		},
		"from a directory inside": {
			make: func(b *bundle) string { return filepath.Join(b.repo("r", files), "d") },
			want: files,
		},
		"detached": {
			make: func(b *bundle) string {
				dir := b.repo("r", files)
				b.run(dir, "checkout", "-q", "--detach")
				return dir
			},
			want: files,
			check: func(t *testing.T, s Snapshot) {
				if s.Branch != "" || s.Commit == "" {
					t.Errorf("branch %q commit %q, want none and one", s.Branch, s.Commit)
				}
			},
		},
		"bare": {
			make: func(b *bundle) string {
				b.run(b.home, "clone", "-q", "--bare", b.repo("r", files), "r.git")
				return filepath.Join(b.home, "r.git")
			},
			want: files,
			check: func(t *testing.T, s Snapshot) {
				if !s.Repo.Bare || s.Branch != "main" || s.Repo.Name != "r" {
					t.Errorf("%+v, want bare r on main", s)
				}
			},
		},
		"revision": {
			make: func(b *bundle) string {
				dir := b.repo("r", files)
				write(b.t, dir, map[string]string{"a": "later"})
				b.run(dir, "commit", "-qam", "second")
				return dir
			},
			rev: "HEAD~1", want: files,
		},
		"linked worktree": {
			make: func(b *bundle) string {
				b.run(b.repo("r", files), "worktree", "add", "-q", "-b", "side", "../w:t")
				write(b.t, filepath.Join(b.home, "w:t"), map[string]string{"new": "n"})
				return filepath.Join(b.home, "w:t")
			},
			want: map[string]string{"a": "1", "d/e": "2", "new": "n"}, dirty: true,
			check: func(t *testing.T, s Snapshot) {
				if !s.Repo.Linked || s.Branch != "side" || s.Repo.Name != "r" {
					t.Errorf("%+v, want linked worktree of r on side", s)
				}
			},
		},
		"objects path with a colon and a newline": {
			make: func(b *bundle) string { return b.repo("a:b\n\"c\" ü", files) },
			want: files,
		},
		"shallow": {
			make: func(b *bundle) string {
				dir := b.repo("r", files)
				b.run(dir, "commit", "-q", "--allow-empty", "-m", "second")
				b.run(b.home, "clone", "-q", "--depth=1", "file://"+dir, "s")
				return filepath.Join(b.home, "s")
			},
			want: files,
			check: func(t *testing.T, s Snapshot) {
				if !s.Repo.Shallow {
					t.Error("not seen as shallow")
				}
			},
		},
		"sparse": {
			make: func(b *bundle) string {
				dir := b.repo("r", map[string]string{"a": "1", "in/x": "x", "in/gone": "g", "out/y": "y"})
				b.run(dir, "sparse-checkout", "set", "in")
				must(b.t, os.Remove(filepath.Join(dir, "in/gone")))
				return dir
			},
			want: map[string]string{"a": "1", "in/x": "x", "out/y": "y"}, dirty: true, note: "1 files outside the sparse checkout",
		},
		"hidden by flags": {
			make: func(b *bundle) string {
				dir := b.repo("r", map[string]string{"a": "1", "d/e": "2"})
				b.run(dir, "update-index", "--assume-unchanged", "a")
				b.run(dir, "update-index", "--skip-worktree", "d/e")
				write(b.t, dir, map[string]string{"a": "changed"})
				must(b.t, os.Remove(filepath.Join(dir, "d/e")))
				return dir
			},
			want: map[string]string{"a": "changed"}, dirty: true,
		},
		"private excludes do not count": {
			make: func(b *bundle) string {
				dir := b.repo("r", files)
				write(b.t, dir, map[string]string{".git/info/exclude": "*", "new": "n"})
				b.run(dir, "config", "core.excludesFile", filepath.Join(dir, ".git/info/exclude"))
				return dir
			},
			want: map[string]string{"a": "1", "d/e": "2", "new": "n"}, dirty: true,
		},
		"submodules": {
			make: func(b *bundle) string {
				inner := b.repo("inner", map[string]string{"i": "deep"})
				sub := b.repo("sub", map[string]string{"s": "1", ".gitignore": "*.o", "t.o": "tracked"})
				b.run(sub, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "inner")
				b.run(sub, "commit", "-qm", "inner")
				dir := b.repo("r", files)
				b.run(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "lib/sub")
				b.run(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
				b.run(dir, "commit", "-qm", "sub")
				b.run(dir, "rm", "-q", "--cached", ".gitmodules")
				b.run(dir, "commit", "-qm", "without .gitmodules")
				must(b.t, os.Remove(filepath.Join(dir, ".gitmodules")))
				write(b.t, dir, map[string]string{"lib/sub/s": "changed", "lib/sub/inner/n": "new", "lib/sub/x.o": ""})
				must(b.t, os.Remove(filepath.Join(dir, "lib/sub/.gitmodules")))
				return dir
			},
			want: map[string]string{
				"a": "1", "d/e": "2", "lib/sub/s": "changed", "lib/sub/.gitignore": "*.o", "lib/sub/t.o": "tracked",
				"lib/sub/inner/i": "deep", "lib/sub/inner/n": "new",
			},
			dirty: true,
			check: func(t *testing.T, s Snapshot) {
				got := map[string]Status{}
				for _, c := range s.Changed {
					got[c.Path] = c.Status
				}
				want := map[string]Status{"lib/sub/s": Modified, "lib/sub/inner/n": Added, "lib/sub/.gitmodules": Deleted}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("changes (-want +got):\n%s", diff)
				}
			},
		},
		"submodule that is not initialised": {
			make: func(b *bundle) string {
				sub := b.repo("sub", map[string]string{"s": "1"})
				dir := b.repo("r", map[string]string{"a": "1"})
				b.run(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "sub")
				b.run(dir, "commit", "-qm", "sub")
				b.run(b.home, "clone", "-q", dir, "c")
				must(b.t, os.Remove(filepath.Join(b.home, "c/.gitmodules")))
				return filepath.Join(b.home, "c")
			},
			want: map[string]string{"a": "1", "sub": "commit"}, dirty: true, note: `submodule "sub" is not initialised`,
		},
		"nested repositories": {
			make: func(b *bundle) string {
				dir := b.repo("r", files)
				b.repo("r/nested", map[string]string{"n": "1"})
				write(b.t, dir, map[string]string{"nested/more": "m", "unborn/u": "u", "broken/.git": "gitdir: /nowhere", "broken/b": "b"})
				b.run(dir, "init", "-q", "unborn")
				b.repo("r/d256", map[string]string{"f": "sha256"}, "--object-format=sha256")
				return dir
			},
			want: map[string]string{
				"a": "1", "d/e": "2", "nested/n": "1", "nested/more": "m", "unborn/u": "u", "broken/b": "b", "d256/f": "sha256",
			},
			dirty: true, note: `nested repository "nested"`,
		},
		"another owner": {
			make: func(b *bundle) string {
				dir := b.repo("r", files)
				if os.Geteuid() != 0 {
					return dir // only root can give files away
				}
				must(b.t, filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
					if err != nil {
						return err
					}
					return os.Lchown(p, 12345, 12345)
				}))
				return dir
			},
			want: files,
		},
		"bytes that attributes would change": {
			make: func(b *bundle) string {
				dir := filepath.Join(b.home, "r")
				b.run(b.home, "init", "-q", dir)
				write(b.t, dir, map[string]string{
					".gitattributes": "*.txt text eol=crlf\n*.id ident\n*.bin filter=lfs diff=lfs merge=lfs -text\n*.u16 text working-tree-encoding=UTF-16LE\n[attr]all text ident filter=lfs\n*.all all\n",
				})
				b.run(dir, "add", "-A")
				b.run(dir, "commit", "-qm", "attributes")
				write(b.t, dir, map[string]string{"lf.txt": "a\nb\n", "crlf.txt": "a\r\nb\r\n", "x.id": "$Id: mine $\n", "y.bin": "big", "z.u16": "a\x00\n\x00", "v.all": "$Id$\r\n"})
				return dir
			},
			want: map[string]string{
				".gitattributes": "*.txt text eol=crlf\n*.id ident\n*.bin filter=lfs diff=lfs merge=lfs -text\n*.u16 text working-tree-encoding=UTF-16LE\n[attr]all text ident filter=lfs\n*.all all\n",
				"lf.txt":         "a\nb\n", "crlf.txt": "a\r\nb\r\n", "x.id": "$Id: mine $\n", "y.bin": "big", "z.u16": "a\x00\n\x00", "v.all": "$Id$\r\n",
			},
			dirty: true,
		},
		"pipe and socket names": {
			make: func(b *bundle) string {
				dir := b.repo("r", files)
				must(b.t, os.Remove(filepath.Join(dir, "a")))
				must(b.t, mkfifo(filepath.Join(dir, "a")))
				must(b.t, mkfifo(filepath.Join(dir, "d/pipe")))
				return dir
			},
			want: map[string]string{"d/e": "2"}, dirty: true, note: `"a" is neither`,
		},
		"directory became a symlink": {
			make: func(b *bundle) string {
				dir := b.repo("r", files)
				must(b.t, os.Rename(filepath.Join(dir, "d"), filepath.Join(b.home, "outside")))
				must(b.t, os.Symlink("../outside", filepath.Join(dir, "d")))
				return dir
			},
			want: map[string]string{"a": "1", "d": "-> ../outside"}, dirty: true,
		},
		"core.worktree is not followed": {
			make: func(b *bundle) string {
				dir := b.repo("r", files)
				write(b.t, filepath.Join(b.home, "secret"), map[string]string{"key": "k"})
				b.run(dir, "config", "core.worktree", filepath.Join(b.home, "secret"))
				return dir
			},
			want: files,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			dir := tt.make(b)
			before := fingerprint(t, b.home)
			var last Snapshot
			for range 2 { // the second time with what is remembered of the first
				last = b.sealRev(dir, tt.rev)
				if diff := cmp.Diff(tt.want, b.content(last.Repo, last.Tree)); diff != "" {
					t.Fatalf("sealed tree (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(fingerprint(t, b.home), "\n")); diff != "" {
				t.Errorf("Seal touched the user's files:\n%s", diff)
			}
			if last.Dirty != tt.dirty {
				t.Errorf("Dirty = %v, want %v", last.Dirty, tt.dirty)
			}
			if !strings.Contains(strings.Join(last.Notes, "\n"), tt.note) {
				t.Errorf("notes %q, want one about %q", last.Notes, tt.note)
			}
			if tt.check != nil {
				tt.check(t, last)
			}
			c := b.checkout(last.Repo, last.Tree)
			for p, body := range onDisk(t, c.Dir()) {
				if want := tt.want[p]; want != body && want != "commit" {
					t.Errorf("checked out %q = %q, want %q", p, body, want)
				}
			}
			b.release(c)
			if found, err := b.store.Lookup(last.Repo.ID); err != nil || found.Root != last.Repo.Root {
				t.Errorf("Lookup = %+v, %v, want the repository", found, err)
			}
		})
	}
}

func TestSealRefusesWhatHasNoCommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1"})
	b.run(b.home, "init", "-q", "--bare", "empty.git")
	write(t, b.home, map[string]string{"plain/a": "1"})
	for _, tt := range []struct {
		dir, rev string
		want     fault.Code
	}{
		{dir, "no-such", CodeBaseUnresolved},
		{dir, "--all", CodeBaseUnresolved},
		{dir, "HEAD^{tree}", CodeBaseUnresolved},
		{filepath.Join(b.home, "empty.git"), "", CodeBaseUnresolved},
		{filepath.Join(b.home, "plain"), "HEAD", CodeNoRepository},
	} {
		if _, err := b.store.Seal(t.Context(), b.locate(tt.dir), Options{Rev: tt.rev}); !fault.Has(err, tt.want) {
			t.Errorf("Seal(%s, %q) = %v, want %s", tt.dir, tt.rev, err, tt.want)
		}
	}
	if _, err := b.store.Locate(t.Context(), filepath.Join(b.home, "nowhere")); !fault.Has(err, CodeUnreadable) {
		t.Errorf("Locate of nothing = %v, want %s", err, CodeUnreadable)
	}
}
