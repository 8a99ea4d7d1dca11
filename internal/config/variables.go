package config

import (
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/strictyaml"
)

// prefix is what the names of our variables begin with. Others use it, too.
const prefix = "PROVETO_"

// ownVariables are read by us and are no keys.
var ownVariables = []string{"PROVETO_CACHE", "PROVETO_STATE"}

// CheckVariables looks at the names of the variables that are set, as KEY or
// KEY=VALUE. One that begins with the name of a section and is no key is an error,
// as an unknown key of a file is: a setting that somebody relies on would be
// ignored. Others may be anybody's; near are the warnings about those that are
// nearly a name of ours.
func CheckVariables(environ []string) (near []string, err error) {
	known := slices.Clone(ownVariables)
	var sections []string
	for _, k := range keys {
		known = append(known, k.Variable())
		if k.Alias != "" {
			known = append(known, k.Alias)
		}
		sections = append(sections, prefix+strings.ToUpper(k.Section())+"_")
	}
	names := make([]string, 0, len(environ))
	for _, kv := range environ {
		name, value, given := strings.Cut(kv, "=")
		if strings.HasPrefix(name, prefix) && (value != "" || !given) && !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		like := nearestVariable(name, known)
		if slices.ContainsFunc(sections, func(s string) bool { return strings.HasPrefix(name, s) }) {
			e := invalid(Origin{}, "unknown variable $%s", name)
			if like != "" {
				e = e.Hint("did you mean %s?", like)
			}
			return near, e.Hint("proveto help config")
		}
		if like != "" {
			near = append(near, "$"+name+" is not read; did you mean $"+like+"?")
		}
	}
	return near, nil
}

// nearestVariable is the known variable with the fewest edits; empty when it is
// another word altogether.
func nearestVariable(name string, known []string) string {
	best, least := "", 1+max(1, (len(name)-len(prefix))/4)
	for _, k := range known {
		if d := strictyaml.Edits(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}
