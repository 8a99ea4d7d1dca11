package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/view"
)

// Gaps writes the ranked list of gaps as a table.
func Gaps(w io.Writer, g view.Gaps, style Style) error {
	if len(g.Gaps) == 0 && style.Terminal {
		_, err := fmt.Fprintf(w, "no gap is known in %s\n", Line(g.Scope))
		return err
	}
	tab := Table{Columns: []string{"word", "risk", "behaviour", "where", "reason", "command"}, Right: map[int]bool{1: true}}
	for _, x := range g.Gaps {
		cmd := ""
		if len(x.Commands) > 0 {
			cmd = style.command(x.Commands[0])
		}
		tab.Rows = append(tab.Rows, []string{x.Word, strconv.FormatFloat(x.Risk, 'f', 2, 64), x.Name, fmt.Sprintf("%s:%d", x.File, x.Line), x.Reason, cmd})
	}
	return tab.Write(w, style)
}

// Status writes a repository at a glance. Absent parts are left out.
func Status(w io.Writer, s view.Status, style Style) error {
	t := &text{Style: style}
	t.header(s)
	for _, f := range s.Found {
		t.row("found", "%s in %s, %s, %d test %s", Line(f.Language), Line(f.Dir), Line(f.Runner), f.TestFiles, plural(f.TestFiles, "file", "files"))
	}
	for _, m := range s.Missing {
		t.row("missing", "%s: %s  %s", Line(m.Name), Line(m.Detail), t.cmd(m.Fix))
	}
	if s.Measured {
		t.counts(s.Counts)
		if s.Borrowed != "" {
			t.row("", "measured in another checkout: %s", Line(s.Borrowed))
		}
		if len(s.Since) > 0 {
			t.row("", "since %s: %s", Line(s.Base), changes(s.Since))
		}
	} else {
		t.row("behaviours", "not measured yet")
	}
	t.lines("waiting", s.Waiting)
	t.lines("running", s.Running)
	if g := s.Worst; g != nil {
		cmd := ""
		if len(g.Commands) > 0 {
			cmd = g.Commands[0]
		}
		t.row("gaps", "%s  %s  %s", t.word(g.Word), Line(g.Name), t.cmd(cmd))
		t.prose(g.Why)
		if s.Gaps > 1 {
			t.row("", "%d more: %s", s.Gaps-1, t.cmd("proveto gaps"))
		}
	}
	if s.Next.Run != "" {
		t.row("next", "%s  %s", t.cmd(s.Next.Run), t.paint(grey, Line(s.Next.Why)))
	}
	return t.flush(w)
}

func (t *text) header(s view.Status) {
	parts := []string{t.paint(bold, Line(s.Subject.Repository))}
	if at := Line(s.Subject.Branch); at != "" || s.Subject.Commit != "" {
		if s.Subject.Commit != "" {
			at += "@" + Line(short(s.Subject.Commit))
		}
		if s.Subject.Dirty {
			at += fmt.Sprintf(" +%d %s", s.Subject.Changed, plural(s.Subject.Changed, "file", "files"))
		}
		parts = append(parts, at)
	}
	if s.Head != nil {
		parts = append(parts, fmt.Sprintf("head #%d %s", s.Head.Seq, Line(short(s.Head.Root))))
	}
	if s.Isolation != "" {
		parts = append(parts, Line(s.Isolation))
	}
	t.line("%s", strings.Join(parts, "  "))
}

func (t *text) lines(label string, lines []view.Line) {
	for i, l := range lines {
		if i > 0 {
			label = ""
		}
		t.row(label, "%s  %s", Line(l.What), t.cmd(l.Run))
	}
}

var checks = map[string]mark{
	view.CheckOK:   {"ok", "●", "[+]", "proven", green},
	view.CheckWarn: {"warn", "◌", "[~]", "stale", yellow},
	view.CheckFail: {"fail", "▲", "[!]", "refuted", red},
}

// Doctor writes what this machine can do, each failing check with the command
// that fixes it.
func Doctor(w io.Writer, d view.Doctor, style Style) error {
	if !style.Terminal {
		tab := Table{Columns: []string{"state", "name", "detail", "fix"}, Word: -1}
		for _, c := range d.Checks {
			tab.Rows = append(tab.Rows, []string{c.State, c.Name, c.Detail, style.command(c.Fix)})
		}
		return tab.Write(w, style)
	}
	t := &text{Style: style}
	name := 0
	for _, c := range d.Checks {
		name = max(name, columns(Line(c.Name)))
	}
	for _, c := range d.Checks {
		m := lookup(checks, c.State)
		pad := strings.Repeat(" ", name-columns(Line(c.Name)))
		t.line("%s %s  %s%s  %s", t.shape(m), t.paint(m.tint, fmt.Sprintf("%-4s", m.Label)), Line(c.Name), pad, Line(c.Detail))
		if c.Fix != "" && c.State != view.CheckOK {
			t.line("%s  %s", strings.Repeat(" ", columns(t.shape(m))+7+name), t.cmd(c.Fix))
		}
	}
	switch {
	case d.Failed > 0:
		t.line("%d failed, %d %s", d.Failed, d.Warned, plural(d.Warned, "warning", "warnings"))
	case d.Warned > 0:
		t.line("ready, with %d %s", d.Warned, plural(d.Warned, "warning", "warnings"))
	default:
		t.line("ready")
	}
	return t.flush(w)
}

// Error writes an error for people: what, on what, why; then what helps. With
// debug the chain of causes follows.
func Error(w io.Writer, e *fault.Error, debug bool) error {
	var b strings.Builder
	b.WriteString("proveto: " + Line(e.Error()) + "\n")
	for _, h := range e.Hints {
		b.WriteString("hint: " + Line(h) + "\n")
	}
	if debug {
		fmt.Fprintf(&b, "debug: kind %s, code %s, exit %d\n", Line(string(e.Kind)), Line(string(e.Code)), e.Kind.Exit())
		writeCauses(&b, e.Unwrap(), 1)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCauses(b *strings.Builder, err error, depth int) {
	if err == nil {
		return
	}
	fmt.Fprintf(b, "debug: %scaused by %s\n", strings.Repeat("  ", depth-1), Line(fmt.Sprintf("%T: %s", err, err)))
	switch u := err.(type) { //nolint:errorlint // the chain is walked link by link
	case interface{ Unwrap() error }:
		writeCauses(b, u.Unwrap(), depth+1)
	case interface{ Unwrap() []error }:
		for _, c := range u.Unwrap() {
			writeCauses(b, c, depth+1)
		}
	}
}
