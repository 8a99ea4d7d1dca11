package snapshot

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/fault"
)

// ResolveCommit finds the commit that a revision names in the user's
// repository; code base_unresolved when it names none.
func (s *Store) ResolveCommit(ctx context.Context, repo Repo, rev string) (string, error) {
	if err := nameable(repo, rev); err != nil {
		return "", err
	}
	out, _, err := s.git.run(ctx, call{args: []string{"rev-parse", "-q", "--verify", rev + "^{commit}"}, gitDir: repo.GitDir})
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		e := unresolved(repo, rev)
		e.Err = err
		return "", e
	}
	return strings.TrimSpace(string(out)), nil
}

// MergeBase is the best common ancestor of two revisions; code base_unresolved
// when a revision names no commit or there is no common history.
func (s *Store) MergeBase(ctx context.Context, repo Repo, a, b string) (string, error) {
	ca, err := s.ResolveCommit(ctx, repo, a)
	if err != nil {
		return "", err
	}
	cb, err := s.ResolveCommit(ctx, repo, b)
	if err != nil {
		return "", err
	}
	out, code, err := s.git.run(ctx, call{args: []string{"merge-base", ca, cb}, gitDir: repo.GitDir, answers: []int{1}})
	if err != nil {
		return "", fmt.Errorf("merge base of %q and %q: %w", a, b, err)
	}
	if code == 1 {
		return "", unrelated(repo, a, b)
	}
	return strings.TrimSpace(string(out)), nil
}

func unrelated(repo Repo, a, b string) error {
	e := fault.New(fault.NotFound, CodeBaseUnresolved, "%q and %q have no common history in %s", a, b, repo.Name)
	if repo.Shallow {
		e.Hint("git -C %s fetch --unshallow", repo.Root)
	}
	return e
}

// Churn counts in how many of HEAD's last n commits a path changed, merges left
// out. It is empty without history.
func (s *Store) Churn(ctx context.Context, repo Repo, n int) (map[string]int, error) {
	at, err := s.head(ctx, repo)
	head := at.commit
	if err != nil || head == "" || n <= 0 {
		return map[string]int{}, err
	}
	revs, _, err := s.git.run(ctx, call{args: []string{"rev-list", "--no-merges", "-n", strconv.Itoa(n), head}, gitDir: repo.GitDir})
	if err != nil {
		return nil, fmt.Errorf("last %d commits of %s: %w", n, repo.Name, err)
	}
	names, _, err := s.git.run(ctx, call{
		args:   []string{"diff-tree", "--stdin", "--root", "-r", "-z", "--name-only", "--no-commit-id", "--no-renames", "--no-ext-diff"},
		gitDir: repo.GitDir, stdin: revs,
	})
	if err != nil {
		return nil, fmt.Errorf("changes in the last %d commits of %s: %w", n, repo.Name, err)
	}
	out := map[string]int{}
	for _, name := range split(names) {
		out[name]++
	}
	return out, nil
}
