// Package fault is the vocabulary of everything that can go wrong: one error
// type, its kinds, and the one table that maps a kind to an exit code and an
// HTTP status.
//
// It stores nothing and imports nothing of ours. Codes (the fine-grained words
// in JSON answers) are declared where they arise; their spelling is snake_case
// and frozen once released.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is the coarse class of an error. It alone decides the exit code.
type Kind string

// The kinds. See the table in [Kind.Exit].
const (
	Internal    Kind = "internal"    // ours: a broken invariant or an unexpected system error
	Refused     Kind = "refused"     // the protocol says no
	NotFound    Kind = "not_found"   // the named thing does not exist
	Conflict    Kind = "conflict"    // somebody else was first
	Pending     Kind = "pending"     // recorded, not passed yet
	Negative    Kind = "negative"    // measured, and the answer is no
	Unmeasured  Kind = "unmeasured"  // could not be measured
	Tampered    Kind = "tampered"    // ledger, certificate or signature does not verify
	Usage       Kind = "usage"       // flags, arguments or configuration invalid; nothing happened
	Interrupted Kind = "interrupted" // stopped by the user; resumable
)

type row struct{ exit, http int }

var table = map[Kind]row{
	Internal:    {1, 500},
	Refused:     {1, 403},
	NotFound:    {1, 404},
	Conflict:    {1, 409},
	Pending:     {2, 202},
	Negative:    {3, 422},
	Unmeasured:  {4, 424},
	Tampered:    {5, 409},
	Usage:       {64, 400},
	Interrupted: {130, 499},
}

// Kinds lists every kind once, in the order of the exit codes.
func Kinds() []Kind {
	return []Kind{Internal, Refused, NotFound, Conflict, Pending, Negative, Unmeasured, Tampered, Usage, Interrupted}
}

// Exit is the process exit code of a kind; an unknown kind is ours: 1.
func (k Kind) Exit() int {
	if r, ok := table[k]; ok {
		return r.exit
	}
	return 1
}

// HTTP is the HTTP status of a kind; an unknown kind is ours: 500.
func (k Kind) HTTP() int {
	if r, ok := table[k]; ok {
		return r.http
	}
	return 500
}

// Code is the fine-grained word of an error or an answer: snake_case, frozen
// once released.
type Code string

// OK is the code of every answer that holds.
const OK Code = "ok"

// Error is an error meant for people and programs alike.
type Error struct {
	Kind  Kind
	Code  Code     // fine-grained: stage_out_of_order
	What  string   // lower case, no full stop: what failed, on what
	Hints []string // commands or facts that help; the first becomes "next"
	Err   error    // cause, may be nil
}

// New makes an error without a cause. What is a format string.
func New(kind Kind, code Code, what string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, What: fmt.Sprintf(what, args...)}
}

// Wrap makes an error with a cause. What is a format string.
func Wrap(err error, kind Kind, code Code, what string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, What: fmt.Sprintf(what, args...), Err: err}
}

// Hint adds a line that helps and returns the same error.
func (e *Error) Hint(format string, args ...any) *Error {
	e.Hints = append(e.Hints, fmt.Sprintf(format, args...))
	return e
}

// Error is one sentence: what, then the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.What
	}
	cause := e.Err.Error()
	if e.What == "" || strings.HasPrefix(cause, e.What) {
		return cause
	}
	return e.What + ": " + cause
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// From finds our error in err's chain. An error that carries none becomes an
// internal one, so every error has a kind, a code and an exit code.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		if err == error(e) { //nolint:errorlint // identity is meant: a wrapped e takes the other path
			return e
		}
		// Keep the facts that outer wraps added, and the hints of the inner error.
		return &Error{Kind: e.Kind, Code: e.Code, Hints: e.Hints, Err: err}
	}
	return &Error{Kind: Internal, Code: "internal", Err: err}
}

// Has tells whether err carries the given code.
func Has(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
