package snapshot

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// told is a delta in short: operation, lines, sizes, flags.
func told(deltas []Delta) map[string]string {
	out := map[string]string{}
	for _, d := range deltas {
		s := fmt.Sprintf("%s %s>%s +%d-%d %d>%d", d.Op(), d.OldMode, d.NewMode, d.Added, d.Deleted, d.OldSize, d.NewSize)
		if d.Binary {
			s += " binary"
		}
		if d.OldLFS || d.NewLFS {
			s += fmt.Sprintf(" lfs:%v>%v", d.OldLFS, d.NewLFS)
		}
		if d.Renamed() {
			s += fmt.Sprintf(" %d%% from:%s to:%s", d.Similarity, d.RenamedFrom, d.RenamedTo)
		}
		out[d.Path] = s
	}
	return out
}

func (b *bundle) deltas(repo Repo, base, tree evidence.Tree) []Delta {
	b.t.Helper()
	d, err := b.store.Deltas(b.t.Context(), repo, base, tree)
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

const lfsPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

func TestDeltasTellEveryKindOfChange(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		b := setup(t)
		long := strings.Repeat("a line of some length\n", 40)
		dir := b.repo("r", map[string]string{
			"same": "s", "modified": "1\n2\n3\n", "mode": "m\n", "both": "b\n", "gone": "g1\ng2", "type": "t\n", "link": "-> a", "empty": "",
			"old/moved": long + "x\n", "old/edited": long, "binary": "a\x00b", "lfs": "big\n", "text": "t\n",
		}, "--object-format="+format)
		sub := b.repo("sub", map[string]string{"s": "1"}, "--object-format="+format)
		b.run(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "sub")
		b.run(dir, "commit", "-qm", "sub")
		for _, p := range []string{"gone", "type", "link", "old/moved", "old/edited"} {
			must(t, os.Remove(filepath.Join(dir, p)))
		}
		must(t, os.Chmod(filepath.Join(dir, "mode"), 0o755))
		must(t, os.Chmod(filepath.Join(dir, "both"), 0o755))
		write(t, dir, map[string]string{
			"modified": "1\nzwei\n3\nvier", "both": "b\nc\n", "type": "-> t", "link": "-> b", "new/moved": long + "x\n", "new/edited": long + "y\nz",
			"binary": "a\x00c!", "lfs": lfsPointer, "text": "t\x00\n", "added": "1\n2\n3", "o\tdd\n\"\xff": "hostile\n", "emptied": "",
		})
		b.run(filepath.Join(dir, "sub"), "commit", "-q", "--allow-empty", "-m", "on")
		snap, err := b.store.Seal(t.Context(), b.locate(dir), Options{Gitlinks: true})
		must(t, err)
		got := b.deltas(snap.Repo, snap.Base, snap.Tree)
		want := map[string]string{
			"modified":   "modify 100644>100644 +2-1 6>13",
			"mode":       "mode 100644>100755 +0-0 2>2",
			"both":       "modify 100644>100755 +1-0 2>4",
			"gone":       "delete 100644> +0-2 5>0",
			"type":       "mode 100644>120000 +1-1 2>1",
			"link":       "modify 120000>120000 +1-1 1>1",
			"old/moved":  "delete 100644> +0-41 882>0 100% from: to:new/moved",
			"new/moved":  "create >100644 +41-0 0>882 100% from:old/moved to:",
			"old/edited": "delete 100644> +0-40 880>0 99% from: to:new/edited",
			"new/edited": "create >100644 +42-0 0>883 99% from:old/edited to:",
			"binary":     "modify 100644>100644 +0-0 3>4 binary",
			"text":       "modify 100644>100644 +0-0 2>3 binary",
			"lfs":        fmt.Sprintf("modify 100644>100644 +3-1 4>%d lfs:false>true", len(lfsPointer)),
			"added":      "create >100644 +3-0 0>5",
			"emptied":    "create >100644 +0-0 0>0",
			"sub":        "modify 160000>160000 +0-0 0>0",

			"o\tdd\n\"\xff": "create >100644 +1-0 0>8",
		}
		if diff := cmp.Diff(want, told(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
		// The same, seen without renames and without counts: one record a path, sorted.
		plain, err := b.store.Diff(t.Context(), snap.Repo, snap.Base, snap.Tree)
		must(t, err)
		changes := make([]Change, len(got))
		for i, d := range got {
			changes[i] = d.Change
		}
		if diff := cmp.Diff(plain, changes); diff != "" {
			t.Errorf("%s: changes without renames (-Diff +Deltas):\n%s", format, diff)
		}
		all := b.deltas(snap.Repo, "", snap.Base)
		files, err := b.store.Files(t.Context(), snap.Repo, snap.Base)
		must(t, err)
		if len(all) != len(files) || told(all)["modified"] != "create >100644 +3-0 0>6" {
			t.Errorf("%s: from the empty tree: %q", format, told(all))
		}
		if same := b.deltas(snap.Repo, snap.Tree, snap.Tree); len(same) != 0 {
			t.Errorf("%s: of one tree: %q", format, told(same))
		}
	}
}

// Attack 68: what a repository says about its files hides none of them, and
// turns no text into a binary.
func TestNoAttributeHidesAChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	proof := filepath.Join(b.home, "proof")
	old := map[string]string{"ci/deploy.yml": "1\n2\n", "src/a.go": "1\n", "vendored/x": "1\n", "big.bin": "1\n", "merge": "1\n", "crlf": "1\n"}
	dir := b.repo("r", old)
	b.hostile(dir, proof)
	repo := b.locate(dir)
	b.seal(dir)
	files := map[string]string{
		".gitattributes":    "* -diff -text export-ignore export-subst linguist-generated\n*.go binary\n[attr]hide -diff -merge\nvendored/* hide\n*.bin diff=evil filter=evil\n",
		"ci/.gitattributes": "* binary -diff=evil diff=evil\n",
	}
	for p := range old {
		files[p] = "1\nmore\n"
	}
	write(t, dir, files)
	// In the repository's own attributes, too, and marked as never changed.
	must(t, os.WriteFile(filepath.Join(dir, ".git", "info", "attributes"), []byte("* -diff binary filter=evil\n"), 0o600))
	b.run(dir, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "update-index", "--assume-unchanged", "ci/deploy.yml")
	b.run(dir, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "update-index", "--skip-worktree", "src/a.go")
	must(t, os.WriteFile(filepath.Join(dir, ".git", "info", "exclude"), []byte("*\n"), 0o600))
	must(t, os.RemoveAll(proof))
	snap := b.seal(dir)
	got := told(b.deltas(repo, snap.Base, snap.Tree))
	want := map[string]string{
		".gitattributes":    fmt.Sprintf("create >100644 +5-0 0>%d", len(files[".gitattributes"])),
		"ci/.gitattributes": fmt.Sprintf("create >100644 +1-0 0>%d", len(files["ci/.gitattributes"])),
		"ci/deploy.yml":     "modify 100644>100644 +1-1 4>7",
		"src/a.go":          "modify 100644>100644 +1-0 2>7", "vendored/x": "modify 100644>100644 +1-0 2>7", "big.bin": "modify 100644>100644 +1-0 2>7",
		"merge": "modify 100644>100644 +1-0 2>7", "crlf": "modify 100644>100644 +1-0 2>7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ran, err := os.ReadFile(proof); !os.IsNotExist(err) {
		t.Errorf("something was executed (%v): %s", err, ran)
	}
}

// A store made by a version with other attributes compares like a new one.
func TestAnOlderStoreGetsTheAttributesOfToday(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n"})
	write(t, dir, map[string]string{"a": "2\n"})
	snap := b.seal(dir)
	name := filepath.Join(filepath.Dir(b.home), "state", "snapshot", snap.Repo.ID, "store.git", "info", "attributes")
	must(t, os.WriteFile(name, []byte("* -diff -merge\n"), 0o600))
	if got := told(b.deltas(snap.Repo, snap.Base, snap.Tree)); got["a"] != "modify 100644>100644 +1-1 2>2" {
		t.Errorf("Deltas = %q", got)
	}
}

func TestDeltasOfMissingObjects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n", "b": strings.Repeat("b\n", 1000)})
	repo := b.locate(dir)
	one := b.sealRev(dir, "HEAD")
	b.run(dir, "rm", "-q", "b")
	write(t, dir, map[string]string{"c": strings.Repeat("b\n", 1000)})
	two := b.seal(dir)
	if _, err := b.store.Deltas(t.Context(), repo, one.Tree, evidence.Tree(missingCommit)); !fault.Has(err, CodeObjectMissing) {
		t.Errorf("Deltas with an unknown tree = %v, want %s", err, CodeObjectMissing)
	}
	blob := b.run(dir, "rev-parse", "HEAD:b") // of both trees: git does not read it to compare them
	for _, at := range []string{filepath.Join(dir, ".git"), filepath.Join(filepath.Dir(b.home), "state", "snapshot", repo.ID, "store.git")} {
		must(t, ignoreMissing(os.Remove(filepath.Join(at, "objects", blob[:2], blob[2:]))))
	}
	if got, err := b.store.Deltas(t.Context(), repo, one.Tree, two.Tree); !fault.Has(err, CodeObjectMissing) {
		t.Errorf("Deltas with a missing blob = %q, %v, want %s", told(got), err, CodeObjectMissing)
	}
	if _, err := b.store.Deltas(t.Context(), repo, "HEAD", two.Tree); !fault.Has(err, "bad_id") {
		t.Errorf("Deltas of a name = %v, want bad_id", err)
	}
}

func TestDeltasStartTwoProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n", "b": "2\n"})
	write(t, dir, map[string]string{"a": "x\n", "c": "3\n"})
	snap := b.seal(dir)
	count := filepath.Join(b.home, "count")
	b.store.git.path = script(t, `echo "$@" >> '`+count+`'; exec `+realGit(t)+` "$@"`)
	b.deltas(snap.Repo, snap.Base, snap.Tree)
	raw, err := os.ReadFile(count)
	must(t, err)
	if n := strings.Count(string(raw), "\n"); n != 2 {
		t.Errorf("%d processes, want 2:\n%s", n, raw)
	}
}

// Lines and sizes of a blob that was renamed are those that git counts where it
// finds no rename.
func TestContentIsCountedAsGitDoes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", nil)
	repo := b.locate(dir)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		body := rapid.StringOfN(rapid.SampledFrom([]rune("\n\r\x00ab")), 1, 60, -1).Draw(rt, "body")
		if rapid.Bool().Draw(rt, "far") {
			body = strings.Repeat("far\n", 1999) + "123" + body // a NUL before or behind the 8,000th byte
		}
		c := content{}
		for p := []byte(body); len(p) > 0; {
			n := rapid.IntRange(1, len(p)).Draw(rt, "chunk")
			c.Write(p[:n]) //nolint:errcheck // never fails
			p = p[n:]
		}
		if round > 40 {
			return // git is slow; the pieces above are what varies
		}
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(body), 0o600))
		snap := b.seal(dir)
		got := b.deltas(repo, "", snap.Tree)
		lines := c.lines
		if !c.ended {
			lines++
		}
		binary := strings.IndexByte(string(c.head), 0) >= 0
		if binary {
			lines = 0
		}
		if len(got) != 1 || got[0].Added != lines || got[0].Binary != binary || got[0].NewSize != int64(len(body)) {
			rt.Fatalf("%q: git says %+v, we count %d lines, binary %v", body, got, lines, binary)
		}
	})
}

