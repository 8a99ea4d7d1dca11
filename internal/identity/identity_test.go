package identity

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"golang.org/x/crypto/ssh"
	"golang.org/x/mod/sumdb/note"

	"github.com/proveto/proveto/internal/fault"
)

const namespace = "proveto-waiver-v1"

func setup(t *testing.T) (*Keys, string) {
	t.Helper()
	dir := t.TempDir()
	k, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return k, dir
}

func wantFault(t *testing.T, err error, kind fault.Kind, code fault.Code) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Kind != kind || f.Code != code {
		t.Errorf("error = %v, want %s/%s", err, kind, code)
	}
}

func TestFirstUseMakesPrivateKeysThatLast(t *testing.T) {
	t.Parallel()
	k, dir := setup(t)
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !k.Local.signerEqual(again.Local) || !bytes.Equal(k.Engine.key, again.Engine.key) {
		t.Error("the second Open has other keys")
	}
	if bytes.Equal(k.Engine.public(), k.Local.pub.Marshal()[19:]) {
		t.Error("person and engine have the same key")
	}
	files, err := os.ReadDir(filepath.Join(dir, "keys"))
	if err != nil || len(files) != 2 {
		t.Fatalf("keys/ holds %v, %v, want two files", files, err)
	}
	for _, f := range files {
		fi, err := f.Info()
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", f.Name(), fi.Mode(), err)
		}
		// OpenSSH reads it.
		out, err := exec.Command("ssh-keygen", "-y", "-f", filepath.Join(dir, "keys", f.Name())).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "ssh-ed25519 ") {
			t.Errorf("ssh-keygen -y: %v %s", err, out)
		}
	}
}

func (p Person) signerEqual(q Person) bool { return p.AuthorizedKey() == q.AuthorizedKey() }

func TestTwoFirstUsesAtOnceAgree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	got := make([]*Keys, 8)
	for i := range got {
		wg.Go(func() {
			k, err := Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = k
		})
	}
	wg.Wait()
	for _, k := range got {
		if k == nil || !k.Local.signerEqual(got[0].Local) || !bytes.Equal(k.Engine.key, got[0].Engine.key) {
			t.Fatal("two first uses made two keys")
		}
	}
}

func TestUnsafeKeyFilesAreRefused(t *testing.T) {
	t.Parallel()
	_, dir := setup(t)
	name := filepath.Join(dir, "keys", "engine")
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir)
	wantFault(t, err, fault.Refused, CodeKeyOpen)
	if err := os.Rename(name, filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../moved", name); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	wantFault(t, err, fault.Refused, CodeKeyBad)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("secret but no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	wantFault(t, err, fault.Refused, CodeKeyBad)
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("error %q quotes the key file", err)
	}
}

// sshVerify asks the real ssh-keygen.
func sshVerify(t *testing.T, k *Keys, statement []byte, sig, ns string) error {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"allowed": LocalPrincipal + " " + k.Local.AuthorizedKey() + "\n", "sig": sig,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("ssh-keygen", "-Y", "verify", "-f", filepath.Join(dir, "allowed"), "-I", LocalPrincipal,
		"-n", ns, "-s", filepath.Join(dir, "sig"))
	c.Stdin = bytes.NewReader(statement)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Logf("ssh-keygen: %s", out)
	}
	return err
}

