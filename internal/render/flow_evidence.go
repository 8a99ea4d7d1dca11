package render

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/view"
)

// FlowEvidence writes the evidence of a run as a table, or one record whole.
func FlowEvidence(w io.Writer, v view.FlowEvidence, s Style) error {
	t := &text{Style: s}
	switch {
	case len(v.Records) == 0:
		t.line("no gate of run %s has measured anything", v.Run)
	case len(v.Records) == 1 && len(v.Records[0].Evidence) > 0:
		if err := t.record(v.Run, v.Records[0]); err != nil {
			return err
		}
	default:
		for _, r := range v.Records {
			outcome := strings.ReplaceAll(Line(r.Outcome), "_", " ")
			if r.Waived != "" {
				outcome = "WAIVED (" + outcome + ")"
			}
			line := fmt.Sprintf("%.15s  %-9s %d  %-19s %-13s probe %s", r.ID, Line(r.Stage), r.Attempt, Line(r.Gate), outcome, probeText(r.Probe))
			if !r.Current {
				line += "  (earlier attempt)"
			}
			if r.Reason != "" {
				line += "  " + firstOf(Line(r.Reason), 120)
			}
			if r.Waived != "" {
				line = t.paint(red, line)
			}
			t.line("%s", line)
		}
	}
	return t.flush(w)
}

func probeText(p view.FlowProbe) string {
	switch p.State {
	case "refused":
		if p.Certificate == "" {
			return "refused"
		}
		return "refused [verify " + evidence.Digest(p.Certificate).Short() + "]"
	case "accepted":
		return "ACCEPTED: the gate is blind"
	case "itself":
		return "its certificates"
	}
	return "none"
}

// record is everything that one record says.
func (t *text) record(run string, r view.FlowEvidenceRecord) error {
	var e gate.Evidence
	if err := json.Unmarshal(r.Evidence, &e); err != nil {
		return fmt.Errorf("evidence %s: %w", r.ID, err)
	}
	row := func(name, format string, args ...any) { t.line("%-12s%s", name, fmt.Sprintf(format, args...)) }
	row("evidence", "%s", Line(r.ID))
	row("gate", "%s, attempt %d of stage %s of run %s, entry %d", Line(r.Gate), r.Attempt, Line(r.Stage), run, r.Seq)
	row("outcome", "%s%s", strings.ReplaceAll(Line(r.Outcome), "_", " "), withCode(r.Code))
	if r.Reason != "" {
		row("reason", "%s", Line(r.Reason))
	}
	if r.Waived != "" {
		t.line("%s", t.paint(red, "WAIVED      by "+Line(r.Waived)))
	}
	if e.Subject.Tree != "" {
		row("tree", "%s", e.Subject.Tree)
	}
	if e.Subject.Base != "" {
		row("base", "%s", e.Subject.Base)
	}
	row("probe", "%s", probeText(r.Probe))
	if r.Probe.Reason != "" {
		row("", "%s", Line(r.Probe.Reason))
	}
	if c := e.Tests; c != nil {
		row("tests", "%d discovered, %d executed, %d skipped, %d failed, %d flaky", c.Discovered, c.Executed, c.Skipped, c.Failed, c.Flaky)
	}
	for _, m := range slices.Sorted(maps.Keys(e.Metrics)) {
		row("measured", "%s %g", Line(m), e.Metrics[m])
	}
	for _, n := range slices.Sorted(maps.Keys(e.Named)) {
		row(Line(n), "%s", Line(strings.Join(e.Named[n], ", ")))
	}
	if e.Isolation != "" {
		row("isolation", "%s, network %s", e.Isolation, e.Network)
	}
	row("took", "%d ms, from %s", e.DurationMS, e.Started.UTC().Format("2006-01-02 15:04:05"))
	if e.Reused != "" {
		row("reused", "%s: nothing was run", Line(e.Reused))
	}
	for _, d := range e.Certificates {
		row("certificate", "%s", t.cmd("proveto why "+d.Short()))
	}
	if r.Probe.Certificate != "" {
		row("certificate", "%s", t.cmd("proveto verify "+evidence.Digest(r.Probe.Certificate).Short()))
	}
	for _, d := range e.Runs {
		row("process", "%s", t.cmd("proveto ledger show "+d.Short()))
	}
	for _, o := range e.Outputs {
		cut := ""
		if o.Truncated {
			cut = ", cut"
		}
		row("output", "%s, %d bytes%s, %s", Line(o.Name), o.Bytes, cut, o.SHA256)
	}
	return nil
}

func withCode(code string) string {
	if code == "" {
		return ""
	}
	return " (" + Line(code) + ")"
}

// replayMarks are shape and ASCII twin of what a replay says.
var replayMarks = map[string][2]string{"same": {"●", "[+]"}, "differs": {"▲", "[!]"}, "cannot": {"○", "[ ]"}}

// FlowReplay writes what a run says when it is measured again.
func FlowReplay(w io.Writer, v view.FlowReplay, s Style) error {
	t := &text{Style: s}
	for _, g := range v.Gates {
		mark := replayMarks[g.Word][1]
		if s.Unicode {
			mark = replayMarks[g.Word][0]
		}
		line := fmt.Sprintf("%s %-7s  %.15s  %-9s %-19s", mark, g.Word, g.Evidence, Line(g.Stage), Line(g.Gate))
		if g.Why != "" {
			line += " " + firstOf(Line(g.Why), 200)
		} else {
			line += " " + strings.ReplaceAll(Line(g.Before), "_", " ")
		}
		t.line("%s", line)
	}
	t.line("%s", Line(v.Text))
	return t.flush(w)
}
