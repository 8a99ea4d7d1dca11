package ledger

import (
	"context"
	"math"
	"slices"

	"github.com/proveto/proveto/internal/store"
)

// lockstep compares the projections with the fold over the entries, both ways,
// while the entries stream by: no table is held in memory.
type lockstep struct {
	v            *verifier
	runs         cursor[store.RunRow]
	certificates cursor[store.CertificateRow]
	measurements cursor[store.MeasurementRow]
	probes       cursor[store.ProbeRow]
	starts       cursor[store.StartRow]
	flow         cursor[store.FlowEntryRow]
	seen         map[string]bool            // digests of which the first entry wins
	waivers      map[string]store.WaiverRow // of which the last one wins
	flows        map[string]store.FlowRunRow
}

func newLockstep(v *verifier) *lockstep {
	return &lockstep{
		v: v, seen: map[string]bool{}, waivers: map[string]store.WaiverRow{}, flows: map[string]store.FlowRunRow{},
		runs: cursor[store.RunRow]{
			what: "runs", seqFunc: func(r store.RunRow) int64 { return r.Seq },
			pageFunc: func(ctx context.Context, last store.RunRow) ([]store.RunRow, error) {
				return v.tx.Runs(ctx, last.Seq, pageSize)
			}, last: store.RunRow{Seq: math.MinInt64},
		},
		certificates: cursor[store.CertificateRow]{
			what: "certificates", seqFunc: func(r store.CertificateRow) int64 { return r.Seq },
			pageFunc: func(ctx context.Context, last store.CertificateRow) ([]store.CertificateRow, error) {
				return v.tx.Certificates(ctx, last.Seq, pageSize)
			}, last: store.CertificateRow{Seq: math.MinInt64},
		},
		measurements: cursor[store.MeasurementRow]{
			what: "measurements", seqFunc: func(r store.MeasurementRow) int64 { return r.Seq },
			pageFunc: func(ctx context.Context, last store.MeasurementRow) ([]store.MeasurementRow, error) {
				return v.tx.Measurements(ctx, last.Seq, pageSize)
			}, last: store.MeasurementRow{Seq: math.MinInt64},
		},
		probes: cursor[store.ProbeRow]{
			what: "probes", seqFunc: func(r store.ProbeRow) int64 { return r.Seq },
			pageFunc: func(ctx context.Context, last store.ProbeRow) ([]store.ProbeRow, error) {
				return v.tx.Probes(ctx, last.Seq, last.Digest, pageSize)
			}, last: store.ProbeRow{Seq: math.MinInt64},
		},
		starts: cursor[store.StartRow]{
			what: "starts", seqFunc: func(r store.StartRow) int64 { return r.Seq },
			pageFunc: func(ctx context.Context, last store.StartRow) ([]store.StartRow, error) {
				return v.tx.Starts(ctx, last.Seq, pageSize)
			}, last: store.StartRow{Seq: math.MinInt64},
		},
		flow: cursor[store.FlowEntryRow]{
			what: "flow_entries", seqFunc: func(r store.FlowEntryRow) int64 { return r.Seq },
			pageFunc: func(ctx context.Context, last store.FlowEntryRow) ([]store.FlowEntryRow, error) {
				return v.tx.FlowEntryRows(ctx, last.Seq, pageSize)
			}, last: store.FlowEntryRow{Seq: math.MinInt64},
		},
	}
}

// first tells whether this is the first entry of the digest, as ON CONFLICT DO
// NOTHING does. The table's name keeps the digests of tables apart.
func (p *lockstep) first(table, digest string) bool {
	k := table + digest
	if p.seen[k] {
		return false
	}
	p.seen[k] = true
	return true
}

