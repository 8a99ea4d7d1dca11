package ledger

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

// Options say against what the ledger is verified besides itself.
type Options struct {
	// Anchor is a checkpoint that was kept outside, see [Ledger.Anchor].
	Anchor []byte
	// Expect is a head that somebody has seen.
	Expect *Head
	// Fold derives a run of a flow from all its entries, in order, and compares it
	// with what the last of them says in [FlowHead].After, which is what lists show.
	// An error is a finding: of its own code if it is one of Verify's, else
	// projection_differs. It is called for several runs at once. Nil: no run is derived.
	Fold func(run string, entries []Entry) error
}

// Finding is one thing that does not verify.
type Finding struct {
	Code fault.Code `json:"code"`
	Seq  int64      `json:"seq,omitempty"` // the entry it is about; 0 when it is about none
	What string     `json:"what"`
}

// Report is what [Ledger.Verify] looked at and what it found.
type Report struct {
	LedgerID     string    `json:"ledger_id"`
	Head         Head      `json:"head"` // derived from the entries, not read from a checkpoint
	Entries      int64     `json:"entries"`
	Checkpoints  int       `json:"checkpoints"`
	Runs         int       `json:"runs"`
	Certificates int       `json:"certificates"`
	Measurements int       `json:"measurements"`
	Blobs        int       `json:"blobs"`
	Flows        int       `json:"flows"`               // runs of flows
	Outside      string    `json:"outside"`             // anchor, expected_head, or none: no outside anchor
	FirstBad     int64     `json:"first_bad,omitempty"` // first entry that is wrong
	Sound        int64     `json:"sound"`               // entries 1 to Sound are as a good checkpoint signed them
	Findings     []Finding `json:"findings"`            // at most maxFindings
	More         int       `json:"more,omitempty"`      // findings not listed
}

const maxFindings = 100

// order is how bad findings are: the first decides the code of the error.
var order = []fault.Code{CodeBroken, CodeRolledBack, CodeCheckpointBad, CodeCertificateBad, CodeSignatureBad, CodeMissing, CodeBlobBad, CodeProjection}

