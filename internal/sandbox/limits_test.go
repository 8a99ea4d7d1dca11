package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

func limits(l evidence.Limits) func(*Command) { return func(c *Command) { c.Limits = l } }

// works tells whether a box is as good as new: nothing left, and a command runs.
func works(t *testing.T, b *Box) {
	t.Helper()
	run, out := sh(t, b, "ls -d $TMPDIR/x /dev/shm/x $HOME/x 2>/dev/null; echo fine")
	if r := run.Record(); out != "fine" || r.Exit != (evidence.Exit{}) || r.Survivors != 0 {
		t.Errorf("afterwards: %q, exit %+v, %d survivors", out, r.Exit, r.Survivors)
	}
}

// bomb doubles its processes up to 512 and no further: below level namespaces a
// test that goes wrong must not take the machine with it.
const bomb = `f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep 1000; }; f 8`

// endless is a true one, for a pid namespace of its own.
const endless = `f() { f | f & }; f`

func TestForkBombEndsInItsNamespace(t *testing.T) {
	b := open(t, evidence.Namespaces, Spec{})
	run, _ := sh(t, b, endless+"; while :; do sleep 1000; done", limits(evidence.Limits{Processes: 60, Wall: time.Minute}))
	if r := run.Record(); r.Exit.Stopped != evidence.StopProcesses {
		t.Errorf("exit = %+v", r.Exit)
	}
	works(t, b)
	run, _ = sh(t, b, endless) // the command itself ends at once
	if r := run.Record(); r.Exit != (evidence.Exit{}) {
		t.Errorf("exit = %+v", r.Exit)
	}
	works(t, b)
}

func TestLimitsEndTheWholeTree(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		b := open(t, level, Spec{})
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name, script string
			limits       evidence.Limits
			want         evidence.Stop
		}{
			{"sleep", "sleep 1000 & setsid sleep 1000 & sleep 1000", evidence.Limits{Wall: 100 * time.Millisecond}, evidence.StopWall},
			{"deaf sleep", "trap '' TERM INT HUP; sleep 1000", evidence.Limits{Wall: 100 * time.Millisecond}, evidence.StopWall},
			{"idle", "sleep 1000 & setsid sleep 1000 & sleep 1000", evidence.Limits{Idle: 200 * time.Millisecond, Wall: time.Minute}, evidence.StopIdle},
			{"not idle", "while :; do :; done", evidence.Limits{Idle: time.Second, CPU: 1500 * time.Millisecond, Wall: time.Minute}, evidence.StopCPU},
			{"spin", "while :; do :; done", evidence.Limits{CPU: 100 * time.Millisecond}, evidence.StopCPU},
			{"spin in children", "spin() { while :; do :; done; }; spin & setsid sh -c 'while :; do :; done' & wait", evidence.Limits{CPU: 100 * time.Millisecond}, evidence.StopCPU},
			{"spin in many short children", "while :; do /bin/true; done", evidence.Limits{CPU: 100 * time.Millisecond}, evidence.StopCPU},
			{"memory", exe + " helper-memory 2000000000 hold", evidence.Limits{MemoryBytes: 256 << 20}, evidence.StopMemory},
			{"memory of a tree", "for i in 1 2 3 4; do " + exe + " helper-memory 100000000 hold & done; wait", evidence.Limits{MemoryBytes: 256 << 20}, evidence.StopMemory},
			{"output", "exec cat /dev/zero", evidence.Limits{OutputBytes: 64 << 10}, evidence.StopOutput},
			{"error output", "exec cat /dev/zero >&2", evidence.Limits{OutputBytes: 64 << 10}, evidence.StopOutput},
			{"fork bomb", bomb, evidence.Limits{Processes: 60, Wall: time.Minute}, evidence.StopProcesses},
			{"sessions bomb", "i=0; while [ $i -lt 200 ]; do setsid sleep 1000 & i=$((i+1)); done; wait", evidence.Limits{Processes: 60}, evidence.StopProcesses},
		} {
			t.Run(c.name, func(t *testing.T) {
				run, out := sh(t, b, c.script, limits(c.limits))
				if r := run.Record(); r.Exit.Stopped != c.want || r.Exit.Code != -1 || r.Exit.Signal != "SIGKILL" || r.Survivors != 0 {
					t.Errorf("exit = %+v, %d survivors, want %s; output %.200q", r.Exit, r.Survivors, c.want, out)
				}
				works(t, b)
			})
		}
	})
}

