package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/proveto/proveto/internal/evidence"
)

// WorstFirst lists the evidence words in the order in which lists are read:
// what is broken before what is missing before what holds.
func WorstFirst() []string {
	return []string{string(evidence.Refuted), string(evidence.Stale), string(evidence.NotMeasured), string(evidence.Proven)}
}

// Of is the count of one evidence word; any other word counts nothing.
func (c Counts) Of(word string) int {
	switch evidence.Word(word) {
	case evidence.Proven:
		return c.Proven
	case evidence.Refuted:
		return c.Refuted
	case evidence.Stale:
		return c.Stale
	case evidence.NotMeasured:
		return c.NotMeasured
	}
	return 0
}

// Change is the difference of one evidence word to an earlier result.
type Change struct {
	Word string `json:"word"`
	By   int    `json:"by"` // never 0
}

// Since lists the words whose count differs from before, in the order in which
// words are shown. Nil when nothing moved.
func (c Counts) Since(before Counts) []Change {
	var out []Change
	for _, w := range evidence.Words() {
		if d := c.Of(string(w)) - before.Of(string(w)); d != 0 {
			out = append(out, Change{string(w), d})
		}
	}
	return out
}

// Moved lists the words whose count is not that of the result before; nil when
// there is none.
func (s *Start) Moved() []Change {
	if s.Before == nil {
		return nil
	}
	return s.Counts.Since(*s.Before)
}

// String names an earlier result: main at 1a2b3c4 of 2026-01-02 15:04 UTC.
func (e *Earlier) String() string {
	if e == nil {
		return "the result before"
	}
	at := e.Branch
	if e.Commit != "" {
		if at != "" {
			at += " at "
		}
		at += e.Commit[:min(7, len(e.Commit))]
	}
	if e.Dirty {
		at += " with uncommitted changes"
	}
	if at == "" {
		at = "the start"
	}
	return at + " of " + e.Started.UTC().Format("2006-01-02 15:04") + " UTC"
}

// Section is every symbol with one evidence word.
type Section struct {
	Word  string
	Count int
	Lists []List
}

// List is the symbols of one package with one evidence word: what a number in
// the evidence map links to. Package is an index into [Start.Packages], or -1
// for symbols whose package the map does not have.
type List struct {
	Package int
	Name    string
	Symbols []int // indexes into [Start.Symbols], worst first
}

// Sections sorts the symbols by word (worst first), package (in the order of
// the map) and risk. Words without a symbol are left out.
func (s *Start) Sections() []Section {
	index := map[string]int{}
	for i, p := range s.Packages {
		index[p.Name] = i
	}
	var out []Section
	for _, word := range WorstFirst() {
		lists := map[string]*List{}
		sec := Section{Word: word}
		for i, sym := range s.Symbols {
			if sym.Word != word {
				continue
			}
			l := lists[sym.Package]
			if l == nil {
				at, ok := index[sym.Package]
				if !ok {
					at = -1
				}
				l = &List{Package: at, Name: sym.Package}
				lists[sym.Package] = l
			}
			l.Symbols = append(l.Symbols, i)
			sec.Count++
		}
		for _, l := range lists {
			slices.SortStableFunc(l.Symbols, func(a, b int) int { return cmp.Compare(s.Symbols[b].Risk, s.Symbols[a].Risk) })
			sec.Lists = append(sec.Lists, *l)
		}
		slices.SortFunc(sec.Lists, func(a, b List) int {
			if a.Package != b.Package && a.Package >= 0 && b.Package >= 0 {
				return a.Package - b.Package
			}
			return cmp.Or(cmp.Compare(b.Package, a.Package), cmp.Compare(a.Name, b.Name))
		})
		if sec.Count > 0 {
			out = append(out, sec)
		}
	}
	return out
}

// DetailOrder ranks the symbols for a reader with limited room: refuted, stale
// and not measured by risk, then proven with the newest certificate first.
func (s *Start) DetailOrder() []int {
	rank := map[string]int{}
	for i, w := range WorstFirst() {
		rank[w] = i
	}
	seq := map[string]int64{}
	for _, c := range s.Certificates {
		seq[c.ID] = c.Seq
	}
	out := make([]int, len(s.Symbols))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(i, j int) int {
		a, b := s.Symbols[i], s.Symbols[j]
		if c := cmp.Compare(rank[a.Word], rank[b.Word]); c != 0 {
			return c
		}
		if a.Word == string(evidence.Proven) {
			return cmp.Compare(seq[b.Certificate], seq[a.Certificate])
		}
		return cmp.Compare(b.Risk, a.Risk)
	})
	return out
}

