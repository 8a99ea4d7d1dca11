package render

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/proveto/proveto/internal/view"
)

//go:embed flow_report.css
var flowReportCSS string

//go:embed flow_report.html.tmpl
var flowReportTemplate string

// FlowReportMarkdown writes a run as Markdown: verdict, what is missing, what
// changed, detail, provenance. All foreign text is escaped.
func FlowReportMarkdown(w io.Writer, v view.FlowReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s run %s, policy %s\n\n> %s\n\n", mdText(v.Verdict.Text), flowWord(v.Verdict.Word), v.Run.ID, mdText(v.Run.Policy.Name), mdClip(v.Run.Task))
	for _, s := range flowNotes(v) {
		fmt.Fprintf(&b, "**%s**\n\n", mdText(s))
	}
	b.WriteString("## What is missing\n\n")
	if len(v.Missing) == 0 {
		b.WriteString("Nothing.\n")
	}
	for _, m := range v.Missing {
		fmt.Fprintf(&b, "- %s", mdClip(m.What))
		if m.Stage != "" {
			fmt.Fprintf(&b, " (stage %s)", mdText(m.Stage))
		}
		if m.Run != "" {
			fmt.Fprintf(&b, ": %s", mdCode(m.Run))
		}
		b.WriteByte('\n')
	}
	mdChanged(&b, v)
	if p := v.Plan; p != nil {
		fmt.Fprintf(&b, "\n## Requirements\n\nPlan revision %d, %s\n\n| requirement | state | text | certificates |\n|---|---|---|---|\n", p.Revision, mdCode(p.ID))
		for _, q := range p.Requirements {
			var certs []string
			for _, c := range q.Certificates {
				certs = append(certs, mdCell(short(c)))
			}
			fmt.Fprintf(&b, "| %s | %s%s | %s | %s |\n", mdText(q.ID), mdText(lookup(words, q.State).Label), mdBecause(q.Reason), mdClip(q.Text), strings.Join(certs, ", "))
		}
	}
	b.WriteString("\n## Every attempt\n")
	for _, s := range v.Stages {
		mdStage(&b, s)
	}
	mdFindings(&b, v)
	if len(v.Waivers) > 0 {
		b.WriteString("\n## Waivers\n\n")
		for _, x := range v.Waivers {
			fmt.Fprintf(&b, "- 🟥 **WAIVED** %s%s by %s until %s%s: %s\n", mdText(x.Gate), mdBefore(" at stage ", x.Stage), mdText(x.By), x.Expires.UTC().Format(time.RFC3339), usedText(x.Used), mdClip(x.Reason))
		}
	}
	b.WriteString("\n## Separation of duties\n\n")
	if !v.Enforced {
		b.WriteString("1 principal, separation not enforced.\n")
	}
	for _, x := range v.Separation {
		fmt.Fprintf(&b, "- %s: %s%s\n", mdText(x.Rule), mdText(strings.ReplaceAll(x.State, "_", " ")), mdBecause(x.Note))
	}
	b.WriteString("\n## Refused requests\n\n")
	if len(v.Refused) == 0 {
		b.WriteString("None.\n")
	}
	for _, r := range v.Refused {
		fmt.Fprintf(&b, "- entry %d, %s: %s by %s%s: %s, %s%s\n", r.Seq, r.At.Format(time.RFC3339), mdText(r.Verb), mdText(r.By), mdBefore(" at stage ", r.Stage), mdCode(r.Code), mdClip(r.What), timesText(r.Count))
	}
	b.WriteString("\n## Claims\n\nWhat was said, in order. Nothing here was measured, and nothing of it counted.\n\n")
	for _, c := range v.Claims {
		fmt.Fprintf(&b, "- claim of %s (%s), %s%s: %s\n", mdText(c.Who), mdText(c.Kind), mdText(strings.ReplaceAll(c.Word, "_", " ")), mdBefore(" at ", c.Stage), mdClip(c.Text))
	}
	if len(v.Claims) == 0 {
		b.WriteString("None.\n")
	}
	p := v.Provenance
	fmt.Fprintf(&b, "\n## Provenance\n\n- as of %s, entry %d, the last of %d about the run\n- ledger %s, head %s\n- engine key %s\n- signatures: %s\n- policy %s, principals %s\n",
		p.AsOf.Format(time.RFC3339Nano), p.Seq, p.Entries, mdCode(p.Ledger), mdCode(fmt.Sprintf("%d:%s", p.Head.Seq, p.Head.Root)), mdCode(p.VerifierKey), mdText(p.Signatures),
		mdCode(p.Policy), mdCode(p.Principals))
	if p.Base != "" {
		fmt.Fprintf(&b, "- base %s%s\n", mdCode(p.Base), mdBefore(", target ", p.Target))
	}
	fmt.Fprintf(&b, "- written by proveto %s\n", mdText(p.Version))
	_, err := io.WriteString(w, b.String())
	return err
}

