package prove

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

// What a test was seen to read is part of its certificate, wherever in the
// checkout it lies and whichever link leads there; so are variables.
func TestLapsesWhenWhatATestReadsChanges(t *testing.T) {
	t.Parallel()
	lay := func(t *testing.T) (root, out string) {
		root, out = t.TempDir(), filepath.Join(t.TempDir(), "elsewhere.txt")
		for name, text := range map[string]string{
			filepath.Join(root, "shared", "want.txt"): "6", filepath.Join(root, "same", "want.txt"): "6", out: "6",
		} {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for link, to := range map[string]string{"testdata": "shared", "leads-out": out, "nowhere": "missing"} {
			if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
				t.Fatal(err)
			}
		}
		return root, out
	}
	relink := func(name, to string) func(*testing.T, string, string, *lang.Workspace) {
		return func(t *testing.T, root, _ string, _ *lang.Workspace) {
			if err := errors.Join(os.Remove(filepath.Join(root, name)), os.Symlink(to, filepath.Join(root, name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(name, text string) func(*testing.T, string, string, *lang.Workspace) {
		return func(t *testing.T, root, _ string, _ *lang.Workspace) {
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	set := func(env ...string) func(*testing.T, string, string, *lang.Workspace) {
		return func(_ *testing.T, _, _ string, w *lang.Workspace) { w.Env = env }
	}
	tests := []struct {
		name, read string
		change     func(t *testing.T, root, out string, w *lang.Workspace)
		lapses     bool
	}{
		{"nothing", "file shared/want.txt", set("MODE=strict", "PATH=/bin"), false},
		{"a file", "file shared/want.txt", write("shared/want.txt", "7"), true},
		{"another file", "file shared/want.txt", write("shared/other.txt", "7"), false},
		{"above the package", "file calc/../shared/want.txt", write("shared/want.txt", "7"), false}, // calc is no directory: absent then and now
		{"through a link to a directory", "file testdata/want.txt", write("shared/want.txt", "7"), true},
		{"where a link leads", "file testdata/want.txt", relink("testdata", "same"), true},
		{"where another link leads", "file shared/want.txt", relink("testdata", "same"), false},
		{"a link to nowhere", "file nowhere", relink("nowhere", "neither"), true},
		{"beyond a link and up again", "file testdata/../shared/want.txt", write("shared/want.txt", "7"), true},
		{"a file that was absent", "file shared/more.txt", write("shared/more.txt", "7"), true},
		{"the names in a directory", "file shared", write("shared/more.txt", "7"), true},
		{"out of the checkout", "file leads-out", func(t *testing.T, _, out string, _ *lang.Workspace) {
			if err := os.WriteFile(out, []byte("seven"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"a variable", "env MODE", set("MODE=lax", "PATH=/bin"), true},
		{"a variable that was unset", "env OTHER", set("MODE=strict", "PATH=/bin", "OTHER=1"), true},
		{"a place", "env PATH", set("MODE=strict", "PATH=/usr/bin"), false},
		{"a variable that nobody asked for", "env OTHER", set("MODE=lax", "PATH=/bin"), false},
		{"a configured variable that nobody asked for", "env OTHER", func(_ *testing.T, _, _ string, w *lang.Workspace) {
			w.Env, w.Configured = []string{"MODE=lax", "PATH=/bin"}, []string{"MODE"}
		}, true},
		{"the tree", "tree", func(_ *testing.T, _, _ string, w *lang.Workspace) { w.Tree = "another" }, true},
		{"the tree, not read", "env OTHER", func(_ *testing.T, _, _ string, w *lang.Workspace) { w.Tree = "another" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root, out := lay(t)
			w := lang.Workspace{Root: root, Tree: testTree, Env: []string{"MODE=strict", "PATH=/bin"}}
			s := newMemory(looks("TestDouble"))
			s.reads = map[string][]string{"TestDouble": {tt.read}}
			u, err := Prepare(t.Context(), s, NewToday(scanOf(s), w), testTree)
			if err != nil {
				t.Fatal(err)
			}
			o, err := u.Attempt(t.Context(), double, Options{})
			if err != nil {
				t.Fatal(err)
			}
			tt.change(t, root, out, &w)
			today := NewToday(scanOf(s), w)
			causes := today.Lapses(o.Certificates[0].Record())
			if got := slices.ContainsFunc(causes, func(c Cause) bool { return c.Code == "read_changed" }); got != tt.lapses {
				t.Errorf("lapses %v for %v, want %v", got, causes, tt.lapses)
			}
			if got := !today.Unchanged(o.Measurement.Record()); got != tt.lapses {
				t.Errorf("inputs changed %v, want %v", got, tt.lapses)
			}
			if got := today.Outside(); got != (tt.read == "file leads-out") {
				t.Errorf("outside %v of %s", got, tt.read)
			}
		})
	}
}

// A test that finds done what another did before it depends on it all the same.
func TestFactsHoldWhatATestDoesAlone(t *testing.T) {
	t.Parallel()
	s := newMemory(looks("TestDouble"))
	s.alone = map[string][]string{"TestDouble": {"file want.txt"}}
	s.aloneReach = map[string][]string{"TestDouble": {triple}}
	out, err := ready(t, s).Attempt(t.Context(), double, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := out.Certificates[0].Record().Facts
	if f.Reads["file want.txt"] == "" || f.Reached[triple] == "" {
		t.Errorf("reads %v and reached %v, want what the control saw", f.Reads, f.Reached)
	}
	today := NewToday(scanOf(s), lang.Workspace{})
	for i, sy := range today.Scan.Symbols {
		if sy.ID == triple {
			today.Scan.Symbols[i].Digest = evidence.DigestOf([]byte("edited"))
		}
	}
	edited := NewToday(today.Scan, lang.Workspace{})
	if edited.Unchanged(out.Measurement.Record()) {
		t.Error("the measurement still holds, and its certificate lapsed")
	}
	if causes := edited.Lapses(out.Certificates[0].Record()); len(causes) != 1 || causes[0].Code != "reached_changed" {
		t.Errorf("lapses for %v, want reached_changed", causes)
	}
}

// A test that looks at its own process may have found the switch there: each of
// its certificates needs a build without one, and others are not its concern.
func TestLookingAtProcessesNeedsThePlainBuild(t *testing.T) {
	t.Parallel()
	spy := scripted{"TestSpy", []string{double}, func(w world) string {
		if w.probe != "" && !w.plain {
			return fails
		}
		return passes
	}}
	honest := scripted{"TestTriple", []string{triple}, func(w world) string {
		if w.probe != "" {
			return fails
		}
		return passes
	}}
	s := newMemory(spy, honest)
	s.addProbe(triple, evidence.ProbeResult, "result 0")
	s.reads = map[string][]string{"TestSpy": {evidence.ReadProcess}}
	u := ready(t, s)
	if m := attemptOf(t, u, triple, Options{}); m.Word != evidence.Proven {
		t.Errorf("Triple is %s (%s), want proven", m.Word, m.Reason)
	}
	if m := attemptOf(t, u, double, Options{}); m.Word != evidence.NotMeasured || m.Reason != string(evidence.CodeSurvived) && m.Reason != string(evidence.CodeFastLane) {
		t.Errorf("Double is %s (%s), want not_measured because the plain build disagrees", m.Word, m.Reason)
	}
	if m := attemptOf(t, u, triple, Options{}); m.Word != evidence.Proven {
		t.Errorf("Triple is %s (%s) afterwards, want proven", m.Word, m.Reason)
	}
}

func TestReadText(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"file calc/../want.txt": "want.txt, which TestDouble reads",
		"env MODE":              "the variable MODE, which TestDouble reads",
		configured:              "prove.test_env, which gives TestDouble variables",
		"tree":                  "the tree, of which TestDouble reads more than is seen",
	} {
		if got := readText("TestDouble", name); got != want {
			t.Errorf("readText of %q = %q, want %q", name, got, want)
		}
	}
}
