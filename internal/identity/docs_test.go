package identity

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The three examples of the format's page are one.
func TestDocumentedExamplesAreReadAsTheRosterBelowThem(t *testing.T) {
	t.Parallel()
	doc := string(must[[]byte](t)(os.ReadFile("../../docs/formats/principals.md")))
	block := func(kind string) []byte {
		_, after, ok := strings.Cut(doc, "```"+kind+"\n")
		text, _, end := strings.Cut(after, "```")
		if !ok || !end {
			t.Fatalf("no block of %s", kind)
		}
		return []byte(text)
	}
	got := must[Roster](t)(ParseRoster(block("text"), block("yaml")))
	for i := range got.Signers {
		got.Signers[i].Line = 0
	}
	var want Roster
	if err := json.Unmarshal(block("json"), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the roster (-documented +read):\n%s", d)
	}
}
