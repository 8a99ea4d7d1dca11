package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

func edit(t *testing.T, name, from, to string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), from) {
		t.Fatalf("%s does not contain %q", name, from)
	}
	write(t, name, strings.Replace(string(b), from, to, 1))
}

func problems(s *lang.Scan) []string {
	out := []string{}
	for _, p := range s.Problems {
		out = append(out, fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Reason))
	}
	return out
}

func names(s *lang.Scan) []string {
	out := []string{}
	for _, x := range s.Symbols {
		out = append(out, descriptors(x.ID))
	}
	slices.Sort(out)
	return out
}

func TestUnusableFilesAreProblems(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- go.mod --
module example.com/m

go 1.21
-- a/a.go --
package a

func Good() int { return 1 }
-- a/broken.go --
package a

func Bad( {
-- b/b.go --
package b

import "example.com/m/a"

func B() string {
	return a.Good()
}
-- c/c_plan9.go --
package c
-- d/d.go --
package d

func D() int { return 1 }
-- d/d_windows.go --
package d
-- miss/m.go --
package miss

import "example.org/nowhere"

func M() { nowhere.F() }
-- sp ace/s.go --
package s
`)
	s := load(t, Request{Root: root}).Scan
	want := []string{
		"a/broken.go:3: does not parse: ",
		"b/b.go:6: type error: cannot use a.Good()",
		"c/c_plan9.go:0: ignored by build constraints",
		"d/d_windows.go:0: ignored by build constraints",
		"miss/m.go:3: dependency_missing: no required module provides package example.org/nowhere",
		"sp ace:0: malformed import path",
	}
	for _, w := range want {
		if !slices.ContainsFunc(problems(s), func(p string) bool { return strings.HasPrefix(p, w) }) {
			t.Errorf("no problem %q in\n%s", w, strings.Join(problems(s), "\n"))
		}
	}
	broken := []string{}
	for _, u := range s.Units {
		if b := u.Broken; b != nil {
			broken = append(broken, fmt.Sprintf("%s %s: %s (%s)", u.ID, b.Code, b.Text, b.Hint))
		}
	}
	if d := cmp.Diff([]string{
		"example.com/m/a build_failed: a/broken.go:3 does not parse: expected ')', found '{' (go vet ./a)",
		"example.com/m/b build_failed: b/b.go:6: cannot use a.Good() (value of type int) as string value in return statement (go vet ./b)",
		"example.com/m/miss dependency_missing: miss/m.go:3: no required module provides package example.org/nowhere (go get example.org/nowhere)",
	}, broken); d != "" {
		t.Errorf("what does not build (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"a/Bad().", "a/Good().", "b/B().", "d/D().", "miss/M()."}, names(s)); d != "" {
		t.Errorf("symbols (-want +got):\n%s", d)
	}
}

func TestUnloadableModulesAreUnmeasured(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, files string
		code        fault.Code
	}{
		{"dependency missing", "-- go.mod --\nmodule example.com/m\n\ngo 1.21\n\nrequire example.org/gone v1.0.0\n-- a.go --\npackage m\n\nimport _ \"example.org/gone\"\n", lang.DependencyMissing},
		{"not required", "-- go.mod --\nmodule example.com/m\n\ngo 1.21\n-- a.go --\npackage m\n\nimport _ \"example.org/gone\"\n", lang.DependencyMissing},
		{"newer go", "-- go.mod --\nmodule example.com/m\n\ngo 1.99\n-- a.go --\npackage m\n", lang.ToolMissing},
		{"go.mod broken", "-- go.mod --\nmodul example.com/m\n-- a.go --\npackage m\n", lang.Configuration},
		{"vendor inconsistent", "-- go.mod --\nmodule example.com/m\n\ngo 1.21\n\nrequire example.org/gone v1.0.0\n-- vendor/modules.txt --\n# nothing\n-- a.go --\npackage m\n\nimport _ \"example.org/gone\"\n", lang.Configuration},
		{"replacement missing", "-- go.mod --\nmodule example.com/m\n\ngo 1.21\n\nrequire example.org/gone v1.0.0\nreplace example.org/gone => ../gone\n-- a.go --\npackage m\n\nimport _ \"example.org/gone\"\n", lang.DependencyMissing},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ans, err := tryLoad(t, Request{Root: unpack(t, c.files), Project: lang.Project{Name: "example.com/m"}})
			if err == nil {
				t.Fatalf("loaded; problems %q", problems(ans.Scan))
			}
			if e := fault.From(err); e.Kind != fault.Unmeasured || e.Code != c.code {
				t.Errorf("error %s/%s %v, want unmeasured/%s", e.Kind, e.Code, e, c.code)
			}
		})
	}
}

// Not parallel: the go command is looked up in the PATH of the process.
func TestMissingGoCommandIsUnmeasured(t *testing.T) {
	root := unpack(t, "-- go.mod --\nmodule example.com/m\n-- a.go --\npackage m\n")
	t.Setenv("PATH", t.TempDir())
	if _, err := tryLoad(t, Request{Root: root}); !fault.Has(err, lang.ToolMissing) {
		t.Errorf("error %v, want tool_missing", err)
	}
}

func TestMalformedRequestsAreUsage(t *testing.T) {
	t.Parallel()
	for _, req := range []Request{{Root: "relative", Out: "/tmp"}, {Root: "/x", Out: "relative"}, {Root: "/x", Project: lang.Project{Dir: "../y"}}} {
		if req.Out == "" {
			req.Out = t.TempDir()
		}
		if _, err := Load(req); fault.From(err) == nil || fault.From(err).Kind != fault.Usage {
			t.Errorf("Load(%+v) = %v, want a usage error", req, err)
		}
	}
	if _, err := Decode([]byte("panic: x")); !fault.Has(err, "bad_reply") {
		t.Errorf("Decode of garbage = %v, want bad_reply", err)
	}
}

const dependent = `
-- go.mod --
module example.com/m

go 1.21
-- low/low.go --
package low

const Size = 1

func Low() int { return 2 }
-- high/high.go --
package high

import "example.com/m/low"

func High() int { return low.Low() }

func Sized() int { return low.Size }
-- apart/apart.go --
package apart

func Apart() int { return 1 }
-- low/low_test.go --
package low_test

import (
	"testing"

	"example.com/m/high"
	"example.com/m/low"
)

func TestLow(t *testing.T) { high.High(); low.Hook() }
-- low/export_test.go --
package low

func Hook() {}
`

func TestOnlyWhatAnEditTouchesIsReadAgain(t *testing.T) {
	t.Parallel()
	root, out := unpack(t, dependent), t.TempDir()
	low := filepath.Join(root, "low/low.go")
	step := func(what string, loaded int) *Answer {
		t.Helper()
		a := load(t, Request{Root: root, Out: out})
		if a.Loaded != loaded || a.Loaded+a.Reused != 4 {
			t.Errorf("%s: %d loaded, %d reused, want %d of 4 loaded", what, a.Loaded, a.Reused, loaded)
		}
		if len(a.Scan.Problems) > 0 {
			t.Errorf("%s: problems %q", what, problems(a.Scan))
		}
		return a
	}
	first := step("first time", 4)
	again := step("unchanged", 0)
	if d := cmp.Diff(first.Scan, again.Scan); d != "" {
		t.Errorf("scan from the cache (-fresh +cached):\n%s", d)
	}
	edit(t, low, "return 2", "return 3")
	if got := changed(digests(first.Scan), digests(step("body edited", 1).Scan)); !slices.Equal(got, []string{"low/Low()."}) {
		t.Errorf("body edit changed %v", got)
	}
	edit(t, low, "Size = 1", "Size = 7")
	if got := changed(digests(first.Scan), digests(step("constant edited", 3).Scan)); !slices.Equal(got, []string{"high/Sized().", "low/Low()."}) {
		t.Errorf("constant edit changed %v", got)
	}
}

func TestDamagedCacheIsReadAgain(t *testing.T) {
	t.Parallel()
	root, out := unpack(t, dependent), t.TempDir()
	first := load(t, Request{Root: root, Out: out})
	entries, err := filepath.Glob(filepath.Join(out, "packages", "*.json"))
	if err != nil || len(entries) != 4 {
		t.Fatalf("cache entries %v, %v", entries, err)
	}
	for i, name := range entries {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		switch i {
		case 0:
			b = b[:len(b)/2]
		case 1:
			b = []byte(strings.Replace(string(b), `"Line":`, `"Line":9`, 1))
		case 2:
			b = nil
		case 3:
			b = []byte(strings.Replace(string(b), "TestCode\":false", "TestCode\":true", 1))
		}
		write(t, name, string(b))
	}
	again := load(t, Request{Root: root, Out: out})
	if d := cmp.Diff(first.Scan, again.Scan); d != "" || again.Loaded < 3 {
		t.Errorf("after damage %d were loaded (-before +after):\n%s", again.Loaded, d)
	}
	entry := filepath.Join(out, "answers")
	answers, err := os.ReadDir(entry)
	if err != nil || len(answers) == 0 {
		t.Fatalf("answers %v, %v", answers, err)
	}
	name := filepath.Join(entry, answers[0].Name())
	write(t, name, "{}")
	_, err = Decode(fmt.Appendf(nil, `{"answer":%q,"digest":"sha256:%064d"}`, name, 0))
	if !fault.Has(err, "digest_mismatch") {
		t.Errorf("Decode of a changed answer = %v, want digest_mismatch", err)
	}
}

func TestLocksKeepCommentsAndNoticeTheRest(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- go.mod --
module example.com/m

go 1.21

require example.org/dep v0.0.0

replace example.org/dep => ./third/dep
-- go.sum --
example.org/x v1.0.0 h1:AAAA=
example.org/y v1.0.0 h1:BBBB=
-- a.go --
package m

import "example.org/dep"

func F() int { return dep.D() }
-- third/dep/go.mod --
module example.org/dep
-- third/dep/dep.go --
package dep

func D() int { return 1 }
-- third/dep/unused/u.go --
package unused
`)
	out := t.TempDir()
	locks := func() evidence.Digest { t.Helper(); return load(t, Request{Root: root, Out: out}).Scan.Locks }
	before := locks()
	edit(t, filepath.Join(root, "go.mod"), "require", "// why\nrequire")
	edit(t, filepath.Join(root, "go.sum"), "example.org/x v1.0.0 h1:AAAA=\nexample.org/y v1.0.0 h1:BBBB=", "example.org/y v1.0.0 h1:BBBB=\nexample.org/x v1.0.0 h1:AAAA=")
	edit(t, filepath.Join(root, "third/dep/unused/u.go"), "package unused", "package unused // edited")
	if got := locks(); got != before {
		t.Errorf("comments, order and unused packages changed the digest of the locks")
	}
	for _, e := range [][3]string{
		{"go.sum", "AAAA", "CCCC"}, {"go.mod", "go 1.21", "go 1.20"}, {"third/dep/dep.go", "return 1", "return 2"},
	} {
		before := locks()
		edit(t, filepath.Join(root, e[0]), e[1], e[2])
		if locks() == before {
			t.Errorf("edit of %s kept the digest of the locks", e[0])
		}
	}
}

// The same sources are built into something else by another setting.
func TestSettingsOfTheBuildAreOfTheToolchain(t *testing.T) {
	t.Parallel()
	root, out := unpack(t, "-- go.mod --\nmodule example.com/m\n\ngo 1.24\n-- a.go --\npackage m\n\nfunc F() int { return 1 }\n-- a_test.go --\npackage m\n\nimport _ \"testing\"\n"), t.TempDir()
	tools := func(env ...string) string {
		return load(t, Request{Root: root, Out: out, Env: append(append(os.Environ(), "CGO_ENABLED="), env...)}).Scan.Toolchain
	}
	plain, other := tools("GOFLAGS="), tools("GOFLAGS=-buildvcs=false")
	if want := plain + " GOFLAGS=-buildvcs=false"; other != want || plain == "" {
		t.Errorf("with a flag the toolchain is %q, want %q", other, want)
	}
}

// In a workspace another member can decide over the versions of all.
func TestVersionsThatAMemberChoosesCount(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- go.work --
go 1.24

use (
	./a
	./b
)

replace example.org/dep => ./dep
-- a/go.mod --
module example.com/a

go 1.24

require example.org/dep v1.0.0
-- a/a.go --
package a

import (
	"example.com/b"
	"example.org/dep"
)

func A() int { return dep.D() + b.B() }
-- b/go.mod --
module example.com/b

go 1.22

require example.org/dep v1.0.0
-- b/b.go --
package b

func B() int { return 1 }
-- dep/go.mod --
module example.org/dep
-- dep/dep.go --
package dep

func D() int { return 1 }
`)
	out := t.TempDir()
	locks := func() evidence.Digest {
		t.Helper()
		return load(t, Request{Root: root, Out: out, Project: lang.Project{Dir: "a", Name: "example.com/a"}}).Scan.Locks
	}
	for _, e := range [][2]string{{"v1.0.0", "v1.1.0"}, {"go 1.22", "go 1.21"}} {
		before := locks()
		edit(t, filepath.Join(root, "b/go.mod"), e[0], e[1])
		if locks() == before {
			t.Errorf("%s became %s in another member and kept the digest of the locks", e[0], e[1])
		}
	}
}

func TestVendoredCodeCounts(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- go.mod --
module example.com/m

go 1.21

require example.org/dep v1.0.0
-- vendor/modules.txt --
# example.org/dep v1.0.0
## explicit
example.org/dep
-- vendor/example.org/dep/dep.go --
package dep

func D() int { return 1 }
-- a.go --
package m

import "example.org/dep"

func F() int { return dep.D() }
`)
	first := load(t, Request{Root: root}).Scan
	if d := cmp.Diff([]string{"F()."}, names(first)); d != "" || len(first.Problems) > 0 {
		t.Errorf("symbols (-want +got):\n%s problems %q", d, problems(first))
	}
	edit(t, filepath.Join(root, "vendor/example.org/dep/dep.go"), "return 1", "return 2")
	if load(t, Request{Root: root}).Scan.Locks == first.Locks {
		t.Error("an edit of vendored code kept the digest of the locks")
	}
}

