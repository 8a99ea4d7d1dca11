package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shell is a directory in which the commands of a document are run.
type shell struct {
	t   *testing.T
	dir string
	env []string
}

func newShell(t *testing.T, dir string, env ...string) *shell {
	t.Helper()
	home := t.TempDir()
	bin := t.TempDir()
	if err := os.Symlink(product, filepath.Join(bin, "proveto")); err != nil {
		t.Fatal(err)
	}
	cache, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(cache))
	git := filepath.Join(home, ".gitconfig")
	if err := os.WriteFile(git, []byte("[user]\n\tname = Alice\n\temail = alice@example.org\n[init]\n\tdefaultBranch = main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &shell{t: t, dir: dir, env: append([]string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"),
		"XDG_CACHE_HOME=" + filepath.Join(home, "cache"), "GOCACHE=" + dirs[0], "GOMODCACHE=" + dirs[1], "GIT_CONFIG_GLOBAL=" + git, "GOFLAGS=-mod=mod", "LANG=C.UTF-8",
	}, env...)}
}

// run runs a script and gives back what it wrote; it must exit with the code.
func (s *shell) run(script string, exit int) string {
	s.t.Helper()
	cmd := exec.Command("sh", "-eu", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != exit {
		s.t.Fatalf("%s\nexit %d (%v), want %d:\n%s", script, got, err, exit, out)
	}
	return string(out)
}

var shBlock = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```")

// flowPage gives the commands of docs/flow.md, block by block.
func flowPage(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "flow.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range shBlock.FindAllSubmatch(text, -1) {
		var lines []string
		for _, l := range strings.Split(string(m[1]), "\n") {
			if l = strings.TrimSpace(l); l != "" {
				lines = append(lines, l)
			}
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	if len(out) != 7 {
		t.Fatalf("docs/flow.md has %d blocks of commands, want 7: this test runs them by their number", len(out))
	}
	return out
}

func TestFlowPageOfTheProtocol(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir())
	out := s.run(flowPage(t)[0], 0)
	for _, want := range []string{"status=completed", "current_stage=done", "plan.accepted", `none required by policy "manual"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the walk does not show %q:\n%s", want, out)
		}
	}
}

// TestFlowPageMeasured runs the other blocks in a module with two principals
// whose keys an ssh-agent holds.
func TestFlowPageMeasured(t *testing.T) {
	t.Parallel()
	pages := flowPage(t)
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	if err := os.MkdirAll(filepath.Join(repo, ".proveto"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newShell(t, repo)
	s.run(`ssh-keygen -q -t ed25519 -N '' -C '' -f ../alice && ssh-keygen -q -t ed25519 -N '' -C '' -f ../bob`, 0)
	agent := exec.Command("ssh-agent", "-D", "-a", filepath.Join(dir, "agent"))
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Process.Kill(); agent.Wait() }) //nolint:errcheck // it was ours to end
	s.env = append(s.env, "SSH_AUTH_SOCK="+filepath.Join(dir, "agent"))
	s.run(`until ssh-add -q ../alice 2>/dev/null; do :; done; ssh-add -q ../bob`, 0)
	s.run(tokenModule, 0)

	open := strings.Split(pages[1], "\n") // init, plan new, plan lint, plan submit
	s.run(strings.Join(open[:2], "\n"), 0)
	s.run(`grep -q 'Expired tokens are refused' ../plan.yaml`, 0)
	s.run(tokenPlan, 0)
	if out := s.run(strings.Join(open[2:], "\n"), 0); !strings.Contains(out, "pt_") {
		t.Errorf("the plan got no token:\n%s", out)
	}
	s.run(tokenWork, 0)
	was := s.run("git status --porcelain; git rev-parse HEAD; git for-each-ref", 0)
	if out := s.run(pages[2], 0); !strings.Contains(out, "requirement R1   proven") {
		t.Errorf("the requirement is not proven:\n%s", out)
	}
	if is := s.run("git status --porcelain; git rev-parse HEAD; git for-each-ref", 0); is != was {
		t.Errorf("submit changed the repository:\n%s\nwas\n%s", is, was)
	}
	s.run(pages[3], 0)
	back := strings.Split(pages[4], "\n") // request_changes, feedback, answer, submit
	s.run(back[0], 2)
	if out := s.run(back[1], 0); !strings.Contains(out, "zero is not tried") {
		t.Errorf("feedback does not show the finding:\n%s", out)
	}
	s.run(back[2], 0)
	s.run(back[3], 1) // the same tree
	s.run(`printf '\nfunc TestZero(t *testing.T) {\n\tif !Expired(0, 0) {\n\t\tt.Error("zero is not expired")\n\t}\n}\n' >> token/token_test.go`, 0)
	s.run(back[3], 0)
	s.run(pages[3], 0)
	s.run(pages[5], 0)
	got := strings.Fields(s.run(`b=$(git for-each-ref --format='%(refname)' refs/heads/proveto/); git rev-parse "$b^{tree}"; git log -1 --format='%(trailers:key=Proveto-Tree,valueonly)' "$b"`, 0))
	if len(got) != 2 || got[0] != got[1] {
		t.Errorf("the delivered tree and the approved one: %q", got)
	}
	s.run(pages[6], 0)
	s.run(`proveto flow status @latest --gate && proveto ledger verify`, 0)
}

const tokenModule = `mkdir -p token
cat > go.mod <<'F'
module example.org/shop

go 1.26
F
cat > token/kind.go <<'F'
// Package token names tokens.
package token

// Known tells whether a kind of token is known.
func Known(kind string) bool {
	return kind == "bearer"
}
F
cat > token/kind_test.go <<'F'
package token

import "testing"

func TestKnown(t *testing.T) {
	if !Known("bearer") || Known("x") {
		t.Error("Known is wrong")
	}
}
F
echo "alice $(cut -d' ' -f1,2 ../alice.pub)" > .proveto/allowed_signers
echo "bob $(cut -d' ' -f1,2 ../bob.pub)" >> .proveto/allowed_signers
cat > .proveto/principals.yaml <<'F'
version: 1
principals:
  alice: {kind: human, roles: [planner, developer], rights: [reopen, cancel, deliver, "waive:*", principals]}
  bob:   {kind: human, roles: [reviewer], rights: ["waive:*"]}
F
git init -q
git add -A
git commit -qm base
`

const tokenPlan = `cat > ../plan.yaml <<'F'
version: 1
goal: Expired tokens are refused
kind: behaviour
requirements:
  - id: R1
    text: A token that is past its time is refused
    acceptance:
      - {id: A1, test: "token/token_test.go::TestExpired", before: absent}
scope:
  - {id: S1, paths: ["token/token.go", "token/token_test.go"], ops: [create], for: [R1]}
interfaces: [{symbol: "token.Expired", change: add}]
F
`

const tokenWork = `cat > token/token.go <<'F'
package token

// Expired tells whether a token that ends at end is past its time at now.
func Expired(end, now int64) bool {
	return now >= end
}
F
cat > token/token_test.go <<'F'
package token

import "testing"

func TestExpired(t *testing.T) {
	if Expired(10, 9) || !Expired(10, 10) || !Expired(10, 11) {
		t.Error("Expired is wrong")
	}
}
F
`
