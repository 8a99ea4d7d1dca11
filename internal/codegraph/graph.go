// Package codegraph joins what the drivers report about a checkout into one
// graph and answers the questions by which work is ordered: who calls a symbol,
// how far it is from an entry point, which tests may reach it, which do.
//
// Nodes are symbols, tests, entry points, files and packages. An edge has a
// relation and a basis: measured (a run saw it), static (the sources say it) or
// candidate (a guess that orders attempts). No edge is evidence of a kill, and
// static edges are never shown as reach.
//
// A [Graph] is made by [New], grows by [Graph.AddRun], and is stored as described
// in docs/formats/codegraph.md. The package is pure: no files, no processes, no
// clock. A graph may be read by several goroutines once it is complete.
package codegraph

import (
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

// Kind is what a node is.
type Kind string

// The kinds of nodes.
const (
	Symbol     Kind = "symbol"
	Test       Kind = "test"
	EntryPoint Kind = "entry_point"
	File       Kind = "file"
	Package    Kind = "package"
)

// Relation is what an edge says.
type Relation string

// The relations. A test or an entry point calls the function that it names; a
// subtest is part of its parent, a file of its package.
const (
	Defines Relation = "defines"
	Calls   Relation = "calls"
	Imports Relation = "imports"
	Reaches Relation = "reaches"
	PartOf  Relation = "part_of"
)

// Basis is why an edge is believed.
type Basis string

// The bases.
const (
	Measured  Basis = "measured"
	Static    Basis = "static"
	Candidate Basis = "candidate"
)

// Node is a thing in the graph. ID is unique among all kinds: of a symbol it is
// the driver's, the others begin with their kind.
type Node struct {
	Kind     Kind            `json:"kind"`
	ID       string          `json:"id"`
	Name     string          `json:"name,omitempty"`   // for people
	Detail   string          `json:"detail,omitempty"` // the driver's kind: method, fuzz, http_route
	Unit     string          `json:"unit,omitempty"`
	Line     int             `json:"line,omitempty"`
	Digest   evidence.Digest `json:"digest,omitempty"`
	TestCode bool            `json:"test_code,omitempty"`
}

type label struct {
	relation Relation
	basis    Basis
}

type pair struct{ from, to int32 }

// Graph is a set of nodes and edges without duplicates.
type Graph struct {
	nodes []Node
	index map[string]int32
	edges map[label][]pair // sorted, without duplicates, once tidy has run
	// callers and callees are over calls of every basis, by node.
	callers, callees [][]int32
	testOf           map[int32][]int32 // a test's function to its tests
	entries          []int32
	distance         []int32 // from the nearest entry point; -1 is none
}

// PackageID is the id of a package's node.
func PackageID(unit string) string { return "package:" + unit }

// FileID is the id of a file's node; path is relative to the checkout.
func FileID(path string) string { return "file:" + path }

// TestID is the id of a test's node; name is the full name with subtests.
func TestID(unit, name string) string { return "test:" + unit + "#" + name }

func entryID(e lang.EntryPoint) string {
	return "entry_point:" + e.Kind + ":" + e.Name + "@" + e.Symbol
}

func empty() *Graph {
	return &Graph{index: map[string]int32{}, edges: map[label][]pair{}}
}

// New joins scans, of different projects and languages. Symbols that share an id
// (two modules of one name in a checkout) are one node; problems list them.
func New(scans []*lang.Scan) (g *Graph, problems []lang.Problem) {
	g = empty()
	for _, s := range scans {
		problems = append(problems, g.add(s)...)
	}
	for _, s := range scans {
		for _, c := range s.Calls {
			g.link(Calls, Static, c.From, c.To)
		}
		for _, u := range s.Units {
			for _, imp := range u.Imports {
				g.link(Imports, Static, PackageID(u.ID), PackageID(imp))
			}
		}
	}
	for l := range g.edges {
		g.tidy(l)
	}
	g.prepare()
	return g, problems
}

func (g *Graph) add(s *lang.Scan) (problems []lang.Problem) {
	for _, u := range s.Units {
		g.node(Node{Kind: Package, ID: PackageID(u.ID), Name: u.ID, Unit: u.ID})
		for _, f := range u.Files {
			g.node(Node{Kind: File, ID: FileID(f), Name: f, Unit: u.ID})
			g.link(PartOf, Static, FileID(f), PackageID(u.ID))
		}
	}
	for _, x := range s.Symbols {
		if !g.node(Node{Kind: Symbol, ID: x.ID, Name: x.Name, Detail: x.Kind, Unit: x.Unit, Line: x.Line, Digest: x.Digest, TestCode: x.TestCode}) {
			problems = append(problems, lang.Problem{File: x.File, Line: x.Line, Reason: "second symbol with the id " + x.ID})
			continue
		}
		g.link(Defines, Static, FileID(x.File), x.ID)
	}
	for _, x := range s.Tests {
		id := TestID(x.Unit, x.Name)
		g.node(Node{Kind: Test, ID: id, Name: x.Name, Detail: x.Kind, Unit: x.Unit, Line: x.Line})
		g.link(Defines, Static, FileID(x.File), id)
		g.link(Calls, Static, id, x.Symbol)
	}
	for _, x := range s.EntryPoints {
		id := entryID(x)
		g.node(Node{Kind: EntryPoint, ID: id, Name: x.Name, Detail: x.Kind, Line: x.Line})
		g.link(Defines, Static, FileID(x.File), id)
		g.link(Calls, Static, id, x.Symbol)
	}
	return problems
}

// node adds a node; false when there is one of that id.
func (g *Graph) node(n Node) bool {
	if _, ok := g.index[n.ID]; ok {
		return false
	}
	g.index[n.ID] = int32(len(g.nodes))
	g.nodes = append(g.nodes, n)
	return true
}

// link adds an edge between nodes that are there; edges to anything else (other
// modules, excluded files) are left out.
func (g *Graph) link(r Relation, b Basis, from, to string) {
	f, okFrom := g.index[from]
	t, okTo := g.index[to]
	if !okFrom || !okTo {
		return
	}
	l := label{r, b}
	g.edges[l] = append(g.edges[l], pair{f, t})
}

// tidy sorts the edges of a label and removes duplicates.
func (g *Graph) tidy(l label) {
	ps := g.edges[l]
	if len(ps) == 0 {
		return
	}
	slices.SortFunc(ps, comparePairs)
	g.edges[l] = slices.Compact(ps)
}

func comparePairs(a, b pair) int {
	if a.from != b.from {
		return int(a.from) - int(b.from)
	}
	return int(a.to) - int(b.to)
}

// prepare builds what the queries walk.
func (g *Graph) prepare() {
	g.callers, g.callees = make([][]int32, len(g.nodes)), make([][]int32, len(g.nodes))
	g.testOf, g.entries, g.distance = map[int32][]int32{}, nil, nil
	for _, l := range g.labels() {
		if l.relation != Calls {
			continue
		}
		for _, p := range g.edges[l] {
			switch g.nodes[p.from].Kind {
			case Test:
				g.testOf[p.to] = append(g.testOf[p.to], p.from)
			case EntryPoint:
				g.entries = append(g.entries, p.to)
			default:
				g.callees[p.from] = append(g.callees[p.from], p.to)
				g.callers[p.to] = append(g.callers[p.to], p.from)
			}
		}
	}
	g.distance = g.distances(g.entries, g.callees)
}

// labels lists the relations and bases that have edges, in a fixed order.
func (g *Graph) labels() []label {
	var out []label
	for l := range g.edges {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b label) int {
		if c := strings.Compare(string(a.relation), string(b.relation)); c != 0 {
			return c
		}
		return strings.Compare(string(a.basis), string(b.basis))
	})
	return out
}

