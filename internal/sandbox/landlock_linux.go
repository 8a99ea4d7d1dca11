package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

const (
	accessRead  = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	accessFile  = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
	accessWrite = ll.AccessFSWriteFile | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeChar | ll.AccessFSMakeDir |
		ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeBlock | ll.AccessFSMakeSym
)

// domain is the landlock domain of a box, before a thread enters it.
type domain struct {
	fd      int
	handled uint64
	TCP     bool // TCP is closed
	Notes   []string
}

// newDomain describes what commands may do: read everything that is not hidden,
// write to the writable walls and to scratch, no TCP unless the network is open.
// What an old kernel does not know is left out, with a note.
func newDomain(walls []wall, scratch string, self int, network Network) (*domain, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return nil, fmt.Errorf("landlock: %w", err)
	}
	d := &domain{handled: accessRead | accessWrite}
	attr := ll.RulesetAttr{}
	if abi >= 2 {
		d.handled |= ll.AccessFSRefer
	}
	if abi >= 3 {
		d.handled |= ll.AccessFSTruncate
	} else {
		d.Notes = append(d.Notes, "landlock: files can be truncated (kernel before 6.2)")
	}
	if abi >= 4 && network != NetworkHost {
		attr.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
		d.TCP = true
	}
	if abi >= 5 {
		d.handled |= ll.AccessFSIoctlDev
	}
	if abi >= 6 {
		attr.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	} else {
		d.Notes = append(d.Notes, "landlock: signals reach other processes (kernel before 6.12)")
	}
	attr.HandledAccessFS = d.handled
	if d.fd, err = ll.LandlockCreateRuleset(&attr, 0); err != nil {
		return nil, fmt.Errorf("landlock: %w", err)
	}
	if err := d.allowAll(walls, scratch, self); err != nil {
		unix.Close(d.fd)
		return nil, err
	}
	return d, nil
}

func (d *domain) allowAll(walls []wall, scratch string, self int) error {
	if err := d.allowFD(self, ll.AccessFSExecute|ll.AccessFSReadFile); err != nil {
		return err
	}
	hidden := []string{"/dev"} // root could read the disks there, whatever is hidden on them
	for _, w := range walls {
		if w.Kind == wallHidden {
			hidden = append(hidden, w.Path)
		}
	}
	if err := d.allowExcept("/", hidden, accessRead); err != nil {
		return err
	}
	for _, w := range walls {
		access := uint64(accessRead)
		switch w.Kind {
		case wallHidden, wallScratch:
			continue
		case wallWritable:
			access = d.handled
		}
		if err := d.allowExcept(w.Path, hidden, access); err != nil {
			return err
		}
	}
	for _, name := range append([]string{"pts", "ptmx"}, devices...) {
		if err := d.allow("/dev/"+name, (accessRead|accessFile)&d.handled); err != nil {
			return err
		}
	}
	return d.allow(scratch, d.handled)
}

// allowExcept allows access to dir without the hidden directories in it: landlock
// can only allow, so where one lies below, its neighbours are allowed one by one.
func (d *domain) allowExcept(dir string, hidden []string, access uint64) error {
	below := func(h string) bool { return h != dir && within(h, dir) }
	if !slices.ContainsFunc(hidden, below) {
		return d.allow(dir, access)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if slices.Contains(hidden, path) || e.Type()&os.ModeSymlink != 0 {
			continue // a link needs no right of its own
		}
		if err := d.allowExcept(path, hidden, access); err != nil {
			return err
		}
	}
	return nil
}

// allow adds a rule for a path; one that is not there, or that we cannot open
// ourselves, needs none.
func (d *domain) allow(path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err == unix.ENOENT || err == unix.EACCES || err == unix.ENXIO {
		return nil
	}
	if err != nil {
		return fmt.Errorf("landlock: open %s: %w", path, err)
	}
	defer unix.Close(fd)
	if err := d.allowFD(fd, access); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (d *domain) allowFD(fd int, access uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= accessFile
	}
	rule := ll.PathBeneathAttr{AllowedAccess: access & d.handled, ParentFd: fd}
	if err := ll.LandlockAddPathBeneathRule(d.fd, &rule, 0); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

// enter restricts the calling thread for good.
func (d *domain) enter() error {
	if err := ll.LandlockRestrictSelf(d.fd, 0); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return unix.Close(d.fd)
}