func FuzzDeltas(f *testing.F) {
	id, zero := strings.Repeat("a", 40), strings.Repeat("0", 40)
	f.Add([]byte(":100644 100644 " + id + " " + id + " M\x00a\x001\t2\ta\x00"))
	f.Add([]byte(":100644 100644 " + id + " " + id + " R090\x00a\x00b\x001\t2\t\x00a\x00b\x00"))
	f.Add([]byte(":000000 100644 " + zero + " " + id + " A\x00a\tb\n\x00-\t-\ta\tb\n\x00"))
	f.Add([]byte(":100644 100644 " + id + " " + id + " C100\x00a\x00b\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		deltas, err := parseDeltas(raw)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, d := range deltas {
			if seen[d.Path] || d.Status == "" || d.Added < 0 && d.Binary {
				t.Errorf("parseDeltas(%q) = %+v", raw, deltas)
			}
			seen[d.Path] = true
		}
	})
}

func TestRenamedPathsThatAreNamedTwiceAreRefused(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a", 40)
	m := ":100644 100644 " + id + " " + id + " M\x00a\x00"
	for _, raw := range []string{
		m + m, m + "1\t1\tb\x00", m + "x\t1\ta\x00", m + "1\t1", m + "\x00", ":100644 100644 " + id + " M\x00a\x00", ":100644 100644 " + id + " " + id + " U\x00a\x00",
		":100644 100644 " + id + " " + id + " R\x00a\x00b\x00", ":100644 100644 " + id + " " + id + " R100\x00a\x00", ":100644 100644 " + id + " zz M\x00a\x00",
	} {
		if got, err := parseDeltas([]byte(raw)); err == nil {
			t.Errorf("parseDeltas(%q) = %+v, want an error", raw, got)
		}
	}
	want := []Delta{{Change: Change{Path: "a", Status: Modified, OldMode: Regular, NewMode: Regular, OldBlob: id, NewBlob: id}}}
	if got, err := parseDeltas([]byte(m)); err != nil || !cmp.Equal(want, got, cmpopts.EquateEmpty()) {
		t.Errorf("parseDeltas = %+v, %v, want %+v", got, err, want)
	}
}

