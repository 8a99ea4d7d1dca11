package identity

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proveto/proveto/internal/fault"
)

func TestAddPrincipalKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	key := freshKey(t).AuthorizedKey()
	line := `carol namespaces="proveto-*" ` + key
	carol := Principal{Name: "carol", Kind: KindHuman, Roles: []string{"tester", "reviewer"}, Rights: []string{"waive:*", "reopen"}}
	const entry = `carol: {kind: human, roles: [reviewer, tester], rights: [reopen, "waive:*"]}`
	for _, c := range []struct{ what, signers, principals, wantSigners, wantPrincipals string }{
		{"no files", "", "", line + "\n", "version: 1\nprincipals:\n  " + entry + "\n"},
		{"comments alone", "# keys\n", "# people\n\n", "# keys\n" + line + "\n", "# people\nversion: 1\nprincipals:\n  " + entry + "\n"},
		{
			"a line after the last, whose end is missing", "# keys\nbob " + freshKeyLine, "version: 1\nprincipals:\n  bob: {kind: human}",
			"# keys\nbob " + freshKeyLine + "\n" + line + "\n", "version: 1\nprincipals:\n  bob: {kind: human}\n  " + entry + "\n",
		},
		{
			"comments, blocks and what comes after", "", "# a\nprincipals: # b\n    # c\n    bob: # d\n        kind: human\n        # e\n        roles:\n            - tester\n\n    # f\n\n# g\nversion: 1\n",
			line + "\n", "# a\nprincipals: # b\n    # c\n    bob: # d\n        kind: human\n        # e\n        roles:\n            - tester\n    " + entry + "\n\n    # f\n\n# g\nversion: 1\n",
		},
		{
			"a comment at the margin, inside the last one", "", "version: 1\nprincipals:\n  bob:\n    kind: human\n# e\n    roles: [tester]\n",
			line + "\n", "version: 1\nprincipals:\n  bob:\n    kind: human\n# e\n    roles: [tester]\n  " + entry + "\n",
		},
		{
			"lines as Windows ends them", "# k\r\n", "version: 1\r\nprincipals:\r\n  bob: {kind: human}\r\n",
			"# k\r\n" + line + "\r\n", "version: 1\r\nprincipals:\r\n  bob: {kind: human}\r\n  " + entry + "\r\n",
		},
		{
			"a flow mapping over lines", "", "version: 1\nprincipals:\n  bob: {\n    kind: human,\n    roles: [tester]\n    }\n",
			line + "\n", "version: 1\nprincipals:\n  bob: {\n    kind: human,\n    roles: [tester]\n    }\n  " + entry + "\n",
		},
	} {
		s, p, err := AddPrincipal([]byte(c.signers), []byte(c.principals), carol, key)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if d := cmp.Diff([]string{c.wantSigners, c.wantPrincipals}, []string{string(s), string(p)}); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, d)
		}
		// The same again changes nothing; another key of theirs is one more line.
		s2, p2, err := AddPrincipal(s, p, carol, key)
		if err != nil || string(s2) != string(s) || string(p2) != string(p) {
			t.Errorf("%s: again: %q, %q, %v", c.what, s2, p2, err)
		}
		s3, p3, err := AddPrincipal(s, p, carol, freshKey(t).AuthorizedKey())
		if err != nil || !strings.HasPrefix(string(s3), string(s)) || len(s3) == len(s) || string(p3) != string(p) {
			t.Errorf("%s: another key: %q, %q, %v", c.what, s3, p3, err)
		}
	}
}

const freshKeyLine = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEm3Qh8sSBKrpgTIVwPKGWu2JJZ8yO3xO2xwvmHHeYiQ"

func TestAddPrincipalRefuses(t *testing.T) {
	t.Parallel()
	key := freshKey(t).AuthorizedKey()
	human := func(name string, roles ...string) Principal {
		return Principal{Name: name, Kind: KindHuman, Roles: roles}
	}
	const bob = "version: 1\nprincipals:\n  bob: {kind: human, roles: [tester]}\n"
	for _, c := range []struct {
		what, signers, principals string
		p                         Principal
		key                       string
		kind                      fault.Kind
		code                      fault.Code
		says                      string
	}{
		{"another role of somebody who is there", "", bob, human("bob", "reviewer"), key, fault.Conflict, CodeConflict, "is there already, as bob: {kind: human, roles: [tester]}"},
		{"a key of somebody else", "bob " + key + "\n", bob, human("carol"), key, fault.Usage, CodeRosterBad, "one key for bob and carol"},
		{"an agent with a key", "", bob, Principal{Name: "bot", Kind: KindAgent, Operator: "bob"}, key, fault.Usage, CodeRosterBad, "hold no key"},
		{"an agent of nobody", "", bob, Principal{Name: "bot", Kind: KindAgent, Operator: "zoe"}, "", fault.Usage, "usage", "is no human"},
		{"an agent without operator", "", bob, Principal{Name: "bot", Kind: KindAgent}, "", fault.Usage, "usage", "without an operator"},
		{"a name", "", bob, human("../x"), key, fault.Usage, "usage", "is no name"},
		{"a role", "", bob, human("carol", "reviever"), key, fault.Usage, "usage", "unknown role"},
		{"a right", "", bob, Principal{Name: "carol", Kind: KindHuman, Rights: []string{"root"}}, key, fault.Usage, "usage", "unknown right"},
		{"a kind", "", bob, Principal{Name: "carol"}, key, fault.Usage, "usage", "has no kind"},
		{"no key", "", bob, human("carol"), "ssh-ed25519 AAAA", fault.Usage, CodeRosterBad, "is no ssh-ed25519 key"},
		{"a broken file", "", "version: 1\nprincipals: [", human("carol"), key, fault.Usage, CodeRosterBad, "principals.yaml"},
		{"a broken other file", "bob\n", bob, human("carol"), key, fault.Usage, CodeRosterBad, "allowed_signers:1"},
		{"a file on one line", "", "{version: 1, principals: {bob: {kind: human}}}", human("carol"), key, fault.Refused, CodeRosterBad, "not written with one"},
		{"principals in brackets over lines", "", "version: 1\nprincipals: {\n  bob: {kind: human}\n}\n", human("carol"), key, fault.Refused, CodeRosterBad, "not written with one"},
		{"principals on one line", "", "version: 1\nprincipals: {bob: {kind: human}}\n", human("carol"), key, fault.Refused, CodeRosterBad, "not written with one"},
	} {
		s, p, err := AddPrincipal([]byte(c.signers), []byte(c.principals), c.p, c.key)
		if f := fault.From(err); f == nil || f.Kind != c.kind || f.Code != c.code || !strings.Contains(err.Error(), c.says) || s != nil || p != nil {
			t.Errorf("%s: %q, %q, %v, want %s %s with %q", c.what, s, p, err, c.kind, c.code, c.says)
		}
	}
}

