package mutate

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
)

// remove makes a statement of a list switchable: if it is off it does not run.
func (w *walker) remove(s ast.Stmt, summary string) {
	f := w.file
	a, b := f.offset(s.Pos()), f.offset(s.End())
	g := f.add(a, b, func(live []*probe) []insertion {
		if len(live) == 0 {
			return nil
		}
		return []insertion{
			{at: a, text: []span{{fmt.Sprintf("if !_pvt_p.On(%d) { ", live[0].number), live[0]}}},
			{at: b, closes: true, text: []span{{" }", live[0]}}},
		}
	})
	g.probe(evidence.ProbeStatement, "REMOVE_STATEMENT", w.symbol, summary, s.Pos(),
		[]Edit{{Start: a, End: a, Text: "if false { "}, {Start: b, End: b, Text: " }"}})
}

// exprStmt probes a call made for its effect. It is false when nothing below
// the statement is to be probed either.
func (w *walker) exprStmt(s *ast.ExprStmt) bool {
	call, ok := ast.Unparen(s.X).(*ast.CallExpr)
	if !ok || !w.inList(s) {
		return true
	}
	if reason := w.unmutated(call); reason != "" {
		w.file.skip(w.symbol, s.Pos(), reason)
		return reason == "closing_call"
	}
	if w.builtin(call) == "panic" && w.endsFunction() {
		w.file.skip(w.symbol, s.Pos(), "missing_return")
		return true
	}
	w.remove(s, "call removed")
	return true
}

// launched probes a deferred call or a call in a new goroutine.
func (w *walker) launched(s ast.Stmt, call *ast.CallExpr) bool {
	if reason := w.unmutated(call); reason != "" {
		w.file.skip(w.symbol, s.Pos(), reason)
		return reason == "closing_call"
	}
	if w.inList(s) {
		w.remove(s, "call removed")
	}
	return true
}

// endsFunction tells whether a panic here may be what a function with results
// ends with instead of a return. An if without else never is.
func (w *walker) endsFunction() bool {
	for i := 1; ; i++ {
		switch p := w.up(i).(type) {
		case nil:
			return w.decl.Type.Results.NumFields() > 0
		case *ast.FuncLit:
			return p.Type.Results.NumFields() > 0
		case *ast.IfStmt:
			if p.Else == nil {
				return false
			}
		case *ast.ForStmt, *ast.RangeStmt:
			return false
		}
	}
}

func (w *walker) assign(s *ast.AssignStmt) {
	if s.Tok == token.DEFINE || !w.inList(s) {
		return
	}
	blank := true
	for _, l := range s.Lhs {
		if id, ok := l.(*ast.Ident); !ok || id.Name != "_" {
			blank = false
		}
	}
	if blank && !hasCall(s) {
		return
	}
	w.remove(s, "assignment removed")
}

// incDec turns ++ into -- and back.
func (w *walker) incDec(s *ast.IncDecStmt) {
	f := w.file
	to := map[token.Token]string{token.INC: "--", token.DEC: "++"}[s.Tok]
	x, ok := f.line1(s.X)
	if !ok {
		f.skip(w.symbol, s.TokPos, "multi_line")
		return
	}
	if w.recovers(s.X) {
		return
	}
	before, after := "", ""
	if !w.inList(s) {
		before, after = "func() { ", " }()" // the header of a for, if or switch
	}
	a, b := f.offset(s.Pos()), f.offset(s.End())
	g := f.add(a, b, func(live []*probe) []insertion {
		if len(live) == 0 {
			return nil
		}
		p := live[0]
		return []insertion{
			{at: a, text: []span{{fmt.Sprintf("%sif _pvt_p.On(%d) { %s%s } else { ", before, p.number, x, to), p}}},
			{at: b, closes: true, text: []span{{" }" + after, p}}},
		}
	})
	at := f.offset(s.TokPos)
	g.probe(evidence.ProbeArithmetic, "INCREMENT_DECREMENT", w.symbol, s.Tok.String()+" replaced by "+to, s.TokPos,
		[]Edit{{Start: at, End: at + 2, Text: to}})
}

// branch turns break into continue and back where a loop allows it.
func (w *walker) branch(s *ast.BranchStmt) {
	var to token.Token
	switch s.Tok {
	case token.BREAK:
		to = token.CONTINUE
	case token.CONTINUE:
		to = token.BREAK
	default:
		return
	}
	if reason := w.branchBlocked(s); reason != "" {
		w.file.skip(w.symbol, s.Pos(), reason)
		return
	}
	label := ""
	if s.Label != nil {
		label = " " + s.Label.Name
	}
	f := w.file
	a := f.offset(s.Pos())
	g := f.add(a, f.offset(s.End()), func(live []*probe) []insertion {
		if len(live) == 0 {
			return nil
		}
		return []insertion{{at: a, text: []span{{fmt.Sprintf("if _pvt_p.On(%d) { %s%s }; ", live[0].number, to, label), live[0]}}}}
	})
	g.probe(evidence.ProbeStatement, "INVERT_LOOPCTRL", w.symbol, s.Tok.String()+" replaced by "+to.String(), s.Pos(),
		[]Edit{{Start: a, End: a + len(s.Tok.String()), Text: to.String()}})
}

