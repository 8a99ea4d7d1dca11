package view

import "time"

// Principals are who is who in a repository, or on this machine where the
// repository says nothing.
type Principals struct {
	Commit     string       `json:"commit,omitempty"` // that says so; absent for this machine
	Enforced   bool         `json:"enforced"`         // separation of duties holds
	Principals []Principal  `json:"principals"`
	Revoked    []Revocation `json:"revoked"`
	Note       string       `json:"note,omitempty"` // "1 principal, separation not enforced", or that files are not committed
}

// Principal is somebody who can act.
type Principal struct {
	Name     string         `json:"name"`
	Kind     string         `json:"kind"`
	Roles    []string       `json:"roles"`
	Rights   []string       `json:"rights"`
	Operator string         `json:"operator,omitempty"`
	Keys     []PrincipalKey `json:"keys"`
	Revoked  string         `json:"revoked,omitempty"`
}

// PrincipalKey is a key that speaks for a principal: state speaks, expired,
// not_yet or revoked.
type PrincipalKey struct {
	Fingerprint string     `json:"fingerprint"`
	Type        string     `json:"type"`
	State       string     `json:"state"`
	After       *time.Time `json:"valid_after,omitempty"`
	Before      *time.Time `json:"valid_before,omitempty"`
}

// Revocation is in force for all runs.
type Revocation struct {
	Principal string     `json:"principal,omitempty"`
	Key       string     `json:"key,omitempty"`
	At        time.Time  `json:"at"`
	Since     *time.Time `json:"since,omitempty"`
	Reason    string     `json:"reason"`
}

// PrincipalAdded is what adding a principal writes into the working copy.
type PrincipalAdded struct {
	Name    string        `json:"name"`
	Key     string        `json:"key,omitempty"`      // SHA256:…
	KeyFile string        `json:"key_file,omitempty"` // of a key that was made
	Files   []ChangedFile `json:"files"`
	Written bool          `json:"written"`
	Text    string        `json:"text"`
}

// ChangedFile is a file with what changes in it, as a unified diff.
type ChangedFile struct {
	Path string `json:"path"`
	Diff string `json:"diff"`
}

// PrincipalRevoked is a revocation with what it did to open runs.
type PrincipalRevoked struct {
	Revocation
	Seq  int64        `json:"seq"`
	Runs []RunRevoked `json:"runs"`
	Text string       `json:"text"`
}

// RunRevoked is a run that a revocation changed.
type RunRevoked struct {
	Run    string   `json:"run"`
	Status string   `json:"status"`
	Leases []string `json:"leases_ended"` // stages
	Stale  []string `json:"stale"`        // stages
	Void   []string `json:"void"`         // decisions, waivers and contracts that do not count any more
}

// FlowStatement is what is to be signed for a decision, or was.
type FlowStatement struct {
	Run       string `json:"run"`
	Decision  string `json:"decision,omitempty"` // id, of one that was recorded
	Statement string `json:"statement"`          // canonical JSON, byte by byte what is signed
	Namespace string `json:"namespace"`
}

// FlowSigned is a recorded decision with its signature, for ssh-keygen.
type FlowSigned struct {
	FlowStatement
	Principal string    `json:"principal"`
	Key       string    `json:"key"` // SHA256:…
	At        time.Time `json:"at"`
	Signature string    `json:"signature"`
	Signers   string    `json:"allowed_signers"`
	Worth     string    `json:"worth"` // counts, flagged, void, withdrawn
	Why       string    `json:"why,omitempty"`
	Files     []string  `json:"files"`
	Verify    string    `json:"verify"` // the command, beside the files
}
