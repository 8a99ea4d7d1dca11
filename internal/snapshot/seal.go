package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// Options say what to seal.
type Options struct {
	Rev string // a revision; empty: the working copy, or HEAD of a bare repository

	// Gitlinks seals submodules and repositories nested in the work tree as git
	// records them: a reference to the commit that is checked out there. A tree that
	// shall become a commit of the user's needs that.
	Gitlinks bool
}

// Snapshot is a sealed tree and where it came from. Only Tree identifies it.
type Snapshot struct {
	Repo    Repo
	Tree    evidence.Tree
	Base    evidence.Tree // HEAD's tree with initialised submodules in place; empty without a commit
	Commit  string        // the sealed revision, or HEAD under the working copy; empty when unborn
	Branch  string        // empty when detached, when a revision was named and without git
	Dirty   bool          // the working copy differs from Base
	Changed []Change      // from Base to Tree; everything when unborn; nil without git and for a revision
	Notes   []string      // what a reader should know: what is missing, what was left out
}

// Seal freezes the working copy, or a revision, into a tree of our own object
// store and keeps it until GC. Nothing of the user's is written. Tracked files
// are taken whatever .gitignore says, others unless a .gitignore of the tree
// excludes them; global and private excludes do not count, so that two machines
// agree. Bytes are taken as they are: no attribute changes them. Files of
// initialised submodules and of nested repositories are sealed as plain files.
func (s *Store) Seal(ctx context.Context, repo Repo, o Options) (_ Snapshot, err error) {
	v, err := s.open(ctx, repo)
	if err != nil {
		return Snapshot{}, err
	}
	objects, err := v.shared(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { err = errors.Join(err, unlock(objects)) }()
	index, err := lock(ctx, filepath.Join(v.dir, "lock"), syscall.LOCK_EX)
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { err = errors.Join(err, unlock(index)) }()
	snap := Snapshot{Repo: repo, Notes: append([]string(nil), repo.Notes...)}
	w := &work{vault: v, repo: repo, root: repo.Root, gitlinks: o.Gitlinks, notes: &snap.Notes, held: []*os.File{objects, index}}
	if repo.Git() && (repo.Bare || o.Rev != "") {
		err = w.sealRevision(ctx, o.Rev, &snap)
	} else if o.Rev != "" {
		err = fault.New(fault.Refused, CodeNoRepository, "%s is not a git repository and has no revision %q", repo.Root, o.Rev)
	} else {
		err = w.sealCopy(ctx, &snap)
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("seal %s: %w", repo.Name, err)
	}
	if err := v.keep(snap.Tree); err != nil {
		return Snapshot{}, err
	}
	if snap.Base != "" && snap.Base != snap.Tree {
		if err := v.keep(snap.Base); err != nil {
			return Snapshot{}, err
		}
	}
	return snap, nil
}

func (w *work) sealRevision(ctx context.Context, rev string, snap *Snapshot) error {
	named := rev
	if rev == "" {
		named = "HEAD"
	}
	commit, err := w.s.ResolveCommit(ctx, w.repo, named)
	if err != nil {
		return err
	}
	snap.Commit = commit
	if rev == "" {
		snap.Branch = w.repo.Branch
	}
	tree, err := w.treeOf(ctx, commit)
	if err != nil {
		return err
	}
	if w.gitlinks {
		snap.Tree, snap.Base = tree, tree
		return nil
	}
	links, err := w.links(ctx, tree)
	if err != nil {
		return err
	}
	if snap.Tree, err = w.graftRevision(ctx, tree, links); err != nil {
		return err
	}
	snap.Base = snap.Tree
	return nil
}

func (w *work) sealCopy(ctx context.Context, snap *Snapshot) error {
	at, err := w.s.head(ctx, w.repo)
	if err != nil {
		return err
	}
	snap.Commit, snap.Branch = at.commit, at.branch
	if !w.repo.Git() {
		w.note("not a git repository: the directory itself is sealed")
	}
	if snap.Tree, snap.Base, err = w.seal(ctx, at); err != nil {
		return err
	}
	snap.Repo.Head, snap.Repo.Branch = snap.Commit, snap.Branch
	if !w.repo.Git() {
		return nil
	}
	if snap.Dirty = snap.Tree != snap.Base; !snap.Dirty {
		return nil
	}
	snap.Changed, err = w.diff(ctx, snap.Base, snap.Tree)
	return err
}

// work seals one work tree: the outermost, or one nested in it.
type work struct {
	*vault
	repo  Repo // of this work tree; without git: a plain directory
	root  string
	at    string // path below the outermost root, for notes
	depth int

	gitlinks bool // see Options

	notes *[]string
	held  []*os.File
}

func (w *work) note(format string, args ...any) {
	*w.notes = append(*w.notes, fmt.Sprintf(format, args...))
}

// run is one git process on our store. Commands that write objects get no sight
// of the user's: git refreshes the time stamps of objects that it finds there.
func (w *work) run(ctx context.Context, index string, stdin []byte, writes bool, args ...string) ([]byte, error) {
	c := call{args: args, gitDir: w.vault.git, workTree: w.root, index: index, stdin: stdin, held: w.held}
	if !writes {
		c.objects = w.readable()
	}
	out, _, err := w.s.git.run(ctx, c)
	return out, err
}

// treeOf is the tree of a commit.
func (w *work) treeOf(ctx context.Context, commit string) (evidence.Tree, error) {
	out, err := w.read(ctx, "rev-parse", "-q", "--verify", commit+"^{tree}")
	if err != nil {
		return "", fault.Wrap(err, fault.Unmeasured, CodeObjectMissing, "commit %s cannot be read", commit).
			Hint("git -C %s fsck", w.root)
	}
	return evidence.ParseTree(strings.TrimSpace(string(out)))
}

// index is the private index of this work tree; it lives on so that the next
// seal reads only what changed.
func (w *work) index() string {
	return filepath.Join(w.dir, "index-"+evidence.DigestParts(w.root).Hex()[:24])
}

// seal returns the tree of this work tree and the tree of its commit.
func (w *work) seal(ctx context.Context, at position) (tree, base evidence.Tree, err error) {
	idx := w.index()
	if err := ignoreMissing(os.Remove(idx + ".lock")); err != nil { // of a killed git; the lock is ours
		return "", "", err
	}
	w.learn(w.repo.Objects)
	if at.commit != "" {
		if base = at.tree; base == "" {
			if base, err = w.treeOf(ctx, at.commit); err != nil {
				return "", "", err
			}
		}
		if err := w.start(ctx, idx, base); err != nil {
			return "", "", err
		}
	}
	found, err := w.scan(ctx, idx, base)
	if err != nil && ctx.Err() == nil {
		// Once more with a new index: power may have been lost while git wrote it.
		if err := w.restart(ctx, idx, base); err != nil {
			return "", "", err
		}
		found, err = w.scan(ctx, idx, base)
	}
	if err != nil {
		return "", "", err
	}
	changed, err := w.apply(ctx, idx, base, found)
	if err != nil {
		return "", "", err
	}
	if !changed && base != "" {
		if err := writeFile(atFile(idx), []byte(base)); err != nil {
			return "", "", err
		}
	}
	sealedBase := base
	if base != "" && len(found.links) > 0 && !w.gitlinks {
		if sealedBase, err = w.graftRevision(ctx, base, found.links); err != nil {
			return "", "", err
		}
	}
	if len(found.links)+len(found.nested) > 0 {
		tree, err = w.graftNested(ctx, idx, found)
	} else if base != "" && !changed {
		tree = base
	} else {
		tree, err = w.writeTree(ctx, idx)
	}
	return tree, sealedBase, err
}

// atFile holds the tree that an index is exactly at; absent when unknown.
func atFile(idx string) string { return idx + "-at" }

// start moves the index to the commit's tree. Entries that stay the same keep
// what git knows of their files.
func (w *work) start(ctx context.Context, idx string, base evidence.Tree) error {
	at, err := os.ReadFile(atFile(idx))
	if _, serr := os.Lstat(idx); serr == nil && err == nil && string(at) == string(base) {
		return nil
	}
	if err := ignoreMissing(os.Remove(atFile(idx))); err != nil {
		return err
	}
	if _, err := w.run(ctx, idx, nil, false, "read-tree", "-m", string(base)); err == nil || ctx.Err() != nil {
		return err
	}
	return w.restart(ctx, idx, base)
}

// restart makes the index anew.
func (w *work) restart(ctx context.Context, idx string, base evidence.Tree) error {
	if err := errors.Join(ignoreMissing(os.Remove(atFile(idx))), ignoreMissing(os.Remove(idx))); err != nil {
		return err
	}
	if base == "" {
		return nil
	}
	if _, err := w.run(ctx, idx, nil, false, "read-tree", string(base)); err != nil {
		return w.missing(err, "read tree %s", base)
	}
	return nil
}

func (w *work) writeTree(ctx context.Context, idx string) (evidence.Tree, error) {
	// Blobs that are only the user's are out of sight here, hence missing-ok.
	out, err := w.run(ctx, idx, nil, true, "write-tree", "--missing-ok")
	if err != nil {
		return "", fmt.Errorf("write the tree: %w", err)
	}
	return evidence.ParseTree(strings.TrimSpace(string(out)))
}

// findings are what a work tree holds, against its private index.
type findings struct {
	update []string // new or different bytes
	remove []string
	nested []string          // directories that are repositories and not in the index
	links  map[string]string // gitlinks of the commit: path to commit
}

// scan compares files with the index. It writes no object.
func (w *work) scan(ctx context.Context, idx string, base evidence.Tree) (findings, error) {
	var differ, others, staged, mine []byte
	var errs [4]error
	var wg sync.WaitGroup
	wg.Go(func() { differ, errs[0] = w.differing(ctx, idx) })
	wg.Go(func() {
		others, errs[1] = w.run(ctx, idx, nil, false, "ls-files", "-z", "--others", "--exclude-standard")
	})
	wg.Go(func() { staged, errs[2] = w.run(ctx, idx, nil, false, "ls-files", "-z", "--stage") })
	wg.Go(func() { mine = w.userIndex(ctx) })
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return findings{}, unreadable(err, w.root)
	}
	f := findings{links: map[string]string{}}
	known := map[string]bool{}
	entries, err := parseListing(staged)
	if err != nil {
		return f, err
	}
	for _, e := range entries {
		known[e.Path] = true
		if e.Mode == Submodule {
			f.links[e.Path] = e.Blob
		}
	}
	for _, p := range split(others) {
		if dir, ok := strings.CutSuffix(p, "/"); ok {
			f.nested = append(f.nested, dir)
		} else if !w.ours(p) {
			f.update = append(f.update, p)
		}
		known[p] = true
	}
	if base == "" {
		if f.remove, err = w.ignored(ctx, idx); err != nil {
			return f, err
		}
		for _, p := range f.remove {
			delete(known, p)
		}
	}
	forced, sparse, err := w.readUserIndex(mine, known)
	if err != nil {
		return f, err
	}
	changes, err := parseRaw(differ)
	if err != nil {
		return f, err
	}
	if err := w.sort(changes, sparse, &f); err != nil {
		return f, err
	}
	f.update = append(f.update, forced...)
	return f, nil
}

