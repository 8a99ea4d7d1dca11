package identity

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

const principalsText = `# who is who
version: 1
principals:
  alice:     {kind: human, roles: [planner, reviewer], rights: [reopen, cancel, deliver, "waive:*", principals]}
  bob:       {kind: human, roles: [developer, verifier, tester, reviewer], rights: ["waive:prove.changed", "waive:P007"]}
  dev-agent: {kind: agent, roles: [developer], operator: alice}
  ci@example.com:
    kind: service
    rights: [claim]
  engine: {kind: engine}
`

// people are the principals of principalsText with a key each, and bob with two.
type people struct {
	alice, bob, bob2, ci, stranger Key
	signers                        string
	roster                         Roster
}

func setupPeople(t testing.TB) people {
	t.Helper()
	p := people{alice: freshKey(t), bob: freshKey(t), bob2: freshKey(t), ci: freshKey(t), stranger: freshKey(t)}
	p.signers = "alice,alice@example.com " + p.alice.AuthorizedKey() + "\n" +
		"bob " + p.bob.AuthorizedKey() + "\n" +
		`bob namespaces="proveto-*",valid-after="20260601Z",valid-before="20270101Z" ` + p.bob2.AuthorizedKey() + "\n" +
		"ci@example.com " + p.ci.AuthorizedKey() + "\n" +
		"somebody " + p.stranger.AuthorizedKey() + "\n" +
		`dev-agent namespaces="git" ` + freshKey(t).AuthorizedKey() + "\n"
	p.roster = must[Roster](t)(ParseRoster([]byte(p.signers), []byte(principalsText)))
	return p
}

func date(t testing.TB, s string) time.Time {
	t.Helper()
	return must[time.Time](t)(time.Parse(time.DateOnly, s))
}

func TestPrincipalsAreReadAsWritten(t *testing.T) {
	t.Parallel()
	got := must[[]Principal](t)(ParsePrincipals([]byte(principalsText)))
	want := []Principal{
		{Name: "alice", Kind: KindHuman, Roles: []string{"planner", "reviewer"}, Rights: []string{"cancel", "deliver", "principals", "reopen", "waive:*"}},
		{Name: "bob", Kind: KindHuman, Roles: []string{"developer", "reviewer", "tester", "verifier"}, Rights: []string{"waive:P007", "waive:prove.changed"}},
		{Name: "ci@example.com", Kind: KindService, Rights: []string{"claim"}},
		{Name: "dev-agent", Kind: KindAgent, Roles: []string{"developer"}, Operator: "alice"},
		{Name: "engine", Kind: KindEngine},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("ParsePrincipals (-want +got):\n%s", d)
	}
	alice, bob := got[0], got[1]
	for right, has := range map[string][2]bool{
		"reopen": {true, false}, "waive:prove.changed": {true, true}, "waive:P007": {true, true}, "waive:P001": {true, false},
		"waive:*": {true, false}, "release": {false, false}, "waive": {false, false},
	} {
		if got := [2]bool{alice.May(right), bob.May(right)}; got != has {
			t.Errorf("May(%s) = %v of alice and bob, want %v", right, got, has)
		}
	}
	if !alice.Holds("planner") || alice.Holds("tester") {
		t.Error("alice is a planner and no tester")
	}
}

func TestPrincipalsRefuseWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, says, hint string }{
		{"principals: {a: {kind: human}}", "has no version", ""},
		{"version: 2\nprincipals: {a: {kind: human}}", "yaml:1:10: version is not 1", ""},
		{"version: 1", "names no principals", ""},
		{"", "has no version", ""},
		{"version: 1\nprincipal: {}", "yaml:2:1: unknown key principal", "did you mean principals?"},
		{"version: 1\nprincipals:\n  a: {kind: humane}", "yaml:3:13: unknown kind humane", "did you mean human?"},
		{"version: 1\nprincipals:\n  a: {kind: human, roles: [tester, reviewers]}", "yaml:3:36: unknown role reviewers", "did you mean reviewer?"},
		{"version: 1\nprincipals:\n  a: {kind: human, roles: [tester, tester]}", "tester is there twice", ""},
		{"version: 1\nprincipals:\n  a: {kind: human, roles: tester}", "want a list", ""},
		{"version: 1\nprincipals:\n  a: {kind: human, rights: [delivery]}", "unknown right delivery", "did you mean deliver?"},
		{"version: 1\nprincipals:\n  a: {kind: human, rights: [waive]}", "unknown right waive", "did you mean waive:*?"},
		{"version: 1\nprincipals:\n  a: {kind: human, rights: [\"waive:\"]}", "unknown right waive:", "did you mean waive:*?"},
		{"version: 1\nprincipals:\n  a: {kind: human, right: []}", "unknown key right", "did you mean rights?"},
		{"version: 1\nprincipals:\n  a: {roles: []}", "yaml:3:3: principal a has no kind", ""},
		{"version: 1\nprincipals:\n  a: {kind: agent}", "without an operator", ""},
		{"version: 1\nprincipals:\n  alice: {kind: human}\n  a: {kind: agent, operator: alise}", `yaml:4:30: operator "alise" is no human`, "did you mean alice?"},
		{"version: 1\nprincipals:\n  a: {kind: agent, operator: b}\n  b: {kind: agent, operator: a}", "is no human", ""},
		{"version: 1\nprincipals:\n  a: {kind: human, operator: a}", "which only agents have", ""},
		{"version: 1\nprincipals:\n  engine: {kind: human}", "mixes up the engine", ""},
		{"version: 1\nprincipals:\n  motor: {kind: engine}", "mixes up the engine", ""},
		{"version: 1\nprincipals:\n  Engine: {kind: human}", "mixes up the engine", ""},
		{"version: 1\nprincipals:\n  reviewer: {kind: human}", "yaml:3:3: principal reviewer has the name of a role", ""},
		{"version: 1\nprincipals:\n  Planner: {kind: human}", "has the name of a role", ""},
		{"version: 1\nprincipals:\n  bob: {kind: human}\n  Bob: {kind: human}", "Bob and bob differ only in case", ""},
		{"version: 1\nprincipals:\n  a: {kind: human}\n  b: {kind: agent, operator: a, rights: [claim, deliver]}", "yaml:4:3: principal b is an agent with the right deliver", ""},
		{"version: 1\nprincipals:\n  a: {kind: human}\n  b: {kind: agent, operator: a, rights: [\"waive:P001\"]}", "is an agent with the right waive:P001", ""},
		{"version: 1\nprincipals:\n  a/b: {kind: human}", "is no name of a principal", ""},
		{"version: 1\nprincipals:\n  .a: {kind: human}", "is no name of a principal", ""},
		{"version: 1\nprincipals:\n  a: {kind: human}\n  a: {kind: human}", "", ""},
		{"version: 1\nprincipals:\n  a: &x {kind: human}\n  b: *x", "", ""},
	} {
		_, err := ParsePrincipals([]byte(c.text))
		f := fault.From(err)
		if f == nil || f.Kind != fault.Usage || f.Code != CodeRosterBad || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), PrincipalsFile) {
			t.Errorf("ParsePrincipals(%q) = %v, want %s with %q", c.text, err, CodeRosterBad, c.says)
		} else if c.hint != "" && !slices.Contains(f.Hints, c.hint) {
			t.Errorf("ParsePrincipals(%q) hints %q, want %q", c.text, f.Hints, c.hint)
		}
	}
}

