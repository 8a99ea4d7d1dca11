package evidence_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestDigestIsWrittenInOneWay(t *testing.T) {
	t.Parallel()
	d := evidence.DigestOf([]byte("abc"))
	if want := evidence.Digest("sha256:" + abc); d != want {
		t.Errorf("DigestOf = %s, want the published vector %s", d, want)
	}
	if got := d.Hex(); got != abc {
		t.Errorf("Hex = %s, want %s", got, abc)
	}
	for d, want := range map[evidence.Digest]string{d: abc[:12], "sha256:123456789abc": "123456789abc", "sha256:123456789abcd": "123456789abc", "sha256:12": "12", "": ""} {
		if got := d.Short(); got != want {
			t.Errorf("Short of %q = %q, want %q", d, got, want)
		}
	}
	if got, err := evidence.ParseDigest(string(d)); got != d || err != nil {
		t.Errorf("ParseDigest = %s, %v, want it as it was written", got, err)
	}
	for _, bad := range []string{
		"", abc, "sha256:", "sha256:" + abc[:63], "sha256:" + abc + "0", "sha256:" + strings.ToUpper(abc), "sha256:g" + abc[1:], "sha512:" + abc, "sha256:" + abc[:63] + " ",
	} {
		got, err := evidence.ParseDigest(bad)
		if got != "" || !fault.Has(err, "bad_id") || fault.From(err).Kind != fault.Usage {
			t.Errorf("ParseDigest(%q) = %q, %v, want bad_id", bad, got, err)
		}
	}
}

// Lists that join to the same text have digests of their own.
func TestDigestPartsKeepsPartsApart(t *testing.T) {
	t.Parallel()
	if got, want := evidence.DigestParts("a", "bc"), evidence.DigestOf([]byte("1:a2:bc")); got != want {
		t.Errorf("DigestParts = %s, want the digest %s of lengths and parts", got, want)
	}
	seen := map[evidence.Digest][]string{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"1:a", "bc"}, {"a2:bc"}} {
		d := evidence.DigestParts(parts...)
		if seen[d] != nil {
			t.Errorf("%q and %q share a digest", parts, seen[d])
		}
		seen[d] = append([]string{}, parts...)
	}
}

func TestParseTree(t *testing.T) {
	t.Parallel()
	for _, good := range []string{abc[:40], abc} {
		if got, err := evidence.ParseTree(good); string(got) != good || err != nil {
			t.Errorf("ParseTree(%q) = %q, %v", good, got, err)
		}
	}
	for _, bad := range []string{"", abc[:39], abc[:41], abc[:63], abc + "0", strings.ToUpper(abc[:40]), "g" + abc[1:40], "g" + abc[1:]} {
		got, err := evidence.ParseTree(bad)
		if got != "" || !fault.Has(err, "bad_id") || fault.From(err).Kind != fault.Usage {
			t.Errorf("ParseTree(%q) = %q, %v, want bad_id", bad, got, err)
		}
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	b, err := evidence.Canonical(map[string]any{"b": 1.0, "a": "<é>", "A": nil})
	if want := `{"A":null,"a":"<é>","b":1}`; string(b) != want || err != nil {
		t.Errorf("Canonical = %s, %v, want %s", b, err, want)
	}
	for _, tt := range []struct {
		v    any
		want string
	}{
		{make(chan int), "encode chan int: "},
		{[]json.Number{"1e999"}, "canonical form of []json.Number: "},
	} {
		if b, err := evidence.Canonical(tt.v); b != nil || err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Canonical(%T) = %q, %v, want an error that begins %q", tt.v, b, err, tt.want)
		}
	}
}

func TestProbeDigestNamesWhatIsBroken(t *testing.T) {
	t.Parallel()
	p := honest().facts.Probe
	if got, want := p.Digest(), evidence.DigestParts("probe/v1", p.Symbol, "result", "RESULT_ZERO", "result 0", "calc.go", p.Diff); got != want {
		t.Errorf("Digest = %s, want %s", got, want)
	}
	moved := p
	moved.Line, moved.Column = p.Line+10, 3
	if moved.Digest() != p.Digest() {
		t.Error("a probe that only moved is another probe")
	}
}

// probeOf is a probe of the driver, with the diff as it writes it.
func probeOf(file string, line int, before, after string, nth int) evidence.Probe {
	return evidence.Probe{
		Symbol: "example.com/calc.Max", Kind: evidence.ProbeBoundary, Operator: "CONDITIONALS_BOUNDARY", Summary: "> to >=", File: file, Line: line, Nth: nth,
		Diff: fmt.Sprintf("--- a/%s\n+++ b/%[1]s\n@@ -%[2]d,3 +%[2]d,3 @@\n %[3]s\n-\tif a > b {\n+\tif a >= b {\n %[4]s\n", file, line, before, after),
	}
}

func TestProbeDigestIsNoPlace(t *testing.T) {
	t.Parallel()
	p := probeOf("calc.go", 4, "func Max(a, b int) int {", "\t\treturn a", 1)
	for what, same := range map[string]evidence.Probe{
		"whose lines moved":        probeOf("calc.go", 9, "func Max(a, b int) int {", "\t\treturn a", 1),
		"with another line beside": probeOf("calc.go", 4, "\t// the greater one", "\t\treturn a", 1),
		"in another file":          probeOf("max.go", 4, "func Max(a, b int) int {", "\t\treturn a", 1),
	} {
		if same.Digest() != p.Digest() {
			t.Errorf("a probe %s is another probe", what)
		}
	}
	second, changed := p, p
	second.Nth = 2
	changed.Diff = strings.ReplaceAll(p.Diff, "a >= b", "b >= a")
	for what, other := range map[string]evidence.Probe{"at the second of two equal lines": second, "with another change": changed} {
		if other.Digest() == p.Digest() {
			t.Errorf("a probe %s is the same probe", what)
		}
	}
	// What old records are named by.
	old := p
	old.Nth = 0
	if want := evidence.DigestParts("probe/v1", p.Symbol, "boundary", p.Operator, p.Summary, p.File, p.Diff); old.Digest() != want {
		t.Errorf("the digest of an old record = %s, want %s", old.Digest(), want)
	}
	if got := p.Digests(); len(got) != 2 || got[0] != p.Digest() || got[1] != old.Digest() {
		t.Errorf("Digests = %v, want that of the probe and that of old records", got)
	}
	if got := old.Digests(); len(got) != 1 {
		t.Errorf("Digests of an old record = %v, want one", got)
	}
}

func TestProbeKindsAreTriedInOrder(t *testing.T) {
	t.Parallel()
	kinds := []evidence.ProbeKind{
		evidence.ProbeResult, evidence.ProbeCondition, evidence.ProbeBoundary, evidence.ProbeArithmetic, evidence.ProbeStatement, evidence.ProbeConstant, "unknown",
	}
	for i, k := range kinds {
		if got := k.Order(); got != i {
			t.Errorf("Order of %s = %d, want %d", k, got, i)
		}
	}
	words := []evidence.Word{"proven", "refuted", "stale", "not_measured"}
	if n := len(evidence.Words()); n != len(words) {
		t.Fatalf("%d words, want %d", n, len(words))
	}
	for i, w := range evidence.Words() {
		if w != words[i] {
			t.Errorf("word %d is %s, want %s", i, w, words[i])
		}
	}
}
