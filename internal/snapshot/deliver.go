package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// The codes of a delivery.
const (
	CodeRefMoved      fault.Code = "ref_moved"       // the reference is not where the caller saw it
	CodeRefCheckedOut fault.Code = "ref_checked_out" // a work tree is on the branch, or returns to it
)

// branchRefs is where branches are; nothing else is delivered to.
const branchRefs = "refs/heads/"

// Delivery is one commit for the user's repository and the branch that gets it.
type Delivery struct {
	Ref     string        // full name of the branch: refs/heads/…
	Old     string        // the commit it is at, one of Parents; empty: the branch is new
	Tree    evidence.Tree // exactly
	Parents []string      // of a squash the target; of a merge the target and the kept commit
	Message string        // with its trailers; UTF-8
	By      Person        // author and committer
	Time    time.Time     // whole seconds count; with it a repeated delivery makes the same commit
}

// Delivered is what a delivery did.
type Delivered struct {
	Ref, Old, Commit string
	Tree             evidence.Tree
	// Revert is the command that takes it back while the branch still stands there.
	Revert []string
	// Again: the branch held this very commit already, from a delivery before.
	Again bool
}

// Deliver writes one commit, with what its tree needs, into the user's object
// store and moves the branch to it by compare-and-swap. Nothing else of the
// repository changes: not the index, the files, the stash or what is checked out,
// and no hook runs. A process killed on the way leaves the branch old or new.
//
// Refusals: usage for a name that cannot be a branch; ref_checked_out; ref_moved,
// also when a branch meant to be new is there; busy while another git holds the
// branch; io and no_space with git's own words when objects cannot be written.
func (s *Store) Deliver(ctx context.Context, repo Repo, d Delivery) (_ Delivered, err error) {
	if err := d.check(repo); err != nil {
		return Delivered{}, err
	}
	if err := s.branchName(ctx, d.Ref); err != nil {
		return Delivered{}, err
	}
	v, err := s.open(ctx, repo)
	if err != nil {
		return Delivered{}, err
	}
	held, err := v.shared(ctx)
	if err != nil {
		return Delivered{}, err
	}
	defer func() { err = errors.Join(err, unlock(held)) }()
	commit, err := v.commit(ctx, d.Tree, d.Parents, d.Message, commitBy{author: d.By, committer: d.By, time: d.Time})
	if err != nil {
		return Delivered{}, fmt.Errorf("deliver to %s: %w", d.Ref, err)
	}
	done := Delivered{Ref: d.Ref, Old: d.Old, Commit: commit, Tree: d.Tree, Revert: revert(repo, d, commit)}
	now, err := s.branch(ctx, repo, d.Ref)
	switch {
	case err != nil:
		return Delivered{}, err
	case now == commit:
		done.Again = true
		return done, nil
	case now != d.Old:
		return Delivered{}, moved(repo, d, now)
	}
	if err := s.free(ctx, repo, d.Ref); err != nil {
		return Delivered{}, err
	}
	if err := v.transfer(ctx, commit, d.Parents, held); err != nil {
		return Delivered{}, unwritten(err, repo)
	}
	if done.Again, err = s.point(ctx, repo, d, commit); err != nil {
		return Delivered{}, err
	}
	return done, nil
}

func (d Delivery) check(repo Repo) error {
	switch {
	case !repo.Git():
		return fault.New(fault.Refused, CodeNoRepository, "%s is not a git repository and has no branches", repo.Root)
	case len(d.Parents) == 0 || d.Old != "" && !slices.Contains(d.Parents, d.Old):
		return fault.New(fault.Internal, "internal", "a delivery to %s does not continue it", d.Ref)
	case strings.Trim(d.By.Name, " .,:;<>\"\\'\t\r\n") == "" || strings.Trim(d.By.Email, " .,:;<>\"\\'\t\r\n") == "":
		return fault.New(fault.Usage, "usage", "git does not know who you are, so nobody can be named as the author").
			Hint("git config --global user.name 'Your Name'").Hint("git config --global user.email you@example.org")
	case strings.ContainsRune(d.By.Name+d.By.Email, 0):
		return fault.New(fault.Usage, "usage", "the name of an author holds a NUL")
	}
	_, err := evidence.ParseTree(string(d.Tree))
	return err
}

