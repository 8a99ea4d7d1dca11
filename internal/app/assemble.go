package app

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/prove"
	"github.com/proveto/proveto/internal/view"
)

// known is everything that is known about one symbol at the time of an answer:
// stored evidence, and what this invocation found.
type known struct {
	ranked      prove.Ranked
	project     lang.Project
	live        *stored                     // newest live certificate
	stale       *stored                     // newest certificate that lapsed, when none is live
	causes      []prove.Cause               // why it lapsed
	measurement *evidence.MeasurementRecord // newest that today's inputs would give again
	measured    evidence.Digest
	partial     []evidence.MeasurementRecord // of choices by hand that still hold, newest first
	now         bool                         // measured by this invocation
	proved      bool                         // live was made by this invocation
	broken      *lang.Broken                 // why its tests cannot be built
	reason      string                       // why nothing was measured; used when there is no evidence
	detail      string
	command     string
	call        string // how a command names it; empty: by its name
}

// stored is a certificate as the ledger holds it.
type stored struct {
	Seq    int64
	Digest evidence.Digest
	Record evidence.CertificateRecord
}

// symbolView words one symbol. The rule of precedence is here and nowhere else:
// live certificate, a build that fails, a refutation, lapsed certificate,
// measurement, reason. Waived tells which probes of the symbol are waived today.
func symbolView(k known, waived func(evidence.Probe, evidence.Digest) (string, bool)) view.Symbol {
	s := k.ranked.Symbol
	v := view.Symbol{
		ID: s.ID, Name: s.Name, Language: k.project.Language, Project: k.project.Dir, Package: s.Unit,
		File: s.File, Line: s.Line, EndLine: s.EndLine, Exported: s.Exported,
		Risk: k.ranked.Risk, EntryPoint: k.ranked.EntryPoint, New: k.now, Changed: k.ranked.Changed,
	}
	if m := k.measurement; m != nil {
		v.Tests, v.Measurement = m.Target.Tests, string(k.measured)
	}
	v.Mutants, v.Strength = mutantViews(k.trials(), func(p evidence.Probe) (string, bool) { return waived(p, s.Digest) })
	switch {
	case k.live != nil:
		f := k.live.Record.Facts
		v.Word, v.Certificate = string(evidence.Proven), string(k.live.Digest)
		v.Detail = fmt.Sprintf("%s fails when %s", f.Test, f.Probe.Summary)
		if !slices.Contains(v.Tests, f.Test) {
			v.Tests = append([]string{f.Test}, v.Tests...)
		}
	case k.broken != nil:
		v.Word, v.Reason, v.Detail, v.Command = string(evidence.NotMeasured), string(k.broken.Code), k.broken.Text, k.broken.Hint
		v.Tests, v.Measurement, v.Mutants, v.Strength = nil, "", nil, view.Share{}
	case k.measurement != nil && k.measurement.Word == evidence.Refuted:
		v.Word, v.Reason = string(evidence.Refuted), k.measurement.Reason
		v.Detail, v.Command = survivorSentence(v.Mutants), "proveto why "+k.called()
		if t := telling(v.Mutants); t >= 0 && v.Mutants[t].Waived != "" {
			v.Detail, v.Command = "what survived is waived since; the next start counts that", "proveto start"
		}
	case k.stale != nil:
		v.Word, v.Reason, v.Certificate = string(evidence.Stale), k.causes[0].Code, string(k.stale.Digest)
		v.Detail = causeSentence(k.causes)
		why := orText(k.detail, strings.ReplaceAll(k.reason, "_", " "))
		if k.now && k.measurement != nil {
			why = orText(k.measurement.Detail, reasonSentence(k.measurement.Reason))
		}
		if why != "" {
			v.Detail += "; " + why
		}
		if retried[k.reason] {
			v.Blocked = k.reason
		}
		v.Command = k.renewal()
	case k.measurement != nil && k.reason == "":
		v.Word, v.Reason = string(evidence.NotMeasured), k.measurement.Reason
		v.Detail = orText(k.measurement.Detail, reasonSentence(v.Reason))
		v.Command = reasonCommand(v.Reason, k.called())
	default:
		v.Word, v.Reason = string(evidence.NotMeasured), orText(k.reason, "pending")
		if len(k.partial) > 0 && v.Reason == "pending" {
			v.Reason, k.detail = "partial", ""
		}
		v.Detail = orText(k.detail, reasonSentence(v.Reason))
		v.Command = orText(k.command, reasonCommand(v.Reason, k.called()))
	}
	return v
}

