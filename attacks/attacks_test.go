package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	var sc scores
	if *results {
		t.Cleanup(func() { sc.write(t) })
	}
	for _, r := range rows(t) {
		for _, c := range r.Cases {
			for _, side := range []string{"attack", "twin"} {
				t.Run(r.Name+"/"+c.Language+"/"+side, func(t *testing.T) {
					if r.Waits != "" {
						sc.note(r.Name+"/"+c.Language, side, "not run: "+r.Waits)
						t.Skip(r.Waits)
					}
					for _, p := range r.DefendedIn {
						if !hasGo(t, filepath.Join("..", "internal", p)) {
							sc.note(r.Name+"/"+c.Language, side, "not run: needs package "+p)
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
					if c.Before != "" {
						p.play("before", c.Before)
					}
					p.lay(c.Archives(side)[1:]...)
					p.play("after", c.After)
					bad := compare(want, p.last)
					for _, line := range bad {
						t.Error(line)
					}
					sc.note(r.Name+"/"+c.Language, side, outcome(want, p.last, bad))
					if t.Failed() {
						t.Logf("stdout:\n%s\nstderr:\n%s", p.last.stdout, p.last.stderr)
					}
				})
			}
		}
	}
}

// build makes the product's binary, once for all cases.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "proveto")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/proveto")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the product: %v\n%s", err, out)
	}
	return bin
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
	Name    string `json:"name"`
	Word    string `json:"word"`
	Reason  string `json:"reason"`
	Code    string `json:"code"`
	Mutants []struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	} `json:"mutants"`
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
	// A script is a parallel subtest; the group around it waits for its end.
	p.t.Run(name, func(t *testing.T) {
		testscript.Run(t, testscript.Params{
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
	if len(args) != 1 {
		ts.Fatalf("usage: survivor SYMBOL")
	}
	for _, m := range syms[args[0]].Mutants {
		if m.Status == "survived" {
			ts.Setenv("SURVIVOR", m.ID)
			return
		}
	}
	ts.Fatalf("no survivor of %s in the last answer", args[0])
}

// who FILE sets $WHO to the content of a file.
func (p *play) who(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: who FILE")
	}
	ts.Setenv("WHO", strings.TrimSpace(ts.ReadFile(args[0])))
}

// compare holds the last answer against the expectation: what differs, in
// sentences.
func compare(want Outcome, got answer) []string {
	e, syms, err := got.symbols()
	if err != nil {
		return []string{"the answer is not one JSON document: " + err.Error()}
	}
	var bad []string
	add := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if got.exit != want.Exit || e.Exit != want.Exit {
		add("exit %d, in the answer %d, want %d", got.exit, e.Exit, want.Exit)
	}
	if want.Code != "" && e.Code != want.Code {
		add("code %q, want %q", e.Code, want.Code)
	}
	for name, w := range want.Evidence {
		s, ok := syms[name]
		switch {
		case !ok:
			add("%s is not in the answer", name)
		case !w.Word.Has(s.Word):
			add("%s is %s (reason %q, code %q), want %s", name, s.Word, s.Reason, s.Code, strings.Join(w.Word, " or "))
		case !w.Code.Has(s.Code) && !w.Code.Has(s.Reason):
			add("%s is %s for reason %q, code %q; want %s", name, s.Word, s.Reason, s.Code, strings.Join(w.Code, " or "))
		case !strings.Contains(string(s.raw), w.Mentions):
			add("%s does not mention %q", name, w.Mentions)
		}
	}
	for _, name := range want.NotCredited {
		if s := syms[name]; s.Word == "proven" {
			add("%s is credited", name)
		}
	}
	for _, name := range want.Credited {
		if s := syms[name]; s.Word != "proven" {
			add("%s is refused: %q, reason %q, code %q", name, s.Word, s.Reason, s.Code)
		}
	}
	return bad
}

// TestCompareRejects feeds answers that must not pass: a credited attack, a
// refused twin, an attack that is held for the wrong reason.
func TestCompareRejects(t *testing.T) {
	t.Parallel()
	say := func(word, reason string) answer {
		return answer{stdout: fmt.Appendf(nil, `{"exit":0,"code":"ok","data":{"symbols":[{"name":"calc.Double","word":%q,"reason":%q,"detail":"rates.Scale"}]}}`, word, reason)}
	}
	const name = "calc.Double"
	attack := Outcome{Evidence: map[string]Word{name: {Word: OneOf{"not_measured"}, Code: OneOf{"flaky"}, Mentions: "rates.Scale"}}, NotCredited: []string{name}}
	twin := Outcome{Evidence: map[string]Word{name: {Word: OneOf{"proven"}}}, Credited: []string{name}}
	red := say("proven", "")
	red.exit = 1
	other := attack
	other.Evidence = map[string]Word{name: {Mentions: "rates.Other"}}
	code := attack
	code.Code = "needs_setup"
	absent := Outcome{Evidence: map[string]Word{"calc.Triple": {}}}
	tests := []struct {
		name string
		want Outcome
		got  answer
		ok   bool
	}{
		{"attack held", attack, say("not_measured", "flaky"), true},
		{"attack credited", attack, say("proven", ""), false},
		{"attack credited, words not compared", Outcome{NotCredited: []string{name}}, say("proven", ""), false},
		{"wrong reason", attack, say("not_measured", "timeout"), false},
		{"does not mention", other, say("not_measured", "flaky"), false},
		{"another code of the answer", code, say("not_measured", "flaky"), false},
		{"symbol absent", absent, say("proven", ""), false},
		{"twin credited", twin, say("proven", ""), true},
		{"twin refused", twin, say("refuted", "survived"), false},
		{"twin refused, words not compared", Outcome{Credited: []string{name}}, say("stale", "test_changed"), false},
		{"twin credited, but the exit is another", twin, red, false},
		{"no document", twin, answer{stdout: []byte("proven")}, false},
	}
	for _, tt := range tests {
		if bad := compare(tt.want, tt.got); (len(bad) == 0) != tt.ok {
			t.Errorf("%s: compare = %q, want ok %v", tt.name, bad, tt.ok)
		}
	}
}
