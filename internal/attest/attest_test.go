package attest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/attest"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
)

var update = flag.Bool("update", false, "write the example of docs/formats")

const example = "../../docs/formats/flow-run-v1.example.jsonl"

// A file that was written once opens for ever.
func TestTheExampleOpens(t *testing.T) {
	t.Parallel()
	if *update {
		w := newWorld(t, "default", false)
		w.walk()
		w.deliver()
		file, _, err := w.file()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(example, file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a, err := attest.Open(t.Context(), must[[]byte](t)(os.ReadFile(example)), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Properties) != 11 || a.Summary.Status != "delivered" || len(a.Subject) != 2 {
		t.Errorf("the example says %v about %v", a.Properties, a.Subject)
	}
}

func wantFault(t testing.TB, what string, err error, kind fault.Kind, codes ...fault.Code) {
	t.Helper()
	f := fault.From(err)
	if f == nil || f.Kind != kind || len(codes) > 0 && !slices.Contains(codes, f.Code) {
		t.Errorf("%s: %v, want kind %v and code %v", what, err, kind, codes)
	}
}

func TestAttestationIsCheckedWithoutTheLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "default", false)
	w.walk()
	before, a, err := w.file()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"PROVETO_PLAN_HELD", "PROVETO_REQUIREMENTS_PROVEN", "PROVETO_CHANGE_PROVEN", "PROVETO_BUILD_PASSED", "PROVETO_BASE_TESTS_KEPT", "PROVETO_SUITE_PASSED",
		"PROVETO_NO_SECRETS_FOUND", "PROVETO_NO_WAIVERS", "PROVETO_SEPARATION_HELD", "PROVETO_HUMAN_APPROVALS_1", "PROVETO_INDEPENDENT_APPROVALS_1",
	}
	if d := cmp.Diff(want, a.Properties); d != "" {
		t.Errorf("properties (-want +got):\n%s", d)
	}
	subject := []ledger.Subject{{Name: "tree", Digest: map[string]string{"gitTree": string(tree("second"))}}}
	if d := cmp.Diff(subject, a.Subject); d != "" {
		t.Errorf("subject before delivery:\n%s", d)
	}
	w.deliver()
	after, b, err := w.file()
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Subject) != 2 || b.Subject[0].Digest["gitCommit"] != strings.Repeat("3", 40) || b.Summary.Status != "delivered" {
		t.Errorf("subject after delivery: %v", b.Subject)
	}
	s := b.Summary
	if len(s.Refused) != 1 || s.Refused[0].Code != "same_tree" || len(s.Stages[4].Attempts) != 2 || s.Findings.Total != 1 || s.Isolation[0].Level != evidence.Namespaces {
		t.Errorf("summary: %+v", s)
	}
	for _, file := range [][]byte{before, after} {
		for _, key := range []string{"", w.led.VerifierKey()} {
			if !attest.Is(file) {
				t.Error("it is not seen to be an attestation")
			}
			got, err := attest.Open(t.Context(), file, key)
			if err != nil {
				t.Fatal(err)
			}
			if got.Summary.Run != w.run.ID || !slices.Equal(got.Properties, want) {
				t.Errorf("opened: %+v", got)
			}
		}
	}
	other := newWorld(t, "default", false)
	_, err = attest.Open(t.Context(), after, other.led.VerifierKey())
	wantFault(t, "another key", err, fault.Tampered, identity.CodeSignatureBad)
}

