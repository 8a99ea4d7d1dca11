package sandbox

import (
	"os"
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/evidence"
)

var levels = []evidence.Level{evidence.Namespaces, evidence.Landlock, evidence.LimitsOnly}

// each runs a test once a level.
func each(t *testing.T, test func(t *testing.T, level evidence.Level)) {
	for _, l := range levels {
		t.Run(string(l), func(t *testing.T) { test(t, l) })
	}
}

// open makes a box on exactly the level; the machine that runs these tests has
// all of them.
func open(t *testing.T, level evidence.Level, s Spec) *Box {
	t.Helper()
	s.Min, s.Max = level, level
	b, err := Open(t.Context(), s)
	if err != nil {
		t.Fatalf("Open at %s: %v", level, err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// sh runs a shell script in the box.
func sh(t *testing.T, b *Box, script string, change ...func(*Command)) (evidence.Run, string) {
	t.Helper()
	c := Command{Purpose: evidence.PurposeTool, Argv: []string{"/bin/sh", "-c", script}, Root: "/", Env: []string{"PATH=/usr/bin:/bin"}}
	for _, f := range change {
		f(&c)
	}
	run, out, err := b.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("Run(%q): %v", script, err)
	}
	return run, strings.TrimSpace(string(out.Stdout) + string(out.Stderr))
}

func TestBoxRunsCommandsAndRecordsThem(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		b := open(t, level, Spec{Env: []string{"A=1"}})
		run, out := sh(t, b, "echo hello $A; echo oops >&2; exit 7")
		if r := run.Record(); r.Exit.Code != 7 || r.Exit.Signal != "" || r.Exit.Stopped != "" {
			t.Errorf("exit = %+v, want code 7", r.Exit)
		}
		if out != "hello 1\noops" {
			t.Errorf("output = %q", out)
		}
	})
}

// self runs a helper of the test binary in the box.
func self(t *testing.T, b *Box, change func(*Command), args ...string) (evidence.Run, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := Command{Purpose: evidence.PurposeTool, Argv: append([]string{exe}, args...), Root: "/"}
	if change != nil {
		change(&c)
	}
	run, out, err := b.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("Run(%q): %v", args, err)
	}
	return run, strings.TrimSpace(string(out.Stdout) + string(out.Stderr))
}
