package plan

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/late"
	"github.com/proveto/proveto/internal/strictyaml"
)

// MaxBytes is how large the text of a contract may be.
const MaxBytes = 1 << 20

// Parse reads a contract, YAML or JSON, and refuses what it does not know. Name
// is how messages name the text: a file, or - for what was piped in. Errors are
// usage errors with code plan_invalid, a place, and the nearest name that exists.
func Parse(name string, body []byte) (*Contract, error) {
	if len(body) > MaxBytes {
		return nil, fault.New(fault.Usage, CodeInvalid, "%s is %d bytes long, more than %d", name, len(body), MaxBytes)
	}
	return ParseKept(name, body)
}

// ParseKept is [Parse] for a contract that was taken once. It may be longer than
// what is taken: [Manual] joins two texts, each with a limit of its own.
func ParseKept(name string, body []byte) (*Contract, error) {
	src := strictyaml.Source{Name: name, Code: CodeInvalid, Hint: "proveto flow plan new"}
	if !utf8.Valid(body) {
		return nil, fault.New(fault.Usage, CodeInvalid, "%s holds bytes that are no UTF-8", name)
	}
	root, err := src.Parse(joinSurrogates(body))
	if err != nil {
		return nil, err
	}
	if root.Empty() {
		return nil, fault.New(fault.Usage, CodeInvalid, "%s is empty", name).Hint("proveto flow plan new")
	}
	return contract(root)
}

var surrogates = late.Regexp(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

// joinSurrogates writes the pairs of escapes, by which JSON spells characters
// beyond the first plane, as the characters: YAML knows no pairs.
func joinSurrogates(body []byte) []byte {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) || !json.Valid(body) {
		return body
	}
	return surrogates().ReplaceAllFunc(body, func(pair []byte) []byte {
		hi, _ := strconv.ParseUint(string(pair[2:6]), 16, 16)  // four hexadecimal digits by the expression
		lo, _ := strconv.ParseUint(string(pair[8:12]), 16, 16) // likewise
		return []byte(string(utf16.DecodeRune(rune(hi), rune(lo))))
	})
}

// field reads the value of one key.
type field struct {
	name string
	must bool
	read func(strictyaml.Node) error
}

// fields reads a mapping: unknown keys and missing ones are errors. What names
// the mapping in messages.
func fields(n strictyaml.Node, what string, known ...field) error {
	pairs, err := n.Pairs(what)
	if err != nil {
		return err
	}
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	seen := map[string]bool{}
	for _, p := range pairs {
		i := slices.Index(names, p.Name)
		if i < 0 {
			return n.Unknown(p.Key, "key of "+what, p.Name, names)
		}
		if p.Value.Empty() {
			if known[i].must {
				return n.ErrorAt(p.Key, "%s of %s is empty", p.Name, what)
			}
			continue
		}
		seen[p.Name] = true
		if err := known[i].read(p.Value); err != nil {
			return err
		}
	}
	for _, f := range known {
		if f.must && !seen[f.name] {
			return n.Errorf("%s has no %s", what, f.name)
		}
	}
	return nil
}

// must marks a field that has to be there.
func (f field) required() field { f.must = true; return f }

// list reads a sequence, one entry at a time.
func list(name string, each func(strictyaml.Node) error) field {
	return field{name: name, read: func(n strictyaml.Node) error {
		items, ok := n.Items()
		if !ok {
			return n.Errorf("%s is %s, want a list", name, n.Kind())
		}
		for _, it := range items {
			if err := each(it); err != nil {
				return err
			}
		}
		return nil
	}}
}

// text reads a string that is not blank.
func text(name string, to *string, checks ...func(strictyaml.Node, string) error) field {
	return field{name: name, read: func(n strictyaml.Node) error {
		s, ok := n.Text()
		if !ok {
			return n.Errorf("%s is %s, want a text", name, n.Kind())
		}
		if strings.TrimSpace(s) == "" {
			return n.Errorf("%s is blank", name)
		}
		for _, check := range checks {
			if err := check(n, s); err != nil {
				return err
			}
		}
		*to = s
		return nil
	}}
}

