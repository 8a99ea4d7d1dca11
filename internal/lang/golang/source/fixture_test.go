package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/proveto/proveto/internal/lang"
)

// unpack writes an archive into a directory whose name has a space and a letter
// outside ASCII.
func unpack(t *testing.T, text string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "pröject dir")
	for _, f := range txtar.Parse([]byte(text)).Files {
		write(t, filepath.Join(root, f.Name), string(f.Data))
	}
	return root
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFixtures compares what a scan says about each line with what the line wants.
func TestFixtures(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("fixtures: %v, %v", names, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			ar := txtar.Parse(text)
			_, categories, _ := strings.Cut(string(ar.Comment), "categories:")
			scan := load(t, Request{Root: unpack(t, string(text))}).Scan
			got, want := map[string][]string{}, map[string][]string{}
			for _, f := range ar.Files {
				for i, line := range strings.Split(string(f.Data), "\n") {
					for _, w := range strings.Split(line, "// want ")[1:] {
						at := fmt.Sprintf("%s:%d", f.Name, i+1)
						want[at] = append(want[at], strings.TrimSpace(w))
					}
				}
			}
			facts := said(scan)
			for _, c := range strings.Fields(categories) {
				for at, texts := range facts[c] {
					if c == "calls" && want[at] == nil {
						continue // only some lines say what they call
					}
					got[at] = append(got[at], texts...)
				}
			}
			for _, m := range []map[string][]string{got, want} {
				for _, l := range m {
					slices.Sort(l)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		})
	}
}

// said lists what a scan says, by category and place.
func said(s *lang.Scan) map[string]map[string][]string {
	out := map[string]map[string][]string{"symbol": {}, "test": {}, "entry": {}, "calls": {}}
	add := func(category, file string, line int, text string) {
		at := fmt.Sprintf("%s:%d", file, line)
		out[category][at] = append(out[category][at], strings.TrimSpace(text))
	}
	calls := map[string][]string{}
	for _, c := range s.Calls {
		calls[c.From] = append(calls[c.From], descriptors(c.To))
	}
	for _, x := range s.Symbols {
		add("symbol", x.File, x.Line, "symbol "+descriptors(x.ID)+" "+x.Kind+" "+x.Excluded)
		slices.Sort(calls[x.ID])
		add("calls", x.File, x.Line, "calls "+strings.Join(calls[x.ID], " "))
	}
	for _, x := range s.Tests {
		add("test", x.File, x.Line, "test "+x.Kind+" "+x.Name)
	}
	for _, x := range s.EntryPoints {
		add("entry", x.File, x.Line, "entry "+x.Kind+" "+x.Name+" -> "+descriptors(x.Symbol))
	}
	return out
}

// descriptors is a symbol id without module and version.
func descriptors(id string) string {
	_, d, _ := strings.Cut(id, " . ")
	return d
}
