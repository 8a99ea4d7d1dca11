package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/view"
)

// FlowAdvance writes what a verb did to a run.
func FlowAdvance(w io.Writer, v view.FlowAdvance, s Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", Line(v.Text))
	if v.Replayed {
		b.WriteString("the same request was answered before; nothing was recorded again\n")
	}
	if v.PlanTokenIssued != nil {
		fmt.Fprintf(&b, "plan token  %s\n", *v.PlanTokenIssued)
	}
	for _, f := range v.Findings {
		findingLine(&b, f)
	}
	if v.RunDir != "" {
		fmt.Fprintf(&b, "run         %s\ndirectory   %s\n", v.RunID, v.RunDir)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// FlowStatus writes where a run stands: text, kv (four lines) or md.
func FlowStatus(w io.Writer, v view.FlowRun, format string, s Style) error {
	var b strings.Builder
	switch format {
	case "kv":
		status := v.Run.Status
		if status == "approved" || status == "delivered" {
			status = "completed"
		}
		token := ""
		if v.Plan != nil {
			token = v.Plan.Token
		}
		fmt.Fprintf(&b, "run_id=%s\nstatus=%s\ncurrent_stage=%s\nplan_token=%s\n", v.Run.ID, status, v.Run.CurrentStage, token)
	case "md":
		flowMarkdown(&b, v)
	default:
		flowText(&b, v, s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// stageMarks are words and shapes of stage states; colour adds nothing to them.
var stageMarks = map[string][2]string{
	"passed": {"●", "[+]"}, "returned": {"▲", "[!]"}, "rejected": {"▲", "[!]"}, "stale": {"◌", "[~]"},
	"measuring": {"◐", "[.]"}, "deciding": {"◐", "[.]"}, "ready": {"○", "[ ]"}, "taken": {"◐", "[.]"}, "locked": {"○", "[ ]"},
}

func stageMark(state string, s Style) string {
	m := stageMarks[state]
	if !s.Unicode {
		return m[1]
	}
	return m[0]
}

func overdue(r view.FlowHead) string {
	if r.Overdue {
		return " (overdue)"
	}
	return ""
}

func flowText(b *strings.Builder, v view.FlowRun, s Style) {
	fmt.Fprintf(b, "%s  %s", v.Run.ID, v.Run.Status)
	if v.Run.Reason != "" {
		fmt.Fprintf(b, " (%s)", strings.ReplaceAll(Line(v.Run.Reason), "_", " "))
	}
	fmt.Fprintf(b, "  stage %s  project %s  policy %s\n", v.Run.CurrentStage, Line(v.Run.Project), v.Run.Policy.Name)
	fmt.Fprintf(b, "task        %s\n", firstOf(Line(v.Run.Task), 100))
	if v.Run.Base != "" {
		fmt.Fprintf(b, "base        %.12s\n", v.Run.Base)
	}
	if v.Plan != nil {
		fmt.Fprintf(b, "plan        revision %d  token %s\n", v.Plan.Revision, v.Plan.Token)
	}
	if v.Evidence != "" {
		fmt.Fprintf(b, "evidence    %s\n", v.Evidence)
	}
	if v.Run.DecideBy != nil {
		fmt.Fprintf(b, "waiting     for %s; decide by %s%s\n", Line(strings.Join(v.Run.Needs, " or ")), v.Run.DecideBy.UTC().Format("2006-01-02 15:04 UTC"), overdue(v.Run))
	}
	for _, st := range v.Stages {
		fmt.Fprintf(b, "%s %-10s %-9s", stageMark(st.State, s), st.ID, st.State)
		if st.Attempt > 0 {
			fmt.Fprintf(b, "  attempt %d", st.Attempt)
		}
		if st.Approvals.Need > 0 {
			fmt.Fprintf(b, "  approvals %d of %d", st.Approvals.Have, st.Approvals.Need)
			if st.Approvals.HumansNeed > 0 {
				fmt.Fprintf(b, " (humans %d of %d)", st.Approvals.HumansHave, st.Approvals.HumansNeed)
			}
		}
		if st.TakenBy != "" {
			fmt.Fprintf(b, "  taken by %s until %s", Line(st.TakenBy), st.LeaseUntil.Format("15:04:05"))
		}
		if st.Because != "" {
			fmt.Fprintf(b, "  %s", Line(st.Because))
		}
		b.WriteByte('\n')
		for _, g := range st.Gates {
			outcome := strings.ReplaceAll(g.Outcome, "_", " ")
			if outcome == "" {
				outcome = "not tried"
			}
			if g.Waived != "" {
				outcome = "WAIVED (" + outcome + ")"
			}
			fmt.Fprintf(b, "    %-20s %s", g.ID, outcome)
			if g.Reason != "" {
				fmt.Fprintf(b, ": %s", firstOf(Line(g.Reason), 140))
			}
			b.WriteByte('\n')
		}
		for _, d := range st.Decisions {
			fmt.Fprintf(b, "    %s by %s (%s)", strings.ReplaceAll(d.Decision, "_", " "), Line(d.Principal), d.Kind)
			switch {
			case d.Withdrawn:
				b.WriteString(", withdrawn")
			case d.Void != "":
				fmt.Fprintf(b, ", does not count: %s", Line(d.Void))
			case d.Revoked != "":
				fmt.Fprintf(b, ", since then: %s", Line(d.Revoked))
			case !d.Verified:
				b.WriteString(", SIGNATURE DOES NOT VERIFY")
			}
			if d.Note != "" {
				fmt.Fprintf(b, ": %s", firstOf(Line(d.Note), 100))
			}
			b.WriteByte('\n')
		}
	}
	if v.Plan != nil && len(v.Plan.Requirements) > 0 {
		for _, id := range slices.Sorted(maps.Keys(v.Plan.Requirements)) {
			q := v.Plan.Requirements[id]
			fmt.Fprintf(b, "requirement %-4s %s %s", Line(id), strings.ReplaceAll(q.State, "_", " "), Line(q.Text))
			if q.Reason != "" {
				fmt.Fprintf(b, ": %s", Line(q.Reason))
			}
			for _, c := range q.Certificates {
				fmt.Fprintf(b, " [why %s]", evidence.Digest(c).Short())
			}
			b.WriteByte('\n')
		}
	}
	for _, f := range v.Findings {
		if f.State != "closed" {
			findingLine(b, f)
		}
	}
	if n := len(v.Findings); v.FindingsN.Total > n {
		fmt.Fprintf(b, "%d of %d findings shown: proveto flow report %s\n", n, v.FindingsN.Total, v.Run.ID)
	}
	for _, w := range v.Waivers {
		fmt.Fprintf(b, "waiver      %s by %s until %s: %s", Line(w.Gate), Line(w.By), w.Expires.UTC().Format("2006-01-02 15:04"), firstOf(Line(w.Reason), 100))
		if w.Void != "" {
			fmt.Fprintf(b, ", does not count: %s", Line(w.Void))
		}
		b.WriteByte('\n')
	}
	if u := v.Unplanned; u != nil {
		fmt.Fprintf(b, "UNPLANNED   %s went ahead without the token of the plan: %s\n", Line(u.By), Line(u.Reason))
	}
	for _, x := range v.Separation {
		if x.State != "holds" {
			fmt.Fprintf(b, "separation  %s: %s %s\n", Line(x.Rule), strings.ReplaceAll(x.State, "_", " "), Line(x.Note))
		}
	}
	if v.Refused > 0 {
		fmt.Fprintf(b, "refused     %d requests: proveto flow log %s\n", v.Refused, v.Run.ID)
	}
	if d := v.Delivery; d != nil {
		fmt.Fprintf(b, "delivered   %.12s on %s\n", d.Commit, Line(d.Ref))
	}
}

func findingLine(b *strings.Builder, f view.FlowFinding) {
	fmt.Fprintf(b, "finding %-4s %s %s, %s", f.ID, f.Severity, f.Category, f.State)
	if f.NotCorrected {
		b.WriteString(", NOT CORRECTED")
	}
	if f.File != "" {
		fmt.Fprintf(b, "  %s", Line(f.File))
		if f.Line > 0 {
			fmt.Fprintf(b, ":%d", f.Line)
		}
	}
	fmt.Fprintf(b, "  %s  (%s, for %s)\n", firstOf(Line(f.Message), 160), Line(f.Author), Line(f.Target))
}

func flowMarkdown(b *strings.Builder, v view.FlowRun) {
	fmt.Fprintf(b, "# %s\n\n%s", v.Run.ID, v.Run.Status)
	if v.Run.Reason != "" {
		fmt.Fprintf(b, " (%s)", mdText(v.Run.Reason))
	}
	fmt.Fprintf(b, ", stage %s, policy %s\n\n> %s\n\n", v.Run.CurrentStage, mdText(v.Run.Policy.Name), mdText(Line(v.Run.Task)))
	if v.Evidence != "" {
		fmt.Fprintf(b, "Evidence: %s\n\n", mdText(v.Evidence))
	}
	b.WriteString("| stage | state | attempt | gates | decisions |\n|---|---|---|---|---|\n")
	for _, st := range v.Stages {
		var gates, given []string
		for _, g := range st.Gates {
			o := g.Outcome
			if o == "" {
				o = "not tried"
			}
			if g.Waived != "" {
				o = "**waived**"
			}
			gates = append(gates, mdText(g.ID)+" "+strings.ReplaceAll(o, "_", " "))
		}
		for _, d := range st.Decisions {
			given = append(given, strings.ReplaceAll(d.Decision, "_", " ")+" by "+mdText(d.Principal))
		}
		fmt.Fprintf(b, "| %s | %s | %d | %s | %s |\n", mdText(st.ID), st.State, st.Attempt, strings.Join(gates, ", "), strings.Join(given, ", "))
	}
	if len(v.Findings) > 0 {
		b.WriteString("\n## Findings\n\n")
		for _, f := range v.Findings {
			fmt.Fprintf(b, "- %s %s %s, %s: %s\n", f.ID, f.Severity, mdText(f.Category), f.State, mdText(Line(f.Message)))
		}
	}
}

// FlowList writes runs as a table.
func FlowList(w io.Writer, v view.FlowList, s Style) error {
	if len(v.Runs) == 0 {
		_, err := fmt.Fprintln(w, "no runs: proveto flow init --task TEXT opens one")
		return err
	}
	var b strings.Builder
	for _, r := range v.Runs {
		status := r.Status
		if r.Reason != "" {
			status += " (" + strings.ReplaceAll(r.Reason, "_", " ") + ")"
		}
		fmt.Fprintf(&b, "%s  %-22s %-10s %-12s %s", r.ID, status, r.CurrentStage, Line(r.Project), firstOf(Line(r.Task), 60))
		if len(r.Needs) > 0 {
			fmt.Fprintf(&b, "  [%s]", Line(strings.Join(r.Needs, ", ")))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// FlowLog writes what happened to a run.
func FlowLog(w io.Writer, v view.FlowLog, s Style) error {
	var b strings.Builder
	for _, e := range v.Entries {
		fmt.Fprintf(&b, "%6d  %s  %-10s %s", e.Seq, e.Time.UTC().Format("2006-01-02 15:04:05"), Line(e.Principal), firstOf(Line(e.Summary), 160))
		if e.Note != "" {
			fmt.Fprintf(&b, "  %q", firstOf(Line(e.Note), 80))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// FlowFeedback writes the bundle of a stage.
func FlowFeedback(w io.Writer, v view.FlowFeedback, s Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Feedback on %s, round %d, for stage %s\n\n", v.Run, v.Round, Line(v.ToStage))
	if v.PlanToken != "" {
		fmt.Fprintf(&b, "plan token  %s\n", v.PlanToken)
	}
	if v.RejectedTree != "" {
		fmt.Fprintf(&b, "rejected    tree %.12s: the same tree is not taken again\n", v.RejectedTree)
	}
	if v.Remaining.Rounds != nil {
		fmt.Fprintf(&b, "rounds left %d\n", *v.Remaining.Rounds)
	}
	if len(v.Findings) == 0 {
		b.WriteString("no finding needs an answer\n")
	}
	for _, f := range v.Findings {
		b.WriteByte('\n')
		findingLine(&b, f)
		if f.Expected != "" || f.Actual != "" {
			fmt.Fprintf(&b, "    expected %s, got %s\n", Line(f.Expected), Line(f.Actual))
		}
		for _, line := range strings.Split(strings.TrimRight(f.Detail, "\n"), "\n") {
			if line != "" {
				fmt.Fprintf(&b, "    %s\n", Line(line))
			}
		}
		if len(f.Repro) > 0 {
			fmt.Fprintf(&b, "    shown by: %s\n", Line(strings.Join(f.Repro, " ")))
		}
	}
	for _, c := range v.ClaimsRefuted {
		fmt.Fprintf(&b, "not corrected: %s\n", Line(c))
	}
	if n := len(v.Closed); n > 0 {
		fmt.Fprintf(&b, "\n%d findings are closed\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// firstOf is a text of at most n characters.
func firstOf(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// FlowLint writes what is wrong with a contract.
func FlowLint(w io.Writer, v view.FlowLint, _ Style) error {
	var b strings.Builder
	if len(v.Problems) == 0 {
		b.WriteString("the contract would be taken\n")
	}
	for _, p := range v.Problems {
		fmt.Fprintf(&b, "%-5s  %s: %s: %s\n", p.Severity, p.Code, Line(p.Where), Line(p.Message))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// FlowPlanDiff writes where two revisions differ.
func FlowPlanDiff(w io.Writer, v view.FlowPlanDiff, _ Style) error {
	var b strings.Builder
	if len(v.Changes) == 0 {
		fmt.Fprintf(&b, "revisions %d and %d are the same\n", v.Old, v.New)
	}
	for _, c := range v.Changes {
		fmt.Fprintf(&b, "%s\n", Line(c))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// FlowExplained writes what a run needs, has and lacks.
func FlowExplained(w io.Writer, v view.FlowExplained, _ Style) error {
	var b strings.Builder
	for _, l := range v.Lines {
		have := l.Have
		if have == "" {
			have = "-"
		}
		fmt.Fprintf(&b, "%-10s  %-40s  %-14s  %s\n", Line(l.Stage), Line(l.Need), Line(have), firstOf(Line(l.Missing), 140))
	}
	if len(v.Lines) == 0 {
		fmt.Fprintf(&b, "policy %s asks for nothing but decisions of the owners\n", Line(v.Policy))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// FlowPolicyCheck writes what the gates did with their probes.
func FlowPolicyCheck(w io.Writer, v view.FlowPolicyCheck, _ Style) error {
	var b strings.Builder
	if len(v.Gates) == 0 {
		fmt.Fprintf(&b, "policy %s has no command gate; the engine's own gates are tried with their probes in every run\n", Line(v.Policy))
	}
	for _, g := range v.Gates {
		word := "counts: it accepted the base and refused its probe"
		switch {
		case !g.Accepts:
			word = "does not count: it refused the base"
		case !g.Refuses:
			word = "does not count: it accepted a bad tree"
		}
		fmt.Fprintf(&b, "%-24s  %s\n", Line(g.Gate), word)
		if g.Reason != "" {
			fmt.Fprintf(&b, "    %s\n", firstOf(Line(g.Reason), 200))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
