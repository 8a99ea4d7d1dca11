package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/view"
)

// MarkdownMark is the hidden line by which a comment of ours is found again.
const MarkdownMark = "<!-- proveto -->"

// MostMarkdown is how many bytes a report in Markdown has at most; forges refuse
// longer comments.
const MostMarkdown = 60_000

// Markdown writes the result for a pull request or a step summary: the verdict,
// what a bug could break, what could not be measured, the packages. What does
// not fit is left out from the end of a list, and counted.
func Markdown(w io.Writer, s view.Start, m Meta) error {
	d := &markdown{}
	head := &d.b
	fmt.Fprintf(head, "%s\n### %s\n\n", MarkdownMark, mdText(s.Headline()))
	var counts []string
	for _, word := range evidence.Words() {
		mk := lookup(words, string(word))
		counts = append(counts, fmt.Sprintf("%s **%s** %s", mk.Shape, thousands(s.Counts.Of(string(word))), mk.Label))
	}
	fmt.Fprintf(head, "%s, of %s (%s)\n\n", strings.Join(counts, " · "), thousands(s.Counts.Total), mdText(s.Scope))
	if s.Narrow {
		head.WriteString("Only what is named in brackets was measured; everything else is shown as it was known before.\n\n")
	}
	if since := s.Moved(); len(since) > 0 {
		fmt.Fprintf(head, "Against %s: %s.\n\n", mdText(s.BeforeIs.String()), changes(since))
	}
	d.gate(s.Gate)
	if len(s.SwitchedOff) > 0 {
		fmt.Fprintf(head, "Switched off, and therefore not measured: %s.\n\n", mdText(strings.Join(s.SwitchedOff, ", ")))
	}
	foot := markdownFoot(s, m)
	d.room = MostMarkdown - len(foot) - 600 // for the lines that count what is left out
	d.gapsAndUnmeasured(s)
	d.packages(s)
	d.suite(s.Suite)
	_, err := io.WriteString(w, d.b.String()+foot)
	return err
}

type markdown struct {
	b    strings.Builder
	room int
}

// block writes text when it fits.
func (d *markdown) block(text string) bool {
	if d.b.Len()+len(text) > d.room {
		return false
	}
	d.b.WriteString(text)
	return true
}

func (d *markdown) gate(g view.Gate) {
	if !g.Asked {
		return
	}
	if g.Passed {
		d.b.WriteString("**Gate passed.**\n\n")
		return
	}
	d.b.WriteString("**Gate failed.**\n\n")
	for _, f := range g.Failures[:min(len(g.Failures), 20)] {
		fmt.Fprintf(&d.b, "- %s\n", mdClip(f))
	}
	if len(g.Unguarded) > 0 {
		var names []string
		for _, n := range g.Unguarded[:min(len(g.Unguarded), 20)] {
			names = append(names, mdCode(n))
		}
		more := ""
		if n := len(g.Unguarded) - len(names); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(&d.b, "- not proven: %s%s\n", strings.Join(names, ", "), more)
	}
	d.b.WriteString("\n")
}

func (d *markdown) gapsAndUnmeasured(s view.Start) {
	if len(s.Gaps) > 0 {
		d.b.WriteString("#### What a bug could break unseen\n\n")
	}
	for i, g := range s.Gaps {
		mk := lookup(words, g.Word)
		var b strings.Builder
		fmt.Fprintf(&b, "%s **%s** %s, %s\n%s\n", mk.Shape, mk.Label, mdCode(g.Name), mdCode(fmt.Sprintf("%s:%d", g.File, g.Line)), mdText(g.Why))
		if lines := changed(parseDiff(g.Diff)); len(lines) > 0 {
			var diff strings.Builder
			for _, l := range lines {
				diff.WriteString(string(l.Op) + Visible(l.Text) + "\n")
			}
			fmt.Fprintf(&b, "\n<details><summary>the change that no test notices</summary>\n\n%s\n</details>\n", mdFence("diff", diff.String()))
		}
		for _, c := range g.Commands {
			fmt.Fprintf(&b, "\n%s", mdFence("sh", c+"\n"))
		}
		b.WriteString("\n")
		// A third of the room is kept for the parts that follow.
		if d.b.Len() > MostMarkdown*2/3 || !d.block(b.String()) {
			fmt.Fprintf(&d.b, "%d more %s not shown here.\n\n", len(s.Gaps)-i, plural(len(s.Gaps)-i, "gap is", "gaps are"))
			break
		}
	}
	if len(s.Unmeasured) == 0 {
		return
	}
	d.b.WriteString("#### Not measured\n\n| behaviours | reason | what would change that |\n| ---: | --- | --- |\n")
	d.rows(len(s.Unmeasured), "reason", func(i int) string {
		u := s.Unmeasured[i]
		cmd := "–"
		if u.Command != "" {
			cmd = mdCell(u.Command)
		}
		return fmt.Sprintf("| %s | %s | %s |\n", thousands(u.Count), mdText(u.Detail), cmd)
	})
}

