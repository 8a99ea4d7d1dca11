package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/proveto/proveto/internal/fault"
)

// Document is one parsed file: its values by key, each checked.
type Document struct {
	Name   string
	values map[string]value
}

// value is a checked value; the field that its kind names is set.
type value struct {
	text     string // as written
	str      string
	list     []string
	dict     map[string]string
	integer  int64
	fraction float64
	span     time.Duration
	origin   Origin
}

func (v value) number() float64 {
	if v.fraction != 0 {
		return v.fraction
	}
	return float64(v.integer)
}

func (d *Document) value(name string) (value, bool) {
	if d == nil {
		return value{}, false
	}
	v, ok := d.values[name]
	return v, ok
}

// Has tells whether the document sets a key.
func (d *Document) Has(name string) bool { _, ok := d.value(name); return ok }

// Parse reads the bytes of a repository's file. The name is used in messages
// and origins only.
func Parse(name string, body []byte) (*Document, error) { return parse(name, body, LayerRepository) }

// ParseUser reads the bytes of the user's own file.
func ParseUser(name string, body []byte) (*Document, error) { return parse(name, body, LayerUser) }

func parse(name string, body []byte, layer Layer) (*Document, error) {
	d := &Document{Name: name, values: map[string]value{}}
	at := Origin{Layer: layer, Name: name}
	file, err := parser.ParseBytes(body, 0)
	if err != nil {
		return nil, syntax(at, err)
	}
	if len(file.Docs) > 1 {
		for _, doc := range file.Docs[1:] {
			if doc.Body != nil {
				return nil, invalid(place(at, doc.Body), "a second document; one file has one")
			}
		}
	}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if err := d.sections(at, doc.Body); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// syntax gives an error of the YAML parser its place.
func syntax(at Origin, err error) error {
	var ye yaml.Error
	if errors.As(err, &ye) && ye.GetToken() != nil {
		at.Line, at.Column = ye.GetToken().Position.Line, ye.GetToken().Position.Column
		return invalid(at, "%s", oneLine(ye.GetMessage())).Hint("proveto help config")
	}
	return fault.New(fault.Usage, CodeInvalid, "%s: %s", at.Name, oneLine(yaml.FormatError(err, false, false))).Hint("proveto help config")
}

// oneLine keeps a message of a library on one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func place(at Origin, n ast.Node) Origin {
	if t := n.GetToken(); t != nil && t.Position != nil {
		at.Line, at.Column = t.Position.Line, t.Position.Column
	}
	return at
}

// pairs lists the entries of a mapping, each with the place of its key.
func pairs(at Origin, n ast.Node, what string) ([]pair, error) {
	var nodes []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		nodes = n.Values
	case *ast.MappingValueNode:
		nodes = []*ast.MappingValueNode{n}
	case *ast.NullNode:
	default:
		return nil, invalid(place(at, n), "%s is %s, want names with values below it", what, nodeKind(n))
	}
	var out []pair
	for _, m := range nodes {
		o := place(at, m.Key)
		key, ok := m.Key.(*ast.StringNode)
		if !ok {
			return nil, invalid(o, "the name %s in %s is %s, want a plain name", m.Key.String(), what, nodeKind(m.Key))
		}
		out = append(out, pair{key.Value, m.Value, o})
	}
	return out, nil
}

type pair struct {
	name  string
	value ast.Node
	at    Origin
}

func (d *Document) sections(at Origin, root ast.Node) error {
	sections, err := pairs(at, root, "the file")
	if err != nil {
		return err
	}
	for _, s := range sections {
		leaves := leavesOf(s.name)
		if leaves == nil {
			return unknown(s.at, "section", s.name, sectionNames())
		}
		entries, err := pairs(at, s.value, s.name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			k, ok := lookupKey(s.name + "." + e.name)
			if !ok {
				return unknown(e.at, "key", s.name+"."+e.name, leaves)
			}
			v, set, err := fromNode(k, e)
			if err != nil {
				return err
			}
			if set {
				d.values[k.Name] = v
			}
		}
	}
	return nil
}

// fromNode checks a value of a file. An empty one sets nothing.
func fromNode(k Key, e pair) (value, bool, error) {
	if e.value == nil || e.value.Type() == ast.NullType {
		return value{}, false, nil
	}
	at := place(e.at, e.value)
	switch n := e.value.(type) {
	case *ast.SequenceNode:
		at = e.at
		if k.Kind != Strings {
			return value{}, false, wrongKind(k, at, "a list")
		}
		v := value{origin: at, list: []string{}}
		for _, item := range n.Values {
			s, ok := scalar(item)
			if !ok {
				return value{}, false, invalid(place(at, item), "an entry of %s is %s, want a string", k.Name, nodeKind(item))
			}
			if err := k.allowed(place(at, item), s); err != nil {
				return value{}, false, err
			}
			v.list = append(v.list, s)
		}
		v.text = "[" + strings.Join(v.list, ", ") + "]"
		return v, true, nil
	case *ast.MappingNode, *ast.MappingValueNode:
		at = e.at
		if k.Kind != Map {
			return value{}, false, wrongKind(k, at, "names with values")
		}
		entries, err := pairs(at, n, k.Name)
		if err != nil {
			return value{}, false, err
		}
		v := value{origin: at, dict: map[string]string{}}
		var text []string
		for _, x := range entries {
			s, ok := scalar(x.value)
			if !ok {
				return value{}, false, invalid(x.at, "%s.%s is %s, want a string", k.Name, x.name, nodeKind(x.value))
			}
			v.dict[x.name] = s
			text = append(text, x.name+": "+s)
		}
		v.text = "{" + strings.Join(text, ", ") + "}"
		return v, true, nil
	}
	s, ok := scalar(e.value)
	if !ok {
		return value{}, false, wrongKind(k, at, nodeKind(e.value))
	}
	if k.Kind == Strings || k.Kind == Map {
		return value{}, false, wrongKind(k, at, fmt.Sprintf("the single value %s", s))
	}
	v, err := fromText(k, s, at)
	return v, err == nil, err
}

