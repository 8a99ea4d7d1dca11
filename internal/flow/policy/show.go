package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/strictyaml"
)

// The shown form of a policy is made of mappings, lists ([]any) and scalars:
// string, plain, int, float64, bool.
type (
	mapping []entry
	entry   struct {
		name  string
		value any
	}
	// plain is a string that needs no quotes.
	plain string
)

// Show is a policy as a file of its own: every value resolved, in the order of
// the reference. Reading it gives the same policy again.
func (p Policy) Show() string {
	var b strings.Builder
	b.WriteString("version: 1\npolicies:\n  " + scalar(p.Name) + ":\n")
	for _, e := range policyShape.show(&p) {
		writeBlock(&b, e, "    ")
	}
	return b.String()
}

// writeBlock writes a key of a policy. What has keys of its own, or is a list of
// such, gets a line for each; what lies deeper stays on its line.
func writeBlock(b *strings.Builder, e entry, indent string) {
	b.WriteString(indent + scalar(e.name) + ":")
	switch v := e.value.(type) {
	case mapping:
		if len(v) > 0 && nested(v) {
			b.WriteByte('\n')
			for _, x := range v {
				b.WriteString(indent + "  " + scalar(x.name) + ": " + flow(x.value) + "\n")
			}
			return
		}
	case []any:
		if len(v) > 0 {
			if _, ok := v[0].(mapping); ok {
				b.WriteByte('\n')
				for _, x := range v {
					b.WriteString(indent + "  - " + flow(x) + "\n")
				}
				return
			}
		}
	}
	b.WriteString(" " + flow(e.value) + "\n")
}

func nested(m mapping) bool {
	for _, e := range m {
		if _, ok := e.value.(mapping); ok {
			return true
		}
	}
	return false
}

// flow writes a value on one line. What is absent reads as nothing.
func flow(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case mapping:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = scalar(e.name) + ": " + flow(e.value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = flow(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case plain:
		return string(v)
	case string:
		return scalar(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// words that YAML readers take for something else than a string.
var reserved = map[string]bool{"true": true, "false": true, "null": true, "yes": true, "no": true, "on": true, "off": true, "y": true, "n": true, "inf": true, "nan": true}

// scalar quotes a string unless every reader takes it for itself.
func scalar(s string) string {
	ok := s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z') && !reserved[strings.ToLower(s)]
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-./", c) >= 0
	}
	if ok {
		return s
	}
	return quoted(s)
}

func quoted(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("policy: a string that is no JSON: " + err.Error()) // strings always are
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// plainJSON turns the shown form into what encoding/json writes.
func plainJSON(v any) any {
	switch v := v.(type) {
	case mapping:
		m := make(map[string]any, len(v))
		for _, e := range v {
			m[e.name] = plainJSON(e.value)
		}
		return m
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainJSON(e)
		}
		return out
	case plain:
		return string(v)
	}
	return v
}

func (p Policy) document() map[string]any {
	m, _ := plainJSON(policyShape.show(&p)).(map[string]any)
	m["name"] = p.Name
	return m
}

// MarshalJSON writes the resolved policy with the keys of the file, and its
// name; durations as text.
func (p Policy) MarshalJSON() ([]byte, error) { return evidence.Canonical(p.document()) }

// UnmarshalJSON reads what [Policy.MarshalJSON] wrote, with the checks of
// [Parse]. No value is taken from elsewhere.
func (p *Policy) UnmarshalJSON(body []byte) error {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(body, &doc); err != nil {
		return fault.Wrap(err, fault.Usage, CodeInvalid, "read a resolved policy")
	}
	var name string
	if err := json.Unmarshal(doc["name"], &name); err != nil {
		return fault.Wrap(err, fault.Usage, CodeInvalid, "read the name of a resolved policy")
	}
	delete(doc, "name")
	rest, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	root, err := strictyaml.Source{Name: "policy " + name, Code: CodeInvalid}.ParseJSON(rest)
	if err != nil {
		return err
	}
	*p, err = resolve(name, []strictyaml.Node{root}, nil)
	return err
}
