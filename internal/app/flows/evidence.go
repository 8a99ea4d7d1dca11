package flows

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/view"
)

// EvidenceOptions select evidence of a run.
type EvidenceOptions struct {
	Run  string
	ID   string // one record, by its id or the beginning of it; empty: all
	Gate string // only of this gate
}

// Evidence lists what the gates of a run measured, or shows one record whole.
func (f *Flows) Evidence(ctx context.Context, o EvidenceOptions) (*view.FlowEvidence, error) {
	k, err := f.load(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	all, err := f.records(ctx, k)
	if err != nil {
		return nil, err
	}
	v := &view.FlowEvidence{Run: k.ID, Records: []view.FlowEvidenceRecord{}}
	if o.ID != "" {
		one, err := oneRecord(k.ID, all, o.ID)
		if err != nil {
			return nil, err
		}
		v.Records = append(v.Records, one)
		return v, nil
	}
	for _, r := range all {
		if o.Gate == "" || o.Gate == r.Gate {
			r.Evidence = nil
			v.Records = append(v.Records, r)
		}
	}
	if len(v.Records) == 0 && o.Gate != "" {
		return nil, fault.New(fault.NotFound, flow.CodeNotFound, "run %s has no evidence of a gate %.60q", k.ID, o.Gate).Hint("proveto flow evidence %s", k.ID)
	}
	return v, nil
}

// records are all measurements of a run, oldest first.
func (f *Flows) records(ctx context.Context, k known) ([]view.FlowEvidenceRecord, error) {
	var out []view.FlowEvidenceRecord
	err := f.app.Read(ctx, func(led *ledger.Ledger, tx *store.Tx) error {
		entries, err := led.RunEntriesIn(ctx, tx, k.ID, 0)
		if err != nil {
			return err
		}
		out, err = recordsOf(k, entries)
		return err
	})
	return out, err
}

func recordsOf(k known, entries []ledger.Entry) ([]view.FlowEvidenceRecord, error) {
	var out []view.FlowEvidenceRecord
	probes := map[evidence.Digest]view.FlowProbe{}
	for _, e := range entries {
		switch flow.Kind(e.Kind) {
		case flow.KindProbed:
			var p flow.Probed
			if err := json.Unmarshal(e.Body, &p); err != nil {
				return nil, fault.Wrap(err, fault.Tampered, "ledger_broken", "ledger entry %d is no %s", e.Seq, e.Kind)
			}
			v := view.FlowProbe{State: "accepted", Certificate: string(p.Certificate), Seq: e.Seq, Reason: p.Reason}
			if p.Refused {
				v.State = "refused"
			}
			probes[p.GateDigest] = v
		case flow.KindMeasured:
			var m struct {
				flow.Measured
				Evidence json.RawMessage `json:"evidence"`
			}
			var x gate.Evidence
			err := json.Unmarshal(e.Body, &m)
			if err == nil {
				err = json.Unmarshal(m.Evidence, &x)
			}
			if err != nil {
				return nil, fault.Wrap(err, fault.Tampered, "ledger_broken", "ledger entry %d is no %s", e.Seq, e.Kind)
			}
			r := view.FlowEvidenceRecord{
				ID: x.ID, Seq: e.Seq, At: m.At, Stage: m.Stage, Attempt: m.Attempt, Gate: m.Gate, Outcome: string(x.Outcome), Code: string(x.Code), Reason: x.Reason,
				Tree: string(x.Subject.Tree), Probe: probeOf(k, m.Gate, x, probes), Evidence: m.Evidence,
			}
			r.Waived, r.Current = waivedBy(k, e.Seq, m.Stage, m.Gate)
			out = append(out, r)
		}
	}
	return out, nil
}

// probeOf says what the gate did with its probe before it said this.
func probeOf(k known, name string, x gate.Evidence, probes map[evidence.Digest]view.FlowProbe) view.FlowProbe {
	if p, ok := probes[x.GateDigest]; ok {
		return p
	}
	if x.Probe != "" {
		return view.FlowProbe{State: "refused", Certificate: string(x.Probe)}
	}
	if g, ok := k.Policy.Gate(name); ok && g.Kind == policy.GateProve {
		return view.FlowProbe{State: "itself"}
	}
	return view.FlowProbe{State: "none"}
}

// waivedBy finds the waiver by which a record counts, and whether it is of the
// current attempt.
func waivedBy(k known, seq int64, stage, name string) (waiver string, current bool) {
	s := k.Stage(stage)
	if s == nil {
		return "", false
	}
	if e, ok := s.Evidence[name]; ok && e.Seq == seq {
		return e.Waiver, true
	}
	for _, p := range s.Past {
		if e, ok := p.Evidence[name]; ok && e.Seq == seq {
			return e.Waiver, false
		}
	}
	return "", false
}

// oneRecord finds a record by its id or the beginning of it.
func oneRecord(run string, all []view.FlowEvidenceRecord, word string) (view.FlowEvidenceRecord, error) {
	hex := strings.TrimPrefix(word, gate.IDPrefix)
	if len(hex) < 6 || len(hex) > 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return view.FlowEvidenceRecord{}, fault.New(fault.Usage, "bad_id", "%.80q is no id of evidence: want ev_ and 64 hexadecimal digits, or the first six or more", word).
			Hint("proveto flow evidence %s", run)
	}
	var found []view.FlowEvidenceRecord
	for _, r := range slices.Backward(all) { // of a record that is repeated the newest
		if strings.HasPrefix(r.ID, gate.IDPrefix+hex) && !slices.ContainsFunc(found, func(x view.FlowEvidenceRecord) bool { return x.ID == r.ID }) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return view.FlowEvidenceRecord{}, fault.New(fault.NotFound, flow.CodeNotFound, "run %s has no evidence %.80s", run, word).Hint("proveto flow evidence %s", run)
	}
	e := fault.New(fault.Usage, "ambiguous_id", "%s may be %d records of evidence", word, len(found))
	for _, r := range found {
		e.Hint("%s", r.ID)
	}
	return view.FlowEvidenceRecord{}, e
}
