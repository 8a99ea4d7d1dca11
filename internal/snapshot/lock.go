package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/proveto/proveto/internal/fault"
)

// errHeld is returned by tryLock when another holder has the lock.
var errHeld = errors.New("lock is held")

// tryLock takes the lock of a file, made when absent, without waiting. The
// kernel frees the lock when the last process that inherited the file is gone.
func tryLock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil && !sameFile(f, path) {
		err = syscall.EWOULDBLOCK // removed while we took it
	}
	if err == nil {
		return f, nil
	}
	if cerr := f.Close(); cerr != nil {
		return nil, fmt.Errorf("close lock %s: %w", path, cerr)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errHeld
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

func sameFile(f *os.File, path string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// lock waits for the lock until the context ends.
func lock(ctx context.Context, path string, how int) (*os.File, error) {
	wait := time.Millisecond
	for {
		f, err := tryLock(path, how)
		if !errors.Is(err, errHeld) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fault.Wrap(context.Cause(ctx), fault.Interrupted, "interrupted", "stopped while another process held %s", path)
		case <-time.After(wait):
		}
		wait = min(2*wait, 50*time.Millisecond)
	}
}

// unlock frees a lock for every copy of the file: a process that is being
// started at this moment may hold one for a while. Nothing that runs may need
// the lock any more.
func unlock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("unlock %s: %w", f.Name(), err)
	}
	return nil
}
