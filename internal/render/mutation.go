package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/view"
)

// The mutation testing report schema, version 2, as far as it is used here.
// Field names and statuses are that schema's, not ours.
type mutationReport struct {
	SchemaVersion string                  `json:"schemaVersion"`
	Thresholds    mutationThresholds      `json:"thresholds"`
	ProjectRoot   string                  `json:"projectRoot,omitempty"`
	Framework     mutationFramework       `json:"framework"`
	Files         map[string]mutationFile `json:"files"`
	TestFiles     map[string]testFile     `json:"testFiles,omitempty"`
}

type mutationThresholds struct {
	High int `json:"high"`
	Low  int `json:"low"`
}

type mutationFramework struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type mutationFile struct {
	Language string           `json:"language"`
	Source   string           `json:"source"`
	Mutants  []mutationMutant `json:"mutants"`
}

type mutationMutant struct {
	ID             string    `json:"id"`
	MutatorName    string    `json:"mutatorName"`
	Replacement    string    `json:"replacement"`
	Description    string    `json:"description,omitempty"`
	Location       mutationL `json:"location"`
	Status         string    `json:"status"`
	StatusReason   string    `json:"statusReason,omitempty"`
	CoveredBy      []string  `json:"coveredBy,omitempty"`
	KilledBy       []string  `json:"killedBy,omitempty"`
	TestsCompleted int       `json:"testsCompleted,omitempty"`
}

type mutationL struct {
	Start position  `json:"start"`
	End   *position `json:"end,omitempty"`
}

type position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

type testFile struct {
	Tests []testDefinition `json:"tests"`
}

type testDefinition struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Location *mutationL `json:"location,omitempty"`
}

// foreignStatus maps our statuses to the schema's, whose viewers count Killed and
// Timeout as detected, and RuntimeError and CompileError in neither direction.
// What is not credited here must not raise a score there: only what an assertion
// noticed is Killed, and what ended otherwise than by one is RuntimeError.
var foreignStatus = map[evidence.Status]struct{ status, reason string }{
	evidence.Killed:        {"Killed", ""},
	evidence.KilledByError: {"RuntimeError", "noticed by an exception only, which is not credited"},
	evidence.Survived:      {"Survived", ""},
	evidence.TimedOut:      {"RuntimeError", "the time limit was reached, which is not credited"},
	evidence.Flaky:         {"RuntimeError", "flaky: the control or the repeat disagreed"},
	evidence.Invalid:       {"CompileError", ""},
	evidence.NoCoverage:    {"NoCoverage", ""},
	evidence.Waived:        {"Ignored", "waived"},
	evidence.PendingProbe:  {"Pending", ""},
}

// MutationReport writes the result in the mutation testing report schema,
// version 2, which other tools and viewers read.
func MutationReport(w io.Writer, s view.Start, m Meta) error {
	rep := mutationReport{
		SchemaVersion: "2", Thresholds: mutationThresholds{80, 60}, Framework: mutationFramework{"Proveto", m.Version},
		Files: map[string]mutationFile{}, TestFiles: map[string]testFile{},
	}
	tests := newTestIndex(s.Tests)
	for _, sym := range s.Symbols {
		covered := make([]string, 0, len(sym.Tests))
		for _, name := range sym.Tests {
			covered = append(covered, tests.id(sym.Package, name))
		}
		for _, mu := range sym.Mutants {
			f, ok := rep.Files[mu.File]
			if !ok {
				f = mutationFile{Language: sym.Language, Source: strings.Join(s.Sources[mu.File], "\n")}
			}
			out, err := foreignMutant(mu, s.Sources[mu.File])
			if err != nil {
				return err
			}
			out.CoveredBy = covered
			if out.Status == "NoCoverage" {
				out.CoveredBy = nil
			}
			if mu.Test != "" && out.Status == "Killed" {
				out.KilledBy = []string{tests.id(sym.Package, mu.Test)}
			}
			if len(s.Sources[mu.File]) == 0 {
				// The source was not kept: empty lines keep the places of the mutants.
				f.Source += strings.Repeat("\n", max(0, out.lastLine()-1-strings.Count(f.Source, "\n")))
			}
			f.Mutants = append(f.Mutants, out)
			rep.Files[mu.File] = f
		}
	}
	rep.TestFiles = tests.files
	body, err := encode(rep, "  ")
	if err != nil {
		return fmt.Errorf("encode the mutation report: %w", err)
	}
	_, err = w.Write(append(body, '\n'))
	return err
}

