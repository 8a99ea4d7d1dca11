// Package evidence holds the words of the product as types: digests, runs,
// probes, the statuses a probe can end in, and certificates.
//
// Invariants:
//   - A [Run] is made by package sandbox alone ([RecordRun]) and read back only
//     by package ledger ([LoadRun]); package archtest checks the callers.
//   - A [Certificate] has unexported fields. Its constructors take runs and derive
//     the verdict; verification calls the same constructors on the stored runs.
//   - Nothing here does I/O, reads a clock or keeps state. Credit is not a type:
//     it is the comparison of a certificate's digests with today's.
//
// Stored forms are canonical JSON (RFC 8785); see docs/formats/.
package evidence
