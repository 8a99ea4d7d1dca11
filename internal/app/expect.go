package app

import (
	"context"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/ledger"
)

// checkHead compares the head with --expect-head, before the first entry of this
// process. What else is appended between this look and that entry shows in
// [App.follows].
func (a *App) checkHead(ctx context.Context, led *ledger.Ledger) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ExpectHead == "" || a.checked {
		return nil
	}
	want, err := parseHead(a.ExpectHead)
	if err != nil {
		return err
	}
	have, err := led.Head(ctx)
	if err != nil {
		return err
	}
	if have.Seq != want.Seq || have.Root != want.Root {
		return headMoved(a.ExpectHead)
	}
	a.checked, a.after = true, have.Seq
	return nil
}

// follows refuses the first entries of this process, inside their transaction,
// when somebody else's came between.
func (a *App) follows(entries []ledger.Entry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.after == 0 || len(entries) == 0 {
		return nil
	}
	if entries[0].Seq != a.after+1 {
		return headMoved(a.ExpectHead)
	}
	a.after = 0
	return nil
}

func headMoved(want string) error {
	return fault.New(fault.Conflict, "conflict", "the head of the ledger is not %s; nothing was recorded", want).Hint("proveto ledger head")
}
