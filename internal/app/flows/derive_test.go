package flows

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
)

// A run that went through all stages, one of them twice, derives; each edit of an
// entry that its own hash does not show is found, because what it says was signed,
// or because the entries do not fold to it.
func TestDeriveFindsWhatWasNotSignedOrDoesNotFold(t *testing.T) {
	t.Parallel()
	f := manual(t, store.Config{})
	run := open(t, f)
	through(t.Context(), t, f, run, fiveStages[:4]...)
	o := AdvanceOptions{Request: Request{Run: run, Actor: "reviewer"}, Stage: "reviewer", Decision: flow.Reject, Note: "not yet"}
	if _, err := f.Advance(t.Context(), o); !fault.Has(err, flow.CodeRejected) {
		t.Fatal(err)
	}
	o.Decision, o.Note = flow.Approve, "good now"
	if _, err := f.Advance(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	led, err := f.app.Ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sound, err := led.RunEntries(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if err := Derive(led.ID(), run, sound); err != nil {
		t.Fatalf("a sound run: %v", err)
	}
	v, err := f.app.LedgerVerify(t.Context(), app.LedgerVerifyOptions{Derive: Derive})
	if err != nil || !strings.Contains(v.Text, "1 run of flows folded") {
		t.Errorf("ledger verify: %q, %v", v.Text, err)
	}
	lastOf := func(kind flow.Kind, part string) int {
		for i, e := range slices.Backward(sound) {
			if e.Kind == ledger.Kind(kind) && strings.Contains(string(e.Body), part) {
				return i
			}
		}
		t.Fatalf("no %s entry with %s", kind, part)
		return 0
	}
	reject := lastOf(flow.KindDecided, `"decision":"reject"`)
	end := len(sound) - 1
	for _, tt := range []struct {
		name, old, replacement string
		at                     int
		code                   fault.Code
	}{
		{"a reject becomes an approval", `"decision":"reject"`, `"decision":"approve"`, reject, ledger.CodeSignatureBad},
		{"another note", `"note":"not yet"`, `"note":"fine"`, reject, ledger.CodeSignatureBad},
		{"another principal", `"principal":"local"`, `"principal":"alice"`, reject, ledger.CodeSignatureBad},
		{"another stage", `"stage":"reviewer"`, `"stage":"tester"`, reject, ledger.CodeSignatureBad},
		{"another attempt", `"attempt":1,`, `"attempt":2,`, reject, ledger.CodeSignatureBad},
		{"no signature", `"signed":{`, `"singed":{`, reject, ledger.CodeSignatureBad},
		{"another word for the lists", `"status":"approved"`, `"status":"open"`, end, ledger.CodeProjection},
		{"another run", `"task":"Add OAuth login"`, `"task":""`, 0, ""},
	} {
		entries := slices.Clone(sound)
		body := string(entries[tt.at].Body)
		if !strings.Contains(body, tt.old) {
			t.Fatalf("%s: entry %d has no %s: %s", tt.name, entries[tt.at].Seq, tt.old, body)
		}
		entries[tt.at].Body = []byte(strings.Replace(body, tt.old, tt.replacement, 1))
		err := Derive(led.ID(), run, entries)
		if tt.code == "" { // what nobody signed and nothing derives is held by its hash alone
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if !fault.Has(err, tt.code) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.code)
		}
	}
	twice := append(slices.Clone(sound[:reject+1]), sound[reject])
	twice[reject+1].Seq++
	twice[reject+1].Body = regexp.MustCompile(`"prev":[0-9]+,`).ReplaceAll(twice[reject+1].Body, nil)
	if err := Derive(led.ID(), run, twice); !fault.Has(err, ledger.CodeSignatureBad) {
		t.Errorf("a decision recorded twice: %v", err)
	}
	hidden := slices.Delete(slices.Clone(sound), reject, reject+1)
	if err := Derive(led.ID(), run, hidden); !fault.Has(err, ledger.CodeBroken) {
		t.Errorf("a reject that is hidden: %v", err)
	}
	if err := Derive("another ledger", run, sound); !fault.Has(err, ledger.CodeSignatureBad) {
		t.Errorf("decisions of another ledger: %v", err)
	}
	if err := Derive(led.ID(), "run_01ARZ3NDEKTSV4RRFFQ69G5FAV", sound); !fault.Has(err, ledger.CodeProjection) {
		t.Errorf("the entries of another run: %v", err)
	}
}
