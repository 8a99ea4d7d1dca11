package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// proven starts once and checks what the fixture is about.
func proven(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, shop())
	a := w.must(0, "start")
	for name, want := range map[string]string{"shop.Double": "proven", "shop.Label": "proven", "shop.Shout": "proven", "shop.Loose": "refuted"} {
		if got := a.symbol(name).Word; got != want {
			t.Fatalf("%s is %s, want %s\n%s", name, got, want, clip(a.stdout))
		}
	}
	return w
}

func TestUnchangedStartRunsNothing(t *testing.T) {
	t.Parallel()
	w := proven(t)
	runs, certificates := w.entries("run"), w.entries("certificate")
	a := w.must(0, "start")
	if !a.Envelope.Data.Reused || len(a.fresh()) != 0 {
		t.Errorf("reused %v, new %v: want the stored result and nothing new", a.Envelope.Data.Reused, a.fresh())
	}
	if r, c := w.entries("run"), w.entries("certificate"); r != runs || c != certificates {
		t.Errorf("%d runs and %d certificates, want %d and %d as before", r, c, runs, certificates)
	}
}

func TestCommentEditLapsesNothing(t *testing.T) {
	t.Parallel()
	w := proven(t)
	w.edit("price.go", "// Double is called by Label.\nfunc Double(n int) int { return 2 * n }", "// Double doubles.\nfunc Double(n int) int {\n\t// in a line of its own\n\treturn 2 * n\n}")
	w.edit("price_test.go", "func TestDouble", "// TestDouble has a comment now.\nfunc TestDouble")
	runs := w.entries("run")
	a := w.must(0, "start")
	if a.Envelope.Data.Reused || len(a.fresh()) != 0 || a.Envelope.Data.Counts["proven"] != 3 || a.Envelope.Data.Counts["stale"] != 0 {
		t.Errorf("reused %v, new %v, counts %v: want a new result in which everything holds", a.Envelope.Data.Reused, a.fresh(), a.Envelope.Data.Counts)
	}
	for _, s := range []string{"shop.Double", "shop.Label", "shop.Shout"} {
		if c := a.certificate(s); !c.Live {
			t.Errorf("certificate of %s lapsed: %q", s, c.StaleCauses)
		}
	}
	if n := w.entries("certificate"); n != 3 {
		t.Errorf("%d certificates, want the 3 of before", n)
	}
	// Listing the packages is a run of a tool; no test ran.
	for _, p := range w.purposes(runs) {
		if p != "tool" {
			t.Errorf("a run of purpose %q after a comment was edited", p)
		}
	}
}

func TestOneEditedFunctionRenewsItsCertificates(t *testing.T) {
	t.Parallel()
	w := proven(t)
	before := w.must(0, "start")
	w.edit("price.go", "return 2 * n", "return n + n")
	stale := w.must(0, "status")
	if got := stale.Envelope.Data.Counts; got["stale"] != 2 || got["proven"] != 1 {
		t.Errorf("status counts %v, want 2 stale (Double and its caller Label) and 1 proven", got)
	}
	a := w.must(0, "start")
	if got, want := a.fresh(), []string{"shop.Double", "shop.Label"}; !slices.Equal(got, want) {
		t.Errorf("measured %v, want %v", got, want)
	}
	if got := a.Envelope.Data.Counts; got["proven"] != 3 || got["stale"] != 0 {
		t.Errorf("counts %v, want 3 proven and nothing stale", got)
	}
	if was, is := before.symbol("shop.Shout").Certificate, a.symbol("shop.Shout").Certificate; was != is {
		t.Errorf("certificate of Shout %s, want the old one %s", is, was)
	}
	for _, s := range []string{"shop.Double", "shop.Label"} {
		if before.symbol(s).Certificate == a.symbol(s).Certificate {
			t.Errorf("%s kept certificate %s", s, a.symbol(s).Certificate)
		}
	}
	if n := w.entries("certificate"); n != 5 {
		t.Errorf("%d certificates, want 3 and the 2 that were renewed", n)
	}
}

