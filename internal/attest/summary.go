package attest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/ledger"
)

// Summary is a run as its entries leave it.
type Summary struct {
	Run        string      `json:"run"`
	Task       string      `json:"task"`
	Project    string      `json:"project"`
	Status     string      `json:"status"` // approved or delivered
	Base       flow.Base   `json:"base"`
	Target     string      `json:"target,omitempty"`
	Policy     Policy      `json:"policy"`
	Evidence   string      `json:"evidence,omitempty"` // said when the policy asks for none
	Principals Principals  `json:"principals"`
	Plan       *Plan       `json:"plan"`
	Trees      Trees       `json:"trees"`
	Stages     []Stage     `json:"stages"`
	Approvals  Approvals   `json:"approvals"`
	Waivers    []Waiver    `json:"waivers"`
	Unplanned  *Unplanned  `json:"unplanned"`
	Separation []Separated `json:"separation"`
	Isolation  []Isolation `json:"isolation"` // of the runs of the evidence, weakest first; none: nothing ran
	Refused    []Refused   `json:"refused"`
	Findings   Findings    `json:"findings"`
	Claims     int         `json:"claims"` // that were recorded and counted for nothing
	Delivery   *Delivery   `json:"delivery"`
	Entries    int         `json:"entries"` // that all of this follows from
}

// Principals says whom the run was pinned to.
type Principals struct {
	Digest   evidence.Digest `json:"digest"`
	Enforced bool            `json:"enforced"`       // the base names principals
	Note     string          `json:"note,omitempty"` // said when it does not
}

// Plan is the contract that binds.
type Plan struct {
	ID           string        `json:"id"`
	Revision     int           `json:"revision"`
	Requirements []Requirement `json:"requirements"`
}

// Requirement is a requirement as it was measured.
type Requirement struct {
	ID           string            `json:"id"`
	Text         string            `json:"text"`
	State        evidence.Word     `json:"state"`
	Reason       string            `json:"reason,omitempty"`
	Certificates []evidence.Digest `json:"certificates"`
}

// Trees tells what was measured from what was approved: they differ when the
// target moved.
type Trees struct {
	Work     evidence.Tree `json:"work,omitempty"`
	Approved evidence.Tree `json:"approved,omitempty"`
}

// Stage is a stage with all its attempts, oldest first.
type Stage struct {
	ID       string    `json:"id"`
	Role     string    `json:"role"`
	State    string    `json:"state"`
	Attempts []Attempt `json:"attempts"`
}

// Attempt is one attempt at a stage.
type Attempt struct {
	N         int             `json:"n"`
	Current   bool            `json:"current"`
	State     string          `json:"state"`
	Input     evidence.Digest `json:"input"`
	Subject   flow.Subject    `json:"subject"`
	Producer  *flow.Actor     `json:"producer,omitempty"` // of the current attempt
	Carried   *Carried        `json:"carried,omitempty"`
	Gates     []Gate          `json:"gates"`
	Decisions []Decision      `json:"decisions"`
}

// Carried says by which rule a pass stands, and on which attempt.
type Carried struct {
	Rule string `json:"rule"`
	From int    `json:"from"`
}

// Gate is the outcome of a gate, with what it counted.
type Gate struct {
	Gate         string             `json:"gate"`
	Outcome      gate.Outcome       `json:"outcome"`
	Code         fault.Code         `json:"code,omitempty"`
	Reason       string             `json:"reason,omitempty"`
	Evidence     string             `json:"evidence"` // id
	Waiver       string             `json:"waiver,omitempty"`
	Tree         evidence.Tree      `json:"tree,omitempty"`
	Merged       evidence.Tree      `json:"merged_tree,omitempty"`
	Tests        *gate.Counts       `json:"tests,omitempty"`
	Metrics      map[string]float64 `json:"metrics"`
	Runs         int                `json:"runs"`
	Certificates []evidence.Digest  `json:"certificates"`
	Probe        evidence.Digest    `json:"probe_certificate,omitempty"`
	Isolation    evidence.Level     `json:"isolation,omitempty"`
	Network      evidence.Network   `json:"network,omitempty"`
}

// Decision is a signed judgement, with what was signed.
type Decision struct {
	ID        string          `json:"id"`
	Principal string          `json:"principal"`
	Kind      string          `json:"kind"` // human, agent, service
	Operator  string          `json:"operator,omitempty"`
	Model     string          `json:"model,omitempty"`
	Key       string          `json:"key"` // SHA256:…
	Decision  flow.Decision   `json:"decision"`
	Input     evidence.Digest `json:"input"`
	At        time.Time       `json:"at"`
	Seq       int64           `json:"seq"`
	Withdrawn bool            `json:"withdrawn,omitempty"`
	Void      string          `json:"void,omitempty"`
	Signed    *flow.Signature `json:"signed"`
}

