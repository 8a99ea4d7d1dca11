package plan

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proveto/proveto/internal/fault"
)

// sample is the example of the format, in full.
func sample(t tester) string {
	t.Helper()
	b, err := os.ReadFile("testdata/oauth.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func parse(t tester, text string) *Contract {
	t.Helper()
	c, err := Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ptr[T any](v T) *T { return &v }

func TestParseReadsEveryField(t *testing.T) {
	t.Parallel()
	want := &Contract{
		Version: 1, Goal: "Add OAuth login", Kind: Behaviour,
		Requirements: []Requirement{{ID: "R1", Text: "Expired tokens are refused", Acceptance: []Acceptance{
			{ID: "A1", Test: "auth/oauth_test.go::TestExpiredToken", Before: Fails},
			{ID: "A2", Grader: "graders/oauth", Min: ptr(0.9)},
			{ID: "A3", Command: []string{"make", "e2e"}},
			{ID: "A4", Human: "The login page reads well", Role: "reviewer"},
		}}},
		Scope: []Rule{
			{ID: "S1", Paths: []string{"auth/**"}, Ops: []Op{Create, Modify}, For: []string{"R1"}, MaxAdded: ptr(600)},
			{ID: "S2", Paths: []string{"go.mod", "go.sum"}, Ops: []Op{Modify}, For: []string{"R1"}},
			{ID: "S3", Paths: []string{"auth/oauth_test.go"}, Ops: []Op{Create}, For: []string{"R1", "I1"}, Required: true},
		},
		Dependencies: Dependencies{Add: []string{"golang.org/x/oauth2"}},
		Interfaces:   []Interface{{Symbol: "auth.Login", Change: SymbolAdd}},
		Invariants:   []Invariant{{ID: "I1", Suite: "all"}},
		Budget:       Budget{Files: ptr(12), Added: ptr(900), Deleted: ptr(200), Rounds: ptr(5), USD: ptr(4.0), Wall: Span(2 * 3600e9)},
		NonGoals:     []string{"SAML"},
		Risk:         Medium,
	}
	if diff := cmp.Diff(want, parse(t, sample(t))); diff != "" {
		t.Error(diff)
	}
}

func TestContractCanonicalFormIsFrozen(t *testing.T) {
	t.Parallel()
	c := parse(t, sample(t))
	got, err := c.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/oauth.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
		t.Error(diff)
	}
	id, err := c.ID()
	if err != nil || id != "plan_c7981bb5225ab14e336e90e7140366773689e29c6af81b61dcb34844bdbb64c3" {
		t.Errorf("ID is %s (%v)", id, err)
	}
	if _, err := ParseID(string(id)); err != nil {
		t.Error(err)
	}
}

func TestContractMeaningNotFormMakesTheID(t *testing.T) {
	t.Parallel()
	id := func(text string) ID {
		id, err := parse(t, text).ID()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	a := id("version: 1\ngoal: g\nbudget: {wall: 120m, usd: 4}\n")
	for _, same := range []string{
		"goal: \"g\" # a comment\nversion: 1\nkind: behaviour\nrisk: medium\nbudget: {usd: 4.0, wall: 2h}\n",
		`{"version": 1, "goal": "g", "budget": {"usd": 4, "wall": "7200s"}}`,
	} {
		if id(same) != a {
			t.Errorf("%q has another id", same)
		}
	}
	for _, other := range []string{
		"version: 1\ngoal: h\nbudget: {wall: 2h, usd: 4}\n",
		"version: 1\ngoal: g\nbudget: {wall: 2h, usd: 5}\n",
		"version: 1\ngoal: g\nbudget: {wall: 2h, usd: 4, rounds: 0}\n",
	} {
		if id(other) == a {
			t.Errorf("%q has the same id", other)
		}
	}
}

func TestParseReadsJSONEscapes(t *testing.T) {
	t.Parallel()
	c := parse(t, `{"version": 1, "goal": "caf\u00e9 \ud83d\ude00 a\/b \\ud83d\\ude00 \"q\"\ttab"}`)
	if want := "caf\u00e9 \U0001f600 a/b \\ud83d\\ude00 \"q\"\ttab"; c.Goal != want {
		t.Errorf("goal is %q, want %q", c.Goal, want)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	head := "version: 1\ngoal: g\n"
	for _, c := range []struct{ text, says, hint string }{
		{"", "is empty", "flow plan new"},
		{"# nothing\n", "is empty", ""},
		{"goal: g\n", "has no version", ""},
		{"version: 2\ngoal: g\n", "version is 2, want 1", ""},
		{"version: 1\ngoal: \"  \"\n", "plan.yaml:2:7: goal is blank", ""},
		{"version: 1\ngoal:\n", "plan.yaml:2:1: goal of the contract is empty", ""},
		{head + "gaol: x\n", "plan.yaml:3:1: unknown key of the contract gaol", "did you mean goal?"},
		{head + "scope:\n  - {id: S1, path: [a], ops: [modify]}\n", "plan.yaml:4:14: unknown key of a scope rule path", "did you mean paths?"},
		{head + "scope: [{id: S1, paths: [a], ops: [modfy]}]\n", `an operation is "modfy", want one of: create, modify, delete, rename, mode`, "did you mean modify?"},
		{head + "scope: [{id: S1, paths: [a], ops: [type]}]\n", `an operation is "type"`, ""},
		{head + "scope: [{id: S1, paths: [/a], ops: [modify]}]\n", "begin at the root", ""},
		{head + "scope: [{id: S1, paths: [\"!a\"], ops: [modify]}]\n", "no negation", ""},
		{head + "scope: [{id: S1, paths: [], ops: [modify]}]\n", "names no paths", ""},
		{head + "scope: [{id: S1, paths: [a], ops: []}]\n", "allows no operation", ""},
		{head + "scope: [{id: S1, ops: [modify]}]\n", "a scope rule has no paths", ""},
		{head + "scope: [{id: S 1, paths: [a], ops: [modify]}]\n", "the id \"S 1\"", ""},
		{head + "scope: {}\n", "want a list", ""},
		{head + "kind: feature\n", "want one of: behaviour, refactor, docs, config", ""},
		{head + "risk: none\n", "want one of: low, medium, high", ""},
		{head + "requirements: [{id: R1}]\n", "a requirement has no text", ""},
		{head + "requirements: [{id: R1, text: t, acceptance: [{id: A1}]}]\n", "has 0 of test, grader, command and human", ""},
		{head + "requirements: [{id: R1, text: t, acceptance: [{id: A1, test: a_test.go::T, before: fails, human: x, role: r}]}]\n", "has 2 of", ""},
		{head + "requirements: [{id: R1, text: t, acceptance: [{id: A1, test: a_test.go::T}]}]\n", "has a test and no before", ""},
		{head + "requirements: [{id: R1, text: t, acceptance: [{id: A1, test: a_test.go, before: fails}]}]\n", "want path::name", ""},
		{head + "requirements: [{id: R1, text: t, acceptance: [{id: A1, grader: g}]}]\n", "has a grader and no min", ""},
		{head + "requirements: [{id: R1, text: t, acceptance: [{id: A1, command: [x], min: 1}]}]\n", "has min and no grader", ""},
		{head + "requirements: [{id: R1, text: t, acceptance: [{id: A1, human: x}]}]\n", "names no role", ""},
		{head + "interfaces: [{symbol: a.B, change: new}]\n", "want one of: add, modify, remove", ""},
		{head + "invariants: [{id: I1}]\n", "an invariant has no suite", ""},
		{head + "budget: {files: -1}\n", "want a whole number from 0", ""},
		{head + "budget: {files: 1.5}\n", "want a whole number from 0", ""},
		{head + "budget: {usd: .inf}\n", "want a number from 0", ""},
		{head + "budget: {usd: 0x10}\n", "want a number from 0", ""},
		{head + "budget: {wall: 2}\n", "want a duration", ""},
		{head + "budget: {wall: 2d}\n", "want a duration", ""},
		{head + "note: n\nkind: docs\n", "plan.yaml:4:1: kind stands beside a note", ""},
		{head + "goal: h\n", "goal", ""},
		{head + "non_goals: [&a x, *a]\n", "anchor", ""},
		{head + "---\nversion: 1\n", "second document", ""},
		{"[1]\n", "want names with values", ""},
		{"\xff", "UTF-8", ""},
		{head + "x: " + strings.Repeat("a", MaxBytes), "bytes long", ""},
		{strings.Repeat("[", 100000), "deep", ""},
	} {
		_, err := Parse("plan.yaml", []byte(c.text))
		if !fault.Has(err, CodeInvalid) || fault.From(err).Kind.Exit() != 64 || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Parse(%.60q) = %v, want plan_invalid that says %q", c.text, err, c.says)
			continue
		}
		if hints := strings.Join(fault.From(err).Hints, "\n"); !strings.Contains(hints, c.hint) {
			t.Errorf("Parse(%.60q) hints %q, want %q", c.text, hints, c.hint)
		}
	}
}

func TestManual(t *testing.T) {
	t.Parallel()
	c := Manual("do\nit", "")
	b, err := c.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"goal":"do\nit","note":"","version":1}`; string(b) != want {
		t.Errorf("canonical form is %s, want %s", b, want)
	}
	if diff := cmp.Diff(c, parse(t, string(b))); diff != "" {
		t.Error(diff)
	}
	if !c.IsManual() || parse(t, "version: 1\ngoal: g\n").IsManual() {
		t.Error("IsManual does not tell the two apart")
	}
}

func TestRiskIsRaisedNeverLowered(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]Risk{{Low, High, High}, {High, Low, High}, {Medium, Medium, Medium}, {Low, Medium, Medium}} {
		if got := c[0].Raised(c[1]); got != c[2] {
			t.Errorf("%s raised to %s is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// contracts draws contracts that Parse can have read.
func contracts() *rapid.Generator[*Contract] {
	id := rapid.StringMatching(`[A-Z][0-9a-z._-]{0,4}`)
	words := rapid.StringMatching(`[^\s\x00-\x1f\x7f\x{85}\x{feff}\x{fffd}]([^\x00-\x08\x0b-\x1f\x7f\x{85}\x{fffd}]{0,12}[^\s\x00-\x1f\x7f\x{85}\x{feff}\x{fffd}])?`).Filter(func(s string) bool { return strings.TrimSpace(s) != "" })
	number := rapid.Custom(func(t *rapid.T) *int {
		if rapid.Bool().Draw(t, "set") {
			return ptr(rapid.IntRange(0, maxCount).Draw(t, "n"))
		}
		return nil
	})
	return rapid.Custom(func(t *rapid.T) *Contract {
		c := &Contract{
			Version: 1, Goal: words.Draw(t, "goal"),
			Kind: Kind(rapid.SampledFrom(kinds).Draw(t, "kind")), Risk: Risk(rapid.SampledFrom(risks).Draw(t, "risk")),
			Budget: Budget{Files: number.Draw(t, "files"), Rounds: number.Draw(t, "rounds")},
		}
		if rapid.Bool().Draw(t, "usd") {
			c.Budget.USD = ptr(rapid.Float64Range(0, 1e9).Draw(t, "usd"))
		}
		c.Budget.Wall = Span(rapid.Int64Range(0, 1e6).Draw(t, "wall") * 1e9)
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			c.Scope = append(c.Scope, Rule{
				ID: id.Draw(t, "rule"), Paths: rapid.SliceOfN(patterns(), 1, 2).Draw(t, "paths"),
				Ops: []Op{Create}, For: rapid.SliceOfN(id, 1, 2).Draw(t, "for"), MaxAdded: number.Draw(t, "max"), Required: rapid.Bool().Draw(t, "required"),
			})
		}
		for range rapid.IntRange(0, 2).Draw(t, "requirements") {
			c.Requirements = append(c.Requirements, Requirement{ID: id.Draw(t, "r"), Text: words.Draw(t, "text"), Acceptance: []Acceptance{
				{ID: id.Draw(t, "a"), Command: rapid.SliceOfN(words, 1, 3).Draw(t, "argv")},
			}})
		}
		if n := rapid.SliceOfN(words, 0, 2).Draw(t, "non_goals"); len(n) > 0 {
			c.NonGoals = n
		}
		return c
	})
}

func TestParseReadsBackTheCanonicalForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := contracts().Draw(t, "contract")
		b, err := c.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("plan.json", b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if diff := cmp.Diff(c, back); diff != "" {
			t.Fatalf("%s\n%s", b, diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample(f)))
	f.Add([]byte(`{"version":1,"goal":"a\u0085\ud83d\ude00","note":"n"}`))
	f.Add([]byte("version: 1\ngoal: |\n  a\n  b\nbudget: {wall: 90s}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := Parse("plan.yaml", body)
		if err != nil {
			if !fault.Has(err, CodeInvalid) {
				t.Fatalf("%q: %v has another code", body, err)
			}
			return
		}
		b, err := c.Canonical()
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if !json.Valid(b) {
			t.Fatalf("%q: %s is no JSON", body, b)
		}
		back, err := Parse("plan.json", b)
		if err != nil {
			t.Fatalf("%q: %s: %v", body, b, err)
		}
		if diff := cmp.Diff(c, back); diff != "" {
			t.Fatalf("%q\n%s", body, diff)
		}
	})
}

func TestToken(t *testing.T) {
	t.Parallel()
	plan := ID("plan_" + strings.Repeat("ab", 32))
	leaf := "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	got, err := NewToken(plan, leaf)
	// printf 'proveto/plan-token/v1\nplan_abab…\nAAEC…' | sha256sum
	if want := Token("pt_6a5064b333ffddbdc91c8ae52d58b1e37d4aa9d3211978078d671a6e7d8687d0"); err != nil || got != want {
		t.Errorf("token is %s (%v), want %s", got, err, want)
	}
	for _, bad := range []struct{ plan, leaf string }{
		{"plan_", leaf}, {string(plan), ""}, {string(plan), leaf[4:]}, {string(plan), leaf + "\n"}, {strings.ToUpper(string(plan)), leaf},
	} {
		if got, err := NewToken(ID(bad.plan), bad.leaf); err == nil {
			t.Errorf("NewToken(%q, %q) = %s, want an error", bad.plan, bad.leaf, got)
		}
	}
	if err := got.Accept(string(got)); err != nil {
		t.Error(err)
	}
	for presented, code := range map[string]fault.Code{
		"":                              CodeTokenMissing,
		string(got) + "\n":              CodeTokenInvalid,
		" " + string(got):               CodeTokenInvalid,
		string(got[:20]):                CodeTokenInvalid,
		strings.ToUpper(string(got)):    CodeTokenInvalid,
		"pt_" + strings.Repeat("0", 64): CodeTokenInvalid,
	} {
		if err := got.Accept(presented); !fault.Has(err, code) || fault.From(err).Kind.Exit() != 1 {
			t.Errorf("Accept(%q) = %v, want %s", presented, err, code)
		}
	}
	if err := Token("").Accept("pt_x"); !fault.Has(err, CodeTokenInvalid) {
		t.Errorf("without a plan a token is accepted: %v", err)
	}
	if err := Token("").Accept(""); err == nil {
		t.Error("without a plan no token is accepted as one")
	}
}
