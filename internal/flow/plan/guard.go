package plan

import (
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/pathname"
)

// always are the paths that no policy can open: what judges a change is not
// changed by it.
var always = []string{"proveto.yaml", ".proveto"}

// guard tells which paths are protected. Names are also compared as file systems
// see them that fold case and Unicode forms, so that .Proveto is .proveto.
type guard struct {
	trees []string
	set   Set
	fold  Set
}

func newGuard(c *Contract, p Rules) guard {
	g := guard{trees: append([]string(nil), always...), set: p.Protected}
	g.trees = append(g.trees, p.Graders...)
	for _, r := range c.Requirements {
		for _, a := range r.Acceptance {
			if a.Grader != "" {
				g.trees = append(g.trees, a.Grader)
			}
		}
	}
	for i := range g.trees {
		g.trees[i] = strings.TrimSuffix(g.trees[i], "/")
	}
	for _, q := range p.Protected {
		if f, err := Compile(pathname.Fold(q.String())); err == nil {
			g.fold = append(g.fold, f)
		}
	}
	return g
}

// protects is the pattern or tree that protects a path; empty when none does.
func (g guard) protects(path string) string {
	folded := pathname.Fold(path)
	for _, t := range g.trees {
		if under(path, t) || under(folded, pathname.Fold(t)) {
			return t
		}
	}
	for _, p := range g.set {
		if p.Match(path) {
			return p.String()
		}
	}
	for _, p := range g.fold {
		if p.Match(folded) {
			return p.String()
		}
	}
	return ""
}

// under tells whether a path is the tree or lies in it.
func under(path, tree string) bool {
	return path == tree || strings.HasPrefix(path, tree) && path[len(tree)] == '/'
}

// protected is P003. A plan that a holder of the right principals approved may
// change protected paths, if it changes nothing else.
func (c *checker) protected() {
	g := newGuard(c.in.Contract, c.in.Policy)
	var hit []*Change
	var why []string
	for i := range c.in.Changes {
		if p := g.protects(c.in.Changes[i].Path); p != "" {
			hit, why = append(hit, &c.in.Changes[i]), append(why, p)
		}
	}
	if c.in.Policy.Guarded && len(hit) == len(c.in.Changes) {
		return
	}
	for i, ch := range hit {
		if c.in.Policy.Guarded {
			c.violate(P003, ch, why[i], "", "it is protected by %s, and the change touches paths that are not: it needs a run of its own", why[i])
			continue
		}
		c.violate(P003, ch, why[i], "", "it is protected by %s", why[i])
	}
}

// paths is P013: what is new to the tree must be a path that is safe everywhere
// and that no file system takes for another one of the whole tree.
func (c *checker) paths() {
	added := map[string][]string{} // folded path or directory of what is new: as written
	for i := range c.in.Changes {
		ch := &c.in.Changes[i]
		if ch.Op() != Create {
			continue
		}
		if why := pathname.Unsafe(ch.Path); why != "" {
			c.violate(P013, ch, "", "", "its path %s", why)
		}
		for p := ch.Path; p != ""; p = parent(p) {
			folded := pathname.Fold(p)
			if slices.Contains(added[folded], p) {
				break // its parents were looked at as well
			}
			added[folded] = append(added[folded], p)
		}
	}
	if len(added) > 0 {
		c.collisions(added)
	}
}

func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// collisions compares every path of the tree, and every directory, with the new
// ones.
func (c *checker) collisions(added map[string][]string) {
	reported := map[[2]string]bool{}
	compare := func(p string, with []string) {
		for _, at := range with {
			pair := [2]string{min(p, at), max(p, at)}
			if at != p && !reported[pair] {
				reported[pair] = true
				c.collide(p, at)
			}
		}
	}
	for _, with := range added {
		for _, p := range with {
			compare(p, with)
		}
	}
	last := ""
	for _, path := range c.in.Tree {
		for p := path; p != ""; p = parent(p) {
			if p != path && under(last, p) {
				break // it and its parents were looked at with the path before
			}
			compare(p, added[pathname.Fold(p)])
		}
		last = path
	}
}

// collide reports two paths that are one elsewhere; the one that the base does
// not have is to blame.
func (c *checker) collide(a, b string) {
	if !slices.ContainsFunc(c.in.Base, func(p string) bool { return under(p, a) }) {
		a, b = b, a
	}
	c.out.Violations = append(c.out.Violations, Violation{
		Code: P013, Severity: Error, Path: shownPath(b), Op: Create,
		Message: shownPath(b) + " and " + shownPath(a) + " are one path on file systems that fold case or Unicode forms",
	})
}
