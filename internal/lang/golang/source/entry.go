package source

import (
	"go/ast"
	"go/constant"
	"go/doc"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

// examples lists the example functions that the go command runs: those with an
// Output comment.
func (r *reader) examples() {
	var files []*ast.File
	for _, f := range r.files {
		if strings.HasSuffix(r.fileName(f), "_test.go") {
			files = append(files, f)
		}
	}
	funcs := map[string]*funcFact{}
	for i := range r.out.Funcs {
		if f := &r.out.Funcs[i]; f.Symbol.Kind == "example" {
			funcs[f.Key] = f
		}
	}
	for _, e := range doc.Examples(files...) {
		name := "Example" + e.Name
		f, ok := funcs["f:"+r.pkgKey()+"."+name]
		if ok && (e.Output != "" || e.EmptyOutput) {
			// The comment is its assertion.
			f.Own = evidence.DigestParts("example/v1", string(f.Own), e.Output, strconv.FormatBool(e.Unordered))
			s := f.Symbol
			r.out.Tests = append(r.out.Tests, lang.Test{Name: name, Kind: "example", Unit: s.Unit, File: s.File, Line: s.Line, Symbol: s.ID})
		}
	}
}

// router is the shape of a registration: which arguments are the method, the
// pattern and the handler; -1 is none, and the handler -2 is the last one.
type router struct {
	method, pattern, handler int
	verb                     string // when the function's name says it
}

// routers finds registrations by the import path and name of what is called, so
// none of these modules needs to be there.
func routeOf(path, name string) (router, bool) {
	verb := strings.ToUpper(name)
	isVerb := false
	switch verb {
	case "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE":
		isVerb = true
	}
	switch {
	case path == "net/http", under(path, "github.com/gorilla/mux"):
		if name == "HandleFunc" || name == "Handle" {
			return router{-1, 0, 1, ""}, true
		}
	case under(path, "github.com/go-chi/chi"):
		switch {
		case isVerb && name != verb:
			return router{-1, 0, 1, verb}, true
		case name == "HandleFunc" || name == "Handle":
			return router{-1, 0, 1, ""}, true
		case name == "Method" || name == "MethodFunc":
			return router{0, 1, 2, ""}, true
		}
	case under(path, "github.com/gin-gonic/gin"):
		switch {
		case isVerb && name == verb:
			return router{-1, 0, -2, verb}, true
		case name == "Any":
			return router{-1, 0, -2, ""}, true
		case name == "Handle":
			return router{0, 1, -2, ""}, true
		}
	case under(path, "github.com/labstack/echo"):
		switch {
		case isVerb && name == verb:
			return router{-1, 0, 1, verb}, true
		case name == "Any":
			return router{-1, 0, 1, ""}, true
		case name == "Add":
			return router{0, 1, 2, ""}, true
		}
	}
	return router{}, false
}

// groups are the functions that return, or pass to a function literal, a router
// whose patterns are below a prefix.
func isGroup(path, name string) bool {
	switch {
	case under(path, "github.com/go-chi/chi"):
		return name == "Route"
	case under(path, "github.com/gin-gonic/gin"), under(path, "github.com/labstack/echo"):
		return name == "Group"
	}
	return false
}

// under tells whether path is the module or below it, its major versions
// included.
func under(path, module string) bool {
	return path == module || strings.HasPrefix(path, module+"/")
}

// entries finds routes and commands in the file that is being read.
func (r *reader) entries() {
	if r.testFile() {
		return
	}
	prefix := map[types.Object]string{}
	for _, d := range r.file.Decls {
		holder := ""
		if fd, ok := d.(*ast.FuncDecl); ok {
			holder = r.ids[fd]
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.AssignStmt:
				r.groupVariable(x, prefix)
			case *ast.CallExpr:
				r.groupLiteral(x, prefix)
				r.route(x, holder, prefix)
			case *ast.CompositeLit:
				r.command(x, holder)
			}
			return true
		})
	}
}

// callee is the function that a call names.
func (r *reader) callee(c *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch f := ast.Unparen(c.Fun).(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id = f.Sel
	default:
		return nil
	}
	fn, _ := r.info.Uses[id].(*types.Func)
	return fn
}

// base is the prefix of the router on which a method is called.
func (r *reader) base(c *ast.CallExpr, prefix map[types.Object]string) string {
	if s, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok {
		switch x := ast.Unparen(s.X).(type) {
		case *ast.Ident:
			return prefix[r.info.Uses[x]]
		case *ast.CallExpr: // r.Group("/api").GET(…)
			if f := r.callee(x); f != nil && f.Pkg() != nil && isGroup(f.Pkg().Path(), f.Name()) && len(x.Args) > 0 {
				return r.base(x, prefix) + r.text(x.Args[0])
			}
		}
	}
	return ""
}

