//go:build linux

package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/evidence"
)

// TestMain lets the test binary be a second process of ours.
func TestMain(m *testing.M) {
	mode := os.Getenv("SNAPSHOT_TEST_CHILD")
	if mode == "" {
		os.Exit(m.Run())
	}
	if err := child(mode, os.Getenv("SNAPSHOT_TEST_DIR"), os.Getenv("SNAPSHOT_TEST_REPO"), os.Getenv("SNAPSHOT_TEST_GIT")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child seals and checks out, or delivers; "hold" then waits to be killed, "rounds" does it
// again and again and looks for others in its checkout.
func child(mode, dir, repoDir, git string) error {
	ctx := context.Background()
	s, err := Open(ctx, Config{State: filepath.Join(dir, "state"), Cache: filepath.Join(dir, "cache"), Git: git})
	if err != nil {
		return err
	}
	repo, err := s.Locate(ctx, repoDir)
	if err != nil {
		return err
	}
	if mode == "deliver" {
		d, err := oneDelivery(ctx, s, repo)
		if err == nil {
			_, err = s.Deliver(ctx, repo, d)
		}
		return err
	}
	n := 1
	if mode == "rounds" {
		n = 5
	}
	for range n {
		snap, err := s.Seal(ctx, repo, Options{})
		if err != nil {
			return err
		}
		c, err := s.Checkout(ctx, repo, snap.Tree)
		if err != nil {
			return err
		}
		if mode == "hold" {
			fmt.Println(c.Dir())
			_, err := os.Stdin.Read(make([]byte, 1))
			return err
		}
		if found, err := c.Verify(ctx); err != nil || len(found) > 0 {
			return errors.Join(fmt.Errorf("checkout differs: %q", found), err)
		}
		mine, err := os.OpenFile(filepath.Join(c.Dir(), "mine"), os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("somebody shares the checkout: %w", err)
		}
		if err := errors.Join(mine.Close(), c.Release(ctx)); err != nil {
			return err
		}
		fmt.Println(snap.Tree)
	}
	return nil
}

func (b *bundle) child(mode, dir, git string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SNAPSHOT_TEST_CHILD="+mode, "SNAPSHOT_TEST_DIR="+filepath.Dir(b.home), "SNAPSHOT_TEST_REPO="+dir, "SNAPSHOT_TEST_GIT="+git)
	return cmd
}

// dirtyRepo has a commit and changes of every kind.
func (b *bundle) dirtyRepo(files int) string {
	tracked := map[string]string{".gitignore": "*.log\n", "gone": "g"}
	for i := range files {
		tracked[fmt.Sprintf("d%02d/f%04d", i%20, i)] = strings.Repeat("line\n", i%50)
	}
	dir := b.repo("r", tracked)
	must(b.t, os.Remove(filepath.Join(dir, "gone")))
	write(b.t, dir, map[string]string{"d01/f0001": "changed", "new/n": "n", "x.log": ""})
	return dir
}

func TestKillBeforeAndAfterEverySpawn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.dirtyRepo(40)
	clean := setup(t)
	want := clean.seal(dir)
	wantFiles := clean.content(want.Repo, want.Tree)
	before := fingerprint(t, dir)
	git := realGit(t)
	for _, round := range []struct {
		when string
		cold bool // start from no state each time
	}{{"before", true}, {"after", true}, {"after", false}} {
		when := round.when
		done := false
		for n := 1; !done; n++ {
			// The n-th process that is started kills the one that started it.
			count := filepath.Join(t.TempDir(), "count")
			kill := map[string]string{
				"before": "kill -9 $PPID; exec " + git + ` "$@"`,
				"after":  git + ` "$@"; kill -9 $PPID`,
			}[when]
			fake := script(t, `n=$(( $(wc -l < '`+count+`') + 1 )); echo >> '`+count+`'
if [ $n -eq `+strconv.Itoa(n)+` ]; then `+kill+`; fi
exec `+git+` "$@"`)
			must(t, os.WriteFile(count, nil, 0o600))
			cmd := b.child("once", dir, fake)
			out, err := cmd.CombinedOutput()
			if err == nil {
				done = true
				if n < 6 {
					t.Fatalf("only %d processes were started", n-1)
				}
			} else if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
				t.Fatalf("the child ended with %v, want killed: %s", err, out)
			}
			got := b.seal(dir)
			if got.Tree != want.Tree {
				t.Fatalf("killed %s process %d: seal = %s, want %s", when, n, got.Tree, want.Tree)
			}
			c := b.checkout(got.Repo, got.Tree)
			if diff := cmp.Diff(wantFiles, onDisk(t, c.Dir())); diff != "" {
				t.Fatalf("killed %s process %d: checkout (-want +got):\n%s", when, n, diff)
			}
			b.release(c)
			if round.cold {
				must(t, os.RemoveAll(filepath.Join(filepath.Dir(b.home), "state", "snapshot", got.Repo.ID)))
				must(t, os.RemoveAll(filepath.Join(filepath.Dir(b.home), "cache", "checkouts", got.Repo.ID)))
			}
		}
	}
	if diff := cmp.Diff(before, fingerprint(t, dir)); diff != "" {
		t.Errorf("the user's repository was touched:\n%s", diff)
	}
}

