package codegraph

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

// scan is two units: route → handler → store.save → store.check, a cycle between
// store.check and store.save, orphan apart; a test in each unit.
func scan() *lang.Scan {
	sym := func(id, unit string, test bool) lang.Symbol {
		return lang.Symbol{ID: id, Name: id, Kind: "function", Unit: unit, File: unit + ".go", Line: 1, TestCode: test}
	}
	return &lang.Scan{
		Units: []lang.Unit{{ID: "web", Files: []string{"web.go"}, Imports: []string{"store"}}, {ID: "store", Files: []string{"store.go"}}},
		Symbols: []lang.Symbol{
			sym("handler", "web", false), sym("TestWeb", "web", true), sym("save", "store", false), sym("check", "store", false),
			sym("orphan", "store", false), sym("TestStore", "store", true),
		},
		Tests: []lang.Test{{Name: "TestWeb", Kind: "test", Unit: "web", File: "web.go", Symbol: "TestWeb"}, {Name: "TestStore", Kind: "test", Unit: "store", File: "store.go", Symbol: "TestStore"}},
		Calls: []lang.Call{
			{From: "handler", To: "save"},
			{From: "save", To: "check"},
			{From: "check", To: "save"},
			{From: "TestWeb", To: "handler"},
			{From: "TestStore", To: "save"},
			{From: "save", To: "elsewhere"},
		},
		EntryPoints: []lang.EntryPoint{{Kind: "http_route", Name: "GET /x", Symbol: "handler", File: "web.go", Line: 1}},
	}
}

func graph(t testing.TB, scans ...*lang.Scan) *Graph {
	t.Helper()
	g, problems := New(scans)
	if len(problems) > 0 {
		t.Fatalf("problems %+v", problems)
	}
	return g
}

