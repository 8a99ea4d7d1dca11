package golang

import (
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang/mutate"
)

// Probes implements [lang.Suite]. A probe that puts a constant in the place of a
// result is left out when a baseline saw that constant there: it might change
// nothing. Probes whose result was not seen at all come after the others of
// their kind.
func (s *suite) Probes(symbol string, seen []evidence.Run, all bool) []lang.Probe {
	values := valuesOf(seen)
	atInit := onlyAtInit(symbol, seen)
	type ranked struct {
		lang.Probe
		unseen bool
	}
	var out []ranked
	for i, p := range s.p.packages {
		if !slices.Contains(p.Symbols, symbol) {
			continue
		}
		base := int64(i+1) << siteBits
		sites, err := s.p.sitesOf(p)
		if err != nil {
			return nil // the cache was damaged since the suite was built; nothing can be switched on
		}
		for n, site := range sites {
			if site.Symbol != symbol || (!all && site.Kind != evidence.ProbeResult) {
				continue
			}
			v, observed := values.of(base, site)
			if site.Const != "" && v[site.Const] {
				continue
			}
			out = append(out, ranked{
				Probe:  lang.Probe{Probe: site.Probe, Switch: base + int64(n+1), AtInit: atInit},
				unseen: site.Const != "" && !observed,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b ranked) int {
		if d := a.Kind.Order() - b.Kind.Order(); d != 0 {
			return d
		}
		switch {
		case a.unseen == b.unseen:
			return 0
		case a.unseen:
			return 1
		}
		return -1
	})
	probes := make([]lang.Probe, len(out))
	for i, r := range out {
		probes[i] = r.Probe
	}
	return probes
}

// observed are the values that baselines saw, by value site and result.
type observed map[[2]int64]map[string]bool

func valuesOf(runs []evidence.Run) observed {
	out := observed{}
	for _, r := range runs {
		for _, e := range r.Events() {
			if e.Kind != evidence.EventValue || len(e.Index) != 1 {
				continue
			}
			key := [2]int64{e.Base, e.Index[0]}
			if out[key] == nil {
				out[key] = map[string]bool{}
			}
			for _, v := range e.Values {
				out[key][v] = true
			}
		}
	}
	return out
}

func (o observed) of(base int64, s mutate.Site) (map[string]bool, bool) {
	if s.Value == 0 {
		return nil, false
	}
	v, ok := o[[2]int64{base + int64(s.Value), int64(s.Result)}]
	return v, ok
}

// onlyAtInit tells a symbol that ran before the tests and in none of them.
func onlyAtInit(symbol string, runs []evidence.Run) bool {
	before := false
	for _, r := range runs {
		names := map[int64]string{}
		for _, e := range r.Events() {
			switch e.Kind {
			case evidence.EventSymbols:
				for i, n := range e.Names {
					names[e.Base+int64(i)] = n
				}
			case evidence.EventReach:
				for _, i := range e.Index {
					if names[i] != symbol {
						continue
					}
					if e.Test != evidence.InitTest {
						return false
					}
					before = true
				}
			}
		}
	}
	return before
}
