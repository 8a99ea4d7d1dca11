package identity

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/proveto/proveto/internal/fault"
)

// realAgent starts an ssh-agent for the test, with the keys of the files in it.
func realAgent(t testing.TB, files ...string) string {
	t.Helper()
	socket := filepath.Join(shortDir(t), "s")
	c := exec.Command("ssh-agent", "-D", "-a", socket)
	out, err := c.StdoutPipe() // says that it listens
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait() //nolint:errcheck // it was killed
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		add := exec.Command("ssh-add", "-q", f)
		add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
		if out, err := add.CombinedOutput(); err != nil {
			t.Fatalf("ssh-add %s: %v\n%s", f, err, out)
		}
	}
	return socket
}

// shortDir is a directory for sockets, whose paths have to be short.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") //nolint:usetesting // its directories are named after the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// keyTypesOfKeygen are the ways to make each type of key that needs no hardware.
var keyTypesOfKeygen = [][]string{
	{"-t", "ed25519"},
	{"-t", "ecdsa", "-b", "256"},
	{"-t", "ecdsa", "-b", "384"},
	{"-t", "ecdsa", "-b", "521"},
	{"-t", "rsa", "-b", "2048"},
}

// Both ways, for each type of key, from a file and from a real ssh-agent.
func TestSignaturesOfOursAndOfOpenSSHAreTheSameThing(t *testing.T) {
	t.Parallel()
	for _, args := range keyTypesOfKeygen {
		t.Run(strings.Join(args[1:], ""), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			keygen(t, dir, nil, append([]string{"-q", "-N", "", "-f", "key"}, args...)...)
			name := filepath.Join(dir, "key")
			socket := realAgent(t, name)
			pub := must[string](t)(ReadPublicKey(name + ".pub"))
			if pub != must[string](t)(ReadPublicKey(name)) {
				t.Error("the two halves of a key are read as two keys")
			}
			allowed := write(t, dir, "allowed", "alice "+pub+"\n")
			statement := []byte(`{"decision":"approve"}`)

			listed := must[[]Key](t)(agentSocket(socket).keys(t.Context()))
			if len(listed) != 1 || listed[0].AuthorizedKey() != pub {
				t.Fatalf("the agent has %v, want the key", listed)
			}
			file := must[candidate](t)(keyFile{name: name}.candidate(t.Context(), FromFlag))
			behind := must[candidate](t)(keyFile{name: name + ".pub", agent: agentSocket(socket)}.candidate(t.Context(), FromFlag))
			beside := must[candidate](t)(keyFile{name: name + ".pub"}.candidate(t.Context(), FromFlag))
			for _, k := range []Key{
				listed[0], must[Key](t)(file.openFunc(t.Context())), must[Key](t)(behind.openFunc(t.Context())), must[Key](t)(beside.openFunc(t.Context())),
			} {
				sig := must[string](t)(k.SignStatement(t.Context(), statement, FlowNamespace))
				if err := VerifyStatement(pub, statement, sig, FlowNamespace); err != nil {
					t.Errorf("our signature here: %v", err)
				}
				if got := must[string](t)(SignatureKey(sig)); got != pub {
					t.Errorf("SignatureKey = %s, want %s", got, pub)
				}
				keygen(t, dir, statement, "-Y", "verify", "-f", allowed, "-I", "alice", "-n", FlowNamespace, "-s", write(t, dir, "ours", sig))
				if _, err := tryKeygen(dir, []byte("other"), "-Y", "verify", "-f", allowed, "-I", "alice", "-n", FlowNamespace, "-s", "ours"); err == nil {
					t.Error("ssh-keygen accepts the signature for another statement: the test cannot fail")
				}
			}

			write(t, dir, "statement", string(statement))
			keygen(t, dir, nil, "-q", "-Y", "sign", "-f", "key", "-n", FlowNamespace, "statement")
			theirs := string(must[[]byte](t)(os.ReadFile(filepath.Join(dir, "statement.sig"))))
			if err := VerifyStatement(pub, statement, theirs, FlowNamespace); err != nil {
				t.Errorf("OpenSSH's signature here: %v", err)
			}
			wantFault(t, VerifyStatement(pub, []byte("other"), theirs, FlowNamespace), fault.Tampered, CodeSignatureBad)
			wantFault(t, VerifyStatement(pub, statement, theirs, "git"), fault.Tampered, CodeSignatureBad)
		})
	}
}

// signer signs as it is told, for signatures that our own code does not make.
type signer struct {
	pub      ssh.PublicKey
	signFunc func(data []byte) (*ssh.Signature, error)
}

func (s signer) PublicKey() ssh.PublicKey { return s.pub }

func (s signer) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) { return s.signFunc(data) }

