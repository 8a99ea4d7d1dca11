package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// maxDepth bounds repositories nested in each other.
const maxDepth = 16

// graftNested seals the repositories below this work tree and returns the tree
// with their files at their paths. It works on a copy of the index: the private
// index itself knows the files of this work tree only.
func (w *work) graftNested(ctx context.Context, idx string, f findings) (evidence.Tree, error) {
	whole := idx + "-whole"
	if err := copyIndex(idx, whole); err != nil {
		return "", err
	}
	paths := slices.Clone(f.nested)
	for p := range f.links {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		_, linked := f.links[p]
		if w.gitlinks {
			done, err := w.relink(ctx, whole, p, f.links[p])
			if err != nil {
				return "", err
			}
			if done {
				continue
			}
		}
		there, err := holdsFiles(filepath.Join(w.root, p))
		if err != nil {
			return "", fault.Wrap(err, fault.Unmeasured, CodeUnreadable, "%q cannot be read", path.Join(w.at, p))
		}
		if !there {
			if linked {
				w.note("submodule %q is not initialised and is left out", path.Join(w.at, p))
			}
			continue
		}
		inner, err := w.enter(ctx, p)
		if err != nil {
			return "", err
		}
		if !linked {
			w.note("the nested repository %q is sealed as plain files", inner.at)
		}
		tree, _, err := inner.seal(ctx, position{commit: inner.repo.Head})
		if err != nil {
			return "", fmt.Errorf("nested repository %q: %w", inner.at, err)
		}
		if err := w.graft(ctx, whole, p, tree); err != nil {
			return "", err
		}
	}
	tree, err := w.writeTree(ctx, whole)
	if err != nil {
		return "", err
	}
	return tree, os.Remove(whole)
}

// relink records at a path what git would: the commit that is checked out in the
// repository there, in place of the one linked, if any. False: the path holds a
// repository without a commit, which git cannot record.
func (w *work) relink(ctx context.Context, whole, p, linked string) (bool, error) {
	at := path.Join(w.at, p)
	st, err := os.Lstat(filepath.Join(w.root, p))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return true, w.forget(ctx, whole, []string{p})
	case err != nil:
		return false, fault.Wrap(err, fault.Unmeasured, CodeUnreadable, "%q cannot be read", at)
	case !st.IsDir():
		_, err := w.run(ctx, whole, joinZ([]string{p}), true, "update-index", "--add", "--replace", "-z", "--stdin")
		if err != nil {
			return false, unreadable(err, w.root)
		}
		return true, nil
	}
	repo, found, err := w.s.locateAt(ctx, filepath.Join(w.root, p))
	var ge *gitError
	if err != nil && !errors.As(err, &ge) {
		return false, err
	}
	if err != nil || !found || repo.Head == "" || repo.Format != w.vault.repo.Format {
		if there, err := holdsFiles(filepath.Join(w.root, p)); err == nil && there && linked != "" {
			w.note("the files of submodule %q are left out: no repository with a commit is there", at)
		}
		return linked != "", nil
	}
	w.note("%q is sealed as its commit %s: changes inside that are not committed there are not in it", at, repo.Head)
	if repo.Head == linked {
		return true, nil
	}
	_, err = w.run(ctx, whole, []byte(string(Submodule)+" "+repo.Head+"\t"+p+"\x00"), true, "update-index", "-z", "--index-info")
	if err != nil {
		return false, fmt.Errorf("record %q: %w", at, err)
	}
	return true, nil
}

// copyIndex starts a second index where the first is; both are ours alone.
func copyIndex(from, to string) error {
	for _, stale := range []string{to, to + ".lock"} {
		if err := ignoreMissing(os.Remove(stale)); err != nil {
			return err
		}
	}
	body, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy the private index: %w", err)
	}
	return os.WriteFile(to, body, 0o600)
}

func holdsFiles(dir string) (bool, error) {
	if st, err := os.Lstat(dir); err == nil && !st.IsDir() {
		return false, nil
	}
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return len(list) > 0, err
}

