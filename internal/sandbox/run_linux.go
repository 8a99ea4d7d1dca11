package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// bombFactor is how many times its limit a stream may write before the command
// is ended; up to there the rest is counted and dropped.
const bombFactor = 64

// reportVariable tells a controller that the report descriptors are there.
const reportVariable = "PROVETO_REPORT"

// Run runs one command and records what it did. Commands of one box wait for
// each other. A command that was ended by a limit or by the context is a run
// like any other; an error means that there is no run.
func (b *Box) Run(ctx context.Context, c Command) (evidence.Run, Output, error) {
	o, err := b.order(c)
	if err != nil {
		return evidence.Run{}, Output{}, err
	}
	var key []byte
	var doc []byte
	if c.Report != nil {
		key = make([]byte, 32)
		rand.Read(key) // never fails
		doc, err = json.Marshal(instructions{Key: hex.EncodeToString(key), Instructions: c.Report})
		if err != nil {
			return evidence.Run{}, Output{}, fault.Wrap(err, fault.Usage, CodeBadCommand, "report instructions")
		}
	}
	e, out, err := b.execute(ctx, o, c.Stdin, &reporting{doc, key})
	if err != nil {
		return evidence.Run{}, Output{}, err
	}
	if e.Errno != 0 {
		return evidence.Run{}, Output{}, fault.Wrap(syscall.Errno(e.Errno), fault.Unmeasured, CodeNotStarted, "start %s in %s", c.Argv[0], o.Dir)
	}
	if e.Error != "" {
		return evidence.Run{}, Output{}, fault.New(fault.Internal, CodeBroken, "run %s: %s", c.Argv[0], e.Error)
	}
	run, err := b.record(c, o, e, out)
	if err != nil {
		return evidence.Run{}, Output{}, fmt.Errorf("record the run of %s: %w", c.Argv[0], err)
	}
	return run, Output{Stdout: out.stdout.buf, Stderr: out.stderr.buf}, nil
}

// order checks a command and makes it one for the supervisor.
func (b *Box) order(c Command) (order, error) {
	switch {
	case len(c.Argv) == 0 || !filepath.IsAbs(c.Argv[0]):
		return order{}, fault.New(fault.Usage, CodeBadCommand, "command %q: the executable must be an absolute path", c.Argv)
	case !filepath.IsAbs(c.Root):
		return order{}, fault.New(fault.Usage, CodeBadCommand, "root %q is not absolute", c.Root)
	case c.Dir != "" && !filepath.IsLocal(c.Dir):
		return order{}, fault.New(fault.Usage, CodeBadCommand, "directory %q leaves the root", c.Dir)
	}
	for _, s := range slices.Concat(c.Argv, c.Env, b.spec.Env) {
		if strings.IndexByte(s, 0) >= 0 {
			return order{}, fault.New(fault.Usage, CodeBadCommand, "command %q: a zero byte in %q", c.Argv[0], s)
		}
	}
	return order{
		Argv: c.Argv, Env: b.environment(c.Env, c.Report != nil), Dir: filepath.Join(c.Root, c.Dir), Limits: c.Limits,
		Stdin: len(c.Stdin) > 0, Report: c.Report != nil,
	}, nil
}

// environment is the whole environment of a command: sorted, each name once, the
// box's own words last.
func (b *Box) environment(more []string, report bool) []string {
	tmp, home := tmpDir, homeDir
	if b.scratch != "" {
		tmp, home = filepath.Join(b.scratch, "tmp"), filepath.Join(b.scratch, "home")
	}
	own := []string{"TMPDIR=" + tmp, "HOME=" + home}
	if report {
		own = append(own, reportVariable+"=1")
	}
	last := map[string]string{}
	for _, kv := range slices.Concat(b.spec.Env, more, own) {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = kv
	}
	if !report {
		delete(last, reportVariable)
	}
	env := make([]string, 0, len(last))
	for _, kv := range last {
		env = append(env, kv)
	}
	slices.Sort(env)
	return env
}

// reporting is what a command with a report is given. Without a document there
// is none.
type reporting struct {
	doc []byte
	key []byte
}

// streams are the results of a command that came through pipes.
type streams struct {
	stdout, stderr capture
	report         *reader // nil without report
}

// execute runs an order and collects its streams. An error means that the
// supervisor gave no answer.
func (b *Box) execute(ctx context.Context, o order, stdin []byte, rep *reporting) (ended, *streams, error) {
	b.running.Lock()
	defer b.running.Unlock()
	select {
	case <-b.closing:
		return ended{}, nil, fault.New(fault.Internal, CodeClosed, "the sandbox is closed")
	case <-b.dead:
		return ended{}, nil, b.broken()
	default:
	}
	if ctx.Err() != nil {
		return ended{}, nil, fault.Wrap(context.Cause(ctx), fault.Interrupted, CodeCancelled, "run %s", o.Argv[0])
	}
	p := plumbing{}
	defer p.close()
	s := &streams{stdout: capture{limit: o.Limits.OutputBytes}, stderr: capture{limit: o.Limits.OutputBytes}}
	bomb := func() { b.stop(evidence.StopOutput) }
	if o.Stdin {
		p.feed(stdin)
	}
	p.collect(func(r io.Reader) { s.stdout.read(r, bomb) })
	p.collect(func(r io.Reader) { s.stderr.read(r, bomb) })
	if o.Report {
		s.report = newReader(rep.key)
		p.feed(rep.doc)
		p.collect(s.report.read)
	}
	if p.err != nil {
		return ended{}, nil, fault.Wrap(p.err, fault.Internal, CodeBroken, "pipes of %s", o.Argv[0])
	}
	if err := b.link.send(message{Run: &o}, p.far...); err != nil {
		return ended{}, nil, b.broken()
	}
	p.start()
	e, err := b.await(ctx, o.Limits.Wall)
	p.finish()
	return e, s, err
}

