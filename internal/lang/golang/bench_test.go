package golang

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/sandbox"
)

// BenchmarkFreshRun measures one run of google/uuid's tests in the sandbox: CPU
// of the process alone is reported beside the time of the whole call.
func BenchmarkFreshRun(b *testing.B) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/uuid").Output()
	if err != nil {
		b.Skip("google/uuid is not in the module cache")
	}
	root := b.TempDir()
	if err := os.CopyFS(root, os.DirFS(strings.TrimSpace(string(dir)))); err != nil {
		b.Fatal(err)
	}
	d := New()
	w := lang.Workspace{Root: root, Tree: evidence.Tree(strings.Repeat("a", 40)), Cache: b.TempDir(), Record: func(evidence.Run, sandbox.Output) error { return nil }}
	ps, err := d.Detect(root)
	if err != nil || len(ps) != 1 {
		b.Fatalf("Detect = %v, %v", ps, err)
	}
	scan, err := d.Scan(b.Context(), w, ps[0])
	if err != nil {
		b.Fatal(err)
	}
	s, err := d.Build(b.Context(), w, scan, ps[0].Name)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	run := func(r lang.Request) evidence.RunRecord {
		r.Limits = limits
		got, err := s.Run(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		if rec := got.Record(); rec.Report != evidence.ReportComplete || rec.Exit.Code != 0 {
			b.Fatalf("report %s, exit %d", rec.Report, rec.Exit.Code)
		}
		return got.Record()
	}
	base := run(lang.Request{Purpose: evidence.PurposeBaseline, Observe: true})
	b.Logf("binary %s, observed baseline %d µs CPU", filepath.Base(base.Argv[0]), base.CPUNS/1000)
	var cpu int64
	for b.Loop() {
		cpu += run(lang.Request{Purpose: evidence.PurposeControl, Tests: []string{"TestUUID"}}).CPUNS
	}
	b.ReportMetric(float64(cpu)/1e6/float64(b.N), "cpu-ms/op")
}
