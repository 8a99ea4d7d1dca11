package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"pgregory.net/rapid"

	"github.com/proveto/proveto/internal/fault"
)

// must turns an error into the end of the test.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// freshKey makes an ed25519 key.
func freshKey(t testing.TB) Key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return must[Key](t)(newKey(private))
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return full
}

func TestSignersSayWhoSpeaksWhereAndWhen(t *testing.T) {
	t.Parallel()
	alice, bob, both := freshKey(t), freshKey(t), freshKey(t)
	text := "\n# a comment\n  \t# another\n" +
		"alice@example.com,alice " + alice.AuthorizedKey() + " alice at home\r\n" +
		`bob Namespaces="git,proveto-*,!proveto-secret-*",valid-after="20260101Z",valid-before="202602011200Z" ` + bob.AuthorizedKey() + "\n" +
		`"carol"	namespaces="git" ` + both.AuthorizedKey() + " # no comment\n" +
		`dave valid-before="20260101000000UTC" ` + both.AuthorizedKey()
	s := must[Signers](t)(ParseSigners([]byte(text)))
	day := func(s string) time.Time { return must[time.Time](t)(time.Parse(time.RFC3339, s)) }
	for _, c := range []struct {
		key       Key
		namespace string
		at        string
		want      string
		standing  Standing
	}{
		{alice, FlowNamespace, "2026-01-15T00:00:00Z", "alice alice@example.com", Speaks},
		{alice, "git", "1999-01-15T00:00:00Z", "alice alice@example.com", Speaks},
		{bob, FlowNamespace, "2025-12-31T23:59:59Z", "", NotYet},
		{bob, FlowNamespace, "2026-01-01T00:00:00Z", "bob", Speaks},
		{bob, FlowNamespace, "2026-02-01T12:00:00.9Z", "bob", Speaks},
		{bob, FlowNamespace, "2026-02-01T12:00:01Z", "", Expired},
		{bob, "proveto-secret-v1", "2026-01-15T00:00:00Z", "", OtherNamespace},
		{bob, "file", "2026-01-15T00:00:00Z", "", OtherNamespace},
		{both, "git", "2026-06-01T00:00:00Z", "carol", Speaks},
		{both, "git", "2025-06-01T00:00:00Z", "carol dave", Speaks},
		{both, FlowNamespace, "2026-06-01T00:00:00Z", "", Expired},
		{freshKey(t), FlowNamespace, "2026-06-01T00:00:00Z", "", Unknown},
	} {
		names, st := s.Speakers(c.key.AuthorizedKey(), c.namespace, day(c.at))
		if got := strings.Join(names, " "); got != c.want || st != c.standing {
			t.Errorf("Speakers(%s, %s, %s) = %q %s, want %q %s", c.key.Fingerprint(), c.namespace, c.at, got, st, c.want, c.standing)
		}
	}
	if s[1].Line != 5 {
		t.Errorf("bob stands in line %d, want 5", s[1].Line)
	}
}

func TestSignersTimesAreThoseOfTheZoneUnlessUTC(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 2*60*60)
	for text, want := range map[string]string{
		"20260301":        "2026-02-28T22:00:00Z",
		"202603011530":    "2026-03-01T13:30:00Z",
		"20260301153059":  "2026-03-01T13:30:59Z",
		"20260301z":       "2026-03-01T00:00:00Z",
		"20260301153059Z": "2026-03-01T15:30:59Z",
		"20260301utc":     "2026-03-01T00:00:00Z",
		"20260231":        "", // no such day
		"19700101Z":       "", // OpenSSH takes it for no time
		"2026-03-01":      "",
		"202603":          "",
		"+2026030":        "",
		"":                "",
		"Z":               "",
	} {
		got, ok := parseSSHTime(text, zone)
		if ok != (want != "") || ok && got.Format(time.RFC3339) != want {
			t.Errorf("parseSSHTime(%q) = %v, %v, want %q", text, got, ok, want)
		}
	}
}