func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// fromText checks a value that is written as text: a scalar of a file, a
// variable or a flag, where lists are separated by commas and names are joined
// to their values by an equals sign.
func fromText(k Key, s string, at Origin) (value, error) {
	v := value{text: s, origin: at}
	switch k.Kind {
	case Strings:
		v.list = []string{}
		for _, x := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"), ",") {
			if x = strings.TrimSpace(x); x == "" {
				continue
			}
			if err := k.allowed(at, x); err != nil {
				return v, err
			}
			v.list = append(v.list, x)
		}
	case Map:
		v.dict = map[string]string{}
		for _, x := range strings.Split(s, ",") {
			name, val, ok := strings.Cut(x, "=")
			if !ok || name == "" {
				return v, k.bad(at, x)
			}
			v.dict[name] = val
		}
	case Text:
		if err := k.allowed(at, s); err != nil {
			return v, err
		}
		v.str = s
	case Integer:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < k.Min || k.Max > 0 && n > k.Max {
			return v, k.bad(at, s)
		}
		v.integer = n
	case Fraction:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return v, k.bad(at, s)
		}
		v.fraction = f
	case Span:
		d, ok := parseSpan(s)
		if !ok || d < time.Duration(k.Min)*time.Second {
			return v, k.bad(at, s)
		}
		v.span = d
	case Size:
		n, ok := parseSize(s)
		if !ok || n < k.Min {
			return v, k.bad(at, s)
		}
		v.integer = n
	}
	return v, nil
}

// allowed checks a word against the words that the key knows.
func (k Key) allowed(at Origin, s string) error {
	if len(k.Values) == 0 || slices.Contains(k.Values, s) {
		return nil
	}
	e := k.bad(at, s)
	if near := nearest(s, k.Values); near != "" {
		e = e.Hint("did you mean %s?", near)
	}
	return e
}

// bad is the error of a value that does not fit, with what would.
func (k Key) bad(at Origin, s string) *fault.Error {
	where := k.Name
	if at.Line == 0 && at.Name != "" {
		where = at.Name + " (" + k.Name + ")"
	}
	return invalid(at, "%s is %q, want %s", where, s, k.wants())
}

func wrongKind(k Key, at Origin, got string) error {
	return invalid(at, "%s is %s, want %s", k.Name, got, k.wants())
}

// wants says what a value looks like.
func (k Key) wants() string {
	switch k.Kind {
	case Strings:
		if len(k.Values) > 0 {
			return "a list of: " + strings.Join(k.Values, ", ")
		}
		return "a list of strings"
	case Map:
		return "names with values"
	case Text:
		if len(k.Values) > 0 {
			return "one of: " + strings.Join(k.Values, ", ")
		}
		return "a string"
	case Integer:
		if k.Max > 0 {
			return fmt.Sprintf("a whole number from %d to %d", k.Min, k.Max)
		}
		return fmt.Sprintf("a whole number, at least %d", k.Min)
	case Fraction:
		return "a number from 0 to 1"
	case Span:
		return fmt.Sprintf("a duration such as 90s or 10m, at least %s", time.Duration(k.Min)*time.Second)
	}
	return fmt.Sprintf("a size such as 512MiB or 4GiB, at least %s", sizeText(k.Min))
}

func sizeText(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%dMiB", n>>20)
	}
	return fmt.Sprintf("%dB", n)
}

func nodeKind(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "names with values"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		return "an anchor or alias, which is not read here"
	case *ast.NullNode:
		return "empty"
	case *ast.StringNode, *ast.LiteralNode:
		return "a string"
	case *ast.TagNode:
		return "a tagged value, which is not read here"
	}
	return "a single value"
}

func unknown(at Origin, noun, name string, known []string) error {
	leaf := name[strings.LastIndexByte(name, '.')+1:]
	e := invalid(at, "unknown %s %s", noun, name)
	if near := nearest(leaf, known); near != "" {
		return e.Hint("did you mean %s?", strings.TrimSuffix(name, leaf)+near)
	}
	return e.Hint("known here: %s", strings.Join(known, ", "))
}

func sectionNames() []string {
	var out []string
	for _, k := range keys {
		if !slices.Contains(out, k.Section()) {
			out = append(out, k.Section())
		}
	}
	return out
}

func leavesOf(section string) []string {
	var out []string
	for _, k := range keys {
		if k.Section() == section {
			out = append(out, k.Leaf())
		}
	}
	return out
}

// nearest is the known name with the fewest edits, when that is less than half
// of the name.
func nearest(name string, known []string) string {
	best, least := "", len(name)/2+1
	for _, k := range known {
		if d := edits(strings.ToLower(name), k); d < least {
			best, least = k, d
		}
	}
	return best
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
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
