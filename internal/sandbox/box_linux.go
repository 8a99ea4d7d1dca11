package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// The codes of this package's errors.
const (
	CodeTooLow     fault.Code = "isolation_too_low" // unmeasured: the machine reaches less than Spec.Min
	CodeNotStarted fault.Code = "not_started"       // unmeasured: the command could not be executed; the cause is a syscall.Errno
	CodeBadCommand fault.Code = "bad_command"       // usage: the spec or the command makes no sense
	CodeBroken     fault.Code = "sandbox_broken"    // internal: the supervisor died or does not answer; the box is of no more use
	CodeClosed     fault.Code = "sandbox_closed"    // internal: used after Close
	CodeCancelled  fault.Code = "cancelled"         // interrupted: the context ended before the command started
)

const (
	openLimit  = 30 * time.Second // for the supervisor to answer the setup
	closeLimit = 5 * time.Second  // for the supervisor to leave by itself
	graceLimit = 30 * time.Second // for the supervisor to end a tree, beyond the wall limit
)

// Box is a set of walls with a supervisor inside. Its methods are safe for
// concurrent use; commands run one at a time. While a box is open its sources
// must not change.
type Box struct {
	spec       Spec
	walls      []wall
	executable string
	scratch    string // private directory on disk, below level namespaces
	isolation  evidence.Isolation
	notes      []string

	link    *link
	process *os.Process
	answers chan ended    // closed when the link ends
	dead    chan struct{} // closed when the supervisor was waited for
	said    said          // what the supervisor wrote on standard error; read after dead

	running   sync.Mutex // held by the one command that runs
	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// Open puts up the walls of spec on the best level that can be proven here and
// that Spec.Max allows. When that is below Spec.Min, the error has kind
// unmeasured and code isolation_too_low. The context is for opening only.
func Open(ctx context.Context, spec Spec) (*Box, error) {
	spec, err := spec.resolved()
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, level := range []evidence.Level{evidence.Namespaces, evidence.Landlock, evidence.LimitsOnly} {
		if spec.Max != "" && level.Rank() > spec.Max.Rank() {
			reasons = append(reasons, fmt.Sprintf("%s: not tried, at most %s was asked for", level, spec.Max))
			continue
		}
		b, err := openLevel(ctx, spec, level)
		if err != nil {
			if ctx.Err() != nil {
				return nil, fault.Wrap(context.Cause(ctx), fault.Interrupted, CodeCancelled, "open a sandbox")
			}
			reasons = append(reasons, fmt.Sprintf("%s: %v", level, err))
			continue
		}
		if level.Rank() >= spec.Min.Rank() {
			return b, nil
		}
		if err := b.Close(); err != nil {
			return nil, err
		}
		return nil, tooLow(spec.Min, level, reasons)
	}
	return nil, fault.New(fault.Internal, CodeBroken, "no sandbox level works: %s", strings.Join(reasons, "; "))
}

func tooLow(min, reached evidence.Level, reasons []string) error {
	f := fault.New(fault.Unmeasured, CodeTooLow, "isolation %s is required and this machine reaches %s", min, reached)
	f.Hint("proveto doctor")
	for _, r := range reasons {
		f.Hint("%s", r)
	}
	for level, how := range enabling {
		if level.Rank() > reached.Rank() && level.Rank() >= min.Rank() {
			f.Hint("%s needs %s", level, how)
		}
	}
	return f
}

// enabling says what a level needs of the machine.
var enabling = map[evidence.Level]string{
	evidence.Namespaces: "user namespaces: sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0 and user.max_user_namespaces above 0; in a container, a seccomp profile that allows clone, unshare and mount",
	evidence.Landlock:   "Linux 6.7 or newer with landlock in the kernel parameter lsm=",
}

// Isolation is the level and the network that were proven when the box opened.
func (b *Box) Isolation() evidence.Isolation { return b.isolation }

// openLevel starts a supervisor for one level and proves it.
func openLevel(ctx context.Context, spec Spec, level evidence.Level) (_ *Box, err error) {
	b := &Box{spec: spec, answers: make(chan ended, 1), dead: make(chan struct{}), closing: make(chan struct{})}
	if b.executable, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("our own executable: %w", err)
	}
	if b.walls, err = spec.walls(level, b.executable); err != nil {
		return nil, err
	}
	if level != evidence.Namespaces {
		if b.scratch, err = newScratch(); err != nil {
			return nil, err
		}
	}
	if err := b.start(level); err != nil {
		return nil, errors.Join(err, removeDir(b.scratch))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if err := b.handshake(ctx, level); err != nil {
		return nil, err
	}
	go b.listen()
	b.isolation, err = b.proven(ctx, level)
	return b, err
}

// start runs the supervisor. The thread that starts it waits for it, because the
// supervisor is tied to the life of that thread.
func (b *Box) start(level evidence.Level) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("supervisor link: %w", err)
	}
	far := os.NewFile(uintptr(pair[1]), "supervisor link")
	defer far.Close()
	if b.link, err = newLink(pair[0]); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return errors.Join(err, b.link.close())
	}
	defer null.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, b.link.close())
	}
	attr := &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2"}, Files: []*os.File{null, null, errW, far},
		Sys: b.attributes(level),
	}
	up := make(chan error)
	go func() {
		runtime.LockOSThread()
		p, err := os.StartProcess("/proc/self/exe", []string{"proveto", superviseArg}, attr)
		errW.Close()
		b.process = p
		up <- err
		if err == nil {
			b.said.read(errR)
			_, b.said.waitErr = p.Wait()
		}
		errR.Close()
		close(b.dead)
	}()
	if err := <-up; err != nil {
		return errors.Join(fmt.Errorf("start the supervisor: %w", err), b.link.close())
	}
	return nil
}

