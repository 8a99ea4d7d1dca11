package config

import (
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/fault"
)

// A misspelt setting is refused or named; what others call PROVETO_ is theirs.
func TestCheckVariables(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		variable, hint, near string
	}{
		{"PROVETO_GATE_MIN_PROVEN=0.9", "", ""},
		{"PROVETO_GATE_MIN_PROVN=0.5", "did you mean PROVETO_GATE_MIN_PROVEN?", ""},
		{"PROVETO_PROVE_BUDGET_MS=5", "did you mean PROVETO_PROVE_BUDGET?", ""},
		{"PROVETO_ISOLATION_=x", "proveto help config", ""},
		{"PROVETO_GATES_MIN_PROVEN=0.5", "", "PROVETO_GATE_MIN_PROVEN"},
		{"PROVETO_STAT=/tmp", "", "PROVETO_STATE"},
		{"PROVETO_DATABSE_URL=postgres://", "", "PROVETO_DATABASE_URL"},
		{"PROVETO_GATE_MIN_PROVN=", "", ""},
		{"PROVETO_TOKEN=x", "", ""},
		{"PROVETO_KEY=x", "", ""},
		{"PROVETO_LONG=1", "", ""},
		{"PROVETO_BIN=/bin/proveto", "", ""},
		{"PROVETO_VERSION=1", "", ""},
		{"PROVETO_REPORT=9", "", ""},
		{"PROVETO_DATABASE_URL=postgres://", "", ""},
		{"PROVETO_STORE_DATABASE_URL=postgres://", "", ""},
		{"PROVETO_STATE=/tmp", "", ""},
		{"PROVETO_CACHE=/tmp", "", ""},
		{"GATE_MIN_PROVN=1", "", ""},
	} {
		near, err := CheckVariables([]string{"HOME=/root", tt.variable})
		e := fault.From(err)
		switch {
		case (e != nil) != (tt.hint != ""):
			t.Errorf("%s: %v", tt.variable, err)
		case e != nil && (e.Kind != fault.Usage || e.Code != CodeInvalid || e.Hints[0] != tt.hint):
			t.Errorf("%s: %v, hints %q, want %q", tt.variable, err, e.Hints, tt.hint)
		}
		if got := strings.Join(near, " "); (tt.near == "") != (got == "") || !strings.HasSuffix(got, "did you mean $"+tt.near+"?") && tt.near != "" {
			t.Errorf("%s: warns %q, want %q", tt.variable, got, tt.near)
		}
	}
}
