package render

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/view"
)

func reportOf(t *testing.T, s view.Start) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, s, fixtureMeta()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReportMatchesItsGolden(t *testing.T) {
	t.Parallel()
	golden(t, "report.html", []byte(reportOf(t, fixture())))
}

func TestReportShowsForeignTextInert(t *testing.T) {
	t.Parallel()
	got := reportOf(t, fixture())
	for _, bad := range []string{"\u202e", "\x1b", "<b>CSV", "replaced by </script>"} {
		if strings.Contains(got, bad) {
			t.Errorf("the report contains %q as it is", bad)
		}
	}
	for _, want := range []string{`export.&lt;b&gt;CSV&lt;/b&gt;\u202e`, `\x1b[31m`} {
		if !strings.Contains(got, want) {
			t.Errorf("the report does not show %q", want)
		}
	}
	if n := strings.Count(got, "</script>"); n != 1 {
		t.Errorf("the report closes %d script elements, want 1", n)
	}
}

func TestEveryLinkOfTheReportHasItsTarget(t *testing.T) {
	t.Parallel()
	empty := view.Start{Says: view.Says, Scope: "everything"}
	for name, s := range map[string]view.Start{"fixture": fixture(), "empty": empty, "large": large(1200)} {
		got := reportOf(t, s)
		links := 0
		for _, part := range strings.Split(got, `href="#`)[1:] {
			id, _, _ := strings.Cut(part, `"`)
			links++
			if !strings.Contains(got, ` id="`+id+`"`) {
				t.Errorf("%s: nothing has the id %q", name, id)
			}
		}
		if links < 8 {
			t.Errorf("%s: %d links, want the contents at least", name, links)
		}
	}
}

func TestEmptyReportSaysSo(t *testing.T) {
	t.Parallel()
	got := reportOf(t, view.Start{Says: view.Says, Scope: "everything"})
	for _, want := range []string{"No behaviour was found to measure", "Nothing was measured, so nothing can be said here.", "No test ran.", "Nothing was excluded.", view.Says} {
		if !strings.Contains(got, want) {
			t.Errorf("the report of an empty result does not say %q", want)
		}
	}
	blind := view.Start{Says: view.Says, Counts: view.Counts{NotMeasured: 4, Total: 4}}
	if got := reportOf(t, blind); !strings.Contains(got, "None of 4 behaviours could be measured") || strings.Contains(got, "No gap is known: nothing measured was refuted") {
		t.Error("a result without a measurement reads like a clean one")
	}
}

// large is a result with n symbols, most of them proven, each with mutants.
func large(n int) view.Start {
	s := view.Start{Says: view.Says, Scope: "everything", Sources: map[string][]string{}}
	const perPackage = 100
	for i := range n {
		pkg := fmt.Sprintf("internal/area%02d", i/perPackage)
		file := pkg + "/file.go"
		if i%perPackage == 0 {
			s.Packages = append(s.Packages, view.Package{Name: pkg, Dir: pkg})
			for range perPackage * 4 {
				s.Sources[file] = append(s.Sources[file], "\treturn value + 1 // a line of ordinary length")
			}
		}
		line := 1 + i%perPackage*4
		sym := view.Symbol{
			ID: fmt.Sprintf("go . example.com/acme/%s Function%d().", pkg, i), Name: fmt.Sprintf("area.Function%d", i), Language: "go", Package: pkg,
			File: file, Line: line, EndLine: line + 3, Word: "proven", Strength: view.Share{Num: 2, Den: 2}, Tests: []string{"TestFunction"},
			Certificate: digest("certificate", i), Mutants: []view.Mutant{
				mutant("result", "RETURN_VALUE", "result replaced by 0", file, line, "\treturn value + 1", "\treturn 0", "killed"),
				mutant("arithmetic", "ARITHMETIC", "+ changed to -", file, line, "\treturn value + 1", "\treturn value - 1", "killed"),
			},
		}
		c := fixtureCertificate()
		c.ID, c.Symbol, c.Seq = sym.Certificate, sym.ID, int64(i)
		counts := &s.Packages[len(s.Packages)-1].Counts
		switch {
		case i%10 == 7:
			sym.Word, sym.Reason, sym.Certificate, sym.Detail = "refuted", "survived", "", "Every result probe survived."
			sym.Mutants[0].Status, sym.Mutants[1].Status = "survived", "survived"
			counts.Refuted++
			s.Counts.Refuted++
			s.Gaps = append(s.Gaps, view.Gap{Symbol: sym.ID, Name: sym.Name, Word: "refuted", File: file, Line: line, Why: "It can break unseen.", Diff: sym.Mutants[0].Diff, Commands: []string{"proveto why " + sym.Name}})
		case i%10 == 3:
			sym.Word, sym.Reason, sym.Certificate, sym.Detail, sym.Mutants, sym.Tests = "not_measured", "no_coverage", "", "No test reaches it.", nil, nil
			counts.NotMeasured++
			s.Counts.NotMeasured++
		default:
			s.Certificates = append(s.Certificates, c)
			counts.Proven++
			s.Counts.Proven++
		}
		counts.Total++
		s.Counts.Total++
		s.Symbols = append(s.Symbols, sym)
	}
	return s
}

func TestLargeReportKeepsItsBudgetAndStatesTheCut(t *testing.T) {
	t.Parallel()
	s := large(5000)
	got := reportOf(t, s)
	mutants := 0
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`<code>(area\.Function[0-9]+)</code>`).FindAllStringSubmatch(got, -1) {
		listed[m[1]] = true
	}
	for _, sym := range s.Symbols {
		mutants += len(sym.Mutants)
		if !listed[sym.Name] {
			t.Fatalf("the report does not list %s", sym.Name)
		}
	}
	const line = "\treturn value + 1 // a line of ordinary length\n"
	source := strings.Count(got, line) * len(line)
	if most := min(ReportBaseBytes+mutants*ReportMutantBytes, ReportMostBytes) + source; len(got) > most {
		t.Errorf("the report has %d bytes, want at most %d", len(got), most)
	}
	for _, want := range []string{"To keep this file small,", "The worst 25 of 500 are laid out.", "without "} {
		if !strings.Contains(got, want) {
			t.Errorf("the cut is not stated: %q is missing", want)
		}
	}
	t.Logf("%d bytes for %d symbols, %d mutants", len(got), len(s.Symbols), mutants)
}

func TestReportStyleSheetIsSmall(t *testing.T) {
	t.Parallel()
	if len(reportCSS) > 20_000 {
		t.Errorf("the style sheet has %d bytes, want at most 20,000", len(reportCSS))
	}
	for _, bad := range []string{"http:", "https:", "@import", "//fonts"} {
		if strings.Contains(reportCSS, bad) {
			t.Errorf("the style sheet contains %q", bad)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from its golden; look at the difference, then go test -update\n%s", name, firstDifference(string(got), string(want)))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d:\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
}

// Lines that are far apart in the source do not stand together.
func TestHunksOfADiffAreSetApart(t *testing.T) {
	t.Parallel()
	s := fixture()
	before := strings.Count(reportOf(t, s), "⋯")
	s.Gaps[0].Diff = "@@ -1,1 +1,1 @@\n-a\n+b\n@@ -40,1 +40,1 @@\n-c\n+d\n@@ -80,1 +80,1 @@\n-e\n+f\n"
	if got := strings.Count(reportOf(t, s), "⋯") - before; got != 2 {
		t.Errorf("%d marks between three hunks, want 2", got)
	}
}
