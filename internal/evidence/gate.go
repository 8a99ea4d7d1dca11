package evidence

import (
	"fmt"
	"slices"

	"github.com/proveto/proveto/internal/fault"
)

// KindGate is the kind of certificate that a gate earns: it accepted a good
// subject and rejected a bad one.
const KindGate = "gate"

// SabotageKind is how the subject of a gate was made bad.
type SabotageKind string

// The kinds of sabotage. Names are stored.
const (
	SabotageSyntax  SabotageKind = "syntax_error"      // a source that no compiler accepts
	SabotageSkip    SabotageKind = "skipped_test"      // a test of the base that skips itself
	SabotageMutant  SabotageKind = "mutant"            // changed behaviour, written or switched on
	SabotagePlanted SabotageKind = "planted_assertion" // a test that must fail, in a runner that must say so
	SabotageKey     SabotageKind = "planted_key"       // a file with a made-up secret
	SabotagePatch   SabotageKind = "patch"             // what the policy names
	SabotageBase    SabotageKind = "base"              // the tree before the change, which lacks what is asked for
)

// Sabotage is the bad subject that a gate must refuse.
type Sabotage struct {
	Kind    SabotageKind `json:"kind"`
	Summary string       `json:"summary"`
	Tree    Tree         `json:"tree,omitempty"`  // the bad tree; absent when it was switched on in the good one
	Probe   Digest       `json:"probe,omitempty"` // of the mutant that was switched on
	Diff    string       `json:"diff,omitempty"`  // unified, against the good tree
}

// GateFacts say which gate a certificate is about and what was put before it.
type GateFacts struct {
	Gate     string   `json:"gate"`        // name in the policy: suite.kept
	Digest   Digest   `json:"gate_digest"` // configuration, argv, probes, tools, driver
	Rule     GateRule `json:"rule"`
	Base     Tree     `json:"base,omitempty"` // what the reference runs are about
	Sabotage Sabotage `json:"sabotage"`
}

// GateRuns are the measurements behind a certificate of a gate. The bad ones may
// cover fewer units than the good ones: those that the sabotage concerns.
type GateRuns struct {
	Reference, Good, Bad []UnitRun
}

// UnitDigest names a run of a gate.
type UnitDigest struct {
	Unit string `json:"unit"`
	Run  Digest `json:"run"`
}

// GateRecord is the part of a stored certificate that is a gate's own.
type GateRecord struct {
	GateFacts
	Reference []UnitDigest `json:"reference,omitempty"`
	Good      []UnitDigest `json:"good"`
	Bad       []UnitDigest `json:"bad"`
}

// All lists the digests of the runs; a run that is used twice is named twice.
func (r GateRecord) All() []Digest {
	var out []Digest
	for _, u := range slices.Concat(r.Reference, r.Good, r.Bad) {
		out = append(out, u.Run)
	}
	return out
}

// NewGate derives a certificate for a gate from runs, or says with a
// [fault.Error] why the runs do not earn one: gate_blind when the bad subject was
// accepted, the code of the verdict when the good one was not.
func NewGate(f GateFacts, rs GateRuns) (Certificate, error) {
	good, err := sameGate(f, rs)
	if err != nil {
		return Certificate{}, err
	}
	if v := JudgeGate(f.Rule, rs.Reference, rs.Good); !v.Accepted {
		kind := fault.Unmeasured
		if v.Rejected {
			kind = fault.Negative
		}
		return Certificate{}, fault.New(kind, v.Code, "gate %s did not accept the good tree: %s", f.Gate, v.Detail)
	}
	switch v := JudgeGate(f.Rule, covered(rs.Reference, rs.Bad), rs.Bad); {
	case v.Accepted:
		return Certificate{}, fault.New(fault.Unmeasured, CodeGateBlind, "gate %s accepted a bad tree: %s", f.Gate, f.Sabotage.Summary)
	case !v.Rejected:
		return Certificate{}, fault.New(fault.Unmeasured, v.Code, "gate %s was not seen to reject a bad tree (%s): %s", f.Gate, f.Sabotage.Summary, v.Detail)
	}
	rec := GateRecord{GateFacts: f, Reference: digestsOf(rs.Reference), Good: digestsOf(rs.Good), Bad: digestsOf(rs.Bad)}
	return seal(CertificateRecord{Schema: CertificateSchema, Kind: KindGate, Snapshot: good, Isolation: weakestOf(slices.Concat(rs.Reference, rs.Good, rs.Bad)), Gate: &rec})
}

