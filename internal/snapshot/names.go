package snapshot

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/proveto/proveto/internal/fault"
)

// The longest name and path that Linux file systems take, less the room that our
// own directory needs.
const (
	maxName = 255
	maxPath = 3500
)

// checkNames refuses trees that cannot be checked out faithfully everywhere:
// names that a file system or git itself would take for another (path_collision)
// or for a git directory (bad_path).
func checkNames(files []File) error {
	seen := map[string]string{} // folded path of a file or directory: as written
	for _, f := range files {
		if len(f.Path) > maxPath {
			return fault.New(fault.Refused, CodeBadPath, "%.80q… is %d bytes long, more than %d", f.Path, len(f.Path), maxPath)
		}
		for end := len(f.Path); end > 0; end = strings.LastIndexByte(f.Path[:end], '/') {
			p := f.Path[:end]
			folded := fold(p)
			old, ok := seen[folded]
			if ok && old != p {
				return fault.New(fault.Refused, CodePathCollision, "%q and %q are one name on file systems that fold case or Unicode forms", old, p).
					Hint("rename one of them: git mv")
			}
			if ok {
				break // its parents were seen as well
			}
			seen[folded] = p
			if why := badName(p[strings.LastIndexByte(p, '/')+1:]); why != "" {
				return fault.New(fault.Refused, CodeBadPath, "%q %s", p, why)
			}
		}
	}
	return nil
}

// fold is the name as a file system sees it that knows neither case nor the
// difference between composed and decomposed characters.
func fold(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFC.String(s))))
		}
	}
	return strings.ToLower(s)
}

// badName says what is wrong with one component of a path; empty when nothing.
func badName(name string) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "leaves its directory"
	case len(name) > maxName:
		return "has a name longer than 255 bytes"
	case looksLikeGit(name):
		return "would be taken for a git directory"
	}
	return ""
}

// looksLikeGit tells names that some file system resolves to .git: other case,
// the DOS short name, trailing dots and spaces, an NTFS stream, characters that
// HFS+ ignores.
func looksLikeGit(name string) bool {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, strings.ToLower(name))
	s, _, _ = strings.Cut(s, ":")
	s = strings.TrimRight(s, ". ")
	return s == ".git" || s == "git~1"
}
