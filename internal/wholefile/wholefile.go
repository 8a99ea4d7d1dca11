// Package wholefile writes files that are whole or not there, also when the
// process is killed in the middle.
//
// The bytes go to a file beside the target, .NAME.proveto-new, which then takes
// its place. That name is always the same, and whoever writes holds a lock on
// it: what a killed process left is taken over by the next writer of the same
// target, so nothing gathers, and two writers at once do not mix their bytes.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

const suffix = ".proveto-new"

// Write puts the bytes at the path with the mode, in place of what is there. With
// durable they are on the disk when it returns.
func Write(path string, b []byte, mode os.FileMode, durable bool) error {
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+suffix)
	f, err := take(temp, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(mode))
	if err == nil && durable {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(temp))
	}
	// The lock ends with the file, after it has got its name.
	return errors.Join(err, f.Close())
}

// take opens the file beside the target, empty and locked.
func take(temp string, mode os.FileMode) (*os.File, error) {
	for {
		f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, mode)
		if err != nil {
			return nil, err
		}
		err = flock(f)
		if err == nil && current(f, temp) {
			if err = f.Truncate(0); err == nil {
				return f, nil
			}
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// current tells whether the locked file still has the name: the holder before us
// gave it the target's.
func current(f *os.File, temp string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Lstat(temp)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

func flock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
