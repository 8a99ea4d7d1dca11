package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/late"
	"github.com/proveto/proveto/internal/wholefile"
)

// DefaultDeadline bounds one git process.
const DefaultDeadline = 10 * time.Minute

// The oldest git that knows every option used here.
const minMajor, minMinor = 2, 38

// git runs the git executable and nothing else: an absolute path, an
// allow-listed environment and settings of our own on the command line, which
// win over every configuration file of the repository.
type git struct {
	path     string
	deadline time.Duration
}

// call is one git process.
type call struct {
	args     []string
	gitDir   string
	workTree string   // empty: none
	index    string   // empty: git's default
	objects  []string // object directories to read besides gitDir's own
	dir      string   // working directory; empty: workTree, else gitDir
	stdin    []byte
	env      []string
	from     *os.File   // in place of stdin
	to       *os.File   // in place of what run returns
	settings []string   // besides settings; they win
	asUser   bool       // the configuration files of the machine and of the user are read, too
	held     []*os.File // locks that must stay held while the process lives
	answers  []int      // exit codes besides 0 that are an answer

	// whole: the process is not ended with us or with the context. It takes some
	// milliseconds, and cut in two it would leave a lock behind that is not ours.
	whole bool
}

// settings are given to every git process. Hooks, file system monitors, filters,
// pagers, editors, credential helpers and transports of the judged repository
// are thereby out of reach, whatever its configuration says.
var settings = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.untrackedCache=false",
	"core.attributesFile=/dev/null",
	"core.excludesFile=/dev/null",
	"core.autocrlf=false",
	"core.eol=lf",
	"core.safecrlf=false",
	"core.fileMode=true",
	"core.symlinks=true",
	"core.ignoreCase=false",
	"core.precomposeUnicode=false",
	"core.trustctime=true",
	"core.checkStat=default",
	"core.quotePath=false",
	"core.logAllRefUpdates=false",
	"core.fsync=committed,reference",
	"core.fsyncMethod=batch",
	"core.sshCommand=/bin/false",
	"core.askPass=/bin/false",
	"core.editor=/bin/false",
	"core.pager=cat",
	"core.gitProxy=/bin/false",
	"core.alternateRefsCommand=/bin/false",
	"credential.helper=",
	"protocol.allow=never",
	"submodule.recurse=false",
	"diff.renames=false",
	"diff.orderFile=/dev/null",
	"commit.gpgSign=false",
	"tag.gpgSign=false",
	"log.showSignature=false",
	"gc.auto=0",
	"gc.packRefs=false",
	"maintenance.auto=false",
	"advice.detachedHead=false",
	"index.sparse=false",
	"index.version=4",
	"checkout.workers=1",
}

// environment is all that a git process sees of ours.
var environment = []string{
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"HOME=/nonexistent",
	"XDG_CONFIG_HOME=/nonexistent",
	"LC_ALL=C",
	"GIT_DEFAULT_REF_FORMAT=files", // our references are written as files
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_CONFIG_SYSTEM=/dev/null",
	"GIT_CONFIG_GLOBAL=/dev/null",
	"GIT_ATTR_NOSYSTEM=1",
	"GIT_OPTIONAL_LOCKS=0",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_GRAFT_FILE=/nonexistent",
	"GIT_NO_LAZY_FETCH=1",
	"GIT_ALLOW_PROTOCOL=none",
	"GIT_SSH_COMMAND=/bin/false",
	"GIT_ASKPASS=/bin/false",
	"GIT_LITERAL_PATHSPECS=1",
	"GIT_AUTHOR_NAME=Proveto",
	"GIT_AUTHOR_EMAIL=proveto@localhost",
	"GIT_COMMITTER_NAME=Proveto",
	"GIT_COMMITTER_EMAIL=proveto@localhost",
}

