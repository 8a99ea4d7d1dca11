package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
)

// Run is a task on its way: the fold of its facts. It is a value: whoever wants
// to change one takes a copy with clone.
type Run struct {
	ID           string
	Task         string
	Project      string
	Repo         string
	Base         Base
	Target       string
	Policy       policy.Policy
	PolicyDigest evidence.Digest
	Roster       json.RawMessage
	RosterDigest evidence.Digest
	Enforced     bool
	Holders      map[string][]string // principals by role
	Risk         policy.RiskLevel    // of the current work
	Parent       string
	AfterRuns    []string
	Opener       Actor
	Opened       time.Time
	Expires      time.Time // zero: never

	Stages    []Stage
	Proposed  *Plan  // the contract handed in last
	Plans     []Plan // every contract that was handed in
	Plan      *Plan  // the contract that binds; nil before one is accepted
	Findings  []Finding
	Waivers   []Waiver
	Remarks   []Remark
	Answers   []Answered
	Refusals  int
	Claims    int
	refusedAt []time.Time // of the last refusals, at most MostRefusals

	Paused                bool
	Cancelled             bool
	Capped                bool // rounds are used up
	Why                   string
	Unplanned             *Unplanned
	Delivered             *Delivered
	BaseSeq, DeliveredSeq int64 // of the facts that pinned the base, and that delivered
	Exports               []Exported
	Probes                map[evidence.Digest]Probed // by gate digest: the last thing a probe showed
	Delivery              map[string]int             // principal or launch → round of the bundle that reached them

	Seq  int64     // of the last fact
	Last time.Time // when that was
	idem map[string]Replay
}

// Stage is one stage of a run, with its current attempt.
type Stage struct {
	policy.Stage
	State     StageState
	Since     time.Time // of the fact that brought the state
	Attempt   int       // counted from 1; 0 before anything was handed in
	Fence     int       // counts every start of work on the stage; older results are refused
	Subject   Subject
	Input     evidence.Digest
	GateIDs   []evidence.Digest // digests of the gates, in the order of Gates
	Producer  Actor             // who handed in the subject
	Producers []Actor           // who handed in any subject of this stage, in this run
	Lease     *Lease
	Evidence  map[string]Evidence // of the current attempt, by gate
	Given     []Given             // decisions on the current attempt
	Vetoes    []Veto
	Outcome   evidence.Digest // what a pass stands on
	Because   string          // why the pass is stale
	Round     int             // how often the run came back to this stage
	Carries   string          // rule by which the last pass stands when the gates of this attempt pass
	Carried   *Carry          // by what the pass of this attempt stands, when nobody judged it anew
	Failed    int             // measurements of the current attempt that could not be made
	Past      []Attempt
	passed    *pass      // the last pass, for the carry rules
	stamped   StageState // the state that Since is about
}

// pass is what a carry rule compares.
type pass struct {
	attempt int
	subject Subject
	plan    string
	given   []string // approvals that it stands on
}

// Lease is a hold on a stage.
type Lease struct {
	Holder Actor
	Until  time.Time
}

// Evidence is the outcome of a gate on the subject of an attempt.
type Evidence struct {
	gate.Evidence
	Merged evidence.Tree // that a merge gate judged
	Waiver string        // id of the waiver by which a no or a not measured counts as passed
	Seq    int64
}

// Given is a decision as it stands.
type Given struct {
	ID        string
	Actor     Actor
	Decision  Decision
	Attempt   int
	Input     evidence.Digest
	Note      string
	At        time.Time
	Seq       int64
	Withdrawn bool
	Void      string // why it does not count any more: a revoked key
	Signed    *Signature
}

// Veto holds for an input, whoever judges it later.
type Veto struct {
	Decision  string // id; empty: a gate said no
	Author    Actor
	Input     evidence.Digest
	Tree      evidence.Tree
	Withdrawn bool
}

