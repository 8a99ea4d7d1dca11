package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The name of a directory of ours on disk says which process it belongs to, so
// that a later box can remove what a killed one left:
// <temp>/proveto-box-<uid>/<pid>-<start time>-<random>. Below level namespaces a
// box has one for its commands, with tmp and home in it; the proof of a level has
// one for as long as it takes.

// newScratch makes the private directory of a box of this process.
func newScratch() (string, error) {
	dir, err := newDir()
	if err != nil {
		return "", err
	}
	return dir, emptyScratch(dir)
}

// newDir makes a directory of this process and sweeps those of dead ones. The
// process that removes the last one removes the directory above it, too, so one
// that is gone is made again.
func newDir() (string, error) {
	for try := 0; ; try++ {
		dir, err := tryDir()
		if !errors.Is(err, fs.ErrNotExist) || try == 100 {
			return dir, err
		}
	}
}

// removeDir removes what newDir made, and the directory above it when it was
// the last.
func removeDir(dir string) error {
	if dir == "" {
		return nil
	}
	err := removeScratch(dir)
	_ = os.Remove(filepath.Dir(dir)) // not empty: others are in use
	return err
}

func tryDir() (string, error) {
	base := filepath.Join(os.TempDir(), fmt.Sprintf("proveto-box-%d", os.Getuid()))
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("scratch directory: %w", err)
	}
	base, err := ownDir(base)
	if err != nil {
		return "", err
	}
	if err := sweep(base); err != nil {
		return "", err
	}
	start, ok := startTime(os.Getpid())
	if !ok {
		return "", errors.New("scratch directory: our own start time cannot be read")
	}
	dir, err := os.MkdirTemp(base, fmt.Sprintf("%d-%s-", os.Getpid(), start))
	if err != nil {
		return "", fmt.Errorf("scratch directory: %w", err)
	}
	return dir, nil
}

// ownDir refuses a directory that somebody else could have put there.
func ownDir(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("scratch directory: %w", err)
	}
	st, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("scratch directory: %w", err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm() != 0o700 || !ok || int(sys.Uid) != os.Getuid() {
		return "", fmt.Errorf("scratch directory: %s is not a directory of ours with mode 0700", path)
	}
	return filepath.EvalSymlinks(path)
}

// sweep removes the directories whose process is gone.
func sweep(base string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("scratch directory: %w", err)
	}
	for _, e := range entries {
		parts := strings.SplitN(e.Name(), "-", 3)
		pid, err := strconv.Atoi(parts[0])
		if err != nil || len(parts) != 3 {
			continue // not one of ours
		}
		if start, ok := startTime(pid); ok && start == parts[1] {
			continue
		}
		if err := removeScratch(filepath.Join(base, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// startTime is the start of a process in clock ticks since boot, which with its
// pid names it for good.
func startTime(pid int) (string, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 {
		return "", false
	}
	return f[19], true
}

// emptyScratch makes dir hold two empty directories, tmp and home.
func emptyScratch(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("scratch directory: %w", err)
	}
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); !pristine(path, e.Name()) {
			if err := removeScratch(path); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"tmp", "home"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("scratch directory: %w", err)
		}
	}
	return nil
}

// pristine tells a directory that is as emptyScratch makes it.
func pristine(path, name string) bool {
	st, err := os.Lstat(path)
	if err != nil || !st.IsDir() || st.Mode() != fs.ModeDir|0o700 || (name != "tmp" && name != "home") {
		return false
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// removeScratch removes everything below path, also directories whose rights
// were taken away.
func removeScratch(path string) error {
	if path == "" || os.RemoveAll(path) == nil {
		return nil
	}
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return nil // what cannot be listed shows again in the removal below
	})
	if rerr := os.RemoveAll(path); rerr != nil {
		return fmt.Errorf("remove scratch directory: %w", errors.Join(rerr, err))
	}
	return nil
}
