package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/proveto/proveto/internal/evidence"
)

// Edit is one path of a tree that is made from another one. Without Mode the path
// is removed. Blob names a content that the stores have; empty: Content is it.
type Edit struct {
	Path    string
	Mode    Mode
	Blob    string
	Content []byte
}

// Compose seals the tree that the edits make of another one, and keeps it until
// GC. No working copy is involved, and nothing of the user's is written. Without
// an edit that changes something the result is the tree itself.
func (s *Store) Compose(ctx context.Context, repo Repo, tree evidence.Tree, edits []Edit) (_ evidence.Tree, err error) {
	if _, err := evidence.ParseTree(string(tree)); err != nil {
		return "", err
	}
	v, err := s.open(ctx, repo)
	if err != nil {
		return "", err
	}
	objects, err := v.shared(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock(objects)) }()
	dir, err := os.MkdirTemp(v.dir, "compose-")
	if err != nil {
		return "", fmt.Errorf("compose a tree: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	run := func(stdin []byte, writes bool, args ...string) ([]byte, error) {
		// Commands that write objects get no sight of the user's; see [work.run].
		c := call{args: args, gitDir: v.git, workTree: dir, index: filepath.Join(dir, "index"), stdin: stdin, held: []*os.File{objects}}
		if !writes {
			c.objects = v.readable()
		}
		out, _, err := s.git.run(ctx, c)
		return out, err
	}
	if _, err := run(nil, false, "read-tree", string(tree)); err != nil {
		return "", v.missing(err, "read tree %s", tree)
	}
	var lines []string
	for _, e := range edits {
		if e.Mode == "" {
			lines = append(lines, "0 "+strings.Repeat("0", len(tree))+"\t"+e.Path)
			continue
		}
		if e.Blob == "" {
			out, err := run(e.Content, true, "hash-object", "-w", "--no-filters", "--stdin")
			if err != nil {
				return "", fmt.Errorf("write %q: %w", e.Path, err)
			}
			e.Blob = strings.TrimSpace(string(out))
		}
		lines = append(lines, string(e.Mode)+" "+e.Blob+"\t"+e.Path)
	}
	if _, err := run(joinZ(lines), true, "update-index", "-z", "--index-info"); err != nil {
		return "", fmt.Errorf("edit %d paths of tree %s: %w", len(edits), tree, err)
	}
	out, err := run(nil, true, "write-tree", "--missing-ok")
	if err != nil {
		return "", fmt.Errorf("write the tree: %w", err)
	}
	made, err := evidence.ParseTree(strings.TrimSpace(string(out)))
	if err != nil {
		return "", err
	}
	held, err := lock(ctx, filepath.Join(v.dir, "lock"), syscall.LOCK_EX)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock(held)) }()
	return made, v.keep(made)
}