func TestQueries(t *testing.T) {
	t.Parallel()
	g := graph(t, scan())
	fan := map[string]int{"handler": 0, "save": 2, "check": 1, "orphan": 0, "elsewhere": 0}
	for id, want := range fan {
		if got := g.FanIn(id); got != want {
			t.Errorf("FanIn(%s) = %d, want %d", id, got, want)
		}
	}
	for id, want := range map[string]int{"handler": 0, "save": 1, "check": 2} {
		if got, ok := g.EntryDistance(id); !ok || got != want {
			t.Errorf("EntryDistance(%s) = %d, %t, want %d", id, got, ok, want)
		}
	}
	for _, id := range []string{"orphan", "TestWeb", "elsewhere"} {
		if got, ok := g.EntryDistance(id); ok {
			t.Errorf("EntryDistance(%s) = %d, want none", id, got)
		}
	}
	if d := cmp.Diff([]Step{{"save", 1}, {"TestStore", 2}, {"handler", 2}}, g.Callers("check", 2)); d != "" {
		t.Errorf("Callers(check, 2) (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Step{{"save", 1}, {"check", 2}}, g.Callees("handler", 9)); d != "" {
		t.Errorf("Callees(handler) (-want +got):\n%s", d)
	}
	if got := g.Callers("check", 0); got != nil {
		t.Errorf("Callers(check, 0) = %v, want none", got)
	}
	if d := cmp.Diff([]Step{{TestID("store", "TestStore"), 2}, {TestID("web", "TestWeb"), 3}}, g.Candidates("check")); d != "" {
		t.Errorf("Candidates(check) (-want +got):\n%s", d)
	}
	if got := g.Candidates("orphan"); len(got) > 0 {
		t.Errorf("Candidates(orphan) = %v, want none", got)
	}
	flows := g.Flows("http_route", 1)
	if len(flows) != 1 || flows[0].Entry.Name != "GET /x" {
		t.Fatalf("Flows = %+v, want the route", flows)
	}
	if d := cmp.Diff([]Step{{"handler", 0}, {"save", 1}}, flows[0].Steps); d != "" {
		t.Errorf("flow (-want +got):\n%s", d)
	}
	if got := g.Flows("cli_command", 1); len(got) > 0 {
		t.Errorf("Flows of another kind = %v", got)
	}
}

func TestCandidatesOfTheOwnUnitComeFirst(t *testing.T) {
	t.Parallel()
	s := scan()
	s.Calls = []lang.Call{{From: "TestWeb", To: "check"}, {From: "TestStore", To: "check"}, {From: "TestWeb", To: "handler"}, {From: "TestStore", To: "handler"}}
	g := graph(t, s)
	for id, want := range map[string]string{"check": TestID("store", "TestStore"), "handler": TestID("web", "TestWeb")} {
		if got := g.Candidates(id); len(got) != 2 || got[0].ID != want {
			t.Errorf("Candidates(%s) = %v, want %s first", id, got, want)
		}
	}
}

func TestReachIsMeasured(t *testing.T) {
	t.Parallel()
	g := graph(t, scan())
	run, err := evidence.RecordRun(evidence.RunRecord{Purpose: evidence.PurposeBaseline, Nonce: "n"}, []evidence.Event{
		{Kind: evidence.EventSymbols, Names: []string{"save", "check", "orphan"}},
		{Kind: evidence.EventReach, Test: evidence.InitTest, Index: []int64{2}},
		{Kind: evidence.EventReach, Test: "TestStore/a", Index: []int64{0}},
		{Kind: evidence.EventReach, Test: "TestStore/b", Index: []int64{1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.AddRun("store", run)
	want := map[string][]string{
		"save":    {TestID("store", "TestStore"), TestID("store", "TestStore/a")},
		"check":   {TestID("store", "TestStore"), TestID("store", "TestStore/b")},
		"orphan":  {TestID("store", "TestStore"), TestID("store", "TestStore/a"), TestID("store", "TestStore/b")},
		"handler": nil,
	}
	for id, tests := range want {
		if d := cmp.Diff(tests, g.ReachedBy(id)); d != "" {
			t.Errorf("ReachedBy(%s) (-want +got):\n%s", id, d)
		}
	}
	if got := g.Candidates("orphan"); len(got) > 0 {
		t.Errorf("reach became a static candidate: %v", got)
	}
	if got, ok := g.EntryDistance("check"); !ok || got != 2 {
		t.Errorf("EntryDistance(check) after AddRun = %d, %t", got, ok)
	}
	before, err := g.Encode()
	if err != nil {
		t.Fatal(err)
	}
	g.AddRun("store", run)
	if after, err := g.Encode(); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the same run twice changed the graph (%v)", err)
	}
}

func TestSecondSymbolOfAnIDIsAProblem(t *testing.T) {
	t.Parallel()
	_, problems := New([]*lang.Scan{scan(), scan()})
	if len(problems) != len(scan().Symbols) {
		t.Errorf("problems %+v, want one for each symbol", problems)
	}
}

// TestDistancesAreShortest compares the walks with Floyd and Warshall's table.
func TestDistancesAreShortest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		s := &lang.Scan{Units: []lang.Unit{{ID: "u", Files: []string{"u.go"}}}}
		far := n + 1
		table := make([][]int, n)
		for i := range n {
			s.Symbols = append(s.Symbols, lang.Symbol{ID: fmt.Sprint("s", i), Unit: "u", File: "u.go"})
			table[i] = make([]int, n)
			for j := range n {
				table[i][j] = far
			}
			table[i][i] = 0
		}
		for range rapid.IntRange(0, 20).Draw(t, "calls") {
			a, b := rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, n-1).Draw(t, "to")
			s.Calls = append(s.Calls, lang.Call{From: fmt.Sprint("s", a), To: fmt.Sprint("s", b)})
			table[a][b] = min(table[a][b], 1)
		}
		for k := range n {
			for i := range n {
				for j := range n {
					table[i][j] = min(table[i][j], table[i][k]+table[k][j])
				}
			}
		}
		entry := rapid.IntRange(0, n-1).Draw(t, "entry")
		s.EntryPoints = []lang.EntryPoint{{Kind: "exported_api", Name: "e", Symbol: fmt.Sprint("s", entry), File: "u.go"}}
		g, _ := New([]*lang.Scan{s})
		limit := rapid.IntRange(1, n).Draw(t, "limit")
		for i := range n {
			id := fmt.Sprint("s", i)
			if got, ok := g.EntryDistance(id); ok != (table[entry][i] < far) || ok && got != table[entry][i] {
				t.Fatalf("EntryDistance(%s) = %d, %t, want %d", id, got, ok, table[entry][i])
			}
			got := map[string]int{}
			for _, st := range g.Callers(id, limit) {
				got[st.ID] = st.Distance
			}
			want := map[string]int{}
			for j := range n {
				if j != i && table[j][i] <= limit && table[j][i] < far {
					want[fmt.Sprint("s", j)] = table[j][i]
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("Callers(%s, %d) (-want +got):\n%s", id, limit, d)
			}
		}
	})
}

func TestStoredFormKeepsEverything(t *testing.T) {
	t.Parallel()
	g := graph(t, scan())
	b, err := g.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := back.Encode()
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("encoded again (%v):\n%s\n%s", err, b, again)
	}
	if d := cmp.Diff(g.Candidates("check"), back.Candidates("check")); d != "" {
		t.Errorf("candidates (-before +after):\n%s", d)
	}
	if d := cmp.Diff(g.Flows("", 9), back.Flows("", 9)); d != "" {
		t.Errorf("flows (-before +after):\n%s", d)
	}
}

