package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// Version is the version of contracts that this package reads and writes.
const Version = 1

// Kind says what a task is about; each kind is held to its own rules.
type Kind string

// The kinds of contracts. Behaviour is the one that a contract has when it names
// none, and the strictest about tests.
const (
	Behaviour Kind = "behaviour"
	Refactor  Kind = "refactor" // no interface change, no test of the base touched
	Docs      Kind = "docs"     // only the policy's docs_paths
	Config    Kind = "config"   // a human approves the plan
)

var kinds = []string{string(Behaviour), string(Refactor), string(Docs), string(Config)}

// Risk is how careful the reviewer must be. Paths of the policy may raise it.
type Risk string

// The risks, lowest first. Medium is that of a contract that names none.
const (
	Low    Risk = "low"
	Medium Risk = "medium"
	High   Risk = "high"
)

var risks = []string{string(Low), string(Medium), string(High)}

// Raised is the higher of two risks.
func (r Risk) Raised(to Risk) Risk {
	for i := len(risks) - 1; i >= 0; i-- {
		if risks[i] == string(r) || risks[i] == string(to) {
			return Risk(risks[i])
		}
	}
	return r
}

// Before says what a test of an acceptance does at the base.
type Before string

// The states of a test at the base.
const (
	Fails  Before = "fails"  // by an assertion
	Absent Before = "absent" // what it tests is not there yet
	Passes Before = "passes"
)

var befores = []string{string(Fails), string(Absent), string(Passes)}

// Op is what happens to a path.
type Op string

// The operations that a scope rule can allow. Type is in no rule: a path that
// becomes another kind of thing is always a violation.
const (
	Create Op = "create"
	Modify Op = "modify"
	Delete Op = "delete"
	Rename Op = "rename"
	Mode   Op = "mode" // the executable bit
	Type   Op = "type" // file, symlink, submodule
)

var ops = []string{string(Create), string(Modify), string(Delete), string(Rename), string(Mode)}

// Contract is one revision of a plan. Its zero values mean "not named". The
// JSON form is the stored one.
type Contract struct {
	Version int    `json:"version"`
	Goal    string `json:"goal"`
	// Note is set in the contracts of [Manual] and in no others.
	Note         *string       `json:"note,omitempty"`
	Kind         Kind          `json:"kind,omitempty"`
	Requirements []Requirement `json:"requirements,omitempty"`
	Scope        []Rule        `json:"scope,omitempty"`
	Dependencies Dependencies  `json:"dependencies,omitzero"`
	Interfaces   []Interface   `json:"interfaces,omitempty"`
	Invariants   []Invariant   `json:"invariants,omitempty"`
	Budget       Budget        `json:"budget,omitzero"`
	NonGoals     []string      `json:"non_goals,omitempty"`
	Risk         Risk          `json:"risk,omitempty"`
}

// Requirement is something that must hold afterwards.
type Requirement struct {
	ID         string       `json:"id"`
	Text       string       `json:"text"`
	Acceptance []Acceptance `json:"acceptance,omitempty"`
}

// Acceptance is one way in which a requirement is seen to hold. Exactly one of
// Test, Grader, Command and Human is set.
type Acceptance struct {
	ID      string   `json:"id"`
	Test    string   `json:"test,omitempty"`   // path::name
	Before  Before   `json:"before,omitempty"` // of a test
	Grader  string   `json:"grader,omitempty"` // path of a grader's tree
	Min     *float64 `json:"min,omitempty"`    // of a grader
	Command []string `json:"command,omitempty"`
	Human   string   `json:"human,omitempty"` // what a person must confirm
	Role    string   `json:"role,omitempty"`  // of that person
}

// TestFile is the path of an acceptance's test and the test's name in it.
func (a Acceptance) TestFile() (path, name string) {
	path, name, _ = strings.Cut(a.Test, "::")
	return path, name
}

// Rule allows operations on paths. A path that no rule names may not change.
type Rule struct {
	ID       string   `json:"id"`
	Paths    []string `json:"paths"` // see [Pattern]
	Ops      []Op     `json:"ops"`
	For      []string `json:"for,omitempty"`       // ids of requirements and invariants
	MaxAdded *int     `json:"max_added,omitempty"` // lines, over all paths of the rule
	// Required says that each of Paths must be changed.
	Required bool `json:"required,omitempty"`
}

// Dependencies are the names of what may be added, bumped and removed; a name may
// end in @version, which then must be the new one.
type Dependencies struct {
	Add    []string `json:"add,omitempty"`
	Bump   []string `json:"bump,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// Interface is an exported symbol that may change.
type Interface struct {
	Symbol string     `json:"symbol"`
	Change SymbolVerb `json:"change"`
}

// SymbolVerb is what happens to a symbol or a dependency.
type SymbolVerb string

// The changes of an interface.
const (
	SymbolAdd    SymbolVerb = "add"
	SymbolModify SymbolVerb = "modify"
	SymbolRemove SymbolVerb = "remove"
)

var symbolVerbs = []string{string(SymbolAdd), string(SymbolModify), string(SymbolRemove)}

// Invariant is something that must hold before and after. Scope rules may name
// its id.
type Invariant struct {
	ID    string `json:"id,omitempty"`
	Suite string `json:"suite"` // all
}

// Budget is the most that a change may be and cost; nil means no bound.
type Budget struct {
	Files   *int     `json:"files,omitempty"`
	Added   *int     `json:"added,omitempty"`   // lines
	Deleted *int     `json:"deleted,omitempty"` // lines
	Rounds  *int     `json:"rounds,omitempty"`
	USD     *float64 `json:"usd,omitempty"`
	Wall    Span     `json:"wall,omitempty"` // 0: no bound
}

// Span is a duration in whole seconds that is written as 90s, 30m or 2h.
type Span time.Duration

// String is the shortest way to write the span: 2h, 90m, 45s.
func (s Span) String() string {
	d := time.Duration(s)
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// MarshalJSON implements [json.Marshaler].
func (s Span) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// Manual is the contract of a policy that asks for none: the task and a note.
func Manual(task, note string) *Contract { return &Contract{Version: Version, Goal: task, Note: &note} }

// IsManual tells whether the contract binds nothing, as [Manual] makes them.
func (c *Contract) IsManual() bool { return c.Note != nil }

// Canonical is the RFC 8785 form: what is hashed and stored.
func (c *Contract) Canonical() ([]byte, error) { return evidence.Canonical(c) }

// ID names a revision by its content: plan_ and 64 lower-case hexadecimal digits.
type ID string

const idPrefix = "plan_"

// ID is the digest of the canonical form.
func (c *Contract) ID() (ID, error) {
	b, err := c.Canonical()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return ID(idPrefix + hex.EncodeToString(sum[:])), nil
}

// ParseID accepts exactly the written form; anything else is a usage error with
// code bad_id.
func ParseID(s string) (ID, error) {
	h, ok := strings.CutPrefix(s, idPrefix)
	if !ok || len(h) != 64 || strings.Trim(h, "0123456789abcdef") != "" {
		return "", fault.New(fault.Usage, "bad_id", "%.80q is not a plan id: want plan_ and 64 hexadecimal digits", s)
	}
	return ID(s), nil
}

// NeedsHuman tells whether a human must approve the plan whatever the policy says.
func (c *Contract) NeedsHuman() bool { return c.Kind == Config }
