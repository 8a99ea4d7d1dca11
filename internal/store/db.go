package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	"modernc.org/sqlite"

	"github.com/proveto/proveto/internal/fault"
)

// BusyTimeout is how long a write waits for another writer before it ends with
// busy.
const BusyTimeout = 10 * time.Second

// FileName is the name of the database file in the state directory.
const FileName = "proveto.db"

// readers bounds the read connections of one process.
const readers = 4

// Config says which database to open: exactly one field is set.
type Config struct {
	Path        string // of the SQLite file; made when absent, its directory must exist
	DatabaseURL string // postgres://…
}

// Dialect is the database's kind.
type Dialect string

// The dialects.
const (
	SQLite     Dialect = "sqlite"
	PostgreSQL Dialect = "postgresql"
)

// DB is an open database. It may be used by any number of goroutines.
type DB struct {
	dialect Dialect
	name    string // for messages: the path, or the URL without its password
	pool    *sql.DB
	// queue is the one connection, on SQLite, through which this process writes from
	// the time on that package queue works with it; nil before, and on PostgreSQL.
	queue atomic.Pointer[sql.DB]
	// writing is held by the one writer of this process on SQLite, so that writers
	// wait in line and not by asking the file again and again; nil on PostgreSQL.
	writing chan struct{}
	line    *line          // the same for several processes; nil on PostgreSQL
	open    func() *sql.DB // SQLite: another pool of connections
}

// Open opens the database and brings its schema up to this version. A schema
// newer than ours is refused with code state_newer.
func Open(ctx context.Context, c Config) (*DB, error) {
	var db *DB
	var err error
	switch {
	case (c.Path == "") == (c.DatabaseURL == ""):
		return nil, fault.New(fault.Usage, "usage", "a store has either a path or a database URL")
	case c.Path != "":
		db, err = openSQLite(c.Path)
	default:
		db, err = openPostgreSQL(c.DatabaseURL)
	}
	if err != nil {
		return nil, err
	}
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func openSQLite(path string) (*DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, CodeIO, "open %s", path)
	}
	db := &DB{dialect: SQLite, name: abs, writing: make(chan struct{}, 1), line: &line{abs + lineSuffix}}
	// SQLite would make the file readable by the group; its -wal and -shm files
	// take the mode from it.
	f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		err = f.Close()
	case errors.Is(err, fs.ErrExist):
		var fi fs.FileInfo
		if fi, err = os.Lstat(abs); err == nil && !fi.Mode().IsRegular() {
			return nil, fault.New(fault.Refused, CodeIO, "%s is not a regular file", abs)
		}
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, CodeIO, "open database %s", abs)
	}
	q := url.Values{
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", BusyTimeout.Milliseconds()),
			"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		},
		// BEGIN IMMEDIATE: a write transaction never has to upgrade a read lock,
		// which SQLite refuses without waiting.
		"_txlock": {"immediate"},
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: abs, RawQuery: q.Encode()}
	one, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, CodeIO, "open database %s", abs)
	}
	db.open = func() *sql.DB { return sql.OpenDB(one) }
	db.pool = db.open()
	// One pool for readers and the writer: a connection costs a millisecond, and
	// one command after the other needs no second one.
	db.pool.SetMaxOpenConns(readers + 1)
	db.pool.SetMaxIdleConns(readers + 1)
	return db, nil
}

func openPostgreSQL(raw string) (*DB, error) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return nil, fault.New(fault.Usage, "usage", "the database URL does not begin with postgres://")
	}
	pool, err := sql.Open("pgx", raw)
	if err != nil {
		return nil, fault.Wrap(err, fault.Usage, "usage", "database URL %s", u.Redacted())
	}
	pool.SetMaxIdleConns(readers)
	return &DB{dialect: PostgreSQL, name: u.Redacted(), pool: pool}, nil
}

// Close ends all connections. Calls that are under way are waited for.
func (db *DB) Close() error {
	err := db.pool.Close()
	if q := db.queue.Load(); q != nil {
		err = errors.Join(err, q.Close())
	}
	return err
}

// Dialect is the kind of the database.
func (db *DB) Dialect() Dialect { return db.dialect }

// Name is the path or the URL without its password: for messages.
func (db *DB) Name() string { return db.name }

