package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// File is one entry of a tree that is not a tree itself.
type File struct {
	Path string // relative to the root, slashes, raw bytes
	Mode Mode
	Blob string // object id; of a submodule: the commit
}

// Mode is git's mode of a tree entry.
type Mode string

// The modes of files.
const (
	Regular    Mode = "100644"
	Executable Mode = "100755"
	Symlink    Mode = "120000"
	Submodule  Mode = "160000" // not sealed: it was not initialised
)

// Change is one path that differs between two trees. Renames are an addition and
// a deletion.
type Change struct {
	Path    string
	Status  Status
	OldMode Mode // empty when added
	NewMode Mode // empty when deleted
	OldBlob string
	NewBlob string
}

// Status tells how a path differs.
type Status string

// The statuses.
const (
	Added       Status = "added"
	Modified    Status = "modified" // bytes or executable bit
	Deleted     Status = "deleted"
	TypeChanged Status = "type_changed" // a file became a symlink and so on
)

var statuses = map[byte]Status{'A': Added, 'M': Modified, 'D': Deleted, 'T': TypeChanged}

// Diff lists what differs from base to tree, sorted by path. An empty base is
// the empty tree.
func (s *Store) Diff(ctx context.Context, repo Repo, base, tree evidence.Tree) ([]Change, error) {
	v, err := s.open(ctx, repo)
	if err != nil {
		return nil, err
	}
	return v.diff(ctx, base, tree)
}

func (v *vault) diff(ctx context.Context, base, tree evidence.Tree) ([]Change, error) {
	if base == tree {
		return nil, nil
	}
	if base == "" {
		files, err := v.files(ctx, tree)
		if err != nil {
			return nil, err
		}
		out := make([]Change, len(files))
		for i, f := range files {
			out[i] = Change{Path: f.Path, Status: Added, NewMode: f.Mode, NewBlob: f.Blob}
		}
		return out, nil
	}
	raw, err := v.read(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", string(base), string(tree))
	if err != nil {
		return nil, v.missing(err, "compare trees %s and %s", base, tree)
	}
	return parseRaw(raw)
}

// missing turns git's complaint about an absent object into ours.
func (v *vault) missing(err error, what string, args ...any) error {
	return missingFrom(err, v.repo, what, args...)
}

var errNoObject = errors.New("no such object")

func missingFrom(err error, repo Repo, what string, args ...any) error {
	for _, text := range []string{"not a valid object", "bad object", "Not a valid object", "unable to read", "not a tree object", "could not parse", "failed to unpack tree", "invalid object", "missing"} {
		if complains(err, text) {
			return fault.Wrap(err, fault.Unmeasured, CodeObjectMissing, what, args...).
				Hint("take the snapshot again: its objects are not in %s", repo.Name)
		}
	}
	return fmt.Errorf(what+": %w", append(args, err)...)
}

// parseRaw reads git's raw diff with NUL ends.
func parseRaw(raw []byte) ([]Change, error) {
	var out []Change
	for len(raw) > 0 {
		head, rest, ok1 := bytes.Cut(raw, []byte{0})
		path, rest, ok2 := bytes.Cut(rest, []byte{0})
		f := strings.Fields(strings.TrimPrefix(string(head), ":"))
		if !ok1 || !ok2 || len(f) != 5 {
			return nil, fmt.Errorf("git's raw diff does not parse at %.80q", head)
		}
		c := Change{Path: string(path), Status: statuses[f[4][0]], OldMode: Mode(f[0]), NewMode: Mode(f[1]), OldBlob: f[2], NewBlob: f[3]}
		switch c.Status {
		case "":
			return nil, fmt.Errorf("git's raw diff has status %q", f[4])
		case Added:
			c.OldMode, c.OldBlob = "", ""
		case Deleted:
			c.NewMode, c.NewBlob = "", ""
		}
		out = append(out, c)
		raw = rest
	}
	return out, nil
}

// Files lists every file of a tree, in git's order (bytes of the path).
func (s *Store) Files(ctx context.Context, repo Repo, tree evidence.Tree) ([]File, error) {
	v, err := s.open(ctx, repo)
	if err != nil {
		return nil, err
	}
	return v.files(ctx, tree)
}

func (v *vault) files(ctx context.Context, tree evidence.Tree) ([]File, error) {
	if _, err := evidence.ParseTree(string(tree)); err != nil {
		return nil, err
	}
	raw, err := v.read(ctx, "ls-tree", "-r", "-z", "--full-tree", string(tree))
	if err != nil {
		return nil, v.missing(err, "list tree %s", tree)
	}
	return parseListing(raw)
}

// parseListing reads "mode type id TAB path NUL" (ls-tree) and "mode id stage
// TAB path NUL" (ls-files --stage).
func parseListing(raw []byte) ([]File, error) {
	out := make([]File, 0, bytes.Count(raw, []byte{0}))
	for len(raw) > 0 {
		rec, rest, ok := bytes.Cut(raw, []byte{0})
		head, path, tab := bytes.Cut(rec, []byte{'\t'})
		f := strings.Fields(string(head))
		if !ok || !tab || len(f) != 3 {
			return nil, fmt.Errorf("git's listing does not parse at %.80q", rec)
		}
		id := f[2]
		if len(f[1]) >= 40 {
			id = f[1]
		}
		out = append(out, File{Path: string(path), Mode: Mode(f[0]), Blob: id})
		raw = rest
	}
	return out, nil
}

// File is the content of one file of a tree; of a symlink: its target. Code
// no_such_file when the tree has no file of that name.
func (s *Store) File(ctx context.Context, repo Repo, tree evidence.Tree, path string) ([]byte, error) {
	if _, err := evidence.ParseTree(string(tree)); err != nil {
		return nil, err
	}
	v, err := s.open(ctx, repo)
	if err != nil {
		return nil, err
	}
	absent := fault.New(fault.NotFound, CodeNoSuchFile, "tree %s has no file %q", tree, path)
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, absent
	}
	raw, err := v.read(ctx, "ls-tree", "-z", "--full-tree", string(tree), "--", path)
	if err != nil {
		return nil, v.missing(err, "find %q in tree %s", path, tree)
	}
	found, err := parseListing(raw)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 || found[0].Path != path || found[0].Mode == Submodule || found[0].Mode == "040000" {
		return nil, absent
	}
	body, err := v.read(ctx, "cat-file", "blob", found[0].Blob)
	if err != nil {
		return nil, v.missing(err, "read %q of tree %s", path, tree)
	}
	return body, nil
}

// split cuts a list of names that end in NUL.
func split(raw []byte) []string {
	s := strings.TrimSuffix(string(raw), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

// joinZ is the input form of such a list.
func joinZ(names []string) []byte {
	var b bytes.Buffer
	for _, n := range names {
		b.WriteString(n)
		b.WriteByte(0)
	}
	return b.Bytes()
}
