package policy

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/strictyaml"
)

//go:embed builtin.yaml
var builtinText []byte

// maxBytes is the largest file that is read.
const maxBytes = 256 << 10

// Set is all policies that can be named.
type Set struct {
	layers   []layer // built-in, the repository's file, the local file
	policies map[string]Policy
}

// layer is one file: the mapping of each policy by name.
type layer map[string]strictyaml.Node

// builtin is parsed once; its value is never changed.
var builtin = sync.OnceValue(func() Set {
	l, err := readLayer("built-in policies", builtinText)
	if err == nil {
		var s Set
		if s, err = newSet([]layer{l}); err == nil {
			return s
		}
	}
	panic("policy: the built-in text: " + err.Error()) // a test reads it
})

// Builtin is the set that holds where a repository has no file.
func Builtin() Set { return builtin() }

// Parse reads a repository's file over the built-in policies. A policy that is
// named like a built-in one is laid over it; any other takes the values of
// default for what it does not say, stages and gates excepted. An empty file
// says nothing.
func Parse(file []byte) (Set, error) { return builtin().over(FileName, file) }

// over lays a file over a set.
func (s Set) over(name string, file []byte) (Set, error) {
	l, err := readLayer(name, file)
	if err != nil {
		return Set{}, err
	}
	return newSet(append(slices.Clip(s.layers), l))
}

// newSet resolves every policy that a layer names.
func newSet(layers []layer) (Set, error) {
	s := Set{layers: layers, policies: map[string]Policy{}}
	for _, l := range layers {
		for _, name := range sortedKeys(l) {
			if _, ok := s.policies[name]; ok {
				continue
			}
			var base, own []strictyaml.Node
			for _, below := range layers {
				if n, ok := below[Default]; ok && name != Default {
					base = append(base, n)
				}
				if n, ok := below[name]; ok {
					own = append(own, n)
				}
			}
			p, err := resolve(name, own, base)
			if err != nil {
				return Set{}, err
			}
			s.policies[name] = p
		}
	}
	return s, nil
}

// resolve reads the layers of one policy over each other: first those of
// default, without their stages and gates, then its own.
func resolve(name string, own, base []strictyaml.Node) (Policy, error) {
	r := &reader{where: map[string]written{}}
	p := Policy{Name: name}
	for _, n := range base {
		r.note("", n)
		if err := policyShape.read(r, &p, n, ""); err != nil {
			return Policy{}, err
		}
		r.layer++
	}
	p.Stages, p.Gates = nil, nil
	maps.DeleteFunc(r.where, func(path string, _ written) bool {
		top, _, _ := strings.Cut(path, ".")
		top, _, _ = strings.Cut(top, "[")
		return top == "stages" || top == "gates"
	})
	for _, n := range own {
		r.note("", n)
		if err := policyShape.read(r, &p, n, ""); err != nil {
			return Policy{}, err
		}
		r.layer++
	}
	if p.Gates == nil {
		p.Gates = map[string]Gate{}
	}
	return p, check(r, &p)
}

// readLayer reads the outside of a file: its version and the policies by name.
func readLayer(name string, file []byte) (layer, error) {
	src := strictyaml.Source{Name: name, Code: CodeInvalid, Hint: "proveto flow policy check"}
	if len(file) > maxBytes {
		return nil, fault.New(fault.Usage, CodeInvalid, "%s has %d bytes, want at most %d", name, len(file), maxBytes)
	}
	root, err := src.Parse(file)
	if err != nil || root.Empty() {
		return layer{}, err
	}
	pairs, err := root.Pairs("the file")
	if err != nil {
		return nil, err
	}
	out, versioned := layer{}, false
	for _, p := range pairs {
		switch p.Name {
		case "version":
			if v, _ := p.Value.Text(); v != "1" {
				return nil, wants(p.Value, "version", "1")
			}
			versioned = true
		case "policies":
			policies, err := p.Value.Pairs("policies")
			if err != nil {
				return nil, err
			}
			for _, x := range policies {
				if want := idWant(x.Name); want != "" {
					return nil, root.ErrorAt(x.Key, "a policy is named %q, want %s", x.Name, want)
				}
				out[x.Name] = x.Value
			}
		default:
			return nil, root.Unknown(p.Key, "key", p.Name, []string{"version", "policies"})
		}
	}
	if !versioned {
		return nil, root.Errorf("the file has no version, want version: 1")
	}
	return out, nil
}

// Names lists the policies, sorted.
func (s Set) Names() []string { return sortedKeys(s.policies) }

// Named finds a policy; the empty name is default. Errors: policy_invalid for a
// name that does not exist; gate_not_proven when a stage requires a command that
// has no probe.
func (s Set) Named(name string) (Policy, error) {
	if name == "" {
		name = Default
	}
	p, ok := s.policies[name]
	if !ok {
		e := fault.New(fault.Usage, CodeInvalid, "there is no policy %q", name)
		if near := strictyaml.Nearest(name, s.Names()); near != "" {
			e = e.Hint("did you mean %s?", near)
		}
		return Policy{}, e.Hint("policies here: %s", strings.Join(s.Names(), ", "))
	}
	return p.clone(), p.proven()
}

// proven refuses a required command whose refusals nobody can see.
func (p Policy) proven() error {
	for _, s := range p.Stages {
		for _, g := range s.Gates {
			if c, ok := p.Command(g); ok && c.Probe.IsZero() {
				return fault.New(fault.Refused, CodeNotProven, "stage %s of policy %s requires %s, which has no probe: nothing shows that it can refuse", s.ID, p.Name, g).
					Hint("add under commands.%s: probe: {patch: FILE}, {mutant: true} or {break: build}", strings.TrimPrefix(g, CommandPrefix))
			}
		}
	}
	return nil
}

// clone keeps the set's own policy apart from what callers do with theirs.
func (p Policy) clone() Policy {
	p.Stages = slices.Clone(p.Stages)
	for i, s := range p.Stages {
		p.Stages[i].Needs, p.Stages[i].Gates = slices.Clone(s.Needs), slices.Clone(s.Gates)
		if s.AgentProducer != nil {
			d := *s.AgentProducer
			p.Stages[i].AgentProducer = &d
		}
	}
	p.Gates, p.Graders, p.Commands = maps.Clone(p.Gates), maps.Clone(p.Graders), maps.Clone(p.Commands)
	p.Separation, p.Risk = slices.Clone(p.Separation), maps.Clone(p.Risk)
	for level, r := range p.Risk {
		r.Decide = maps.Clone(r.Decide)
		p.Risk[level] = r
	}
	p.Protected, p.DocsPaths = slices.Clone(p.Protected), slices.Clone(p.DocsPaths)
	p.Carry, p.Categories = maps.Clone(p.Carry), maps.Clone(p.Categories)
	p.Limits.Rounds = maps.Clone(p.Limits.Rounds)
	p.Notify = slices.Clone(p.Notify)
	return p
}
