package source

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/proveto/proveto/internal/lang"
)

const tornSource = `package m

import "fmt"

type T[P any] struct{ p P }

var table = map[string]func(int) int{"x": func(n int) int { return n + 1 }}

const c, d = iota, "x"

func (t *T[P]) Show(n int) (s string, err error) {
	defer func() { _ = recover() }()
	for i := range n {
		switch { case i > 1: s += fmt.Sprint(t.p, table["x"](i)); default: }
	}
	return s, nil
}

func Last() int { return c }
`

// A file can be torn anywhere; the rest of its package is read all the same, and
// what can be seen of its functions is listed.
func TestTornFilesAreRead(t *testing.T) {
	t.Parallel()
	root := unpack(t, "-- go.mod --\nmodule example.com/m\n\ngo 1.22\n-- a.go --\n"+tornSource+"-- b.go --\npackage m\n\nfunc Whole() int { return Last() }\n")
	req, file := Request{Root: root, Instrument: true}, filepath.Join(root, "a.go")
	if u := load(t, req).Scan.Units[0]; u.Broken != nil {
		t.Fatalf("the whole file: %+v", u.Broken)
	}
	m := &module{req: Request{Root: root}, dir: root, path: "example.com/m"}
	for at := range len(tornSource) {
		for _, torn := range []string{tornSource[:at], tornSource[:at] + "}" + tornSource[at:], tornSource[:at] + tornSource[at+1:]} {
			u := &unitSource{path: "example.com/m", dir: root}
			j := &job{unit: u, pkg: &packages.Package{ID: "example.com/m", PkgPath: "example.com/m", GoFiles: []string{file}}}
			c := newChecker(m, map[string]bool{})
			r := m.reader(c, j, c.check(j.pkg, []string{file}, map[string][]byte{file: []byte(torn)}))
			r.read() // panics where it trusts what the parser made up
		}
	}
	if err := os.WriteFile(file, []byte("<<<<<<< HEAD\n"+tornSource), 0o644); err != nil {
		t.Fatal(err)
	}
	s := load(t, req).Scan
	if b := s.Units[0].Broken; b == nil || b.Code != lang.BuildFailed || b.Line != 1 || b.Tests {
		t.Errorf("broken %+v, want build_failed at line 1", b)
	}
	for _, x := range s.Symbols {
		if x.Name == "m.Last" && x.Line == 20 {
			return
		}
	}
	t.Errorf("m.Last is not at line 20 in %+v", s.Symbols)
}

// A package whose tests alone do not build is one that others can still use.
func TestBrokenTestsAreOfTheirUnitAlone(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- go.mod --
module example.com/m

go 1.21
-- a/a.go --
package a

func A() int { return 1 }
-- a/a_test.go --
package a

var _ = nothing
-- b/b.go --
package b

import "example.com/m/a"

func B() int { return a.A() }
-- c/c.go --
package c

func C() int { return "x" }
-- d/d.go --
package d

import "example.com/m/c"

func D() int { return c.C() }
`)
	got := map[string]lang.Broken{}
	for _, u := range load(t, Request{Root: root}).Scan.Units {
		if u.Broken != nil {
			got[u.ID] = *u.Broken
		}
	}
	if b := got["example.com/m/a"]; b.File != "a/a_test.go" || b.Line != 3 || !b.Tests {
		t.Errorf("a: %+v", b)
	}
	if b, ok := got["example.com/m/b"]; ok {
		t.Errorf("b: %+v", b)
	}
	for _, id := range []string{"example.com/m/c", "example.com/m/d"} {
		if b := got[id]; b.File != "c/c.go" || b.Line != 3 || b.Tests {
			t.Errorf("%s: %+v", id, b)
		}
	}
}
