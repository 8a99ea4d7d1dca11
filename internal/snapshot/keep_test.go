package snapshot

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// vaultGit runs the user's git on our own store of a repository.
func (b *bundle) vaultGit(repo Repo, args ...string) string {
	b.t.Helper()
	return b.run(b.home, append([]string{"--git-dir=" + filepath.Join(filepath.Dir(b.home), "state", "snapshot", repo.ID, "store.git")}, args...)...)
}

func TestSealRunKeepsWorkingCopiesAndRevisions(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		b := setup(t)
		dir := b.repo("r", map[string]string{"a": "1", "d/e": "2"}, "--object-format="+format)
		base := b.run(dir, "rev-parse", "HEAD")
		write(t, dir, map[string]string{"a": "dirty", "staged": "s"})
		b.run(dir, "add", "staged")
		write(t, dir, map[string]string{"staged": "later", "new": "n"})
		before := fingerprint(t, dir)
		k := Keep{Run: "run_01J", N: 1, Parents: []string{base}, Message: "attempt 1\n\nProveto-Plan: x", Time: noon}
		snap, kept, err := b.store.SealRun(t.Context(), b.locate(dir), Options{}, k)
		must(t, err)
		want := Kept{Ref: "refs/proveto/run_01J/1", Commit: kept.Commit, Tree: snap.Tree, Parents: []string{base}, Message: k.Message + "\n"}
		if diff := cmp.Diff(want, kept); diff != "" {
			t.Errorf("SealRun (-want +got):\n%s", diff)
		}
		files := map[string]string{"a": "dirty", "d/e": "2", "staged": "later", "new": "n"}
		if diff := cmp.Diff(files, b.content(snap.Repo, kept.Tree)); diff != "" {
			t.Errorf("kept tree (-want +got):\n%s", diff)
		}
		raw := b.vaultGit(snap.Repo, "cat-file", "-p", kept.Ref)
		for _, line := range []string{"tree " + string(snap.Tree), "parent " + base, "author Proveto <proveto@localhost> " + strconv.FormatInt(noon.Unix(), 10) + " +0000", "Proveto-Plan: x"} {
			if !slices.Contains(strings.Split(raw, "\n"), line) {
				t.Errorf("the kept commit has no line %q:\n%s", line, raw)
			}
		}
		// A revision, on top of the first; a plain id, a branch and HEAD are the same.
		for i, rev := range []string{base, "main", "HEAD"} {
			snap, kept, err := b.store.SealRun(t.Context(), b.locate(dir), Options{Rev: rev}, Keep{Run: "run_01J", N: 2 + i, Parents: []string{kept.Commit}, Time: noon})
			must(t, err)
			if want := b.run(dir, "rev-parse", "HEAD^{tree}"); string(kept.Tree) != want || snap.Commit != base {
				t.Errorf("SealRun of %s = %s of %s, want %s of %s", rev, kept.Tree, snap.Commit, want, base)
			}
		}
		if diff := cmp.Diff(before, fingerprint(t, dir)); diff != "" {
			t.Errorf("the user's repository was touched:\n%s", diff)
		}
		if refs := b.run(dir, "for-each-ref", "refs/proveto"); refs != "" {
			t.Errorf("the user's repository has refs of ours: %s", refs)
		}
	}
}

