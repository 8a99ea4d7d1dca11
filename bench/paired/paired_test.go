//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Measure waits for any child of the process, so these tests do not run in
// parallel.

func TestMeasureCountsOrphans(t *testing.T) {
	if err := adoptOrphans(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mark, left := filepath.Join(dir, "mark"), filepath.Join(dir, "left")
	// The grandchild leaves group and session, says so, and works after its
	// parent ended.
	work := fmt.Sprintf(`echo > %s; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done > %s`, left, mark)
	s, err := Measure(fmt.Sprintf(`mkfifo %s; setsid sh -c '%s' & read x < %s; exit 7`, left, work, left))
	if err != nil {
		t.Fatal(err)
	}
	if s.Exit != 7 {
		t.Errorf("exit %d, want 7", s.Exit)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("the orphan was not waited for: %v", err)
	}
	if s.CPU < 0.02 || s.RSS == 0 {
		t.Errorf("CPU %v s, peak %d: the orphan was not counted", s.CPU, s.RSS)
	}
}

func TestVerdictsAreComparedBeforeNumbers(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	line := `{"file":"x.go","line":%d,"col":2,"operator":"RESULT","status":"%s"}` + "\n"
	write := func(name string, lines ...string) {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(a, fmt.Sprintf(line, 1, "killed"), fmt.Sprintf(line, 2, "killed"), fmt.Sprintf(line, 3, "killed"))
	write(b, fmt.Sprintf(line, 1, "killed"), fmt.Sprintf(line, 2, "survived"))
	o := options{n: 2, a: "true", b: "true", va: a, vb: b, agree: 0.99}
	var out bytes.Buffer
	err := run(&out, o)
	var d disagreement
	if !errors.As(err, &d) || d != (disagreement{1, 2}) {
		t.Errorf("run = %v, want a disagreement of 1 in 2", err)
	}
	if strings.Contains(out.String(), "CPU") || !strings.Contains(out.String(), "x.go:2:2 RESULT: killed, survived") {
		t.Errorf("output:\n%s\nwant the difference and no number", out.String())
	}
	o.agree = 0.5
	out.Reset()
	if err := run(&out, o); err != nil || !strings.Contains(out.String(), "ratio a/b") {
		t.Errorf("run = %v, output:\n%s", err, out.String())
	}
	write(b, fmt.Sprintf(line, 1, "killed"), fmt.Sprintf(line, 1, "survived"))
	if err := run(&out, o); err == nil {
		t.Error("two verdicts about one place were accepted")
	}
}

func TestQuantile(t *testing.T) {
	xs := []float64{4, 1, 3, 2}
	if got := median(xs); got != 2.5 {
		t.Errorf("median(%v) = %v, want 2.5", xs, got)
	}
	if lo, hi := quantile(xs, 0), quantile(xs, 1); lo != 1 || hi != 4 {
		t.Errorf("ends of %v = %v, %v, want 1, 4", xs, lo, hi)
	}
	if got := median([]float64{7}); got != 7 {
		t.Errorf("median of one = %v, want 7", got)
	}
}
