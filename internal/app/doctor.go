package app

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/sandbox"
	"github.com/proveto/proveto/internal/view"
)

//go:embed _sample/*.go
var sample embed.FS

// lowDisk is the free space below which the doctor warns.
const lowDisk = 1 << 30

// DoctorOptions choose what is examined.
type DoctorOptions struct {
	Proof bool // what stopped proof in the last start of this repository
}

// Doctor examines this machine, each check with the command that would fix it.
// The error is unmeasured when a check failed.
func (a *App) Doctor(ctx context.Context, o DoctorOptions) (*view.Doctor, error) {
	d := &view.Doctor{Checks: []view.Check{}}
	if !o.Proof || a.configErr != nil {
		a.doctorConfig(d)
	}
	if o.Proof {
		if err := a.doctorProof(ctx, d); err != nil {
			return nil, err
		}
	} else {
		a.doctorTools(ctx, d)
		a.doctorIsolation(ctx, d)
		a.doctorState(ctx, d)
		a.doctorSample(ctx, d)
	}
	for _, c := range d.Checks {
		switch c.State {
		case view.CheckFail:
			d.Failed++
		case view.CheckWarn:
			d.Warned++
		}
	}
	if d.Failed > 0 {
		e := fault.New(fault.Unmeasured, "needs_setup", "%s failed", plural(d.Failed, "check"))
		for _, c := range d.Checks {
			if c.State == view.CheckFail && c.Fix != "" && !slices.Contains(e.Hints, c.Fix) {
				e = e.Hint("%s", c.Fix)
			}
		}
		return d, e
	}
	return d, nil
}

func check(d *view.Doctor, name string, err error, ok string) {
	c := view.Check{Name: name, State: view.CheckOK, Detail: ok}
	if err != nil {
		e := fault.From(err)
		c.State, c.Detail = view.CheckFail, firstLine(e.Error())
		if len(e.Hints) > 0 {
			c.Fix = e.Hints[0]
		}
	}
	d.Checks = append(d.Checks, c)
}

// doctorConfig says what is wrong with the configuration, and where.
func (a *App) doctorConfig(d *view.Doctor) {
	c := view.Check{Name: "configuration", State: view.CheckOK, Detail: a.ConfigFiles()}
	if a.configErr != nil {
		e := fault.From(a.configErr)
		c.State, c.Fix = view.CheckFail, "proveto config check"
		c.Detail = strings.Join(append([]string{firstLine(e.Error())}, e.Hints...), "; ")
	}
	d.Checks = append(d.Checks, c)
}

func (a *App) doctorTools(ctx context.Context, d *view.Doctor) {
	_, err := a.Snapshots(ctx)
	check(d, "git", err, "found, new enough")
	for _, l := range a.Drivers {
		print, err := l.Fingerprint()
		check(d, l.Language(), err, print)
	}
}

func (a *App) doctorIsolation(ctx context.Context, d *view.Doctor) {
	best := evidence.Level("")
	var why []string
	for _, r := range sandbox.Probe(ctx) {
		if r.Works {
			best = r.Level
			break
		}
		why = append(why, fmt.Sprintf("%s: %s", r.Level, firstLine(r.Reason)))
	}
	c := view.Check{Name: "isolation", State: view.CheckOK, Detail: string(best)}
	if best != evidence.Namespaces {
		c.State, c.Detail = view.CheckWarn, orText(string(best), "none")+" ("+strings.Join(why, "; ")+")"
		c.Fix = "proveto help isolation"
	}
	if need := evidence.Level(a.Config.Isolation.Min); best.Rank() < need.Rank() {
		c.State = view.CheckFail
		c.Detail += fmt.Sprintf("; the configuration asks for %s", need)
	}
	d.Checks = append(d.Checks, c)
}