// Only what holds is said: each row takes something away, and a property with it.
func TestPropertiesSayOnlyWhatHolds(t *testing.T) {
	t.Parallel()
	waived := func(w *world, what string) {
		act := flow.Waive{ID: "wvr_" + what, Gate: what, Reason: "r", Expires: time.Now().Add(time.Hour).UTC()}
		act.Signed = w.signed("bob", map[string]any{
			"schema": "proveto/flow.waiver/v1", "gate": what, "stage": "", "paths": nil, "reason_sha256": evidence.DigestOf([]byte("r")), "expires": act.Expires, "nonce": act.ID,
		})
		w.do(w.by("bob", act))
	}
	outcome := func(name string, o gate.Outcome) func(*world) {
		return func(w *world) {
			waived(w, name)
			w.measure = func(m *flow.Measure) {
				if m.Gate == name {
					m.Evidence.Outcome, m.Evidence.Code, m.Evidence.Reason = o, "gate_failed", "why"
				}
			}
		}
	}
	for name, row := range map[string]struct {
		before func(*world)
		gone   []string
	}{
		"a waived secret":      {outcome("secrets", gate.No), []string{"PROVETO_NO_SECRETS_FOUND", "PROVETO_NO_WAIVERS"}},
		"a waived requirement": {outcome("prove.requirements", gate.NotMeasured), []string{"PROVETO_REQUIREMENTS_PROVEN", "PROVETO_NO_WAIVERS"}},
		"a waived plan rule":   {func(w *world) { waived(w, "P001") }, []string{"PROVETO_PLAN_HELD", "PROVETO_NO_WAIVERS"}},
		"nothing proven": {func(w *world) {
			w.measure = func(m *flow.Measure) {
				if strings.HasPrefix(m.Gate, "prove.") {
					m.Evidence.Certificates, m.Evidence.Requirements = nil, nil
				}
			}
		}, []string{"PROVETO_REQUIREMENTS_PROVEN", "PROVETO_CHANGE_PROVEN"}},
		// Build and suite are measured on the merged tree; nothing else is.
		"the target moved": {func(w *world) { w.merged = tree("merged") }, []string{
			"PROVETO_PLAN_HELD", "PROVETO_REQUIREMENTS_PROVEN", "PROVETO_CHANGE_PROVEN", "PROVETO_BASE_TESTS_KEPT", "PROVETO_NO_SECRETS_FOUND",
		}},
		"the target moved, nothing ran": {func(w *world) {
			w.merged = tree("merged")
			w.measure = func(m *flow.Measure) { m.Evidence.Runs = nil }
		}, []string{
			"PROVETO_PLAN_HELD", "PROVETO_REQUIREMENTS_PROVEN", "PROVETO_CHANGE_PROVEN", "PROVETO_BASE_TESTS_KEPT", "PROVETO_NO_SECRETS_FOUND",
			"PROVETO_BUILD_PASSED", "PROVETO_SUITE_PASSED",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full, less := newWorld(t, "default", false), newWorld(t, "default", false)
			full.walk()
			row.before(less)
			less.walk()
			_, a, err := full.file()
			if err != nil {
				t.Fatal(err)
			}
			file, b, err := less.file()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := attest.Open(t.Context(), file, ""); err != nil {
				t.Error(err)
			}
			want := slices.DeleteFunc(slices.Clone(a.Properties), func(p string) bool { return slices.Contains(row.gone, p) })
			if d := cmp.Diff(want, b.Properties); d != "" {
				t.Errorf("properties (-want +got):\n%s", d)
			}
		})
	}
}

func TestManualRunHasNoResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "manual", true)
	_, _, err := w.file()
	wantFault(t, "an open run", err, fault.Refused, flow.CodeOutOfOrder)
	w.manual()
	file, a, err := w.file()
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(file, []byte("\n")); n != 1 || len(a.Properties) != 0 {
		t.Errorf("%d lines with %v", n, a.Properties)
	}
	if a.Summary.Evidence != `evidence: none required by policy "manual"` || a.Summary.Principals.Note != "1 principal, separation not enforced" {
		t.Errorf("summary: %+v", a.Summary)
	}
	if len(a.Summary.Approvals.Independent) != 0 || !slices.Equal(a.Summary.Approvals.Humans, []string{"local"}) {
		t.Errorf("approvals: %+v", a.Summary.Approvals)
	}
	if _, err := attest.Open(t.Context(), file, ""); err != nil {
		t.Error(err)
	}
}

