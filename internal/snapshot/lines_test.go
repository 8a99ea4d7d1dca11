package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHunksGiveTheNewLines(t *testing.T) {
	raw := "diff --git a/x b/y\n--- a/x\n+++ b/y\n@@ -3 +3,2 @@ func f() {\n-a\n+b\n+c\n@@ -9,2 +10,0 @@\n-d\n-e\n@@ -20 +19 @@\n-f\n+@@ -1 +1 @@\n"
	got, err := hunks([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Lines{{3, 4}, {10, 10}, {19, 19}}, got); diff != "" {
		t.Errorf("hunks differ (-want +got):\n%s", diff)
	}
}
