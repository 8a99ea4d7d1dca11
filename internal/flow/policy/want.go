package policy

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
)

// The functions here check a text; they return what would be right, or nothing
// where the text is.

// idWant checks ids of stages, and names of graders and commands. The words that
// stand beside them in a policy are taken.
func idWant(s string) string {
	if isName(s, "_-") && !slices.Contains([]string{Operator, "done", "paths"}, s) {
		return ""
	}
	return "a name of at most 64 small letters, digits, - and _ (and none of: operator, done, paths)"
}

// categoryWant checks what a category of findings leads to.
func categoryWant(s string) string {
	if s == Operator || idWant(s) == "" {
		return ""
	}
	return "the id of a stage, or " + Operator
}

// gateName checks names of gates, which have dots too.
func gateName(s string) string {
	if isName(s, "_-.") {
		return ""
	}
	return "a name of at most 64 small letters, digits, dots, - and _"
}

func isName(s, more string) bool {
	if s == "" || len(s) > 64 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}

func oneOf[W ~string](known ...W) func(string) string {
	return func(s string) string {
		if slices.Contains(known, W(s)) {
			return ""
		}
		names := make([]string, len(known))
		for i, k := range known {
			names[i] = string(k)
		}
		return "one of: " + strings.Join(names, ", ")
	}
}

// pathWant checks paths in the repository.
func pathWant(s string) string {
	for _, part := range strings.Split(s, "/") {
		if part == "" || part == "." || part == ".." {
			return "a path from the root of the repository, without . and .."
		}
	}
	return ""
}

// patternWant checks the outside of a path pattern; plan knows the rest.
func patternWant(s string) string {
	switch {
	case strings.HasPrefix(s, "/"), strings.HasPrefix(s, "!"):
		return "a path pattern from the root of the repository, without a slash or ! in front"
	}
	return ""
}

func digestWant(s string) string {
	if _, err := evidence.ParseDigest(s); err != nil {
		return "sha256: and 64 hexadecimal digits"
	}
	return ""
}

// variableWant checks names of environment variables.
func variableWant(s string) string {
	ok := s != "" && (s[0] < '0' || s[0] > '9')
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
	}
	if ok {
		return ""
	}
	return "the name of an environment variable"
}

func parseScore(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}
