package snapshot

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

var ada = Person{Name: "Ada Löv", Email: "ada@example.org"}

const trailers = "Add a thing\n\nProveto-Run: run_01J\n"

// oneDelivery is the work tree as one commit on top of HEAD, for a new branch.
func oneDelivery(ctx context.Context, s *Store, repo Repo) (Delivery, error) {
	snap, err := s.Seal(ctx, repo, Options{Gitlinks: true})
	return Delivery{
		Ref: "refs/heads/proveto/thing-abc123", Tree: snap.Tree, Parents: []string{snap.Commit}, Message: trailers, By: ada, Time: noon,
	}, err
}

func (b *bundle) delivery(repo Repo) Delivery {
	b.t.Helper()
	d, err := oneDelivery(b.t.Context(), b.store, repo)
	must(b.t, err)
	return d
}

// untouched is all of a repository that a delivery leaves alone: every file but
// objects, the branch and its log.
func (b *bundle) untouched(dir, branch string) string {
	b.t.Helper()
	var kept []string
	for line := range strings.SplitSeq(fingerprint(b.t, dir), "\n") {
		// Directories get another time when a file is made in them.
		if !strings.Contains(line, "/objects") && !strings.Contains(line, "/"+filepath.Dir(branch)) && !strings.Contains(line, "\" d") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func TestDeliverMakesOneCommitAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		for _, kind := range []string{"plain", "linked", "bare"} {
			b := setup(t)
			dir := b.repo("r", map[string]string{"a": "1\n", "d/e": "2\n", "d/x": "x\n"}, "--object-format="+format)
			write(t, dir, map[string]string{"a": "stashed\n"})
			b.run(dir, "stash", "-q")
			write(t, dir, map[string]string{"staged": "s\n"})
			b.run(dir, "add", "staged")
			at := dir
			switch kind {
			case "linked":
				at = filepath.Join(b.home, "linked")
				b.run(dir, "worktree", "add", "-q", "-b", "side", at)
			case "bare":
				at = filepath.Join(b.home, "bare.git")
				b.run(b.home, "clone", "-q", "--bare", dir, at)
			}
			repo := b.locate(at)
			d := Delivery{Ref: "refs/heads/proveto/thing-abc123", Parents: []string{repo.Head}, Message: trailers, By: ada, Time: noon}
			if kind == "bare" {
				// Only a merge makes a tree here that the repository does not have.
				trees := []evidence.Tree{}
				for _, body := range []string{ten, "left\n" + ten, ten + "right\n"} {
					write(t, dir, map[string]string{"a": body})
					b.run(dir, "add", "a")
					b.run(dir, "push", "-q", at, b.run(dir, "commit-tree", "-m", "x", b.run(dir, "write-tree"))+":refs/heads/side/"+strconv.Itoa(len(trees)))
					side, err := b.store.Resolve(t.Context(), repo, "side/"+strconv.Itoa(len(trees)))
					must(t, err)
					trees = append(trees, side.Tree)
				}
				merged, err := b.store.Replay(t.Context(), repo, trees[0], trees[1], trees[2])
				must(t, err)
				d.Tree = merged.Tree
			} else {
				write(t, at, map[string]string{"n": "n\n", "d/e": "3\n"})
				d.Tree = b.delivery(repo).Tree
			}
			before := b.untouched(b.home, "refs/heads/proveto/thing-abc123")
			refs := b.run(at, "for-each-ref")
			got, err := b.store.Deliver(t.Context(), repo, d)
			must(t, err)
			want := Delivered{
				Ref: d.Ref, Commit: got.Commit, Tree: d.Tree, Revert: []string{"git", "-C", repo.Root, "update-ref", "-d", d.Ref, got.Commit},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s: Deliver (-want +got):\n%s", format, kind, diff)
			}
			who := ada.Name + " <" + ada.Email + "> " + strconv.FormatInt(noon.Unix(), 10) + " +0000"
			commit := strings.Join([]string{"tree " + string(d.Tree), "parent " + repo.Head, "author " + who, "committer " + who, "", strings.TrimSpace(trailers)}, "\n")
			if is := b.run(at, "cat-file", "-p", d.Ref); is != commit {
				t.Errorf("%s %s: the commit is\n%s\nwant\n%s", format, kind, is, commit)
			}
			if diff := cmp.Diff(before, b.untouched(b.home, d.Ref)); diff != "" {
				t.Errorf("%s %s: more than the branch was written:\n%s", format, kind, diff)
			}
			b.run(at, "fsck", "--strict", "--connectivity-only")
			b.run(at, "fsck", "--strict")
			// Again: nothing happens. Then the way back.
			if again, err := b.store.Deliver(t.Context(), repo, d); err != nil || !again.Again || again.Commit != got.Commit {
				t.Errorf("%s %s: Deliver again = %+v, %v, want the same commit", format, kind, again, err)
			}
			b.run(at, got.Revert[1:]...)
			if now := b.run(at, "for-each-ref"); now != refs {
				t.Errorf("%s %s: after taking it back: %s, want %s", format, kind, now, refs)
			}
		}
	}
}

