package snapshot

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
)

// Delta is one path that differs between two trees, with what a rule needs to
// judge it. A renamed file is two: its old path is deleted, its new one added,
// and each names the other.
type Delta struct {
	Change

	RenamedFrom string // of an added path
	RenamedTo   string // of a deleted path
	Similarity  int    // of both, in percent; 0 when not renamed

	Binary           bool  // git's rule: a NUL among the first 8,000 bytes of one side
	Added, Deleted   int   // lines; 0 when Binary, and of a submodule
	OldSize, NewSize int64 // bytes; 0 where there is none, and of a submodule
	OldLFS, NewLFS   bool  // the blob is a pointer of Git LFS
}

// Op is what was done at a path.
type Op string

// The operations, in the words of a contract. A renamed file is deleted at its
// old path and created at the new one; see [Delta.Renamed].
const (
	Create     Op = "create"
	Modify     Op = "modify" // bytes differ; the mode may, too
	Delete     Op = "delete"
	ChangeMode Op = "mode" // the mode alone differs, or a file became a symlink or a submodule
)

// Op is what was done at the path.
func (d Delta) Op() Op {
	switch {
	case d.Status == Added:
		return Create
	case d.Status == Deleted:
		return Delete
	case d.Status == TypeChanged, d.OldBlob == d.NewBlob:
		return ChangeMode
	}
	return Modify
}

// Renamed tells whether the path is one end of a rename.
func (d Delta) Renamed() bool { return d.Similarity > 0 }

// Is tells whether one of the sides has the mode.
func (d Delta) Is(m Mode) bool { return d.OldMode == m || d.NewMode == m }

// RenameLimit bounds the search for files that were renamed and edited: with
// more than its square of pairs only renames without an edit are found. What is
// not found is an addition and a deletion all the same.
const RenameLimit = 100

// Deltas lists what differs from base to tree, sorted by path, in two git
// processes. An empty base is the empty tree. Paths are bytes. What is said
// comes from the two trees and their blobs alone: no attribute, no configuration
// and no index has a say.
func (s *Store) Deltas(ctx context.Context, repo Repo, base, tree evidence.Tree) ([]Delta, error) {
	v, err := s.open(ctx, repo)
	if err != nil {
		return nil, err
	}
	if base == "" {
		base = emptyTree(repo.Format)
	}
	for _, t := range []evidence.Tree{base, tree} {
		if _, err := evidence.ParseTree(string(t)); err != nil {
			return nil, err
		}
	}
	if base == tree {
		return nil, nil
	}
	raw, err := v.read(ctx, "diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev", "--no-ext-diff", "--no-textconv",
		"-M", fmt.Sprintf("-l%d", RenameLimit), string(base), string(tree))
	if err != nil {
		return nil, v.missing(err, "compare trees %s and %s", base, tree)
	}
	deltas, err := parseDeltas(raw)
	if err != nil {
		return nil, err
	}
	if err := v.weigh(ctx, deltas); err != nil {
		return nil, v.missing(err, "read what differs between trees %s and %s", base, tree)
	}
	return deltas, nil
}

// emptyTree is the id of the tree without files, which git knows without storing it.
func emptyTree(format string) evidence.Tree {
	const object = "tree 0\x00"
	if format == "sha256" {
		return evidence.Tree(fmt.Sprintf("%x", sha256.Sum256([]byte(object))))
	}
	return evidence.Tree(fmt.Sprintf("%x", sha1.Sum([]byte(object))))
}

var errDelta = errors.New("git's comparison does not parse")

