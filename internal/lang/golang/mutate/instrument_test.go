package mutate

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
)

// TestCorpusSwitchEqualsPlain is the property that everything rests on: a probe
// switched on behaves as the same sabotage in plain source, nothing switched on
// behaves as the original, and line numbers stay.
func TestCorpusSwitchEqualsPlain(t *testing.T) {
	dir := corpus(t)
	pkgs := []loaded{only(t, load(t, dir), "corpus")}
	outs := instrument(t, pkgs)
	sites := outs[0].Sites
	tmp := t.TempDir()
	original, switched, plains := filepath.Join(tmp, "original"), filepath.Join(tmp, "switched"), filepath.Join(tmp, "plains")
	command(t, dir, nil, "go", "build", "-o", original, "./cmd")
	command(t, dir, nil, "go", "build", "-overlay", overlay(t, filepath.Join(tmp, "o"), pkgs, outs), "-o", switched, "./cmd")

	want := attempt(tmp, nil, original)
	if got := attempt(tmp, nil, switched); got != want {
		t.Fatalf("nothing on:\n%s", cmp.Diff(want, got))
	}
	if got := attempt(tmp, []string{"PVT_LOG=" + filepath.Join(tmp, "log")}, switched); got != want {
		t.Fatalf("observing:\n%s", cmp.Diff(want, got))
	}

	chosen := sample(len(sites))
	buildPlains(t, dir, pkgs[0], sites, chosen)
	command(t, dir, nil, "go", "build", "-gcflags=-N -l", "-o", plains, "./plains")
	same := make([]bool, len(sites))
	parallel(len(chosen), func(n int) {
		i := chosen[n]
		var on, off string
		for range 20 { // a probe can make the order of a map decide: then the two may do the same
			on = attempt(tmp, []string{fmt.Sprintf("PVT_SITE=corpus %d", i+1)}, switched)
			if off = attempt(tmp, nil, plains, fmt.Sprint(i)); on == off {
				break
			}
		}
		if on != off && races(sites[i]) {
			t.Logf("%s:%d: what removing it does is up to the scheduler", sites[i].File, sites[i].Line)
		} else if on != off {
			t.Errorf("%s:%d %s %s: plain and switched differ (- plain + switched)\n%s\n%s", sites[i].File, sites[i].Line,
				sites[i].Operator, sites[i].Summary, cmp.Diff(strings.Split(off, "\n"), strings.Split(on, "\n")), sites[i].Diff)
		}
		same[i] = on == want
	})
	equal := 0
	for _, i := range chosen {
		s := sites[i]
		if same[i] {
			equal++
			t.Logf("no difference: %s:%d:%d %s %s", s.File, s.Line, s.Column, s.Operator, s.Summary)
		}
	}
	t.Logf("%d sites, %d compared, %d change nothing that the corpus shows", len(sites), len(chosen), equal)
	if equal*5 > len(chosen) {
		t.Errorf("%d of %d probes change nothing", equal, len(chosen))
	}
}

// races tells the sites of a wait group's own calls: without one of them two
// goroutines race, in the plain build as in the other.
func races(s Site) bool {
	return s.Operator == "REMOVE_STATEMENT" && strings.Contains(s.Diff, "-\twg.")
}

// sample chooses the sites to build plainly: a package each is slow. All of
// them with PROVETO_LONG=1, of n slices the i-th with PROVETO_LONG=i/n.
func sample(sites int) []int {
	first, step := 3, 41
	if long := os.Getenv("PROVETO_LONG"); long == "1" {
		first, step = 0, 1
	} else if long != "" {
		if _, err := fmt.Sscanf(long, "%d/%d", &first, &step); err != nil {
			panic(err)
		}
	}
	var out []int
	for i := first; i < sites; i += step {
		out = append(out, i)
	}
	return out
}

