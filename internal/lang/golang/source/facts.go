package source

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

// facts are what one package contributes: everything that can be said without
// looking at another package's source. They are cached; file names are relative
// to the checkout.
//
// Names of other declarations are keys: "f:" and "d:" begin the key of a
// function and of a constant, variable or type of the project, "i:" an import
// that is named ("i:rand=math/rand").
type facts struct {
	Path  string // import path
	Unit  string
	XTest bool
	Keys  []string // all keys that are referred to; refs are indices
	Funcs []funcFact
	Decls []declFact
	Types []typeFact // concrete types with methods
	Setup []setupFact
	// Ifaces are the interfaces whose methods are called: the signatures of their
	// methods, sorted.
	Ifaces   [][]string
	Tests    []lang.Test
	Entries  []entryFact
	Problems []lang.Problem
	Values   []lang.Symbol // see [lang.Scan.Values]
	// Undefined is a name that the package does not have; see [lang.Unit.Undefined].
	Undefined string
	// API covers the declarations that importing packages can see, and APITest
	// those in test files as well.
	API, APITest evidence.Digest
}

type funcFact struct {
	Key      string
	Symbol   lang.Symbol // Digest is still missing
	Own      evidence.Digest
	Refs     []int32
	Dynamic  []dynCall
	UsesC    bool // no Go body, or a file with cgo: the other files of the unit count
	Exposed  bool // exported, of an exported type, of a package that others can import
	TestFile bool
}

// dynCall is a call of an interface's method.
type dynCall struct {
	Iface  int // index in Ifaces
	Method string
}

type declFact struct {
	Key      string
	Own      evidence.Digest
	Refs     []int32
	Embeds   bool // the embedded files of the unit count
	Value    bool // a constant or a variable
	TestFile bool
}

// setupFact is something beside init functions that has an effect when the
// process starts: an initialiser that calls, or an import from outside the
// project.
type setupFact struct {
	Own      evidence.Digest
	Runs     bool // an initialiser, of which the order counts
	Refs     []int32
	TestFile bool
}

type typeFact struct {
	Methods map[string]string // signature to key
}

type entryFact struct {
	Kind, Name string
	Key        string // of the function; empty: Symbol is set
	Symbol     string
	File       string
	Line       int
}

// reader collects the facts of one type-checked package.
type reader struct {
	m     *module
	j     *job
	known map[string]bool // package paths of the project
	*parsed
	out *facts

	file    *ast.File // being read
	name    string    // its absolute name
	toks    []tok
	gen     bool
	about   []string            // what the compiler is told about every declaration of the file
	cgo     string              // text of the preamble; empty without cgo
	links   map[string][]string // name to its linkname directives, wherever they stand
	keys    map[string]int32
	named   map[types.Type][]int32
	ifaces  map[string]int
	marks   map[string]int
	ids     map[*ast.FuncDecl]string
	methods map[string][]string // receiver to method signatures, non-test
}

func (r *reader) read() {
	r.keys, r.named, r.ifaces = map[string]int32{}, map[types.Type][]int32{}, map[string]int{}
	r.marks, r.ids, r.methods = map[string]int{}, map[*ast.FuncDecl]string{}, map[string][]string{}
	r.links = map[string][]string{}
	toks := make([][]tok, len(r.files))
	for i, f := range r.files {
		toks[i] = tokens(r.sources[r.fileName(f)])
		r.collectMethods(f, toks[i])
		r.linknames(f)
	}
	for i, f := range r.files {
		r.file, r.name, r.toks = f, r.fileName(f), toks[i]
		r.gen, r.cgo = ast.IsGenerated(f), preamble(f)
		r.about = []string{r.cgo, r.version(f)}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				r.funcDecl(d)
			case *ast.GenDecl:
				r.genDecl(d)
			}
		}
		r.entries()
		r.foreignImports()
		r.debugSettings()
	}
	r.examples()
	r.concreteTypes()
	r.api()
}

