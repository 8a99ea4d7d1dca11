// Package policy holds the rules that a run is carried by: which stages there
// are, which gates open them, who decides, what limits hold.
//
// A [Set] is what the built-in text and a repository's file say together; a
// [Policy] is one of it by name, with every value resolved. The file is
// .proveto/flow.yaml of the base commit: closed vocabulary, no expressions.
// Errors about it are usage errors with code policy_invalid that name line,
// column and the nearest name that exists. A file of the working copy,
// .proveto/flow.local.yaml, may only tighten what the base commit says.
//
// One table of fields (table.go) reads a policy, shows it, and knows for each
// value in which direction it gets stricter. The built-in policies are a text
// that the same table reads.
//
// The package is pure: it reads bytes that it is given. Whether a path matches
// a pattern is the business of the plan package.
package policy

import (
	"slices"
	"time"

	"github.com/proveto/proveto/internal/fault"
)

// Where the files of a repository are, and the names of the built-in policies.
const (
	FileName      = ".proveto/flow.yaml"
	LocalFileName = ".proveto/flow.local.yaml" // never committed

	Default = "default"
	Manual  = "manual"
)

// The codes of errors about policies.
const (
	CodeInvalid   fault.Code = "policy_invalid"  // the file cannot be read as a policy
	CodeLoosens   fault.Code = "overlay_loosens" // the local file asks for less than the base commit
	CodeNotProven fault.Code = "gate_not_proven" // a required command gate has no bad input that it refuses
)

// Policy is one named policy with every value resolved.
type Policy struct {
	Name       string
	OnReject   OnReject
	Stages     []Stage // upstream first; at least one
	Gates      map[string]Gate
	Graders    map[string]Grader
	Commands   map[string]Command
	Separation []Separation
	Risk       map[RiskLevel]Risk
	Protected  []string // path patterns that no plan may open
	DocsPaths  []string // path patterns that plans of kind docs keep to
	// Carry says, by stage, what must be measured to hold so that a pass outlives
	// a change of its inputs; one of the rules is enough.
	Carry map[string][]CarryRule
	// Categories says, by category of a finding, which stage it reopens:
	// a stage's id, or [Operator].
	Categories map[Category]string
	Unplanned  Unplanned
	Limits     Limits
	OnTimeout  OnTimeout
	Isolation  Isolation
	Notify     []Notify
}

// OnReject is what a rejection does.
type OnReject string

// What a rejection does.
const (
	Stay   OnReject = "stay"   // the same stage stays current
	Reopen OnReject = "reopen" // the stage that the finding belongs to reopens
)

// Role is what a principal must hold to act at a stage.
type Role string

// The roles.
const (
	Planner   Role = "planner"
	Developer Role = "developer"
	Verifier  Role = "verifier"
	Tester    Role = "tester"
	Reviewer  Role = "reviewer"
)

// Roles lists all roles in the order of the built-in stages.
func Roles() []Role { return []Role{Planner, Developer, Verifier, Tester, Reviewer} }

// Stage is one step of a run.
type Stage struct {
	ID     string
	Role   Role
	Needs  []string // ids of earlier stages that must have passed
	Gates  []string // names that [Policy.Gate] knows
	Decide Decide
	// AgentProducer replaces Decide where an agent made what is judged; nil: it
	// makes no difference.
	AgentProducer *Decide
}

// Produces tells whether a stage hands in something of its own: a contract or a
// tree. The other stages judge what those handed in.
func Produces(s Stage) bool { return s.Role == Planner || s.Role == Developer }

// Decide says who lets a stage pass once its gates did.
type Decide struct {
	Engine    bool // measurement decides; the numbers below are zero
	Approvals int  // principals that must approve; 0: the producer's signature is enough
	Humans    int  // how many of them must be human
	Note      Note
}

// Note says whether an approval needs a text.
type Note string

// The rules for notes.
const (
	NoteOptional Note = "optional"
	NoteRequired Note = "required"
)

// raise takes the larger of both demands.
func (d Decide) raise(by Decide) Decide {
	d.Engine = d.Engine && by.Engine
	d.Approvals, d.Humans = max(d.Approvals, by.Approvals), max(d.Humans, by.Humans)
	if by.Note == NoteRequired {
		d.Note = NoteRequired
	}
	return d
}

// GateKind is what a gate does.
type GateKind string

// The kinds of gates. Those of the second group are not written in a file: the
// engine knows them by the gate's name.
const (
	GateSuite   GateKind = "suite"
	GateBuild   GateKind = "build"
	GateSecrets GateKind = "secrets"
	GateProve   GateKind = "prove"
	GateMerge   GateKind = "merge"

	GatePlanLint GateKind = "plan_lint"
	GatePlanDiff GateKind = "plan_diff"
	GateFindings GateKind = "findings"
	GateGrader   GateKind = "grader"
	GateCommand  GateKind = "command"
)

