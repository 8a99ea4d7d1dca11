package mutate

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// modules are real ones, old and new in their go line, with and without
// generics, and each with a suite of its own.
var modules = []struct {
	path, version string
	sites         int // at least
	step          int // of the plain sabotages that are type-checked
}{
	{"github.com/google/uuid", "v1.6.0", 700, 29},
	{"github.com/Masterminds/semver/v3", "v3.3.1", 700, 37},
	{"github.com/spf13/pflag", "v1.0.6", 2500, 211},
	{"github.com/pelletier/go-toml/v2", "v2.2.3", 4000, 401},
}

// TestRealModulesStayGreen instruments real modules and runs their suites with
// nothing switched on and while observing.
func TestRealModulesStayGreen(t *testing.T) {
	if os.Getenv("PROVETO_LONG") == "" {
		t.Skip("builds and runs the suites of four modules: set PROVETO_LONG=1")
	}
	for _, m := range modules {
		t.Run(filepath.Base(filepath.Dir(m.path))+"/"+filepath.Base(m.path), func(t *testing.T) {
			dir := fetch(t, m.path, m.version)
			pkgs := load(t, dir)
			outs := instrument(t, pkgs)
			sites, skipped, lines := 0, 0, 0
			for i, out := range outs {
				sites, skipped = sites+len(out.Sites), skipped+len(out.Skipped)
				checkPlains(t, pkgs[i], out.Sites, m.step)
				for name := range out.Files {
					if n := bytes.Count(out.Files[name], []byte("\n")); n > 0 {
						lines += bytes.Count(pkgs[i].Sources[name], []byte("\n"))
					}
				}
			}
			t.Logf("%s: %d packages, %d lines, %d sites, %d places skipped", m.path, len(pkgs), lines, sites, skipped)
			if sites < m.sites {
				t.Errorf("%d sites, want at least %d", sites, m.sites)
			}
			tmp := t.TempDir()
			file := overlay(t, tmp, pkgs, outs)
			args := []string{"test", "-count=1", "-vet=off", "-overlay", file, "./..."}
			command(t, dir, nil, "go", args...)
			log := filepath.Join(tmp, "log")
			command(t, dir, []string{"PVT_LOG=" + log}, "go", args...)
			if seen, err := os.ReadFile(log); err != nil || !bytes.Contains(seen, []byte("hit "+m.path)) {
				t.Errorf("observing saw nothing of %s: %v", m.path, err)
			}
		})
	}
}

// fetch copies a module from the module cache to a place where go may write.
func fetch(t testing.TB, path, version string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", path+"@"+version)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	var found struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &found); jsonErr != nil || found.Dir == "" {
		t.Skipf("%s@%s cannot be had: %v %s", path, version, err, found.Error)
	}
	dir := filepath.Join(t.TempDir(), "m")
	if err := os.CopyFS(dir, os.DirFS(found.Dir)); err != nil {
		t.Fatal(err)
	}
	command(t, dir, nil, "chmod", "-R", "u+w", ".")
	return dir
}

// BenchmarkInstrument gives the processor time for pflag, whose package has about 6,000
// lines without its tests.
func BenchmarkInstrument(b *testing.B) {
	p := only(b, load(b, fetch(b, "github.com/spf13/pflag", "v1.0.6")), "github.com/spf13/pflag")
	lines := 0
	for _, f := range p.Files {
		lines += p.Fset.File(f.FileStart).LineCount()
	}
	before := cpu(b)
	for b.Loop() {
		if _, err := Instrument(p.Input); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpu(b)-before).Seconds()*1000/float64(b.N)/float64(lines)*1000, "cpu-ms/kline")
}

// cpu is the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
