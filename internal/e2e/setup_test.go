package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/proveto/proveto/internal/cli" // the product: a result is not kept by go test when it changed
)

// product is the binary under test, built once by TestMain.
var product string

func TestMain(m *testing.M) {
	if os.Getenv(reaperVariable) != "" {
		os.Exit(reap(os.Args[1:]))
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "proveto-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) // nobody reads the exit of a test's clean-up
	product = filepath.Join(dir, "proveto")
	cmd := exec.Command("go", "build", "-o", product, "./cmd/proveto")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the product: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// long tells whether the release sizes are asked for.
func long() bool { return os.Getenv("PROVETO_LONG") != "" }

// draws is the seeded source of a test's moments and places.
func draws(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("PROVETO_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("PROVETO_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// world is one user: a checkout, a state, a cache and a directory for temporary
// files, all below a directory of the test.
type world struct {
	t                       *testing.T
	repo, state, cache, tmp string
	origin                  string   // the state that this one is a copy of
	env                     []string // additional; the last one wins
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		t: t, repo: filepath.Join(dir, "repo"), state: filepath.Join(dir, "state"), cache: filepath.Join(dir, "cache"), tmp: filepath.Join(dir, "tmp"),
	}
	for _, d := range []string{w.repo, w.tmp} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, body := range files {
		w.write(name, body)
	}
	w.git("init", "-q", "-b", "main")
	w.commit("first")
	return w
}

// other is the same repository with a state, a cache and temporary files that
// know nothing.
func (w *world) other() *world {
	dir := w.t.TempDir()
	o := *w
	o.state, o.cache, o.tmp = filepath.Join(dir, "state"), filepath.Join(dir, "cache"), filepath.Join(dir, "tmp")
	if err := os.MkdirAll(o.tmp, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return &o
}

func (w *world) write(name, body string) {
	w.t.Helper()
	path := filepath.Join(w.repo, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(body), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// edit replaces the one occurrence of old in a file.
func (w *world) edit(name, old, replacement string) {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.repo, name))
	if err != nil {
		w.t.Fatal(err)
	}
	if n := bytes.Count(raw, []byte(old)); n != 1 {
		w.t.Fatalf("%s holds %q %d times, want once", name, old, n)
	}
	w.write(name, strings.Replace(string(raw), old, replacement, 1))
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = w.repo
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (w *world) commit(message string) {
	w.t.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "-m", message)
}

// environ is the environment of the product: the machine's, with the
// directories of this world.
func (w *world) environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PROVETO_") })
	env = append(env, "PROVETO_STATE="+w.state, "PROVETO_CACHE="+w.cache, "TMPDIR="+w.tmp)
	if os.Getenv("GOCACHE") == "" {
		// The product gets the build cache that the machine has, wherever TMPDIR is.
		if dir, err := os.UserCacheDir(); err == nil {
			env = append(env, "GOCACHE="+filepath.Join(dir, "go-build"))
		}
	}
	return append(env, w.env...)
}

// answer is what one command said.
type answer struct {
	t              *testing.T
	args           []string
	exit           int
	stdout, stderr string
	Envelope       struct {
		Exit    int      `json:"exit"`
		Code    string   `json:"code"`
		Message string   `json:"message"`
		Hints   []string `json:"hints"`
		Head    struct {
			Seq  int64  `json:"seq"`
			Root string `json:"root"`
		} `json:"head"`
		Data data `json:"data"`
	}
}

// data joins the fields of the answers that are looked at here.
type data struct {
	Reused       bool            `json:"reused"`
	Attempted    int             `json:"attempted"`
	Counts       map[string]int  `json:"counts"`
	Symbols      []symbol        `json:"symbols"`
	Certificates []certificate   `json:"certificates"`
	Entries      json.RawMessage `json:"entries"`
	Problems     []string        `json:"problems"`
	Sound        bool            `json:"sound"`
	Trusted      bool            `json:"trusted"`
	Reruns       []struct {
		Agrees bool `json:"agrees"`
	} `json:"reruns"`
}

type symbol struct {
	Name        string `json:"name"`
	Word        string `json:"word"`
	Reason      string `json:"reason"`
	Detail      string `json:"detail"`
	Command     string `json:"command"`
	New         bool   `json:"new"`
	Certificate string `json:"certificate"`
}

type certificate struct {
	ID          string   `json:"id"`
	SymbolName  string   `json:"symbol_name"`
	Test        string   `json:"test"`
	Live        bool     `json:"live"`
	StaleCauses []string `json:"stale_causes"`
}

func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, product, args...)
	cmd.Dir, cmd.Env = w.repo, w.environ()
	return cmd
}

// run runs the product with --json.
func (w *world) run(args ...string) answer {
	w.t.Helper()
	args = append(args, "--json", "--progress=none")
	var stdout, stderr bytes.Buffer
	cmd := w.command(w.t.Context(), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		w.t.Fatalf("proveto %s: %v", strings.Join(args, " "), err)
	}
	return w.answer(args, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String())
}

func (w *world) answer(args []string, exit int, stdout, stderr string) answer {
	w.t.Helper()
	a := answer{t: w.t, args: args, exit: exit, stdout: stdout, stderr: stderr}
	if err := json.Unmarshal([]byte(stdout), &a.Envelope); err != nil {
		w.t.Fatalf("proveto %s: exit %d and no JSON document: %v\n%s\n%s", strings.Join(args, " "), exit, err, clip(stdout), clip(stderr))
	}
	if a.Envelope.Exit != exit {
		w.t.Errorf("proveto %s: exit %d, but the document says %d", strings.Join(args, " "), exit, a.Envelope.Exit)
	}
	return a
}

// must runs the product and wants this exit code.
func (w *world) must(exit int, args ...string) answer {
	w.t.Helper()
	a := w.run(args...)
	if a.exit != exit {
		w.t.Fatalf("proveto %s: exit %d, want %d\n%s\n%s", strings.Join(args, " "), a.exit, exit, clip(a.stdout), clip(a.stderr))
	}
	return a
}

func clip(s string) string {
	if len(s) > 3000 {
		return s[:3000] + "…"
	}
	return s
}

func (a answer) symbol(name string) symbol {
	a.t.Helper()
	for _, s := range a.Envelope.Data.Symbols {
		if s.Name == name {
			return s
		}
	}
	a.t.Fatalf("proveto %s: no symbol %s in the answer\n%s", strings.Join(a.args, " "), name, clip(a.stdout))
	return symbol{}
}

func (a answer) certificate(symbol string) certificate {
	a.t.Helper()
	for _, c := range a.Envelope.Data.Certificates {
		if c.SymbolName == symbol {
			return c
		}
	}
	a.t.Fatalf("proveto %s: no certificate for %s in the answer", strings.Join(a.args, " "), symbol)
	return certificate{}
}

// fresh are the names of the symbols that were measured by this command.
func (a answer) fresh() []string {
	var out []string
	for _, s := range a.Envelope.Data.Symbols {
		if s.New {
			out = append(out, s.Name)
		}
	}
	slices.Sort(out)
	return out
}

// words are the evidence words by symbol.
func (a answer) words() map[string]string {
	out := map[string]string{}
	for _, s := range a.Envelope.Data.Symbols {
		out[s.Name] = s.Word
	}
	return out
}

// entries counts the entries of a kind.
func (w *world) entries(kind string) int {
	w.t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal(w.must(0, "ledger", "log", "--kind", kind, "--limit", "1000000").Envelope.Data.Entries, &list); err != nil {
		w.t.Fatal(err)
	}
	return len(list)
}

// sound wants a ledger that verifies.
func (w *world) sound() {
	w.t.Helper()
	if a := w.run("ledger", "verify"); a.exit != 0 || !a.Envelope.Data.Sound {
		w.t.Fatalf("ledger verify: exit %d, %s %q", a.exit, a.Envelope.Message, a.Envelope.Data.Problems)
	}
}

// digestTree is the digest of every name, mode and byte below a directory, .git
// included.
func digestTree(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		var body []byte
		switch {
		case fi.Mode().IsRegular():
			body, err = os.ReadFile(path)
		case fi.Mode()&fs.ModeSymlink != 0:
			var to string
			to, err = os.Readlink(path)
			body = []byte(to)
		}
		rel, _ := filepath.Rel(dir, path) // the walk began at dir
		fmt.Fprintf(h, "%q %s %d %x\n", rel, fi.Mode(), len(body), sha256.Sum256(body))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// shop is the fixture: each behaviour has its own way to be guarded.
func shop() map[string]string {
	return map[string]string{
		"go.mod": "module example.com/shop\n\ngo 1.21\n",
		"price.go": `package shop

// Double is called by Label.
func Double(n int) int { return 2 * n }

// Label calls Double.
func Label(n int) string {
	if Double(n) > 10 {
		return "dear"
	}
	return "cheap"
}
`,
		"name.go": `package shop

import "strings"

// Shout stands alone.
func Shout(s string) string { return strings.ToUpper(s) + "!" }

// Loose is run by a test that does not look.
func Loose(n int) int { return n + 1 }
`,
		"price_test.go": `package shop

import "testing"

func TestDouble(t *testing.T) {
	if got := Double(4); got != 8 {
		t.Errorf("Double(4) = %d, want 8", got)
	}
}

func TestLabel(t *testing.T) {
	if got := Label(6); got != "dear" {
		t.Errorf("Label(6) = %q, want dear", got)
	}
	if got := Label(2); got != "cheap" {
		t.Errorf("Label(2) = %q, want cheap", got)
	}
}
`,
		"name_test.go": `package shop

import "testing"

func TestShout(t *testing.T) {
	if got := Shout("a"); got != "A!" {
		t.Errorf("Shout(a) = %q, want A!", got)
	}
}

func TestLoose(t *testing.T) { Loose(1) }
`,
	}
}
