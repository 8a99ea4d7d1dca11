package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// reaperVariable makes the test binary a reaper: the process that all orphans of
// the command become children of, so that their end is waited for, not guessed.
const reaperVariable = "PROVETO_E2E_REAPER"

// reapLimit is how long orphans may live on after the kill; whatever is left
// then is a finding.
const reapLimit = 20 * time.Second

// ending is how a command under a reaper ended.
type ending struct {
	Killed bool          `json:"killed"` // before it ended by itself
	Exit   int           `json:"exit"`
	Took   time.Duration `json:"took"`
	Left   []string      `json:"left"` // command lines of what was still there at the limit
}

// reap runs SIGNALS COMMAND…, where SIGNALS is a list DELAY:NUMBER,…, waits for
// every descendant and writes the ending to descriptor 3.
func reap(args []string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "reaper:", err)
		return 99
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fail(err)
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	out := ending{Left: []string{}}
	for _, s := range strings.Split(args[0], ",") {
		delay, number, ok := strings.Cut(s, ":")
		if !ok {
			continue
		}
		d, err := time.ParseDuration(delay)
		n, err2 := strconv.Atoi(number)
		if err := errors.Join(err, err2); err != nil {
			return fail(err)
		}
		select {
		case <-time.After(d):
			out.Killed = cmd.Process.Signal(syscall.Signal(n)) == nil
		case err := <-done:
			done <- err
		}
	}
	<-done //nolint:errcheck // how it ended is in ProcessState
	out.Exit, out.Took = cmd.ProcessState.ExitCode(), time.Since(began)
	out.Killed = out.Killed && !cmd.ProcessState.Exited()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	}()
	select {
	case <-gone:
	case <-time.After(reapLimit):
		out.Left = append(out.Left, children()...)
	}
	if err := json.NewEncoder(os.NewFile(3, "ending")).Encode(out); err != nil {
		return fail(err)
	}
	return 0
}

// children lists the command lines of this process's descendants that are its
// children, and ends them.
func children() []string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, f := range strings.Fields(string(raw)) {
		line, _ := os.ReadFile("/proc/" + f + "/cmdline") // it may have ended by now
		out = append(out, f+" "+strings.ReplaceAll(string(line), "\x00", " "))
		if pid, err := strconv.Atoi(f); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return out
}

// signal is a signal to send when a delay has passed since the last one.
type signal struct {
	after time.Duration
	sig   syscall.Signal
}

// under runs the product below a reaper and sends it signals. The descriptor's
// answer is decoded only when the product ended by itself.
func (w *world) under(signals []signal, args ...string) (ending, answer) {
	w.t.Helper()
	args = append(args, "--json", "--progress=none")
	list := make([]string, len(signals))
	for i, s := range signals {
		list[i] = fmt.Sprintf("%s:%d", s.after, s.sig)
	}
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	r, p, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(w.t.Context(), self, append([]string{strings.Join(list, ","), product}, args...)...)
	cmd.Dir, cmd.Env = w.repo, append(w.environ(), reaperVariable+"=1")
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &stdout, &stderr, []*os.File{p}
	err = cmd.Start()
	p.Close()
	if err != nil {
		w.t.Fatal(err)
	}
	var e ending
	derr := json.NewDecoder(r).Decode(&e)
	r.Close()
	if err := errors.Join(derr, cmd.Wait()); err != nil {
		w.t.Fatalf("reaper: %v\n%s", err, stderr.String())
	}
	if len(e.Left) > 0 {
		w.t.Errorf("still running %s after the end: %q", reapLimit, e.Left)
	}
	a := answer{t: w.t, args: args, exit: e.Exit, stdout: stdout.String(), stderr: stderr.String()}
	if !e.Killed && stdout.Len() > 0 {
		a = w.answer(args, e.Exit, stdout.String(), stderr.String())
	}
	return e, a
}

// TestReaperSeesOrphans: the tool that looks for leftovers must wait for one.
func TestReaperSeesOrphans(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// The orphan ends when its standard input does, which this test closes last.
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "", "sh", "-c", "exec 4<&0; (cat <&4 >/dev/null 2>&1) & exit 7")
	cmd.Env, cmd.Stdin, cmd.ExtraFiles = append(os.Environ(), reaperVariable+"=1"), in, []*os.File{p}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Close()
	in.Close()
	hold.Close()
	var e ending
	if err := errors.Join(json.NewDecoder(r).Decode(&e), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	if e.Exit != 7 || e.Killed || len(e.Left) != 0 {
		t.Errorf("ending %+v, want exit 7 by itself and nothing left", e)
	}
}