func (r *reader) fileName(f *ast.File) string { return r.fset.PositionFor(f.FileStart, false).Filename }

func (r *reader) line(p token.Pos) int { return r.fset.PositionFor(p, false).Line }

func (r *reader) span(n ast.Node) (start, end int) {
	f := r.fset.File(n.Pos())
	return f.Offset(n.Pos()), f.Offset(n.End())
}

func (r *reader) testFile() bool { return strings.HasSuffix(r.name, "_test.go") }

// preamble is the comment before import "C", which is C source; "C" alone when
// there is none.
func preamble(f *ast.File) string {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			continue
		}
		for _, s := range g.Specs {
			if imp := s.(*ast.ImportSpec); imp.Path.Value == `"C"` {
				text := "C"
				for _, c := range []*ast.CommentGroup{g.Doc, imp.Doc} {
					if c != nil {
						for _, l := range c.List {
							text += l.Text + "\n"
						}
					}
				}
				return text
			}
		}
	}
	return ""
}

// version is the language version of a file whose build constraint asks for
// another one than its module: the same tokens then mean something else, as the
// variables of loops do before go1.22.
func (r *reader) version(f *ast.File) string {
	v := r.info.FileVersions[f]
	if m := r.j.pkg.Module; m == nil || v == "go"+m.GoVersion {
		return ""
	}
	return v
}

// linknames collects the directives that give a name another body. They may
// stand anywhere in a file.
func (r *reader) linknames(f *ast.File) {
	for _, g := range f.Comments {
		for _, c := range g.List {
			if fields := strings.Fields(c.Text); len(fields) > 1 && fields[0] == linkname {
				r.links[fields[1]] = append(r.links[fields[1]], strings.Join(fields, " "))
			}
		}
	}
}

const linkname = "//go:linkname"

// directives are the comments that the compiler obeys, without those of
// [reader.linknames].
func directives(groups ...*ast.CommentGroup) []string {
	var out []string
	for _, g := range groups {
		if g == nil {
			continue
		}
		for _, c := range g.List {
			if strings.HasPrefix(c.Text, linkname) {
				continue
			}
			if strings.HasPrefix(c.Text, "//go:") || strings.HasPrefix(c.Text, "//export ") {
				out = append(out, strings.TrimSpace(c.Text))
			}
		}
	}
	return out
}

func (r *reader) collectMethods(f *ast.File, toks []tok) {
	if strings.HasSuffix(r.fileName(f), "_test.go") && !r.j.xtest {
		return // a method of a test file is no part of the type that others see
	}
	for _, d := range f.Decls {
		fd, ok := d.(*ast.FuncDecl)
		if !ok || fd.Recv == nil {
			continue
		}
		recv, pointer := receiver(fd)
		start, end := r.span(fd.Type)
		r.methods[recv] = append(r.methods[recv], fd.Name.Name+" "+strconv.FormatBool(pointer)+" "+string(tokenDigest(toks, start, end)))
	}
}

