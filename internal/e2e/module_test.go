package e2e

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// serveModule writes a module proxy with one module, as files.
func serveModule(t *testing.T, dir string) {
	t.Helper()
	at := filepath.Join(dir, "example.com", "dep", "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	mod := "module example.com/dep\n\ngo 1.21\n"
	for name, body := range map[string]string{
		"list": "v1.0.0\n", "v1.0.0.info": `{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}`, "v1.0.0.mod": mod,
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(at, "v1.0.0.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for _, file := range [][2]string{{"go.mod", mod}, {"dep.go", "package dep\n\n// Two is two.\nfunc Two() int { return 2 }\n"}} {
		w, err := z.Create("example.com/dep@v1.0.0/" + file[0])
		if err == nil {
			_, err = w.Write([]byte(file[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func goCommand(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// purposes are the purposes of the newest runs, as many as are above skip.
func (w *world) purposes(skip int) []string {
	w.t.Helper()
	var list []struct {
		Summary string `json:"summary"`
	}
	if err := json.Unmarshal(w.must(0, "ledger", "log", "--kind", "run", "--limit", "1000000").Envelope.Data.Entries, &list); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range list[:len(list)-skip] {
		purpose, _, _ := strings.Cut(e.Summary, ":")
		out = append(out, purpose)
	}
	return out
}
