package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/strictyaml"
)

// policyShape is every key of a policy: the only place that knows them.
var policyShape = shape[Policy]{
	word("on_reject", later, func(p *Policy) *OnReject { return &p.OnReject }, Stay, Reopen),
	stagesField,
	named[Policy, string, Gate]{
		name: "gates", get: func(p *Policy) *map[string]Gate { return &p.Gates }, key: gateName,
		read: readGate, show: func(g Gate) any { return gateShape.show(&g) },
		loosens: func(l *loosened, path string, a, b Gate, had, has bool) {
			if had && has { // a stage that loses a gate is found at the stage
				gateShape.loosens(l, path, &a, &b)
			}
		},
	}.field(),
	named[Policy, string, Grader]{
		name: "graders", get: func(p *Policy) *map[string]Grader { return &p.Graders }, key: idWant,
		read: func(r *reader, g Grader, n strictyaml.Node, path string) (Grader, error) {
			if g.Repeat == 0 {
				g.Repeat, g.Direction = 3, Maximize
			}
			err := graderShape.read(r, &g, n, path)
			return g, err
		},
		show: func(g Grader) any { return graderShape.show(&g) },
		loosens: func(l *loosened, path string, a, b Grader, had, has bool) {
			if had && has {
				graderShape.loosens(l, path, &a, &b)
				if loosensMin(a, b) {
					l.add(path+".min", a.Min, b.Min)
				}
			}
		},
	}.field(),
	named[Policy, string, Command]{
		name: "commands", get: func(p *Policy) *map[string]Command { return &p.Commands }, key: idWant,
		read: func(r *reader, c Command, n strictyaml.Node, path string) (Command, error) {
			if c.Run == nil { // no earlier layer has it
				c.Time = 10 * time.Minute
			}
			err := commandShape.read(r, &c, n, path)
			return c, err
		},
		show: func(c Command) any { return commandShape.show(&c) },
		loosens: func(l *loosened, path string, a, b Command, had, has bool) {
			if had && has {
				commandShape.loosens(l, path, &a, &b)
			}
		},
	}.field(),
	separationField,
	named[Policy, RiskLevel, Risk]{
		name: "risk", get: func(p *Policy) *map[RiskLevel]Risk { return &p.Risk }, key: oneOf(RiskLevels()...),
		read: readRisk, show: showRisk, loosens: loosensRisk,
	}.field(),
	list("protected", grow, func(p *Policy) *[]string { return &p.Protected }, patternWant),
	list("docs_paths", shrink, func(p *Policy) *[]string { return &p.DocsPaths }, patternWant),
	named[Policy, string, []CarryRule]{
		name: "carry", dir: shrink, get: func(p *Policy) *map[string][]CarryRule { return &p.Carry }, key: idWant,
		read: func(_ *reader, _ []CarryRule, n strictyaml.Node, path string) ([]CarryRule, error) {
			return readWords(n, path, []CarryRule{SameTree, SameDiffAndReach, SameDiff})
		},
		show: listShown[CarryRule],
		loosens: func(l *loosened, path string, a, b []CarryRule, _, _ bool) {
			if listLoosened(shrink, a, b) {
				l.add(path, listShown(a), listShown(b))
			}
		},
	}.field(),
	named[Policy, Category, string]{
		name: "categories", dir: fixed, get: func(p *Policy) *map[Category]string { return &p.Categories }, key: oneOf(Categories()...),
		read: func(_ *reader, _ string, n strictyaml.Node, path string) (string, error) {
			return readText(n, path, categoryWant)
		},
		show: func(s string) any { return s },
		loosens: func(l *loosened, path, a, b string, _, _ bool) {
			if a != b {
				l.add(path, shown(a), shown(b))
			}
		},
	}.field(),
	word("unplanned", later, func(p *Policy) *Unplanned { return &p.Unplanned }, UnplannedNote, UnplannedWaiver, UnplannedNever),
	object("limits", limitsShape, func(p *Policy) *Limits { return &p.Limits }),
	object("on_timeout", onTimeoutShape, func(p *Policy) *OnTimeout { return &p.OnTimeout }),
	object("isolation", isolationShape, func(p *Policy) *Isolation { return &p.Isolation }),
	notifyField,
}

var gateShape = shape[Gate]{
	word("kind", fixed, func(g *Gate) *GateKind { return &g.Kind }, fileKinds...),
	word("at", fixed, func(g *Gate) *At { return &g.At }, AtBase, AtSnapshot),
	word("tests", fixed, func(g *Gate) *Tests { return &g.Tests }, TestsBase, TestsAll),
	hideZero(count("repeat", up, 1, 100, func(g *Gate) *int { return &g.Repeat })),
	list("run", fixed, func(g *Gate) *[]string { return &g.Run }, nil),
	onlyProve(share("min_proven", up, func(g *Gate) *float64 { return &g.MinProven }).field()),
	onlyProve(count("max_refuted", down, 0, 1<<30, func(g *Gate) *int { return &g.MaxRefuted }).field()),
	onlyProve(share("max_not_measured", down, func(g *Gate) *float64 { return &g.MaxNotMeasured }).field()),
	span("time", free, func(g *Gate) *time.Duration { return &g.Time }).field(),
	word("when_empty", later, func(g *Gate) *WhenEmpty { return &g.WhenEmpty }, EmptyPass, EmptyRefuse),
}