func (r *reader) funcDecl(d *ast.FuncDecl) {
	recv, _ := receiver(d)
	name := d.Name.Name
	full := name
	if recv != "" {
		full = recv + "." + name
	}
	mark := ""
	if r.j.xtest {
		mark = "xtest"
	}
	if name == "_" || name == "init" && recv == "" {
		mark = r.uniqueMark(full, mark)
	}
	dir := dirOf(r.m.path, r.j.unit.path)
	id := symbolID(r.m.path, dir, recv, name, mark)
	start, end := r.span(d)
	fact := funcFact{
		Key: "f:" + r.pkgKey() + "." + full,
		Symbol: lang.Symbol{
			ID: id, Name: r.pkg.Name() + "." + full, Kind: r.kind(d), Unit: r.j.unit.path, File: r.m.rel(r.name),
			Line: r.line(d.Pos()), EndLine: r.line(d.End()), Exported: ast.IsExported(name) && (recv == "" || ast.IsExported(recv)),
			TestCode: r.testFile(), Generated: r.gen, Statements: statements(d.Body),
		},
		Own:      tokenDigest(r.toks, start, end, slices.Concat(directives(d.Doc), r.links[full], r.about)...),
		UsesC:    d.Body == nil || r.cgo != "",
		TestFile: r.testFile(),
	}
	if mark != "" && mark != "xtest" {
		fact.Key += "(" + mark + ")"
	}
	fact.Symbol.Excluded = excluded(d, fact.Symbol)
	fact.Exposed = fact.Symbol.Exported && !fact.TestFile && r.pkg.Name() != "main" && !internal(r.j.unit.path)
	c := r.collect(d)
	fact.Refs, fact.Dynamic = c.refs(), c.dynamic
	if d.Body != nil {
		r.ids[d] = id
	}
	r.out.Funcs = append(r.out.Funcs, fact)
	if d.Body == nil {
		// Nobody sees it executed: it is part of what its callers refer to.
		r.out.Decls = append(r.out.Decls, declFact{Key: fact.Key, Own: fact.Own, Refs: fact.Refs, TestFile: fact.TestFile})
	}
	switch {
	case fact.Symbol.Kind == "test" || fact.Symbol.Kind == "fuzz":
		r.out.Tests = append(r.out.Tests, lang.Test{Name: name, Kind: fact.Symbol.Kind, Unit: r.j.unit.path, File: fact.Symbol.File, Line: fact.Symbol.Line, Symbol: id})
	case name == "main" && recv == "" && r.pkg.Name() == "main" && !fact.TestFile:
		r.out.Entries = append(r.out.Entries, entryFact{Kind: "cli_command", Name: r.j.unit.path[strings.LastIndexByte(r.j.unit.path, '/')+1:], Symbol: id, File: fact.Symbol.File, Line: fact.Symbol.Line})
	}
	if fact.Exposed && fact.Symbol.Excluded == "" {
		r.out.Entries = append(r.out.Entries, entryFact{Kind: "exported_api", Name: fact.Symbol.Name, Symbol: id, File: fact.Symbol.File, Line: fact.Symbol.Line})
	}
}

