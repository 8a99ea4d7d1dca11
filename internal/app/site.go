package app

import (
	"context"
	"errors"
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/snapshot"
)

// Site is where another use case measures sealed trees of a repository: checkouts,
// the walls around them, and the record of what ran. Close it after use.
type Site struct {
	app       *App
	snaps     *snapshot.Store
	repo      snapshot.Repo
	release   snapshot.Release
	checkouts []*snapshot.Checkout
	recorder
}

// Site opens a site of a repository that was located.
func (a *App) Site(ctx context.Context, repo snapshot.Repo) (*Site, error) {
	snaps, err := a.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	release, err := snaps.Use(ctx)
	if err != nil {
		return nil, err
	}
	return &Site{app: a, snaps: snaps, repo: repo, release: release, recorder: recorder{app: a, keeps: true}}, nil
}

// Snapshots are the trees of the site's repository.
func (s *Site) Snapshots() *snapshot.Store { return s.snaps }

// Checkout puts a tree on disk; the site releases it when it is closed.
func (s *Site) Checkout(ctx context.Context, tree evidence.Tree) (*snapshot.Checkout, error) {
	c, err := s.snaps.Checkout(ctx, s.repo, tree)
	if err == nil {
		s.checkouts = append(s.checkouts, c)
	}
	return c, err
}

// Workspace is what drivers work in at a checkout. Min is the least isolation,
// where the configuration asks for less.
func (s *Site) Workspace(c *snapshot.Checkout, min evidence.Level) lang.Workspace {
	w := s.app.workspace(c.Dir(), s.repo.Root, c.Tree(), s.record)
	if min.Rank() > w.Min.Rank() {
		w.Min = min
	}
	return w
}

// Runs lists what was recorded so far, in order.
func (s *Site) Runs() []ledger.RunOutput {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	return slices.Concat(s.committed, s.pending)
}

// Isolation is the weakest that a run reached; zero without any.
func (s *Site) Isolation() evidence.Isolation {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	return s.isolation
}

// Commit writes every run that is not written yet, and what follows from them, in
// one transaction.
func (s *Site) Commit(ctx context.Context, drafts ...ledger.Draft) error {
	return s.commit(ctx, drafts, nil)
}

// Close gives the checkouts back.
func (s *Site) Close() error {
	var errs []error
	for _, c := range s.checkouts {
		errs = append(errs, c.Release(context.Background()))
	}
	return errors.Join(append(errs, s.release())...)
}
