package source

import (
	"fmt"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
	"pgregory.net/rapid"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

// scanSource reads one package of one file without imports: the same path as
// [Load], without the go command.
func scanSource(t interface{ Fatalf(string, ...any) }, dir, src string) *lang.Scan {
	name := filepath.Join(dir, "p.go")
	if err := os.WriteFile(name, []byte(src), 0o644); err != nil {
		t.Fatalf("%v", err)
	}
	p := &packages.Package{ID: "example.com/p", PkgPath: "example.com/p", Name: "p", Dir: dir, GoFiles: []string{name}, TypesSizes: types.SizesFor("gc", "amd64")}
	m := &module{
		req: Request{Root: dir, Out: filepath.Join(dir, "out"), Project: lang.Project{Dir: ".", Name: "example.com/p"}}, dir: dir, path: "example.com/p",
		roots: []*packages.Package{p}, all: map[string]*packages.Package{p.ID: p},
	}
	m.sort()
	facts, _, _, err := m.readAll()
	if err != nil {
		t.Fatalf("%v", err)
	}
	s, err := m.join(facts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if len(s.Problems) > 0 {
		t.Fatalf("problems %+v in\n%s", s.Problems, src)
	}
	return s
}

func digests(s *lang.Scan) map[string]evidence.Digest {
	out := map[string]evidence.Digest{}
	for _, x := range s.Symbols {
		out[descriptors(x.ID)] = x.Digest
	}
	return out
}

// changed lists the symbols whose digests differ, sorted.
func changed(a, b map[string]evidence.Digest) []string {
	out := []string{}
	for k, d := range a {
		if b[k] != d {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// program is a random package: declarations that refer to each other, and
// functions that use them.
type program struct {
	kinds []string // const, var, type
	lits  []int
	refs  [][]int // of declarations to declarations
	funcs [][]int
	flits []int
}

func (p *program) name(i int) string { return strings.ToUpper(p.kinds[i][:1]) + fmt.Sprint(i) }

func genProgram(t *rapid.T) *program {
	p := &program{}
	n := rapid.IntRange(1, 9).Draw(t, "declarations")
	for i := range n {
		p.kinds = append(p.kinds, rapid.SampledFrom([]string{"const", "var", "type"}).Draw(t, "kind"))
		p.lits = append(p.lits, 10*i)
	}
	for i := range n {
		var refs []int
		for _, j := range rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(3, n), rapid.ID).Draw(t, "refs") {
			switch {
			case p.kinds[i] == "type" && p.kinds[j] == "type", // circles are allowed
				j < i && p.kinds[i] == "const" && p.kinds[j] == "const",
				j < i && p.kinds[i] == "var":
				refs = append(refs, j)
			}
		}
		p.refs = append(p.refs, refs)
	}
	for range rapid.IntRange(1, 5).Draw(t, "functions") {
		p.funcs = append(p.funcs, rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(3, n), rapid.ID).Draw(t, "uses"))
		p.flits = append(p.flits, 0)
	}
	return p
}

func (p *program) source() string {
	b := &strings.Builder{}
	fmt.Fprintln(b, "package p")
	for i, kind := range p.kinds {
		switch kind {
		case "const":
			fmt.Fprintf(b, "const %s = %d", p.name(i), p.lits[i])
			for _, j := range p.refs[i] {
				fmt.Fprintf(b, " + %s", p.name(j))
			}
		case "var":
			fmt.Fprintf(b, "var %s = []any{%d", p.name(i), p.lits[i])
			for _, j := range p.refs[i] {
				fmt.Fprintf(b, ", %s", p.use(j))
			}
			fmt.Fprint(b, "}")
		case "type":
			fmt.Fprintf(b, "type %s struct { f%d int", p.name(i), p.lits[i])
			for k, j := range p.refs[i] {
				fmt.Fprintf(b, "; g%d *%s", k, p.name(j))
			}
			fmt.Fprint(b, "}")
		}
		fmt.Fprintln(b)
	}
	for i, uses := range p.funcs {
		fmt.Fprintf(b, "func F%d() (int, []any) {\nif true { println(%d) }\nreturn 1, []any{", i, p.flits[i])
		for k, j := range uses {
			if k > 0 {
				fmt.Fprint(b, ", ")
			}
			fmt.Fprint(b, p.use(j))
		}
		fmt.Fprintln(b, "}\n}")
	}
	return b.String()
}

func (p *program) use(j int) string {
	if p.kinds[j] == "type" {
		return p.name(j) + "{}"
	}
	return p.name(j)
}

// dependants are the functions that reach a declaration.
func (p *program) dependants(target int) []string {
	reach := func(from int) bool {
		seen, work := map[int]bool{from: true}, []int{from}
		for len(work) > 0 {
			i := work[0]
			work = work[1:]
			if i == target {
				return true
			}
			for _, j := range p.refs[i] {
				if !seen[j] {
					seen[j], work = true, append(work, j)
				}
			}
		}
		return false
	}
	out := []string{}
	for i, uses := range p.funcs {
		if slices.ContainsFunc(uses, reach) {
			out = append(out, fmt.Sprintf("F%d().", i))
		}
	}
	return out
}

func TestDeclarationEditChangesExactlyItsUsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		p := genProgram(t)
		before := digests(scanSource(t, dir, p.source()))
		i := rapid.IntRange(0, len(p.kinds)-1).Draw(t, "edited")
		p.lits[i]++
		if d := cmp.Diff(p.dependants(i), changed(before, digests(scanSource(t, dir, p.source())))); d != "" {
			t.Fatalf("edit of %s (-want +got):\n%s\n%s", p.name(i), d, p.source())
		}
		p.lits[i]--
		f := rapid.IntRange(0, len(p.funcs)-1).Draw(t, "function")
		p.flits[f]++
		if d := cmp.Diff([]string{fmt.Sprintf("F%d().", f)}, changed(before, digests(scanSource(t, dir, p.source())))); d != "" {
			t.Fatalf("edit of F%d (-want +got):\n%s", f, d)
		}
	})
}