func TestKeepAgainIsTheSameAndAnotherIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1"})
	base := b.run(dir, "rev-parse", "HEAD")
	write(t, dir, map[string]string{"a": "2"})
	snap := b.seal(dir)
	k := Keep{Run: "run_01J", N: 1, Parents: []string{base}, Message: "m", Time: noon}
	first, err := b.store.Keep(t.Context(), snap.Repo, snap.Tree, k)
	must(t, err)
	later := k
	later.Time = noon.Add(time.Hour)
	if again, err := b.store.Keep(t.Context(), snap.Repo, snap.Tree, later); err != nil || !cmp.Equal(first, again) {
		t.Errorf("Keep again = %+v, %v, want %+v", again, err, first)
	}
	if got, err := b.store.KeptAt(t.Context(), snap.Repo, "run_01J", 1); err != nil || !cmp.Equal(first, got) {
		t.Errorf("KeptAt = %+v, %v, want %+v", got, err, first)
	}
	other := k
	other.Message = "n"
	orphan := k
	orphan.Parents = nil
	for name, try := range map[string]func() error{
		"tree":    func() error { _, err := b.store.Keep(t.Context(), snap.Repo, snap.Base, k); return err },
		"message": func() error { _, err := b.store.Keep(t.Context(), snap.Repo, snap.Tree, other); return err },
		"parents": func() error { _, err := b.store.Keep(t.Context(), snap.Repo, snap.Tree, orphan); return err },
	} {
		if err := try(); !fault.Has(err, CodeConflict) || fault.From(err).Kind != fault.Conflict {
			t.Errorf("Keep of another %s = %v, want %s", name, err, CodeConflict)
		}
	}
	for _, id := range []Keep{{Run: "snap", N: 1}, {Run: "anchor", N: 1}, {Run: "../x", N: 1}, {Run: "", N: 1}, {Run: "run_01J"}, {Run: "run_01J", N: -1}} {
		if _, err := b.store.Keep(t.Context(), snap.Repo, snap.Tree, id); !fault.Has(err, "bad_id") {
			t.Errorf("Keep(%+v) = %v, want bad_id", id, err)
		}
	}
	if _, err := b.store.KeptAt(t.Context(), snap.Repo, "run_01J", 2); !fault.Has(err, CodeObjectMissing) || fault.From(err).Kind != fault.NotFound {
		t.Errorf("KeptAt of none = %v, want %s", err, CodeObjectMissing)
	}
}

func TestKeepByManyAtOnceMakesOneCommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1"})
	snap := b.seal(dir)
	var wg sync.WaitGroup
	got := make([]Kept, 8)
	errs := make([]error, len(got))
	for i := range got {
		wg.Go(func() {
			got[i], errs[i] = b.store.Keep(t.Context(), snap.Repo, snap.Tree, Keep{Run: "run_01J", N: 1, Time: noon.Add(time.Duration(i) * time.Hour)})
		})
	}
	wg.Wait()
	for i := range got {
		if errs[i] != nil || got[i].Commit != got[0].Commit || got[i].Commit == "" {
			t.Errorf("Keep %d = %s, %v, want %s", i, got[i].Commit, errs[i], got[0].Commit)
		}
	}
}

func TestGCKeepsWhatRunsName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1"})
	base := b.run(dir, "rev-parse", "HEAD")
	write(t, dir, map[string]string{"a": "2", "only/here": "x"})
	snap, kept, err := b.store.SealRun(t.Context(), b.locate(dir), Options{}, Keep{Run: "run_01J", N: 1, Parents: []string{base}, Time: noon})
	must(t, err)
	write(t, dir, map[string]string{"a": "3", "only/gone": "y"})
	dropped := b.seal(dir)
	none := func(Repo, evidence.Tree) bool { return false }
	done, err := b.store.GC(t.Context(), none, 0)
	must(t, err)
	if done.Trees != 3 {
		t.Errorf("GC forgot %d trees, want 3", done.Trees)
	}
	if diff := cmp.Diff(map[string]string{"a": "2", "only/here": "x"}, b.content(snap.Repo, kept.Tree)); diff != "" {
		t.Errorf("the kept tree after GC (-want +got):\n%s", diff)
	}
	if got, err := b.store.KeptAt(t.Context(), snap.Repo, "run_01J", 1); err != nil || !cmp.Equal(got, kept) {
		t.Errorf("KeptAt after GC = %+v, %v, want %+v", got, err, kept)
	}
	if _, err := b.store.Files(t.Context(), dropped.Repo, dropped.Tree); !fault.Has(err, CodeObjectMissing) {
		t.Errorf("Files of the dropped tree = %v, want %s", err, CodeObjectMissing)
	}
}

