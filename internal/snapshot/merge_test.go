package snapshot

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// commit commits the whole work tree and returns the id.
func (b *bundle) commit(dir, message string) string {
	b.t.Helper()
	b.run(dir, "add", "-A")
	b.run(dir, "commit", "-q", "--allow-empty", "-m", message)
	return b.run(dir, "rev-parse", "HEAD")
}

const ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

func TestMergePreviewIsWhatGitMerges(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		for _, kind := range []string{"plain", "bare", "linked"} {
			b := setup(t)
			dir := b.repo("r", map[string]string{"both": ten, "ours": "1\n", "moved": ten + "m\n", "d/x": "x\n"}, "--object-format="+format)
			from := b.run(dir, "rev-parse", "HEAD")
			b.run(dir, "checkout", "-q", "-b", "work")
			write(t, dir, map[string]string{"both": strings.Replace(ten, "1\n", "eins\n", 1), "moved": "0\n" + ten + "m\n", "new": "n\n"})
			theirs := b.commit(dir, "theirs")
			b.run(dir, "checkout", "-q", "main")
			write(t, dir, map[string]string{"both": strings.Replace(ten, "10\n", "zehn\n", 1), "ours": "2\n"})
			b.run(dir, "mv", "moved", "elsewhere")
			target := b.commit(dir, "ours")
			at := dir
			switch kind {
			case "bare":
				at = filepath.Join(b.home, "bare.git")
				b.run(b.home, "clone", "-q", "--bare", dir, at)
			case "linked":
				at = filepath.Join(b.home, "linked")
				b.run(dir, "worktree", "add", "-q", "--detach", at)
			}
			tree := evidence.Tree(b.run(dir, "rev-parse", theirs+"^{tree}"))
			repo := b.locate(at)
			refs, status := b.run(at, "for-each-ref"), ""
			if kind != "bare" {
				status = b.run(at, "status", "--porcelain")
			}
			got, err := b.store.MergePreview(t.Context(), repo, target, from, tree)
			must(t, err)
			if now := b.run(at, "for-each-ref"); now != refs {
				t.Errorf("references were written: %s", now)
			}
			if kind != "bare" && b.run(at, "status", "--porcelain") != status {
				t.Error("the work tree was touched")
			}
			b.run(dir, "merge", "-q", "-m", "merge", "work")
			if want := b.run(dir, "rev-parse", "HEAD^{tree}"); string(got.Tree) != want || !slices.Equal(got.Bases, []string{from}) || got.Conflicts != nil {
				t.Errorf("%s %s: MergePreview = %+v, want tree %s on %s", format, kind, got, want, from)
			}
			// It can be read and checked out, and stays.
			if body := b.content(repo, got.Tree)["elsewhere"]; body != "0\n"+ten+"m\n" {
				t.Errorf("elsewhere = %q", body)
			}
			b.release(b.checkout(repo, got.Tree))
		}
	}
}

