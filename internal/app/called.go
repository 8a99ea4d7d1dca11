package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/view"
)

// called is what a command names a symbol by: its name, or its place where
// another symbol has the same name.
func called(all []view.Symbol, s view.Symbol) string {
	for _, o := range all {
		if o.Name == s.Name && o.ID != s.ID {
			return quoteArg(placeOf(s.File, s.Line))
		}
	}
	return quoteArg(s.Name)
}

// callApart notes which symbols of the tree share a name, so that every command
// names one of them.
func (inv *invocation) callApart() {
	times := map[string]int{}
	for _, p := range inv.projects {
		for _, r := range p.order {
			times[r.Name]++
		}
	}
	for _, p := range inv.projects {
		for _, r := range p.order {
			if times[r.Name] > 1 {
				p.known[r.ID].call = quoteArg(placeOf(r.File, r.Line))
			}
		}
	}
}

// placeOf is FILE:LINE.
func placeOf(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }

// called is what a command names the symbol by.
func (k known) called() string { return orText(k.call, quoteArg(k.ranked.Name)) }

// fromHere turns the paths among the words that name symbols into paths of the
// repository: they are typed as they are seen from where the command works. As for
// the go command, a path that ends in ... is everything below it.
func (inv *invocation) fromHere(words []string) []string {
	here, err := filepath.Abs(inv.app.dir(""))
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return words
	}
	out := slices.Clone(words)
	for i, w := range words {
		bare, _ := strings.CutSuffix(w, "...")
		line := ""
		if file, n, ok := fileLine(bare); ok {
			bare, line = file, fmt.Sprintf(":%d", n)
		}
		if bare == "" {
			bare = "."
		}
		full := bare
		if !filepath.IsAbs(full) {
			full = filepath.Join(here, full)
		}
		if _, err := os.Lstat(full); err != nil {
			continue
		}
		if rel, err := filepath.Rel(inv.repo.Root, full); err == nil && filepath.IsLocal(rel) {
			out[i] = filepath.ToSlash(rel) + line
		}
	}
	return out
}

// excludedError says of a word that names code which is never a target why it is
// none; nil when it names no such code.
func excludedError(word string, excluded []view.Excluded) error {
	file, line, isPlace := fileLine(word)
	for _, x := range excluded {
		isThere := isPlace && line == x.Line && (x.File == file || strings.HasSuffix(x.File, "/"+file))
		if x.Name != word && !strings.HasSuffix(x.Name, "."+word) && !isThere {
			continue
		}
		why, ok := exclusions[x.Reason]
		if !ok {
			why = strings.ReplaceAll(x.Reason, "_", " ")
		}
		e := fault.New(fault.NotFound, "not_found", "%s (%s) is no behaviour that can be measured: %s (%s)", x.Name, placeOf(x.File, x.Line), why, x.Reason)
		if strings.Contains(x.Reason, "prove.") {
			e = e.Hint("proveto config get prove")
		}
		return e.Hint("proveto gaps --all")
	}
	return nil
}

// exclusions word the reasons of the drivers for which code is never a target.
var exclusions = map[string]string{
	"generated":  "its file says that it is generated",
	"no_body":    "its body is not in Go",
	"blank":      "it has no name",
	"empty_body": "its body is empty",
}