func (s signer) SignWithAlgorithm(_ io.Reader, data []byte, _ string) (*ssh.Signature, error) {
	return s.signFunc(data)
}

func (s signer) statement(t *testing.T, statement []byte, h sshsig.HashAlgorithm) string {
	t.Helper()
	return string(sshsig.Armor(must[*sshsig.Signature](t)(sshsig.Sign(bytes.NewReader(statement), s, h, FlowNamespace))))
}

// security makes a security key of software, which sets the flags that it is
// told; blobFunc signs the digest of an assertion.
func security(pub ssh.PublicKey, flags byte, blobFunc func([]byte) []byte) signer {
	return signer{pub, func(data []byte) (*ssh.Signature, error) {
		rest := ssh.Marshal(struct {
			Flags   byte
			Counter uint32
		}{flags, 7})
		app, msg := sha256.Sum256([]byte("ssh:")), sha256.Sum256(data)
		return &ssh.Signature{Format: pub.Type(), Blob: blobFunc(slices.Concat(app[:], rest, msg[:])), Rest: rest}, nil
	}}
}

func securityKeys(t *testing.T, flags byte) []signer {
	t.Helper()
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ed := must[ssh.PublicKey](t)(ssh.ParsePublicKey(ssh.Marshal(struct {
		Type string
		Key  []byte
		App  string
	}{ssh.KeyAlgoSKED25519, pub, "ssh:"})))
	ec := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	ecPub := must[ssh.PublicKey](t)(ssh.ParsePublicKey(ssh.Marshal(struct {
		Type, Curve string
		Key         []byte
		App         string
	}{ssh.KeyAlgoSKECDSA256, "nistp256", must[[]byte](t)(ec.PublicKey.Bytes()), "ssh:"})))
	return []signer{
		security(ed, flags, func(b []byte) []byte { return ed25519.Sign(private, b) }),
		security(ecPub, flags, func(b []byte) []byte {
			sum := sha256.Sum256(b)
			r, s, err := ecdsa.Sign(rand.Reader, ec, sum[:])
			if err != nil {
				t.Fatal(err)
			}
			return ssh.Marshal(struct{ R, S *big.Int }{r, s})
		}),
	}
}

func TestSecurityKeysCountWhenTouched(t *testing.T) {
	t.Parallel()
	statement := []byte("{}")
	for _, flags := range []byte{1, 5, 0, 4} {
		for _, k := range securityKeys(t, flags) {
			touched := flags&1 == 1
			pub := authorized(k.pub)
			sig := k.statement(t, statement, sshsig.HashSHA512)
			if err := VerifyStatement(pub, statement, sig, FlowNamespace); (err == nil) != touched {
				t.Errorf("%s with flags %d: %v, want ok %v", k.pub.Type(), flags, err, touched)
			} else if err != nil {
				wantFault(t, err, fault.Tampered, CodeSignatureBad)
			}
			if s := must[Signers](t)(ParseSigners([]byte("alice " + pub))); s[0].Key != pub {
				t.Errorf("the line of a %s reads as %v", k.pub.Type(), s[0])
			}
			if touched { // the software key is a true one
				dir := t.TempDir()
				keygen(t, dir, statement, "-Y", "verify", "-f", write(t, dir, "allowed", "alice "+pub+"\n"), "-I", "alice", "-n", FlowNamespace, "-s", write(t, dir, "sig", sig))
			}
		}
	}
}

