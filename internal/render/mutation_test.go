package render

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/view"
)

// The public schema of mutation reports, by name and version.
const publicMutationSchema = "mutation-testing-report-schema@3.8.4"

func mutationOf(t *testing.T, s view.Start) []byte {
	t.Helper()
	return []byte(written(t, func(w io.Writer) error { return MutationReport(w, s, fixtureMeta()) }))
}

func TestMutationReportMatchesItsGolden(t *testing.T) {
	t.Parallel()
	golden(t, "mutation.json", mutationOf(t, fixture()))
}

func TestMutationReportMapsEveryStatus(t *testing.T) {
	t.Parallel()
	for _, s := range statusOrder {
		if _, ok := foreignStatus[s]; !ok {
			t.Errorf("status %s has no place in the mutation report", s)
		}
	}
	// The schema's viewers count these two as detected.
	for s, got := range foreignStatus {
		if detected := got.status == "Killed" || got.status == "Timeout"; detected != (s == evidence.Killed) {
			t.Errorf("%s becomes %+v: only what is credited may count as detected", s, got)
		}
		if got.status == "RuntimeError" && got.reason == "" {
			t.Errorf("%s becomes %s without a reason", s, got.status)
		}
	}
	s := fixture()
	s.Symbols[0].Mutants[0].Status = "surprise"
	if err := MutationReport(io.Discard, s, Meta{}); err == nil {
		t.Error("a status without a mapping was written")
	}
}

func TestMutationReportPointsAtTheChangedText(t *testing.T) {
	t.Parallel()
	source := []string{"func f() int {", "\tx := \"ü\" + y", "\treturn x", "}"}
	for _, c := range []struct {
		name, diff string
		start, end position
		want       string
	}{
		{"one operator", "@@ -2,1 +2,1 @@\n-\tx := \"ü\" + y\n+\tx := \"ü\" - y\n", position{2, 11}, position{2, 12}, "-"},
		{"insertion", "--- a/f\n+++ b/f\n@@ -2,2 +2,3 @@\n \tx := \"ü\" + y\n+\treturn 0\n \treturn x\n", position{3, 1}, position{3, 1}, "\treturn 0\n"},
		{"deletion", "@@ -2,2 +2,1 @@\n-\tx := \"ü\" + y\n \treturn x\n", position{2, 1}, position{3, 1}, ""},
		{"two hunks", "@@ -1,1 +1,1 @@\n-func f() int {\n+func g() int {\n@@ -3,1 +3,1 @@\n-\treturn x\n+\treturn y\n", position{1, 6}, position{3, 10}, "g() int {\n\tx := \"ü\" + y\n\treturn y"},
	} {
		loc, text := replaced(view.Mutant{Diff: c.diff}, source)
		if diff := cmp.Diff(mutationL{c.start, &c.end}, loc); diff != "" || text != c.want {
			t.Errorf("%s: replacement %q, want %q; location (-want +got):\n%s", c.name, text, c.want, diff)
		}
	}
}

// TestMutationReportIsValid asks npm for the public schema once, so that no copy
// of it can be wrong.
func TestMutationReportIsValid(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the npm registry")
	}
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed: the public schema cannot be had")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "npm", "pack", "--silent", publicMutationSchema)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("npm pack %s: %v: %s", publicMutationSchema, err, out)
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("npm pack left %v, %v", archives, err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "xzf", archives[0], "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	body, err := os.ReadFile(filepath.Join(dir, "package", "src", "mutation-testing-report-schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	validate(t, body, mutationOf(t, fixture()))
	validate(t, body, mutationOf(t, view.Start{}))
	broken := strings.Replace(string(mutationOf(t, fixture())), `"status": "Survived"`, `"status": "survived"`, 1)
	if err := check(t, body, []byte(broken)); err == nil {
		t.Error("the public schema accepts a status that it does not know: it was not applied")
	}
}

func validate(t *testing.T, schema, doc []byte) {
	t.Helper()
	if err := check(t, schema, doc); err != nil {
		t.Errorf("not valid: %v", err)
	}
}

func check(t *testing.T, schema, doc []byte) error {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", parsed); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(v)
}
