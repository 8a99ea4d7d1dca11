// Package gosrc compares two states of Go source by syntax alone: which exported
// symbols differ, and which tests became weaker.
//
// It needs no types, no build and no other files than the changed ones, so it
// answers before anything is built. What it says about tests is advice of the
// careful kind: a test that it finds weaker may be as strong as before, and one
// that it lets pass must still show its power where tests are run.
package gosrc

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/proveto/proveto/internal/evidence"
)

// File is one file of a state.
type File struct {
	Path   string // from the root, slash-separated
	Source []byte
}

// Problem is a file that does not parse.
type Problem struct {
	Path   string
	Line   int // 0: unknown
	Reason string
}

// Source tells whether a path is Go source that the go command builds, tests
// included: not below testdata or vendor, nor in or named by a leading dot or
// underscore.
func Source(name string) bool {
	if !strings.HasSuffix(name, ".go") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "testdata" || part == "vendor" || strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") {
			return false
		}
	}
	return true
}

// Test tells whether a path is a Go test file that the go command builds.
func Test(name string) bool { return Source(name) && strings.HasSuffix(name, "_test.go") }

// unit is a parsed file.
type unit struct {
	path string
	src  []byte
	fset *token.FileSet
	file *ast.File
}

// reading is what came of one file: one of the two is set.
type reading struct {
	unit    *unit
	problem *Problem
}

// readAll parses the files that are wanted, several at a time; the answers are in
// the order of the files.
func readAll(files []File, mode parser.Mode, wanted func(path string) bool) []reading {
	out := make([]reading, len(files))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(len(files), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := range next {
				out[i] = read(files[i], mode)
			}
		})
	}
	for i, f := range files {
		if wanted(f.Path) {
			next <- i
		}
	}
	close(next)
	workers.Wait()
	return slices.DeleteFunc(out, func(r reading) bool { return r == reading{} })
}

func read(f File, mode parser.Mode) reading {
	u := &unit{path: f.Path, src: f.Source, fset: token.NewFileSet()}
	var err error
	if u.file, err = parser.ParseFile(u.fset, f.Path, f.Source, mode|parser.SkipObjectResolution); err != nil {
		p := &Problem{Path: f.Path, Reason: "does not parse"}
		if list, ok := err.(scanner.ErrorList); ok && len(list) > 0 { //nolint:errorlint // the parser's own list, not wrapped
			p.Line, p.Reason = list[0].Pos.Line, list[0].Msg
		}
		return reading{problem: p}
	}
	return reading{unit: u}
}

// text is the tokens of a range, with a space between them, without comments and
// without what only a layout needs: commas and semicolons before a closing
// bracket.
func (u *unit) text(from, to token.Pos) string {
	file := u.fset.File(u.file.FileStart)
	src := u.src[file.Offset(from):file.Offset(to)]
	fset := token.NewFileSet()
	var s scanner.Scanner
	s.Init(fset.AddFile("", fset.Base(), len(src)), src, func(token.Position, string) {}, 0)
	var out []string
	for {
		_, t, lit := s.Scan()
		text := t.String()
		switch {
		case t == token.EOF:
			for len(out) > 0 && out[len(out)-1] == ";" {
				out = out[:len(out)-1]
			}
			return strings.Join(out, " ")
		case t == token.SEMICOLON:
			text = ";"
		case lit != "":
			text = lit
		case t == token.RPAREN || t == token.RBRACE:
			if n := len(out); n > 0 && (out[n-1] == "," || out[n-1] == ";") {
				out = out[:n-1]
			}
		}
		out = append(out, text)
	}
}

func (u *unit) node(n ast.Node) string { return u.text(n.Pos(), n.End()) }

func (u *unit) line(p token.Pos) int { return u.fset.PositionFor(p, false).Line }

// Symbol is an exported symbol of a package that can be imported, or an exported
// method of an exported type.
type Symbol struct {
	Name   string // auth.Server.Close: package, type, name
	Path   string // internal/auth.Server.Close: directory, type, name
	File   string
	Line   int
	Digest evidence.Digest // of what users of the symbol see of it
}

// Exported lists the exported symbols of the files of one state, sorted by path,
// each once. Tests, package main and files that [Source] leaves out are left out.
// What users see is the signature of a function, the type and its exported fields,
// the value of a constant, the type of a variable as far as syntax shows it.
func Exported(files []File) ([]Symbol, []Problem) {
	all := map[string]*Symbol{}
	views := map[string][]string{}
	var problems []Problem
	for _, r := range readAll(files, 0, func(path string) bool { return Source(path) && !Test(path) }) {
		if r.problem != nil {
			problems = append(problems, *r.problem)
			continue
		}
		u := r.unit
		if u.file.Name.Name == "main" {
			continue
		}
		u.exported(func(name string, pos token.Pos, view string) {
			at := path.Dir(u.path) + "." + name
			if all[at] == nil {
				all[at] = &Symbol{Name: u.file.Name.Name + "." + name, Path: at, File: u.path, Line: u.line(pos)}
			}
			views[at] = append(views[at], view)
		})
	}
	out := make([]Symbol, 0, len(all))
	for at, s := range all {
		slices.Sort(views[at]) // one symbol in several files, for several systems
		s.Digest = evidence.DigestParts(slices.Compact(views[at])...)
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Symbol) int { return strings.Compare(a.Path, b.Path) })
	return out, problems
}