var graderShape = shape[Grader]{
	text("path", fixed, func(g *Grader) *string { return &g.Path }, pathWant),
	text("digest", fixed, func(g *Grader) *string { return &g.Digest }, digestWant),
	count("repeat", up, 1, 100, func(g *Grader) *int { return &g.Repeat }).field(),
	number[Grader, float64]{
		name: "min", dir: free, get: func(g *Grader) *float64 { return &g.Min }, parse: parseScore,
		show: func(v float64) any { return v }, want: "a number",
	}.field(), // compared where the direction is known
	word("direction", fixed, func(g *Grader) *Direction { return &g.Direction }, Maximize, Minimize),
	list("known_bad", grow, func(g *Grader) *[]string { return &g.KnownBad }, pathWant),
}

var commandShape = shape[Command]{
	list("run", fixed, func(c *Command) *[]string { return &c.Run }, nil),
	{
		name: "probe", dir: fixed, read: readProbe,
		show: func(c *Command) any { return showProbe(c.Probe) },
		loosens: func(l *loosened, path string, a, b *Command) {
			if a.Probe != b.Probe {
				l.add(path, showProbe(a.Probe), showProbe(b.Probe))
			}
		},
	},
	span("time", free, func(c *Command) *time.Duration { return &c.Time }).field(),
}

var limitsShape = shape[Limits]{
	named[Limits, string, int]{
		name: "rounds", dir: down, get: func(x *Limits) *map[string]int { return &x.Rounds }, key: idWant,
		read: func(_ *reader, _ int, n strictyaml.Node, path string) (int, error) {
			var v struct{ n int }
			err := count("", down, 1, 1000, func(x *struct{ n int }) *int { return &x.n }).field().read(nil, &v, n, path)
			return v.n, err
		},
		show: func(n int) any { return n },
		loosens: func(l *loosened, path string, a, b int, had, has bool) {
			if had && (!has || b > a) {
				l.add(path, a, b)
			}
		},
	}.field(),
	noLimit(span("lease", free, func(x *Limits) *time.Duration { return &x.Lease })),
	noLimit(span("run_ttl", down, func(x *Limits) *time.Duration { return &x.RunTTL })),
	noLimit(span("decision_sla", down, func(x *Limits) *time.Duration { return &x.DecisionSLA })),
	count("retries", down, 0, 10, func(x *Limits) *int { return &x.Retries }).field(),
	amount("usd", down, func(x *Limits) *float64 { return &x.USD }).field(),
	count("parallel", down, 1, 1000, func(x *Limits) *int { return &x.Parallel }).field(),
	share("max_scope", down, func(x *Limits) *float64 { return &x.MaxScope }).field(),
}

var onTimeoutShape = shape[OnTimeout]{
	word("lease", fixed, func(o *OnTimeout) *string { return &o.Lease }, "requeue"),
	word("decision_sla", fixed, func(o *OnTimeout) *string { return &o.DecisionSLA }, "notify"),
	word("run_ttl", fixed, func(o *OnTimeout) *string { return &o.RunTTL }, "expire"),
}

var isolationShape = shape[Isolation]{
	word("min", later, func(i *Isolation) *string { return &i.Min }, "limits", "landlock", "namespaces"),
}

var decideShape = shape[Decide]{
	count("approvals", up, 0, 100, func(d *Decide) *int { return &d.Approvals }).field(),
	hideZero(count("humans", up, 0, 100, func(d *Decide) *int { return &d.Humans })),
	word("note", later, func(d *Decide) *Note { return &d.Note }, NoteOptional, NoteRequired),
}

func hideZero[T any, N numeric](f number[T, N]) field[T] { f.hideZero = true; return f.field() }
func noLimit[T any, N numeric](f number[T, N]) field[T]  { f.noLimit = true; return f.field() }

// onlyProve shows a threshold, which may be zero, with gates that judge changed
// symbols only.
func onlyProve(f field[Gate]) field[Gate] {
	show := f.show
	f.show = func(g *Gate) any {
		if g.Kind != GateProve || g.Requirements {
			return nil
		}
		return show(g)
	}
	return f
}

// fileKinds are the kinds that a file may write.
var fileKinds = []GateKind{GateSuite, GateBuild, GateSecrets, GateProve, GateMerge}

// gateKeys says which keys a kind has beside its kind.
var gateKeys = map[GateKind][]string{
	GateSuite:   {"at", "tests", "repeat", "time"},
	GateBuild:   {"run", "time"},
	GateSecrets: {"time"},
	GateProve:   {"min_proven", "max_refuted", "max_not_measured", "time", "when_empty"},
	GateMerge:   {"time"},
}

