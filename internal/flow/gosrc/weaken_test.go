package gosrc

import (
	"fmt"
	"strings"
	"testing"
)

// src is a test file from the bodies of its declarations.
func src(body string) string {
	return "package p\n\nimport (\n\t\"testing\"\n\t\"github.com/stretchr/testify/assert\"\n)\n\n" + body
}

func test(body string) string { return src("func TestX(t *testing.T) {\n" + body + "\n}\n") }

func weakened(old, now map[string]string) []string {
	in := func(m map[string]string) (out []File) {
		for name, s := range m {
			out = append(out, File{name, []byte(s)})
		}
		return out
	}
	var out []string
	for _, w := range Weakened(in(old), in(now)) {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s: %s", w.Way, w.Test, w.Text)))
	}
	return out
}

const three = `
	if F(1) != 2 { t.Error("a") }
	if F(2) != 3 { t.Errorf("b") }
	assert.Equal(t, 4, F(3))`

func TestWeakenedAndItsHonestTwin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, now string
		want     string // the ways, with a part of the text; empty: an honest twin
	}{
		"nothing":             {test(three), test("\n// moved\n" + three), ""},
		"assertion removed":   {test(three), test(`if F(1) != 2 { t.Error("a") }`), "assertions TestX: assertions: 1 where it had 3"},
		"assertion commented": {test(three), test(strings.Replace(three, "assert", "// assert", 1)), "assertions TestX: assertions: 2 where it had 3"},
		"assertion to a log":  {test(three), test(strings.Replace(three, "t.Error(", "t.Log(", 1)), "assertions TestX"},
		"assertion edited":    {test(three), test(strings.Replace(three, "F(2) != 3", "F(2) != 5", 1)), ""},
		"assertion more":      {test(three), test(three + "\nassert.True(t, ok)"), ""},
		"table instead": {
			test(three), test(`for _, c := range []struct{in, out int}{{1, 2}, {2, 3}, {3, 4}} { if F(c.in) != c.out { t.Errorf("x") } }`), "",
		},
		"table in a variable, subtests": {
			test(three), test(`tests := map[string]int{"a": 1, "b": 2, "c": 3}
			for name, c := range tests { t.Run(name, func(t *testing.T) { if F(c) != 1 { t.Fatal() } }) }`), "",
		},
		"table of the package": {
			src("var tests = []int{1, 2, 3}\nfunc TestX(t *testing.T) { for _, c := range tests { assert.Equal(t, c, F(c)) } }"),
			src("var tests = []int{1}\nfunc TestX(t *testing.T) { for _, c := range tests { assert.Equal(t, c, F(c)) } }"),
			"assertions TestX: assertions: 1 where it had 3",
		},
		"rows removed":        {test(`for i := range []int{1, 2, 3} { assert.Equal(t, i, F(i)) }`), test(`for i := range []int{} { assert.Equal(t, i, F(i)) }`), "assertions TestX: assertions: 0 where it had 3"},
		"loop emptied":        {test(`for i := 0; i < 3; i++ { assert.Equal(t, i, F(i)) }`), test(`for i := 0; i < 0; i++ { assert.Equal(t, i, F(i)) }`), "assertions TestX: assertions: 0 where it had 3"},
		"loop over a number":  {test(three), test(`for i := range 3 { assert.Equal(t, i, F(i)) }`), ""},
		"helper in the file":  {test(three), src("func check(t *testing.T, a, b int) { t.Helper(); if a != b { t.Fatal() } }\nfunc TestX(t *testing.T) { check(t, 1, 2); check(t, 2, 3); check(t, 3, 4) }"), ""},
		"all in one helper":   {test(three), src("func all(t *testing.T) {" + three + "}\nfunc TestX(t *testing.T) { all(t) }"), ""},
		"helper emptied":      {src("func check(t *testing.T, a int) { if a != 1 { t.Fatal() } }\nfunc TestX(t *testing.T) { check(t, 1) }"), src("func check(t *testing.T, a int) { }\nfunc TestX(t *testing.T) { check(t, 1) }"), "assertions TestX: assertions: 0 where it had 1|assertions check: assertions: 0 where it had 1"},
		"closure":             {test(three), test(`check := func(a, b int) { if a != b { t.Error() } }; check(1, 2); check(2, 3); check(3, 4)`), ""},
		"closure not called":  {test(three), test("_ = func() {" + three + "\n}"), "assertions TestX: assertions: 0 where it had 3"},
		"closure of no use":   {test(three), test("f := func() {" + three + "\n}\n_ = 1"), "assertions TestX: assertions: 0 where it had 3"},
		"closure that recurs": {test(three), test("f := func() {" + three + "\nf() }\nf()"), ""},
		"assert.New":          {test(three), test("a := assert.New(t)\na.Equal(1, 2)\na.Equal(2, 3)\na.True(x)"), ""},
		"gomega":              {test(`Expect(1).To(Equal(2)); Expect(1).NotTo(Equal(2))`), test(`Expect(1).To(Equal(2))`), "assertions TestX: assertions: 1 where it had 2"},
		"after a return":      {test(three), test("return\n" + three), "skipped TestX: ways out|assertions TestX: assertions: 0"},
		"after true":          {test(three), test("if 1 == 1 { return }\n" + three), "assertions TestX: assertions: 0"},
		"below false":         {test(three), test("if false && x {" + three + "\n}"), "assertions TestX: assertions: 0"},
		"else of true":        {test(three), test("if !true { x() } else {" + three + "\n}"), ""},
		"error is no Error":   {test(`if err.Error() != "x" { t.Fatal() }`), test(`if err != nil { t.Fatal() }`), ""},

		"skipped":               {test(three), test("t.Skip(\"later\")\n" + three), "skipped TestX: skips: 1 where it had 0|assertions TestX: assertions: 0"},
		"skipped in short runs": {test(three), test("if testing.Short() { t.Skip() }\n" + three), "skipped TestX: skips: 1"},
		"skipped by a helper":   {test(three), src("func need(t testing.TB) { t.SkipNow() }\nfunc TestX(t *testing.T) { need(t)" + three + "}"), "skipped TestX: skips: 1"},
		"skip kept":             {test("if x { t.Skip() }" + three), test(three + "\nif y { t.Skip() }"), ""},
		"left early":            {test(three), test("if os.Getenv(\"CI\") != \"\" { return }\n" + three), "skipped TestX: ways out that assert nothing: 1"},
		"row left out":          {test("for _, c := range cs {" + three + "\n}"), test("for _, c := range cs { if c.hard { continue }\n" + three + "\n}"), "skipped TestX: ways out"},
		"left after a failure":  {test(three), test("if err != nil { t.Error(err); return }\n" + three), ""},
		"a way out in a helper": {test(three), test(three + "\nf := func(a int) int { if a > 1 { return 2 }; return 1 }\nf(1)"), ""},
		"build constraint":      {test(three), "//go:build integration\n\n" + test(three), "skipped TestX: it is built only under integration"},
		"constraint dropped":    {"//go:build linux\n\n" + test(three), test(three), ""},
		"old style constraint":  {test(three), "// +build ignore\n\n" + test(three), "skipped TestX: it is built only under ignore"},
		"example not run":       {src("func ExampleX() {\n\tF()\n\t// Output: 1\n}"), src("func ExampleX() {\n\tF()\n}"), "skipped ExampleX"},
		"example unordered":     {src("func ExampleX() {\n\tF()\n\t// Output: 1\n}"), src("func ExampleX() {\n\tF()\n\t// Unordered output: 1\n}"), "assertions ExampleX: the order"},
		"example edited":        {src("func ExampleX() {\n\tF()\n\t// Output: 1\n}"), src("func ExampleX() {\n\tF()\n\t// Output: 2\n}"), ""},

		"test removed":      {test(three), src("func TestY(t *testing.T) {" + three + "}"), "removed TestX"},
		"test renamed away": {test(three), src("func testX(t *testing.T) {" + three + "}"), "removed TestX"},
		"test added":        {test(three), test(three) + "func TestY(t *testing.T) { t.Skip() }", ""},
		"helper removed":    {src("func check(t *testing.T) { t.Fatal() }\n"), src(""), ""},

		"InDelta":            {test("assert.InDelta(t, a, b, 0.01)"), test("assert.InDelta(t, a, b, 0.1)"), "tolerance TestX: InDelta is 0.1 where it was 0.01"},
		"InDelta narrower":   {test("assert.InDelta(t, a, b, 0.1)"), test("assert.InDelta(t, a, b, 0.01)"), ""},
		"difference":         {test("if math.Abs(a-b) > 1e-9 { t.Error() }"), test("if math.Abs(a-b) > 1e-3 { t.Error() }"), "tolerance TestX: the bound of a difference is 0.001 where it was 1e-09"},
		"duration":           {test("assert.WithinDuration(t, a, b, time.Second)"), test("assert.WithinDuration(t, a, b, 2*time.Minute)"), "tolerance TestX: WithinDuration is 1.2e+11"},
		"local tolerance":    {test("eps := 0.1\nif d > eps { t.Error() }"), test("eps := 10.0\nif d > eps { t.Error() }"), "tolerance TestX: eps is 10 where it was 0.1"},
		"constant":           {src("const tolerance = 1e-9"), src("const tolerance = 1"), "tolerance : tolerance is 1 where it was 1e-09"},
		"field of a table":   {test("x := []c{{tol: 0.1}, {tol: 0.2}}\n_ = x"), test("x := []c{{tol: 0.1}, {tol: 0.3}}\n_ = x"), "tolerance TestX: the field tol is 0.3 where it was 0.2"},
		"one tolerance more": {test("assert.InDelta(t, a, b, 0.1)"), test("assert.InDelta(t, a, b, 0.1)\nassert.InDelta(t, c, d, 0.05)"), ""},

		"TestMain added":   {src(""), src("func TestMain(m *testing.M) { os.Exit(0) }"), "hook : TestMain is new"},
		"TestMain changed": {src("func TestMain(m *testing.M) { os.Exit(m.Run()) }"), src("func TestMain(m *testing.M) { m.Run() }"), "hook : TestMain changed"},
		"TestMain removed": {src("func TestMain(m *testing.M) { os.Exit(m.Run()) }"), src(""), "hook : TestMain is removed"},
		"TestMain kept":    {src("func TestMain(m *testing.M) { os.Exit(m.Run()) }"), src("// It runs.\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}"), ""},
		"init":             {src(""), src("func init() { os.Exit(0) }"), "hook : init is new"},
		"call at start":    {src(""), src("var _ = func() int { os.Exit(0); return 0 }()"), "hook : variable _ is new"},
		"conversion":       {src(""), src("var _ I = T{}\nvar _ J = (*T)(nil)"), ""},

		"does not parse": {test(three), "package p\nfunc (", "removed TestX: the test is removed|unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := weakened(map[string]string{"p/x_test.go": c.old}, map[string]string{"p/x_test.go": c.now})
			var want []string
			if c.want != "" {
				want = strings.Split(c.want, "|")
			}
			left := map[string]bool{}
			for _, g := range got {
				left[g] = true
			}
			for _, w := range want {
				found := false
				for g := range left {
					if strings.HasPrefix(g, w) {
						delete(left, g)
						found = true
						break
					}
				}
				if !found {
					t.Errorf("%q is not said", w)
				}
			}
			if len(left) > 0 {
				t.Errorf("said beside what is wanted: %v", left)
			}
		})
	}
}