// uniqueMark names a declaration without a name of its own by its file, so that
// a new one elsewhere leaves the others' ids as they are.
func (r *reader) uniqueMark(full, prefix string) string {
	base := r.name[strings.LastIndexAny(r.name, `/\`)+1:]
	mark := simpleMark(strings.TrimSuffix(base, ".go"))
	if prefix != "" {
		mark = prefix + "+" + mark
	}
	n := r.marks[full+"("+mark]
	r.marks[full+"("+mark]++
	if n > 0 {
		mark += "+" + strconv.Itoa(n+1)
	}
	return mark
}

// kind of a function; the go command's rules for tests.
func (r *reader) kind(d *ast.FuncDecl) string {
	name := d.Name.Name
	switch {
	case d.Recv != nil:
		return "method"
	case name == "init":
		return "init"
	case !r.testFile():
		return "function"
	case name == "TestMain" && takes(d, "M"):
		return "test_main"
	case isTestName(name, "Test") && takes(d, "T"):
		return "test"
	case isTestName(name, "Fuzz") && takes(d, "F"):
		return "fuzz"
	case isTestName(name, "Benchmark") && takes(d, "B"):
		return "benchmark"
	case isTestName(name, "Example") && d.Type.Params.NumFields() == 0 && d.Type.Results.NumFields() == 0:
		return "example"
	}
	return "function"
}

// takes tells whether the only parameter is a pointer to a type of this name,
// like the go command, which looks at the syntax alone.
func takes(d *ast.FuncDecl, name string) bool {
	p := d.Type.Params.List
	if d.Type.TypeParams != nil || d.Type.Results.NumFields() > 0 || len(p) != 1 || len(p[0].Names) > 1 {
		return false
	}
	star, ok := p[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	switch x := star.X.(type) {
	case *ast.Ident:
		return x.Name == name
	case *ast.SelectorExpr:
		return x.Sel.Name == name
	}
	return false
}

// excluded says why a function is never a target; empty for targets.
func excluded(d *ast.FuncDecl, s lang.Symbol) string {
	switch {
	case s.TestCode:
		return "test_code"
	case s.Generated:
		return "generated"
	case d.Body == nil:
		return "no_body"
	case d.Name.Name == "_":
		return "blank"
	case len(d.Body.List) == 0:
		return "empty_body"
	}
	return ""
}

// internal tells import paths that other modules cannot import.
func internal(path string) bool {
	return slices.Contains(strings.Split(path, "/"), "internal")
}

// statements counts simple and control statements, those of nested functions
// included; blocks and empty statements are none.
func statements(b *ast.BlockStmt) int {
	n := 0
	if b == nil {
		return 0
	}
	ast.Inspect(b, func(x ast.Node) bool {
		switch x.(type) {
		case *ast.BlockStmt, *ast.EmptyStmt, *ast.CaseClause, *ast.CommClause, *ast.LabeledStmt:
		case ast.Stmt:
			n++
		}
		return true
	})
	return n
}

func (r *reader) genDecl(g *ast.GenDecl) {
	for _, s := range g.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			start, end := r.span(s)
			methods := slices.Clone(r.methods[s.Name.Name])
			slices.Sort(methods)
			own := tokenDigest(r.toks, start, end, slices.Concat(directives(g.Doc, s.Doc), methods, r.about)...)
			r.decl(s.Name, declFact{Own: own, Refs: r.collect(s).refs()})
		case *ast.ValueSpec:
			if g.Tok == token.CONST {
				r.constants(s)
				continue
			}
			start, end := r.span(s)
			dirs := directives(g.Doc, s.Doc)
			embeds := slices.ContainsFunc(dirs, func(d string) bool { return strings.HasPrefix(d, "//go:embed") })
			for _, n := range s.Names {
				dirs = append(dirs, r.links[n.Name]...)
			}
			own := tokenDigest(r.toks, start, end, slices.Concat(dirs, r.about)...)
			c := r.collect(s)
			r.holdsCode(s)
			for _, n := range s.Names {
				r.decl(n, declFact{Own: own, Refs: c.refs(), Embeds: embeds, Value: true})
			}
			if slices.ContainsFunc(s.Values, acts) {
				r.out.Setup = append(r.out.Setup, setupFact{Own: own, Runs: true, Refs: c.refs(), TestFile: r.testFile()})
			}
		}
	}
}

// holdsCode notes a variable of which the initialiser has a function literal.
func (r *reader) holdsCode(s *ast.ValueSpec) {
	if r.testFile() || r.gen || len(s.Names) == 0 {
		return
	}
	found := false
	for _, v := range s.Values {
		ast.Inspect(v, func(n ast.Node) bool {
			lit, ok := n.(*ast.FuncLit)
			found = found || ok && lit.Body != nil && len(lit.Body.List) > 0
			return !found
		})
	}
	if !found {
		return
	}
	name := s.Names[0].Name
	r.out.Values = append(r.out.Values, lang.Symbol{
		ID: symbolID(r.m.path, dirOf(r.m.path, r.j.unit.path), "", name, "value"), Name: r.pkg.Name() + "." + name, Kind: "variable", Unit: r.j.unit.path,
		File: r.m.rel(r.name), Line: r.line(s.Pos()), EndLine: r.line(s.End()), Exported: ast.IsExported(name), Excluded: "function_value",
	})
}

// acts tells whether evaluating an initialiser can have an effect or end the
// process. A literal of a function is not called by it.
func acts(x ast.Expr) bool {
	found := false
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr, *ast.IndexExpr, *ast.SliceExpr, *ast.TypeAssertExpr, *ast.StarExpr:
			found = true
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		case *ast.BinaryExpr:
			found = found || n.Op == token.QUO || n.Op == token.REM || n.Op == token.SHL || n.Op == token.SHR
		}
		return !found
	})
	return found
}

// foreignImports are the packages of other modules that a file links: their init
// functions run as well, and no lock file says whether they are linked.
func (r *reader) foreignImports() {
	for _, s := range r.file.Imports {
		path, err := strconv.Unquote(s.Path.Value)
		if first, _, _ := strings.Cut(path, "/"); err != nil || r.known[path] || !strings.Contains(first, ".") {
			continue
		}
		r.out.Setup = append(r.out.Setup, setupFact{Own: evidence.DigestParts("import", path), TestFile: r.testFile()})
	}
}

// debugSettings are the lines by which a test binary gets other defaults of the
// runtime: they hold for the whole process.
func (r *reader) debugSettings() {
	for _, g := range r.file.Comments {
		for _, c := range g.List {
			if g.Pos() < r.file.Package && strings.HasPrefix(c.Text, "//go:debug ") {
				r.out.Setup = append(r.out.Setup, setupFact{Own: evidence.DigestParts("debug", strings.TrimSpace(c.Text)), TestFile: r.testFile()})
			}
		}
	}
}

// constants count by value and type: an edit elsewhere that changes the value,
// by iota or through another package, changes the digest.
func (r *reader) constants(s *ast.ValueSpec) {
	start, end := r.span(s)
	for _, n := range s.Names {
		own := tokenDigest(r.toks, start, end) // for what does not type-check
		if c, ok := r.info.Defs[n].(*types.Const); ok && c.Val().Kind() != constant.Unknown {
			own = evidence.DigestParts("const/v1", types.TypeString(c.Type(), nil), c.Val().ExactString())
		}
		col := r.collector()
		if o := r.info.Defs[n]; o != nil {
			col.typ(o.Type())
		}
		r.decl(n, declFact{Own: own, Refs: col.refs(), Value: true})
	}
}

func (r *reader) decl(n *ast.Ident, d declFact) {
	if n.Name == "_" {
		return // nothing can refer to it; initialisers run at start and are reached
	}
	d.Key, d.TestFile = "d:"+r.pkgKey()+"."+n.Name, r.testFile()
	r.out.Decls = append(r.out.Decls, d)
}

// pkgKey is the package in keys; external tests share the directory, not the key.
func (r *reader) pkgKey() string { return packageKey(r.j.unit.path, r.j.xtest) }

func packageKey(unit string, xtest bool) string {
	if xtest {
		return unit + " [test]"
	}
	return unit
}

// api digests what importing packages can see.
func (r *reader) api() {
	var plain, test []string
	for _, d := range r.out.Decls {
		part := d.Key + " " + string(d.Own)
		for _, k := range d.Refs {
			part += " " + r.out.Keys[k]
		}
		test = append(test, part)
		if !d.TestFile {
			plain = append(plain, part)
		}
	}
	for _, f := range r.files {
		for _, d := range f.Decls {
			fd, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			recv, pointer := receiver(fd)
			sig := ""
			if o := r.info.Defs[fd.Name]; o != nil {
				sig = types.TypeString(o.Type(), nil)
			}
			part := recv + " " + strconv.FormatBool(pointer) + " " + fd.Name.Name + " " + sig
			test = append(test, part)
			if !strings.HasSuffix(r.fileName(f), "_test.go") {
				plain = append(plain, part)
			}
		}
	}
	slices.Sort(plain)
	slices.Sort(test)
	var deps []string
	for _, d := range r.j.deps {
		if d.out != nil {
			deps = append(deps, string(d.out.Facts.API))
		}
	}
	r.out.API = evidence.DigestParts(slices.Concat([]string{"api/v1"}, deps, plain)...)
	r.out.APITest = evidence.DigestParts(slices.Concat([]string{"api/v1"}, deps, test)...)
}
