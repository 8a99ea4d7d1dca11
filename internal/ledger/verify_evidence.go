package ledger

import (
	"context"
	"errors"
	"fmt"
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
	v.report.Blobs += len(all)
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
	errs := parallel(v.judged, func(seq int64) error {
		e, err := v.read(ctx, seq)
		if err != nil {
			return err
		}
		switch e.Kind {
		case KindCertificate:
			_, err = evidence.Rederive(e.Body, load)
		case KindMeasurement:
			var m evidence.Measurement
			if m, err = evidence.RederiveMeasurement(e.Body, load); err == nil {
				err = v.trials(m.Record())
			}
		case KindWaiver:
			var w Waiver
			if w, err = decode[Waiver](e); err == nil {
				err = w.verify()
			}
		}
		return err
	})
	// Their digests need not be taken twice.
	for _, d := range cache.loaded {
		if _, cited := v.cites[d]; cited {
			v.report.Blobs++
			delete(v.cites, d)
		}
	}
	for i, err := range errs {
		if err := v.underived(v.judged[i], err); err != nil {
			return err
		}
	}
	return nil
}

// read reads an entry; the transaction is shared by all that derive.
func (v *verifier) read(ctx context.Context, seq int64) (Entry, error) {
	v.mu.Lock()
	row, err := v.tx.Entry(ctx, seq)
	v.mu.Unlock()
	if err != nil {
		return Entry{}, err
	}
	return entryOf(row)
}

// underived makes a finding of a verdict that could not be derived.
func (v *verifier) underived(seq int64, err error) error {
	if err == nil {
		return nil
	}
	return v.evidence(seq, fmt.Errorf("ledger entry %d: %w", seq, err))
}

// trials checks that the certificates which a measurement counts are those of
// its probes.
func (v *verifier) trials(m evidence.MeasurementRecord) error {
	for _, t := range m.Trials {
		if t.Certificate != "" && v.certs[t.Certificate] != t.ProbeDigest {
			return fault.New(fault.Tampered, CodeCertificateBad, "certificate %s is not in the ledger, or about another probe", t.Certificate.Short())
		}
	}
	return nil
}

func (v *verifier) run(ctx context.Context, cache *runCache, d evidence.Digest) (evidence.Run, error) {
	if r, ok := cache.get(d); ok {
		return r, nil
	}
	seq, ok := v.runs[d]
	if !ok {
		return evidence.Run{}, fault.Wrap(errNoRun, fault.Tampered, CodeCertificateBad, "run %s", d.Short())
	}
	e, err := v.read(ctx, seq)
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
	mu       sync.Mutex
	byDigest map[evidence.Digest]evidence.Run
	oldest   []evidence.Digest
	loaded   []evidence.Digest // events that were hashed again
	events   int
}

// maxCachedEvents bounds the memory of the cache; an event takes a few hundred
// bytes.
const maxCachedEvents = 200_000

func (c *runCache) get(d evidence.Digest) (evidence.Run, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.byDigest[d]
	return r, ok
}

func (c *runCache) add(r evidence.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byDigest[r.Digest()]; ok {
		return // somebody else loaded it meanwhile
	}
	c.loaded = append(c.loaded, r.Record().Events)
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
