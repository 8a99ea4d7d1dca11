package snapshot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

func TestResolveNamesCommitTreeAndReference(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		b := setup(t)
		dir := b.repo("r", map[string]string{"a": "1"}, "--object-format="+format)
		b.run(dir, "tag", "-am", "x", "v1")
		bare := filepath.Join(b.home, "bare.git")
		b.run(b.home, "clone", "-q", "--bare", dir, bare)
		linked := filepath.Join(b.home, "linked")
		b.run(dir, "worktree", "add", "-q", "-b", "side", linked)
		commit, tree := b.run(dir, "rev-parse", "HEAD"), evidence.Tree(b.run(dir, "rev-parse", "HEAD^{tree}"))
		for _, c := range []struct{ dir, rev, ref string }{
			{dir, "HEAD", "refs/heads/main"},
			{dir, "main", "refs/heads/main"},
			{dir, "refs/heads/side", "refs/heads/side"},
			{dir, "v1", "refs/tags/v1"},
			{dir, commit, ""},
			{dir, commit[:8], ""},
			{dir, "main~0", ""},
			{bare, "HEAD", "refs/heads/main"},
			{linked, "HEAD", "refs/heads/side"},
		} {
			got, err := b.store.Resolve(t.Context(), b.locate(c.dir), c.rev)
			if diff := cmp.Diff(Place{Commit: commit, Tree: tree, Ref: c.ref}, got); err != nil || diff != "" {
				t.Errorf("Resolve(%s, %s) = %v (-want +got):\n%s", c.dir, c.rev, err, diff)
			}
		}
		b.run(dir, "checkout", "-q", "--detach")
		if got, err := b.store.Resolve(t.Context(), b.locate(dir), "HEAD"); err != nil || got.Ref != "" {
			t.Errorf("Resolve of a detached HEAD = %+v, %v, want no reference", got, err)
		}
		b.run(dir, "commit", "-q", "--allow-empty", "-m", "second")
		for _, rev := range []string{"", "nowhere", "-x", "--all", "a\nb", "HEAD:a", "main..HEAD", "main...HEAD", "^main", "HEAD^!", "HEAD^@", strings.Repeat("0", len(commit)), strings.Repeat("1", len(commit)), "HEAD\x00"} {
			if got, err := b.store.Resolve(t.Context(), b.locate(dir), rev); !fault.Has(err, CodeBaseUnresolved) {
				t.Errorf("Resolve(%q) = %+v, %v, want %s", rev, got, err, CodeBaseUnresolved)
			}
		}
	}
}

func TestResolveOfAnUnbornHead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := filepath.Join(b.home, "r")
	b.run(b.home, "init", "-q", dir)
	if _, err := b.store.Resolve(t.Context(), b.locate(dir), "HEAD"); !fault.Has(err, CodeBaseUnresolved) || fault.From(err).Kind.Exit() != 1 {
		t.Errorf("Resolve = %v, want %s", err, CodeBaseUnresolved)
	}
	plain := filepath.Join(b.home, "plain")
	must(t, os.Mkdir(plain, 0o755))
	if _, err := b.store.Resolve(t.Context(), b.locate(plain), "HEAD"); !fault.Has(err, CodeNoRepository) {
		t.Errorf("Resolve without git = %v, want %s", err, CodeNoRepository)
	}
}

