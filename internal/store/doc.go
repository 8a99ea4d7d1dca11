// Package store is the database: entries, the hashes of their Merkle tree,
// checkpoints, and the projections that make reading cheap.
//
// It is SQLite by default (one file proveto.db, mode 0600, WAL, every commit
// flushed) and PostgreSQL when a URL is given: one schema and one set of
// statements for both, in sql/, one file an aggregate. Only this package speaks
// SQL. What a row means is decided by package ledger; nothing here derives,
// hashes or signs.
//
// Invariants:
//   - One writer at a time, on both databases: a write transaction holds the
//     write lock from its beginning, so it sees the last committed state. On
//     SQLite they wait in line at proveto.db-line, an empty file that only orders.
//   - A read transaction sees one state of the whole database.
//   - An error of the database leaves this package as a [fault.Error]: busy,
//     no_space, io, or, for a file that is damaged, tampered with code
//     ledger_broken.
package store
