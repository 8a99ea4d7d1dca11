package identity

import (
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/strictyaml"
)

// PrincipalsFile is where a repository says who holds what.
const PrincipalsFile = ".proveto/principals.yaml"

// PrincipalKind is what somebody is.
type PrincipalKind string

// The kinds of principals.
const (
	KindHuman   PrincipalKind = "human"
	KindAgent   PrincipalKind = "agent" // acts for its operator, by capabilities; holds no key
	KindEngine  PrincipalKind = "engine"
	KindService PrincipalKind = "service"
)

// EngineName is the principal of what the engine does by itself; nobody else may
// be named so.
const EngineName = "engine"

// The roles of the stages.
const (
	RolePlanner   = "planner"
	RoleDeveloper = "developer"
	RoleVerifier  = "verifier"
	RoleTester    = "tester"
	RoleReviewer  = "reviewer"
)

// The rights beside roles. A right to waive names the gate or code that it is
// for: waive:prove.changed, waive:P007, waive:*.
const (
	RightReopen     = "reopen"
	RightCancel     = "cancel"
	RightDeliver    = "deliver"
	RightPrincipals = "principals"
	RightClaim      = "claim"
	RightRelease    = "release"
	RightWaive      = "waive:" // and for what
)

// WaiveAny covers every right to waive.
const WaiveAny = RightWaive + "*"

var (
	kinds  = []string{string(KindHuman), string(KindAgent), string(KindEngine), string(KindService)}
	roles  = []string{RolePlanner, RoleDeveloper, RoleVerifier, RoleTester, RoleReviewer}
	rights = []string{RightReopen, RightCancel, RightDeliver, WaiveAny, RightPrincipals, RightClaim, RightRelease}
	// agentRights are all that an agent can be given: neither judges nor lets through.
	agentRights = []string{RightClaim, RightRelease}
)

// Roles lists the roles in the order of the stages.
func Roles() []string { return slices.Clone(roles) }

// Principal is somebody who can act. Roles and rights are sorted.
type Principal struct {
	Name     string        `json:"name"`
	Kind     PrincipalKind `json:"kind"`
	Roles    []string      `json:"roles,omitempty"`
	Rights   []string      `json:"rights,omitempty"`
	Operator string        `json:"operator,omitempty"` // of an agent: the human for whom it acts
}

// Holds tells whether the principal has the role.
func (p Principal) Holds(role string) bool { return slices.Contains(p.Roles, role) }

// May tells whether the principal has the right; waive:* covers every waiver.
func (p Principal) May(right string) bool {
	return slices.Contains(p.Rights, right) ||
		strings.HasPrefix(right, RightWaive) && slices.Contains(p.Rights, WaiveAny)
}

const (
	maxName  = 64
	nameMore = "._@+-" // beside letters and digits; not at the beginning
	nameWant = "up to 64 letters, digits and ._@+-, with a letter or digit first"
)

func validName(s string) bool {
	if s == "" || len(s) > maxName || strings.IndexByte(nameMore, s[0]) >= 0 {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(nameMore, r)
	}) < 0
}

// validRight tells a right of the list, or one to waive something named.
func validRight(s string) bool {
	what, ok := strings.CutPrefix(s, RightWaive)
	if !ok || what == "*" {
		return slices.Contains(rights, s)
	}
	return validName(what)
}

var principalsSource = strictyaml.Source{Name: PrincipalsFile, Code: CodeRosterBad}

// ParsePrincipals reads a principals.yaml, sorted by name. Names, kinds, roles,
// rights and keys that are not known are errors with their place.
func ParsePrincipals(text []byte) ([]Principal, error) {
	if len(text) > maxRosterFile {
		return nil, fault.New(fault.Usage, CodeRosterBad, "%s has %d bytes, want at most %d", PrincipalsFile, len(text), maxRosterFile)
	}
	root, err := principalsSource.Parse(text)
	if err != nil {
		return nil, err
	}
	pairs, err := root.Pairs("the file")
	if err != nil {
		return nil, err
	}
	var out []Principal
	versioned := false
	for _, p := range pairs {
		switch p.Name {
		case "version":
			if v, _ := p.Value.Text(); v != "1" {
				return nil, p.Value.Errorf("version is not 1")
			}
			versioned = true
		case "principals":
			if out, err = readPrincipals(p.Value); err != nil {
				return nil, err
			}
		default:
			return nil, root.Unknown(p.Key, "key", p.Name, []string{"version", "principals"})
		}
	}
	if !versioned {
		return nil, root.Errorf("the file has no version, want version: 1")
	}
	if len(out) == 0 {
		return nil, root.Errorf("the file names no principals; a repository without principals has no such file")
	}
	return out, nil
}

