package snapshot

import (
	"strings"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/pathname"
)

// maxPath is the longest path that Linux takes, less the room that our own
// directory needs.
const maxPath = 3500

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
			folded := pathname.Fold(p)
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

// badName says what is wrong with one component of a path; empty when nothing.
func badName(name string) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "leaves its directory"
	case len(name) > pathname.MaxName:
		return "has a name longer than 255 bytes"
	case pathname.GitDirectory(name):
		return "would be taken for a git directory"
	}
	return ""
}
