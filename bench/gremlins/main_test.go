package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testdata/uuid.json is what gremlins 0.6.0 wrote for google/uuid 1.6.0,
// shortened to two files.
func TestVerdictsOfARecordedReport(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/uuid.json")
	if err != nil {
		t.Fatal(err)
	}
	vs, err := verdicts(b)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := write(&got, vs); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/uuid.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func TestUnknownStatusIsAnError(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`{"files":[{"file_name":"a.go","mutations":[{"type":"X","status":"EATEN","line":1,"column":2}]}]}`,
		`{"files":[]}`,
		`not json`,
	} {
		if vs, err := verdicts([]byte(in)); err == nil {
			t.Errorf("verdicts(%.60s) = %v, want an error", in, vs)
		} else if strings.TrimSpace(err.Error()) == "" {
			t.Errorf("verdicts(%.60s): an error without words", in)
		}
	}
}
