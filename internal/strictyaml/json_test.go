package strictyaml

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plain is what a node says, without its place.
func plain(t *testing.T, n Node) any {
	t.Helper()
	if items, ok := n.Items(); ok {
		out := []any{}
		for _, x := range items {
			out = append(out, plain(t, x))
		}
		return out
	}
	if n.IsMapping() {
		pairs, err := n.Pairs("it")
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]any{}
		for _, p := range pairs {
			out[p.Name] = plain(t, p.Value)
		}
		return out
	}
	if s, ok := n.Text(); ok {
		return []any{n.Kind(), s}
	}
	return n.Kind()
}

func TestJSONSaysWhatTheSameTextSaysAsYAML(t *testing.T) {
	t.Parallel()
	src := Source{Name: "x", Code: "config_invalid"}
	for _, text := range []string{
		`{"a":1,"b":[true,false,null,"true","1",""],"c":{"d":{"e":[]}},"f":-1.5,"g":"\"q\" \\ é"}`,
		`[]`, `{}`, `"word"`, `12`, `{"big":12345678901234567890,"n":0}`,
	} {
		a, err := src.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		b, err := src.ParseJSON([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if d := cmp.Diff(plain(t, a), plain(t, b)); d != "" {
			t.Errorf("%s (-yaml +json):\n%s", text, d)
		}
	}
}

func TestJSONThatIsNone(t *testing.T) {
	t.Parallel()
	src := Source{Name: "x", Code: "config_invalid"}
	for _, text := range []string{
		`{`, `{"a":1} {}`, `[1,]`, `{"a" 1}`, "", "\"\xff\"", strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2),
	} {
		if n, err := src.ParseJSON([]byte(text)); err == nil {
			t.Errorf("%.40q is taken for %s", text, n.Kind())
		}
	}
	n, err := src.ParseJSON([]byte(`{"a":1,"a":2}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Pairs("it"); err == nil {
		t.Error("one name twice is taken")
	}
}