// The environment is changed: not parallel.
func TestIdentityIsTheUsersAndNotTheEnvironments(t *testing.T) {
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1"})
	proof := filepath.Join(b.home, "proof")
	t.Setenv("HOME", b.home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(b.home, "xdg"))
	t.Setenv("GIT_AUTHOR_NAME", "forged")
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "user.name")
	t.Setenv("GIT_CONFIG_VALUE_0", "forged")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(b.home, "forged"))
	must(t, os.WriteFile(filepath.Join(b.home, "forged"), []byte("[user]\n\tname = forged\n"), 0o600))
	if got, err := b.store.Identity(t.Context(), b.locate(dir)); err != nil || got != (Identity{}) {
		t.Errorf("Identity of nobody = %+v, %v, want none", got, err)
	}
	must(t, os.MkdirAll(filepath.Join(b.home, "xdg", "git"), 0o755))
	must(t, os.WriteFile(filepath.Join(b.home, "xdg", "git", "config"), []byte("[user]\n\tname = Xenia\n\temail = x@example.org\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(b.home, ".gitconfig"), []byte("[user]\n\tname = Ada L\xc3\xb6v\n\tsigningKey = ~/.ssh/id.pub\n[includeIf \"gitdir:"+dir+"/\"]\n\tpath = more\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(b.home, "more"), []byte("[gpg]\n\tformat = ssh\n"), 0o600))
	b.hostile(dir, proof)
	want := Identity{Person: Person{Name: "Ada Löv", Email: "x@example.org"}, SigningKey: "~/.ssh/id.pub", KeyFormat: "ssh"}
	if got, err := b.store.Identity(t.Context(), b.locate(dir)); err != nil || got != want {
		t.Errorf("Identity = %+v, %v, want %+v", got, err, want)
	}
	b.run(dir, "config", "user.email", "here@example.org")
	want.Email = "here@example.org"
	if got, err := b.store.Identity(t.Context(), b.locate(dir)); err != nil || got != want {
		t.Errorf("Identity = %+v, %v, want %+v", got, err, want)
	}
	must(t, os.WriteFile(filepath.Join(b.home, ".gitconfig"), []byte("[user\n"), 0o600))
	if _, err := b.store.Identity(t.Context(), b.locate(dir)); !fault.Has(err, CodeUnreadable) {
		t.Errorf("Identity of a broken configuration = %v, want %s", err, CodeUnreadable)
	}
	if ran, err := os.ReadFile(proof); !os.IsNotExist(err) {
		t.Errorf("something was executed (%v): %s", err, ran)
	}
}

func TestFilesAtReadsTheCommitAndNothingElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	odd := "o\tdd\n\"ü*?"
	dir := b.repo("r", map[string]string{
		".proveto/flow.yaml": "version: 1\n", ".proveto/empty": "", ".proveto/link": "-> flow.yaml", ".proveto/dir/f": "f",
		odd: "odd", "bin": "a\x00b\n", ".gitattributes": "* -diff export-ignore ident eol=crlf\n", ":(top)x": "magic",
	})
	commit := b.run(dir, "rev-parse", "HEAD")
	write(t, dir, map[string]string{".proveto/flow.yaml": "edited", ".proveto/new": "n"})
	got, err := b.store.FilesAt(t.Context(), b.locate(dir), commit, 1<<20,
		".proveto/flow.yaml", ".proveto/new", ".proveto/empty", ".proveto/link", ".proveto/dir", odd, "bin", "", "a\x00", "*", ":(top)x", "/etc/passwd", "../r/bin", ".proveto/flow.yaml")
	want := map[string]FileAt{
		".proveto/flow.yaml": {Regular, []byte("version: 1\n")}, ".proveto/empty": {Regular, []byte{}}, ".proveto/link": {Symlink, []byte("flow.yaml")},
		odd: {Regular, []byte("odd")}, "bin": {Regular, []byte("a\x00b\n")}, ":(top)x": {Regular, []byte("magic")},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("FilesAt = %v (-want +got):\n%s", err, diff)
	}
	if got, err := b.store.FilesAt(t.Context(), b.locate(dir), commit, 1<<20, "none"); err != nil || got == nil || len(got) != 0 {
		t.Errorf("FilesAt of an absent file = %v, %v, want an empty map", got, err)
	}
	if _, err := b.store.FilesAt(t.Context(), b.locate(dir), commit, 3, "bin"); !fault.Has(err, CodeTooLarge) {
		t.Errorf("FilesAt over the limit = %v, want %s", err, CodeTooLarge)
	}
	if _, err := b.store.FilesAt(t.Context(), b.locate(dir), "HEAD", 5, "bin"); !fault.Has(err, "bad_id") {
		t.Errorf("FilesAt of a name = %v, want bad_id", err)
	}
	blob := b.run(dir, "rev-parse", "HEAD:bin")
	must(t, os.Remove(filepath.Join(dir, ".git", "objects", blob[:2], blob[2:])))
	for _, id := range []string{commit, missingCommit} {
		if _, err := b.store.FilesAt(t.Context(), b.locate(dir), id, 1<<20, "bin"); !fault.Has(err, CodeObjectMissing) {
			t.Errorf("FilesAt of missing objects at %s = %v, want %s", id, err, CodeObjectMissing)
		}
	}
}
