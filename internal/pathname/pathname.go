// Package pathname knows which names file systems take for one another, and
// which they do not take at all.
//
// Names and paths are bytes as git stores them, slash-separated. The package
// reads no file system.
package pathname

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxName is the longest name, in bytes, that Linux file systems take.
const MaxName = 255

// Fold is the path as a file system sees it that knows neither case nor the
// difference between composed and decomposed characters. Paths of which the folds
// are equal are one path there.
func Fold(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFC.String(s))))
		}
	}
	return strings.ToLower(s)
}

// GitDirectory tells names that some file system resolves to .git: other case,
// the DOS short name, trailing dots and spaces, an NTFS stream, characters that
// HFS+ ignores.
func GitDirectory(name string) bool {
	s := strings.Map(func(r rune) rune {
		if ignored(r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
	s, _, _ = strings.Cut(s, ":")
	s = strings.TrimRight(s, ". ")
	return s == ".git" || s == "git~1"
}

// ignored are the characters that HFS+ leaves out when it compares names.
func ignored(r rune) bool {
	return r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff
}

// Unsafe says why a path, given as the bytes of a tree, cannot be checked out
// faithfully on every common system, or cannot be shown as what it is; empty when
// it can. A letter of any script is fine; names that only differ from another one
// of the same tree by case or form are [Fold]'s business.
func Unsafe(path string) string {
	if !utf8.ValidString(path) {
		return "is not UTF-8"
	}
	if !norm.NFC.IsNormalString(path) {
		return "is not in Unicode form NFC"
	}
	for name := range strings.SplitSeq(path, "/") {
		if why := unsafeName(name); why != "" {
			return why
		}
	}
	return ""
}

func unsafeName(name string) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "leaves its directory"
	case len(name) > MaxName:
		return "has a name longer than 255 bytes"
	}
	for _, r := range name {
		switch {
		case unicode.IsControl(r) || r == 0x2028 || r == 0x2029:
			return "holds a control character"
		case unicode.Is(unicode.Bidi_Control, r):
			return "holds a character that turns the direction of writing"
		case r == 0x200b || r == 0x2060 || r == 0xfeff || r == 0xad || r >= 0xe0000 && r <= 0xe007f:
			return "holds an invisible character"
		}
	}
	for part := range strings.SplitSeq(name, `\`) { // Windows cuts names there
		if GitDirectory(part) {
			return "would be taken for a git directory"
		}
	}
	switch {
	case strings.ContainsAny(name, `<>:"|?*\`):
		return "holds a character that Windows reserves"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "ends in a dot or a space, which Windows cuts off"
	case device(name):
		return "is the name of a device on Windows"
	}
	return ""
}

// device tells the names that Windows reserves, with any ending.
func device(name string) bool {
	s, _, _ := strings.Cut(strings.ToUpper(name), ".")
	s = strings.TrimRight(s, " ")
	switch s {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	rest, ok := strings.CutPrefix(s, "COM")
	if !ok {
		rest, ok = strings.CutPrefix(s, "LPT")
	}
	return ok && utf8.RuneCountInString(rest) == 1 && strings.Contains("0123456789¹²³", rest)
}