// A file in which any byte is another one does not verify.
func TestEveryByteCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "default", false)
	w.walk()
	file, _, err := w.file()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(file); i += 1 + len(file)/150 {
		bad := bytes.Clone(file)
		bad[i] ^= 1
		_, err := attest.Open(t.Context(), bad, "")
		wantFault(t, fmt.Sprintf("byte %d of %d, %q", i, len(file), file[i]), err, fault.Tampered)
	}
	lines := bytes.SplitAfter(file, []byte("\n"))
	keyless := bytes.Replace(file, []byte(`"keyid":"SHA256`), []byte(`"keyid":"","was":"SHA256`), 1)
	for name, bad := range map[string][]byte{
		"no result": lines[0], "result alone": lines[1], "lines swapped": append(bytes.Clone(lines[1]), lines[0]...), "a line more": append(bytes.Clone(file), lines[1]...),
		"result twice": slices.Concat(lines[0], lines[1], lines[1]), "a blank": append(bytes.Clone(file), ' '), "cut": file[:len(file)-1], "nothing": nil,
		"a blank line": append(bytes.Clone(file), '\n'), "no keyid": keyless, "a member more": bytes.Replace(file, []byte(`{"payloadType"`), []byte(`{"x":1,"payloadType"`), 1),
		"signed twice": bytes.Replace(file, []byte(`"signatures":[`), []byte(`"signatures":[{"keyid":"","sig":""},`), 1),
	} {
		_, err := attest.Open(t.Context(), bad, "")
		wantFault(t, name, err, fault.Tampered)
	}
}

// Whoever holds the engine key can sign anything: every value of the statements is
// derived again, and another one is refused. Created is all that is only said; the
// result says it too.
func TestForgedAttestationIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "default", false)
	w.walk()
	w.deliver()
	file, _, err := w.file()
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(file), []byte("\n"))
	n := 0
	for i, line := range lines {
		seen := map[string]bool{}
		st := payload(t, line)
		leaves(st, "", func(path string, old any, set func(any)) {
			if seen[shape(path)] {
				return
			}
			seen[shape(path)] = true
			n++
			set(other(old))
			bad := slices.Clone(lines)
			bad[i] = must[[]byte](t)(w.led.Sign(t.Context(), must[[]byte](t)(evidence.Canonical(st))))
			set(old)
			_, err := attest.Open(t.Context(), append(bytes.Join(bad, []byte("\n")), '\n'), "")
			wantFault(t, fmt.Sprintf("line %d %s", i+1, path), err, fault.Tampered)
		})
	}
	if n < 200 {
		t.Errorf("%d values were changed: is the walk broken?", n)
	}
}

// leaves calls fn for every value that is no list and no object.
func leaves(v any, path string, fn func(path string, old any, set func(any))) {
	one := func(name string, x any, set func(any)) {
		switch x.(type) {
		case map[string]any, []any:
			leaves(x, path+"/"+name, fn)
		default:
			fn(path+"/"+name, x, set)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(func(yield func(string) bool) {
			for k := range v {
				if !yield(k) {
					return
				}
			}
		}) {
			one(k, v[k], func(x any) { v[k] = x })
		}
	case []any:
		for i := range v {
			one(fmt.Sprint(i), v[i], func(x any) { v[i] = x })
		}
	}
}

// shape is a path with its indexes taken out.
func shape(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.Trim(p, "0123456789") == "" {
			parts[i] = ""
		}
	}
	return strings.Join(parts, "/")
}

func other(v any) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return "x"
		}
		if v[0] == '1' {
			return "2" + v[1:]
		}
		return "1" + v[1:]
	case json.Number:
		return json.Number("7" + v.String())
	case bool:
		return !v
	}
	return "x"
}

