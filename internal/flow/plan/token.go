package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/proveto/proveto/internal/fault"
)

// Token shows which accepted contract its bearer worked to: pt_ and 64 lower-case
// hexadecimal digits. It is no secret and gives no right.
type Token string

const (
	tokenPrefix = "pt_"
	tokenDomain = "proveto/plan-token/v1\n"
)

// NewToken derives the token of a plan from its id and from the leaf hash of the
// ledger entry that accepted it, in base64 as the ledger writes leaf hashes. It is
// the SHA-256 of the domain line, the id, a line feed and that text. An error
// means that one of the two is none.
func NewToken(plan ID, leaf string) (Token, error) {
	if _, err := ParseID(string(plan)); err != nil {
		return "", err
	}
	if raw, err := base64.StdEncoding.DecodeString(leaf); err != nil || len(raw) != sha256.Size || base64.StdEncoding.EncodeToString(raw) != leaf {
		return "", fault.New(fault.Internal, "internal", "%.80q is no leaf hash", leaf)
	}
	sum := sha256.Sum256([]byte(tokenDomain + string(plan) + "\n" + leaf))
	return Token(tokenPrefix + hex.EncodeToString(sum[:])), nil
}

// Accept compares a presented token with the one in force, byte by byte: nothing
// is trimmed, folded or completed. Codes token_missing, token_invalid.
func (t Token) Accept(presented string) error {
	switch {
	case presented == "":
		return fault.New(fault.Refused, CodeTokenMissing, "the approval names no plan token").
			Hint("proveto flow status --format=kv")
	case t == "":
		return fault.New(fault.Refused, CodeTokenInvalid, "no plan is accepted yet, so there is no plan token")
	case presented != string(t):
		why := "is not that of the plan in force"
		if !strings.HasPrefix(presented, tokenPrefix) || len(presented) != len(t) {
			why = "is no plan token: want pt_ and 64 hexadecimal digits"
		}
		return fault.New(fault.Refused, CodeTokenInvalid, "%.80q %s", presented, why).
			Hint("proveto flow status --format=kv")
	}
	return nil
}
