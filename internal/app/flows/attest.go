package flows

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/attest"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/view"
)

// Attest makes the attestation of an approved run, and records that it did. It
// gives back the file.
func (f *Flows) Attest(ctx context.Context, q Request) ([]byte, *view.FlowAttestation, error) {
	k, err := f.load(ctx, q.Run)
	if err != nil {
		return nil, nil, err
	}
	ev, _, err := f.event(ctx, k, q, "")
	ev.Do = flow.Attest{}
	if err != nil {
		return nil, nil, f.refused(ctx, q, k, ev, err)
	}
	file, a, err := f.attestation(ctx, k)
	if err != nil {
		return nil, nil, f.refused(ctx, q, k, ev, err)
	}
	d, err := f.change(ctx, q, k, func(known) (flow.Event, error) {
		ev.Do = flow.Attest{Envelope: evidence.DigestOf(file)}
		return ev, nil
	})
	if err != nil {
		return nil, nil, err
	}
	if t := a.Summary.Trees; t.Work != "" && t.Work != t.Approved {
		f.app.Warn("not_claimed", fmt.Sprintf("the approved tree %.12s is the work %.12s merged with a target that moved: what was measured on the work alone is not claimed for it; proveto flow rebase, before delivery, measures all of it again", t.Approved, t.Work))
	}
	v := &view.FlowAttestation{
		RunID: d.ID, RunStatus: a.Summary.Status, Digest: string(evidence.DigestOf(file)), Properties: append([]string{}, a.Properties...), Evidence: a.Summary.Evidence,
		Subject: app.AttestedSubjects(a), Approvals: app.AttestedApprovals(a), Envelopes: []json.RawMessage{},
	}
	for _, line := range bytes.Split(bytes.TrimSpace(file), []byte("\n")) {
		v.Envelopes = append(v.Envelopes, line)
	}
	v.Text = fmt.Sprintf("run %s is attested, with %d properties", d.ID, len(v.Properties))
	if v.Evidence != "" {
		v.Text = fmt.Sprintf("run %s is attested; %s", d.ID, v.Evidence)
	}
	return file, v, nil
}

// attestation makes the file, and opens it as another machine will.
func (f *Flows) attestation(ctx context.Context, k known) (file []byte, a attest.Attestation, err error) {
	var x ledger.ExportedEntries
	var sign attest.SignFunc
	err = f.app.Read(ctx, func(led *ledger.Ledger, tx *store.Tx) error {
		entries, err := led.RunEntriesIn(ctx, tx, k.ID, 0)
		if err != nil {
			return err
		}
		sign = led.Sign
		x, err = led.ExportEntriesIn(ctx, tx, entries)
		return err
	})
	if err != nil {
		return nil, a, err
	}
	if file, a, err = attest.File(ctx, x, f.app.Now(), sign); err != nil {
		return nil, a, err
	}
	_, err = attest.Open(ctx, file, x.VerifierKey)
	return file, a, err
}
