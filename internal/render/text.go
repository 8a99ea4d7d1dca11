package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/view"
)

// MostLines is how long the end of a start may be.
const MostLines = 24

// text collects the lines of an answer: a narrow column of labels, then facts.
type text struct {
	Style
	b strings.Builder
}

const labelWidth = 13

// row writes a labelled line; an empty label continues the one before. It is
// never clipped: a count or a command that lost its end is worse than a wrap.
func (t *text) row(label, format string, args ...any) {
	t.line("%s", t.paint(grey, fmt.Sprintf("%-*s", labelWidth, label))+fmt.Sprintf(format, args...))
}

// prose writes an unlabelled sentence, clipped to the width of the terminal.
func (t *text) prose(sentence string) {
	t.line("%s", t.clip(strings.Repeat(" ", labelWidth)+Line(sentence)))
}

func (t *text) line(format string, args ...any) {
	t.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (t *text) flush(w io.Writer) error {
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *text) cmd(c string) string { return t.paint(cyan, Line(t.command(c))) }

// Start writes the end of a start in at most [MostLines] lines.
func Start(w io.Writer, s view.Start, style Style) error {
	t := &text{Style: style}
	t.counts(s.Counts)
	if since := s.Moved(); len(since) > 0 {
		t.row("before", "%s %s", changes(since), t.paint(grey, "since "+Line(s.BeforeIs.String())))
	}
	t.now(s)
	t.broken(s)
	t.gaps(s.Gaps, 3)
	t.unmeasured(s)
	if n := len(s.Suite.Red) + len(s.Suite.Flaky); n > 0 {
		var names []string
		for _, x := range append(append([]view.TestNote{}, s.Suite.Red...), s.Suite.Flaky...) {
			names = append(names, Line(x.Test))
		}
		t.row("suite", "%d red, %d flaky, vouching for nothing: %s", len(s.Suite.Red), len(s.Suite.Flaky), some(names, 3))
	}
	if len(s.SwitchedOff) > 0 {
		t.row("switched off", "%s", Line(strings.Join(s.SwitchedOff, ", ")))
	}
	t.gate(s.Gate)
	for _, a := range s.Artifacts {
		if a.Kind == "html" {
			covers := ""
			if s.Narrow {
				covers = t.paint(grey, "  measured: "+Line(s.Scope))
			}
			t.row("report", "%s%s", Line(a.Path), covers)
		}
	}
	next := s.NextSteps()[0]
	t.row("next", "%s  %s", t.cmd(next.Run), t.paint(grey, Line(next.Why)))
	return t.flush(w)
}

func (t *text) counts(c view.Counts) {
	var parts []string
	for _, w := range evidence.Words() {
		m := lookup(words, string(w))
		parts = append(parts, t.shape(m)+" "+t.paint(m.tint, fmt.Sprintf("%s %s", thousands(c.Of(string(w))), m.Label)))
	}
	t.row("behaviours", "%s   of %s", strings.Join(parts, "   "), thousands(c.Total))
}

func (t *text) now(s view.Start) {
	switch {
	case s.Reused && s.ReusedHead != nil:
		t.row("reused", "nothing changed since ledger #%d; nothing was executed again", s.ReusedHead.Seq)
		return
	case s.Reused:
		t.row("reused", "nothing changed; nothing was executed again")
		return
	}
	first := ""
	if s.FirstProofMS > 0 {
		first = ", first proof after " + took(time.Duration(s.FirstProofMS)*time.Millisecond)
	}
	t.row("now", "%d proven, %d refuted, on %d attempted in %s%s", s.ProvenNow, s.RefutedNow, s.Attempted, took(time.Duration(s.TookMS)*time.Millisecond), first)
	fresh := s.NewlyProven()
	for _, i := range fresh[:min(len(fresh), 3)] {
		sym := s.Symbols[i]
		t.row("", "%s  %s", t.word(sym.Word), Line(sym.Name))
	}
	if s.Counts.Proven == 0 && s.Counts.Total > 0 {
		if len(s.Unmeasured) > 0 {
			u := s.Unmeasured[0]
			t.row("", "nothing is proven; the most frequent reason, %d of %d: %s", u.Count, s.Counts.Total, Line(u.Detail))
		} else if s.Counts.Stale > 0 {
			t.row("", "nothing is proven any more: what was is stale")
		} else {
			t.row("", "nothing is proven: every behaviour that was measured can break unseen")
		}
	}
}

// broken shows what could not be read or built and is not among the reasons of
// behaviours.
func (t *text) broken(s view.Start) {
	shown := 0
	for _, b := range s.Broken {
		if shown == 2 || slices.ContainsFunc(s.Unmeasured, func(u view.Unmeasured) bool { return u.Detail == b.Text }) {
			continue
		}
		label := ""
		if shown++; shown == 1 {
			label = "broken"
		}
		t.row(label, "%s  %s", Line(b.Text), t.cmd(b.Command))
	}
}

func (t *text) gaps(gaps []view.Gap, most int) {
	for i, g := range gaps[:min(len(gaps), most)] {
		label := ""
		if i == 0 {
			label = "gaps"
		}
		t.row(label, "%s  %s  %s", t.word(g.Word), t.paint(bold, Line(g.Name)), t.paint(grey, fmt.Sprintf("%s:%d", Line(g.File), g.Line)))
		t.prose(g.Why)
	}
	if len(gaps) > most {
		t.row("", "%d more: %s", len(gaps)-most, t.cmd("proveto gaps"))
	}
}

func (t *text) unmeasured(s view.Start) {
	for i, u := range s.Unmeasured[:min(len(s.Unmeasured), 3)] {
		label := ""
		if i == 0 {
			label = "not measured"
		}
		t.row(label, "%d  %s  %s", u.Count, Line(u.Detail), t.cmd(u.Command))
	}
	if n := len(s.Unmeasured) - 3; n > 0 {
		t.row("", "%d more %s: %s", n, plural(n, "reason", "reasons"), t.cmd("proveto gaps"))
	}
}

func (t *text) gate(g view.Gate) {
	if !g.Asked {
		return
	}
	if g.Passed {
		scope := "nothing in scope"
		if g.Counts.Total > 0 {
			scope = fmt.Sprintf("%s of %s in scope proven, %s refuted", thousands(g.Counts.Proven), thousands(g.Counts.Total), thousands(g.Counts.Refuted))
		}
		t.row("gate", "%s  %s", t.paint(green, "passed"), scope)
		for _, f := range g.Failures {
			t.row("", "noted: %s", Line(f))
		}
		return
	}
	var lines []string
	for _, f := range g.Failures {
		lines = append(lines, Line(f))
	}
	if len(lines) == 0 {
		lines = []string{"failed"}
	}
	t.row("gate", "%s  %s", t.paint(red, "failed"), strings.Join(lines, "; "))
	if len(g.Unguarded) > 0 {
		t.row("", "not proven: %s", Line(some(g.Unguarded, 4)))
	}
}

// Certificate writes a certificate as the chain that it is.
func Certificate(w io.Writer, c view.Certificate, style Style) error {
	t := &text{Style: style}
	state := t.word(string(evidence.Proven))
	if !c.Live {
		state = t.word(string(evidence.Stale))
	}
	t.row("certificate", "%s  %s", Line(short(c.ID)), state)
	t.certificate(c, "proveto verify "+short(c.ID)+" --rerun")
	return t.flush(w)
}

func (t *text) certificate(c view.Certificate, check string) {
	t.row("behaviour", "%s", t.paint(bold, Line(c.SymbolName)))
	t.row("test", "%s fails when: %s", Line(c.Test), Line(c.Summary))
	t.diff(changed(parseDiff(c.Diff)))
	for i, s := range c.Steps {
		label := ""
		if i == 0 {
			label = "seen"
		}
		run := ""
		if s.Run != "" {
			run = t.paint(grey, "  run "+Line(short(s.Run)))
			if s.MS > 0 {
				run += t.paint(grey, ", "+took(time.Duration(s.MS)*time.Millisecond))
			}
		}
		t.row(label, "%d %s%s", i+1, Line(s.Text), run)
	}
	t.row("assertion", "%s:%d  %s", Line(c.File), c.Line, Line(c.Message))
	t.row("bound to", "%s %s reached, %s, tree %s", thousands(c.Reached), plural(c.Reached, "symbol", "symbols"), Line(c.Toolchain), Line(short(c.Snapshot)))
	place := ""
	if c.Seq > 0 { // an exported one has its place in another ledger
		place = fmt.Sprintf("; ledger #%d", c.Seq)
	}
	t.row("isolation", "%s, network %s%s", Line(c.Level), Line(c.Network), place)
	for i, cause := range c.StaleCauses {
		label := ""
		if i == 0 {
			label = "changed"
		}
		t.row(label, "%s", Line(cause))
	}
	t.row("check it", "%s", t.cmd(check))
}

func (t *text) diff(lines []diffLine) {
	for _, l := range lines {
		tone := green
		if l.Op == '-' {
			tone = red
		}
		t.row("", "%s", t.paint(tone, string(l.Op)+" "+strings.ReplaceAll(Visible(l.Text), "\t", "    ")))
	}
}

// Why writes the chain behind an evidence word: the certificate, the probes with
// what was seen, or what is missing.
func Why(w io.Writer, y view.Why, style Style) error {
	t := &text{Style: style}
	s := y.Symbol
	t.line("%s  %s  %s", t.word(s.Word), t.paint(bold, Line(s.Name)), t.paint(grey, fmt.Sprintf("%s:%d", Line(s.File), s.Line)))
	if s.Detail != "" || s.Reason != "" {
		why := Line(s.Detail)
		if s.Reason != "" {
			why += t.paint(grey, " ("+Line(s.Reason)+")")
		}
		t.row("because", "%s", why)
	}
	if c := y.Certificate; c != nil {
		if c.Newer != "" {
			state := "replaced"
			if c.Live {
				state = "still holds"
			}
			t.row("certificate", "%s  %s: the newer %s (ledger #%d) is shown for this behaviour", Line(short(c.ID)), state, Line(short(c.Newer)), c.NewerSeq)
		}
		t.certificate(*c, "proveto verify "+short(c.ID)+" --rerun")
	}
	if len(s.Tests) > 0 {
		t.row("reached by", "%s", Line(some(s.Tests, 5)))
	}
	if s.Scored() {
		t.row("strength", "%d of %d mutants killed", s.Strength.Num, s.Strength.Den)
	}
	for _, group := range s.MutantGroups() {
		t.mutants(group)
	}
	for i, n := range y.Next {
		label := ""
		if i == 0 {
			label = "next"
		}
		t.row(label, "%s  %s", t.cmd(n.Run), t.paint(grey, Line(n.Why)))
	}
	return t.flush(w)
}

// mutants writes those that went unseen at one line: what they share is said
// once, by the first.
func (t *text) mutants(group []view.Mutant) {
	first := changed(parseDiff(group[0].Diff))
	for i, m := range group {
		label, mk, by := "", lookup(statuses, m.Status), ""
		if i == 0 {
			label = "mutant"
		}
		if m.Test != "" {
			by = "; noticed by " + Line(m.Test)
		}
		t.row(label, "%s %s  line %d, %s%s", t.shape(mk), t.paint(mk.tint, Line(mk.Label)), m.Line, Line(m.Summary), by)
		if m.Status == string(evidence.Killed) {
			continue
		}
		lines := changed(parseDiff(m.Diff))
		if i > 0 {
			lines = without(lines, first)
		}
		t.diff(lines)
		if m.Note != "" && (i == 0 || m.Note != group[i-1].Note || m.Kind != group[i-1].Kind) {
			t.row("", "%s", Line(note(m.Note, m.Kind)))
		}
		if m.Waived != "" {
			t.row("", "%s", Line(m.Waived))
		}
		if m.Hint != "" {
			t.row("", "hint: %s", Line(m.Hint))
		}
		if len(m.Values) == 2 {
			t.row("", "original %s, changed %s", Line(m.Values[0]), Line(m.Values[1]))
		}
		if m.Message != "" {
			t.row("", "%s", Line(m.Message))
		}
		ids := "mutant " + Line(short(m.ID))
		if m.Run != "" {
			ids += "  run " + Line(short(m.Run))
		}
		t.row("", "%s", t.paint(grey, ids))
	}
}

// changes lists what moved: +4 proven, -1 refuted.
func changes(since []view.Change) string {
	var parts []string
	for _, c := range since {
		parts = append(parts, fmt.Sprintf("%+d %s", c.By, lookup(words, c.Word).Label))
	}
	return strings.Join(parts, ", ")
}

// some names the first and counts the rest.
func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
