package codegraph

import (
	"encoding/json"
	"fmt"

	"github.com/proveto/proveto/internal/fault"
)

// Schema names the stored form; see docs/formats/codegraph.md.
const Schema = "proveto/codegraph/v1"

// CodeMalformed is the code of the error for bytes that are no graph.
const CodeMalformed fault.Code = "codegraph_malformed"

type stored struct {
	Schema string        `json:"schema"`
	Nodes  []Node        `json:"nodes"`
	Edges  []storedEdges `json:"edges"`
}

// storedEdges are all edges of one relation and basis: from and to in turns, as
// positions in the list of nodes.
type storedEdges struct {
	Relation Relation `json:"relation"`
	Basis    Basis    `json:"basis"`
	Pairs    []int32  `json:"pairs"`
}

var (
	kinds     = map[Kind]bool{Symbol: true, Test: true, EntryPoint: true, File: true, Package: true}
	relations = map[Relation]bool{Defines: true, Calls: true, Imports: true, Reaches: true, PartOf: true}
	bases     = map[Basis]bool{Measured: true, Static: true, Candidate: true}
)

// Encode is the stored form. Equal graphs that were made in the same order have
// equal bytes.
func (g *Graph) Encode() ([]byte, error) {
	s := stored{Schema: Schema, Nodes: g.nodes, Edges: []storedEdges{}}
	if s.Nodes == nil {
		s.Nodes = []Node{}
	}
	for _, l := range g.labels() {
		e := storedEdges{Relation: l.relation, Basis: l.basis, Pairs: make([]int32, 0, 2*len(g.edges[l]))}
		for _, p := range g.edges[l] {
			e.Pairs = append(e.Pairs, p.from, p.to)
		}
		s.Edges = append(s.Edges, e)
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode code graph: %w", err)
	}
	return b, nil
}

// Decode reads the stored form. What does not keep its rules is an error with
// code codegraph_malformed: the graph can be made again from the scans.
func Decode(b []byte) (*Graph, error) {
	bad := func(what string, args ...any) error {
		return fault.New(fault.Internal, CodeMalformed, "code graph: "+what, args...)
	}
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fault.Wrap(err, fault.Internal, CodeMalformed, "code graph")
	}
	if s.Schema != Schema {
		return nil, bad("schema %q, want %q", s.Schema, Schema)
	}
	g := empty()
	for _, n := range s.Nodes {
		if !kinds[n.Kind] || n.ID == "" {
			return nil, bad("node %q of kind %q", n.ID, n.Kind)
		}
		if !g.node(n) {
			return nil, bad("two nodes %q", n.ID)
		}
	}
	for _, e := range s.Edges {
		if !relations[e.Relation] || !bases[e.Basis] || len(e.Pairs)%2 != 0 {
			return nil, bad("edges %s/%s with %d ends", e.Relation, e.Basis, len(e.Pairs))
		}
		l := label{e.Relation, e.Basis}
		for i := 0; i < len(e.Pairs); i += 2 {
			p := pair{e.Pairs[i], e.Pairs[i+1]}
			if min(p.from, p.to) < 0 || int(max(p.from, p.to)) >= len(g.nodes) {
				return nil, bad("edge %d to %d among %d nodes", p.from, p.to, len(g.nodes))
			}
			if n := len(g.edges[l]); n > 0 && comparePairs(g.edges[l][n-1], p) >= 0 {
				return nil, bad("edge %d to %d is out of order", p.from, p.to)
			}
			g.edges[l] = append(g.edges[l], p)
		}
	}
	g.prepare()
	return g, nil
}