// What the parents of a kept commit are made of is the user's: GC neither walks
// through it nor stops when it is gone.
func TestGCNeedsNoHistoryOfTheUser(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1"})
	write(t, dir, map[string]string{"a": "2"})
	snap, kept, err := b.store.SealRun(t.Context(), b.locate(dir), Options{}, Keep{Run: "run_01J", N: 1, Parents: []string{b.run(dir, "rev-parse", "HEAD")}, Time: noon})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(b.home), "state", "snapshot", snap.Repo.ID, "store.git", "shallow.lock"), nil, 0o600))
	b.run(dir, "commit", "-q", "--amend", "-m", "rewritten", "--allow-empty")
	b.run(dir, "reflog", "expire", "--expire=now", "--all")
	b.run(dir, "gc", "-q", "--prune=now")
	if done, err := b.store.GC(t.Context(), func(Repo, evidence.Tree) bool { return false }, 0); err != nil || done.Trees != 2 {
		t.Errorf("GC = %+v, %v, want two trees forgotten", done, err)
	}
	if got := b.content(snap.Repo, kept.Tree); got["a"] != "2" {
		t.Errorf("the kept tree = %q", got)
	}
}

func TestGitlinksStayReferences(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.repo("sub", map[string]string{"s": "1"})
	dir := b.repo("r", map[string]string{"a": "1"})
	for _, p := range []string{"same", "moved", "gone", "file", "empty", "torn"} {
		b.run(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, p)
	}
	b.run(dir, "commit", "-qm", "subs")
	head := b.run(sub, "rev-parse", "HEAD")
	if snap, err := b.store.Seal(t.Context(), b.locate(dir), Options{Rev: "HEAD", Gitlinks: true}); err != nil || string(snap.Tree) != b.run(dir, "rev-parse", "HEAD^{tree}") {
		t.Errorf("Seal of HEAD = %s, %v, want its tree", snap.Tree, err)
	}
	if snap, err := b.store.Seal(t.Context(), b.locate(dir), Options{Gitlinks: true}); err != nil || snap.Dirty || snap.Tree != snap.Base {
		t.Errorf("Seal of the clean work tree = %+v, %v, want HEAD's tree", snap, err)
	}
	write(t, dir, map[string]string{"same/s": "edited", "a": "2", "nested/n": "n", "unborn/u": "u"})
	b.run(filepath.Join(dir, "moved"), "commit", "-q", "--allow-empty", "-m", "on")
	moved := b.run(filepath.Join(dir, "moved"), "rev-parse", "HEAD")
	for _, p := range []string{"gone", "file", "empty"} {
		must(t, os.RemoveAll(filepath.Join(dir, p)))
	}
	must(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	must(t, os.Remove(filepath.Join(dir, "torn", ".git")))
	write(t, dir, map[string]string{"file": "f"})
	for _, p := range []string{"nested", "unborn"} {
		b.run(filepath.Join(dir, p), "init", "-q", "-b", "main")
	}
	b.run(filepath.Join(dir, "nested"), "add", "n")
	b.run(filepath.Join(dir, "nested"), "commit", "-qm", "n")
	snap, err := b.store.Seal(t.Context(), b.locate(dir), Options{Gitlinks: true})
	must(t, err)
	files, err := b.store.Files(t.Context(), snap.Repo, snap.Tree)
	must(t, err)
	got := map[string]string{}
	for _, f := range files {
		if f.Mode == Submodule {
			got[f.Path] = f.Blob
		} else {
			got[f.Path] = string(f.Mode)
		}
	}
	want := map[string]string{
		".gitmodules": "100644", "a": "100644", "same": head, "moved": moved, "file": "100644", "empty": head, "torn": head,
		"nested": b.run(filepath.Join(dir, "nested"), "rev-parse", "HEAD"), "unborn/u": "100644",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sealed tree (-want +got):\n%s", diff)
	}
	if string(snap.Base) != b.run(dir, "rev-parse", "HEAD^{tree}") {
		t.Errorf("base = %s, want HEAD's tree", snap.Base)
	}
}