// AddRun adds what the tests of a unit were seen to execute: one measured edge
// from each test, and from each subtest that the run shows, to each symbol of
// [evidence.Run.Reach]. A run without reach adds nothing.
func (g *Graph) AddRun(unit string, r evidence.Run) {
	done := map[string]bool{evidence.InitTest: true, "": true}
	reach := r.Reach()
	for _, e := range r.Events() {
		if e.Kind != evidence.EventReach {
			continue
		}
		for name := e.Test; !done[name]; name = parent(name) {
			done[name] = true
			id := TestID(unit, name)
			if g.node(Node{Kind: Test, ID: id, Name: name, Detail: "subtest", Unit: unit}) {
				// Nodes of subtests come late; they call nothing by themselves.
				g.callers, g.callees = append(g.callers, nil), append(g.callees, nil)
				g.distance = append(g.distance, -1)
			}
			for _, symbol := range reach.Of(name) {
				g.link(Reaches, Measured, id, symbol)
			}
		}
	}
	for name := range done {
		if up := parent(name); up != "" {
			g.link(PartOf, Measured, TestID(unit, name), TestID(unit, up))
		}
	}
	g.tidy(label{Reaches, Measured})
	g.tidy(label{PartOf, Measured})
}

// parent is the name of the test that a subtest belongs to; empty for a test.
func parent(name string) string {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return ""
	}
	return name[:i]
}
