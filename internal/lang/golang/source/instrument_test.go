package source

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang/mutate"
)

// overlayFile is what go's -overlay reads for an answer, with a small stand-in
// for the controller in package testing.
func overlayFile(t *testing.T, ans *Answer) string {
	t.Helper()
	out, err := goCommand(t.TempDir(), "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	standin, err := filepath.Abs("../mutate/testdata/standin/proveto_standin.go")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{filepath.Join(strings.TrimSpace(string(out)), "src/testing/proveto_standin.go"): standin}
	for _, p := range ans.Packages {
		for _, files := range []map[string]string{p.Files, p.Extra} {
			for from, to := range files {
				replace[from] = to
			}
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "overlay.json")
	write(t, name, string(b))
	return name
}

const guarded = `
-- go.mod --
module example.com/m

go 1.13
-- m.go --
package m

import "example.com/m/low"

func Twice(n int) int { return low.Add(n, n) }
-- low/low.go --
package low

func Add(a, b int) int { return a + b }
-- low/broken_test.go --
package low

func TestBroken(t *testing.T) {}
-- m_test.go --
package m

import "testing"

func TestInside(t *testing.T) {
	if Twice(2) != 4 {
		t.Error("wrong inside")
	}
}
-- x_test.go --
package m_test

import (
	"testing"

	"example.com/m"
)

func TestOutside(t *testing.T) {
	if m.Twice(3) != 6 {
		t.Error("wrong outside")
	}
}
`

// TestInstrumentedSourcesRun builds the tests of one unit with the probes of all
// packages and switches one on: also that of a package whose own tests do not
// compile.
func TestInstrumentedSourcesRun(t *testing.T) {
	t.Parallel()
	root := unpack(t, guarded)
	ans := load(t, Request{Root: root, Instrument: true})
	var paths []string
	var low Package
	for _, p := range ans.Packages {
		paths = append(paths, p.Path)
		if p.Path == "example.com/m/low" {
			low = p
		}
	}
	slices.Sort(paths)
	if d := cmp.Diff([]string{"example.com/m", "example.com/m/low", "example.com/m_test"}, paths); d != "" {
		t.Fatalf("packages (-want +got):\n%s", d)
	}
	sites, err := low.Sites()
	if err != nil || len(sites) == 0 {
		t.Fatalf("sites %v, %v", sites, err)
	}
	bin := filepath.Join(t.TempDir(), "m.test")
	if out, err := goCommand(root, "test", "-c", "-vet=off", "-overlay", overlayFile(t, ans), "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	run := func(site int) string {
		cmd := goCommand(root)
		cmd.Path, cmd.Args = bin, []string{bin}
		if site > 0 {
			cmd.Env = append(cmd.Env, "PVT_SITE="+low.Path+" "+string(rune('0'+site)))
		}
		out, err := cmd.CombinedOutput()
		if (err == nil) != (site == 0) {
			t.Fatalf("site %d: %v\n%s", site, err, out)
		}
		return string(out)
	}
	run(0)
	for _, want := range []string{"wrong inside", "wrong outside"} {
		if out := run(1); !strings.Contains(out, want) {
			t.Errorf("with %s on: no %q in\n%s", sites[0].Summary, want, out)
		}
	}
}

func TestDroppedSitesAreLeftOut(t *testing.T) {
	t.Parallel()
	root, out := unpack(t, guarded), t.TempDir()
	req := Request{Root: root, Out: out, Instrument: true}
	all := func(a *Answer) map[evidence.Digest]string {
		t.Helper()
		got := map[evidence.Digest]string{}
		for _, p := range a.Packages {
			sites, err := p.Sites()
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range sites {
				got[s.Probe.Digest()] = p.Path
			}
		}
		return got
	}
	first := all(load(t, req))
	var victim mutate.Site
	for _, p := range load(t, req).Packages {
		if sites, err := p.Sites(); err == nil && p.Path == "example.com/m/low" {
			victim = sites[0]
		}
	}
	req.Drop = []evidence.Digest{victim.Probe.Digest()}
	again := load(t, req)
	second := all(again)
	if _, there := second[victim.Probe.Digest()]; there || len(second) != len(first)-1 {
		t.Errorf("%d sites, want %d without %s", len(second), len(first)-1, victim.Summary)
	}
	if again.Loaded != 1 {
		t.Errorf("%d packages were read again, want the one with the site", again.Loaded)
	}
	if third := load(t, req); third.Loaded != 0 || len(all(third)) != len(second) {
		t.Errorf("with the same drop: %d packages read, %d sites", third.Loaded, len(all(third)))
	}
}

func TestChangedSitesFileIsNoticed(t *testing.T) {
	t.Parallel()
	ans := load(t, Request{Root: unpack(t, guarded), Instrument: true})
	p := ans.Packages[0]
	write(t, p.SitesFile, "[]")
	if _, err := p.Sites(); !fault.Has(err, "digest_mismatch") {
		t.Errorf("Sites of a changed file: %v, want digest_mismatch", err)
	}
}

func TestScanOnlyWritesNoSources(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	ans := load(t, Request{Root: unpack(t, guarded), Out: out})
	if _, err := os.Stat(filepath.Join(out, "overlay")); !os.IsNotExist(err) || len(ans.Packages) > 0 {
		t.Errorf("overlay directory: %v, packages %d", err, len(ans.Packages))
	}
}

// TestRealModulesRunInstrumented builds every test of the real modules with all
// probes off: they must pass as they do without.
func TestRealModulesRunInstrumented(t *testing.T) {
	t.Parallel()
	for _, c := range realModules {
		t.Run(c.mod, func(t *testing.T) {
			root := modcache(t, c.mod)
			ans := load(t, Request{Root: root, Project: lang.Project{Dir: "."}, Instrument: true})
			n := 0
			for _, p := range ans.Packages {
				sites, err := p.Sites()
				if err != nil {
					t.Fatal(err)
				}
				n += len(sites)
			}
			out, err := goCommand(root, "test", "-vet=off", "-overlay", overlayFile(t, ans), "./...").CombinedOutput()
			if err != nil {
				t.Fatalf("%d sites: %v\n%s", n, err, out)
			}
			if n < c.targets {
				t.Errorf("%d sites for %d targets", n, c.targets)
			}
			t.Logf("%s: %d packages, %d sites", c.mod, len(ans.Packages), n)
		})
	}
}
