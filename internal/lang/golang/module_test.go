package golang

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang/mutate"
	"github.com/proveto/proveto/internal/lang/golang/source"
)

func TestDetectFindsModules(t *testing.T) {
	t.Parallel()
	b := setup(t, "testdata/modules.txtar")
	ps, err := b.d.Detect(b.w.Root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range ps {
		got = append(got, fmt.Sprintf("%s %s %s %d", p.Dir, p.Name, p.Manifest, p.TestFiles))
	}
	want := []string{
		". example.com/root go.mod 1",
		"broken example.com/broken broken/go.mod 1",
		"missing example.com/missing missing/go.mod 1",
		"newer example.com/newer newer/go.mod 1",
		"space/a example.com/space/a space/a/go.mod 0",
		"space/b example.com/space/b space/b/go.mod 1",
		"späce dir example.com/odd späce dir/go.mod 1",
		"tags example.com/tags tags/go.mod 2",
		"third example.com/dep third/go.mod 1",
		"vendored example.com/vendored vendored/go.mod 1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Detect (-want +got):\n%s", d)
	}
	if _, err := b.d.Detect(filepath.Join(b.w.Root, "nowhere")); err == nil {
		t.Error("Detect of a directory that does not exist has no error")
	}
}

func TestModulesOfEveryShapeRun(t *testing.T) {
	t.Setenv("GOFLAGS", "-tags=special")
	b := setup(t, "testdata/modules.txtar")
	for _, row := range []struct{ dir, unit, test, symbol string }{
		{".", "example.com/root", "TestDouble", "root.Double"},
		{"third", "example.com/dep", "TestTwice", "dep.Twice"},
		{"vendored", "example.com/vendored", "TestTwo", "vendored.Two"},
		{"tags", "example.com/tags", "TestSpecial", "tags.Special"},
		{"space/b", "example.com/space/b", "TestA", ""},
		{"space/a", "example.com/space/a", "", "a.A"},
		{"späce dir", "example.com/odd", "TestOdd", "odd.Odd"},
	} {
		scan := b.scan(row.dir)
		if row.symbol != "" {
			symbol(t, scan, row.symbol)
		}
		if row.test == "" {
			continue
		}
		s := b.suite(row.dir, row.unit)
		base := b.run(s, lang.Request{Purpose: evidence.PurposeBaseline, Observe: true})
		if base.Outcome(row.test) != evidence.Passed || base.Record().Report != evidence.ReportComplete {
			t.Errorf("%s in %s %s\n%s", row.test, row.dir, base.Outcome(row.test), b.words(base))
			continue
		}
		if row.symbol == "" {
			continue
		}
		killed := false
		for _, p := range s.Probes(symbol(t, scan, row.symbol).ID, []evidence.Run{base}, false) {
			r := b.run(s, lang.Request{Purpose: evidence.PurposeProbe, Probe: &p, Tests: []string{row.test}})
			killed = killed || evidence.Judge(r).Status == evidence.Killed
		}
		if !killed && row.symbol != "root.Double" { // its results are functions: nothing but nil can be put there
			t.Errorf("no probe of %s was killed", row.symbol)
		}
	}
}

func TestWhatCannotBeMeasuredHasACategory(t *testing.T) {
	t.Parallel()
	b := setup(t, "testdata/modules.txtar")
	for _, row := range []struct {
		dir, unit string
		code      fault.Code
		hint      string
	}{
		{"missing", "example.com/missing", lang.DependencyMissing, "go -C missing mod download"},
		{"newer", "example.com/newer", lang.ToolMissing, "GOTOOLCHAIN=go1.99"},
		{"broken", "example.com/broken", lang.BuildFailed, ""},
	} {
		scan, err := b.d.Scan(t.Context(), b.w, b.project(row.dir))
		if err == nil {
			_, err = b.d.Build(t.Context(), b.w, scan, row.unit)
		}
		e := fault.From(err)
		if err == nil || e.Kind != fault.Unmeasured || e.Code != row.code {
			t.Errorf("%s: %v (%s), want %s", row.dir, err, e.Code, row.code)
			continue
		}
		if row.hint != "" && !strings.Contains(strings.Join(e.Hints, "\n"), row.hint) {
			t.Errorf("%s: hints %q, want one with %q", row.dir, e.Hints, row.hint)
		}
	}
}

