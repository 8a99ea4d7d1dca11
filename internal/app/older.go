package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/view"
)

// older finds a certificate that is not the one shown for its behaviour, because
// a newer one is: with the symbol that it is about, as it is shown today. Nil
// when the word names no such certificate.
func (a *App) older(ctx context.Context, v *view.Start, word string) (*view.Symbol, *view.Certificate, error) {
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, nil, err
	}
	id, err := led.Resolve(ctx, word)
	if err != nil || id.What != string(ledger.KindCertificate) {
		return nil, nil, nil // whoever asked has said why the word names nothing
	}
	inv, err := a.invoke(ctx, StartOptions{StaticOnly: true, Limit: -1}, silent{})
	if err != nil {
		return nil, nil, err
	}
	defer inv.close()
	if err := inv.scan(ctx); err != nil {
		return nil, nil, err
	}
	for _, p := range inv.projects {
		for _, c := range p.certificates {
			k := p.known[c.Record.Facts.Symbol]
			if c.Digest != id.Digest || k == nil {
				continue
			}
			causes := p.lapses(c)
			out := certificateView(stored{Seq: c.Seq, Digest: c.Digest, Record: c.Record}, k.ranked.Name, causes, len(causes) == 0)
			if shown := orStored(k.live, k.stale); shown != nil && shown.Digest != c.Digest {
				out.Newer, out.NewerSeq = string(shown.Digest), shown.Seq
			}
			for i, s := range v.Symbols {
				if s.ID == out.Symbol {
					return &v.Symbols[i], &out, nil
				}
			}
		}
	}
	return nil, nil, nil
}

// newer notes at the certificates of a page of the ledger which later entry is a
// certificate of the same behaviour: the newest with the same probe, or of
// another tree.
func (a *App) newer(ctx context.Context, led *ledger.Ledger, page []view.LogEntry) error {
	oldest := int64(0)
	for _, e := range page {
		if e.Kind == string(ledger.KindCertificate) {
			oldest = e.Seq // newest first
		}
	}
	if oldest == 0 {
		return nil
	}
	entries, err := led.Entries(ctx, oldest, 0, ledger.KindCertificate)
	if err != nil {
		return err
	}
	records := map[int64]evidence.CertificateRecord{}
	bySymbol := map[string][]int64{}
	key := func(f evidence.Facts) string { return f.Language + "\n" + f.Project + "\n" + f.Symbol }
	for _, e := range entries {
		var r evidence.CertificateRecord
		if err := json.Unmarshal(e.Body, &r); err != nil {
			return fmt.Errorf("ledger entry %d: %w", e.Seq, err)
		}
		if r.Kind != evidence.KindDiscrimination {
			continue
		}
		records[e.Seq] = r
		bySymbol[key(r.Facts)] = append(bySymbol[key(r.Facts)], e.Seq)
	}
	for i, e := range page {
		r, ok := records[e.Seq]
		if !ok {
			continue
		}
		for _, seq := range bySymbol[key(r.Facts)] {
			n := records[seq]
			if seq > e.Seq && (n.Snapshot != r.Snapshot || slices.Contains(n.Facts.Probe.Digests(), r.Facts.Probe.Digest())) {
				page[i].Newer = seq
			}
		}
		if n := page[i].Newer; n > 0 {
			page[i].Summary += fmt.Sprintf("; a newer one is #%d", n)
		}
	}
	return nil
}
