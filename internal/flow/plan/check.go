package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/fault"
)

// Input is all that a check looks at.
type Input struct {
	Contract *Contract
	// BuiltOn is the plan that the snapshot was made for; empty: this contract.
	BuiltOn ID
	Changes []Change
	Base    []string // every path of the base tree
	Tree    []string // every path of the tree that is judged
	Facts   Facts
	Policy  Rules
	// TargetChanged are the paths that changed on the target since the base.
	TargetChanged []string
	// Loosened says what a policy in the change would make looser than the one in
	// force; the caller compares the two.
	Loosened []string
	// Requirements are the states of requirements as they are known.
	Requirements map[string]State
}

// Rules are what the policy in force says about plans.
type Rules struct {
	Protected Set // beside proveto.yaml and .proveto/**, which always are
	DocsPaths Set
	Graders   []string // trees of graders, which always are protected; those of the contract too
	MaxScope  float64  // share of the base's files that patterns may match
	// Guarded says that a holder of the right principals approved the plan: then a
	// change of protected paths, and of nothing else, is allowed.
	Guarded bool
}

// allowed are the operations of a rule, as a set.
type allowed map[Op]bool

// rule is a compiled scope rule.
type rule struct {
	*Rule
	set     Set
	ops     allowed
	literal map[string]bool // paths that it names without a wildcard
}

// checker holds what the rules share.
type checker struct {
	in      Input
	rules   []rule
	changed map[string]*Change
	// admitted is, for each change that a rule allows, the index of that rule.
	admitted map[string]int
	out      Result
}

// Check judges a change against its contract. It looks at paths, kinds, counts
// and the facts; nothing is built and nothing runs. An error means that the
// facts are not from [Read], or that the contract has patterns that do not
// compile, which [Parse] refuses.
func Check(in Input) (Result, error) {
	c := &checker{in: in, changed: map[string]*Change{}, admitted: map[string]int{}}
	c.out = Result{Matched: []Match{}, Violations: []Violation{}, Unmet: []string{}, Requirements: map[string]State{}, Weakened: in.Loosened}
	for id, s := range in.Requirements {
		c.out.Requirements[id] = s
	}
	if len(in.Changes) > 0 && !in.Facts.read {
		return Result{}, fault.New(fault.Internal, "internal", "a change is checked whose files were not read")
	}
	var err error
	if c.rules, err = compileRules(in.Contract); err != nil {
		return Result{}, err
	}
	for i := range in.Changes {
		c.changed[in.Changes[i].Path] = &in.Changes[i]
	}
	for _, judge := range []func(){
		c.scope, c.protected, c.docs, c.size, c.missing, c.dependencies, c.vendored, c.interfaces, c.drift, c.kinds, c.tests, c.paths, c.superseded,
	} {
		judge()
	}
	slices.SortFunc(c.out.Violations, byPlace)
	c.out.Violations = slices.Compact(c.out.Violations)
	slices.SortFunc(c.out.Matched, func(a, b Match) int { return strings.Compare(a.Path, b.Path) })
	if len(in.Changes) == 0 && len(c.out.Violations) == 0 {
		c.out.Outcome = Empty
		return c.out, nil
	}
	c.out.Outcome = Pass
	return c.out.Judged(func(Violation) bool { return false }), nil
}

func compileRules(c *Contract) ([]rule, error) {
	out := make([]rule, 0, len(c.Scope))
	for i := range c.Scope {
		r := rule{Rule: &c.Scope[i], ops: allowed{}, literal: map[string]bool{}}
		var err error
		if r.set, err = CompileSet(r.Paths); err != nil {
			return nil, fmt.Errorf("scope rule %s: %w", r.ID, err)
		}
		for _, op := range r.Ops {
			r.ops[op] = true
		}
		for _, p := range r.set {
			for _, path := range p.Paths() {
				r.literal[path] = true
			}
		}
		out = append(out, r)
	}
	return out, nil
}

func (c *checker) violate(code Code, at *Change, rule, hunk, format string, args ...any) {
	v := Violation{Code: code, Severity: Error, Rule: rule, Hunk: hunk, Message: fmt.Sprintf(format, args...)}
	if at != nil {
		v.Path, v.Op = shownPath(at.Path), c.op(at)
	}
	c.out.Violations = append(c.out.Violations, v)
}

// twin is the other end of a rename, when it is one: both ends have to be there
// and to name each other.
func (c *checker) twin(ch *Change) *Change {
	t := c.changed[ch.Twin]
	if ch.Twin == "" || t == nil || t.Twin != ch.Path || ch.Op() == t.Op() || ch.Op() != Create && ch.Op() != Delete || t.Op() != Create && t.Op() != Delete {
		return nil
	}
	return t
}

