package flows

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/store"
)

// TestEverySignatureIsVerifiedAsItIsRecorded hands in decisions whose signature
// was right when the event was made, or never.
func TestEverySignatureIsVerifiedAsItIsRecorded(t *testing.T) {
	t.Parallel()
	other, _, err := identity.Generate(t.TempDir(), "mallory")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what  string
		spoil func(t *testing.T, f *Flows, act *flow.Decide)
		code  fault.Code
	}{
		{"as it is", func(*testing.T, *Flows, *flow.Decide) {}, ""},
		{"no signature", func(_ *testing.T, _ *Flows, a *flow.Decide) { a.Signed = nil }, identity.CodeNotAuthenticated},
		{"another statement", func(_ *testing.T, _ *Flows, a *flow.Decide) {
			a.Signed.Statement = json.RawMessage(strings.Replace(string(a.Signed.Statement), `"approve"`, `"reject"`, 1))
		}, identity.CodeNotAuthenticated},
		{"another note than the signed one", func(_ *testing.T, _ *Flows, a *flow.Decide) { a.Note = "something else" }, flow.CodeStaleSubject},
		{"another namespace", func(_ *testing.T, _ *Flows, a *flow.Decide) { a.Signed.Namespace = "git" }, identity.CodeNotAuthenticated},
		{"another key beside it", func(t *testing.T, _ *Flows, a *flow.Decide) {
			a.Signed.Key = publicKey(t, other)
		}, identity.CodeNotAuthenticated},
		{"signed by somebody unknown", func(t *testing.T, f *Flows, a *flow.Decide) {
			*a.Signed = *resigned(t, f, other, a.Signed.Statement)
		}, identity.CodeNotAuthenticated},
		{"a key that was revoked in between", func(t *testing.T, f *Flows, _ *flow.Decide) {
			keys, err := f.app.Keys(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Revoke(t.Context(), RevokeOptions{Who: keys.Local.Fingerprint(), Reason: "lost"}); err != nil {
				t.Fatal(err)
			}
		}, identity.CodeRevoked},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			f := manual(t, store.Config{})
			run := open(t, f)
			k, err := f.load(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			o := AdvanceOptions{Request: Request{Run: run, Actor: "planner"}, Stage: "planner", Decision: flow.Approve, Note: "a plan"}
			_, err = f.change(t.Context(), o.Request, k, func(k known) (flow.Event, error) {
				ev, err := f.decision(t.Context(), o, k)
				if err != nil {
					return ev, err
				}
				act, _ := ev.Do.(flow.Decide)
				c.spoil(t, f, &act)
				ev.Do = act
				return ev, nil
			})
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !fault.Has(err, c.code) {
				t.Fatalf("error %v, want %s", err, c.code)
			}
			after, err := f.load(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(after.decisions()); n != 0 || after.Refusals != 1 {
				t.Errorf("%d decisions and %d refusals are recorded, want 0 and 1", n, after.Refusals)
			}
		})
	}
}

