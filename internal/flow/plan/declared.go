package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/flow/deps"
	"github.com/proveto/proveto/internal/flow/gosrc"
)

// dependencies is P006: what manifests and lock files name otherwise than at the
// base has to be declared, each by its name.
func (c *checker) dependencies() {
	d := c.in.Contract.Dependencies
	for _, dep := range c.in.Facts.Dependencies {
		ch := c.changed[dep.Path]
		switch {
		case dep.Broken != "":
			c.violate(P006, ch, c.ruleAt(dep.Path), "", "what it depends on cannot be read: %s", dep.Broken)
		case dep.Opaque:
			if !c.named(dep.Path) || len(d.Add)+len(d.Bump)+len(d.Remove) == 0 {
				c.violate(P006, ch, c.ruleAt(dep.Path), "", "a manifest that is not parsed changed; a scope rule has to name it and the plan to declare dependencies")
			}
		case dep.Swapped:
			c.violate(P006, ch, c.ruleAt(dep.Path), "", "%s stays at %s, but its checksum or its source is another: it is other code", dep.Name, dep.New)
		case !declared(d, dep.Change):
			c.undeclared(ch, dep)
		}
	}
}

func (c *checker) undeclared(ch *Change, dep Dependency) {
	d := c.in.Contract.Dependencies
	what := fmt.Sprintf("%s: %s is not declared", dep.Verb, dep.Name)
	switch {
	case dep.Verb == deps.Bump && dep.Old != "":
		what += fmt.Sprintf(" (%s is now %s)", dep.Old, dep.New)
	case dep.New != "":
		what += fmt.Sprintf(" (%s)", dep.New)
	}
	c.violate(P006, ch, c.ruleAt(dep.Path), "", "%s", what)
	// What a declared dependency brings along is shown, and stands not in the way.
	for _, root := range dep.Roots {
		if names(d.Add, root, "") || names(d.Bump, root, "") || names(d.Remove, root, "") {
			v := &c.out.Violations[len(c.out.Violations)-1]
			v.Severity = Warn
			v.Message += "; it comes with " + root
			return
		}
	}
}

// declared tells whether the contract names a change of a dependency.
func declared(d Dependencies, ch deps.Change) bool {
	switch ch.Verb {
	case deps.Add:
		return names(d.Add, ch.Name, ch.New)
	case deps.Bump:
		return names(d.Bump, ch.Name, ch.New)
	}
	return names(d.Remove, ch.Name, "")
}

// names tells whether a list has a dependency, by its name or by its name with the
// version that it has now. An empty version is any.
func names(list []string, name, version string) bool {
	for _, entry := range list {
		if entry == name {
			return true
		}
		if n, v := deps.SplitVersion(entry); n == name && v != "" && (version == "" || version == v || strings.HasPrefix(version, v+" ")) {
			return true
		}
	}
	return false
}

// named tells whether the rule that allows a path names it without a wildcard.
func (c *checker) named(path string) bool {
	j, ok := c.admitted[path]
	return ok && c.rules[j].literal[path]
}

func (c *checker) ruleAt(path string) string {
	if ch := c.changed[path]; ch != nil {
		return c.ruleOf(ch)
	}
	return ""
}

// vendored is P006 for the code of dependencies that lies in the repository: it
// is theirs, so only a declared change of one may touch it.
func (c *checker) vendored() {
	d := c.in.Contract.Dependencies
	all := slices.Concat(d.Add, d.Bump, d.Remove)
	trees := c.vendorTrees()
	reported := map[string]bool{}
	for i := range c.in.Changes {
		ch := &c.in.Changes[i]
		at, ok := vendorPath(ch.Path, trees)
		if !ok || at == "modules.txt" {
			continue
		}
		if slices.ContainsFunc(all, func(entry string) bool {
			name, _ := deps.SplitVersion(entry)
			return under(at, name)
		}) {
			continue
		}
		parts := strings.SplitN(at, "/", 4)
		if module := strings.Join(parts[:min(3, len(parts))], "/"); !reported[module] {
			reported[module] = true
			c.violate(P006, ch, c.ruleOf(ch), "", "the code of %s is a dependency's, and no change of it is declared", module)
		}
	}
}

// vendorTrees are the directories that hold vendored Go modules.
func (c *checker) vendorTrees() []string {
	var out []string
	for _, tree := range [][]string{c.in.Base, c.in.Tree} {
		for _, p := range tree {
			if dir, ok := strings.CutSuffix(p, "vendor/modules.txt"); ok && (dir == "" || strings.HasSuffix(dir, "/")) && !slices.Contains(out, dir+"vendor/") {
				out = append(out, dir+"vendor/")
			}
		}
	}
	return out
}

// vendorPath is the path of a file below the vendored code that it is part of.
func vendorPath(path string, trees []string) (string, bool) {
	for _, t := range trees {
		if rest, ok := strings.CutPrefix(path, t); ok {
			return rest, true
		}
	}
	const modules = "node_modules/"
	if i := strings.LastIndex("/"+path, "/"+modules); i >= 0 {
		return path[i+len(modules):], true
	}
	return "", false
}

