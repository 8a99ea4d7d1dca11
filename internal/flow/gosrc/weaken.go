package gosrc

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/doc"
	"go/parser"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Way is how a test became weaker.
type Way string

// The ways.
const (
	Removed    Way = "removed"    // or not found by the go command any more
	Skipped    Way = "skipped"    // a skip, a way out before the assertions, or a build constraint more
	Fewer      Way = "assertions" // fewer assertions, each counted as often as a table runs it
	Wider      Way = "tolerance"  // a tolerance grew
	Hook       Way = "hook"       // what runs around all tests of a package was changed
	Unreadable Way = "unreadable" // the file does not parse
)

// Weakening is one test that is weaker than it was.
type Weakening struct {
	Way  Way
	Test string // name of the function; empty when the file as a whole is meant
	Path string // of the new state; of the old one when the test is gone
	Line int    // in Path; 0: the file as a whole
	Text string // what changed, for people
}

// Weakened compares the test files that a change touches, in both states. Tests
// are told by directory and name, so one that moves to another file is the same.
// A helper of the same files counts with what it asserts; one of other files
// counts as one assertion.
func Weakened(old, now []File) []Weakening {
	var out []Weakening
	was, _ := readTests(old) // what did not parse before has nothing to lose
	is, problems := readTests(now)
	for _, p := range problems {
		out = append(out, Weakening{Unreadable, "", p.Path, p.Line, p.Reason})
	}
	for _, dir := range slices.Sorted(maps.Keys(was)) {
		then, today := was[dir], is[dir]
		if today == nil {
			today = newSuite()
		}
		for _, k := range slices.SortedFunc(maps.Keys(then.funcs), byName) {
			out = append(out, compare(then, today, k)...)
		}
		out = append(out, widerConstants(then, today)...)
	}
	for _, dir := range slices.Sorted(maps.Keys(is)) {
		then := was[dir]
		if then == nil {
			then = newSuite()
		}
		out = append(out, hooks(then, is[dir])...)
	}
	return out
}

// suite is what the test files of one directory hold.
type suite struct {
	funcs     map[key]*fn
	tables    map[string]int     // rows of the package's variables that are literals
	constants map[string]wide    // tolerances of the package, by name
	hooks     map[string]*around // what runs around the tests, by kind and text
}

// key tells functions of one directory apart: a name can stand in the package, in
// its external tests, and once for each system.
type key struct{ name, pkg, constraint string }

func byName(a, b key) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.pkg, b.pkg), strings.Compare(a.constraint, b.constraint))
}

// named is the function of a name that another one calls.
func (s *suite) named(name string, from *fn) *fn {
	pkg := from.file.Name.Name
	if f := s.funcs[key{name, pkg, from.constraint}]; f != nil {
		return f
	}
	if f := s.funcs[key{name, pkg, ""}]; f != nil {
		return f
	}
	for _, k := range slices.SortedFunc(maps.Keys(s.funcs), byName) {
		if k.name == name && k.pkg == pkg {
			return s.funcs[k]
		}
	}
	return nil
}

// successor is what became of a function: the same one, or one of its name that
// was not there before.
func successor(then, today *suite, k key) *fn {
	if f := today.funcs[k]; f != nil {
		return f
	}
	for _, samePackage := range []bool{true, false} {
		for _, other := range slices.SortedFunc(maps.Keys(today.funcs), byName) {
			if other.name == k.name && then.funcs[other] == nil && (other.pkg == k.pkg) == samePackage {
				return today.funcs[other]
			}
		}
	}
	return nil
}

// fn is one function with the file that it stands in.
type fn struct {
	*unit
	decl       *ast.FuncDecl
	constraint string // under which it is built; empty: always
	output     string // of an example: what it must print; empty: it is not run
	ordered    bool
}

// around is code that runs around the tests.
type around struct {
	what, path string
	line       int
}

// wide is a tolerance with its place.
type wide struct {
	value float64
	path  string
	line  int
}

func newSuite() *suite {
	return &suite{map[key]*fn{}, map[string]int{}, map[string]wide{}, map[string]*around{}}
}