// exported calls add with the name below the package, the place and the view of
// each exported symbol.
func (u *unit) exported(add func(name string, pos token.Pos, view string)) {
	for _, d := range u.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name, ok := funcName(d)
			if ok && exportedName(name) {
				add(name, d.Pos(), u.funcView(d))
			}
		case *ast.GenDecl:
			u.exportedSpecs(d, add)
		}
	}
}

func exportedName(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if !ast.IsExported(part) {
			return false
		}
	}
	return true
}

// funcName is the name of a function below its package, with the receiver's type.
func funcName(d *ast.FuncDecl) (string, bool) {
	if d.Recv == nil {
		return d.Name.Name, true
	}
	if len(d.Recv.List) == 0 {
		return "", false
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + d.Name.Name, true
		default:
			return "", false
		}
	}
}

// funcView is a function as its callers see it: names of parameters do not count.
func (u *unit) funcView(d *ast.FuncDecl) string {
	out := []string{"func"}
	if d.Recv != nil {
		out = append(out, u.node(d.Recv.List[0].Type))
	}
	if d.Type.TypeParams != nil {
		out = append(out, u.node(d.Type.TypeParams))
	}
	for _, list := range []*ast.FieldList{d.Type.Params, d.Type.Results} {
		out = append(out, "(")
		if list != nil {
			for _, f := range list.List {
				for range max(1, len(f.Names)) {
					out = append(out, u.node(f.Type)+",")
				}
			}
		}
		out = append(out, ")")
	}
	return strings.Join(out, " ")
}

func (u *unit) exportedSpecs(d *ast.GenDecl, add func(string, token.Pos, string)) {
	var last *ast.ValueSpec // whose values a constant without any repeats
	for i, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				add(s.Name.Name, s.Pos(), "type "+u.typeView(s))
			}
		case *ast.ValueSpec:
			if d.Tok == token.CONST && len(s.Values) > 0 {
				last = s
			}
			for j, n := range s.Names {
				if !n.IsExported() {
					continue
				}
				if d.Tok == token.CONST {
					add(n.Name, n.Pos(), "const "+u.constView(s, last, i, j))
				} else {
					add(n.Name, n.Pos(), "var "+u.varView(s, j))
				}
			}
		}
	}
}

// typeView is a type as its users see it: of a struct the exported and embedded
// fields only.
func (u *unit) typeView(s *ast.TypeSpec) string {
	head := ""
	if s.TypeParams != nil {
		head = u.node(s.TypeParams)
	}
	if s.Assign.IsValid() {
		head += " ="
	}
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return head + " " + u.node(s.Type)
	}
	out := []string{head, "struct"}
	for _, f := range st.Fields.List {
		tag := ""
		if f.Tag != nil {
			tag = " " + f.Tag.Value
		}
		if len(f.Names) == 0 {
			out = append(out, u.node(f.Type)+tag)
		}
		for _, n := range f.Names {
			if n.IsExported() {
				out = append(out, n.Name+" "+u.node(f.Type)+tag)
			}
		}
	}
	return strings.Join(out, ";")
}

// constView is the type and the value of a constant. One that repeats or counts
// up has its place in the group as part of its value.
func (u *unit) constView(s, last *ast.ValueSpec, i, j int) string {
	out := ""
	if s.Type != nil {
		out = u.node(s.Type)
	}
	repeats := len(s.Values) == 0
	if repeats {
		s = last
		if s == nil {
			return out
		}
		if s.Type != nil {
			out = u.node(s.Type)
		}
	}
	if j >= len(s.Values) {
		return out
	}
	value := u.node(s.Values[j])
	if repeats || slices.Contains(strings.Fields(value), "iota") {
		return out + " = " + value + " at " + strconv.Itoa(i)
	}
	return out + " = " + value
}

// varView is the type of a variable as far as syntax shows it.
func (u *unit) varView(s *ast.ValueSpec, j int) string {
	if s.Type != nil {
		return u.node(s.Type)
	}
	if j >= len(s.Values) {
		return "" // several from one call
	}
	e := s.Values[j]
	if x, ok := e.(*ast.UnaryExpr); ok && x.Op == token.AND {
		if lit, ok := x.X.(*ast.CompositeLit); ok && lit.Type != nil {
			return "& " + u.node(lit.Type)
		}
	}
	switch x := e.(type) {
	case *ast.CompositeLit:
		return u.node(x.Type)
	case *ast.BasicLit:
		return x.Kind.String()
	case *ast.CallExpr:
		if f := u.node(x.Fun); f != "errors . New" && f != "fmt . Errorf" {
			return "call " + f
		}
		return "error"
	case *ast.FuncLit:
		return u.node(x.Type)
	}
	return u.node(e)
}
