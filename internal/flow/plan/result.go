package plan

import (
	"cmp"
	"slices"
	"strings"
)

// Code names a rule that a change can break.
type Code string

// The rules. See [Codes] for what each is about.
const (
	P001 Code = "P001"
	P002 Code = "P002"
	P003 Code = "P003"
	P004 Code = "P004"
	P005 Code = "P005"
	P006 Code = "P006"
	P007 Code = "P007"
	P008 Code = "P008"
	P009 Code = "P009"
	P010 Code = "P010"
	P011 Code = "P011"
	P012 Code = "P012"
	P013 Code = "P013"
	P014 Code = "P014"
)

// CodeInfo is what is known of a code.
type CodeInfo struct {
	Code     Code
	About    string
	Waivable bool
}

var codes = []CodeInfo{
	{P001, "a path outside every scope rule", true},
	{P002, "an operation that the rule of the path does not allow", true},
	{P003, "a protected path", false},
	{P004, "larger than a rule or the budget allows", true},
	{P005, "a required change is missing", true},
	{P006, "a dependency changed that is not declared", true},
	{P007, "an exported symbol changed that is not declared", true},
	{P008, "a requirement has no live certificate or grade", true},
	{P009, "a file of the scope changed on the target since the base", false},
	{P010, "an undeclared mode, symlink, submodule, large binary or LFS pointer", true},
	{P011, "a test became weaker, or what runs the tests was touched", true},
	{P012, "built on a superseded plan that it no longer fits", false},
	{P013, "a path that cannot be checked out safely", false},
	{P014, "rounds, cost or time of the budget are spent", true},
}

// Codes lists every code, in order.
func Codes() []CodeInfo { return slices.Clone(codes) }

// Waivable tells whether a waiver can excuse a violation of the code.
func (c Code) Waivable() bool {
	return slices.ContainsFunc(codes, func(i CodeInfo) bool { return i.Code == c && i.Waivable })
}

// Severity tells whether a violation stands in the way.
type Severity string

// The severities.
const (
	Error Severity = "error"
	Warn  Severity = "warn"
)

// Outcome is what a gate makes of a check.
type Outcome string

// The outcomes.
const (
	Pass  Outcome = "pass"
	No    Outcome = "no"
	Empty Outcome = "empty" // nothing differs
)

// Violation is one rule that a change breaks, at one place.
type Violation struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Path     string   `json:"path,omitempty"` // bytes that are no UTF-8 are written as \xNN
	Op       Op       `json:"op,omitempty"`
	Rule     string   `json:"rule,omitempty"` // id of a scope rule, or the pattern that is broken
	Hunk     string   `json:"hunk,omitempty"` // +12: line 12 of the new side, -12: of the old one
	Message  string   `json:"message"`
}

// Match is a change that a rule allows.
type Match struct {
	Path string `json:"path"`
	Op   Op     `json:"op"`
	Rule string `json:"rule"`
}

// State is how far a requirement is.
type State string

// The states of a requirement.
const (
	Proven      State = "proven"
	Refuted     State = "refuted"
	NotMeasured State = "not_measured"
	Stale       State = "stale"
)

// Result is what a check says. Lists are sorted and never nil.
type Result struct {
	Outcome      Outcome          `json:"outcome"`
	Matched      []Match          `json:"matched"`
	Violations   []Violation      `json:"violations"`
	Unmet        []string         `json:"unmet"` // RULE: pattern, of required changes that are missing
	Requirements map[string]State `json:"requirements"`
	// Weakened says what a new policy would make looser; each is worth a finding
	// policy_weakened.
	Weakened []string `json:"-"`
}

// Judged is the result with waivers counted: a violation that is waived, and
// whose code can be, stands no longer in the way.
func (r Result) Judged(waived func(Violation) bool) Result {
	if r.Outcome == Empty {
		return r
	}
	r.Outcome = Pass
	for _, v := range r.Violations {
		if v.Severity == Error && (!v.Code.Waivable() || !waived(v)) {
			r.Outcome = No
		}
	}
	return r
}

// Has tells whether the result has a violation with the code, of any severity.
func (r Result) Has(c Code) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Code == c })
}

func byPlace(a, b Violation) int {
	return cmp.Or(strings.Compare(string(a.Code), string(b.Code)), strings.Compare(a.Path, b.Path),
		cmp.Compare(len(a.Hunk), len(b.Hunk)), strings.Compare(a.Hunk, b.Hunk), strings.Compare(a.Message, b.Message))
}
