package attacks

import (
	"context"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the table in README.md")

func rows(t *testing.T) []Row {
	t.Helper()
	rs, err := Load(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(rs) == 0 {
		t.Fatal("the catalogue is empty")
	}
	return rs
}

func TestRowsAreWellFormed(t *testing.T) {
	t.Parallel()
	id := regexp.MustCompile(`^([0-9]{2}|h[0-9]{2})$`)
	seen := map[string]bool{}
	for _, r := range rows(t) {
		prefix, _, _ := strings.Cut(r.Name, "-")
		if r.ID != prefix || !id.MatchString(r.ID) || seen[r.ID] {
			t.Errorf("%s: id %q; want the folder's own, once", r.Name, r.ID)
		}
		seen[r.ID] = true
		if r.Title == "" || r.Attack == "" || r.Twin == "" || r.Must == "" || r.Guard == "" || len(r.DefendedIn) == 0 || len(r.Cases) == 0 {
			t.Errorf("%s: attack.yaml leaves out a field", r.Name)
		}
		if r.Layered != (r.Second != "") {
			t.Errorf("%s: a layered row names its second layer, another does not", r.Name)
		}
		for _, c := range r.Cases {
			if len(c.Expect.Attack.NotCredited) == 0 {
				t.Errorf("%s: the attack on %s names nothing that must not be credited", r.Name, c.Language)
			}
			if len(c.Expect.Twin.Credited) == 0 && r.ID != "27" {
				t.Errorf("%s: the twin in %s names nothing that must be credited", r.Name, c.Language)
			}
			if cmp.Equal(c.Expect.Attack, c.Expect.Twin) {
				t.Errorf("%s: attack and twin expect the same in %s", r.Name, c.Language)
			}
		}
	}
}

// TestGuardsExist looks a guard up wherever its package exists already.
func TestGuardsExist(t *testing.T) {
	t.Parallel()
	for _, r := range rows(t) {
		parts := strings.Split(r.Guard, ".")
		dir := filepath.Join("..", "internal", parts[0])
		if !hasGo(t, dir) {
			continue
		}
		if name := parts[len(parts)-1]; !declares(t, dir, name) {
			t.Errorf("%s: guard %s: package %s declares no %s", r.Name, r.Guard, parts[0], name)
		}
	}
}

func declares(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				found = found || n.Name.Name == name
			case *ast.TypeSpec:
				found = found || n.Name.Name == name
			case *ast.ValueSpec:
				found = found || slices.ContainsFunc(n.Names, func(i *ast.Ident) bool { return i.Name == name })
			case *ast.Field:
				found = found || slices.ContainsFunc(n.Names, func(i *ast.Ident) bool { return i.Name == name })
			}
			return true
		})
	}
	return found
}

func hasGo(t *testing.T, dir string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(f string) bool { return filepath.Base(f) != "doc.go" })
}

// TestFixturesBuildAndAreGreen runs every suite with plain go test: an attack
// that a plain runner would refuse is none, and neither is a twin. Suites that
// fail by chance are built only.
func TestFixturesBuildAndAreGreen(t *testing.T) {
	t.Parallel()
	for _, r := range rows(t) {
		for _, c := range r.Cases {
			if c.Language != "go" {
				continue
			}
			for _, side := range []string{"base", "attack", "twin"} {
				t.Run(r.Name+"/"+side, func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					if err := Lay(dir, c.Archives(side)...); err != nil {
						t.Fatal(err)
					}
					args := []string{"test", "./..."}
					if slices.Contains(r.Flaky, side) {
						args = []string{"test", "-run=NONE", "./..."}
					}
					if out, err := goTool(t, dir, args...); err != nil {
						t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
					}
				})
			}
		}
	}
}

// goTool runs the go command offline, in an environment that no build server
// shows in.
func goTool(t *testing.T, dir string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(plainEnv(), "GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=off", "HOME="+t.TempDir(),
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	return cmd.CombinedOutput()
}

func plainEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "CI" || strings.HasPrefix(name, "PROVETO_")
	})
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestLayRefusesPathsOutside(t *testing.T) {
	t.Parallel()
	ar := rows(t)[0].Cases[0].Base
	evil := *ar
	evil.Files = slices.Clone(ar.Files)
	evil.Files[0].Name = "../outside.txt"
	if err := Lay(t.TempDir(), &evil); err == nil {
		t.Error("Lay wrote a file outside its directory")
	}
}

func TestReadmeIsCurrent(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- rows: generated from the attack.yaml files -->\n", "<!-- rows end -->"
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(b), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("README.md has no marks for the table of rows")
	}
	want := Table(rows(t))
	if *update {
		if err := os.WriteFile("README.md", []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("README.md is not current; run go test ./attacks -update (-want +got):\n%s", diff)
	}
}
