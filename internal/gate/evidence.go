package gate

import (
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// Schema names the stored form of evidence.
const Schema = "proveto/evidence/v1"

// IDPrefix begins the id of evidence.
const IDPrefix = "ev_"

// Evidence is what a gate measured, for the ledger. It is made by the engine
// alone, from runs that are in the ledger before it.
type Evidence struct {
	Schema  string `json:"schema"`
	ID      string `json:"id"` // ev_ and 64 hexadecimal digits: the digest of the rest
	Gate    string `json:"gate"`
	Run     string `json:"run,omitempty"` // of the flow; absent for a measurement by hand
	Stage   string `json:"stage,omitempty"`
	Attempt int    `json:"attempt,omitempty"`

	Subject    Subject         `json:"subject"`
	GateDigest evidence.Digest `json:"gate_digest"`

	Runs         []evidence.Digest `json:"runs"`         // on the subject and on the probe, in order
	Certificates []evidence.Digest `json:"certificates"` // of tests
	Probe        evidence.Digest   `json:"probe_certificate,omitempty"`

	Outcome Outcome            `json:"outcome"`
	Code    fault.Code         `json:"code,omitempty"`
	Reason  string             `json:"reason,omitempty"`
	Metrics map[string]float64 `json:"metrics"`
	Tests   *Counts            `json:"tests,omitempty"` // of a suite
	// Named are tests by name: red and flaky ones at the base.
	Named map[string][]string `json:"named,omitempty"`
	// Requirements are what the gate says of each requirement of the plan, by id.
	Requirements map[string]Requirement `json:"requirements,omitempty"`

	Isolation  evidence.Level   `json:"isolation,omitempty"` // weakest of the runs; absent without any
	Network    evidence.Network `json:"network,omitempty"`
	Started    time.Time        `json:"started"`
	DurationMS int64            `json:"duration_ms"`
	Outputs    []Output         `json:"outputs"`
	// Reused is the id of the evidence that this one repeats: nothing was run.
	Reused string `json:"reused,omitempty"`
}

// Subject is what the evidence is about. Equal subjects and gate digests have
// equal answers.
type Subject struct {
	Tree evidence.Tree   `json:"tree"`
	Plan evidence.Digest `json:"plan,omitempty"`
	Base evidence.Tree   `json:"base,omitempty"`
}

// Requirement is what a gate says of a requirement, and on what that stands.
type Requirement struct {
	State        evidence.Word     `json:"state"` // proven, refuted or not_measured
	Certificates []evidence.Digest `json:"certificates,omitempty"`
}

// Counts are leaf tests.
type Counts struct {
	Discovered int `json:"discovered"`
	Executed   int `json:"executed"`
	Skipped    int `json:"skipped"`
	Failed     int `json:"failed"`
	Flaky      int `json:"flaky"`
}

// Output is what a command printed; the bytes are a blob.
type Output struct {
	Name      string          `json:"name"` // "go build stderr"
	SHA256    evidence.Digest `json:"sha256"`
	Bytes     int64           `json:"bytes"`
	Truncated bool            `json:"truncated,omitempty"`
}

// Seal gives the evidence its schema and its id.
func (e Evidence) Seal() (Evidence, error) {
	e.Schema, e.ID, e.Started = Schema, "", e.Started.UTC()
	if e.Runs == nil {
		e.Runs = []evidence.Digest{}
	}
	if e.Certificates == nil {
		e.Certificates = []evidence.Digest{}
	}
	if e.Metrics == nil {
		e.Metrics = map[string]float64{}
	}
	if e.Outputs == nil {
		e.Outputs = []Output{}
	}
	body, err := evidence.Canonical(e)
	if err != nil {
		return e, err
	}
	e.ID = IDPrefix + evidence.DigestOf(body).Hex()
	return e, nil
}

// Canonical is the RFC 8785 form with the id, as it is stored. Evidence whose id
// is not that of its content is refused, and so is one that says not_measured
// without a code and a reason, or that a requirement is proven without a
// certificate among its own.
func (e Evidence) Canonical() ([]byte, error) {
	sealed, err := e.Seal()
	switch {
	case err != nil:
		return nil, err
	case sealed.ID != e.ID:
		return nil, fault.New(fault.Tampered, "certificate_bad", "evidence %.20s has another content than its id says", e.ID)
	case e.Outcome == NotMeasured && (e.Code == "" || e.Reason == ""):
		return nil, fault.New(fault.Internal, "internal", "evidence %.20s is not measured and does not say why", e.ID)
	}
	for id, q := range e.Requirements {
		foreign := slices.ContainsFunc(q.Certificates, func(d evidence.Digest) bool { return !slices.Contains(e.Certificates, d) })
		if q.State == evidence.Proven && len(q.Certificates) == 0 || foreign {
			return nil, fault.New(fault.Internal, "internal", "evidence %.20s says of requirement %.40q what its certificates do not", e.ID, id)
		}
	}
	return evidence.Canonical(e)
}

// ParseID accepts exactly the written form of an id.
func ParseID(s string) (string, error) {
	hex, ok := strings.CutPrefix(s, IDPrefix)
	if _, err := evidence.ParseDigest("sha256:" + hex); !ok || err != nil {
		return "", fault.New(fault.Usage, "bad_id", "%.80q is no id of evidence: want ev_ and 64 hexadecimal digits", s)
	}
	return s, nil
}