// A program named go in the checkout is not the toolchain.
func TestGoIsNotFoundInTheCheckout(t *testing.T) {
	b := setup(t, "testdata/calc.txtar")
	bin := filepath.Join(b.w.Root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\nexit 9\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+"bin"+string(filepath.ListSeparator)+os.Getenv("PATH"))
	s := b.suite(".", "example.com/calc")
	if r := b.run(s, lang.Request{}); r.Outcome("TestAdd") != evidence.Passed {
		t.Errorf("TestAdd %s\n%s", r.Outcome("TestAdd"), b.words(r))
	}
}

// The go command refuses to overlay files below the module cache, where it keeps
// toolchains that it downloaded.
func TestToolchainBelowTheModuleCache(t *testing.T) {
	goroot := runtimeGOROOT(t)
	b := setup(t, "testdata/calc.txtar")
	t.Setenv("GOMODCACHE", filepath.Dir(goroot))
	s := b.suite(".", "example.com/calc")
	if r := b.run(s, lang.Request{}); r.Outcome("TestAdd") != evidence.Passed {
		t.Errorf("TestAdd %s\n%s", r.Outcome("TestAdd"), b.words(r))
	}
	if tc := b.d.module(b.w, b.project(".")).toolchain; within(filepath.Dir(goroot), tc.GOROOT) {
		t.Errorf("GOROOT %s lies below the module cache", tc.GOROOT)
	}
}

func runtimeGOROOT(t *testing.T) string {
	t.Helper()
	name := findGo(os.Getenv("PATH"))
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(filepath.Dir(real))
}

func TestDownloadedToolchainIsTheOldestThatWillDo(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	name := func(v string) string {
		return filepath.Join(cache, "golang.org", "toolchain@v0.0.1-"+v+"."+runtime.GOOS+"-"+runtime.GOARCH)
	}
	for _, v := range []string{"go1.30.1", "go1.29.10", "go1.29.9", "go1.27rc1"} {
		if err := os.MkdirAll(name(v), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tc := &toolchain{modCache: cache}
	for need, want := range map[string]string{"go1.29.9": name("go1.29.9"), "go1.29.10": name("go1.29.10"), "go1.30": name("go1.30.1"), "go1.31": ""} {
		if got := tc.downloaded(need); got != want {
			t.Errorf("downloaded(%s) = %s, want %s", need, got, want)
		}
	}
}

// Probes that stand where the compiler complains are dropped, those of appended
// text by file.
func TestBrokenProbesAreFoundByPosition(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "mod", "p"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "mod", "p", "a.go"), []byte("package p\n\n\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	site := func(line int, kind evidence.ProbeKind) mutate.Site {
		return mutate.Site{Probe: evidence.Probe{Symbol: "s", Kind: kind, File: "mod/p/a.go", Line: line, Diff: "d"}}
	}
	r2, c2, c3 := site(2, evidence.ProbeResult), site(2, evidence.ProbeCondition), site(3, evidence.ProbeCondition)
	m := &probed{
		packages: []source.Package{{Path: "x/p"}},
		sites:    map[string][]mutate.Site{"x/p": {r2, c2, c3}},
	}
	for words, want := range map[string][]evidence.Digest{
		"# x/p\np/a.go:3:7: cannot use x\n":                       {c3.Digest()},
		"p/a.go:2: bad\n" + root + "/mod/p/a.go:3:1: also bad\n":  {r2.Digest(), c2.Digest(), c3.Digest()},
		"p/a.go:9:1: in appended text\n":                          {r2.Digest()},
		"/usr/local/go/src/fmt/print.go:2:1: not in the checkout": nil,
		"ld: no space left":                                       nil,
	} {
		got, err := m.broken(lang.Workspace{Root: root}, lang.Project{Dir: "mod"}, []byte(words))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("broken(%q) (-want +got):\n%s", words, d)
		}
	}
}

func TestFingerprintFollowsToolchainAndSettings(t *testing.T) {
	d := New()
	print := func() string {
		t.Helper()
		got, err := d.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	t.Setenv("GOFLAGS", "")
	first := print()
	if first != print() || !strings.HasPrefix(first, "go1.") {
		t.Errorf("Fingerprint = %q, want the release first and always the same", first)
	}
	t.Setenv("GOFLAGS", "-tags=other")
	if got := print(); got == first {
		t.Error("build tags do not change the fingerprint")
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"bin/go": "#!/bin/sh\n", "VERSION": "go1.99.1\ntime now\n"} {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(body), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(root, "bin"))
	if got := print(); !strings.HasPrefix(got, "go1.99.1 ") {
		t.Errorf("Fingerprint = %q, want go1.99.1", got)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := d.Fingerprint(); !fault.Has(err, lang.ToolMissing) {
		t.Errorf("Fingerprint without go = %v, want tool_missing", err)
	}
}
