package plan

import (
	"github.com/proveto/proveto/internal/strictyaml"
)

// contract reads the whole file. A note makes it a manual one, which has no more
// than a version and a goal beside it.
func contract(root strictyaml.Node) (*Contract, error) {
	var version *int
	var note string
	var has bool
	c := &Contract{}
	all := []field{
		count("version", &version).required(),
		text("goal", &c.Goal).required(),
		word("kind", &c.Kind, kinds),
		list("requirements", func(n strictyaml.Node) error { return requirement(n, c) }),
		list("scope", func(n strictyaml.Node) error { return scope(n, c) }),
		{name: "dependencies", read: func(n strictyaml.Node) error { return dependencies(n, &c.Dependencies) }},
		list("interfaces", func(n strictyaml.Node) error { return symbol(n, c) }),
		list("invariants", func(n strictyaml.Node) error { return invariant(n, c) }),
		{name: "budget", read: func(n strictyaml.Node) error { return budget(n, &c.Budget) }},
		texts("non_goals", &c.NonGoals),
		word("risk", &c.Risk, risks),
		{name: "note", read: func(n strictyaml.Node) error {
			var ok bool
			if note, ok = n.Text(); !ok {
				return n.Errorf("note is %s, want a text", n.Kind())
			}
			has = true
			return nil
		}},
	}
	if err := fields(root, "the contract", all...); err != nil {
		return nil, err
	}
	if *version != Version {
		return nil, root.Errorf("version is %d, want %d", *version, Version)
	}
	c.Version = Version
	if has {
		return manual(root, c, note)
	}
	if c.Kind == "" {
		c.Kind = Behaviour
	}
	if c.Risk == "" {
		c.Risk = Medium
	}
	return c, nil
}

// manual refuses a note beside anything that binds.
func manual(root strictyaml.Node, c *Contract, note string) (*Contract, error) {
	pairs, err := root.Pairs("the contract")
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		if p.Name != "version" && p.Name != "goal" && p.Name != "note" {
			return nil, root.ErrorAt(p.Key, "%s stands beside a note: a contract with a note has only version, goal and note", p.Name)
		}
	}
	return Manual(c.Goal, note), nil
}

func requirement(n strictyaml.Node, c *Contract) error {
	var r Requirement
	err := fields(n, "a requirement",
		text("id", &r.ID, isID).required(),
		text("text", &r.Text).required(),
		list("acceptance", func(n strictyaml.Node) error {
			a, err := acceptance(n)
			r.Acceptance = append(r.Acceptance, a)
			return err
		}))
	c.Requirements = append(c.Requirements, r)
	return err
}

// acceptance reads one way of acceptance and refuses keys of another way.
func acceptance(n strictyaml.Node) (Acceptance, error) {
	var a Acceptance
	err := fields(n, "an acceptance",
		text("id", &a.ID, isID).required(),
		text("test", &a.Test, isTest, printable),
		word("before", &a.Before, befores),
		text("grader", &a.Grader, isPath),
		amount("min", &a.Min),
		texts("command", &a.Command),
		text("human", &a.Human),
		text("role", &a.Role, isID))
	if err != nil {
		return a, err
	}
	ways := 0
	for _, set := range []bool{a.Test != "", a.Grader != "", len(a.Command) > 0, a.Human != ""} {
		if set {
			ways++
		}
	}
	switch {
	case ways != 1:
		return a, n.Errorf("acceptance %s has %d of test, grader, command and human, want exactly one", a.ID, ways)
	case a.Test != "" && a.Before == "":
		return a, n.Errorf("acceptance %s has a test and no before: one of fails, absent, passes", a.ID)
	case a.Test == "" && a.Before != "":
		return a, n.Errorf("acceptance %s has before and no test", a.ID)
	case a.Grader != "" && a.Min == nil:
		return a, n.Errorf("acceptance %s has a grader and no min", a.ID)
	case a.Grader == "" && a.Min != nil:
		return a, n.Errorf("acceptance %s has min and no grader", a.ID)
	case a.Human != "" && a.Role == "":
		return a, n.Errorf("acceptance %s asks a human and names no role", a.ID)
	case a.Human == "" && a.Role != "":
		return a, n.Errorf("acceptance %s names a role and asks no human", a.ID)
	}
	return a, nil
}

func scope(n strictyaml.Node, c *Contract) error {
	var r Rule
	err := fields(n, "a scope rule",
		text("id", &r.ID, isID).required(),
		texts("paths", &r.Paths, isPattern).required(),
		list("ops", func(n strictyaml.Node) error {
			var op Op
			if err := word("an operation", &op, ops).read(n); err != nil {
				return err
			}
			r.Ops = append(r.Ops, op)
			return nil
		}).required(),
		texts("for", &r.For, isID),
		count("max_added", &r.MaxAdded),
		flag("required", &r.Required))
	if err == nil && len(r.Paths) == 0 {
		err = n.Errorf("scope rule %s names no paths", r.ID)
	}
	if err == nil && len(r.Ops) == 0 {
		err = n.Errorf("scope rule %s allows no operation", r.ID)
	}
	c.Scope = append(c.Scope, r)
	return err
}

func dependencies(n strictyaml.Node, d *Dependencies) error {
	return fields(n, "dependencies",
		texts("add", &d.Add, printable),
		texts("bump", &d.Bump, printable),
		texts("remove", &d.Remove, printable))
}

func symbol(n strictyaml.Node, c *Contract) error {
	var i Interface
	err := fields(n, "an interface",
		text("symbol", &i.Symbol, printable).required(),
		word("change", &i.Change, symbolVerbs).required())
	c.Interfaces = append(c.Interfaces, i)
	return err
}

func invariant(n strictyaml.Node, c *Contract) error {
	var i Invariant
	err := fields(n, "an invariant",
		text("id", &i.ID, isID),
		word("suite", &i.Suite, []string{"all"}).required())
	c.Invariants = append(c.Invariants, i)
	return err
}

func budget(n strictyaml.Node, b *Budget) error {
	return fields(n, "the budget",
		count("files", &b.Files),
		count("added", &b.Added),
		count("deleted", &b.Deleted),
		count("rounds", &b.Rounds),
		amount("usd", &b.USD),
		span("wall", &b.Wall))
}