func TestMergePreviewNamesConflicts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"text": ten, "deleted": "d\n", "binary": "a\x00b", "union": "1\n", "fine": ten})
	from := b.run(dir, "rev-parse", "HEAD")
	ours := map[string]string{"text": "ours\n" + ten, "binary": "a\x00o", "added o\tdd\n": "o\n", "union": "1\no\n", "fine": "o\n" + ten}
	theirs := map[string]string{"text": "theirs\n" + ten, "binary": "a\x00t", "added o\tdd\n": "t\n", "union": "1\nt\n", "fine": ten + "t\n", "deleted": "kept\n"}
	// A driver that takes both sides hides what collided, wherever it is named.
	attributes := "* merge=union\nbinary text\n"
	write(t, dir, map[string]string{".gitattributes": attributes})
	must(t, os.WriteFile(filepath.Join(dir, ".git", "info", "attributes"), []byte(attributes), 0o600))
	write(t, dir, theirs)
	tree := b.seal(dir).Tree
	write(t, dir, ours)
	must(t, os.Remove(filepath.Join(dir, "deleted")))
	target := b.commit(dir, "ours")
	repo := b.locate(dir)
	got, err := b.store.MergePreview(t.Context(), repo, target, from, tree)
	must(t, err)
	want := Merge{Bases: []string{from}, Conflicts: []MergeConflict{
		{"added o\tdd\n", "contents"}, {"binary", "binary"}, {"deleted", "modify/delete"}, {"text", "contents"}, {"union", "contents"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("MergePreview (-want +got):\n%s", diff)
	}
}

func TestMergePreviewWithoutAMergeToMake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n"})
	from := b.run(dir, "rev-parse", "HEAD")
	base := evidence.Tree(b.run(dir, "rev-parse", "HEAD^{tree}"))
	write(t, dir, map[string]string{"a": "2\n", "n": "n\n"})
	tree := b.seal(dir).Tree
	repo := b.locate(dir)
	if got, err := b.store.MergePreview(t.Context(), repo, from, from, tree); err != nil || got.Tree != tree {
		t.Errorf("onto an unmoved target = %+v, %v, want the snapshot %s", got, err, tree)
	}
	write(t, dir, map[string]string{"n": "other\n"})
	target := b.commit(dir, "on")
	there := evidence.Tree(b.run(dir, "rev-parse", "HEAD^{tree}"))
	for what, snapshot := range map[string]evidence.Tree{"nothing": base, "the same": there} {
		if got, err := b.store.MergePreview(t.Context(), repo, target, from, snapshot); err != nil || got.Tree != there {
			t.Errorf("of %s = %+v, %v, want the target %s", what, got, err, there)
		}
	}
}

// The base was rewritten on the target: what both had last in common counts.
func TestMergePreviewOfHistoriesThatPartOrCross(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": ten, "b": ten})
	first := b.run(dir, "rev-parse", "HEAD")
	write(t, dir, map[string]string{"a": "left\n" + ten})
	left := b.commit(dir, "left")
	b.run(dir, "checkout", "-q", "-b", "right", first)
	write(t, dir, map[string]string{"b": "right\n" + ten})
	right := b.commit(dir, "right")
	repo := b.locate(dir)
	tree := func(rev string) evidence.Tree { return evidence.Tree(b.run(dir, "rev-parse", rev+"^{tree}")) }
	got, err := b.store.MergePreview(t.Context(), repo, right, left, tree(left))
	must(t, err)
	if want := map[string]string{"a": "left\n" + ten, "b": "right\n" + ten}; !slices.Equal(got.Bases, []string{first}) || !cmp.Equal(want, b.content(repo, got.Tree)) {
		t.Errorf("parted: %+v %q", got, b.content(repo, got.Tree))
	}
	// Crossed: each side merged the other, then both went on. Against one of the two
	// bases alone, either side would collide with what the other took over.
	b.run(dir, "merge", "-q", "-m", "right merges left", left)
	write(t, dir, map[string]string{"a": "left, better\n" + ten})
	target := b.commit(dir, "on")
	b.run(dir, "checkout", "-q", "-b", "cross", left)
	b.run(dir, "merge", "-q", "-m", "left merges right", right)
	write(t, dir, map[string]string{"b": "right, better\n" + ten})
	from := b.commit(dir, "too")
	got, err = b.store.MergePreview(t.Context(), repo, target, from, tree(from))
	must(t, err)
	bases := []string{left, right}
	slices.Sort(bases)
	if want := map[string]string{"a": "left, better\n" + ten, "b": "right, better\n" + ten}; !slices.Equal(got.Bases, bases) || !cmp.Equal(want, b.content(repo, got.Tree)) {
		t.Errorf("crossed: %+v %q", got, b.content(repo, got.Tree))
	}
	b.run(dir, "checkout", "-q", "--orphan", "alone")
	alone := b.commit(dir, "alone")
	if _, err := b.store.MergePreview(t.Context(), repo, alone, from, tree(from)); !fault.Has(err, CodeBaseUnresolved) {
		t.Errorf("without common history = %v, want %s", err, CodeBaseUnresolved)
	}
	if _, err := b.store.MergePreview(t.Context(), repo, "main", from, tree(from)); !fault.Has(err, "bad_id") {
		t.Errorf("of a name = %v, want bad_id", err)
	}
}