func TestWeakSignaturesAreRefused(t *testing.T) {
	t.Parallel()
	statement := []byte("{}")
	rsaSigner := func(bits int, algorithm string) signer {
		s := must[ssh.Signer](t)(ssh.NewSignerFromKey(must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, bits)))).(ssh.AlgorithmSigner)
		return signer{s.PublicKey(), func(data []byte) (*ssh.Signature, error) { return s.SignWithAlgorithm(rand.Reader, data, algorithm) }}
	}
	ed := must[ssh.Signer](t)(ssh.NewSignerFromKey(must[ed25519.PrivateKey](t)(freshPrivate())))
	longer := signer{ed.PublicKey(), func(data []byte) (*ssh.Signature, error) {
		sig, err := ed.Sign(rand.Reader, data)
		sig.Rest = []byte{0}
		return sig, err
	}}
	good := rsaSigner(2048, ssh.KeyAlgoRSASHA512)
	if err := VerifyStatement(authorized(good.pub), statement, good.statement(t, statement, sshsig.HashSHA512), FlowNamespace); err != nil {
		t.Fatalf("the honest twin: %v", err)
	}
	for _, c := range []struct {
		what string
		by   signer
		hash sshsig.HashAlgorithm
		says string
	}{
		{"a short RSA key", rsaSigner(1024, ssh.KeyAlgoRSASHA512), sshsig.HashSHA512, "1024 bits"},
		{"SHA-256 under RSA", rsaSigner(2048, ssh.KeyAlgoRSASHA256), sshsig.HashSHA512, "of form rsa-sha2-256"},
		{"SHA-1 under RSA", rsaSigner(2048, ssh.KeyAlgoRSA), sshsig.HashSHA512, "does not parse"},
		{"a statement hashed by SHA-256", good, sshsig.HashSHA256, "with hash sha256"},
		{"bytes after the signature", longer, sshsig.HashSHA512, "of form ssh-ed25519"},
	} {
		err := VerifyStatement(authorized(c.by.pub), statement, c.by.statement(t, statement, c.hash), FlowNamespace)
		wantFault(t, err, fault.Tampered, CodeSignatureBad)
		if err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.what, err, c.says)
		}
	}
	armored := good.statement(t, statement, sshsig.HashSHA512)
	for _, bad := range []string{
		armored + strings.Repeat("\n", maxSignature), "From: me\n" + armored, armored + "-- \nme\n", armored + armored, "",
		strings.Replace(armored, "\n", "\nVersion: 2\n\n", 1), strings.ReplaceAll(armored, "SSH SIGNATURE", "SIGNATURE"),
	} {
		wantFault(t, VerifyStatement(authorized(good.pub), statement, bad, FlowNamespace), fault.Tampered, CodeSignatureBad)
	}
	_, err := Key{}.SignStatement(t.Context(), statement, FlowNamespace)
	wantFault(t, err, fault.Refused, CodeNotAuthenticated)
}

func freshPrivate() (ed25519.PrivateKey, error) {
	_, k, err := ed25519.GenerateKey(rand.Reader)
	return k, err
}

func TestKeyFilesWithAPassphrase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keygen(t, dir, nil, "-q", "-t", "ed25519", "-N", "", "-f", "key")
	name := filepath.Join(dir, "key")
	socket := realAgent(t, name)
	pub := must[string](t)(ReadPublicKey(name + ".pub"))
	keygen(t, dir, nil, "-q", "-p", "-N", "correct horse", "-f", "key")
	open := func(f keyFile) (Key, error) {
		f.name = name
		c, err := f.candidate(t.Context(), FromFlag)
		if err != nil {
			return Key{}, err
		}
		if authorized(c.pub) != pub {
			t.Errorf("the locked key shows the public half %s, want %s", authorized(c.pub), pub)
		}
		return c.openFunc(t.Context())
	}
	_, err := open(keyFile{})
	wantFault(t, err, fault.Refused, CodeKeyLocked)
	if hints := fault.From(err).Hints; !slices.Equal(hints, []string{"ssh-add " + name}) {
		t.Errorf("hints = %q", hints)
	}
	asked := 0
	say := func(pass string) func(context.Context, string) ([]byte, error) {
		return func(_ context.Context, file string) ([]byte, error) {
			asked++
			if file != name {
				t.Errorf("asked for the passphrase of %s", file)
			}
			return []byte(pass), nil
		}
	}
	_, err = open(keyFile{passphraseFunc: say("battery staple")})
	wantFault(t, err, fault.Refused, CodeKeyLocked)
	if k, err := open(keyFile{passphraseFunc: say("correct horse")}); err != nil || k.AuthorizedKey() != pub {
		t.Errorf("with the passphrase: %v", err)
	}
	gone := errors.New("nobody there")
	if _, err := open(keyFile{passphraseFunc: func(context.Context, string) ([]byte, error) { return nil, gone }}); !errors.Is(err, gone) {
		t.Errorf("error = %v, want that of the question", err)
	}
	asked = 0
	k, err := open(keyFile{agent: agentSocket(socket), passphraseFunc: say("wrong")})
	if err != nil || asked != 0 {
		t.Errorf("with the key in ssh-agent: %v, asked %d times, want never", err, asked)
	}
	if _, err := k.SignStatement(t.Context(), []byte("{}"), FlowNamespace); err != nil {
		t.Error(err)
	}
	if got, err := ReadPublicKey(name); err != nil || got != pub {
		t.Errorf("ReadPublicKey of a locked file = %q, %v", got, err)
	}
}