func TestRosterAnswers(t *testing.T) {
	t.Parallel()
	p := setupPeople(t)
	r := p.roster
	if d := cmp.Diff(map[string][]string{
		"planner": {"alice"}, "developer": {"bob", "dev-agent"}, "verifier": {"bob"}, "tester": {"bob"}, "reviewer": {"alice", "bob"},
	}, r.Holders()); d != "" {
		t.Errorf("Holders (-want +got):\n%s", d)
	}
	if a, ok := r.Principal("dev-agent"); !ok || a.Kind != KindAgent || a.Operator != "alice" || !r.Enforced {
		t.Errorf("dev-agent is %v, %v, enforced %v", a, ok, r.Enforced)
	}
	at := date(t, "2026-07-01")
	for _, c := range []struct {
		key  Key
		at   string
		want string
		code fault.Code
	}{
		{p.alice, "2026-07-01", "alice", ""},
		{p.bob, "2026-07-01", "bob", ""},
		{p.bob2, "2026-07-01", "bob", ""},
		{p.bob2, "2026-05-01", "", CodeNotAuthenticated},
		{p.bob2, "2027-02-01", "", CodeExpired},
		{p.ci, "2027-02-01", "ci@example.com", ""},
		{p.stranger, "2026-07-01", "", CodeNotAuthenticated}, // listed for somebody who is no principal
		{freshKey(t), "2026-07-01", "", CodeNotAuthenticated},
	} {
		got, err := r.SignedBy(c.key.AuthorizedKey(), date(t, c.at), nil)
		if c.code != "" {
			wantFault(t, err, fault.Refused, c.code)
		} else if err != nil || got.Name != c.want {
			t.Errorf("SignedBy at %s = %v, %v, want %s", c.at, got, err, c.want)
		}
	}
	statement := []byte("{}")
	sig := must[string](t)(p.bob.SignStatement(t.Context(), statement, FlowNamespace))
	if who, key, err := r.Verify(statement, sig, at, nil); err != nil || who.Name != "bob" || key != p.bob.AuthorizedKey() {
		t.Errorf("Verify = %v, %s, %v, want bob", who, key, err)
	}
	_, _, err := r.Verify([]byte("{ }"), sig, at, nil)
	wantFault(t, err, fault.Tampered, CodeSignatureBad)
	_, _, err = r.Verify(statement, must[string](t)(p.bob.SignStatement(t.Context(), statement, "proveto-waiver-v1")), at, nil)
	wantFault(t, err, fault.Tampered, CodeSignatureBad)
	_, _, err = r.Verify(statement, must[string](t)(p.stranger.SignStatement(t.Context(), statement, FlowNamespace)), at, nil)
	wantFault(t, err, fault.Refused, CodeNotAuthenticated)
	_, _, err = r.Verify(statement, "", at, nil)
	wantFault(t, err, fault.Tampered, CodeSignatureBad)
}

func TestRosterKeepsOnePersonOnePrincipal(t *testing.T) {
	t.Parallel()
	key := freshKey(t).AuthorizedKey()
	for _, c := range []struct{ signers, says string }{
		{"alice,bob " + key, "one key for alice and bob"},
		{"alice " + key + "\nbob " + key, "allowed_signers:2: one key for alice and bob"},
		{"dev-agent " + key, "agents act by capabilities"},
		{"alice namespaces=x " + key, "has no value"},
	} {
		_, err := ParseRoster([]byte(c.signers), []byte(principalsText))
		wantFault(t, err, fault.Usage, CodeRosterBad)
		if err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("ParseRoster(%q) = %v, want %q", c.signers, err, c.says)
		}
	}
	_, err := ParseRoster(nil, nil)
	wantFault(t, err, fault.Usage, CodeRosterBad) // an emptied file does not end separation of duties
	// The same key for one principal and for a use outside is nobody's harm.
	if _, err := ParseRoster([]byte("alice "+key+"\nalice "+key+"\nbob namespaces=\"git\" "+key+"\nsomebody "+key), []byte(principalsText)); err != nil {
		t.Error(err)
	}
}

func TestRosterRoundTrips(t *testing.T) {
	t.Parallel()
	p := setupPeople(t)
	keys, _ := setup(t)
	for _, r := range []Roster{p.roster, LocalRoster(keys.Local)} {
		text := must[[]byte](t)(evidence.Canonical(r))
		var got Roster
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		digest := must[evidence.Digest](t)(r.Digest())
		if again := must[evidence.Digest](t)(got.Digest()); again != digest || digest != evidence.DigestOf(text) {
			t.Errorf("digest %s of what was read, want %s", again, digest)
		}
		if got.Enforced != r.Enforced || len(got.Signers) != len(r.Signers) {
			t.Errorf("read %v, want %v", got, r)
		}
	}
	more := must[Roster](t)(ParseRoster([]byte(p.signers), []byte(strings.Replace(principalsText, "[developer]", "[developer, tester]", 1))))
	if must[evidence.Digest](t)(more.Digest()) == must[evidence.Digest](t)(p.roster.Digest()) {
		t.Error("another role leaves the digest as it is")
	}
	// Comments and lines for others are not part of what it says.
	same := must[Roster](t)(ParseRoster([]byte("# x\n"+p.signers), []byte("# y\n"+principalsText)))
	if must[evidence.Digest](t)(same.Digest()) != must[evidence.Digest](t)(p.roster.Digest()) {
		t.Error("a comment changes the digest")
	}
	good := string(must[[]byte](t)(evidence.Canonical(p.roster)))
	for _, change := range [][2]string{
		{`"schema":"proveto/roster/v1"`, `"schema":"proveto/roster/v2"`},
		{`"kind":"agent"`, `"kind":"agency"`},
		{`"kind":"agent"`, `"kind":"human"`},
		{`"name":"alice"`, `"name":"zoe"`},
		{`"principals":["bob"]`, `"principals":["zoe"]`},
		{`"principals":["bob"]`, `"principals":["alice","bob"]`},
		{`"principals":["bob"]`, `"principals":["dev-agent"]`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s is not in %s", change[0], good)
		}
		var r Roster
		if err := json.Unmarshal([]byte(bad), &r); err == nil {
			t.Errorf("a roster with %s was read", change[1])
		}
	}
}

