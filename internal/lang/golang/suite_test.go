package golang

import (
	"testing"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

func TestSuiteKillsAndSpares(t *testing.T) {
	b := setup(t, "testdata/calc.txtar")
	scan := b.scan(".")
	s := b.suite(".", "example.com/calc")
	base := b.run(s, lang.Request{Purpose: evidence.PurposeBaseline, Observe: true})
	if rec := base.Record(); rec.Report != evidence.ReportComplete || rec.Exit.Code != 0 {
		t.Fatalf("baseline: %s exit %d\n%s", rec.Report, rec.Exit.Code, b.words(base))
	}
	for _, want := range []struct {
		symbol string
		status evidence.Status
	}{
		{"calc.Add", evidence.Killed},
		{"calc.Unasserted", evidence.Survived},
	} {
		sym := symbol(t, scan, want.symbol)
		probes := s.Probes(sym.ID, []evidence.Run{base}, false)
		if len(probes) == 0 {
			t.Fatalf("no probes of %s", want.symbol)
		}
		for _, p := range probes {
			r := b.run(s, lang.Request{Purpose: evidence.PurposeProbe, Probe: &p, Differ: true})
			if j := evidence.Judge(r); j.Status != want.status {
				t.Errorf("%s with %s: %s %s, want %s\n%s", want.symbol, p.Summary, j.Status, j.Code, want.status, b.words(r))
			}
		}
	}
}
