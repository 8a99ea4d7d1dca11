package source

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// modcache copies a module from the module cache, fetching it when needed.
func modcache(t *testing.T, mod string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", mod)
	cmd.Dir = t.TempDir()
	b, err := cmd.Output()
	if err != nil {
		t.Skipf("%s cannot be had here: %v", mod, err)
	}
	var got struct{ Dir string }
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(got.Dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRealModules(t *testing.T) {
	t.Parallel()
	for _, mod := range []string{"github.com/google/uuid@v1.6.0", "github.com/Masterminds/semver/v3@v3.3.1", "github.com/spf13/pflag@v1.0.6", "github.com/pelletier/go-toml/v2@v2.2.3", "github.com/hashicorp/go-version@v1.7.0"} {
		t.Run(mod, func(t *testing.T) {
			name, _, _ := strings.Cut(mod, "@")
			ans := load(t, Request{Root: modcache(t, mod), Project: lang.Project{Name: name, Dir: "."}})
			targets := 0
			for _, s := range ans.Scan.Symbols {
				if s.Excluded == "" {
					targets++
				}
			}
			t.Logf("%s: %d units, %d symbols, %d targets, %d tests, %d calls, %d entry points, %d problems", ans.Scan.Toolchain, len(ans.Scan.Units), len(ans.Scan.Symbols), targets, len(ans.Scan.Tests), len(ans.Scan.Calls), len(ans.Scan.EntryPoints), len(ans.Scan.Problems))
			for _, p := range ans.Scan.Problems {
				t.Logf("%+v", p)
			}
		})
	}
}

var _ = filepath.Join
