package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// sampleFiles is the module that most scripts are about: Add is guarded, Fee is
// run and not looked at, Lost is reached by no test.
var sampleFiles = map[string]string{
	"go.mod": "module example.com/pay\n\ngo 1.21\n",
	"pay.go": `package pay

// Add adds.
func Add(a, b int) int { return a + b }

// Fee is run by a test that does not look at it.
func Fee(amount int) int { return amount / 50 }

// Lost is reached by no test.
func Lost(amount int) bool { return amount > 3 }
`,
	"pay_test.go": `package pay

import "testing"

func TestAdd(t *testing.T) {
	if got := Add(2, 3); got != 5 {
		t.Errorf("Add(2, 3) = %d, want 5", got)
	}
}

func TestFee(t *testing.T) { Fee(500) }
`,
}

// world is what all scripts share: the binary, the caches, and one repository
// that was proven once.
type world struct {
	dir, bin string
	goEnv    map[string]string
	prepare  func() error
}

// TestScripts runs every script of testdata/script with the real binary.
func TestScripts(t *testing.T) {
	w := newWorld(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Setup:               w.setup,
		RequireExplicitExec: true,
		WorkdirRoot:         w.dir,
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %s", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     w.exits,
			"repo":      w.repo,
			"measured":  w.measured,
			"document":  w.document,
			"clean":     w.clean,
			"noprocess": w.noProcess,
			"damage":    w.damage,
			"pick":      w.pick,
			"helpful":   w.helpful,
			"large":     w.large,
			"badtext":   w.badText,
		},
	})
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{dir: dir, bin: filepath.Join(dir, "bin"), goEnv: map[string]string{}}
	// An unprivileged user of a script runs the binary and reads the sample.
	for d := dir; d != filepath.Dir(os.TempDir()) && d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil { //nolint:gosec // see above
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(w.bin, "proveto"), "github.com/proveto/proveto/cmd/proveto")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the product: %v\n%s", err, out)
	}
	names := []string{"GOCACHE", "GOMODCACHE", "GOROOT"}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		w.goEnv[names[i]] = line
	}
	w.prepare = sync.OnceValue(w.proveSample)
	return w
}

// environ is the environment of every command of the product.
func (w *world) environ(home, state string) []string {
	return []string{
		"PATH=" + w.bin + ":" + filepath.Join(w.goEnv["GOROOT"], "bin") + ":/usr/local/bin:/usr/bin:/bin",
		"HOME=" + home, "PROVETO_STATE=" + state, "PROVETO_CACHE=" + filepath.Join(w.dir, "cache"),
		"GOCACHE=" + w.goEnv["GOCACHE"], "GOMODCACHE=" + w.goEnv["GOMODCACHE"], "GOPROXY=off", "GOFLAGS=", "GOTOOLCHAIN=local",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C.UTF-8",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
	}
}

// proveSample proves the shared repository once, so that scripts about what is
// stored need not.
func (w *world) proveSample() error {
	dir := filepath.Join(w.dir, "sample")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range sampleFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	env := w.environ(w.dir, filepath.Join(w.dir, "state"))
	for _, argv := range [][]string{
		{"git", "init", "-q", "-b", "main"}, {"git", "add", "-A"}, {"git", "commit", "-q", "-m", "base"}, {filepath.Join(w.bin, "proveto"), "start", "-q"},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
		}
	}
	return nil
}

func (w *world) setup(env *testscript.Env) error {
	env.Vars = append(env.Vars, w.environ(filepath.Join(env.WorkDir, "home"), filepath.Join(env.WorkDir, "state"))...)
	env.Setenv("PROVETO_BIN", filepath.Join(w.bin, "proveto"))
	gate, err := filepath.Abs("../../.ci/gate")
	if err != nil {
		return err
	}
	env.Setenv("GATE", gate)
	env.Setenv("SAMPLE", filepath.Join(w.dir, "sample"))
	env.Setenv("TMPDIR", filepath.Join(env.WorkDir, "tmp"))
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
	if err := os.Chmod(env.WorkDir, 0o755); err != nil { //nolint:gosec // an unprivileged user reads it
		return err
	}
	for _, d := range []string{"home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(env.WorkDir, d), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// exits runs a command that must end with the given code; every command that it
// tells the user to run must exist.
func (w *world) exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit %d, want %d", got, want)
	}
	for line := range strings.Lines(ts.ReadFile("stderr")) {
		if hint, ok := strings.CutPrefix(strings.TrimSpace(line), "hint: "); ok {
			if err := checkHint(hint); err != nil {
				ts.Fatalf("%s: %v", strings.TrimSpace(line), err)
			}
		}
	}
	if bytes.Contains([]byte(ts.ReadFile("stderr")), []byte("goroutine ")) {
		ts.Fatalf("a stack on stderr")
	}
	ts.Setenv("EXIT", args[0])
}

// repo commits a directory as a new git repository.
func (w *world) repo(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	for _, argv := range [][]string{{"init", "-q", "-b", "main", dir}, {"-C", dir, "add", "-A"}, {"-C", dir, "commit", "-q", "-m", "base"}} {
		ts.Check(ts.Exec("git", argv...))
	}
}

