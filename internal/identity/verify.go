package identity

import (
	"bytes"
	"encoding/pem"
	"slices"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/proveto/proveto/internal/fault"
)

// maxSignature is the largest armored signature that is read; the largest real
// one, by RSA with 16384 bits, has less than half.
const maxSignature = 16 << 10

// SignatureKey is the key (type and base64) that an armored signature names. It
// is not verified here.
func SignatureKey(armored string) (string, error) {
	sig, err := unarmor(armored)
	if err != nil {
		return "", err
	}
	return authorized(sig.PublicKey), nil
}

func unarmor(armored string) (*sshsig.Signature, error) {
	if len(armored) > maxSignature {
		return nil, fault.New(fault.Tampered, CodeSignatureBad, "the signature has %d bytes, want at most %d", len(armored), maxSignature)
	}
	// OpenSSH takes neither headers nor a text around the armor, and what we keep
	// has to be good for it, too.
	block, rest := pem.Decode([]byte(armored))
	if block == nil || block.Type != sshsig.PEMType || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 || !strings.HasPrefix(armored, "-----BEGIN ") {
		return nil, fault.New(fault.Tampered, CodeSignatureBad, "the signature is no armored SSHSIG and nothing else")
	}
	sig, err := sshsig.ParseSignature(block.Bytes)
	if err != nil {
		return nil, fault.Wrap(err, fault.Tampered, CodeSignatureBad, "the signature does not parse")
	}
	return sig, nil
}

// VerifyStatement checks that the armored signature is by the key, over these
// bytes, in this namespace. Anything else is tampered with code signature_bad:
// an RSA key that is too short, an RSA signature by another hash than SHA-512, a
// security key that nobody touched. Whether the key speaks for a principal is not
// asked here.
func VerifyStatement(authorizedKey string, canonical []byte, armored, namespace string) error {
	pub, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(authorizedKey))
	if err != nil || len(bytes.TrimSpace(rest)) != 0 {
		return fault.New(fault.Tampered, CodeSignatureBad, "the public key of the signature does not parse")
	}
	if why := weak(pub); why != "" {
		return fault.New(fault.Tampered, CodeSignatureBad, "the key of the signature does not count: %s", why)
	}
	sig, err := unarmor(armored)
	if err != nil {
		return err
	}
	// OpenSSH and we sign so; nothing weaker is let in beside it.
	want := pub.Type()
	if want == ssh.KeyAlgoRSA {
		want = ssh.KeyAlgoRSASHA512
	}
	touched := slices.Contains([]string{ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256}, pub.Type()) // flags and counter follow
	if sig.Signature.Format != want || sig.HashAlgorithm != sshsig.HashSHA512 || !touched && len(sig.Signature.Rest) > 0 {
		return fault.New(fault.Tampered, CodeSignatureBad, "the signature is of form %.40s with hash %.40s, want %s with %s",
			sig.Signature.Format, sig.HashAlgorithm, want, sshsig.HashSHA512)
	}
	if err := sshsig.Verify(bytes.NewReader(canonical), sig, pub, sshsig.HashSHA512, namespace); err != nil {
		return fault.Wrap(err, fault.Tampered, CodeSignatureBad, "the signature does not verify in namespace %s", namespace)
	}
	return nil
}
