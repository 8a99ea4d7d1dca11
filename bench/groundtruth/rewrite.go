package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// symbol is a function or method with its replacements.
type symbol struct {
	name      string
	path      string // absolute
	file      string // relative to the module
	line, col int
	variants  []rewrite
}

// rewrite is a whole file with one function changed.
type rewrite struct {
	name   string
	source []byte
}

// helperFile is added to the package under test. It works on pointers and
// reflection, so that it needs neither the types nor a new language version.
const helperFile = "groundtruth_helper.go"

func helper(pkg string) []byte {
	return []byte("package " + pkg + `

import (
	"errors"
	"reflect"
	"unsafe"
)

func groundtruthNever() bool { return false }

func groundtruthZero(p interface{}) {
	v := reflect.ValueOf(p).Elem()
	v.Set(reflect.Zero(v.Type()))
}

func groundtruthOther(p interface{}) { groundtruthChange(reflect.ValueOf(p).Elem(), 0) }

// groundtruthChange puts another value of the same type into v and tells whether
// it could.
func groundtruthChange(v reflect.Value, depth int) bool {
	if !v.CanSet() {
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(v.Uint() + 1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Complex64, reflect.Complex128:
		v.SetComplex(v.Complex() + 1)
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Slice:
		if v.Len() > 0 {
			v.Set(v.Slice(0, v.Len()-1))
		} else {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
	case reflect.Map, reflect.Chan, reflect.Func:
		if v.IsNil() {
			return false
		}
		v.Set(reflect.Zero(v.Type()))
	case reflect.Ptr:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		} else {
			v.Set(reflect.Zero(v.Type()))
		}
	case reflect.Interface:
		if !v.IsNil() {
			v.Set(reflect.Zero(v.Type()))
		} else if err := reflect.ValueOf(errors.New("groundtruth")); err.Type().AssignableTo(v.Type()) {
			v.Set(err)
		} else {
			return false
		}
	case reflect.Array:
		return v.Len() > 0 && depth < 8 && groundtruthChange(v.Index(0), depth+1)
	case reflect.Struct:
		for i := 0; i < v.NumField() && depth < 8; i++ {
			if groundtruthChange(v.Field(i), depth+1) {
				return true
			}
		}
		return false
	default:
		return false
	}
	return true
}

`)
}

// find lists the functions of a package's own files that can be changed.
func find(p listed, module string) ([]symbol, error) {
	var out []symbol
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(f) {
			continue
		}
		rel, err := filepath.Rel(module, path)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || len(fn.Body.List) == 0 || fn.Name.Name == "_" || (fn.Recv == nil && (fn.Name.Name == "init" || fn.Name.Name == "main")) {
				continue
			}
			at := fset.Position(fn.Name.Pos())
			s := symbol{name: p.Name + "." + qualified(fn), path: path, file: filepath.ToSlash(rel), line: at.Line, col: at.Column}
			s.variants = rewrites(src, fset, fn)
			out = append(out, s)
		}
	}
	return out, nil
}

// qualified is Type.Method or Func.
func qualified(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
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
			return x.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

// rewrites wraps the body of a function into a closure and changes what the
// closure returned. Lines stay where they are.
func rewrites(src []byte, fset *token.FileSet, fn *ast.FuncDecl) []rewrite {
	off := func(p token.Pos) int { return fset.Position(p).Offset }
	open, shut := off(fn.Body.Lbrace)+1, off(fn.Body.Rbrace)
	if fn.Type.Results == nil || len(fn.Type.Results.List) == 0 {
		return []rewrite{{"body removed", splice(src, edit{open, open, " if groundtruthNever() {"}, edit{shut, shut, "} "})}}
	}
	from, to := off(fn.Type.Results.Pos()), off(fn.Type.Results.End())
	original := string(src[from:to])
	var names, fields []string
	for _, f := range fn.Type.Results.List {
		for range max(1, len(f.Names)) {
			name := fmt.Sprintf("groundtruthR%d", len(names))
			names = append(names, name)
			fields = append(fields, name+" "+string(src[off(f.Type.Pos()):off(f.Type.End())]))
		}
	}
	wrap := func(change string) []byte {
		return splice(src,
			edit{from, to, "(" + strings.Join(fields, ", ") + ")"},
			edit{open, open, " " + strings.Join(names, ", ") + " = func() " + original + " {"},
			edit{shut, shut, "}(); " + change + " return "})
	}
	var out []rewrite
	for i, n := range names {
		out = append(out, rewrite{fmt.Sprintf("other value of result %d", i), wrap("groundtruthOther(&" + n + ");")})
	}
	zero := ""
	for _, n := range names {
		zero += "groundtruthZero(&" + n + "); "
	}
	return append(out, rewrite{"zero results", wrap(zero)})
}

type edit struct {
	start, end int
	text       string
}

// splice replaces the ranges, which are in order and do not overlap.
func splice(src []byte, edits ...edit) []byte {
	var b bytes.Buffer
	at := 0
	for _, e := range edits {
		b.Write(src[at:e.start])
		b.WriteString(e.text)
		at = e.end
	}
	b.Write(src[at:])
	return b.Bytes()
}