// The objects of the snapshot are in the user's own store afterwards: ours may go.
func TestWhatIsDeliveredNeedsNothingOfOurs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": ten, "d/e": "2\n"})
	from := b.run(dir, "rev-parse", "HEAD")
	write(t, dir, map[string]string{"a": ten + "snapshot\n", "new/deep/n": "n\n", "x": "-> a"})
	_, kept, err := b.store.SealRun(t.Context(), b.locate(dir), Options{Gitlinks: true}, Keep{Run: "run_01J", N: 1, Parents: []string{from}, Message: "snapshot", Time: noon})
	must(t, err)
	b.run(dir, "stash", "-q", "-u")
	write(t, dir, map[string]string{"a": "target\n" + ten})
	target := b.commit(dir, "target")
	b.run(dir, "branch", "release")
	repo := b.locate(dir)
	merged, err := b.store.MergePreview(t.Context(), repo, target, from, kept.Tree)
	must(t, err)
	got, err := b.store.Deliver(t.Context(), repo, Delivery{
		Ref: "refs/heads/release", Old: target, Tree: merged.Tree, Parents: []string{target, kept.Commit}, Message: trailers, By: ada, Time: noon,
	})
	must(t, err)
	must(t, os.RemoveAll(filepath.Join(filepath.Dir(b.home), "state")))
	b.run(dir, "stash", "drop", "-q")
	b.run(dir, "reflog", "expire", "--expire=now", "--all")
	b.run(dir, "gc", "-q", "--prune=now")
	b.run(dir, "fsck", "--strict")
	if parents := b.run(dir, "rev-parse", "release^1", "release^2", "release^2^"); parents != target+"\n"+kept.Commit+"\n"+from {
		t.Errorf("parents = %s", parents)
	}
	if body := b.run(dir, "show", "release:a"); body != "target\n"+ten+"snapshot" {
		t.Errorf("a = %q", body)
	}
	want := []string{"git", "-C", repo.Root, "update-ref", "refs/heads/release", target, got.Commit}
	if !slices.Equal(got.Revert, want) || got.Old != target {
		t.Errorf("Revert = %q from %s, want %q", got.Revert, got.Old, want)
	}
	b.run(dir, got.Revert[1:]...)
	if at := b.run(dir, "rev-parse", "release"); at != target {
		t.Errorf("taken back, release is at %s, want %s", at, target)
	}
}

// What the target has is not written once more.
func TestDeliverWritesOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n", "d/e": "2\n", "d/f": "3\n", "other/x": "x\n"})
	b.run(dir, "gc", "-q")
	write(t, dir, map[string]string{"d/e": "new\n"})
	repo := b.locate(dir)
	got, err := b.store.Deliver(t.Context(), repo, b.delivery(repo))
	must(t, err)
	var want []string
	for _, name := range []string{"", "^{tree}", ":d", ":d/e"} {
		id := b.run(dir, "rev-parse", got.Commit+name)
		want = append(want, filepath.Join(repo.Objects, id[:2], id[2:]))
	}
	slices.Sort(want)
	loose, err := filepath.Glob(filepath.Join(repo.Objects, "??", "*"))
	if diff := cmp.Diff(want, loose); err != nil || diff != "" {
		t.Errorf("objects written (-want +got, %v):\n%s", err, diff)
	}
}

