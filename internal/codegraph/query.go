package codegraph

import (
	"slices"
	"strings"
)

// Step is a node at a distance, in calls, from where a walk began.
type Step struct {
	ID       string
	Distance int
}

// Node is the node of an id.
func (g *Graph) Node(id string) (Node, bool) {
	i, ok := g.index[id]
	if !ok {
		return Node{}, false
	}
	return g.nodes[i], true
}

// Nodes are all nodes of a kind in the order in which they were added.
func (g *Graph) Nodes(k Kind) []Node {
	var out []Node
	for _, n := range g.nodes {
		if n.Kind == k {
			out = append(out, n)
		}
	}
	return out
}

// FanIn counts the functions outside test code that call a symbol; itself is not
// counted.
func (g *Graph) FanIn(symbol string) int {
	i, ok := g.index[symbol]
	if !ok {
		return 0
	}
	seen := map[int32]bool{i: true}
	for _, c := range g.callers[i] {
		if !g.nodes[c].TestCode {
			seen[c] = true // twice when both a static and a candidate edge say so
		}
	}
	return len(seen) - 1
}

// Callers lists the functions from which the symbol can be reached in at most k
// calls, nearest first; the symbol itself is not listed.
func (g *Graph) Callers(symbol string, k int) []Step { return g.around(symbol, k, g.callers) }

// Callees lists the functions that the symbol can reach in at most k calls,
// nearest first.
func (g *Graph) Callees(symbol string, k int) []Step { return g.around(symbol, k, g.callees) }

func (g *Graph) around(symbol string, k int, next [][]int32) []Step {
	i, ok := g.index[symbol]
	if !ok || k < 1 {
		return nil
	}
	return g.steps(near(i, next, k, nil)[1:])
}

// EntryDistance is the number of calls from the nearest entry point to the
// symbol: 0 for the function of one. ok is false when no entry point leads there.
func (g *Graph) EntryDistance(symbol string) (calls int, ok bool) {
	i, known := g.index[symbol]
	if !known || g.distance[i] < 0 {
		return 0, false
	}
	return int(g.distance[i]), true
}

// Candidates lists the tests from which calls lead to the symbol, nearest first,
// tests of the symbol's own unit before others at the same distance. They are
// candidates: whether a test executes the symbol is for a run to say.
func (g *Graph) Candidates(symbol string) []Step {
	i, ok := g.index[symbol]
	if !ok {
		return nil
	}
	var out []Step
	for _, v := range near(i, g.callers, -1, nil) {
		for _, t := range g.testOf[v.node] {
			out = append(out, Step{g.nodes[t].ID, v.distance})
		}
	}
	own := g.nodes[i].Unit
	slices.SortFunc(out, func(a, b Step) int {
		if a.Distance != b.Distance {
			return a.Distance - b.Distance
		}
		na, nb := g.nodes[g.index[a.ID]], g.nodes[g.index[b.ID]]
		if (na.Unit == own) != (nb.Unit == own) {
			if na.Unit == own {
				return -1
			}
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// ReachedBy lists the ids of the tests that were seen to execute the symbol,
// sorted; subtests beside their parents.
func (g *Graph) ReachedBy(symbol string) []string {
	i, ok := g.index[symbol]
	if !ok {
		return nil
	}
	var out []string
	for _, p := range g.edges[label{Reaches, Measured}] {
		if p.to == i {
			out = append(out, g.nodes[p.from].ID)
		}
	}
	slices.Sort(out)
	return out
}

// Flow is what an entry point can lead to.
type Flow struct {
	Entry Node
	Steps []Step // its function first
}

// Flows follows the calls from each entry point of the given kind (empty: every
// kind), up to depth calls; test code is left out. Sorted by the entry's id.
func (g *Graph) Flows(kind string, depth int) []Flow {
	var out []Flow
	for _, l := range g.labels() {
		if l.relation != Calls {
			continue
		}
		for _, p := range g.edges[l] {
			n := g.nodes[p.from]
			if n.Kind != EntryPoint || kind != "" && n.Detail != kind {
				continue
			}
			steps := near(p.to, g.callees, depth, func(to int32) bool { return !g.nodes[to].TestCode })
			out = append(out, Flow{Entry: n, Steps: g.steps(steps)})
		}
	}
	slices.SortFunc(out, func(a, b Flow) int { return strings.Compare(a.Entry.ID, b.Entry.ID) })
	return out
}

type visit struct {
	node     int32
	distance int
}

// near is a breadth-first search that touches no more than it visits; the start
// comes first. limit bounds the distance, negative is no limit; nil keeps all.
func near(from int32, next [][]int32, limit int, keep func(int32) bool) []visit {
	seen := map[int32]bool{from: true}
	out := []visit{{from, 0}}
	for i := 0; i < len(out); i++ {
		v := out[i]
		if limit >= 0 && v.distance >= limit {
			continue
		}
		for _, to := range next[v.node] {
			if !seen[to] && (keep == nil || keep(to)) {
				seen[to] = true
				out = append(out, visit{to, v.distance + 1})
			}
		}
	}
	return out
}

// distances is a breadth-first search from many nodes: the distance of every
// node of the graph, -1 where it does not come.
func (g *Graph) distances(from []int32, next [][]int32) []int32 {
	dist := make([]int32, len(g.nodes))
	for i := range dist {
		dist[i] = -1
	}
	var work []int32
	for _, n := range from {
		if dist[n] < 0 {
			dist[n] = 0
			work = append(work, n)
		}
	}
	for i := 0; i < len(work); i++ {
		for _, to := range next[work[i]] {
			if dist[to] < 0 {
				dist[to] = dist[work[i]] + 1
				work = append(work, to)
			}
		}
	}
	return dist
}

func (g *Graph) steps(vs []visit) []Step {
	out := make([]Step, len(vs))
	for i, v := range vs {
		out[i] = Step{g.nodes[v.node].ID, v.distance}
	}
	sortSteps(out)
	return out
}

func sortSteps(s []Step) {
	slices.SortFunc(s, func(a, b Step) int {
		if a.Distance != b.Distance {
			return a.Distance - b.Distance
		}
		return strings.Compare(a.ID, b.ID)
	})
}