// thousand is a repository whose work tree differs from its commit in 1,000
// files: 600 edited, 200 added and 200 deleted, of which half are renames.
func thousand(b *testing.B) (*Store, Snapshot) {
	b.Helper()
	dir := b.TempDir()
	root := filepath.Join(dir, "r")
	rnd := rand.New(rand.NewPCG(1, 2))
	body := func() string {
		var s strings.Builder
		for range 120 {
			fmt.Fprintf(&s, "\tline %d of some code that differs\n", rnd.Uint32())
		}
		return s.String()
	}
	files := map[string]string{}
	for i := range 5000 {
		files[fmt.Sprintf("d%02d/e%d/f%04d.go", i%50, i%7, i)] = body()
	}
	if err := makeRepo(root, files); err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		p := fmt.Sprintf("d%02d/e%d/f%04d.go", i%50, i%7, i)
		at := filepath.Join(root, p)
		var err error
		switch {
		case i < 600:
			err = os.WriteFile(at, []byte(files[p]+"// more\n"), 0o644)
		case i < 700:
			err = os.WriteFile(filepath.Join(root, fmt.Sprintf("new%03d.go", i)), []byte(strings.Replace(files[p], "code", "text", 5)), 0o644)
		case i < 800:
			err = os.WriteFile(filepath.Join(root, fmt.Sprintf("new%03d.go", i)), binary.BigEndian.AppendUint64([]byte(body()), uint64(i)), 0o644)
		}
		if err == nil && i >= 600 && (i < 700 || i >= 900) {
			err = os.Remove(at)
		} else if err == nil && i >= 800 {
			err = os.WriteFile(at, []byte("emptied\n"), 0o644)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	s, err := Open(b.Context(), Config{State: filepath.Join(dir, "state"), Cache: filepath.Join(dir, "cache")})
	if err != nil {
		b.Fatal(err)
	}
	snap, err := s.Seal(b.Context(), mustLocate(b, s, root), Options{Gitlinks: true})
	if err != nil {
		b.Fatal(err)
	}
	return s, snap
}

// The blobs of the commit are loose, as after a commit, or packed, as in a clone.
func BenchmarkDeltas(b *testing.B) {
	s, snap := thousand(b)
	for _, name := range []string{"loose", "packed"} {
		b.Run(name, func(b *testing.B) {
			if name == "packed" {
				if out, err := exec.Command("git", "-C", snap.Repo.Root, "gc", "-q").CombinedOutput(); err != nil {
					b.Fatalf("git gc: %v: %s", err, out)
				}
			}
			before := childUsage(b)
			for b.Loop() {
				if d, err := s.Deltas(b.Context(), snap.Repo, snap.Base, snap.Tree); err != nil || len(d) != 1100 {
					b.Fatalf("%d paths, %v", len(d), err)
				}
			}
			reportCPU(b, before)
		})
	}
}