func TestSignersRefuseWhatTheyCannotRead(t *testing.T) {
	t.Parallel()
	key := freshKey(t).AuthorizedKey()
	short := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 1024))
	weakKey := authorized(must[ssh.PublicKey](t)(ssh.NewPublicKey(&short.PublicKey)))
	cert := certificate(t)
	for _, c := range []struct {
		line, says string
		code       fault.Code
	}{
		{"alice " + cert, "the key is a certificate", CodeCertUnsupported},
		{"alice cert-authority " + key, "cert-authority", CodeCertUnsupported},
		{`alice namespaces="git",Cert-Authority ` + key, "cert-authority", CodeCertUnsupported},
		{`alice namespaces="git" ` + cert, "the key is a certificate", CodeCertUnsupported},
		{"*@example.com " + key, "is a pattern", CodeRosterBad},
		{"alice,!bob " + key, "is a pattern", CodeRosterBad},
		{"alice, " + key, "is no name", CodeRosterBad},
		{"al/ice " + key, "is no name", CodeRosterBad},
		{`"alice ` + key, "quote without its end", CodeRosterBad},
		{"alice", "has one word", CodeRosterBad},
		{"alice ssh-ed25519", "there is no key", CodeRosterBad},
		{"alice ssh-ed25519 AAAA", "is no ssh-ed25519 key", CodeRosterBad},
		{"alice ssh-ed25519 %%%%", "not base64", CodeRosterBad},
		{"alice ssh-rsa " + strings.Fields(key)[1], "is no ssh-rsa key", CodeRosterBad},
		{"alice ssh-dss AAAAB3NzaC1kc3MAAACB", `"ssh-dss" is neither`, CodeRosterBad},
		{"alice " + weakKey, "has 1024 bits", CodeRosterBad},
		{`alice verify-required ` + key, "is neither an option", CodeRosterBad},
		{`alice namespaces=git ` + key, "has no value", CodeRosterBad},
		{`alice namespaces="" ` + key, "namespaces is empty", CodeRosterBad},
		{`alice namespaces="git",namespaces="x" ` + key, "there twice", CodeRosterBad},
		{`alice namespaces="git"x ` + key, "want a comma", CodeRosterBad},
		{`alice namespaces="git", ` + key, "end with a comma", CodeRosterBad},
		{`alice namespaces="git ` + key, "a quote without its end", CodeRosterBad},
		{`alice valid-after="20260231" ` + key, "is no time", CodeRosterBad},
		{`alice valid-after="20260101",valid-before="20260101" ` + key, "not after valid-after", CodeRosterBad},
		{"al\x01ice " + key, "control character", CodeRosterBad},
	} {
		_, err := ParseSigners([]byte("bob " + key + "\n" + c.line + "\n"))
		if f := fault.From(err); f == nil || f.Code != c.code || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), SignersFile+":2: ") {
			t.Errorf("ParseSigners(%q) = %v, want %s with line 2 and %q", c.line, err, c.code, c.says)
		}
	}
}

// certificate makes a certificate of a fresh key by a real authority.
func certificate(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"-q", "-t", "ed25519", "-N", "", "-f", "ca"},
		{"-q", "-t", "ed25519", "-N", "", "-f", "user"},
		{"-q", "-s", "ca", "-I", "alice", "-n", "alice", "user.pub"},
	} {
		keygen(t, dir, nil, args...)
	}
	return strings.TrimSpace(string(must[[]byte](t)(os.ReadFile(filepath.Join(dir, "user-cert.pub")))))
}

func keygen(t testing.TB, dir string, stdin []byte, args ...string) string {
	t.Helper()
	out, err := tryKeygen(dir, stdin, args...)
	if err != nil {
		t.Fatalf("ssh-keygen %q: %v\n%s", args, err, out)
	}
	return out
}

func tryKeygen(dir string, stdin []byte, args ...string) (string, error) {
	c := exec.Command("ssh-keygen", args...)
	c.Dir, c.Stdin = dir, bytes.NewReader(stdin)
	out, err := c.CombinedOutput()
	return string(out), err
}

