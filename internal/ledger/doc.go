// Package ledger is the append-only record of everything that was measured or
// decided.
//
// An entry is canonical JSON {body, kind, seq, time} (RFC 8785); its hash is a
// leaf of an RFC 6962 Merkle tree; every append ends with a checkpoint signed by
// the engine (C2SP note). Entry, tree, checkpoint and the projections that make
// reading cheap are written in one transaction of package store. Bodies of runs,
// certificates and measurements are the canonical bytes of the object, so their
// digest is the id of the object. The formats are in docs/formats/ledger.md.
//
// Invariants:
//   - Sequence numbers begin at 1 and have no gaps; the tree of the first n
//     entries has size n.
//   - Projections are a pure fold over entries ([Ledger.Rebuild]); nothing else
//     writes them.
//   - A certificate is appended only after its runs, a run only after its blobs.
//   - Runs are read back only here; verdicts are re-derived by the constructors of
//     package evidence, never here.
//
// The package starts no process and writes no git object: [Ledger.Anchor] gives
// the bytes, package snapshot puts them into a ref.
package ledger

import "github.com/proveto/proveto/internal/fault"

// The codes of this package. The first group are findings of [Ledger.Verify].
const (
	CodeBroken         fault.Code = "ledger_broken"      // an entry or a hash of the tree was changed, or the storage is damaged
	CodeCheckpointBad  fault.Code = "checkpoint_bad"     // a checkpoint is not about these entries or not by this engine
	CodeRolledBack     fault.Code = "rolled_back"        // entries that somebody outside has seen are gone or replaced
	CodeMissing        fault.Code = "evidence_missing"   // a blob or run that is cited is not there
	CodeBlobBad        fault.Code = "blob_bad"           // a blob that is cited was changed
	CodeCertificateBad fault.Code = "certificate_bad"    // the stored runs derive something else
	CodeSignatureBad   fault.Code = "signature_bad"      // a signed statement does not verify
	CodeProjection     fault.Code = "projection_differs" // proveto rebuild repairs it

	CodeBadID         fault.Code = "bad_id"
	CodeAmbiguous     fault.Code = "ambiguous_id"
	CodeNotFound      fault.Code = "not_found"
	CodeEngineUnknown fault.Code = "engine_unknown" // the ledger was founded with another engine key
)