func (a *App) doctorState(ctx context.Context, d *view.Doctor) {
	led, err := a.Ledger(ctx)
	check(d, "state", err, a.Paths.State)
	if err != nil {
		return
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(a.Paths.State, &fs); err == nil {
		free := int64(fs.Bavail) * fs.Bsize
		c := view.Check{Name: "disk", State: view.CheckOK, Detail: fmt.Sprintf("%d MiB free", free>>20)}
		if free < lowDisk {
			c.State, c.Fix = view.CheckWarn, "proveto gc"
		}
		d.Checks = append(d.Checks, c)
	}
	h, err := led.Head(ctx)
	if err == nil {
		_, err = led.Entries(ctx, max(1, h.Seq-logPage), 0, "")
	}
	check(d, "ledger", err, fmt.Sprintf("#%d %s", h.Seq, h.Root.Short()))
}

// doctorSample proves a behaviour of the embedded package with a state of its
// own, so that the whole chain is seen to work here.
func (a *App) doctorSample(ctx context.Context, d *view.Doctor) {
	err := func() (err error) {
		dir, err := os.MkdirTemp("", "proveto-doctor-")
		if err != nil {
			return fault.Wrap(err, fault.Internal, "io", "temporary directory")
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		src := filepath.Join(dir, "sample")
		if err := writeSample(src); err != nil {
			return err
		}
		s := a.Settings
		s.State, s.Dir, s.DatabaseURL, s.ConfigFile, s.AnyConfig = filepath.Join(dir, "state"), src, "", "", false
		// The settings of the user's projects say nothing about this one.
		s.Getenv = func(k string) string {
			if k == "PROVETO_CACHE" || k == "XDG_CACHE_HOME" {
				return a.Getenv(k)
			}
			return ""
		}
		s.Environ = slices.DeleteFunc(slices.Clone(s.Environ), func(kv string) bool { return strings.HasPrefix(kv, "PROVETO_") })
		inner, err := New(s)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, inner.Close()) }()
		v, _, err := inner.Start(ctx, StartOptions{Limit: -1}, silent{})
		if err != nil {
			return err
		}
		if v.Counts.Proven != 1 || v.Counts.Refuted != 1 {
			return fault.New(fault.Unmeasured, "unmeasured", "the embedded package gave %d proven and %d refuted, want 1 and 1", v.Counts.Proven, v.Counts.Refuted)
		}
		return nil
	}()
	check(d, "proof", err, "the embedded package: one behaviour proven, one refuted, as it must be")
}

func writeSample(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Wrap(err, fault.Internal, "io", "write %s", dir)
	}
	files := map[string][]byte{"go.mod": []byte("module example.com/sample\n\ngo 1.18\n")}
	for _, name := range []string{"sample.go", "sample_test.go"} {
		b, err := sample.ReadFile("_sample/" + name)
		if err != nil {
			return fmt.Errorf("embedded sample: %w", err)
		}
		files[name] = b
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return fault.Wrap(err, fault.Internal, "io", "write %s", dir)
		}
	}
	return nil
}

// doctorProof lists what kept the last start from measuring.
func (a *App) doctorProof(ctx context.Context, d *view.Doctor) error {
	v, _, err := a.lastResult(ctx)
	if err != nil {
		return err
	}
	last, err := a.latestHere(ctx) // also one over a part: it tells of all that does not build
	if err != nil {
		return err
	}
	for _, b := range last.Broken {
		d.Checks = append(d.Checks, view.Check{Name: b.Code, State: view.CheckFail, Detail: plural(b.Behaviours, "behaviour") + ": " + b.Text, Fix: b.Command})
	}
	for _, u := range v.Unmeasured {
		if slices.ContainsFunc(last.Broken, func(b view.Broken) bool { return b.Text == u.Detail }) {
			continue
		}
		c := view.Check{Name: u.Reason, State: view.CheckWarn, Detail: fmt.Sprintf("%s: %s", plural(u.Count, "behaviour"), u.Detail), Fix: u.Command}
		if retried[u.Reason] && u.Reason != "out_of_budget" && u.Reason != "pending" {
			c.State = view.CheckFail
		}
		d.Checks = append(d.Checks, c)
	}
	for _, t := range append(v.Suite.Red, v.Suite.Flaky...) {
		detail := t.Note
		if t.File != "" {
			detail = placeOf(t.File, t.Line) + ": " + detail
		}
		d.Checks = append(d.Checks, view.Check{Name: t.Test, State: view.CheckFail, Detail: detail, Fix: t.Command})
	}
	if len(d.Checks) == 0 {
		d.Checks = append(d.Checks, view.Check{Name: "proof", State: view.CheckOK, Detail: "nothing kept the last start from measuring"})
	}
	return nil
}
