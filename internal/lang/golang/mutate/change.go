package mutate

import (
	"go/token"
	"go/types"
	"sort"
	"strconv"
	"strings"
)

// change is one way to change a result: plain statements over r0, r1 …, used
// both behind a switch and in plain source.
type change struct {
	operator string
	summary  string
	body     []string
	constant string // what the result becomes, when it does not depend on the original
	result   int
	rank     int // lower is likelier to be noticed by an assertion and not by a panic
}

// The ranks of changes.
const (
	rankDerived  = iota // differs from whatever the original gave
	rankConstant        // differs unless the original gave the same
	rankCoarse          // the whole of a compound value replaced
	rankPanics          // likely to end in a nil dereference
)

// changes lists the changes of all results, best first.
func (fn *function) changes(results []result) []change {
	var out []change
	for i, r := range results {
		c := changer{file: fn.file, x: "r" + strconv.Itoa(i), text: "(" + r.text + ")"}
		c.of(r.typ)
		for _, ch := range c.out {
			ch.result = i
			if len(results) > 1 {
				ch.summary = "result " + strconv.Itoa(i+1) + " " + ch.summary
			} else {
				ch.summary = "result " + ch.summary
			}
			out = append(out, ch)
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.rank != b.rank {
			return a.rank < b.rank
		}
		return a.operator != "ERROR_RETURNS" && b.operator == "ERROR_RETURNS"
	})
	return out
}

// changer collects the changes of the variable x, whose type is written text.
type changer struct {
	file *file
	x    string
	text string
	out  []change
}

// add adds a change unless a predeclared name that it uses is shadowed in this
// package.
func (c *changer) add(rank int, operator, summary, constant string, uses string, body ...string) {
	if c.file.universal(token.NoPos, strings.Fields(uses)...) {
		c.out = append(c.out, change{operator: operator, summary: summary, body: body, constant: constant, rank: rank})
	}
}

func (c *changer) of(t types.Type) {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		if numeric(t) {
			c.add(rankDerived, "INCREMENT_RETURNS", "incremented", "", "", c.x+"++")
		}
		c.zero("ZERO_RETURNS")
		return
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		c.basic(u)
	case *types.Slice:
		c.slice(u)
	case *types.Map:
		c.mapping(u)
	case *types.Array:
		if body, ok := c.file.inPlace(c.x, t, 1); ok {
			c.add(rankDerived, "FIRST_ELEMENT_RETURNS", "with its first element changed", "", "", body...)
		}
		c.zero("ZERO_RETURNS")
	case *types.Struct:
		if body, ok := c.file.inPlace(c.x, t, 2); ok {
			c.add(rankDerived, "FIELD_RETURNS", "with one field changed", "", "", body...)
		}
		c.zero("ZERO_RETURNS")
	case *types.Pointer:
		c.pointer(u)
	case *types.Interface:
		c.iface(t, u)
	case *types.Chan:
		c.channel(u)
	case *types.Signature:
		c.function(u)
	}
}

// channel closes what could be received from: a nil channel blocks for ever,
// which no assertion sees.
func (c *changer) channel(u *types.Chan) {
	if elem, ok := c.file.typeText(u.Elem(), token.NoPos); ok && u.Dir() != types.SendOnly {
		c.add(rankCoarse, "EMPTY_RETURNS", "replaced by a closed channel", "", "make close", "ch := make(chan ("+elem+"))", "close(ch)", c.x+" = ch")
	}
	c.add(rankPanics, "NULL_RETURNS", "replaced by nil", "nil", "nil", c.x+" = nil")
}

// function gives one that can be called: a nil function panics, which is no
// assertion either.
func (c *changer) function(u *types.Signature) {
	params, ok := c.blanks(u.Params(), u.Variadic())
	results, okResults := c.blanks(u.Results(), false)
	if ok && okResults {
		c.add(rankCoarse, "EMPTY_RETURNS", "replaced by a function that does nothing", "", "", c.x+" = func("+params+") ("+results+") { return }")
	}
	c.add(rankPanics, "NULL_RETURNS", "replaced by nil", "nil", "nil", c.x+" = nil")
}