func TestLayoutAndCommentsKeepDigests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		src := genProgram(t).source() + "\nfunc call(a, b int) int {\n\tswitch {\n\tcase a < b: return call(a, b)\n\t}\n\treturn map[string]int{\"x\": 1, \"y\": 2}[\"x\"]\n}\n"
		before := digests(scanSource(t, dir, src))
		again := relayout(t, src)
		if got := changed(before, digests(scanSource(t, dir, again))); len(got) > 0 {
			t.Fatalf("changed %v by layout of\n%s\nto\n%s", got, src, again)
		}
	})
}

// relayout writes the same tokens with other blanks, line ends, comments, and
// optional commas.
func relayout(t *rapid.T, src string) string {
	fset := token.NewFileSet()
	var s scanner.Scanner
	s.Init(fset.AddFile("", -1, len(src)), []byte(src), nil, 0)
	var b strings.Builder
	prev := token.ILLEGAL
	for {
		_, tk, lit := s.Scan()
		if tk == token.EOF {
			return b.String()
		}
		if tk == token.SEMICOLON && lit == "\n" {
			b.WriteString(rapid.SampledFrom([]string{"\n", "\n\n", " // why\n", ";", " ; /* a\nb */"}).Draw(t, "end"))
			prev = tk
			continue
		}
		if prev == token.LBRACE || prev == token.COMMA || prev == token.LPAREN || prev == token.ASSIGN {
			b.WriteString(rapid.SampledFrom([]string{"", "\n", "\t", "/* c */", " // c\n"}).Draw(t, "open"))
		} else {
			b.WriteString(rapid.SampledFrom([]string{" ", "  ", "/* c */"}).Draw(t, "blank"))
		}
		if lit == "" || tk.IsOperator() {
			lit = tk.String()
		}
		if tk == token.RPAREN && prev == token.IDENT && rapid.Bool().Draw(t, "comma") {
			b.WriteString(",\n")
		}
		b.WriteString(lit)
		prev = tk
	}
}

