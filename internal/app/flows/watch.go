package flows

import (
	"context"
	"encoding/json"
	"time"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/view"
)

// WatchInterval is how often the store is asked for new entries.
const WatchInterval = 500 * time.Millisecond

// Watch tells every entry of a run after one, in order, those to come included,
// until the run is closed. It writes nothing.
func (f *Flows) Watch(ctx context.Context, ref string, from int64, emit func(view.FlowWatched) error) error {
	k, err := f.load(ctx, ref)
	if err != nil {
		return err
	}
	tick := time.NewTicker(WatchInterval)
	defer tick.Stop()
	closed := false
	for seen := int64(0); ; {
		entries, err := f.since(ctx, k.ID, seen)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			seen = e.Seq
			w, err := watched(e)
			if err != nil {
				return err
			}
			closed = flow.Status(w.RunStatus).Closed()
			if e.Seq > from {
				if err := emit(w); err != nil {
					return err
				}
			}
		}
		if closed || !k.Expires.IsZero() && !f.app.Now().Before(k.Expires) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func (f *Flows) since(ctx context.Context, run string, seq int64) (out []ledger.Entry, err error) {
	err = f.app.Read(ctx, func(led *ledger.Ledger, tx *store.Tx) error {
		out, err = led.RunEntriesIn(ctx, tx, run, seq)
		return err
	})
	return out, err
}

func watched(e ledger.Entry) (view.FlowWatched, error) {
	line, err := logLine(e)
	if err != nil {
		return view.FlowWatched{}, err
	}
	var h struct {
		After flow.After `json:"after"`
	}
	if err := json.Unmarshal(e.Body, &h); err != nil {
		return view.FlowWatched{}, fault.Wrap(err, fault.Tampered, "ledger_broken", "ledger entry %d is no %s", e.Seq, e.Kind)
	}
	return view.FlowWatched{Type: "entry", FlowLogLine: line, RunStatus: string(h.After.Status), Reason: h.After.Reason, CurrentStage: h.After.CurrentStage, Needs: h.After.Needs}, nil
}
