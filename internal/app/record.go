package app

import (
	"context"
	"sync"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/sandbox"
	"github.com/proveto/proveto/internal/store"
)

// networkOf reads the configuration key isolation.network.
func networkOf(s string) sandbox.Network {
	if s == string(sandbox.NetworkHost) {
		return sandbox.NetworkHost
	}
	return sandbox.NetworkLoopback
}

// recorder keeps the runs that were made until the transaction that makes them
// count: blobs at once, entries together with what they vouch for.
type recorder struct {
	app       *App
	keeps     bool       // committed lists what was written
	commits   sync.Mutex // one at a time: the runs that a certificate cites may be in the hands of another commit
	mu        sync.Mutex
	pending   []ledger.RunOutput
	committed []ledger.RunOutput
	isolation evidence.Isolation // weakest of the runs so far
}

// workspace is what drivers work in at a checkout of a tree; origin is the working
// copy that it was sealed from.
func (a *App) workspace(root, origin string, tree evidence.Tree, recordFunc func(evidence.Run, sandbox.Output) error) lang.Workspace {
	return lang.Workspace{
		Root: root, Origin: origin, Tree: tree, Cache: a.Paths.Cache, Hidden: a.hidden(),
		Min: evidence.Level(a.Config.Isolation.Min), Max: a.MaxLevel, Network: networkOf(a.Config.Isolation.Network), Builds: true,
		Env: a.testEnv(), Configured: a.testVariables(), Record: recordFunc,
		Limits: evidence.Limits{
			Wall: a.Config.Isolation.Wall, MemoryBytes: a.Config.Isolation.MemBytes, Processes: a.Config.Isolation.PIDs,
		},
	}
}

// workspace is what the drivers of this invocation work in.
func (inv *invocation) workspace() lang.Workspace {
	w := inv.app.workspace(inv.checkout.Dir(), inv.repo.Root, inv.snap.Tree, inv.record)
	w.Min, w.Builds = evidence.Level(inv.rules().Isolation.Min), !inv.o.StaticOnly
	if inv.o.MinIsolation.Rank() > w.Min.Rank() {
		w.Min = inv.o.MinIsolation
	}
	return w
}

// record receives a run from a driver; the next commit makes it durable.
func (rec *recorder) record(r evidence.Run, out sandbox.Output) error {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	iso := r.Record().Isolation
	if rec.isolation.Level == "" || iso.Level.Rank() < rec.isolation.Level.Rank() {
		rec.isolation.Level = iso.Level
	}
	if rec.isolation.Network == "" || iso.Network == evidence.Open {
		rec.isolation.Network = iso.Network
	}
	rec.pending = append(rec.pending, ledger.RunOutput{Run: r, Stdout: out.Stdout, Stderr: out.Stderr})
	return nil
}

// commit writes every pending run and the drafts that they vouch for in one
// transaction; also joins in what else must happen with them.
func (rec *recorder) commit(ctx context.Context, drafts []ledger.Draft, also func(*store.Tx) error) error {
	led, err := rec.app.Ledger(ctx)
	if err != nil {
		return err
	}
	if err := rec.app.checkHead(ctx, led); err != nil {
		return err
	}
	rec.commits.Lock()
	defer rec.commits.Unlock()
	rec.mu.Lock()
	runs := rec.pending
	rec.pending = nil
	rec.mu.Unlock()
	all := make([]ledger.Draft, 0, len(runs)+len(drafts))
	for _, r := range runs {
		all = append(all, ledger.RunDraft(r.Run))
	}
	all = append(all, drafts...)
	if err = led.KeepRuns(ctx, runs...); err != nil {
		return err
	}
	err = rec.app.db.Write(ctx, func(tx *store.Tx) error {
		if len(all) > 0 {
			entries, err := led.Append(ctx, tx, all...)
			if err == nil {
				err = rec.app.follows(entries)
			}
			if err != nil {
				return err
			}
		}
		if also != nil {
			return also(tx)
		}
		return nil
	})
	rec.mu.Lock()
	defer rec.mu.Unlock()
	switch {
	case err != nil:
		rec.pending = append(runs, rec.pending...)
	case rec.keeps:
		rec.committed = append(rec.committed, runs...)
	}
	return err
}
