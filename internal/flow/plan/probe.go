package plan

import (
	"fmt"
	"slices"
)

// LintProbe is what the gate plan.lint must refuse: the contract with a scope rule
// that is for a requirement which the contract does not have. The contract itself
// is not changed.
func LintProbe(c *Contract) *Contract {
	used := map[string]bool{}
	for _, r := range c.Requirements {
		used[r.ID] = true
	}
	for _, i := range c.Invariants {
		used[i.ID] = true
	}
	for _, r := range c.Scope {
		used[r.ID] = true
	}
	bad := *c
	bad.Scope = slices.Clone(c.Scope)
	bad.Scope = append(bad.Scope, Rule{ID: unused("S", used), Paths: []string{"probe"}, Ops: []Op{Create}, For: []string{unused("R", used)}})
	return &bad
}

// unused is an id that is not taken.
func unused(prefix string, used map[string]bool) string {
	for n := 0; ; n++ {
		if id := fmt.Sprintf("%s.probe%d", prefix, n); !used[id] {
			return id
		}
	}
}

// ProbeFile is the path and the content of a file that no scope rule of the
// contract names and that the tree does not have: the gate plan.diff must refuse
// the tree with it. The path is empty when the scope names every path that was
// tried.
func ProbeFile(c *Contract, tree []string) (path string, content []byte, err error) {
	rules, err := compileRules(c)
	if err != nil {
		return "", nil, err
	}
	taken := map[string]bool{}
	for _, p := range tree {
		taken[p] = true
	}
	for _, dir := range []string{"", "proveto_probe/", "proveto_probe/a/b/"} {
		for _, ext := range []string{".txt", ".md", ".go", ".bin", ""} {
			at := dir + "proveto_probe_outside_scope" + ext
			if !taken[at] && !slices.ContainsFunc(rules, func(r rule) bool { return r.set.Match(at) }) {
				return at, probeText, nil
			}
		}
	}
	return "", nil, nil
}

var probeText = []byte("A file outside the scope of the plan, which the check must refuse.\n")

// DiffProbe is the input of a check with one file more that the check must refuse,
// and the code by which it must: the one of [ProbeFile], or, beside a scope that
// leaves no outside, one where nothing may ever be written.
func DiffProbe(in Input) (Input, Code, error) {
	path, _, err := ProbeFile(in.Contract, in.Tree)
	if err != nil {
		return in, "", err
	}
	code := P001
	if path == "" {
		path, code = ".proveto/proveto_probe", P003
		in.Policy.Guarded = false
	}
	in.Facts.read = in.Facts.read || len(in.Changes) == 0
	in.Changes = append(slices.Clone(in.Changes), Change{Path: path, NewMode: modeFile, NewBlob: "probe", Added: 1, Size: int64(len(probeText))})
	in.Tree = append(slices.Clone(in.Tree), path)
	return in, code, nil
}

// ProbeRefused tells whether the check refuses its probe for what is wrong with
// it. A check that does not says nothing about any change.
func ProbeRefused(in Input) (bool, error) {
	bad, code, err := DiffProbe(in)
	if err != nil {
		return false, err
	}
	r, err := Check(bad)
	if err != nil {
		return false, err
	}
	return refuses(r, code, bad.Changes[len(bad.Changes)-1].Path), nil
}

func refuses(r Result, code Code, path string) bool {
	return r.Outcome == No && slices.ContainsFunc(r.Violations, func(v Violation) bool {
		return v.Code == code && v.Path == path && v.Severity == Error
	})
}