func (d *markdown) packages(s view.Start) {
	if len(s.Packages) == 0 {
		return
	}
	d.b.WriteString("#### By package\n\n| package | proven | refuted | stale | not measured | of |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
	d.rows(len(s.Packages), "package", func(i int) string {
		p := s.Packages[i]
		return fmt.Sprintf("| %s | %d | %d | %d | %d | %d |\n", mdText(p.Name), p.Counts.Proven, p.Counts.Refuted, p.Counts.Stale, p.Counts.NotMeasured, p.Counts.Total)
	})
}

func (d *markdown) suite(s view.Suite) {
	all := append(append([]view.TestNote{}, s.Red...), s.Flaky...)
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(&d.b, "#### Tests that vouch for nothing: %d red, %d flaky\n\n", len(s.Red), len(s.Flaky))
	d.rows(len(all), "test", func(i int) string {
		state := "red"
		if i >= len(s.Red) {
			state = "flaky"
		}
		return fmt.Sprintf("- %s %s: %s\n", state, mdCode(all[i].Test), mdText(all[i].Note))
	})
}

// rows writes rows as long as they fit, and counts the rest.
func (d *markdown) rows(n int, noun string, rowFunc func(int) string) {
	for i := range n {
		if !d.block(rowFunc(i)) {
			fmt.Fprintf(&d.b, "\n%d more %s not shown here.\n", n-i, plural(n-i, noun+" is", noun+"s are"))
			break
		}
	}
	d.b.WriteString("\n")
}

func markdownFoot(s view.Start, m Meta) string {
	parts := []string{}
	if m.Subject.Commit != "" {
		parts = append(parts, "commit "+mdCode(short(m.Subject.Commit)))
	}
	if m.Head != nil {
		parts = append(parts, fmt.Sprintf("ledger #%d %s", m.Head.Seq, mdCode(short(m.Head.Root))))
	}
	if s.Isolation != "" {
		parts = append(parts, "isolation "+mdText(s.Isolation))
	}
	parts = append(parts, "proveto "+mdText(m.Version), s.Started.UTC().Format(time.RFC3339))
	return fmt.Sprintf("%s\n\n<sub>%s</sub>\n", mdText(s.Says), strings.Join(parts, " · "))
}

// mdText makes foreign text inert: no markup, no HTML, no link, no mention, no
// reference to an issue.
func mdText(s string) string {
	var b strings.Builder
	for _, r := range Line(s) {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '@' || r == '#':
			fmt.Fprintf(&b, "&#%d;", r) // an entity is text after mentions were looked for
			b.WriteString("<!-- -->")
		case strings.ContainsRune("\\`*_{}[]()!|~", r):
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	// A bare address would become a link.
	return strings.NewReplacer("://", ":<!-- -->//", "www.", "www<!-- -->.").Replace(b.String())
}

func mdClip(s string) string {
	if r := []rune(s); len(r) > 400 {
		s = string(r[:400]) + "…"
	}
	return mdText(s)
}

// mdCode is a code span with a fence longer than any run of backticks inside.
func mdCode(s string) string {
	s = Line(s)
	fence := strings.Repeat("`", longestRun(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || s == "" {
		s = " " + s + " "
	}
	return fence + s + fence
}

// mdCell is a code span inside a table, where a bar ends the cell even in code.
func mdCell(s string) string { return strings.ReplaceAll(mdCode(s), "|", `\|`) }

func mdFence(lang, s string) string {
	fence := strings.Repeat("`", max(3, longestRun(s)+1))
	return fence + lang + "\n" + Visible(s) + fence + "\n"
}

func longestRun(s string) int {
	most, n := 0, 0
	for _, r := range s {
		if r != '`' {
			n = 0
			continue
		}
		n++
		most = max(most, n)
	}
	return most
}
