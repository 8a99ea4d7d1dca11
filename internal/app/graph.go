package app

import (
	"github.com/proveto/proveto/internal/codegraph"
	"github.com/proveto/proveto/internal/lang"
)

// graph answers the ranking's questions from the code graph.
type graph struct {
	*codegraph.Graph
	names map[string]string // entry points by symbol
}

// newGraph builds the graph of one project, and lists what did not fit together.
func newGraph(s *lang.Scan) (graph, []lang.Problem) {
	g, problems := codegraph.New([]*lang.Scan{s})
	out := graph{Graph: g, names: map[string]string{}}
	for _, e := range s.EntryPoints {
		if out.names[e.Symbol] == "" {
			out.names[e.Symbol] = e.Kind + " " + e.Name
		}
	}
	return out, problems
}

// EntryPoint implements [prove.Graph].
func (g graph) EntryPoint(symbol string) (name string, distance int, ok bool) {
	distance, ok = g.EntryDistance(symbol)
	if !ok {
		return "", 0, false
	}
	for _, c := range append([]codegraph.Step{{ID: symbol}}, g.Callers(symbol, distance)...) {
		if n := g.names[c.ID]; n != "" {
			return n, distance, true
		}
	}
	return "", distance, true
}