// buildPlains writes one package for every chosen site, with its plain edits, and a
// program that runs the one that its argument names.
func buildPlains(t *testing.T, dir string, p loaded, sites []Site, chosen []int) {
	t.Helper()
	var main, cases bytes.Buffer
	for _, i := range chosen {
		s := sites[i]
		for name, src := range p.Sources {
			if filepath.Dir(name) != p.dir {
				continue
			}
			if p.RelFunc(name) == s.File {
				src = Apply(src, s.Plain)
			}
			write(t, filepath.Join(dir, "plains", fmt.Sprintf("p%d", i), filepath.Base(name)), src)
		}
		fmt.Fprintf(&main, "import p%d \"corpus/plains/p%d\"\n", i, i)
		fmt.Fprintf(&cases, "case \"%d\": p%d.Main()\n", i, i)
	}
	write(t, filepath.Join(dir, "plains/main.go"), fmt.Appendf(nil,
		"package main\nimport \"os\"\n%s\nfunc main() {\nswitch os.Args[1] {\n%s}\n}\n", main.String(), cases.String()))
}

// TestCorpusOperators compares the probes of each line with its want comment.
func TestCorpusOperators(t *testing.T) {
	t.Parallel()
	dir := corpus(t)
	p := only(t, load(t, dir), "corpus")
	out := instrument(t, []loaded{p})[0]
	got := make(map[string][]string)
	sites := append([]Site(nil), out.Sites...)
	sort.SliceStable(sites, func(i, j int) bool {
		a, b := sites[i], sites[j]
		if a.Kind == "result" || b.Kind == "result" {
			return a.Kind == "result" && b.Kind != "result"
		}
		return a.Column < b.Column
	})
	for _, s := range sites {
		at := fmt.Sprintf("%s:%d", s.File, s.Line)
		got[at] = append(got[at], s.Operator)
	}
	checked := 0
	for name, src := range p.Sources {
		for i, line := range strings.Split(string(src), "\n") {
			_, want, found := strings.Cut(line, "want ")
			if !found || !strings.Contains(line, "//") || filepath.Dir(name) != p.dir || strings.Contains(line, "a want comment") {
				continue
			}
			checked++
			at := fmt.Sprintf("%s:%d", p.RelFunc(name), i+1)
			if diff := cmp.Diff(strings.Fields(want), got[at]); diff != "" {
				t.Errorf("%s: probes (- want + got)\n%s", at, diff)
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d lines with expectations, want at least 50", checked)
	}
	if os.Getenv("PVT_SHOW") != "" {
		for _, s := range out.Skipped {
			t.Logf("skipped %+v", s)
		}
		for name, src := range out.Files {
			t.Logf("%s\n%s", name, src)
		}
	}
}

// TestCorpusPlainCompiles type-checks plain sabotages, in the long suite all.
func TestCorpusPlainCompiles(t *testing.T) {
	t.Parallel()
	dir := corpus(t)
	p := only(t, load(t, dir), "corpus")
	checkPlains(t, p, instrument(t, []loaded{p})[0].Sites, plainStep())
}

// plainStep thins out what the normal suite type-checks.
func plainStep() int {
	if os.Getenv("PROVETO_LONG") != "" {
		return 1
	}
	return 5
}

// checkPlains type-checks the package with the plain edits of every step-th
// site.
func checkPlains(t *testing.T, p loaded, sites []Site, step int) {
	t.Helper()
	in := &pkg{in: p.Input}
	for i := 0; i < len(sites); i += step {
		s := sites[i]
		fset := token.NewFileSet()
		var files []*ast.File
		for _, f := range p.Files {
			name := p.Fset.File(f.FileStart).Name()
			src := p.Sources[name]
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			if p.RelFunc(name) == s.File {
				src = Apply(src, s.Plain)
			}
			parsed, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
			if err != nil {
				t.Errorf("%s:%d %s: %v", s.File, s.Line, s.Operator, err)
				return
			}
			files = append(files, parsed)
			if in.files == nil {
				for _, f := range p.Files {
					in.files = append(in.files, &file{syntax: f})
				}
			}
		}
		conf := types.Config{GoVersion: p.Types.GoVersion(), Importer: in.importer()}
		if _, err := conf.Check(p.Path, fset, files, nil); err != nil {
			t.Errorf("%s:%d %s %s: %v\n%s", s.File, s.Line, s.Operator, s.Summary, err, s.Diff)
		}
	}
}

// TestDiffAppliesWithGit hands diffs to git and compares the result with
// the plain edits.
func TestDiffAppliesWithGit(t *testing.T) {
	t.Parallel()
	dir := corpus(t)
	p := only(t, load(t, dir), "corpus")
	command(t, dir, nil, "git", "init", "-q", ".")
	sites := instrument(t, []loaded{p})[0].Sites
	for i := 0; i < len(sites); i += 3 * plainStep() {
		s := sites[i]
		name := filepath.Join(dir, s.File)
		patch := filepath.Join(t.TempDir(), "patch")
		write(t, patch, []byte(s.Diff))
		command(t, dir, nil, "git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", patch)
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(Apply(p.Sources[name], s.Plain)), string(got)); diff != "" {
			t.Errorf("%s:%d %s: applied diff (- edits + git)\n%s", s.File, s.Line, s.Operator, diff)
		}
		write(t, name, p.Sources[name])
	}
}

// TestDropLeavesOut drops probes by their digests: they are gone and the others
// keep their digests, under new numbers.
func TestDropLeavesOut(t *testing.T) {
	t.Parallel()
	p := only(t, load(t, corpus(t)), "corpus")
	all := instrument(t, []loaded{p})[0].Sites
	p.Drop = make(map[evidence.Digest]bool)
	var want []evidence.Digest
	for i, s := range all {
		if i%3 == 0 {
			p.Drop[s.Digest()] = true
		} else {
			want = append(want, s.Digest())
		}
	}
	var got []evidence.Digest
	for _, s := range instrument(t, []loaded{p})[0].Sites {
		got = append(got, s.Digest())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sites left (- want + got)\n%s", diff)
	}
}

// TestSkipsAreListed looks for one place of every reason that the corpus has.
func TestSkipsAreListed(t *testing.T) {
	t.Parallel()
	p := only(t, load(t, corpus(t)), "corpus")
	got := make(map[string]bool)
	for _, s := range instrument(t, []loaded{p})[0].Skipped {
		got[s.Reason] = true
		if s.File == "" || s.Line == 0 {
			t.Errorf("skip without a place: %+v", s)
		}
	}
	for _, reason := range []string{
		"logging", "closing_call", "capacity_hint", "does_not_compile", "missing_return",
		"package_initialiser", "constant_expression", "unnamed_constraint", "unnamed_type", "recover", "generated", "nosplit",
	} {
		if !got[reason] {
			t.Errorf("nothing skipped for %s; have %v", reason, got)
		}
	}
}

// TestNamesOutliveMovedLines puts comments around everything: each probe keeps
// its digest, also where two lines of a function are the same.
func TestNamesOutliveMovedLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), []byte("module twice\n\ngo 1.22\n"))
	source := "package twice\n\nfunc Count(a, b int) int {\n\tn := 0\n\tif a < b {\n\t\tn++\n\t}\n\ta--\n\tif a < b {\n\t\tn++\n\t}\n\treturn n\n}\n"
	names := func(source string) map[evidence.Digest]int {
		write(t, filepath.Join(dir, "twice.go"), []byte(source))
		out := map[evidence.Digest]int{}
		for _, s := range instrument(t, []loaded{only(t, load(t, dir), "twice")})[0].Sites {
			if _, again := out[s.Digest()]; again {
				t.Errorf("two probes are named %s: %s at line %d", s.Digest().Short(), s.Summary, s.Line)
			}
			out[s.Digest()] = s.Nth
		}
		return out
	}
	before := names(source)
	if !slices.Contains(slices.Collect(maps.Values(before)), 2) {
		t.Errorf("no second probe of equal lines among %v", before)
	}
	moved := strings.NewReplacer("func Count", "// Count counts.\nfunc Count", "\tif a", "\t// once more\n\tif a").Replace(source)
	if diff := cmp.Diff(before, names(moved)); diff != "" {
		t.Errorf("names after lines moved (- before + after)\n%s", diff)
	}
}