func TestWeakenedTestLosesItsCredit(t *testing.T) {
	t.Parallel()
	w := proven(t)
	w.edit("name_test.go", `if got := Shout("a"); got != "A!" {`, `if got := Shout("a"); got == "" {`)
	a := w.must(0, "why", "shop.Shout")
	if !strings.Contains(a.stdout, "TestShout") || !strings.Contains(a.stdout, "stale") {
		t.Errorf("why does not say that TestShout changed:\n%s", clip(a.stdout))
	}
	a = w.must(0, "start")
	if got := a.symbol("shop.Shout").Word; got != "proven" && got != "refuted" {
		t.Errorf("Shout is %s with a test that still looks for the empty text", got)
	}
	w.edit("name_test.go", `if got := Shout("a"); got == "" {`, `if got := Shout("a"); false {`)
	if got := w.must(0, "start").symbol("shop.Shout"); got.Word == "proven" {
		t.Errorf("Shout is proven by a test that never looks: %+v", got)
	}
}

func TestDeletedTestLosesItsCredit(t *testing.T) {
	t.Parallel()
	w := proven(t)
	w.edit("name_test.go", `func TestShout(t *testing.T) {
	if got := Shout("a"); got != "A!" {
		t.Errorf("Shout(a) = %q, want A!", got)
	}
}

`, "")
	a := w.must(0, "start")
	s := a.symbol("shop.Shout")
	if s.Word == "proven" || s.Word == "refuted" {
		t.Errorf("Shout is %s without its test", s.Word)
	}
	c := a.certificate("shop.Shout")
	if c.Live || len(c.StaleCauses) == 0 || !strings.Contains(strings.Join(c.StaleCauses, " "), "TestShout") {
		t.Errorf("certificate live %v, causes %q: want the deleted test named", c.Live, c.StaleCauses)
	}
	if got := a.fresh(); slices.Contains(got, "shop.Double") || slices.Contains(got, "shop.Label") {
		t.Errorf("measured %v, but the test of Shout concerns nothing else", got)
	}
}

// TestInstalledDependencyIsTriedAgain: the tree stays the same, the machine gets
// what was missing.
func TestInstalledDependencyIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	proxy := filepath.Join(t.TempDir(), "proxy")
	serveModule(t, proxy)
	w.write("go.mod", "module example.com/shop\n\ngo 1.21\n\nrequire example.com/dep v1.0.0\n")
	w.write("needs/needs.go", "package needs\n\nimport \"example.com/dep\"\n\n// Twice needs the dependency.\nfunc Twice(n int) int { return dep.Two() * n }\n")
	w.write("needs/needs_test.go", "package needs\n\nimport \"testing\"\n\nfunc TestTwice(t *testing.T) {\n\tif Twice(3) != 6 {\n\t\tt.Error(\"want 6\")\n\t}\n}\n")
	goEnv := []string{"GOPROXY=file://" + proxy, "GONOSUMDB=*", "GONOSUMCHECK=1", "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local"}
	goCommand(t, w.repo, append(goEnv, "GOMODCACHE="+filepath.Join(t.TempDir(), "elsewhere")), "mod", "tidy")
	w.commit("a dependency")
	mod := filepath.Join(t.TempDir(), "mod")
	if err := os.MkdirAll(mod, 0o755); err != nil {
		t.Fatal(err)
	}
	w.env = []string{"GOMODCACHE=" + mod, "GOFLAGS=-modcacherw"}
	a := w.run("start")
	switch {
	case a.exit == 4:
		if a.Envelope.Code != "needs_setup" {
			t.Errorf("code %s, want needs_setup\n%s", a.Envelope.Code, clip(a.stdout))
		}
	case a.symbol("needs.Twice").Word != "not_measured", a.symbol("needs.Twice").Reason != "dependency_missing":
		t.Errorf("Twice without its dependency: %+v", a.symbol("needs.Twice"))
	}
	goCommand(t, w.repo, append(goEnv, "GOMODCACHE="+mod), "mod", "download")
	a = w.must(0, "start")
	if got := a.symbol("needs.Twice"); got.Word != "proven" || a.Envelope.Data.Reused {
		t.Errorf("Twice with its dependency installed: %+v, reused %v", got, a.Envelope.Data.Reused)
	}
}
