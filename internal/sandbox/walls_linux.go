package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// wallKind says what a command sees at a path.
type wallKind string

const (
	wallHidden   wallKind = "hidden"   // an empty read-only directory
	wallScratch  wallKind = "scratch"  // an empty writable directory, fresh for each command
	wallSource   wallKind = "source"   // the directory; writes are gone at the next command
	wallWritable wallKind = "writable" // the directory; writes stay
	wallReadOnly wallKind = "readonly" // the directory or file
)

// wall is one path of a box: absolute, clean and without symbolic links.
type wall struct {
	Path string   `json:"path"`
	Kind wallKind `json:"kind"`
}

// sortWalls orders walls so that each comes after the ones above it.
func sortWalls(ws []wall) {
	slices.SortStableFunc(ws, func(a, b wall) int { return strings.Compare(a.Path+"/", b.Path+"/") })
}

// within tells whether path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// view is the file system that the commands of a box see at level namespaces:
// the machine's own, read-only, with the walls mounted over it.
//
// Walls that must be fresh for each command come in groups: a scratch directory
// or a source, and every wall below it. A group in which something was changed
// is unmounted and mounted again; see [view.refresh].
type view struct {
	walls  []wall
	origin map[string]int // open directory or file of the machine, for binds and overlays
	stage  int            // directory on a tmpfs that holds the upper layers
	serial int            // of the next upper layer
	upper  map[string]string
	groups []*group
	dirs   map[string][]string // made inside a wall, as mount points and their parents
	Notes  []string
}

// group is a fresh wall with what is mounted below it.
type group struct {
	walls []wall
	seal  string // what the group looked like when it was fresh
}

// newView makes the mount namespace of this process the one the commands see.
func newView(walls []wall) (*view, error) {
	v := &view{walls: slices.Clone(walls), origin: map[string]int{}, upper: map[string]string{}, dirs: map[string][]string{}}
	sortWalls(v.walls)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make mounts private: %w", err)
	}
	for _, w := range v.walls {
		if w.Kind == wallHidden || w.Kind == wallScratch {
			continue
		}
		fd, err := unix.Open(w.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", w.Path, err)
		}
		v.origin[w.Path] = fd
	}
	devices, err := cloneDevices()
	if err != nil {
		return nil, err
	}
	ro := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &ro); err != nil {
		return nil, fmt.Errorf("make the root read-only: %w", err)
	}
	if err := mountProc(); err != nil {
		return nil, err
	}
	if err := mountDev(devices); err != nil {
		return nil, err
	}
	if err := v.mountStage(); err != nil {
		return nil, err
	}
	return v, v.mountAll()
}

// mountStage puts a tmpfs for upper layers where the scratch wall of /tmp will
// cover it, and keeps a descriptor.
func (v *view) mountStage() error {
	if err := unix.Mount("proveto", tmpDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0700"); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", tmpDir, err)
	}
	fd, err := unix.Open(tmpDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", tmpDir, err)
	}
	v.stage = fd
	return nil
}

func (v *view) stagePath(name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", v.stage, name)
}

// mountAll mounts every wall and notes the groups.
func (v *view) mountAll() error {
	var open *group
	for _, w := range v.walls {
		if open != nil && within(w.Path, open.walls[0].Path) {
			open.walls = append(open.walls, w)
		} else if w.Kind == wallScratch || w.Kind == wallSource {
			open = &group{walls: []wall{w}}
			v.groups = append(v.groups, open)
		}
		if err := v.mount(w); err != nil {
			return err
		}
	}
	if err := v.lockHidden(v.walls); err != nil {
		return err
	}
	for _, g := range v.groups {
		seal, err := v.look(g)
		if err != nil {
			return err
		}
		g.seal = seal
	}
	return nil
}

// lockHidden makes hidden directories read-only, after the mount points below
// them were made.
func (v *view) lockHidden(walls []wall) error {
	for _, w := range walls {
		if w.Kind != wallHidden {
			continue
		}
		if err := setReadOnly(w.Path); err != nil {
			return err
		}
	}
	return nil
}

func setReadOnly(path string) error {
	ro := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &ro); err != nil {
		return fmt.Errorf("make %s read-only: %w", path, err)
	}
	return nil
}

func (v *view) mount(w wall) error {
	if err := v.point(w); err != nil {
		return err
	}
	switch w.Kind {
	case wallHidden:
		return mountTmpfs(w.Path, "mode=0755")
	case wallScratch:
		mode := "mode=1777"
		if w.Path == homeDir {
			mode = "mode=0700"
		}
		return mountTmpfs(w.Path, mode)
	case wallSource:
		return v.mountOverlay(w.Path)
	}
	return v.bind(w)
}

func mountTmpfs(path, options string) error {
	if err := unix.Mount("proveto", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", path, err)
	}
	return nil
}

// point makes sure that there is something to mount the wall on. Only inside
// another wall can it be missing.
func (v *view) point(w wall) error {
	if _, err := os.Lstat(w.Path); err == nil {
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("mount point: %w", err)
	}
	parent := filepath.Dir(w.Path)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("mount point: %w", err)
	}
	if fd, ok := v.origin[w.Path]; ok {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("stat %s: %w", w.Path, err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if err := os.WriteFile(w.Path, nil, 0o600); err != nil {
				return fmt.Errorf("mount point: %w", err)
			}
			return nil
		}
	}
	if err := os.Mkdir(w.Path, 0o755); err != nil {
		return fmt.Errorf("mount point: %w", err)
	}
	return nil
}