// SQL is the pool of write connections. Only package queue uses it, for River's
// driver. On SQLite it has one connection: whoever holds a transaction must not
// ask for another.
func (db *DB) SQL() *sql.DB {
	if db.dialect != SQLite {
		return db.pool
	}
	if q := db.queue.Load(); q != nil {
		return q
	}
	q := db.open()
	q.SetMaxOpenConns(1)
	if db.queue.CompareAndSwap(nil, q) {
		return q
	}
	_ = q.Close() // it has opened nothing yet
	return db.queue.Load()
}

// writer is the pool that this process writes through.
func (db *DB) writer() *sql.DB {
	if q := db.queue.Load(); q != nil {
		return q
	}
	return db.pool
}

// Write runs fn in a write transaction and commits, durably, when fn returns
// nil. It waits up to [BusyTimeout] for other writers, then ends with code busy;
// fn may be run again, so it must have no effect but on the transaction.
func (db *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	deadline := time.Now().Add(BusyTimeout)
	for {
		err := db.write(ctx, deadline, fn)
		if !fault.Has(err, CodeBusy) || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
	}
}

func (db *DB) write(ctx context.Context, deadline time.Time, fn func(*Tx) error) error {
	conn, release, err := db.conn(ctx, deadline)
	if err != nil {
		return err
	}
	defer release()
	err = func() error {
		leave, err := db.inLine(ctx, conn, deadline)
		if err != nil {
			return err
		}
		defer leave()
		return db.inTx(ctx, conn, nil, func(tx *Tx) error {
			if db.dialect == PostgreSQL {
				if err := tx.lock(ctx); err != nil {
					return err
				}
			}
			return fn(tx)
		})
	}()
	return errors.Join(err, ignoreDone(conn.Close()))
}

// inLine waits for the turn of this process, half of the time at most: a process
// that was stopped while it waited must not keep others out for ever. The database
// is asked for the rest of it.
func (db *DB) inLine(ctx context.Context, conn *sql.Conn, deadline time.Time) (leave func(), _ error) {
	if db.line == nil {
		return func() {}, nil
	}
	wait, cancel := context.WithDeadline(ctx, deadline.Add(-BusyTimeout/2))
	defer cancel()
	out := db.line.wait(wait)
	if err := ctx.Err(); err != nil {
		out()
		return nil, err
	}
	if wait.Err() == nil {
		return out, nil
	}
	if err := busyTimeout(ctx, conn, max(0, time.Until(deadline))); err != nil {
		out()
		return nil, db.faultOf(err, "wait")
	}
	return func() {
		out()
		_ = busyTimeout(context.WithoutCancel(ctx), conn, BusyTimeout) // only how long it waits next time
	}, nil
}

func busyTimeout(ctx context.Context, conn *sql.Conn, d time.Duration) error {
	_, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()))
	return err
}

// conn waits for the turn of this caller to write, which another goroutine may
// have, and for a connection, no longer than the deadline.
func (db *DB) conn(ctx context.Context, deadline time.Time) (_ *sql.Conn, release func(), err error) {
	wait, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	release = func() {}
	if db.writing != nil {
		select {
		case db.writing <- struct{}{}:
			release = func() { <-db.writing }
		case <-wait.Done():
			err = wait.Err()
		}
	}
	var conn *sql.Conn
	if err == nil {
		if conn, err = db.writer().Conn(wait); err == nil {
			return conn, release, nil
		}
		release()
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil, fault.New(fault.Conflict, CodeBusy, "another writer of this process held %s for %s", db.name, BusyTimeout)
	}
	return nil, nil, db.faultOf(err, "connect")
}

// Read runs fn in a read transaction: all its reads see one state.
func (db *DB) Read(ctx context.Context, fn func(*Tx) error) error {
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return db.faultOf(err, "connect")
	}
	opts := &sql.TxOptions{ReadOnly: true}
	if db.dialect == PostgreSQL {
		opts.Isolation = sql.LevelRepeatableRead
	}
	return errors.Join(db.inTx(ctx, conn, opts, fn), ignoreDone(conn.Close()))
}