func TestAddPrincipalRoundTrips(t *testing.T) {
	t.Parallel()
	keys := make([]string, 12)
	for i := range keys {
		keys[i] = freshKey(t).AuthorizedKey()
	}
	names := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9][a-z0-9._@+-]{0,8}`),
		rapid.SampledFrom([]string{"true", "null", "1", "1e3", "0x1f", "y", "NO", "1.5", "12:30"[:2], "0.0.0.0", "a-", "1_0", "2026-01-01"}),
	).Filter(func(s string) bool { return s != EngineName && !slices.Contains(roles, s) })
	some := func(t *rapid.T, label string, of []string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, 3, rapid.ID[string]).Draw(t, label)
	}
	rapid.Check(t, func(t *rapid.T) {
		var signers, principals []byte
		var want []Principal
		for i, name := range rapid.SliceOfNDistinct(names, 1, len(keys), strings.ToLower).Draw(t, "names") {
			p := Principal{Name: name, Kind: KindHuman, Roles: some(t, "roles", roles), Rights: some(t, "rights", append(rights, "waive:P001", "waive:command.lint"))}
			key := keys[i]
			if i > 0 && rapid.Bool().Draw(t, "agent") {
				p.Kind, p.Operator, p.Rights, key = KindAgent, want[0].Name, some(t, "agent's rights", agentRights), ""
			}
			var err error
			if signers, principals, err = AddPrincipal(signers, principals, p, key); err != nil {
				t.Fatalf("add %v: %v\n%s", p, err, principals)
			}
			p.Roles, p.Rights = sorted(p.Roles), sorted(p.Rights)
			want = append(want, p.clean())
		}
		r, err := ParseRoster(signers, principals)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range want {
			got, ok := r.Principal(p.Name)
			if d := cmp.Diff(p, got.clean()); !ok || d != "" {
				t.Fatalf("%s (-want +got):\n%s\n%s", p.Name, d, principals)
			}
		}
		if len(r.Principals) != len(want) {
			t.Fatalf("%d principals, want %d", len(r.Principals), len(want))
		}
	})
}

// What is written down is what OpenSSH reads.
func TestAddPrincipalWritesForOpenSSH(t *testing.T) {
	t.Parallel()
	key := freshKey(t)
	signers, principals, err := AddPrincipal(nil, nil, Principal{Name: "carol@example.com", Kind: KindHuman}, key.AuthorizedKey())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	allowed := write(t, dir, "allowed", string(signers))
	statement := []byte("{}")
	write(t, dir, "sig", must[string](t)(key.SignStatement(t.Context(), statement, FlowNamespace)))
	keygen(t, dir, statement, "-Y", "verify", "-f", allowed, "-I", "carol@example.com", "-n", FlowNamespace, "-s", "sig")
	if r := must[Roster](t)(ParseRoster(signers, principals)); len(r.Signers) != 1 {
		t.Errorf("the roster has %v", r.Signers)
	}
}

func TestPublicKeysAsTheyAreGiven(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keygen(t, dir, nil, "-q", "-t", "ed25519", "-N", "", "-C", "a comment", "-f", "key")
	name := filepath.Join(dir, "key")
	line := string(must[[]byte](t)(os.ReadFile(name + ".pub")))
	want := strings.Join(strings.Fields(line)[:2], " ")
	for _, given := range []string{name, name + ".pub", line, strings.TrimSpace(line), "key::" + line, want} {
		if got, err := ReadPublicKey(given); err != nil || got != want {
			t.Errorf("ReadPublicKey(%q) = %q, %v, want %q", given, got, err, want)
		}
	}
	if err := os.Remove(name + ".pub"); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadPublicKey(name); err != nil || got != want {
		t.Errorf("ReadPublicKey of a private key = %q, %v, want %q", got, err, want)
	}
	for given, code := range map[string]fault.Code{
		filepath.Join(dir, "nothing"): CodeNotFound, "ssh-ed25519 AAAA": CodeKeyBad, certificate(t): CodeCertUnsupported, line + line: CodeKeyBad,
	} {
		_, err := ReadPublicKey(given)
		if f := fault.From(err); f == nil || f.Code != code {
			t.Errorf("ReadPublicKey(%q) = %v, want %s", given, err, code)
		}
	}
	if !slices.Contains(keyTypes, strings.Fields(want)[0]) {
		t.Error(want)
	}
}
