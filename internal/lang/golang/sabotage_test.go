package golang

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/lang"
)

func TestSkipTestNamesTheTestAlone(t *testing.T) {
	t.Parallel()
	src := []byte("package a\n\nimport \"testing\"\n\nfunc TestA(tb *testing.T) { tb.Log(1) }\nfunc TestB(t *testing.T) {}\nfunc TestC(_ *testing.T) {}\n")
	got, ok := New().SkipTest("a_test.go", src, "TestA")
	if !ok || strings.Count(string(got), "SkipNow") != 1 || !strings.Contains(string(got), "func TestA(tb *testing.T) {\n\ttb.SkipNow()\n tb.Log(1) }") {
		t.Errorf("SkipTest = %v\n%s", ok, got)
	}
	for _, test := range []string{"TestC", "TestNone"} {
		if _, ok := New().SkipTest("a_test.go", src, test); ok {
			t.Errorf("%s was made to skip itself", test)
		}
	}
	if _, ok := New().SyntaxError("README.md", nil); ok {
		t.Error("a text was given a syntax error")
	}
}

func TestOriginsTellACopyFromAStub(t *testing.T) {
	t.Parallel()
	const name, version = "github.com/inconshreveable/mousetrap", "v1.1.0"
	const mod = "module example.test/m\n\ngo 1.22\n\nrequire " + name + " " + version + "\n"
	const sum = name + " v1.1.0 h1:wN+x4NVGpMsO7ErUn/mUI3vEoE6Jt13X2s0bqwp9tc8=\n"
	origin := func(files map[string]string) string {
		root := t.TempDir()
		for path, body := range files {
			path = filepath.Join(root, filepath.FromSlash(path))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		w := lang.Workspace{Root: root, Cache: t.TempDir()}
		o, err := New().Origins(w, lang.Project{Dir: ".", Name: "example.test/m"})
		if err != nil {
			t.Fatal(err)
		}
		return o[name]
	}
	s, err := newSettings(lang.Workspace{})
	if err != nil {
		t.Fatal(err)
	}
	var tc toolchain
	if err := tc.caches(s, lang.Workspace{Cache: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	real := map[string]string{} // the module as it is in the module cache
	dir := filepath.Join(tc.modCache, filepath.FromSlash(name)+"@"+version)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		real[e.Name()] = string(b)
	}
	at := func(prefix string, edit string, more ...string) map[string]string {
		out := map[string]string{"go.mod": mod, "go.sum": sum}
		for file, body := range real {
			if file == "trap_others.go" {
				body += edit
			}
			out[prefix+file] = body
		}
		if len(more) > 0 {
			out["go.mod"] += more[0]
		}
		return out
	}
	const replace = "\nreplace " + name + " => ./copy\n"
	for _, row := range []struct {
		what  string
		files map[string]string
		want  string
	}{
		{"the version", map[string]string{"go.mod": mod}, version},
		{"a copy of the version in a directory", at("copy/", "", replace), version},
		{"a stub in a directory", at("copy/", "// edited\n", replace), "directory ./copy"},
		{"a vendored copy", at("vendor/"+name+"/", ""), version},
		{"an edited vendored copy", at("vendor/"+name+"/", "// edited\n"), "edited copy in vendor/" + name},
		{"another module", map[string]string{"go.mod": mod + "\nreplace " + name + " => example.test/other v1.0.0\n"}, "example.test/other@v1.0.0"},
	} {
		if got := origin(row.files); got != row.want {
			t.Errorf("%s: %q, want %q", row.what, got, row.want)
		}
	}
}
