package attacks

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var results = flag.Bool("results", false, "write what the cases that run do to RESULTS.md; the lines of other rows are kept")

const resultsFile = "RESULTS.md"

// notRun is said of a row that has a line and was not run since it is there.
const notRun = "not run yet"

const resultsHead = `# Results

What the attacks of this folder and their honest twins came to, by the product's own binary. Written by
` + "`go test ./attacks -run TestAttacks -results`" + `; a test checks that each row was run on the fixture as it is now.

| row | attack | twin | fixture |
|---|---|---|---|
`

// scores collects what the cases of one run came to.
type scores struct {
	mu    sync.Mutex
	cells map[string]map[string]string // row and language, side
}

func (s *scores) note(row, side, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cells == nil {
		s.cells = map[string]map[string]string{}
	}
	if s.cells[row] == nil {
		s.cells[row] = map[string]string{}
	}
	s.cells[row][side] = text
}

// outcome words what a case came to: the symbols that its expectation names,
// each with its word and reason.
func outcome(want Outcome, got answer, bad []string) string {
	if len(bad) > 0 {
		return "**FAILED**: " + strings.ReplaceAll(bad[0], "|", "/")
	}
	e, syms, err := got.symbols()
	if err != nil {
		return "**FAILED**: " + err.Error()
	}
	names := map[string]bool{}
	for n := range want.Evidence {
		names[n] = true
	}
	for _, n := range slices.Concat(want.NotCredited, want.Credited) {
		names[n] = true
	}
	var out []string
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if s, ok := syms[n]; ok {
			text := n + " " + s.Word
			if s.Reason != "" {
				text += " (" + s.Reason + ")"
			}
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return fmt.Sprintf("exit %d, %s", e.Exit, e.Code)
	}
	return strings.Join(out, ", ")
}

// fixture identifies the files of a case.
func fixture(t *testing.T, row, lang string) string {
	t.Helper()
	h := sha256.New()
	for _, name := range []string{"base.txtar", "attack.txtar", "twin.txtar", "script.txtar", "expect.yaml"} {
		b, err := os.ReadFile(filepath.Join(row, lang, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%s %d\n", name, len(b))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// lines reads the table of RESULTS.md: row to line.
func lines(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	b, err := os.ReadFile(resultsFile)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, l := range strings.Split(string(b), "\n") {
		if cells := strings.Split(l, " | "); len(cells) == 4 && strings.HasPrefix(l, "| ") && cells[0] != "| row" {
			out[strings.TrimPrefix(cells[0], "| ")] = l
		}
	}
	return out
}

// write joins the new lines with those of the rows that did not run in full.
func (s *scores) write(t *testing.T) {
	table := lines(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, sides := range s.cells {
		if len(sides) == 2 {
			row, lang, _ := strings.Cut(key, "/")
			table[key] = fmt.Sprintf("| %s | %s | %s | %s |", key, sides["attack"], sides["twin"], fixture(t, row, lang))
		}
	}
	for _, r := range rows(t) {
		for _, c := range r.Cases {
			if key := r.Name + "/" + c.Language; table[key] == "" {
				table[key] = fmt.Sprintf("| %s | %s | %s | - |", key, notRun, notRun)
			}
		}
	}
	text := resultsHead
	for _, key := range slices.Sorted(maps.Keys(table)) {
		text += table[key] + "\n"
	}
	if err := os.WriteFile(resultsFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestResultsAreCurrent runs nothing: each row has a line about the fixture as it
// is, and none of them failed.
func TestResultsAreCurrent(t *testing.T) {
	t.Parallel()
	table := lines(t)
	for _, r := range rows(t) {
		for _, c := range r.Cases {
			key := r.Name + "/" + c.Language
			l, ok := table[key]
			delete(table, key)
			switch {
			case !ok:
				t.Errorf("%s has no line in %s; run go test ./attacks -run 'TestAttacks/%s' -results", key, resultsFile, r.Name)
			case strings.Contains(l, notRun):
				t.Logf("%s: %s", key, notRun)
			case !strings.HasSuffix(l, " | "+fixture(t, r.Name, c.Language)+" |"):
				t.Errorf("%s was changed since it ran; run go test ./attacks -run 'TestAttacks/%s' -results", key, r.Name)
			case strings.Contains(l, "**FAILED**"):
				t.Errorf("%s failed: %s", key, l)
			}
		}
	}
	for key := range table {
		t.Errorf("%s names %s, which is no row", resultsFile, key)
	}
}