// renewal is the command that gets on from a lapsed certificate: measuring again
// what was not tried since, else what shows why that cannot be done.
func (k known) renewal() string {
	reason := k.reason
	switch {
	case k.now && k.measurement != nil:
		reason = k.measurement.Reason
	case k.reason == "" || k.reason == "pending":
		return "proveto prove " + k.called()
	}
	return orText(k.command, orText(reasonCommand(reason, k.called()), "proveto why "+k.called()))
}

// trials are those of the measurement, what choices by hand tried besides, and
// the kill of the live certificate: once for each probe. A kill is one whoever
// chose it; what survived the tests that were chosen may be noticed by others.
func (k known) trials() []evidence.TrialRecord {
	var out []evidence.TrialRecord
	at := map[evidence.Digest]int{}
	add := func(t evidence.TrialRecord) {
		i, known := at[t.ProbeDigest]
		switch {
		case !known:
			at[t.ProbeDigest] = len(out)
			out = append(out, t)
		case t.Status == evidence.Killed && out[i].Status != evidence.Killed:
			out[i] = t
		}
	}
	if k.measurement != nil {
		for _, t := range k.measurement.Trials {
			add(t)
		}
	}
	for _, m := range k.partial {
		for _, t := range m.Trials {
			if m.Target.Partial == evidence.PartialProbes || t.Status == evidence.Killed {
				add(t)
			}
		}
	}
	if k.live != nil {
		f := k.live.Record.Facts
		add(evidence.TrialRecord{
			Probe: f.Probe, ProbeDigest: f.Probe.Digest(), Status: evidence.Killed, Run: k.live.Record.Runs.Kill,
			Certificate: k.live.Digest, Test: f.Test, Message: k.live.Record.Assertion.Message,
		})
	}
	return out
}

// mutantViews lays out trials. One that survived and is waived since says so; the
// next start counts it.
func mutantViews(trials []evidence.TrialRecord, waived func(evidence.Probe) (string, bool)) ([]view.Mutant, view.Share) {
	var out []view.Mutant
	var share view.Share
	for _, t := range trials {
		p := t.Probe
		since := ""
		if why, ok := waived(p); ok && t.Status == evidence.Survived {
			since = why + "; the next start counts that"
		}
		out = append(out, view.Mutant{
			ID: string(t.ProbeDigest), Kind: string(p.Kind), Operator: p.Operator, Summary: p.Summary, File: p.File, Line: p.Line, Column: p.Column,
			Diff: p.Diff, Status: string(t.Status), Code: t.Code, Test: t.Test, Message: t.Message, Note: t.Note, Hint: tellApart(t), Values: t.Values, Run: string(t.Run), Waived: since,
		})
		switch t.Status {
		case evidence.Killed:
			share.Num++
			share.Den++
		case evidence.KilledByError, evidence.Survived, evidence.TimedOut, evidence.Flaky:
			share.Den++
		}
	}
	return out, share
}

// telling is the survivor that says most about what is missing: one that infected
// a value before one that did not, one that is not waived before one that is; -1
// when none survived. Sentence and diff of a gap are about this one.
func telling(mutants []view.Mutant) int {
	best, rank := -1, 0
	for i, m := range mutants {
		if m.Status != string(evidence.Survived) || m.Kind != string(evidence.ProbeResult) {
			continue
		}
		r := 1
		if m.Note == "infected_not_asserted" {
			r++
		}
		if m.Waived == "" {
			r += 2
		}
		if r > rank {
			best, rank = i, r
		}
	}
	return best
}

