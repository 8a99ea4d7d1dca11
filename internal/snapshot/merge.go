package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// Merge is what came of two trees that were both made from one.
type Merge struct {
	Tree      evidence.Tree // sealed; empty when there are conflicts
	Bases     []string      // the commits that both sides were compared with
	Conflicts []MergeConflict
}

// MergeConflict is a path that git does not merge by itself.
type MergeConflict struct {
	Path string
	Kind string // git's words, for example contents or modify/delete; may be empty
}

// MergePreview is the tree that a merge of a snapshot into target gives, and a
// squash of it as well. From is the commit of the user's repository that the
// snapshot was made from; both sides are compared with the best common ancestors
// of from and target. The user's repository is not written, but git may refresh
// the time stamps of objects that the merge needs and finds there. Merge drivers
// and attributes have no say: text is merged line by line. Code base_unresolved
// when from and target have no common history.
func (s *Store) MergePreview(ctx context.Context, repo Repo, target, from string, snapshot evidence.Tree) (Merge, error) {
	bases, err := s.mergeBases(ctx, repo, target, from)
	if err != nil {
		return Merge{}, err
	}
	ours, err := s.Resolve(ctx, repo, target)
	if err != nil {
		return Merge{}, err
	}
	m := merging{ours: ours.Tree, theirs: snapshot}
	if len(bases) == 1 {
		base, err := s.Resolve(ctx, repo, bases[0])
		if err != nil {
			return Merge{}, err
		}
		m.base = base.Tree
	} else {
		m.bases = bases
	}
	out, err := s.merge(ctx, repo, m)
	out.Bases = bases
	return out, err
}

// Replay is the tree of a snapshot put onto another base: what differs from old
// to snapshot is done to onto, as MergePreview does it.
func (s *Store) Replay(ctx context.Context, repo Repo, old, onto, snapshot evidence.Tree) (Merge, error) {
	return s.merge(ctx, repo, merging{base: old, ours: onto, theirs: snapshot})
}

// mergeBases are the best common ancestors of two commits, sorted.
func (s *Store) mergeBases(ctx context.Context, repo Repo, a, b string) ([]string, error) {
	for _, id := range []string{a, b} {
		if !objectID(id) {
			return nil, fault.New(fault.Usage, "bad_id", "%.80q is not the id of a commit", id)
		}
	}
	if !repo.Git() {
		return nil, fault.New(fault.Refused, CodeNoRepository, "%s is not a git repository", repo.Root)
	}
	if a == b {
		return []string{a}, nil
	}
	out, code, err := s.git.run(ctx, call{args: []string{"merge-base", "--all", a, b}, gitDir: repo.GitDir, answers: []int{1}})
	if err != nil {
		return nil, missingFrom(err, repo, "merge base of %s and %s", a, b)
	}
	bases := strings.Fields(string(out))
	if code == 1 || len(bases) == 0 {
		return nil, unrelated(repo, a, b)
	}
	slices.Sort(bases)
	return bases, nil
}

// merging is one three-way merge: of trees with the tree that both came from, or,
// where histories cross, with several commits that git merges first.
type merging struct {
	base         evidence.Tree
	bases        []string
	ours, theirs evidence.Tree
}

func (s *Store) merge(ctx context.Context, repo Repo, m merging) (_ Merge, err error) {
	for _, t := range []evidence.Tree{m.ours, m.theirs} {
		if _, err := evidence.ParseTree(string(t)); err != nil {
			return Merge{}, err
		}
	}
	v, err := s.open(ctx, repo)
	if err != nil {
		return Merge{}, err
	}
	held, err := v.shared(ctx)
	if err != nil {
		return Merge{}, err
	}
	defer func() { err = errors.Join(err, unlock(held)) }()
	out := Merge{}
	switch {
	case m.ours == m.theirs, m.base == m.theirs:
		out.Tree = m.ours
	case m.base == m.ours:
		out.Tree = m.theirs
	default:
		if out, err = v.mergeTrees(ctx, m, held); err != nil {
			return Merge{}, v.missing(err, "merge tree %s into %s", m.theirs, m.ours)
		}
	}
	if out.Tree == "" {
		return out, nil
	}
	return out, v.keep(out.Tree)
}

// mergeTrees asks git, which before 2.40 takes commits only and looks for their
// common ancestors itself. So it gets commits that say nothing but that.
func (v *vault) mergeTrees(ctx context.Context, m merging, held *os.File) (Merge, error) {
	by := ownCommit(time.Unix(0, 0).UTC())
	bases := m.bases
	if len(bases) == 0 {
		base, err := v.commit(ctx, m.base, nil, "merge base", by)
		if err != nil {
			return Merge{}, err
		}
		bases = []string{base}
	}
	ours, err := v.commit(ctx, m.ours, bases, "ours", by)
	if err != nil {
		return Merge{}, err
	}
	theirs, err := v.commit(ctx, m.theirs, bases, "theirs", by)
	if err != nil {
		return Merge{}, err
	}
	raw, code, err := v.s.git.run(ctx, call{
		args:   []string{"merge-tree", "--write-tree", "-z", "--name-only", "--messages", ours, theirs},
		gitDir: v.git, objects: v.readable(), held: []*os.File{held}, answers: []int{1},
		settings: []string{"merge.renames=true", "merge.directoryRenames=conflict", "merge.renormalize=false"},
	})
	if err != nil {
		return Merge{}, err
	}
	return parseMerge(raw, code == 1)
}

// parseMerge reads what merge-tree -z --name-only --messages says: the tree, the
// paths in conflict, an empty name, then messages of their own number of paths,
// those paths, a kind and a text.
func parseMerge(raw []byte, conflict bool) (Merge, error) {
	f := fields{raw}
	tree, err := f.next()
	if err != nil || !objectID(tree) {
		return Merge{}, fmt.Errorf("git's merge does not parse at %.80q", raw)
	}
	if !conflict {
		return Merge{Tree: evidence.Tree(tree)}, nil
	}
	var paths []string
	for {
		p, err := f.next()
		if err != nil {
			return Merge{}, err
		}
		if p == "" {
			break
		}
		paths = append(paths, p)
	}
	kinds := map[string]string{}
	for len(f.rest) > 0 {
		if err := message(&f, kinds); err != nil {
			return Merge{}, err
		}
	}
	for p := range kinds {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	var m Merge
	for _, p := range slices.Compact(paths) {
		m.Conflicts = append(m.Conflicts, MergeConflict{Path: p, Kind: kinds[p]})
	}
	if len(m.Conflicts) == 0 {
		return Merge{}, errors.New("git merges with a conflict at no path")
	}
	return m, nil
}

// message files the kind of one conflict under its first path.
func message(f *fields, kinds map[string]string) error {
	count, err := f.next()
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 {
		return fmt.Errorf("git's merge names %.20q paths", count)
	}
	var first string
	for i := range n {
		p, err := f.next()
		if err != nil {
			return err
		}
		if i == 0 {
			first = p
		}
	}
	kind, err := f.next()
	if err != nil {
		return err
	}
	if _, err := f.next(); err != nil {
		return err
	}
	if kind, ok := strings.CutPrefix(kind, "CONFLICT ("); ok && kinds[first] == "" {
		kinds[first] = strings.TrimSuffix(kind, ")")
	}
	return nil
}