func (db *DB) inTx(ctx context.Context, conn *sql.Conn, opts *sql.TxOptions, fn func(*Tx) error) (err error) {
	stx, err := conn.BeginTx(ctx, opts)
	if err != nil {
		return db.faultOf(err, "begin")
	}
	tx := &Tx{db: db, tx: stx, reads: opts != nil && opts.ReadOnly, stmts: map[string]*sql.Stmt{}}
	done := false
	defer func() {
		if !done { // fn failed or panicked; a failing rollback adds nothing to that
			_ = stx.Rollback()
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	done = true
	return db.faultOf(stx.Commit(), "commit")
}

// ignoreDone drops the error of giving back a connection that a cancelled
// context has closed already.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// lockKey is the advisory lock that every write transaction takes on PostgreSQL.
const lockKey = 0x70726f7665746f // "proveto"

func (tx *Tx) lock(ctx context.Context) error {
	text := fmt.Sprintf("SET LOCAL lock_timeout = '%dms'; SELECT pg_advisory_xact_lock(%d)", BusyTimeout.Milliseconds(), lockKey)
	_, err := tx.tx.ExecContext(ctx, text)
	return tx.db.faultOf(err, "lock")
}

const metaSchema = "schema"

// migrate brings the schema to [SchemaVersion]. An up-to-date one costs two
// small reads.
func (db *DB) migrate(ctx context.Context) error {
	var version int
	err := db.Read(ctx, func(tx *Tx) (err error) {
		version, err = tx.schemaVersion(ctx)
		return err
	})
	if err != nil || version == SchemaVersion {
		return err
	}
	list, err := migrations()
	if err != nil {
		return fault.Wrap(err, fault.Internal, "internal", "read the migrations")
	}
	return db.Write(ctx, func(tx *Tx) error {
		// Another process may have been first.
		version, err := tx.schemaVersion(ctx)
		if err != nil {
			return err
		}
		for _, m := range list[min(version, len(list)):] {
			if _, err := tx.tx.ExecContext(ctx, m.text); err != nil {
				return db.faultOf(err, "apply "+m.name)
			}
		}
		if version == len(list) {
			return nil
		}
		return tx.SetMeta(ctx, metaSchema, strconv.Itoa(len(list)))
	})
}

// schemaVersion is 0 for an empty database.
func (tx *Tx) schemaVersion(ctx context.Context) (int, error) {
	text := "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'"
	if tx.db.dialect == PostgreSQL {
		text = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('meta')"
	}
	var n int
	if err := tx.tx.QueryRowContext(ctx, text).Scan(&n); err != nil {
		return 0, tx.db.faultOf(err, "read the schema")
	}
	if n == 0 {
		return 0, nil
	}
	s, err := tx.Meta(ctx, metaSchema)
	if errors.Is(err, ErrNoRow) {
		return 0, fault.New(fault.Tampered, CodeBroken, "%s does not say which schema it has", tx.db.name)
	}
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(s)
	if err != nil || v < 1 {
		return 0, fault.New(fault.Tampered, CodeBroken, "%s says that it has schema %.20q", tx.db.name, s)
	}
	if v > SchemaVersion {
		return 0, fault.New(fault.Refused, CodeStateNewer, "%s has schema %d; this version knows %d", tx.db.name, v, SchemaVersion).
			Hint("use the version of proveto that wrote it, or a newer one")
	}
	return v, nil
}

// CheckStorage asks the database whether its own structure is sound: on SQLite
// that every page parses and every index agrees with its table. Damage is
// tampered with code ledger_broken. PostgreSQL has no such question for users.
func (db *DB) CheckStorage(ctx context.Context) error {
	if db.dialect != SQLite {
		return nil
	}
	return db.Read(ctx, func(tx *Tx) error {
		var answer string
		if err := tx.tx.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&answer); err != nil {
			return db.faultOf(err, "check")
		}
		if answer != "ok" {
			return fault.New(fault.Tampered, CodeBroken, "%s is damaged: %s", db.name, answer).Hint("proveto ledger verify")
		}
		return nil
	})
}

// Migrating runs fn while no other process does the same, for package queue's
// own schema. On SQLite that is inside a write transaction; on PostgreSQL tx is
// nil, because some of River's migrations must not share a transaction.
func (db *DB) Migrating(ctx context.Context, fn func(tx *Tx) error) error {
	if db.dialect == SQLite {
		return db.Write(ctx, fn)
	}
	conn, release, err := db.conn(ctx, time.Now().Add(BusyTimeout))
	if err != nil {
		return err
	}
	defer release()
	_, err = conn.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_lock(%d)", lockKey+1))
	if err != nil {
		err = db.faultOf(err, "lock")
	} else {
		err = fn(nil)
		// With the context cancelled the connection, and so the lock, ends below.
		_, unlock := conn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("SELECT pg_advisory_unlock(%d)", lockKey+1))
		err = errors.Join(err, db.faultOf(unlock, "unlock"))
	}
	return errors.Join(err, ignoreDone(conn.Close()))
}
