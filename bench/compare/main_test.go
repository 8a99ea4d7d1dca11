package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const answer = `{"data":{"symbols":[
 {"name":"m.A","file":"a.go","line":1,"end_line":9,"word":"proven","detail":"TestA fails","mutants":[
  {"operator":"NEGATE_RETURNS","file":"a.go","line":1,"column":6,"status":"killed"},
  {"operator":"ARITHMETIC_BASE","file":"a.go","line":2,"column":4,"status":"killed_by_error"},
  {"operator":"ARITHMETIC_BASE","file":"a.go","line":3,"column":4,"status":"survived"},
  {"operator":"INVERT_LOGICAL","file":"a.go","line":4,"column":4,"status":"flaky"},
  {"operator":"INVERT_LOGICAL","file":"a.go","line":5,"column":4,"status":"killed"}]},
 {"name":"m.B","file":"a.go","line":10,"end_line":12,"word":"not_measured","reason":"no_coverage"},
 {"name":"m.C","file":"a.go","line":20,"end_line":22,"word":"refuted","reason":"survived"}]}}`

const peers = `{"file":"a.go","line":2,"col":4,"operator":"ARITHMETIC_BASE","status":"killed"}
{"file":"a.go","line":3,"col":4,"operator":"ARITHMETIC_BASE","status":"killed"}
{"file":"a.go","line":3,"col":4,"operator":"INVERT_NEGATIVES","status":"survived"}
{"file":"a.go","line":4,"col":4,"operator":"INVERT_LOGICAL","status":"survived"}
{"file":"a.go","line":11,"col":4,"operator":"INVERT_LOGICAL","status":"no_coverage"}
{"file":"a.go","line":21,"col":4,"operator":"INVERT_LOGICAL","status":"killed"}
`

const known = `{"file":"a.go","line":1,"symbol":"m.A","status":"survived","variants":[{"name":"zero","status":"survived"}]}
{"file":"a.go","line":10,"symbol":"m.B","status":"survived","variants":[{"name":"zero","status":"survived"}]}
{"file":"a.go","line":20,"symbol":"m.C","status":"killed","variants":[{"name":"zero","status":"survived"},{"name":"one","status":"killed","test":"TestC"}]}
`

func files(t *testing.T) (start, peer, truth, out string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"start.json": answer, "peer.jsonl": peers, "truth.jsonl": known} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "start.json"), filepath.Join(dir, "peer.jsonl"), filepath.Join(dir, "truth.jsonl"), filepath.Join(dir, "ours.jsonl")
}

func TestEveryDisagreementIsALine(t *testing.T) {
	t.Parallel()
	start, peer, truth, _ := files(t)
	var got bytes.Buffer
	if err := run(&got, start, "", peer, truth); err != nil {
		t.Fatal(err)
	}
	want := `differs: a.go:3:4 ARITHMETIC_BASE: peer killed, we survived
not comparable: a.go:4:4 INVERT_LOGICAL: peer survived, we flaky
only the peer: a.go:21:4 INVERT_LOGICAL: killed
peer's mutants 6: common 4, agreed 3 (75.0 %), not comparable 1, only the peer 1; only we 1
beyond: a.go:1 m.A: the ground truth says survived; we: TestA fails
missed: a.go:20 m.C: refuted survived; TestC notices one
ground truth 3 symbols, 1 killed by assertion; of these proven 0 (0.0 %); proven beyond it 1
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestVerdictFileHasSharedOperatorsOnly(t *testing.T) {
	t.Parallel()
	start, _, _, out := files(t)
	if err := run(&bytes.Buffer{}, start, out, "", ""); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"file":"a.go","line":2,"col":4,"operator":"ARITHMETIC_BASE","status":"killed_by_error"}
{"file":"a.go","line":3,"col":4,"operator":"ARITHMETIC_BASE","status":"survived"}
{"file":"a.go","line":4,"col":4,"operator":"INVERT_LOGICAL","status":"flaky"}
{"file":"a.go","line":5,"col":4,"operator":"INVERT_LOGICAL","status":"killed"}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("verdict file (-want +got):\n%s", diff)
	}
}
