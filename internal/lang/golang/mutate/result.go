package mutate

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
)

// function is one function whose body gets probes.
type function struct {
	file       *file
	decl       *ast.FuncDecl
	symbol     string
	begin, end int // offsets of the body, without its braces
}

// result is one result of a function.
type result struct {
	text string // its type on one line
	typ  types.Type
	name *ast.Ident // nil when results have no names
}

// results makes the probes that change what the function gives back.
func (fn *function) results() {
	if fn.decl.Type.Results.NumFields() == 0 {
		fn.effect()
		return
	}
	var results []result
	for _, field := range fn.decl.Type.Results.List {
		text, ok := fn.file.line1(field.Type)
		typ := fn.file.pkg.in.Info.TypeOf(field.Type)
		if !ok || typ == nil {
			fn.file.skip(fn.symbol, field.Pos(), "unnamed_type")
			return
		}
		if len(field.Names) == 0 {
			results = append(results, result{text: text, typ: typ})
		}
		for _, name := range field.Names {
			results = append(results, result{text: text, typ: typ, name: name})
		}
	}
	params, args, ok := fn.typeParams()
	if !ok {
		fn.file.skip(fn.symbol, fn.decl.Pos(), "unnamed_constraint")
		return
	}
	h := &helper{fn: fn, results: results, params: params, args: args}
	h.calls = h.callSites()
	if len(h.calls) == 0 {
		return // never returns
	}
	g := fn.file.add(fn.begin, fn.end, h.render)
	h.group = g
	h.id = g.seq
	for _, c := range fn.changes(results) {
		h.changes = append(h.changes, c)
		p := g.probe(evidence.ProbeResult, c.operator, fn.symbol, c.summary, fn.decl.Name.Pos(), h.plain(c))
		p.site.Result, p.site.Const = c.result, c.constant
	}
}

// effect makes the probe of a function without results: nothing is done.
func (fn *function) effect() {
	if len(fn.decl.Body.List) == 0 {
		return
	}
	at := fn.begin
	g := fn.file.add(at, fn.end, func(live []*probe) []insertion {
		if len(live) == 0 {
			return nil
		}
		text := fmt.Sprintf(" if _pvt_p.On(%d) { return };", live[0].number)
		return []insertion{{at: at, text: []span{{text, live[0]}}}}
	})
	g.probe(evidence.ProbeResult, "VOID_BODY", fn.symbol, "body removed", fn.decl.Name.Pos(),
		[]Edit{{Start: at, End: at, Text: " return;"}})
}

// typeParams writes the type parameters of the function or of its receiver, as
// declared and as passed. It is false when a constraint cannot be written here
// or a parameter is shadowed where the function returns.
func (fn *function) typeParams() (params, args string, ok bool) {
	obj, isFunc := fn.file.pkg.in.Info.Defs[fn.decl.Name].(*types.Func)
	if !isFunc {
		return "", "", false
	}
	list := obj.Signature().TypeParams()
	if list.Len() == 0 {
		list = obj.Signature().RecvTypeParams()
	}
	var ps, as []string
	for tp := range list.TypeParams() {
		name := tp.Obj().Name()
		if name == "_" {
			if obj.Signature().TypeParams().Len() > 0 {
				return "", "", false // must be passed, and has no name
			}
			continue
		}
		constraint, nameable := fn.file.typeText(tp.Constraint(), token.NoPos)
		if !nameable {
			return "", "", false
		}
		ps, as = append(ps, name+" "+constraint), append(as, name)
	}
	if len(ps) == 0 {
		return "", "", true
	}
	shadowed := false
	inspectOwn(fn.decl.Body, func(n ast.Node) {
		if ret, isReturn := n.(*ast.ReturnStmt); isReturn {
			scope := fn.file.pkg.innermost(fn.file, ret.Pos())
			for tp := range list.TypeParams() {
				if _, found := scope.LookupParent(tp.Obj().Name(), ret.Pos()); tp.Obj().Name() != "_" && found != tp.Obj() {
					shadowed = true
				}
			}
		}
	})
	return "[" + strings.Join(ps, ", ") + "]", "[" + strings.Join(as, ", ") + "]", !shadowed
}

// inspectOwn visits the nodes of a body without those of nested function
// literals.
func inspectOwn(body ast.Node, visit func(ast.Node)) {
	ast.Inspect(body, func(n ast.Node) bool {
		if _, nested := n.(*ast.FuncLit); nested {
			return false
		}
		if n != nil {
			visit(n)
		}
		return true
	})
}

