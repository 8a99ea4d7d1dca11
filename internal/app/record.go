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
	commits   sync.Mutex // one at a time: the runs that a certificate cites may be in the hands of another commit
	mu        sync.Mutex
	pending   []ledger.RunOutput
	isolation evidence.Isolation // weakest of the runs so far
}

// workspace is what the drivers of this invocation work in.
func (inv *invocation) workspace() lang.Workspace {
	a := inv.app
	return lang.Workspace{
		Root: inv.checkout.Dir(), Origin: inv.repo.Root, Tree: inv.snap.Tree, Cache: a.Paths.Cache, Hidden: a.hidden(),
		Min: evidence.Level(inv.rules().Isolation.Min), Max: a.MaxLevel, Network: networkOf(a.Config.Isolation.Network), Builds: !inv.o.StaticOnly,
		Env: a.testEnv(), Configured: a.testVariables(), Record: inv.record,
		Limits: evidence.Limits{
			Wall: a.Config.Isolation.Wall, MemoryBytes: a.Config.Isolation.MemBytes, Processes: a.Config.Isolation.PIDs,
		},
	}
}

// record receives a run from a driver; the next commit makes it durable.
func (inv *invocation) record(r evidence.Run, out sandbox.Output) error {
	inv.recorder.mu.Lock()
	defer inv.recorder.mu.Unlock()
	iso := r.Record().Isolation
	if inv.isolation.Level == "" || iso.Level.Rank() < inv.isolation.Level.Rank() {
		inv.isolation.Level = iso.Level
	}
	if inv.isolation.Network == "" || iso.Network == evidence.Open {
		inv.isolation.Network = iso.Network
	}
	inv.pending = append(inv.pending, ledger.RunOutput{Run: r, Stdout: out.Stdout, Stderr: out.Stderr})
	return nil
}

// commit writes every pending run and the drafts that they vouch for in one
// transaction; also joins in what else must happen with them.
func (inv *invocation) commit(ctx context.Context, drafts []ledger.Draft, also func(*store.Tx) error) error {
	led, err := inv.app.Ledger(ctx)
	if err != nil {
		return err
	}
	if err := inv.app.checkHead(ctx, led); err != nil {
		return err
	}
	inv.commits.Lock()
	defer inv.commits.Unlock()
	inv.recorder.mu.Lock()
	runs := inv.pending
	inv.pending = nil
	inv.recorder.mu.Unlock()
	all := make([]ledger.Draft, 0, len(runs)+len(drafts))
	for _, r := range runs {
		all = append(all, ledger.RunDraft(r.Run))
	}
	all = append(all, drafts...)
	if err = led.KeepRuns(ctx, runs...); err != nil {
		return err
	}
	err = inv.app.db.Write(ctx, func(tx *store.Tx) error {
		if len(all) > 0 {
			entries, err := led.Append(ctx, tx, all...)
			if err == nil {
				err = inv.app.follows(entries)
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
	if err != nil {
		inv.recorder.mu.Lock()
		inv.pending = append(runs, inv.pending...)
		inv.recorder.mu.Unlock()
	}
	return err
}