// measured gives the script a copy of the state in which the sample was proven.
func (w *world) measured(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(w.prepare())
	ts.Check(ts.Exec("cp", "-a", filepath.Join(w.dir, "state"), ts.Getenv("PROVETO_STATE")))
	ts.Check(ts.Chdir(filepath.Join(w.dir, "sample")))
}

// clean says that git sees nothing new in a repository.
func (w *world) clean(ts *testscript.TestScript, _ bool, args []string) {
	out, err := exec.Command("git", "-C", ts.MkAbs(args[0]), "status", "--porcelain", "--ignored").CombinedOutput()
	if err != nil || len(out) > 0 {
		ts.Fatalf("git status: %v\n%s", err, out)
	}
}

// document says that stdout is exactly one JSON document: the envelope with the
// given code, with the exit code of the command, and with a next command that
// exists for every answer that is not a success.
func (w *world) document(ts *testscript.TestScript, _ bool, args []string) {
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	var raw map[string]json.RawMessage
	ts.Check(dec.Decode(&raw))
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("more than one document on stdout")
	}
	for _, name := range []string{"schema", "ok", "code", "exit", "message", "data", "warnings", "hints", "next", "version"} {
		if _, ok := raw[name]; !ok {
			ts.Fatalf("the document has no field %s", name)
		}
	}
	var a struct {
		Schema, Code, Message string
		OK                    bool
		Exit                  int
		Next                  []struct{ Why, Run string }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &a))
	switch {
	case a.Code != args[0]:
		ts.Fatalf("code %s, want %s", a.Code, args[0])
	case strconv.Itoa(a.Exit) != ts.Getenv("EXIT"):
		ts.Fatalf("the document says exit %d, the process exit %s", a.Exit, ts.Getenv("EXIT"))
	case a.OK != (a.Exit == 0):
		ts.Fatalf("ok is %v at exit %d", a.OK, a.Exit)
	case !regexp.MustCompile(`^proveto/[a-z_.]+/v1$`).MatchString(a.Schema):
		ts.Fatalf("schema %q", a.Schema)
	case a.Exit >= 1 && a.Exit <= 5 && len(a.Next) == 0:
		ts.Fatalf("nothing in next at exit %d", a.Exit)
	case a.Exit > 0 && a.Message == "":
		ts.Fatalf("no message at exit %d", a.Exit)
	}
	for _, n := range a.Next {
		if err := checkHint(n.Run); err != nil || n.Why == "" {
			ts.Fatalf("next %q (%s): %v", n.Run, n.Why, err)
		}
	}
}

// noProcess says that no process with the words in its command line is left.
func (w *world) noProcess(ts *testscript.TestScript, _ bool, args []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	ts.Check(err)
	for _, f := range all {
		b, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})), args[0]) {
			ts.Fatalf("%s is left: %s", f, b)
		}
	}
}

// damage overwrites the middle of the largest file that matches.
func (w *world) damage(ts *testscript.TestScript, _ bool, args []string) {
	var name string
	var size int64 = -1
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if ok, _ := filepath.Match(args[1], d.Name()); !ok {
			return nil
		}
		fi, err := d.Info()
		if err == nil && fi.Size() > size {
			name, size = path, fi.Size()
		}
		return err
	}))
	if name == "" {
		ts.Fatalf("no file %s below %s", args[1], args[0])
	}
	ts.Check(os.Chmod(name, 0o600))
	b, err := os.ReadFile(name)
	ts.Check(err)
	for i := len(b) / 4; i < len(b)/2+1; i++ {
		b[i] ^= 0xff
	}
	ts.Check(os.WriteFile(name, b, 0o600))
}

// pick puts what the first group of a pattern finds in stdout into a variable.
func (w *world) pick(ts *testscript.TestScript, _ bool, args []string) {
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("stdout has no match of %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// large writes a file of so many bytes.
func (w *world) large(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Repeat([]byte{'a'}, n), 0o600))
}

// badText writes a file whose bytes are no UTF-8.
func (w *world) badText(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte("caf\xe9\n"), 0o600))
}

// helpful says that stderr names at least one command, and that stdout is empty.
func (w *world) helpful(ts *testscript.TestScript, _ bool, _ []string) {
	if !strings.Contains(ts.ReadFile("stderr"), "hint: ") || ts.ReadFile("stdout") != "" {
		ts.Fatalf("want an empty stdout and a hint on stderr")
	}
}

// checkHint parses a command of ours against the command tree; any other text
// must not look like one.
func checkHint(hint string) error {
	words, err := shellWords(hint)
	for err == nil && len(words) > 0 && variable.MatchString(words[0]) {
		words = words[1:]
	}
	if err != nil || len(words) == 0 || words[0] != "proveto" {
		return err
	}
	return parses(words[1:])
}

// variable is a setting in front of a command.
var variable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=`)

// shellWords splits a line as a shell does, as far as documents use it: spaces
// and quotes; an unquoted # , | or > ends the command.
func shellWords(line string) ([]string, error) {
	var out []string
	var word strings.Builder
	in, quote := false, rune(0)
	for _, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			in, quote = true, r
		case r == ' ' || r == '\t':
			if in {
				out = append(out, word.String())
				word.Reset()
			}
			in = false
		case (r == '#' && !in) || r == '|' || r == '>' || r == ';' || r == '&':
			return out, nil
		default:
			in = true
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("an open quote in %q", line)
	}
	if in {
		out = append(out, word.String())
	}
	return out, nil
}
