package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/late"
)

// Lines is a range of lines of the newer file that differ, first and last
// included. Where lines were only removed it is the line before the gap.
type Lines struct{ First, Last int }

var hunkHead = late.Regexp(`^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@`)

// ChangedLines lists by path which lines of tree differ from base. Paths that
// tree does not have, and binary files, have no lines.
func (s *Store) ChangedLines(ctx context.Context, repo Repo, base, tree evidence.Tree) (map[string][]Lines, error) {
	v, err := s.open(ctx, repo)
	if err != nil {
		return nil, err
	}
	out := map[string][]Lines{}
	changes, err := v.diff(ctx, base, tree)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.Status == Deleted {
			out[c.Path] = nil
			continue
		}
		if c.NewMode != Regular && c.NewMode != Executable {
			continue
		}
		if c.OldBlob == "" || c.OldBlob == c.NewBlob {
			out[c.Path] = []Lines{{1, 1 << 30}}
			continue
		}
		raw, err := v.read(ctx, "diff", "--text", "--no-color", "--no-ext-diff", "--no-textconv", "--unified=0", c.OldBlob, c.NewBlob)
		if err != nil {
			return nil, v.missing(err, "compare %s in trees %s and %s", c.Path, base, tree)
		}
		if out[c.Path], err = hunks(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Path, err)
		}
	}
	return out, nil
}

func hunks(raw []byte) ([]Lines, error) {
	var out []Lines
	sc := bufio.NewScanner(bytes.NewReader(raw))
	sc.Buffer(nil, 1<<30)
	for sc.Scan() {
		m := hunkHead().FindSubmatch(sc.Bytes())
		if m == nil {
			continue
		}
		first, err := strconv.Atoi(string(m[1]))
		if err != nil {
			return nil, fmt.Errorf("git's hunk %q: %w", m[0], err)
		}
		n := 1
		if m[2] != nil {
			if n, err = strconv.Atoi(string(m[2])); err != nil {
				return nil, fmt.Errorf("git's hunk %q: %w", m[0], err)
			}
		}
		out = append(out, Lines{first, first + max(n, 1) - 1})
	}
	return out, sc.Err()
}