// A git that was killed while it wrote a reference leaves its lock for good.
func TestAForgottenLockOfAReferenceStopsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.dirtyRepo(3)
	snap := b.seal(dir)
	ref := filepath.Join(filepath.Dir(b.home), "state", "snapshot", snap.Repo.ID, "store.git", keepRefs, string(snap.Tree))
	must(t, os.Remove(ref))
	for _, lock := range []string{ref + ".lock", filepath.Join(filepath.Dir(b.home), "state", "snapshot", snap.Repo.ID, "store.git", "packed-refs.lock")} {
		must(t, os.WriteFile(lock, nil, 0o600))
	}
	if got := b.seal(dir); got.Tree != snap.Tree {
		t.Errorf("seal = %s, want %s", got.Tree, snap.Tree)
	}
	if out := b.run(b.home, "--git-dir="+filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(ref)))), "rev-parse", keepRefs+string(snap.Tree)); strings.TrimSpace(out) != string(snap.Tree) {
		t.Errorf("the reference names %q, want %s", out, snap.Tree)
	}
	done, err := b.store.GC(t.Context(), func(Repo, evidence.Tree) bool { return false }, 0)
	if err != nil || done.Trees == 0 {
		t.Errorf("GC = %+v, %v, want the tree forgotten", done, err)
	}
}

func TestKillInTheMiddleOfWritingFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.dirtyRepo(3000)
	git := realGit(t)
	for _, verb := range []string{"read-tree --reset", "update-index --add"} {
		// git is killed once it has written something, then the process above it.
		watch := filepath.Join(filepath.Dir(b.home), "cache/checkouts/*/0/src/d0*")
		if verb == "update-index --add" {
			watch = filepath.Join(filepath.Dir(b.home), "state/snapshot/*/index-*.lock")
		}
		fake := script(t, `case "$*" in *"`+verb+`"*)
	exec 3<&0
	`+git+` "$@" <&3 & pid=$!
	while kill -0 $pid 2>/dev/null; do set -- `+watch+`; [ -e "$1" ] && break; done
	kill -9 $pid; wait $pid; kill -9 $PPID; exit 1;;
esac
exec `+git+` "$@"`)
		cmd := b.child("once", dir, fake)
		out, err := cmd.CombinedOutput()
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
			t.Fatalf("the child ended with %v, want killed: %s", err, out)
		}
		snap := b.seal(dir)
		c := b.checkout(snap.Repo, snap.Tree)
		if diff := cmp.Diff(b.listing(snap), names(onDisk(t, c.Dir()))); diff != "" {
			t.Errorf("after %s was killed (-want +got):\n%s", verb, diff)
		}
		if found, err := c.Verify(t.Context()); err != nil || len(found) > 0 {
			t.Errorf("Verify = %q, %v, want nothing", found, err)
		}
		b.release(c)
		must(t, os.RemoveAll(filepath.Join(filepath.Dir(b.home), "state", "snapshot", snap.Repo.ID)))
	}
}

func names(m map[string]string) map[string]bool {
	out := map[string]bool{}
	for p := range m {
		out[p] = true
	}
	return out
}

func (b *bundle) listing(s Snapshot) map[string]bool {
	b.t.Helper()
	files, err := b.store.Files(b.t.Context(), s.Repo, s.Tree)
	must(b.t, err)
	out := map[string]bool{}
	for _, f := range files {
		out[f.Path] = true
	}
	return out
}

func TestKilledHolderFreesItsSlot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.dirtyRepo(10)
	cmd := b.child("hold", dir, "")
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	must(t, cmd.Start())
	held, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	held = strings.TrimSpace(held)
	snap := b.seal(dir)
	c := b.checkout(snap.Repo, snap.Tree)
	if c.Dir() == held {
		t.Errorf("two processes hold %s", held)
	}
	b.release(c)
	write(t, held, map[string]string{"left": "behind"})
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); err == nil {
		t.Error("the killed child ended well")
	}
	c = b.checkout(snap.Repo, snap.Tree)
	defer b.release(c)
	if c.Dir() != held {
		t.Errorf("checkout at %s, want the freed %s", c.Dir(), held)
	}
	if _, err := os.Stat(filepath.Join(held, "left")); !os.IsNotExist(err) {
		t.Errorf("what the killed one left is still there: %v", err)
	}
}

func TestProcessesSealAndCheckOutAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.dirtyRepo(200)
	var cmds []*exec.Cmd
	var outs []*strings.Builder
	for range 3 {
		cmd, out := b.child("rounds", dir, ""), &strings.Builder{}
		cmd.Stdout, cmd.Stderr = out, out
		must(t, cmd.Start())
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, outs[i])
		}
	}
	want := strings.Repeat(string(b.seal(dir).Tree)+"\n", 5)
	for i, out := range outs {
		if out.String() != want {
			t.Errorf("process %d sealed %q, want %q", i, out, want)
		}
	}
}

func TestCancelEndsTheProcessGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "1"})
	ctx, cancel := context.WithCancelCause(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	must(t, mkfifo(started))
	// A git that starts a child which keeps the output open for ever.
	b.store.git.path = script(t, "sleep 1000 & echo $! > '"+started+"'; wait")
	stopped := errors.New("stopped by the test")
	result := make(chan error, 1)
	go func() {
		_, err := b.store.Locate(ctx, dir)
		result <- err
	}()
	raw, err := os.ReadFile(started)
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	must(t, err)
	pidfd, err := unix.PidfdOpen(pid, 0)
	must(t, err)
	cancel(stopped)
	if err := <-result; !errors.Is(err, stopped) {
		t.Errorf("Locate = %v, want %v", err, stopped)
	}
	// The descriptor becomes readable when the process is gone.
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 60_000); n != 1 || err != nil {
		t.Errorf("the child of git is alive: %v", err)
	}
	must(t, unix.Close(pidfd))
}
