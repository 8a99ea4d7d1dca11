package app

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/config"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
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

// testCommand shows what a test does that cannot vouch, by the project's own
// runner; empty where that shows nothing of the reason.
func (inv *invocation) testCommand(u *unit, test string, code fault.Code) string {
	d, ok := u.project.driver.(lang.Commander)
	if !ok || inv.repo.Root == "" {
		return ""
	}
	times := 1
	switch code {
	case evidence.CodeFlaky:
		times = 20
	case evidence.CodeBaselineRed, evidence.CodeOrderDependent, evidence.CodeIncomplete, evidence.CodeTestsNotRun:
	default:
		return "" // it is green where no probe and no other environment is
	}
	rel := "."
	for _, lu := range u.project.today.Scan.Units {
		if lu.ID == u.id {
			rel = relative(u.project.Dir, lu.Dir)
		}
	}
	return d.TestCommand(filepath.Join(inv.repo.Root, filepath.FromSlash(u.project.Dir)), rel, test, times)
}

// relative is a slash-separated directory of the checkout as seen from another
// that holds it.
func relative(from, dir string) string {
	if from == "." || from == "" {
		return path.Clean(dir)
	}
	if rest, ok := strings.CutPrefix(dir, from+"/"); ok {
		return rest
	}
	return "."
}

// firsts say what must come before a symbol is worth measuring again; the key is
// the reason for which it is not proven.
var firsts = map[string]string{
	"survived":                           "a test notices it",
	string(evidence.NoCoverage):          "a test reaches it",
	string(lang.NoTests):                 "its package has a test",
	"killed_by_error_only":               "a test fails by an assertion of its own, not by a crash",
	"timeout":                            "a test notices it without waiting for ever",
	string(evidence.CodeBaselineRed):     "its test is green",
	string(evidence.CodeIncomplete):      "its test leaves the process running",
	string(evidence.CodeTestsNotRun):     "its test is not skipped any more",
	string(evidence.CodeNoTestsRan):      "a test of its package is not skipped any more",
	string(evidence.CodeFlaky):           "its test gives the same answer every time",
	string(evidence.CodeOrderDependent):  "its test passes alone",
	string(evidence.CodeEnvSensitive):    "its test gives the same answer in every environment",
	string(evidence.CodeSwitchSensitive): "its test does not depend on how long it runs or what it allocates",
	string(lang.DependencyMissing):       "the dependency is there",
	string(lang.DatabaseOrNetwork):       "its tests reach what they need",
	string(lang.ToolMissing):             "the tool is there",
	string(lang.BuildFailed):             "its package and its tests build",
}

// afterwards are the commands that get on from one symbol that is not proven: what
// shows the reason, and what measures it again once that is gone.
func afterwards(all []view.Symbol, s view.Symbol) []view.Next {
	var out []view.Next
	reason := orText(s.Blocked, s.Reason)
	if s.Word == string(evidence.NotMeasured) && (reason == string(evidence.Waived) || reason == "no_probe") {
		return []view.Next{{Why: "nothing is to be done here; what else is not proven", Run: "proveto gaps"}}
	}
	again := "proveto prove " + called(all, s)
	if s.Command != "" && !strings.HasPrefix(s.Command, "proveto why") {
		out = append(out, view.Next{Why: s.Detail, Run: s.Command})
		if s.Command == again || strings.HasPrefix(s.Command, "proveto ") {
			return out
		}
	}
	first, ok := firsts[reason]
	if !ok {
		if first, ok = firsts[staleWhy(s)]; !ok {
			first = "that has changed"
		}
	}
	return append(out, view.Next{Why: "measure it again once " + first, Run: again})
}

// staleWhy is the reason for which a stale symbol was not proven again, as far as
// only its sentence says it.
func staleWhy(s view.Symbol) string {
	_, why, ok := strings.Cut(s.Detail, "; ")
	if s.Word != string(evidence.Stale) || !ok {
		return ""
	}
	for reason, r := range reasons {
		if r.text == why {
			return reason
		}
	}
	return ""
}

// elsewhere tells whether another project of the checkout that has tests names
// this one in its manifest: its tests may reach what those of this one do not.
func (inv *invocation) elsewhere(p *project) bool {
	return slices.ContainsFunc(inv.projects, func(o *project) bool {
		if o == p || !slices.ContainsFunc(o.today.Scan.Units, func(u lang.Unit) bool { return u.Tests > 0 }) {
			return false
		}
		manifest, err := os.ReadFile(filepath.Join(inv.checkout.Dir(), filepath.FromSlash(o.Manifest)))
		return err != nil || bytes.Contains(manifest, []byte(p.Name))
	})
}

// excludedError says of a word that names code which is never a target why it is
// none; nil when it names no such code.
func excludedError(word string, excluded []view.Excluded) error {
	file, line, isPlace := fileLine(word)
	for _, x := range excluded {
		if x.Name != word && !strings.HasSuffix(x.Name, "."+word) && !(isPlace && line == x.Line && (x.File == file || strings.HasSuffix(x.File, "/"+file))) {
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

// inProject makes a command of the go command work from where the user stands: it
// is about one project.
func (inv *invocation) inProject(p lang.Project, command string) string {
	m := goCommand.FindStringSubmatch(command)
	if m == nil || inv.repo.Root == "" || strings.HasPrefix(m[2], "-C ") || strings.HasPrefix(m[2], "version") {
		return command
	}
	dir := filepath.Join(inv.repo.Root, filepath.FromSlash(p.Dir))
	if here, err := os.Getwd(); err == nil && here == dir {
		return command
	}
	return m[1] + "go -C " + quoteArg(dir) + " " + m[2]
}

// goCommand is a command of the go command, with settings in front.
var goCommand = regexp.MustCompile(`^((?:[A-Z_]+=\S+ )*)go (.+)$`)

// DefaultFormats are the reports that are written where nothing else is set.
func DefaultFormats() string {
	for _, k := range config.Keys() {
		if k.Name == "reports.formats" {
			return strings.Trim(k.Default, "[]")
		}
	}
	return ""
}