func readTests(files []File) (map[string]*suite, []Problem) {
	out := map[string]*suite{}
	var problems []Problem
	for _, r := range readAll(files, parser.ParseComments, Test) {
		if r.problem != nil {
			problems = append(problems, *r.problem)
			continue
		}
		dir := path.Dir(r.unit.path)
		if out[dir] == nil {
			out[dir] = newSuite()
		}
		out[dir].add(r.unit)
	}
	return out, problems
}

func (s *suite) add(u *unit) {
	built := buildConstraint(u)
	for _, d := range u.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name, ok := funcName(d)
			if !ok || d.Body == nil {
				continue
			}
			if name == "init" || name == "TestMain" {
				s.hooks[name+" "+u.node(d)] = &around{name, u.path, u.line(d.Pos())}
			}
			s.funcs[key{name, u.file.Name.Name, built}] = &fn{unit: u, decl: d, constraint: built}
		case *ast.GenDecl:
			s.values(u, d)
		}
	}
	for _, e := range doc.Examples(u.file) {
		if f := s.funcs[key{"Example" + e.Name, u.file.Name.Name, built}]; f != nil {
			f.output, f.ordered = e.Output, !e.Unordered
			if e.EmptyOutput {
				f.output = "nothing"
			}
		}
	}
}

// values keeps the package's tolerances, the length of its tables, and what it
// calls while it starts only to call it.
func (s *suite) values(u *unit, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, n := range v.Names {
			if i >= len(v.Values) {
				continue
			}
			if n.Name == "_" && calls(v.Values[i]) {
				s.hooks["variable _ "+u.node(v.Values[i])] = &around{"variable _", u.path, u.line(n.Pos())}
			}
			if rows, ok := literalRows(v.Values[i]); ok {
				s.tables[n.Name] = rows
			}
			if x, ok := number(v.Values[i]); ok && toleranceName().MatchString(n.Name) {
				s.constants[n.Name] = wide{x, u.path, u.line(n.Pos())}
			}
		}
	}
}

func calls(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			p, ok := call.Fun.(*ast.ParenExpr)
			if ok {
				_, ok = p.X.(*ast.StarExpr) // (*T)(nil) converts
			}
			found = found || !ok
		}
		return !found
	})
	return found
}

// buildConstraint is the constraint under which a file is built, by its line and
// by its name; empty when there is none.
func buildConstraint(u *unit) string {
	var parts []string
	for _, g := range u.file.Comments {
		if g.Pos() > u.file.Package {
			break
		}
		for _, c := range g.List {
			if constraint.IsGoBuild(c.Text) || constraint.IsPlusBuild(c.Text) {
				text := c.Text
				if x, err := constraint.Parse(c.Text); err == nil {
					text = x.String()
				}
				parts = append(parts, text)
			}
		}
	}
	name := strings.TrimSuffix(path.Base(u.path), "_test.go")
	words := strings.Split(name, "_")
	for _, w := range words[max(1, len(words)-2):] {
		if strings.Contains(systems, " "+w+" ") {
			parts = append(parts, w)
		}
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), " and ")
}

// systems are the words that bind a file to a system or an architecture when its
// name ends in them.
const systems = " aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris wasip1 windows zos " +
	"386 amd64 amd64p32 arm arm64 arm64be armbe loong64 mips mips64 mips64le mips64p32 mips64p32le mipsle ppc ppc64 ppc64le riscv riscv64 s390 s390x sparc sparc64 wasm "

// testName tells whether the go command takes a function for a test, by its name.
func testName(name string) bool {
	for _, prefix := range []string{"Test", "Fuzz", "Example", "Benchmark"} {
		rest, ok := strings.CutPrefix(name, prefix)
		if ok && name != "TestMain" {
			r, _ := utf8.DecodeRuneInString(rest)
			return rest == "" || !unicode.IsLower(r)
		}
	}
	return false
}

