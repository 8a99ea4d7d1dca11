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
	"sync"
	"syscall"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// Checkout is a tree on disk, held by this process until Release or until the
// process is gone.
type Checkout struct {
	v    *vault
	tree evidence.Tree
	slot string
	held *os.File // the slot's lock
	gc   *os.File // keeps the objects for as long
	once sync.Once
	err  error
}

// Dir is the root of the checked-out tree. It is the same for every tree that
// uses this slot. It holds no git directory.
func (c *Checkout) Dir() string { return filepath.Join(c.slot, "src") }

// Tree is what was checked out.
func (c *Checkout) Tree() evidence.Tree { return c.tree }

// The files of a slot. tree is present only while src holds exactly that tree;
// it is removed before src is touched and written after src was verified.
func (c *Checkout) index() string  { return filepath.Join(c.slot, "index") }
func (c *Checkout) record() string { return filepath.Join(c.slot, "tree") }

// Checkout puts a sealed tree on disk. It prefers a free slot that holds the
// tree already; in another only the files that differ are written. Whatever
// somebody left in the slot is removed, and what an interrupted update left is
// repaired. Trees with names that cannot be checked out faithfully are refused
// with code bad_path or path_collision.
func (s *Store) Checkout(ctx context.Context, repo Repo, tree evidence.Tree) (*Checkout, error) {
	v, err := s.open(ctx, repo)
	if err != nil {
		return nil, err
	}
	objects, err := v.shared(ctx)
	if err != nil {
		return nil, err
	}
	c := &Checkout{v: v, tree: tree, gc: objects}
	if err := c.fill(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("check out tree %s of %s: %w", tree, repo.Name, err), c.free())
	}
	return c, nil
}

func (c *Checkout) fill(ctx context.Context) error {
	files, err := c.v.files(ctx, c.tree)
	if err != nil {
		return err
	}
	if err := checkNames(files); err != nil {
		return err
	}
	if err := c.take(); err != nil {
		return fmt.Errorf("find a slot: %w", err)
	}
	return c.restore(ctx, files)
}

// free gives the locks back.
func (c *Checkout) free() error {
	var err error
	if c.held != nil {
		err = unlock(c.held)
	}
	return errors.Join(err, unlock(c.gc))
}

// take locks a slot: one with the tree, else the first free one, else a new one.
func (c *Checkout) take() error {
	base := filepath.Join(c.v.s.cache, c.v.repo.ID)
	if err := os.MkdirAll(base, 0o700); err != nil {
		return err
	}
	slots, err := slotsOf(base)
	if err != nil {
		return err
	}
	for _, wanted := range []bool{true, false} {
		for _, n := range slots {
			slot := filepath.Join(base, strconv.Itoa(n))
			if wanted != (recorded(slot) == c.tree) {
				continue
			}
			if ok, err := c.hold(slot); ok || err != nil {
				return err
			}
		}
	}
	for n := 0; ; n++ {
		slot := filepath.Join(base, strconv.Itoa(n))
		err := os.Mkdir(slot, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if ok, err := c.hold(slot); ok || err != nil {
			return err
		}
	}
}

// hold takes the slot's lock if it is free.
func (c *Checkout) hold(slot string) (bool, error) {
	f, err := tryLock(filepath.Join(slot, "lock"), syscall.LOCK_EX)
	if errors.Is(err, errHeld) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now := time.Now()
	if err := os.Chtimes(f.Name(), now, now); err != nil { // tells gc when the slot was used
		return false, errors.Join(err, unlock(f))
	}
	c.slot, c.held = slot, f
	return true, nil
}

// slotsOf lists the numbers of the slots, ascending.
func slotsOf(base string) ([]int, error) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// recorded is the tree that a slot holds; empty when unknown.
func recorded(slot string) evidence.Tree {
	body, err := os.ReadFile(filepath.Join(slot, "tree"))
	if err != nil {
		return ""
	}
	tree, err := evidence.ParseTree(strings.TrimSpace(string(body)))
	if err != nil {
		return ""
	}
	return tree
}

// restore makes src hold exactly the tree, whatever it held before.
func (c *Checkout) restore(ctx context.Context, files []File) error {
	if recorded(c.slot) != c.tree {
		if err := ignoreMissing(os.Remove(c.record())); err != nil {
			return err
		}
	}
	if err := ignoreMissing(os.Remove(c.index() + ".lock")); err != nil { // of a killed git; the slot is ours
		return err
	}
	if st, err := os.Lstat(c.Dir()); err == nil && !st.IsDir() {
		if err := os.Remove(c.Dir()); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.Dir(), 0o755); err != nil {
		return err
	}
	if _, err := sweep(c.Dir(), files, true); err != nil {
		return fmt.Errorf("remove what was left in %s: %w", c.Dir(), err)
	}
	err := c.update(ctx)
	if err != nil && ctx.Err() == nil {
		// The index or a file is beyond repair: once more from nothing.
		if cerr := errors.Join(ignoreMissing(os.Remove(c.index())), emptyDir(c.Dir())); cerr != nil {
			return errors.Join(err, cerr)
		}
		err = c.update(ctx)
	}
	if err != nil {
		return c.v.missing(err, "write the files of tree %s", c.tree)
	}
	differs, err := c.differs(ctx)
	if err != nil {
		return err
	}
	if len(differs) > 0 {
		return fault.New(fault.Unmeasured, CodeNotClean, "%d files of the checkout differ from tree %s, the first is %q", len(differs), c.tree, differs[0])
	}
	if recorded(c.slot) == c.tree {
		return nil
	}
	return writeFile(c.record(), []byte(string(c.tree)+"\n"))
}

// update lets git write the files that differ.
func (c *Checkout) update(ctx context.Context) error {
	_, err := c.run(ctx, "read-tree", "--reset", "-u", string(c.tree))
	return err
}

func (c *Checkout) run(ctx context.Context, args ...string) ([]byte, error) {
	out, _, err := c.v.s.git.run(ctx, call{
		args: args, gitDir: c.v.git, workTree: c.Dir(), index: c.index(), objects: c.v.readable(), held: []*os.File{c.held},
	})
	return out, err
}

// differs lists the files of the tree whose bytes, kind or mode are not the
// tree's.
func (c *Checkout) differs(ctx context.Context) ([]string, error) {
	out, err := c.run(ctx, "diff-files", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", "--ignore-submodules=all")
	if err != nil {
		return nil, fmt.Errorf("verify the checkout: %w", err)
	}
	changes, err := parseRaw(out)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, ch := range changes {
		if ch.OldMode != Submodule {
			paths = append(paths, ch.Path)
		}
	}
	return paths, nil
}

// Verify lists what is not as checked out: changed, missing and additional
// paths, sorted. It repairs nothing.
func (c *Checkout) Verify(ctx context.Context) ([]string, error) {
	files, err := c.v.files(ctx, c.tree)
	if err != nil {
		return nil, err
	}
	more, err := sweep(c.Dir(), files, false)
	if err != nil {
		return nil, fmt.Errorf("verify the checkout: %w", err)
	}
	differs, err := c.differs(ctx)
	if err != nil {
		return nil, err
	}
	all := append(more, differs...)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Release cleans the slot and gives it back. Further calls return the same
// result. After an error the slot is free, too: its next user repairs it.
func (c *Checkout) Release(ctx context.Context) error {
	c.once.Do(func() {
		files, err := c.v.files(ctx, c.tree)
		if err == nil {
			err = c.restore(ctx, files)
		}
		c.err = errors.Join(err, c.free())
	})
	return c.err
}
