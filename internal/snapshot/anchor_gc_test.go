package snapshot

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

func TestAnchorMovesByCompareAndSwap(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		b := setup(t)
		dir := b.repo("r", map[string]string{"a": "1"}, "--object-format="+format)
		repo := b.locate(dir)
		if _, err := b.store.ReadAnchor(t.Context(), repo, "L1"); !fault.Has(err, CodeAnchorMissing) {
			t.Fatalf("ReadAnchor of none = %v, want %s", err, CodeAnchorMissing)
		}
		head, status := b.run(dir, "rev-parse", "HEAD"), b.run(dir, "status", "--porcelain")
		one, err := b.store.Anchor(t.Context(), repo, "L1", "", []byte("one\n"))
		must(t, err)
		if same, err := b.store.Anchor(t.Context(), repo, "L1", one, []byte("one\n")); err != nil || same != one {
			t.Errorf("Anchor of the same content = %s, %v, want %s", same, err, one)
		}
		two, err := b.store.Anchor(t.Context(), repo, "L1", one, []byte("two\n"))
		must(t, err)
		for _, old := range []string{"", one} {
			_, err := b.store.Anchor(t.Context(), repo, "L1", old, []byte("three\n"))
			if !fault.Has(err, CodeAnchorMoved) || fault.From(err).Kind != fault.Conflict {
				t.Errorf("Anchor on %q = %v, want %s", old, err, CodeAnchorMoved)
			}
		}
		got, err := b.store.ReadAnchor(t.Context(), repo, "L1")
		if diff := cmp.Diff(Anchor{Commit: two, Content: []byte("two\n")}, got); err != nil || diff != "" {
			t.Errorf("ReadAnchor (-want +got):\n%s%v", diff, err)
		}
		if got := b.run(dir, "rev-parse", "refs/proveto/anchor/L1^"); got != one {
			t.Errorf("parent of the anchor = %s, want %s", got, one)
		}
		if b.run(dir, "rev-parse", "HEAD") != head || b.run(dir, "status", "--porcelain") != status {
			t.Error("Anchor changed HEAD or status")
		}
		for _, id := range []string{"", "../heads/main", "a b", "x/y", "-d", strings.Repeat("a", 129)} {
			if _, err := b.store.Anchor(t.Context(), repo, id, "", nil); !fault.Has(err, "bad_id") {
				t.Errorf("Anchor(%q) = %v, want bad_id", id, err)
			}
		}
	}
}

func TestAnchorLosesTheRaceInsideUpdateRef(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1"})
	repo := b.locate(dir)
	// Somebody else writes between our read and our update-ref.
	b.store.git.path = script(t, `case " $* " in *" update-ref "*)
	`+realGit(t)+` --git-dir='`+dir+`/.git' update-ref refs/proveto/anchor/L1 HEAD;; esac
exec `+realGit(t)+` "$@"`)
	if _, err := b.store.Anchor(t.Context(), repo, "L1", "", []byte("x")); !fault.Has(err, CodeAnchorMoved) {
		t.Errorf("Anchor = %v, want %s", err, CodeAnchorMoved)
	}
	if got, want := b.run(dir, "rev-parse", "refs/proveto/anchor/L1"), b.run(dir, "rev-parse", "HEAD"); got != want {
		t.Errorf("the other's anchor was overwritten by %s", got)
	}
}

