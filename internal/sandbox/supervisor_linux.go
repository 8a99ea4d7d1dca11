package sandbox

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/evidence"
)

// The hidden first arguments with which our own executable is started again.
const (
	superviseArg = "proveto-sandbox-supervise"
	proofArg     = "proveto-sandbox-proof"
)

// linkFD is the supervisor's end of the link.
const linkFD = 3

// Reexec runs the hidden parts of this package when args, the arguments of the
// process without its name, ask for them: the supervisor of a box, and the child
// that proves its level. The first thing main does, and TestMain of every
// package that opens boxes, is to call it and to exit with code when handled.
func Reexec(args []string) (code int, handled bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch args[0] {
	case superviseArg:
		if err := supervise(); err != nil {
			fmt.Fprintf(os.Stderr, "sandbox supervisor: %v\n", err)
			return 1, true
		}
		return 0, true
	case proofArg:
		return prove(args[1:]), true
	}
	return 0, false
}

// supervisor puts the walls up and runs commands one after the other. It is pid
// 1 of its namespace where there is one, else the subreaper of its commands.
type supervisor struct {
	setup setup
	view  *view // nil below level namespaces
	tree  tree
	self  int // our own executable, for commands with Self
	jobs  chan job
}

// supervise serves the link on descriptor 3 until it ends.
func supervise() error {
	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf, deafTo()...) // commands may signal pid 1; it must not care
	if err := closeInherited(); err != nil {
		return err
	}
	l, err := newLink(linkFD)
	if err != nil {
		return err
	}
	m, _, err := l.receive()
	if err != nil || m.Setup == nil {
		return fmt.Errorf("no setup: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	s := &supervisor{setup: *m.Setup, jobs: make(chan job)}
	r := s.putUp()
	if err := l.send(message{Ready: &r}); err != nil || r.Error != "" {
		return err
	}
	orders, stops := make(chan delivery), make(chan evidence.Stop, 1)
	go s.listen(l, orders, stops)
	for d := range orders {
		e := s.run(d.order, d.fds, stops)
		if err := l.send(message{Ended: &e}); err != nil {
			return err
		}
	}
	return nil
}

// closeInherited keeps commands from getting what our own parent left open for
// us: descriptors of a shell, of a test runner, of a terminal.
func closeInherited() error {
	err := unix.CloseRange(linkFD, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	names, lerr := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if lerr != nil {
		return fmt.Errorf("inherited descriptors: %w", errors.Join(err, lerr))
	}
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd >= linkFD {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// delivery is an order with its descriptors.
type delivery struct {
	order order
	fds   []int
}

// listen reads the link. Its end means that the box was closed or its process
// died: everything below us ends with us.
func (s *supervisor) listen(l *link, orders chan<- delivery, stops chan evidence.Stop) {
	for {
		m, fds, err := l.receive()
		if err != nil {
			s.leave(err)
		}
		switch {
		case m.Run != nil:
			select { // a stop that came too late must not meet the next command
			case <-stops:
			default:
			}
			orders <- delivery{*m.Run, fds}
		case m.Stop != "":
			select {
			case stops <- m.Stop:
			default: // one reason to stop is enough
			}
		}
	}
}

// leave ends the process. In a pid namespace the kernel kills all others with
// pid 1; elsewhere we do, and remove what we put on disk.
func (s *supervisor) leave(cause error) {
	code := 0
	if !errors.Is(cause, io.EOF) && !errors.Is(cause, unix.ECONNRESET) {
		fmt.Fprintf(os.Stderr, "sandbox supervisor: %v\n", cause)
		code = 1
	}
	if !s.tree.whole {
		if _, err := s.clear(&account{}); err != nil {
			fmt.Fprintf(os.Stderr, "sandbox supervisor: %v\n", err)
			code = 1
		}
		if err := removeScratch(s.setup.Scratch); err != nil {
			fmt.Fprintf(os.Stderr, "sandbox supervisor: %v\n", err)
			code = 1
		}
	}
	os.Exit(code) //nolint:revive // the supervisor is a process of its own, started by this package
}

// deafTo lists the signals that must not end a supervisor. A handler, unlike
// SIG_IGN, is not inherited by commands.
func deafTo() []os.Signal {
	var sigs []os.Signal
	for n := syscall.Signal(1); n < 65; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG:
		default:
			sigs = append(sigs, n)
		}
	}
	return sigs
}

// putUp builds the walls and the restricted thread.
func (s *supervisor) putUp() ready {
	notes, err := s.build()
	if err != nil {
		return ready{Error: err.Error()}
	}
	return ready{Notes: notes}
}

func (s *supervisor) build() ([]string, error) {
	var err error
	if s.self, err = unix.Open("/proc/self/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("open our own executable: %w", err)
	}
	// Under memory pressure the kernel takes what we run before anything else.
	// Where it may not be written, the polled limit stands alone.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err := bound(); err != nil {
		return nil, err
	}
	var notes []string
	var d *domain
	switch s.setup.Level {
	case evidence.Namespaces:
		if notes, err = s.buildNamespaces(); err != nil {
			return nil, err
		}
	case evidence.Landlock:
		if d, err = newDomain(s.setup.Walls, s.setup.Scratch, s.self, s.setup.Network); err != nil {
			return nil, err
		}
		notes = d.Notes
	}
	if !s.tree.whole {
		s.tree = tree{self: os.Getpid()}
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, fmt.Errorf("become subreaper: %w", err)
		}
	}
	failed := make(chan error)
	go s.spawner(d, failed)
	return notes, <-failed
}

