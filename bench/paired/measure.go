//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Sample is one run of a command.
type Sample struct {
	CPU  float64 `json:"cpu_s"`  // user and system seconds of the whole tree
	Wall float64 `json:"wall_s"` // until the command itself ended
	RSS  int64   `json:"max_rss_bytes"`
	Exit int     `json:"exit"`
}

const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER of prctl(2)

// adoptOrphans makes processes that lose their parent ours, so that their usage
// is counted too.
func adoptOrphans() error {
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); e != 0 {
		return fmt.Errorf("become a subreaper: %w", e)
	}
	return nil
}

// Measure runs the command line and everything that it starts. What outlives the
// command is killed by its process group and counted. A process that leaves the
// group is waited for.
func Measure(line string) (Sample, error) {
	cmd := exec.Command("sh", "-c", line)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return Sample{}, err
	}
	err := cmd.Wait()
	s := Sample{Wall: time.Since(start).Seconds(), Exit: cmd.ProcessState.ExitCode()}
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		return Sample{}, err
	}
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.add(ru)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return Sample{}, fmt.Errorf("end the process group: %w", err)
	}
	for {
		var ru syscall.Rusage
		_, err := syscall.Wait4(-1, nil, 0, &ru)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD):
			return s, nil
		case err != nil:
			return Sample{}, err
		default:
			s.add(&ru)
		}
	}
}

// add counts a process that was waited for. Its usage contains that of the
// children that it waited for itself.
func (s *Sample) add(ru *syscall.Rusage) {
	s.CPU += seconds(ru.Utime) + seconds(ru.Stime)
	s.RSS = max(s.RSS, ru.Maxrss*1024)
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