func TestStatementVerifiesHereAndWithSSHKeygen(t *testing.T) {
	t.Parallel()
	k, _ := setup(t)
	statement := []byte(`{"probe":"sha256:00"}`)
	sig, err := k.Local.SignStatement(t.Context(), statement, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyStatement(k.Local.AuthorizedKey(), statement, sig, namespace); err != nil {
		t.Errorf("our own verification: %v", err)
	}
	if err := sshVerify(t, k, statement, sig, namespace); err != nil {
		t.Errorf("ssh-keygen -Y verify: %v", err)
	}

	other, _ := setup(t)
	key := k.Local.AuthorizedKey()
	for _, bad := range []struct {
		what, key, statement, sig, namespace string
	}{
		{"another statement", key, `{"probe":"sha256:01"}`, sig, namespace},
		{"another namespace", key, string(statement), sig, "proveto-flow-v1"},
		{"another key", other.Local.AuthorizedKey(), string(statement), sig, namespace},
		{"no signature", key, string(statement), "", namespace},
		{"no key", "", string(statement), sig, namespace},
		{"two keys", key + "\n" + other.Local.AuthorizedKey(), string(statement), sig, namespace},
	} {
		t.Run(bad.what, func(t *testing.T) {
			wantFault(t, VerifyStatement(bad.key, []byte(bad.statement), bad.sig, bad.namespace), fault.Tampered, CodeSignatureBad)
		})
	}
	if sshVerify(t, k, statement, sig, "git") == nil {
		t.Error("ssh-keygen accepted the signature in another namespace: the test cannot fail")
	}
}

func TestEngineSignsNotes(t *testing.T) {
	t.Parallel()
	k, _ := setup(t)
	s, err := k.Engine.NoteSigner("00ff")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := note.Sign(&note.Note{Text: "proveto-00ff\n1\nAAAA\n"}, s)
	if err != nil {
		t.Fatal(err)
	}
	for id, ok := range map[string]bool{"00ff": true, "00fe": false} {
		vkey, err := k.Engine.VerifierKey(id)
		if err != nil {
			t.Fatal(err)
		}
		v, err := note.NewVerifier(vkey)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := note.Open(msg, note.VerifierList(v)); (err == nil) != ok {
			t.Errorf("note opened with the key of ledger %s: %v, want ok %v", id, err, ok)
		}
	}
}

func TestEngineSignsEnvelopes(t *testing.T) {
	t.Parallel()
	k, _ := setup(t)
	ctx := context.Background()
	es, err := dsse.NewEnvelopeSigner(k.Engine)
	if err != nil {
		t.Fatal(err)
	}
	env, err := es.SignPayload(ctx, "application/vnd.in-toto+json", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	vkey, err := k.Engine.VerifierKey("00ff")
	if err != nil {
		t.Fatal(err)
	}
	pub, name, err := ParseVerifierKey(vkey)
	if err != nil || name != "proveto-00ff" {
		t.Fatalf("ParseVerifierKey = %q, %v", name, err)
	}
	verifier, err := dsse.NewEnvelopeVerifier(pub)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verifier.Verify(ctx, env); err != nil {
		t.Errorf("Verify: %v", err)
	}
	// Whoever has the public key alone names it as the engine does.
	ours, err := k.Engine.KeyID()
	if err != nil {
		t.Fatal(err)
	}
	sshKey, err := ssh.NewPublicKey(k.Engine.public())
	if err != nil {
		t.Fatal(err)
	}
	if theirs, err := pub.KeyID(); theirs != ours || ours != ssh.FingerprintSHA256(sshKey) || err != nil {
		t.Errorf("the key is named %q here and %q there, %v", ours, theirs, err)
	}
	if !k.Engine.public().Equal(pub.Public()) || !k.Engine.public().Equal(k.Engine.Public()) {
		t.Errorf("the public key is %v here and %v there", k.Engine.Public(), pub.Public())
	}
	other, _ := setup(t)
	verifier, err = dsse.NewEnvelopeVerifier(other.Engine)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verifier.Verify(ctx, env); err == nil {
		t.Error("another engine's key verified the envelope")
	}
	for _, bad := range []string{"", "a", "a+b+c", vkey[:len(vkey)-4], strings.Replace(vkey, "proveto-00ff", "proveto-00fe", 1)} {
		_, _, err := ParseVerifierKey(bad)
		wantFault(t, err, fault.Tampered, CodeSignatureBad)
	}
}
