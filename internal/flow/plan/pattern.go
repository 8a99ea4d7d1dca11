package plan

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The bounds of one pattern: bytes as written, and alternatives after braces
// were written out.
const (
	maxPattern      = 1024
	maxAlternatives = 256
)

// Pattern is a compiled pattern of paths. Paths are bytes from the root of the
// tree, slash-separated. * is any run of bytes of one name, ? one byte of it, **
// as a whole name any number of names, {a,b} either; everything else is itself.
// A trailing ** is at least one name. There is no negation and no escape.
type Pattern struct {
	text string
	alts []alternative
}

// alternative is a pattern without braces, cut at the slashes.
type alternative struct {
	names  []string // "**" is any number of names
	prefix string   // bytes that every match begins with
	suffix string   // bytes of its last name that every match ends with
	middle string   // bytes that every match holds, the longest run
	exact  bool     // the prefix is the whole path
}

// Compile reads a pattern. The error says what is wrong with it.
func Compile(text string) (*Pattern, error) {
	bad := func(why string) error { return fmt.Errorf("the pattern %.200q %s", text, why) }
	switch {
	case len(text) > maxPattern:
		return nil, bad(fmt.Sprintf("is longer than %d bytes", maxPattern))
	case strings.HasPrefix(text, "!"):
		return nil, bad("begins with !: there is no negation; what no rule names is denied")
	}
	texts, err := expand(text)
	if err != nil {
		return nil, bad(err.Error())
	}
	p := &Pattern{text: text}
	for _, t := range texts {
		if why := unclean(t); why != "" {
			return nil, bad(why)
		}
		a, err := cut(t)
		if err != nil {
			return nil, bad(err.Error())
		}
		p.alts = append(p.alts, a)
	}
	return p, nil
}

// String is the pattern as it was written.
func (p *Pattern) String() string { return p.text }

// Literal tells whether the pattern names a fixed list of paths.
func (p *Pattern) Literal() bool {
	for _, a := range p.alts {
		if !a.exact {
			return false
		}
	}
	return true
}

// Paths are the paths that a literal pattern names; nil when it has wildcards.
func (p *Pattern) Paths() []string {
	if !p.Literal() {
		return nil
	}
	var out []string
	for _, a := range p.alts {
		out = append(out, a.prefix)
	}
	return out
}

// unclean says why a path, or a pattern without braces, can name nothing in a
// tree; empty when it can.
func unclean(path string) string {
	if path == "" {
		return "is empty"
	}
	if !utf8.ValidString(path) {
		return "holds bytes that are no UTF-8"
	}
	if !norm.NFC.IsNormalString(path) {
		return "is not in Unicode form NFC, in which paths are compared"
	}
	for _, r := range path {
		if r < ' ' || r == 0x7f || r == '\\' {
			return "holds a control character or a backslash"
		}
	}
	for name := range strings.SplitSeq(path, "/") {
		switch name {
		case "":
			return "has an empty name; paths begin at the root without a slash"
		case ".", "..":
			return "has the name " + name
		}
	}
	return ""
}

// expand writes out the braces.
func expand(text string) ([]string, error) {
	out := []string{""}
	for text != "" {
		open := strings.IndexAny(text, "{}")
		if open < 0 {
			return product(out, []string{text})
		}
		if text[open] == '}' {
			return nil, errors.New("closes a brace that is not open")
		}
		parts, rest, err := braces(text[open+1:])
		if err != nil {
			return nil, err
		}
		var inner []string
		for _, part := range parts {
			more, err := expand(part)
			if err != nil {
				return nil, err
			}
			if inner = append(inner, more...); len(inner) > maxAlternatives {
				return nil, errTooMany
			}
		}
		if out, err = product(out, []string{text[:open]}); err != nil {
			return nil, err
		}
		if out, err = product(out, inner); err != nil {
			return nil, err
		}
		text = rest
	}
	return out, nil
}

var (
	errTooMany = fmt.Errorf("stands for more than %d patterns", maxAlternatives)
	errJoined  = errors.New("has braces that put two stars side by side, which would cross slashes; write the alternatives out")
)