// ours tells whether a path below the root is our own state or cache.
func (w *work) ours(path string) bool {
	abs := filepath.Join(w.root, path)
	return within(abs, w.s.state) || within(abs, w.s.cache)
}

// differing lists the tracked files whose bytes or kind differ from the index.
// Files whose time stamps alone differ are read once and then known again.
func (w *work) differing(ctx context.Context, idx string) ([]byte, error) {
	list := []string{"diff-files", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", "--ignore-submodules=all"}
	out, err := w.run(ctx, idx, nil, false, list...)
	if err != nil || len(out) == 0 {
		return out, err
	}
	if _, _, err := w.s.git.run(ctx, call{
		args: []string{"update-index", "-q", "--refresh"}, gitDir: w.vault.git, workTree: w.root, index: idx,
		objects: w.readable(), held: w.held, answers: []int{1},
	}); err != nil {
		return nil, err
	}
	return w.run(ctx, idx, nil, false, list...)
}

// sort tells changed files from missing ones. A missing file that the user's
// sparse checkout leaves out stays as committed.
func (w *work) sort(changes []Change, sparse map[string]bool, f *findings) error {
	left := 0
	for _, c := range changes {
		if c.OldMode == Submodule {
			continue
		}
		kind, err := kindOf(w.root, c.Path)
		switch {
		case err != nil:
			return fault.Wrap(err, fault.Unmeasured, CodeUnreadable, "%q cannot be read", c.Path)
		case kind == plain:
			f.update = append(f.update, c.Path)
		case kind == absent && sparse[c.Path]:
			left++
		default:
			if kind == special {
				w.note("%q is neither a file, a symlink nor a directory and is left out", filepath.Join(w.at, c.Path))
			}
			f.remove = append(f.remove, c.Path)
		}
	}
	if left > 0 {
		w.note("%d files outside the sparse checkout are taken from the commit", left)
	}
	return nil
}

type kind int

const (
	absent kind = iota
	plain       // a regular file or a symlink
	special
)

// kindOf says what is at a path; a path beyond a symlink is absent, as it is
// for git.
func kindOf(root, path string) (kind, error) {
	at := root
	parts := strings.Split(path, "/")
	for i, part := range parts {
		at = filepath.Join(at, part)
		st, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return absent, nil
		case err != nil:
			return absent, err
		case i < len(parts)-1:
			if !st.IsDir() {
				return absent, nil
			}
		case st.IsDir():
			return absent, nil
		case st.Mode().IsRegular() || st.Mode()&fs.ModeSymlink != 0:
			return plain, nil
		}
	}
	return special, nil
}

