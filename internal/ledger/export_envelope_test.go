package ledger_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

var update = flag.Bool("update", false, "write the example of docs/formats")

const (
	example = "../../docs/formats/discrimination-v1.example.json"
	schema  = "../../schemas/discrimination-v1.schema.json"
)

func TestExportIsCheckedWithoutTheLedger(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := setup(t, c)
		s := b.fill(t, 0)
		env := must[[]byte](t)(b.Export(t.Context(), s.cert.Digest()))
		for _, key := range []string{"", b.VerifierKey()} {
			got, st, err := ledger.OpenExport(t.Context(), env, key)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(s.cert.Record(), got.Record()); d != "" {
				t.Errorf("certificate:\n%s", d)
			}
			if len(st.Predicate.Runs) != len(s.runs) || st.Subject[0].Digest["gitTree"] != string(tree) {
				t.Errorf("%d runs about %v", len(st.Predicate.Runs), st.Subject)
			}
		}
		other := setup(t, storetest.SQLite(t))
		_, _, err := ledger.OpenExport(t.Context(), env, other.VerifierKey())
		wantFault(t, err, fault.Tampered, ledger.CodeSignatureBad)
		_, err = b.Export(t.Context(), evidence.DigestOf(nil))
		wantFault(t, err, fault.NotFound, ledger.CodeNotFound)
	})
}

// Whoever holds the engine key can sign anything; the runs inside decide.
func TestForgedExportIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	s := b.fill(t, 0)
	other := b.fill(t, 1)
	env := must[[]byte](t)(b.Export(t.Context(), s.cert.Digest()))
	tests := []struct {
		name  string
		forge func(st *ledger.Statement)
		code  fault.Code
	}{
		{"nothing", func(*ledger.Statement) {}, ""},
		{"another tree", func(st *ledger.Statement) { st.Subject[0].Digest["gitTree"] = strings.Repeat("a", 40) }, ledger.CodeCertificateBad},
		{"run left out", func(st *ledger.Statement) { st.Predicate.Runs = st.Predicate.Runs[1:] }, ledger.CodeMissing},
		{"events edited", func(st *ledger.Statement) { st.Predicate.Runs[4].Events[1].Message = "x" }, ledger.CodeCertificateBad},
		{"run edited", func(st *ledger.Statement) {
			st.Predicate.Runs[4].Record = bytes.Replace(st.Predicate.Runs[4].Record, []byte(`"code":1`), []byte(`"code":2`), 1)
		}, ledger.CodeCertificateBad},
		{"another certificate of no entry", func(st *ledger.Statement) { st.Predicate.Ledger.Seq = 2 }, ledger.CodeBroken},
		{"checkpoint of another size", func(st *ledger.Statement) {
			st.Predicate.Ledger.Checkpoint = strings.Replace(st.Predicate.Ledger.Checkpoint, "\n47\n", "\n46\n", 1)
		}, ledger.CodeCheckpointBad},
		{"record of another certificate", func(st *ledger.Statement) { st.Predicate.Certificate.Record = other.cert.Body() }, ledger.CodeMissing},
		{"another type", func(st *ledger.Statement) { st.PredicateType += "x" }, ledger.CodeCertificateBad},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			st := payload(t, env)
			test.forge(&st)
			signer := must[*dsse.EnvelopeSigner](t)(dsse.NewEnvelopeSigner(b.keys.Engine))
			signed := must[*dsse.Envelope](t)(signer.SignPayload(t.Context(), ledger.PayloadType, must[[]byte](t)(evidence.Canonical(st))))
			_, _, err := ledger.OpenExport(t.Context(), must[[]byte](t)(json.Marshal(signed)), b.VerifierKey())
			if test.code == "" {
				if err != nil {
					t.Errorf("the unchanged statement: %v", err)
				}
				return
			}
			wantFault(t, err, fault.Tampered, test.code)
		})
	}
	for _, bad := range []string{"", "{}", `{"payloadType":"x"}`, strings.Replace(string(env), `"sig": "`, `"sig": "AAAA`, 1)} {
		_, _, err := ledger.OpenExport(t.Context(), []byte(bad), "")
		wantFault(t, err, fault.Tampered, ledger.CodeSignatureBad)
	}
}

func payload(t testing.TB, env []byte) (st ledger.Statement) {
	t.Helper()
	if err := json.Unmarshal(payloadBytes(t, env), &st); err != nil {
		t.Fatal(err)
	}
	return st
}

func payloadBytes(t testing.TB, env []byte) []byte {
	t.Helper()
	var e dsse.Envelope
	if err := json.Unmarshal(env, &e); err != nil {
		t.Fatal(err)
	}
	return must[[]byte](t)(base64.StdEncoding.DecodeString(e.Payload))
}

// The example of the format loads for ever, and the schema describes what we
// write.
func TestExampleOfTheFormat(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	s := b.fill(t, 0)
	fresh := must[[]byte](t)(b.Export(t.Context(), s.cert.Digest()))
	if *update {
		if err := os.WriteFile(filepath.FromSlash(example), append(fresh, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept := must[[]byte](t)(os.ReadFile(filepath.FromSlash(example)))
	if _, _, err := ledger.OpenExport(t.Context(), kept, ""); err != nil {
		t.Errorf("the example: %v", err)
	}
	sch := must[*jsonschema.Schema](t)(jsonschema.NewCompiler().Compile(schema))
	for name, env := range map[string][]byte{"example": kept, "fresh": fresh} {
		doc := must[any](t)(jsonschema.UnmarshalJSON(bytes.NewReader(payloadBytes(t, env))))
		if err := sch.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// The schema can say no.
		delete(doc.(map[string]any)["predicate"].(map[string]any), "runs")
		if sch.Validate(doc) == nil {
			t.Errorf("%s without runs is valid", name)
		}
	}
}
