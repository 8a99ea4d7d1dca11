// Package plan is the contract between whoever plans a task and whoever does it:
// what must come out, which paths may change, which dependencies and interfaces.
//
// A [Contract] is read strictly ([Parse]), has one canonical form and therefore
// one id, and is judged twice: by [Lint] before it is accepted, and against a
// change by [Check] afterwards. Everything that a contract does not name is
// denied. The plan token ([Token]) says which accepted contract its bearer worked
// to; it carries no right.
//
// The package is pure: no clock, no files, no git, no ledger. Callers hand in the
// paths of trees, the changes between them and what was read from their files
// ([Read] says how), and store what comes out.
package plan

import "github.com/proveto/proveto/internal/fault"

// The codes of errors about contracts and tokens. The codes of violations are in
// [Codes].
const (
	// CodeInvalid: the contract cannot be read; the message has line and column.
	CodeInvalid fault.Code = "plan_invalid"
	// CodeTokenMissing: an approval came without the token of the plan.
	CodeTokenMissing fault.Code = "token_missing"
	// CodeTokenInvalid: the token is not that of the plan in force.
	CodeTokenInvalid fault.Code = "token_invalid"
	// CodePathCollision: a change names a path that cannot be checked out safely.
	CodePathCollision fault.Code = "path_collision"
)
