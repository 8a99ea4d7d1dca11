package identity

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/mod/sumdb/note"

	"github.com/proveto/proveto/internal/fault"
)

// Engine is the key with which the engine signs. It is a signer and a verifier
// of DSSE envelopes.
type Engine struct {
	key ed25519.PrivateKey
}

// IsZero tells an engine without a key.
func (e Engine) IsZero() bool { return len(e.key) == 0 }

func (e Engine) public() ed25519.PublicKey {
	return e.key.Public().(ed25519.PublicKey) // by the documentation of ed25519
}

// VerifierKey is the public key in note form, name+hash+base64, for checkpoints
// of the ledger with the id.
func (e Engine) VerifierKey(ledgerID string) (string, error) {
	return note.NewEd25519VerifierKey(NoteName(ledgerID), e.public())
}

// NoteName is the name under which checkpoints of a ledger are signed; it is
// their origin line, too.
func NoteName(ledgerID string) string { return "proveto-" + ledgerID }

// NoteSigner signs checkpoints of the ledger with the id.
func (e Engine) NoteSigner(ledgerID string) (note.Signer, error) {
	vkey, err := e.VerifierKey(ledgerID)
	if err != nil {
		return nil, err
	}
	v, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, fmt.Errorf("verifier of ledger %s: %w", ledgerID, err)
	}
	return noteSigner{v, e.key}, nil
}

type noteSigner struct {
	note.Verifier
	key ed25519.PrivateKey
}

// Sign implements [note.Signer].
func (s noteSigner) Sign(msg []byte) ([]byte, error) { return ed25519.Sign(s.key, msg), nil }

// KeyID names the key in DSSE envelopes: the SHA256:… fingerprint of its SSH
// form.
func (e Engine) KeyID() (string, error) { return keyID(e.public()) }

func keyID(pub ed25519.PublicKey) (string, error) {
	p, err := ssh.NewPublicKey(pub)
	if err != nil {
		return "", err
	}
	return ssh.FingerprintSHA256(p), nil
}

// Sign signs the pre-authentication encoding of an envelope.
func (e Engine) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(e.key, data), nil
}

// Verify checks a signature over the pre-authentication encoding.
func (e Engine) Verify(ctx context.Context, data, sig []byte) error {
	return PublicEngine{e.public()}.Verify(ctx, data, sig)
}

// Public is the public key.
func (e Engine) Public() crypto.PublicKey { return e.public() }

// PublicEngine verifies what another machine's engine signed.
type PublicEngine struct {
	pub ed25519.PublicKey
}

// ParseVerifierKey reads a key in note form, as genesis entries and attestations
// hold it, and returns it with its name.
func ParseVerifierKey(vkey string) (PublicEngine, string, error) {
	bad := func() (PublicEngine, string, error) {
		return PublicEngine{}, "", fault.New(fault.Tampered, CodeSignatureBad, "%.100q is not a verifier key", vkey)
	}
	v, err := note.NewVerifier(vkey)
	if err != nil {
		return bad()
	}
	_, rest, _ := strings.Cut(vkey, "+")
	_, key64, _ := strings.Cut(rest, "+") // which may hold a plus itself
	raw, err := base64.StdEncoding.DecodeString(key64)
	if err != nil || len(raw) != 1+ed25519.PublicKeySize || noteHash(v.Name(), raw) != v.KeyHash() {
		return bad()
	}
	return PublicEngine{pub: raw[1:]}, v.Name(), nil
}

func noteHash(name string, key []byte) uint32 {
	sum := sha256.Sum256(append([]byte(name+"\n"), key...))
	return binary.BigEndian.Uint32(sum[:])
}

// KeyID is [Engine.KeyID].
func (p PublicEngine) KeyID() (string, error) { return keyID(p.pub) }

// Public is the public key.
func (p PublicEngine) Public() crypto.PublicKey { return p.pub }

// Verify checks a signature over the pre-authentication encoding.
func (p PublicEngine) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(p.pub, data, sig) {
		return errors.New("the signature is not by this engine")
	}
	return nil
}
