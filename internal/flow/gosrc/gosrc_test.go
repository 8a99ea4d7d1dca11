package gosrc

import (
	"fmt"
	"strings"
	"testing"
)

func symbols(t *testing.T, files ...string) map[string]string {
	t.Helper()
	var in []File
	for i := 0; i < len(files); i += 2 {
		in = append(in, File{files[i], []byte(files[i+1])})
	}
	all, problems := Exported(in)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	out := map[string]string{}
	for _, s := range all {
		out[s.Path] = string(s.Digest)
	}
	return out
}

func TestExportedNames(t *testing.T) {
	t.Parallel()
	all, problems := Exported([]File{
		{"auth/a.go", []byte("package auth\n\ntype Server struct{}\nfunc (s *Server) Close() {}\nfunc (s Server) open() {}\nfunc Login() {}\nfunc help() {}\ntype low int\nfunc (l low) Up() {}\nconst A, b = 1, 2\nvar V int\ntype G[T any] struct{}\nfunc (g *G[T]) Do() {}\n")},
		{"auth/a_test.go", []byte("package auth\nfunc TestX(t *testing.T) {}\n")},
		{"cmd/main.go", []byte("package main\nfunc Run() {}\n")},
		{"testdata/x.go", []byte("broken")},
		{"vendor/x/x.go", []byte("broken")},
		{"_x/x.go", []byte("broken")},
	})
	var got []string
	for _, s := range all {
		got = append(got, fmt.Sprintf("%s %s %s:%d", s.Name, s.Path, s.File, s.Line))
	}
	want := `auth.A auth.A auth/a.go:10
auth.G auth.G auth/a.go:12
auth.G.Do auth.G.Do auth/a.go:13
auth.Login auth.Login auth/a.go:6
auth.Server auth.Server auth/a.go:3
auth.Server.Close auth.Server.Close auth/a.go:4
auth.V auth.V auth/a.go:11`
	if g := strings.Join(got, "\n"); g != want || problems != nil {
		t.Errorf("got:\n%s\n%v", g, problems)
	}
	if _, problems := Exported([]File{{"a.go", []byte("package a\n\nfunc (\n")}}); len(problems) != 1 || problems[0].Line == 0 {
		t.Errorf("a file that does not parse gives %v", problems)
	}
}

func TestExportedDigest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, now string
		same     bool
	}{
		"body":                {"func F() int { return 1 }", "func F() int { return 2 }", true},
		"comment and layout":  {"func F(a int, b string) {}", "// F does.\nfunc F(\n\ta int,\n\tb string,\n) {\n}", true},
		"names of parameters": {"func F(a, b int) (c error) { return }", "func F(x int, y int) error { return nil }", true},
		"type of a parameter": {"func F(a int) {}", "func F(a int64) {}", false},
		"a parameter more":    {"func F(a int) {}", "func F(a, b int) {}", false},
		"result":              {"func F() {}", "func F() error { return nil }", false},
		"receiver":            {"type T int\nfunc (t T) F() {}", "type T int\nfunc (t *T) F() {}", false},
		"unexported field":    {"type F struct{ A int; b int }", "type F struct{ A int; b, c string }", true},
		"exported field":      {"type F struct{ A int }", "type F struct{ A, B int }", false},
		"tag":                 {"type F struct{ A int `json:\"a\"` }", "type F struct{ A int `json:\"b\"` }", false},
		"interface":           {"type F interface{ A() }", "type F interface{ A(); B() }", false},
		"alias":               {"type F int", "type F = int", false},
		"constant":            {"const F = 1", "const F = 2", false},
		"iota":                {"const (\n\tX = iota\n\tF\n)", "const (\n\tX = iota\n\tY\n\tF\n)", false},
		"message of an error": {"var F = errors.New(\"a\")", "var F = fmt.Errorf(\"b\")", true},
		"table":               {"var F = []int{1}", "var F = []int{1, 2}", true},
		"type of a table":     {"var F = []int{1}", "var F = []string{}", false},
		"type of a variable":  {"var F int", "var F string", false},
	} {
		a, b := symbols(t, "p/a.go", "package p\n"+c.old), symbols(t, "p/b.go", "package p\n"+c.now)
		same := true
		for at, d := range a {
			same = same && (strings.HasSuffix(at, ".X") || b[at] == d)
		}
		if same != c.same {
			t.Errorf("%s: the views are the same: %v, want %v", name, same, c.same)
		}
	}
}

func TestExportedSymbolOfTwoSystemsIsOne(t *testing.T) {
	t.Parallel()
	a := symbols(t, "p/a_linux.go", "package p\nfunc F() int { return 1 }", "p/a_darwin.go", "package p\nfunc F() int { return 2 }")
	b := symbols(t, "p/a_linux.go", "package p\nfunc F() int { return 1 }", "p/a_darwin.go", "package p\nfunc F() string { return \"\" }")
	if len(a) != 1 || a["p.F"] == b["p.F"] {
		t.Errorf("got %v and %v", a, b)
	}
}
