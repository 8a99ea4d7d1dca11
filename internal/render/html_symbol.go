package render

import (
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/view"
)

// detail is one symbol laid out.
type detail struct {
	view.Symbol
	Cert        *view.Certificate
	Source      template.HTML
	Probes      []probe
	sourceBytes int
}

type probe struct {
	view.Mutant
	Lines []diffLine
}

func (p *page) detail(i int) *detail {
	d := &detail{Symbol: p.Symbols[i]}
	d.Cert = p.certs[d.Certificate]
	for _, m := range d.Mutants {
		pr := probe{Mutant: m}
		if m.Status != string(evidence.Killed) {
			pr.Lines = changed(parseDiff(m.Diff))
		}
		d.Probes = append(d.Probes, pr)
	}
	d.Source, d.sourceBytes = sourceHTML(d.Symbol, p.Sources[d.File])
	return d
}

// sourceHTML shows the lines of a symbol with its mutants in the gutter: the
// most telling one of a line, linked to its row. It also says how many bytes of
// it are the source itself.
func sourceHTML(s view.Symbol, lines []string) (template.HTML, int) {
	if s.Line < 1 || s.EndLine < s.Line || s.EndLine > len(lines) {
		return "", 0
	}
	at := map[int]view.Mutant{}
	for _, m := range s.Mutants {
		if m.File != s.File {
			continue
		}
		if old, ok := at[m.Line]; !ok || telling(m.Status) < telling(old.Status) {
			at[m.Line] = m
		}
	}
	digits := len(fmt.Sprint(s.EndLine))
	var b strings.Builder
	size := 0
	for n := s.Line; n <= s.EndLine; n++ {
		text := html.EscapeString(lines[n-1])
		size += len(text) + 1
		m, ok := at[n]
		if !ok {
			fmt.Fprintf(&b, "<i>%*d   </i>%s\n", digits, n, text)
			continue
		}
		st := lookup(statuses, m.Status)
		fmt.Fprintf(&b, `<span class="%s"><i>%*d <a href="#%s" title="%s: %s" aria-label="line %d, %s">%s</a> </i>%s`+"\n</span>",
			st.Class, digits, n, mutantAnchor(m.ID), html.EscapeString(st.Label), html.EscapeString(m.Summary), n, html.EscapeString(st.Label), st.Shape, text)
	}
	return template.HTML(b.String()), size
}

var tellingOrder = []string{string(evidence.Survived), string(evidence.KilledByError), string(evidence.TimedOut), string(evidence.Flaky), string(evidence.Killed)}

// telling ranks statuses for the one sign that a line of source has room for.
func telling(status string) int {
	if i := slices.Index(tellingOrder, status); i >= 0 {
		return i
	}
	return len(tellingOrder)
}

// short is the beginning of a digest, or the end of another long id, for people.
func short(id string) string {
	if d, ok := strings.CutPrefix(id, "sha256:"); ok {
		return d[:min(len(d), 12)]
	}
	if len(id) == 40 || len(id) == 64 {
		return id[:7]
	}
	return id
}

func signed(n int) string {
	if n < 0 {
		return "−" + thousands(-n)
	}
	return "+" + thousands(n)
}

// thousands groups digits: 1,204.
func thousands(n int) string {
	s := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}
