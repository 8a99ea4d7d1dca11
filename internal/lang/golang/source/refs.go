package source

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// collector gathers what one declaration refers to.
type collector struct {
	r       *reader
	seen    map[int32]bool
	dynamic []dynCall
	calls   map[dynCall]bool
}

func (r *reader) collector() *collector {
	return &collector{r: r, seen: map[int32]bool{}, calls: map[dynCall]bool{}}
}

// collect walks a declaration.
func (r *reader) collect(n ast.Node) *collector {
	c := r.collector()
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Ident:
			if o := r.info.Uses[x]; o != nil {
				c.object(x, o)
			} else if o := r.info.Defs[x]; o != nil && o.Type() != nil {
				c.typ(o.Type())
			}
		case *ast.SelectorExpr:
			if s := r.info.Selections[x]; s != nil {
				c.selection(s)
			}
		}
		if e, ok := n.(ast.Expr); ok {
			if tv, ok := r.info.Types[e]; ok && tv.Type != nil {
				c.typ(tv.Type)
			}
		}
		return true
	})
	return c
}

// refs are sorted by key, so that the order of declarations does not matter.
func (c *collector) refs() []int32 {
	out := make([]int32, 0, len(c.seen))
	for k := range c.seen {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b int32) int { return strings.Compare(c.r.out.Keys[a], c.r.out.Keys[b]) })
	return out
}

func (r *reader) intern(key string) int32 {
	k, ok := r.keys[key]
	if !ok {
		k = int32(len(r.out.Keys))
		r.keys[key] = k
		r.out.Keys = append(r.out.Keys, key)
	}
	return k
}

func (c *collector) add(key string) { c.seen[c.r.intern(key)] = true }

// object records a use of a name.
func (c *collector) object(id *ast.Ident, o types.Object) {
	switch o := o.(type) {
	case *types.PkgName:
		c.add("i:" + id.Name + "=" + o.Imported().Path())
	case *types.Func:
		if key := c.r.funcKey(o); key != "" {
			c.add(key)
		}
	case *types.Const, *types.Var, *types.TypeName:
		if key := c.r.declKey(o); key != "" {
			c.add(key)
		}
	}
}

// selection records the call of an interface's method; the method of a concrete
// type is a use of its name.
func (c *collector) selection(s *types.Selection) {
	f, ok := s.Obj().(*types.Func)
	if !ok {
		return
	}
	recv := s.Recv()
	iface, ok := recv.Underlying().(*types.Interface)
	if _, param := types.Unalias(recv).(*types.TypeParam); param || !ok {
		// A struct that embeds an interface calls it too.
		sig, okSig := f.Type().(*types.Signature)
		if !okSig || sig.Recv() == nil {
			return
		}
		if iface, ok = sig.Recv().Type().Underlying().(*types.Interface); !ok {
			return
		}
	}
	d := dynCall{Iface: c.r.iface(iface), Method: signature(f)}
	if !c.calls[d] {
		c.calls[d] = true
		c.dynamic = append(c.dynamic, d)
	}
}

func (c *collector) typ(t types.Type) {
	for _, k := range c.r.typeRefs(t) {
		c.seen[k] = true
	}
}

// typeRefs are the keys of the project's named types in t. Parameters of
// functions are left out: the function that is called has a digest of its own.
func (r *reader) typeRefs(t types.Type) []int32 {
	if k, ok := r.named[t]; ok {
		return k
	}
	r.named[t] = nil // ends recursion
	var out []int32
	add := func(o types.Object) {
		if key := r.declKey(o); key != "" {
			out = append(out, r.intern(key))
		}
	}
	switch x := t.(type) {
	case *types.Alias:
		add(x.Obj())
		out = append(out, r.typeRefs(types.Unalias(x))...)
	case *types.Named:
		add(x.Obj())
		for a := range x.TypeArgs().Types() {
			out = append(out, r.typeRefs(a)...)
		}
	case *types.Pointer:
		out = r.typeRefs(x.Elem())
	case *types.Slice:
		out = r.typeRefs(x.Elem())
	case *types.Array:
		out = r.typeRefs(x.Elem())
	case *types.Chan:
		out = r.typeRefs(x.Elem())
	case *types.Map:
		out = slices.Concat(r.typeRefs(x.Key()), r.typeRefs(x.Elem()))
	case *types.Tuple:
		for v := range x.Variables() {
			out = append(out, r.typeRefs(v.Type())...)
		}
	case *types.Struct:
		for f := range x.Fields() {
			out = append(out, r.typeRefs(f.Type())...)
		}
	}
	r.named[t] = out
	return out
}

