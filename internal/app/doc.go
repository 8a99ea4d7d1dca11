// Package app holds the use cases: the only place where jobs, ledger, queue,
// snapshots and drivers are joined. A face parses, calls one use case, and shows
// the view that it returns.
//
// Everything a use case needs is a field of [App]; nothing is global. Stores are
// opened when first used, so that a command that needs none pays for none.
package app
