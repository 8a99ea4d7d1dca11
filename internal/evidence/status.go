package evidence

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/fault"
)

// Word is one of the four evidence words. They are never merged.
type Word string

// The evidence words, in the order in which they are shown.
const (
	Proven      Word = "proven"
	Refuted     Word = "refuted"
	Stale       Word = "stale"
	NotMeasured Word = "not_measured"
)

// Words lists the evidence words in the order in which they are shown.
func Words() []Word { return []Word{Proven, Refuted, Stale, NotMeasured} }

// Status is how one probe ended.
type Status string

// The statuses of a probe. Only killed is credited.
const (
	Killed        Status = "killed"          // failed by its own assertion, twice, with a green control between
	KilledByError Status = "killed_by_error" // failed by exception, panic, crash or a foreign exit
	Survived      Status = "survived"        // every reaching test stayed green
	TimedOut      Status = "timeout"         // hit the adaptive limit
	Flaky         Status = "flaky"           // the control or the repeat disagreed
	Invalid       Status = "invalid"         // did not build or load
	NoCoverage    Status = "no_coverage"     // no test reaches it
	Waived        Status = "waived"          // a person signed that it does not matter
	PendingProbe  Status = "pending"         // not tried yet
)

// The codes with which a run or a set of runs is refused credit.
const (
	CodeSurvived        fault.Code = "survived"
	CodeKilledByError   fault.Code = "killed_by_error"
	CodeTimeout         fault.Code = "timeout"
	CodeFlaky           fault.Code = "flaky"
	CodeOrderDependent  fault.Code = "order_dependent"
	CodeRunnerBlind     fault.Code = "runner_blind"
	CodeSwitchSensitive fault.Code = "switch_sensitive"
	CodeFastLane        fault.Code = "fast_lane_disagreed"
	CodeEnvSensitive    fault.Code = "environment_sensitive"
	CodeIncomplete      fault.Code = "report_incomplete"
	CodeTampered        fault.Code = "report_tampered"
	CodeNoTestsRan      fault.Code = "no_tests_ran"
	CodeTestsNotRun     fault.Code = "tests_not_run"
	CodeBaselineRed     fault.Code = "baseline_failed"
	CodeMismatch        fault.Code = "certificate_bad" // the runs are not about what the facts name
)

// ProbeKind orders probes; the first kind is the one that proves.
type ProbeKind string

// The kinds of probes, in the order in which they are tried.
const (
	ProbeResult     ProbeKind = "result"     // the whole result changed, or the effect removed
	ProbeCondition  ProbeKind = "condition"  // a condition negated
	ProbeBoundary   ProbeKind = "boundary"   // < against <=
	ProbeArithmetic ProbeKind = "arithmetic" // arithmetic, bitwise and logical operators
	ProbeStatement  ProbeKind = "statement"  // a call or statement removed, an error path dropped
	ProbeConstant   ProbeKind = "constant"   // constants and strings
)

var probeOrder = []ProbeKind{ProbeResult, ProbeCondition, ProbeBoundary, ProbeArithmetic, ProbeStatement, ProbeConstant}

// ProbeKinds lists the kinds in the order in which they are tried.
func ProbeKinds() []ProbeKind { return slices.Clone(probeOrder) }

// Order ranks probe kinds: lower is tried first.
func (k ProbeKind) Order() int {
	if i := slices.Index(probeOrder, k); i >= 0 {
		return i
	}
	return len(probeOrder)
}

// Probe is a sabotaged copy of a symbol, described so that another machine can
// make it again: the diff alone, applied to the sealed tree, is the sabotage.
type Probe struct {
	Symbol   string    `json:"symbol"`
	Kind     ProbeKind `json:"kind"`
	Operator string    `json:"operator"` // the field's name: CONDITIONALS_NEGATION
	Summary  string    `json:"summary"`  // "result negated"
	File     string    `json:"file"`     // relative to the checkout
	Line     int       `json:"line"`
	Column   int       `json:"column,omitempty"` // in bytes, from 1; of the operator, or of the function's name
	Diff     string    `json:"diff"`             // unified, against the sealed tree
	// Nth tells the probes of a symbol apart that change equal lines in the same
	// way: it counts them from 1, in the order of the source. 0 in old records.
	Nth int `json:"nth,omitempty"`
}

// Digest identifies the probe within its symbol. Where it stands is not part of
// it: what it changes are the lines that its diff takes away and puts there, and
// neither a line that moved nor another beside it changes that. Old records have
// no Nth; their digest covers the whole diff, as it did when they were made.
func (p Probe) Digest() Digest {
	if p.Nth == 0 {
		return DigestParts("probe/v1", p.Symbol, string(p.Kind), p.Operator, p.Summary, p.File, p.Diff)
	}
	return DigestParts("probe/v2", p.Symbol, string(p.Kind), p.Operator, p.Summary, strconv.Itoa(p.Nth), changedLines(p.Diff))
}

// Digests are the names under which evidence knows the probe: its digest, and
// that of old records, which holds as long as no line moved.
func (p Probe) Digests() []Digest {
	old := p
	old.Nth = 0
	return slices.Compact([]Digest{p.Digest(), old.Digest()})
}

// changedLines are the lines of the hunks of a unified diff that it takes away or
// puts there, with their marks.
func changedLines(diff string) string {
	var out strings.Builder
	inHunk := false
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "@@"):
			inHunk = true
		case inHunk && (line[0] == '-' || line[0] == '+'):
			out.WriteString(strings.TrimRight(line, "\r\n") + "\n")
		}
	}
	return out.String()
}

// Judgement is what one run with a probe on shows, before any repeat.
type Judgement struct {
	Status  Status
	Code    fault.Code // why it is not credited; empty for killed
	Failure Event      // of the leaf test that failed first, when Status is killed or killed_by_error
}

// Judge derives what a single run shows. A killed verdict is a nomination: only
// [NewDiscrimination] credits.
func Judge(r Run) Judgement {
	rec := r.rec
	fails := r.Failures()
	switch {
	case rec.Report == ReportTampered:
		return Judgement{Status: Flaky, Code: CodeTampered}
	case rec.Exit.Stopped.Timeout():
		return Judgement{Status: TimedOut, Code: CodeTimeout}
	case rec.Exit.Stopped != "":
		return Judgement{Status: KilledByError, Code: CodeKilledByError}
	}
	for _, f := range fails {
		if f.By != ByAssertion && f.By != ByPlanted {
			return Judgement{Status: KilledByError, Code: CodeKilledByError, Failure: f}
		}
	}
	switch {
	case rec.Report != ReportComplete:
		j := Judgement{Status: KilledByError, Code: CodeIncomplete}
		if len(fails) > 0 {
			j.Failure = fails[0]
		}
		return j
	case len(fails) > 0 && rec.Exit.Code == 0:
		// The tests failed and the process said that all is well: somebody
		// turned red into green.
		return Judgement{Status: Flaky, Code: CodeRunnerBlind, Failure: fails[0]}
	case len(fails) > 0:
		return Judgement{Status: Killed, Failure: fails[0]}
	case !r.ranAny():
		return Judgement{Status: Invalid, Code: CodeNoTestsRan}
	case rec.Exit.Code != 0 || rec.Exit.Signal != "":
		return Judgement{Status: KilledByError, Code: CodeKilledByError}
	}
	return Judgement{Status: Survived, Code: CodeSurvived}
}

func (r Run) ranAny() bool {
	for _, e := range r.events {
		if e.Kind == EventPass || e.Kind == EventFailed {
			return true
		}
	}
	return false
}

func sortedKeys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