// parseDeltas reads what diff-tree -z --raw --numstat -M says: all of the raw
// part, then all of the counts.
func parseDeltas(raw []byte) ([]Delta, error) {
	var out []Delta
	f := fields{raw}
	for f.starts(':') {
		pair, err := rawPair(&f)
		if err != nil {
			return nil, err
		}
		out = append(out, pair...)
	}
	slices.SortFunc(out, func(a, b Delta) int { return cmp.Compare(a.Path, b.Path) })
	at := func(path string) *Delta {
		if i, ok := slices.BinarySearchFunc(out, path, func(d Delta, p string) int { return cmp.Compare(d.Path, p) }); ok {
			return &out[i]
		}
		return nil
	}
	for i := range out[:max(len(out)-1, 0)] {
		if out[i].Path == out[i+1].Path {
			return nil, fmt.Errorf("%w: %.80q is named twice", errDelta, out[i].Path)
		}
	}
	for len(f.rest) > 0 {
		if err := counts(&f, at); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fields are texts that end in NUL.
type fields struct{ rest []byte }

func (f *fields) starts(with byte) bool { return len(f.rest) > 0 && f.rest[0] == with }

func (f *fields) next() (string, error) {
	text, rest, ok := bytes.Cut(f.rest, []byte{0})
	if !ok {
		return "", fmt.Errorf("%w at %.80q", errDelta, f.rest)
	}
	f.rest = rest
	return string(text), nil
}

// rawPair reads one record of the raw part: one path, or the two of a rename.
func rawPair(f *fields) ([]Delta, error) {
	head, err := f.next()
	if err != nil {
		return nil, err
	}
	w := strings.Split(strings.TrimPrefix(head, ":"), " ") // modes, ids, status
	if len(w) != 5 || w[4] == "" || !objectID(w[2]) || !objectID(w[3]) {
		return nil, fmt.Errorf("%w at %.120q", errDelta, head)
	}
	path, err := f.next()
	if err != nil {
		return nil, err
	}
	d := Delta{Change: Change{Path: path, Status: statuses[w[4][0]], OldMode: Mode(w[0]), NewMode: Mode(w[1]), OldBlob: w[2], NewBlob: w[3]}}
	switch d.Status {
	case Added:
		d.OldMode, d.OldBlob = "", ""
	case Deleted:
		d.NewMode, d.NewBlob = "", ""
	case "":
		percent, err := strconv.Atoi(w[4][1:])
		if w[4][0] != 'R' || err != nil || percent < 1 || percent > 100 {
			return nil, fmt.Errorf("%w: status %.20q", errDelta, w[4])
		}
		to, err := f.next()
		if err != nil {
			return nil, err
		}
		return []Delta{
			{Change: Change{Path: path, Status: Deleted, OldMode: d.OldMode, OldBlob: d.OldBlob}, RenamedTo: to, Similarity: percent},
			{Change: Change{Path: to, Status: Added, NewMode: d.NewMode, NewBlob: d.NewBlob}, RenamedFrom: path, Similarity: percent},
		}, nil
	}
	return []Delta{d}, nil
}

// counts reads one record of the counts. Those of a rename are of its edit; weigh
// counts the lines of both files instead.
func counts(f *fields, at func(path string) *Delta) error {
	rec, err := f.next()
	if err != nil {
		return err
	}
	added, rest, ok1 := strings.Cut(rec, "\t")
	deleted, path, ok2 := strings.Cut(rest, "\t")
	if !ok1 || !ok2 {
		return fmt.Errorf("%w at %.80q", errDelta, rec)
	}
	if path == "" {
		if _, err = f.next(); err != nil {
			return err
		}
		_, err = f.next()
		return err
	}
	d := at(path)
	switch {
	case d == nil:
		return fmt.Errorf("%w: counts of %.80q, which does not differ", errDelta, path)
	case added == "-" && deleted == "-":
		d.Binary = true
		return nil
	}
	var err1, err2 error
	d.Added, err1 = strconv.Atoi(added)
	d.Deleted, err2 = strconv.Atoi(deleted)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%w: counts %.80q", errDelta, rec)
	}
	if d.OldMode == Submodule {
		d.Deleted = 0
	}
	if d.NewMode == Submodule {
		d.Added = 0
	}
	return nil
}

// side is one blob of a delta and where what is found goes.
type side struct {
	blob  string
	size  *int64
	lfs   *bool
	lines *int // nil: known already
	of    *Delta
}

// maxPointer is the longest pointer of Git LFS.
const maxPointer = 1024

// weigh asks for the size of every blob, then reads those that may be a pointer
// of Git LFS and those that were renamed, in one process.
func (v *vault) weigh(ctx context.Context, deltas []Delta) error {
	var sides []side
	for i := range deltas {
		d := &deltas[i]
		if d.OldBlob != "" && d.OldMode != Submodule {
			sides = append(sides, side{blob: d.OldBlob, size: &d.OldSize, lfs: &d.OldLFS, lines: &d.Deleted, of: d})
		}
		if d.NewBlob != "" && d.NewMode != Submodule {
			sides = append(sides, side{blob: d.NewBlob, size: &d.NewSize, lfs: &d.NewLFS, lines: &d.Added, of: d})
		}
	}
	if len(sides) == 0 {
		return nil
	}
	c := call{args: []string{"cat-file", "--batch-command", "--buffer"}, gitDir: v.git, objects: v.readable()}
	return v.s.git.converse(ctx, c, func(in io.Writer, out *bufio.Reader) error {
		if err := ask(in, out, "info ", sides, func(side) error { return nil }); err != nil {
			return err
		}
		var read []side
		for _, sd := range sides {
			if sd.of.Renamed() || *sd.size <= maxPointer && *sd.size > 0 {
				read = append(read, sd)
			}
		}
		return ask(in, out, "contents ", read, func(sd side) error {
			return sd.read(out)
		})
	})
}

// ask sends one command for each side and takes the answers in order.
func ask(in io.Writer, out *bufio.Reader, command string, sides []side, take func(side) error) error {
	if len(sides) == 0 {
		return nil
	}
	sent := make(chan error, 1)
	go func() {
		w := bufio.NewWriter(in)
		for _, sd := range sides {
			w.WriteString(command + sd.blob + "\n") //nolint:errcheck // Flush returns it
		}
		w.WriteString("flush\n") //nolint:errcheck // Flush returns it
		sent <- w.Flush()
	}()
	for _, sd := range sides {
		var err error
		if *sd.size, err = answer(out); err != nil {
			return err
		}
		if err := take(sd); err != nil {
			return err
		}
	}
	return <-sent
}

// read takes the bytes of one blob off the answers.
func (sd side) read(out *bufio.Reader) error {
	c := content{}
	if _, err := io.CopyN(&c, out, *sd.size); err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}
	if _, err := out.Discard(1); err != nil { // the end of a line
		return fmt.Errorf("git cat-file: %w", err)
	}
	*sd.lfs = *sd.size <= maxPointer && pointer(c.head)
	if !sd.of.Renamed() {
		return nil
	}
	if sd.of.Binary = bytes.IndexByte(c.head, 0) >= 0; !sd.of.Binary {
		*sd.lines = c.lines
		if !c.ended && *sd.size > 0 {
			*sd.lines++
		}
	}
	return nil
}

// content counts lines as they come by and keeps what tells binary from text.
type content struct {
	head  []byte // the first 8,000 bytes
	lines int
	ended bool // with the end of a line
}

func (c *content) Write(p []byte) (int, error) {
	if room := 8000 - len(c.head); room > 0 {
		c.head = append(c.head, p[:min(room, len(p))]...)
	}
	c.lines += bytes.Count(p, []byte{'\n'})
	if len(p) > 0 {
		c.ended = p[len(p)-1] == '\n'
	}
	return len(p), nil
}

// pointer tells a pointer of Git LFS, which stands for a file kept elsewhere.
func pointer(body []byte) bool {
	for _, version := range []string{"version https://git-lfs.github.com/spec/", "version https://hawser.github.com/spec/"} {
		if bytes.HasPrefix(body, []byte(version)) {
			return bytes.Contains(body, []byte("\noid "))
		}
	}
	return false
}
