package identity

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/proveto/proveto/internal/fault"
)

// maxKeyFile is the largest key file that is read.
const maxKeyFile = 64 << 10

// keyFile is a key that a user names by its file, private or public.
type keyFile struct {
	name  string
	agent agentSocket
	// passphraseFunc asks for the passphrase of a file; nil when nobody is there.
	passphraseFunc func(ctx context.Context, file string) ([]byte, error)
}

// candidate is a key of which the private half may still be locked.
type candidate struct {
	pub      ssh.PublicKey
	from     Source
	openFunc func(context.Context) (Key, error)
}

func (k Key) candidate(from Source) candidate {
	return candidate{k.pub, from, func(context.Context) (Key, error) { return k, nil }}
}

// candidate reads the file. A public key stands for its private half in
// ssh-agent, or in the file without .pub; a private key with a passphrase is
// looked for in ssh-agent before anybody is asked.
func (f keyFile) candidate(ctx context.Context, from Source) (candidate, error) {
	text, private, err := readKeyFile(f.name)
	if err != nil {
		return candidate{}, err
	}
	if !private {
		pub, err := parseKeyFile(f.name, text)
		if err != nil {
			return candidate{}, err
		}
		return candidate{pub, from, func(ctx context.Context) (Key, error) { return f.behind(ctx, pub) }}, nil
	}
	raw, err := ssh.ParseRawPrivateKey(text)
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		k, err := newKey(raw)
		if err != nil {
			return candidate{}, fault.Wrap(err, fault.Refused, CodeKeyBad, "key %s", f.name)
		}
		return k.candidate(from), nil
	case errors.As(err, &locked):
		pub := locked.PublicKey
		if pub == nil {
			pub = f.beside()
		}
		if pub == nil { // an old format that hides its public half, too
			k, err := f.unlock(ctx, text)
			if err != nil {
				return candidate{}, err
			}
			return k.candidate(from), nil
		}
		return candidate{pub, from, func(ctx context.Context) (Key, error) {
			if k, err := f.agent.find(ctx, ssh.FingerprintSHA256(pub)); err == nil && !k.IsZero() {
				return k, nil
			}
			return f.unlock(ctx, text)
		}}, nil
	}
	if pub := f.beside(); pub != nil && strings.HasPrefix(pub.Type(), "sk-") {
		return candidate{pub, from, func(ctx context.Context) (Key, error) { return f.behind(ctx, pub) }}, nil
	}
	// The cause is left out: no parser of keys shall quote one.
	return candidate{}, fault.New(fault.Refused, CodeKeyBad, "%s is no private key of OpenSSH", f.name)
}

// beside reads the public key in the file with .pub; nil when there is none.
func (f keyFile) beside() ssh.PublicKey {
	text, private, err := readKeyFile(f.name + ".pub")
	if err != nil || private {
		return nil
	}
	pub, err := parseKeyFile(f.name+".pub", text)
	if err != nil {
		return nil
	}
	return pub
}

// behind finds the private half of a public key. Whether a file beside it holds
// that half is for the caller to compare.
func (f keyFile) behind(ctx context.Context, pub ssh.PublicKey) (Key, error) {
	print := ssh.FingerprintSHA256(pub)
	k, agentErr := f.agent.find(ctx, print)
	if !k.IsZero() {
		return k, nil
	}
	private, ok := strings.CutSuffix(f.name, ".pub")
	if _, err := os.Stat(private); ok && err == nil && !strings.HasPrefix(pub.Type(), "sk-") {
		f.name = private
		c, err := f.candidate(ctx, FromFlag)
		if err != nil {
			return Key{}, err
		}
		return c.openFunc(ctx)
	}
	e := fault.Wrap(agentErr, fault.Refused, CodeKeyLocked, "the private half of key %s is not in ssh-agent", print)
	if f.name == "" { // git has the public key itself
		return Key{}, e.Hint("ssh-add -l")
	}
	return Key{}, e.Hint("ssh-add %s", quoteFile(private))
}

