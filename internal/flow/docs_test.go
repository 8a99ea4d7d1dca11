package flow

import (
	"flag"
	"fmt"
	"os"
	"reflect"
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

// meanings says what each fact is, for docs/formats/flow.md.
var meanings = map[Kind]string{
	KindOpened: "a run begins: task, base, policy and principals are pinned", KindPlanSubmitted: "a contract is handed in at the planner's stage",
	KindPlanAccepted: "the contract binds from here on", KindTaken: "somebody holds a lease on the stage", KindLeaseLost: "the lease ended without a submission",
	KindSubmitted: "the subject of a stage is handed in; by the engine where nobody has to", KindClaim: "something that somebody says; it counts for nothing",
	KindProbed: "what a gate did with an input that it must refuse", KindMeasured: "the outcome of a gate on the subject of the attempt",
	KindDecided: "a signed judgement", KindWithdrawn: "a submission, or a veto, is taken back by whose it was", KindPassed: "the attempt passed",
	KindCarried: "an earlier pass stands for a new input, by a rule of the policy and after the gates passed again", KindRebased: "another base is pinned, with its policy and principals",
	KindStale: "the pass does not hold for today's inputs", KindReopened: "the run came back to the stage", KindFeedbackDelivered: "a bundle reached somebody; not that it was read",
	KindFindingOpened: "a finding", KindFindingAnswered: "an answer to a finding; a claim", KindFindingClosed: "a finding is settled, by measurement, by its author or by a waiver",
	KindWaived: "a signed exception", KindWaiverUsed: "something went through by an exception", KindPaused: "the run rests", KindResumed: "it goes on",
	KindCancelled: "it ended for good", KindExpired: "its time is over", KindCapped: "its rounds are used up", KindDelivered: "the approved tree stands on a branch",
	KindExported: "a snapshot left the run, without credit", KindAttested: "an attestation was made", KindRefused: "a request was refused, and why",
}

// TestFormatNamesEveryFact compares the table of facts in the docs with the types.
func TestFormatNamesEveryFact(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../docs/formats/flow.md", "<!-- facts: generated from internal/flow -->\n", "<!-- facts end -->"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(b), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no marks for the generated part", file)
	}
	var want strings.Builder
	want.WriteString("| kind | says | fields beside the head |\n|---|---|---|\n")
	for _, f := range facts {
		if meanings[f.kind] == "" {
			t.Errorf("kind %s has no meaning in the docs", f.kind)
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", f.kind, meanings[f.kind], strings.Join(fieldsOf(reflect.TypeOf(f.blank()).Elem()), ", "))
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+want.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), got); diff != "" {
		t.Errorf("%s is not current; run go test ./internal/flow -run Format -update (-want +got):\n%s", file, diff)
	}
}

func fieldsOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out = append(out, "`"+name+"`")
		}
	}
	return out
}
