package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/proveto/proveto/internal/fault"
)

// The codes of this package.
const (
	CodeBusy       fault.Code = "busy"          // another writer for more than BusyTimeout; nothing was recorded
	CodeNoSpace    fault.Code = "no_space"      // nothing was recorded
	CodeIO         fault.Code = "io"            // read-only, unreachable or failing storage
	CodeBroken     fault.Code = "ledger_broken" // the database itself is damaged
	CodeStateNewer fault.Code = "state_newer"   // written by a newer version
	CodeConflict   fault.Code = "conflict"      // a row with this key is there
)

// ErrNoRow says that the row asked for does not exist.
var ErrNoRow = fault.New(fault.NotFound, "not_found", "no such row")

// faultOf turns an error of the database into ours. What says on what. Errors
// that are already ours, and those of the context, are kept.
func (db *DB) faultOf(err error, what string) error {
	var (
		f  *fault.Error
		se *sqlite.Error
		pe *pgconn.PgError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return err
	case errors.As(err, &se):
		return db.sqliteFault(se, what)
	case errors.As(err, &pe):
		return db.postgresFault(pe, what)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case strings.HasPrefix(err.Error(), "sql: Scan error"):
		// A column holds another type than was ever written.
		return fault.Wrap(err, fault.Tampered, CodeBroken, "%s in %s", what, db.name)
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone):
		return fault.Wrap(err, fault.Internal, CodeIO, "%s in %s", what, db.name)
	}
	return withHint(fault.Wrap(oneLineError{err}, fault.Internal, CodeIO, "%s in %s", what, db.name))
}

// oneLineError is an error of a library whose words are more than one line.
type oneLineError struct{ error }

func (e oneLineError) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }

func (e oneLineError) Unwrap() error { return e.error }

func (db *DB) sqliteFault(e *sqlite.Error, what string) error {
	kind, code := fault.Internal, CodeIO
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		kind, code = fault.Conflict, CodeBusy
	case sqlite3.SQLITE_FULL:
		code = CodeNoSpace
	case sqlite3.SQLITE_CONSTRAINT:
		kind, code = fault.Conflict, CodeConflict
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT,
		sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE,
		// Every statement of ours compiles on a sound schema (a test compiles
		// them all), so one that does not has lost its table or column.
		sqlite3.SQLITE_ERROR:
		kind, code = fault.Tampered, CodeBroken
	case sqlite3.SQLITE_INTERRUPT:
		return context.Canceled
	}
	return withHint(fault.Wrap(e, kind, code, "%s in %s", what, db.name))
}

func (db *DB) postgresFault(e *pgconn.PgError, what string) error {
	kind, code := fault.Internal, CodeIO
	switch {
	case e.Code == "55P03", e.Code == "40001", e.Code == "40P01": // lock timeout, serialization, deadlock
		kind, code = fault.Conflict, CodeBusy
	case e.Code == "53100", e.Code == "53200": // disk full, out of memory
		code = CodeNoSpace
	case strings.HasPrefix(e.Code, "23"):
		kind, code = fault.Conflict, CodeConflict
	case strings.HasPrefix(e.Code, "XX"), strings.HasPrefix(e.Code, "42"): // data corrupted; table or column lost
		kind, code = fault.Tampered, CodeBroken
	case e.Code == "57014": // cancelled on our request
		return context.Canceled
	}
	return withHint(fault.Wrap(e, kind, code, "%s in %s", what, db.name))
}

func withHint(f *fault.Error) *fault.Error {
	switch f.Code {
	case CodeNoSpace:
		return f.Hint("proveto gc")
	case CodeIO:
		return f.Hint("proveto doctor")
	case CodeBroken:
		return f.Hint("proveto ledger verify")
	}
	return f
}
