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

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// Collected is what GC did.
type Collected struct {
	Trees     int      // kept no longer
	Checkouts int      // slots removed
	Bytes     int64    // of the slots removed
	Left      int64    // bytes of the slots that stay
	Busy      []string // directories in use
}

// GC forgets sealed trees for which keepFunc says false, except those kept for a
// run (see [Store.Keep]), removes the objects
// that only they needed, and removes free checkouts, the longest unused first,
// until at most quota bytes of them are left. Repositories and slots in use are
// passed over and named in Busy. On an error what was done so far is returned.
func (s *Store) GC(ctx context.Context, keepFunc func(repo Repo, tree evidence.Tree) bool, quota int64) (Collected, error) {
	var done Collected
	var errs []error
	entries, err := os.ReadDir(s.state)
	if err != nil {
		return done, fmt.Errorf("list the snapshot stores: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !repoID().MatchString(e.Name()) {
			continue
		}
		if err := s.collect(ctx, e.Name(), keepFunc, &done); err != nil {
			errs = append(errs, fmt.Errorf("collect the snapshots of %s: %w", e.Name(), err))
		}
	}
	if err := s.evict(ctx, quota, &done); err != nil {
		errs = append(errs, fmt.Errorf("remove checkouts: %w", err))
	}
	return done, errors.Join(errs...)
}

// collect prunes one store while nobody seals, reads or checks out.
func (s *Store) collect(ctx context.Context, id string, keepFunc func(Repo, evidence.Tree) bool, done *Collected) (err error) {
	dir := filepath.Join(s.state, id)
	o, err := readOrigin(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // being made
	}
	if err != nil {
		return err
	}
	v := &vault{s: s, repo: o.Repo, dir: dir, git: filepath.Join(dir, "store.git"), objects: o.Objects}
	held, err := tryLock(filepath.Join(dir, "objects.lock"), syscall.LOCK_EX)
	if errors.Is(err, errHeld) {
		done.Busy = append(done.Busy, dir)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock(held)) }()
	out, err := v.read(ctx, "for-each-ref", "--format=%(refname)", keepRefs)
	if err != nil {
		return err
	}
	var drop []evidence.Tree
	for _, ref := range strings.Fields(string(out)) {
		tree, err := evidence.ParseTree(strings.TrimPrefix(ref, keepRefs))
		if err == nil && !keepFunc(o.Repo, tree) {
			drop = append(drop, tree)
		}
	}
	if len(drop) == 0 {
		return nil
	}
	// A private index knows files whose objects are about to go.
	indexes, err := filepath.Glob(filepath.Join(dir, "index-*"))
	if err != nil {
		return err
	}
	for _, idx := range indexes {
		if err := ignoreMissing(os.Remove(idx)); err != nil {
			return err
		}
	}
	for _, tree := range drop {
		if err := ignoreMissing(os.Remove(v.ref(tree))); err != nil {
			return err
		}
	}
	done.Trees += len(drop)
	// Of a prune that was killed; the lock of the objects is ours.
	if err := ignoreMissing(os.Remove(filepath.Join(v.git, "shallow.lock"))); err != nil {
		return err
	}
	if _, _, err := s.git.run(ctx, call{args: []string{"prune", "--expire=now"}, gitDir: v.git, objects: v.readable(), held: []*os.File{held}}); err != nil {
		return v.missing(err, "prune the snapshot store of %s", o.Repo.Name)
	}
	return nil
}

// slotUse is one checkout on disk.
type slotUse struct {
	dir   string
	bytes int64
	used  time.Time
}

// evict removes free slots until the quota holds.
func (s *Store) evict(ctx context.Context, quota int64, done *Collected) error {
	slots, err := s.slots(ctx)
	if err != nil {
		return err
	}
	for _, u := range slots {
		done.Left += u.bytes
	}
	for _, u := range slots {
		if done.Left <= quota {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fault.Wrap(err, fault.Interrupted, "interrupted", "stopped before the quota was reached")
		}
		held, err := tryLock(filepath.Join(u.dir, "lock"), syscall.LOCK_EX)
		if errors.Is(err, errHeld) {
			done.Busy = append(done.Busy, u.dir)
			continue
		}
		if err != nil {
			return err
		}
		err = removeSlot(u.dir)
		if err = errors.Join(err, unlock(held)); err != nil {
			return err
		}
		done.Checkouts++
		done.Bytes += u.bytes
		done.Left -= u.bytes
	}
	return nil
}

// removeSlot empties a slot whose lock is held. The lock file goes last, so that
// a waiter sees either a lock that is held or no slot.
func removeSlot(dir string) error {
	if err := ignoreMissing(os.Remove(filepath.Join(dir, "tree"))); err != nil {
		return err
	}
	if st, err := os.Lstat(filepath.Join(dir, "src")); err == nil && st.IsDir() {
		if err := emptyDir(filepath.Join(dir, "src")); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		return err
	}
	err = os.Remove(dir)
	if errors.Is(err, syscall.ENOTEMPTY) {
		return nil // somebody took the number again
	}
	return err
}

// slots lists every checkout, the longest unused first.
func (s *Store) slots(ctx context.Context) ([]slotUse, error) {
	repos, err := os.ReadDir(s.cache)
	if err != nil {
		return nil, err
	}
	var out []slotUse
	for _, r := range repos {
		base := filepath.Join(s.cache, r.Name())
		if !r.IsDir() || !repoID().MatchString(r.Name()) {
			continue
		}
		numbers, err := slotsOf(base)
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			if err := ctx.Err(); err != nil {
				return nil, fault.Wrap(err, fault.Interrupted, "interrupted", "stopped while measuring the checkouts")
			}
			u := slotUse{dir: filepath.Join(base, strconv.Itoa(n))}
			if st, err := os.Stat(filepath.Join(u.dir, "lock")); err == nil {
				u.used = st.ModTime()
			}
			if u.bytes, err = size(u.dir); err != nil {
				return nil, err
			}
			out = append(out, u)
		}
	}
	slices.SortStableFunc(out, func(a, b slotUse) int { return a.used.Compare(b.used) })
	return out, nil
}

// size is the space that a directory takes on disk. Names that vanish while it
// is measured do not count.
func size(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		st, err := d.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			sum += sys.Blocks * 512
		}
		return nil
	})
	return sum, err
}
