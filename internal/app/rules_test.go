package app

import (
	"strings"
	"testing"
)

func TestPathMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"*.go", "a.go", true},
		{"*.go", "sub/a.go", false},
		{"**/*.go", "a.go", true},
		{"**/*.go", "x/y/a.go", true},
		{"internal/gen/**", "internal/gen/x/a.go", true},
		{"internal/gen/**", "internal/generate/a.go", false},
		{"internal/gen", "internal/gen/a.go", true},
		{"./internal/gen/", "internal/gen/a.go", true},
		{"internal/gen", "internal/generate.go", false},
		{"a?c.go", "abc.go", true},
		{"a?c.go", "a/c.go", false},
		{"a.go", "axgo", false},
		{"**", "any/where.go", true},
	} {
		if got := pathMatches(c.pattern, c.path); got != c.want {
			t.Errorf("pathMatches(%q, %q) = %v, want %v", c.pattern, c.path, got, c.want)
		}
	}
}

// A command that is shown for several symbols names none of them, and works.
func TestCommandForSeveralSymbolsIsWhole(t *testing.T) {
	t.Parallel()
	for reason := range reasons {
		if got := groupCommand(reason); strings.HasSuffix(got, " ") || got == "proveto why" || got == "proveto prove" {
			t.Errorf("%s: %q lacks its target", reason, got)
		}
	}
}
