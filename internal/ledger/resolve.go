package ledger

import (
	"context"
	"fmt"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

// Ref is what an id means.
type Ref struct {
	What   string          // certificate, run, measurement, probe, blob, start, flow
	Digest evidence.Digest // of all but a start and a flow
	ULID   string          // of a start: its invocation; of a flow: its run_<ULID>
}

// String is the full id.
func (r Ref) String() string {
	if r.ULID != "" {
		return r.ULID
	}
	return string(r.Digest)
}

const (
	minID    = 6
	maxShown = 8 // matches listed when an id is ambiguous
)

// Resolve reads an id: a digest, the unique beginning of one (six characters or
// more, with or without "sha256:"), a ULID, the unique end of one, or the id of a
// run of a flow or its unique end. What is
// written otherwise is bad_id, what has several meanings ambiguous_id (both
// usage errors), what has none not_found.
func (l *Ledger) Resolve(ctx context.Context, id string) (Ref, error) {
	hex, isHex := strings.TrimPrefix(id, "sha256:"), false
	isHex = len(hex) >= minID && len(hex) <= 64 && strings.Trim(hex, "0123456789abcdef") == ""
	isULID, isRun := isULIDEnd(id), ValidRun(id)
	if !isHex && !isULID && !isRun {
		return Ref{}, fault.New(fault.Usage, CodeBadID, "%.80q is not an id: want a digest, its first six characters or more, or the last six or more of a ULID", id).Hint("proveto ledger log")
	}
	var refs []Ref
	err := l.db.Read(ctx, func(tx *store.Tx) error {
		refs = nil
		if isHex {
			from := "sha256:" + hex
			found, err := tx.DigestsBetween(ctx, from, from+"g", maxShown)
			if err != nil {
				return err
			}
			for _, f := range found {
				refs = append(refs, Ref{What: f.What, Digest: evidence.Digest(f.Digest)})
			}
		}
		if isULID {
			ids, err := tx.InvocationsEnding(ctx, id, maxShown)
			if err != nil {
				return err
			}
			for _, u := range ids {
				refs = append(refs, Ref{What: "start", ULID: u})
			}
		}
		if isULID || isRun {
			runs, err := tx.FlowRunsEnding(ctx, id, maxShown)
			if err != nil {
				return err
			}
			for _, r := range runs {
				refs = append(refs, Ref{What: "flow", ULID: r})
			}
		}
		return nil
	})
	if err != nil {
		return Ref{}, err
	}
	if isHex {
		blobs, err := l.blobs.WithPrefix(ctx, hex)
		if err != nil {
			return Ref{}, err
		}
		for _, d := range blobs {
			refs = append(refs, Ref{What: "blob", Digest: d})
		}
	}
	switch len(refs) {
	case 0:
		return Ref{}, fault.New(fault.NotFound, CodeNotFound, "nothing in the ledger has the id %s", id).Hint("proveto ledger log")
	case 1:
		return refs[0], nil
	}
	f := fault.New(fault.Usage, CodeAmbiguous, "%s may be %d things or more", id, len(refs))
	for _, r := range refs[:min(len(refs), maxShown)] {
		f.Hint("%s", fmt.Sprintf("%s %s", r.What, r))
	}
	return Ref{}, f
}
