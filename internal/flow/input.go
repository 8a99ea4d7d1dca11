package flow

import (
	"encoding/json"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/policy"
)

// input is the digest of everything that a verdict on a stage is about: change
// one and it is another verdict.
func (r *Run) input(s *Stage, attempt int, sub Subject, gates []evidence.Digest) evidence.Digest {
	type upstream struct {
		Stage   string          `json:"stage"`
		Attempt int             `json:"attempt"`
		Outcome evidence.Digest `json:"outcome_digest"`
	}
	in := struct {
		Run      string            `json:"run"`
		Stage    string            `json:"stage"`
		BaseTree evidence.Tree     `json:"base_tree,omitempty"`
		Plan     string            `json:"plan,omitempty"`
		Tree     evidence.Tree     `json:"tree,omitempty"`
		Note     evidence.Digest   `json:"note,omitempty"`
		Policy   evidence.Digest   `json:"policy"`
		Gates    []evidence.Digest `json:"gates,omitempty"`
		Upstream []upstream        `json:"upstream,omitempty"`
	}{
		Run: r.ID, Stage: s.ID, BaseTree: r.Base.Tree, Plan: sub.Plan, Tree: sub.Tree, Note: sub.Note, Policy: r.PolicyDigest, Gates: gates,
	}
	for _, id := range s.Needs {
		if n := r.Stage(id); n != nil {
			in.Upstream = append(in.Upstream, upstream{n.ID, n.Attempt, n.Outcome})
		}
	}
	return digestOf(in)
}

// InputOf is the digest of everything that a verdict on a stage would be about:
// what [Submitted.Input] says of an attempt that is handed in now.
func (r *Run) InputOf(stage string, attempt int, sub Subject, gates []evidence.Digest) evidence.Digest {
	s := r.Stage(stage)
	if s == nil {
		return ""
	}
	return r.input(s, attempt, sub, gates)
}

// OutcomeOf is the digest of what the current attempt stands on: what
// [PassedFact.Outcome] says of a pass now.
func (s *Stage) OutcomeOf() evidence.Digest { return s.outcome() }

// outcome is the digest of what a pass of the current attempt stands on.
func (s *Stage) outcome() evidence.Digest {
	type given struct {
		ID       string   `json:"id"`
		Decision Decision `json:"decision"`
	}
	out := struct {
		Stage    string            `json:"stage"`
		Attempt  int               `json:"attempt"`
		Input    evidence.Digest   `json:"input"`
		Evidence map[string]string `json:"evidence"`
		Waivers  map[string]string `json:"waivers"`
		Given    []given           `json:"given"`
		Subject  Subject           `json:"subject"`
	}{Stage: s.ID, Attempt: s.Attempt, Input: s.Input, Subject: s.Subject, Evidence: map[string]string{}, Waivers: map[string]string{}, Given: []given{}}
	for name, e := range s.Evidence {
		out.Evidence[name] = e.ID
		if e.Waiver != "" {
			out.Waivers[name] = e.Waiver
		}
	}
	for _, g := range s.Given {
		if !g.Withdrawn && g.Void == "" {
			out.Given = append(out.Given, given{g.ID, g.Decision})
		}
	}
	return digestOf(out)
}

// digestOf is over canonical JSON. What is put in are our own types with text
// that was checked when it came in.
func digestOf(v any) evidence.Digest {
	b, err := evidence.Canonical(v)
	if err != nil {
		panic(err)
	}
	return evidence.DigestOf(b)
}

// decodePolicy reads a resolved policy from the fact that pinned it.
func decodePolicy(body json.RawMessage) (policy.Policy, error) {
	var p policy.Policy
	if err := json.Unmarshal(body, &p); err != nil {
		return p, fault.Wrap(err, fault.Tampered, "ledger_broken", "the policy that the run is pinned to does not parse")
	}
	return p, nil
}
