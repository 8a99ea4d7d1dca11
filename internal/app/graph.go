package app

import (
	"github.com/proveto/proveto/internal/lang"
)

// graph answers the ranking's questions from the calls of a scan.
type graph struct {
	fanIn    map[string]int
	distance map[string]int
	entry    map[string]string
}

// newGraph walks breadth first from the entry points down the static calls.
func newGraph(s *lang.Scan) *graph {
	g := &graph{fanIn: map[string]int{}, distance: map[string]int{}, entry: map[string]string{}}
	calls := map[string][]string{}
	seen := map[lang.Call]bool{}
	for _, c := range s.Calls {
		if seen[c] {
			continue
		}
		seen[c] = true
		calls[c.From] = append(calls[c.From], c.To)
		g.fanIn[c.To]++
	}
	var front []string
	for _, e := range s.EntryPoints {
		if _, ok := g.distance[e.Symbol]; !ok && e.Symbol != "" {
			g.distance[e.Symbol], g.entry[e.Symbol] = 0, e.Kind+" "+e.Name
			front = append(front, e.Symbol)
		}
	}
	for len(front) > 0 {
		from := front[0]
		front = front[1:]
		for _, to := range calls[from] {
			if _, ok := g.distance[to]; !ok {
				g.distance[to], g.entry[to] = g.distance[from]+1, g.entry[from]
				front = append(front, to)
			}
		}
	}
	return g
}

// FanIn implements [prove.Graph].
func (g *graph) FanIn(symbol string) int { return g.fanIn[symbol] }

// EntryPoint implements [prove.Graph].
func (g *graph) EntryPoint(symbol string) (string, int, bool) {
	d, ok := g.distance[symbol]
	return g.entry[symbol], d, ok
}