// The oracle is OpenSSH: for the same line, namespace and time it must find the
// key good where we do.
func TestSignersAgreeWithOpenSSH(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, other := freshKey(t), freshKey(t)
	statement := []byte("statement")
	now := time.Now()
	stamp := func(d time.Duration) string { return now.Add(d).UTC().Format("20060102150405") + "Z" }
	local := func(d time.Duration) string { return now.Add(d).Local().Format("20060102150405") }
	sign := func(namespace string) string {
		return write(t, dir, "sig-"+namespace, must[string](t)(key.SignStatement(t.Context(), statement, namespace)))
	}
	k := key.AuthorizedKey()
	// No namespace of sig- has a pattern's character, so the file names are plain.
	for _, line := range []string{
		"alice " + k,
		"alice\t" + k + "\tcomment with blanks",
		`"alice" ` + k,
		"bob,alice " + k,
		"bob " + k,
		"alice " + other.AuthorizedKey(),
		`alice namespaces="git" ` + k,
		`alice namespaces="git,proveto-flow-v1" ` + k,
		`alice NAMESPACES="proveto-*" ` + k,
		`alice namespaces="*,!proveto-flow-v1" ` + k,
		`alice namespaces="proveto-flow-v?" ` + k,
		`alice namespaces="!git" ` + k,
		`alice valid-after="` + stamp(time.Hour) + `" ` + k,
		`alice valid-after="` + stamp(-time.Hour) + `" ` + k,
		`alice valid-before="` + stamp(-time.Hour) + `" ` + k,
		`alice valid-before="` + stamp(time.Hour) + `" ` + k,
		`alice valid-after="` + local(-time.Hour) + `",valid-before="` + local(time.Hour) + `" ` + k,
		`alice valid-after="20200101",valid-before="203001011200" ` + k,
		`alice namespaces="git",valid-before="203001011200" ` + k,
	} {
		allowed := write(t, dir, "allowed", line+"\n")
		s := must[Signers](t)(ParseSigners([]byte(line + "\n")))
		for _, namespace := range []string{"git", FlowNamespace} {
			out, err := tryKeygen(dir, statement, "-Y", "verify", "-f", allowed, "-I", "alice", "-n", namespace, "-s", sign(namespace))
			names, st := s.Speakers(k, namespace, now)
			if ours := slices.Contains(names, "alice"); ours != (err == nil) {
				t.Errorf("%q in %s: we say %v (%s), ssh-keygen %v %s", line, namespace, names, st, err, out)
			}
		}
	}
}

func TestPatternsMatchAsTheirMeaningSays(t *testing.T) {
	t.Parallel()
	// By definition: a star is any text, a mark is any byte.
	var slow func(text, p string) bool
	slow = func(text, p string) bool {
		switch {
		case p == "":
			return text == ""
		case p[0] == '*':
			return slow(text, p[1:]) || text != "" && slow(text[1:], p)
		}
		return text != "" && (p[0] == '?' || p[0] == text[0]) && slow(text[1:], p[1:])
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 0, 8, -1).Draw(t, "text")
		p := rapid.StringOfN(rapid.SampledFrom([]rune("ab*?")), 0, 8, -1).Draw(t, "pattern")
		if got, want := match(text, p), slow(text, p); got != want {
			t.Fatalf("match(%q, %q) = %v, want %v", text, p, got, want)
		}
	})
}

func FuzzParseSigners(f *testing.F) {
	key := freshKey(f).AuthorizedKey()
	for _, s := range []string{"", "# c\n", "alice " + key, `a,b namespaces="x",valid-after="20260101Z" ` + key + " c", `"a" ` + key, `a valid-before="2026`, "a cert-authority " + key} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSigners([]byte(text), time.UTC)
		if err != nil {
			if f := fault.From(err); f.Kind == fault.Internal || !strings.HasPrefix(err.Error(), SignersFile) {
				t.Errorf("error %v has no place", err)
			}
			return
		}
		// What was read can be written and read again.
		var again strings.Builder
		for _, l := range s {
			again.WriteString(l.String() + "\n")
		}
		s2, err := parseSigners([]byte(again.String()), time.UTC)
		if err != nil || len(s2) != len(s) {
			t.Fatalf("%q was read as %q, which reads as %v, %v", text, again.String(), s2, err)
		}
		for i := range s {
			if s[i].String() != s2[i].String() {
				t.Errorf("line %q reads as %q", s[i], s2[i])
			}
		}
	})
}
