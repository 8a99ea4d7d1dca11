package flow

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the generated part of docs/flow.md")

// TestDocsShowTheTable compares the diagram in the docs with the table.
func TestDocsShowTheTable(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../docs/flow.md", "<!-- stages: generated from internal/flow -->\n", "<!-- stages end -->"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(b), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no marks for the generated part", file)
	}
	want := "```mermaid\n" + Diagram() + "```\n"
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not current; run go test ./internal/flow -run Docs -update (-want +got):\n%s", file, diff)
	}
}