// branchBlocked says why a break or continue cannot become the other: there is
// no loop, or an endless loop would get its first way out, so that the function
// lacked a return. A continue in a switch would leave the switch alone.
func (w *walker) branchBlocked(s *ast.BranchStmt) string {
	for i := 1; ; i++ {
		var endless bool
		switch p := w.up(i).(type) {
		case nil, *ast.FuncLit:
			return "no_loop"
		case *ast.ForStmt:
			endless = p.Cond == nil
		case *ast.RangeStmt:
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			if s.Label != nil && labels(w.up(i+1), s.Label.Name) {
				return "no_loop"
			}
			continue
		default:
			continue
		}
		if s.Label != nil && !labels(w.up(i+1), s.Label.Name) {
			continue
		}
		if endless && s.Tok == token.CONTINUE {
			return "missing_return"
		}
		return ""
	}
}

func labels(n ast.Node, name string) bool {
	l, ok := n.(*ast.LabeledStmt)
	return ok && l.Label.Name == name
}

// errorPath forces the condition `err != nil` false: the error is not seen.
func (w *walker) errorPath(e *ast.BinaryExpr) {
	info := w.file.pkg.in.Info
	errType := types.Universe.Lookup("error").Type()
	t := info.TypeOf(e.X)
	if e.Op != token.NEQ || !info.Types[e.Y].IsNil() || t == nil || !types.Identical(t, errType) {
		return
	}
	if !w.file.universal(e.Pos(), "false") {
		w.file.skip(w.symbol, e.Pos(), "shadowed_name")
		return
	}
	a, b := w.file.offset(e.Pos()), w.file.offset(e.End())
	g := w.file.add(a, b, func(live []*probe) []insertion {
		if len(live) == 0 {
			return nil
		}
		return []insertion{
			{at: a, text: []span{{"(", live[0]}}},
			{at: b, closes: true, text: []span{{fmt.Sprintf(" && !_pvt_p.On(%d))", live[0].number), live[0]}}},
		}
	})
	g.probe(evidence.ProbeStatement, "DROP_ERROR_PATH", w.symbol, "error not seen", e.Pos(),
		[]Edit{{Start: a, End: a, Text: "("}, {Start: b, End: b, Text: " && false)"}})
}

// callExpr keeps probes out of capacity hints, of the arguments of logging and
// of predeclared functions that want constants. It tells whether to go on below.
func (w *walker) callExpr(c *ast.CallExpr) bool {
	if w.builtin(c) != "make" || len(c.Args) == 0 {
		return w.unmutated(c) != "logging" && w.unmutated(c) != "metrics"
	}
	hint := 1
	if t := w.file.pkg.in.Info.TypeOf(c.Args[0]); t != nil {
		if _, slice := t.Underlying().(*types.Slice); slice {
			hint = 2
		}
	}
	for i, a := range c.Args {
		switch {
		case i == 0:
		case i == hint:
			w.file.skip(w.symbol, a.Pos(), "capacity_hint")
		default:
			w.below(c, a)
		}
	}
	return false
}

// below visits a child of n as ast.Inspect would.
func (w *walker) below(n, child ast.Node) {
	w.stack = append(w.stack, n)
	depth := len(w.stack)
	ast.Inspect(child, func(n ast.Node) bool {
		if n == nil {
			w.stack = w.stack[:len(w.stack)-1]
			return true
		}
		if !w.visit(n) {
			return false
		}
		w.stack = append(w.stack, n)
		return true
	})
	w.stack = w.stack[:depth-1]
}

// loggers and meters are packages whose calls tell people or monitoring what
// happened; no test is expected to look.
var loggers = []string{
	"log", "log/slog", "github.com/sirupsen/logrus", "go.uber.org/zap", "github.com/rs/zerolog",
	"k8s.io/klog", "github.com/golang/glog", "github.com/go-logr/logr", "github.com/hashicorp/go-hclog",
}

var meters = []string{"expvar", "github.com/prometheus/client_golang", "go.opentelemetry.io/otel", "github.com/rcrowley/go-metrics"}

// closers are methods that end the use of something: without them a test
// hangs or leaks, which says nothing about its assertions.
var closers = map[string]bool{
	"Close": true, "Lock": true, "Unlock": true, "RLock": true, "RUnlock": true,
	"Done": true, "Stop": true, "Wait": true, "Rollback": true, "CloseWithError": true,
}

// unmutated says why a call is left alone: logging, metrics, closing_call; or
// empty. Calls that end the process are behaviour, also those of loggers.
func (w *walker) unmutated(c *ast.CallExpr) string {
	if w.builtin(c) == "close" {
		return "closing_call"
	}
	info := w.file.pkg.in.Info
	if t := info.TypeOf(c.Fun); t != nil {
		if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Name() == "CancelFunc" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "context" {
			return "closing_call"
		}
	}
	var id *ast.Ident
	switch fun := ast.Unparen(c.Fun).(type) {
	case *ast.SelectorExpr:
		id = fun.Sel
	case *ast.Ident:
		id = fun
	default:
		return ""
	}
	callee, ok := info.Uses[id].(*types.Func)
	if !ok || callee.Pkg() == nil {
		return ""
	}
	switch name := callee.Name(); {
	case callee.Signature().Recv() != nil && closers[name] && len(c.Args) <= 1:
		return "closing_call"
	case strings.HasPrefix(name, "Fatal"), strings.HasPrefix(name, "Panic"):
		return ""
	case ofPackage(callee.Pkg().Path(), loggers) && callee.Signature().Results().Len() == 0:
		return "logging"
	case ofPackage(callee.Pkg().Path(), meters) && callee.Signature().Results().Len() == 0:
		return "metrics"
	}
	return ""
}

func ofPackage(path string, list []string) bool {
	for _, p := range list {
		if path == p || strings.Contains(p, ".") && strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}