// attributes are the namespaces of a supervisor. Users are mapped to themselves:
// a test sees the user that it would see outside.
func (b *Box) attributes(level evidence.Level) *syscall.SysProcAttr {
	if level != evidence.Namespaces {
		return &syscall.SysProcAttr{Setsid: true} // not in reach of the terminal's signals
	}
	uid, gid := os.Getuid(), os.Getgid()
	sys := &syscall.SysProcAttr{
		Setsid:      true,
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{
			unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_KILL, unix.CAP_SYS_PTRACE,
			unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_MKNOD, unix.CAP_SYS_RESOURCE,
		},
	}
	if b.spec.Network != NetworkHost {
		sys.Cloneflags |= unix.CLONE_NEWNET
	}
	return sys
}

// said collects what a supervisor writes on standard error.
type said struct {
	text    []byte
	waitErr error
}

func (s *said) read(r io.Reader) {
	// What cannot be read is only an explanation that is missing.
	s.text, _ = io.ReadAll(io.LimitReader(r, 16<<10))
	_, _ = io.Copy(io.Discard, r)
}

func (b *Box) handshake(ctx context.Context, level evidence.Level) error {
	stop := context.AfterFunc(ctx, func() { b.process.Kill() }) // gone already: nothing to kill
	defer stop()
	if err := b.link.conn.SetDeadline(time.Now().Add(openLimit)); err != nil {
		return fmt.Errorf("supervisor link: %w", err)
	}
	err := b.link.send(message{Setup: &setup{Level: level, Network: b.spec.Network, Walls: b.walls, Scratch: b.scratch}})
	if err != nil {
		return err
	}
	m, _, err := b.link.receive()
	if err != nil || m.Ready == nil {
		b.process.Kill()
		<-b.dead
		return fmt.Errorf("the supervisor did not get ready: %w: %s", errors.Join(err, io.ErrUnexpectedEOF), b.said.text)
	}
	if m.Ready.Error != "" {
		return errors.New(m.Ready.Error)
	}
	b.notes = m.Ready.Notes
	return b.link.conn.SetDeadline(time.Time{})
}

// listen takes the supervisor's answers until the link ends.
func (b *Box) listen() {
	defer close(b.answers)
	for {
		m, fds, err := b.link.receive()
		closeAll(fds)
		if err != nil || m.Ended == nil {
			return
		}
		b.answers <- *m.Ended
	}
}