// revert is the command that takes a delivery back, and does nothing once the
// branch has moved on.
func revert(repo Repo, d Delivery, commit string) []string {
	if d.Old == "" {
		return []string{"git", "-C", repo.Root, "update-ref", "-d", d.Ref, commit}
	}
	return []string{"git", "-C", repo.Root, "update-ref", d.Ref, d.Old, commit}
}

// branchName refuses what git would not take for a branch.
func (s *Store) branchName(ctx context.Context, ref string) error {
	bad := fault.New(fault.Usage, "usage", "%.200q cannot be the name of a branch", strings.TrimPrefix(ref, branchRefs)).
		Hint("git check-ref-format --branch NAME")
	name, ok := strings.CutPrefix(ref, branchRefs)
	if !ok || name == "HEAD" || strings.HasPrefix(name, "-") || strings.ContainsRune(name, 0) {
		return bad
	}
	_, code, err := s.git.run(ctx, call{args: []string{"check-ref-format", ref}, dir: "/", answers: []int{1}})
	if err != nil {
		return fmt.Errorf("name of a branch: %w", err)
	}
	if code == 1 {
		return bad
	}
	return nil
}

// branch is the commit that a branch is at; empty when there is none. One that
// only stands for another is refused.
func (s *Store) branch(ctx context.Context, repo Repo, ref string) (string, error) {
	out, _, err := s.git.run(ctx, call{
		args: []string{"for-each-ref", "--format=%(refname) %(objectname) %(symref)", ref}, gitDir: repo.GitDir,
	})
	if err != nil {
		return "", fmt.Errorf("read %s of %s: %w", ref, repo.Name, err)
	}
	for line := range strings.Lines(string(out)) { // those below a directory of this name, too
		f := strings.Fields(line)
		if f[0] != ref {
			continue
		}
		if len(f) > 2 {
			return "", fault.New(fault.Usage, "usage", "%s of %s stands for %s", ref, repo.Name, f[2]).
				Hint("name %s itself", f[2])
		}
		return f[1], nil
	}
	return "", nil
}

func moved(repo Repo, d Delivery, now string) *fault.Error {
	at := func(id string) string {
		if id == "" {
			return "absent"
		}
		return "at " + id
	}
	return fault.New(fault.Conflict, CodeRefMoved, "%s of %s is %s, not %s", d.Ref, repo.Name, at(now), at(d.Old)).
		Hint("git -C %s log -3 %s", repo.Root, d.Ref)
}

