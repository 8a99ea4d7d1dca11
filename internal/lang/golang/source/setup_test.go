package source

import (
	"testing"

	"github.com/proveto/proveto/internal/evidence"
)

// What runs when the process starts counts, wherever it stands; everything else,
// and every comment, does not.
func TestUnitSetupDigest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	setup := func(src string) evidence.Digest {
		return scanSource(t, dir, "package p\n\nconst size = 1\n\nfunc id(n int) int { return n }\n"+src).Units[0].Setup
	}
	none, table := setup(""), setup("var table = id(size)\n\nfunc init() { id(2) }\n")
	if none != "" || table == "" {
		t.Fatalf("without anything %q, with an initialiser and an init %q", none, table)
	}
	for _, src := range []string{
		"// init() is only spoken of.\n", "func other() { id(1) }\n", "var plain = 1\n", "var later = func() int { return id(1) }\n",
		"type t struct{ a int }\n\nvar v = t{a: 3}\n",
	} {
		if got := setup(src); got != none {
			t.Errorf("counts, and does nothing at start:\n%s", src)
		}
	}
	for _, src := range []string{
		"func init() {}\n", "var x = id(1)\n", "var _ = id(1)\n", "var p *int\n\nvar n = *p\n", "var s []int\n\nvar n = s[0]\n",
		"var c chan int\n\nvar n = <-c\n", "var zero int\n\nvar n = 1 / zero\n", "var x = func() int { return 1 }()\n",
	} {
		if got := setup(src); got == none {
			t.Errorf("does something at start, and does not count:\n%s", src)
		}
	}
	if a, b := setup("func init() { id(2) }\nfunc init() { id(3) }\n"), setup("func init() { id(3) }\nfunc init() { id(2) }\n"); a == b {
		t.Error("the order of init functions does not count")
	}
	if a, b := setup("var a = id(2)\nvar b = id(3)\n"), setup("var b = id(3)\nvar a = id(2)\n"); a == b {
		t.Error("the order of initialisers does not count")
	}
	if a, b := setup(""), setup("//go:debug panicnil=1\n"); a != b {
		t.Error("a setting behind the package clause counts")
	}
	if scanSource(t, dir, "//go:debug panicnil=1\n\npackage p\n\nfunc f() {}\n").Units[0].Setup == none {
		t.Error("a setting of the runtime does not count")
	}
	if got := setup("// A comment.\nfunc init() { id(2) }\n\nvar table = id( size ) // another\n"); got != table {
		t.Error("comments, layout and the place of an init count")
	}
	for _, src := range []string{
		"var table = id(size)\n\nfunc init() { id(3) }\n", "var table = id(size + 1)\n\nfunc init() { id(2) }\n",
		"var table = id(size)\n\nfunc init() { id(2) }\n\nfunc init() { id(2) }\n",
	} {
		if got := setup(src); got == table {
			t.Errorf("an edit does not count:\n%s", src)
		}
	}
}
