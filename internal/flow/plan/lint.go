package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Fault names a rule that a contract breaks.
type Fault string

// The rules of [Lint].
const (
	IDTwice             Fault = "id_twice"              // an id is used twice
	RequirementUnknown  Fault = "requirement_unknown"   // a scope rule names no requirement or invariant that there is
	ScopeUnbound        Fault = "scope_unbound"         // a scope rule names none at all
	AcceptanceMissing   Fault = "acceptance_missing"    // a behaviour without a test or a grader
	PathMissing         Fault = "path_missing"          // a named path is not at the base
	PathExists          Fault = "path_exists"           // a path to be created is there
	TestMissing         Fault = "test_missing"          // a test that can neither be there nor come
	AbsentWithoutSymbol Fault = "absent_without_symbol" // before: absent, and no interface is added
	ScopeTooWide        Fault = "scope_too_wide"        // patterns match more than the policy's max_scope
	PathProtected       Fault = "path_protected"        // a scope rule opens a protected path
	RefactorInterface   Fault = "refactor_interface"    // kind refactor declares an interface change
	RefactorTest        Fault = "refactor_test"         // kind refactor opens a test of the base
	DocsPath            Fault = "docs_path"             // kind docs opens a path outside docs_paths
	DependencyTwice     Fault = "dependency_twice"      // one dependency in two lists
	NothingAsked        Fault = "nothing_asked"         // no requirement, or no scope
)

// Problem is one rule that a contract breaks.
type Problem struct {
	Fault    Fault    `json:"fault"`
	Severity Severity `json:"severity"`
	Where    string   `json:"where"` // id of the requirement, acceptance or scope rule; a key of the contract otherwise
	Message  string   `json:"message"`
}

// linter holds what the rules share.
type linter struct {
	c     *Contract
	base  map[string]bool
	paths []string
	rules []rule
	guard guard
	p     Rules
	out   []Problem
}

// Lint judges a contract before it is accepted, against the paths of the base tree
// and what the policy says. It passes when no problem is an error. An error means
// that a pattern does not compile, which [Parse] refuses.
func Lint(c *Contract, base []string, p Rules) ([]Problem, error) {
	l := &linter{c: c, base: make(map[string]bool, len(base)), paths: base, p: p, guard: newGuard(c, p), out: []Problem{}}
	for _, path := range base {
		l.base[path] = true
	}
	var err error
	if l.rules, err = compileRules(c); err != nil {
		return nil, err
	}
	for _, rule := range []func(){l.ids, l.asked, l.bound, l.accepted, l.named, l.tests, l.width, l.protected, l.refactor, l.docs, l.dependencies} {
		rule()
	}
	return l.out, nil
}

// Clean tells whether no problem is an error.
func Clean(problems []Problem) bool {
	return !slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == Error })
}

func (l *linter) add(f Fault, s Severity, where, format string, args ...any) {
	l.out = append(l.out, Problem{f, s, where, fmt.Sprintf(format, args...)})
}

// ids holds every id to one use in the whole contract, so that a name in a
// message or a waiver can mean one thing only.
func (l *linter) ids() {
	first := map[string]string{}
	use := func(what, id string) {
		if id == "" {
			return
		}
		if was, ok := first[id]; ok {
			l.add(IDTwice, Error, id, "%s is the id of %s and of %s", id, was, what)
			return
		}
		first[id] = what
	}
	for _, r := range l.c.Requirements {
		use("a requirement", r.ID)
		for _, a := range r.Acceptance {
			use("an acceptance of "+r.ID, a.ID)
		}
	}
	for _, i := range l.c.Invariants {
		use("an invariant", i.ID)
	}
	for _, r := range l.c.Scope {
		use("a scope rule", r.ID)
	}
}

// asked refuses a contract that nothing could fail or fulfil.
func (l *linter) asked() {
	if len(l.c.Requirements) == 0 {
		l.add(NothingAsked, Error, "requirements", "the plan has no requirement")
	}
	if len(l.c.Scope) == 0 {
		l.add(NothingAsked, Error, "scope", "the plan has no scope rule, so nothing may change")
	}
}

