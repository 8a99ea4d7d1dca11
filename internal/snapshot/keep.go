package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// CodeConflict says that something else is there already.
const CodeConflict fault.Code = "conflict"

// runRefs is where our own store names the snapshots of runs:
// refs/proveto/<run>/<n>.
const runRefs = "refs/proveto/"

// Keep says under which name a sealed tree becomes a commit of our own store.
type Keep struct {
	Run     string    // id of the run
	N       int       // from 1; the caller counts
	Parents []string  // commits of the user's repository, or kept ones
	Message string    // UTF-8
	Time    time.Time // of the commit; whole seconds count
}

// Kept is a tree that stays until the state directory goes: GC takes nothing
// that it names.
type Kept struct {
	Ref     string // refs/proveto/<run>/<n>, in our own store
	Commit  string
	Tree    evidence.Tree
	Parents []string
	Message string
}

// SealRun seals as [Store.Seal] does and keeps the tree as [Store.Keep] does; no
// GC comes in between.
func (s *Store) SealRun(ctx context.Context, repo Repo, o Options, k Keep) (_ Snapshot, _ Kept, err error) {
	if _, err := k.ref(); err != nil {
		return Snapshot{}, Kept{}, err
	}
	v, err := s.open(ctx, repo)
	if err != nil {
		return Snapshot{}, Kept{}, err
	}
	objects, err := v.shared(ctx)
	if err != nil {
		return Snapshot{}, Kept{}, err
	}
	defer func() { err = errors.Join(err, unlock(objects)) }()
	snap, err := s.Seal(ctx, repo, o)
	if err != nil {
		return Snapshot{}, Kept{}, err
	}
	kept, err := s.Keep(ctx, repo, snap.Tree, k)
	return snap, kept, err
}

// Keep makes a sealed tree a commit of our own store and names it
// refs/proveto/<run>/<n>. The user's repository is not written. The same again,
// whatever the time, returns what is there; another tree, other parents or
// another message under a name in use are refused with code conflict.
func (s *Store) Keep(ctx context.Context, repo Repo, tree evidence.Tree, k Keep) (_ Kept, err error) {
	ref, err := k.ref()
	if err != nil {
		return Kept{}, err
	}
	if _, err := evidence.ParseTree(string(tree)); err != nil {
		return Kept{}, err
	}
	v, err := s.open(ctx, repo)
	if err != nil {
		return Kept{}, err
	}
	objects, err := v.shared(ctx)
	if err != nil {
		return Kept{}, err
	}
	defer func() { err = errors.Join(err, unlock(objects)) }()
	held, err := lock(ctx, filepath.Join(v.dir, "lock"), syscall.LOCK_EX)
	if err != nil {
		return Kept{}, err
	}
	defer func() { err = errors.Join(err, unlock(held)) }()
	want := Kept{Ref: ref, Tree: tree, Parents: k.Parents, Message: whole(k.Message)}
	old, err := v.kept(ctx, ref)
	switch {
	case err == nil:
		want.Commit = old.Commit
		if old.Tree != want.Tree || old.Message != want.Message || !slices.Equal(old.Parents, want.Parents) {
			return Kept{}, fault.New(fault.Conflict, CodeConflict, "%s holds another snapshot, of tree %s", ref, old.Tree)
		}
		return old, nil
	case !fault.Has(err, CodeObjectMissing):
		return Kept{}, err
	}
	if want.Commit, err = v.commit(ctx, tree, k.Parents, k.Message, ownCommit(k.Time)); err != nil {
		return Kept{}, fmt.Errorf("keep %s: %w", ref, err)
	}
	if err := v.cutOff(want.Commit); err != nil {
		return Kept{}, fmt.Errorf("keep %s: %w", ref, err)
	}
	// Written as a file for the reason that vault.keep gives.
	name := filepath.Join(v.git, filepath.FromSlash(ref))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return Kept{}, fmt.Errorf("keep %s: %w", ref, err)
	}
	return want, writeFile(name, []byte(want.Commit+"\n"))
}

// KeptAt reads a kept snapshot; code object_missing when there is none.
func (s *Store) KeptAt(ctx context.Context, repo Repo, run string, n int) (Kept, error) {
	ref, err := Keep{Run: run, N: n}.ref()
	if err != nil {
		return Kept{}, err
	}
	v, err := s.open(ctx, repo)
	if err != nil {
		return Kept{}, err
	}
	return v.kept(ctx, ref)
}