// free refuses a branch that is checked out in any work tree of the repository,
// or that one of them comes back to when a rebase or a bisection ends.
func (s *Store) free(ctx context.Context, repo Repo, ref string) error {
	out, _, err := s.git.run(ctx, call{args: []string{"worktree", "list", "--porcelain", "-z"}, gitDir: repo.GitDir})
	if err != nil {
		return fmt.Errorf("work trees of %s: %w", repo.Name, err)
	}
	tree := ""
	for _, line := range split(out) {
		if at, ok := strings.CutPrefix(line, "worktree "); ok {
			tree = at
		}
		if line == "branch "+ref {
			return fault.New(fault.Refused, CodeRefCheckedOut, "%s is checked out in %s", ref, tree).
				Hint("leave out --onto: a new branch is made").Hint("git -C %s worktree list", repo.Root)
		}
	}
	dirs, err := filepath.Glob(filepath.Join(escapeGlob(repo.CommonDir), "worktrees", "*"))
	if err != nil {
		return fmt.Errorf("work trees of %s: %w", repo.Name, err)
	}
	for _, dir := range append(dirs, repo.CommonDir) {
		for _, name := range []string{"rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs", "BISECT_START"} {
			raw, err := readSmall(filepath.Join(dir, name))
			if err != nil {
				continue // as a rule there is none; what cannot be read, git cannot come back to
			}
			for _, line := range strings.Fields(string(raw)) {
				if line == ref || branchRefs+line == ref {
					return fault.New(fault.Refused, CodeRefCheckedOut, "%s is in the middle of a rebase or a bisection in %s", ref, dir).
						Hint("git -C %s status", repo.Root)
				}
			}
		}
	}
	return nil
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// transfer copies a commit of our store, and what the user's does not have of it,
// into the user's. Git checks there that nothing is missing from it.
func (v *vault) transfer(ctx context.Context, commit string, parents []string, held *os.File) error {
	theirs, _, err := v.s.git.run(ctx, call{
		args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype)"}, gitDir: v.repo.GitDir,
		stdin: []byte(strings.Join(parents, "\n") + "\n"),
	})
	if err != nil {
		return err
	}
	var want bytes.Buffer
	want.WriteString(commit + "\n")
	for line := range strings.Lines(string(theirs)) {
		if id, ok := strings.CutSuffix(strings.TrimSpace(line), " commit"); ok {
			want.WriteString("^" + id + "\n")
		}
	}
	pack, err := os.CreateTemp(v.dir, "pack-*")
	if err != nil {
		return err
	}
	defer pack.Close()
	if err := os.Remove(pack.Name()); err != nil { // nothing stays of a killed process
		return err
	}
	if _, _, err := v.s.git.run(ctx, call{
		args: []string{"pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset"}, gitDir: v.git, objects: v.readable(),
		stdin: want.Bytes(), to: pack, held: []*os.File{held},
	}); err != nil {
		return v.missing(err, "collect what commit %s needs", commit)
	}
	if _, err := pack.Seek(0, 0); err != nil {
		return err
	}
	_, _, err = v.s.git.run(ctx, call{args: []string{"unpack-objects", "-q", "--strict"}, gitDir: v.repo.GitDir, from: pack})
	return err
}

// point moves the branch, and tells whether it was there already.
func (s *Store) point(ctx context.Context, repo Repo, d Delivery, commit string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, fault.Wrap(context.Cause(ctx), fault.Interrupted, "interrupted", "stopped before %s was moved", d.Ref)
	}
	old := d.Old
	if old == "" {
		old = strings.Repeat("0", len(commit))
	}
	c := call{
		args:   []string{"update-ref", "--no-deref", "-m", "proveto: deliver", d.Ref, commit, old},
		gitDir: repo.GitDir, env: commitBy{author: d.By, committer: d.By, time: d.Time}.env(), whole: true,
	}
	if !repo.Bare {
		c.settings = []string{"core.logAllRefUpdates=true"} // git's own choice there
	}
	_, _, err := s.git.run(ctx, c)
	if err == nil {
		return false, nil
	}
	if complains(err, "cannot create") || complains(err, "there are still refs") || complains(err, "Not a directory") || complains(err, "Is a directory") {
		return false, fault.Wrap(err, fault.Conflict, CodeConflict, "%s cannot be made: another branch of %s is in the way", d.Ref, repo.Name)
	}
	now, rerr := s.branch(ctx, repo, d.Ref)
	switch {
	case rerr != nil:
		return false, errors.Join(err, rerr)
	case now == commit:
		return true, nil // two made the same commit at once
	case now != d.Old:
		e := moved(repo, d, now)
		e.Err = err
		return false, e
	case complains(err, "File exists"):
		return false, fault.Wrap(err, fault.Conflict, CodeBusy, "another git works with %s of %s, or was killed while it did", d.Ref, repo.Name)
	}
	return false, unwritten(err, repo)
}

// unwritten says why the user's repository could not be written.
func unwritten(err error, repo Repo) error {
	var ge *gitError
	if !errors.As(err, &ge) {
		return err
	}
	switch {
	case complains(err, "No space left on device"), complains(err, "Disk quota exceeded"):
		return fault.Wrap(err, fault.Internal, "no_space", "%s cannot be written; its branches are as they were", repo.Objects)
	case complains(err, "ermission"), complains(err, "Read-only file system"), complains(err, "Operation not permitted"):
		return fault.Wrap(err, fault.Internal, "io", "%s cannot be written; its branches are as they were", repo.Objects).
			Hint("ls -ld %s", repo.Objects)
	}
	return fmt.Errorf("write into %s: %w", repo.Objects, err)
}
