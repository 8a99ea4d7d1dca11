package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/proveto/proveto/internal/fault"
)

var update = flag.Bool("update", false, "write the schema and the reference anew")

func must(t *testing.T, body string) *Document {
	t.Helper()
	d, err := Parse("proveto.yaml", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func load(t *testing.T, src Sources) *Config {
	t.Helper()
	c, err := Load(src)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaultsNeedNoFile(t *testing.T) {
	t.Parallel()
	got := load(t, Sources{})
	want := &Config{
		Prove:     Prove{Limit: -1},
		Gate:      Gate{0.8, 0, 0.2, "fail"},
		Isolation: Isolation{"limits", "none", 8 << 30, 512, 5 * time.Minute},
		Reports:   Reports{Formats: []string{"html", "json", "mutation"}},
		Store:     Store{},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if d, err := ReadFile(filepath.Join(t.TempDir(), "none.yaml"), LayerUser); d != nil || err != nil {
		t.Errorf("ReadFile of nothing = %v, %v, want neither a document nor an error", d, err)
	}
}

func TestTheStrongestLayerWinsAndIsNamed(t *testing.T) {
	t.Parallel()
	user, err := ParseUser("/home/ada/config.yaml", []byte("prove:\n  budget: 1m\n  limit: 1\n  min_strength: 0.1\nstore: {database_url: x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"PROVETO_PROVE_LIMIT": "3", "PROVETO_PROVE_MIN_STRENGTH": "0.3", "PROVETO_PROVE_TEST_ENV": "A=1,B=x=y", "PROVETO_DATABASE_URL": "postgres://u:pw@h/d"}
	c := load(t, Sources{
		User: user, Repository: must(t, "# a comment\nprove:\n  limit: 2\n  exclude:\n    - gen/**\n    - \"*.pb.go\"\n"),
		Env: func(k string) string { return env[k] }, Flags: map[string]string{"prove.min_strength": "0.4", "prove.operators": "result, boundary"},
	})
	want := Prove{Exclude: []string{"gen/**", "*.pb.go"}, Budget: time.Minute, Limit: 3, Operators: []string{"result", "boundary"}, MinStrength: 0.4, TestEnv: map[string]string{"A": "1", "B": "x=y"}}
	if diff := cmp.Diff(want, c.Prove); diff != "" {
		t.Errorf("prove (-want +got):\n%s", diff)
	}
	for key, want := range map[string]string{
		"prove.budget": "/home/ada/config.yaml:2:11", "prove.exclude": "proveto.yaml:4:3", "prove.limit": "$PROVETO_PROVE_LIMIT",
		"prove.min_strength": "--min-strength", "gate.min_proven": "default", "store.database_url": "$PROVETO_DATABASE_URL",
	} {
		if got := c.Origin(key).String(); got != want {
			t.Errorf("origin of %s = %s, want %s", key, got, want)
		}
	}
	if string(c.Store.DatabaseURL) != env["PROVETO_DATABASE_URL"] {
		t.Errorf("the database address is %q", string(c.Store.DatabaseURL))
	}
	for _, s := range c.Settings() {
		if strings.Contains(s.Value, "pw") {
			t.Errorf("%s shows the password: %s", s.Key.Name, s.Value)
		}
	}
	list := c.Settings()
	if len(list) != len(Keys()) {
		t.Fatalf("%d settings of %d keys", len(list), len(Keys()))
	}
	for i, k := range Keys() {
		value := map[string]string{"prove.limit": "3", "prove.budget": "1m", "gate.min_proven": "0.8", "prove.include": "", "store.database_url": "[redacted]"}
		got := list[i]
		if want, ok := value[k.Name]; got.Key.Name != k.Name || got.Origin != c.Origin(k.Name) || (ok && got.Value != want) {
			t.Errorf("setting %d is %s = %q (%s), want %s = %q", i, got.Key.Name, got.Value, got.Origin, k.Name, want)
		}
	}
	if got := fmt.Sprintf("%v %#v %v.", c.Store.DatabaseURL, c.Store.DatabaseURL, Secret("")); got != "[redacted] [redacted] ." {
		t.Errorf("secrets print as %s", got)
	}
	if out := fmt.Sprintf("%v %+v %#v", c.Store, c.Store, c.Store.DatabaseURL); strings.Contains(out, "pw") {
		t.Errorf("printing shows the password: %s", out)
	}
}

func TestMistakesAreNamedWithTheirPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, what, hint string }{
		{"unknown section", "prov:\n  limit: 1\n", "proveto.yaml:1:1: unknown section prov", "did you mean prove?"},
		{"unknown key", "prove:\n  limit: 1\n  buget: 5m\n", "proveto.yaml:3:3: unknown key prove.buget", "did you mean prove.budget?"},
		{"nothing near", "gate:\n  zzzzzz: 1\n", "proveto.yaml:2:3: unknown key gate.zzzzzz", "known here: min_proven, max_refuted, max_not_measured, on_unmeasured"},
		{"wrong word", "gate:\n  on_unmeasured: nope\n", `proveto.yaml:2:18: gate.on_unmeasured is "nope", want one of: note, fail`, "did you mean note?"},
		{"out of range", "gate: {min_proven: 80}\n", `proveto.yaml:1:20: gate.min_proven is "80", want a number from 0 to 1`, ""},
		{"not a number", "gate:\n  max_refuted: few\n", `proveto.yaml:2:16: gate.max_refuted is "few", want a whole number, at least 0`, ""},
		{"negative", "prove:\n  limit: -1\n", `proveto.yaml:2:10: prove.limit is "-1", want a whole number, at least 0`, ""},
		{"no unit", "prove:\n  budget: 60\n", `proveto.yaml:2:11: prove.budget is "60", want a duration such as 90s or 10m, at least 1s`, ""},
		{"too small", "isolation:\n  mem: 1MiB\n", `proveto.yaml:2:8: isolation.mem is "1MiB", want a size such as 512MiB or 4GiB, at least 16MiB`, ""},
		{"list for a word", "prove:\n  budget: [1m]\n", "proveto.yaml:2:3: prove.budget is a list, want a duration such as 90s or 10m, at least 1s", ""},
		{"word for a list", "prove:\n  include: a\n", "proveto.yaml:2:12: prove.include is the single value a, want a list of strings", ""},
		{"wrong entry", "prove:\n  operators: [result, bondary]\n", `proveto.yaml:2:23: prove.operators is "bondary", want a list of: result, condition, boundary, arithmetic, statement, constant`, "did you mean boundary?"},
		{"nested entry", "prove:\n  include:\n    - [a]\n", "proveto.yaml:3:7: an entry of prove.include is a list, want a string", ""},
		{"list for a section", "prove:\n  - a\n", "proveto.yaml:2:3: prove is a list, want names with values below it", ""},
		{"not a mapping", "hello\n", "proveto.yaml:1:1: the file is a string, want names with values below it", ""},
		{"alias", "prove:\n  budget: &b 1m\ngate: {}\n", "proveto.yaml:2:11: prove.budget is an anchor or alias, which is not read here, want a duration such as 90s or 10m, at least 1s", ""},
		{"two documents", "prove: {}\n---\ngate: {}\n", "proveto.yaml:3:5: a second document; one file has one", ""},
	} {
		_, err := Parse("proveto.yaml", []byte(c.body))
		var e *fault.Error
		if e = fault.From(err); e == nil || e.Kind != fault.Usage || e.Code != CodeInvalid {
			t.Errorf("%s: error %v, want usage, config_invalid", c.name, err)
			continue
		}
		if e.What != c.what || strings.Join(e.Hints, "|") != c.hint {
			t.Errorf("%s:\n got %s | %v\nwant %s | %s", c.name, e.What, e.Hints, c.what, c.hint)
		}
	}
	for name, body := range map[string]string{"syntax": "prove:\n  budget: \"1m\n", "twice": "prove:\n  limit: 1\n  limit: 2\n", "twice in one line": "prove: {limit: 1, limit: 2}\n", "section twice": "prove: {}\ngate: {}\nprove: {}\n", "tab": "prove:\n\tlimit: 1\n"} {
		_, err := Parse("proveto.yaml", []byte(body))
		if e := fault.From(err); e == nil || e.Code != CodeInvalid || !strings.HasPrefix(e.What, "proveto.yaml:") {
			t.Errorf("%s: error %v, want config_invalid with its place", name, err)
		}
	}
}

func TestFlagsAndVariablesOnlyTighten(t *testing.T) {
	t.Parallel()
	repo := must(t, "gate:\n  min_proven: 0.9\n  max_refuted: 2\n  max_not_measured: 0.1\n  on_unmeasured: note\nisolation:\n  min: landlock\n")
	for _, c := range []struct {
		key, value string
		ok         bool
	}{
		{"gate.min_proven", "0.95", true},
		{"gate.min_proven", "0.9", true},
		{"gate.min_proven", "0.85", false},
		{"gate.min_proven", "0", false},
		{"gate.max_refuted", "0", true},
		{"gate.max_refuted", "3", false},
		{"gate.max_not_measured", "0", true},
		{"gate.max_not_measured", "0.2", false},
		{"gate.on_unmeasured", "fail", true},
		{"isolation.min", "namespaces", true},
		{"isolation.min", "limits", false},
	} {
		k, _ := lookupKey(c.key)
		byFlag, errFlag := Load(Sources{Repository: repo, Flags: map[string]string{c.key: c.value}})
		_, errEnv := Load(Sources{Repository: repo, Env: func(n string) string {
			if n == k.Variable() {
				return c.value
			}
			return ""
		}})
		if (errFlag == nil) != c.ok || (errEnv == nil) != c.ok {
			t.Errorf("%s = %s: flag %v, variable %v, want allowed: %v", c.key, c.value, errFlag, errEnv, c.ok)
		}
		if !c.ok && !fault.Has(errFlag, CodeInvalid) {
			t.Errorf("%s = %s: error %v, want config_invalid", c.key, c.value, errFlag)
		}
		if c.ok && byFlag.Origin(c.key).Layer != LayerFlag {
			t.Errorf("%s = %s: origin %v, want the flag", c.key, c.value, byFlag.Origin(c.key))
		}
	}
	if _, err := Load(Sources{Flags: map[string]string{"gate.on_unmeasured": "note"}}); err == nil {
		t.Error("a flag turned a failure into a note")
	}
}

func TestUserKeysAreRefusedInARepository(t *testing.T) {
	t.Parallel()
	_, err := Load(Sources{Repository: must(t, "store:\n  database_url: postgres://u:pw@h/d\n")})
	if e := fault.From(err); e == nil || e.Code != CodeInvalid || !strings.HasPrefix(e.What, "proveto.yaml:2:17: store.database_url") || strings.Contains(e.What, "pw") {
		t.Errorf("error %v, want config_invalid with the place and without the address", err)
	}
}

func TestEveryKeyHasAFieldAndAValidDefault(t *testing.T) {
	t.Parallel()
	samples := map[Kind]string{Strings: "a", Map: "A=1", Text: "x", Integer: "700", Fraction: "1", Span: "48h", Size: "5TiB"}
	for _, k := range Keys() {
		text := samples[k.Kind]
		if len(k.Values) > 0 {
			text = k.Values[len(k.Values)-1]
		}
		if k.Tighten == "down" {
			text = "0"
		}
		c, err := Load(Sources{Flags: map[string]string{k.Name: text}})
		if err != nil {
			t.Errorf("%s = %s: %v", k.Name, text, err)
			continue
		}
		if diff := cmp.Diff(load(t, Sources{}), c, cmpopts.IgnoreUnexported(Config{})); diff == "" && text != k.Default {
			t.Errorf("setting %s = %s changes nothing", k.Name, text)
		}
	}
}

func TestSchemaAndReferenceAreGenerated(t *testing.T) {
	t.Parallel()
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]byte{"../../schemas/config-v1.schema.json": schema, "../../docs/configuration.md": []byte(Reference())} {
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the table of keys says (%v); go test ./internal/config -update", path, err)
		}
	}
}

// TestSchemaAgreesWithTheParser holds the two readers of the table together.
func TestSchemaAgreesWithTheParser(t *testing.T) {
	t.Parallel()
	body, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	comp := jsonschema.NewCompiler()
	if err := comp.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := comp.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		Example, "", "prove:\n", "prove: {limit: 0}\n", "isolation: {mem: 33554432}\n", "prove: {limit: -1}\n", "prov: {}\n", "gate: {min_proven: 2}\n",
		"gate: {on_unmeasured: x}\n", "prove: {budget: 60}\n", "prove: {operators: [x]}\n", "isolation: {pids: 0}\n", "isolation: {mem: 5}\n", "prove: {include: [[a]]}\n",
	} {
		var v any
		if err := yaml.Unmarshal([]byte(file), &v); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		v, err = jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		_, ours := Parse("proveto.yaml", []byte(file))
		if theirs := schema.Validate(v); (ours == nil) != (theirs == nil) {
			t.Errorf("%q: the parser says %v, the schema %v", file, ours, theirs)
		}
	}
}

func TestUserFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ xdg, home, want string }{
		{"/x", "/h", "/x/proveto/config.yaml"}, {"", "/h", "/h/.config/proveto/config.yaml"}, {"relative", "/h", "/h/.config/proveto/config.yaml"}, {"", "", ""},
	} {
		env := map[string]string{"XDG_CONFIG_HOME": c.xdg, "HOME": c.home}
		if got := UserFile(func(k string) string { return env[k] }); got != c.want {
			t.Errorf("UserFile(%q, %q) = %q, want %q", c.xdg, c.home, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{Example, "", "a: &x [*x]\n", "? [a]\n: b\n", "prove: !!map {}\n", "prove:\n  <<: {limit: 1}\n", "{", "\x00", "prove: |\n  x\n", "- \n-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Parse("f.yaml", []byte(s))
		if err != nil {
			if e := fault.From(err); e.Code != CodeInvalid {
				t.Fatalf("Parse(%q): code %s", s, e.Code)
			}
			return
		}
		if _, err := Load(Sources{Repository: d}); err != nil && !fault.Has(err, CodeInvalid) {
			t.Fatalf("Load(%q): %v", s, err)
		}
	})
}

func TestNumbersOfEitherKindCompare(t *testing.T) {
	t.Parallel()
	for want, v := range map[float64]value{0: {}, 0.95: {fraction: 0.95}, 7: {integer: 7}} {
		if got := v.number(); got != want {
			t.Errorf("number of %+v = %v, want %v", v, got, want)
		}
	}
}
