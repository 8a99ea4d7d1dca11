package identity

import (
	"path/filepath"
	"testing"
	"time"
)

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	must[*Keys](b)(Open(dir))
	for b.Loop() {
		must[*Keys](b)(Open(dir))
	}
}

// The way of every act in a repository without principals.
func BenchmarkChooseAndSignLocal(b *testing.B) {
	dir := b.TempDir()
	keys := must[*Keys](b)(Open(dir))
	o := ChooseOptions{Roster: LocalRoster(keys.Local), At: time.Now(), Actor: "reviewer", Generated: keys.Local, Agent: filepath.Join(dir, "none")}
	for b.Loop() {
		c := must[Choice](b)(Choose(b.Context(), o))
		must[string](b)(c.Key.SignStatement(b.Context(), []byte("{}"), FlowNamespace))
	}
}

// What the check of a ledger does for each decision.
func BenchmarkRosterVerify(b *testing.B) {
	p := setupPeople(b)
	sig := must[string](b)(p.bob.SignStatement(b.Context(), []byte("{}"), FlowNamespace))
	at := date(b, "2026-07-01")
	for b.Loop() {
		if _, _, err := p.roster.Verify([]byte("{}"), sig, at, nil); err != nil {
			b.Fatal(err)
		}
	}
}