func readPrincipals(n strictyaml.Node) ([]Principal, error) {
	pairs, err := n.Pairs("principals")
	if err != nil {
		return nil, err
	}
	var operators []strictyaml.Node
	out := make([]Principal, 0, len(pairs))
	for _, x := range pairs {
		if !validName(x.Name) {
			return nil, n.ErrorAt(x.Key, "%.80q is no name of a principal: want %s", x.Name, nameWant)
		}
		p := Principal{Name: x.Name}
		if err := readPrincipal(&p, x, &operators); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Principal) int { return strings.Compare(a.Name, b.Name) })
	if a, b, ok := alike(out); ok {
		return nil, n.Errorf("principals %s and %s differ only in case", a, b)
	}
	for _, at := range operators {
		name, _ := at.Text() // a text, or it would not be among them
		p, _ := find(out, name)
		if p.Kind != KindHuman {
			return nil, unknownOperator(at, name, out)
		}
	}
	return out, nil
}

func unknownOperator(at strictyaml.Node, name string, all []Principal) error {
	e := at.Errorf("operator %.80q is no human of this file", name)
	var humans []string
	for _, p := range all {
		if p.Kind == KindHuman {
			humans = append(humans, p.Name)
		}
	}
	if near := strictyaml.Nearest(name, humans); near != "" {
		return e.Hint("did you mean %s?", near)
	}
	return e
}

func readPrincipal(p *Principal, x strictyaml.Pair, operators *[]strictyaml.Node) error {
	pairs, err := x.Value.Pairs("principal " + x.Name)
	if err != nil {
		return err
	}
	for _, f := range pairs {
		switch f.Name {
		case "kind":
			var word string
			if word, err = oneOf(f.Value, "kind", kinds); err == nil {
				p.Kind = PrincipalKind(word)
			}
		case "roles":
			p.Roles, err = words(f.Value, "role", func(s string) bool { return slices.Contains(roles, s) }, roles)
		case "rights":
			p.Rights, err = words(f.Value, "right", validRight, rights)
		case "operator":
			var ok bool
			if p.Operator, ok = f.Value.Text(); !ok {
				return f.Value.Errorf("operator is %s, want the name of a human", f.Value.Kind())
			}
			*operators = append(*operators, f.Value)
		default:
			return x.Value.Unknown(f.Key, "key", f.Name, []string{"kind", "roles", "rights", "operator"})
		}
		if err != nil {
			return err
		}
	}
	if why := p.wrong(); why != "" {
		return x.Value.ErrorAt(x.Key, "principal %s %s", x.Name, why)
	}
	return nil
}

// wrong says what does not fit together in one principal; empty when all does.
func (p Principal) wrong() string {
	switch {
	case p.Kind == "":
		return "has no kind: want one of " + strings.Join(kinds, ", ")
	case p.Kind == KindAgent && p.Operator == "":
		return "is an agent without an operator: want the human for whom it acts"
	case p.Kind != KindAgent && p.Operator != "":
		return "has an operator, which only agents have"
	case strings.EqualFold(p.Name, EngineName) != (p.Kind == KindEngine):
		return "mixes up the engine: the principal named engine is the one of kind engine"
	case slices.ContainsFunc(roles, func(role string) bool { return strings.EqualFold(role, p.Name) }):
		return "has the name of a role, which --actor would take for it"
	case p.Kind == KindAgent:
		for _, r := range p.Rights {
			if !slices.Contains(agentRights, r) {
				return "is an agent with the right " + r + ": agents get " + strings.Join(agentRights, ", ") + " at most"
			}
		}
	}
	return ""
}

// alike finds two names that differ only in case, in a list sorted by name;
// people, and some file systems, take them for one.
func alike(all []Principal) (a, b string, found bool) {
	seen := map[string]string{}
	for _, p := range all {
		low := strings.ToLower(p.Name)
		if other, ok := seen[low]; ok {
			return other, p.Name, true
		}
		seen[low] = p.Name
	}
	return "", "", false
}

func oneOf(n strictyaml.Node, noun string, known []string) (string, error) {
	s, ok := n.Text()
	if !ok {
		return "", n.Errorf("%s is %s, want one of %s", noun, n.Kind(), strings.Join(known, ", "))
	}
	if !slices.Contains(known, s) {
		return "", n.Unknown(n.Place(), noun, s, known)
	}
	return s, nil
}

// words reads a list, sorted.
func words(n strictyaml.Node, noun string, valid func(string) bool, known []string) ([]string, error) {
	if n.Empty() {
		return nil, nil
	}
	items, ok := n.Items()
	if !ok {
		return nil, n.Errorf("%ss are %s, want a list", noun, n.Kind())
	}
	out := make([]string, 0, len(items))
	for _, x := range items {
		s, ok := x.Text()
		if !ok {
			return nil, x.Errorf("a %s is %s, want one of %s", noun, x.Kind(), strings.Join(known, ", "))
		}
		if !valid(s) {
			return nil, x.Unknown(x.Place(), noun, s, known)
		}
		if slices.Contains(out, s) {
			return nil, x.Errorf("%s is there twice", s)
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out, nil
}

func find(all []Principal, name string) (Principal, bool) {
	i, ok := slices.BinarySearchFunc(all, name, func(p Principal, name string) int { return strings.Compare(p.Name, name) })
	if !ok {
		return Principal{}, false
	}
	return all[i], true
}