// flowNotes are what a reader must not miss.
func flowNotes(v view.FlowReport) []string {
	var out []string
	if v.Evidence != "" {
		out = append(out, v.Evidence)
	}
	if u := v.Unplanned; u != nil {
		out = append(out, fmt.Sprintf("UNPLANNED: %s went ahead without the token of the plan: %s", u.By, u.Reason))
	}
	if !v.Enforced {
		out = append(out, "1 principal, separation not enforced")
	}
	return out
}

func mdChanged(b *strings.Builder, v view.FlowReport) {
	c := v.Changed
	b.WriteString("\n## What changed\n\n")
	if c.Why != "" {
		fmt.Fprintf(b, "Not shown: %s.\n", mdClip(c.Why))
		return
	}
	fmt.Fprintf(b, "%d files, +%d −%d, tree %s\n\n| file | | + | − |\n|---|---|---|---|\n", c.Total, c.Added, c.Deleted, mdCode(c.Tree))
	for _, f := range c.Files {
		fmt.Fprintf(b, "| %s%s | %s%s | %d | %d |\n", mdCell(f.Path), mdBefore(" from ", f.From), mdText(f.Op), binaryText(f.Binary), f.Added, f.Deleted)
	}
	if n := len(c.Files); n < c.Total {
		fmt.Fprintf(b, "\n%d of %d files are listed.\n", n, c.Total)
	}
}

func mdStage(b *strings.Builder, s view.FlowReportStage) {
	fmt.Fprintf(b, "\n### %s: %s%s\n", mdText(s.ID), mdText(s.State), mdBecause(s.Because))
	if len(s.Attempts) == 0 {
		b.WriteString("\nNothing was handed in.\n")
	}
	for _, a := range s.Attempts {
		word := "earlier attempt, " + a.State
		if a.Current {
			word = a.State
		}
		fmt.Fprintf(b, "\nAttempt %d, %s", a.N, mdText(word))
		if a.Producer != "" {
			fmt.Fprintf(b, ", handed in by %s (%s)", mdText(a.Producer), mdText(a.ProducerKind))
		}
		if a.Tree != "" {
			fmt.Fprintf(b, ", tree %s", mdCode(a.Tree))
		}
		fmt.Fprintf(b, "%s\n\n", mdBefore(", carried ", a.Carried))
		for _, g := range a.Gates {
			outcome := flowOutcome(g.Outcome)
			if g.Waived != "" {
				outcome = "🟥 **WAIVED** (" + outcome + ")"
			}
			fmt.Fprintf(b, "- gate %s: %s%s%s, probe %s%s\n", mdText(g.ID), outcome, mdBecause(g.Reason), mdBefore("; ", g.Tests), mdText(flowProbe(g.Probe)), mdEvidence(g.Evidence))
		}
		for _, d := range a.Decisions {
			fmt.Fprintf(b, "- %s by %s (%s), key %s%s%s\n", mdText(strings.ReplaceAll(d.Decision, "_", " ")), mdText(d.Principal), mdText(d.Kind), mdCode(d.Key), mdText(flowStanding(d)), mdBecause(d.Note))
		}
	}
}

