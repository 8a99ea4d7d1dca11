package golang

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/fault"
)

// The files are recorded outputs of real tools; their names begin with the
// category that is expected. Those of tests begin with test_.
func TestOutputsHaveCategories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/output/*.txt")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d recorded outputs, %v", len(files), err)
	}
	for _, f := range files {
		out, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		var got *fault.Error
		if want, ok := strings.CutPrefix(name, "test_"); ok {
			e, found := Explain(out)
			if want == "none" {
				if found {
					t.Errorf("Explain(%s) = %v, want nothing: the test's own assertion failed", name, e)
				}
				continue
			}
			if got, name = e, want; !found {
				t.Errorf("Explain(%s) found nothing", f)
				continue
			}
		} else {
			got = classify(out, "build")
		}
		if !strings.HasPrefix(name, string(got.Code)) || got.Kind != fault.Unmeasured {
			t.Errorf("%s has category %s: %v", f, got.Code, got)
		}
		if strings.Contains(got.What, "\n") || strings.HasSuffix(got.What, ": ") {
			t.Errorf("%s says %q, want one line", f, got.What)
		}
	}
}
