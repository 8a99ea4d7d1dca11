package identity

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/proveto/proveto/internal/fault"
)

// Key signs statements: a key file, a key of ssh-agent, the generated key. The
// zero key signs nothing.
type Key struct {
	pub      ssh.PublicKey
	held     bool // the private half is in this process
	signFunc func(ctx context.Context, data []byte, algorithm string) (*ssh.Signature, error)
}

// IsZero tells the absent key.
func (k Key) IsZero() bool { return k.pub == nil }

// Person is a principal whose key this machine holds.
type Person struct {
	Principal string
	Key
}

func newPerson(principal string, key ed25519.PrivateKey) (Person, error) {
	k, err := newKey(key)
	if err != nil {
		return Person{}, fault.Wrap(err, fault.Refused, CodeKeyBad, "key of %s", principal)
	}
	return Person{Principal: principal, Key: k}, nil
}

// newKey makes a key of what a parser of private keys returns.
func newKey(private any) (Key, error) {
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return Key{}, err
	}
	as, ok := s.(ssh.AlgorithmSigner)
	if !ok {
		return Key{}, fmt.Errorf("a key of type %s cannot sign", s.PublicKey().Type())
	}
	if why := weak(s.PublicKey()); why != "" {
		return Key{}, fmt.Errorf("%s", why)
	}
	return Key{pub: s.PublicKey(), held: true, signFunc: func(_ context.Context, data []byte, algorithm string) (*ssh.Signature, error) {
		return as.SignWithAlgorithm(rand.Reader, data, algorithm)
	}}, nil
}

// AuthorizedKey is the public key as one line of an allowed_signers file has it:
// type and base64.
func (k Key) AuthorizedKey() string { return authorized(k.pub) }

// Fingerprint is the SHA256:… form of the public key.
func (k Key) Fingerprint() string { return ssh.FingerprintSHA256(k.pub) }

// SignStatement signs canonical JSON in a namespace (proveto-waiver-v1,
// [FlowNamespace]) and returns an armored SSHSIG with hash sha512. A key of
// ssh-agent may wait for its user until the context ends.
func (k Key) SignStatement(ctx context.Context, canonical []byte, namespace string) (armored string, err error) {
	if k.IsZero() {
		return "", fault.New(fault.Refused, CodeNotAuthenticated, "there is no key to sign with")
	}
	sig, err := sshsig.Sign(bytes.NewReader(canonical), bound{ctx, k}, sshsig.HashSHA512, namespace)
	if err != nil {
		return "", fault.Wrap(err, fault.Refused, CodeKeyBad, "sign with key %s", k.Fingerprint())
	}
	return string(sshsig.Armor(sig)), nil
}

// proofNamespace is of signatures that prove a key and say nothing.
const proofNamespace = "proveto-proof-v1"

// Prove shows that the private half is there, by a signature that nobody keeps:
// an ssh-agent may list keys that it does not have. A key of this process needs
// no such proof. It is asked for where nothing else is signed.
func (k Key) Prove(ctx context.Context) error {
	if k.held {
		return nil
	}
	challenge := make([]byte, 32)
	rand.Read(challenge) // never fails
	armored, err := k.SignStatement(ctx, challenge, proofNamespace)
	if err != nil {
		return err
	}
	return VerifyStatement(k.AuthorizedKey(), challenge, armored, proofNamespace)
}

// bound is a key for one call, so that its context need not be kept.
type bound struct {
	ctx context.Context
	key Key
}

func (b bound) PublicKey() ssh.PublicKey { return b.key.pub }

func (b bound) Sign(r io.Reader, data []byte) (*ssh.Signature, error) {
	return b.SignWithAlgorithm(r, data, "")
}

func (b bound) SignWithAlgorithm(_ io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	return b.key.signFunc(b.ctx, data, algorithm)
}
