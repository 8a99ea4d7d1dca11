package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/tools/txtar"
)

// caseLimit ends one command of the product: an attack must not hold it up.
const caseLimit = 60 * time.Second

// TestAttacks runs every case through the product's own binary: 0 attacks
// credited, 0 honest twins refused.
func TestAttacks(t *testing.T) {
	if !hasGo(t, "../cmd/proveto") {
		t.Skip("cmd/proveto does not exist yet")
	}
	bin := build(t)
	for _, r := range rows(t) {
		for _, c := range r.Cases {
			for _, side := range []string{"attack", "twin"} {
				t.Run(r.Name+"/"+c.Language+"/"+side, func(t *testing.T) {
					for _, p := range r.DefendedIn {
						if !hasGo(t, filepath.Join("..", "internal", p)) {
							t.Skipf("its defence needs package %s, which does not exist yet", p)
						}
					}
					t.Parallel()
					want := c.Expect.Attack
					if side == "twin" {
						want = c.Expect.Twin
					}
					p := newPlay(t, bin)
					p.lay(c.Base)
					p.play("before", c.Before)
					p.lay(c.Archives(side)[1:]...)
					p.play("after", c.After)
					compare(t, want, p.last)
				})
			}
		}
	}
}

var built struct {
	sync.Once
	path string
	err  error
}

func build(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		var dir string
		if dir, built.err = os.MkdirTemp("", "proveto-attacks-"); built.err != nil {
			return
		}
		built.path = filepath.Join(dir, "proveto")
		cmd := exec.Command("go", "build", "-o", built.path, "./cmd/proveto")
		cmd.Dir = ".."
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		var out []byte
		if out, built.err = cmd.CombinedOutput(); built.err != nil {
			built.err = errors.New(string(out))
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(filepath.Dir(built.path)); err != nil {
			t.Error(err)
		}
	})
	return built.path
}

// answer is what a command of the product said last.
type answer struct {
	exit   int
	stdout []byte
	stderr []byte
}

// envelope is the part of the JSON answer that is compared.
type envelope struct {
	Exit int    `json:"exit"`
	Code string `json:"code"`
	Data struct {
		Symbols []json.RawMessage `json:"symbols"`
	} `json:"data"`
}

type symbol struct {
	Name      string `json:"name"`
	Word      string `json:"word"`
	Reason    string `json:"reason"`
	Code      string `json:"code"`
	Survivors []struct {
		ID string `json:"id"`
	} `json:"survivors"`
	raw []byte
}

// symbols reads the symbols of an answer by name.
func (a answer) symbols() (envelope, map[string]symbol, error) {
	var e envelope
	if err := json.Unmarshal(a.stdout, &e); err != nil {
		return e, nil, err
	}
	out := map[string]symbol{}
	for _, raw := range e.Data.Symbols {
		s := symbol{raw: raw}
		if err := json.Unmarshal(raw, &s); err != nil {
			return e, nil, err
		}
		out[s.Name] = s
	}
	return e, out, nil
}

// play is one case: a repository, a state of its own, and the last answer.
type play struct {
	t               *testing.T
	bin, repo, home string
	last            answer
}

func newPlay(t *testing.T, bin string) *play {
	p := &play{t: t, bin: bin, repo: t.TempDir(), home: t.TempDir()}
	p.git("init", "-q", "-b", "main")
	return p
}

func (p *play) git(args ...string) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "git", args...)
	cmd.Dir = p.repo
	cmd.Env = append(plainEnv(), "HOME="+p.home, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=A Tester", "GIT_AUTHOR_EMAIL=tester@example.test", "GIT_AUTHOR_DATE=2001-02-03T04:05:06Z",
		"GIT_COMMITTER_NAME=A Tester", "GIT_COMMITTER_EMAIL=tester@example.test", "GIT_COMMITTER_DATE=2001-02-03T04:05:06Z")
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// lay changes the tree and commits it.
func (p *play) lay(archives ...*txtar.Archive) {
	p.t.Helper()
	if err := Lay(p.repo, archives...); err != nil {
		p.t.Fatal(err)
	}
	p.git("add", "--all")
	p.git("commit", "-q", "--allow-empty", "-m", "a step")
}