// compare tells how one function of the old state is weaker in the new one.
func compare(then, today *suite, k key) []Weakening {
	name, f, g := k.name, then.funcs[k], successor(then, today, k)
	isTest := testName(name) && f.decl.Recv == nil
	if g == nil {
		if !isTest {
			return nil // a helper: its callers tell
		}
		return []Weakening{{Removed, name, f.path, f.line(f.decl.Pos()), "the test is removed"}}
	}
	var out []Weakening
	at := g.line(g.decl.Pos())
	add := func(w Way, line int, format string, args ...any) {
		out = append(out, Weakening{w, name, g.path, line, fmt.Sprintf(format, args...)})
	}
	if isTest && strings.HasPrefix(name, "Example") {
		switch {
		case f.output != "" && g.output == "":
			add(Skipped, at, "the example has no output comment any more, so it is not run")
		case f.output != "" && f.ordered && !g.ordered:
			add(Fewer, at, "the order of the output does not count any more")
		}
	}
	if isTest && g.constraint != f.constraint && g.constraint != "" {
		add(Skipped, at, "it is built only under %s", g.constraint)
	}
	if !isTest && !takesTest(f.decl) {
		return out
	}
	a, b := measure(then, f), measure(today, g)
	if b.skips > a.skips {
		add(Skipped, b.skipLine, "skips: %d where it had %d", b.skips, a.skips)
	} else if b.exits > a.exits {
		add(Skipped, b.exitLine, "ways out that assert nothing: %d where it had %d", b.exits, a.exits)
	}
	if b.asserts < a.asserts {
		add(Fewer, at, "assertions: %s where it had %s", counted(b.asserts), counted(a.asserts))
	}
	for _, w := range a.wider(b) {
		add(Wider, w.line, "%s", w.text)
	}
	return out
}

func counted(n float64) string { return strconv.FormatFloat(n, 'g', 3, 64) }

// takesTest tells whether a function is a helper of tests: it takes the test.
func takesTest(d *ast.FuncDecl) bool {
	for _, f := range d.Type.Params.List {
		if testingType(f) {
			return true
		}
	}
	return false
}

// widerConstants tells which tolerances of the package grew.
func widerConstants(then, today *suite) []Weakening {
	var out []Weakening
	for _, name := range slices.Sorted(maps.Keys(then.constants)) {
		a, b := then.constants[name], today.constants[name]
		if b.value > a.value {
			out = append(out, Weakening{Wider, "", b.path, b.line, fmt.Sprintf("%s is %g where it was %g", name, b.value, a.value)})
		}
	}
	return out
}

// hooks tells what runs around the tests otherwise than before.
func hooks(then, today *suite) []Weakening {
	var out []Weakening
	gone := map[string]bool{} // kinds of which the old text is gone
	for text, h := range then.hooks {
		if today.hooks[text] == nil {
			gone[h.what] = true
		}
	}
	for _, text := range slices.Sorted(maps.Keys(today.hooks)) {
		if h := today.hooks[text]; then.hooks[text] == nil {
			verb := "is new"
			if gone[h.what] {
				verb = "changed"
			}
			out = append(out, Weakening{Hook, "", h.path, h.line, h.what + " " + verb + "; it runs around every test of the package"})
		}
	}
	for _, text := range slices.Sorted(maps.Keys(then.hooks)) {
		if h := then.hooks[text]; today.hooks[text] == nil && !hasKind(today.hooks, h.what) {
			out = append(out, Weakening{Hook, "", h.path, h.line, h.what + " is removed; it ran around every test of the package"})
		}
	}
	return out
}

func hasKind(hooks map[string]*around, what string) bool {
	for _, h := range hooks {
		if h.what == what {
			return true
		}
	}
	return false
}

// testingType tells whether a parameter is the test: *testing.T and its like, or
// a name that is used for it.
func testingType(f *ast.Field) bool {
	t := f.Type
	if s, ok := t.(*ast.StarExpr); ok {
		t = s.X
	}
	if s, ok := t.(*ast.SelectorExpr); ok {
		x, ok := s.X.(*ast.Ident)
		return ok && x.Name == "testing" && slices.Contains([]string{"T", "B", "F", "TB"}, s.Sel.Name)
	}
	return slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return n.Name == "t" || n.Name == "tb" })
}

// importPath is the path that a name of a file imports; empty when none.
func importPath(f *ast.File, name string) string {
	for _, i := range f.Imports {
		p := strings.Trim(i.Path.Value, `"`+"`")
		n := path.Base(p)
		if i.Name != nil {
			n = i.Name.Name
		}
		if n == name {
			return p
		}
	}
	return ""
}
