package mutate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// loaded is one package of a module on disk, with its tests.
type loaded struct {
	Input
	dir string
}

// load type-checks every package of the module in dir, each with its tests.
func load(t testing.TB, dir string) []loaded {
	t.Helper()
	sources := make(map[string][]byte)
	cfg := &packages.Config{
		Dir:   dir,
		Tests: true,
		Env:   append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off"),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile | packages.NeedModule | packages.NeedForTest,
	}
	pkgs, err := packages.Load(cfg, "./...")
	if err != nil {
		t.Fatal(err)
	}
	chosen := make(map[string]*packages.Package)
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Fatalf("%s: %v", p.ID, e)
		}
		if !strings.HasSuffix(p.PkgPath, ".test") && (chosen[p.PkgPath] == nil || p.ForTest != "") {
			chosen[p.PkgPath] = p
		}
	}
	var out []loaded
	for _, p := range chosen {
		for _, f := range p.Syntax {
			name := p.Fset.File(f.FileStart).Name()
			if sources[name], err = os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
		path := p.PkgPath
		out = append(out, loaded{dir: p.Dir, Input: Input{
			Path: path, Fset: p.Fset, Files: p.Syntax, Sources: sources, Types: p.Types, Info: p.TypesInfo,
			SymbolFunc: func(d *ast.FuncDecl) string {
				if d.Recv != nil {
					return path + "." + recvName(d.Recv.List[0].Type) + "." + d.Name.Name
				}
				return path + "." + d.Name.Name
			},
			RelFunc: func(name string) string {
				rel, err := filepath.Rel(dir, name)
				if err != nil {
					t.Fatal(err)
				}
				return filepath.ToSlash(rel)
			},
		}})
	}
	return out
}

func recvName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return recvName(e.X)
	case *ast.IndexExpr:
		return recvName(e.X)
	case *ast.IndexListExpr:
		return recvName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// overlay writes the instrumented packages and the stand-in for the controller
// below dir and returns the file for go's -overlay.
func overlay(t *testing.T, dir string, pkgs []loaded, outs []Output) string {
	t.Helper()
	standin, err := filepath.Abs("testdata/standin/proveto_standin.go")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{filepath.Join(goroot(t), "src/testing/proveto_standin.go"): standin}
	n := 0
	put := func(name string, content []byte) {
		n++
		to := filepath.Join(dir, fmt.Sprintf("o%d.go", n))
		write(t, to, content)
		replace[name] = to
	}
	for i, p := range pkgs {
		for name, content := range outs[i].Files {
			put(name, content)
		}
		name := ExtraName
		if strings.HasSuffix(p.Path, "_test") {
			name = "00_proveto_x_test.go"
		}
		put(filepath.Join(p.dir, name), outs[i].Extra)
	}
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	write(t, file, body)
	return file
}

func goroot(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func write(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// command runs a program and returns its standard output; it must succeed.
func command(t testing.TB, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off"), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out.String(), errs.String())
	}
	return out.String()
}

// attempt runs a program with little processor time and memory, and returns
// what it printed and how it ended: its exit code and the first line of its
// complaint. Of a program that was stopped only that is told.
func attempt(dir string, env []string, name string, args ...string) string {
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -t 1 && ulimit -v 3000000 && exec "$@"`, "sh", name}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOTRACEBACK=none", "GOGC=50"), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); err == nil || code > 0 {
		first, _, _ := strings.Cut(errs.String(), "\n")
		if strings.Contains(errs.String(), "out of memory") || strings.Contains(errs.String(), "stack overflow") || strings.Contains(errs.String(), "stack exceeds") {
			return "stopped"
		}
		return fmt.Sprintf("%sexit %d %s", out.String(), code, first)
	}
	return "stopped"
}

func instrument(t *testing.T, pkgs []loaded) []Output {
	t.Helper()
	var outs []Output
	for _, p := range pkgs {
		out, err := Instrument(p.Input)
		if err != nil {
			t.Fatalf("Instrument(%s): %v", p.Path, err)
		}
		outs = append(outs, out)
	}
	return outs
}

// corpus copies the fixture package into a module of its own with a program
// that runs it.
func corpus(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/corpus")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.mod"), []byte("module corpus\n\ngo 1.22\n"))
	write(t, filepath.Join(dir, "cmd/main.go"), []byte("package main\n\nimport \"corpus\"\n\nfunc main() { corpus.Main() }\n"))
	return dir
}

// only is the package with the given path.
func only(t testing.TB, pkgs []loaded, path string) loaded {
	t.Helper()
	for _, p := range pkgs {
		if p.Path == path {
			return p
		}
	}
	t.Fatalf("no package %s", path)
	return loaded{}
}

// parallel runs f for 0 to n-1 on all processors.
func parallel(n int, f func(int)) {
	next := make(chan int)
	done := make(chan bool)
	for range runtime.NumCPU() {
		go func() {
			for i := range next {
				f(i)
			}
			done <- true
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	for range runtime.NumCPU() {
		<-done
	}
}
