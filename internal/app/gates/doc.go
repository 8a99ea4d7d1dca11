// Package gates measures the gates of a flow: it checks sealed trees out, runs
// builds, suites, commands and proofs on them in the sandbox, and on a sabotaged
// tree that the gate must refuse.
//
// [Measure] is the only way in. Whatever ran is in the ledger when it returns; the
// evidence itself is the caller's to record. Nothing of the user's directory is
// read or written, and nothing that a producer says is believed.
package gates