// enter prepares a nested work tree. One whose git directory cannot be used, or
// has another object format, is a plain directory.
func (w *work) enter(ctx context.Context, p string) (*work, error) {
	inner := &work{vault: w.vault, root: filepath.Join(w.root, p), at: path.Join(w.at, p), depth: w.depth + 1, notes: w.notes, held: w.held}
	if inner.depth > maxDepth {
		return nil, fault.New(fault.Refused, CodeBadPath, "repositories are nested deeper than %d at %q", maxDepth, inner.at)
	}
	repo, found, err := w.s.locateAt(ctx, inner.root)
	var ge *gitError
	switch {
	case errors.As(err, &ge):
		w.note("the git directory of %q is not usable; its files are sealed without it", inner.at)
	case err != nil:
		return nil, err
	case found && repo.Bare:
		// Its files are the objects themselves: plain files to us.
	case found && repo.Format != w.vault.repo.Format:
		w.note("%q uses object format %s; its files are sealed without its history", inner.at, repo.Format)
	case found:
		inner.repo = repo
		if w.learn(repo.Objects) {
			return inner, w.remember()
		}
	}
	return inner, nil
}

// graft puts a tree at a path of the index, in place of a gitlink.
func (w *work) graft(ctx context.Context, idx, p string, tree evidence.Tree) error {
	if err := w.forget(ctx, idx, []string{p}); err != nil {
		return err
	}
	if _, err := w.run(ctx, idx, nil, false, "read-tree", "--prefix="+p+"/", string(tree)); err != nil {
		return fmt.Errorf("put %q in its place: %w", path.Join(w.at, p), err)
	}
	return nil
}

// links lists the gitlinks of a tree.
func (w *work) links(ctx context.Context, tree evidence.Tree) (map[string]string, error) {
	files, err := w.files(ctx, tree)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		if f.Mode == Submodule {
			out[f.Path] = f.Blob
		}
	}
	return out, nil
}

// graftRevision puts the recorded commits of initialised submodules in place of
// their gitlinks, so that a revision and a working copy compare file by file.
func (w *work) graftRevision(ctx context.Context, tree evidence.Tree, links map[string]string) (evidence.Tree, error) {
	if len(links) == 0 {
		return tree, nil
	}
	idx := w.index() + "-base"
	for _, stale := range []string{idx, idx + ".lock"} {
		if err := ignoreMissing(os.Remove(stale)); err != nil {
			return "", err
		}
	}
	if _, err := w.run(ctx, idx, nil, false, "read-tree", string(tree)); err != nil {
		return "", w.missing(err, "read tree %s", tree)
	}
	paths := make([]string, 0, len(links))
	for p := range links {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range paths {
		sub, ok, err := w.submoduleTree(ctx, p, links[p])
		if err != nil {
			return "", err
		}
		if !ok {
			continue
		}
		if err := w.graft(ctx, idx, p, sub); err != nil {
			return "", err
		}
	}
	out, err := w.writeTree(ctx, idx)
	if err != nil {
		return "", err
	}
	return out, ignoreMissing(os.Remove(idx))
}

// submoduleTree is the tree of a submodule's recorded commit, when it is here.
func (w *work) submoduleTree(ctx context.Context, p, commit string) (evidence.Tree, bool, error) {
	there := false
	if !w.repo.Bare {
		var err error
		if there, err = holdsFiles(filepath.Join(w.root, p)); err != nil {
			return "", false, fault.Wrap(err, fault.Unmeasured, CodeUnreadable, "%q cannot be read", path.Join(w.at, p))
		}
	}
	if !there {
		w.noteOnce("submodule %q is not initialised and is left out", path.Join(w.at, p))
		return "", false, nil
	}
	inner, err := w.enter(ctx, p)
	if err != nil {
		return "", false, err
	}
	tree, err := inner.treeOf(ctx, commit)
	if err != nil {
		if ctx.Err() != nil {
			return "", false, err
		}
		w.noteOnce("submodule %q does not have its recorded commit %s", inner.at, commit)
		return "", false, nil
	}
	links, err := inner.links(ctx, tree)
	if err != nil {
		return "", false, err
	}
	tree, err = inner.graftRevision(ctx, tree, links)
	return tree, err == nil, err
}

func (w *work) noteOnce(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(*w.notes, text) {
		*w.notes = append(*w.notes, text)
	}
}
