// Package archtest holds the architecture as data: which packages exist, on
// which floor they stand, what they may import and what only they may do.
//
// The table in table.go is the one place for these facts. [Check] compares a
// loaded module with it and returns every [Violation]; the package's own test
// does so for this module, and for small modules under testdata that must be
// refused, so that each rule has been seen to reject. The picture of packages in
// docs/concepts.md is generated from the same table.
//
// It reads source files only; it starts nothing and stores nothing.
package archtest