// unlock asks for the passphrase.
func (f keyFile) unlock(ctx context.Context, text []byte) (Key, error) {
	locked := func(what string) error {
		return fault.New(fault.Refused, CodeKeyLocked, "key %s %s", f.name, what).Hint("ssh-add %s", quoteFile(f.name))
	}
	if f.passphraseFunc == nil {
		return Key{}, locked("has a passphrase, it is not in ssh-agent, and there is no terminal to ask on")
	}
	pass, err := f.passphraseFunc(ctx, f.name)
	if err != nil {
		return Key{}, err
	}
	defer clear(pass)
	raw, err := ssh.ParseRawPrivateKeyWithPassphrase(text, pass)
	if err != nil {
		return Key{}, locked("does not open with this passphrase")
	}
	k, err := newKey(raw)
	if err != nil {
		return Key{}, fault.Wrap(err, fault.Refused, CodeKeyBad, "key %s", f.name)
	}
	return k, nil
}

// readKeyFile reads a whole key file and tells whether it is a private one,
// which nobody else may be able to read.
func readKeyFile(name string) (text []byte, private bool, err error) {
	fi, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, fault.New(fault.NotFound, CodeNotFound, "there is no key file %s", name).Hint("ssh-keygen -t ed25519 -f FILE")
	}
	if err != nil {
		return nil, false, fault.Wrap(err, fault.Refused, CodeKeyBad, "key file %s", name)
	}
	if !fi.Mode().IsRegular() {
		return nil, false, fault.New(fault.Refused, CodeKeyBad, "key %s is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, false, fault.Wrap(err, fault.Refused, CodeKeyBad, "key file %s", name)
	}
	defer f.Close()
	text, err = io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, false, fault.Wrap(err, fault.Refused, CodeKeyBad, "key file %s", name)
	}
	if len(text) > maxKeyFile {
		return nil, false, fault.New(fault.Refused, CodeKeyBad, "key file %s has more than %d bytes", name, maxKeyFile)
	}
	private = bytes.Contains(text, []byte("PRIVATE KEY-----"))
	if private && fi.Mode().Perm()&0o077 != 0 {
		return nil, false, fault.New(fault.Refused, CodeKeyOpen, "key %s has mode %#o: others may have read it", name, fi.Mode().Perm()).
			Hint("chmod 600 %s", quoteFile(name))
	}
	return text, private, nil
}

// parseKeyFile reads the one line of a public key file.
func parseKeyFile(name string, text []byte) (ssh.PublicKey, error) {
	pub, err := parseKeyWords(strings.TrimSpace(string(text)))
	if err == nil && bytes.Contains(bytes.TrimSpace(text), []byte("\n")) {
		err = badLine("there is more than one line")
	}
	if err != nil {
		if err.Code == CodeCertUnsupported {
			return nil, err
		}
		// The cause is left out: it would quote a file that may hold anything.
		return nil, fault.New(fault.Refused, CodeKeyBad, "%s holds no public key that counts", name).Hint("keys: %s; RSA of %d bits or more", strings.Join(keyTypes, ", "), minRSABits)
	}
	return pub, nil
}

// publicHalf reads the public half out of a private key file, which an old
// format with a passphrase hides.
func publicHalf(name string, text []byte) (ssh.PublicKey, error) {
	raw, err := ssh.ParseRawPrivateKey(text)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) && locked.PublicKey != nil {
		return locked.PublicKey, nil
	}
	if err != nil {
		return nil, fault.New(fault.Refused, CodeKeyBad, "%s does not show its public half", name).Hint("ssh-keygen -y -f %s", quoteFile(name))
	}
	k, err := newKey(raw)
	if err != nil {
		return nil, fault.Wrap(err, fault.Refused, CodeKeyBad, "key %s", name)
	}
	return k.pub, nil
}

// quoteFile makes a name one word of a shell.
func quoteFile(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-@:,") == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// homeFile expands ~/ as git does in user.signingkey.
func homeFile(name string) string {
	rest, ok := strings.CutPrefix(name, "~/")
	if !ok {
		return name
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return name
	}
	return filepath.Join(home, rest)
}