func TestMergePreviewInAShallowClone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	origin := b.repo("origin", map[string]string{"a": ten})
	for _, body := range []string{"x\n" + ten, "y\n" + ten} {
		write(t, origin, map[string]string{"a": body})
		b.commit(origin, "more")
	}
	dir := filepath.Join(b.home, "shallow")
	b.run(b.home, "clone", "-q", "--depth", "1", "file://"+origin, dir)
	repo := b.locate(dir)
	if !repo.Shallow {
		t.Fatal("the clone is not shallow")
	}
	from := b.run(dir, "rev-parse", "HEAD")
	write(t, dir, map[string]string{"a": "y\n" + ten + "snapshot\n"})
	tree := b.seal(dir).Tree
	write(t, dir, map[string]string{"a": "z\n" + ten})
	target := b.commit(dir, "target")
	got, err := b.store.MergePreview(t.Context(), repo, target, from, tree)
	must(t, err)
	if body := b.content(repo, got.Tree)["a"]; body != "z\n"+ten+"snapshot\n" {
		t.Errorf("merged = %q of %+v", body, got)
	}
}

func TestReplayPutsASnapshotOntoAnotherBase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": ten, "b": "1\n"})
	old := evidence.Tree(b.run(dir, "rev-parse", "HEAD^{tree}"))
	write(t, dir, map[string]string{"a": "snapshot\n" + ten})
	tree := b.seal(dir).Tree
	write(t, dir, map[string]string{"a": ten + "base\n", "b": "2\n"})
	onto := b.seal(dir).Tree
	repo := b.locate(dir)
	got, err := b.store.Replay(t.Context(), repo, old, onto, tree)
	must(t, err)
	if want := map[string]string{"a": "snapshot\n" + ten + "base\n", "b": "2\n"}; !cmp.Equal(want, b.content(repo, got.Tree)) {
		t.Errorf("Replay = %+v %q", got, b.content(repo, got.Tree))
	}
	// It is kept, as every sealed tree is.
	if _, err := b.store.GC(t.Context(), func(_ Repo, tree evidence.Tree) bool { return tree == got.Tree }, 0); err != nil {
		t.Error(err)
	}
	if _, err := b.store.Files(t.Context(), repo, got.Tree); err != nil {
		t.Error(err)
	}
	write(t, dir, map[string]string{"a": "snapshot\n" + ten, "b": "1\n"})
	tree = b.seal(dir).Tree // what only it needed went
	write(t, dir, map[string]string{"a": "base\n" + ten})
	onto = b.seal(dir).Tree
	got, err = b.store.Replay(t.Context(), repo, old, onto, tree)
	if want := []MergeConflict{{"a", "contents"}}; err != nil || got.Tree != "" || !cmp.Equal(want, got.Conflicts) {
		t.Errorf("Replay onto what it collides with = %+v, %v, want %+v", got, err, want)
	}
	if _, err := b.store.Replay(t.Context(), repo, old, evidence.Tree(missingCommit), tree); !fault.Has(err, CodeObjectMissing) {
		t.Errorf("Replay onto an unknown tree = %v, want %s", err, CodeObjectMissing)
	}
}

func FuzzMergeOutput(f *testing.F) {
	id := strings.Repeat("a", 40)
	f.Add([]byte(id+"\x00"), false)
	f.Add([]byte(id+"\x00a\x00\x001\x00a\x00Auto-merging\x00Auto-merging a\n\x001\x00a\x00CONFLICT (contents)\x00x\n\x00"), true)
	f.Add([]byte(id+"\x00e/g\x00\x002\x00e/g\x00d/g\x00CONFLICT (directory rename suggested)\x00x\n\x00"), true)
	f.Fuzz(func(t *testing.T, raw []byte, conflict bool) {
		m, err := parseMerge(raw, conflict)
		if err == nil && (m.Tree == "") != (len(m.Conflicts) > 0) {
			t.Errorf("parseMerge(%q, %v) = %+v", raw, conflict, m)
		}
	})
}