// findGit takes the executable at path, or the one on PATH, and refuses one that
// is too old. What a known executable said before is taken from the file seen;
// empty: it is asked.
func findGit(ctx context.Context, path string, deadline time.Duration, seen string) (*git, error) {
	const hint = "install git %d.%d or later, for example: apt-get install git"
	if path == "" {
		found, err := exec.LookPath("git")
		if err != nil {
			return nil, fault.Wrap(err, fault.Unmeasured, CodeToolMissing, "git is not on PATH").Hint(hint, minMajor, minMinor)
		}
		path = found
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("absolute path of git %q: %w", path, err)
	}
	if deadline <= 0 {
		deadline = DefaultDeadline
	}
	g := &git{path: abs, deadline: deadline}
	mark := markOf(abs)
	if raw, err := os.ReadFile(seen); err == nil && mark != "" && string(raw) == mark {
		return g, nil
	}
	out, _, err := g.run(ctx, call{args: []string{"version"}, dir: "/"})
	if err != nil {
		return nil, fault.Wrap(err, fault.Unmeasured, CodeToolMissing, "%s does not tell its version", abs).Hint(hint, minMajor, minMinor)
	}
	if !recent(string(out)) {
		return nil, fault.New(fault.Unmeasured, CodeToolMissing, "%s is %s, older than %d.%d", abs, strings.TrimSpace(string(out)), minMajor, minMinor).
			Hint(hint, minMajor, minMinor)
	}
	if seen != "" && mark != "" {
		// Only time is lost when this cannot be written.
		_ = wholefile.Write(seen, []byte(mark), 0o600, false)
	}
	return g, nil
}

// markOf changes when the executable does, or what we ask of it; empty when it
// cannot be told.
func markOf(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	st, err := os.Stat(real)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d %d.%d\n", real, st.Size(), st.ModTime().UnixNano(), minMajor, minMinor)
}

var versionNumber = late.Regexp(`^git version (\d+)\.(\d+)`)

func recent(version string) bool {
	m := versionNumber().FindStringSubmatch(version)
	if m == nil {
		return false
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	if err1 != nil || err2 != nil {
		return false
	}
	return major > minMajor || major == minMajor && minor >= minMinor
}

// run starts one git process and waits for it. It returns stdout and the exit
// code, which is 0 or one of c.answers. A cancelled context and a passed
// deadline end the whole process group; the death of this process ends git too.
func (g *git) run(ctx context.Context, c call) ([]byte, int, error) {
	if c.whole {
		ctx = context.WithoutCancel(ctx)
	}
	timed, cancel := context.WithTimeout(ctx, g.deadline)
	defer cancel()
	cmd, stderr := g.command(timed, c)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if c.to != nil {
		cmd.Stdout = c.to
	}
	switch {
	case c.from != nil:
		cmd.Stdin = c.from
	case c.stdin != nil:
		cmd.Stdin = bytes.NewReader(c.stdin)
	}
	// The parent-death signal belongs to the thread that forks.
	runtime.LockOSThread()
	err := cmd.Run()
	runtime.UnlockOSThread()
	code, err := g.ended(ctx, timed, c, cmd, stderr, err)
	if err != nil {
		return nil, code, err
	}
	return stdout.Bytes(), code, nil
}

// converse starts one git process and talks with it: talk writes to its standard
// input and reads its answers. Talk must not return before all that it wants is
// read; the input is closed behind it.
func (g *git) converse(ctx context.Context, c call, talk func(in io.Writer, out *bufio.Reader) error) error {
	timed, cancel := context.WithTimeout(ctx, g.deadline)
	defer cancel()
	cmd, stderr := g.command(timed, c)
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("git %s: %w", c.verb(), err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("git %s: %w", c.verb(), err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return &gitError{verb: c.verb(), cause: err}
	}
	said := talk(in, bufio.NewReaderSize(out, 64<<10))
	closed := in.Close()
	if said != nil {
		cancel()
	}
	_, err = g.ended(ctx, timed, c, cmd, stderr, cmd.Wait())
	switch {
	case ctx.Err() != nil:
		return err
	case said != nil && stderr.String() != "":
		return &gitError{verb: c.verb(), cause: said, stderr: stderr.String()}
	case said != nil:
		return said
	case err == nil && closed != nil && !errors.Is(closed, os.ErrClosed):
		return fmt.Errorf("git %s: %w", c.verb(), closed)
	}
	return err
}

// command prepares a process; only the standard streams are left to set.
func (g *git) command(ctx context.Context, c call) (*exec.Cmd, *clip) {
	cmd := exec.CommandContext(ctx, g.path, c.argv()...)
	cmd.Env = append([]string(nil), environment...)
	if c.asUser {
		cmd.Env = withUserConfig(cmd.Env)
	}
	cmd.Env = append(cmd.Env, c.env...)
	if c.index != "" {
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+c.index)
	}
	if len(c.objects) > 0 {
		cmd.Env = append(cmd.Env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+objectPath(c.objects))
	}
	switch {
	case c.dir != "":
		cmd.Dir = c.dir
	case c.workTree != "":
		cmd.Dir = c.workTree
	default:
		cmd.Dir = c.gitDir
	}
	stderr := &clip{max: 16 << 10}
	cmd.Stderr = stderr
	cmd.ExtraFiles = c.held
	cmd.SysProcAttr = childAttr(!c.whole)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd, stderr
}

// withUserConfig lets git find the configuration of the machine and the user.
func withUserConfig(env []string) []string {
	env = slices.DeleteFunc(env, func(kv string) bool {
		return strings.HasPrefix(kv, "GIT_CONFIG_") || strings.HasPrefix(kv, "HOME=") || strings.HasPrefix(kv, "XDG_CONFIG_HOME=")
	})
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME"} {
		if at := os.Getenv(name); at != "" {
			env = append(env, name+"="+at)
		}
	}
	return env
}