// Attempt is a closed attempt, kept for reading.
type Attempt struct {
	N        int
	State    StageState
	Input    evidence.Digest
	Subject  Subject
	Given    []Given
	Evidence map[string]Evidence
	Carried  *Carry
}

// Carry says that a pass stands by an earlier attempt.
type Carry struct {
	Rule string
	From int // attempt
}

// Plan is a revision of the contract.
type Plan struct {
	ID         string
	Revision   int
	Supersedes string
	Contract   json.RawMessage
	Kind       string // of the change: behaviour, refactor, docs, config
	Producer   Actor
	At         time.Time // handed in
	Token      string    // empty until it is accepted
}

// Waiver is an exception in force until it expires.
type Waiver struct {
	ID      string
	Gate    string
	Stage   string
	Paths   []string
	Reason  string
	By      Actor
	At      time.Time
	Expires time.Time
	Used    bool
	Void    string // why it does not count any more: a revoked key
}

// Remark is a line of the notes of a run: the note of a decision, or a claim.
type Remark struct {
	At    time.Time
	Stage string
	Actor Actor
	Word  string // decision, or claim
	Text  string
	ID    string // of a claim
}

// Unplanned says that a submission went ahead without the token of the plan.
type Unplanned struct {
	By     Actor
	Reason string
	Waiver string
}

// Replay is a request that was answered, by its idempotency key.
type Replay struct {
	Request evidence.Digest
	Answer  fault.Code
	Seq     int64
	Stage   string
}

// TokenFunc derives the token of a plan from its digest and the leaf hash of the
// fact that accepted it.
type TokenFunc func(plan, leaf string) string

// Fold reads a run from its facts. A nil token function leaves tokens empty.
func Fold(entries []Entry, token TokenFunc) (Run, error) {
	var r Run
	read := decodeAll(entries)
	for i, e := range entries {
		if read[i].err != nil {
			return r, read[i].err
		}
		if err := r.add(e, read[i].fact, token); err != nil {
			return r, err
		}
	}
	if r.ID == "" {
		return r, fault.New(fault.NotFound, CodeNotFound, "no facts about a run")
	}
	return r, nil
}

// Apply adds one entry. The run must not be shared with anybody.
func (r *Run) Apply(e Entry, token TokenFunc) error {
	f, err := decode(e)
	if err != nil {
		return err
	}
	return r.add(e, f, token)
}

// add folds an entry whose fact was read.
func (r *Run) add(e Entry, f Fact, token TokenFunc) error {
	if e.Seq <= r.Seq {
		return fault.New(fault.Tampered, "ledger_broken", "ledger entry %d comes after entry %d of the same run", e.Seq, r.Seq)
	}
	if r.ID == "" != (e.Kind == KindOpened) || (r.ID != "" && f.head().Run != r.ID) {
		return fault.New(fault.Tampered, "ledger_broken", "ledger entry %d, %s, does not belong to run %s", e.Seq, e.Kind, r.ID)
	}
	if before := f.head().Prev; r.ID != "" && r.Seq != before && (before != 0 || r.Seq != e.Seq-1) {
		return fault.New(fault.Tampered, "ledger_broken", "ledger entry %d of run %s does not follow on entry %d: what was between is missing", e.Seq, r.ID, r.Seq).
			Hint("proveto ledger verify")
	}
	if err := r.take(f, e.Seq, e.Leaf, token); err != nil {
		return fmt.Errorf("ledger entry %d: %w", e.Seq, err)
	}
	return nil
}

// Replay finds the answer to a request that was made before.
func (r *Run) Replay(idem string) (Replay, bool) {
	p, ok := r.idem[idem]
	return p, ok
}

// MostRefusals is how many refusals of a run are recorded in a minute; the others
// are counted, and the next one that is recorded says how many they were.
const MostRefusals = 100

// Flooded tells whether so many refusals were recorded in the minute before now
// that the next one is only counted.
func (r *Run) Flooded(now time.Time) bool {
	return len(r.refusedAt) == MostRefusals && now.Sub(r.refusedAt[0]) < time.Minute
}

