package flows

import (
	"bytes"
	"encoding/json"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
)

// Derive derives a run from all its entries, as ledger verify does: the fold must
// give what the last entry says, which is what lists show, and every signature
// must hold, be by a key of the principal who acts, at that time, and say what its
// entry says. An error is tampered: projection_differs or signature_bad.
func Derive(ledgerID, run string, entries []ledger.Entry) error {
	d := derivation{ledgerID: ledgerID, nonces: map[string]bool{}}
	for i, e := range facts(entries) {
		if err := d.run.Apply(e, token); err != nil {
			return err
		}
		if err := d.signed(e); err != nil {
			return fault.New(fault.Tampered, ledger.CodeSignatureBad, "ledger entry %d: %s", entries[i].Seq, err)
		}
	}
	if len(entries) == 0 || d.run.ID != run {
		return fault.New(fault.Tampered, ledger.CodeProjection, "the entries are of run %.60q", d.run.ID)
	}
	last := entries[len(entries)-1]
	var said flow.Head
	if err := json.Unmarshal(last.Body, &said); err != nil {
		return err
	}
	want, err := evidence.Canonical(d.run.After())
	if err != nil {
		return err
	}
	have, err := evidence.Canonical(said.After)
	if err != nil {
		return err
	}
	if !bytes.Equal(want, have) {
		return fault.New(fault.Tampered, ledger.CodeProjection, "ledger entry %d says that the run is %s, and its entries fold to %s", last.Seq, have, want)
	}
	return nil
}

// derivation is a run as it is derived, entry by entry.
type derivation struct {
	ledgerID string
	run      flow.Run
	roster   identity.Roster
	of       evidence.Digest // of the roster
	nonces   map[string]bool // of decisions so far
}

// signed checks the signature of an entry that has one, or should.
func (d *derivation) signed(e flow.Entry) error {
	var x flow.Fact
	needed := false
	switch e.Kind {
	case flow.KindDecided:
		x, needed = &flow.Decided{}, true
	case flow.KindWaived:
		x, needed = &flow.Waived{}, true
	case flow.KindSubmitted:
		x = &flow.Submitted{}
	case flow.KindPlanSubmitted:
		x = &flow.PlanSubmitted{}
	default:
		return nil
	}
	var h flow.Head
	if err := json.Unmarshal(e.Body, x); err != nil {
		return err
	}
	if err := json.Unmarshal(e.Body, &h); err != nil {
		return err
	}
	s := signedBy(x)
	if s == nil {
		if needed {
			return fault.New(fault.Tampered, ledger.CodeSignatureBad, "it has no signature")
		}
		return nil
	}
	if d.of != d.run.RosterDigest || d.of == "" {
		var err error
		if d.roster, err = rosterOf(d.run); err != nil {
			return err
		}
		d.of = d.run.RosterDigest
	}
	// What was revoked later held then; the rules, not the record, say what it is
	// worth now. The run is known by its id alone: nonces are looked at here.
	b := belief{roster: d.roster, at: h.At}
	if err := b.vouch(known{Run: flow.Run{ID: d.run.ID}}, d.ledgerID, h.Actor, x, s); err != nil {
		return err
	}
	if e.Kind != flow.KindDecided {
		return nil
	}
	var t said
	if err := json.Unmarshal(s.Statement, &t); err != nil {
		return err
	}
	if d.nonces[t.Nonce] {
		return fault.New(fault.Tampered, ledger.CodeSignatureBad, "its statement was recorded before")
	}
	d.nonces[t.Nonce] = true
	return nil
}
