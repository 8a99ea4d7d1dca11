package gosrc

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/late"
)

// strength is what a test function holds, by syntax.
type strength struct {
	asserts    float64 // each as often as literal loops and tables run it
	skips      int
	exits      int // returns that no assertion goes before
	skipLine   int // of the first skip
	exitLine   int
	tolerances []tolerance
}

type tolerance struct {
	what  string
	value float64
	line  int
}

var toleranceName = late.Regexp(`(?i)(eps|tol|delta|margin|slack|threshold|fuzz|precision)`)

// asserting are packages of which New(t) gives a value that asserts.
var asserting = late.Regexp(`(^|/)(assert|require|is|quicktest|qt|gomega|check|must)$`)

// mostWeight keeps products of loops finite.
const mostWeight = 1e9

// counter walks one function.
type counter struct {
	s     *suite
	f     *fn
	busy  map[string]bool         // helpers that are being counted
	tests map[string]bool         // names that are the test
	check map[string]bool         // names that assert for the test: assert.New(t)
	rows  map[string]int          // lengths of local tables
	lits  map[string]*ast.FuncLit // functions in local variables: counted where they are used
	out   strength
}

func measure(s *suite, f *fn) strength { return count(s, f, map[string]bool{}) }

func count(s *suite, f *fn, busy map[string]bool) strength {
	c := &counter{s: s, f: f, busy: busy, tests: map[string]bool{}, check: map[string]bool{}, rows: map[string]int{}, lits: map[string]*ast.FuncLit{}}
	c.params(f.decl.Type)
	c.function(f.decl.Body.List, 1, true)
	return c.out
}

func (c *counter) params(t *ast.FuncType) {
	if t.Params == nil {
		return
	}
	for _, p := range t.Params.List {
		if testingType(p) {
			for _, n := range p.Names {
				c.tests[n.Name] = true
			}
		}
	}
}

// function counts the body of a function. Test says that a return in it leaves a
// test.
func (c *counter) function(list []ast.Stmt, weight float64, test bool) {
	for i, st := range list {
		if _, ok := st.(*ast.ReturnStmt); ok && test && i+1 < len(list) {
			c.exit(st)
			break
		}
	}
	c.block(list, weight, test)
}

// block counts statements up to the one that nothing comes after, and tells
// whether that one was there.
func (c *counter) block(list []ast.Stmt, weight float64, test bool) bool {
	return slices.ContainsFunc(list, func(st ast.Stmt) bool { return c.stmt(st, weight, test) })
}

func (c *counter) exit(st ast.Stmt) {
	if c.out.exits++; c.out.exits == 1 {
		c.out.exitLine = c.f.line(st.Pos())
	}
}

// stmt counts one statement and tells whether nothing of its list comes after it.
func (c *counter) stmt(st ast.Stmt, weight float64, test bool) bool {
	switch st := st.(type) {
	case *ast.ExprStmt:
		c.expr(st.X, weight)
		return c.ends(st.X)
	case *ast.ReturnStmt:
		for _, e := range st.Results {
			c.expr(e, weight)
		}
		return true
	case *ast.BranchStmt:
		return st.Tok != token.FALLTHROUGH
	case *ast.BlockStmt:
		return c.block(st.List, weight, test)
	case *ast.LabeledStmt:
		return c.stmt(st.Stmt, weight, test)
	case *ast.IfStmt:
		return c.ifStmt(st, weight, test)
	case *ast.ForStmt:
		c.all(weight, st.Init, st.Cond, st.Post)
		c.block(st.Body.List, min(mostWeight, weight*c.times(st)), test)
	case *ast.RangeStmt:
		c.expr(st.X, weight)
		c.block(st.Body.List, min(mostWeight, weight*c.rangeTimes(st)), test)
	case *ast.SwitchStmt:
		c.all(weight, st.Init, st.Tag)
		c.clauses(st.Body, weight, test)
	case *ast.TypeSwitchStmt:
		c.all(weight, st.Init, st.Assign)
		c.clauses(st.Body, weight, test)
	case *ast.SelectStmt:
		c.clauses(st.Body, weight, test)
	case *ast.AssignStmt:
		c.assign(st, weight)
	case *ast.DeclStmt:
		c.declare(st, weight)
	case nil:
	default:
		c.all(weight, st)
	}
	return false
}

