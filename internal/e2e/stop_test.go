package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func modCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// slow is the fixture with a test that waits for a file of its own package
// directory that never comes, until its process is ended.
func slow() map[string]string {
	files := shop()
	files["slow_test.go"] = "package shop\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestSlow(t *testing.T) {\n\tLoose(2)\n\ttime.Sleep(1500 * time.Millisecond)\n}\n"
	return files
}

// TestInterruptedStartIsResumed: one Ctrl-C ends a start with 130, keeps what was
// measured and says how to go on.
func TestInterruptedStartIsResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slow())
	tree := digestTree(t, w.repo)
	e, a := w.under([]signal{{700 * time.Millisecond, syscall.SIGINT}}, "start")
	if e.Exit != 130 || a.Envelope.Code != "interrupted" {
		t.Fatalf("exit %d, code %q, want 130 and interrupted\n%s\n%s", e.Exit, a.Envelope.Code, clip(a.stdout), clip(a.stderr))
	}
	if !strings.Contains(strings.Join(a.Envelope.Hints, "\n"), "proveto start") {
		t.Errorf("hints %q do not say how to go on", a.Envelope.Hints)
	}
	w.sound()
	b := w.must(0, "start")
	if b.Envelope.Data.Reused || b.symbol("shop.Double").Word != "proven" {
		t.Errorf("reused %v, Double %s: want a start that goes on", b.Envelope.Data.Reused, b.symbol("shop.Double").Word)
	}
	w.sound()
	w.clean(tree)
}

// TestTwiceInterruptedStartEndsAtOnce: the second Ctrl-C does not wait for
// anything, and leaves nothing behind either.
func TestTwiceInterruptedStartEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slow())
	e, _ := w.under([]signal{{700 * time.Millisecond, syscall.SIGINT}, {time.Millisecond, syscall.SIGINT}}, "start")
	if e.Exit != 130 {
		t.Errorf("exit %d, want 130", e.Exit)
	}
	if got := w.must(0, "start").symbol("shop.Double").Word; got != "proven" {
		t.Errorf("the next start finds Double %s", got)
	}
	w.sound()
}

// TestTwoStartsAtOnce: same repository, and two repositories on one state.
func TestTwoStartsAtOnce(t *testing.T) {
	t.Parallel()
	a := newWorld(t, shop())
	b := newWorld(t, shop())
	b.write("extra.go", "package shop\n\n// Half has a test of its own.\nfunc Half(n int) int { return n / 2 }\n")
	b.write("extra_test.go", "package shop\n\nimport \"testing\"\n\nfunc TestHalf(t *testing.T) {\n\tif Half(8) != 4 {\n\t\tt.Error(\"want 4\")\n\t}\n}\n")
	b.commit("half")
	b.state, b.cache = a.state, a.cache
	worlds := []*world{a, a, b}
	answers := make([]answer, len(worlds))
	var wg sync.WaitGroup
	for i, w := range worlds {
		wg.Go(func() { answers[i] = w.run("start") })
	}
	wg.Wait()
	for i, got := range answers {
		if got.exit != 0 {
			t.Fatalf("start %d of 3 at once: exit %d\n%s\n%s", i, got.exit, clip(got.stdout), clip(got.stderr))
		}
		if c := got.Envelope.Data.Counts; c["proven"] != []int{3, 3, 4}[i] || c["not_measured"] != 0 {
			t.Errorf("start %d of 3 at once: counts %v", i, c)
		}
	}
	a.sound()
}

// TestFullDisk: every write of a start may be the one for which there is no
// room. Nothing is credited that was not kept, and with room again all is well.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.must(0, "doctor")                                // warms nothing of the state's ledger size below
	for _, limit := range []string{"8", "64", "256"} { // KiB of a file
		one := w.other()
		one.cache = w.cache
		script := `ulimit -f "$1"; shift; trap '' XFSZ; exec "$@"`
		cmd := exec.CommandContext(t.Context(), "bash", "-c", script, "bash", limit, product, "start", "--json", "--progress=none")
		var stdout, stderr strings.Builder
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = one.repo, one.environ(), &stdout, &stderr
		_ = cmd.Run() // the exit code is looked at
		a := one.answer([]string{"start"}, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String())
		if a.exit == 0 && a.Envelope.Data.Counts["proven"] != 3 {
			t.Errorf("limit %s KiB: exit 0 with counts %v", limit, a.Envelope.Data.Counts)
		}
		if a.exit != 0 && (a.Envelope.Message == "" || len(a.Envelope.Hints) == 0) {
			t.Errorf("limit %s KiB: exit %d says %q, hints %q", limit, a.exit, a.Envelope.Message, a.Envelope.Hints)
		}
		t.Logf("limit %s KiB: exit %d %s", limit, a.exit, a.Envelope.Message)
		if got := one.must(0, "start").Envelope.Data.Counts["proven"]; got != 3 {
			t.Errorf("limit %s KiB lifted: %d proven, want 3", limit, got)
		}
		one.sound()
	}
}

// TestReadOnlyState: a state that cannot be written is said, not a crash.
func TestReadOnlyState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	// Root passes over modes; a file in place of a directory stops everybody.
	if err := os.WriteFile(w.state, []byte("in the way"), 0o400); err != nil {
		t.Fatal(err)
	}
	a := w.must(1, "start")
	if !strings.Contains(a.Envelope.Message, w.state) || len(a.Envelope.Hints) == 0 {
		t.Errorf("message %q, hints %q: want the directory named and what to do", a.Envelope.Message, a.Envelope.Hints)
	}
	if raw, err := os.ReadFile(w.state); err != nil || string(raw) != "in the way" {
		t.Errorf("the file in the way was touched: %q, %v", raw, err)
	}
}

// TestSecondMachineReproduces: an exported certificate is verified and run again
// in another clone, with a state and a cache that know nothing.
func TestSecondMachineReproduces(t *testing.T) {
	t.Parallel()
	w := proven(t)
	id := w.must(0, "start").symbol("shop.Shout").Certificate
	file := filepath.Join(t.TempDir(), "certificate.json")
	cmd := w.command(t.Context(), "ledger", "export", id, "-o", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("export: %v\n%s", err, out)
	}
	key := w.verifierKey()
	o := w.other()
	o.repo = filepath.Join(t.TempDir(), "clone")
	w.git("clone", "-q", w.repo, o.repo)
	a := o.must(0, "verify", file, "--rerun", "--signer", key)
	if d := a.Envelope.Data; !d.Sound || !d.Trusted || len(d.Reruns) != 1 || !d.Reruns[0].Agrees {
		t.Errorf("verify --rerun in a clone: %s", clip(a.stdout))
	}
	o.sound()
	// An edit of one byte inside the statement is found.
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := len(raw) / 2
	raw[at] = otherByte(raw[at])
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if a := o.run("verify", file, "--signer", key); a.exit != 5 {
		t.Errorf("verify of an edited export: exit %d, want 5\n%s", a.exit, clip(a.stdout))
	}
	// In the clone the behaviour is broken: the rerun is about the tree of the
	// certificate, so it agrees still.
	o.edit("name.go", `+ "!"`, `+ "?"`)
	if a := o.must(0, "start"); a.symbol("shop.Shout").Word == "proven" {
		t.Errorf("Shout is proven while its test is red: %s", clip(a.stdout))
	}
}

// otherByte is a digit or letter for another one, so that text stays text.
func otherByte(b byte) byte {
	if b == 'A' {
		return 'B'
	}
	return 'A'
}
