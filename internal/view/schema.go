package view

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
)

// StartSchemaName is the schema of the answer of prove.start.
const StartSchemaName = "proveto/prove.start/v1"

// StartSchema is the JSON Schema (draft 2020-12) of the answer that carries a
// [Start], made from the types. Unknown fields are allowed: within a version
// fields are only added.
func StartSchema() ([]byte, error) {
	g := generator{defs: map[string]any{}}
	root := g.fields(reflect.TypeFor[Answer]())
	props := root["properties"].(map[string]any)
	props["schema"] = map[string]any{"const": StartSchemaName}
	// A refusal carries no result.
	props["data"] = map[string]any{"anyOf": []any{g.ref(reflect.TypeFor[Start]()), map[string]any{"type": "null"}}}
	root["$schema"], root["$id"], root["title"], root["$defs"] = "https://json-schema.org/draft/2020-12/schema", StartSchemaName, "Answer of proveto start", g.defs
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(root)
	return b.Bytes(), err
}

// vocabulary are the closed lists of words, by type and field.
func vocabulary(typ, field string) []string {
	switch typ + "." + field {
	case "Symbol.word", "Gap.word":
		return strs(evidence.Words())
	case "Mutant.status":
		return strs([]evidence.Status{
			evidence.Killed, evidence.KilledByError, evidence.Survived, evidence.TimedOut, evidence.Flaky,
			evidence.Invalid, evidence.NoCoverage, evidence.Waived, evidence.PendingProbe,
		})
	case "Mutant.kind":
		return strs([]evidence.ProbeKind{
			evidence.ProbeResult, evidence.ProbeCondition, evidence.ProbeBoundary,
			evidence.ProbeArithmetic, evidence.ProbeStatement, evidence.ProbeConstant,
		})
	}
	return nil
}

func strs[T ~string](in []T) []string {
	out := make([]string, 0, len(in))
	for _, s := range in {
		out = append(out, string(s))
	}
	return out
}

type generator struct{ defs map[string]any }

// ref names a struct, defining it at its first use.
func (g *generator) ref(t reflect.Type) map[string]any {
	if _, ok := g.defs[t.Name()]; !ok {
		g.defs[t.Name()] = nil // a type that contains itself ends here
		g.defs[t.Name()] = g.fields(t)
	}
	return map[string]any{"$ref": "#/$defs/" + t.Name()}
}

func (g *generator) fields(t reflect.Type) map[string]any {
	props, required := map[string]any{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if words := vocabulary(t.Name(), name); words != nil {
			props[name] = map[string]any{"enum": words}
		} else {
			props[name] = g.of(f.Type)
		}
		if !strings.Contains(opts, "omitempty") {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "required": required, "properties": props}
}

func (g *generator) of(t reflect.Type) map[string]any {
	if t == reflect.TypeFor[time.Time]() {
		return map[string]any{"type": "string", "format": "date-time"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.Struct:
		return g.ref(t)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{}
}
