package snapshot

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"

	"github.com/proveto/proveto/internal/fault"
)

// CodeBusy says that somebody works with the directories at this moment.
const CodeBusy fault.Code = "busy"

// useLock lies in both directories of a store. Who works with what is below them
// holds it together with others, who removes holds it alone: blobs that no entry
// cites yet, and builds, belong to whoever is making them.
const useLock = "use.lock"

// Use keeps removal away until its result is called. It waits for one that is going
// on.
func (s *Store) Use(ctx context.Context) (Release, error) {
	return s.hold(func(name string) (Release, error) {
		f, err := lock(ctx, name, syscall.LOCK_SH)
		return func() error { return unlock(f) }, err
	})
}

// Alone is for removal; code busy while anybody works with the directories. Who
// comes after it waits until its result is called.
func (s *Store) Alone() (Release, error) {
	return s.hold(func(name string) (Release, error) {
		f, err := tryLock(name, syscall.LOCK_EX)
		if errors.Is(err, errHeld) {
			err = fault.New(fault.Conflict, CodeBusy, "another proveto works with %s", filepath.Dir(name)).Hint("proveto gc")
		}
		return func() error { return unlock(f) }, err
	})
}

// Release gives back what [Store.Use] and [Store.Alone] took.
type Release = func() error

// hold takes the locks of both directories in one order, or none.
func (s *Store) hold(take func(name string) (Release, error)) (Release, error) {
	state, err := take(filepath.Join(s.state, useLock))
	if err != nil {
		return nil, err
	}
	cache, err := take(filepath.Join(s.cache, useLock))
	if err != nil {
		return nil, errors.Join(err, state())
	}
	return func() error { return errors.Join(cache(), state()) }, nil
}
