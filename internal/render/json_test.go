package render

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/view"
)

const startSchemaFile = "../../schemas/prove.start-v1.schema.json"

func fixtureAnswer(s view.Start) view.Answer {
	m := fixtureMeta()
	return view.Answer{
		Schema: view.StartSchemaName, OK: true, Code: "ok", Subject: &m.Subject, Head: m.Head, Data: s,
		Warnings: m.Warnings, Next: s.NextSteps(), Version: m.Version,
	}
}

func jsonOf(t *testing.T, a view.Answer) []byte {
	t.Helper()
	return []byte(written(t, func(w io.Writer) error { return JSON(w, a) }))
}

func TestJSONMatchesItsGolden(t *testing.T) {
	t.Parallel()
	golden(t, "start.json", jsonOf(t, fixtureAnswer(fixture())))
}

func TestSchemaOfStartIsGenerated(t *testing.T) {
	t.Parallel()
	want, err := view.StartSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(startSchemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(startSchemaFile); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the types say (%v); go test ./internal/render -update", startSchemaFile, err)
	}
}

func TestAnswersAreValid(t *testing.T) {
	t.Parallel()
	schema, err := view.StartSchema()
	if err != nil {
		t.Fatal(err)
	}
	validate(t, schema, jsonOf(t, fixtureAnswer(fixture())))
	validate(t, schema, jsonOf(t, fixtureAnswer(view.Start{})))
	validate(t, schema, jsonOf(t, view.Answer{Schema: view.StartSchemaName, Code: "no_tests", Exit: 4, Message: "no tests found"}))
	s := fixture()
	s.Symbols[0].Word = "maybe"
	if err := check(t, schema, jsonOf(t, fixtureAnswer(s))); err == nil {
		t.Error("the schema accepts an evidence word that does not exist")
	}
}

func TestJSONIsSafeToShowAndLosesNothing(t *testing.T) {
	t.Parallel()
	body := jsonOf(t, fixtureAnswer(fixture()))
	for _, r := range string(body) {
		if hidden(r) || r == '<' {
			t.Fatalf("the JSON contains %U as it is", r)
		}
	}
	var back struct{ Data view.Start }
	if err := json.Unmarshal(body, &back); err != nil {
		t.Fatal(err)
	}
	want := fixture()
	want.Sources = nil
	if diff := cmp.Diff(noNulls(want).Symbols[5].Name, back.Data.Symbols[5].Name); diff != "" {
		t.Errorf("a name did not survive (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(string(body), "{\n  \"schema\": \"proveto/prove.start/v1\",\n  \"ok\": true,\n  \"code\": \"ok\",\n") {
		t.Errorf("the envelope begins with %.80s", body)
	}
	if strings.Contains(string(body), "null") {
		t.Error("a list is null")
	}
}
