package mutate

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// universal tells whether every name still means the predeclared object at pos:
// inserted text may use it there.
func (f *file) universal(pos token.Pos, names ...string) bool {
	scope := f.pkg.innermost(f, pos)
	for _, name := range names {
		if _, obj := scope.LookupParent(name, pos); obj == nil || obj.Parent() != types.Universe {
			return false
		}
	}
	return true
}

// innermost is the scope at pos. Positions outside any function give the scope
// of the file.
func (p *pkg) innermost(f *file, pos token.Pos) *types.Scope {
	top := p.in.Info.Scopes[f.syntax]
	if top == nil {
		return p.in.Types.Scope()
	}
	if s := top.Innermost(pos); s != nil {
		return s
	}
	return top
}

// typeText writes a type so that it means the same at pos in this file. It is
// false when the type cannot be named there.
func (f *file) typeText(t types.Type, pos token.Pos) (string, bool) {
	scope := f.pkg.innermost(f, pos)
	if !f.nameable(t, scope, pos, make(map[types.Type]bool)) {
		return "", false
	}
	text := types.TypeString(t, func(other *types.Package) string {
		if other == f.pkg.in.Types {
			return ""
		}
		return f.imported[other]
	})
	return text, !strings.ContainsAny(text, "\n")
}

// nameable walks the parts of t that a type expression writes out.
func (f *file) nameable(t types.Type, scope *types.Scope, pos token.Pos, seen map[types.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	each := func(ts ...types.Type) bool {
		for _, t := range ts {
			if !f.nameable(t, scope, pos, seen) {
				return false
			}
		}
		return true
	}
	switch t := t.(type) {
	case *types.Basic:
		if t.Info()&types.IsUntyped != 0 || t.Kind() == types.Invalid || t.Kind() == types.UnsafePointer {
			return false
		}
		_, obj := scope.LookupParent(t.Name(), pos)
		return obj != nil && obj.Parent() == types.Universe
	case *types.Named:
		return f.objectNameable(t.Obj(), scope, pos) && each(typeList(t.TypeArgs())...)
	case *types.Alias:
		return f.objectNameable(t.Obj(), scope, pos) && each(typeList(t.TypeArgs())...)
	case *types.TypeParam:
		_, obj := scope.LookupParent(t.Obj().Name(), pos)
		return obj == t.Obj() || obj == nil && t.Obj().Name() != "_"
	case *types.Pointer:
		return each(t.Elem())
	case *types.Slice:
		return each(t.Elem())
	case *types.Array:
		return each(t.Elem())
	case *types.Chan:
		return each(t.Elem())
	case *types.Map:
		return each(t.Key(), t.Elem())
	case *types.Signature:
		return each(t.Params(), t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			if !each(v.Type()) {
				return false
			}
		}
		return true
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if !m.Exported() && m.Pkg() != f.pkg.in.Types || !each(m.Type()) {
				return false
			}
		}
		for e := range t.EmbeddedTypes() {
			if !each(e) {
				return false
			}
		}
		return true
	case *types.Union:
		for term := range t.Terms() {
			if !each(term.Type()) {
				return false
			}
		}
		return true
	case *types.Struct:
		for v := range t.Fields() {
			if !v.Exported() && v.Pkg() != f.pkg.in.Types || !each(v.Type()) {
				return false
			}
		}
		return true
	}
	return false
}

func typeList(l *types.TypeList) []types.Type {
	var out []types.Type
	for t := range l.Types() {
		out = append(out, t)
	}
	return out
}

// objectNameable tells whether the name of a type, qualified as this file
// qualifies it, reaches that type at pos.
func (f *file) objectNameable(obj *types.TypeName, scope *types.Scope, pos token.Pos) bool {
	if obj.Pkg() == nil || obj.Pkg() == f.pkg.in.Types {
		_, found := scope.LookupParent(obj.Name(), pos)
		return found == obj
	}
	name := f.imported[obj.Pkg()]
	if name == "" || !obj.Exported() || obj.Parent() != obj.Pkg().Scope() {
		return false
	}
	_, found := scope.LookupParent(name, pos)
	pn, ok := found.(*types.PkgName)
	return ok && pn.Imported() == obj.Pkg()
}

// oneLine writes source text of an expression on one line and without
// comments. Line ends that end a statement inside it become semicolons.
func oneLine(src []byte) (string, bool) {
	text := string(src)
	if !strings.ContainsAny(text, "\n\r") && !strings.Contains(text, "//") && !strings.Contains(text, "/*") {
		return text, true
	}
	var s scanner.Scanner
	failed := false
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, src, func(token.Position, string) { failed = true }, 0)
	var out strings.Builder
	pending := false // a line end that may be a semicolon
	for {
		_, tok, lit := s.Scan()
		if tok == token.EOF {
			return out.String(), !failed
		}
		if tok == token.SEMICOLON && lit == "\n" {
			pending = true
			continue
		}
		if pending {
			out.WriteString("; ")
			pending = false
		} else if out.Len() > 0 {
			out.WriteByte(' ')
		}
		switch {
		case tok == token.STRING && strings.ContainsAny(lit, "\n"):
			value, err := strconv.Unquote(lit)
			if err != nil {
				return "", false
			}
			out.WriteString(strconv.Quote(value))
		case lit != "":
			out.WriteString(lit)
		default:
			out.WriteString(tok.String())
		}
	}
}

// source is the original text of a node.
func (f *file) source(n ast.Node) []byte { return f.src[f.offset(n.Pos()):f.offset(n.End())] }

// line1 is the text of a node on one line.
func (f *file) line1(n ast.Node) (string, bool) { return oneLine(f.source(n)) }
