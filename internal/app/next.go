package app

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/late"
	"github.com/proveto/proveto/internal/view"
)

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

// inProject makes a command of the go command work from where the user stands: it
// is about one project.
func (inv *invocation) inProject(p lang.Project, command string) string {
	m := goCommand().FindStringSubmatch(command)
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
var goCommand = late.Regexp(`^((?:[A-Z_]+=\S+ )*)go (.+)$`)