func (s *supervisor) buildNamespaces() ([]string, error) {
	// The link's end tells the same; this also holds while we are stopped.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return nil, fmt.Errorf("tie to the parent: %w", err)
	}
	s.tree = tree{whole: true, self: os.Getpid()}
	if s.tree.self != 1 {
		return nil, fmt.Errorf("pid %d in the new namespace, want 1", s.tree.self)
	}
	if err := unix.Sethostname([]byte("localhost")); err != nil {
		return nil, fmt.Errorf("set the host name: %w", err)
	}
	if s.setup.Network != NetworkHost {
		if err := raiseLoopback(); err != nil {
			return nil, err
		}
	}
	var err error
	if s.view, err = newView(s.setup.Walls); err != nil {
		return nil, err
	}
	return s.view.Notes, nil
}

// maxFileSize bounds every file that a command writes: nothing of ours comes near.
const maxFileSize = 8 << 30

// bound sets the limits that commands inherit.
func bound() error {
	for what, limit := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: maxFileSize} {
		var now unix.Rlimit
		if err := unix.Getrlimit(what, &now); err != nil {
			return fmt.Errorf("resource limit: %w", err)
		}
		limit = min(limit, now.Max)
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("resource limit: %w", err)
		}
	}
	return nil
}

// prepare makes the box as the next command must find it.
func (s *supervisor) prepare() error {
	if s.view != nil {
		return s.view.refresh()
	}
	return emptyScratch(s.setup.Scratch)
}

func (s *supervisor) filesInMemory() int64 {
	if s.view == nil {
		return 0
	}
	return s.view.used()
}

// job is one command for the restricted thread.
type job struct {
	path   string
	order  order
	files  []uintptr
	answer chan started
}

type started struct {
	pid int
	err error
}

// start runs the command on the restricted thread. An error that is a
// [syscall.Errno] is the command's own: it cannot be executed.
func (s *supervisor) start(o order, fds []int) (int, error) {
	files, rest, err := standard(o, fds)
	if err != nil {
		return 0, err
	}
	defer closeAll(rest)
	j := job{path: o.Argv[0], order: o, files: files, answer: make(chan started, 1)}
	if o.Self {
		j.path = "/proc/self/fd/" + strconv.Itoa(s.self)
	}
	s.jobs <- j
	st := <-j.answer
	return st.pid, st.err
}

// standard orders the descriptors of a command as it must see them; extra are
// ours to close.
func standard(o order, fds []int) (files []uintptr, extra []int, err error) {
	want := 2
	if o.Stdin {
		want++
	}
	if o.Report {
		want += 2
	}
	if len(fds) != want || len(o.Argv) == 0 {
		return nil, nil, fmt.Errorf("an order with %d descriptors, want %d", len(fds), want)
	}
	if !o.Stdin {
		null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, nil, fmt.Errorf("open /dev/null: %w", err)
		}
		extra = []int{null}
		fds = append([]int{null}, fds...)
	}
	for _, fd := range fds {
		files = append(files, uintptr(fd))
	}
	return files, extra, nil
}

// spawner is the one thread that starts commands. It gives everything up once,
// and its children inherit that; the other threads keep what they need to
// mount, to measure and to kill.
func (s *supervisor) spawner(d *domain, failed chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread is of no other use
	err := restrict(d, s.setup.Level)
	failed <- err
	if err != nil {
		return
	}
	attr := syscall.SysProcAttr{Setsid: true}
	if !s.tree.whole {
		attr.Pdeathsig = syscall.SIGKILL // of this thread, which lives as long as we do
	}
	for j := range s.jobs {
		sys := attr
		pid, err := syscall.ForkExec(j.path, j.order.Argv, &syscall.ProcAttr{Dir: j.order.Dir, Env: j.order.Env, Files: j.files, Sys: &sys})
		j.answer <- started{pid, err}
	}
}

// restrict gives up, on the calling thread, what commands must not have.
func restrict(d *domain, level evidence.Level) error {
	if err := dropCapabilities(level); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if d != nil {
		if err := d.enter(); err != nil {
			return err
		}
	}
	if level == evidence.LimitsOnly {
		return nil
	}
	return restrictCalls(d != nil && d.TCP)
}

// dropCapabilities empties every capability set of the calling thread, so that
// even root's children start with none. At level limits nothing is claimed and
// root keeps its own.
func dropCapabilities(level evidence.Level) error {
	if level == evidence.LimitsOnly {
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	for c := uintptr(0); c < 64; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL { // past the last one that the kernel knows
			break
		}
		if err == unix.EPERM { // not ours to drop: an ordinary user has no capabilities to inherit either
			break
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