// blanks lists parameters or results without a name.
func (c *changer) blanks(list *types.Tuple, variadic bool) (string, bool) {
	var out []string
	for i := range list.Len() {
		t, dots := list.At(i).Type(), ""
		if variadic && i == list.Len()-1 {
			s, ok := t.Underlying().(*types.Slice)
			if !ok {
				return "", false
			}
			t, dots = s.Elem(), "..."
		}
		text, ok := c.file.typeText(t, token.NoPos)
		if !ok {
			return "", false
		}
		out = append(out, "_ "+dots+text)
	}
	return strings.Join(out, ", "), true
}

func (c *changer) zero(operator string) {
	c.add(rankCoarse, operator, "replaced by its zero value", "", "", "var z "+c.text, c.x+" = z")
}

func (c *changer) set(operator, constant string) {
	c.add(rankConstant, operator, "replaced by "+constant, constant, "", c.x+" = "+constant)
}

func (c *changer) basic(u *types.Basic) {
	switch info := u.Info(); {
	case info&types.IsBoolean != 0:
		c.add(rankDerived, "NEGATE_RETURNS", "negated", "", "", c.x+" = !"+c.x)
		for constant, operator := range map[string]string{"true": "TRUE_RETURNS", "false": "FALSE_RETURNS"} {
			c.add(rankConstant, operator, "replaced by "+constant, constant, constant, c.x+" = "+constant)
		}
		sort.Slice(c.out, func(i, j int) bool { return c.out[i].operator < c.out[j].operator })
	case info&types.IsInteger != 0:
		c.add(rankDerived, "INCREMENT_RETURNS", "incremented", "", "", c.x+"++")
		c.set("PRIMITIVE_RETURNS", "0")
		c.set("ONE_RETURNS", "1")
		if info&types.IsUnsigned != 0 {
			c.set("CONSTANT_RETURNS", "42")
			return
		}
		c.set("CONSTANT_RETURNS", "-1")
		c.add(rankCoarse, "NEGATE_RETURNS", "negated", "", "", c.x+" = -"+c.x)
	case info&(types.IsFloat|types.IsComplex) != 0:
		c.add(rankDerived, "INCREMENT_RETURNS", "incremented", "", "", c.x+"++")
		c.set("PRIMITIVE_RETURNS", "0")
		if info&types.IsComplex != 0 {
			c.out[len(c.out)-1].constant = "(0+0i)"
		}
	case info&types.IsString != 0:
		c.set("EMPTY_RETURNS", `""`)
		c.set("CONSTANT_RETURNS", `"proveto"`)
		c.add(rankDerived, "APPEND_RETURNS", "with a character appended", "", "", c.x+` += "~"`)
	case u.Kind() == types.UnsafePointer:
		c.add(rankPanics, "NULL_RETURNS", "replaced by nil", "nil", "nil", c.x+" = nil")
	}
}

func (c *changer) slice(u *types.Slice) {
	x, text := c.x, c.text
	c.add(rankDerived, "SHORTEN_RETURNS", "shortened by its last element", "", "len make",
		"if n := len("+x+"); n > 0 { "+x+" = "+x+"[:n-1:n-1] } else { "+x+" = make("+text+", 1) }")
	c.add(rankConstant, "EMPTY_RETURNS", "replaced by nil", "nil", "nil", x+" = nil")
	if body, ok := c.file.inPlace("c[0]", u.Elem(), 2); ok {
		c.add(rankCoarse, "FIRST_ELEMENT_RETURNS", "with its first element changed", "", "len append nil",
			"if len("+x+") > 0 { c := append("+text+"(nil), "+x+"...); "+strings.Join(body, "; ")+"; "+x+" = c }")
	}
}

// mapping empties a map, or gives an empty one an element.
func (c *changer) mapping(u *types.Map) {
	empty := c.x + " = make(" + c.text + ")"
	key, keyOK := c.file.typeText(u.Key(), token.NoPos)
	elem, elemOK := c.file.typeText(u.Elem(), token.NoPos)
	if keyOK && elemOK && !types.IsInterface(u.Key()) {
		empty = "n := len(" + c.x + "); " + empty + "; if n == 0 { var k " + key + "; var v " + elem + "; " + c.x + "[k] = v }"
		c.add(rankDerived, "EMPTY_RETURNS", "emptied", "", "make len", empty)
		return
	}
	c.add(rankDerived, "EMPTY_RETURNS", "emptied", "", "make", empty)
}

