package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The attributes of our store keep git from converting anything, and mark every
// file as one without a text diff: lines must be compared all the same.
func TestChangedLinesOfModifiedFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a.go": "1\n2\n3\n4\n5\n", "same.go": "1\n", "gone.go": "1\n"})
	repo := b.locate(dir)
	base := b.seal(dir)
	write(t, dir, map[string]string{"a.go": "1\nzwei\n3\n5\nsechs\nsieben\n", "new.go": "1\n"})
	b.run(dir, "rm", "-q", "gone.go")
	got, err := b.store.ChangedLines(t.Context(), repo, base.Tree, b.seal(dir).Tree)
	must(t, err)
	// A removal marks the line before which nothing stands any more.
	want := map[string][]Lines{"a.go": {{2, 2}, {3, 3}, {5, 6}}, "new.go": {{1, 1 << 30}}, "gone.go": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ChangedLines (-want +got):\n%s", diff)
	}
}