func (m mutationMutant) lastLine() int {
	if m.Location.End != nil {
		return m.Location.End.Line
	}
	return m.Location.Start.Line
}

func foreignMutant(m view.Mutant, source []string) (mutationMutant, error) {
	st, ok := foreignStatus[evidence.Status(m.Status)]
	if !ok {
		return mutationMutant{}, fmt.Errorf("mutant %s has the status %q, which has no place in the mutation report", m.ID, m.Status)
	}
	out := mutationMutant{ID: m.ID, MutatorName: m.Operator, Description: m.Summary, Status: st.status, StatusReason: st.reason}
	if out.StatusReason == "" {
		out.StatusReason = m.Message
	}
	if out.StatusReason == "" && m.Note != "" {
		out.StatusReason = note(m.Note, m.Kind)
	}
	out.Location, out.Replacement = replaced(m, source)
	return out, nil
}

// replaced is the smallest stretch of the original that the diff changes, and
// what it puts there. Columns count UTF-16 units, as the viewers do.
func replaced(m view.Mutant, source []string) (mutationL, string) {
	lines := parseDiff(m.Diff)
	first, last := -1, -1
	for i, l := range lines {
		if l.Op == '-' || l.Op == '+' {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return mutationL{Start: position{max(m.Line, 1), max(m.Column, 1)}}, m.Summary
	}
	var old, now []string
	startLine, next := lines[first].Old, lines[first].Old
	for _, l := range lines[first : last+1] {
		switch l.Op {
		case '@':
			// Between two hunks both sides are the original.
			for ; next < l.Old && next-1 < len(source); next++ {
				old, now = append(old, source[next-1]), append(now, source[next-1])
			}
		case '-':
			old, next = append(old, l.Text), l.Old+1
		case '+':
			now = append(now, l.Text)
		default:
			old, now, next = append(old, l.Text), append(now, l.Text), l.Old+1
		}
	}
	before, after := strings.Join(old, "\n"), strings.Join(now, "\n")
	if len(old) == 0 {
		after += "\n" // a pure insertion stands before the line that follows
	}
	if len(now) == 0 {
		before += "\n"
	}
	pre, post := shared(before, after)
	start := advance(position{max(startLine, 1), 1}, before[:pre])
	end := advance(start, before[pre:len(before)-post])
	return mutationL{Start: start, End: &end}, after[pre : len(after)-post]
}

// shared is how many bytes two texts have in common at both ends, cut where a
// character begins.
func shared(a, b string) (prefix, suffix int) {
	for prefix < len(a) && prefix < len(b) && a[prefix] == b[prefix] {
		prefix++
	}
	for prefix > 0 && prefix < len(a) && a[prefix]&0xc0 == 0x80 || prefix > 0 && prefix < len(b) && b[prefix]&0xc0 == 0x80 {
		prefix--
	}
	for suffix < len(a)-prefix && suffix < len(b)-prefix && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	for suffix > 0 && a[len(a)-suffix]&0xc0 == 0x80 {
		suffix--
	}
	return prefix, suffix
}

func advance(p position, s string) position {
	for _, r := range s {
		if r == '\n' {
			p.Line, p.Column = p.Line+1, 1
			continue
		}
		p.Column += max(utf16.RuneLen(r), 1)
	}
	return p
}

// testIndex gives each test one id, in the file where it is.
type testIndex struct {
	files map[string]testFile
	ids   map[[2]string]string // package and name
}

func newTestIndex(tests []view.Test) *testIndex {
	x := &testIndex{files: map[string]testFile{}, ids: map[[2]string]string{}}
	for _, t := range tests {
		file := t.File
		if file == "" {
			file = t.Package
		}
		x.add(file, t.Package, t.Name, t.Line)
	}
	return x
}

// id finds a test by the package of the symbol that it reaches; one that is not
// listed is entered below that package.
func (x *testIndex) id(pkg, name string) string {
	if id, ok := x.ids[[2]string{pkg, name}]; ok {
		return id
	}
	return x.add(pkg, pkg, name, 0)
}

func (x *testIndex) add(file, pkg, name string, line int) string {
	key := [2]string{pkg, name}
	if id, ok := x.ids[key]; ok {
		return id
	}
	d := testDefinition{ID: pkg + "." + name, Name: name}
	if line > 0 {
		d.Location = &mutationL{Start: position{line, 1}}
	}
	f := x.files[file]
	f.Tests = append(f.Tests, d)
	x.files[file] = f
	x.ids[key] = d.ID
	return d.ID
}
