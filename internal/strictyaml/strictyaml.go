// Package strictyaml reads YAML files with a closed vocabulary: every value has
// a place (file, line, column), and what is not understood is refused, never
// skipped. JSON is read as the YAML that it is.
//
// Anchors, aliases, merges, tags and second documents are refused, so a file
// means what it says and cannot grow while it is read. The package knows no
// schema: callers walk [Node] values and say which names they know.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/proveto/proveto/internal/fault"
)

// Source is a file as messages name it.
type Source struct {
	Name string     // as it is shown: proveto.yaml, .proveto/flow.yaml
	Code fault.Code // of every error about the file
	Hint string     // shown with syntax errors; may be empty
}

// Place is where a value stands. The zero place is nowhere in a file.
type Place struct {
	Name         string
	Line, Column int // from 1
}

// String is the place as people write it: proveto.yaml:3:9.
func (p Place) String() string {
	if p.Line == 0 {
		return p.Name
	}
	return fmt.Sprintf("%s:%d:%d", p.Name, p.Line, p.Column)
}

// Node is a value of a file. The zero node is an absent value.
type Node struct {
	src Source
	n   ast.Node
	at  Place
}

// Pair is an entry of a mapping.
type Pair struct {
	Name  string
	Key   Place // of the name
	Value Node  // empty when nothing is written after the colon
}

// Parse reads the one document of a file. An empty file is an empty node. Errors
// are usage errors with the source's code; those of the syntax have a place.
func (s Source) Parse(body []byte) (Node, error) {
	if !utf8.Valid(body) {
		return Node{}, s.bad("%s: the file is not valid UTF-8", s.Name)
	}
	if i := bytes.IndexFunc(body, control); i >= 0 {
		line := 1 + bytes.Count(body[:i], []byte("\n"))
		column := i - bytes.LastIndexByte(body[:i], '\n')
		return Node{}, s.bad("%s: a control character (%U), which YAML does not have", Place{s.Name, line, column}, body[i])
	}
	if deep(body) {
		return Node{}, s.bad("%s: values lie too deep in each other", s.Name)
	}
	file, err := parser.ParseBytes(body, 0)
	if err != nil {
		return Node{}, s.syntax(err)
	}
	root := Node{src: s, at: Place{Name: s.Name}}
	for i, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if i > 0 {
			return Node{}, s.child(doc.Body, root.at).Errorf("a second document; one file has one")
		}
		root = s.child(doc.Body, root.at)
	}
	return root, nil
}

func control(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f }

// maxDepth is how deep values may lie in each other: the parser calls itself for
// each level, and takes a time that grows with its square.
const maxDepth = 64

// deep tells whether a body nests more than any file of ours has reason to: by
// brackets, by dashes on one line, or by indentation. Brackets inside texts
// count too; only a text with more than maxDepth unclosed ones would notice.
func deep(body []byte) bool {
	brackets, dashes, indent, start := 0, 0, 0, true
	var before byte
	for _, c := range body {
		switch {
		case c == '\n':
			dashes, indent, start = 0, 0, true
		case c == '[', c == '{':
			brackets, start = brackets+1, false
		case c == ']', c == '}':
			brackets = max(0, brackets-1)
		case c == ' ' && (before == '-' || before == '?' || before == ':') && start:
			dashes++
		case c == ' ':
			indent++
		case c != '-' && c != '?' && c != ':':
			start = false
		}
		before = c
		if brackets > maxDepth || dashes > maxDepth || start && indent > 4*maxDepth {
			return true
		}
	}
	return false
}

// syntax gives an error of the YAML parser its place.
func (s Source) syntax(err error) error {
	var e *fault.Error
	var ye yaml.Error
	if errors.As(err, &ye) && ye.GetToken() != nil {
		p := ye.GetToken().Position
		e = s.bad("%s: %s", Place{s.Name, p.Line, p.Column}, oneLine(ye.GetMessage()))
	} else {
		e = s.bad("%s: %s", s.Name, oneLine(yaml.FormatError(err, false, false)))
	}
	if s.Hint != "" {
		e = e.Hint("%s", s.Hint)
	}
	return e
}

func (s Source) bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Usage, s.Code, format, args...)
}

