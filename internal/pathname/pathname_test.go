package pathname

import (
	"strings"
	"testing"
)

func TestUnsafe(t *testing.T) {
	t.Parallel()
	for path, why := range map[string]string{
		"a/b.go":                                 "",
		"docs/\u0645\u0631\u062d\u0628\u0627.md": "", // Arabic
		"\u304c\u304e/\u00e9.txt":                "",
		"a b/c,d":                                "",
		".gitignore":                             "",
		"git/config":                             "",
		"console.go":                             "",
		"com10/x":                                "",
		"compare/x":                              "",
		"e\u0301":                                "NFC",
		"a\xff":                                  "UTF-8",
		"a//b":                                   "leaves",
		"../b":                                   "leaves",
		"a\x01":                                  "control",
		"a\u0085b":                               "control",
		"a\u202eb":                               "direction",
		"a\u2066b":                               "direction",
		"a\u200bb":                               "invisible",
		".git/config":                            "git directory",
		"a/.GIT/hooks/x":                         "git directory",
		"a/.g\u200ci\u200dt/x":                   "git directory",
		"GIT~1/x":                                "git directory",
		".git. . /x":                             "git directory",
		".git::$INDEX_ALLOCATION/x":              "git directory",
		`a\.git\config`:                          "git directory",
		`a\b`:                                    "reserves",
		"a:b":                                    "reserves",
		"what?":                                  "reserves",
		"a.":                                     "ends in",
		"a /b":                                   "ends in",
		"aux.go":                                 "device",
		"x/NUL":                                  "device",
		"Com1.txt":                               "device",
		"lpt\u00b9":                              "device",
		strings.Repeat("a", 256):                 "longer",
	} {
		got := Unsafe(path)
		if (got == "") != (why == "") || !strings.Contains(got, why) {
			t.Errorf("Unsafe(%q) = %q, want one that says %q", path, got, why)
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for a, b := range map[string]string{
		"Read.ME":      "read.me",
		"\u00c9":       "e\u0301",
		"STRASSE":      "strasse",
		"\u03a3\u03c2": "\u03c3\u03c3",
	} {
		if Fold(a) != Fold(b) {
			t.Errorf("Fold(%q) = %q, Fold(%q) = %q, want them equal", a, Fold(a), b, Fold(b))
		}
	}
	if Fold("a") == Fold("b") {
		t.Error("a and b fold to one")
	}
}
