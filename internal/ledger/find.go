package ledger

import (
	"context"
	"errors"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

// LeafHash is the RFC 6962 leaf hash of the entry, in base64.
func (e Entry) LeafHash() string {
	if e.leaf != "" {
		return e.leaf
	}
	return leafOf(store.EntryRow{Seq: e.Seq, Time: e.Time.Format(timeFormat), Kind: string(e.Kind), Body: string(e.Body)}).String()
}

// SeqOf is the number of the entry that records what an id means; of a flow, its first one.
// A blob, which entries only cite, is not_found.
func (l *Ledger) SeqOf(ctx context.Context, r Ref) (seq int64, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) (err error) {
		switch r.What {
		case string(KindCertificate):
			seq, err = tx.CertificateSeq(ctx, string(r.Digest))
		case string(KindRun):
			seq, err = tx.RunSeq(ctx, string(r.Digest))
		case string(KindMeasurement):
			seq, err = tx.MeasurementSeq(ctx, string(r.Digest))
		case "probe":
			seq, err = tx.ProbeSeq(ctx, string(r.Digest))
		case "flow":
			var run store.FlowRunRow
			run, err = tx.FlowRun(ctx, r.ULID)
			seq = run.OpenedSeq
		default:
			err = store.ErrNoRow
		}
		return err
	})
	if errors.Is(err, store.ErrNoRow) {
		return 0, fault.New(fault.NotFound, CodeNotFound, "no entry records the %s %s", r.What, r)
	}
	return seq, err
}