func TestDeliverFromAShallowClone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	origin := b.repo("origin", map[string]string{"a": "1\n", "old": "o\n"})
	write(t, origin, map[string]string{"a": "2\n"})
	b.commit(origin, "second")
	dir := filepath.Join(b.home, "shallow")
	b.run(b.home, "clone", "-q", "--depth", "1", "file://"+origin, dir)
	write(t, dir, map[string]string{"a": "3\n"})
	repo := b.locate(dir)
	got, err := b.store.Deliver(t.Context(), repo, b.delivery(repo))
	must(t, err)
	b.run(dir, "fsck", "--strict")
	if list := b.run(dir, "rev-list", got.Ref); list != got.Commit+"\n"+repo.Head {
		t.Errorf("history = %s", list)
	}
}

func TestDeliverRunsNothingOfAHostileRepository(t *testing.T) {
	t.Parallel()
	b := setup(t)
	proof := filepath.Join(b.home, "proof")
	dir := b.repo("r", map[string]string{"a": "1\n"})
	b.run(dir, "branch", "release")
	b.hostile(dir, proof)
	write(t, dir, map[string]string{"a": "2\n", "o\tdd\n\"\xff": "x\n", ".gitattributes": "* filter=evil merge=evil diff=evil\n"})
	repo := b.locate(dir)
	d := b.delivery(repo)
	d.Ref, d.Old = "refs/heads/release", repo.Head
	_, kept, err := b.store.SealRun(t.Context(), repo, Options{Gitlinks: true}, Keep{Run: "run_01J", N: 1, Parents: d.Parents, Time: noon})
	must(t, err)
	if _, err := b.store.MergePreview(t.Context(), repo, repo.Head, repo.Head, kept.Tree); err != nil {
		t.Error(err)
	}
	if _, err := b.store.FilesAt(t.Context(), repo, repo.Head, 100, "a"); err != nil {
		t.Error(err)
	}
	got, err := b.store.Deliver(t.Context(), repo, d)
	must(t, err)
	d.Ref, d.Old = "refs/heads/new", ""
	if _, err := b.store.Deliver(t.Context(), repo, d); err != nil {
		t.Error(err)
	}
	if ran, err := os.ReadFile(proof); !os.IsNotExist(err) {
		t.Fatalf("something of the repository was executed (%v):\n%s", err, ran)
	}
	place, err := b.store.Resolve(t.Context(), repo, "release")
	if err != nil || place.Commit != got.Commit || place.Tree != d.Tree {
		t.Errorf("release is at %+v, %v, want %s", place, err, got.Commit)
	}
	// The twin: the same reference moved by git as the user runs it springs the trap.
	cmd := exec.Command(realGit(t), "update-ref", "refs/heads/new", "HEAD")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home}
	out, err := cmd.CombinedOutput()
	if ran, rerr := os.ReadFile(proof); rerr != nil || len(ran) == 0 {
		t.Errorf("the trap does not work (%v, %v): %s", err, rerr, out)
	}
}