// Entries that an engine recorded and no person signed so: nothing is attested.
func TestUnsignedDecisionsAreNotAttested(t *testing.T) {
	t.Parallel()
	decided := func(change func(*flow.Decided)) func(*world) {
		return func(w *world) {
			w.spoil = func(f flow.Fact) {
				if d, ok := f.(*flow.Decided); ok && d.Decision == flow.Approve {
					change(d)
				}
			}
		}
	}
	said := func(key string, v any) func(*world) {
		return func(w *world) {
			w.sign = func(st map[string]any) {
				if st["decision"] == flow.Approve {
					st[key] = v
				}
			}
		}
	}
	last := ""
	for name, before := range map[string]func(*world){
		"no signature":      decided(func(d *flow.Decided) { d.Signed = nil }),
		"another input":     said("input", evidence.DigestOf([]byte("other"))),
		"another attempt":   said("attempt", 1),
		"another stage":     said("stage", "tester"),
		"another run":       said("run", "run_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
		"another ledger":    said("ledger_id", "x"),
		"another decision":  said("decision", "reject"),
		"another note":      said("note_sha256", evidence.DigestOf([]byte("x"))),
		"another policy":    said("policy", evidence.DigestOf([]byte("x"))),
		"another statement": said("schema", "proveto/submission/v1"),
		"a later head":      said("seen_seq", 1<<40),
		"unknown evidence":  said("cites", []string{"ev_" + strings.Repeat("0", 64)}),
		"no nonce":          said("nonce", ""),
		"another person":    said("_by", "alice"),
		"a stranger":        said("_by", "mallory"),
		"a stranger's name": decided(func(d *flow.Decided) { d.Actor.Principal = "alice" }),
		"an agent as human": decided(func(d *flow.Decided) { d.Actor.Kind = "agent" }),
		"another key named": decided(func(d *flow.Decided) { d.Actor.Key = "SHA256:x" }),
		"another namespace": decided(func(d *flow.Decided) { d.Signed.Namespace = "git" }),
		"a changed note":    decided(func(d *flow.Decided) { d.Note = "lgtm" }),
		"a nonce again": func(w *world) {
			w.sign = func(st map[string]any) {
				if st["schema"] != "proveto/decision/v1" {
					return
				}
				if last != "" {
					st["nonce"] = last
				}
				last, _ = st["nonce"].(string)
			}
		},
		"submitted by another": func(w *world) {
			w.sign = func(st map[string]any) {
				if st["schema"] == "proveto/submission/v1" && st["stage"] == "developer" {
					st["_by"] = "bob"
				}
			}
		},
		"another tree submitted": func(w *world) {
			w.sign = func(st map[string]any) {
				if st["schema"] == "proveto/submission/v1" && st["stage"] == "developer" {
					st["tree"] = tree("x")
				}
			}
		},
		"another plan submitted": func(w *world) {
			w.sign = func(st map[string]any) {
				if st["schema"] == "proveto/submission/v1" && st["stage"] == "planner" {
					st["plan"] = "plan_x"
				}
			}
		},
		"edited evidence": func(w *world) {
			w.spoil = func(f flow.Fact) {
				if m, ok := f.(*flow.Measured); ok && m.Gate == "build" {
					m.Evidence.Metrics = map[string]float64{"share": 1}
				}
			}
		},
		"another end": func(w *world) {
			w.spoil = func(f flow.Fact) {
				if p, ok := f.(*flow.PassedFact); ok && p.Stage == "reviewer" {
					p.After.Status = "open"
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "default", false)
			before(w)
			w.walk()
			_, _, err := w.file()
			wantFault(t, name, err, fault.Tampered, identity.CodeSignatureBad, ledger.CodeCertificateBad)
		})
	}
}

// An entry left out does not go unnoticed where the others depend on it.
func TestMissingEntriesAreNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "default", false)
	w.walk()
	x := w.entries()
	if _, _, _, err := attest.Make(x, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []ledger.Kind{"flow.opened", "flow.plan.submitted", "flow.plan.accepted", "flow.submitted", "flow.measured", "flow.decided", "flow.passed"} {
		less := x
		less.Entries = slices.Clone(x.Entries)
		i := len(x.Entries) - 1
		for ; x.Entries[i].Kind != kind; i-- {
		}
		less.Entries = slices.Delete(less.Entries, i, i+1)
		if _, _, _, err := attest.Make(less, time.Now()); err == nil {
			t.Errorf("without its last %s the run is attested all the same", kind)
		}
	}
}

// Whatever a file holds, opening it ends with an answer; only the example opens.
func FuzzOpen(f *testing.F) {
	file := must[[]byte](f)(os.ReadFile(example))
	f.Add(file[:200])
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"keyid":"","sig":""}]}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		attest.Is(b)
		if _, err := attest.Open(t.Context(), b, ""); err == nil && !bytes.Equal(b, file) {
			t.Errorf("opened: %q", b)
		} else if e := fault.From(err); err != nil && e.Kind != fault.Tampered {
			t.Errorf("%q: %v, want tampered", b, err)
		}
	})
}