func product(a, b []string) ([]string, error) {
	if len(a)*len(b) > maxAlternatives {
		return nil, errTooMany
	}
	out := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			if strings.HasSuffix(x, "*") && strings.HasPrefix(y, "*") {
				return nil, errJoined
			}
			out = append(out, x+y)
		}
	}
	return out, nil
}

// braces cuts what follows an open brace at its commas, up to its end.
func braces(text string) (parts []string, rest string, err error) {
	depth, start := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case ',':
			if depth == 0 {
				parts, start = append(parts, text[start:i]), i+1
			}
		case '}':
			if depth == 0 {
				return append(parts, text[start:i]), text[i+1:], nil
			}
			depth--
		}
	}
	return nil, "", errors.New("opens a brace and does not close it")
}

// cut makes an alternative of a pattern without braces.
func cut(text string) (alternative, error) {
	var a alternative
	for name := range strings.SplitSeq(text, "/") {
		if name == "**" {
			if n := len(a.names); n == 0 || a.names[n-1] != "**" {
				a.names = append(a.names, name)
			}
			continue
		}
		if strings.Contains(name, "**") {
			return a, errors.New("has ** beside other characters of a name; write **/*.go, or * for a run within a name")
		}
		if strings.Trim(name, "*") == "" {
			name = "?*" // a name is never empty
		}
		a.names = append(a.names, name)
	}
	if a.names[len(a.names)-1] == "**" {
		a.names = append(a.names, "?*")
	}
	whole := strings.Join(a.names, "/")
	i := strings.IndexAny(whole, "*?")
	a.exact = i < 0
	if a.exact {
		i = len(whole)
	}
	a.prefix = whole[:i]
	a.suffix = whole[strings.LastIndexAny(whole, "*?/")+1:]
	for run := range strings.FieldsFuncSeq(whole, func(r rune) bool { return strings.ContainsRune("*?/", r) }) {
		if len(run) > len(a.middle) {
			a.middle = run
		}
	}
	return a, nil
}

// Match tells whether the pattern matches a path: bytes from the root, without
// empty names.
func (p *Pattern) Match(path string) bool {
	for i := range p.alts {
		if p.alts[i].match(path) {
			return true
		}
	}
	return false
}

func (a *alternative) match(path string) bool {
	if a.exact {
		return path == a.prefix
	}
	if !strings.HasPrefix(path, a.prefix) || !strings.HasSuffix(path, a.suffix) || !strings.Contains(path, a.middle) {
		return false
	}
	return matchNames(a.names, path)
}

// matchNames matches name by name. After a failure it goes back to the last **
// only: an earlier one could take nothing that this one cannot.
func matchNames(names []string, path string) bool {
	i, rest := 0, path     // next pattern, bytes that are left
	back, from := -1, path // pattern after the last **, where it began
	more := true           // there is a next name, in rest
	for {
		if i < len(names) && names[i] == "**" {
			i++
			back, from = i, rest
			continue
		}
		if i == len(names) && !more {
			return true
		}
		if i < len(names) && more {
			name, left, slash := strings.Cut(rest, "/")
			if matchName(names[i], name) {
				i, rest, more = i+1, left, slash
				continue
			}
		}
		if back < 0 {
			return false
		}
		_, left, slash := strings.Cut(from, "/")
		if !slash {
			return false
		}
		i, rest, from, more = back, left, left, true
	}
}

// matchName matches one name, byte by byte, going back to the last star only.
func matchName(pattern, name string) bool {
	p, n, star, from := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// Set is several patterns that match together.
type Set []*Pattern

// CompileSet reads several patterns; the first that is wrong is the error.
func CompileSet(texts []string) (Set, error) {
	out := make(Set, 0, len(texts))
	for _, t := range texts {
		p, err := Compile(t)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// Match tells whether one of the patterns matches.
func (s Set) Match(path string) bool {
	for _, p := range s {
		if p.Match(path) {
			return true
		}
	}
	return false
}

// Share is how much of the paths the set matches, from 0 to 1; 0 of none.
func (s Set) Share(paths []string) float64 {
	n := 0
	for _, p := range paths {
		if s.Match(p) {
			n++
		}
	}
	if len(paths) == 0 {
		return 0
	}
	return float64(n) / float64(len(paths))
}
