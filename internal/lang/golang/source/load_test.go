package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/lang"
)

// load runs the whole path of the helper: request, reply, answer.
func load(t *testing.T, req Request) *Answer {
	t.Helper()
	ans, err := tryLoad(t, req)
	if err != nil {
		t.Fatalf("load %s: %v", req.Project.Dir, err)
	}
	return ans
}

func tryLoad(t *testing.T, req Request) (*Answer, error) {
	t.Helper()
	if req.Out == "" {
		req.Out = t.TempDir()
	}
	if req.Project.Dir == "" {
		req.Project.Dir = "."
	}
	if req.Env == nil {
		req.Env = append(os.Environ(), "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=")
	}
	in, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code := Serve(bytes.NewReader(in), &out)
	ans, err := Decode(out.Bytes())
	if (code == 0) != (err == nil) {
		t.Fatalf("Serve = %d, Decode: %v", code, err)
	}
	return ans, err
}

// realModules are at fixed versions. symbols is the number of lines that begin
// with "func" in the files that are built (node_js.go of uuid is not); targets
// and problem are what a scan gave once, to notice changes.
var realModules = []struct {
	mod                       string
	symbols, targets, problem int
}{
	{"github.com/google/uuid@v1.6.0", 136, 71, 1},
	{"github.com/Masterminds/semver/v3@v3.3.1", 134, 59, 0},
	{"github.com/spf13/pflag@v1.0.6", 846, 632, 0},
	{"github.com/pelletier/go-toml/v2@v2.2.3", 1040, 283, 0},
	{"github.com/hashicorp/go-version@v1.7.0", 77, 51, 0},
}

// modcache copies a module from the module cache, fetching it and what it needs.
func modcache(t *testing.T, mod string) string {
	t.Helper()
	if os.Getenv("PROVETO_LONG") == "" {
		t.Skip("fetches a module: set PROVETO_LONG=1")
	}
	cmd := exec.Command("go", "mod", "download", "-json", mod)
	cmd.Dir = t.TempDir()
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", mod, err)
	}
	var got struct{ Dir string }
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "checkout")
	if err := os.CopyFS(dir, os.DirFS(got.Dir)); err != nil {
		t.Fatal(err)
	}
	if out, err := goCommand(dir, "mod", "download").CombinedOutput(); err != nil {
		t.Fatalf("dependencies of %s: %v\n%s", mod, err, out)
	}
	return dir
}

func goCommand(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOTOOLCHAIN=local")
	return cmd
}

func TestRealModules(t *testing.T) {
	t.Parallel()
	for _, c := range realModules {
		t.Run(c.mod, func(t *testing.T) {
			t.Parallel()
			root := modcache(t, c.mod)
			s := load(t, Request{Root: root}).Scan
			targets, ids := 0, map[string]bool{}
			for _, x := range s.Symbols {
				if ids[x.ID] {
					t.Errorf("two symbols are named %s", x.ID)
				}
				ids[x.ID] = true
				if x.Excluded == "" {
					targets++
				}
			}
			if len(s.Symbols) != c.symbols || targets != c.targets || len(s.Problems) != c.problem {
				t.Errorf("%d symbols, %d targets, problems %q; want %d, %d, %d", len(s.Symbols), targets, problems(s), c.symbols, c.targets, c.problem)
			}
			// The test binaries list the same tests, except that they also list benchmarks.
			out, err := goCommand(root, "test", "-vet=off", "-list", ".", "./...").Output()
			if err != nil {
				t.Fatalf("go test -list: %v", err)
			}
			var want, got []string
			for line := range strings.Lines(string(out)) {
				if line = strings.TrimSpace(line); !strings.ContainsAny(line, " \t") && line != "" && !strings.HasPrefix(line, "Benchmark") {
					want = append(want, line)
				}
			}
			for _, x := range s.Tests {
				got = append(got, x.Name)
			}
			slices.Sort(want)
			slices.Sort(got)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("tests (-listed +scanned):\n%s", d)
			}
		})
	}
}

// BenchmarkLoad reads a module of 50,000 functions in 50 packages with a warm
// build cache: whole, and again after an edit of one body.
func BenchmarkLoad(b *testing.B) {
	root := b.TempDir()
	put := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	put("go.mod", "module example.com/big\n\ngo 1.21\n")
	source := func(p int, salt string) string {
		s := &strings.Builder{}
		fmt.Fprintf(s, "package p%d\n\nimport \"fmt\"\n\n", p)
		if p > 0 {
			fmt.Fprintf(s, "import before \"example.com/big/p%d\"\n\n", p/2)
		}
		fmt.Fprintf(s, "type T struct{ n int }\n\nvar table = []int{1, 2, %d}\n\nconst limit = %d\n\n", p, p+10)
		for f := range 1000 {
			fmt.Fprintf(s, "// F%[1]d works.\nfunc F%[1]d(t *T, x int) (string, error) {\n", f)
			fmt.Fprintf(s, "\tif x < 0 || t == nil {\n\t\treturn \"\", fmt.Errorf(\"negative %%d\", x)\n\t}\n\tfor i, v := range table {\n\t\tif v > limit {\n\t\t\tt.n += i * x\n\t\t}\n\t}\n")
			if f > 0 {
				fmt.Fprintf(s, "\tif t.n > %d {\n\t\treturn F%d(t, x-1)\n\t}\n", f, f-1)
			} else if p > 0 {
				fmt.Fprintf(s, "\tbefore.F999(nil, x)\n")
			}
			fmt.Fprintf(s, "\treturn fmt.Sprint(t.n, x, %q), nil\n}\n\n", salt)
		}
		return s.String()
	}
	for p := range 50 {
		put(fmt.Sprintf("p%d/p.go", p), source(p, ""))
		put(fmt.Sprintf("p%d/p_test.go", p), fmt.Sprintf("package p%d\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) { F999(&T{}, 1) }\n", p))
	}
	run := func(b *testing.B, out string, loaded int) {
		ans, err := Load(Request{Root: root, Out: out, Project: lang.Project{Dir: "."}})
		if err != nil {
			b.Fatal(err)
		}
		if len(ans.Scan.Symbols) != 50050 || ans.Loaded != loaded || len(ans.Scan.Problems) > 0 {
			b.Fatalf("%d symbols, %d loaded, problems %v", len(ans.Scan.Symbols), ans.Loaded, ans.Scan.Problems)
		}
	}
	warm := b.TempDir()
	run(b, warm, 50)
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			run(b, b.TempDir(), 50)
		}
	})
	b.Run("edit", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			put("p40/p.go", source(40, fmt.Sprint("salt", i)))
			run(b, warm, 1)
		}
	})
}