// covered are the reference runs of the units that were run.
func covered(reference, runs []UnitRun) []UnitRun {
	var out []UnitRun
	for _, r := range reference {
		if slices.ContainsFunc(runs, func(u UnitRun) bool { return u.Unit == r.Unit }) {
			out = append(out, r)
		}
	}
	return out
}

func digestsOf(runs []UnitRun) []UnitDigest {
	var out []UnitDigest
	for _, u := range runs {
		out = append(out, UnitDigest{u.Unit, u.Run.digest})
	}
	return out
}

// sameGate checks that every run is about the tree that the facts name, and that
// the bad ones are by the same commands as the good ones. It returns the good
// tree.
func sameGate(f GateFacts, rs GateRuns) (Tree, error) {
	bad := func(format string, args ...any) (Tree, error) {
		return "", fault.New(fault.Unmeasured, CodeMismatch, format, args...)
	}
	compares := f.Rule == RuleKept || f.Rule == RuleHeld
	switch {
	case f.Gate == "" || f.Digest == "" || f.Sabotage.Kind == "" || f.Sabotage.Summary == "":
		return bad("a certificate of a gate names the gate, its digest and what it refused")
	case !slices.Contains([]GateRule{RuleExit, RuleGreen, RuleKept, RuleHeld}, f.Rule):
		return bad("no rule %.40q", f.Rule)
	case len(rs.Good) == 0 || len(rs.Bad) == 0:
		return bad("a certificate of a gate has runs on a good and on a bad subject")
	case compares != (len(rs.Reference) > 0) || compares != (f.Base != ""):
		return bad("rule %s and its reference do not fit", f.Rule)
	}
	tree := rs.Good[0].Run.rec.Snapshot
	seen := map[Digest]bool{}
	check := func(what string, u UnitRun, want Tree, probe Digest, planted bool) error {
		rec := u.Run.rec
		switch {
		case u.Run.IsZero():
			return fmt.Errorf("a run %s is missing", what)
		case seen[u.Run.digest]:
			return fmt.Errorf("a run %s is used twice", what)
		case rec.Snapshot == "" || rec.Snapshot != want:
			return fmt.Errorf("a run %s is about another tree", what)
		case rec.Probe != probe:
			return fmt.Errorf("a run %s has another probe switched on", what)
		case (rec.Planted != "") != planted:
			return fmt.Errorf("a run %s carries a planted assertion, or lacks it", what)
		}
		seen[u.Run.digest] = true
		return nil
	}
	for _, u := range rs.Reference {
		if err := check("on the base", u, f.Base, "", false); err != nil {
			return bad("%s", err)
		}
	}
	for _, u := range rs.Good {
		if err := check("on the good tree", u, tree, "", false); err != nil {
			return bad("%s", err)
		}
	}
	s := f.Sabotage
	at := s.Tree
	if at == "" {
		at = tree
	}
	if (at == tree) != (s.Probe != "" || s.Kind == SabotagePlanted) {
		return bad("the bad subject is the good one")
	}
	for _, u := range rs.Bad {
		if err := check("on the bad subject", u, at, s.Probe, s.Kind == SabotagePlanted); err != nil {
			return bad("%s", err)
		}
		if f.Rule == RuleExit && !slices.ContainsFunc(rs.Good, func(g UnitRun) bool { return sameCommand(g.Run.rec, u.Run.rec) }) {
			return bad("the bad subject was judged by another command than the good one")
		}
		if f.Rule != RuleExit && !slices.ContainsFunc(rs.Good, func(g UnitRun) bool { return g.Unit == u.Unit }) {
			return bad("no good run is about %s", u.Unit)
		}
	}
	return tree, nil
}

func sameCommand(a, b RunRecord) bool { return a.Dir == b.Dir && slices.Equal(a.Argv, b.Argv) }

func weakestOf(runs []UnitRun) Isolation {
	iso := runs[0].Run.rec.Isolation
	for _, u := range runs[1:] {
		if i := u.Run.rec.Isolation; i.Level.Rank() < iso.Level.Rank() {
			iso.Level = i.Level
		}
		if u.Run.rec.Isolation.Network == Open {
			iso.Network = Open
		}
	}
	return iso
}

// rederiveGate loads the runs that a stored certificate names and derives it
// anew.
func rederiveGate(rec GateRecord, load func(Digest) Run) (GateFacts, GateRuns) {
	all := func(ds []UnitDigest) []UnitRun {
		var out []UnitRun
		for _, d := range ds {
			out = append(out, UnitRun{d.Unit, load(d.Run)})
		}
		return out
	}
	return rec.GateFacts, GateRuns{Reference: all(rec.Reference), Good: all(rec.Good), Bad: all(rec.Bad)}
}
