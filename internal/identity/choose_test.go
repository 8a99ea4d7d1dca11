package identity

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/fault"
)

// keyring is a machine with key files, a real ssh-agent and principals.
type keyring struct {
	dir    string
	socket string
	local  Person
	keys   map[string]string // public keys by file
}

// setupKeyring makes the files alice and bob (in ssh-agent), bob2 (locked, as
// bob's second key) and carol (nobody's). The generated key is dora's.
func setupKeyring(t *testing.T) (keyring, ChooseOptions) {
	t.Helper()
	k := keyring{dir: t.TempDir(), keys: map[string]string{}}
	for _, name := range []string{"alice", "bob", "bob2", "carol"} {
		pass := ""
		if name == "bob2" {
			pass = "correct horse"
		}
		keygen(t, k.dir, nil, "-q", "-t", "ed25519", "-N", pass, "-f", name)
		k.keys[name] = must[string](t)(ReadPublicKey(k.file(name)))
	}
	keys, _ := setup(t)
	k.local = keys.Local
	k.keys["dora"] = k.local.AuthorizedKey()
	k.socket = realAgent(t, k.file("carol"), k.file("alice"), k.file("bob"))
	signers := "alice " + k.keys["alice"] + "\nbob " + k.keys["bob"] + "\nbob " + k.keys["bob2"] + "\ndora " + k.keys["dora"] + "\n"
	roster := must[Roster](t)(ParseRoster([]byte(signers), []byte(`version: 1
principals:
  alice: {kind: human, roles: [planner, reviewer]}
  bob:   {kind: human, roles: [developer, reviewer]}
  dora:  {kind: human, roles: [tester]}
  erin:  {kind: human, roles: [verifier]}
  bot:   {kind: agent, roles: [developer], operator: alice}
`)))
	return k, ChooseOptions{Roster: roster, At: time.Now(), Agent: k.socket, Generated: k.local}
}

func (k keyring) file(name string) string { return filepath.Join(k.dir, name) }

func (k keyring) print(t *testing.T, name string) string {
	t.Helper()
	return must[string](t)(fingerprint(k.keys[name]))
}

func gitKey(value string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return value, nil }
}