func TestGCForgetsTreesAndEvictsFreeCheckouts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1"})
	write(t, dir, map[string]string{"a": "kept", "d/kept": "k"})
	kept := b.seal(dir)
	write(t, dir, map[string]string{"a": "dropped", "d/dropped": "d"})
	dropped := b.seal(dir)
	keep := func(_ Repo, tree evidence.Tree) bool { return tree == kept.Tree }
	c := b.checkout(kept.Repo, kept.Tree)
	got, err := b.store.GC(t.Context(), keep, 0)
	must(t, err)
	if got.Checkouts != 0 || got.Trees != 0 || len(got.Busy) != 2 {
		t.Errorf("GC while a checkout is held = %+v, want nothing done and two busy", got)
	}
	b.release(c)
	free := b.checkout(dropped.Repo, dropped.Tree)
	b.release(free)
	got, err = b.store.GC(t.Context(), keep, 0)
	must(t, err)
	if got.Checkouts != 1 || got.Trees != 2 || got.Left != 0 || got.Bytes == 0 || len(got.Busy) != 0 { // dropped and HEAD's
		t.Errorf("GC = %+v, want one checkout and two trees gone", got)
	}
	if _, err := os.Stat(free.Dir()); !os.IsNotExist(err) {
		t.Errorf("the free slot is still there: %v", err)
	}
	if _, err := b.store.Files(t.Context(), dropped.Repo, dropped.Tree); !fault.Has(err, CodeObjectMissing) {
		t.Errorf("Files of a dropped tree = %v, want %s", err, CodeObjectMissing)
	}
	if diff := cmp.Diff(map[string]string{"a": "kept", "d/kept": "k"}, b.content(kept.Repo, kept.Tree)); diff != "" {
		t.Errorf("the kept tree (-want +got):\n%s", diff)
	}
	// The files of the dropped tree are still in the working copy: they are sealed anew.
	again := b.seal(dir)
	if again.Tree != dropped.Tree {
		t.Errorf("sealed again = %s, want %s", again.Tree, dropped.Tree)
	}
	b.content(again.Repo, again.Tree)
	b.release(b.checkout(again.Repo, again.Tree))
	if got, err := b.store.GC(t.Context(), func(Repo, evidence.Tree) bool { return true }, 1<<40); err != nil || got.Trees+got.Checkouts != 0 || got.Left == 0 {
		t.Errorf("GC within the quota = %+v, %v, want nothing done", got, err)
	}
}

func TestGCLeavesNoIndexThatKnowsLostObjects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := filepath.Join(b.home, "plain")
	write(t, dir, map[string]string{"a": "1", "d/e": "2"})
	b.seal(dir)
	if got, err := b.store.GC(t.Context(), func(Repo, evidence.Tree) bool { return false }, 0); err != nil || got.Trees != 1 {
		t.Fatalf("GC = %+v, %v, want one tree gone", got, err)
	}
	again := b.seal(dir)
	if diff := cmp.Diff(map[string]string{"a": "1", "d/e": "2"}, b.content(again.Repo, again.Tree)); diff != "" {
		t.Errorf("sealed again (-want +got):\n%s", diff)
	}
}

func realGit(t *testing.T) string {
	t.Helper()
	s, err := findGit(t.Context(), "", 0, "")
	must(t, err)
	return s.path
}

// TestGitIsAskedForItsVersionOnce: what an executable said is kept until the
// executable changes.
func TestGitIsAskedForItsVersionOnce(t *testing.T) {
	t.Parallel()
	asked := filepath.Join(t.TempDir(), "asked")
	seen := filepath.Join(t.TempDir(), "seen")
	answering := func(version string) string { return "echo x >>" + asked + "\necho git version " + version }
	path := script(t, answering("2.47.0"))
	times := func() int {
		raw, err := os.ReadFile(asked)
		must(t, err)
		return strings.Count(string(raw), "x")
	}
	for range 3 {
		_, err := findGit(t.Context(), path, 0, seen)
		must(t, err)
	}
	if n := times(); n != 1 {
		t.Errorf("asked %d times for one executable, want once", n)
	}
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+answering("1.9.0")+"\n"), 0o755))
	for range 2 {
		if _, err := findGit(t.Context(), path, 0, seen); err == nil {
			t.Error("a git that was replaced by one that is too old is taken")
		}
	}
	if n := times(); n != 3 {
		t.Errorf("asked %d times, want again for each time that it was too old", n)
	}
}

// script writes an executable shell script.
func script(t *testing.T, body string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "git")
	// A process forked meanwhile by another test would hold the file open for
	// writing, and then it cannot be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must(t, os.WriteFile(p, []byte("#!/bin/sh\n"+strings.TrimSpace(body)+"\n"), 0o755))
	return p
}
