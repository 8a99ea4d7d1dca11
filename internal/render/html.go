package render

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/view"
)

//go:embed report.css
var reportCSS string

//go:embed report.html.tmpl
var reportTemplate string

// Budget of the behaviour report: its size is at most the base plus the share
// of each mutant plus the source that it shows.
const (
	ReportBaseBytes   = 300_000
	ReportMutantBytes = 200
	// ReportMostBytes caps it, the source not counted; only the lines of very
	// many symbols, which are never left out, go beyond it.
	ReportMostBytes = 1_300_000
	// MaxNewestProven is how many proven symbols are opened up at most, newest
	// first; the others have their line in the list.
	MaxNewestProven = 300
	// MaxGapCards is how many gaps are laid out as cards.
	MaxGapCards = 25
)

// leastDetail is less than any opened symbol takes.
const leastDetail = 500

// Meta is what the envelope of an answer knows beside its data.
type Meta struct {
	Version  string
	Subject  view.Subject
	Head     *view.Head
	Warnings []view.Warning
}

// page is what the template lays out. Everything in it was made visible.
type page struct {
	view.Start
	Meta
	CSS      template.CSS
	CSP      string
	Title    string
	Headline string
	Bar      template.HTML
	Since    []view.Change
	Cards    []card
	Sections []section
	Rows     []mapRow
	Data     template.JS
	DataCut  string // what the embedded JSON leaves out; empty: nothing
	Opened   int    // symbols laid out in full
	Foldable int    // symbols that could be laid out in full
	names    map[string]symbolRef
	certs    map[string]*view.Certificate // by id
}

type symbolRef struct{ Name, Anchor string }

type card struct {
	view.Gap
	Anchor string
	Lines  []diffLine
}

type mapRow struct {
	view.Package
	Mini  template.HTML
	Cells []cell
}

type cell struct {
	N    int
	Word string
	Href string
}

type section struct {
	Word  string
	Count int
	Lists []list
}

type list struct {
	Anchor string
	Name   string
	Items  []template.HTML
	Count  int
	rows   []int // indexes of the symbols
}

// HTML writes the behaviour report: one file that asks the network for nothing,
// runs no script and reads the same from a disk as from a server.
func HTML(w io.Writer, s view.Start, m Meta) error {
	p, err := newPage(visible(s), visible(m))
	if err != nil {
		return err
	}
	t, err := reportTemplates()
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "report", p)
}

var reportTemplates = sync.OnceValues(func() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"word":     func(w string) mark { return lookup(words, w) },
		"status":   func(s string) mark { return lookup(statuses, s) },
		"anchor":   symbolAnchor,
		"mutant":   mutantAnchor,
		"note":     note,
		"short":    short,
		"took":     func(ms int64) string { return took(time.Duration(ms) * time.Millisecond) },
		"thousand": thousands,
		"signed":   signed,
		"when":     func(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04 UTC") },
		"stamp":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"percent":  func(f float64) string { return fmt.Sprintf("%.0f %%", f*100) },
		"risk":     func(f float64) string { return fmt.Sprintf("%.2f", f) },
		"survived": func(s string) bool { return s == string(evidence.Survived) },
		"killed":   func(s string) bool { return s == string(evidence.Killed) },
	}).Parse(reportTemplate)
})

func newPage(s view.Start, m Meta) (*page, error) {
	sum := sha256.Sum256([]byte(reportCSS))
	p := &page{
		Start: s, Meta: m, CSS: template.CSS(reportCSS),
		CSP: fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'",
			base64.StdEncoding.EncodeToString(sum[:])),
		Headline: s.Headline(), Bar: barSVG(s.Counts, "bar"),
		names: make(map[string]symbolRef, len(s.Symbols)),
		certs: make(map[string]*view.Certificate, len(s.Certificates)),
	}
	for i := range s.Certificates {
		p.certs[s.Certificates[i].ID] = &s.Certificates[i]
	}
	p.Title = m.Subject.Repository + ": " + p.Headline
	p.Since = s.Moved()
	for _, sym := range s.Symbols {
		p.names[sym.ID] = symbolRef{sym.Name, symbolAnchor(sym.ID)}
	}
	for _, g := range s.Gaps[:min(len(s.Gaps), MaxGapCards)] {
		p.Cards = append(p.Cards, card{g, symbolAnchor(g.Symbol), parseDiff(g.Diff)})
	}
	for i, pkg := range s.Packages {
		row := mapRow{Package: pkg, Mini: barSVG(pkg.Counts, "mini")}
		for _, w := range evidence.Words() {
			row.Cells = append(row.Cells, cell{pkg.Counts.Of(string(w)), string(w), listAnchor(string(w), i)})
		}
		p.Rows = append(p.Rows, row)
	}
	if err := p.embedData(); err != nil {
		return nil, err
	}
	return p, p.layOut()
}

// tally is one line of the probes by status.
type tally struct {
	mark
	N int
}

// Tallies are the probes by status, in the order of the vocabulary.
func (p *page) Tallies() []tally {
	var out []tally
	for _, s := range statusOrder {
		if n := p.Probes[string(s)]; n > 0 {
			out = append(out, tally{lookup(statuses, string(s)), n})
		}
	}
	return out
}

// Names resolves symbol ids to names and anchors; unknown ids are left as ids.
func (p *page) Names(ids []string) []symbolRef {
	out := make([]symbolRef, 0, len(ids))
	for _, id := range ids {
		if r, ok := p.names[id]; ok {
			out = append(out, r)
		} else {
			out = append(out, symbolRef{id, ""})
		}
	}
	return out
}

