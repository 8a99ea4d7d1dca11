package ledger

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

const pageSize = 500

// Entries lists the entries with from <= seq <= to, of one kind unless kind is
// empty. A to of 0 is the head.
func (l *Ledger) Entries(ctx context.Context, from, to int64, kind Kind) ([]Entry, error) {
	if to == 0 {
		to = math.MaxInt64
	}
	var out []Entry
	err := l.db.Read(ctx, func(tx *store.Tx) error {
		out = nil
		return eachEntry(ctx, tx, from, to, kind, func(e Entry) error {
			out = append(out, e)
			return nil
		})
	})
	return out, err
}

// eachEntry calls fn for the entries with from <= seq <= to, in order, of one
// kind unless kind is empty. It reads a page at a time and checks each entry
// against its own leaf hash.
func eachEntry(ctx context.Context, tx *store.Tx, from, to int64, kind Kind, fn func(Entry) error) error {
	for after := from - 1; ; {
		rows, err := tx.Entries(ctx, string(kind), after, to, pageSize)
		if err != nil {
			return err
		}
		for _, r := range rows {
			e, err := entryOf(r)
			if err != nil {
				return err
			}
			if err := fn(e); err != nil {
				return err
			}
			after = r.Seq
		}
		if len(rows) < pageSize {
			return nil
		}
	}
}

// entryAt reads the entry that a projection names and checks that it is the
// object with the digest.
func entryAt(ctx context.Context, tx *store.Tx, seq int64, kind Kind, want evidence.Digest) (Entry, error) {
	row, err := tx.Entry(ctx, seq)
	if errors.Is(err, store.ErrNoRow) {
		return Entry{}, differs("%s %s is projected from entry %d, which is not there", kind, want.Short(), seq)
	}
	if err != nil {
		return Entry{}, err
	}
	e, err := entryOf(row)
	if err != nil {
		return Entry{}, err
	}
	if e.Kind != kind || evidence.DigestOf(e.Body) != want {
		return Entry{}, differs("%s %s is projected from entry %d, which is something else", kind, want.Short(), seq)
	}
	return e, nil
}

func differs(what string, args ...any) *fault.Error {
	return fault.New(fault.Tampered, CodeProjection, what, args...).Hint("proveto ledger verify")
}

// find reads the entry of an object by its digest; seqFunc looks the projection
// up. An unknown digest is not_found.
func find(ctx context.Context, tx *store.Tx, kind Kind, d evidence.Digest, seqFunc func(context.Context, string) (int64, error)) (Entry, error) {
	if _, err := evidence.ParseDigest(string(d)); err != nil {
		return Entry{}, err
	}
	seq, err := seqFunc(ctx, string(d))
	if errors.Is(err, store.ErrNoRow) {
		return Entry{}, fault.New(fault.NotFound, CodeNotFound, "no %s %s in the ledger", kind, d.Short())
	}
	if err != nil {
		return Entry{}, err
	}
	return entryAt(ctx, tx, seq, kind, d)
}

// loadRun makes a run from its entry and its events.
func (l *Ledger) loadRun(d evidence.Digest, e Entry) (evidence.Run, error) {
	rec, err := decode[struct{ Events evidence.Digest }](e)
	if err != nil {
		return evidence.Run{}, err
	}
	var events []byte
	if rec.Events != "" {
		if events, err = l.blobs.Get(rec.Events); err != nil {
			return evidence.Run{}, err
		}
	}
	r, err := evidence.LoadRun(d, e.Body, events)
	if err != nil {
		return r, fault.Wrap(err, fault.Tampered, CodeBroken, "ledger entry %d", e.Seq)
	}
	return r, nil
}

func (l *Ledger) run(ctx context.Context, tx *store.Tx, d evidence.Digest) (evidence.Run, error) {
	e, err := find(ctx, tx, KindRun, d, tx.RunSeq)
	if err != nil {
		return evidence.Run{}, err
	}
	return l.loadRun(d, e)
}

// Run reads a run back, with its events. Its bytes and those of its events were
// hashed again.
func (l *Ledger) Run(ctx context.Context, d evidence.Digest) (r evidence.Run, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		r, err = l.run(ctx, tx, d)
		return err
	})
	return r, err
}

// Certificate derives a certificate anew from its stored runs.
func (l *Ledger) Certificate(ctx context.Context, d evidence.Digest) (c evidence.Certificate, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		e, err := find(ctx, tx, KindCertificate, d, tx.CertificateSeq)
		if err != nil {
			return err
		}
		c, err = evidence.Rederive(e.Body, func(d evidence.Digest) (evidence.Run, error) { return l.run(ctx, tx, d) })
		return err
	})
	return c, err
}

// Measurement derives a measurement anew from its stored runs.
func (l *Ledger) Measurement(ctx context.Context, d evidence.Digest) (m evidence.Measurement, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		e, err := find(ctx, tx, KindMeasurement, d, tx.MeasurementSeq)
		if err != nil {
			return err
		}
		m, err = evidence.RederiveMeasurement(e.Body, func(d evidence.Digest) (evidence.Run, error) { return l.run(ctx, tx, d) })
		return err
	})
	return m, err
}

// Stored is the record of an object as it stands in the ledger. Its bytes were
// hashed again; it was not derived again, which [Ledger.Verify] does for all.
type Stored[R any] struct {
	Digest evidence.Digest
	Seq    int64
	Time   time.Time
	Record R
}