func TestAnyTokenEditChangesTheTokens(t *testing.T) {
	t.Parallel()
	src := "package p\nfunc F(a, b int) int {\n\tif a <= b && a != 3 {\n\t\treturn a + b*2 - len(\"xy\")\n\t}\n\treturn -a\n}\n"
	start := strings.Index(src, "func")
	toks := tokens([]byte(src))
	want := tokenDigest(toks, start, len(src))
	for i, tk := range toks {
		if tk.off < start || tk.tok == token.SEMICOLON {
			continue
		}
		edited := slices.Clone(toks)
		edited[i].lit = tk.text() + "x"
		if tokenDigest(edited, start, len(src)) == want {
			t.Errorf("token %q changed, digest the same", tk.text())
		}
		if tokenDigest(slices.Delete(slices.Clone(toks), i, i+1), start, len(src)) == want {
			t.Errorf("token %q removed, digest the same", tk.text())
		}
	}
}

// TestMeaningChangesDigests holds edits after which the function's own tokens
// are the same and yet something else happens.
func TestMeaningChangesDigests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, before, after string
		want                []string
	}{
		{"iota moved", "const ( A = iota; B )\nfunc F() int { return B }\nfunc G() int { return A }", "const ( A = iota; x; B )\nfunc F() int { return B }\nfunc G() int { return A }", []string{"F()."}},
		{"constant of the same value", "const A = 2\nfunc F() int { return A }", "const A = 1 + 1\nfunc F() int { return A }", []string{}},
		{"builtin shadowed", "func F(s string) int { return len(s) }", "func len(string) int { return 1 }\nfunc F(s string) int { return len(s) }", []string{"F()."}},
		{"field of a type that is not named", "type T struct{ n int32 }\nfunc mk() *T { return nil }\nfunc F() { mk().n++ }", "type T struct{ n int64 }\nfunc mk() *T { return nil }\nfunc F() { mk().n++ }", []string{"F().", "mk()."}},
		{"new method", "type T struct{}\nfunc F() any { return T{} }\nfunc G() int { return 1 }", "type T struct{}\nfunc (T) String() string { return \"\" }\nfunc F() any { return T{} }\nfunc G() int { return 1 }", []string{"F()."}},
		{"far member of a circle", "type A struct{ b *B; n int32 }\ntype B struct{ c *C }\ntype C struct{ a *A }\nfunc F() any { return B{} }", "type A struct{ b *B; n int64 }\ntype B struct{ c *C }\ntype C struct{ a *A }\nfunc F() any { return B{} }", []string{"F()."}},
		{"directive", "func F() {}", "//go:noinline\nfunc F() {}", []string{"F()."}},
		{"directive apart", "import _ \"unsafe\"\nfunc g() int { return 1 }\nfunc F() int { return 1 }", "import _ \"unsafe\"\nfunc g() int { return 1 }\nfunc F() int { return 1 }\n//go:linkname g example.org/other.g\n\n", []string{"g()."}},
		{"function without a body", "import _ \"unsafe\"\n//go:linkname g time.now\nfunc g() int\nfunc F() int { return g() }", "import _ \"unsafe\"\n//go:linkname g time.then\nfunc g() int\nfunc F() int { return g() }", []string{"F().", "g()."}},
		{"body of a callee", "func g() int { return 1 }\nfunc F() int { return g() }", "func g() int { return 2 }\nfunc F() int { return g() }", []string{"g()."}},
		{"body of a function in a table", "var t = []func() int{g}\nfunc g() int { return 1 }\nfunc F() int { return t[0]() }", "var t = []func() int{g}\nfunc g() int { return 2 }\nfunc F() int { return t[0]() }", []string{"g()."}},
		{"literal in a table", "var t = []func() int{func() int { return 1 }}\nfunc F() int { return t[0]() }", "var t = []func() int{func() int { return 2 }}\nfunc F() int { return t[0]() }", []string{"F()."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			before := digests(scanSource(t, dir, "package p\n"+c.before))
			if d := cmp.Diff(c.want, changed(before, digests(scanSource(t, dir, "package p\n"+c.after)))); d != "" {
				t.Errorf("changed (-want +got):\n%s", d)
			}
		})
	}
}