func TestLocalRosterIsOnePersonInAllRoles(t *testing.T) {
	t.Parallel()
	keys, _ := setup(t)
	r := LocalRoster(keys.Local)
	local, ok := r.Principal(LocalPrincipal)
	if !ok || r.Enforced || local.Kind != KindHuman {
		t.Fatalf("LocalRoster = %v", r)
	}
	for _, role := range Roles() {
		if !local.Holds(role) || len(r.Holders()[role]) != 1 {
			t.Errorf("local does not hold %s", role)
		}
	}
	for _, right := range append(rights, "waive:prove.changed") {
		if !local.May(right) {
			t.Errorf("local has no right %s", right)
		}
	}
	if p, err := r.SignedBy(keys.Local.AuthorizedKey(), time.Now(), nil); err != nil || p.Name != LocalPrincipal {
		t.Errorf("SignedBy = %v, %v", p, err)
	}
}

func TestRevocations(t *testing.T) {
	t.Parallel()
	p := setupPeople(t)
	day := func(n int) time.Time { return date(t, "2026-07-01").AddDate(0, 0, n) }
	bobKey := Who{Principal: "bob", Key: p.bob.Fingerprint()}
	bob2Key := Who{Principal: "bob", Key: p.bob2.Fingerprint()}
	agent := Who{Principal: "dev-agent", Operator: "alice"}
	revoke := func(what string, since time.Time) Revocations {
		return Revocations{must[Revocation](t)(p.roster.Revoke(what, "laptop lost", since, day(10)))}
	}
	for _, c := range []struct {
		what string
		rs   Revocations
		who  Who
		at   time.Time
		want Word
		now  fault.Code // of an act of now
	}{
		{"another principal", revoke("alice", time.Time{}), bobKey, day(20), WordCounts, ""},
		{"before, without since", revoke("bob", time.Time{}), bobKey, day(9), WordFlagged, CodeRevoked},
		{"at that time", revoke("bob", time.Time{}), bobKey, day(10), WordVoid, CodeRevoked},
		{"later", revoke("bob", time.Time{}), bobKey, day(11), WordVoid, CodeRevoked},
		{"before since", revoke("bob", day(5)), bobKey, day(4), WordFlagged, CodeRevoked},
		{"at since", revoke("bob", day(5)), bobKey, day(5), WordVoid, CodeRevoked},
		{"after since", revoke("bob", day(5)), bobKey, day(6), WordVoid, CodeRevoked},
		{"one key by its name", revoke(p.bob.Fingerprint(), day(5)), bobKey, day(6), WordVoid, CodeRevoked},
		{"one key by its line", revoke(p.bob.AuthorizedKey()+" bob", day(5)), bobKey, day(6), WordVoid, CodeRevoked},
		{"the rotated key", revoke(p.bob.Fingerprint(), day(5)), bob2Key, day(6), WordCounts, ""},
		{"the agent of a revoked human", revoke("alice", day(5)), agent, day(6), WordVoid, CodeRevoked},
		{"the agent of a human with a lost key", revoke(p.alice.Fingerprint(), day(5)), agent, day(6), WordCounts, ""},
		{"two, the worse one wins", append(revoke("bob", time.Time{}), revoke(p.bob.Fingerprint(), day(5))...), bobKey, day(6), WordVoid, CodeRevoked},
		{"of nothing", Revocations{{At: day(1)}}, Who{}, day(6), WordCounts, ""},
	} {
		if got, _ := c.rs.Judge(c.who, c.at); got != c.want {
			t.Errorf("%s: Judge = %s, want %s", c.what, got, c.want)
		}
		if err := c.rs.Check(c.who); c.now == "" && err != nil {
			t.Errorf("%s: Check = %v", c.what, err)
		} else if c.now != "" {
			wantFault(t, err, fault.Refused, c.now)
		}
	}
	_, err := p.roster.SignedBy(p.bob.AuthorizedKey(), day(6), revoke("bob", day(5)))
	wantFault(t, err, fault.Refused, CodeRevoked)
	if who, err := p.roster.SignedBy(p.bob.AuthorizedKey(), day(4), revoke("bob", day(5))); err != nil || who.Name != "bob" {
		t.Errorf("what was signed before: %v, %v", who, err)
	}
	for _, c := range []struct {
		what string
		kind fault.Kind
		code fault.Code
	}{
		{"bobb", fault.NotFound, CodeNotFound},
		{"SHA256:short", fault.Usage, "bad_id"},
		{"ssh-ed25519 AAAA", fault.Usage, CodeRosterBad},
	} {
		_, err := p.roster.Revoke(c.what, "", time.Time{}, day(10))
		wantFault(t, err, c.kind, c.code)
	}
	_, err = p.roster.Revoke("bob", "", day(11), day(10))
	wantFault(t, err, fault.Usage, "usage")
}