func (s Source) child(n ast.Node, parent Place) Node {
	c := Node{src: s, n: n, at: parent}
	if n == nil {
		return c
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		c.at.Line, c.at.Column = t.Position.Line, t.Position.Column
	}
	return c
}

// oneLine keeps a message of a library on one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Place is where the value stands; of an empty one, where its name stands.
func (n Node) Place() Place { return n.at }

// Empty tells whether nothing is written there.
func (n Node) Empty() bool { return n.n == nil || n.n.Type() == ast.NullType }

// Pairs lists the entries of a mapping in the order of the file. What names the
// value in messages. An empty value has no entries; one name twice is an error.
func (n Node) Pairs(what string) ([]Pair, error) {
	var nodes []*ast.MappingValueNode
	switch m := n.n.(type) {
	case *ast.MappingNode:
		nodes = m.Values
	case *ast.MappingValueNode:
		nodes = []*ast.MappingValueNode{m}
	default:
		if n.Empty() {
			return nil, nil
		}
		return nil, n.Errorf("%s is %s, want names with values below it", what, n.Kind())
	}
	out := make([]Pair, 0, len(nodes))
	for _, m := range nodes {
		key := n.src.child(m.Key, n.at)
		name, ok := m.Key.(*ast.StringNode)
		if !ok {
			return nil, key.Errorf("the name %s in %s is %s, want a plain name", oneLine(m.Key.String()), what, key.Kind())
		}
		v := n.src.child(m.Value, key.at)
		if v.Empty() {
			v.at = key.at
		}
		for _, p := range out {
			if p.Name == name.Value {
				return nil, key.Errorf("%s has %s twice", what, name.Value)
			}
		}
		out = append(out, Pair{name.Value, key.at, v})
	}
	return out, nil
}

// Items lists the entries of a sequence; false when the value is none.
func (n Node) Items() ([]Node, bool) {
	s, ok := n.n.(*ast.SequenceNode)
	if !ok {
		return nil, false
	}
	out := make([]Node, 0, len(s.Values))
	for _, v := range s.Values {
		out = append(out, n.src.child(v, n.at))
	}
	return out, true
}

// IsMapping tells whether the value has names with values below it.
func (n Node) IsMapping() bool {
	switch n.n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

// Text is a single value as it is written: a string without its quotes, a number
// or a boolean. False when the value is none of these.
func (n Node) Text() (string, bool) {
	switch v := n.n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return v.GetToken().Value, true
	}
	return "", false
}

// Kind says in words what the value is.
func (n Node) Kind() string {
	switch n.n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "names with values"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		return "an anchor or alias, which is not read here"
	case nil, *ast.NullNode:
		return "empty"
	case *ast.StringNode, *ast.LiteralNode:
		return "a string"
	case *ast.TagNode:
		return "a tagged value, which is not read here"
	}
	return "a single value"
}

// Errorf is an error about the value, with its place.
func (n Node) Errorf(format string, args ...any) *fault.Error {
	return n.ErrorAt(n.at, format, args...)
}

// ErrorAt is an error about another place of the same file.
func (n Node) ErrorAt(at Place, format string, args ...any) *fault.Error {
	what := fmt.Sprintf(format, args...)
	if at.String() != "" {
		what = at.String() + ": " + what
	}
	return n.src.bad("%s", what)
}

// Unknown is the error of a name that is not among the known ones: noun and name
// say what it is, the last part of the name after a dot is what is compared.
func (n Node) Unknown(at Place, noun, name string, known []string) *fault.Error {
	leaf := name[strings.LastIndexByte(name, '.')+1:]
	e := n.ErrorAt(at, "unknown %s %s", noun, name)
	if near := Nearest(leaf, known); near != "" {
		return e.Hint("did you mean %s?", strings.TrimSuffix(name, leaf)+near)
	}
	return e.Hint("known here: %s", strings.Join(known, ", "))
}

// Nearest is the known name with the fewest edits, when these are at most half
// of the name; empty when there is none.
func Nearest(name string, known []string) string {
	best, least := "", len(name)/2+1
	for _, k := range known {
		if d := Edits(strings.ToLower(name), k); d < least {
			best, least = k, d
		}
	}
	return best
}

// Edits is the Levenshtein distance of two words, in bytes.
func Edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
