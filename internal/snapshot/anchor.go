package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/late"
)

// anchorRefs is where anchors are in the user's repository, the only refs that
// are ever written there.
const anchorRefs = "refs/proveto/anchor/"

// anchorFile is the one file of an anchor's commit.
const anchorFile = "anchor"

// A bound of 128 in the expression would cost each start of the program 4 ms.
var anchorID = late.Regexp(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// Anchor is the latest content under one anchor's name.
type Anchor struct {
	Commit  string
	Content []byte
}

func anchorRef(repo Repo, id string) (string, error) {
	if len(id) > 128 || !anchorID().MatchString(id) {
		return "", fault.New(fault.Usage, "bad_id", "%.80q cannot name an anchor", id)
	}
	if !repo.Git() {
		return "", fault.New(fault.Refused, CodeNoRepository, "%s is not a git repository and cannot hold an anchor", repo.Root)
	}
	return anchorRefs + id, nil
}

// ReadAnchor reads an anchor of the user's repository; code anchor_missing when
// there is none.
func (s *Store) ReadAnchor(ctx context.Context, repo Repo, id string) (Anchor, error) {
	ref, err := anchorRef(repo, id)
	if err != nil {
		return Anchor{}, err
	}
	out, code, err := s.git.run(ctx, call{args: []string{"rev-parse", "-q", "--verify", ref}, gitDir: repo.GitDir, answers: []int{1}})
	if err != nil {
		return Anchor{}, fmt.Errorf("read anchor %s: %w", id, err)
	}
	if code == 1 {
		return Anchor{}, fault.New(fault.NotFound, CodeAnchorMissing, "%s has no anchor %s", repo.Name, id)
	}
	a := Anchor{Commit: strings.TrimSpace(string(out))}
	a.Content, _, err = s.git.run(ctx, call{args: []string{"cat-file", "blob", a.Commit + ":" + anchorFile}, gitDir: repo.GitDir})
	if err != nil {
		return Anchor{}, fault.Wrap(err, fault.Tampered, CodeObjectMissing, "anchor %s of %s holds no content", id, repo.Name)
	}
	return a, nil
}

// Anchor writes content as a commit on top of old and moves the anchor's ref to
// it, in the user's repository. Old is the commit that the caller read before,
// empty for a new anchor; when the ref has moved since, nothing changes and the
// error has code anchor_moved. It returns the new commit. The same content again
// changes nothing.
func (s *Store) Anchor(ctx context.Context, repo Repo, id, old string, content []byte) (string, error) {
	ref, err := anchorRef(repo, id)
	if err != nil {
		return "", err
	}
	now, err := s.ReadAnchor(ctx, repo, id)
	switch {
	case fault.Has(err, CodeAnchorMissing):
	case err != nil:
		return "", err
	}
	moved := fault.New(fault.Conflict, CodeAnchorMoved, "anchor %s of %s is at %q, not at %q", id, repo.Name, now.Commit, old)
	if now.Commit != old {
		return "", moved
	}
	if old != "" && bytes.Equal(now.Content, content) {
		return old, nil
	}
	commit, err := s.anchorCommit(ctx, repo, old, content)
	if err != nil {
		return "", fmt.Errorf("write anchor %s: %w", id, err)
	}
	expect := old
	if expect == "" {
		expect = strings.Repeat("0", len(commit))
	}
	if _, _, err := s.git.run(ctx, call{args: []string{"update-ref", "--no-deref", ref, commit, expect}, gitDir: repo.GitDir}); err != nil {
		if complains(err, "but expected") || complains(err, "already exists") || complains(err, "cannot lock ref") {
			moved.Err = err
			return "", moved
		}
		return "", fmt.Errorf("write anchor %s: %w", id, err)
	}
	return commit, nil
}

func (s *Store) anchorCommit(ctx context.Context, repo Repo, parent string, content []byte) (string, error) {
	one := func(stdin []byte, args ...string) (string, error) {
		if stdin == nil {
			stdin = []byte{}
		}
		out, _, err := s.git.run(ctx, call{args: args, gitDir: repo.GitDir, stdin: stdin})
		return strings.TrimSpace(string(out)), err
	}
	blob, err := one(content, "hash-object", "-w", "--stdin", "--no-filters")
	if err != nil {
		return "", err
	}
	tree, err := one([]byte("100644 blob "+blob+"\t"+anchorFile+"\x00"), "mktree", "-z")
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", "-m", "Proveto anchor", tree}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return one(nil, args...)
}