func stored[R any](rows []store.EntryRow, kind Kind) ([]Stored[R], error) {
	out := make([]Stored[R], 0, len(rows))
	for _, row := range rows {
		e, err := entryOf(row)
		if err != nil {
			return nil, err
		}
		if e.Kind != kind {
			return nil, differs("entry %d is projected as %s and is %s", e.Seq, kind, e.Kind)
		}
		rec, err := decode[R](e)
		if err != nil {
			return nil, err
		}
		out = append(out, Stored[R]{evidence.DigestOf(e.Body), e.Seq, e.Time, rec})
	}
	return out, nil
}

// CertificatesFor lists the certificates of a project, oldest first. Which of
// them are credit today is for the caller to compare.
func (l *Ledger) CertificatesFor(ctx context.Context, language, project string) (out []Stored[evidence.CertificateRecord], err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		rows, err := tx.CertificateEntries(ctx, language, project)
		if err != nil {
			return err
		}
		out, err = stored[evidence.CertificateRecord](rows, KindCertificate)
		return err
	})
	for _, c := range out {
		if f := c.Record.Facts; f.Language != language || f.Project != project {
			return nil, differs("certificate %s is projected for another project", c.Digest.Short())
		}
	}
	return out, err
}

// MeasurementsFor lists the measurements of a project, newest first. Which of
// them hold today is for the caller to compare: the newest of a symbol may be
// about another branch.
func (l *Ledger) MeasurementsFor(ctx context.Context, language, project string) (out []Stored[evidence.MeasurementRecord], err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		rows, err := tx.MeasurementEntries(ctx, language, project)
		if err != nil {
			return err
		}
		out, err = stored[evidence.MeasurementRecord](rows, KindMeasurement)
		return err
	})
	for _, m := range out {
		if t := m.Record.Target; t.Language != language || t.Project != project {
			return nil, differs("measurement %s is projected for another project", m.Digest.Short())
		}
	}
	return out, err
}

// Waivers lists the last waiver of every probe that has one, expired ones
// included. Signatures were checked again.
func (l *Ledger) Waivers(ctx context.Context) (out []Waiver, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		out = nil
		for after := int64(math.MinInt64); ; {
			rows, err := tx.Waivers(ctx, after, pageSize)
			if err != nil {
				return err
			}
			for _, r := range rows {
				after = r.Seq
				w, err := l.waiver(ctx, tx, r)
				if err != nil {
					return err
				}
				out = append(out, w)
			}
			if len(rows) < pageSize {
				return nil
			}
		}
	})
	return out, err
}

func (l *Ledger) waiver(ctx context.Context, tx *store.Tx, r store.WaiverRow) (Waiver, error) {
	row, err := tx.Entry(ctx, r.Seq)
	if err != nil {
		return Waiver{}, errors.Join(differs("the waiver of probe %s has no entry", r.Probe), err)
	}
	e, err := entryOf(row)
	if err != nil {
		return Waiver{}, err
	}
	w, err := decode[Waiver](e)
	if err == nil && (e.Kind != KindWaiver || string(w.Probe) != r.Probe) {
		err = differs("the waiver of probe %s is projected from another entry", r.Probe)
	}
	if err != nil {
		return Waiver{}, err
	}
	return w, w.verify()
}

// LastStart is the last start of the repository; not_found when there is none.
func (l *Ledger) LastStart(ctx context.Context, repo string) (Start, error) {
	return l.start(ctx, func(tx *store.Tx) (store.StartRow, error) { return tx.StartOfRepo(ctx, repo) })
}

func (l *Ledger) start(ctx context.Context, rowFunc func(*store.Tx) (store.StartRow, error)) (s Start, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		r, err := rowFunc(tx)
		if errors.Is(err, store.ErrNoRow) {
			return fault.New(fault.NotFound, CodeNotFound, "no such start in the ledger")
		}
		if err != nil {
			return err
		}
		row, err := tx.Entry(ctx, r.Seq)
		if err != nil {
			return errors.Join(differs("start %s has no entry", r.Invocation), err)
		}
		e, err := entryOf(row)
		if err != nil {
			return err
		}
		if s, err = decode[Start](e); err != nil {
			return err
		}
		if e.Kind != KindStart || string(s.Key) != r.RunKey || s.Repo != r.Repo {
			return differs("start %s is projected from another entry", r.Invocation)
		}
		return nil
	})
	return s, err
}

// Starts lists the starts of a repository, newest first.
func (l *Ledger) Starts(ctx context.Context, repo string) (out []Stored[Start], err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		rows, err := tx.StartEntries(ctx, repo)
		if err != nil {
			return err
		}
		out, err = stored[Start](rows, KindStart)
		return err
	})
	for _, s := range out {
		if s.Record.Repo != repo {
			return nil, differs("start %s is projected for another repository", s.Record.Invocation)
		}
	}
	return out, err
}

// SymbolsSince tells of which symbols an entry after seq is a certificate or a
// measurement.
func (l *Ledger) SymbolsSince(ctx context.Context, seq int64) (map[string]bool, error) {
	out := map[string]bool{}
	err := l.db.Read(ctx, func(tx *store.Tx) error {
		symbols, err := tx.SymbolsSince(ctx, seq)
		for _, s := range symbols {
			out[s] = true
		}
		return err
	})
	return out, err
}

// Rebuild throws the projections away and folds all entries again.
func (l *Ledger) Rebuild(ctx context.Context) error {
	return l.db.Write(ctx, func(tx *store.Tx) error {
		if err := tx.ClearProjections(ctx); err != nil {
			return err
		}
		return eachEntry(ctx, tx, 1, math.MaxInt64, "", func(e Entry) error {
			p, err := project(e)
			if err != nil {
				return err
			}
			if err := tx.InsertRows(ctx, p); errors.Is(err, store.ErrNoRow) {
				return broken(e.Seq, "its run was never opened")
			} else if err != nil {
				return err
			}
			return nil
		})
	})
}
