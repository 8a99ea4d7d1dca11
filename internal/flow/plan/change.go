package plan

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The modes of git's tree entries that are not trees.
const (
	modeFile       = "100644"
	modeExecutable = "100755"
	modeSymlink    = "120000"
	modeSubmodule  = "160000"
)

// Change is one path that differs between the base and the tree that is judged.
// A renamed file is two changes, the deletion of its old path and the creation of
// its new one; each names the other.
type Change struct {
	Path    string // bytes from the root, slash-separated; need not be UTF-8
	Twin    string // the other path of a rename; empty: none
	OldMode string // git's octal mode; empty when created
	NewMode string // empty when deleted
	OldBlob string // object id; empty when created
	NewBlob string // empty when deleted
	Added   int    // lines
	Deleted int
	Binary  bool  // by its bytes; such a file has no lines
	Size    int64 // of the new side, in bytes
	LFS     bool  // one of the sides is a pointer of Git LFS
}

// Op is what happened at the path: create, modify, delete, mode or type. Rename
// takes both ends and is [Check]'s business.
func (c Change) Op() Op {
	switch {
	case c.OldMode == "":
		return Create
	case c.NewMode == "":
		return Delete
	case kind(c.OldMode) != kind(c.NewMode):
		return Type
	case c.OldBlob == c.NewBlob:
		return Mode
	}
	return Modify
}

// kind is what a mode stands for; the executable bit does not count.
func kind(mode string) string {
	switch mode {
	case "":
		return ""
	case modeSymlink:
		return "symlink"
	case modeSubmodule:
		return "submodule"
	}
	return "file"
}

// executable tells whether a mode has the executable bit.
func executable(mode string) bool { return mode == modeExecutable }

// shownPath is a path as JSON can hold it: bytes that are no UTF-8 are escaped.
func shownPath(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	var b strings.Builder
	for len(path) > 0 {
		r, n := utf8.DecodeRuneInString(path)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, path[0])
		} else {
			b.WriteString(path[:n])
		}
		path = path[n:]
	}
	return b.String()
}

// TestFile tells a file of tests by its path, in the languages that are known.
func TestFile(path string) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	has := func(affixes ...string) bool {
		for _, a := range affixes {
			if strings.Contains(base, a) {
				return true
			}
		}
		return false
	}
	switch ext := base[strings.LastIndexByte(base, '.')+1:]; ext {
	case "go":
		return strings.HasSuffix(base, "_test.go")
	case "py":
		return strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py")
	case "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts":
		return has(".test.", ".spec.") || strings.Contains("/"+path, "/__tests__/")
	case "java", "kt":
		name := strings.TrimSuffix(base, "."+ext)
		return strings.Contains("/"+path, "/src/test/") || strings.HasPrefix(name, "Test") ||
			strings.HasSuffix(name, "Test") || strings.HasSuffix(name, "Tests") || strings.HasSuffix(name, "IT")
	}
	return false
}
