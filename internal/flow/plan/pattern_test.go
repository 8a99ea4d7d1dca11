package plan

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tester is what *testing.T, *testing.B and *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
}

func compile(t tester, text string) *Pattern {
	t.Helper()
	p, err := Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func set(t tester, texts ...string) Set {
	t.Helper()
	s, err := CompileSet(texts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPatternMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"go.mod", "go.mod", true},
		{"go.mod", "a/go.mod", false},
		{"go.mod", "goxmod", false},
		{"*.go", "a.go", true},
		{"*.go", "a/b.go", false},
		{"*", "a", true},
		{"*", "a/b", false},
		{"a?c", "abc", true},
		{"a?c", "a/c", false},
		{"a?c", "ac", false},
		{"**", "a/b/c", true},
		{"auth/**", "auth/a", true},
		{"auth/**", "auth/a/b.go", true},
		{"auth/**", "auth", false},
		{"auth/**", "authx/a", false},
		{"**/*.go", "a.go", true},
		{"**/*.go", "a/b/c.go", true},
		{"**/x", "x", true},
		{"**/x", "ax", false},
		{"*/**/x", "a/x", true},
		{"**/x/**/y", "x/y", true},
		{"**/x/**/y", "x/x/a/y", true},
		{"**/x/**/y", "x/y/a", false},
		{"a/**/b/**/c", "a/b/b/c", true},
		{"{a,b}.go", "b.go", true},
		{"{a,b/*}/x{,_test}.go", "b/q/x_test.go", true},
		{"{a,{b,c}d}", "cd", true},
		{"{a,{b,c}d}", "c", false},
		{"[id].tsx", "[id].tsx", true},
		{"*a*b", "xaxbxb", true},
		{"*a*b", "xaxbxbc", false},
		{"caf??.md", "caf\u00e9.md", true}, // bytes
	} {
		if got := compile(t, c.pattern).Match(c.path); got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.pattern, c.path, got, c.want)
		}
	}
}

func TestPatternRefused(t *testing.T) {
	t.Parallel()
	for pattern, why := range map[string]string{
		"":                         "is empty",
		"/a":                       "empty name",
		"a/":                       "empty name",
		"a//b":                     "empty name",
		"./a":                      "has the name .",
		"a/../b":                   "has the name ..",
		"!a":                       "no negation",
		"a**b":                     "**/*.go",
		"a\\b":                     "backslash",
		"a\nb":                     "control",
		"{a,b":                     "does not close",
		"a}":                       "not open",
		"{a,/b}":                   "empty name",
		"*{,b}*":                   "two stars",
		"{*,a}*":                   "two stars",
		"a/{b,**}*":                "two stars",
		"e\u0301":                  "NFC",
		"\xff":                     "UTF-8",
		strings.Repeat("a", 1025):  "longer",
		strings.Repeat("{a,b}", 9): "more than 256",
		strings.Repeat("{", 300) + strings.Repeat("}", 9): "does not close",
	} {
		if _, err := Compile(pattern); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("Compile(%.40q) = %v, want an error that says %q", pattern, err, why)
		}
	}
}

// reference is the pattern as a regular expression over bytes.
func reference(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^(?:")
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		atName := i == 0 || strings.ContainsRune("/{,", rune(pattern[i-1]))
		switch {
		case atName && strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:[^/]+/)*")
			i += 2
		case atName && strings.HasPrefix(rest, "**"):
			b.WriteString("(?:[^/]+/)*[^/]+")
			i++
		case rest[0] == '*':
			b.WriteString("[^/]*")
		case rest[0] == '?':
			b.WriteString("[^/]")
		case rest[0] == '{':
			b.WriteString("(?:")
		case rest[0] == '}':
			b.WriteString(")")
		case rest[0] == ',':
			b.WriteString("|")
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	b.WriteString(")$")
	return regexp.MustCompile(b.String())
}

// patterns draws patterns over few letters, so that they often match.
func patterns() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"a", "b", "*", "?", "{a,b}", "{,b}", "{a*,?b}"})
	name := rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 3).Draw(t, "deep") == 0 {
			return "**"
		}
		s := strings.Join(rapid.SliceOfN(piece, 1, 3).Draw(t, "pieces"), "")
		return strings.ReplaceAll(strings.ReplaceAll(s, "***", "*"), "**", "*")
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(name, 1, 3).Draw(t, "names"), "/")
	}).Filter(func(s string) bool { _, err := Compile(s); return err == nil })
}

func paths() *rapid.Generator[string] {
	name := rapid.StringOfN(rapid.SampledFrom([]rune("abc")), 1, 3, -1)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "names"), "/")
	})
}

