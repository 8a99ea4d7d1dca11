package plan

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/deps"
	"github.com/proveto/proveto/internal/flow/gosrc"
)

// Facts are what was read from the files that changed, in both states. [Read]
// makes them; a caller that knows more of a language may replace what it knows.
type Facts struct {
	Dependencies []Dependency
	// Base and Head are exported symbols of the changed files of the languages
	// that are read; Unread are files of these languages that do not parse now.
	Base, Head []gosrc.Symbol
	Unread     []gosrc.Problem
	// Undriven are the languages of changed source files that are not read.
	Undriven []string
	Weakened []gosrc.Weakening
	Runner   []RunnerChange
	read     bool
}

// Dependency is a change of a manifest or lock file.
type Dependency struct {
	Path string
	deps.Change
	Opaque bool   // no parser reads the file: that it changed is all that is known
	Broken string // why the new state does not parse; empty: it does
}

// Wants tells which sides of a change [Read] needs the bytes of. Symlinks and
// submodules have none to read.
func Wants(c Change) (old, now bool) {
	if !readable(c.Path) {
		return false, false
	}
	return kind(c.OldMode) == "file" && c.OldBlob != c.NewBlob, kind(c.NewMode) == "file" && c.OldBlob != c.NewBlob
}

func readable(name string) bool {
	f, ok := deps.Of(name)
	return ok && f != deps.Opaque || gosrc.Source(name) || sharedRunner(name) != nil
}

// Read makes the facts of the changes. Content holds the bytes of blobs by object
// id; a missing one that [Wants] asks for is an error: what was not read must not
// look harmless. A rename of a file that is not edited is read as two files.
func Read(changes []Change, content map[string][]byte) (Facts, error) {
	f := Facts{read: true}
	var oldGo, nowGo []gosrc.File
	undriven := map[string]bool{}
	for _, c := range changes {
		old, now, err := sides(c, content)
		if err != nil {
			return Facts{}, err
		}
		if format, ok := deps.Of(c.Path); ok {
			f.Dependencies = append(f.Dependencies, dependencyChanges(c, format, old, now)...)
		}
		if r, ok := runnerChange(c, old, now); ok {
			f.Runner = append(f.Runner, r)
		}
		if gosrc.Source(c.Path) {
			if kind(c.OldMode) == "file" {
				oldGo = append(oldGo, gosrc.File{Path: c.Path, Source: old})
			}
			if kind(c.NewMode) == "file" {
				nowGo = append(nowGo, gosrc.File{Path: c.Path, Source: now})
			}
		} else if lang := otherLanguage(c.Path); lang != "" {
			undriven[lang] = true
		}
	}
	f.Base, _ = gosrc.Exported(oldGo) // what did not parse before exported nothing that was known
	f.Head, f.Unread = gosrc.Exported(nowGo)
	f.Weakened = gosrc.Weakened(oldGo, nowGo)
	f.Undriven = slices.Sorted(maps.Keys(undriven))
	return f, nil
}

// sides are the bytes of both sides; nil where there are none or none are wanted.
func sides(c Change, content map[string][]byte) (old, now []byte, err error) {
	if !readable(c.Path) {
		return nil, nil, nil
	}
	get := func(mode, blob string) []byte {
		if kind(mode) != "file" || err != nil {
			return nil
		}
		b, ok := content[blob]
		if !ok && c.OldBlob != c.NewBlob {
			err = fault.New(fault.Internal, "internal", "the bytes of %.200q (blob %s) were not given", c.Path, blob)
		}
		return b
	}
	old, now = get(c.OldMode, c.OldBlob), get(c.NewMode, c.NewBlob)
	return old, now, err
}

func dependencyChanges(c Change, format deps.Format, old, now []byte) []Dependency {
	if c.OldBlob == c.NewBlob && kind(c.OldMode) == kind(c.NewMode) {
		return nil
	}
	if format == deps.Opaque {
		return []Dependency{{Path: c.Path, Opaque: true}}
	}
	var was, is deps.Set
	if kind(c.OldMode) == "file" {
		was, _ = deps.Parse(format, old) // what did not parse before named nothing: all of it is new now
	}
	if kind(c.NewMode) == "file" {
		var err error
		if is, err = deps.Parse(format, now); err != nil {
			return []Dependency{{Path: c.Path, Broken: err.Error()}}
		}
	}
	var out []Dependency
	for _, ch := range deps.Compare(was, is) {
		out = append(out, Dependency{Path: c.Path, Change: ch})
	}
	return out
}

// languages are the endings of source files in languages whose exported symbols
// are not read.
var languages = map[string]string{
	".py": "Python", ".js": "JavaScript", ".jsx": "JavaScript", ".mjs": "JavaScript", ".cjs": "JavaScript",
	".ts": "TypeScript", ".tsx": "TypeScript", ".mts": "TypeScript", ".cts": "TypeScript",
	".java": "Java", ".kt": "Kotlin", ".scala": "Scala", ".rs": "Rust", ".rb": "Ruby", ".php": "PHP", ".swift": "Swift",
	".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++", ".hpp": "C++", ".cs": "C#", ".ex": "Elixir", ".dart": "Dart", ".zig": "Zig",
}

// otherLanguage is the language of a source file that is not a test and that is
// not read; empty when there is none.
func otherLanguage(name string) string {
	if TestFile(name) || strings.Contains(name, "node_modules/") {
		return ""
	}
	return languages[path.Ext(name)]
}
