package ledger

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/identity"
)

// Draft is an entry before it has a number. Only the constructors of this
// package make one, so that an entry of kind run or certificate always is one.
type Draft struct {
	kind Kind
	body []byte // canonical
}

// RunDraft records a run. Its blobs must be kept first, see [Ledger.KeepRun].
func RunDraft(r evidence.Run) Draft { return Draft{KindRun, r.Body()} }

// CertificateDraft records a certificate, after its runs.
func CertificateDraft(c evidence.Certificate) Draft { return Draft{KindCertificate, c.Body()} }

// MeasurementDraft records a measurement, after its runs and certificates.
func MeasurementDraft(m evidence.Measurement) Draft { return Draft{KindMeasurement, m.Body()} }

// Genesis is the body of the first entry.
type Genesis struct {
	Schema   string `json:"schema"`
	LedgerID string `json:"ledger_id"` // 32 random hexadecimal digits
	Engine   string `json:"engine"`    // verifier key of the engine in note form
}

// Snapshot is the body of an entry about a sealed tree.
type Snapshot struct {
	Schema string        `json:"schema"`
	Tree   evidence.Tree `json:"tree"`
	Commit string        `json:"commit,omitempty"` // absent on an unborn branch
	Repo   string        `json:"repo"`
	Dirty  bool          `json:"dirty"` // the tree is not the commit's
}

// Waiver is the body of an entry with which a person says that a surviving probe
// does not matter. Key and Signature are over the rest.
type Waiver struct {
	Schema   string          `json:"schema"`
	LedgerID string          `json:"ledger_id"`
	Probe    evidence.Digest `json:"probe"`
	Symbol   string          `json:"symbol"`
	// SymbolDigest is what the symbol was when the probe was seen to survive: the
	// waiver is about this and ends with it. Empty in old waivers.
	SymbolDigest evidence.Digest `json:"symbol_digest,omitempty"`
	Reason       string          `json:"reason"`
	Until        time.Time       `json:"until"`
	Principal    string          `json:"principal"`
	Nonce        string          `json:"nonce"` // ULID
	Key          string          `json:"key,omitempty"`
	Signature    string          `json:"signature,omitempty"`
}

// Start is the body of an entry about a finished invocation, so that the same
// run key need not be measured again.
type Start struct {
	Schema     string          `json:"schema"`
	Key        evidence.Digest `json:"key"`        // of everything the result depends on
	Invocation string          `json:"invocation"` // ULID
	Result     evidence.Digest `json:"result"`     // blob
	Tree       evidence.Tree   `json:"tree"`
	Repo       string          `json:"repo"`
	// Where the tree stood, so that later starts find the one before them: absent
	// on a detached head, on an unborn branch, and in old entries.
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
	Narrow bool   `json:"narrow,omitempty"` // less than everything was asked for
}

// Refusal is the body of an entry about a request that was refused.
type Refusal struct {
	Schema string     `json:"schema"`
	Verb   string     `json:"verb"`
	Code   fault.Code `json:"code"`
	What   string     `json:"what"`
}

// The schemas of the bodies of this package.
const (
	SchemaGenesis  = "proveto/genesis/v1"
	SchemaSnapshot = "proveto/snapshot/v1"
	SchemaWaiver   = "proveto/waiver/v1"
	SchemaStart    = "proveto/start/v1"
	SchemaRefusal  = "proveto/refusal/v1"
)

// WaiverNamespace is the SSHSIG namespace of waivers.
const WaiverNamespace = "proveto-waiver-v1"

func draft(k Kind, v any) (Draft, error) {
	body, err := evidence.Canonical(v)
	return Draft{k, body}, err
}

// SnapshotDraft records a sealed tree.
func SnapshotDraft(s Snapshot) (Draft, error) {
	s.Schema = SchemaSnapshot
	if _, err := evidence.ParseTree(string(s.Tree)); err != nil {
		return Draft{}, err
	}
	return draft(KindSnapshot, s)
}

// Statement is the canonical JSON that the person signs.
func (w Waiver) Statement() ([]byte, error) {
	w.Schema, w.Until, w.Key, w.Signature = SchemaWaiver, w.Until.UTC(), "", ""
	return evidence.Canonical(w)
}

func (w Waiver) verify() error {
	s, err := w.Statement()
	if err != nil {
		return err
	}
	return identity.VerifyStatement(w.Key, s, w.Signature, WaiverNamespace)
}

// WaiverDraft records a signed waiver; a signature that does not verify is an
// error. Whether the principal may waive is not asked here.
func WaiverDraft(w Waiver) (Draft, error) {
	w.Schema, w.Until = SchemaWaiver, w.Until.UTC()
	if _, err := evidence.ParseDigest(string(w.Probe)); err != nil {
		return Draft{}, err
	}
	if w.Reason == "" || w.Principal == "" || w.Until.IsZero() {
		return Draft{}, fault.New(fault.Usage, "usage", "a waiver has a principal, a reason and a date until which it holds")
	}
	if _, err := ulid.ParseStrict(w.Nonce); err != nil {
		return Draft{}, fault.New(fault.Usage, CodeBadID, "waiver nonce %.40q is not a ULID", w.Nonce)
	}
	if err := w.verify(); err != nil {
		return Draft{}, err
	}
	return draft(KindWaiver, w)
}

// StartDraft records a finished invocation.
func StartDraft(s Start) (Draft, error) {
	s.Schema = SchemaStart
	if _, err := ulid.ParseStrict(s.Invocation); err != nil {
		return Draft{}, fault.New(fault.Usage, CodeBadID, "invocation %.40q is not a ULID", s.Invocation)
	}
	for _, d := range []evidence.Digest{s.Key, s.Result} {
		if _, err := evidence.ParseDigest(string(d)); err != nil {
			return Draft{}, err
		}
	}
	if _, err := evidence.ParseTree(string(s.Tree)); err != nil {
		return Draft{}, err
	}
	return draft(KindStart, s)
}

// RefusalDraft records a request that was refused.
func RefusalDraft(r Refusal) (Draft, error) {
	r.Schema = SchemaRefusal
	return draft(KindRefusal, r)
}

// NewDraft records a fact of another job. The kinds of this package are refused:
// they have constructors. A body of kind flow.* or principal.* must begin with its
// [FlowHead].
func NewDraft(k Kind, v any) (Draft, error) {
	own := []Kind{KindGenesis, KindSnapshot, KindRun, KindCertificate, KindMeasurement, KindWaiver, KindStart, KindRefusal}
	if !validKind(k) || slices.Contains(own, k) {
		return Draft{}, fault.New(fault.Internal, "internal", "no free entry kind: %.80q", k)
	}
	d, err := draft(k, v)
	if err != nil || !isFlow(k) {
		return d, err
	}
	var h FlowHead
	if err := json.Unmarshal(d.body, &h); err != nil {
		return Draft{}, fault.Wrap(err, fault.Internal, "internal", "a body of kind %s", k)
	}
	return d, h.check(k)
}

func decode[T any](e Entry) (T, error) {
	var v T
	if err := json.Unmarshal(e.Body, &v); err != nil {
		return v, fault.Wrap(err, fault.Tampered, CodeBroken, "ledger entry %d is no %s", e.Seq, e.Kind)
	}
	return v, nil
}