func TestWorkspaces(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- go.work --
go 1.21

use (
	./a
	./b
)
-- a/go.mod --
module example.com/a

go 1.21
-- a/a.go --
package a

import "example.com/b"

func A() int { return b.B() }
-- b/go.mod --
module example.com/b

go 1.21
-- b/b.go --
package b

func B() int { return 1 }
-- alone/go.mod --
module example.com/alone

go 1.21
-- alone/x.go --
package alone

func X() int { return 1 }
`)
	first := load(t, Request{Root: root, Project: lang.Project{Dir: "a", Name: "example.com/a"}})
	if d := cmp.Diff([]string{"A()."}, names(first.Scan)); d != "" || len(first.Env) > 0 {
		t.Errorf("symbols (-want +got):\n%s env %v", d, first.Env)
	}
	edit(t, filepath.Join(root, "b/b.go"), "return 1", "return 2")
	if load(t, Request{Root: root, Project: lang.Project{Dir: "a", Name: "example.com/a"}}).Scan.Locks == first.Scan.Locks {
		t.Error("an edit of another member of the workspace kept the digest of the locks")
	}
	alone := load(t, Request{Root: root, Project: lang.Project{Dir: "alone"}})
	if d := cmp.Diff([]string{"X()."}, names(alone.Scan)); d != "" || !slices.Equal(alone.Env, []string{"GOWORK=off"}) {
		t.Errorf("symbols (-want +got):\n%s env %v", d, alone.Env)
	}
	if alone.Scan.Project.Name != "example.com/alone" {
		t.Errorf("project name %q, want that of go.mod", alone.Scan.Project.Name)
	}
}

func TestBuildTagsChooseFiles(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- go.mod --
module example.com/m

go 1.13
-- on.go --
// +build special

package m

func On() int { return 1 }
-- off.go --
// +build !special

package m

func Off() int { return 1 }
`)
	if d := cmp.Diff([]string{"Off()."}, names(load(t, Request{Root: root}).Scan)); d != "" {
		t.Errorf("without tags (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"On()."}, names(load(t, Request{Root: root, Tags: []string{"special"}}).Scan)); d != "" {
		t.Errorf("with tags (-want +got):\n%s", d)
	}
}