// Approvals are who approves what the stages after the developer stand on, each
// principal once. An agent is never one of the humans.
type Approvals struct {
	Humans      []string `json:"humans"`
	Independent []string `json:"independent_humans"` // who handed in nothing in this run
	Agents      []string `json:"agents"`
}

// Waiver is a signed exception.
type Waiver struct {
	ID      string    `json:"id"`
	Gate    string    `json:"gate"`
	Stage   string    `json:"stage,omitempty"`
	Paths   []string  `json:"paths,omitempty"`
	Reason  string    `json:"reason"`
	By      string    `json:"by"`
	Key     string    `json:"key"`
	Expires time.Time `json:"expires"`
	Used    bool      `json:"used"`
}

// Unplanned says that work went ahead without the token of the plan.
type Unplanned struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	Waiver string `json:"waiver,omitempty"`
}

// Separated is how a rule of separation stands.
type Separated struct {
	Rule  string `json:"rule"`
	State string `json:"state"` // holds, violated, not_enforced
	Note  string `json:"note,omitempty"`
}

// Isolation counts outcomes of gates by what their runs were kept in.
type Isolation struct {
	Level   evidence.Level   `json:"level"`
	Network evidence.Network `json:"network"`
	Gates   int              `json:"gates"`
}

// Refused is a request that was refused.
type Refused struct {
	Seq     int64      `json:"seq"`
	Verb    string     `json:"verb"`
	Code    fault.Code `json:"code"`
	Stage   string     `json:"stage,omitempty"`
	By      string     `json:"by"` // principal whose key it was
	Claimed string     `json:"claimed_actor,omitempty"`
	Count   int        `json:"count"`
}

// Findings counts what was found.
type Findings struct {
	Total  int `json:"total"`
	Closed int `json:"closed"`
	Waived int `json:"waived"`
}

// Delivery is where the approved tree stands.
type Delivery struct {
	Commit string        `json:"commit"`
	Tree   evidence.Tree `json:"tree"`
	Ref    string        `json:"ref"`
	Old    string        `json:"old"`
}

// NoEvidence is said of a run whose policy asks for none.
func NoEvidence(policy string) string {
	return fmt.Sprintf("evidence: none required by policy %q", policy)
}

// summarise says what the entries made of the run.
func summarise(r *flow.Run, entries []ledger.Entry, word flow.Status) (Summary, error) {
	s := Summary{
		Run: r.ID, Task: r.Task, Project: r.Project, Status: string(word), Base: r.Base, Target: r.Target,
		Policy:     Policy{r.Policy.Name, map[string]string{"sha256": r.PolicyDigest.Hex()}},
		Principals: Principals{Digest: r.RosterDigest, Enforced: r.Enforced}, Trees: Trees{Work: r.Work().Tree, Approved: tree(r)},
		Stages: []Stage{}, Waivers: []Waiver{}, Separation: []Separated{}, Isolation: []Isolation{}, Refused: []Refused{}, Claims: r.Claims,
		Approvals: approvals(r), Entries: len(entries),
	}
	if !r.Enforced {
		s.Principals.Note = flow.NotEnforced
	}
	if !gated(r) {
		s.Evidence = NoEvidence(r.Policy.Name)
	}
	if p := r.Plan; p != nil {
		s.Plan = &Plan{ID: p.ID, Revision: p.Revision, Requirements: []Requirement{}}
		for _, q := range r.Requirements() {
			s.Plan.Requirements = append(s.Plan.Requirements, Requirement{q.ID, q.Text, q.State, q.Reason, list(q.Certificates)})
		}
	}
	for i := range r.Stages {
		s.Stages = append(s.Stages, stage(r, &r.Stages[i]))
	}
	for _, w := range r.Waivers {
		s.Waivers = append(s.Waivers, Waiver{w.ID, w.Gate, w.Stage, w.Paths, w.Reason, w.By.Principal, w.By.Key, w.Expires, w.Used})
	}
	if u := r.Unplanned; u != nil {
		s.Unplanned = &Unplanned{u.By.Principal, u.Reason, u.Waiver}
	}
	for _, x := range r.Separated() {
		s.Separation = append(s.Separation, Separated(x))
	}
	for _, x := range r.Findings {
		s.Findings.Total++
		switch x.State {
		case flow.FindingSettled:
			s.Findings.Closed++
		case flow.FindingWaived:
			s.Findings.Waived++
		}
	}
	if d := r.Delivered; d != nil {
		s.Delivery = &Delivery{d.Commit, d.Tree, d.Ref, d.Old}
	}
	s.Isolation = isolation(s.Stages)
	var err error
	s.Refused, err = refused(entries)
	return s, err
}

// gated tells a policy under which something is measured.
func gated(r *flow.Run) bool {
	return slices.ContainsFunc(r.Stages, func(s flow.Stage) bool { return len(s.Gates) > 0 })
}