func TestChoiceOfTheKey(t *testing.T) {
	t.Parallel()
	k, base := setupKeyring(t)
	pass := func(context.Context, string) ([]byte, error) { return []byte("correct horse"), nil }
	for _, c := range []struct {
		what   string
		change func(o *ChooseOptions)
		who    string // name, key, role, source
		code   fault.Code
	}{
		{"nothing said: the first in order that speaks for anybody", func(*ChooseOptions) {}, "alice alice ssh-agent", ""},
		{"nothing said, no agent", func(o *ChooseOptions) { o.Agent = "" }, "dora dora generated key", ""},
		{"nothing said, git has a key", func(o *ChooseOptions) { o.GitKeyFunc = gitKey(k.file("bob")) }, "bob bob git user.signingkey", ""},
		{"a principal, from the agent", func(o *ChooseOptions) { o.Actor = "bob" }, "bob bob ssh-agent", ""},
		{"a principal, from the generated key", func(o *ChooseOptions) { o.Actor = "dora" }, "dora dora generated key", ""},
		{"git's key of somebody else is passed by", func(o *ChooseOptions) { o.Actor, o.GitKeyFunc = "bob", gitKey(k.file("alice")) }, "bob bob ssh-agent", ""},
		{"git's public key, its private half beside it", func(o *ChooseOptions) { o.Actor, o.GitKeyFunc, o.Agent = "bob", gitKey(k.file("bob.pub")), "" }, "bob bob git user.signingkey", ""},
		{"git's key itself, its private half in the agent", func(o *ChooseOptions) { o.Actor, o.GitKeyFunc = "bob", gitKey("key::"+k.keys["bob"]) }, "bob bob git user.signingkey", ""},
		{"git's key itself, as older versions had it", func(o *ChooseOptions) { o.Actor, o.GitKeyFunc = "bob", gitKey(k.keys["bob"]+" bob") }, "bob bob git user.signingkey", ""},
		{"git signs by GPG", func(o *ChooseOptions) { o.Actor, o.GitKeyFunc = "bob", gitKey("3AA5C34371567BD2") }, "bob bob ssh-agent", ""},
		{"git's key is locked, another is not", func(o *ChooseOptions) { o.Actor, o.GitKeyFunc = "bob", gitKey(k.file("bob2")) }, "bob bob ssh-agent", ""},
		{"git's key is locked, and there is no other", func(o *ChooseOptions) { o.Actor, o.GitKeyFunc, o.Agent = "bob", gitKey(k.file("bob2")), "" }, "", CodeKeyLocked},
		{"git cannot be asked, another key does", func(o *ChooseOptions) {
			o.Actor, o.GitKeyFunc = "bob", func(context.Context) (string, error) { return "", errors.New("no git") }
		}, "bob bob ssh-agent", ""},
		{"a file", func(o *ChooseOptions) { o.Key = k.file("bob") }, "bob bob --key", ""},
		{"a file before the variable", func(o *ChooseOptions) { o.Key, o.VariableKey = k.file("bob"), k.file("alice") }, "bob bob --key", ""},
		{"the variable before git", func(o *ChooseOptions) { o.VariableKey, o.GitKeyFunc = k.file("alice"), gitKey(k.file("bob")) }, "alice alice PROVETO_KEY", ""},
		{"a locked file, with its passphrase", func(o *ChooseOptions) { o.Key, o.PassphraseFunc = k.file("bob2"), pass }, "bob bob2 --key", ""},
		{"a locked file", func(o *ChooseOptions) { o.Key = k.file("bob2") }, "", CodeKeyLocked},
		{"a fingerprint in the agent", func(o *ChooseOptions) { o.Key = k.print(t, "bob") }, "bob bob --key", ""},
		{"the fingerprint of the generated key", func(o *ChooseOptions) { o.Key = k.print(t, "dora") }, "dora dora --key", ""},
		{"the fingerprint of git's key", func(o *ChooseOptions) { o.Key, o.GitKeyFunc, o.Agent = k.print(t, "bob"), gitKey(k.file("bob")), "" }, "bob bob --key", ""},
		{"a fingerprint of nothing", func(o *ChooseOptions) { o.Key = k.print(t, "bob2") }, "", CodeNotFound},
		{"a file that is not there", func(o *ChooseOptions) { o.Key = k.file("zoe") }, "", CodeNotFound},
		{"a named key is the one, for better or worse", func(o *ChooseOptions) { o.Actor, o.Key = "bob", k.file("alice") }, "", CodeNotAuthenticated},
		{"a key of nobody", func(o *ChooseOptions) { o.Key = k.file("carol") }, "", CodeNotAuthenticated},

		{"a role of one", func(o *ChooseOptions) { o.Actor = "planner" }, "alice alice planner ssh-agent", ""},
		{"a role of one and an agent", func(o *ChooseOptions) { o.Actor = "developer" }, "bob bob developer ssh-agent", ""},
		{"a role of two whose keys are here", func(o *ChooseOptions) { o.Actor = "reviewer" }, "", CodeAmbiguousActor},
		{"a role of two, one key here", func(o *ChooseOptions) { o.Actor, o.Agent, o.GitKeyFunc = "reviewer", "", gitKey(k.file("bob")) }, "bob bob reviewer git user.signingkey", ""},
		{"a role of two, one named key", func(o *ChooseOptions) { o.Actor, o.Key = "reviewer", k.file("alice") }, "alice alice reviewer --key", ""},
		{"a role of two, no key here", func(o *ChooseOptions) { o.Actor, o.Agent = "reviewer", "" }, "", CodeNotAuthenticated},
		{"a role of somebody else", func(o *ChooseOptions) { o.Actor = "verifier" }, "", CodeNotAuthenticated},
		{"a role without the key", func(o *ChooseOptions) { o.Actor, o.Key = "tester", k.file("bob") }, "", CodeNotAuthenticated},
		{"a principal without a key", func(o *ChooseOptions) { o.Actor = "erin" }, "", CodeNotAuthenticated},
		{"an agent", func(o *ChooseOptions) { o.Actor = "bot" }, "", CodeNotAuthenticated},
		{"a name of nobody", func(o *ChooseOptions) { o.Actor = "alise" }, "", CodeNotFound},
		{"a principal by its kind", func(o *ChooseOptions) { o.Actor = "local" }, "", CodeNotFound},
	} {
		o := base
		c.change(&o)
		got, err := Choose(t.Context(), o)
		if c.code != "" {
			kind := map[fault.Code]fault.Kind{CodeNotFound: fault.NotFound, CodeAmbiguousActor: fault.Usage}[c.code]
			if kind == "" {
				kind = fault.Refused
			}
			if f := fault.From(err); f == nil || f.Code != c.code || f.Kind != kind {
				t.Errorf("%s: %v, %v, want %s %s", c.what, got.Principal.Name, err, kind, c.code)
			} else if len(f.Hints) == 0 {
				t.Errorf("%s: %v has no hint", c.what, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		words := []string{got.Principal.Name, "?", string(got.From)}
		for name, key := range k.keys {
			if key == got.Key.AuthorizedKey() {
				words[1] = name
			}
		}
		if got.Role != "" {
			words = slices.Insert(words, 2, got.Role)
		}
		if s := strings.Join(words, " "); s != c.who {
			t.Errorf("%s: %s, want %s", c.what, s, c.who)
		}
		sig := must[string](t)(got.Key.SignStatement(t.Context(), []byte("{}"), FlowNamespace))
		if p, _, err := o.Roster.Verify([]byte("{}"), sig, o.At, nil); err != nil || p.Name != got.Principal.Name {
			t.Errorf("%s: what it signs is by %v, %v", c.what, p, err)
		}
	}
	// The ambiguous role says what would not be.
	base.Actor = "reviewer"
	_, err := Choose(t.Context(), base)
	if hints := fault.From(err).Hints; !slices.Equal(hints, []string{"--actor alice", "--actor bob"}) {
		t.Errorf("hints = %q", hints)
	}
	base.Actor = "alise"
	_, err = Choose(t.Context(), base)
	if hints := fault.From(err).Hints; !slices.Contains(hints, "did you mean alice?") {
		t.Errorf("hints = %q", hints)
	}
}

func TestChoiceRefusesRevokedAndExpiredKeys(t *testing.T) {
	t.Parallel()
	k, o := setupKeyring(t)
	o.Actor = "bob"
	yesterday := o.At.AddDate(0, 0, -1)
	o.Revoked = Revocations{{Key: k.print(t, "bob"), At: yesterday}}
	_, err := Choose(t.Context(), o)
	wantFault(t, err, fault.Refused, CodeRevoked)
	// A clock that was set back does not bring a key back.
	o.Revoked[0].At = o.At.AddDate(1, 0, 0)
	_, err = Choose(t.Context(), o)
	wantFault(t, err, fault.Refused, CodeRevoked)
	// The other key of the same person is not concerned.
	o.GitKeyFunc = gitKey(k.file("bob2"))
	o.PassphraseFunc = func(context.Context, string) ([]byte, error) { return []byte("correct horse"), nil }
	if c, err := Choose(t.Context(), o); err != nil || c.Key.AuthorizedKey() != k.keys["bob2"] {
		t.Errorf("the rotated key: %v", err)
	}
	o.Revoked = Revocations{{Principal: "bob", At: yesterday}}
	_, err = Choose(t.Context(), o)
	wantFault(t, err, fault.Refused, CodeRevoked)

	o.Revoked = nil
	o.GitKeyFunc = nil
	o.Roster.Signers = slices.Clone(o.Roster.Signers)
	o.Roster.Signers[1].Before = yesterday
	_, err = Choose(t.Context(), o)
	wantFault(t, err, fault.Refused, CodeExpired)
	o.Key = k.file("bob")
	_, err = Choose(t.Context(), o)
	wantFault(t, err, fault.Refused, CodeExpired)
	// That bob's key is over is not what keeps erin out.
	o.Key, o.Actor = "", "erin"
	_, err = Choose(t.Context(), o)
	wantFault(t, err, fault.Refused, CodeNotAuthenticated)
}

// The public half beside a locked key says whose it is before it is opened; a
// wrong one must not lend a name to another key.
func TestChoiceTakesNoNameFromAForeignPublicHalf(t *testing.T) {
	t.Parallel()
	k, o := setupKeyring(t)
	keygen(t, k.dir, nil, "-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "correct horse", "-f", "mallory")
	write(t, k.dir, "mallory.pub", k.keys["alice"]+"\n")
	o.Agent = ""
	o.PassphraseFunc = func(context.Context, string) ([]byte, error) { return []byte("correct horse"), nil }
	o.Key = k.file("mallory")
	_, err := Choose(t.Context(), o)
	wantFault(t, err, fault.Refused, CodeKeyBad)
	// Nor does a public half name a private one that is of another key.
	if err := os.Rename(k.file("carol"), k.file("mallory")); err != nil {
		t.Fatal(err)
	}
	o.Key = k.file("mallory.pub")
	_, err = Choose(t.Context(), o)
	wantFault(t, err, fault.Refused, CodeKeyBad)
}

func TestChoiceWithoutPrincipalsAsksNobody(t *testing.T) {
	t.Parallel()
	keys, dir := setup(t)
	asked := func(what string) func() {
		return func() { t.Errorf("%s was asked", what) }
	}
	o := ChooseOptions{
		Roster: LocalRoster(keys.Local), At: time.Now(), Generated: keys.Local,
		Agent:      filepath.Join(dir, "no", "such", "socket"),
		GitKeyFunc: func(context.Context) (string, error) { asked("git")(); return "", nil },
		PassphraseFunc: func(context.Context, string) ([]byte, error) {
			asked("the user")()
			return nil, nil
		},
	}
	for actor, role := range map[string]string{"": "", "local": "", "planner": "planner", "reviewer": "reviewer"} {
		o.Actor = actor
		c, err := Choose(t.Context(), o)
		if err != nil || c.Principal.Name != LocalPrincipal || c.Role != role || c.From != FromGenerated || c.Key.AuthorizedKey() != keys.Local.AuthorizedKey() {
			t.Errorf("--actor %s: %s as %q by %s, %v", actor, c.Principal.Name, c.Role, c.From, err)
		}
	}
	o.Actor = "reviever"
	_, err := Choose(t.Context(), o)
	wantFault(t, err, fault.NotFound, CodeNotFound)
	// A key that is named is not the generated one, and a label is no key.
	o.Actor, o.Key = "reviewer", write(t, dir, "line.pub", freshKey(t).AuthorizedKey()+"\n")
	_, err = Choose(t.Context(), o)
	wantFault(t, err, fault.Refused, CodeNotAuthenticated)
	// On a machine with other keys the run's local is somebody else.
	other, _ := setup(t)
	o.Key, o.Generated, o.GitKeyFunc, o.Agent = "", other.Local, nil, ""
	_, err = Choose(t.Context(), o)
	wantFault(t, err, fault.Refused, CodeNotAuthenticated)
}

func TestChoiceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, o := setupKeyring(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Actor = "bob"
	if _, err := Choose(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that of the context", err)
	}
}