// bound holds each scope rule to a requirement or an invariant that there is.
func (l *linter) bound() {
	var known []string
	for _, r := range l.c.Requirements {
		known = append(known, r.ID)
	}
	for _, i := range l.c.Invariants {
		if i.ID != "" {
			known = append(known, i.ID)
		}
	}
	for _, r := range l.c.Scope {
		if len(r.For) == 0 {
			l.add(ScopeUnbound, Error, r.ID, "scope rule %s is for no requirement and no invariant", r.ID)
		}
		for _, id := range r.For {
			if !slices.Contains(known, id) {
				l.add(RequirementUnknown, Error, r.ID, "scope rule %s is for %s, which is no requirement and no invariant of the plan", r.ID, id)
			}
		}
	}
}

// accepted holds each requirement of a behaviour to a way to measure it.
func (l *linter) accepted() {
	if l.c.Kind != Behaviour {
		return
	}
	for _, r := range l.c.Requirements {
		if !slices.ContainsFunc(r.Acceptance, func(a Acceptance) bool { return a.Test != "" || a.Grader != "" }) {
			l.add(AcceptanceMissing, Error, r.ID, "requirement %s has no acceptance by a test or a grader", r.ID)
		}
	}
}

// named holds paths without wildcards to what is at the base.
func (l *linter) named() {
	for _, r := range l.rules {
		for _, p := range r.set {
			for _, path := range p.Paths() {
				switch {
				case !r.ops[Create] && !r.ops[Rename] && !l.base[path]:
					l.add(PathMissing, Error, r.ID, "scope rule %s names %s, which is not at the base, and does not allow to create it", r.ID, path)
				case len(r.ops) == 1 && r.ops[Create] && l.base[path]:
					l.add(PathExists, Warn, r.ID, "scope rule %s allows only to create %s, which is at the base already", r.ID, path)
				}
			}
		}
	}
	for _, req := range l.c.Requirements {
		for _, a := range req.Acceptance {
			if a.Grader != "" && !slices.ContainsFunc(l.paths, func(p string) bool { return under(p, strings.TrimSuffix(a.Grader, "/")) }) {
				l.add(PathMissing, Error, a.ID, "acceptance %s names the grader %s, which is not at the base", a.ID, a.Grader)
			}
		}
	}
}

// tests holds the tests of acceptances to what can be: a test passes before only
// where its file is, and a file that is not there must be allowed to come.
func (l *linter) tests() {
	adds := slices.ContainsFunc(l.c.Interfaces, func(i Interface) bool { return i.Change == SymbolAdd })
	for _, req := range l.c.Requirements {
		for _, a := range req.Acceptance {
			if a.Test == "" {
				continue
			}
			file, _ := a.TestFile()
			switch {
			case a.Before == Passes && !l.base[file]:
				l.add(PathMissing, Error, a.ID, "acceptance %s says that its test passes before, and %s is not at the base", a.ID, file)
			case !l.base[file] && !l.creatable(file):
				l.add(TestMissing, Error, a.ID, "the test of acceptance %s is in %s, which is not at the base and which no scope rule allows to create", a.ID, file)
			}
			if a.Before == Absent && !adds {
				l.add(AbsentWithoutSymbol, Error, a.ID, "acceptance %s says that what it tests is absent before, and no interface is declared with change add", a.ID)
			}
		}
	}
}

func (l *linter) creatable(path string) bool {
	return slices.ContainsFunc(l.rules, func(r rule) bool { return (r.ops[Create] || r.ops[Rename]) && r.set.Match(path) })
}

// width holds the patterns to the policy's share of the base. Paths that are
// named without wildcards are counted in no share.
func (l *linter) width() {
	var wild Set
	for _, r := range l.rules {
		for _, p := range r.set {
			if !p.Literal() {
				wild = append(wild, p)
			}
		}
	}
	if share := wild.Share(l.paths); share > l.p.MaxScope {
		l.add(ScopeTooWide, Error, "scope", "the patterns of the scope match %.0f%% of the base's %d files, more than the policy's max_scope of %.0f%%; name directories or files more narrowly",
			100*share, len(l.paths), 100*l.p.MaxScope)
	} else if l.p.MaxScope < 1 && wild.Covers(everything()) {
		l.add(ScopeTooWide, Error, "scope", "the patterns of the scope name every path; name directories or files")
	}
}