// readGate lays the keys of a file over the gate of an earlier layer, or over the
// kind's own values where there is none or its kind changes.
func readGate(r *reader, g Gate, n strictyaml.Node, path string) (Gate, error) {
	pairs, err := n.Pairs(path)
	if err != nil {
		return g, err
	}
	kind := g.Kind
	for _, p := range pairs {
		if p.Name == "kind" {
			if kind, err = readWord(p.Value, path+".kind", fileKinds); err != nil {
				return g, err
			}
		}
	}
	if kind == "" {
		return g, n.Errorf("%s has no kind, want one of: suite, build, secrets, prove, merge", path)
	}
	if kind != g.Kind {
		g = newGate(kind, strings.TrimPrefix(path, "gates."))
	}
	known := append([]string{"kind"}, gateKeys[kind]...)
	if g.Requirements {
		known = []string{"kind", "time", "when_empty"}
	}
	for _, p := range pairs {
		if !slices.Contains(known, p.Name) {
			return g, n.Unknown(p.Key, "key", join(path, p.Name), known)
		}
	}
	err = gateShape.read(r, &g, n, path)
	return g, err
}

// newGate is a gate whose file says no more than its kind.
func newGate(kind GateKind, name string) Gate {
	g := Gate{Kind: kind}
	switch kind {
	case GateSuite:
		g.At, g.Tests, g.Repeat, g.Time = AtSnapshot, TestsAll, 1, 20*time.Minute
	case GateBuild, GateMerge:
		g.Time = 20 * time.Minute
	case GateProve:
		g.WhenEmpty, g.Time = EmptyRefuse, 20*time.Minute
		if g.Requirements = name == ProveRequirements; !g.Requirements {
			g.MinProven, g.MaxNotMeasured = 0.8, 0.2
		}
	}
	return g
}

func readProbe(r *reader, c *Command, n strictyaml.Node, path string) error {
	pairs, err := n.Pairs(path)
	if err != nil {
		return err
	}
	if len(pairs) != 1 {
		return n.Errorf("%s has %d keys, want one of: patch, mutant, break", path, len(pairs))
	}
	c.Probe = Probe{}
	v, at := pairs[0].Value, join(path, pairs[0].Name)
	switch pairs[0].Name {
	case "patch":
		c.Probe.Patch, err = readText(v, at, pathWant)
	case "mutant":
		if s, _ := v.Text(); s != "true" {
			return wants(v, at, "true")
		}
		c.Probe.Mutant = true
	case "break":
		c.Probe.Break, err = readWord(v, at, []string{"build"})
	default:
		return n.Unknown(pairs[0].Key, "key", at, []string{"patch", "mutant", "break"})
	}
	r.note(at, v)
	return err
}

func showProbe(p Probe) any {
	switch {
	case p.Patch != "":
		return mapping{{"patch", p.Patch}}
	case p.Mutant:
		return mapping{{"mutant", true}}
	case p.Break != "":
		return mapping{{"break", p.Break}}
	}
	return nil
}

// readRisk reads paths, and what each stage needs at that level.
func readRisk(r *reader, old Risk, n strictyaml.Node, path string) (Risk, error) {
	pairs, err := n.Pairs(path)
	if err != nil {
		return old, err
	}
	out := Risk{Paths: old.Paths, Decide: map[string]Decide{}}
	for id, d := range old.Decide {
		out.Decide[id] = d
	}
	paths := list("paths", grow, func(x *Risk) *[]string { return &x.Paths }, patternWant)
	for _, p := range pairs {
		at := join(path, p.Name)
		r.note(at, p.Value)
		if p.Name == "paths" {
			if err := paths.read(r, &out, p.Value, at); err != nil {
				return out, err
			}
			continue
		}
		if want := idWant(p.Name); want != "" {
			return out, n.ErrorAt(p.Key, "%s is named %q, want paths or %s", at, p.Name, want)
		}
		d := out.Decide[p.Name]
		if err := decideShape.read(r, &d, p.Value, at); err != nil {
			return out, err
		}
		out.Decide[p.Name] = d
	}
	return out, nil
}

func showRisk(x Risk) any {
	m := mapping{}
	if x.Paths != nil {
		m = append(m, entry{"paths", listShown(x.Paths)})
	}
	for _, id := range sortedKeys(x.Decide) {
		d := x.Decide[id]
		m = append(m, entry{id, decideShape.show(&d)})
	}
	return m
}

func loosensRisk(l *loosened, path string, a, b Risk, _, _ bool) {
	if listLoosened(grow, a.Paths, b.Paths) {
		l.add(path+".paths", listShown(a.Paths), listShown(b.Paths))
	}
	for _, id := range sortedKeys(a.Decide) {
		x, y := a.Decide[id], b.Decide[id]
		decideShape.loosens(l, join(path, id), &x, &y)
	}
}

// loosensMin compares the bar of a grader in its direction.
func loosensMin(a, b Grader) bool {
	if a.Direction == Minimize {
		return b.Min > a.Min
	}
	return b.Min < a.Min
}