// survivorSentence says what a person needs to write the missing test.
func survivorSentence(mutants []view.Mutant) string {
	best := telling(mutants)
	if best < 0 {
		return "every probe of its result survived"
	}
	m := mutants[best]
	switch {
	case m.Note == "infected_not_asserted" && len(m.Values) == 2:
		return fmt.Sprintf("with %s the tests get %s instead of %s, and none of them looks", m.Summary, m.Values[1], m.Values[0])
	case m.Note == "infected_not_asserted":
		return fmt.Sprintf("with %s every test stays green: they run it and do not look at what it does", m.Summary)
	case m.Note == "not_infected":
		return fmt.Sprintf("%s never made a difference: the tests lack an input that shows it", m.Summary)
	}
	return fmt.Sprintf("with %s every test stays green", m.Summary)
}

func causeSentence(causes []prove.Cause) string {
	text := causes[0].Text
	if n := len(causes) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

// reasons words each reason for people; the command is what would change it.
var reasons = map[string]struct{ text, command string }{
	"no_coverage":                 {"no test reaches it", ""},
	"no_tests":                    {"its package has no tests", ""},
	"no_probe":                    {"nothing in it can be changed by a probe of this version", ""},
	"killed_by_error_only":        {"tests notice only by crashing, and a crash is not credited", "proveto why %s"},
	"flaky":                       {"the tests did not give the same answer twice", "proveto why %s"},
	"timeout":                     {"every probe of its result ran into the time limit", "proveto why %s"},
	"out_of_budget":               {"the budget ended first", "proveto prove %s"},
	"proof_off":                   {"proof was switched off", "proveto start"},
	"static_only":                 {"nothing of the project was run", "proveto start"},
	"limit":                       {"the limit on targets was reached", "proveto prove %s"},
	"pending":                     {"not tried yet", "proveto prove %s"},
	"partial":                     {"only what was chosen by hand was tried on it", "proveto prove %s"},
	"interrupted":                 {"the run was stopped before its turn", "proveto start"},
	"waived":                      {"every probe of its result is waived", ""},
	"baseline_failed":             {"its tests fail on the original", ""},
	"order_dependent":             {"its tests pass only in one order", ""},
	"environment_sensitive":       {"its tests give another answer in another environment", ""},
	"report_incomplete":           {"its tests end the test process", ""},
	"report_tampered":             {"somebody else wrote on the results descriptor", ""},
	"runner_blind":                {"a planted failing assertion came out green", ""},
	"switch_sensitive":            {"its tests fail whenever a probe is switched on, or what they execute is recorded", ""},
	"fast_lane_disagreed":         {"a plainly mutated build gave another answer", ""},
	"no_tests_ran":                {"no test ran", ""},
	"tests_not_run":               {"the tests that reach it are skipped", ""},
	string(lang.BuildFailed):      {"its package or its tests do not build", ""},
	string(lang.ToolMissing):      {"a tool is missing", ""},
	string(lang.Configuration):    {"the project cannot be run as it is configured", ""},
	string(lang.Permission):       {"permission denied", ""},
	"dependency_missing":          {"a dependency is missing", ""},
	"database_or_network":         {"its tests need a database or the network", ""},
	"unsupported_runner":          {"its runner is not supported", ""},
	"isolation_too_low":           {"isolation is lower than required", "proveto doctor"},
	string(evidence.CodeMismatch): {"the runs do not fit together", "proveto why %s"},
}

func reasonSentence(reason string) string {
	if r, ok := reasons[reason]; ok {
		return r.text
	}
	return strings.ReplaceAll(reason, "_", " ")
}

// reasonCommand takes the symbol as a command calls it; empty: several.
func reasonCommand(reason, call string) string {
	r := reasons[reason]
	switch {
	case !strings.Contains(r.command, "%s"):
	case call == "":
		return "proveto gaps" // it names the command for each
	default:
		return fmt.Sprintf(r.command, call)
	}
	return r.command
}

func orText(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// quoteArg makes a name safe to paste into a shell.
func quoteArg(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:=@") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// summarise fills what follows from the symbols: counts, packages, gaps, groups
// of what was not measured.
func summarise(v *view.Start) {
	v.Says = view.Says
	v.Counts = countWords(v.Symbols)
	byPackage := map[string]*view.Package{}
	for _, s := range v.Symbols {
		p := byPackage[s.Package]
		if p == nil {
			p = &view.Package{Name: s.Package, Dir: dirOf(s.File)}
			byPackage[s.Package] = p
		}
		addWord(&p.Counts, s.Word)
	}
	v.Packages = []view.Package{}
	for _, p := range byPackage {
		v.Packages = append(v.Packages, *p)
	}
	sort.Slice(v.Packages, func(i, j int) bool { return v.Packages[i].Name < v.Packages[j].Name })
	v.Gaps, v.Unmeasured = gaps(v.Symbols), unmeasured(v.Symbols)
	v.Probes = map[string]int{}
	for _, s := range v.Symbols {
		for _, m := range s.Mutants {
			v.Probes[m.Status]++
		}
	}
}

func countWords(symbols []view.Symbol) view.Counts {
	var c view.Counts
	for _, s := range symbols {
		addWord(&c, s.Word)
	}
	return c
}

func addWord(c *view.Counts, word string) {
	c.Total++
	switch evidence.Word(word) {
	case evidence.Proven:
		c.Proven++
	case evidence.Refuted:
		c.Refuted++
	case evidence.Stale:
		c.Stale++
	case evidence.NotMeasured:
		c.NotMeasured++
	}
}

// gaps ranks what a bug could break unseen: refuted and stale by risk, then what
// no test reaches.
func gaps(symbols []view.Symbol) []view.Gap {
	out := []view.Gap{}
	for _, s := range symbols {
		if s.Word == string(evidence.Proven) || (s.Word == string(evidence.NotMeasured) && s.Reason == string(evidence.Waived)) {
			continue
		}
		g := view.Gap{
			Symbol: s.ID, Name: s.Name, Word: s.Word, Reason: s.Reason, File: s.File, Line: s.Line, Risk: s.Risk,
			Why: s.Detail, Commands: []string{orText(s.Command, "proveto why "+called(symbols, s))},
		}
		if t := telling(s.Mutants); t >= 0 && s.Word == string(evidence.Refuted) {
			g.Diff = s.Mutants[t].Diff
		}
		out = append(out, g)
	}
	weight := map[string]int{string(evidence.Refuted): 0, string(evidence.Stale): 1, string(evidence.NotMeasured): 2}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		switch {
		case weight[a.Word] != weight[b.Word]:
			return weight[a.Word] < weight[b.Word]
		case a.Risk != b.Risk:
			return a.Risk > b.Risk
		}
		return a.Name < b.Name
	})
	return out
}

// unmeasured groups by reason and detail, most frequent first.
func unmeasured(symbols []view.Symbol) []view.Unmeasured {
	groups := map[[2]string]*view.Unmeasured{}
	for _, s := range symbols {
		if s.Blocked != "" {
			_, s.Detail, _ = strings.Cut(s.Detail, "; ")
			s.Reason = s.Blocked
		} else if s.Word != string(evidence.NotMeasured) {
			continue
		}
		key := [2]string{s.Reason, s.Detail}
		g := groups[key]
		if g == nil {
			g = &view.Unmeasured{Reason: s.Reason, Detail: s.Detail, Command: s.Command}
			groups[key] = g
		}
		if g.Command != s.Command {
			g.Command = groupCommand(s.Reason)
		}
		g.Count++
		g.Symbols = append(g.Symbols, s.ID)
	}
	out := []view.Unmeasured{}
	for _, g := range groups {
		sort.Strings(g.Symbols)
		out = append(out, *g)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		switch {
		case a.Count != b.Count:
			return a.Count > b.Count
		case a.Reason != b.Reason:
			return a.Reason < b.Reason
		}
		return a.Detail < b.Detail
	})
	return out
}