func TestDocumentedExampleParses(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/formats/codegraph.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```json\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the document has no example")
	}
	g, err := Decode([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	const add = "scip-go gomod example.com/m . Add()."
	if got := g.ReachedBy(add); len(got) != 1 || got[0] != TestID("example.com/m", "TestAdd") {
		t.Errorf("ReachedBy = %v", got)
	}
	if got := g.Candidates(add); len(got) != 1 || got[0].Distance != 1 {
		t.Errorf("Candidates = %v", got)
	}
}

func TestMalformedGraphsAreRefused(t *testing.T) {
	t.Parallel()
	node := `{"kind":"file","id":"file:a"}`
	for _, text := range []string{
		``, `{"schema":"other","nodes":[],"edges":[]}`,
		`{"schema":"proveto/codegraph/v1","nodes":[{"kind":"thing","id":"a"}]}`,
		`{"schema":"proveto/codegraph/v1","nodes":[{"kind":"file"}]}`,
		`{"schema":"proveto/codegraph/v1","nodes":[` + node + `,` + node + `]}`,
		`{"schema":"proveto/codegraph/v1","nodes":[` + node + `],"edges":[{"relation":"calls","basis":"static","pairs":[0,1]}]}`,
		`{"schema":"proveto/codegraph/v1","nodes":[` + node + `],"edges":[{"relation":"calls","basis":"static","pairs":[-1,0]}]}`,
		`{"schema":"proveto/codegraph/v1","nodes":[` + node + `],"edges":[{"relation":"calls","basis":"static","pairs":[0]}]}`,
		`{"schema":"proveto/codegraph/v1","nodes":[` + node + `],"edges":[{"relation":"calls","basis":"static","pairs":[0,0,0,0]}]}`,
		`{"schema":"proveto/codegraph/v1","nodes":[` + node + `,{"kind":"file","id":"file:b"}],"edges":[{"relation":"calls","basis":"static","pairs":[1,0,0,1]}]}`,
		`{"schema":"proveto/codegraph/v1","nodes":[` + node + `],"edges":[{"relation":"likes","basis":"static","pairs":[]}]}`,
		`{"schema":"proveto/codegraph/v1","nodes":[` + node + `],"edges":[{"relation":"calls","basis":"felt","pairs":[]}]}`,
	} {
		if _, err := Decode([]byte(text)); !fault.Has(err, CodeMalformed) {
			t.Errorf("Decode(%s) = %v, want %s", text, err, CodeMalformed)
		}
	}
}

// BenchmarkGraph joins 50,000 symbols with 150,000 calls and asks for each.
func BenchmarkGraph(b *testing.B) {
	s := &lang.Scan{}
	for u := range 500 {
		unit := fmt.Sprint("u", u)
		s.Units = append(s.Units, lang.Unit{ID: unit, Files: []string{unit + ".go"}})
		for f := range 100 {
			i := u*100 + f
			id := fmt.Sprint("scip-go gomod example.com/m . ", unit, "/F", f, "().")
			s.Symbols = append(s.Symbols, lang.Symbol{ID: id, Unit: unit, File: unit + ".go", Line: f, TestCode: f == 0})
			for _, to := range []int{i/2 + 1, i/3 + 1, i - f + 1} {
				if f > 0 {
					s.Calls = append(s.Calls, lang.Call{From: id, To: fmt.Sprint("scip-go gomod example.com/m . u", to/100, "/F", to%100, "().")})
				}
			}
			if f == 0 {
				s.Tests = append(s.Tests, lang.Test{Name: "TestF", Unit: unit, File: unit + ".go", Symbol: id})
				s.Calls = append(s.Calls, lang.Call{From: id, To: fmt.Sprint("scip-go gomod example.com/m . ", unit, "/F99().")})
			}
		}
		s.EntryPoints = append(s.EntryPoints, lang.EntryPoint{Kind: "exported_api", Name: unit, Symbol: s.Symbols[u*100+50].ID, File: unit + ".go"})
	}
	var g *Graph
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			g, _ = New([]*lang.Scan{s})
		}
	})
	b.Run("store", func(b *testing.B) {
		for b.Loop() {
			raw, err := g.Encode()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := Decode(raw); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(raw)), "bytes")
		}
	})
	b.Run("rank", func(b *testing.B) {
		for b.Loop() {
			for _, x := range s.Symbols {
				g.FanIn(x.ID)
				g.EntryDistance(x.ID)
			}
		}
	})
	b.Run("candidates_of_1000", func(b *testing.B) {
		for b.Loop() {
			for i := range 1000 {
				g.Candidates(s.Symbols[i*50].ID)
			}
		}
	})
}