func TestDeliverRefusesBranchesInUse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r [x]", map[string]string{"a": "1\n"})
	first := b.run(dir, "rev-parse", "HEAD")
	write(t, dir, map[string]string{"a": "2\n"})
	b.commit(dir, "second")
	b.run(dir, "branch", "rebased", first)
	b.run(dir, "branch", "bisected", first)
	b.run(dir, "branch", "free", first)
	for _, name := range []string{"linked", "rebasing", "bisecting"} {
		b.run(dir, "worktree", "add", "-q", "-b", name, filepath.Join(b.home, name), first)
	}
	rebasing := filepath.Join(b.home, "rebasing")
	b.run(rebasing, "checkout", "-q", "rebased")
	write(t, rebasing, map[string]string{"a": "3\n"})
	b.commit(rebasing, "collides")
	if out, err := exec.Command("git", "-C", rebasing, "-c", "user.name=u", "-c", "user.email=u@x", "rebase", "main").CombinedOutput(); err == nil {
		t.Fatalf("the rebase does not stop: %s", out)
	}
	bisecting := filepath.Join(b.home, "bisecting")
	b.run(bisecting, "checkout", "-q", "bisected")
	b.run(bisecting, "bisect", "start", "main", first)
	b.run(bisecting, "checkout", "-q", "--detach")
	gone := filepath.Join(b.home, "linked")
	must(t, os.RemoveAll(gone)) // git still holds its branch

	for _, at := range []string{dir, bisecting} {
		repo := b.locate(at)
		for branch, want := range map[string]fault.Code{"main": CodeRefCheckedOut, "linked": CodeRefCheckedOut, "rebased": CodeRefCheckedOut, "bisected": CodeRefCheckedOut, "free": ""} {
			head := b.run(dir, "rev-parse", "refs/heads/"+branch)
			_, err := b.store.Deliver(t.Context(), repo, Delivery{
				Ref: "refs/heads/" + branch, Old: head, Tree: evidence.Tree(b.run(dir, "rev-parse", "main^{tree}")), Parents: []string{head}, Message: at, By: ada, Time: noon,
			})
			switch {
			case want == "" && err != nil:
				t.Errorf("Deliver to %s: %v", branch, err)
			case want != "" && (!fault.Has(err, want) || fault.From(err).Kind.Exit() != 1):
				t.Errorf("Deliver to %s = %v, want %s", branch, err, want)
			case want != "" && b.run(dir, "rev-parse", "refs/heads/"+branch) != head:
				t.Errorf("%s was moved", branch)
			}
		}
	}
	// A bare repository has no work tree: the branch that HEAD names is free.
	bare := filepath.Join(b.home, "bare.git")
	b.run(b.home, "clone", "-q", "--bare", dir, bare)
	repo := b.locate(bare)
	if _, err := b.store.Deliver(t.Context(), repo, Delivery{
		Ref: "refs/heads/main", Old: repo.Head, Tree: evidence.Tree(b.run(dir, "rev-parse", first+"^{tree}")), Parents: []string{repo.Head}, Message: "m", By: ada, Time: noon,
	}); err != nil {
		t.Errorf("Deliver to main of a bare repository: %v", err)
	}
	// Unborn, but checked out all the same.
	b.run(dir, "checkout", "-q", "--orphan", "unborn")
	if _, err := b.store.Deliver(t.Context(), b.locate(dir), Delivery{
		Ref: "refs/heads/unborn", Tree: evidence.Tree(b.run(dir, "rev-parse", "main^{tree}")), Parents: []string{first}, Message: "m", By: ada, Time: noon,
	}); !fault.Has(err, CodeRefCheckedOut) {
		t.Errorf("Deliver to an unborn branch = %v, want %s", err, CodeRefCheckedOut)
	}
}

