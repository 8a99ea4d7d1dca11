package store

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// lineSuffix names the file at which the writers of several processes wait.
const lineSuffix = "-line"

// line makes writers of several processes wait in line. SQLite lets those who find
// the file locked ask again after a while, up to 100 ms each time, so that the lock
// lies idle, and some are passed by others until they give up. The kernel wakes the
// waiters of a file lock one after the other.
//
// It only orders: who may write is decided by SQLite's own lock. Where the file
// cannot be made or locked, and where whoever is first does not go on, writers ask
// as before.
type line struct{ path string }

// wait returns when it is our turn, or when the context ends. Leave has to be
// called in any case.
func (l line) wait(ctx context.Context) (leave func()) {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return func() {}
	}
	leave = func() { _ = f.Close() } // ends the lock
	if err := lock(f, syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		return leave
	}
	got := make(chan struct{})
	go func() {
		_ = lock(f, syscall.LOCK_EX) // without it we ask as before
		close(got)
	}()
	select {
	case <-got:
		return leave
	case <-ctx.Done():
		// The lock cannot be waited for any less: it is given back when it comes.
		go func() { <-got; leave() }()
		return func() {}
	}
}

func lock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
