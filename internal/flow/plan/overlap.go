package plan

import "slices"

// maxSteps bounds the search for a common path; beyond it two patterns are taken
// to overlap, and one is not taken to lie within others.
const maxSteps = 1 << 20

// Intersects tells whether some path can match both patterns. It is exact for all
// patterns but those too large to be compared, which are said to intersect.
func Intersects(a, b *Pattern) bool {
	steps := maxSteps
	for i := range a.alts {
		for j := range b.alts {
			x, y := &a.alts[i], &b.alts[j]
			switch {
			case x.exact:
				if y.match(x.prefix) {
					return true
				}
			case y.exact:
				if x.match(y.prefix) {
					return true
				}
			case common(x.prefix, y.prefix):
				if meet(x.machine(), y.machine(), &steps) || steps <= 0 {
					return true
				}
			}
		}
	}
	return false
}

// common tells whether one prefix begins with the other.
func common(a, b string) bool {
	n := min(len(a), len(b))
	return a[:n] == b[:n]
}

// Intersects tells whether some path can match both sets.
func (s Set) Intersects(o Set) bool {
	for _, a := range s {
		for _, b := range o {
			if Intersects(a, b) {
				return true
			}
		}
	}
	return false
}

// atom is one element of an alternative as a machine reads it.
type atom struct {
	kind byte // of: one byte; any: one byte of a name; star: a run of these; deep: any number of names, each with its slash
	b    byte
}

const (
	of byte = iota
	any1
	star
	deep
)

// machine is an automaton over bytes. Its states are 0 to len(m), the last the
// accepting one; state -1-i is inside a name that the deep atom i takes.
type machine []atom

func (a *alternative) machine() machine {
	var m machine
	for i, name := range a.names {
		if name == "**" {
			m = append(m, atom{kind: deep})
			continue
		}
		for j := range len(name) {
			switch name[j] {
			case '*':
				m = append(m, atom{kind: star})
			case '?':
				m = append(m, atom{kind: any1})
			default:
				m = append(m, atom{of, name[j]})
			}
		}
		if i+1 < len(a.names) {
			m = append(m, atom{of, '/'})
		}
	}
	return m
}

// move is a step of a machine: it reads one byte, or any byte of a name.
type move struct {
	any bool
	b   byte
	to  int
}

// skips tells whether the state is also the next one, without reading.
func (m machine) skips(s int) bool { return s >= 0 && s < len(m) && m[s].kind >= star }

// moves lists the steps from a state, two at most.
func (m machine) moves(s int) []move {
	if s < 0 {
		return []move{{any: true, to: s}, {b: '/', to: -1 - s}}
	}
	if s == len(m) {
		return nil
	}
	switch a := m[s]; a.kind {
	case any1:
		return []move{{any: true, to: s + 1}}
	case star:
		return []move{{any: true, to: s}}
	case deep:
		return []move{{any: true, to: -1 - s}}
	default:
		return []move{{b: a.b, to: s + 1}}
	}
}

// agree tells whether one byte serves both moves.
func agree(a, b move) bool {
	switch {
	case a.any && b.any:
		return true
	case a.any:
		return b.b != '/'
	case b.any:
		return a.b != '/'
	}
	return a.b == b.b
}

// meet tells whether the two machines accept a common word. Each pair of states
// that is looked at takes one of the steps.
func meet(a, b machine, steps *int) bool {
	type pair struct{ x, y int }
	seen := map[pair]bool{{}: true}
	todo := []pair{{}}
	add := func(p pair) {
		if !seen[p] {
			seen[p] = true
			todo = append(todo, p)
		}
	}
	for len(todo) > 0 {
		if *steps--; *steps <= 0 {
			return true
		}
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if p.x == len(a) && p.y == len(b) {
			return true
		}
		if a.skips(p.x) {
			add(pair{p.x + 1, p.y})
		}
		if b.skips(p.y) {
			add(pair{p.x, p.y + 1})
		}
		for _, x := range a.moves(p.x) {
			for _, y := range b.moves(p.y) {
				if agree(x, y) {
					add(pair{x.to, y.to})
				}
			}
		}
	}
	return false
}

