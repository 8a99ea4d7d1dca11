package mutate

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
)

// swap is what an operator puts in the place of a token.
type swap struct {
	kind     evidence.ProbeKind
	operator string
	to       token.Token
}

// swaps are the operators on binary expressions, in the order of their kinds.
var swaps = map[token.Token][]swap{
	token.EQL:     {{evidence.ProbeCondition, "CONDITIONALS_NEGATION", token.NEQ}},
	token.NEQ:     {{evidence.ProbeCondition, "CONDITIONALS_NEGATION", token.EQL}},
	token.LSS:     {{evidence.ProbeCondition, "CONDITIONALS_NEGATION", token.GEQ}, {evidence.ProbeBoundary, "CONDITIONALS_BOUNDARY", token.LEQ}},
	token.LEQ:     {{evidence.ProbeCondition, "CONDITIONALS_NEGATION", token.GTR}, {evidence.ProbeBoundary, "CONDITIONALS_BOUNDARY", token.LSS}},
	token.GTR:     {{evidence.ProbeCondition, "CONDITIONALS_NEGATION", token.LEQ}, {evidence.ProbeBoundary, "CONDITIONALS_BOUNDARY", token.GEQ}},
	token.GEQ:     {{evidence.ProbeCondition, "CONDITIONALS_NEGATION", token.LSS}, {evidence.ProbeBoundary, "CONDITIONALS_BOUNDARY", token.GTR}},
	token.ADD:     {{evidence.ProbeArithmetic, "ARITHMETIC_BASE", token.SUB}},
	token.SUB:     {{evidence.ProbeArithmetic, "ARITHMETIC_BASE", token.ADD}},
	token.MUL:     {{evidence.ProbeArithmetic, "ARITHMETIC_BASE", token.QUO}},
	token.QUO:     {{evidence.ProbeArithmetic, "ARITHMETIC_BASE", token.MUL}},
	token.REM:     {{evidence.ProbeArithmetic, "ARITHMETIC_BASE", token.MUL}},
	token.LAND:    {{evidence.ProbeArithmetic, "INVERT_LOGICAL", token.LOR}},
	token.LOR:     {{evidence.ProbeArithmetic, "INVERT_LOGICAL", token.LAND}},
	token.AND:     {{evidence.ProbeArithmetic, "INVERT_BITWISE", token.OR}},
	token.OR:      {{evidence.ProbeArithmetic, "INVERT_BITWISE", token.AND}},
	token.XOR:     {{evidence.ProbeArithmetic, "INVERT_BITWISE", token.AND}},
	token.AND_NOT: {{evidence.ProbeArithmetic, "INVERT_BITWISE", token.AND}},
	token.SHL:     {{evidence.ProbeArithmetic, "INVERT_BITWISE", token.SHR}},
	token.SHR:     {{evidence.ProbeArithmetic, "INVERT_BITWISE", token.SHL}},
}

// variant is one other form of an expression.
type variant struct {
	kind              evidence.ProbeKind
	operator, summary string
	at                token.Pos
	text              string // on one line
	edits             []Edit
}

func (w *walker) binary(e *ast.BinaryExpr) {
	x, ok1 := w.file.line1(e.X)
	y, ok2 := w.file.line1(e.Y)
	if !ok1 || !ok2 {
		w.file.skip(w.symbol, e.OpPos, "multi_line")
		return
	}
	var out []variant
	for _, s := range swaps[e.Op] {
		out = append(out, variant{
			kind: s.kind, operator: s.operator, summary: e.Op.String() + " replaced by " + s.to.String(), at: e.OpPos,
			text: "(" + x + ") " + s.to.String() + " (" + y + ")", edits: w.swapEdits(e, s.to),
		})
	}
	w.replace(e, out)
}

// swapEdits replaces the operator of e. Where the new one binds otherwise,
// parentheses keep the operands together.
func (w *walker) swapEdits(e *ast.BinaryExpr, to token.Token) []Edit {
	f := w.file
	op := f.offset(e.OpPos)
	swapped := Edit{Start: op, End: op + len(e.Op.String()), Text: to.String()}
	if strings.IndexByte("+-*&^<", f.src[swapped.End]) >= 0 {
		swapped.Text += " " // a+-b must not become a--b, nor a**p a/*p
	}
	if to.Precedence() == e.Op.Precedence() {
		return []Edit{swapped}
	}
	around := func(n ast.Node) (Edit, Edit) {
		a, b := f.offset(n.Pos()), f.offset(n.End())
		return Edit{Start: a, End: a, Text: "("}, Edit{Start: b, End: b, Text: ")"}
	}
	var out []Edit
	_, nested := w.up(1).(*ast.BinaryExpr)
	open, shut := around(e)
	if nested {
		out = append(out, open)
	}
	if _, is := e.X.(*ast.BinaryExpr); is {
		a, b := around(e.X)
		out = append(out, a, b)
	}
	out = append(out, swapped)
	if _, is := e.Y.(*ast.BinaryExpr); is {
		a, b := around(e.Y)
		out = append(out, a, b)
	}
	if nested {
		out = append(out, shut)
	}
	return out
}

func (w *walker) unary(e *ast.UnaryExpr) {
	var to, operator string
	switch e.Op {
	case token.SUB:
		to, operator = "+", "INVERT_NEGATIVES"
	case token.ADD:
		to, operator = "-", "ARITHMETIC_BASE"
	default:
		return
	}
	x, ok := w.file.line1(e.X)
	if !ok {
		w.file.skip(w.symbol, e.OpPos, "multi_line")
		return
	}
	at, spaced := w.file.offset(e.OpPos), to
	if at > 0 && w.file.src[at-1] == to[0] {
		spaced = " " + to // a+-b must not become a++b
	}
	w.replace(e, []variant{{
		kind: evidence.ProbeArithmetic, operator: operator, summary: "unary " + e.Op.String() + " replaced by " + to, at: e.OpPos,
		text: to + "(" + x + ")", edits: []Edit{{Start: at, End: at + 1, Text: spaced}},
	}})
}

