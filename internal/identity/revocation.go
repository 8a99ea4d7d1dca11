package identity

import (
	"strings"
	"time"

	"github.com/proveto/proveto/internal/fault"
)

// Revocation says that a principal, or one key, is not to be believed any more.
// Exactly one of the two is set.
type Revocation struct {
	Principal string    `json:"principal,omitempty"`
	Key       string    `json:"key,omitempty"`    // SHA256:…
	Since     time.Time `json:"since,omitzero"`   // when trust was lost, if before At; what was said from then on is void
	At        time.Time `json:"at"`               // when it was said
	Reason    string    `json:"reason,omitempty"` // as given
}

// Revocations are all that are in force.
type Revocations []Revocation

// Who is somebody as the records name them.
type Who struct {
	Principal string
	Operator  string // of an agent
	Key       string // SHA256:… of the key that signed; empty for a capability
}

// hits tells whether the revocation is about somebody; a revoked human takes
// their agents along.
func (r Revocation) hits(w Who) bool {
	switch {
	case r.Principal != "":
		return r.Principal == w.Principal || r.Principal == w.Operator
	case r.Key != "":
		return r.Key == w.Key
	}
	return false
}

// void tells whether what was said at a time does not count.
func (r Revocation) void(at time.Time) bool {
	return !at.Before(r.At) || !r.Since.IsZero() && !at.Before(r.Since)
}

// String says what was revoked, when and why.
func (r Revocation) String() string {
	what := "principal " + r.Principal
	if r.Key != "" {
		what = "key " + r.Key
	}
	what += " was revoked at " + r.At.UTC().Format(time.RFC3339)
	if !r.Since.IsZero() {
		what += ", as of " + r.Since.UTC().Format(time.RFC3339)
	}
	if reason := strings.TrimSpace(r.Reason); reason != "" {
		what += ": " + reason
	}
	return what
}

func (r Revocation) error(w Who) *fault.Error {
	e := fault.New(fault.Refused, CodeRevoked, "%s", r)
	if w.Principal != "" && r.Principal == "" {
		e = e.Hint("another key of %s is not concerned: --key FILE", w.Principal)
	}
	return e.Hint("proveto flow principals list")
}

// Check refuses an act of now, with code revoked: whatever the clock says, a
// revocation in force is in the past.
func (rs Revocations) Check(w Who) error {
	for _, r := range rs {
		if r.hits(w) {
			return r.error(w)
		}
	}
	return nil
}

// Word is what a statement of the past is worth in the light of revocations.
type Word string

// The words.
const (
	WordCounts  Word = "counts"
	WordFlagged Word = "flagged" // made before its key or its principal was revoked; counts, and is shown
	WordVoid    Word = "void"    // counts no longer
)

// Judge tells what a statement made at a time is worth, with the revocation that
// says so.
func (rs Revocations) Judge(w Who, at time.Time) (Word, Revocation) {
	word, by := WordCounts, Revocation{}
	for _, r := range rs {
		switch {
		case !r.hits(w):
		case r.void(at):
			return WordVoid, r
		case word == WordCounts:
			word, by = WordFlagged, r
		}
	}
	return word, by
}
