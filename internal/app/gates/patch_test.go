package gates

import "testing"

func TestPatchApplies(t *testing.T) {
	t.Parallel()
	src := "a\nb\nc\nd\n"
	for _, row := range []struct{ name, diff, want string }{
		{"in place", "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n", "a\nB\nc\nd\n"},
		{"moved", "--- a/f\n+++ b/f\n@@ -9,2 +9,2 @@\n c\n-d\n+D\n", "a\nb\nc\nD\n"},
		{"added", "--- a/f\n+++ b/f\n@@ -2,0 +3 @@\n+x\n", "a\nb\nx\nc\nd\n"},
		{"twice", "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n-a\n+1\n+2\n@@ -4 +5 @@\n-d\n+D\n", "1\n2\nb\nc\nD\n"},
		{"no end of line", "--- a/f\n+++ b/f\n@@ -4 +4 @@\n-d\n\\ No newline at end of file\n+D\n", "a\nb\nc\nD\n"},
		{"elsewhere", "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-z\n+B\n", ""},
		{"cut", "--- a/f\n+++ b/f\n@@ -2,3 +2,3 @@\n-b\n", ""},
		{"a mode", "old mode 100644\n--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n", ""},
	} {
		got := ""
		fs, err := parsePatch(row.diff)
		if err == nil {
			var out []byte
			out, err = fs[0].apply([]byte(src))
			got = string(out)
		}
		if got != row.want || (err != nil) != (row.want == "") {
			t.Errorf("%s: %q, %v, want %q", row.name, got, err, row.want)
		}
	}
}

func FuzzPatch(f *testing.F) {
	f.Add("--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n")
	f.Add("@@ -0,0 +1 @@\n+x\n")
	f.Add("--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\n+y\n")
	f.Fuzz(func(_ *testing.T, diff string) {
		fs, err := parsePatch(diff)
		if err != nil {
			return
		}
		for _, p := range fs {
			_, _ = p.apply([]byte("a\nb\nc\n")) // it must end, without a panic
		}
	})
}
