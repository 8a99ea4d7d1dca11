package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// The codes of capabilities beside those of keys.
const (
	CodeWrongAudience fault.Code = "wrong_audience" // made for another run, stage or ledger
	CodeNotPermitted  fault.Code = "not_permitted"  // the verb is not covered
)

// Verb is what a launch may do.
type Verb string

// The verbs. A launch for a stage that decides gets decide only where the policy
// lets agents decide.
const (
	VerbContext  Verb = "context"
	VerbFeedback Verb = "feedback"
	VerbSubmit   Verb = "submit"
	VerbAnswer   Verb = "answer"
	VerbAmend    Verb = "amend"
	VerbClaim    Verb = "claim"
	VerbDecide   Verb = "decide"
)

// Token is the secret of a capability, as PROVETO_TOKEN carries it. It prints as
// [redacted].
type Token struct{ secret [sha256.Size]byte }

// tokenPrefix marks a capability, so that package secret finds it in texts.
const tokenPrefix = "proveto_cap_"

// NewToken makes a token from 32 random bytes.
func NewToken() Token {
	var t Token
	rand.Read(t.secret[:]) // never fails
	return t
}

// ParseToken reads the text of a token; not_authenticated for anything else. The
// text is not quoted.
func ParseToken(text string) (Token, error) {
	body, ok := strings.CutPrefix(text, tokenPrefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if !ok || err != nil || len(raw) != sha256.Size {
		return Token{}, fault.New(fault.Refused, CodeNotAuthenticated, "PROVETO_TOKEN is no capability").Hint("unset PROVETO_TOKEN")
	}
	return Token{[sha256.Size]byte(raw)}, nil
}

// Reveal is the text to hand to the launch, and to nobody else.
func (t Token) Reveal() string {
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(t.secret[:])
}

// Hash is what is stored, and by what a capability is found.
func (t Token) Hash() evidence.Digest { return evidence.DigestOf(t.secret[:]) }

// Format prints [redacted] for every verb of package fmt.
func (t Token) Format(s fmt.State, _ rune) { fmt.Fprint(s, "[redacted]") }

// MarshalText writes [redacted], which no parser of tokens reads.
func (t Token) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// Capability is what a launch may do, as it is stored. It ends with its lease,
// its launch and its attempt.
type Capability struct {
	Hash      evidence.Digest `json:"hash"` // of the token
	Ledger    string          `json:"ledger_id"`
	Run       string          `json:"run"`
	Stage     string          `json:"stage"`
	Attempt   int             `json:"attempt"`
	Verbs     []Verb          `json:"verbs"`
	Expires   time.Time       `json:"expires"` // the end of the lease; from then on it is worth nothing
	Principal string          `json:"principal"`
	Operator  string          `json:"operator,omitempty"` // the human who launched
	Launch    string          `json:"launch"`
}

// Use is one use of a capability: what is asked, where things stand, and when.
type Use struct {
	Ledger  string
	Run     string
	Stage   string
	Attempt int // the current one of the stage
	Verb    Verb
	At      time.Time // of the ledger, which never goes back
	Ended   bool      // the launch has ended, or its lease
	Revoked Revocations
}

// Check refuses a use that the capability does not cover: not_authenticated for
// another token, wrong_audience, expired, revoked, not_permitted. Tokens are
// compared in a time that tells nothing about them.
func (c Capability) Check(t Token, u Use) error {
	if subtle.ConstantTimeCompare([]byte(c.Hash), []byte(t.Hash())) != 1 {
		return fault.New(fault.Refused, CodeNotAuthenticated, "the capability is not known here").Hint("unset PROVETO_TOKEN")
	}
	wrong := func(what, mine, asked string) error {
		return fault.New(fault.Refused, CodeWrongAudience, "the capability of launch %s is for %s %s, not for %.80s", c.Launch, what, mine, asked).
			Hint("proveto flow status %s", c.Run)
	}
	expired := func(why string) error {
		return fault.New(fault.Refused, CodeExpired, "the capability of launch %s ended %s", c.Launch, why).Hint("proveto flow status %s", c.Run)
	}
	switch {
	case c.Ledger != u.Ledger:
		return wrong("ledger", c.Ledger, u.Ledger)
	case c.Run != u.Run:
		return wrong("run", c.Run, u.Run)
	case c.Stage != u.Stage:
		return wrong("stage", c.Stage, u.Stage)
	case c.Attempt > u.Attempt:
		return wrong("attempt", fmt.Sprint(c.Attempt), fmt.Sprint(u.Attempt))
	case c.Attempt < u.Attempt:
		return expired(fmt.Sprintf("with attempt %d of stage %s", c.Attempt, c.Stage))
	case u.Ended:
		return expired("with its launch")
	case !u.At.Before(c.Expires):
		return expired("at " + c.Expires.UTC().Format(time.RFC3339))
	}
	if err := u.Revoked.Check(Who{Principal: c.Principal, Operator: c.Operator}); err != nil {
		return err
	}
	if !slices.Contains(c.Verbs, u.Verb) {
		return fault.New(fault.Refused, CodeNotPermitted, "the capability of launch %s does not cover %.40s", c.Launch, string(u.Verb)).
			Hint("proveto flow status %s", c.Run)
	}
	return nil
}
