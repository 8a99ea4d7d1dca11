package policy

import (
	"fmt"
	"strings"

	"github.com/proveto/proveto/internal/fault"
)

// Loosens lists what a policy asks less of than the one before it, each as
// "key: before → after"; nothing when it asks for the same or more.
func Loosens(before, after Policy) []string {
	var out []string
	for _, v := range compare(before, after) {
		out = append(out, fmt.Sprintf("%s: %s → %s", v.key, v.was, v.is))
	}
	return out
}

func compare(before, after Policy) []looseValue {
	var l loosened
	policyShape.loosens(&l, "", &before, &after)
	return l
}

// Overlay lays the local file of a working copy over a set. It may only tighten:
// a looser value, or a policy that the set does not have, is a usage error with
// code overlay_loosens that names the key, its value and the looser one.
func (s Set) Overlay(file []byte) (Set, error) {
	l, err := readLayer(LocalFileName, file)
	if err != nil {
		return Set{}, err
	}
	for _, name := range sortedKeys(l) {
		if _, ok := s.policies[name]; !ok {
			e := l[name].Errorf("the policy %s is added; a local file may only tighten those of the base commit", name)
			e.Code = CodeLoosens
			return Set{}, e.Hint("policies there: %s", strings.Join(s.Names(), ", "))
		}
	}
	out, err := s.over(LocalFileName, file)
	if err != nil {
		return Set{}, err
	}
	for _, name := range out.Names() {
		if _, ok := l[name]; !ok {
			out.policies[name] = s.policies[name] // what stands on default does not follow a local default
			continue
		}
		if loose := compare(s.policies[name], out.policies[name]); len(loose) > 0 {
			v := loose[0]
			e := fault.New(fault.Usage, CodeLoosens, "%s loosens %s of policy %s: %s → %s", LocalFileName, v.key, name, v.was, v.is)
			return Set{}, e.Hint("a local file may only tighten; change %s in a commit", FileName)
		}
	}
	return out, nil
}
