package sandbox

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/evidence"
)

// How often a running tree is measured. A command shorter than the first
// interval is never measured; the cost of measuring is kept near two percent.
const (
	firstInterval = 5 * time.Millisecond
	lastInterval  = 100 * time.Millisecond
	costFactor    = 50
)

// maxProcesses ends a command without a process limit below level namespaces,
// before it takes the pids of the whole machine. In a pid namespace the kernel
// holds the number down.
const maxProcesses = 4096

// account is what a command used so far.
type account struct {
	reaped atomic.Int64 // ns of CPU of processes that were waited for
	peak   atomic.Int64 // bytes: largest resident size seen, of the tree or of one process
	cpu    atomic.Int64 // ns: largest sum seen while running
	busy   time.Time    // when that sum was last seen to grow; for the one that watches
}

func (a *account) raise(v *atomic.Int64, n int64) {
	for old := v.Load(); n > old && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}

// run starts one command, waits for it, and ends everything it left behind.
func (s *supervisor) run(o order, fds []int, stops <-chan evidence.Stop) ended {
	if err := s.prepare(); err != nil {
		closeAll(fds)
		return ended{Code: -1, Error: err.Error()}
	}
	began := time.Now()
	pid, err := s.start(o, fds)
	closeAll(fds)
	if err != nil {
		var no syscall.Errno
		ok := errors.As(err, &no)
		if !ok {
			return ended{Code: -1, Error: err.Error()}
		}
		return ended{Code: -1, Errno: int(no), Error: err.Error()}
	}
	backstop(pid, o.Limits)
	var acc account
	done, stopped := make(chan struct{}), make(chan evidence.Stop, 1)
	go func() { stopped <- s.watch(o.Limits, began, &acc, stops, done) }()
	status, err := reap(pid, &acc)
	e := ended{Started: began, Wall: time.Since(began), Code: -1}
	close(done)
	e.Stopped = <-stopped
	if err == nil {
		e.Survivors, err = s.clear(&acc)
	}
	if err != nil {
		return ended{Code: -1, Error: err.Error()}
	}
	if e.Stopped != "" {
		e.Survivors = 0 // they were ended with the command, not left behind by it
	}
	if status.Exited() {
		e.Code = status.ExitStatus()
	} else {
		e.Signal = int(status.Signal())
	}
	e.CPU = time.Duration(max(acc.reaped.Load(), acc.cpu.Load()))
	e.MaxRSS = acc.peak.Load()
	return e
}

// backstop bounds the CPU of the single process by the kernel, should we starve.
func backstop(pid int, l evidence.Limits) {
	if l.CPU <= 0 {
		return
	}
	secs := uint64(math.Ceil(l.CPU.Seconds())) + 1
	// The process may be gone already; then there is nothing to bound.
	_ = unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: secs, Max: secs + 1}, nil)
}

// reap waits for children, and the orphans that became ours, until pid itself.
func reap(pid int, acc *account) (syscall.WaitStatus, error) {
	for {
		got, status, err := wait(acc, 0)
		if err != nil {
			return status, fmt.Errorf("wait for the command: %w", err)
		}
		if got == pid {
			return status, nil
		}
	}
}

func wait(acc *account, options int) (int, syscall.WaitStatus, error) {
	for {
		var status syscall.WaitStatus
		var ru syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, options, &ru)
		if err == syscall.EINTR {
			continue
		}
		if err == nil && pid > 0 {
			acc.reaped.Add(ru.Utime.Nano() + ru.Stime.Nano())
			acc.raise(&acc.peak, ru.Maxrss<<10)
		}
		return pid, status, err
	}
}

// clear ends what outlived the command and returns how many processes that were.
// It returns only when the kernel says that we have no child left: since every
// orphan below us becomes our child, the tree is then empty.
func (s *supervisor) clear(acc *account) (int, error) {
	survivors := 0
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		pid, status, err := wait(acc, syscall.WNOHANG)
		for ; err == nil && pid > 0; pid, status, err = wait(acc, syscall.WNOHANG) {
			if status.Signaled() && status.Signal() == syscall.SIGKILL {
				survivors++
			}
		}
		if errors.Is(err, syscall.ECHILD) {
			return survivors, nil
		}
		if err != nil {
			return survivors, fmt.Errorf("wait for survivors: %w", err)
		}
		if err := s.tree.kill(); err != nil {
			return survivors, err
		}
		time.Sleep(pause)
	}
}

// watch holds a running command to its limits and returns the one that ended it.
func (s *supervisor) watch(l evidence.Limits, began time.Time, acc *account, stops <-chan evidence.Stop, done <-chan struct{}) evidence.Stop {
	var wall, poll <-chan time.Time
	if l.Wall > 0 {
		t := time.NewTimer(time.Until(began.Add(l.Wall)))
		defer t.Stop()
		wall = t.C
	}
	interval := firstInterval
	tick := time.NewTimer(interval)
	defer tick.Stop()
	if !s.tree.whole && l.Processes == 0 {
		l.Processes = maxProcesses
	}
	if l.CPU > 0 || l.Idle > 0 || l.MemoryBytes > 0 || l.Processes > 0 {
		poll = tick.C
	}
	acc.busy = began
	for {
		var stop evidence.Stop
		select {
		case <-done:
			return ""
		case stop = <-stops:
		case <-wall:
			stop = evidence.StopWall
		case <-poll:
			at := time.Now()
			stop = s.over(l, acc)
			interval = min(max(interval*3/2, costFactor*time.Since(at)), lastInterval)
			tick.Reset(interval)
		}
		if stop != "" {
			s.end(done)
			return stop
		}
	}
}

// end kills the tree until the command was reaped.
func (s *supervisor) end(done <-chan struct{}) {
	for {
		// The error of one sweep is no reason to give up; the next may work, and
		// the box's own deadline ends the supervisor if none does.
		_ = s.tree.kill()
		select {
		case <-done:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// over measures the tree and tells which limit it is over, if any.
func (s *supervisor) over(l evidence.Limits, acc *account) evidence.Stop {
	u, ps, err := s.tree.measure()
	if err != nil {
		return "" // measured again at the next tick; wall and kernel limits stand
	}
	u.cpu += time.Duration(acc.reaped.Load())
	files := s.filesInMemory()
	now := time.Now()
	if int64(u.cpu) > acc.cpu.Load() {
		acc.busy = now
	}
	acc.raise(&acc.cpu, int64(u.cpu))
	switch {
	case l.Idle > 0 && now.Sub(acc.busy) > l.Idle:
		return evidence.StopIdle
	case l.Processes > 0 && u.processes > l.Processes:
		return evidence.StopProcesses
	case l.CPU > 0 && u.cpu > l.CPU:
		return evidence.StopCPU
	case l.MemoryBytes > 0 && u.rss+files > l.MemoryBytes:
		// Pages shared after a fork were counted more than once.
		if u.rss = resident(ps); u.rss+files > l.MemoryBytes {
			acc.raise(&acc.peak, u.rss+files)
			return evidence.StopMemory
		}
	}
	if l.MemoryBytes > 0 {
		acc.raise(&acc.peak, u.rss+files)
	}
	return ""
}
