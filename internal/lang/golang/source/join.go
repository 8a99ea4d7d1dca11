package source

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

// maxImplementations bounds the calls that one call of an interface's method can
// stand for. Beyond it (error, fmt.Stringer in a large project) nothing is said:
// calls order attempts and are no evidence.
const maxImplementations = 32

// join makes the scan of all packages' facts.
func (m *module) join(all []*facts) (*lang.Scan, error) {
	slices.SortFunc(all, func(a, b *facts) int {
		return strings.Compare(packageKey(a.Unit, a.XTest), packageKey(b.Unit, b.XTest))
	})
	locks, err := m.locks()
	if err != nil {
		return nil, err
	}
	project := m.req.Project
	if project.Name == "" {
		project.Name = m.path
	}
	s := &lang.Scan{Project: project, Toolchain: m.tools, Driver: Driver, Locks: locks}
	j := &joiner{m: m, all: all, scan: s, others: map[string]evidence.Digest{}, embeds: map[string]evidence.Digest{}}
	if err := j.unitDigests(); err != nil {
		return nil, err
	}
	j.declarations()
	j.symbols()
	j.calls()
	j.setups()
	return s, j.rest()
}

type joiner struct {
	m       *module
	all     []*facts
	scan    *lang.Scan
	others  map[string]evidence.Digest // unit to its assembly and C files
	embeds  map[string]evidence.Digest
	closure map[string]evidence.Digest // of declarations, by key
	ids     map[string]string          // symbol id by key
	vars    map[string][]string        // declaration to the functions that its initialiser names
	values  map[string]value           // of constants and variables, by key
}

// value is a constant or a variable, with the names in its initialiser.
type value struct {
	own  evidence.Digest
	refs []string
}

// unitDigests reads the files beside the sources.
func (j *joiner) unitDigests() error {
	counts := map[string]int{}
	files := map[string][]string{}
	undefined := map[string]string{}
	for _, f := range j.all {
		counts[f.Unit] += len(f.Tests)
		if undefined[f.Unit] == "" || f.Undefined != "" && !f.XTest {
			undefined[f.Unit] = f.Undefined
		}
	}
	for _, u := range j.m.units {
		var err error
		if j.others[u.path], err = j.m.filesDigest(u.other); err != nil {
			return err
		}
		if j.embeds[u.path], err = j.m.filesDigest(u.embed); err != nil {
			return err
		}
		if u.pkg != nil {
			files[u.path] = append(files[u.path], u.pkg.GoFiles...)
		}
		if u.xtest != nil {
			files[u.path] = append(files[u.path], u.xtest.GoFiles...)
		}
		broken := j.m.broken(u, j.all)
		if len(files[u.path]) == 0 && broken == nil {
			continue // everything is ignored by build constraints
		}
		data, err := j.m.dataDigest(u.dir)
		if err != nil {
			return err
		}
		rel := []string{}
		for _, f := range files[u.path] {
			rel = append(rel, j.m.rel(f))
		}
		slices.Sort(rel)
		unit := lang.Unit{ID: u.path, Dir: j.m.rel(u.dir), Files: rel, Imports: j.m.imports(u), Tests: counts[u.path], Data: data, Undefined: undefined[u.path], Broken: broken}
		j.scan.Units = append(j.scan.Units, unit)
	}
	return nil
}