// texts reads a list of strings that are not blank.
func texts(name string, to *[]string, checks ...func(strictyaml.Node, string) error) field {
	return list(name, func(n strictyaml.Node) error {
		var s string
		if err := text("an entry of "+name, &s, checks...).read(n); err != nil {
			return err
		}
		*to = append(*to, s)
		return nil
	})
}

// word reads one of a few words.
func word[T ~string](name string, to *T, known []string) field {
	return field{name: name, read: func(n strictyaml.Node) error {
		s, ok := n.Text()
		if !ok {
			return n.Errorf("%s is %s, want one of: %s", name, n.Kind(), strings.Join(known, ", "))
		}
		if !slices.Contains(known, s) {
			e := n.Errorf("%s is %q, want one of: %s", name, s, strings.Join(known, ", "))
			if near := strictyaml.Nearest(s, known); near != "" {
				return e.Hint("did you mean %s?", near)
			}
			return e
		}
		*to = T(s)
		return nil
	}}
}

// maxCount keeps numbers exact in every reader of JSON.
const maxCount = 1 << 31

// count reads a whole number from 0.
func count(name string, to **int) field {
	return field{name: name, read: func(n strictyaml.Node) error {
		s, _ := n.Text()
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 || v > maxCount {
			return n.Errorf("%s is %s, want a whole number from 0 to %d", name, shown(n, s), maxCount)
		}
		i := int(v)
		*to = &i
		return nil
	}}
}

// amount reads a number from 0.
func amount(name string, to **float64) field {
	return field{name: name, read: func(n strictyaml.Node) error {
		s, _ := n.Text()
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) || strings.ContainsAny(s, "xX_") {
			return n.Errorf("%s is %s, want a number from 0", name, shown(n, s))
		}
		v += 0 // minus zero is zero
		*to = &v
		return nil
	}}
}

// flag reads true or false.
func flag(name string, to *bool) field {
	return field{name: name, read: func(n strictyaml.Node) error {
		s, _ := n.Text()
		if s != "true" && s != "false" {
			return n.Errorf("%s is %s, want true or false", name, shown(n, s))
		}
		*to = s == "true"
		return nil
	}}
}

func shown(n strictyaml.Node, s string) string {
	if s == "" {
		return n.Kind()
	}
	return strconv.Quote(s)
}

// span reads a duration of whole seconds, above 0.
func span(name string, to *Span) field {
	return field{name: name, read: func(n strictyaml.Node) error {
		s, _ := n.Text()
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 || d%time.Second != 0 {
			return n.Errorf("%s is %s, want a duration of whole seconds such as 45s, 30m or 2h", name, shown(n, s))
		}
		*to = Span(d)
		return nil
	}}
}

var validID = late.Regexp(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

// isID holds ids to what can stand in a path, a flag or a table.
func isID(n strictyaml.Node, s string) error {
	if !validID().MatchString(s) {
		return n.Errorf("the id %.80q must begin with a letter and have only letters, digits, dots, dashes and underscores, at most 64", s)
	}
	return nil
}

// isPattern checks a pattern of paths.
func isPattern(n strictyaml.Node, s string) error {
	if _, err := Compile(s); err != nil {
		return n.Errorf("%s", err)
	}
	return nil
}

// isPath checks a path that stands for itself.
func isPath(n strictyaml.Node, s string) error {
	if why := unclean(s); why != "" {
		return n.Errorf("%.200q is no path from the root: it %s", s, why)
	}
	return nil
}

// isTest checks the name of a test: path::name.
func isTest(n strictyaml.Node, s string) error {
	file, name, ok := strings.Cut(s, "::")
	if !ok || strings.TrimSpace(name) == "" {
		return n.Errorf("the test %.200q has no name, want path::name", s)
	}
	return isPath(n, file)
}

// printable keeps control characters out of names that are shown in one line.
func printable(n strictyaml.Node, s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return n.Errorf("%.80q holds control characters", s)
	}
	return nil
}
