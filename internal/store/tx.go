package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/proveto/proveto/internal/fault"
)

// Tx is one transaction. It is not safe for concurrent use.
type Tx struct {
	db    *DB
	tx    *sql.Tx
	reads bool                 // it may not write
	stmts map[string]*sql.Stmt // closed by the end of the transaction
}

// SQL is the transaction itself. Only package queue uses it, for River's driver.
func (tx *Tx) SQL() *sql.Tx { return tx.tx }

// begun is the context of one statement. A cancelled one begins no statement. On
// SQLite nothing stops a statement that runs: each is short, the one that waits for
// other writers is BEGIN, and the driver would start a goroutine for each to watch.
func (tx *Tx) begun(ctx context.Context) (context.Context, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if tx.db.dialect == SQLite {
		return context.WithoutCancel(ctx), nil
	}
	return ctx, nil
}

// stmt prepares a statement once a transaction.
func (tx *Tx) stmt(ctx context.Context, name string) (*sql.Stmt, error) {
	if s, ok := tx.stmts[name]; ok {
		return s, nil
	}
	text, ok := queries()[name]
	if !ok {
		panic(fmt.Sprintf("no statement %s", name))
	}
	s, err := tx.tx.PrepareContext(ctx, text)
	if err != nil {
		return nil, tx.db.faultOf(err, name)
	}
	tx.stmts[name] = s
	return s, nil
}

func (tx *Tx) exec(ctx context.Context, name string, args ...any) error {
	_, err := tx.change(ctx, name, args)
	return err
}

// change runs a statement that writes.
func (tx *Tx) change(ctx context.Context, name string, args []any) (sql.Result, error) {
	if tx.reads {
		return nil, fault.New(fault.Internal, "internal", "%s in a transaction that only reads", name)
	}
	ctx, err := tx.begun(ctx)
	if err != nil {
		return nil, err
	}
	s, err := tx.stmt(ctx, name)
	if err != nil {
		return nil, err
	}
	res, err := s.ExecContext(ctx, args...)
	return res, tx.db.faultOf(err, name)
}

// execOne changes exactly one row; none is [ErrNoRow].
func (tx *Tx) execOne(ctx context.Context, name string, args ...any) error {
	res, err := tx.change(ctx, name, args)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		return ErrNoRow
	}
	return tx.db.faultOf(err, name)
}

// row is a pointer to a row type that knows its columns.
type row[T any] interface {
	*T
	dest() []any
}

func one[T any, P row[T]](ctx context.Context, tx *Tx, name string, args ...any) (T, error) {
	var out T
	return out, tx.scanOne(ctx, name, args, P(&out).dest()...)
}

func (tx *Tx) scanOne(ctx context.Context, name string, args []any, dest ...any) error {
	ctx, err := tx.begun(ctx)
	if err != nil {
		return err
	}
	s, err := tx.stmt(ctx, name)
	if err != nil {
		return err
	}
	err = s.QueryRowContext(ctx, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNoRow
	}
	return tx.db.faultOf(err, name)
}

func many[T any, P row[T]](ctx context.Context, tx *Tx, name string, args ...any) (out []T, err error) {
	if ctx, err = tx.begun(ctx); err != nil {
		return nil, err
	}
	s, err := tx.stmt(ctx, name)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return nil, tx.db.faultOf(err, name)
	}
	defer func() { err = errors.Join(err, tx.db.faultOf(rows.Close(), name)) }()
	for rows.Next() {
		var r T
		if err := rows.Scan(P(&r).dest()...); err != nil {
			return nil, tx.db.faultOf(err, name)
		}
		out = append(out, r)
	}
	return out, tx.db.faultOf(rows.Err(), name)
}

type text struct{ s string }

func (t *text) dest() []any { return []any{&t.s} }

func (tx *Tx) texts(ctx context.Context, name string, args ...any) ([]string, error) {
	rows, err := many[text](ctx, tx, name, args...)
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.s
	}
	return out, err
}

func (tx *Tx) number(ctx context.Context, name string, args ...any) (n int64, err error) {
	return n, tx.scanOne(ctx, name, args, &n)
}

// Meta is the value of a key, or [ErrNoRow].
func (tx *Tx) Meta(ctx context.Context, key string) (v string, err error) {
	return v, tx.scanOne(ctx, "meta_value", []any{key}, &v)
}

// SetMeta sets the value of a key.
func (tx *Tx) SetMeta(ctx context.Context, key, value string) error {
	return tx.exec(ctx, "meta_set", key, value)
}

// InsertEntry adds an entry; a taken sequence number is a conflict.
func (tx *Tx) InsertEntry(ctx context.Context, r EntryRow) error {
	return tx.exec(ctx, "entry_insert", r.Seq, r.Time, r.Kind, r.Body, r.LeafHash)
}

// Entry is the entry with the number, or [ErrNoRow].
func (tx *Tx) Entry(ctx context.Context, seq int64) (EntryRow, error) {
	return one[EntryRow](ctx, tx, "entry_by_seq", seq)
}

// Entries lists up to limit entries with after < seq <= last, of one kind unless
// kind is empty.
func (tx *Tx) Entries(ctx context.Context, kind string, after, last int64, limit int) ([]EntryRow, error) {
	if kind == "" {
		return many[EntryRow](ctx, tx, "entries_page", after, last, limit)
	}
	return many[EntryRow](ctx, tx, "entries_page_of_kind", kind, after, last, limit)
}

// LastSeq is the highest sequence number; 0 without entries.
func (tx *Tx) LastSeq(ctx context.Context) (int64, error) { return tx.number(ctx, "entries_last") }

// InsertHash adds a stored hash of the tree.
func (tx *Tx) InsertHash(ctx context.Context, r HashRow) error {
	return tx.exec(ctx, "tree_hash_insert", r.Index, r.Hash)
}

// Hash is the stored hash at the index, or [ErrNoRow].
func (tx *Tx) Hash(ctx context.Context, index int64) (h string, err error) {
	return h, tx.scanOne(ctx, "tree_hash", []any{index}, &h)
}

// Hashes lists up to limit stored hashes after the index, in order.
func (tx *Tx) Hashes(ctx context.Context, after int64, limit int) ([]HashRow, error) {
	return many[HashRow](ctx, tx, "tree_hashes_page", after, limit)
}

// InsertCheckpoint adds a checkpoint.
func (tx *Tx) InsertCheckpoint(ctx context.Context, r CheckpointRow) error {
	return tx.exec(ctx, "checkpoint_insert", r.Size, r.Note)
}

// LastCheckpoint is the checkpoint of the largest size, or [ErrNoRow].
func (tx *Tx) LastCheckpoint(ctx context.Context) (CheckpointRow, error) {
	return one[CheckpointRow](ctx, tx, "checkpoint_last")
}

// CheckpointOf is the first checkpoint that covers the entry, or [ErrNoRow].
func (tx *Tx) CheckpointOf(ctx context.Context, seq int64) (CheckpointRow, error) {
	return one[CheckpointRow](ctx, tx, "checkpoint_at_least", seq)
}

// Checkpoints lists up to limit checkpoints larger than after, in order.
func (tx *Tx) Checkpoints(ctx context.Context, after int64, limit int) ([]CheckpointRow, error) {
	return many[CheckpointRow](ctx, tx, "checkpoints_page", after, limit)
}
