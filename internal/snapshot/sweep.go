package snapshot

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// sweep walks a checkout and finds what is not of the tree: additional files
// whatever their kind, directories, git directories, things in place of a
// directory of the tree. With remove they are deleted. git's own listing would
// not do: it passes over .git, pipes, sockets and empty directories.
//
// Directories that cannot be entered are opened again. No symlink is followed.
func sweep(dir string, files []File, remove bool) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	w := &sweeper{root: root, remove: remove, files: make(map[string]bool, len(files)), dirs: map[string]bool{}}
	for _, f := range files {
		parent := path.Dir(f.Path)
		if f.Mode == Submodule {
			parent = f.Path // an empty directory
		} else {
			w.files[f.Path] = true
		}
		for ; parent != "." && !w.dirs[parent]; parent = path.Dir(parent) {
			w.dirs[parent] = true
		}
	}
	err = w.walk(".")
	return w.found, err
}

type sweeper struct {
	root   *os.Root
	files  map[string]bool
	dirs   map[string]bool
	remove bool
	found  []string
}

func (w *sweeper) walk(dir string) error {
	entries, err := w.list(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && w.dirs[p]:
			if err := w.walk(p); err != nil {
				return err
			}
		case !e.IsDir() && w.files[p] && (e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0):
			// Its bytes are git's to compare.
		default:
			w.found = append(w.found, p)
			if w.remove {
				if err := w.delete(p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// list reads a directory of the tree; one whose mode was changed gets its mode
// back first when things are put right.
func (w *sweeper) list(dir string) ([]fs.DirEntry, error) {
	if w.remove {
		st, err := w.root.Lstat(dir)
		if err != nil {
			return nil, err
		}
		if st.Mode().Perm()&0o700 != 0o700 {
			if err := w.root.Chmod(dir, 0o755); err != nil {
				return nil, err
			}
		}
	}
	f, err := w.root.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}

// delete removes a path; a directory that forbids it is opened first.
func (w *sweeper) delete(p string) error {
	err := w.root.RemoveAll(p)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := w.open(p); err != nil {
		return err
	}
	return w.root.RemoveAll(p)
}

// open makes every directory at and below p writable.
func (w *sweeper) open(p string) error {
	st, err := w.root.Lstat(p)
	if err != nil || !st.IsDir() {
		return err
	}
	if err := w.root.Chmod(p, 0o700); err != nil {
		return err
	}
	entries, err := w.list(p)
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, w.open(path.Join(p, e.Name())))
		}
	}
	return err
}

// emptyDir removes everything in a directory, not the directory.
func emptyDir(dir string) error {
	_, err := sweep(dir, nil, true)
	return err
}
