package mutate

import (
	"go/ast"
	"go/token"
	"go/types"
)

// walker visits a function body, outside in, and adds a group for everything
// that can be probed. Statements of nested function literals belong to the
// function that holds them.
type walker struct {
	*function
	stack []ast.Node // ancestors of the node being visited
}

// body makes the probes inside the function.
func (fn *function) body() {
	w := &walker{function: fn}
	ast.Inspect(fn.decl.Body, func(n ast.Node) bool {
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
}

// up is the i-th ancestor, from 1 for the parent; nil above the body.
func (w *walker) up(i int) ast.Node {
	if i > len(w.stack) {
		return nil
	}
	return w.stack[len(w.stack)-i]
}

// visit adds the groups of one node and tells whether to look below it.
func (w *walker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ExprStmt:
		return w.exprStmt(n)
	case *ast.AssignStmt:
		w.assign(n)
	case *ast.DeferStmt:
		return w.launched(n, n.Call)
	case *ast.GoStmt:
		return w.launched(n, n.Call)
	case *ast.SendStmt:
		if w.inList(n) {
			w.remove(n, "a send removed")
		}
	case *ast.IncDecStmt:
		w.incDec(n)
	case *ast.BranchStmt:
		w.branch(n)
	case *ast.IfStmt:
		w.condition(n.Cond)
	case *ast.ForStmt:
		w.condition(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, clause := range n.Body.List {
				for _, e := range clause.(*ast.CaseClause).List {
					w.condition(e)
				}
			}
		}
	case ast.Expr:
		return w.expr(n)
	}
	return true
}

func (w *walker) expr(e ast.Expr) bool {
	tv, known := w.file.pkg.in.Info.Types[e]
	if known && tv.IsType() {
		return false
	}
	switch e := e.(type) {
	case *ast.FuncLit:
		return true
	case *ast.BinaryExpr:
		if tv.Value != nil && !w.definite(e, tv) {
			w.constantSkip(e)
			return false
		}
		w.binary(e)
		return tv.Value == nil
	case *ast.UnaryExpr:
		if tv.Value != nil && !w.definite(e, tv) {
			w.constantSkip(e)
			return false
		}
		w.unary(e)
		return tv.Value == nil
	case *ast.BasicLit:
		w.literal(e)
	case *ast.CallExpr:
		return w.callExpr(e)
	}
	return true
}

// constantSkip lists a constant expression with an operator that could have
// been probed.
func (w *walker) constantSkip(e ast.Expr) {
	w.file.skip(w.symbol, e.Pos(), "constant_expression")
}

// definite tells whether a constant stands where a call that gives a value of
// its type can stand instead.
func (w *walker) definite(e ast.Expr, tv types.TypeAndValue) bool {
	basic, ok := tv.Type.Underlying().(*types.Basic)
	if !ok {
		return false
	}
	i := 1
	for ; ; i++ {
		if _, paren := w.up(i).(*ast.ParenExpr); !paren {
			break
		}
	}
	child := e
	if i > 1 {
		child = w.up(i - 1).(ast.Expr)
	}
	if basic.Info()&types.IsUntyped != 0 && basic.Info()&types.IsBoolean == 0 {
		return false
	}
	switch p := w.up(i).(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.AssignStmt:
		return p.Tok != token.SHL_ASSIGN && p.Tok != token.SHR_ASSIGN
	case *ast.ValueSpec:
		return true
	case *ast.CallExpr:
		return p.Fun != child && w.isCall(p)
	case *ast.KeyValueExpr:
		return p.Value == child
	case *ast.CompositeLit:
		return p.Type != child
	case *ast.IfStmt, *ast.ForStmt, *ast.SendStmt:
		return true
	case *ast.BinaryExpr:
		// The other operand is not constant, or the whole would be.
		outer := w.file.pkg.in.Info.Types[p]
		return outer.Value == nil && p.Op != token.SHL && p.Op != token.SHR
	}
	return false
}

// isCall tells a call of a function from a conversion and from a predeclared
// function, whose arguments may have to be constant.
func (w *walker) isCall(c *ast.CallExpr) bool {
	switch w.builtin(c) {
	case "append", "panic":
		return true
	}
	tv := w.file.pkg.in.Info.Types[c.Fun]
	return !tv.IsType() && !tv.IsBuiltin()
}

// inList tells whether s, which is being visited, is a statement of a list,
// where another statement can take its place.
func (w *walker) inList(s ast.Stmt) bool {
	switch p := w.up(1).(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.LabeledStmt:
		return true
	case *ast.CommClause:
		return p.Comm != s
	}
	return false
}

// hasCall tells whether evaluating n calls, receives or makes a function.
func hasCall(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr, *ast.FuncLit:
			found = true
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		}
		return !found
	})
	return found
}

// recovers tells whether n calls recover, which works only where it stands.
func (w *walker) recovers(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && w.builtin(c) == "recover" {
			found = true
		}
		return !found
	})
	return found
}

// builtin is the name of the predeclared function that c calls, or empty.
func (w *walker) builtin(c *ast.CallExpr) string {
	if id, ok := ast.Unparen(c.Fun).(*ast.Ident); ok {
		if b, ok := w.file.pkg.in.Info.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}