func TestFilesInMemoryCount(t *testing.T) {
	src := t.TempDir()
	b := open(t, evidence.Namespaces, Spec{Sources: []string{src}})
	for _, dir := range []string{"/tmp", "/dev/shm", "$HOME", src} {
		run, _ := sh(t, b, "cat /dev/zero > "+dir+"/x; sleep 1000", limits(evidence.Limits{MemoryBytes: 128 << 20}))
		if r := run.Record(); r.Exit.Stopped != evidence.StopMemory {
			t.Errorf("filling %s: exit = %+v", dir, r.Exit)
		}
		works(t, b)
	}
}

// The twins of the bombs stay below each limit and are left alone.
func TestCommandsBelowTheirLimitsAreLeftAlone(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		b := open(t, level, Spec{})
		l := evidence.Limits{CPU: time.Minute, Wall: time.Minute, MemoryBytes: 512 << 20, OutputBytes: 10, Processes: 100}
		run, out := self(t, b, limits(l), "helper-memory", "200000000")
		if r := run.Record(); r.Exit != (evidence.Exit{}) || out != "took 190" || r.MaxRSS < 190<<20 || r.MaxRSS > 400<<20 || r.CPUNS <= 0 {
			t.Errorf("exit %+v, output %q, %d bytes, %d ns", r.Exit, out, r.MaxRSS, r.CPUNS)
		}
		run, _ = sh(t, b, "for i in 1 2 3 4 5 6 7 8; do sleep 0 & done; wait; printf 12345678901234567890; printf 1234567890 >&2", limits(l))
		r := run.Record()
		want := evidence.Output{Digest: evidence.DigestOf([]byte("1234567890")), Bytes: 20, Truncated: true}
		if r.Stdout != want || r.Exit != (evidence.Exit{}) {
			t.Errorf("stdout = %+v, exit %+v", r.Stdout, r.Exit)
		}
		if want.Bytes, want.Truncated = 10, false; r.Stderr != want {
			t.Errorf("stderr = %+v, want %+v", r.Stderr, want)
		}
	})
}

func TestSurvivorsAreEndedAndCounted(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		b := open(t, level, Spec{})
		for _, c := range []struct {
			script string
			want   int
		}{
			{"sleep 0 & wait", 0},
			{"sleep 1000 & exit 3", 1},
			{"(setsid sleep 1000 &); (setsid sh -c 'trap \"\" TERM HUP; sleep 1000' &); exit 3", 3},
			{"(exec setsid sh -c '(sleep 1000 &) ; (sleep 1000 &)'); exit 3", 2},
		} {
			run, _ := sh(t, b, c.script)
			if r := run.Record(); r.Survivors != c.want || r.Exit.Stopped != "" || (c.want > 0 && r.Exit.Code != 3) {
				// The third script's inner shell may not have started its sleep yet.
				if c.want != 3 || r.Survivors != 2 {
					t.Errorf("%s: %d survivors, exit %+v, want %d", c.script, r.Survivors, r.Exit, c.want)
				}
			}
			works(t, b)
		}
		run, _ := sh(t, b, "("+bomb+") & exit 0")
		if run.Record().Exit.Stopped != "" {
			t.Errorf("exit = %+v", run.Record().Exit)
		}
		works(t, b)
	})
}

// fifo makes a pipe in a directory that the box can write to. What holds it open
// is alive.
func fifo(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// holder is a script that holds the pipe with a child and a daemon, says so, and
// waits.
const holder = `exec 9>fifo; setsid sleep 1000 & (setsid sleep 1000 &); echo up >&9; sleep 1000`

// up waits for the script, and returns what ends when all of its processes did.
func up(t *testing.T, dir string) *bufio.Reader {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "fifo"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r := bufio.NewReader(f)
	if line, err := r.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("the script said %q, %v", line, err)
	}
	return r
}