// literal probes a number or a string that stands where any value can.
func (w *walker) literal(e *ast.BasicLit) {
	tv := w.file.pkg.in.Info.Types[e]
	if tv.Value == nil || !w.definite(e, tv) {
		return
	}
	basic := tv.Type.Underlying().(*types.Basic)
	operator := "CONSTANTS"
	var text, summary string
	switch {
	case e.Kind == token.INT && basic.Info()&types.IsNumeric != 0:
		text = constant.BinaryOp(tv.Value, token.ADD, constant.MakeInt64(1)).ExactString()
		summary = e.Value + " incremented"
	case e.Kind == token.STRING && basic.Info()&types.IsString != 0:
		operator, text, summary = "STRINGS", `""`, "string emptied"
		if constant.StringVal(tv.Value) == "" {
			text, summary = `"proveto"`, "empty string filled"
		}
	default:
		return
	}
	a, b := w.file.offset(e.Pos()), w.file.offset(e.End())
	w.replace(e, []variant{{
		kind: evidence.ProbeConstant, operator: operator, summary: summary, at: e.Pos(),
		text: text, edits: []Edit{{Start: a, End: b, Text: text}},
	}})
}

// condition negates what a condition rests on, where no comparison does it.
func (w *walker) condition(e ast.Expr) {
	switch e := e.(type) {
	case nil:
	case *ast.ParenExpr:
		w.condition(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			w.condition(e.X)
			w.condition(e.Y)
			return
		}
		w.errorPath(e)
	default:
		not, isNot := e.(*ast.UnaryExpr)
		isNot = isNot && not.Op == token.NOT
		if isNot {
			if _, binary := ast.Unparen(not.X).(*ast.BinaryExpr); binary {
				w.condition(not.X) // its comparisons are negated one by one
				return
			}
		}
		text, ok := w.file.line1(e)
		if !ok {
			w.file.skip(w.symbol, e.Pos(), "multi_line")
			return
		}
		a, b := w.file.offset(e.Pos()), w.file.offset(e.End())
		v := variant{
			kind: evidence.ProbeCondition, operator: "NEGATE_CONDITION", summary: "condition negated", at: e.Pos(),
			text: "!(" + text + ")", edits: []Edit{{Start: a, End: a, Text: "!("}, {Start: b, End: b, Text: ")"}},
		}
		if isNot {
			v.edits = []Edit{{Start: a, End: w.file.offset(not.X.Pos()), Text: ""}}
		}
		w.replace(e, []variant{v})
	}
}

// replace makes e switchable between its original and its variants. Plain bool
// expressions with calls are switched by operators alone, so that what they
// call sees the same callers; all others by a function literal called in place.
func (w *walker) replace(e ast.Expr, variants []variant) {
	if len(variants) == 0 {
		return
	}
	f := w.file
	text, ok := w.exprType(e)
	original, isLine := f.line1(e)
	switch {
	case !ok:
		f.skip(w.symbol, variants[0].at, "unnamed_type")
		return
	case !isLine:
		f.skip(w.symbol, variants[0].at, "multi_line")
		return
	case w.recovers(e):
		f.skip(w.symbol, variants[0].at, "recover")
		return
	}
	a, b := f.offset(e.Pos()), f.offset(e.End())
	texts := make(map[*probe]string)
	calls := hasCall(e)
	g := f.add(a, b, func(live []*probe) []insertion {
		if len(live) == 0 {
			return nil
		}
		if calls && text == "bool" {
			return inlineSwitch(a, b, live, texts)
		}
		open := []span{plain("func() %s { ", text)}
		for _, p := range live {
			if calls {
				open = append(open, span{fmt.Sprintf("if _pvt_p.On(%d) { return %s }; ", p.number, texts[p]), p})
				continue
			}
			open = append(open, span{fmt.Sprintf("if _pvt_p.On(%d) { var o, c %s = %s, %s; _pvt_p.Saw(%d, o, c); return c }; ",
				p.number, text, original, texts[p], p.number), p})
		}
		return []insertion{{at: a, text: append(open, plain("return "))}, {at: b, closes: true, text: []span{plain(" }()")}}}
	})
	for _, v := range variants {
		texts[g.probe(v.kind, v.operator, w.symbol, v.summary, v.at, v.edits)] = v.text
	}
}

// inlineSwitch is (On(1) && (changed) || !On(1) && (original)).
func inlineSwitch(a, b int, live []*probe, texts map[*probe]string) []insertion {
	open := []span{plain("(")}
	var off []string
	for _, p := range live {
		open = append(open, span{fmt.Sprintf("_pvt_p.On(%d) && (%s) || ", p.number, texts[p]), p})
		off = append(off, "!_pvt_p.On("+strconv.Itoa(p.number)+")")
	}
	open = append(open, plain("%s && (", strings.Join(off, " && ")))
	return []insertion{{at: a, text: open}, {at: b, closes: true, text: []span{plain("))")}}}
}

// exprType writes the type of an expression where it stands. Comparisons whose
// type was left open give a bool.
func (w *walker) exprType(e ast.Expr) (string, bool) {
	t := w.file.pkg.in.Info.TypeOf(e)
	if t == nil {
		return "", false
	}
	if b, ok := t.(*types.Basic); ok && b.Kind() == types.UntypedBool {
		t = types.Typ[types.Bool]
	}
	return w.file.typeText(t, e.Pos())
}