// play runs a script in the repository.
func (p *play) play(name, commands string) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), name+".txtar")
	if err := os.WriteFile(file, []byte(commands), 0o600); err != nil {
		p.t.Fatal(err)
	}
	testscript.Run(p.t, testscript.Params{
		Files: []string{file},
		Setup: func(env *testscript.Env) error {
			env.Cd = p.repo
			env.Setenv("HOME", p.home)
			env.Setenv("PWD", p.repo)
			env.Setenv("XDG_STATE_HOME", filepath.Join(p.home, "state"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(p.home, "cache"))
			for _, k := range []string{"GOCACHE", "GOMODCACHE"} {
				env.Setenv(k, goEnv(p.t, k))
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"proveto":  p.proveto,
			"survivor": p.survivor,
			"who":      p.who,
		},
	})
}

// proveto runs the product; its exit code is compared later, not here.
func (p *play) proveto(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("a script says nothing about exit codes; expect.yaml does")
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), caseLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.bin, args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = plainEnv()
	for _, k := range []string{"HOME", "PATH", "PWD", "XDG_STATE_HOME", "XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE"} {
		cmd.Env = append(cmd.Env, k+"="+ts.Getenv(k))
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		ts.Fatalf("proveto %s: %v", strings.Join(args, " "), err)
	}
	if ctx.Err() != nil {
		ts.Fatalf("proveto %s: not done after %s\n%s", strings.Join(args, " "), caseLimit, stderr.String())
	}
	p.last = answer{cmd.ProcessState.ExitCode(), stdout.Bytes(), stderr.Bytes()}
}

// survivor NAME sets $SURVIVOR to the first surviving probe of a symbol.
func (p *play) survivor(ts *testscript.TestScript, _ bool, args []string) {
	_, syms, err := p.last.symbols()
	ts.Check(err)
	if len(args) != 1 || len(syms[args[0]].Survivors) == 0 {
		ts.Fatalf("no survivor of %q in the last answer", args)
	}
	ts.Setenv("SURVIVOR", syms[args[0]].Survivors[0].ID)
}

// who FILE sets $WHO to the content of a file.
func (p *play) who(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: who FILE")
	}
	ts.Setenv("WHO", strings.TrimSpace(ts.ReadFile(args[0])))
}

// compare holds the last answer against the expectation.
func compare(t *testing.T, want Outcome, got answer) {
	t.Helper()
	e, syms, err := got.symbols()
	if err != nil {
		t.Fatalf("the answer is not one JSON document: %v\nstdout:\n%s\nstderr:\n%s", err, got.stdout, got.stderr)
	}
	if got.exit != want.Exit || e.Exit != want.Exit {
		t.Errorf("exit %d, in the answer %d, want %d", got.exit, e.Exit, want.Exit)
	}
	if want.Code != "" && e.Code != want.Code {
		t.Errorf("code %q, want %q", e.Code, want.Code)
	}
	for name, w := range want.Evidence {
		s, ok := syms[name]
		switch {
		case !ok:
			t.Errorf("%s is not in the answer", name)
		case !w.Word.Has(s.Word):
			t.Errorf("%s is %s (reason %q, code %q), want %s", name, s.Word, s.Reason, s.Code, strings.Join(w.Word, " or "))
		case !w.Code.Has(s.Code) && !w.Code.Has(s.Reason):
			t.Errorf("%s is %s for reason %q, code %q; want %s", name, s.Word, s.Reason, s.Code, strings.Join(w.Code, " or "))
		case !strings.Contains(string(s.raw), w.Mentions):
			t.Errorf("%s does not mention %s", name, strconv.Quote(w.Mentions))
		}
	}
	for _, name := range want.NotCredited {
		if s := syms[name]; s.Word == "proven" {
			t.Errorf("%s is credited", name)
		}
	}
	for _, name := range want.Credited {
		if s := syms[name]; s.Word != "proven" {
			t.Errorf("%s is refused: %q, reason %q, code %q", name, s.Word, s.Reason, s.Code)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", got.stdout, got.stderr)
	}
}