// bind mounts the machine's own directory or file on its path.
func (v *view) bind(w wall) error {
	tree, err := unix.OpenTree(v.origin[w.Path], "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("clone the mount of %s: %w", w.Path, err)
	}
	defer unix.Close(tree)
	if w.Kind == wallWritable {
		rw := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &rw); err != nil {
			return fmt.Errorf("make %s writable: %w", w.Path, err)
		}
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, w.Path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", w.Path, err)
	}
	return nil
}

// mountOverlay gives the source a new empty upper layer. Where the kernel has no
// overlays for us, the source stays read-only, with a note.
func (v *view) mountOverlay(path string) error {
	v.serial++
	name := fmt.Sprint(v.serial)
	upper, work := v.stagePath(name+"/upper"), v.stagePath(name+"/work")
	for _, d := range []string{v.stagePath(name), upper, work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return fmt.Errorf("upper layer of %s: %w", path, err)
		}
	}
	options := fmt.Sprintf("lowerdir=/proc/self/fd/%d,upperdir=%s,workdir=%s", v.origin[path], upper, work)
	err := unix.Mount("proveto", path, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options+",userxattr")
	if errors.Is(err, unix.EINVAL) { // a kernel that has no such option
		err = unix.Mount("proveto", path, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options)
	}
	if err == nil {
		v.upper[path] = name
		return nil
	}
	note := fmt.Sprintf("sources are read-only: overlay: %v", err)
	if !slices.Contains(v.Notes, note) {
		v.Notes = append(v.Notes, note)
	}
	return v.bind(wall{Path: path, Kind: wallReadOnly})
}

// refresh makes every fresh wall empty again and every source the original.
// The process tree must be empty.
func (v *view) refresh() error {
	for _, g := range v.groups {
		if seal, err := v.look(g); err == nil && seal == g.seal {
			continue // nobody wrote: most tests leave nothing behind
		}
		if err := v.renew(g); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) renew(g *group) error {
	top := g.walls[0].Path
	if err := unix.Unmount(top, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmount %s: %w", top, err)
	}
	for _, w := range g.walls {
		if name, ok := v.upper[w.Path]; ok {
			delete(v.upper, w.Path)
			if err := os.RemoveAll(v.stagePath(name)); err != nil {
				return fmt.Errorf("upper layer of %s: %w", w.Path, err)
			}
		}
		if err := v.mount(w); err != nil {
			return err
		}
	}
	if err := v.lockHidden(g.walls); err != nil {
		return err
	}
	seal, err := v.look(g)
	if err != nil {
		return err
	}
	g.seal = seal
	return nil
}

// look describes everything in a group that a command could have changed:
// inodes and blocks in use, and the status of each directory that is there from
// the start. Any change of an entry changes the time of its directory.
func (v *view) look(g *group) (string, error) {
	var b strings.Builder
	for _, w := range g.walls {
		switch w.Kind {
		case wallScratch:
			if err := lookUse(&b, w.Path); err != nil {
				return "", err
			}
			for _, d := range v.inside(g, w) {
				if err := lookDir(&b, d); err != nil {
					return "", err
				}
			}
		case wallSource:
			name, ok := v.upper[w.Path]
			if !ok {
				continue
			}
			if err := lookDir(&b, v.stagePath(name+"/upper")); err != nil {
				return "", err
			}
		}
	}
	return b.String(), nil
}

// inside lists the scratch directory and the directories in it that lead to
// other walls of the group.
func (v *view) inside(g *group, scratch wall) []string {
	dirs := []string{scratch.Path}
	for _, w := range g.walls {
		for d := filepath.Dir(w.Path); within(d, scratch.Path) && d != scratch.Path; d = filepath.Dir(d) {
			if !v.isWall(d) && !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	return dirs
}

func (v *view) isWall(path string) bool {
	return slices.ContainsFunc(v.walls, func(w wall) bool { return w.Kind != wallScratch && within(path, w.Path) })
}

func lookUse(b *strings.Builder, path string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return fmt.Errorf("statfs %s: %w", path, err)
	}
	fmt.Fprintf(b, "%d %d;", fs.Files-fs.Ffree, fs.Blocks-fs.Bfree)
	return nil
}

func lookDir(b *strings.Builder, path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return fmt.Errorf("stat %s: %w", path, err)
	}
	fmt.Fprintf(b, "%d %o %d %d %d %d %d;", st.Ino, st.Mode, st.Uid, st.Gid, st.Nlink, st.Size, st.Ctim.Nano())
	return nil
}

// used is the memory that files in the fresh walls take, in bytes.
func (v *view) used() int64 {
	paths := []string{v.stagePath("")}
	for _, w := range v.walls {
		if w.Kind == wallScratch {
			paths = append(paths, w.Path)
		}
	}
	var sum int64
	for _, p := range paths {
		var fs unix.Statfs_t
		// A wall that cannot be asked counts nothing: the other limits stand.
		if unix.Statfs(p, &fs) == nil {
			sum += int64(fs.Blocks-fs.Bfree) * fs.Bsize
		}
	}
	return sum
}