func (r *reader) groupVariable(a *ast.AssignStmt, prefix map[types.Object]string) {
	for i, e := range a.Rhs {
		c, ok := ast.Unparen(e).(*ast.CallExpr)
		if !ok || len(a.Lhs) != len(a.Rhs) || len(c.Args) == 0 {
			continue
		}
		f := r.callee(c)
		id, isName := a.Lhs[i].(*ast.Ident)
		if f == nil || f.Pkg() == nil || !isName || !isGroup(f.Pkg().Path(), f.Name()) {
			continue
		}
		o := r.info.Defs[id]
		if o == nil {
			o = r.info.Uses[id]
		}
		if o != nil {
			prefix[o] = r.base(c, prefix) + r.text(c.Args[0])
		}
	}
}

// groupLiteral handles r.Route("/api", func(r chi.Router) {…}).
func (r *reader) groupLiteral(c *ast.CallExpr, prefix map[types.Object]string) {
	f := r.callee(c)
	if f == nil || f.Pkg() == nil || !isGroup(f.Pkg().Path(), f.Name()) || len(c.Args) < 2 {
		return
	}
	lit, ok := ast.Unparen(c.Args[1]).(*ast.FuncLit)
	if !ok || len(lit.Type.Params.List) == 0 || len(lit.Type.Params.List[0].Names) == 0 {
		return
	}
	if o := r.info.Defs[lit.Type.Params.List[0].Names[0]]; o != nil {
		prefix[o] = r.base(c, prefix) + r.text(c.Args[0])
	}
}

func (r *reader) route(c *ast.CallExpr, holder string, prefix map[types.Object]string) {
	f := r.callee(c)
	if f == nil || f.Pkg() == nil {
		return
	}
	rt, ok := routeOf(f.Pkg().Path(), f.Name())
	if rt.handler == -2 {
		rt.handler = len(c.Args) - 1
	}
	if !ok || len(c.Args) <= max(rt.handler, rt.pattern) || rt.handler <= rt.pattern {
		return
	}
	method, pattern := rt.verb, r.text(c.Args[rt.pattern])
	if rt.method >= 0 {
		method = r.text(c.Args[rt.method])
	}
	name := r.base(c, prefix) + pattern
	if method != "" {
		name = method + " " + name
	}
	r.entry("http_route", name, c.Args[rt.handler], holder, c.Pos())
}

// command handles &cobra.Command{Use: "serve [flags]", RunE: run}.
func (r *reader) command(l *ast.CompositeLit, holder string) {
	n, ok := types.Unalias(r.info.TypeOf(l)).(*types.Named)
	if !ok || n.Obj().Pkg() == nil || n.Obj().Name() != "Command" || !under(n.Obj().Pkg().Path(), "github.com/spf13/cobra") {
		return
	}
	use := ""
	var run ast.Expr
	for _, e := range l.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch key, _ := kv.Key.(*ast.Ident); {
		case key == nil:
		case key.Name == "Use":
			use, _, _ = strings.Cut(strings.TrimSpace(r.text(kv.Value)), " ")
		case key.Name == "Run" && run == nil, key.Name == "RunE":
			run = kv.Value
		}
	}
	if run != nil {
		r.entry("cli_command", use, run, holder, l.Pos())
	}
}

// entry adds the entry points that lead to a handler: the function that it
// names, the enclosing function of a literal, the ServeHTTP of its type. For a
// literal outside all functions they are the functions that it names.
func (r *reader) entry(kind, name string, handler ast.Expr, holder string, pos token.Pos) {
	e := entryFact{Kind: kind, Name: name, Symbol: holder, File: r.m.rel(r.name), Line: r.line(pos)}
	keys := r.handlerKeys(handler, holder == "")
	if len(keys) == 0 {
		if holder != "" {
			r.out.Entries = append(r.out.Entries, e)
		}
		return
	}
	for _, k := range keys {
		e.Key = k
		r.out.Entries = append(r.out.Entries, e)
	}
}

// handlerKeys are the keys of the project's functions behind a handler.
func (r *reader) handlerKeys(e ast.Expr, intoLiterals bool) []string {
	var out []string
	e = ast.Unparen(e)
	ast.Inspect(e, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit:
			return intoLiterals
		case *ast.Ident:
			if f, ok := r.info.Uses[x].(*types.Func); ok {
				if key := r.funcKey(f); key != "" {
					out = append(out, key)
				}
			}
		}
		return true
	})
	if len(out) > 0 && !intoLiterals {
		// In middleware(handler) the last name is the handler.
		out = out[len(out)-1:]
	}
	if t := r.info.TypeOf(e); len(out) == 0 && t != nil {
		if o, _, _ := types.LookupFieldOrMethod(t, true, r.pkg, "ServeHTTP"); o != nil {
			if f, ok := o.(*types.Func); ok {
				if key := r.funcKey(f); key != "" {
					out = append(out, key)
				}
			}
		}
	}
	return out
}

// text is the value of a constant string; a named placeholder for anything else.
func (r *reader) text(e ast.Expr) string {
	if tv, ok := r.info.Types[e]; ok && tv.Value != nil && tv.Value.Kind() == constant.String {
		return constant.StringVal(tv.Value)
	}
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if s, err := strconv.Unquote(l.Value); err == nil {
			return s
		}
	}
	return "{…}"
}