// owner is the package part of a key; ok is false outside the project.
func (r *reader) owner(p *types.Package) (string, bool) {
	switch {
	case p == nil:
		return "", false
	case p == r.pkg:
		return r.pkgKey(), true
	}
	return p.Path(), r.known[p.Path()]
}

// declKey is the key of a package-level constant, variable or type of the
// project; empty for everything else.
func (r *reader) declKey(o types.Object) string {
	pkg, ok := r.owner(o.Pkg())
	if !ok || o.Parent() != o.Pkg().Scope() {
		return ""
	}
	return "d:" + pkg + "." + o.Name()
}

// funcKey is the key of a function or method with a declaration of its own in
// the project; empty for methods of interfaces and for other modules.
func (r *reader) funcKey(f *types.Func) string {
	f = f.Origin()
	pkg, ok := r.owner(f.Pkg())
	if !ok {
		return ""
	}
	sig, ok := f.Type().(*types.Signature)
	if !ok {
		return ""
	}
	if sig.Recv() == nil {
		if f.Parent() != f.Pkg().Scope() {
			return ""
		}
		return "f:" + pkg + "." + f.Name()
	}
	t := types.Unalias(sig.Recv().Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, ok := t.(*types.Named)
	if !ok || types.IsInterface(n) {
		return ""
	}
	return "f:" + pkg + "." + n.Obj().Name() + "." + f.Name()
}

func (r *reader) iface(t *types.Interface) int {
	var sigs []string
	for m := range t.Methods() {
		sigs = append(sigs, signature(m))
	}
	slices.Sort(sigs)
	key := strings.Join(sigs, ";")
	i, ok := r.ifaces[key]
	if !ok {
		i = len(r.out.Ifaces)
		r.ifaces[key] = i
		r.out.Ifaces = append(r.out.Ifaces, sigs)
	}
	return i
}

// signature is a method's name and type, comparable between packages that were
// checked apart. Names of parameters do not count.
func signature(f *types.Func) string {
	var b strings.Builder
	if !f.Exported() && f.Pkg() != nil {
		b.WriteString(f.Pkg().Path() + ".")
	}
	b.WriteString(f.Name())
	sig := f.Type().(*types.Signature)
	for _, t := range []*types.Tuple{sig.Params(), sig.Results()} {
		b.WriteByte('(')
		for v := range t.Variables() {
			b.WriteString(types.TypeString(v.Type(), nil) + ",")
		}
		b.WriteByte(')')
	}
	if sig.Variadic() {
		b.WriteString("...")
	}
	return b.String()
}

// concreteTypes lists the methods of the package's types, promoted ones
// included. Generic types are left out: whether they implement an interface
// depends on their arguments.
func (r *reader) concreteTypes() {
	scope := r.pkg.Scope()
	for _, name := range scope.Names() {
		tn, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || tn.IsAlias() || types.IsInterface(tn.Type()) {
			continue
		}
		n, ok := tn.Type().(*types.Named)
		if !ok || n.TypeParams().Len() > 0 {
			continue
		}
		set := types.NewMethodSet(types.NewPointer(n))
		fact := typeFact{Methods: map[string]string{}}
		for sel := range set.Methods() {
			if f, ok := sel.Obj().(*types.Func); ok {
				fact.Methods[signature(f)] = r.funcKey(f)
			}
		}
		if len(fact.Methods) > 0 {
			r.out.Types = append(r.out.Types, fact)
		}
	}
}