func TestDeliverRefusesWhatIsNoFreshBranch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n"})
	b.run(dir, "branch", "dir/leaf")
	b.run(dir, "branch", "leaf")
	b.run(dir, "symbolic-ref", "refs/heads/alias", "refs/heads/leaf")
	write(t, dir, map[string]string{"a": "2\n"})
	repo := b.locate(dir)
	good := b.delivery(repo)
	refs := b.run(dir, "for-each-ref")
	for name, want := range map[string]fault.Code{
		"refs/heads/": "usage", "refs/heads/a..b": "usage", "refs/heads/a b": "usage", "refs/heads/-x": "usage", "refs/heads/HEAD": "usage", "refs/heads/a.lock": "usage",
		"refs/heads/a\x00b": "usage", "refs/heads/@{-1}": "usage", "refs/heads/../../x": "usage", "refs/heads/a\nb": "usage", "refs/heads//a": "usage", "refs/heads/a~1": "usage",
		"refs/tags/v1": "usage", "refs/stash": "usage", "HEAD": "usage", "main": "usage", "refs/remotes/origin/main": "usage", "refs/heads/alias": "usage",
		"refs/heads/leaf": CodeRefMoved, "refs/heads/dir": CodeConflict, "refs/heads/leaf/under": CodeConflict,
	} {
		d := good
		d.Ref = name
		if got, err := b.store.Deliver(t.Context(), repo, d); !fault.Has(err, want) {
			t.Errorf("Deliver to %q = %+v, %v, want %s", name, got, err, want)
		}
	}
	for what, spoil := range map[string]func(*Delivery){
		"no author":       func(d *Delivery) { d.By = Person{} },
		"an empty author": func(d *Delivery) { d.By.Name = " <> " },
		"no parent":       func(d *Delivery) { d.Parents = nil },
		"a foreign base":  func(d *Delivery) { d.Old = missingCommit },
		"a lost parent":   func(d *Delivery) { d.Parents = []string{missingCommit} },
		"two of one":      func(d *Delivery) { d.Parents = append(slices.Clone(d.Parents), d.Parents[0]) },
		"a lost tree":     func(d *Delivery) { d.Tree = missingCommit },
		"no text":         func(d *Delivery) { d.Message = "\xff" },
	} {
		d := good
		spoil(&d)
		if got, err := b.store.Deliver(t.Context(), repo, d); err == nil {
			t.Errorf("Deliver with %s = %+v, want an error", what, got)
		}
	}
	// It would throw away what the branch has.
	d := good
	d.Ref, d.Old, d.Parents = "refs/heads/leaf", repo.Head, []string{b.run(dir, "commit-tree", "-m", "x", "HEAD^{tree}")}
	if got, err := b.store.Deliver(t.Context(), repo, d); !fault.Has(err, "internal") {
		t.Errorf("Deliver of what does not continue the branch = %+v, %v, want internal", got, err)
	}
	if now := b.run(dir, "for-each-ref"); now != refs {
		t.Errorf("references = %s, want %s", now, refs)
	}
}

func TestDeliverLosesToWhoMovedTheBranch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n"})
	old := b.run(dir, "rev-parse", "HEAD")
	b.run(dir, "branch", "release")
	write(t, dir, map[string]string{"a": "2\n"})
	theirs := b.commit(dir, "theirs")
	repo := b.locate(dir)
	d := Delivery{Ref: "refs/heads/release", Old: old, Tree: b.seal(dir).Tree, Parents: []string{old}, Message: trailers, By: ada, Time: noon}
	real := realGit(t)
	// Somebody else moves, makes or removes it between our look and our write.
	for _, c := range []struct{ at, was, then string }{
		{"refs/heads/release", old, "update-ref refs/heads/release " + theirs},
		{"refs/heads/release", old, "update-ref -d refs/heads/release"},
		{"refs/heads/fresh", "", "update-ref refs/heads/fresh " + theirs},
	} {
		d.Ref, d.Old = c.at, c.was
		b.store.git.path = script(t, `case " $* " in *" update-ref "*) `+real+` --git-dir='`+dir+`/.git' `+c.then+`;; esac
exec `+real+` "$@"`)
		_, err := b.store.Deliver(t.Context(), repo, d)
		if !fault.Has(err, CodeRefMoved) || fault.From(err).Kind != fault.Conflict {
			t.Errorf("%s: Deliver = %v, want %s", c.then, err, CodeRefMoved)
		}
		b.store.git.path = real
		want := theirs
		if strings.Contains(c.then, "-d") {
			want = ""
		}
		if now, err := b.store.branch(t.Context(), repo, c.at); err != nil || now != want {
			t.Errorf("%s: the branch is at %q, %v, want %q", c.then, now, err, want)
		}
		b.run(dir, "update-ref", "refs/heads/release", old)
	}
	// Moved before our look.
	b.run(dir, "update-ref", "refs/heads/release", theirs)
	d.Ref, d.Old = "refs/heads/release", old
	if _, err := b.store.Deliver(t.Context(), repo, d); !fault.Has(err, CodeRefMoved) {
		t.Errorf("Deliver = %v, want %s", err, CodeRefMoved)
	}
}

func TestOfTwoDeliveriesAtOnceOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n"})
	b.run(dir, "branch", "release")
	write(t, dir, map[string]string{"a": "2\n"})
	repo := b.locate(dir)
	good := b.delivery(repo)
	for round, d := range []Delivery{{Ref: "refs/heads/release", Old: repo.Head}, {Ref: "refs/heads/fresh"}} {
		for _, same := range []bool{false, true} {
			d.Tree, d.Parents, d.By, d.Time = good.Tree, good.Parents, ada, noon
			d.Ref += strconv.FormatBool(same)
			if d.Old != "" {
				b.run(dir, "branch", strings.TrimPrefix(d.Ref, branchRefs))
			}
			var wg sync.WaitGroup
			got := make([]Delivered, 6)
			errs := make([]error, len(got))
			for i := range got {
				wg.Go(func() {
					d := d
					if d.Message = "the same"; !same {
						d.Message = fmt.Sprint("number ", i)
					}
					got[i], errs[i] = b.store.Deliver(t.Context(), repo, d)
				})
			}
			wg.Wait()
			at := b.run(dir, "rev-parse", d.Ref)
			won, first := 0, 0
			for i, err := range errs {
				switch {
				case err == nil && got[i].Commit == at:
					won++
					if !got[i].Again {
						first++
					}
				case err == nil:
					t.Errorf("round %d: delivery %d says %s is at %s, it is at %s", round, i, d.Ref, got[i].Commit, at)
				case !fault.Has(err, CodeRefMoved) && !fault.Has(err, CodeBusy):
					t.Errorf("round %d: delivery %d = %v", round, i, err)
				}
			}
			if first != 1 || !same && won != 1 || same && won != len(got) {
				t.Errorf("round %d, the same commit: %v: %d of %d won, %d of them first: %v", round, same, won, len(got), first, errs)
			}
		}
	}
	b.run(dir, "fsck", "--strict")
}

func TestDeliverKilledLeavesTheBranchOldOrNew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n"})
	write(t, dir, map[string]string{"a": "2\n", "n/n": "n\n"})
	repo := b.locate(dir)
	d := b.delivery(repo)
	git := realGit(t)
	for _, when := range []string{"before", "after"} {
		seen := map[string]bool{}
		for n, done := 1, false; !done; n++ {
			count := filepath.Join(t.TempDir(), "count")
			must(t, os.WriteFile(count, nil, 0o600))
			kill := map[string]string{"before": "kill -9 $PPID; exec " + git + ` "$@"`, "after": git + ` "$@"; kill -9 $PPID`}[when]
			fake := script(t, `n=$(( $(wc -l < '`+count+`') + 1 )); echo >> '`+count+`'
if [ $n -eq `+strconv.Itoa(n)+` ]; then `+kill+`; fi
exec `+git+` "$@"`)
			cmd := b.child("deliver", dir, fake)
			out, err := cmd.CombinedOutput()
			if done = err == nil; !done {
				if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
					t.Fatalf("the child ended with %v, want killed: %s", err, out)
				}
			}
			now, err := b.store.branch(t.Context(), repo, d.Ref)
			must(t, err)
			seen[now] = true
			b.run(dir, "fsck", "--strict")
			// Once more ends where the first would have.
			got, err := b.store.Deliver(t.Context(), repo, d)
			if err != nil || now != "" && now != got.Commit || done && now == "" {
				t.Fatalf("killed %s process %d: the branch was at %q, then Deliver = %+v, %v", when, n, now, got, err)
			}
			b.run(dir, got.Revert[1:]...)
		}
		if len(seen) != 2 {
			t.Errorf("killed %s: the branch was %v, want it old and new", when, seen)
		}
	}
}

// The last step outlives us: killed in the middle it would leave its lock in the
// user's repository.
func TestTheBranchIsMovedWhenWeAreKilledMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n"})
	write(t, dir, map[string]string{"a": "2\n"})
	repo := b.locate(dir)
	d := b.delivery(repo)
	ended := filepath.Join(b.home, "ended")
	must(t, mkfifo(ended))
	git := realGit(t)
	fake := script(t, `case " $* " in *" update-ref "*)
	exec 9> '`+ended+`'
	kill -9 $PPID
	while kill -0 $PPID 2>/dev/null && [ "$(cut -d' ' -f4 /proc/$$/stat)" = $PPID ]; do :; done
	`+git+` "$@"; echo $? >&9; exit;; esac
exec `+git+` "$@"`)
	cmd := b.child("deliver", dir, fake)
	must(t, cmd.Start())
	code, err := os.ReadFile(ended)
	if err != nil || strings.TrimSpace(string(code)) != "0" {
		t.Errorf("update-ref ended with %q, %v", code, err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the killed child ended well")
	}
	if now, err := b.store.branch(t.Context(), repo, d.Ref); err != nil || now == "" {
		t.Errorf("the branch is at %q, %v, want it delivered", now, err)
	}
}

