package gates

import (
	"context"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/snapshot"
)

// Policy is what the policy of a flow says about one gate. Zero values take the
// default of the kind.
type Policy struct {
	Kind   gate.Kind     `json:"kind"`
	At     string        `json:"at,omitempty"`     // of a suite: base; empty: the snapshot
	Tests  string        `json:"tests,omitempty"`  // of a suite: base or all; empty: all
	Repeat int           `json:"repeat,omitempty"` // of a suite: runs; 0: 1, at the base 2
	Time   time.Duration `json:"time,omitempty"`   // of the whole measurement, and once more of its probe; 0: 20 minutes
	Argv   []string      `json:"argv,omitempty"`   // of a command, or of a build in place of the driver's
	Probe  Probe         `json:"probe"`            // of a command

	MinProven      float64 `json:"min_proven,omitempty"`       // share
	MaxRefuted     int     `json:"max_refuted,omitempty"`      // count
	MaxNotMeasured float64 `json:"max_not_measured,omitempty"` // share

	WhenEmpty    string         `json:"when_empty,omitempty"` // pass: then nothing to check is a pass
	IsolationMin evidence.Level `json:"isolation_min,omitempty"`

	// Gates are those that a merge gate measures on the preview, by name: build and
	// suite.full; absent ones take their defaults.
	Gates map[string]Policy `json:"gates,omitempty"`
}

// Probe names the bad tree that a command must refuse; one of its fields is set.
type Probe struct {
	Patch  string `json:"patch,omitempty"`  // path of a unified diff, read from the base
	Mutant bool   `json:"mutant,omitempty"` // changed behaviour in a changed function
	Break  string `json:"break,omitempty"`  // build: a syntax error in a changed file
}

// DefaultTime bounds a measurement for which the policy says nothing.
const DefaultTime = 20 * time.Minute

// Request is one measurement. Trees are sealed trees of Repo.
type Request struct {
	Gate   string // name in the policy
	Policy Policy

	Repo     snapshot.Repo
	BaseTree evidence.Tree
	Tree     evidence.Tree // the snapshot; for a suite at the base it may be absent

	// MergeTree is the preview that git made of target and snapshot; Conflicts are
	// the paths for which it could not.
	MergeTree evidence.Tree
	Conflicts []string

	// Run, Stage, Attempt and Plan are copied into the evidence.
	Run     string
	Stage   string
	Attempt int
	Plan    evidence.Digest

	// Acceptance are the tests and commands of the plan, and Added the symbols that it
	// declares as added; both for prove.requirements.
	Acceptance []Acceptance
	Added      []string

	// Baseline are the runs that a suite at this base left ([Result.Baseline]); when
	// absent they are made.
	Baseline []evidence.UnitDigest

	// Known finds what the same gate said about the same subject before; nil or
	// false: nothing. What was not measured is measured again.
	Known func(ctx context.Context, gateDigest evidence.Digest, s gate.Subject) (gate.Evidence, []gate.Issue, bool)
	// Again says that nothing known is used: mutants are run again even where a live
	// certificate would do.
	Again bool
	// Probed finds the certificate that the gate earned on this base before.
	Probed func(ctx context.Context, gateDigest evidence.Digest, base evidence.Tree) (evidence.Digest, bool)
}

// Acceptance is a test of the plan: path::Test, and what it does before the
// change: fails, absent or passes. Or it is a command, which refuses the base.
type Acceptance struct {
	Requirement, ID string
	Test            string
	Before          string
	Command         []string
}

// Result is what a measurement gives. Its runs and certificates are in the ledger.
type Result struct {
	Evidence gate.Evidence
	Issues   []gate.Issue
	Probe    Probed
	// Baseline are the runs of a suite at the base, for [Request.Baseline].
	Baseline []evidence.UnitDigest
}

// Probed is what the gate did with its probe.
type Probed struct {
	Certificate evidence.Digest // empty when the gate was not seen to refuse
	Sabotage    evidence.Sabotage
	Refused     bool
	Reused      bool
	Err         error // why there is no certificate
}