func stage(r *flow.Run, s *flow.Stage) Stage {
	out := Stage{ID: s.ID, Role: string(s.Role), State: string(s.State), Attempts: []Attempt{}}
	for _, p := range s.Past {
		if p.N != s.Attempt {
			out.Attempts = append(out.Attempts, attempt(s, p))
		}
	}
	if s.Attempt == 0 {
		return out
	}
	now := attempt(s, flow.Attempt{N: s.Attempt, State: s.State, Input: s.Input, Subject: s.Subject, Given: s.Given, Evidence: s.Evidence, Carried: s.Carried})
	now.Current, now.Producer = true, &s.Producer
	out.Attempts = append(out.Attempts, now)
	return out
}

func attempt(s *flow.Stage, a flow.Attempt) Attempt {
	out := Attempt{N: a.N, State: string(a.State), Input: a.Input, Subject: a.Subject, Gates: []Gate{}, Decisions: []Decision{}}
	if c := a.Carried; c != nil {
		out.Carried = &Carried{c.Rule, c.From}
	}
	for _, name := range s.Gates {
		if e, ok := a.Evidence[name]; ok {
			out.Gates = append(out.Gates, outcome(name, e))
		}
	}
	for _, g := range a.Given {
		out.Decisions = append(out.Decisions, Decision{
			ID: g.ID, Principal: g.Actor.Principal, Kind: g.Actor.Kind, Operator: g.Actor.Operator, Model: g.Actor.Model, Key: g.Actor.Key,
			Decision: g.Decision, Input: g.Input, At: g.At, Seq: g.Seq, Withdrawn: g.Withdrawn, Void: g.Void, Signed: g.Signed,
		})
	}
	return out
}

func outcome(name string, e flow.Evidence) Gate {
	g := Gate{
		Gate: name, Outcome: e.Outcome, Code: e.Code, Reason: e.Reason, Evidence: e.ID, Waiver: e.Waiver, Tree: e.Subject.Tree, Merged: e.Merged,
		Tests: e.Tests, Metrics: e.Metrics, Runs: len(e.Runs), Certificates: list(e.Certificates), Probe: e.Probe, Isolation: e.Isolation, Network: e.Network,
	}
	if g.Metrics == nil {
		g.Metrics = map[string]float64{}
	}
	return g
}

// list is never null.
func list[T any](in []T) []T { return append([]T{}, in...) }

// approvals collects who stands behind the judging stages.
func approvals(r *flow.Run) Approvals {
	out := Approvals{Humans: []string{}, Independent: []string{}, Agents: []string{}}
	for i := range r.Stages {
		s := &r.Stages[i]
		if policy.Produces(s.Stage) {
			continue
		}
		for _, g := range s.Standing() {
			who := g.Actor.Principal
			if g.Actor.Kind != "human" {
				out.Agents = append(out.Agents, who)
				continue
			}
			out.Humans = append(out.Humans, who)
			if !produced(r, who) {
				out.Independent = append(out.Independent, who)
			}
		}
	}
	for _, l := range []*[]string{&out.Humans, &out.Independent, &out.Agents} {
		slices.Sort(*l)
		*l = slices.Compact(*l)
	}
	return out
}

// produced tells who handed in a plan or work, or let an agent of theirs do it.
func produced(r *flow.Run, who string) bool {
	return slices.ContainsFunc(r.Stages, func(s flow.Stage) bool {
		return policy.Produces(s.Stage) && slices.ContainsFunc(s.Producers, func(a flow.Actor) bool { return a.Principal == who || a.Operator == who })
	})
}

// levels are from the weakest.
var levels = []evidence.Level{evidence.LimitsOnly, evidence.Landlock, evidence.Namespaces}

func isolation(stages []Stage) []Isolation {
	out := []Isolation{}
	for _, s := range stages {
		for _, a := range s.Attempts {
			for _, g := range a.Gates {
				if !a.Current || g.Isolation == "" {
					continue
				}
				i := slices.IndexFunc(out, func(x Isolation) bool { return x.Level == g.Isolation && x.Network == g.Network })
				if i < 0 {
					i, out = len(out), append(out, Isolation{Level: g.Isolation, Network: g.Network})
				}
				out[i].Gates++
			}
		}
	}
	slices.SortFunc(out, func(a, b Isolation) int {
		if a.Level != b.Level {
			return slices.Index(levels, a.Level) - slices.Index(levels, b.Level)
		}
		return strings.Compare(string(a.Network), string(b.Network))
	})
	return out
}

func refused(entries []ledger.Entry) ([]Refused, error) {
	out := []Refused{}
	for _, e := range entries {
		if e.Kind != ledger.Kind(flow.KindRefused) {
			continue
		}
		var f flow.Refused
		if err := json.Unmarshal(e.Body, &f); err != nil {
			return nil, bad("entry %d is no refusal", e.Seq)
		}
		out = append(out, Refused{Seq: e.Seq, Verb: f.Verb, Code: f.Code, Stage: f.Stage, By: f.Actor.Principal, Claimed: f.Claim, Count: max(1, f.Count)})
	}
	return out, nil
}