func (c *counter) clauses(b *ast.BlockStmt, weight float64, test bool) {
	for _, st := range b.List {
		switch st := st.(type) {
		case *ast.CaseClause:
			for _, e := range st.List {
				c.expr(e, weight)
			}
			c.nested(st.Body, weight, test)
		case *ast.CommClause:
			c.all(weight, st.Comm)
			c.nested(st.Body, weight, test)
		}
	}
}

// nested counts a block below a condition. When it leaves the test, or a row of
// its table, and nothing in it asserts or skips, it is a way out.
func (c *counter) nested(list []ast.Stmt, weight float64, test bool) bool {
	before, skips := c.out.asserts, c.out.skips
	ended := c.block(list, weight, test)
	if ended && test && leaves(lastStmt(list)) && c.out.asserts == before && c.out.skips == skips {
		c.exit(lastStmt(list))
	}
	return ended
}

func leaves(st ast.Stmt) bool {
	switch st := st.(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		return st.Tok == token.CONTINUE
	}
	return false
}

func lastStmt(list []ast.Stmt) ast.Stmt {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

func (c *counter) ifStmt(st *ast.IfStmt, weight float64, test bool) bool {
	c.all(weight, st.Init, st.Cond)
	c.comparison(st.Cond)
	then, other := weight, weight
	v, known := truth(st.Cond)
	if known && v {
		other = 0
	} else if known {
		then = 0
	} else {
		then = min(mostWeight, weight*ways(st.Cond, false))
	}
	ended := c.nested(st.Body.List, then, test && !known)
	otherEnded := false
	switch e := st.Else.(type) {
	case *ast.BlockStmt:
		otherEnded = c.nested(e.List, other, test && !known)
	case *ast.IfStmt:
		otherEnded = c.ifStmt(e, other, test)
	}
	if known {
		return v && ended || !v && otherEnded
	}
	return ended && otherEnded
}

// ways is in how many ways a condition can come out true: what stands behind it
// asserts as much. One more alternative is one more way; one more thing that must
// hold as well makes it half as many.
func ways(e ast.Expr, negated bool) float64 {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return ways(e.X, negated)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return ways(e.X, !negated)
		}
	case *ast.BinaryExpr:
		either := e.Op == token.LOR && !negated || e.Op == token.LAND && negated
		if either || e.Op == token.LAND || e.Op == token.LOR {
			x, y := ways(e.X, negated), ways(e.Y, negated)
			if either {
				return x + y
			}
			return min(x, y) / 2
		}
	}
	return 1
}

// all counts nodes whose order and branches do not matter.
func (c *counter) all(weight float64, nodes ...ast.Node) {
	for _, n := range nodes {
		if n == nil {
			continue
		}
		switch n := n.(type) {
		case *ast.AssignStmt:
			c.assign(n, weight)
		case ast.Expr:
			c.expr(n, weight)
		default:
			ast.Inspect(n, func(m ast.Node) bool {
				e, ok := m.(ast.Expr)
				if ok {
					c.expr(e, weight)
				}
				return !ok
			})
		}
	}
}

// literal counts a function literal where it stands.
func (c *counter) literal(n *ast.FuncLit, weight float64) {
	test := false
	if n.Type.Params != nil {
		test = slices.ContainsFunc(n.Type.Params.List, testingType)
	}
	c.params(n.Type)
	c.function(n.Body.List, weight, test)
}

// local counts a function of a local variable where it is called or handed on.
func (c *counter) local(name string, weight float64) {
	n := c.lits[name]
	if n == nil {
		return
	}
	delete(c.lits, name) // while it is counted: it may call itself
	c.literal(n, weight)
	c.lits[name] = n
}

// expr counts the calls of an expression, and what function literals in it hold.
func (c *counter) expr(e ast.Expr, weight float64) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			c.literal(n, weight)
			return false
		case *ast.SelectorExpr:
			c.expr(n.X, weight)
			return false
		case *ast.Ident:
			c.local(n.Name, weight)
		case *ast.CallExpr:
			c.call(n, weight)
		case *ast.KeyValueExpr:
			if k, ok := n.Key.(*ast.Ident); ok && toleranceName().MatchString(k.Name) {
				c.tolerance("the field "+k.Name, n.Value)
			}
			if _, ok := n.Key.(*ast.Ident); !ok {
				c.expr(n.Key, weight)
			}
			c.expr(n.Value, weight)
			return false
		}
		return true
	})
}

