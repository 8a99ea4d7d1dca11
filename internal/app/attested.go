package app

import (
	"context"
	"fmt"

	"github.com/proveto/proveto/internal/attest"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/view"
)

// verifyAttestation checks the attestation of a run of a flow: offline, every
// byte of it.
func verifyAttestation(ctx context.Context, file []byte, o VerifyOptions) (*view.Verified, error) {
	if o.Rerun {
		return nil, fault.New(fault.Usage, "usage", "%s is the attestation of a run of a flow; --rerun is for certificates", o.Target).
			Hint("proveto flow replay RUN").Hint("proveto verify %s", quoteArg(o.Target))
	}
	a, err := attest.Open(ctx, file, o.VerifierKey)
	if err != nil {
		return nil, fault.From(err).Hint("have it made again where the run is: proveto flow attest RUN -o FILE")
	}
	s := a.Summary
	v := &view.Verified{
		Kind: "flow_run", ID: s.Run, Sound: true, Signed: true, Signer: a.Signer, Trusted: o.VerifierKey != "",
		Text: fmt.Sprintf("the signatures are good, and the %d entries inside derive this: run %s is %s", s.Entries, s.Run, s.Status),
	}
	f := &view.FlowVerified{
		Run: s.Run, Task: s.Task, Status: s.Status, Policy: s.Policy.Name, Evidence: s.Evidence, Created: a.Created, Ledger: a.Ledger,
		Head: view.Head{Seq: a.Head.Seq, Root: string(a.Head.Root)}, Subject: AttestedSubjects(a), Properties: append([]string{}, a.Properties...),
		Approvals: AttestedApprovals(a), Decisions: []view.VerifiedDecision{}, Waivers: []view.FlowWaiver{}, Separation: []view.FlowSeparation{},
		Enforced: s.Principals.Enforced, Refused: []view.VerifiedRefusal{}, Entries: s.Entries,
	}
	for _, st := range s.Stages {
		for _, n := range st.Attempts {
			for _, d := range n.Decisions {
				f.Decisions = append(f.Decisions, view.VerifiedDecision{
					ID: d.ID, Stage: st.ID, Attempt: n.N, Principal: d.Principal, Kind: d.Kind, Key: d.Key, Decision: string(d.Decision),
					Tree: string(n.Subject.Tree), At: d.At, Withdrawn: d.Withdrawn, Void: d.Void,
				})
			}
		}
	}
	for _, w := range s.Waivers {
		f.Waivers = append(f.Waivers, view.FlowWaiver{ID: w.ID, Gate: w.Gate, Stage: w.Stage, Reason: w.Reason, By: w.By, Expires: w.Expires, Used: w.Used})
	}
	if u := s.Unplanned; u != nil {
		f.Unplanned = &view.FlowUnplanned{By: u.By, Reason: u.Reason, Waiver: u.Waiver}
	}
	for _, x := range s.Separation {
		f.Separation = append(f.Separation, view.FlowSeparation{Rule: x.Rule, State: x.State, Note: x.Note})
	}
	for _, x := range s.Refused {
		f.Refused = append(f.Refused, view.VerifiedRefusal{Seq: x.Seq, Verb: x.Verb, Code: string(x.Code), Stage: x.Stage, By: x.By, Count: x.Count})
	}
	v.Run = f
	return v, nil
}

// AttestedSubjects are the subjects of an attestation, to be shown.
func AttestedSubjects(a attest.Attestation) []view.AttestedSubject {
	out := []view.AttestedSubject{}
	for _, s := range a.Subject {
		out = append(out, view.AttestedSubject{Name: s.Name, Digest: s.Digest})
	}
	return out
}

// AttestedApprovals are the approvals of an attestation, to be shown.
func AttestedApprovals(a attest.Attestation) view.AttestedApprovals {
	return view.AttestedApprovals(a.Summary.Approvals)
}
