package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/view"
)

var terminal = Style{Terminal: true, Unicode: true}

func written(t *testing.T, f func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func fixtureStatus() view.Status {
	m := fixtureMeta()
	s := fixture()
	return view.Status{
		Subject: m.Subject, Head: m.Head, Isolation: "namespaces", Measured: true, Counts: s.Counts, Since: s.Counts.Since(*s.Before), Base: "main",
		Waiting: []view.Line{{What: "flow 7KQXM2  reviewer: 1 human approval", Run: "proveto flow status 7KQXM2"}},
		Running: []view.Line{{What: "lab 4B7A9C  attempt 38", Run: "proveto watch 4B7A9C"}},
		Worst:   &s.Gaps[0], Gaps: len(s.Gaps), Next: view.Next{Why: "1 behaviour went stale with your edit of fee/fee.go", Run: "proveto prove --diff"},
	}
}

func TestTextsMatchTheirGoldens(t *testing.T) {
	t.Parallel()
	s := fixture()
	ascii := Style{Terminal: true, Width: 60}
	color := Style{Terminal: true, Unicode: true, Color: true, Width: 100}
	none := fixture()
	none.Counts, none.ProvenNow, none.FirstProofMS, none.Gaps, none.Gate = view.Counts{NotMeasured: 6, Total: 6}, 0, 0, nil, view.Gate{}
	for i := range none.Symbols {
		none.Symbols[i].Word, none.Symbols[i].New = "not_measured", false
	}
	reused := fixture()
	reused.Reused = true
	doctor := view.Doctor{Warned: 1, Failed: 1, Checks: []view.Check{
		{Name: "git", State: view.CheckOK, Detail: "2.47.3"},
		{Name: "isolation", State: view.CheckWarn, Detail: "landlock: user namespaces are off", Fix: "sysctl kernel.unprivileged_userns_clone=1"},
		{Name: "go", State: view.CheckFail, Detail: "not found", Fix: "apt-get install golang"},
	}}
	gaps := view.Gaps{Scope: "everything", Total: 5, Gaps: s.Gaps}
	fresh := view.Status{Subject: view.Subject{Repository: "acme/pay"}, Found: []view.Found{{Language: "go", Dir: ".", Runner: "go test", TestFiles: 4}}, Next: view.Next{Why: "measure it", Run: "proveto start"}}
	for name, f := range map[string]func(io.Writer) error{
		"start.txt":        func(w io.Writer) error { return Start(w, s, terminal) },
		"start_ascii.txt":  func(w io.Writer) error { return Start(w, s, ascii) },
		"start_color.txt":  func(w io.Writer) error { return Start(w, s, color) },
		"start_none.txt":   func(w io.Writer) error { return Start(w, none, terminal) },
		"start_reused.txt": func(w io.Writer) error { return Start(w, reused, terminal) },
		"certificate.txt":  func(w io.Writer) error { return Certificate(w, s.Certificates[0], terminal) },
		"why_proven.txt": func(w io.Writer) error {
			return Why(w, view.Why{Symbol: s.Symbols[0], Certificate: &s.Certificates[0]}, terminal)
		},
		"why_refuted.txt": func(w io.Writer) error {
			return Why(w, view.Why{Symbol: s.Symbols[2], Next: []view.Next{{Why: "try again after a test was added", Run: "proveto start --only pay.Refund"}}}, terminal)
		},
		"why_stale.txt": func(w io.Writer) error {
			return Why(w, view.Why{Symbol: s.Symbols[1], Certificate: &s.Certificates[1]}, terminal)
		},
		"why_unmeasured.txt": func(w io.Writer) error { return Why(w, view.Why{Symbol: s.Symbols[5]}, terminal) },
		"gaps.txt":           func(w io.Writer) error { return Gaps(w, gaps, terminal) },
		"gaps.tsv":           func(w io.Writer) error { return Gaps(w, gaps, Style{Header: true}) },
		"status.txt":         func(w io.Writer) error { return Status(w, fixtureStatus(), terminal) },
		"status_fresh.txt":   func(w io.Writer) error { return Status(w, fresh, terminal) },
		"doctor.txt":         func(w io.Writer) error { return Doctor(w, doctor, terminal) },
		"doctor.tsv":         func(w io.Writer) error { return Doctor(w, doctor, Style{}) },
	} {
		golden(t, name, []byte(written(t, f)))
	}
}

func TestEndOfStartIsShortAndSafe(t *testing.T) {
	t.Parallel()
	s := large(400)
	s.Before, s.SwitchedOff, s.Suite = &view.Counts{}, []string{"drafts", "model"}, view.Suite{Red: make([]view.TestNote, 40)}
	for i := range 9 {
		s.Unmeasured = append(s.Unmeasured, view.Unmeasured{Reason: "r", Detail: fmt.Sprint("detail\n\x1b[2J", i), Count: 9 - i, Command: "proveto x"})
	}
	for i := range s.Symbols {
		s.Symbols[i].New = true
	}
	s.Gate, s.Artifacts = view.Gate{Asked: true, Failures: []string{"a", "b", "c"}, Unguarded: make([]string, 30)}, fixture().Artifacts
	got := written(t, func(w io.Writer) error { return Start(w, s, Style{Terminal: true, Unicode: true}) })
	if n := strings.Count(got, "\n"); n > MostLines {
		t.Errorf("the end of a start has %d lines, want at most %d:\n%s", n, MostLines, got)
	}
	if strings.ContainsRune(got, '\x1b') {
		t.Errorf("the end of a start lets an escape sequence through:\n%q", got)
	}
	for _, want := range []string{"40 refuted", "9  detail", "proveto gaps", "report.html", "next "} {
		if !strings.Contains(got, want) {
			t.Errorf("the end of a start does not say %q:\n%s", want, got)
		}
	}
}

func TestDetectStyleFollowsTheConventions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		env      map[string]string
		terminal bool
		flag     string
		want     Style
	}{
		{"terminal", map[string]string{"LANG": "en_GB.UTF-8", "TERM": "xterm"}, true, "", Style{Terminal: true, Color: true, Unicode: true}},
		{"pipe", map[string]string{"LANG": "C.utf8"}, false, "auto", Style{Unicode: true}},
		{"no color", map[string]string{"NO_COLOR": "1"}, true, "", Style{Terminal: true}},
		{"empty no color", map[string]string{"NO_COLOR": ""}, true, "", Style{Terminal: true, Color: true}},
		{"dumb", map[string]string{"TERM": "dumb"}, true, "", Style{Terminal: true}},
		{"never", map[string]string{"CLICOLOR_FORCE": "1"}, true, "never", Style{Terminal: true}},
		{"always", map[string]string{"NO_COLOR": "1"}, false, "always", Style{Color: true}},
		{"forced", map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, false, "", Style{Color: true}},
		{"not forced", map[string]string{"CLICOLOR_FORCE": "0"}, false, "", Style{}},
		{"LC_ALL first", map[string]string{"LC_ALL": "C", "LANG": "en_GB.UTF-8"}, false, "", Style{}},
	} {
		got := DetectStyle(func(k string) string { return c.env[k] }, c.terminal, c.flag)
		if got != c.want {
			t.Errorf("%s: DetectStyle = %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestErrorSaysWhatAndHelps(t *testing.T) {
	t.Parallel()
	e := fault.Wrap(fmt.Errorf("open x: %w", errors.New("disk \x1b[31mfull")), fault.Internal, "no_space", "cannot write the state").Hint("proveto gc")
	got := written(t, func(w io.Writer) error { return Error(w, e, false) })
	want := "proveto: cannot write the state: open x: disk \\x1b[31mfull\nhint: proveto gc\n"
	if got != want {
		t.Errorf("Error = %q, want %q", got, want)
	}
	got = written(t, func(w io.Writer) error { return Error(w, e, true) })
	for _, want := range []string{"debug: kind internal, code no_space, exit 1\n", "caused by *fmt.wrapError: open x", "  caused by *errors.errorString: disk"} {
		if !strings.Contains(got, want) {
			t.Errorf("Error with debug = %q, want %q in it", got, want)
		}
	}
}

func TestVisibleShowsWhatCannotBeSeen(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\n": "plain\ttext\n", "a\x1b[0m": `a\x1b[0m`, "\u202eabc\u2066": `\u202eabc\u2066`, "a\r": `a\x0d`,
		"bad\xff": `bad\xff`, "\u0085": `\x85`, "\u2028": `\u2028`, "\U000e0041": `\U000e0041`, "zero\u200bwidth": `zero\u200bwidth`, "ümlaut 漢字 ▲": "ümlaut 漢字 ▲",
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Line("a\nb\tc"); got != `a\nb\tc` {
		t.Errorf("Line = %q", got)
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "\x1b]8;;x\x07", "\u202e", "\xff\xfe", strings.Repeat("<b>", 99)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := Visible(s)
		for _, r := range out {
			if hidden(r) {
				t.Fatalf("Visible(%q) lets %U through", s, r)
			}
		}
		if Visible(out) != out {
			t.Fatalf("Visible is not stable on %q", s)
		}
	})
}

func TestProgressModes(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 30, 16, 0, 0, 0, time.UTC)
	play := func(mode ProgressMode) string {
		var b bytes.Buffer
		now := start
		p := NewProgress(&b, mode, Style{Unicode: true}, func() time.Time { return now })
		step := func(after time.Duration, e view.Progress) {
			now = now.Add(after)
			p.Update(e)
		}
		step(0, view.Progress{Phase: "baseline", Total: 3, Subject: "pay"})
		step(time.Millisecond, view.Progress{Phase: "baseline", Done: 1, Total: 3, Subject: "fee\x1b[2J"})
		p.Print("first")
		step(PlainInterval, view.Progress{Phase: "baseline", Done: 2, Total: 3, Left: 12 * time.Second})
		step(time.Millisecond, view.Progress{Phase: "baseline", Done: 3, Total: 3})
		step(time.Millisecond, view.Progress{Phase: "mutants", Done: 1})
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for mode, want := range map[ProgressMode]string{
		ProgressOff:   "",
		ProgressLines: "baseline  0/3  pay\nfirst\nbaseline  2/3  12.0 s left\nbaseline  3/3\nmutants  1\n",
		ProgressLive: "\r\x1b[Kbaseline  0/3  pay" + "\r\x1b[Kfirst\nbaseline  1/3  fee\\x1b[2J" + "\r\x1b[Kbaseline  2/3  12.0 s left" +
			"\r\x1b[Kbaseline  3/3" + "\r\x1b[Kmutants  1" + "\r\x1b[K",
		ProgressJSON: `{"type":"progress","phase":"baseline","done":0,"total":3,"subject":"pay"}` + "\n" +
			`{"type":"progress","phase":"baseline","done":1,"total":3,"subject":"fee\u001b[2J"}` + "\n" +
			`{"type":"progress","phase":"baseline","done":2,"total":3}` + "\n" +
			`{"type":"progress","phase":"baseline","done":3,"total":3}` + "\n" +
			`{"type":"progress","phase":"mutants","done":1,"total":0}` + "\n",
	} {
		if diff := cmp.Diff(want, play(mode)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
	}
}

// TestProgressTicks shows a step again when it lasts: on a terminal every second,
// on a pipe every thirty.
func TestProgressTicks(t *testing.T) {
	t.Parallel()
	play := func(mode ProgressMode) string {
		var b bytes.Buffer
		now := time.Unix(0, 0)
		p := NewProgress(&b, mode, Style{Unicode: true}, func() time.Time { return now })
		p.Tick()
		p.Update(view.Progress{Phase: "build", Done: 1, Total: 2, Subject: "pay"})
		for range 31 {
			now = now.Add(TickInterval)
			p.Tick()
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		return b.String()
	}
	if got, want := play(ProgressLines), "build  1/2  pay\nbuild  1/2  pay  30.0 s\n"; got != want {
		t.Errorf("plain: %q, want %q", got, want)
	}
	if got := play(ProgressLive); strings.Count(got, "\r\x1b[Kbuild  1/2  pay") != 32 || !strings.Contains(got, "pay  31.0 s") {
		t.Errorf("live: %q, want a line every second", got)
	}
	for _, mode := range []ProgressMode{ProgressOff, ProgressJSON} {
		if got := play(mode); strings.Count(got, "\n") > 1 {
			t.Errorf("%s: %q, want no repetition", mode, got)
		}
	}
}

func TestDetectProgress(t *testing.T) {
	t.Parallel()
	env := func(pairs ...string) func(string) string {
		return func(k string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == k {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	for _, c := range []struct {
		got, want ProgressMode
	}{
		{DetectProgress(env(), true, "", false), ProgressLive},
		{DetectProgress(env(), false, "", false), ProgressLines},
		{DetectProgress(env("CI", "true"), true, "auto", false), ProgressLines},
		{DetectProgress(env("TERM", "dumb"), true, "", false), ProgressLines},
		{DetectProgress(env(), true, "json", false), ProgressJSON},
		{DetectProgress(env(), true, "plain", false), ProgressLines},
		{DetectProgress(env(), true, "none", false), ProgressOff},
		{DetectProgress(env(), true, "json", true), ProgressOff},
	} {
		if c.got != c.want {
			t.Errorf("DetectProgress = %s, want %s", c.got, c.want)
		}
	}
}

// TestWhyGroupsSurvivors holds the mutants of one line together: what they share
// is written once, what differs for each.
func TestWhyGroupsSurvivors(t *testing.T) {
	t.Parallel()
	diff := func(body string) string {
		return "--- a/x.go\n+++ b/x.go\n@@ -3,3 +3,7 @@\n-\treturn n\n+\treturn changed(n)\n }\n+func changed(r0 int) int {\n+\t" + body + "\n+}\n"
	}
	mutant := func(summary, body string, line int) view.Mutant {
		return view.Mutant{ID: "sha256:" + strings.Repeat("a", 64), Kind: "result", Summary: summary, File: "x.go", Line: line, Diff: diff(body), Status: "survived", Note: "infected_not_asserted"}
	}
	s := view.Symbol{Name: "x.F", Word: "refuted", Strength: view.Share{Den: 4}, Mutants: []view.Mutant{
		mutant("result incremented", "r0++", 3), mutant("n negated", "r0--", 9), mutant("result negated", "r0 = -r0", 3), mutant("the same again", "r0++", 3),
	}}
	s.Mutants[1].Kind, s.Mutants[1].Hint = "constant", "they differ where n is 3: test that"
	out := written(t, func(w io.Writer) error { return Why(w, view.Why{Symbol: s}, terminal) })
	for text, want := range map[string]int{
		"return changed(n)": 3, "r0++": 2, "r0 = -r0": 1, "r0--": 1, "no assertion looked": 1, "The constant was another one": 1,
		"hint: they differ where n is 3: test that": 1, "\nmutant  ": 2, "0 of 4 mutants killed": 1,
	} {
		if got := strings.Count(out, text); got != want {
			t.Errorf("%q is there %d times, want %d", text, got, want)
		}
	}
	if strings.Index(out, "result negated") > strings.Index(out, "n negated") {
		t.Error("the mutants of a line are apart")
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestStrengthOnlyWhereItSays leaves the share out where trying ended with the
// first probe that was noticed.
func TestStrengthOnlyWhereItSays(t *testing.T) {
	t.Parallel()
	m := func(kind, status string) view.Mutant { return view.Mutant{Kind: kind, Status: status} }
	for name, c := range map[string]struct {
		strength view.Share
		mutants  []view.Mutant
		want     bool
	}{
		"one tried":             {view.Share{Num: 1, Den: 1}, []view.Mutant{m("result", "killed")}, false},
		"one survived":          {view.Share{Den: 1}, []view.Mutant{m("result", "survived")}, false},
		"ended with the first":  {view.Share{Num: 1, Den: 2}, []view.Mutant{m("result", "survived"), m("result", "killed")}, false},
		"all survived":          {view.Share{Den: 2}, []view.Mutant{m("result", "survived"), m("result", "survived")}, true},
		"went on":               {view.Share{Num: 1, Den: 2}, []view.Mutant{m("result", "killed"), m("result", "survived")}, true},
		"probes of other kinds": {view.Share{Num: 1, Den: 2}, []view.Mutant{m("boundary", "survived"), m("result", "killed")}, true},
		"several killed":        {view.Share{Num: 2, Den: 2}, []view.Mutant{m("result", "killed"), m("result", "killed")}, true},
	} {
		out := written(t, func(w io.Writer) error {
			return Why(w, view.Why{Symbol: view.Symbol{Word: "proven", Strength: c.strength, Mutants: c.mutants}}, terminal)
		})
		if got := strings.Contains(out, "mutants killed"); got != c.want {
			t.Errorf("%s: the strength is shown: %v, want %v", name, got, c.want)
		}
	}
}