// everything is the pattern of every path.
func everything() *Pattern {
	p, err := Compile("**")
	if err != nil {
		panic(err) // it is written here
	}
	return p
}

// protected keeps scope rules off protected paths: named ones, those that a
// pattern takes in at the base, and patterns that can match nothing else. A plan
// about protected paths, approved by a holder of the right, names nothing else.
func (l *linter) protected() {
	if l.p.Guarded && !slices.ContainsFunc(l.rules, func(r rule) bool {
		return slices.ContainsFunc(r.set, func(p *Pattern) bool { return !l.onlyProtected(p) })
	}) {
		return
	}
	for _, r := range l.rules {
		for _, p := range r.set {
			what, why := l.opens(p)
			switch {
			case what == "":
			case l.p.Guarded:
				l.add(PathProtected, Error, r.ID, "scope rule %s, path %s, opens %s, which is protected by %s, and the plan opens other paths too: it needs a run of its own", r.ID, p, what, why)
			default:
				l.add(PathProtected, Error, r.ID, "scope rule %s, path %s, opens %s, which is protected by %s", r.ID, p, what, why)
			}
		}
	}
}

// opens is a protected path that a pattern opens, with what protects it; empty
// when it opens none.
func (l *linter) opens(p *Pattern) (path, why string) {
	for _, path := range p.Paths() {
		if why := l.guard.protects(path); why != "" {
			return path, why
		}
	}
	for _, path := range l.paths {
		if p.Match(path) {
			if why := l.guard.protects(path); why != "" {
				return path, why
			}
		}
	}
	if l.onlyProtected(p) {
		return p.String(), "the policy"
	}
	return "", ""
}

// onlyProtected tells whether a pattern can match nothing but protected paths.
func (l *linter) onlyProtected(p *Pattern) bool {
	all := slices.Clone(l.guard.set)
	for _, t := range l.guard.trees {
		for _, text := range []string{t, t + "/**"} {
			if q, err := Compile(text); err == nil {
				all = append(all, q)
			}
		}
	}
	return all.Covers(p)
}

// refactor holds plans of the kind to interfaces and tests that stay.
func (l *linter) refactor() {
	if l.c.Kind != Refactor {
		return
	}
	for _, i := range l.c.Interfaces {
		l.add(RefactorInterface, Error, "interfaces", "a plan of kind refactor changes no interface, and it declares to %s %s", i.Change, i.Symbol)
	}
	for _, r := range l.rules {
		for _, p := range r.set {
			for _, path := range p.Paths() {
				if l.base[path] && TestFile(path) {
					l.add(RefactorTest, Error, r.ID, "a plan of kind refactor touches no test of the base, and scope rule %s names %s", r.ID, path)
				}
			}
		}
	}
}

// docs holds plans of the kind to the policy's paths.
func (l *linter) docs() {
	if l.c.Kind != Docs {
		return
	}
	for _, r := range l.rules {
		for i, p := range r.set {
			if !l.p.DocsPaths.Covers(p) {
				l.add(DocsPath, Error, r.ID, "a plan of kind docs keeps to the policy's docs_paths, and scope rule %s, path %s, reaches beyond", r.ID, r.Paths[i])
			}
		}
	}
}

// dependencies refuses a dependency that two lists name.
func (l *linter) dependencies() {
	d := l.c.Dependencies
	seen := map[string]string{}
	for _, list := range []struct {
		name string
		of   []string
	}{{"add", d.Add}, {"bump", d.Bump}, {"remove", d.Remove}} {
		for _, name := range list.of {
			if was, ok := seen[name]; ok {
				l.add(DependencyTwice, Error, "dependencies", "%s is in %s and in %s", name, was, list.name)
			}
			seen[name] = list.name
		}
	}
}
