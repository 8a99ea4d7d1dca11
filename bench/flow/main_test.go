//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestQuantiles(t *testing.T) {
	t.Parallel()
	v := []float64{5, 1, 4, 2, 3, 6}
	if m := median(v); m != 3.5 {
		t.Errorf("median = %v, want 3.5", m)
	}
	if q := quantile(v, 0.95); q != 6 {
		t.Errorf("p95 = %v, want 6", q)
	}
	if q := quantile(v, 0); q != 1 {
		t.Errorf("least = %v, want 1", q)
	}
	if median(nil) != 0 || quantile(nil, 1) != 0 {
		t.Error("no values have a median")
	}
}

func TestStartMeasuresWhatItStarts(t *testing.T) {
	t.Parallel()
	a, err := start(t.TempDir(), os.Environ(), "sh", "-c", "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; echo out; echo err >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	if a.Exit != 3 || string(a.stdout) != "out\n" || string(a.stderr) != "err\n" {
		t.Errorf("exit %d, %q, %q", a.Exit, a.stdout, a.stderr)
	}
	if a.CPU <= 0 || a.Wall < 0 {
		t.Errorf("CPU %v, wall %v", a.CPU, a.Wall)
	}
	if _, err := start(t.TempDir(), nil, filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a program that is not there was started")
	}
}

func TestCountFindsWhatIsLost(t *testing.T) {
	t.Parallel()
	var c Crowd
	c.count([]verdict{acknowledged, acknowledged, refused, crashed}, map[string]bool{note(0): true, note(3): true})
	if c.Acknowledged != 2 || c.Lost != 1 || c.Refused != 1 || c.Crashed != 1 {
		t.Errorf("%+v", c)
	}
}

// script is a LACP of which only the answers are right.
func script(t *testing.T, body string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bin", "lacp-workflow-run"), []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestAWrongAnswerEndsTheRound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ word, want string }{{"completed", ""}, {"in_progress", "in_progress"}} {
		l, err := newLACP(script(t, `case $1 in
init) echo '{"run_id":"r"}';;
advance) echo '{"plan_token_issued":"p"}{"status":"x"}';;
status) echo '{"status":"`+c.word+`","history":[]}';;
esac`), t.TempDir())
		if err != nil {
			t.Skip(err) // bash, jq, python3
		}
		r := &result{Samples: map[string]map[string][]Sample{}}
		err = round(r, l)
		switch {
		case c.want == "" && err != nil:
			t.Error(err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("a run that is %q: %v", c.word, err)
		case c.want == "":
			var out bytes.Buffer
			r.show(&out, []tool{l})
			if n := len(r.Samples["advance"]["lacp"]); n != len(stages) || !strings.Contains(out.String(), "advance") {
				t.Errorf("%d approvals were measured, want %d:\n%s", n, len(stages), out.String())
			}
		}
	}
}

func TestWhatACrowdMayAnswer(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]verdict{
		"exit 2": acknowledged, "echo 'stage out of order' >&2; exit 1": refused, "echo 'Traceback (most' >&2; exit 1": crashed, "exit 0": crashed,
	} {
		l, err := newLACP(script(t, body), t.TempDir())
		if err != nil {
			t.Skip(err)
		}
		if got, _, err := l.reject("r", "n"); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", body, got, err, want)
		}
	}
}