var (
	failing  = []string{"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"}
	skipping = []string{"Skip", "Skipf", "SkipNow"}
	stating  = []string{"To", "NotTo", "ToNot", "Should", "ShouldNot"} // gomega
	// lenient are calls that take a tolerance as the last of these arguments.
	lenient = map[string]int{
		"InDelta": 3, "InDeltaf": 3, "InDeltaSlice": 3, "InDeltaMapValues": 3, "InEpsilon": 3, "InEpsilonf": 3, "InEpsilonSlice": 3,
		"WithinDuration": 3, "WithinDurationf": 3, "EquateApprox": 0, "EquateApproxTime": 0, "BeNumerically": 2, "BeTemporally": 2,
	}
)

// call counts one call: an assertion, a skip, a helper, a tolerance.
func (c *counter) call(n *ast.CallExpr, weight float64) {
	name, on := callee(n)
	if at, ok := lenient[name]; ok {
		for i, a := range n.Args {
			if i >= at {
				c.tolerance(name, a)
			}
		}
	}
	switch {
	case c.tests[on] && slices.Contains(skipping, name):
		if weight > 0 {
			if c.out.skips++; c.out.skips == 1 {
				c.out.skipLine = c.f.line(n.Pos())
			}
		}
	case c.tests[on] && slices.Contains(failing, name), c.check[on], slices.Contains(stating, name) && on == "":
		c.out.asserts = min(mostWeight, c.out.asserts+weight)
	case c.tests[on]:
		// other methods of the test assert nothing
	case slices.ContainsFunc(n.Args, c.isTest) && !strings.HasPrefix(name, "New"):
		c.helper(name, on, weight)
	}
}

// callee is the name of what is called, and of the variable or package before it.
func callee(n *ast.CallExpr) (name, on string) {
	fun := n.Fun
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name, ""
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return f.Sel.Name, x.Name
		}
		return f.Sel.Name, ""
	}
	return "", ""
}

func (c *counter) isTest(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && c.tests[id.Name]
}

// helper counts a function that is given the test: with what it holds when it
// stands in the same files, else as one assertion.
func (c *counter) helper(name, on string, weight float64) {
	f := c.s.named(name, c.f)
	if on != "" || f == nil {
		c.out.asserts = min(mostWeight, c.out.asserts+weight)
		return
	}
	if c.busy[name] {
		return
	}
	c.busy[name] = true
	s := count(c.s, f, c.busy)
	c.busy[name] = false
	c.out.asserts = min(mostWeight, c.out.asserts+weight*s.asserts)
	if s.skips > 0 && weight > 0 {
		if c.out.skips == 0 {
			c.out.skipLine = s.skipLine
		}
		c.out.skips += s.skips
	}
	c.out.tolerances = append(c.out.tolerances, s.tolerances...)
}

// assign keeps what a later statement needs to know of a variable.
func (c *counter) assign(st *ast.AssignStmt, weight float64) {
	for i, r := range st.Rhs {
		if len(st.Lhs) == len(st.Rhs) {
			if id, ok := st.Lhs[i].(*ast.Ident); ok {
				c.bind(id, r, weight)
				continue
			}
		}
		c.expr(r, weight)
	}
}

func (c *counter) declare(st *ast.DeclStmt, weight float64) {
	d, ok := st.Decl.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, e := range v.Values {
			if i < len(v.Names) {
				c.bind(v.Names[i], e, weight)
			} else {
				c.expr(e, weight)
			}
		}
	}
}

// bind counts the value of a variable and keeps a table's length, a function, an
// asserting value, a tolerance. What is bound to nothing is never called.
func (c *counter) bind(id *ast.Ident, e ast.Expr, weight float64) {
	if lit, ok := e.(*ast.FuncLit); ok {
		if id.Name != "_" {
			c.lits[id.Name] = lit
		}
		return
	}
	c.expr(e, weight)
	delete(c.lits, id.Name)
	delete(c.rows, id.Name)
	if rows, ok := literalRows(e); ok {
		c.rows[id.Name] = rows
	}
	if toleranceName().MatchString(id.Name) {
		c.tolerance(id.Name, e)
	}
	if call, ok := e.(*ast.CallExpr); ok {
		name, on := callee(call)
		p := importPath(c.f.file, on)
		if strings.HasPrefix(name, "New") && slices.ContainsFunc(call.Args, c.isTest) &&
			asserting().MatchString(p) {
			c.check[id.Name] = true
		}
	}
}