// Verify derives everything again from the entries: leaf hashes, tree, roots and
// signatures of all checkpoints, projections, blobs, certificates, measurements
// and waivers. A difference is an error of kind tampered with the code of the
// worst finding; the report lists them all and is returned in any case.
func (l *Ledger) Verify(ctx context.Context, o Options) (Report, error) {
	v := &verifier{l: l, fold: o.Fold, flows: map[string]*flowSeen{}, runs: map[evidence.Digest]int64{}, certs: map[evidence.Digest]evidence.Digest{}, cites: map[evidence.Digest]int64{}}
	v.report = Report{LedgerID: l.id, Outside: "none", Findings: []Finding{}}
	if err := v.note(CodeBroken, 0, l.db.CheckStorage(ctx)); err != nil {
		return v.report, err
	}
	err := l.db.Read(ctx, func(tx *store.Tx) error {
		v.tx = tx
		for _, step := range []func(context.Context) error{v.entries, v.treeHashes, v.checkpoints, v.verdicts, v.blobs, v.folds} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	// A database that cannot be read to its end is a finding like others.
	if err := v.note(CodeBroken, 0, err); err != nil {
		return v.report, err
	}
	v.outside(o)
	return v.report, v.verdict()
}

type verifier struct {
	l      *Ledger
	mu     sync.Mutex // of tx, while verdicts are derived in parallel
	tx     *store.Tx
	report Report
	worst  int // index in order, plus one
	hashes []tlog.Hash
	runs   map[evidence.Digest]int64           // run → its first entry
	certs  map[evidence.Digest]evidence.Digest // certificate → its probe
	cites  map[evidence.Digest]int64           // blob → an entry that cites it
	judged []int64                             // entries with a verdict or a signature to derive again
	fold   func(run string, entries []Entry) error
	flows  map[string]*flowSeen // by run
}

// flowSeen is how much of a run the entries have.
type flowSeen struct {
	entries int
	last    int64
}

func (v *verifier) find(code fault.Code, seq int64, what string, args ...any) {
	if i := slices.Index(order, code) + 1; v.worst == 0 || i < v.worst {
		v.worst = i
	}
	if (code == CodeBroken || code == CodeCertificateBad) && seq > 0 && (v.report.FirstBad == 0 || seq < v.report.FirstBad) {
		v.report.FirstBad = seq
	}
	if len(v.report.Findings) == maxFindings {
		v.report.More++
		return
	}
	v.report.Findings = append(v.report.Findings, Finding{code, seq, fmt.Sprintf(what, args...)})
}

// note makes a finding of an error that shows tampering, and returns any other.
func (v *verifier) note(code fault.Code, seq int64, err error) error {
	if err == nil {
		return nil
	}
	f := fault.From(err)
	if f.Kind != fault.Tampered {
		return err
	}
	if slices.Contains(order, f.Code) {
		code = f.Code
	}
	v.find(code, seq, "%s", err)
	return nil
}

func (v *verifier) verdict() error {
	if len(v.report.Findings) == 0 {
		return nil
	}
	code := order[v.worst-1]
	i := slices.IndexFunc(v.report.Findings, func(f Finding) bool { return f.Code == code })
	what := "and more"
	if i >= 0 {
		what = v.report.Findings[i].What
	}
	f := fault.New(fault.Tampered, code, "ledger %s does not verify: %s", v.l.id, what)
	f.Hint("entries 1 to %d are as a checkpoint signed them", v.report.Sound)
	if code == CodeProjection {
		f.Hints = []string{"proveto rebuild", "all entries are sound; only what is derived from them differs"}
	}
	return f
}

// entries reads all entries in order and compares the projections in lockstep.
func (v *verifier) entries(ctx context.Context) error {
	p := newLockstep(v)
	bad := func(seq int64, what string) { v.find(CodeBroken, seq, "ledger entry %d: %s", seq, what) }
	next, after := int64(1), int64(math.MinInt64)
	for {
		rows, err := v.tx.Entries(ctx, "", after, math.MaxInt64, pageSize)
		if err != nil {
			return err
		}
		for _, r := range rows {
			after = r.Seq
			if r.Seq != next {
				bad(next, fmt.Sprintf("it is missing; the next one is %d", r.Seq))
				next = r.Seq
			}
			next++
			if err := v.leaf(r); err != nil {
				return err
			}
			e, err := entryOf(r)
			if err != nil || !validKind(e.Kind) {
				bad(r.Seq, "its bytes do not have its hash, or its time does not parse")
				continue
			}
			if err := v.entry(ctx, e, p); err != nil {
				return err
			}
		}
		if len(rows) < pageSize {
			break
		}
	}
	return p.end(ctx)
}

// leaf adds the derived leaf to the derived tree.
func (v *verifier) leaf(r store.EntryRow) error {
	n := v.report.Entries
	hs, err := tlog.StoredHashesForRecordHash(n, leafOf(r), tlog.HashReaderFunc(v.readHashes))
	if err != nil {
		return err
	}
	v.hashes = append(v.hashes, hs...)
	v.report.Entries++
	return nil
}

func (v *verifier) readHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		if x >= int64(len(v.hashes)) {
			return nil, fmt.Errorf("derived tree has no hash %d", x)
		}
		out[i] = v.hashes[x]
	}
	return out, nil
}

// rootAt is the derived root of the first size entries.
func (v *verifier) rootAt(size int64) (tlog.Hash, error) {
	return tlog.TreeHash(size, tlog.HashReaderFunc(v.readHashes))
}