// op is the operation as people call it: both ends of a rename are a rename.
func (c *checker) op(ch *Change) Op {
	if c.twin(ch) != nil {
		return Rename
	}
	return ch.Op()
}

// allows tells whether a rule allows what happened at a path, and the operation
// by which it does. A renamed file may be allowed as a creation and a deletion as
// well; what was edited on the way must be allowed, too.
func (c *checker) allows(r *rule, ch *Change) (Op, bool) {
	if r.ops[ch.Op()] {
		return ch.Op(), true
	}
	switch t := c.twin(ch); {
	case t != nil && r.ops[Rename]:
		edited := ch.Op() == Create && ch.NewBlob != t.OldBlob
		return Rename, !edited || r.ops[Modify]
	case ch.Op() == Mode, ch.Op() == Type:
		return ch.Op(), true // the rule names the path; kinds judges what became of it
	}
	return ch.Op(), false
}

// scope is P001 and P002: each change needs a rule that names its path and allows
// its operation. Of several, one that names the path without a wildcard is taken.
func (c *checker) scope() {
	for i := range c.in.Changes {
		ch := &c.in.Changes[i]
		best, named, op := -1, "", ch.Op()
		for j := range c.rules {
			r := &c.rules[j]
			if !r.literal[ch.Path] && !r.set.Match(ch.Path) {
				continue
			}
			o, ok := c.allows(r, ch)
			if !ok {
				if named == "" {
					named = r.ID
				}
				continue
			}
			if best < 0 || r.literal[ch.Path] && !c.rules[best].literal[ch.Path] {
				best, op = j, o
			}
		}
		switch {
		case best >= 0:
			c.admitted[ch.Path] = best
			c.out.Matched = append(c.out.Matched, Match{shownPath(ch.Path), op, c.rules[best].ID})
		case named != "":
			c.violate(P002, ch, named, "", "rule %s does not allow to %s it", named, c.op(ch))
		default:
			c.violate(P001, ch, "", "", "no scope rule names it")
		}
	}
}

// docs is P001 for contracts of kind docs: they keep to the policy's paths.
func (c *checker) docs() {
	if c.in.Contract.Kind != Docs {
		return
	}
	for i := range c.in.Changes {
		if ch := &c.in.Changes[i]; !c.in.Policy.DocsPaths.Match(ch.Path) {
			c.violate(P001, ch, "docs_paths", "", "a plan of kind docs keeps to the policy's docs_paths")
		}
	}
}

// size is P004: the budget of the plan and the caps of rules.
func (c *checker) size() {
	files, added, deleted := map[string]bool{}, 0, 0
	byRule := make([]int, len(c.rules))
	for i := range c.in.Changes {
		ch := &c.in.Changes[i]
		added, deleted = added+ch.Added, deleted+ch.Deleted
		if t := c.twin(ch); t == nil || ch.Op() == Create {
			files[ch.Path] = true // a renamed file is one
		}
		if j, ok := c.admitted[ch.Path]; ok {
			byRule[j] += ch.Added
		}
	}
	b := c.in.Contract.Budget
	for _, x := range []struct {
		what string
		is   int
		most *int
	}{{"files", len(files), b.Files}, {"added lines", added, b.Added}, {"deleted lines", deleted, b.Deleted}} {
		if x.most != nil && x.is > *x.most {
			c.violate(P004, nil, "budget", "", "%d %s, the budget allows %d", x.is, x.what, *x.most)
		}
	}
	for j, r := range c.rules {
		if r.MaxAdded != nil && byRule[j] > *r.MaxAdded {
			c.violate(P004, nil, r.ID, "", "%d added lines, rule %s allows %d", byRule[j], r.ID, *r.MaxAdded)
		}
	}
}

// missing is P005: each pattern of a required rule needs a change that the rule
// allows.
func (c *checker) missing() {
	for j := range c.rules {
		r := &c.rules[j]
		if !r.Required {
			continue
		}
		for _, p := range r.set {
			met := slices.ContainsFunc(c.in.Changes, func(ch Change) bool {
				if !p.Match(ch.Path) {
					return false
				}
				op, ok := c.allows(r, &ch)
				return ok && r.ops[op]
			})
			if !met {
				c.out.Unmet = append(c.out.Unmet, r.ID+": "+p.String())
				c.violate(P005, nil, r.ID, "", "rule %s requires a change of %s, and there is none", r.ID, p)
			}
		}
	}
}