// userIndex lists the user's own index, read only; nil when there is none. It
// tells which ignored files were added by force and which a sparse checkout
// leaves out; it never tells what a file holds.
func (w *work) userIndex(ctx context.Context) []byte {
	if !w.repo.Git() {
		return nil
	}
	if _, err := os.Stat(filepath.Join(w.repo.GitDir, "index")); err != nil {
		return nil
	}
	out, _, err := w.s.git.run(ctx, call{
		args: []string{"ls-files", "-z", "-t", "--stage"}, gitDir: w.repo.GitDir, workTree: w.root, held: w.held,
	})
	if err != nil {
		w.note("the index of %s cannot be read and is not considered: %v", w.repo.Name, err)
		return nil
	}
	return out
}

// readUserIndex returns the files that only the index makes known, and those
// that it leaves out of the work tree.
func (w *work) readUserIndex(raw []byte, known map[string]bool) (forced []string, sparse map[string]bool, err error) {
	sparse = map[string]bool{}
	_, serr := os.Stat(filepath.Join(w.repo.GitDir, "info", "sparse-checkout"))
	isSparse := len(raw) > 0 && serr == nil
	for _, rec := range split(raw) {
		tag, rest, ok1 := strings.Cut(rec, " ")
		head, path, ok2 := strings.Cut(rest, "\t")
		if !ok1 || !ok2 {
			return nil, nil, fmt.Errorf("git's index listing does not parse at %.80q", rec)
		}
		if isSparse && strings.EqualFold(tag, "S") {
			sparse[path] = true
		}
		if known[path] || strings.HasPrefix(head, string(Submodule)) {
			continue
		}
		known[path] = true
		k, err := kindOf(w.root, path)
		if err != nil {
			return nil, nil, fault.Wrap(err, fault.Unmeasured, CodeUnreadable, "%q cannot be read", path)
		}
		if k == plain {
			forced = append(forced, path)
		}
	}
	return forced, sparse, nil
}

