// Package identity says who somebody is: it holds the keys of this machine, signs
// with them and with those of the user, and knows whose a signature is.
//
// Two keys are made on first use below the state directory, both ed25519 in
// OpenSSH's private key format with mode 0600:
//
//	keys/id_ed25519   the person at this machine, principal "local"
//	keys/engine       the engine: checkpoints, attestations
//
// and keys/NAME.key for a principal when somebody asks for one ([Generate]).
//
// A person signs statements: canonical JSON in a namespace, as SSHSIG with hash
// sha512, so that ssh-keygen -Y verify accepts what we export. The engine signs
// checkpoints (C2SP note format) and attestations (DSSE). Its key never enters a
// sandbox and is never passed to an agent.
//
// Who is who in a repository is written in two files, [SignersFile] (which keys
// speak for whom, as OpenSSH reads it) and [PrincipalsFile] (what they hold).
// Joined they are a [Roster]; where there are none, [LocalRoster] has one person
// in all roles. A label proves nothing: a key does ([Choose], [Roster.Verify]),
// or the [Capability] of an agent, which has no key. [Revocations] take both
// back.
//
// The package does not know the ledger; what is signed, and which revocations are
// in force, is decided above.
package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"github.com/proveto/proveto/internal/fault"
)

// The codes of this package.
const (
	CodeKeyBad       fault.Code = "key_bad"       // a key file that cannot be used
	CodeKeyOpen      fault.Code = "key_open"      // a key file that others can read
	CodeSignatureBad fault.Code = "signature_bad" // a signature that does not verify
	CodeIO           fault.Code = "io"

	CodeRosterBad        fault.Code = "policy_invalid"    // allowed_signers or principals.yaml cannot be read as it is
	CodeCertUnsupported  fault.Code = "cert_unsupported"  // a certificate where a key is wanted
	CodeNotAuthenticated fault.Code = "not_authenticated" // no key, or a key that speaks for nobody or somebody else
	CodeExpired          fault.Code = "expired"           // valid once, no longer
	CodeRevoked          fault.Code = "revoked"           // somebody said that it is not to be believed any more
	CodeKeyLocked        fault.Code = "key_locked"        // a key that needs a passphrase, and nobody to ask
	CodeAmbiguousActor   fault.Code = "ambiguous_actor"   // a role that several principals of the caller hold
	CodeNotFound         fault.Code = "not_found"
)

// LocalPrincipal is the principal of the generated key.
const LocalPrincipal = "local"

const (
	keyDir     = "keys"
	userFile   = "id_ed25519"
	engineFile = "engine"
)

// Keys are the keys of one state directory.
type Keys struct {
	Local  Person
	Engine Engine
}

// Open reads the keys below the state directory and makes those that are not
// there. Two processes that do so at once end with the same keys.
func Open(stateDir string) (*Keys, error) {
	dir := filepath.Join(stateDir, keyDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Internal, CodeIO, "make %s", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, CodeIO, "open %s", dir)
	}
	user, err := loadOrMake(root, userFile, LocalPrincipal)
	var engine ed25519.PrivateKey
	if err == nil {
		engine, err = loadOrMake(root, engineFile, "proveto engine")
	}
	if err := errors.Join(err, root.Close()); err != nil {
		return nil, err
	}
	local, err := newPerson(LocalPrincipal, user)
	if err != nil {
		return nil, err
	}
	return &Keys{Local: local, Engine: Engine{key: engine}}, nil
}

// Generate makes a key for a principal in a file of its own below the state
// directory, in the same format and mode, or finds the one made before. It
// returns the file, and type and base64 of the key. The key is used only when
// somebody names the file.
func Generate(stateDir, principal string) (file, key string, err error) {
	if !validName(principal) {
		return "", "", fault.New(fault.Usage, "usage", "%.80q is no name of a principal: want %s", principal, nameWant)
	}
	dir := filepath.Join(stateDir, keyDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fault.Wrap(err, fault.Internal, CodeIO, "make %s", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", "", fault.Wrap(err, fault.Internal, CodeIO, "open %s", dir)
	}
	name := filepath.Base(GeneratedFile(stateDir, principal))
	private, err := loadOrMake(root, name, principal)
	if err := errors.Join(err, root.Close()); err != nil {
		return "", "", err
	}
	p, err := newPerson(principal, private)
	if err != nil {
		return "", "", err
	}
	return filepath.Join(dir, name), p.AuthorizedKey(), nil
}

// GeneratedFile is where [Generate] keeps the key of a principal: under a name with
// an end, so that it is never one of the two that are made by themselves.
func GeneratedFile(stateDir, principal string) string {
	return filepath.Join(stateDir, keyDir, principal+".key")
}

func loadOrMake(root *os.Root, name, comment string) (ed25519.PrivateKey, error) {
	key, err := load(root, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := create(root, name, comment); err != nil {
		return nil, fault.Wrap(err, fault.Internal, CodeIO, "make key %s", filepath.Join(root.Name(), name))
	}
	return load(root, name)
}

func load(root *os.Root, name string) (ed25519.PrivateKey, error) {
	full := filepath.Join(root.Name(), name)
	fi, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fault.New(fault.Refused, CodeKeyBad, "key %s is not a regular file", full)
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return nil, fault.New(fault.Refused, CodeKeyOpen, "key %s has mode %#o: others may have read it", full, fi.Mode().Perm()).
			Hint("chmod 600 %s", full)
	}
	text, err := root.ReadFile(name)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, CodeIO, "read key %s", full)
	}
	raw, err := ssh.ParseRawPrivateKey(text)
	if err != nil {
		// The cause is left out: no parser of keys shall quote one.
		return nil, fault.New(fault.Refused, CodeKeyBad, "key %s is no OpenSSH private key without a passphrase", full)
	}
	key, ok := raw.(*ed25519.PrivateKey)
	if !ok {
		return nil, fault.New(fault.Refused, CodeKeyBad, "key %s is not an ed25519 key", full)
	}
	return *key, nil
}

// create gives a new key its name only when it is whole and durable, and never
// takes the name from another process's key.
func create(root *os.Root, name, comment string) (err error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(key, comment)
	if err != nil {
		return err
	}
	var id [8]byte
	rand.Read(id[:]) // never fails
	temp := name + "." + hex.EncodeToString(id[:]) + ".tmp"
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Remove(temp)) }()
	_, err = f.Write(pem.EncodeToMemory(block))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := root.Link(temp, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func authorized(pub ssh.PublicKey) string {
	return string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(pub)))
}