// The format before OpenSSH's own hides the public half of a locked key.
func TestOldKeyFilesWithAPassphrase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keygen(t, dir, nil, "-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "correct horse", "-f", "key")
	name := filepath.Join(dir, "key")
	pub := must[string](t)(ReadPublicKey(name + ".pub"))
	pass := func(context.Context, string) ([]byte, error) { return []byte("correct horse"), nil }
	for _, beside := range []bool{true, false} {
		if !beside {
			if err := os.Remove(name + ".pub"); err != nil {
				t.Fatal(err)
			}
		}
		got, err := ReadPublicKey(name)
		if beside && (err != nil || got != pub) {
			t.Errorf("ReadPublicKey = %q, %v, want what lies beside it", got, err)
		} else if !beside {
			wantFault(t, err, fault.Refused, CodeKeyBad)
		}
		c, err := keyFile{name: name, passphraseFunc: pass}.candidate(t.Context(), FromFlag)
		if err != nil {
			t.Fatal(err)
		}
		if k := must[Key](t)(c.openFunc(t.Context())); k.AuthorizedKey() != pub {
			t.Errorf("opened as %s, want %s", k.AuthorizedKey(), pub)
		}
	}
	_, err := keyFile{name: name}.candidate(t.Context(), FromFlag)
	wantFault(t, err, fault.Refused, CodeKeyLocked)
}

func TestKeyFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keygen(t, dir, nil, "-q", "-t", "ed25519", "-N", "", "-f", "open")
	keygen(t, dir, nil, "-q", "-t", "dsa", "-N", "", "-f", "dsa")
	keygen(t, dir, nil, "-q", "-t", "rsa", "-b", "1024", "-N", "", "-f", "short")
	keygen(t, dir, nil, "-q", "-t", "ed25519", "-N", "", "-f", "lonely")
	for _, err := range []error{
		os.Chmod(filepath.Join(dir, "open"), 0o644), os.Remove(filepath.Join(dir, "lonely")), os.Mkdir(filepath.Join(dir, "directory"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "text", "secret but no key")
	write(t, dir, "large", strings.Repeat("x", maxKeyFile+1))
	write(t, dir, "broken", "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n-----END OPENSSH PRIVATE KEY-----\n")
	two := freshKey(t).AuthorizedKey() + "\n"
	write(t, dir, "two", two+two)
	write(t, dir, "cert", certificate(t))
	for _, x := range []struct {
		name string
		code fault.Code
		says string
	}{
		{"open", CodeKeyOpen, "0644"},
		{"dsa", CodeKeyBad, "no private key of"},
		{"short", CodeKeyBad, "1024 bits"},
		{"lonely.pub", CodeKeyLocked, "not in ssh-agent"},
		{"directory", CodeKeyBad, "not a regular file"},
		{"text", CodeKeyBad, "no public key"},
		{"large", CodeKeyBad, "more than"},
		{"broken", CodeKeyBad, "no private key"},
		{"two", CodeKeyBad, "no public key"},
		{"cert", CodeCertUnsupported, "certificate"},
		{"nothing", CodeNotFound, "no key file"},
	} {
		name, code := x.name, x.code
		c, err := keyFile{name: filepath.Join(dir, name)}.candidate(t.Context(), FromFlag)
		if err == nil {
			_, err = c.openFunc(t.Context())
		}
		if f := fault.From(err); f == nil || f.Code != code || !strings.Contains(err.Error(), x.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s with %q and no quotation", name, err, code, x.says)
		}
	}
}

// An agent that lies is found out before its signature is anywhere.
func TestSignaturesOfAnAgentAreChecked(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	l := must[net.Listener](t)(net.Listen("unix", filepath.Join(dir, "s")))
	t.Cleanup(func() { l.Close() })
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: must[ed25519.PrivateKey](t)(freshPrivate())}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(liar{ring}, c) //nolint:errcheck // ends with the connection
		}
	}()
	keys := must[[]Key](t)(agentSocket(l.Addr().String()).keys(t.Context()))
	_, err := keys[0].SignStatement(t.Context(), []byte("{}"), FlowNamespace)
	wantFault(t, err, fault.Refused, CodeKeyBad)
	wantFault(t, keys[0].Prove(t.Context()), fault.Refused, CodeKeyBad)
	if err := freshKey(t).Prove(t.Context()); err != nil {
		t.Errorf("a key of this process: %v", err)
	}

	// And one that does not answer ends with the context.
	ctx, cancel := context.WithCancel(t.Context())
	silent := must[net.Listener](t)(net.Listen("unix", filepath.Join(dir, "silent")))
	t.Cleanup(func() { silent.Close() })
	go func() {
		c, err := silent.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Read(make([]byte, 1)) //nolint:errcheck // the question came
		cancel()
		<-t.Context().Done() // and no answer
	}()
	if _, err := agentSocket(silent.Addr().String()).keys(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that of the context", err)
	}
}

type liar struct{ agent.Agent }

func (l liar) Sign(key ssh.PublicKey, _ []byte) (*ssh.Signature, error) {
	return l.Agent.Sign(key, []byte("something else"))
}