func (c *changer) pointer(u *types.Pointer) {
	if elem, ok := c.file.typeText(u.Elem(), token.NoPos); ok {
		if body, ok := c.file.inPlace("c", u.Elem(), 2); ok && !hasLock(u.Elem(), make(map[types.Type]bool)) {
			c.add(rankDerived, "FIELD_RETURNS", "replaced by a copy with one field changed", "", "nil",
				"if "+c.x+" != nil { c := *"+c.x+"; "+strings.Join(body, "; ")+"; "+c.x+" = &c }")
		}
		c.add(rankCoarse, "ZERO_RETURNS", "replaced by a pointer to a zero value", "", "new", c.x+" = new("+elem+")")
	}
	c.add(rankPanics, "NULL_RETURNS", "replaced by nil", "nil", "nil", c.x+" = nil")
}

func (c *changer) iface(t types.Type, u *types.Interface) {
	if types.Identical(t.Underlying(), types.Universe.Lookup("error").Type().Underlying()) {
		c.add(rankDerived, "ERROR_RETURNS", "nil replaced by an error, an error by nil", "", "nil",
			"if "+c.x+" == nil { "+c.x+" = _pvt_error{} } else { "+c.x+" = nil }")
		return
	}
	if u.Empty() {
		c.add(rankConstant, "CONSTANT_RETURNS", `replaced by "proveto"`, `"proveto"`, "", c.x+` = "proveto"`)
	}
	c.add(rankPanics, "NULL_RETURNS", "replaced by nil", "nil", "nil", c.x+" = nil")
}

// inPlace gives statements that change the addressable x of type t, looking
// into its fields and elements to the given depth.
func (f *file) inPlace(x string, t types.Type, depth int) ([]string, bool) {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return nil, false
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsBoolean != 0:
			return []string{x + " = !" + x}, true
		case info&types.IsNumeric != 0:
			return []string{x + "++"}, true
		case info&types.IsString != 0:
			return []string{x + ` += "~"`}, true
		}
	case *types.Slice:
		if f.universal(token.NoPos, "len") {
			return []string{"if n := len(" + x + "); n > 0 { " + x + " = " + x + "[:n-1:n-1] }"}, true
		}
	case *types.Array:
		if u.Len() > 0 && depth > 0 {
			return f.inPlace(x+"[0]", u.Elem(), depth-1)
		}
	case *types.Struct:
		return f.fieldInPlace(x, u, depth)
	}
	return nil, false
}

// fieldInPlace changes the first field that can be reached, basic ones before
// compound ones.
func (f *file) fieldInPlace(x string, u *types.Struct, depth int) ([]string, bool) {
	if depth == 0 {
		return nil, false
	}
	for _, basic := range []bool{true, false} {
		for v := range u.Fields() {
			_, isBasic := v.Type().Underlying().(*types.Basic)
			if v.Name() == "_" || isBasic != basic || !v.Exported() && v.Pkg() != f.pkg.in.Types {
				continue
			}
			if body, ok := f.inPlace(x+"."+v.Name(), v.Type(), depth-1); ok {
				return body, true
			}
		}
	}
	return nil, false
}

// numeric tells whether every type of a type parameter's set is a number.
func numeric(t types.Type) bool {
	iface, ok := t.Underlying().(*types.Interface)
	if !ok {
		basic, ok := t.Underlying().(*types.Basic)
		return ok && basic.Info()&types.IsNumeric != 0
	}
	for e := range iface.EmbeddedTypes() {
		if u, ok := e.(*types.Union); ok {
			all := u.Len() > 0
			for term := range u.Terms() {
				all = all && numeric(term.Type())
			}
			if all {
				return true
			}
		} else if numeric(e) {
			return true
		}
	}
	return false
}

// hasLock tells whether a copy of t would copy a lock.
func hasLock(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if _, ok := types.Unalias(t).(*types.Named); ok {
		methods := types.NewMethodSet(types.NewPointer(t))
		if methods.Lookup(nil, "Lock") != nil && methods.Lookup(nil, "Unlock") != nil {
			return true
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Array:
		return hasLock(u.Elem(), seen)
	case *types.Struct:
		for v := range u.Fields() {
			if hasLock(v.Type(), seen) {
				return true
			}
		}
	}
	return false
}