// helper is the function through which all results of one function pass.
type helper struct {
	fn           *function
	group        *group
	id           int
	results      []result
	params, args string
	calls        []call
	changes      []change // one a probe, in order
}

// call is text around a returned expression; %s stands for the helper's name.
type call struct {
	at     int
	text   string
	closes bool
}

// callSites finds where the helper must be called. Named results that a defer
// can still change pass through it last of all, in a deferred call of its own.
func (h *helper) callSites() []call {
	f := h.fn.file
	named := h.results[0].name != nil
	var returns []*ast.ReturnStmt
	defers, bare := false, false
	inspectOwn(h.fn.decl.Body, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.DeferStmt:
			defers = true
		case *ast.ReturnStmt:
			returns = append(returns, n)
			bare = bare || len(n.Results) == 0
		}
	})
	var out []call
	names := make([]string, len(h.results))
	for i, r := range h.results {
		if !named || !defers && !bare {
			break
		}
		names[i] = r.name.Name
		if r.name.Name == "_" {
			names[i] = "_pr" + strconv.Itoa(i)
			out = append(out, call{at: f.offset(r.name.End()), text: "pr" + strconv.Itoa(i), closes: true})
		}
	}
	all := strings.Join(names, ", ")
	if named && defers {
		return append(out, call{at: h.fn.begin, text: " defer func() { " + all + " = %s" + h.args + "(" + all + ") }();"})
	}
	for _, r := range returns {
		if len(r.Results) == 0 {
			out = append(out, call{at: f.offset(r.End()), text: " %s" + h.args + "(" + all + ")", closes: true})
			continue
		}
		out = append(out, call{at: f.offset(r.Results[0].Pos()), text: "%s" + h.args + "("},
			call{at: f.offset(r.Results[len(r.Results)-1].End()), text: ")", closes: true})
	}
	if len(returns) == 0 {
		return nil
	}
	return out
}

// lists writes the helper's parameters, its result types and its variables.
func (h *helper) lists() (params, types, vars string) {
	var ps, ts, vs []string
	for i, r := range h.results {
		v := "r" + strconv.Itoa(i)
		ps, ts, vs = append(ps, v+" "+r.text), append(ts, r.text), append(vs, v)
	}
	types = strings.Join(ts, ", ")
	if len(ts) > 1 {
		types = "(" + types + ")"
	}
	return strings.Join(ps, ", "), types, strings.Join(vs, ", ")
}

func (h *helper) render(live []*probe) []insertion {
	if len(live) == 0 {
		return nil
	}
	name := "_pvt_r" + strconv.Itoa(h.id)
	var out []insertion
	for _, c := range h.calls {
		out = append(out, insertion{at: c.at, closes: c.closes, text: []span{plain("%s", strings.Replace(c.text, "%s", name, 1))}})
	}
	params, types, vars := h.lists()
	text := []span{plain("%sfunc %s%s(%s) %s { if _pvt_p.Watch() { _pvt_p.Values(%d, %s) };",
		h.fn.file.newline(), name, h.params, params, types, live[0].number, vars)}
	for i, p := range h.group.probes {
		if p.dead {
			continue
		}
		p.site.Value = live[0].number
		c := h.changes[i]
		text = append(text, span{fmt.Sprintf(" if _pvt_p.On(%d) { q := r%d; %s; _pvt_p.Saw(%d, q, r%d) };",
			p.number, c.result, strings.Join(c.body, "; "), p.number, c.result), p})
	}
	text = append(text, plain(" return %s }\n", vars))
	return append(out, insertion{at: len(h.fn.file.src), text: text})
}

// newline ends the last line of a file that does not.
func (f *file) newline() string {
	if n := len(f.src); n == 0 || f.src[n-1] != '\n' {
		return "\n"
	}
	return ""
}

// plain are the edits that make one change for ever.
func (h *helper) plain(c change) []Edit {
	const name = "provetoChanged"
	var out []Edit
	for _, call := range h.calls {
		out = append(out, Edit{Start: call.at, End: call.at, Text: strings.Replace(call.text, "%s", name, 1)})
	}
	params, types, vars := h.lists()
	text := fmt.Sprintf("%s\nfunc %s%s(%s) %s {\n\t%s\n\treturn %s\n}\n",
		h.fn.file.newline(), name, h.params, params, types, strings.Join(c.body, "\n\t"), vars)
	if c.operator == "ERROR_RETURNS" {
		text += "\n" + errorDecl
	}
	end := len(h.fn.file.src)
	return append(out, Edit{Start: end, End: end, Text: text})
}