// Names of gates that mean something by themselves.
const (
	PlanLint          = "plan.lint"
	PlanDiff          = "plan.diff"
	FindingsClosed    = "findings.closed"
	ProveRequirements = "prove.requirements" // judges acceptances; every other prove gate judges changed symbols

	GraderPrefix  = "grader."  // and the name of a grader
	CommandPrefix = "command." // and the name of a command
)

// Gate is how one gate measures. Values that its kind has no use for are zero.
type Gate struct {
	Kind   GateKind
	At     At            // suite: which tree
	Tests  Tests         // suite: whose tests
	Repeat int           // suite: how often, at least 1
	Time   time.Duration // of one run; 0: without limit of its own
	Run    []string      // build: argv; empty: what the language's driver does

	// Requirements is set for the prove gate that judges the plan's acceptances;
	// the thresholds are for those that judge changed symbols.
	Requirements   bool
	MinProven      float64 // prove: least share of changed symbols
	MaxRefuted     int
	MaxNotMeasured float64   // share
	WhenEmpty      WhenEmpty // prove
}

// At is the tree that a suite runs on.
type At string

// The trees.
const (
	AtBase     At = "base"
	AtSnapshot At = "snapshot"
)

// Tests is which version of the tests a suite runs.
type Tests string

// The versions of tests.
const (
	TestsBase Tests = "base" // the base commit's tests on the snapshot
	TestsAll  Tests = "all"
)

// WhenEmpty is what a gate says when there is nothing to measure.
type WhenEmpty string

// The answers to nothing.
const (
	EmptyPass   WhenEmpty = "pass"
	EmptyRefuse WhenEmpty = "refuse"
)

// Grader is a pinned judge with data that the candidate does not see.
type Grader struct {
	Path      string // of its tree, in the repository
	Digest    string // sha256:<hex> of its tree; empty: as it is at the base commit
	Repeat    int
	Min       float64
	Direction Direction
	KnownBad  []string // paths of candidates that it must refuse
}

// Direction says which scores are better.
type Direction string

// The directions.
const (
	Maximize Direction = "maximize"
	Minimize Direction = "minimize"
)

// Command is a gate of the repository's own: exit 0 passes.
type Command struct {
	Run   []string // argv
	Probe Probe    // the bad input that it must refuse
	Time  time.Duration
}

// Probe is how a bad input for a command is made: one of its fields is set; none
// in a command that no stage requires.
type Probe struct {
	Patch  string // a patch file of the base commit
	Mutant bool   // a killed mutant of the change
	Break  string // build: a syntax error in a changed file
}

// IsZero tells whether there is no probe.
func (p Probe) IsZero() bool { return p == Probe{} }

// Separation says that stages need different hands.
type Separation struct {
	Distinct    []string // stage ids
	By          SeparateBy
	OnViolation OnViolation
}

// SeparateBy is what must differ.
type SeparateBy string

// What can be told apart.
const (
	ByPrincipal SeparateBy = "principal"
	ByOperator  SeparateBy = "operator"
	ByLaunch    SeparateBy = "launch"
	ByModel     SeparateBy = "model"
)

// OnViolation is what a violated separation does to a human decider; an agent is
// always refused.
type OnViolation string

// What a violation does.
const (
	Report OnViolation = "report"
	Refuse OnViolation = "refuse"
)

// RiskLevel grades a change.
type RiskLevel string

// The levels.
const (
	RiskLow    RiskLevel = "low"
	RiskMedium RiskLevel = "medium"
	RiskHigh   RiskLevel = "high"
)

// RiskLevels lists the levels, lowest first.
func RiskLevels() []RiskLevel { return []RiskLevel{RiskLow, RiskMedium, RiskHigh} }

// Risk is what a level asks for beside the stages' own demands.
type Risk struct {
	Paths  []string          // patterns; a change there has at least this level
	Decide map[string]Decide // by stage id; raises, never lowers
}

// CarryRule is a condition under which a pass outlives a change of its inputs.
type CarryRule string

// The conditions.
const (
	SameTree         CarryRule = "same_tree"           // equal tree id
	SameDiffAndReach CarryRule = "same_diff_and_reach" // and all that the crediting tests reach is unchanged
	SameDiff         CarryRule = "same_diff"           // the diff against the new base is byte-equal
)

// Category is what a finding is about.
type Category string

// The categories.
const (
	Defect      Category = "defect"
	TestGap     Category = "test_gap"
	Scope       Category = "scope"
	PlanGap     Category = "plan_gap"
	GraderFault Category = "grader_fault"
	Environment Category = "environment"
)

// Categories lists all categories.
func Categories() []Category {
	return []Category{Defect, TestGap, Scope, PlanGap, GraderFault, Environment}
}

// Operator stands where a stage's id could: no stage helps, a person must.
const Operator = "operator"

// Unplanned is what work without a plan token needs.
type Unplanned string

// What work without a plan needs.
const (
	UnplannedNote   Unplanned = "note"   // a text
	UnplannedWaiver Unplanned = "waiver" // a waiver that somebody else signed before
	UnplannedNever  Unplanned = "never"
)