func TestDeliverBesideAHeldBranch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n"})
	write(t, dir, map[string]string{"a": "2\n"})
	repo := b.locate(dir)
	d := b.delivery(repo)
	held := filepath.Join(dir, ".git", d.Ref+".lock")
	must(t, os.MkdirAll(filepath.Dir(held), 0o755))
	must(t, os.WriteFile(held, nil, 0o600))
	if _, err := b.store.Deliver(t.Context(), repo, d); !fault.Has(err, CodeBusy) || !strings.Contains(err.Error(), held) {
		t.Errorf("Deliver = %v, want %s and the name of the lock", err, CodeBusy)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.store.Deliver(ctx, repo, d); !fault.Has(err, "interrupted") {
		t.Errorf("Deliver when stopped = %v, want interrupted", err)
	}
	must(t, os.Remove(held))
	if _, err := b.store.Deliver(t.Context(), repo, d); err != nil {
		t.Error(err)
	}
}

func TestDeliverIntoAStoreThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n"})
	write(t, dir, map[string]string{"a": "2\n"})
	repo := b.locate(dir)
	d := b.delivery(repo)
	if os.Geteuid() == 0 {
		// Root may write everywhere: git that writes there is somebody else.
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("needs setpriv, or not to be root")
		}
		for at := b.home; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
			must(t, os.Chmod(at, 0o755))
		}
		b.store.git.path = script(t, `case " $* " in *" unpack-objects "*) exec setpriv --reuid 65534 --clear-groups `+realGit(t)+` "$@";; esac
exec `+realGit(t)+` "$@"`)
	} else {
		for _, at := range []string{repo.Objects} {
			must(t, filepath.WalkDir(at, func(p string, e os.DirEntry, err error) error {
				if err == nil && e.IsDir() {
					err = os.Chmod(p, 0o555)
				}
				return err
			}))
			t.Cleanup(func() {
				must(t, filepath.WalkDir(at, func(p string, e os.DirEntry, err error) error { return os.Chmod(p, 0o755) }))
			})
		}
	}
	_, err := b.store.Deliver(t.Context(), repo, d)
	if !fault.Has(err, "io") || !strings.Contains(err.Error(), repo.Objects) || !strings.Contains(err.Error(), "ermission") {
		t.Errorf("Deliver = %v, want io, the directory and git's reason", err)
	}
	if now, err := b.store.branch(t.Context(), repo, d.Ref); err != nil || now != "" {
		t.Errorf("the branch is at %q, %v, want none", now, err)
	}
}

// A tree with a name that git itself would obey is not handed on.
func TestDeliverRefusesTreesThatGitObeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1\n"})
	repo := b.locate(dir)
	blob := b.run(dir, "rev-parse", "HEAD:a")
	cmd := exec.Command("git", "hash-object", "-w", "-t", "tree", "--stdin", "--literally")
	raw := []byte("100644 .GIT\x00")
	for i := 0; i < len(blob); i += 2 {
		n, err := strconv.ParseUint(blob[i:i+2], 16, 8)
		must(t, err)
		raw = append(raw, byte(n))
	}
	write(t, dir, map[string]string{"a": "2\n"})
	d := b.delivery(repo)
	cmd.Dir = filepath.Join(filepath.Dir(b.home), "state", "snapshot", repo.ID, "store.git")
	cmd.Stdin = strings.NewReader(string(raw))
	out, err := cmd.Output()
	must(t, err)
	d.Tree = evidence.Tree(strings.TrimSpace(string(out)))
	if got, err := b.store.Deliver(t.Context(), repo, d); err == nil {
		t.Errorf("Deliver of a tree with .GIT = %+v, want an error", got)
	}
	if now, err := b.store.branch(t.Context(), repo, d.Ref); err != nil || now != "" {
		t.Errorf("the branch is at %q, %v, want none", now, err)
	}
}
