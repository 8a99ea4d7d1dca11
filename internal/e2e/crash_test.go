package e2e

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilledStartIsFinishedByTheNext kills a start with -9 at random moments.
// Each time nothing may be left running, and the next start must end with the
// answer of an undisturbed one on a ledger that verifies.
func TestKilledStartIsFinishedByTheNext(t *testing.T) {
	n := 8
	if long() {
		n = 500
	}
	for i := range 2 { // side by side: two users of one machine
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			killAtRandom(t, newWorld(t, shop()), n/2)
		})
	}
}

// TestKilledStartOfRealModule is the same on a module of the world.
func TestKilledStartOfRealModule(t *testing.T) {
	if !long() {
		t.Skip("PROVETO_LONG is not set")
	}
	killAtRandom(t, realModule(t), 20)
}

// realModule is google/uuid from the module cache, as a git repository.
func realModule(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, map[string]string{"README": "uuid\n"})
	goCommand(t, w.repo, nil, "mod", "download", "github.com/google/uuid@v1.6.0")
	dir := filepath.Join(modCache(t), "github.com", "google", "uuid@v1.6.0")
	if err := os.CopyFS(w.repo, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "uuid")
	return w
}

func killAtRandom(t *testing.T, w *world, n int) {
	r := draws(t)
	mounts := mountTable(t)
	// The undisturbed answer, on a state of its own; it also warms the caches.
	whole := w.other()
	whole.cache = w.cache
	whole.must(0, "start")
	reference := whole.other()
	reference.cache = w.cache
	e, a := reference.under(nil, "start")
	want := a.words()
	tree := digestTree(t, w.repo)
	killed, took := 0, e.Took
	for i := 0; killed < n; i++ {
		if i == 4*n {
			t.Fatalf("%d of %d starts were killed before their end", killed, i)
		}
		one := w.other()
		one.cache = w.cache // as on the user's machine: the cache lives on
		kills := 1 + r.IntN(2)
		for range kills {
			if killOne(t, one, r, took) {
				killed++
			}
		}
		last, a := one.under(nil, "start")
		took = min(took, last.Took)
		if a.exit != 0 {
			t.Errorf("kill %d: the next start ends with exit %d\n%s\n%s", i, a.exit, clip(a.stdout), clip(a.stderr))
		}
		if got := a.words(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("kill %d: words %v, want %v as without a kill", i, got, want)
		}
		one.sound()
		one.clean(tree)
		if got := mountTable(t); got != mounts {
			t.Errorf("kill %d: mounts differ:\n%s\nwere\n%s", i, got, mounts)
		}
		if t.Failed() {
			t.Fatalf("state kept for a look: %s", keep(t, one.state))
		}
	}
	t.Logf("%d starts were killed before their end (an undisturbed one took %s)", killed, e.Took.Round(time.Millisecond))
}

func killOne(t *testing.T, w *world, r *rand.Rand, took time.Duration) bool {
	t.Helper()
	at := time.Duration(r.Int64N(int64(took)))
	e, _ := w.under([]signal{{at, syscall.SIGKILL}}, "start")
	t.Logf("kill at %s: killed %v", at.Round(time.Microsecond), e.Killed)
	if !e.Killed && e.Exit != 0 {
		t.Errorf("start that was not killed ended with exit %d", e.Exit)
	}
	return e.Killed
}

// keep copies a state out of the test's directory.
func keep(t *testing.T, state string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "proveto-e2e-kept-") //nolint:usetesting // it outlives the test on purpose
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(state))
	}
	if err != nil {
		return err.Error()
	}
	return dir
}

// clean wants the user's tree as it was, and no file that only an unfinished
// step makes.
func (w *world) clean(tree string) {
	w.t.Helper()
	if s := w.git("--no-optional-locks", "status", "--porcelain"); s != "" {
		w.t.Errorf("git status: %s", s)
	}
	if got := digestTree(w.t, w.repo); got != tree {
		w.t.Errorf("the tree of the user has digest %s, it had %s", got, tree)
	}
	for _, dir := range []string{w.tmp, w.state, w.cache} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if rel, _ := filepath.Rel(dir, path); unfinished(dir == w.tmp, rel, d) { // the walk began at dir
				w.t.Errorf("left behind: %s", path)
			}
			return nil
		})
		if err != nil {
			w.t.Error(err)
		}
	}
}

// unfinished tells a temporary file by its name.
func unfinished(inTemp bool, rel string, d fs.DirEntry) bool {
	name := d.Name()
	switch {
	case rel == ".":
		return false
	case inTemp:
		return true
	case d.IsDir():
		return strings.HasSuffix(name, ".new")
	case strings.HasPrefix(rel, filepath.Join("blobs", "tmp")+"/"):
		return true
	}
	return strings.HasPrefix(name, ".tmp-") || strings.HasPrefix(name, ".proveto-") || strings.HasPrefix(name, "tmp_obj_") ||
		strings.HasPrefix(name, ".origin.json.") || strings.HasPrefix(name, ".index-") || (strings.HasSuffix(name, ".lock") && name != "objects.lock" && strings.HasPrefix(name, "index"))
}

func mountTable(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