// Limits are numbers that a run keeps to.
type Limits struct {
	Rounds      map[string]int // by stage id; a stage that is not named has no cap
	Lease       time.Duration
	RunTTL      time.Duration // 0: a run never expires
	DecisionSLA time.Duration // 0: nobody is reminded
	Retries     int           // of a gate that could not be measured, by another worker
	USD         float64       // that the launches of a run may cost
	Parallel    int           // launches at once
	MaxScope    float64       // share of the base's files that a pattern of a plan may match
}

// OnTimeout says what the end of a time does.
type OnTimeout struct {
	Lease       string // requeue
	DecisionSLA string // notify
	RunTTL      string // expire
}

// Isolation is what subjects made by an agent are measured under.
type Isolation struct {
	Min string // limits, landlock, namespaces; less reached is not measured
}

// Notify tells the world that a run got to a status.
type Notify struct {
	On         []string // waiting, blocked, approved, delivered
	Exec       []string // argv; or:
	WebhookEnv string   // name of the variable with the address
	HMACEnv    string   // name of the variable with the key; empty: unsigned
}

// Stage finds a stage by its id.
func (p Policy) Stage(id string) (Stage, bool) {
	for _, s := range p.Stages {
		if s.ID == id {
			return s, true
		}
	}
	return Stage{}, false
}

// Gate finds how a gate measures by the name that stages use: those under
// gates, the ones that the engine knows, grader.NAME and command.NAME.
func (p Policy) Gate(name string) (Gate, bool) {
	if g, ok := p.Gates[name]; ok {
		return g, true
	}
	switch name {
	case PlanLint:
		return Gate{Kind: GatePlanLint}, true
	case PlanDiff:
		return Gate{Kind: GatePlanDiff}, true
	case FindingsClosed:
		return Gate{Kind: GateFindings}, true
	}
	if g, ok := p.Grader(name); ok {
		return Gate{Kind: GateGrader, Repeat: g.Repeat}, true
	}
	if c, ok := p.Command(name); ok {
		return Gate{Kind: GateCommand, Time: c.Time}, true
	}
	return Gate{}, false
}

// Grader finds the grader of the gate grader.NAME.
func (p Policy) Grader(gate string) (Grader, bool) { return cut(p.Graders, gate, GraderPrefix) }

// Command finds the command of the gate command.NAME.
func (p Policy) Command(gate string) (Command, bool) { return cut(p.Commands, gate, CommandPrefix) }

func cut[T any](m map[string]T, gate, prefix string) (T, bool) {
	if len(gate) <= len(prefix) || gate[:len(prefix)] != prefix {
		var none T
		return none, false
	}
	v, ok := m[gate[len(prefix):]]
	return v, ok
}

// EmptyPasses tells whether a gate that found nothing to measure opens. Plans
// that change no behaviour have no requirements to prove.
func (p Policy) EmptyPasses(gate, planKind string) bool {
	g, ok := p.Gate(gate)
	if ok && gate == ProveRequirements && slices.Contains([]string{"refactor", "docs", "config"}, planKind) {
		return true
	}
	return ok && g.WhenEmpty == EmptyPass
}

// RiskOf is the level of a change: the declared one, or a higher one whose paths
// the change touches. Touches tells whether any changed path matches any of the
// patterns. An unknown declared level counts as medium.
func (p Policy) RiskOf(declared RiskLevel, touches func(patterns []string) bool) RiskLevel {
	levels := RiskLevels()
	at := max(slices.Index(levels, declared), 0)
	if !slices.Contains(levels, declared) {
		at = 1
	}
	for i := len(levels) - 1; i > at; i-- {
		if r := p.Risk[levels[i]]; len(r.Paths) > 0 && touches(r.Paths) {
			return levels[i]
		}
	}
	return levels[at]
}

// Decides says what it takes to pass a stage: its own rule, the one for agents
// where an agent made the subject, raised by the level of risk and by those
// below it.
func (p Policy) Decides(s Stage, risk RiskLevel, agentMade bool) Decide {
	d := s.Decide
	if agentMade && s.AgentProducer != nil {
		d = *s.AgentProducer
	}
	for _, level := range RiskLevels() {
		if by, ok := p.Risk[level].Decide[s.ID]; ok {
			d = d.raise(by)
		}
		if level == risk {
			break
		}
	}
	return d
}

// Upstream lists the ids of all stages that a stage depends on, near or far, in
// the order of the policy.
func (p Policy) Upstream(id string) []string {
	need := map[string]bool{id: true}
	for i := len(p.Stages) - 1; i >= 0; i-- {
		if s := p.Stages[i]; need[s.ID] {
			for _, n := range s.Needs {
				need[n] = true
			}
		}
	}
	var out []string
	for _, s := range p.Stages {
		if need[s.ID] && s.ID != id {
			out = append(out, s.ID)
		}
	}
	return out
}
