package identity

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/secret"
)

func TestCapabilitiesCoverWhatTheyWereMadeFor(t *testing.T) {
	t.Parallel()
	token := must[Token](t)(ParseToken(NewToken().Reveal()))
	end := date(t, "2026-07-01")
	c := Capability{
		Hash: token.Hash(), Ledger: "00ff", Run: "run_A", Stage: "developer", Attempt: 2, Verbs: []Verb{VerbContext, VerbSubmit},
		Expires: end, Principal: "dev-agent", Operator: "alice", Launch: "lch_A",
	}
	good := Use{Ledger: "00ff", Run: "run_A", Stage: "developer", Attempt: 2, Verb: VerbSubmit, At: end.Add(-time.Nanosecond)}
	if err := c.Check(token, good); err != nil {
		t.Fatalf("its own use: %v", err)
	}
	for _, x := range []struct {
		what   string
		token  Token
		change func(*Use)
		code   fault.Code
	}{
		{"another token", NewToken(), func(*Use) {}, CodeNotAuthenticated},
		{"no token", Token{}, func(*Use) {}, CodeNotAuthenticated},
		{"another ledger", token, func(u *Use) { u.Ledger = "00fe" }, CodeWrongAudience},
		{"another run", token, func(u *Use) { u.Run = "run_B" }, CodeWrongAudience},
		{"another stage", token, func(u *Use) { u.Stage = "reviewer" }, CodeWrongAudience},
		{"an attempt before", token, func(u *Use) { u.Attempt = 1 }, CodeWrongAudience},
		{"the attempt after", token, func(u *Use) { u.Attempt = 3 }, CodeExpired},
		{"at the end of the lease", token, func(u *Use) { u.At = end }, CodeExpired},
		{"after the launch", token, func(u *Use) { u.Ended = true }, CodeExpired},
		{"another verb", token, func(u *Use) { u.Verb = VerbDecide }, CodeNotPermitted},
		{"no verb", token, func(u *Use) { u.Verb = "" }, CodeNotPermitted},
		{"a revoked operator", token, func(u *Use) { u.Revoked = Revocations{{Principal: "alice"}} }, CodeRevoked},
		{"a revoked agent", token, func(u *Use) { u.Revoked = Revocations{{Principal: "dev-agent"}} }, CodeRevoked},
	} {
		u := good
		x.change(&u)
		err := c.Check(x.token, u)
		if f := fault.From(err); f == nil || f.Kind != fault.Refused || f.Code != x.code {
			t.Errorf("%s: %v, want %s", x.what, err, x.code)
		}
	}
	wantFault(t, Capability{}.Check(Token{}, Use{}), fault.Refused, CodeNotAuthenticated)
}

func TestTokensAreShownToNobody(t *testing.T) {
	t.Parallel()
	token := NewToken()
	text := token.Reveal()
	raw := strings.TrimPrefix(text, tokenPrefix)
	for _, s := range []string{
		fmt.Sprint(token), fmt.Sprintf("%v %+v %#v %s %x %q %d", token, token, token, token, token, token, token),
		fmt.Sprintf("%+v", struct{ T Token }{token}), string(must[[]byte](t)(token.MarshalText())),
	} {
		if strings.Contains(s, raw) || !strings.Contains(s, "[redacted]") || strings.Contains(s, fmt.Sprintf("%x", token.secret[:4])) {
			t.Errorf("a token is shown as %s", s)
		}
	}
	if NewToken() == token || token.Hash() == NewToken().Hash() {
		t.Error("two tokens are the same")
	}
	if hits := secret.Find("PROVETO_TOKEN is " + text); len(hits) != 1 || hits[0].Text != text {
		t.Errorf("a token in a text is found as %v", hits)
	}
	for _, bad := range []string{"", "x", raw, tokenPrefix, text + "A", text[:len(text)-1], tokenPrefix + strings.Repeat("!", len(raw))} {
		_, err := ParseToken(bad)
		wantFault(t, err, fault.Refused, CodeNotAuthenticated)
		if err != nil && len(bad) > 8 && strings.Contains(err.Error(), bad) {
			t.Errorf("error %v quotes it", err)
		}
	}
	if must[Token](t)(ParseToken(text)) != token {
		t.Error("a token is read as another one")
	}
}
