package archtest

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the generated part of docs/concepts.md")

func list(t *testing.T, dir string) Module {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
	if dir == "../.." {
		cmd.Env = append(os.Environ(), "GOWORK=off")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v", dir, err)
	}
	m, err := Load(out)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestModuleKeepsTheArchitecture(t *testing.T) {
	t.Parallel()
	m := list(t, "../..")
	bad, absent := Check(m, Table)
	for _, v := range bad {
		t.Error(v)
	}
	if len(absent) > 0 {
		t.Logf("rows of packages that do not exist yet: %s", strings.Join(absent, ", "))
	}
}

// TestProbes feeds modules that break one rule each, and close relatives that
// break none: every rule has been seen to reject.
func TestProbes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no probes: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			write(t, dir, "go.mod", []byte("module github.com/proveto/proveto\n\ngo 1.26.0\n"))
			want := ""
			for _, f := range ar.Files {
				if f.Name == "want" {
					want = strings.TrimSpace(string(f.Data))
					continue
				}
				write(t, dir, f.Name, f.Data)
			}
			if strings.HasPrefix(file, "testdata/refused/") && want == "" {
				t.Fatal("a refused probe says in its file want what must be found")
			}
			bad, _ := Check(list(t, dir), Table)
			var got []string
			for _, v := range bad {
				got = append(got, v.Rule+" "+v.Where)
			}
			if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryRuleHasAProbe(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/refused/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range ar.Files {
			for _, line := range strings.Split(string(f.Data), "\n") {
				if rule, _, ok := strings.Cut(line, " "); ok && f.Name == "want" {
					seen[rule] = true
				}
			}
		}
	}
	rules := []string{"no_row", "arrow", "reaches", "dot_import"}
	for _, p := range []Power{StartsProcesses, SpeaksSQL, UsesSQLTypes, Exits, RecordsRuns, LoadsRuns, HasInit} {
		rules = append(rules, string(p))
	}
	for _, r := range rules {
		if !seen[r] {
			t.Errorf("no fixture under testdata/refused was refused by rule %s", r)
		}
	}
}

func TestTableIsSane(t *testing.T) {
	t.Parallel()
	rows := map[string]Row{}
	for _, r := range Table {
		if _, twice := rows[r.Path]; twice {
			t.Errorf("%s has two rows", r.Path)
		}
		if r.Why == "" {
			t.Errorf("%s has no reason", r.Path)
		}
		rows[r.Path] = r
	}
	for _, r := range Table {
		for _, to := range r.Along {
			if target, ok := rows[to]; !ok || target.Floor != r.Floor {
				t.Errorf("%s: the arrow to %s leads to no row of the same floor", r.Path, to)
			}
		}
		for _, to := range append(append([]string{}, r.Only...), r.Never...) {
			if _, ok := rows[to]; !ok {
				t.Errorf("%s names %s, which has no row", r.Path, to)
			}
		}
	}
}

func TestConceptsShowTheTable(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../docs/concepts.md", "<!-- packages: generated from internal/archtest -->\n", "<!-- packages end -->"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(b), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no marks for the generated part", file)
	}
	want := Markdown(Table)
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not current; run go test ./internal/archtest -update (-want +got):\n%s", file, diff)
	}
}

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