// NewlyProven are the indexes of the symbols that this invocation proved,
// newest certificate first.
func (s *Start) NewlyProven() []int {
	var out []int
	for _, i := range s.DetailOrder() {
		if s.Symbols[i].Word == string(evidence.Proven) && s.Symbols[i].New {
			out = append(out, i)
		}
	}
	return out
}

// Headline is the verdict as one sentence without a full stop.
func (s *Start) Headline() string {
	c := s.Counts
	switch {
	case c.Total == 0:
		return "No behaviour was found to measure"
	case c.NotMeasured == c.Total:
		return fmt.Sprintf("None of %d behaviours could be measured", c.Total)
	case c.Proven == 0:
		return fmt.Sprintf("None of %d behaviours is proven", c.Total)
	case c.Total == 1:
		return "The one behaviour is proven"
	case c.Proven == c.Total:
		return fmt.Sprintf("All %d behaviours are proven", c.Total)
	case c.Proven == 1:
		return fmt.Sprintf("1 of %d behaviours is proven", c.Total)
	}
	return fmt.Sprintf("%d of %d behaviours are proven", c.Proven, c.Total)
}

// NextSteps are the commands that get on, best first; never empty.
func (s *Start) NextSteps() []Next {
	var out []Next
	if s.Gate.Asked && !s.Gate.Passed {
		out = s.gateSteps()
	}
	for _, b := range s.Broken {
		if b.Command != "" {
			out = append([]Next{{b.Text, b.Command}}, out...)
			break
		}
	}
	for _, g := range s.Gaps {
		if g.Word == string(evidence.Refuted) && len(g.Commands) > 0 {
			out = append(out, Next{"see how " + g.Name + " can break unseen", g.Commands[0]})
			break
		}
	}
	for _, u := range s.Unmeasured {
		// Of a part, what was asked for and not measured comes before the rest.
		asked := !s.Narrow || u.Reason != "pending" || len(s.Unmeasured) == 1
		if u.Command != "" && asked && (len(out) == 0 || out[0].Run != u.Command) {
			out = append(out, Next{fmt.Sprintf("%d not measured: %s", u.Count, u.Detail), u.Command})
			break
		}
	}
	for _, g := range s.Gaps {
		if g.Word == string(evidence.Stale) && len(g.Commands) > 0 {
			out = append(out, Next{g.Name + " is stale", g.Commands[0]})
			break
		}
	}
	switch {
	case len(out) > 0:
	case len(s.Gaps) > 0 && len(s.Gaps[0].Commands) > 0:
		out = append(out, Next{s.Gaps[0].Name + ": " + s.Gaps[0].Why, s.Gaps[0].Commands[0]})
	case s.Counts.Proven == 0 && s.Counts.NotMeasured > 0:
		out = append(out, Next{"see what stopped proof", "proveto doctor --proof"})
	default:
		out = append(out, Next{"keep changes proven", "proveto prove --diff"})
	}
	return out
}

// gateSteps are the commands for what made a gate fail: the worst of its scope.
// Nothing else gets past it.
func (s *Start) gateSteps() []Next {
	inScope := map[string]bool{}
	for _, x := range s.Symbols {
		if slices.Contains(s.Gate.Unguarded, x.Name) && (x.Changed || !s.Gate.Changed) {
			inScope[x.ID] = true
		}
	}
	for _, g := range s.Gaps {
		if !inScope[g.Symbol] || len(g.Commands) == 0 {
			continue
		}
		why := "the gate: " + g.Name + ": " + g.Why
		if g.Word == string(evidence.Refuted) {
			why = "the gate: see how " + g.Name + " can break unseen"
		}
		return []Next{{why, g.Commands[0]}}
	}
	return nil
}

// Scored tells whether the strength says anything: more than one probe was
// judged, and trying did not end with the first that was noticed.
func (s Symbol) Scored() bool {
	last, kinds := "", false
	for _, m := range s.Mutants {
		kinds = kinds || m.Kind != string(evidence.ProbeResult)
		last = m.Status
	}
	return s.Strength.Den > 1 && (kinds || s.Strength.Num != 1 || last != string(evidence.Killed))
}

// MutantGroups puts the mutants together that went unseen in one way at one line,
// in the order of the first of each. One that was noticed stands alone.
func (s Symbol) MutantGroups() [][]Mutant {
	type place struct {
		file, status string
		line         int
	}
	at := map[place]int{}
	var out [][]Mutant
	for _, m := range s.Mutants {
		p := place{m.File, m.Status, m.Line}
		i, ok := at[p]
		if !ok || m.Status == string(evidence.Killed) {
			at[p] = len(out)
			out = append(out, []Mutant{m})
			continue
		}
		out[i] = append(out[i], m)
	}
	return out
}
