package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/view"
)

// attested says what an attestation shows: on what, by whom, and what does not
// count.
func (t *text) attested(v view.FlowVerified) {
	t.line("")
	t.line("task        %s", firstOf(Line(v.Task), 100))
	for _, s := range v.Subject {
		for _, name := range slices.Sorted(maps.Keys(s.Digest)) {
			t.line("about       %s %s  %s", Line(name), Line(s.Digest[name]), Line(s.Name))
		}
	}
	if v.Evidence != "" {
		t.line("%s", Line(v.Evidence))
	}
	for _, p := range v.Properties {
		t.line("holds       %s", Line(p))
	}
	t.line("humans      %s", attestedNames(v.Approvals.Humans, v.Approvals.Independent))
	t.line("agents      %s", attestedNames(v.Approvals.Agents, v.Approvals.Agents))
	if !v.Enforced {
		t.line("separation  1 principal, separation not enforced")
	}
	for _, x := range v.Separation {
		if v.Enforced {
			t.line("separation  %s: %s %s", Line(x.Rule), strings.ReplaceAll(x.State, "_", " "), Line(x.Note))
		}
	}
	for _, d := range v.Decisions {
		text := fmt.Sprintf("%s attempt %d: %s by %s (%s) with key %s", Line(d.Stage), d.Attempt, strings.ReplaceAll(Line(d.Decision), "_", " "), Line(d.Principal), Line(d.Kind), Line(d.Key))
		if d.Tree != "" {
			text += fmt.Sprintf(", on tree %.12s", Line(d.Tree))
		}
		switch {
		case d.Withdrawn:
			text += ", withdrawn"
		case d.Void != "":
			text += ", does not count: " + Line(d.Void)
		}
		t.line("signed      %s", text)
	}
	for _, w := range v.Waivers {
		t.line("%s", t.paint(red, fmt.Sprintf("WAIVED      %s by %s until %s: %s", Line(w.Gate), Line(w.By), w.Expires.UTC().Format("2006-01-02 15:04"), firstOf(Line(w.Reason), 100))))
	}
	if u := v.Unplanned; u != nil {
		t.line("%s", t.paint(red, fmt.Sprintf("UNPLANNED   %s went ahead without the token of the plan: %s", Line(u.By), Line(u.Reason))))
	}
	for _, r := range v.Refused {
		text := fmt.Sprintf("%s by %s: %s", Line(r.Verb), Line(r.By), Line(r.Code))
		if r.Count > 1 {
			text += fmt.Sprintf(", %d times", r.Count)
		}
		t.line("refused     %s", text)
	}
	t.line("ledger      %s, %d entries under head %d:%s", Line(v.Ledger), v.Entries, v.Head.Seq, Line(v.Head.Root))
}

// attestedNames lists names; of those that are not in the second list it says
// that they judged their own work.
func attestedNames(all, apart []string) string {
	if len(all) == 0 {
		return "nobody"
	}
	var out []string
	for _, n := range all {
		if !slices.Contains(apart, n) {
			n += " (who also handed in work)"
		}
		out = append(out, Line(n))
	}
	return strings.Join(out, ", ")
}