// ignored lists files of an earlier seal that a .gitignore excludes by now.
// Without a commit nothing is tracked but what was added by force.
func (w *work) ignored(ctx context.Context, idx string) ([]string, error) {
	raw, err := w.run(ctx, idx, nil, false, "ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
	if err != nil {
		return nil, unreadable(err, w.root)
	}
	return split(raw), nil
}

// apply brings the index to what the work tree holds and tells whether that
// differs from the commit.
func (w *work) apply(ctx context.Context, idx string, base evidence.Tree, f findings) (bool, error) {
	if len(f.remove)+len(f.update) > 0 {
		if err := ignoreMissing(os.Remove(atFile(idx))); err != nil {
			return false, err
		}
	}
	if len(f.remove) > 0 {
		if err := w.forget(ctx, idx, f.remove); err != nil {
			return false, err
		}
	}
	if len(f.update) > 0 {
		sort.Strings(f.update)
		_, err := w.run(ctx, idx, joinZ(f.update), true, "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
		if err != nil {
			return false, unreadable(err, w.root)
		}
	}
	return len(f.remove)+len(f.update) > 0, nil
}

// forget removes paths from the index.
func (w *work) forget(ctx context.Context, idx string, paths []string) error {
	zero := strings.Repeat("0", 40)
	if w.vault.repo.Format == "sha256" {
		zero = strings.Repeat("0", 64)
	}
	lines := make([]string, len(paths))
	for i, p := range paths {
		lines[i] = "0 " + zero + "\t" + p
	}
	_, err := w.run(ctx, idx, joinZ(lines), true, "update-index", "-z", "--index-info")
	if err != nil {
		return fmt.Errorf("forget %d paths: %w", len(paths), err)
	}
	return nil
}

// unreadable says which of the user's files stopped git.
func unreadable(err error, root string) error {
	var ge *gitError
	if !errors.As(err, &ge) {
		return err
	}
	if complains(err, "nvalid path") {
		return fault.Wrap(err, fault.Refused, CodeBadPath, "%s holds a name that git refuses", root)
	}
	return fault.Wrap(err, fault.Unmeasured, CodeUnreadable, "the files of %s cannot be read", root)
}
