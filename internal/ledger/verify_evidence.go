package ledger

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

// parallel calls fn for every item on all processors and returns the errors in
// the order of the items.
func parallel[T any](items []T, fn func(T) error) []error {
	errs := make([]error, len(items))
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(items); i += workers {
				errs[i] = fn(items[i])
			}
		})
	}
	wg.Wait()
	return errs
}

// checkpoints verifies the signature and the root of every checkpoint.
func (v *verifier) checkpoints(ctx context.Context) error {
	after, good, last, bad := int64(math.MinInt64), int64(0), int64(0), int64(0)
	for {
		rows, err := v.tx.Checkpoints(ctx, after, pageSize)
		if err != nil {
			return err
		}
		errs := parallel(rows, v.checkpoint)
		for i, r := range rows {
			after, last = r.Size, r.Size
			v.report.Checkpoints++
			switch err := errs[i]; {
			case err == nil:
				good = r.Size
			case r.Size > v.report.Entries:
				v.find(CodeRolledBack, 0, "a checkpoint of %d entries is there, but only %d entries", r.Size, v.report.Entries)
			default:
				if bad == 0 {
					bad = good + 1
				}
				v.find(CodeCheckpointBad, 0, "checkpoint %d: %s", r.Size, err)
			}
		}
		if len(rows) < pageSize {
			break
		}
	}
	if last < v.report.Entries {
		v.find(CodeCheckpointBad, 0, "no checkpoint covers entry %d", v.report.Entries)
	}
	// With all hashes recomputed no single leaf is wrong; the first that no good
	// checkpoint covers is the first that may be.
	if v.report.FirstBad == 0 && bad > 0 {
		v.report.FirstBad = bad
	}
	v.report.Sound = good
	root, err := v.rootAt(v.report.Entries)
	if err != nil {
		return err
	}
	v.report.Head = headOf(v.report.Entries, root)
	return nil
}

func (v *verifier) checkpoint(r store.CheckpointRow) error {
	size, want, err := openCheckpoint([]byte(r.Note), v.l.id, v.l.verifier)
	if err != nil {
		return err
	}
	if size != r.Size {
		return fault.New(fault.Tampered, CodeCheckpointBad, "it is about %d entries", size)
	}
	got, err := v.rootAt(size)
	if err == nil && got != want {
		err = fault.New(fault.Tampered, CodeCheckpointBad, "its root is not that of the first %d entries", size)
	}
	return err
}

// blobs hashes every blob again that an entry cites.
func (v *verifier) blobs(ctx context.Context) error {
	all := make([]evidence.Digest, 0, len(v.cites))
	for d := range v.cites {
		all = append(all, d)
	}
	v.report.Blobs = len(all)
	errs := parallel(all, func(d evidence.Digest) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		_, err := v.l.blobs.Get(d)
		return err
	})
	for i, err := range errs {
		if err := v.evidence(v.cites[all[i]], err); err != nil {
			return err
		}
	}
	return nil
}

// evidence makes a finding of evidence that is not there or changed.
func (v *verifier) evidence(seq int64, err error) error {
	if err == nil {
		return nil
	}
	f := fault.From(err)
	if f.Kind == fault.NotFound || f.Kind == fault.Usage {
		v.find(CodeMissing, seq, "%s", err)
		return nil
	}
	return v.note(CodeBlobBad, seq, err)
}

var errNoRun = errors.New("not in the ledger")

// verdicts derives certificates, measurements and waivers again.
func (v *verifier) verdicts(ctx context.Context) error {
	cache := &runCache{byDigest: map[evidence.Digest]evidence.Run{}}
	load := func(d evidence.Digest) (evidence.Run, error) { return v.run(ctx, cache, d) }
	for _, seq := range v.judged {
		row, err := v.tx.Entry(ctx, seq)
		if err != nil {
			return err
		}
		e, err := entryOf(row)
		if err != nil {
			return err
		}
		switch e.Kind {
		case KindCertificate:
			_, err := evidence.Rederive(e.Body, load)
			if err := v.underived(seq, err); err != nil {
				return err
			}
		case KindMeasurement:
			m, err := evidence.RederiveMeasurement(e.Body, load)
			if err := v.underived(seq, err); err != nil {
				return err
			}
			if err == nil {
				v.trials(seq, m.Record())
			}
		case KindWaiver:
			w, err := decode[Waiver](e)
			if err == nil {
				err = w.verify()
			}
			if err := v.note(CodeSignatureBad, seq, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// underived makes a finding of a verdict that could not be derived.
func (v *verifier) underived(seq int64, err error) error {
	if errors.Is(err, errNoRun) {
		v.find(CodeCertificateBad, seq, "ledger entry %d: %s", seq, err)
		return nil
	}
	return v.evidence(seq, err)
}

// trials checks that the certificates which a measurement counts are those of
// its probes.
func (v *verifier) trials(seq int64, m evidence.MeasurementRecord) {
	for _, t := range m.Trials {
		if t.Certificate != "" && v.certs[t.Certificate] != t.ProbeDigest {
			v.find(CodeCertificateBad, seq, "ledger entry %d: certificate %s is not in the ledger, or about another probe", seq, t.Certificate.Short())
		}
	}
}

func (v *verifier) run(ctx context.Context, cache *runCache, d evidence.Digest) (evidence.Run, error) {
	if r, ok := cache.byDigest[d]; ok {
		return r, nil
	}
	seq, ok := v.runs[d]
	if !ok {
		return evidence.Run{}, fault.Wrap(errNoRun, fault.Tampered, CodeCertificateBad, "run %s", d.Short())
	}
	row, err := v.tx.Entry(ctx, seq)
	if err != nil {
		return evidence.Run{}, err
	}
	e, err := entryOf(row)
	if err != nil {
		return evidence.Run{}, err
	}
	r, err := v.l.loadRun(d, e)
	if err == nil {
		cache.add(r)
	}
	return r, err
}

// runCache keeps the last runs: the baselines of a unit are shared by all its
// certificates.
type runCache struct {
	byDigest map[evidence.Digest]evidence.Run
	oldest   []evidence.Digest
	events   int
}

// maxCachedEvents bounds the memory of the cache; an event takes a few hundred
// bytes.
const maxCachedEvents = 200_000

func (c *runCache) add(r evidence.Run) {
	c.byDigest[r.Digest()] = r
	c.oldest = append(c.oldest, r.Digest())
	c.events += 1 + len(r.Events())
	for c.events > maxCachedEvents && len(c.oldest) > 1 {
		old := c.oldest[0]
		c.events -= 1 + len(c.byDigest[old].Events())
		c.oldest = c.oldest[1:]
		delete(c.byDigest, old)
	}
}
