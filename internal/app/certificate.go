package app

import (
	"fmt"
	"path"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/prove"
	"github.com/proveto/proveto/internal/view"
)

// nameOf makes a name for people of a symbol's id, where no scan is at hand: the
// last of its descriptors, after the last element of the unit's path that is no
// major version.
func nameOf(unit, id string) string {
	name := id[strings.LastIndexAny(id, " /")+1:]
	name, _, _ = strings.Cut(name, "(")
	name = strings.NewReplacer("#", ".", "`", "").Replace(name)
	base := path.Base(unit)
	if strings.Trim(base, "v0123456789") == "" && strings.Contains(unit, "/") {
		base = path.Base(path.Dir(unit))
	}
	if base == "." || base == "" {
		return name
	}
	return base + "." + name
}

// certificateView lays a certificate out step by step.
func certificateView(c stored, name string, causes []prove.Cause, live bool) view.Certificate {
	r, f := c.Record, c.Record.Facts
	v := view.Certificate{
		ID: string(c.Digest), Symbol: f.Symbol, SymbolName: name, Test: f.Test, Summary: f.Probe.Summary, Diff: f.Probe.Diff,
		File: r.Assertion.File, Line: r.Assertion.Line, Message: r.Assertion.Message,
		Level: string(r.Isolation.Level), Network: string(r.Isolation.Network), Snapshot: string(r.Snapshot), Toolchain: f.Toolchain,
		Reached: len(f.Reached), Plain: r.Runs.Plain != "", Seq: c.Seq, Live: live,
	}
	for _, cause := range causes {
		v.StaleCauses = append(v.StaleCauses, cause.Text)
	}
	step := func(run evidence.Digest, format string, args ...any) {
		v.Steps = append(v.Steps, view.Step{Text: fmt.Sprintf(format, args...), Run: string(run)})
	}
	step(r.Runs.Baselines[0], "green: %s on the original, with the whole suite", f.Test)
	step(r.Runs.Baselines[1], "green again, shuffled and in another environment")
	step(r.Runs.Null, "green with the switch on and nothing changed")
	step(r.Runs.Planted, "the runner reports red: a planted failing assertion failed")
	step(r.Runs.Kill, "broken copy (%s): red by its own assertion at %s:%d, alone, in a fresh process", f.Probe.Summary, r.Assertion.File, r.Assertion.Line)
	step(r.Runs.Control, "green again on the original, in a fresh process")
	step(r.Runs.Repeat, "red again on the broken copy, at the same assertion")
	if n := len(r.Runs.Steady); n > 0 {
		step(r.Runs.Steady[0], "the test is steady: %d more times alone, in random order, green on the original and red on a broken copy", n)
	}
	if r.Runs.Plain != "" {
		step(r.Runs.Plain, "red on a build with the change written into the source, without a switch")
	}
	v.Steps = append(v.Steps, view.Step{Text: fmt.Sprintf("bound to %s, to the test and to %d more symbols that it executes, to the lock files, to %s",
		f.SymbolDigest.Short(), max(0, len(f.Reached)-2), f.Toolchain)})
	return v
}