// embedData puts the JSON of the view into the page, leaving out the parts that
// grow until it takes at most a third of the budget.
func (p *page) embedData() error {
	s := p.Start
	cuts := []struct {
		says string
		cut  func()
	}{
		{"", func() {}},
		{"the mutants", func() {
			s.Symbols = slices.Clone(s.Symbols)
			for i := range s.Symbols {
				s.Symbols[i].Mutants = nil
			}
		}},
		{"the mutants, symbols, tests and certificates", func() { s.Symbols, s.Certificates, s.Tests = []view.Symbol{}, []view.Certificate{}, []view.Test{} }},
		{"all lists", func() {
			s.Gaps, s.Unmeasured, s.Excluded = []view.Gap{}, []view.Unmeasured{}, []view.Excluded{}
			s.Suite.Red, s.Suite.Flaky = []view.TestNote{}, []view.TestNote{}
		}},
	}
	for i, c := range cuts {
		c.cut()
		body, err := encode(s, "")
		if err != nil {
			return fmt.Errorf("embed the data of the report: %w", err)
		}
		if len(body) <= ReportBaseBytes/3 || i == len(cuts)-1 {
			p.Data, p.DataCut = template.JS(body), c.says
			return nil
		}
	}
	return nil
}

// layOut renders the symbols: every one has its line; the most important are
// opened up as long as the budget lasts.
func (p *page) layOut() error {
	t, err := reportTemplates()
	if err != nil {
		return err
	}
	lines := make([]template.HTML, len(p.Symbols))
	left, mutants := 0, 0
	for i := range p.Symbols {
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, "line", &p.Symbols[i]); err != nil {
			return err
		}
		lines[i] = template.HTML(b.String())
		left -= b.Len()
		mutants += len(p.Symbols[i].Mutants)
	}
	p.Sections = p.sections()
	// The fixed parts and the heads of the lists, written once to know them; the
	// sentence that states a cut is counted too.
	p.Foldable = 1
	var rest bytes.Buffer
	if err := t.ExecuteTemplate(&rest, "report", p); err != nil {
		return err
	}
	left += min(ReportBaseBytes+mutants*ReportMutantBytes, ReportMostBytes) - rest.Len()
	p.Foldable = 0
	proven := 0
	for _, i := range p.DetailOrder() {
		sym := &p.Symbols[i]
		if len(sym.Mutants) == 0 && p.certs[sym.Certificate] == nil && len(sym.Tests) == 0 {
			continue
		}
		p.Foldable++
		if sym.Word == string(evidence.Proven) {
			proven++
		}
		if proven > MaxNewestProven || left < leastDetail {
			continue
		}
		d := p.detail(i)
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, "symbol", d); err != nil {
			return err
		}
		if cost := b.Len() - d.sourceBytes - len(lines[i]); cost <= left {
			left -= cost
			lines[i] = template.HTML(b.String())
			p.Opened++
		}
	}
	for _, sec := range p.Sections {
		for i := range sec.Lists {
			for _, at := range sec.Lists[i].rows {
				sec.Lists[i].Items = append(sec.Lists[i].Items, lines[at])
			}
		}
	}
	return nil
}

// sections are the lists of the page, without their items.
func (p *page) sections() []section {
	var all []section
	for _, sec := range p.Start.Sections() {
		out := section{Word: sec.Word, Count: sec.Count}
		for _, l := range sec.Lists {
			out.Lists = append(out.Lists, list{Anchor: listAnchor(sec.Word, l.Package)[1:], Name: l.Name, Count: len(l.Symbols), rows: l.Symbols})
		}
		all = append(all, out)
	}
	return all
}

func symbolAnchor(id string) string { return "s-" + digits(id) }
func mutantAnchor(id string) string { return "m-" + digits(id) }

// digits makes an anchor that stays the same between reports.
func digits(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:6])
}

func listAnchor(word string, pkg int) string {
	if pkg < 0 {
		return "#" + word + "-other"
	}
	return fmt.Sprintf("#%s-%d", word, pkg)
}

// barSVG draws the four counts. A count that is not zero is always wide enough
// to be seen. SVG attributes, because the page allows no inline styles.
func barSVG(c view.Counts, class string) template.HTML {
	const least = 0.8
	var b strings.Builder
	height := 14
	if class == "mini" {
		height = 10
	}
	label := fmt.Sprintf("%d proven, %d refuted, %d stale, %d not measured, of %d", c.Proven, c.Refuted, c.Stale, c.NotMeasured, c.Total)
	fmt.Fprintf(&b, `<svg class="%s" height="%d" role="img" aria-label="%s">`, class, height, label)
	sum := 0.0
	width := func(n int) float64 { return max(100*float64(n)/float64(max(c.Total, 1)), least) }
	for _, w := range evidence.Words() {
		if n := c.Of(string(w)); n > 0 {
			sum += width(n)
		}
	}
	x := 0.0
	for _, w := range evidence.Words() {
		n := c.Of(string(w))
		if n == 0 {
			continue
		}
		share := 100 * width(n) / sum
		fmt.Fprintf(&b, `<rect class="%s" x="%.2f%%" width="%.2f%%" height="%d"/>`, lookup(words, string(w)).Class, x, share, height)
		x += share
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