func mdFindings(b *strings.Builder, v view.FlowReport) {
	b.WriteString("\n## Findings\n\n")
	if len(v.Findings) == 0 {
		b.WriteString("None.\n")
	}
	for _, x := range v.Findings {
		fmt.Fprintf(b, "- %s, %s, %s, %s%s: %s (%s, for %s)\n", mdText(x.ID), mdText(x.Severity), mdText(x.Category), mdText(x.State), mdBefore(" at ", place(x)), mdClip(x.Message), mdText(x.Author), mdText(x.Target))
		if x.Detail != "" {
			b.WriteString("\n" + mdFence("diff", strings.TrimRight(x.Detail, "\n")+"\n") + "\n")
		}
	}
}

func mdEvidence(id string) string {
	if id == "" {
		return ""
	}
	return ", " + mdCode(fmt.Sprintf("%.15s", id))
}

func mdBecause(s string) string { return mdBefore(": ", s) }

func mdBefore(sep, s string) string {
	if s == "" {
		return ""
	}
	return sep + mdClip(s)
}

func place(x view.FlowFinding) string {
	if x.File != "" && x.Line > 0 {
		return fmt.Sprintf("%s:%d", x.File, x.Line)
	}
	return x.File
}

func flowWord(w string) string {
	return map[string]string{"passed": "●", "no": "▲", "open": "○"}[w]
}

func flowOutcome(s string) string {
	if s == "" {
		return "not tried"
	}
	return strings.ReplaceAll(s, "_", " ")
}

func flowProbe(p view.FlowProbe) string {
	switch p.State {
	case "refused":
		return "refused"
	case "accepted":
		return "ACCEPTED, the gate is blind"
	case "itself":
		return "its certificates"
	}
	return "none"
}

// flowStanding says of a decision what it does not show by itself.
func flowStanding(d view.FlowDecision) string {
	switch {
	case !d.Verified:
		return ", SIGNATURE DOES NOT VERIFY"
	case d.Withdrawn:
		return ", withdrawn"
	case d.Void != "":
		return ", does not count: " + d.Void
	}
	return ""
}

func usedText(used bool) string {
	if used {
		return ", used"
	}
	return ", not used"
}

func timesText(n int) string {
	if n > 1 {
		return fmt.Sprintf(", %d times", n)
	}
	return ""
}

func binaryText(binary bool) string {
	if binary {
		return ", binary"
	}
	return ""
}

// flowPage is what the template of the report lays out. Everything in it was
// made visible.
type flowPage struct {
	view.FlowReport
	CSS  template.CSS
	CSP  string
	Data template.JS
}

// Notes are what a reader must not miss.
func (p flowPage) Notes() []string { return flowNotes(p.FlowReport) }

var flowReportTemplates = sync.OnceValues(func() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"short": short, "outcome": flowOutcome, "probe": flowProbe, "standing": flowStanding, "place": place, "diff": parseDiff,
		"word":   func(w string) mark { return lookup(words, w) },
		"spaces": func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"when":   func(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04 UTC") },
		"stamp":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"took":   func(ms int64) string { return took(time.Duration(ms) * time.Millisecond) },
		"class": func(s string) string {
			return map[string]string{
				"pass": "proven", "passed": "proven", "no": "refuted", "returned": "refuted", "rejected": "refuted", "stale": "stale",
			}[s]
		},
	}).Parse(flowReportTemplate)
})

// FlowReportHTML writes a run as one file that asks the network for nothing and
// runs no script. All foreign text is escaped.
func FlowReportHTML(w io.Writer, v view.FlowReport) error {
	css := reportCSS + flowReportCSS
	sum := sha256.Sum256([]byte(css))
	body, err := encode(v, "")
	if err != nil {
		return fmt.Errorf("embed the data of the report: %w", err)
	}
	t, err := flowReportTemplates()
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "flow", flowPage{
		FlowReport: visible(v), CSS: template.CSS(css), Data: template.JS(body),
		CSP: fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'", base64.StdEncoding.EncodeToString(sum[:])),
	})
}
