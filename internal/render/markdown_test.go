package render

import (
	"io"
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/view"
)

func markdownOf(t *testing.T, s view.Start) string {
	t.Helper()
	return written(t, func(w io.Writer) error { return Markdown(w, s, fixtureMeta()) })
}

func TestMarkdownMatchesItsGolden(t *testing.T) {
	t.Parallel()
	golden(t, "report.md", []byte(markdownOf(t, fixture())))
}

func TestMarkdownStaysShortAndCountsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	s := large(5000)
	for i := range 3000 {
		s.Suite.Red = append(s.Suite.Red, view.TestNote{Test: strings.Repeat("T", i%40), Note: "red"})
	}
	got := markdownOf(t, s)
	if len(got) > MostMarkdown {
		t.Errorf("the comment has %d bytes, want at most %d", len(got), MostMarkdown)
	}
	for _, want := range []string{"more gaps are not shown here", "more tests are not shown here", "#### By package", "<sub>", MarkdownMark} {
		if !strings.Contains(got, want) {
			t.Errorf("the comment does not contain %q", want)
		}
	}
	if strings.Count(got, "```")%2 != 0 || strings.Count(got, "<details>") != strings.Count(got, "</details>") {
		t.Error("a fence or a fold of the comment is left open")
	}
}

func TestMarkdownMakesForeignTextInert(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"@ada":           "&#64;<!-- -->ada",
		"fixes #12":      "fixes &#35;<!-- -->12",
		"<img src=x>":    "&lt;img src=x&gt;",
		"[a](b)":         `\[a\]\(b\)`,
		"https://x.test": "https:<!-- -->//x.test",
		"a\n# b\u202e":   `a\\n&#35;<!-- --> b\\u202e`,
		"a|b":            `a\|b`,
	} {
		if got := mdText(in); got != want {
			t.Errorf("mdText(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := mdCode("a``b`"), "``` a``b` ```"; got != want {
		t.Errorf("mdCode = %q, want %q", got, want)
	}
	s := fixture()
	s.Gaps[0].Diff = "@@ -1 +1 @@\n-a\n+```\n+</details>@all\n"
	if got := markdownOf(t, s); !strings.Contains(got, "````diff\n-a\n+```\n") {
		t.Error("a diff with a fence inside is not held by a longer fence")
	}
}
