package flows

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
)

// revocation is the body of such an entry.
type revocation struct {
	Schema string     `json:"schema"`
	Actor  flow.Actor `json:"actor"`
	identity.Revocation
}

// revocations are in force for every run of this ledger.
func revocations(ctx context.Context, led *ledger.Ledger, tx *store.Tx) (identity.Revocations, error) {
	entries, err := led.RunEntriesIn(ctx, tx, "", 0)
	if err != nil {
		return nil, err
	}
	var out identity.Revocations
	for _, e := range entries {
		if e.Kind != ledger.KindPrincipalRevoked {
			continue
		}
		var b revocation
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return nil, fmt.Errorf("ledger entry %d: %w", e.Seq, err)
		}
		out = append(out, b.Revocation)
	}
	return out, nil
}

// revocations reads them in a transaction of its own.
func (f *Flows) revocations(ctx context.Context) (out identity.Revocations, err error) {
	err = f.app.Read(ctx, func(led *ledger.Ledger, tx *store.Tx) error {
		out, err = revocations(ctx, led, tx)
		return err
	})
	return out, err
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
	revoked, err := f.revocations(ctx)
	if err != nil {
		return "", err
	}
	who, err := f.caller(ctx, g.roster, revoked, Request{}, f.app.Now())
	return who.Principal, err
}
