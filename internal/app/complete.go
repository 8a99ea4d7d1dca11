package app

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
)

// Named is a word that can be typed, with what it is.
type Named struct{ Word, What string }

// Offers are the names that a shell offers.
type Offers struct {
	Symbols   []Named // sorted
	Tests     []Named
	Survivors []Named // ids of mutants that no test noticed
}

// Offer lists the names of the last saved result of this repository. It measures
// nothing, and makes no state where there is none.
func (a *App) Offer(ctx context.Context) (Offers, error) {
	var out Offers
	if a.DatabaseURL == "" && a.Config.Store.DatabaseURL == "" {
		if _, err := os.Stat(a.Paths.State); err != nil {
			return out, err
		}
	}
	saved, err := a.latestHere(ctx)
	if err != nil || saved == nil {
		return out, err
	}
	for _, s := range saved.Symbols {
		out.Symbols = append(out.Symbols, Named{s.Name, strings.ReplaceAll(s.Word, "_", " ")})
		for _, m := range s.Mutants {
			if m.Status == string(evidence.Survived) {
				out.Survivors = append(out.Survivors, Named{evidence.Digest(m.ID).Short(), s.Name + ": " + m.Summary})
			}
		}
	}
	for _, t := range saved.Tests {
		out.Tests = append(out.Tests, Named{t.Name, t.Package})
	}
	for _, l := range [][]Named{out.Symbols, out.Tests} {
		slices.SortFunc(l, func(x, y Named) int { return strings.Compare(x.Word, y.Word) })
	}
	return out, nil
}

// ProbeKinds lists the kinds of probes that can be asked for.
func ProbeKinds() []string {
	var out []string
	for _, k := range evidence.ProbeKinds() {
		out = append(out, string(k))
	}
	return out
}