func TestWeakenedAcrossFiles(t *testing.T) {
	t.Parallel()
	two := "package p_test\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Log() }\n"
	for name, c := range map[string]struct {
		old, now map[string]string
		want     string
	}{
		"moved":                          {map[string]string{"p/a_test.go": test(three)}, map[string]string{"p/b_test.go": test(three)}, ""},
		"moved to another directory":     {map[string]string{"p/a_test.go": test(three)}, map[string]string{"q/a_test.go": test(three)}, "removed TestX: the test is removed"},
		"deleted":                        {map[string]string{"p/a_test.go": test(three)}, nil, "removed TestX: the test is removed"},
		"moved to a file of one system":  {map[string]string{"p/a_test.go": test(three)}, map[string]string{"p/a_windows_test.go": test(three)}, "skipped TestX: it is built only under windows"},
		"named after a system":           {map[string]string{"p/a_test.go": test(three)}, map[string]string{"p/linux_test.go": test(three)}, ""},
		"moved out of the go command":    {map[string]string{"p/a_test.go": test(three)}, map[string]string{"p/_a_test.go": test(three)}, "removed TestX: the test is removed"},
		"moved to testdata":              {map[string]string{"p/a_test.go": test(three)}, map[string]string{"p/testdata/a_test.go": test(three)}, "removed TestX: the test is removed"},
		"moved to the external tests":    {map[string]string{"p/a_test.go": test(three)}, map[string]string{"p/a_test.go": strings.Replace(test(three), "package p", "package p_test", 1)}, ""},
		"hidden by one of the same name": {map[string]string{"p/a_test.go": test(three)}, map[string]string{"p/a_test.go": test(""), "p/b_test.go": strings.Replace(test(three), "package p", "package p_test", 1)}, "assertions TestX: assertions: 0 where it had 3"},
		"one of the same name for each system": {
			map[string]string{"p/a_linux_test.go": test(three), "p/a_windows_test.go": two},
			map[string]string{"p/a_linux_test.go": test(three), "p/a_windows_test.go": two},
			"",
		},
	} {
		if got := strings.Join(weakened(c.old, c.now), "|"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func FuzzWeakened(f *testing.F) {
	f.Add(test(three))
	f.Add(test("for i := 0; i < 1e99; i++ { for range 1 << 60 { t.Fatal(1/0) } }\nswitch { case 1/0 > 2: t.Error() }"))
	f.Add(src("func TestMain(m *testing.M) {}\nfunc (x T) TestY(t *testing.T) {}\nfunc ExampleX() {\n// Output:\n}\nvar tol, eps = 1, 2\nfunc f(t *testing.T) { f(t) }"))
	f.Fuzz(func(t *testing.T, body string) {
		in := []File{{"p/x_test.go", []byte(body)}, {"p/x.go", []byte(body)}}
		for _, w := range Weakened(in, in) {
			if w.Way != Unreadable {
				t.Fatalf("%q is weaker than itself: %v", body, w)
			}
		}
		Exported(in)
	})
}
