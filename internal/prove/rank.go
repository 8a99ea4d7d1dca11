package prove

import (
	"math"
	"sort"
	"strings"

	"github.com/proveto/proveto/internal/lang"
)

// Graph answers what ranking needs to know about the code around a symbol.
type Graph interface {
	// FanIn counts the symbols that call it.
	FanIn(symbol string) int
	// EntryPoint names the nearest entry point and how many calls away it is;
	// ok is false when none reaches it.
	EntryPoint(symbol string) (name string, distance int, ok bool)
}

// Ranked is a target with what a mistake in it could cost.
type Ranked struct {
	lang.Symbol
	Risk       float64 // 0 to 1
	EntryPoint string
	Changed    bool // inside the changed scope
}

// dataWords mark behaviour whose mistakes hurt: they raise the risk of symbols
// whose name holds one.
var dataWords = []string{
	"amount", "auth", "balance", "charge", "check", "commit", "compare", "decode", "decrypt", "delete", "encode", "encrypt", "fee",
	"hash", "login", "merge", "parse", "password", "pay", "permission", "price", "refund", "remove", "round", "sign", "token",
	"total", "transfer", "valid", "verify", "write",
}

// Rank orders targets by risk, worst first, the changed scope before the rest.
// Risk joins churn (commits that touched the file, most recent first), fan-in,
// nearness to an entry point, size and data words, each between 0 and 1; the
// weights sum to 1.
func Rank(symbols []lang.Symbol, g Graph, churn map[string]int, changed func(lang.Symbol) bool) []Ranked {
	maxChurn := 1
	for _, n := range churn {
		maxChurn = max(maxChurn, n)
	}
	out := make([]Ranked, 0, len(symbols))
	for _, s := range symbols {
		r := Ranked{Symbol: s, Changed: changed(s)}
		fanIn := saturate(g.FanIn(s.ID), 8)
		near := 0.0
		if name, d, ok := g.EntryPoint(s.ID); ok {
			r.EntryPoint, near = name, 1/float64(1+d)
		}
		words := 0.0
		lower := strings.ToLower(s.Name)
		for _, w := range dataWords {
			if strings.Contains(lower, w) {
				words = 1
				break
			}
		}
		r.Risk = 0.25*float64(churn[s.File])/float64(maxChurn) + 0.2*fanIn + 0.25*near + 0.15*saturate(s.Statements, 12) + 0.15*words
		r.Risk = math.Round(r.Risk*100) / 100
		out = append(out, r)
	}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		switch {
		case a.Changed != b.Changed:
			return a.Changed
		case a.Risk != b.Risk:
			return a.Risk > b.Risk
		}
		return a.ID < b.ID
	})
	return out
}

// saturate grows from 0 towards 1; at half it is 1/2.
func saturate(n, half int) float64 { return float64(n) / float64(n+half) }