// Stage finds a stage by its id; nil when the policy has none of that name.
func (r *Run) Stage(id string) *Stage {
	for i := range r.Stages {
		if r.Stages[i].ID == id {
			return &r.Stages[i]
		}
	}
	return nil
}

// Finding finds a finding by its id; nil when there is none.
func (r *Run) Finding(id string) *Finding {
	for i := range r.Findings {
		if r.Findings[i].ID == id {
			return &r.Findings[i]
		}
	}
	return nil
}

func (r *Run) clone() Run {
	out := *r
	out.Stages = slices.Clone(r.Stages)
	for i := range out.Stages {
		s := &out.Stages[i]
		s.Evidence, s.Given, s.Vetoes, s.Past, s.Producers = maps.Clone(s.Evidence), slices.Clone(s.Given), slices.Clone(s.Vetoes), slices.Clone(s.Past), slices.Clone(s.Producers)
	}
	out.Plans = slices.Clone(r.Plans)
	out.Findings, out.Waivers, out.Remarks, out.Answers = slices.Clone(r.Findings), slices.Clone(r.Waivers), slices.Clone(r.Remarks), slices.Clone(r.Answers)
	out.refusedAt = slices.Clone(r.refusedAt)
	out.Exports, out.Probes, out.idem, out.Delivery = slices.Clone(r.Exports), maps.Clone(r.Probes), maps.Clone(r.idem), maps.Clone(r.Delivery)
	return out
}

// upstream tells whether every stage that the stage needs has passed.
func (r *Run) upstream(s *Stage) bool {
	for _, id := range s.Needs {
		if n := r.Stage(id); n == nil || n.State != Passed {
			return false
		}
	}
	return true
}

// downstream lists the stages that need the stage, directly or not, in the order
// of the policy.
func (r *Run) downstream(id string) []*Stage {
	below := map[string]bool{id: true}
	var out []*Stage
	for i := range r.Stages {
		s := &r.Stages[i]
		if slices.ContainsFunc(s.Needs, func(n string) bool { return below[n] }) {
			below[s.ID] = true
			out = append(out, s)
		}
	}
	return out
}

// developer finds the last stage whose role is to hand in work; nil when there
// is none.
func (r *Run) developer() *Stage {
	for i := len(r.Stages) - 1; i >= 0; i-- {
		if r.Stages[i].Role == policy.Developer {
			return &r.Stages[i]
		}
	}
	return nil
}

// tree is what the stages after the developer judge: the subject that the last
// producing stage handed in.
func (r *Run) tree() Subject {
	if s := r.developer(); s != nil && s.Attempt > 0 {
		return s.Subject
	}
	return Subject{}
}

// waiver finds an exception for a gate or a code that holds at the time.
func (r *Run) waiver(what, stage string, at time.Time) *Waiver {
	for i := range r.Waivers {
		w := &r.Waivers[i]
		if (w.Gate == what || w.Gate == "*") && (w.Stage == "" || w.Stage == stage) && w.Expires.After(at) && w.Void == "" {
			return w
		}
	}
	return nil
}

// Work is what the developer handed in last; zero before that.
func (r *Run) Work() Subject { return r.tree() }

// StageOf is the id of the last stage of a role; empty when there is none.
func (r *Run) StageOf(role policy.Role) string {
	for i := len(r.Stages) - 1; i >= 0; i-- {
		if r.Stages[i].Role == role {
			return r.Stages[i].ID
		}
	}
	return ""
}

// Approved is the merged tree that was measured for the pass of the last merge
// gate; empty when no stage has one.
func (r *Run) Approved() evidence.Tree {
	for i := len(r.Stages) - 1; i >= 0; i-- {
		s := &r.Stages[i]
		for _, g := range s.Gates {
			if x, ok := r.Policy.Gate(g); ok && x.Kind == policy.GateMerge && s.State == Passed {
				return s.Evidence[g].Merged
			}
		}
	}
	return ""
}