// Close ends the running command, the supervisor and everything in the box, and
// waits for it, at most a few seconds. Calling it again returns the same error.
func (b *Box) Close() error {
	b.closeOnce.Do(func() {
		close(b.closing)
		b.closeErr = b.shut()
	})
	return b.closeErr
}

func (b *Box) shut() error {
	err := b.link.close()
	select {
	case <-b.dead:
	case <-time.After(closeLimit):
		b.process.Kill() // in a pid namespace everything dies with it
		select {
		case <-b.dead:
		case <-time.After(closeLimit):
			return fault.New(fault.Internal, CodeBroken, "the supervisor (pid %d) does not end", b.process.Pid)
		}
	}
	if b.scratch != "" {
		err = errors.Join(err, endMarked(b.scratch), removeDir(b.scratch))
	}
	if err != nil {
		return fault.Wrap(err, fault.Internal, CodeBroken, "close the sandbox")
	}
	return nil
}

// resolved checks the spec and returns it with clean paths without links.
func (s Spec) resolved() (Spec, error) {
	if s.Min != "" && s.Min.Rank() == 0 || s.Max != "" && s.Max.Rank() == 0 {
		return s, fault.New(fault.Usage, CodeBadCommand, "unknown isolation level %q or %q", s.Min, s.Max)
	}
	if s.Network != NetworkLoopback && s.Network != NetworkHost {
		return s, fault.New(fault.Usage, CodeBadCommand, "unknown network %q", s.Network)
	}
	for _, list := range []*[]string{&s.Sources, &s.Writable, &s.ReadOnly, &s.Hidden} {
		var out []string
		for _, p := range *list {
			if !filepath.IsAbs(p) {
				return s, fault.New(fault.Usage, CodeBadCommand, "sandbox path %q is not absolute", p)
			}
			real, err := filepath.EvalSymlinks(p)
			if errors.Is(err, os.ErrNotExist) && list == &s.Hidden {
				continue // nothing there to hide
			}
			if err != nil {
				return s, fault.Wrap(err, fault.Usage, CodeBadCommand, "sandbox path")
			}
			out = append(out, real)
		}
		*list = out
	}
	return s, nil
}

// walls lists what is at which path. The same path twice: what lets more be seen
// wins, so that a checkout below a hidden directory can be the directory itself.
func (s Spec) walls(level evidence.Level, executable string) ([]wall, error) {
	var out []wall
	add := func(kind wallKind, paths ...string) {
		for _, p := range paths {
			if !hasWall(out, p) {
				out = append(out, wall{p, kind})
			}
		}
	}
	add(wallWritable, s.Writable...)
	add(wallSource, s.Sources...)
	add(wallReadOnly, s.ReadOnly...)
	if level == evidence.Namespaces {
		if hasWall(out, tmpDir) {
			return nil, fmt.Errorf("%s itself cannot be kept: it is private in a box", tmpDir)
		}
		add(wallScratch, tmpDir, shmDir, homeDir)
	}
	add(wallHidden, s.Hidden...)
	if level == evidence.Namespaces {
		for _, p := range []string{"/run", "/var/tmp"} { // sockets and files of other programs
			if real, err := filepath.EvalSymlinks(p); err == nil && !within(real, tmpDir) {
				add(wallHidden, real)
			}
		}
		if names, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && s.Network == NetworkHost && covered(out, names) {
			add(wallReadOnly, names)
		}
	}
	if real, err := filepath.EvalSymlinks(executable); err == nil && covered(out, real) {
		add(wallReadOnly, real) // commands may be parts of ourselves
	}
	sortWalls(out)
	return out, nil
}

func hasWall(ws []wall, path string) bool {
	for _, w := range ws {
		if w.Path == path {
			return true
		}
	}
	return false
}

// covered tells whether a path of the machine is not to be seen in the box.
func covered(ws []wall, path string) bool {
	var inner wall
	for _, w := range ws {
		if within(path, w.Path) && len(w.Path) >= len(inner.Path) {
			inner = w
		}
	}
	return inner.Kind == wallHidden || inner.Kind == wallScratch
}