// groupCommand is the command for several symbols at once.
func groupCommand(reason string) string {
	switch reason {
	case "out_of_budget":
		return "proveto start --budget 0"
	case "limit", "pending", "interrupted", "proof_off", "static_only":
		return "proveto start"
	}
	return orText(reasonCommand(reason, ""), "proveto gaps")
}

func dirOf(file string) string {
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		return file[:i]
	}
	return "."
}

// gate compares the symbols in scope with the thresholds. Unmeasured says that
// the only thing wrong is what could not be measured. What could not be read or
// built is no thing that a threshold can allow.
func gate(scope []view.Symbol, broken []view.Broken, g view.Gate, noteUnmeasured bool) (view.Gate, error) {
	g, err := gateCounts(scope, g, noteUnmeasured)
	if len(broken) == 0 {
		return g, err
	}
	e := fault.New(fault.Unmeasured, "unmeasured", "%s: what cannot be read or built cannot be judged", broken[0].Text)
	var first []string
	for _, b := range broken {
		first = append(first, b.Text)
		if b.Command != "" && !slices.Contains(e.Hints, b.Command) {
			e = e.Hint("%s", b.Command)
		}
	}
	g.Passed, g.Failures = false, append(first, g.Failures...)
	return g, e
}

func gateCounts(scope []view.Symbol, g view.Gate, noteUnmeasured bool) (view.Gate, error) {
	g.Asked, g.Counts, g.Failures, g.Unguarded = true, countWords(scope), []string{}, []string{}
	for _, w := range evidence.Words()[1:] { // the refuted first
		for _, s := range scope {
			if s.Word == string(w) {
				g.Unguarded = append(g.Unguarded, s.Name)
			}
		}
	}
	noun := "behaviours"
	if g.Changed {
		noun = "changed behaviours"
	}
	c := g.Counts
	if c.Total == 0 {
		g.Passed = true
		return g, nil
	}
	tooFew := float64(c.Proven) < g.MinProven*float64(c.Total)
	tooManyRefuted := c.Refuted > g.MaxRefuted
	unseen := c.NotMeasured + c.Stale
	tooManyUnseen := float64(unseen) > g.MaxUnproven*float64(c.Total)
	if tooFew {
		g.Failures = append(g.Failures, fmt.Sprintf("%d of %d %s are proven, the gate wants a share of %g", c.Proven, c.Total, noun, g.MinProven))
	}
	if tooManyRefuted {
		g.Failures = append(g.Failures, fmt.Sprintf("%d %s are refuted, the gate allows %d", c.Refuted, noun, g.MaxRefuted))
	}
	if tooManyUnseen {
		g.Failures = append(g.Failures, fmt.Sprintf("%d of %d %s are not measured, the gate allows a share of %g", unseen, c.Total, noun, g.MaxUnproven))
	}
	g.Passed = len(g.Failures) == 0
	if g.Passed {
		return g, nil
	}
	// Would it hold if what was not measured had been proven?
	onlyUnseen := !tooManyRefuted && float64(c.Proven+unseen) >= g.MinProven*float64(c.Total)
	if onlyUnseen && tooManyUnseen {
		if noteUnmeasured && !tooFew {
			g.Passed = true
			return g, nil
		}
		return g, fault.New(fault.Unmeasured, "unmeasured", "%s", g.Failures[len(g.Failures)-1])
	}
	return g, fault.New(fault.Negative, "gate_failed", "%s", strings.Join(g.Failures, "; "))
}