// interfaces is P007: exported symbols that differ have to be declared, by the
// name with the package or, where two packages share it, by that with the
// directory. Kind refactor changes none.
func (c *checker) interfaces() {
	f := c.in.Facts
	for _, p := range f.Unread {
		if !TestFile(p.Path) {
			c.violate(P007, c.changed[p.Path], c.ruleAt(p.Path), line("+", p.Line), "what it exports cannot be read: %s", p.Reason)
		}
	}
	base, head := map[string]gosrc.Symbol{}, map[string]gosrc.Symbol{}
	homes := map[string]map[string]bool{} // name: paths that have it
	for _, side := range []struct {
		in []gosrc.Symbol
		to map[string]gosrc.Symbol
	}{{f.Base, base}, {f.Head, head}} {
		for _, s := range side.in {
			side.to[s.Path] = s
			if homes[s.Name] == nil {
				homes[s.Name] = map[string]bool{}
			}
			homes[s.Name][s.Path] = true
		}
	}
	for path, s := range head {
		if b, ok := base[path]; !ok {
			c.symbol(s, SymbolAdd, "+", len(homes[s.Name]) > 1)
		} else if b.Digest != s.Digest {
			c.symbol(s, SymbolModify, "+", len(homes[s.Name]) > 1)
		}
	}
	for path, s := range base {
		if _, ok := head[path]; !ok {
			c.symbol(s, SymbolRemove, "-", len(homes[s.Name]) > 1)
		}
	}
	for _, lang := range f.Undriven {
		c.out.Violations = append(c.out.Violations, Violation{
			Code: P007, Severity: Warn, Message: "exported symbols of " + lang + " are not compared: there is no driver for it",
		})
	}
}

func (c *checker) symbol(s gosrc.Symbol, verb SymbolVerb, side string, shared bool) {
	k := c.in.Contract
	refactor := k.Kind == Refactor
	if !refactor && slices.ContainsFunc(k.Interfaces, func(i Interface) bool {
		return i.Change == verb && (i.Symbol == s.Path || i.Symbol == s.Name && !shared)
	}) {
		return
	}
	name := s.Name
	if shared {
		name = s.Path
	}
	text := fmt.Sprintf("%s: %s is not declared among the interfaces", verb, name)
	if refactor {
		text = fmt.Sprintf("%s: %s, and a plan of kind refactor changes no interface", verb, name)
	}
	c.violate(P007, c.changed[s.File], c.ruleAt(s.File), line(side, s.Line), "%s", text)
}

func line(side string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d", side, n)
}

// tests is P011: what the change makes of the tests of the base, and of what runs
// them.
func (c *checker) tests() {
	hosts := testHosts(c.in.Base)
	for _, w := range c.in.Facts.Weakened {
		if w.Way == gosrc.Hook && !hosts[dirOf(w.Path)] {
			continue // a directory without tests at the base: there is nothing to weaken
		}
		side := "+"
		if ch := c.changed[w.Path]; ch != nil && ch.NewMode == "" {
			side = "-"
		}
		text := w.Text
		if w.Test != "" {
			text = w.Test + ": " + text
		}
		c.violate(P011, c.changed[w.Path], c.ruleAt(w.Path), line(side, w.Line), "%s", text)
	}
	for _, r := range c.in.Facts.Runner {
		if below(c.in.Base, runnerHome(r.Path)) {
			c.violate(P011, c.changed[r.Path], c.ruleAt(r.Path), "", "%s", r.Why)
		}
	}
	for i := range c.in.Changes {
		c.testFile(&c.in.Changes[i])
	}
}

// testFile is P011 for whole files: a test file that goes, data of tests that a
// rule does not name as such, and under kind refactor any test of the base.
func (c *checker) testFile(ch *Change) {
	if ch.Op() == Create {
		return
	}
	t := c.twin(ch)
	isTest := TestFile(ch.Path)
	switch {
	case isTest && c.in.Contract.Kind == Refactor:
		c.violate(P011, ch, c.ruleOf(ch), "", "it is a test of the base, and a plan of kind refactor touches none")
	case isTest && ch.Op() == Delete && !gosrc.Source(ch.Path) && (t == nil || !TestFile(t.Path)):
		c.violate(P011, ch, c.ruleOf(ch), "", "the test file is removed")
	case isTest && ch.Op() == Type:
		c.violate(P011, ch, c.ruleOf(ch), "", "the test file is a %s now", cmp.Or(kind(ch.NewMode), "directory"))
	case inTestdata(ch.Path) && !c.namesTestdata(ch):
		c.violate(P011, ch, c.ruleOf(ch), "", "it is data of tests, and the rule that allows it does not name testdata")
	}
}

func inTestdata(path string) bool { return strings.Contains("/"+path, "/testdata/") }

// namesTestdata tells whether the rule that allows a path names testdata in the
// pattern by which it does: then the plan was approved with it in sight.
func (c *checker) namesTestdata(ch *Change) bool {
	j, ok := c.admitted[ch.Path]
	return ok && slices.ContainsFunc(c.rules[j].set, func(p *Pattern) bool { return inTestdata(p.String()) && p.Match(ch.Path) })
}

// testHosts are the directories that hold tests.
func testHosts(paths []string) map[string]bool {
	out := map[string]bool{}
	for _, p := range paths {
		if TestFile(p) {
			out[dirOf(p)] = true
		}
	}
	return out
}

func dirOf(path string) string { return path[:strings.LastIndexByte(path, '/')+1] }

// runnerHome is the directory, with its slash, of whose tests a runner file
// decides: its own, or that which holds the directory that such files lie in.
func runnerHome(path string) string {
	for _, in := range []string{"__mocks__/", ".mvn/", "src/test/"} {
		if i := strings.Index("/"+path, "/"+in); i >= 0 {
			return path[:i]
		}
	}
	return dirOf(path)
}

// below tells whether a directory, given with its slash, has tests in or under it.
func below(paths []string, dir string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, dir) && TestFile(p) })
}
