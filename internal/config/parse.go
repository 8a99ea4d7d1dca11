package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/strictyaml"
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
	root, err := strictyaml.Source{Name: name, Code: CodeInvalid, Hint: "proveto help config"}.Parse(body)
	if err != nil {
		return nil, err
	}
	d := &Document{Name: name, values: map[string]value{}}
	return d, d.sections(layer, root)
}

func (d *Document) sections(layer Layer, root strictyaml.Node) error {
	sections, err := root.Pairs("the file")
	if err != nil {
		return err
	}
	for _, s := range sections {
		leaves := leavesOf(s.Name)
		if leaves == nil {
			return root.Unknown(s.Key, "section", s.Name, sectionNames())
		}
		entries, err := s.Value.Pairs(s.Name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			k, ok := lookupKey(s.Name + "." + e.Name)
			if !ok {
				return root.Unknown(e.Key, "key", s.Name+"."+e.Name, leaves)
			}
			v, set, err := fromNode(k, layer, e)
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

// origin is the place of a file in one of the layers.
func origin(layer Layer, p strictyaml.Place) Origin {
	return Origin{Layer: layer, Name: p.Name, Line: p.Line, Column: p.Column}
}

// fromNode checks a value of a file. An empty one sets nothing.
func fromNode(k Key, layer Layer, e strictyaml.Pair) (value, bool, error) {
	if e.Value.Empty() {
		return value{}, false, nil
	}
	v := value{origin: origin(layer, e.Key)}
	if items, ok := e.Value.Items(); ok {
		if k.Kind != Strings {
			return value{}, false, wrongKind(k, v.origin, "a list")
		}
		v.list = []string{}
		for _, item := range items {
			s, ok := item.Text()
			if !ok {
				return value{}, false, item.Errorf("an entry of %s is %s, want a string", k.Name, item.Kind())
			}
			if err := k.allowed(origin(layer, item.Place()), s); err != nil {
				return value{}, false, err
			}
			v.list = append(v.list, s)
		}
		v.text = "[" + strings.Join(v.list, ", ") + "]"
		return v, true, nil
	}
	if e.Value.IsMapping() {
		if k.Kind != Map {
			return value{}, false, wrongKind(k, v.origin, "names with values")
		}
		entries, err := e.Value.Pairs(k.Name)
		if err != nil {
			return value{}, false, err
		}
		v.dict = map[string]string{}
		var text []string
		for _, x := range entries {
			s, ok := x.Value.Text()
			if !ok {
				return value{}, false, x.Value.ErrorAt(x.Key, "%s.%s is %s, want a string", k.Name, x.Name, x.Value.Kind())
			}
			v.dict[x.Name] = s
			text = append(text, x.Name+": "+s)
		}
		v.text = "{" + strings.Join(text, ", ") + "}"
		return v, true, nil
	}
	at := origin(layer, e.Value.Place())
	s, ok := e.Value.Text()
	if !ok {
		return value{}, false, wrongKind(k, at, e.Value.Kind())
	}
	if k.Kind == Strings || k.Kind == Map {
		return value{}, false, wrongKind(k, at, fmt.Sprintf("the single value %s", s))
	}
	v, err := fromText(k, s, at)
	return v, err == nil, err
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
	if near := strictyaml.Nearest(s, k.Values); near != "" {
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