// stop asks the supervisor to end the command. When that cannot be sent the
// supervisor is dead, which the waiting side sees by itself.
func (b *Box) stop(why evidence.Stop) { _ = b.link.send(message{Stop: why}) }

// await waits for the supervisor's answer, with a deadline of its own.
func (b *Box) await(ctx context.Context, wall time.Duration) (ended, error) {
	var late <-chan time.Time
	if wall > 0 {
		t := time.NewTimer(wall + graceLimit)
		defer t.Stop()
		late = t.C
	}
	cancelled := ctx.Done()
	for {
		select {
		case e, ok := <-b.answers:
			if !ok {
				return ended{}, b.broken()
			}
			return e, nil
		case <-cancelled:
			cancelled = nil
			b.stop(evidence.StopCancelled)
			t := time.NewTimer(graceLimit)
			defer t.Stop()
			late = t.C
		case <-late:
			return ended{}, b.broken()
		}
	}
}

// broken makes sure that the supervisor is dead and says what it said.
func (b *Box) broken() error {
	select {
	case <-b.closing:
		return fault.New(fault.Internal, CodeClosed, "the sandbox was closed")
	default:
	}
	b.process.Kill() // dead already, or of no more use
	select {
	case <-b.dead:
	case <-time.After(closeLimit):
		return fault.New(fault.Internal, CodeBroken, "the supervisor (pid %d) does not end", b.process.Pid)
	}
	err := errors.Join(b.said.waitErr, endMarked(b.scratch))
	return fault.Wrap(err, fault.Internal, CodeBroken, "the supervisor died: %s", strings.TrimSpace(string(b.said.text)))
}

// plumbing are the pipes of one command: far ends for the command, near ends
// for us.
type plumbing struct {
	far   []int
	near  []*os.File
	works []func()
	wait  sync.WaitGroup
	err   error
}

// pipe makes one pipe and keeps its near end, which does not block.
func (p *plumbing) pipe(farReads bool) *os.File {
	if p.err != nil {
		return nil
	}
	var fds [2]int
	if p.err = unix.Pipe2(fds[:], unix.O_CLOEXEC); p.err != nil {
		return nil
	}
	near, far := fds[0], fds[1]
	if farReads {
		near, far = far, near
	}
	p.far = append(p.far, far)
	if p.err = unix.SetNonblock(near, true); p.err != nil {
		unix.Close(near)
		return nil
	}
	f := os.NewFile(uintptr(near), "pipe")
	p.near = append(p.near, f)
	return f
}

// feed gives the command b to read.
func (p *plumbing) feed(b []byte) {
	f := p.pipe(true)
	if f == nil {
		return
	}
	p.works = append(p.works, func() {
		// A command that does not read what it is given breaks the pipe; that is
		// its right.
		_, _ = f.Write(b)
		f.Close()
	})
}

// collect reads what the command writes.
func (p *plumbing) collect(read func(io.Reader)) {
	f := p.pipe(false)
	if f == nil {
		return
	}
	p.works = append(p.works, func() { read(f) })
}

// start lets the work begin, after the command has its ends.
func (p *plumbing) start() {
	closeAll(p.far)
	p.far = nil
	for _, w := range p.works {
		p.wait.Go(w)
	}
}

// finish waits for the near ends. The writers are gone, so what is left to read
// is there; the deadline is for a descriptor that was passed out of the box.
func (p *plumbing) finish() {
	for _, f := range p.near {
		_ = f.SetDeadline(time.Now().Add(closeLimit)) // closed by its own work already
	}
	p.wait.Wait()
}

func (p *plumbing) close() {
	closeAll(p.far)
	for _, f := range p.near {
		f.Close() // twice for those that were fed: harmless
	}
}

// record makes the run.
func (b *Box) record(c Command, o order, e ended, s *streams) (evidence.Run, error) {
	rec := evidence.RunRecord{
		Purpose: c.Purpose, Snapshot: c.Snapshot, Argv: relativeTo(c.Root, c.Argv), Dir: filepath.ToSlash(filepath.Clean(c.Dir)),
		Env: evidence.DigestParts(o.Env...), Artifact: c.Artifact, Probe: c.Probe, Tests: c.Tests, Planted: c.Planted,
		Limits: c.Limits, Isolation: b.isolation, Started: e.Started, WallNS: int64(e.Wall), CPUNS: int64(e.CPU), MaxRSS: e.MaxRSS,
		Exit: evidence.Exit{Code: e.Code, Stopped: e.Stopped}, Stdout: s.stdout.output(), Stderr: s.stderr.output(),
		Report: evidence.ReportNone, Survivors: e.Survivors, Nonce: nonce(),
	}
	if e.Signal != 0 {
		rec.Exit.Signal = unix.SignalName(unix.Signal(e.Signal))
	}
	var events []evidence.Event
	if s.report != nil {
		rec.Report, events = s.report.state, s.report.events
	}
	return evidence.RecordRun(rec, events)
}

func nonce() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// relativeTo makes arguments below the checkout independent of where it lies.
func relativeTo(root string, argv []string) []string {
	root = filepath.Clean(root)
	out := slices.Clone(argv)
	for i, a := range out {
		if a == root {
			out[i] = "."
		} else if rest, ok := strings.CutPrefix(a, root+"/"); ok && rest != "" {
			out[i] = rest
		}
	}
	return out
}
