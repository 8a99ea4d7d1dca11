package fault

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"
)

func TestKindsHaveTheDocumentedExitCodes(t *testing.T) {
	want := map[Kind]int{
		Internal: 1, Refused: 1, NotFound: 1, Conflict: 1, Pending: 2, Negative: 3,
		Unmeasured: 4, Tampered: 5, Usage: 64, Interrupted: 130,
	}
	if len(Kinds()) != len(want) || len(table) != len(want) {
		t.Fatalf("Kinds() has %d, the table %d, want %d", len(Kinds()), len(table), len(want))
	}
	for _, k := range Kinds() {
		if got := k.Exit(); got != want[k] {
			t.Errorf("%s.Exit() = %d, want %d", k, got, want[k])
		}
		if k.HTTP() == 500 && k != Internal {
			t.Errorf("%s.HTTP() = 500, want a status of its own", k)
		}
	}
}

func TestFromKeepsTheInnerErrorAndTheOuterFacts(t *testing.T) {
	inner := New(Usage, "bad_id", "id %q is malformed", "x/..").Hint("proveto status")
	got := From(fmt.Errorf("why x: %w", inner))
	if got.Kind != Usage || got.Code != "bad_id" || len(got.Hints) != 1 {
		t.Errorf("From = %+v, want kind, code and hints of the inner error", got)
	}
	if want := `why x: id "x/.." is malformed`; got.Error() != want {
		t.Errorf("Error() = %q, want %q", got.Error(), want)
	}
}

func TestChildExitIsNeverOurs(t *testing.T) {
	err := exec.Command("sh", "-c", "exit 64").Run()
	var ee *exec.ExitError
	if !errors.As(err, &ee) {
		t.Fatalf("sh did not exit with an error: %v", err)
	}
	if got := From(err); got.Kind != Internal || got.Kind.Exit() != 1 {
		t.Errorf("From(exit 64) = kind %s exit %d, want internal, 1", got.Kind, got.Kind.Exit())
	}
}