// drift is P009: what the scope names must be on the target as it was at the base.
func (c *checker) drift() {
	for _, path := range c.in.TargetChanged {
		for j := range c.rules {
			if r := &c.rules[j]; r.literal[path] || r.set.Match(path) {
				c.out.Violations = append(c.out.Violations, Violation{
					Code: P009, Severity: Error, Path: shownPath(path), Rule: r.ID,
					Message: fmt.Sprintf("it changed on the target since the base, and rule %s names it", r.ID),
				})
				break
			}
		}
	}
}

// maxBinary is the largest binary file, in bytes, that needs no waiver.
const maxBinary = 1 << 20

// kinds is P010: what a path is. The executable bit is declared by the operation
// mode in the rule of the path; the rest cannot be declared.
func (c *checker) kinds() {
	for i := range c.in.Changes {
		ch := &c.in.Changes[i]
		old, now := kind(ch.OldMode), kind(ch.NewMode)
		if now == "" {
			continue // a deletion says all
		}
		bad := func(format string, args ...any) { c.violate(P010, ch, c.ruleOf(ch), "", format, args...) }
		switch {
		case old != "" && old != now:
			bad("it was a %s and is a %s now", old, now)
		case now != "file":
			bad("it is a %s", now)
		}
		if now == "file" && executable(ch.NewMode) != executable(c.oldMode(ch)) && !c.modeDeclared(ch) {
			word := "executable"
			if !executable(ch.NewMode) {
				word = "not executable any more"
			}
			bad("it is %s, and no rule allows mode there", word)
		}
		if ch.NewMode != modeFile && ch.NewMode != modeExecutable && now == "file" {
			bad("it has the mode %s", ch.NewMode)
		}
		if ch.Binary && ch.Size > maxBinary {
			bad("it is binary and %d bytes long, more than %d", ch.Size, maxBinary)
		}
		if ch.LFS {
			bad("it is a pointer of Git LFS, whose content is not judged")
		}
	}
}

// oldMode is the mode that a file had, also before it was renamed.
func (c *checker) oldMode(ch *Change) string {
	if t := c.twin(ch); t != nil && ch.Op() == Create {
		return t.OldMode
	}
	return ch.OldMode
}

func (c *checker) modeDeclared(ch *Change) bool {
	for j := range c.rules {
		if r := &c.rules[j]; r.ops[Mode] && (r.literal[ch.Path] || r.set.Match(ch.Path)) {
			return true
		}
	}
	return false
}

func (c *checker) ruleOf(ch *Change) string {
	if j, ok := c.admitted[ch.Path]; ok {
		return c.rules[j].ID
	}
	return ""
}

// superseded is P012: a snapshot of an older plan may stay while it fits the new
// one. It has to be the last rule that judges.
func (c *checker) superseded() {
	if c.in.BuiltOn == "" {
		return
	}
	id, err := c.in.Contract.ID()
	if err == nil && id == c.in.BuiltOn {
		return
	}
	if slices.ContainsFunc(c.out.Violations, func(v Violation) bool { return v.Severity == Error }) {
		c.violate(P012, nil, "", "", "it was built on %.12s…, which is superseded, and does not fit the plan in force", c.in.BuiltOn)
	}
}

// Unproven is P008: the requirements that a certificate or a grade has to carry
// and that are not proven. Requirements that only a human accepts are not among them.
func Unproven(c *Contract, states map[string]State) []Violation {
	var out []Violation
	for _, r := range c.Requirements {
		measured := slices.ContainsFunc(r.Acceptance, func(a Acceptance) bool { return a.Human == "" })
		s, known := states[r.ID]
		if !measured || known && s == Proven {
			continue
		}
		if !known {
			s = NotMeasured
		}
		out = append(out, Violation{
			Code: P008, Severity: Error, Rule: r.ID,
			Message: fmt.Sprintf("requirement %s is %s", r.ID, strings.ReplaceAll(string(s), "_", " ")),
		})
	}
	return out
}

// Spent is what a run has used of its budget.
type Spent struct {
	Rounds int // submissions, the one that is judged included
	USD    float64
	Wall   time.Duration
}

// Overspent is P014: what of the budget is used up beyond its bound.
func Overspent(b Budget, s Spent) []Violation {
	var out []Violation
	add := func(format string, args ...any) {
		out = append(out, Violation{Code: P014, Severity: Error, Rule: "budget", Message: fmt.Sprintf(format, args...)})
	}
	if b.Rounds != nil && s.Rounds > *b.Rounds {
		add("round %d, the budget allows %d", s.Rounds, *b.Rounds)
	}
	if b.USD != nil && s.USD > *b.USD {
		add("%.2f USD are spent, the budget allows %.2f", s.USD, *b.USD)
	}
	if b.Wall > 0 && s.Wall > time.Duration(b.Wall) {
		add("%s have passed, the budget allows %s", s.Wall.Round(time.Second), b.Wall)
	}
	return out
}