func TestPatternMatchesLikeTheReference(t *testing.T) {
	t.Parallel()
	all := every(5)
	rapid.Check(t, func(t *rapid.T) {
		pattern := patterns().Draw(t, "pattern")
		p, want := compile(t, pattern), reference(pattern)
		for _, path := range append(all, paths().Draw(t, "path")) {
			if got := p.Match(path); got != want.MatchString(path) {
				t.Fatalf("%q matches %q: %v, the reference says %v", pattern, path, got, !got)
			}
		}
	})
}

// every lists all paths up to a length over a, b, c and the slash.
func every(length int) []string {
	var out []string
	var grow func(string)
	grow = func(s string) {
		if s != "" && !strings.HasSuffix(s, "/") {
			out = append(out, s)
		}
		if len(s) == length {
			return
		}
		for _, r := range "abc/" {
			if r == '/' && (s == "" || strings.HasSuffix(s, "/")) {
				continue
			}
			grow(s + string(r))
		}
	}
	grow("")
	return out
}

func TestIntersectsAndCoversLikeAllPaths(t *testing.T) {
	t.Parallel()
	all := every(7)
	rapid.Check(t, func(t *rapid.T) {
		a, b := compile(t, patterns().Draw(t, "a")), compile(t, patterns().Draw(t, "b"))
		both, covered := "", true
		for _, p := range all {
			ma, mb := a.Match(p), b.Match(p)
			if ma && mb {
				both = p
			}
			covered = covered && (!ma || mb)
		}
		got := Intersects(a, b)
		if both != "" && !got {
			t.Fatalf("Intersects(%q, %q) = false, but both match %q", a, b, both)
		}
		if got != Intersects(b, a) {
			t.Fatalf("Intersects(%q, %q) is not symmetric", a, b)
		}
		if (Set{b}).Covers(a) && !covered {
			t.Fatalf("%q is said to cover %q", b, a)
		}
		// Short patterns meet in a short path, so the answers are exact for them.
		if len(a.text)+len(b.text) <= 7 {
			if both == "" && got {
				t.Fatalf("Intersects(%q, %q) = true, but no path matches both", a, b)
			}
			if covered && !(Set{b}).Covers(a) {
				t.Fatalf("%q is said not to cover %q, but no path shows it", b, a)
			}
		}
	})
}

func TestIntersects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"auth/**", "auth/*.go", true},
		{"auth/**", "web/**", false},
		{"auth/**", "**/*.go", true},
		{"auth/*.go", "auth/*.md", false},
		{"auth/*", "auth/*/*", false},
		{"{a,b}/x", "{b,c}/x", true},
		{"a*z", "*b*", true},
		{"go.mod", "go.sum", false},
		{"**/a/**", "**/b/**", true},
	} {
		if got := Intersects(compile(t, c.a), compile(t, c.b)); got != c.want {
			t.Errorf("Intersects(%q, %q) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestIntersectsOfWhatCannotBeComparedIsTrue(t *testing.T) {
	t.Parallel()
	wide := func(end string) *Pattern {
		return compile(t, strings.Repeat("{a*b*,b*a*}", 7)+strings.Repeat("?*x", 250)+end)
	}
	if !Intersects(wide("a"), wide("b")) {
		t.Error("two patterns too large to be compared are said to be apart")
	}
	if (Set{wide("a")}).Covers(wide("a")) {
		t.Error("a pattern too large to be compared is said to be covered")
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	docs := set(t, "**/*.md", "docs/**")
	for pattern, want := range map[string]bool{
		"README.md": true, "docs/**": true, "docs/a/*.png": true, "*.md": true, "a/**/*.md": true,
		"docs": false, "**": false, "a/*": false, "{docs/a,b.go}": false, "{docs/a,b.md}": true,
	} {
		if got := docs.Covers(compile(t, pattern)); got != want {
			t.Errorf("docs covers %q: %v, want %v", pattern, got, want)
		}
	}
}

func TestSetShare(t *testing.T) {
	t.Parallel()
	if got := set(t, "a/*", "b/*").Share([]string{"a/x", "b/x", "c/x", "d/x"}); got != 0.5 {
		t.Errorf("share is %v, want 0.5", got)
	}
	if got := set(t, "a/*").Share(nil); got != 0 {
		t.Errorf("share of nothing is %v, want 0", got)
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"a/**/b", "{a,{b,c}}/*.go", "**", "[x]/?*", "{,a}", "a{b"} {
		f.Add(s, "a/b")
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		p, err := Compile(pattern)
		if err != nil {
			return
		}
		p.Match(path)
		for _, at := range p.Paths() {
			if !p.Match(at) {
				t.Fatalf("%q does not match %q, which it names", pattern, at)
			}
		}
		if !Intersects(p, p) {
			t.Fatalf("%q is said to be apart from itself", pattern)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	var rules []string
	for i := range 100 {
		rules = append(rules, fmt.Sprintf("internal/**/pkg%d/{a,b}/*_%d.go", i, i))
	}
	s := set(b, rules...)
	for b.Loop() {
		s.Match("internal/a/b/c/pkg99/b/file_98.go")
	}
}
