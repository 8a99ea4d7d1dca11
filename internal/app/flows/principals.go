package flows

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
)

// kindRevoked is the kind of the entry that revokes a principal or a key, for
// all runs.
const kindRevoked ledger.Kind = "principal.revoked"

// revocation is the body of such an entry.
type revocation struct {
	Schema string     `json:"schema"`
	Actor  flow.Actor `json:"actor"`
	identity.Revocation
}

// revocations are in force for every run of this ledger.
func (f *Flows) revocations(ctx context.Context) (identity.Revocations, error) {
	led, err := f.app.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := led.Entries(ctx, 1, 0, kindRevoked)
	if err != nil {
		return nil, err
	}
	var out identity.Revocations
	for _, e := range entries {
		var b revocation
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return nil, fmt.Errorf("ledger entry %d: %w", e.Seq, err)
		}
		out = append(out, b.Revocation)
	}
	return out, nil
}

// me is the principal whose key is here, in the repository of the working
// directory.
func (f *Flows) me(ctx context.Context) (string, error) {
	name := ""
	if !f.insideRepository() {
		name = "manual"
	}
	g, err := f.ground(ctx, name, "", "")
	if err != nil {
		return "", err
	}
	who, err := f.caller(ctx, g.roster, Request{}, f.app.Now())
	return who.Principal, err
}