// Covers tells whether every path that the pattern can match is matched by the
// set. It is exact for all but patterns too large to be compared, which are said
// not to be covered.
func (s Set) Covers(p *Pattern) bool {
	steps := maxSteps / 16
	for i := range p.alts {
		a := &p.alts[i]
		if a.exact {
			if !s.Match(a.prefix) {
				return false
			}
			continue
		}
		var with []machine
		for _, q := range s {
			for j := range q.alts {
				if common(q.alts[j].prefix, a.prefix) {
					with = append(with, q.alts[j].machine())
				}
			}
		}
		if !within(a.machine(), with, &steps) {
			return false
		}
	}
	return true
}

// spot is a state of one of several machines.
type spot struct{ machine, state int }

// within tells whether every word of the machine is one of the others'. It walks
// the states of the machine together with the set of states that the others can
// be in.
func within(m machine, others []machine, steps *int) bool {
	bytes := alphabet(append(slices.Clone(others), m))
	type pair struct {
		state int
		key   string
	}
	seen := map[pair]bool{}
	type item struct {
		state int
		at    []spot
	}
	var todo []item
	add := func(state int, at []spot) {
		at = settle(others, at)
		p := pair{state, spotKey(at)}
		if !seen[p] {
			seen[p] = true
			todo = append(todo, item{state, at})
		}
	}
	start := make([]spot, len(others))
	for i := range others {
		start[i] = spot{i, 0}
	}
	add(0, start)
	for len(todo) > 0 {
		it := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if *steps -= 1 + len(it.at); *steps <= 0 {
			return false
		}
		if it.state == len(m) && !slices.ContainsFunc(it.at, func(s spot) bool { return s.state == len(others[s.machine]) }) {
			return false
		}
		if m.skips(it.state) {
			add(it.state+1, it.at)
		}
		for _, mv := range m.moves(it.state) {
			for _, b := range bytes {
				if agree(mv, move{b: b}) {
					add(mv.to, read(others, it.at, b))
				}
			}
		}
	}
	return true
}

// alphabet is every byte that a machine names, the slash, and one that none names.
func alphabet(ms []machine) []byte {
	var named [256]bool
	named['/'] = true
	for _, m := range ms {
		for _, a := range m {
			if a.kind == of {
				named[a.b] = true
			}
		}
	}
	var out []byte
	other := false
	for b := range 256 {
		if named[b] {
			out = append(out, byte(b))
		} else if !other {
			out, other = append(out, byte(b)), true
		}
	}
	return out
}

// read is where the machines can be after one byte.
func read(ms []machine, at []spot, b byte) []spot {
	var out []spot
	for _, s := range at {
		for _, mv := range ms[s.machine].moves(s.state) {
			if agree(mv, move{b: b}) {
				out = append(out, spot{s.machine, mv.to})
			}
		}
	}
	return out
}

// settle adds what is reached without reading, sorted, each once.
func settle(ms []machine, at []spot) []spot {
	out := slices.Clone(at)
	for i := 0; i < len(out); i++ {
		if s := out[i]; ms[s.machine].skips(s.state) {
			if next := (spot{s.machine, s.state + 1}); !slices.Contains(out, next) {
				out = append(out, next)
			}
		}
	}
	slices.SortFunc(out, func(a, b spot) int {
		if a.machine != b.machine {
			return a.machine - b.machine
		}
		return a.state - b.state
	})
	return slices.Compact(out)
}

func spotKey(at []spot) string {
	b := make([]byte, 0, 6*len(at))
	for _, s := range at {
		b = append(b, byte(s.machine), byte(s.machine>>8), byte(s.machine>>16), byte(s.state), byte(s.state>>8), byte(s.state>>16))
	}
	return string(b)
}