func allEnded(t *testing.T, r *bufio.Reader) {
	t.Helper()
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("reading the pipe to its end: %v", err)
	}
}

func TestCancelledCommandIsARun(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		dir := fifo(t)
		b := open(t, level, Spec{Writable: []string{dir}})
		ctx, cancel := context.WithCancel(t.Context())
		type result struct {
			run evidence.Run
			err error
		}
		done := make(chan result)
		go func() {
			run, _, err := b.Run(ctx, Command{Purpose: evidence.PurposeTool, Argv: []string{"/bin/sh", "-c", holder}, Root: dir, Env: []string{"PATH=/usr/bin:/bin"}})
			done <- result{run, err}
		}()
		r := up(t, dir)
		cancel()
		got := <-done
		allEnded(t, r)
		if got.err != nil || got.run.Record().Exit.Stopped != evidence.StopCancelled {
			t.Errorf("Run = %+v, %v", got.run.Record().Exit, got.err)
		}
		works(t, b)
		if _, _, err := b.Run(ctx, Command{Argv: []string{"/bin/true"}, Root: "/"}); fault.From(err).Kind != fault.Interrupted {
			t.Errorf("Run with an ended context: %v", err)
		}
	})
}

// inBackground runs the holder and returns once it is up.
func inBackground(t *testing.T, b *Box, dir string) (*bufio.Reader, <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, _, err := b.Run(t.Context(), Command{Purpose: evidence.PurposeTool, Argv: []string{"/bin/sh", "-c", holder}, Root: dir, Env: []string{"PATH=/usr/bin:/bin"}})
		done <- err
	}()
	return up(t, dir), done
}

func TestKilledSupervisorLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		t.Setenv("TMPDIR", t.TempDir())
		dir := fifo(t)
		b := open(t, level, Spec{Writable: []string{dir}})
		r, done := inBackground(t, b, dir)
		if err := b.process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !fault.Has(err, CodeBroken) || fault.From(err).Kind != fault.Internal {
			t.Errorf("Run = %v, want code %s", err, CodeBroken)
		}
		allEnded(t, r)
		if _, _, err := b.Run(t.Context(), Command{Argv: []string{"/bin/true"}, Root: "/"}); !fault.Has(err, CodeBroken) {
			t.Errorf("Run on a broken box = %v", err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		scratchIsGone(t)
	})
}

func TestCloseEndsARunningCommand(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		t.Setenv("TMPDIR", t.TempDir())
		dir := fifo(t)
		b := open(t, level, Spec{Writable: []string{dir}})
		r, done := inBackground(t, b, dir)
		for range 2 {
			if err := b.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if err := <-done; !fault.Has(err, CodeClosed) {
			t.Errorf("Run = %v, want code %s", err, CodeClosed)
		}
		allEnded(t, r)
		if _, _, err := b.Run(t.Context(), Command{Argv: []string{"/bin/true"}, Root: "/"}); !fault.Has(err, CodeClosed) {
			t.Errorf("Run on a closed box = %v", err)
		}
		scratchIsGone(t)
	})
}

func scratchIsGone(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "proveto-*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %q, %v", left, err)
	}
	if left, err = filepath.Glob(filepath.Join(os.TempDir(), "proveto-proof*")); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %q, %v", left, err)
	}
}

func TestKilledParentLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		t.Setenv("TMPDIR", t.TempDir())
		dir := fifo(t)
		cmd := exec.Command("/proc/self/exe", "helper-parent", string(level), dir, holder)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := up(t, dir)
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		supervisor := watchProcess(t, strings.TrimSpace(line))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		allEnded(t, r)
		supervisor()
		if err := cmd.Wait(); err == nil {
			t.Error("the parent ended by itself")
		}
		if b, err := Open(t.Context(), Spec{Max: evidence.Landlock}); err != nil { // sweeps what a killed process left
			t.Error(err)
		} else if err := b.Close(); err != nil {
			t.Error(err)
		}
		scratchIsGone(t)
	})
}

