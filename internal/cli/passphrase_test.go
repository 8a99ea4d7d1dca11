package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/app"
)

// pseudo opens a terminal: what is written to the first end is typed at the
// second.
func pseudo(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard, terminal
}

// prompted calls a function once the text has a prompt in it.
type prompted struct {
	mu   sync.Mutex
	text bytes.Buffer
	then func()
}

func (p *prompted) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.text.Write(b)
	if p.then != nil && strings.Contains(p.text.String(), "passphrase of ") {
		then := p.then
		p.then = nil
		then()
	}
	return n, err
}

// TestPassphraseIsAskedForOnATerminal signs with a key file that is locked.
func TestPassphraseIsAskedForOnATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo, key := filepath.Join(dir, "repo"), filepath.Join(dir, "alice")
	sh := exec.Command("sh", "-eu", "-c", `
ssh-keygen -q -t ed25519 -N 'correct horse' -C alice -f "$1"
git init -q "$2"; mkdir "$2/.proveto"; cd "$2"
echo "alice $(cat "$1.pub")" > .proveto/allowed_signers
printf 'version: 1\nprincipals:\n  alice: {kind: human, roles: [planner]}\n' > .proveto/principals.yaml
git add -A; git -c user.name=a -c user.email=a@example.com commit -q -m base`, "sh", key, repo)
	sh.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		what, typed string
		args        []string
		exit        int
		says        string
		asked       bool
	}{
		{"the right one", "correct horse\n", nil, 0, "", true},
		{"a wrong one", "wrong\n", nil, 1, "does not open with this passphrase", true},
		{"nothing, and the end of the input", "\x04", nil, 1, "no passphrase of", true},
		{"nobody may be asked", "", []string{"--no-input"}, 1, "has a passphrase, it is not in ssh-agent", false},
		{"interrupted", "", nil, 130, "stopped by you", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			keyboard, terminal := pseudo(t)
			before := termios(t, terminal)
			var out bytes.Buffer
			stderr := &prompted{}
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			hidden := true
			stderr.then = func() {
				hidden = termios(t, terminal).Lflag&unix.ECHO == 0
				if c.typed == "" {
					stop(app.ErrInterrupted)
				} else if _, err := io.WriteString(keyboard, c.typed); err != nil {
					t.Error(err)
				}
			}
			none := func(string) string { return "" }
			code := Run(ctx, Env{
				Stdin: terminal, Stdout: &out, Stderr: stderr, Getenv: none, StderrTerminal: true, Version: "test",
				New: func(s app.Settings) (*app.App, error) {
					s.State, s.Interactive = t.TempDir(), false
					return app.New(s)
				},
			}, append([]string{"-C", repo, "flow", "init", "--task", "x", "--policy", "manual", "--key", key}, c.args...))
			if code != c.exit || !strings.Contains(stderr.text.String(), c.says) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, c.exit, c.says, stderr.text.String())
			}
			if asked := strings.Contains(stderr.text.String(), "passphrase of "+key+": "); asked != c.asked || !hidden {
				t.Errorf("asked %v, want %v; hidden %v", asked, c.asked, hidden)
			}
			if after := termios(t, terminal); after != before {
				t.Error("the terminal is left in another state")
			}
			if strings.Contains(out.String()+stderr.text.String(), "correct horse") {
				t.Error("the passphrase is shown")
			}
		})
	}
}

func termios(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}