// comparison keeps the bound of a comparison of a difference.
func (c *counter) comparison(e ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if !ok {
			return true
		}
		switch b.Op {
		case token.GTR, token.GEQ:
			if difference(b.X) {
				c.tolerance("the bound of a difference", b.Y)
			}
		case token.LSS, token.LEQ:
			if difference(b.Y) {
				c.tolerance("the bound of a difference", b.X)
			}
		}
		return true
	})
}

// difference tells whether an expression takes a difference or its size.
func difference(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			found = found || n.Op == token.SUB
		case *ast.CallExpr:
			name, _ := callee(n)
			found = found || strings.EqualFold(name, "abs") || name == "Sub"
		}
		return !found
	})
	return found
}

func (c *counter) tolerance(what string, e ast.Expr) {
	if v, ok := number(e); ok {
		c.out.tolerances = append(c.out.tolerances, tolerance{what, v, c.f.line(e.Pos())})
	}
}

// widening is one tolerance that grew.
type widening struct {
	line int
	text string
}

// wider tells which tolerances grew: in their order where there are as many as
// before, else the widest of each kind.
func (s strength) wider(now strength) []widening {
	was, is := group(s.tolerances), group(now.tolerances)
	var out []widening
	seen := map[string]bool{}
	for _, t := range now.tolerances {
		a, b := was[t.what], is[t.what]
		if seen[t.what] || len(a) == 0 {
			continue
		}
		seen[t.what] = true
		if len(a) != len(b) {
			a, b = widest(a), widest(b)
		}
		for i := range b {
			if b[i].value > a[i].value {
				out = append(out, widening{b[i].line, fmt.Sprintf("%s is %g where it was %g", t.what, b[i].value, a[i].value)})
			}
		}
	}
	return out
}

func group(all []tolerance) map[string][]tolerance {
	out := map[string][]tolerance{}
	for _, t := range all {
		out[t.what] = append(out[t.what], t)
	}
	return out
}

func widest(all []tolerance) []tolerance {
	return []tolerance{slices.MaxFunc(all, func(a, b tolerance) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})}
}

// ends tells whether a call never returns, or leaves the test.
func (c *counter) ends(e ast.Expr) bool {
	n, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, on := callee(n)
	switch {
	case c.tests[on]:
		return slices.Contains(skipping, name) || name == "FailNow" || strings.HasPrefix(name, "Fatal")
	case on == "os" && name == "Exit", on == "runtime" && name == "Goexit", on == "" && name == "panic", on == "log" && strings.HasPrefix(name, "Fatal"):
		return true
	}
	return false
}

// times is how often a loop over numbers runs, when its bounds are literals; 1
// when that is not known.
func (c *counter) times(st *ast.ForStmt) float64 {
	if st.Cond == nil {
		return 1
	}
	if v, known := truth(st.Cond); known && !v {
		return 0
	}
	init, ok := st.Init.(*ast.AssignStmt)
	cond, ok2 := st.Cond.(*ast.BinaryExpr)
	post, ok3 := st.Post.(*ast.IncDecStmt)
	if !ok || !ok2 || !ok3 || len(init.Rhs) != 1 || post.Tok != token.INC {
		return 1
	}
	from, ok := number(init.Rhs[0])
	to, ok2 := number(cond.Y)
	if n, isLen := c.length(cond.Y); isLen {
		to, ok2 = float64(n), true
	}
	if !ok || !ok2 {
		return 1
	}
	switch cond.Op {
	case token.LSS, token.NEQ:
		return max(0, to-from)
	case token.LEQ:
		return max(0, to-from+1)
	}
	return 1
}

// length is the value of len(table).
func (c *counter) length(e ast.Expr) (int, bool) {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return 0, false
	}
	if name, on := callee(call); name != "len" || on != "" {
		return 0, false
	}
	return c.tableRows(call.Args[0])
}