// ended says what the end of a process means. Timed is ctx with the deadline.
func (g *git) ended(ctx, timed context.Context, c call, cmd *exec.Cmd, stderr *clip, err error) (int, error) {
	if ctx.Err() != nil {
		return -1, fault.Wrap(context.Cause(ctx), fault.Interrupted, "interrupted", "git %s was stopped", c.verb())
	}
	if errors.Is(timed.Err(), context.DeadlineExceeded) {
		return -1, fault.New(fault.Unmeasured, "timeout", "git %s did not end within %s", c.verb(), g.deadline)
	}
	if err == nil {
		return 0, nil
	}
	code := cmd.ProcessState.ExitCode()
	for _, a := range c.answers {
		if a == code {
			return code, nil
		}
	}
	return code, &gitError{verb: c.verb(), cause: err, stderr: stderr.String()}
}

func (c call) argv() []string {
	argv := []string{"--no-pager"}
	for _, list := range [][]string{settings, c.settings} {
		for _, s := range list {
			argv = append(argv, "-c", s)
		}
	}
	if c.gitDir != "" {
		argv = append(argv, "--git-dir="+c.gitDir)
	}
	if c.workTree != "" {
		argv = append(argv, "--work-tree="+c.workTree)
	}
	return append(argv, c.args...)
}

func (c call) verb() string {
	if len(c.args) == 0 {
		return ""
	}
	return c.args[0]
}

// objectPath joins object directories as git reads them: a directory whose name
// holds the separator is quoted.
func objectPath(dirs []string) string {
	quoted := make([]string, len(dirs))
	for i, d := range dirs {
		quoted[i] = d
		if strings.ContainsAny(d, ":\n") {
			quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(d) + `"`
		}
	}
	return strings.Join(quoted, ":")
}

// gitError is a git process that ended badly.
type gitError struct {
	verb   string
	cause  error
	stderr string
}

func (e *gitError) Error() string {
	msg := strings.Join(strings.Fields(e.stderr), " ")
	if msg == "" {
		return fmt.Sprintf("git %s: %v", e.verb, e.cause)
	}
	return fmt.Sprintf("git %s: %v: %s", e.verb, e.cause, msg)
}

func (e *gitError) Unwrap() error { return e.cause }

// complains tells whether git's own message holds text.
func complains(err error, text string) bool {
	var e *gitError
	return errors.As(err, &e) && strings.Contains(e.stderr, text)
}

// clip keeps the first max bytes, escapes what would steer a terminal, and
// swallows the rest.
type clip struct {
	max int
	buf []byte
}

var _ io.Writer = (*clip)(nil)

func (c *clip) Write(p []byte) (int, error) {
	if room := c.max - len(c.buf); room > 0 {
		c.buf = append(c.buf, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (c *clip) String() string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(c.buf), "?"))
}
