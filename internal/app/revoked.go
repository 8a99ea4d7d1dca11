package app

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/ledger"
)

// kindRerun is the kind of entry that says that a certificate did not hold when
// its runs were made again.
const kindRerun ledger.Kind = "rerun"

// codeRerunDiffers is why such a certificate is stale.
const codeRerunDiffers = "rerun_differs"

// rerunBody is the body of such an entry.
type rerunBody struct {
	Schema      string          `json:"schema"`
	Certificate evidence.Digest `json:"certificate"`
	Code        string          `json:"code"`
	Text        string          `json:"text"`
}

func rerunDraft(certificate evidence.Digest, code, text string) (ledger.Draft, error) {
	return ledger.NewDraft(kindRerun, rerunBody{Schema: "proveto/rerun/v1", Certificate: certificate, Code: code, Text: text})
}

// revoked maps certificates to why a rerun did not agree.
func (a *App) revoked(ctx context.Context) (map[evidence.Digest]string, error) {
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := led.Entries(ctx, 1, 0, kindRerun)
	if err != nil {
		return nil, err
	}
	out := map[evidence.Digest]string{}
	for _, e := range entries {
		var b rerunBody
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return nil, fmt.Errorf("ledger entry %d: %w", e.Seq, err)
		}
		out[b.Certificate] = "a rerun did not agree: " + b.Text
	}
	return out, nil
}