func TestRosterOfTheTargetTakesBack(t *testing.T) {
	t.Parallel()
	p := setupPeople(t)
	at := date(t, "2026-07-01")
	keys, _ := setup(t)
	with := func(signers, principals string) Roster {
		return must[Roster](t)(ParseRoster([]byte(signers), []byte(principals)))
	}
	noBob := strings.Replace(principalsText, "  bob:       {kind: human, roles: [developer, verifier, tester, reviewer], rights: [\"waive:prove.changed\", \"waive:P007\"]}\n", "", 1)
	for _, c := range []struct {
		what string
		tip  Roster
		want Revocations
	}{
		{"the same", p.roster, nil},
		{"no principals there", LocalRoster(keys.Local), nil},
		{"a principal gone", with(p.signers, noBob), Revocations{{Principal: "bob", At: at, Reason: "no longer in .proveto/principals.yaml"}}},
		{
			"a key gone", with(strings.Replace(p.signers, "bob "+p.bob.AuthorizedKey()+"\n", "", 1), principalsText),
			Revocations{{Key: p.bob.Fingerprint(), At: at, Reason: "no longer in .proveto/allowed_signers"}},
		},
		{
			"a key ended", with(strings.Replace(p.signers, "bob "+p.bob.AuthorizedKey(), `bob valid-before="20260615Z" `+p.bob.AuthorizedKey(), 1), principalsText),
			Revocations{{Key: p.bob.Fingerprint(), At: at, Since: date(t, "2026-06-15").Add(time.Second), Reason: "ended in .proveto/allowed_signers"}},
		},
		{
			"a key given to another", with(strings.Replace(p.signers, "bob "+p.bob.AuthorizedKey(), "alice "+p.bob.AuthorizedKey(), 1), principalsText),
			Revocations{{Key: p.bob.Fingerprint(), At: at, Reason: "no longer in .proveto/allowed_signers"}},
		},
	} {
		if d := cmp.Diff(c.want, p.roster.LostIn(c.tip, at)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, d)
		}
	}
	if got := LocalRoster(keys.Local).LostIn(p.roster, at); got != nil {
		t.Errorf("principals that came later take back %v", got)
	}
}

func FuzzParsePrincipals(f *testing.F) {
	f.Add(principalsText)
	f.Add("version: 1\nprincipals:\n  a: {kind: agent, operator: a}\n")
	f.Add("{version: 1, principals: {\"1\": {kind: service, rights: ['waive:x']}}}")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParsePrincipals([]byte(text))
		if err != nil {
			return
		}
		r, err := ParseRoster(nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var again Roster
		if err := json.Unmarshal(must[[]byte](t)(evidence.Canonical(r)), &again); err != nil || len(again.Principals) != len(all) {
			t.Fatalf("%v reads again as %v, %v", r, again, err)
		}
	})
}
