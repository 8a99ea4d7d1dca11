package attest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
)

// Is tells whether a file looks like an attestation: whether its first line holds
// a statement of our type. Nothing is checked.
func Is(file []byte) bool {
	line, _, _ := bytes.Cut(file, []byte("\n"))
	payload, err := ledger.PeekStatement(line)
	if err != nil {
		return false
	}
	var st struct {
		PredicateType string `json:"predicateType"`
	}
	return json.Unmarshal(payload, &st) == nil && (st.PredicateType == PredicateType || st.PredicateType == ResultPredicateType)
}

// Open checks an attestation without any ledger. verifierKey is the key to trust;
// empty takes the one inside, which says only that the file is whole. Every byte
// counts: what does not hold, or was added, is tampered. A file that is too large
// is a usage error.
func Open(ctx context.Context, file []byte, verifierKey string) (a Attestation, err error) {
	defer func() { // a signer can put together a run that no engine makes
		if p := recover(); p != nil {
			a, err = Attestation{}, bad("its entries make no run: %.200s", fmt.Sprint(p))
		}
	}()
	if len(file) > MaxBytes {
		return a, fault.New(fault.Usage, "too_large", "an attestation has at most %d bytes", MaxBytes)
	}
	if !bytes.HasSuffix(file, []byte("\n")) {
		return a, bad("it does not end with a line")
	}
	lines := bytes.Split(file[:len(file)-1], []byte("\n"))
	if len(lines) > 2 {
		return a, bad("it has %d lines, and two are the most", len(lines))
	}
	st, payload, key, err := openRun(ctx, lines[0], verifierKey)
	if err != nil {
		return a, err
	}
	want, result, a, err := Make(st.Predicate.Ledger, st.Predicate.Created)
	if e := fault.From(err); e != nil && e.Kind != fault.Tampered {
		return a, bad("%s", e.Error()) // signed all the same
	}
	if err != nil {
		return a, err
	}
	if !bytes.Equal(want, payload) {
		return a, bad("its entries derive another summary")
	}
	if (result == nil) != (len(lines) == 1) {
		return a, bad("it has %d lines, and its entries derive another number of statements", len(lines))
	}
	if result != nil {
		got, err := ledger.OpenStatement(ctx, lines[1], key)
		if err != nil {
			return a, err
		}
		if !bytes.Equal(got, result) {
			return a, bad("its entries derive other properties")
		}
	}
	return a, nil
}

// openRun opens the first line, with the key of the ledger that it is about.
func openRun(ctx context.Context, line []byte, key string) (st Statement[Predicate], payload []byte, _ string, err error) {
	if payload, err = ledger.PeekStatement(line); err != nil {
		return st, nil, "", err
	}
	if err := json.Unmarshal(payload, &st); err != nil {
		return st, nil, "", fault.New(fault.Tampered, identity.CodeSignatureBad, "attestation: its statement does not parse")
	}
	x := st.Predicate.Ledger
	if key == "" {
		key = x.VerifierKey
	}
	if payload, err = ledger.OpenStatement(ctx, line, key); err != nil {
		return st, nil, "", err
	}
	_, name, err := identity.ParseVerifierKey(key)
	if err != nil {
		return st, nil, "", err
	}
	if x.VerifierKey != key || identity.NoteName(x.ID) != name {
		return st, nil, "", fault.New(fault.Tampered, identity.CodeSignatureBad, "attestation: it is about ledger %.40q, not the one of the key", x.ID)
	}
	canonical, err := evidence.Canonical(json.RawMessage(payload))
	if err != nil || !bytes.Equal(canonical, payload) {
		return st, nil, "", bad("its statement is not canonical JSON")
	}
	return st, payload, key, nil
}