// watchProcess returns a function that waits for the end of a process that is
// not our child.
func watchProcess(t *testing.T, pid string) func() {
	t.Helper()
	var n int
	for _, d := range pid {
		n = 10*n + int(d-'0')
	}
	fd, err := unix.PidfdOpen(n, 0)
	if err != nil {
		t.Fatalf("pid %q: %v", pid, err)
	}
	return func() {
		defer unix.Close(fd)
		for {
			got, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 30_000)
			if err == unix.EINTR {
				continue
			}
			if err != nil || got != 1 {
				t.Errorf("process %s does not end: %v", pid, err)
			}
			return
		}
	}
}

func TestScratchOfDeadProcessesIsSwept(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	live, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Dir(live)
	start, _ := startTime(os.Getpid())
	stale := []string{"1-1-abc", strings.Replace(filepath.Base(live), start, "1", 1)} // another start time: the pid was used again
	for _, name := range stale {
		write(t, filepath.Join(base, name, "tmp/a/x"), "x")
		if err := os.Chmod(filepath.Join(base, name, "tmp/a"), 0); err != nil {
			t.Fatal(err)
		}
	}
	second, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(base + "/*")
	if err != nil || len(left) != 2 {
		t.Errorf("left %q, want %q and %q", left, live, second)
	}
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := newScratch(); err == nil {
		t.Error("a directory that others can write to was used")
	}
}

func TestCommandsThatCannotStart(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		b := open(t, level, Spec{})
		for _, c := range []struct {
			cmd  Command
			code fault.Code
			is   error
		}{
			{Command{Argv: []string{"/nowhere"}, Root: "/"}, CodeNotStarted, fs.ErrNotExist},
			{Command{Argv: []string{"/bin/true"}, Root: "/nowhere"}, CodeNotStarted, fs.ErrNotExist},
			{Command{Argv: []string{"/etc/passwd"}, Root: "/"}, CodeNotStarted, fs.ErrPermission},
			{Command{Argv: []string{"true"}, Root: "/"}, CodeBadCommand, nil},
			{Command{Root: "/"}, CodeBadCommand, nil},
			{Command{Argv: []string{"/bin/true"}, Root: "x"}, CodeBadCommand, nil},
			{Command{Argv: []string{"/bin/true"}, Root: "/usr", Dir: "../etc"}, CodeBadCommand, nil},
			{Command{Argv: []string{"/bin/true", "a\x00b"}, Root: "/"}, CodeBadCommand, nil},
		} {
			if _, _, err := b.Run(t.Context(), c.cmd); !fault.Has(err, c.code) || (c.is != nil && !errors.Is(err, c.is)) {
				t.Errorf("Run(%q in %q) = %v, want code %s", c.cmd.Argv, c.cmd.Root, err, c.code)
			}
		}
		works(t, b)
	})
}

func TestIsolationBelowTheMinimumIsUnmeasured(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Open(t.Context(), Spec{Min: evidence.Namespaces, Max: evidence.Landlock})
	f := fault.From(err)
	if f.Kind != fault.Unmeasured || f.Code != CodeTooLow || !strings.Contains(err.Error(), "reaches landlock") {
		t.Errorf("Open = %v (%s, %s)", err, f.Kind, f.Code)
	}
	if hints := strings.Join(f.Hints, "\n"); !strings.Contains(hints, "proveto doctor") || !strings.Contains(hints, "user namespaces") || strings.Contains(hints, "Linux 6.7") {
		t.Errorf("hints = %q", f.Hints)
	}
	scratchIsGone(t)
	for _, s := range []Spec{{Min: "high"}, {Network: "wifi"}, {Sources: []string{"relative"}}, {Sources: []string{"/nowhere"}}} {
		if _, err := Open(t.Context(), s); fault.From(err).Kind != fault.Usage {
			t.Errorf("Open(%+v) = %v, want a usage error", s, err)
		}
	}
}

func TestOrdinaryUsersHaveBoxes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("every other test runs as an ordinary user already")
	}
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "helper-levels")
	cmd.Env = []string{"TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	want := "namespaces loopback true \nlandlock closed true \nlimits open true \n12345\n0\n"
	if err != nil || string(out) != want {
		t.Errorf("output = %q, %v %s, want %q", out, err, &errs, want)
	}
}
