package app

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/config"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/prove"
	"github.com/proveto/proveto/internal/snapshot"
	"github.com/proveto/proveto/internal/view"
)

// watchedBudget is how long a start proves while a person waits and nothing
// else was said.
const watchedBudget = time.Minute

// configured fills what the flags left open from the configuration.
func (a *App) configured(o StartOptions) StartOptions {
	c := a.Config.Prove
	switch {
	case o.Budget > 0 || o.NoBudget:
	case c.Budget > 0:
		o.Budget = c.Budget
	case a.Interactive:
		o.Budget = watchedBudget
	}
	if o.Limit < 0 {
		o.Limit = c.Limit
	}
	if o.Strength == 0 {
		o.Strength = c.MinStrength
	}
	o.Score = o.Score || o.Strength > 0
	return o
}

// readBase reads the configuration of the base: a change is judged by the rules
// that held before it.
func (inv *invocation) readBase(ctx context.Context, snaps *snapshot.Store) error {
	if inv.baseTree == "" {
		return nil
	}
	var doc *config.Document
	body, err := snaps.File(ctx, inv.repo, inv.baseTree, config.FileName)
	switch {
	case err == nil:
		if doc, err = config.Parse("base:"+config.FileName, body); err != nil {
			return err
		}
	case fault.From(err).Kind != fault.NotFound:
		return err
	}
	user, err := config.ReadFile(config.UserFile(inv.app.Getenv), config.LayerUser)
	if err != nil {
		return err
	}
	inv.base, err = config.Load(config.Sources{User: user, Repository: doc, Env: inv.app.Getenv})
	if err != nil {
		return err
	}
	if inv.o.Gate && inv.base.Gate != inv.app.Config.Gate {
		inv.warn("gate_of_base", "the gate of the base holds; "+config.FileName+" of this tree says something else")
	}
	return nil
}

// rules is the configuration that judges: the base's where there is one.
func (inv *invocation) rules() *config.Config {
	if inv.base != nil {
		return inv.base
	}
	return inv.app.Config
}

// leftOut says why a file is no target by configuration; empty when it is one.
// Under a gate the patterns are those of the base, so that a change cannot take
// itself out of its own scope.
func (inv *invocation) leftOut(file string) string {
	c := inv.app.Config.Prove
	if inv.o.Gate {
		c = inv.rules().Prove
	}
	for _, p := range c.Exclude {
		if pathMatches(p, file) {
			return "prove.exclude: " + p
		}
	}
	for _, p := range c.Include {
		if pathMatches(p, file) {
			return ""
		}
	}
	if len(c.Include) > 0 {
		return "outside prove.include"
	}
	return ""
}

// pathMatches tells whether a slash-separated path matches a pattern: * and ?
// stay within one element, ** crosses them, and a pattern that names a directory
// takes everything below it.
func pathMatches(pattern, path string) bool {
	var re strings.Builder
	re.WriteString("^")
	p := strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "/")
	for len(p) > 0 {
		switch {
		case strings.HasPrefix(p, "**/"):
			re.WriteString("(?:.*/)?")
			p = p[3:]
		case strings.HasPrefix(p, "**"):
			re.WriteString(".*")
			p = p[2:]
		case p[0] == '*':
			re.WriteString("[^/]*")
			p = p[1:]
		case p[0] == '?':
			re.WriteString("[^/]")
			p = p[1:]
		default:
			n := strings.IndexAny(p, "*?")
			if n < 0 {
				n = len(p)
			}
			re.WriteString(regexp.QuoteMeta(p[:n]))
			p = p[n:]
		}
	}
	re.WriteString("(?:/.*)?$")
	return regexp.MustCompile(re.String()).MatchString(path)
}

// checkNames refuses a name that the user gave and that nothing here has.
func (inv *invocation) checkNames() error {
	var all []view.Symbol
	for _, want := range inv.o.Only {
		found := false
		for _, p := range inv.projects {
			for _, r := range p.order {
				found = found || names(r.Symbol, want)
				all = append(all, view.Symbol{ID: r.ID, Name: r.Name, File: r.File, Line: r.Line})
			}
		}
		if !found {
			if err := excludedError(want, inv.excluded); err != nil {
				return err
			}
			return nameError(want, all)
		}
	}
	return nil
}

// kinds are the kinds of probes that the configuration allows; nil: all.
func (inv *invocation) kinds() []evidence.ProbeKind {
	var out []evidence.ProbeKind
	for _, k := range inv.app.Config.Prove.Operators {
		out = append(out, evidence.ProbeKind(k))
	}
	return out
}

// unfit are the tests that cannot vouch, of a unit that could not be prepared.
func (u *unit) unfit() []prove.TestState {
	var none *prove.UnfitError
	if errors.As(u.failure, &none) {
		return none.Tests
	}
	return nil
}

// explained is why a unit could not be prepared. Where the failing tests show
// what they lack around them, that is the reason.
func (u *unit) explained() error {
	driver, ok := u.project.driver.(lang.Explainer)
	if !ok {
		return u.failure
	}
	for _, t := range u.unfit() {
		if e, ok := driver.Explain([]byte(t.Detail)); ok {
			e.What = t.Test + ": " + e.What
			return e
		}
	}
	return u.failure
}

// unfitNotes adds the tests of a unit that cannot vouch to the red or the flaky.
func (inv *invocation) unfitNotes(red, flaky []view.TestNote, u *unit, tests []prove.TestState) (r, f []view.TestNote) {
	for _, t := range tests {
		note := orText(firstLine(t.Detail), reasonSentence(string(t.Code)))
		if t.Code == evidence.CodeFlaky || t.Code == evidence.CodeEnvSensitive {
			note = strings.ReplaceAll(string(t.Code), "_", " ") + ": " + note
		}
		n := view.TestNote{
			Test: t.Test, Package: u.id, File: t.File, Line: t.Line, Note: note,
			Command: inv.testCommand(u, t.Test, t.Code),
		}
		if t.Code == evidence.CodeBaselineRed || t.Code == evidence.CodeIncomplete {
			red = append(red, n)
		} else {
			flaky = append(flaky, n)
		}
	}
	return red, flaky
}

// testViews says where the tests are that the symbols name, in the order of the
// symbols. A subtest is where its function is.
func (inv *invocation) testViews(symbols []view.Symbol) []view.Test {
	out := []view.Test{}
	seen := map[[2]string]bool{}
	for _, p := range inv.projects {
		where := map[[2]string]lang.Test{}
		for _, t := range p.today.Scan.Tests {
			where[[2]string{t.Unit, t.Name}] = t
		}
		add := func(unit, name string) {
			key := [2]string{unit, name}
			if name == "" || seen[key] {
				return
			}
			seen[key] = true
			top, _, _ := strings.Cut(name, "/")
			t := where[[2]string{unit, top}]
			out = append(out, view.Test{Name: name, Package: unit, File: t.File, Line: t.Line})
		}
		for _, s := range symbols {
			k := p.known[s.ID]
			if k == nil {
				continue
			}
			if k.live != nil {
				add(k.live.Record.Facts.Unit, k.live.Record.Facts.Test)
			}
			if k.measurement == nil {
				continue
			}
			for _, name := range k.measurement.Target.Tests {
				add(k.measurement.Target.Unit, name)
			}
			for _, t := range k.measurement.Trials {
				add(k.measurement.Target.Unit, t.Test)
			}
		}
	}
	return out
}
