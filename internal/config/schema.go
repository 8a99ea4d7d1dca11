package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// SchemaID names the JSON Schema of the configuration.
const SchemaID = "proveto/config/v1"

// spanPattern is the syntax of durations in the schema.
const (
	spanPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	sizePattern = `^[0-9]+ ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)?$`
)

type object = map[string]any

// Schema is the JSON Schema (draft 2020-12) of a configuration file, made from
// the table of keys.
func Schema() ([]byte, error) {
	sections := object{}
	for _, name := range sectionNames() {
		props := object{}
		for _, k := range keys {
			if k.Section() == name {
				props[k.Leaf()] = k.schema()
			}
		}
		sections[name] = object{"type": []string{"object", "null"}, "additionalProperties": false, "properties": props}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SchemaID, "title": "Proveto configuration",
		"type": []string{"object", "null"}, "additionalProperties": false, "properties": sections,
	})
	return b.Bytes(), err
}

func (k Key) schema() object {
	doc := k.Doc
	if k.User {
		doc += " User file only."
	}
	out := object{"description": doc}
	word := object{"type": []string{"string", "number", "boolean"}}
	if len(k.Values) > 0 {
		word = object{"enum": k.Values}
	}
	switch k.Kind {
	case Strings:
		out["type"], out["items"] = []string{"array", "null"}, word
	case Map:
		out["type"], out["additionalProperties"] = []string{"object", "null"}, word
	case Text:
		if len(k.Values) > 0 {
			out["enum"] = k.Values
		} else {
			out["type"] = []string{"string", "null"}
		}
	case Integer:
		out["type"], out["minimum"] = []string{"integer", "null"}, k.Min
		if k.Max > 0 {
			out["maximum"] = k.Max
		}
	case Fraction:
		out["type"], out["minimum"], out["maximum"] = []string{"number", "null"}, 0, 1
	case Span:
		out["type"], out["pattern"] = []string{"string", "null"}, spanPattern
	case Size:
		out["type"], out["pattern"], out["minimum"] = []string{"string", "integer", "null"}, sizePattern, k.Min
	}
	if k.Default != "" {
		out["default"] = k.defaultJSON()
	}
	return out
}

// defaultJSON is the default in the type that the schema asks for.
func (k Key) defaultJSON() any {
	switch k.Kind {
	case Integer, Fraction:
		if f, err := strconv.ParseFloat(k.Default, 64); err == nil {
			return f
		}
	case Strings:
		return strings.Split(strings.Trim(k.Default, "[]"), ", ")
	}
	return k.Default
}

// Reference is docs/configuration.md: every key with type, default, variable and
// meaning, made from the table of keys.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Generated from internal/config/keys.go by go test ./internal/config -update. Do not edit. -->

Strongest first: flag, environment variable, ` + "`proveto.yaml`" + ` in the repository, the user's own file
(` + "`$XDG_CONFIG_HOME/proveto/config.yaml`" + `), default. Unknown keys and wrong values are errors (exit 64,
` + "`config_invalid`" + `) with file, line, column and the nearest name. ` + "`proveto config show`" + ` tells where each value
comes from; ` + "`proveto config schema`" + ` prints the JSON Schema for editors.

In a variable or a flag, lists are separated by commas and names are joined to their values by ` + "`=`" + `. A key marked
*tightens* can be made stricter by a flag or a variable, never looser. An empty value sets nothing.
`)
	for _, section := range sectionNames() {
		fmt.Fprintf(&b, "\n## %s\n\n| key | type | default | variable | meaning |\n| --- | --- | --- | --- | --- |\n", section)
		for _, k := range keys {
			if k.Section() != section {
				continue
			}
			def := "–"
			if k.Default != "" {
				def = "`" + k.Default + "`"
			}
			marks := ""
			if k.Tighten != "" {
				marks += " *Tightens.*"
			}
			if k.User {
				marks += " *User file only.*"
			}
			name := "`" + k.Variable() + "`"
			if k.Alias != "" {
				name += ", `" + k.Alias + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s%s |\n", k.Leaf(), k.wants(), def, name, k.Doc, marks)
		}
	}
	b.WriteString("\n## Example\n\n```yaml\n" + Example + "```\n")
	return b.String()
}

// Example is a file that sets something in every section of a repository.
const Example = `prove:
  exclude: [internal/gen/**]
  budget: 5m
  operators: [result, condition, boundary]
  test_env:
    TZ: UTC
gate:
  min_proven: 0.9
  on_unmeasured: note
isolation:
  min: namespaces
  mem: 2GiB
reports:
  formats: [html, md]
`
