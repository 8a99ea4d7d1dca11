package snapshot

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/fault"
)

func TestHistoryIsReadFromTheUsersRepository(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1", "new\nline": "1"})
	first := b.run(dir, "rev-parse", "HEAD")
	write(t, dir, map[string]string{"a": "2"})
	b.run(dir, "commit", "-qam", "second")
	b.run(dir, "checkout", "-q", "-b", "side", first)
	write(t, dir, map[string]string{"b": "1"})
	b.run(dir, "add", "-A")
	b.run(dir, "commit", "-qm", "side")
	b.run(dir, "checkout", "-q", "--orphan", "island")
	b.run(dir, "commit", "-qm", "island")
	b.run(dir, "checkout", "-q", "main")
	repo := b.locate(dir)
	if got, err := b.store.MergeBase(t.Context(), repo, "main", "side"); err != nil || got != first {
		t.Errorf("MergeBase = %s, %v, want %s", got, err, first)
	}
	if _, err := b.store.MergeBase(t.Context(), repo, "main", "island"); !fault.Has(err, CodeBaseUnresolved) {
		t.Errorf("MergeBase without common history = %v, want %s", err, CodeBaseUnresolved)
	}
	got, err := b.store.Churn(t.Context(), repo, 10)
	if diff := cmp.Diff(map[string]int{"a": 2, "new\nline": 1}, got); err != nil || diff != "" {
		t.Errorf("Churn (-want +got):\n%s%v", diff, err)
	}
	if got, err = b.store.Churn(t.Context(), repo, 1); err != nil || len(got) != 1 {
		t.Errorf("Churn of one commit = %v, %v, want a alone", got, err)
	}
	base, side := b.sealRev(dir, first), b.sealRev(dir, "side")
	changes, err := b.store.Diff(t.Context(), repo, base.Tree, side.Tree)
	if err != nil || len(changes) != 1 || changes[0].Path != "b" || changes[0].Status != Added {
		t.Errorf("Diff = %+v, %v, want b added", changes, err)
	}
	if _, err := b.store.File(t.Context(), repo, base.Tree, "b"); !fault.Has(err, CodeNoSuchFile) {
		t.Errorf("File of a path that is not in the tree = %v, want %s", err, CodeNoSuchFile)
	}
}

func TestOpenWantsARecentGit(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"git version 2.38.0": true, "git version 2.39.5 (Apple Git-1)": true, "git version 3.0.0-rc1": true,
		"git version 2.37.9": false, "git version 1.99": false, "": false, "hg 2.50": false,
	} {
		if got := recent(version); got != want {
			t.Errorf("recent(%q) = %v, want %v", version, got, want)
		}
	}
	dir := t.TempDir()
	for _, git := range []string{script(t, "echo git version 2.20.1"), filepath.Join(dir, "none")} {
		_, err := Open(t.Context(), Config{State: dir, Cache: dir, Git: git})
		if !fault.Has(err, CodeToolMissing) || len(fault.From(err).Hints) == 0 {
			t.Errorf("Open with %s = %v, want %s and a hint", git, err, CodeToolMissing)
		}
	}
}

func TestLockFileIsTakenOnce(t *testing.T) {
	t.Parallel()
	p := filepath.Join(t.TempDir(), "lock")
	f, err := tryLock(p, 2)
	must(t, err)
	if _, err := tryLock(p, 2); !errors.Is(err, errHeld) {
		t.Errorf("second tryLock = %v, want %v", err, errHeld)
	}
	must(t, f.Close())
	f, err = tryLock(p, 2)
	must(t, err)
	must(t, f.Close())
}