// What an example asserts is a comment.
func TestOutputOfAnExampleCounts(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- go.mod --
module example.com/m

go 1.24
-- m_test.go --
package m_test

import "fmt"

func Other() {}

func ExampleOther() {
	fmt.Println(1)
	fmt.Println(2)
	// Output:
	// 1
	// 2
}
`)
	out := t.TempDir()
	was := digests(load(t, Request{Root: root, Out: out}).Scan)
	for _, e := range [][2]string{{"// 2", "// 3"}, {"// Output", "// Unordered output"}, {"// Unordered output:\n\t// 1", "// Output:\n\t//  1  0"}} {
		edit(t, filepath.Join(root, "m_test.go"), e[0], e[1])
		now := digests(load(t, Request{Root: root, Out: out}).Scan)
		if d := cmp.Diff([]string{"ExampleOther(xtest)."}, changed(was, now)); d != "" {
			t.Errorf("%q became %q: changed (-want +got):\n%s", e[0], e[1], d)
		}
		was = now
	}
}

// A build constraint can choose another version of the language for its file.
func TestLanguageOfAFileCounts(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- go.mod --
module example.com/m

go 1.24
-- a.go --
package m

var Table = []int{}

func A() int { return 1 }
-- b.go --
package m

func B() int { return len(Table) }

func C() int { return 1 }
`)
	out := t.TempDir()
	was := digests(load(t, Request{Root: root, Out: out}).Scan)
	edit(t, filepath.Join(root, "a.go"), "package m", "//go:build linux || !linux\n\npackage m")
	if got := changed(was, digests(load(t, Request{Root: root, Out: out}).Scan)); len(got) > 0 {
		t.Errorf("a constraint that says nothing of the language changed %q", got)
	}
	edit(t, filepath.Join(root, "a.go"), "linux || !linux", "go1.21")
	if d := cmp.Diff([]string{"A().", "B()."}, changed(was, digests(load(t, Request{Root: root, Out: out}).Scan))); d != "" {
		t.Errorf("changed (-want +got):\n%s", d)
	}
}

func TestTrailingCommaOfTypeParameterCounts(t *testing.T) {
	t.Parallel()
	list, array := "type T[P *C,] int", "type T[P *C] int"
	if tokenDigest(tokens([]byte(list)), 0, len(list)) == tokenDigest(tokens([]byte(array)), 0, len(array)) {
		t.Errorf("%q and %q have one digest", list, array)
	}
}

// BenchmarkRead reads 50,000 functions in 50 packages without the go command:
// parsing, type-checking, digests and the join alone. CPU time is of the process.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	cpu := func() float64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	var roots []*packages.Package
	for p := range 50 {
		s := &strings.Builder{}
		fmt.Fprintf(s, "package p\n\ntype T struct{ n int }\n\nvar table = []int{1, 2, %d}\n\nconst limit = %d\n\n", p, p+10)
		for f := range 1000 {
			fmt.Fprintf(s, "// F%[1]d works.\nfunc F%[1]d(t *T, x int) (string, bool) {\n\tif x < 0 || t == nil {\n\t\treturn \"\", false\n\t}\n", f)
			fmt.Fprintf(s, "\tfor i, v := range table {\n\t\tif v > limit {\n\t\t\tt.n += i * x\n\t\t}\n\t}\n\tif t.n > %d {\n\t\treturn F%d(t, x-1)\n\t}\n\treturn \"done\", true\n}\n\n", f, max(0, f-1))
		}
		path := fmt.Sprint("example.com/big/p", p)
		name := filepath.Join(dir, fmt.Sprint("p", p), "p.go")
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(s.String()), 0o644); err != nil {
			b.Fatal(err)
		}
		roots = append(roots, &packages.Package{ID: path, PkgPath: path, Name: "p", Dir: filepath.Dir(name), GoFiles: []string{name}, TypesSizes: types.SizesFor("gc", "amd64")})
	}
	for _, what := range []string{"fresh", "cached"} {
		out := filepath.Join(dir, "out")
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				start := cpu()
				m := &module{req: Request{Root: dir, Out: out, Project: lang.Project{Dir: ".", Name: "example.com/big"}}, dir: dir, path: "example.com/big", roots: roots}
				m.sort()
				facts, _, reused, err := m.readAll()
				if err != nil {
					b.Fatal(err)
				}
				s, err := m.join(facts)
				if err != nil || len(s.Symbols) != 50000 {
					b.Fatalf("%v, %d symbols", err, len(s.Symbols))
				}
				b.ReportMetric(cpu()-start, "cpu-s")
				b.ReportMetric(float64(reused), "reused")
			}
		})
	}
}
