package strictyaml_test

import (
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/strictyaml"
)

var source = strictyaml.Source{Name: "x.yaml", Code: "x_invalid", Hint: "see here"}

func TestValuesHaveAPlace(t *testing.T) {
	t.Parallel()
	root, err := source.Parse([]byte("# first\na: one\nb:\n  - 2\n  - {c: true, d: \"x\\ny\"}\ne:\nf: |\n  lines\n"))
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := root.Pairs("the file")
	if err != nil || len(pairs) != 4 {
		t.Fatalf("Pairs = %v, %v", pairs, err)
	}
	if s, ok := pairs[0].Value.Text(); !ok || s != "one" || pairs[0].Value.Place().String() != "x.yaml:2:4" {
		t.Errorf("a = %q at %s", s, pairs[0].Value.Place())
	}
	items, ok := pairs[1].Value.Items()
	if !ok || len(items) != 2 || items[0].Place().String() != "x.yaml:4:5" {
		t.Fatalf("b = %v, %v", items, ok)
	}
	below, err := items[1].Pairs("an item")
	if err != nil || !items[1].IsMapping() || below[1].Key.String() != "x.yaml:5:15" {
		t.Fatalf("b[1] = %v, %v", below, err)
	}
	if s, _ := below[1].Value.Text(); s != "x\ny" {
		t.Errorf("d = %q", s)
	}
	if s, _ := below[0].Value.Text(); s != "true" {
		t.Errorf("c = %q, want the text as written", s)
	}
	if v := pairs[2].Value; !v.Empty() || v.Kind() != "empty" || v.Place().String() != "x.yaml:6:1" {
		t.Errorf("e = %s at %s, want empty at its name", v.Kind(), v.Place())
	}
	if s, _ := pairs[3].Value.Text(); s != "lines\n" {
		t.Errorf("f = %q", s)
	}
	if e := below[1].Value.Unknown(below[1].Key, "key", "b.lenght", []string{"length", "width"}); e.Code != "x_invalid" || e.What != "x.yaml:5:15: unknown key b.lenght" || e.Hints[0] != "did you mean b.length?" {
		t.Errorf("Unknown = %+v", e)
	}
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	t.Parallel()
	walk := func(body string) error {
		root, err := source.Parse([]byte(body))
		if err != nil {
			return err
		}
		pairs, err := root.Pairs("the file")
		for _, p := range pairs {
			if _, ok := p.Value.Text(); !ok {
				return p.Value.Errorf("%s", p.Value.Kind())
			}
		}
		return err
	}
	for body, want := range map[string]string{
		"a: 1\na: 2\n":        "x.yaml:2:1: ",
		"a: &x 1\n":           "an anchor or alias",
		"a: *x\n":             "x.yaml:1:4: ",
		"<<: {a: 1}\n":        "want a plain name",
		"1: a\n":              "want a plain name",
		"[a]: b\n":            "x.yaml:1:",
		"a: !!str b\n":        "a tagged value",
		"- a\n":               "the file is a list, want names",
		"a: 1\n---\nb: 2\n":   "a second document",
		"a: [1\n":             "x.yaml:",
		"a: \"\\q\"\n":        "x.yaml:",
		"a:\n\t- b\n":         "x.yaml:",
		"a: \x00\n":           "x.yaml:",
		"a: {b: {c: d}}\n":    "names with values",
		"{\"a\": 1, \"a\":2}": "x.yaml:1:",
	} {
		err := walk(body)
		if e := fault.From(err); e == nil || e.Code != "x_invalid" || e.Kind != fault.Usage || !strings.Contains(e.Error(), want) || strings.Contains(e.Error(), "\n") {
			t.Errorf("%q = %v, want %q", body, err, want)
		}
	}
}

// TestADeepFileIsRefusedAtOnce: the parser is not steady on such files, and its
// time grows with the square of the depth.
func TestADeepFileIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	var indented strings.Builder
	for i := range 1000 {
		indented.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	for name, body := range map[string]string{
		"lists": strings.Repeat("[", 1<<20), "mappings": strings.Repeat("{a: ", 1<<18), "dashes": strings.Repeat("- ", 1<<19),
		"keys": strings.Repeat("? ", 1<<19), "indented": indented.String(),
	} {
		if _, err := source.Parse([]byte(body)); err == nil || !strings.Contains(err.Error(), "deep") {
			t.Errorf("%s: %v, want that it is too deep", name, err)
		}
	}
	for name, body := range map[string]string{
		"a rule of dashes": "a: |\n  " + strings.Repeat("-", 500) + "\n", "a long line": "a: " + strings.Repeat("x - y ", 500) + "\n",
		"lists beside each other": "a: [" + strings.Repeat("[], ", 500) + "]\n",
	} {
		if _, err := source.Parse([]byte(body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: 1\n", "a: [b, {c: d}]\n", "{\"a\": \"\\u00e9\"}", "- - a\n", "a: |\n  b\n", "? a\n: b\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		root, err := source.Parse(body)
		if err == nil {
			err = descend(root, 0)
		}
		if e := fault.From(err); e != nil && (e.Code != "x_invalid" || !strings.HasPrefix(e.Error(), "x.yaml")) {
			t.Fatalf("an error without its file: %v", err)
		}
	})
}

// descend visits every value.
func descend(n strictyaml.Node, depth int) error {
	if items, ok := n.Items(); ok {
		for _, i := range items {
			if err := descend(i, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if _, ok := n.Text(); ok || n.Empty() {
		return nil
	}
	pairs, err := n.Pairs("a value")
	for _, p := range pairs {
		if err := descend(p.Value, depth+1); err != nil {
			return err
		}
	}
	return err
}