func (p *lockstep) match(ctx context.Context, seq int64, rows store.Rows) error {
	rows.Runs = slices.DeleteFunc(rows.Runs, func(r store.RunRow) bool { return !p.first("r", r.Digest) })
	rows.Certificates = slices.DeleteFunc(rows.Certificates, func(r store.CertificateRow) bool { return !p.first("c", r.Digest) })
	rows.Probes = slices.DeleteFunc(rows.Probes, func(r store.ProbeRow) bool { return !p.first("p", r.Digest) })
	for _, w := range rows.Waivers {
		p.waivers[w.Probe] = w
	}
	for _, r := range rows.FlowOpened {
		p.flows[r.Run] = r
	}
	for _, r := range rows.FlowMoved {
		p.flows[r.Run] = p.flows[r.Run].Move(r)
	}
	for _, err := range []error{
		p.runs.match(ctx, p.v, seq, rows.Runs),
		p.certificates.match(ctx, p.v, seq, rows.Certificates),
		p.measurements.match(ctx, p.v, seq, rows.Measurements),
		p.probes.match(ctx, p.v, seq, rows.Probes),
		p.starts.match(ctx, p.v, seq, rows.Starts),
		p.flow.match(ctx, p.v, seq, rows.FlowEntries),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// end finds rows of no entry, and compares the tables of which the last entry
// wins.
func (p *lockstep) end(ctx context.Context) error {
	if err := p.match(ctx, math.MaxInt64, store.Rows{}); err != nil {
		return err
	}
	for after := int64(math.MinInt64); ; {
		rows, err := p.v.tx.Waivers(ctx, after, pageSize)
		if err != nil {
			return err
		}
		for _, r := range rows {
			after = r.Seq
			if p.waivers[r.Probe] != r {
				p.v.find(CodeProjection, r.Seq, "the row of waivers for probe %.80q is not what the entries derive", r.Probe)
			}
			delete(p.waivers, r.Probe)
		}
		if len(rows) < pageSize {
			break
		}
	}
	for _, w := range p.waivers {
		p.v.find(CodeProjection, w.Seq, "waivers lack the row of entry %d", w.Seq)
	}
	return p.endFlows(ctx)
}

// endFlows compares the rows of runs, the one that moved last first.
func (p *lockstep) endFlows(ctx context.Context) error {
	for f := (store.FlowRunFilter{Since: math.MinInt64, Limit: pageSize}); ; {
		rows, err := p.v.tx.FlowRuns(ctx, f)
		if err != nil {
			return err
		}
		for _, r := range rows {
			f.Before = r.LastSeq
			if want, ok := p.flows[r.Run]; !ok || want != r {
				p.v.find(CodeProjection, r.LastSeq, "the row of flow run %.40q is not what the entries derive", r.Run)
			}
			delete(p.flows, r.Run)
		}
		if len(rows) < pageSize || f.Before <= 0 { // no entry has such a number: the row is a finding
			break
		}
	}
	for _, r := range p.flows {
		p.v.find(CodeProjection, r.LastSeq, "flow_runs lack the row of run %s", r.Run)
	}
	return nil
}

// cursor streams a table in the order of its entries.
type cursor[R comparable] struct {
	what     string
	seqFunc  func(R) int64
	pageFunc func(ctx context.Context, last R) ([]R, error)
	last     R
	buf      []R
	done     bool
}

// match takes all rows up to the entry; they must be want.
func (c *cursor[R]) match(ctx context.Context, v *verifier, seq int64, want []R) error {
	var got []R
	for {
		if len(c.buf) == 0 && !c.done {
			rows, err := c.pageFunc(ctx, c.last)
			if err != nil {
				return err
			}
			c.buf, c.done = rows, len(rows) < pageSize
			if len(rows) > 0 {
				c.last = rows[len(rows)-1]
			}
		}
		if len(c.buf) == 0 || c.seqFunc(c.buf[0]) > seq {
			break
		}
		got = append(got, c.buf[0])
		c.buf = c.buf[1:]
	}
	if !slices.Equal(got, want) {
		at := seq
		if at == math.MaxInt64 {
			at = 0
		}
		v.find(CodeProjection, at, "%s: %d rows up to entry %d, and they are not the %d that the entries derive", c.what, len(got), at, len(want))
	}
	return nil
}
