package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestTruthOfAFixture runs the whole command on a module whose functions say in
// a comment how each must end.
func TestTruthOfAFixture(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "truth.jsonl")
	ar, err := txtar.ParseFile("testdata/fixture.txtar")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range ar.Files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(f.Data)) {
			if _, w, ok := strings.Cut(line, "// want "); ok {
				name, status, _ := strings.Cut(strings.TrimSpace(w), " ")
				want[name] = status
			}
		}
	}
	o := options{module: dir, out: out, timeout: 5 * time.Second}
	if err := run(o); err != nil {
		t.Fatal(err)
	}
	got, lines := map[string]string{}, 0
	read := func() {
		got, lines = map[string]string{}, 0
		if err := eachLine(out, func(l Line) { got[l.Symbol], lines = l.Status, lines+1 }); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	first := lines

	// A second invocation finds nothing to do; one line less, and that symbol is
	// tried again.
	if err := run(o); err != nil {
		t.Fatal(err)
	}
	if read(); lines != first {
		t.Errorf("%d lines after a second invocation, want %d", lines, first)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.LastIndex(strings.TrimSuffix(string(b), "\n"), "\n") + 1
	if err := os.WriteFile(out, b[:cut], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(o); err != nil {
		t.Fatal(err)
	}
	if read(); lines != first || !cmp.Equal(want, got) {
		t.Errorf("after a cut and a third invocation: %d lines, %v", lines, got)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, out, status, test string }{
		{"leaf of a subtest", `{"Action":"output","Test":"T/a","Output":"    x_test.go:3: no\n"}
{"Action":"fail","Test":"T/a"}
{"Action":"fail","Test":"T"}
{"Action":"fail"}`, "killed", "T/a"},
		{"panic", `{"Action":"output","Test":"T","Output":"panic: boom [recovered]\n"}
{"Action":"fail","Test":"T"}
{"Action":"fail"}`, "killed_by_error", "T"},
		{"an assertion before the panic of another", `{"Action":"output","Test":"A","Output":"    x_test.go:3: no\n"}
{"Action":"fail","Test":"A"}
{"Action":"output","Test":"T","Output":"panic: boom\n"}
{"Action":"fail","Test":"T"}
{"Action":"fail"}`, "killed", "A"},
		{"exit of the process", `{"Action":"output","Output":"exit status 3\n"}
{"Action":"fail"}`, "killed_by_error", ""},
		{"time limit", `{"Action":"output","Test":"T","Output":"panic: test timed out after 2s\n"}
{"Action":"fail","Test":"T"}
{"Action":"fail"}`, "timeout", "T"},
		{"does not build", `{"Action":"build-output","Output":"x.go:1: no\n"}
{"Action":"build-fail"}
{"Action":"fail","FailedBuild":"x"}`, "invalid", ""},
	}
	for _, tt := range tests {
		if got := classify([]byte(tt.out), false); got.Status != tt.status || got.Test != tt.test {
			t.Errorf("%s: classify = %s %s, want %s %s", tt.name, got.Status, got.Test, tt.status, tt.test)
		}
	}
	if got := classify([]byte(`{"Action":"output","Test":"T","Output":"--- FAIL: T\npanic: said, not done\n"}`), true); got.Status != "survived" {
		t.Errorf("classify of a green suite = %s, want survived", got.Status)
	}
}