func (k Keep) ref() (string, error) {
	ref := runRefs + k.Run + "/" + strconv.Itoa(k.N)
	if len(k.Run) > 128 || !anchorID().MatchString(k.Run) || k.N < 1 ||
		strings.HasPrefix(ref, keepRefs) || strings.HasPrefix(ref, anchorRefs) {
		return "", fault.New(fault.Usage, "bad_id", "%.80q and %d cannot name the snapshot of a run", k.Run, k.N)
	}
	return ref, nil
}

func (v *vault) kept(ctx context.Context, ref string) (Kept, error) {
	absent := fault.New(fault.NotFound, CodeObjectMissing, "%s is not kept for %s", ref, v.repo.Name)
	raw, err := readSmall(filepath.Join(v.git, filepath.FromSlash(ref)))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Kept{}, absent
	}
	if err != nil {
		return Kept{}, fmt.Errorf("read %s: %w", ref, err)
	}
	k := Kept{Ref: ref, Commit: strings.TrimSpace(string(raw))}
	if !objectID(k.Commit) {
		return Kept{}, fault.New(fault.Tampered, CodeObjectMissing, "%s holds no commit but %.80q", ref, k.Commit)
	}
	body, err := v.read(ctx, "cat-file", "commit", k.Commit)
	if err != nil {
		return Kept{}, v.missing(err, "read %s", ref)
	}
	head, message, ok := strings.Cut(string(body), "\n\n")
	if !ok {
		return Kept{}, fmt.Errorf("%s is no commit: %.80q", ref, body)
	}
	k.Message = message
	for line := range strings.SplitSeq(head, "\n") {
		if id, ok := strings.CutPrefix(line, "tree "); ok {
			k.Tree = evidence.Tree(id)
		} else if id, ok := strings.CutPrefix(line, "parent "); ok {
			k.Parents = append(k.Parents, id)
		}
	}
	return k, nil
}

// cutOff lets git take a commit of ours for the first of its history. Its
// parents are the user's; gc would walk through all that they ever committed,
// and stop for good once that was rewritten. Who adds a line holds the lock.
func (v *vault) cutOff(commit string) error {
	name := filepath.Join(v.git, "shallow")
	raw, err := os.ReadFile(name)
	if ignoreMissing(err) != nil {
		return err
	}
	if slices.Contains(strings.Fields(string(raw)), commit) {
		return nil
	}
	return writeFile(name, append(raw, commit+"\n"...))
}

// commitBy is who a commit says made it, and when.
type commitBy struct {
	author, committer Person
	time              time.Time
}

func ownCommit(at time.Time) commitBy {
	p := Person{Name: "Proveto", Email: "proveto@localhost"}
	return commitBy{author: p, committer: p, time: at}
}

func (by commitBy) env() []string {
	at := fmt.Sprintf("@%d %s", by.time.Unix(), by.time.Format("-0700"))
	return []string{
		"GIT_AUTHOR_NAME=" + by.author.Name, "GIT_AUTHOR_EMAIL=" + by.author.Email, "GIT_AUTHOR_DATE=" + at,
		"GIT_COMMITTER_NAME=" + by.committer.Name, "GIT_COMMITTER_EMAIL=" + by.committer.Email, "GIT_COMMITTER_DATE=" + at,
	}
}

// commit writes a commit into our own store: the same values give the same id.
func (v *vault) commit(ctx context.Context, tree evidence.Tree, parents []string, message string, by commitBy) (string, error) {
	if !utf8.ValidString(message) || strings.ContainsRune(message, 0) {
		return "", fault.New(fault.Usage, "bad_utf8", "the message of a commit is no UTF-8 text")
	}
	args := []string{"commit-tree", "-F", "-"}
	for i, p := range parents {
		if !objectID(p) || slices.Contains(parents[:i], p) {
			return "", fault.New(fault.Internal, "internal", "%q cannot be parent %d of a commit", p, i+1)
		}
		args = append(args, "-p", p)
	}
	out, _, err := v.s.git.run(ctx, call{
		args: append(args, string(tree)), gitDir: v.git, objects: v.readable(), stdin: []byte(whole(message)), env: by.env(),
	})
	if err != nil {
		return "", v.missing(err, "commit tree %s", tree)
	}
	return strings.TrimSpace(string(out)), nil
}

// whole ends a text with the end of a line, as git does with a message.
func whole(message string) string {
	if message != "" && !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	return message
}

// objectID tells the full id of an object.
func objectID(id string) bool {
	_, err := evidence.ParseTree(id)
	return err == nil
}
