package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gowebpki/jcs"

	"github.com/proveto/proveto/internal/fault"
)

// Digest is "sha256:" and 64 lower-case hexadecimal digits. The zero value is
// the absent digest.
type Digest string

const digestPrefix = "sha256:"

// DigestOf is the digest of the bytes.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest(digestPrefix + hex.EncodeToString(sum[:]))
}

// DigestParts is the digest of a list of strings; no two lists share it, because
// each part is preceded by its length.
func DigestParts(parts ...string) Digest {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write([]byte(p))
	}
	return Digest(digestPrefix + hex.EncodeToString(h.Sum(nil)))
}

// ParseDigest accepts exactly the written form; anything else is a usage error
// with code bad_id.
func ParseDigest(s string) (Digest, error) {
	d := Digest(s)
	if !strings.HasPrefix(s, digestPrefix) || !d.valid() {
		return "", fault.New(fault.Usage, "bad_id", "%.80q is not a digest: want sha256: and 64 hexadecimal digits", s)
	}
	return d, nil
}

func (d Digest) valid() bool {
	h := d.Hex()
	return len(h) == 64 && strings.Trim(h, "0123456789abcdef") == ""
}

// Hex is the digest without its prefix.
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), digestPrefix) }

// Short is the first twelve digits, for people.
func (d Digest) Short() string {
	h := d.Hex()
	if len(h) > 12 {
		return h[:12]
	}
	return h
}

// Canonical is the RFC 8785 form of v's JSON: the only bytes that are hashed or
// signed.
func Canonical(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	out, err := jcs.Transform(raw)
	if err != nil {
		return nil, fmt.Errorf("canonical form of %T: %w", v, err)
	}
	return out, nil
}

// Tree is a git tree id: 40 or 64 lower-case hexadecimal digits.
type Tree string

// ParseTree accepts exactly a full tree id.
func ParseTree(s string) (Tree, error) {
	if (len(s) != 40 && len(s) != 64) || strings.Trim(s, "0123456789abcdef") != "" {
		return "", fault.New(fault.Usage, "bad_id", "%.80q is not a tree id", s)
	}
	return Tree(s), nil
}
