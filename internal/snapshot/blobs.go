package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/proveto/proveto/internal/fault"
)

// Blobs reads blobs by their ids, as deltas name them, in one git process: from
// sealed trees and from the user's repository alike. None longer than limit bytes
// (code too_large).
func (s *Store) Blobs(ctx context.Context, repo Repo, limit int64, ids ...string) (map[string][]byte, error) {
	if len(ids) == 0 {
		return map[string][]byte{}, nil
	}
	v, err := s.open(ctx, repo)
	if err != nil {
		return nil, err
	}
	var asked bytes.Buffer
	for _, id := range ids {
		if !objectID(id) {
			return nil, fault.New(fault.Usage, "bad_id", "%.80q is not the id of a blob", id)
		}
		asked.WriteString(id + "\n")
	}
	raw, _, err := s.git.run(ctx, call{args: []string{"cat-file", "--batch"}, gitDir: v.git, objects: v.readable(), stdin: asked.Bytes()})
	if err != nil {
		return nil, v.missing(err, "read %d blobs", len(ids))
	}
	from, out := bufio.NewReader(bytes.NewReader(raw)), map[string][]byte{}
	for _, id := range ids {
		size, err := answer(from)
		if err != nil {
			return nil, v.missing(err, "read blob %s", id)
		}
		if size > limit {
			return nil, fault.New(fault.Usage, CodeTooLarge, "blob %s has %d bytes, more than %d", id, size, limit)
		}
		body := make([]byte, size+1) // a line end follows
		if _, err := io.ReadFull(from, body); err != nil {
			return nil, fmt.Errorf("read blob %s: %w", id, err)
		}
		out[id] = body[:size]
	}
	return out, nil
}