// rangeTimes is how often a range runs, when it is over a literal, a table that
// is one, or a number; 1 when that is not known.
func (c *counter) rangeTimes(st *ast.RangeStmt) float64 {
	if n, ok := c.tableRows(st.X); ok {
		return float64(n)
	}
	if v, ok := number(st.X); ok {
		return max(0, v)
	}
	return 1
}

func (c *counter) tableRows(e ast.Expr) (int, bool) {
	if id, ok := e.(*ast.Ident); ok {
		if n, ok := c.rows[id.Name]; ok {
			return n, true
		}
		n, ok := c.s.tables[id.Name]
		return n, ok
	}
	return literalRows(e)
}

// literalRows is the number of entries of a literal list or map.
func literalRows(e ast.Expr) (int, bool) {
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return 0, false
	}
	switch lit.Type.(type) {
	case *ast.ArrayType, *ast.MapType:
		return len(lit.Elts), true
	}
	return 0, false
}

// truth is the value of a condition that has always the same.
func truth(e ast.Expr) (value, known bool) {
	v := evaluate(e)
	if v == nil || v.Kind() != constant.Bool {
		return false, false
	}
	return constant.BoolVal(v), true
}

// number is the value of an expression of numbers and durations.
func number(e ast.Expr) (float64, bool) {
	v := evaluate(e)
	if v == nil {
		return 0, false
	}
	if v = constant.ToFloat(v); v.Kind() != constant.Float && v.Kind() != constant.Int {
		return 0, false
	}
	f, _ := constant.Float64Val(v)
	return f, true
}

var durations = map[string]int64{"Nanosecond": 1, "Microsecond": 1e3, "Millisecond": 1e6, "Second": 1e9, "Minute": 60e9, "Hour": 3600e9}

// evaluate is the value of a constant expression of literals; nil when it is none.
func evaluate(e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return evaluate(e.X)
	case *ast.Ident:
		if e.Name == "true" || e.Name == "false" {
			return constant.MakeBool(e.Name == "true")
		}
	case *ast.BasicLit:
		if v := constant.MakeFromLiteral(e.Value, e.Kind, 0); v.Kind() != constant.Unknown {
			return v
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "time" {
			if n, ok := durations[e.Sel.Name]; ok {
				return constant.MakeInt64(n)
			}
		}
	case *ast.UnaryExpr:
		if x := evaluate(e.X); x != nil && (e.Op == token.NOT && x.Kind() == constant.Bool || (e.Op == token.SUB || e.Op == token.ADD) && numeric(x)) {
			return constant.UnaryOp(e.Op, x, 0)
		}
	case *ast.BinaryExpr:
		return binary(e)
	}
	return nil
}

func numeric(v constant.Value) bool { return v.Kind() == constant.Int || v.Kind() == constant.Float }

func binary(e *ast.BinaryExpr) constant.Value {
	x, y := evaluate(e.X), evaluate(e.Y)
	switch e.Op {
	case token.LAND, token.LOR:
		return logical(e.Op, x, y)
	}
	if x == nil || y == nil {
		return nil
	}
	switch e.Op {
	case token.EQL, token.NEQ:
		if x.Kind() == y.Kind() || numeric(x) && numeric(y) {
			return constant.MakeBool(constant.Compare(x, e.Op, y))
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		if numeric(x) && numeric(y) {
			return constant.MakeBool(constant.Compare(x, e.Op, y))
		}
	case token.ADD, token.SUB, token.MUL:
		if numeric(x) && numeric(y) {
			return constant.BinaryOp(x, e.Op, y)
		}
	case token.QUO:
		if numeric(x) && numeric(y) && constant.Sign(y) != 0 {
			return constant.BinaryOp(constant.ToFloat(x), e.Op, constant.ToFloat(y))
		}
	}
	return nil
}

// logical is and, or, where one side may decide alone.
func logical(op token.Token, x, y constant.Value) constant.Value {
	decides := op == token.LOR
	both := true
	for _, v := range []constant.Value{x, y} {
		if v == nil || v.Kind() != constant.Bool {
			both = false
			continue
		}
		if constant.BoolVal(v) == decides {
			return v
		}
	}
	if both {
		return constant.MakeBool(!decides)
	}
	return nil
}
