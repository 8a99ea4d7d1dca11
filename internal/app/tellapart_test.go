package app

import (
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/evidence"
)

func TestTellApart(t *testing.T) {
	t.Parallel()
	const both = "they differ where both sides are equal: test that"
	for _, c := range []struct{ line, summary, want string }{
		{"	if amount ¦> 1000 {", "> replaced by >=", "they differ where amount is 1000: test that"},
		{"	if amount ¦>= big {", ">= replaced by >", "they differ where amount is big: test that"},
		{"	for i := 0; i ¦< len(xs[1:]); i++ {", "< replaced by <=", "they differ where i is len(xs[1:]): test that"},
		{"	return a+b ¦<= c*2", "<= replaced by <", "they differ where a+b is c*2: test that"},
		{"	ok := f(x, y) ¦< z && w", "< replaced by <=", "they differ where f(x, y) is z: test that"},
		{"	if done(x ¦< y) {", "< replaced by <=", "they differ where x is y: test that"},
		{"		c ¦< d {", "< replaced by <=", both}, // the line before may belong to it
		{"	return a ¦< b +", "< replaced by <=", both},
		{"	if s[i] ¦< 'a' {", "< replaced by <=", both},
		{"	if x > ¦1000 {", "1000 incremented", "they differ where x is 1001: test that"},
		{"	if x >= ¦1000 {", "1000 incremented", "they differ where x is 1000: test that"},
		{"	if x < ¦1000 {", "1000 incremented", "they differ where x is 1000: test that"},
		{"	if x <= ¦0x10 {", "0x10 incremented", "they differ where x is 17: test that"},
		{"	if x == ¦3 || y {", "3 incremented", "they differ where x is 3: test that"},
		{"	if ¦0 < x && y {", "0 incremented", "they differ where x is 1: test that"},
		{"	if ¦0 <= x {", "0 incremented", "they differ where x is 0: test that"},
		{"	if ¦9 > x {", "9 incremented", "they differ where x is 9: test that"},
		{"	if ¦9 >= x {", "9 incremented", "they differ where x is 10: test that"},
		{"	if x > ¦10*n {", "10 incremented", ""},
		{"	if x > -¦1 {", "1 incremented", ""},
		{"	if n + ¦1 > x {", "1 incremented", ""},
		{"	x := ¦1000", "1000 incremented", ""},
		{"	return amount/¦50 + 7", "50 incremented", ""},
		{"	y := 1 << ¦3", "3 incremented", ""},
		{"	x >>= ¦3", "3 incremented", ""},
		{"	if <-c > ¦3 {", "3 incremented", ""},
	} {
		kind := evidence.ProbeBoundary
		if strings.HasSuffix(c.summary, "incremented") {
			kind = evidence.ProbeConstant
		}
		line := strings.Replace(c.line, "¦", "", 1)
		tr := evidence.TrialRecord{Status: evidence.Survived, Note: "not_infected", Probe: evidence.Probe{
			Kind: kind, Summary: c.summary, Column: strings.Index(c.line, "¦") + 1, Diff: "--- a/x.go\n+++ b/x.go\n@@ -1,2 +1,2 @@\n f()\n-" + line + "\n+changed\n",
		}}
		if got := tellApart(tr); got != c.want {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
		if ms, _ := mutantViews([]evidence.TrialRecord{tr}, func(evidence.Probe) (string, bool) { return "", false }); ms[0].Hint != c.want {
			t.Errorf("%q: the view says %q, want %q", c.line, ms[0].Hint, c.want)
		}
		tr.Status = evidence.Killed
		if got := tellApart(tr); got != "" {
			t.Errorf("%q, killed: %q, want nothing", c.line, got)
		}
	}
}