// imports lists the units that a unit imports, sorted.
func (m *module) imports(u *unitSource) []string {
	own := map[string]bool{}
	for _, v := range m.units {
		own[v.path] = v != u
	}
	var out []string
	for _, p := range []*packages.Package{u.pkg, u.xtest} {
		if p == nil {
			continue
		}
		for _, imp := range p.Imports {
			if own[imp.PkgPath] {
				out = append(out, imp.PkgPath)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// declarations digests every declaration with all that it refers to. Types refer
// to each other in circles: a circle has one digest, of all its members.
func (j *joiner) declarations() {
	type node struct {
		own  evidence.Digest
		refs []string
	}
	nodes := map[string]*node{}
	j.vars, j.values = map[string][]string{}, map[string]value{}
	var order []string
	for _, f := range j.all {
		for _, d := range f.Decls {
			n := &node{own: d.Own}
			if d.Embeds {
				n.own = evidence.DigestParts("embeds", string(d.Own), string(j.embeds[f.Unit]))
			}
			for _, k := range d.Refs {
				key := f.Keys[k]
				n.refs = append(n.refs, key)
				if strings.HasPrefix(key, "f:") {
					j.vars[d.Key] = append(j.vars[d.Key], key)
				}
			}
			if nodes[d.Key] == nil {
				order = append(order, d.Key)
			}
			nodes[d.Key] = n
			if d.Value {
				j.values[d.Key] = value{n.own, n.refs}
			}
		}
	}
	j.closure = make(map[string]evidence.Digest, len(nodes))
	components(order, func(k string) []string {
		if n := nodes[k]; n != nil {
			return n.refs
		}
		return nil
	}, func(members []string) {
		slices.Sort(members)
		inside := map[string]bool{}
		for _, k := range members {
			inside[k] = true
		}
		parts, out := []string{"closure/v1"}, []string{}
		for _, k := range members {
			n := nodes[k]
			if n == nil {
				continue // a function, or not of this project
			}
			parts = append(parts, k, string(n.own))
			for _, ref := range n.refs {
				if !inside[ref] {
					out = append(out, ref+"="+string(j.closure[ref]))
				}
			}
		}
		slices.Sort(out)
		d := evidence.DigestParts(append(parts, slices.Compact(out)...)...)
		for _, k := range members {
			if nodes[k] != nil {
				j.closure[k] = d
			}
		}
	})
}

// components calls f with the strongly connected components of a graph, those
// that are referred to first (Tarjan's algorithm, without recursion).
func components(keys []string, refs func(string) []string, f func([]string)) {
	type state struct {
		index, low int
		open       bool
	}
	type frame struct {
		key  string
		refs []string
		next int
	}
	states := map[string]*state{}
	var stack []string
	for _, root := range keys {
		if states[root] != nil {
			continue
		}
		work := []frame{{key: root, refs: refs(root)}}
		states[root] = &state{index: len(states), low: len(states), open: true}
		stack = append(stack, root)
		for len(work) > 0 {
			w := &work[len(work)-1]
			s := states[w.key]
			if w.next < len(w.refs) {
				ref := w.refs[w.next]
				w.next++
				if t := states[ref]; t == nil {
					states[ref] = &state{index: len(states), low: len(states), open: true}
					stack = append(stack, ref)
					work = append(work, frame{key: ref, refs: refs(ref)})
				} else if t.open {
					s.low = min(s.low, t.index)
				}
				continue
			}
			if s.low == s.index {
				i := len(stack) - 1
				for stack[i] != w.key {
					i--
				}
				members := slices.Clone(stack[i:])
				stack = stack[:i]
				for _, k := range members {
					states[k].open = false
				}
				f(members)
			}
			done := *s
			work = work[:len(work)-1]
			if len(work) > 0 {
				p := states[work[len(work)-1].key]
				p.low = min(p.low, done.low)
			}
		}
	}
}

// symbols completes the digests.
func (j *joiner) symbols() {
	j.ids = map[string]string{}
	for _, f := range j.all {
		for _, fn := range f.Funcs {
			if _, ok := j.ids[fn.Key]; !ok {
				j.ids[fn.Key] = fn.Symbol.ID
			}
		}
	}
	for _, f := range j.all {
		for _, fn := range f.Funcs {
			parts := []string{"symbol/v1", string(fn.Own)}
			if fn.UsesC {
				parts = append(parts, "other", string(j.others[f.Unit]))
			}
			for _, k := range fn.Refs {
				key := f.Keys[k]
				parts = append(parts, key, string(j.closure[key]))
			}
			s := fn.Symbol
			s.Digest = evidence.DigestParts(parts...)
			s.Values = j.valuesOf(f, fn.Refs)
			j.scan.Symbols = append(j.scan.Symbols, s)
		}
		j.scan.Tests = append(j.scan.Tests, f.Tests...)
		j.scan.Values = append(j.scan.Values, f.Values...)
	}
}

// valuesOf digests the constants and variables that can be come to from some
// references; empty when there are none.
func (j *joiner) valuesOf(f *facts, refs []int32) evidence.Digest {
	seen := map[string]bool{}
	var work, parts []string
	for _, k := range refs {
		work = append(work, f.Keys[k])
	}
	for len(work) > 0 {
		key := work[len(work)-1]
		work = work[:len(work)-1]
		v, ok := j.values[key]
		if !ok || seen[key] {
			continue
		}
		seen[key] = true
		parts, work = append(parts, key+" "+string(v.own)), append(work, v.refs...)
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return evidence.DigestParts(append([]string{"values/v1"}, parts...)...)
}

// setups digests what each unit does when the process starts and around its
// tests. Where in the package it stands does not count, but for the order in which
// it runs: that of the files and of the declarations in them.
func (j *joiner) setups() {
	digest := map[string]evidence.Digest{}
	calls := map[string][]string{}
	for _, c := range j.scan.Calls {
		calls[c.From] = append(calls[c.From], c.To)
	}
	plain, test := map[string]*setupParts{}, map[string]*setupParts{}
	for _, u := range j.scan.Units {
		plain[u.ID], test[u.ID] = &setupParts{}, &setupParts{}
	}
	noFiles := evidence.DigestParts("files/v1")
	of := func(unit string, testCode bool) *setupParts {
		if testCode {
			return test[unit]
		}
		return plain[unit]
	}
	var mains []lang.Symbol
	for _, s := range j.scan.Symbols {
		digest[s.ID] = s.Digest
		switch s.Kind {
		case "init":
			p := of(s.Unit, s.TestCode)
			p.inits = append(p.inits, string(s.Digest))
		case "test_main":
			mains = append(mains, s)
		}
	}
	for _, s := range mains {
		seen := map[string]bool{}
		for work := []string{s.ID}; len(work) > 0; {
			id := work[len(work)-1]
			work = work[:len(work)-1]
			if !seen[id] {
				seen[id] = true
				test[s.Unit].others = append(test[s.Unit].others, "main "+id+" "+string(digest[id]))
				work = append(work, calls[id]...)
			}
		}
	}
	for _, f := range j.all {
		for _, s := range f.Setup {
			parts := []string{string(s.Own)}
			for _, k := range s.Refs {
				parts = append(parts, f.Keys[k], string(j.closure[f.Keys[k]]))
			}
			p, d := of(f.Unit, s.TestFile), string(evidence.DigestParts(parts...))
			if s.Runs {
				p.initialisers = append(p.initialisers, d)
			} else {
				p.others = append(p.others, "start "+d)
			}
		}
	}
	for i := range j.scan.Units {
		u := &j.scan.Units[i]
		if c := j.others[u.ID]; c != noFiles {
			plain[u.ID].others = append(plain[u.ID].others, "other "+string(c))
		}
		u.Setup, u.TestSetup = plain[u.ID].digest(), test[u.ID].digest()
	}
}

// setupParts are the digests of what is done when a process starts.
type setupParts struct {
	initialisers, inits []string // in the order in which they run
	others              []string // without an order: imports, settings, what TestMain calls
}

// digest is empty when there is nothing. Two init functions with the same text
// count twice; an import that two files have counts once.
func (p *setupParts) digest() evidence.Digest {
	if len(p.initialisers)+len(p.inits)+len(p.others) == 0 {
		return ""
	}
	slices.Sort(p.others)
	return evidence.DigestParts(slices.Concat(
		[]string{"setup/v2"}, p.initialisers, []string{"inits"}, p.inits, []string{"others"}, slices.Compact(p.others))...)
}

// calls lists static edges. A function that is named without being called (a
// handler, an entry of a table) can be called, so it counts; so does one that is
// named in the initialiser of a variable that the caller uses.
func (j *joiner) calls() {
	seen := map[lang.Call]bool{}
	add := func(from, toKey string) {
		if to, ok := j.ids[toKey]; ok {
			c := lang.Call{From: from, To: to}
			if !seen[c] {
				seen[c] = true
				j.scan.Calls = append(j.scan.Calls, c)
			}
		}
	}
	impl := j.implementations()
	for _, f := range j.all {
		targets := map[dynCall][]string{}
		for _, fn := range f.Funcs {
			for _, k := range fn.Refs {
				key := f.Keys[k]
				if strings.HasPrefix(key, "f:") {
					add(fn.Symbol.ID, key)
				}
				for _, v := range j.vars[key] {
					add(fn.Symbol.ID, v)
				}
			}
			for _, d := range fn.Dynamic {
				to, ok := targets[d]
				if !ok {
					to = impl(f.Ifaces[d.Iface], d.Method)
					targets[d] = to
				}
				for _, key := range to {
					add(fn.Symbol.ID, key)
				}
			}
		}
	}
	slices.SortFunc(j.scan.Calls, func(a, b lang.Call) int {
		if c := strings.Compare(a.From, b.From); c != 0 {
			return c
		}
		return strings.Compare(a.To, b.To)
	})
}

// implementations finds the methods of the project's types that a call of an
// interface's method can mean.
func (j *joiner) implementations() func(iface []string, method string) []string {
	byMethod := map[string][]*typeFact{}
	for _, f := range j.all {
		for i := range f.Types {
			for sig := range f.Types[i].Methods {
				byMethod[sig] = append(byMethod[sig], &f.Types[i])
			}
		}
	}
	return func(iface []string, method string) []string {
		rarest := method
		for _, sig := range iface {
			if len(byMethod[sig]) < len(byMethod[rarest]) {
				rarest = sig
			}
		}
		var out []string
		for _, t := range byMethod[rarest] {
			all := true
			for _, sig := range iface {
				if _, all = t.Methods[sig]; !all {
					break
				}
			}
			if key := t.Methods[method]; all && key != "" {
				out = append(out, key)
			}
		}
		slices.Sort(out)
		out = slices.Compact(out)
		if len(out) > maxImplementations {
			return nil
		}
		return out
	}
}

// rest adds entry points and problems.
func (j *joiner) rest() error {
	found := map[string]bool{} // units of which the type check has something to say
	seen := map[lang.EntryPoint]bool{}
	for _, f := range j.all {
		for _, e := range f.Entries {
			p := lang.EntryPoint{Kind: e.Kind, Name: e.Name, Symbol: e.Symbol, File: e.File, Line: e.Line}
			if id, ok := j.ids[e.Key]; ok {
				p.Symbol = id
			}
			if p.Symbol != "" && !seen[p] {
				seen[p] = true
				j.scan.EntryPoints = append(j.scan.EntryPoints, p)
			}
		}
		j.scan.Problems = append(j.scan.Problems, f.Problems...)
		found[f.Unit] = found[f.Unit] || len(f.Problems) > 0
	}
	j.scan.Problems = append(j.scan.Problems, j.m.problems...)
	for _, u := range j.m.units {
		j.scan.Problems = append(j.scan.Problems, u.problems...)
		if !found[u.path] {
			j.scan.Problems = append(j.scan.Problems, u.build...)
		}
	}
	ignored, err := j.m.ignored(j.scan.Units)
	if err != nil {
		return err
	}
	j.scan.Problems = append(j.scan.Problems, ignored...)
	slices.SortFunc(j.scan.Problems, func(a, b lang.Problem) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Reason, b.Reason)
	})
	j.scan.Problems = slices.Compact(j.scan.Problems)
	return nil
}
