package identity

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/fault"
)

func TestTheStricterOfTwoRostersHolds(t *testing.T) {
	t.Parallel()
	p := setupPeople(t)
	keys, _ := setup(t)
	tipOf := func(line, with string) Roster {
		text := strings.Replace(principalsText, line, with, 1)
		if text == principalsText {
			t.Fatalf("%q is not in the roster", line)
		}
		return must[Roster](t)(ParseRoster([]byte(p.signers), []byte(text)))
	}
	who := func(r Roster, name string) Principal { q, _ := r.Principal(name); return q.clean() }
	alice, bob := who(p.roster, "alice"), who(p.roster, "bob")

	got := p.roster.Narrowed(tipOf("tester, reviewer]", "tester]"))
	want := bob
	want.Roles = []string{"developer", "tester", "verifier"}
	if d := cmp.Diff(want, who(got, "bob")); d != "" {
		t.Errorf("a role taken back (-want +got):\n%s", d)
	}
	if d := cmp.Diff(alice, who(got, "alice")); d != "" {
		t.Errorf("the neighbour (-want +got):\n%s", d)
	}
	if d := cmp.Diff(bob, who(p.roster, "bob")); d != "" {
		t.Errorf("the roster itself was changed (-want +got):\n%s", d)
	}

	got = p.roster.Narrowed(tipOf(`deliver, "waive:*", principals]`, `"waive:build"]`))
	want = alice
	want.Rights = []string{"cancel", "reopen", "waive:build"}
	if d := cmp.Diff(want, who(got, "alice")); d != "" {
		t.Errorf("rights taken back (-want +got):\n%s", d)
	}

	got = p.roster.Narrowed(tipOf(`rights: ["waive:prove.changed", "waive:P007"]`, `rights: ["waive:*", deliver, principals]`))
	if d := cmp.Diff(bob, who(got, "bob")); d != "" {
		t.Errorf("what the target adds (-want +got):\n%s", d)
	}

	for what, tip := range map[string]Roster{"without principals": LocalRoster(keys.Local), "the same": p.roster} {
		if d := cmp.Diff(p.roster, p.roster.Narrowed(tip)); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}

	at := date(t, "2026-07-01")
	lost := p.roster.LostIn(tipOf("ci@example.com:\n    kind: service", "ci@example.com:\n    kind: human"), at)
	if d := cmp.Diff(Revocations{{Principal: "ci@example.com", At: at, Reason: "somebody else in .proveto/principals.yaml"}}, lost); d != "" {
		t.Errorf("another kind (-want +got):\n%s", d)
	}
}

func TestTimesWithoutAZoneAreSaid(t *testing.T) {
	t.Parallel()
	p := setupPeople(t)
	for option, warns := range map[string]bool{
		`valid-after="20260601Z"`: false, `valid-before="203001010000UTC"`: false, `valid-after="20260601"`: true,
		`valid-after="20260601Z",valid-before="20300101"`: true, `namespaces="proveto-*"`: false,
	} {
		text := "alice " + p.alice.AuthorizedKey() + "\nbob " + option + " " + p.bob.AuthorizedKey() + "\n"
		got := must[Roster](t)(ParseRoster([]byte(text), []byte(principalsText))).Warnings()
		if warns != (len(got) == 1) || warns && !strings.Contains(got[0], "allowed_signers:2: a time of the key of bob has no Z") {
			t.Errorf("%s: warnings %q", option, got)
		}
	}
}

// TestArmorIsWhatOpenSSHTakes feeds the same texts to ssh-keygen: what we take,
// it takes.
func TestArmorIsWhatOpenSSHTakes(t *testing.T) {
	t.Parallel()
	key := freshKey(t)
	dir := t.TempDir()
	statement := []byte(`{"a":1}`)
	sig := must[string](t)(key.SignStatement(t.Context(), statement, FlowNamespace))
	private, _, err := Generate(dir, "alice")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "statement"), statement, 0o600); err != nil {
		t.Fatal(err)
	}
	keygen(t, dir, nil, "-Y", "sign", "-q", "-n", FlowNamespace, "-f", private, "statement")
	theirs := string(must[[]byte](t)(os.ReadFile(filepath.Join(dir, "statement.sig"))))
	for _, c := range []struct {
		what, text string
		good       bool
	}{
		{"ours", sig, true},
		{"theirs", theirs, true},
		{"without the last line end", strings.TrimRight(sig, "\n"), true},
		{"text before", "hello\n" + sig, false},
		{"a blank line before", "\n" + sig, false},
		{"a header of PEM", strings.Replace(sig, "SIGNATURE-----\n", "SIGNATURE-----\nProc-Type: 4,ENCRYPTED\n\n", 1), false},
		{"text after", sig + "hello\n", false},
		{"two of them", sig + sig, false},
		{"another begin", strings.Replace(sig, "BEGIN SSH SIGNATURE", "BEGIN SSH  SIGNATURE", 1), false},
	} {
		_, err := SignatureKey(c.text)
		if c.good != (err == nil) {
			t.Errorf("%s: %v", c.what, err)
		}
		if !c.good {
			wantFault(t, err, fault.Tampered, CodeSignatureBad)
		}
		name := filepath.Join(dir, "sig")
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("ssh-keygen", "-Y", "check-novalidate", "-n", FlowNamespace, "-s", name)
		cmd.Stdin = strings.NewReader(string(statement))
		if out, err := cmd.CombinedOutput(); c.good && err != nil {
			t.Errorf("%s: ssh-keygen refuses what we take: %v\n%s", c.what, err, out)
		}
	}
}

func TestRostersThatWereStoredAreCheckedToo(t *testing.T) {
	t.Parallel()
	p := setupPeople(t)
	text := string(must[[]byte](t)(json.Marshal(p.roster))) //nolint:errchkjson // it is checked by must
	for _, c := range [][2]string{
		{`"name":"bob"`, `"name":"reviewer"`},
		{`{"name":"bob"`, `{"name":"Alice","kind":"human"},{"name":"bob"`},
		{`"roles":["developer"],"operator"`, `"roles":["developer"],"rights":["deliver"],"operator"`},
	} {
		bad := strings.Replace(text, c[0], c[1], 1)
		if c[1][:9] == `{"name":"` { // in order
			bad = strings.Replace(text, `[{"name":"alice"`, `[{"name":"Alice","kind":"human"},{"name":"alice"`, 1)
		}
		if bad == text {
			t.Fatalf("%q is not in %s", c[0], text)
		}
		var r Roster
		if err := json.Unmarshal([]byte(bad), &r); err == nil {
			t.Errorf("a roster with %s was taken", c[1])
		}
	}
}

func TestGeneratedKeysAreTheirPrincipals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, key, err := Generate(dir, "engine")
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", file, fi.Mode(), err)
	}
	again, same, err := Generate(dir, "engine")
	if err != nil || again != file || same != key {
		t.Errorf("again: %s %s, %v; want %s %s", again, same, err, file, key)
	}
	if got := must[string](t)(ReadPublicKey(file)); got != key {
		t.Errorf("the file holds %s, want %s", got, key)
	}
	keys := must[*Keys](t)(Open(dir))
	if keys.Local.AuthorizedKey() == key {
		t.Error("the key of a principal is the one of this machine")
	}
	for _, name := range []string{"../x", "", "a/b", ".x"} {
		_, _, err := Generate(dir, name)
		wantFault(t, err, fault.Usage, "usage")
	}
}
