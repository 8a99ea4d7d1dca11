package identity

import (
	"bytes"
	"crypto/ed25519"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/proveto/proveto/internal/fault"
)

// Person is a principal whose key this machine holds.
type Person struct {
	Principal string
	signer    ssh.Signer
}

func newPerson(principal string, key ed25519.PrivateKey) (Person, error) {
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return Person{}, fault.Wrap(err, fault.Refused, CodeKeyBad, "key of %s", principal)
	}
	return Person{Principal: principal, signer: s}, nil
}

// AuthorizedKey is the public key as one line of an allowed_signers file has it:
// type and base64.
func (p Person) AuthorizedKey() string { return authorized(p.signer.PublicKey()) }

// Fingerprint is the SHA256:… form of the public key.
func (p Person) Fingerprint() string { return ssh.FingerprintSHA256(p.signer.PublicKey()) }

// SignStatement signs canonical JSON in a namespace (proveto-waiver-v1) and
// returns an armored SSHSIG with hash sha512.
func (p Person) SignStatement(canonical []byte, namespace string) (armored string, err error) {
	sig, err := sshsig.Sign(bytes.NewReader(canonical), p.signer, sshsig.HashSHA512, namespace)
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, CodeKeyBad, "sign as %s", p.Principal)
	}
	return string(sshsig.Armor(sig)), nil
}

// VerifyStatement checks that the armored signature is by the key, over these
// bytes, in this namespace. Anything else is tampered with code signature_bad.
// Whether the key speaks for a principal is not asked here.
func VerifyStatement(authorizedKey string, canonical []byte, armored, namespace string) error {
	pub, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(authorizedKey))
	if err != nil || len(bytes.TrimSpace(rest)) != 0 {
		return fault.New(fault.Tampered, CodeSignatureBad, "the public key of the signature does not parse")
	}
	sig, err := sshsig.Unarmor([]byte(armored))
	if err != nil {
		return fault.Wrap(err, fault.Tampered, CodeSignatureBad, "the signature does not parse")
	}
	// ssh-rsa is the SHA-1 signature; the rest was chosen by OpenSSH as we do.
	if sig.Signature != nil && strings.EqualFold(sig.Signature.Format, ssh.KeyAlgoRSA) {
		return fault.New(fault.Tampered, CodeSignatureBad, "the signature uses SHA-1")
	}
	if err := sshsig.Verify(bytes.NewReader(canonical), sig, pub, sshsig.HashSHA512, namespace); err != nil {
		return fault.Wrap(err, fault.Tampered, CodeSignatureBad, "the signature does not verify in namespace %s", namespace)
	}
	return nil
}