func publicKey(t *testing.T, file string) string {
	t.Helper()
	key, err := identity.ReadPublicKey(file)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// resigned signs a statement with the key of a file.
func resigned(t *testing.T, f *Flows, file string, statement []byte) *flow.Signature {
	t.Helper()
	keys, err := f.app.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key := publicKey(t, file)
	roster, err := identity.ParseRoster([]byte("mallory "+key+"\n"), []byte("version: 1\nprincipals:\n  mallory: {kind: human}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := identity.Choose(t.Context(), identity.ChooseOptions{Roster: roster, At: time.Now(), Key: file, Generated: keys.Local})
	if err != nil {
		t.Fatal(err)
	}
	s, err := caller{key: c.Key}.sign(t.Context(), json.RawMessage(statement))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStatementsSayWhatFactsSay(t *testing.T) {
	t.Parallel()
	in := evidence.DigestOf([]byte("input"))
	head := flow.Head{Stage: "developer", Attempt: 2}
	expires := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	good := []struct {
		said said
		fact flow.Fact
	}{
		{
			said{Schema: schemaSubmission, Stage: "developer", Attempt: 2, Input: in, Tree: "t"},
			&flow.Submitted{Head: head, Input: in, Subject: flow.Subject{Tree: "t"}},
		},
		{
			said{Schema: schemaSubmission, Stage: "developer", Attempt: 2, Input: in, Plan: "plan_1"},
			&flow.PlanSubmitted{Head: head, Input: in, Plan: "plan_1"},
		},
		{
			said{Schema: schemaDecision, Stage: "developer", Attempt: 2, Input: in, Decision: "reject", NoteSHA256: evidence.DigestOf([]byte("n")), Nonce: "N"},
			&flow.Decided{Head: head, Input: in, Decision: flow.Reject, Note: "n"},
		},
		{
			said{Schema: schemaWaiver, Stage: "developer", Gate: "secrets", Paths: []string{"a"}, ReasonSHA256: evidence.DigestOf([]byte("r")), Expires: expires, Nonce: "wvr_1"},
			&flow.Waived{Head: flow.Head{Stage: "developer"}, ID: "wvr_1", Gate: "secrets", Paths: []string{"a"}, Reason: "r", Expires: expires},
		},
	}
	spoils := map[string]func(*said){
		"schema": func(s *said) { s.Schema = schemaRevocation }, "stage": func(s *said) { s.Stage = "tester" }, "attempt": func(s *said) { s.Attempt++ },
		"input": func(s *said) { s.Input = evidence.DigestOf(nil) }, "tree": func(s *said) { s.Tree = "u" }, "plan": func(s *said) { s.Plan = "plan_2" },
		"decision": func(s *said) { s.Decision = "approve" }, "note": func(s *said) { s.NoteSHA256 = evidence.DigestOf(nil) },
		"gate": func(s *said) { s.Gate = "build" }, "paths": func(s *said) { s.Paths = nil }, "reason": func(s *said) { s.ReasonSHA256 = "" },
		"expires": func(s *said) { s.Expires = expires.Add(time.Hour) }, "id": func(s *said) { s.Nonce = "wvr_2" },
	}
	matters := [][]string{
		{"schema", "stage", "attempt", "input", "tree"},
		{"schema", "stage", "attempt", "input", "plan"},
		{"schema", "stage", "attempt", "input", "decision", "note"},
		{"schema", "stage", "gate", "paths", "reason", "expires", "id"},
	}
	for i, c := range good {
		if err := c.said.says(known{}, c.fact); err != nil {
			t.Errorf("%T: %v", c.fact, err)
		}
		for _, field := range matters[i] {
			bad := c.said
			spoils[field](&bad)
			if err := bad.says(known{}, c.fact); !fault.Has(err, flow.CodeStaleSubject) {
				t.Errorf("%T with another %s: %v", c.fact, field, err)
			}
		}
	}
}

func TestFilesOfTheWorkingCopyAreWrittenWithCare(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	w := rewritten{name: identity.PrincipalsFile, text: []byte("new\n")}
	if err := writeBelow(dir, w); err != nil {
		t.Fatal(err)
	}
	full := filepath.Join(dir, identity.PrincipalsFile)
	w.old, w.text = []byte("something else\n"), []byte("newer\n")
	if err := writeBelow(dir, w); !fault.Has(err, "conflict") {
		t.Errorf("a file that changed in between: %v", err)
	}
	if b, err := os.ReadFile(full); err != nil || string(b) != "new\n" {
		t.Errorf("the file says %q, %v", b, err)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(elsewhere, "x"), full); err != nil {
		t.Fatal(err)
	}
	w.old = nil
	if err := writeBelow(dir, w); !fault.Has(err, "io") {
		t.Errorf("a link: %v", err)
	}
}
