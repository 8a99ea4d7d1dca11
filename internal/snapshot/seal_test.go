package snapshot

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSealTakesTheWorkingCopyAsItIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{
		".gitignore": "*.log\n", "kept.log": "tracked though ignored", "a": "1", "gone": "x", "d/e": "2", "link": "-> a", "turns": "file",
	})
	clean := b.seal(dir)
	if want := b.run(dir, "rev-parse", "HEAD^{tree}"); string(clean.Tree) != want || clean.Dirty || len(clean.Changed) != 0 || clean.Branch != "main" {
		t.Fatalf("clean seal = %+v, want tree %s, not dirty, on main", clean, want)
	}
	write(t, dir, map[string]string{"a": "changed", "new file\nwith \xff": "n", "skipped.log": "no", "forced.log": "yes", "staged": "s"})
	write(t, dir, map[string]string{"kept.log": "tracked, changed"})
	for _, p := range []string{"gone", "turns"} {
		if err := os.Remove(filepath.Join(dir, p)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, map[string]string{"turns/inside": "now a directory"})
	if err := os.Chmod(filepath.Join(dir, "d/e"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.run(dir, "add", "-f", "forced.log", "staged")
	before := fingerprint(t, dir)
	snap := b.seal(dir)
	if diff := cmp.Diff(before, fingerprint(t, dir)); diff != "" {
		t.Errorf("Seal touched the user's repository:\n%s", diff)
	}
	want := map[string]string{
		".gitignore": "*.log\n", "kept.log": "tracked, changed", "a": "changed", "d/e": "2", "link": "-> a",
		"new file\nwith \xff": "n", "forced.log": "yes", "staged": "s", "turns/inside": "now a directory",
	}
	if diff := cmp.Diff(want, b.content(snap.Repo, snap.Tree)); diff != "" {
		t.Errorf("sealed tree (-want +got):\n%s", diff)
	}
	got := map[string]Status{}
	for _, c := range snap.Changed {
		got[c.Path] = c.Status
	}
	wantStatus := map[string]Status{
		"a": Modified, "gone": Deleted, "turns": Deleted, "turns/inside": Added, "kept.log": Modified, "d/e": Modified,
		"new file\nwith \xff": Added, "forced.log": Added, "staged": Added,
	}
	if diff := cmp.Diff(wantStatus, got); diff != "" || !snap.Dirty {
		t.Errorf("dirty %v, changes (-want +got):\n%s", snap.Dirty, diff)
	}
	if again := b.seal(dir); again.Tree != snap.Tree {
		t.Errorf("second seal = %s, want %s", again.Tree, snap.Tree)
	}
	b.run(dir, "add", "-A", "-f", "kept.log", "forced.log")
	b.run(dir, "add", "-A")
	if want := b.run(dir, "write-tree"); string(snap.Tree) != want {
		t.Errorf("sealed %s, want %s as git's own add and write-tree", snap.Tree, want)
	}
}

func TestSealMakesABrokenIndexAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1", ".gitignore": "*.o", "tracked.o": "t"})
	write(t, b.home, map[string]string{"plain/a": "1"})
	for _, d := range []string{dir, filepath.Join(b.home, "plain")} {
		want := b.seal(d)
		for _, broken := range []string{"", "no index"} {
			found, err := filepath.Glob(filepath.Join(b.store.state, want.Repo.ID, "index-????????????????????????"))
			if err != nil || len(found) != 1 {
				t.Fatalf("index files %q, %v, want one", found, err)
			}
			must(t, os.Remove(found[0]))
			if broken != "" {
				must(t, os.WriteFile(found[0], []byte(broken), 0o600))
			}
			if got := b.seal(d); got.Tree != want.Tree {
				t.Errorf("seal with a broken index = %s, want %s", got.Tree, want.Tree)
			}
		}
	}
}