func TestCgoPackages(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- go.mod --
module example.com/m

go 1.21
-- c.go --
package m

// static int two(void) { return 2; }
import "C"

func Two() int { return int(C.two()) }
-- plain.go --
package m

func Plain() int { return 1 }
-- user/u.go --
package user

import "example.com/m"

func Use() int { return m.Two() }
`)
	env := append(os.Environ(), "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=", "CGO_ENABLED=1")
	want := []string{"Plain().", "Two().", "user/Use()."}
	first := load(t, Request{Root: root, Env: env}).Scan
	if d := cmp.Diff(want, names(first)); d != "" || len(first.Problems) > 0 {
		t.Errorf("with a compiler (-want +got):\n%s problems %q", d, problems(first))
	}
	edit(t, filepath.Join(root, "c.go"), "return 2", "return 3")
	if got := changed(digests(first), digests(load(t, Request{Root: root, Env: env}).Scan)); !slices.Equal(got, []string{"Two()."}) {
		t.Errorf("edit of the C code changed %v, want Two", got)
	}
	without := load(t, Request{Root: root, Env: append(env, "CC=/nonexistent/cc")}).Scan
	if d := cmp.Diff(want, names(without)); d != "" {
		t.Errorf("without a compiler (-want +got):\n%s", d)
	}
	if !slices.ContainsFunc(problems(without), func(p string) bool { return strings.Contains(p, "tool_missing") }) {
		t.Errorf("without a compiler: problems %q, want tool_missing", problems(without))
	}
}

func TestDataOfAUnit(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- go.mod --
module example.com/m

go 1.21
-- a.go --
package m

import _ "embed"

//go:embed static/page.html
var page string

func Page() string { return page }

func Other() int { return 1 }
-- static/page.html --
one
-- testdata/in.txt --
one
-- testdata/sub/x.go --
package one
-- pkg/p.go --
package pkg

func P() int { return 1 }
-- pkg/testdata/own.txt --
one
-- pkg/asm.txt --
one
-- README.md --
one
-- proveto.yaml --
one
-- .ci/run --
one
`)
	out := t.TempDir()
	scan := func() (*lang.Scan, map[string]evidence.Digest) {
		t.Helper()
		s := load(t, Request{Root: root, Out: out}).Scan
		data := map[string]evidence.Digest{}
		for _, u := range s.Units {
			data[u.Dir] = u.Data
		}
		return s, data
	}
	for _, c := range []struct {
		file, unit string
		symbols    []string
	}{
		{"static/page.html", ".", []string{"Page()."}},
		{"testdata/in.txt", ".", []string{}},
		{"testdata/sub/x.go", ".", []string{}},
		{"pkg/testdata/own.txt", "pkg", []string{}},
		{"pkg/asm.txt", "pkg", []string{}},
		{"README.md", "", []string{}},
		{"proveto.yaml", "", []string{}},
		{".ci/run", "", []string{}},
	} {
		s, before := scan()
		edit(t, filepath.Join(root, c.file), "one", "two")
		s2, after := scan()
		for unit := range before {
			if (before[unit] != after[unit]) != (unit == c.unit) {
				t.Errorf("edit of %s: data of %s changed %t", c.file, unit, before[unit] != after[unit])
			}
		}
		if d := cmp.Diff(c.symbols, changed(digests(s), digests(s2))); d != "" {
			t.Errorf("edit of %s changed (-want +got):\n%s", c.file, d)
		}
	}
}
