package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Fixed places of a box at level namespaces.
const (
	tmpDir  = "/tmp"
	shmDir  = "/dev/shm"
	homeDir = "/dev/home" // on our own /dev, the one place where a mount point can always be made
)

// devices are the nodes of the machine that commands see.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// cloneDevices takes the machine's device nodes before /dev is covered. A node
// that the machine lacks is left out.
func cloneDevices() (map[string]int, error) {
	fds := map[string]int{}
	for _, name := range devices {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/dev/"+name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("clone the mount of /dev/%s: %w", name, err)
		}
		fds[name] = fd
	}
	return fds, nil
}

// mountDev covers /dev with a small read-only one and takes over the clones.
func mountDev(clones map[string]int) error {
	if err := unix.Mount("proveto", "/dev", "tmpfs", unix.MS_NOSUID, "mode=0755"); err != nil {
		return fmt.Errorf("mount a tmpfs on /dev: %w", err)
	}
	for name, fd := range clones {
		path := "/dev/" + name
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return fmt.Errorf("device: %w", err)
		}
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
		unix.Close(fd)
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, "/dev/"+name); err != nil {
			return fmt.Errorf("device: %w", err)
		}
	}
	for _, dir := range []string{"/dev/pts", shmDir, homeDir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("device: %w", err)
		}
	}
	if err := unix.Mount("proveto", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("mount /dev/pts: %w", err)
	}
	return setReadOnly("/dev")
}

// mountProc covers /proc with the one of our pid namespace. A process whose user
// is the machine's root may write kernel settings without any capability, so
// those parts are read-only.
func mountProc() error {
	if err := unix.Mount("proveto", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	// A cap on the pids of this namespace keeps a fork bomb from eating those of
	// the machine. Kernels before 6.14 have only the machine's own; there the
	// write is refused and the polled process limit stands alone.
	_ = os.WriteFile("/proc/sys/kernel/pid_max", []byte("8192"), 0)
	for _, part := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"} {
		path := "/proc/" + part
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s: %w", path, err)
		}
		if err := setReadOnly(path); err != nil {
			return err
		}
	}
	return nil
}

// raiseLoopback brings the private loopback interface up.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	req.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}