// entry takes note of what has to be looked at once all entries are known.
func (v *verifier) entry(ctx context.Context, e Entry, p *lockstep) error {
	switch e.Kind {
	case KindRun:
		v.report.Runs++
		if d := evidence.DigestOf(e.Body); v.runs[d] == 0 {
			v.runs[d] = e.Seq
		}
	case KindCertificate:
		v.report.Certificates++
		v.judged = append(v.judged, e.Seq)
	case KindMeasurement:
		v.report.Measurements++
		v.judged = append(v.judged, e.Seq)
	case KindWaiver:
		v.judged = append(v.judged, e.Seq)
	}
	blobs, err := cited(e)
	if err := v.note(CodeBroken, e.Seq, err); err != nil {
		return err
	}
	for _, d := range blobs {
		if v.cites[d] == 0 {
			v.cites[d] = e.Seq
		}
	}
	rows, err := project(e)
	if err := v.note(CodeBroken, e.Seq, err); err != nil {
		return err
	}
	for i, c := range rows.Certificates {
		if i < len(rows.Probes) { // a gate's is about no probe of a symbol
			v.certs[evidence.Digest(c.Digest)] = evidence.Digest(rows.Probes[i].Digest)
		}
	}
	for _, f := range rows.FlowEntries {
		if f.Run == "" {
			continue
		}
		if v.flows[f.Run] == nil {
			v.flows[f.Run] = &flowSeen{}
			v.report.Flows++
		}
		v.flows[f.Run].entries++
		v.flows[f.Run].last = e.Seq
	}
	return p.match(ctx, e.Seq, rows)
}

// folds derives every run of a flow. A run whose entries cannot be found by their
// projection is a finding already.
func (v *verifier) folds(ctx context.Context) error {
	if v.fold == nil {
		return nil
	}
	runs := slices.Sorted(maps.Keys(v.flows))
	unread := make([]error, len(runs)) // errors of the database, by run
	at := make([]int, len(runs))
	for i := range at {
		at[i] = i
	}
	differ := parallel(at, func(i int) error {
		v.mu.Lock()
		entries, err := v.l.RunEntriesIn(ctx, v.tx, runs[i], 0)
		v.mu.Unlock()
		if unread[i] = err; err != nil || len(entries) != v.flows[runs[i]].entries {
			return nil //nolint:nilerr // what is wrong with it is a finding already
		}
		return v.fold(runs[i], entries)
	})
	for i, run := range runs {
		if err := v.note(CodeProjection, v.flows[run].last, unread[i]); err != nil {
			return err
		}
		if err := differ[i]; err != nil {
			code := CodeProjection
			if f := fault.From(err); slices.Contains(order, f.Code) {
				code = f.Code
			}
			v.find(code, v.flows[run].last, "flow run %s: %s", run, err)
		}
	}
	return nil
}

// treeHashes compares the stored tree with the derived one.
func (v *verifier) treeHashes(ctx context.Context) error {
	next, after := int64(0), int64(math.MinInt64)
	for {
		rows, err := v.tx.Hashes(ctx, after, pageSize)
		if err != nil {
			return err
		}
		for _, r := range rows {
			after = r.Index
			switch {
			case r.Index != next || next >= int64(len(v.hashes)):
				v.find(CodeBroken, 0, "stored hash %d of the tree is missing or too many; found %d", next, r.Index)
				return nil
			case r.Hash != v.hashes[next].String():
				level, n := tlog.SplitStoredHashIndex(next)
				seq := int64(0)
				if level == 0 {
					seq = n + 1
				}
				v.find(CodeBroken, seq, "stored hash %d of the tree is not the one that the entries derive", next)
			}
			next++
		}
		if len(rows) < pageSize {
			break
		}
	}
	if next != int64(len(v.hashes)) {
		v.find(CodeBroken, 0, "the tree has %d stored hashes, the entries derive %d", next, len(v.hashes))
	}
	return nil
}

// outside compares with what somebody else has kept.
func (v *verifier) outside(o Options) {
	seen := func(what string, size int64, root evidence.Digest) {
		v.report.Outside = what
		if size > v.report.Entries {
			v.find(CodeRolledBack, 0, "%s has %d entries, the ledger only %d", what, size, v.report.Entries)
			return
		}
		got, err := v.rootAt(size)
		if err != nil || headOf(size, got).Root != root {
			v.find(CodeRolledBack, 0, "the first %d entries are not those that %s has seen", size, what)
		}
	}
	if o.Expect != nil {
		seen("expected_head", o.Expect.Seq, o.Expect.Root)
	}
	if o.Anchor != nil {
		size, root, err := openCheckpoint(o.Anchor, v.l.id, v.l.verifier)
		if err != nil {
			v.report.Outside = "anchor"
			v.find(CodeCheckpointBad, 0, "anchor: %s", err)
			return
		}
		seen("anchor", size, headOf(size, root).Root)
	}
}
