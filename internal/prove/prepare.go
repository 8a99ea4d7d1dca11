package prove

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

// BaselineWall bounds one baseline; a suite that needs longer is needs_setup
// with category timeout, never a survivor.
const BaselineWall = 5 * time.Minute

// maxCulprits bounds how many tests that end the process are set aside one by
// one before the unit is given up.
const maxCulprits = 4

// maxSuspects bounds how many tests that failed in another order are run alone
// beforehand; the others are found out when they would vouch.
const maxSuspects = 50

// TestState is a test that cannot vouch for anything, and why.
type TestState struct {
	Test   string
	Code   fault.Code // baseline_failed, flaky, order_dependent, environment_sensitive, report_incomplete
	Detail string
	File   string
	Line   int
}

// UnfitError is the cause of an error that says that no test of a unit can vouch.
type UnfitError struct{ Tests []TestState }

// Error names the first test and what is wrong with it.
func (u *UnfitError) Error() string {
	s := u.Tests[0]
	return strings.TrimSpace(s.Test + " (" + strings.ReplaceAll(string(s.Code), "_", " ") + ") " + s.Detail)
}

// Unit is a suite that was seen green on the original, with a runner that was
// seen to report red. It is safe for use by several goroutines.
type Unit struct {
	ID        string
	Suite     lang.Suite
	Today     *Today
	Tree      evidence.Tree
	Baselines [2]evidence.Run
	Null      evidence.Run
	Planted   evidence.Run
	Isolation evidence.Isolation
	Tests     []string // that passed everywhere and can vouch; parents and subtests
	Leaves    int      // of them, those without subtests
	Skipped   []string
	Unfit     []TestState

	durations map[string]time.Duration // as in the first baseline; a parent's includes its subtests
	reach     map[string][]string      // symbol → tests that executed it themselves, fastest first
	executed  [2]evidence.Reach        // by the two baselines
	early     map[string]bool          // symbols that run before any test
	plain     plainCheck
	steadiness
}

// Prepare runs the suite twice on the original (the second time shuffled and in
// another environment), once with the switch on and nothing changed, and once
// with a planted failure. Its error has kind unmeasured and says why nothing of
// this unit can be credited.
func Prepare(ctx context.Context, s lang.Suite, t *Today, tree evidence.Tree) (*Unit, error) {
	u := &Unit{ID: s.Unit(), Suite: s, Today: t, Tree: tree}
	first, chosen, err := u.firstBaseline(ctx)
	if err != nil {
		return nil, err
	}
	u.Baselines[0] = first
	u.Isolation = first.Record().Isolation
	if u.Baselines[1], err = u.secondBaseline(ctx, first, chosen); err != nil {
		return nil, err
	}
	if err := u.sortTests(ctx); err != nil {
		return nil, err
	}
	if len(u.Tests) == 0 {
		return nil, u.nothingVouches()
	}
	u.index()
	if err := u.controls(ctx, chosen); err != nil {
		return nil, err
	}
	return u, nil
}

// outputKept is how much is kept of each stream of a run, in bytes. It also bounds
// what may be printed, and a suite prints as much in one run as in the other.
const outputKept = 1 << 20

func baselineLimits() evidence.Limits {
	return evidence.Limits{CPU: 2 * BaselineWall, Wall: BaselineWall, OutputBytes: outputKept, Processes: 512, MemoryBytes: 8 << 30}
}

// firstBaseline runs everything once. Tests that end the process (os.Exit, a
// panic, a fatal error) are set aside one at a time, so that one of them does
// not silence the rest.
func (u *Unit) firstBaseline(ctx context.Context) (evidence.Run, []string, error) {
	var chosen []string
	for {
		r, err := u.Suite.Run(ctx, lang.Request{Purpose: evidence.PurposeBaseline, Tests: chosen, Observe: true, Limits: baselineLimits()})
		if err != nil {
			return evidence.Run{}, nil, err
		}
		rec := r.Record()
		if rec.Report != evidence.ReportIncomplete || rec.Exit.Stopped != "" {
			return r, chosen, ended(r, "the baseline")
		}
		culprit := unfinished(r)
		if culprit == "" || len(u.Unfit) >= maxCulprits {
			return evidence.Run{}, nil, ended(r, "the baseline")
		}
		u.Unfit = append(u.Unfit, TestState{
			Test: culprit, Code: evidence.CodeIncomplete,
			Detail: "it ended the test process (" + exitText(rec.Exit) + ")",
		})
		if chosen = u.without(); len(chosen) == 0 {
			return evidence.Run{}, nil, fault.Wrap(&UnfitError{u.Unfit}, fault.Unmeasured, evidence.CodeBaselineRed, "every test of %s ends the test process", u.ID)
		}
	}
}

// without lists the top-level tests of the unit that did not end the process.
func (u *Unit) without() []string {
	bad := map[string]bool{}
	for _, s := range u.Unfit {
		bad[topLevel(s.Test)] = true
	}
	var out []string
	for _, te := range u.Today.Scan.Tests {
		if te.Unit == u.ID && !bad[te.Name] {
			out = append(out, te.Name)
		}
	}
	return out
}

// unfinished is the innermost test that began and did not end.
func unfinished(r evidence.Run) string {
	var open []string
	for _, e := range r.Events() {
		switch e.Kind {
		case evidence.EventBegin:
			open = append(open, e.Test)
		case evidence.EventPass, evidence.EventFailed, evidence.EventSkip:
			for i := len(open) - 1; i >= 0; i-- {
				if open[i] == e.Test {
					open = append(open[:i], open[i+1:]...)
					break
				}
			}
		}
	}
	if len(open) == 0 {
		return ""
	}
	return open[len(open)-1]
}

// ended checks that a run of the original came to its end and can be believed.
func ended(r evidence.Run, what string) error {
	rec := r.Record()
	switch {
	case rec.Exit.Stopped == evidence.StopCancelled:
		return fault.New(fault.Interrupted, "interrupted", "%s was stopped", what)
	case rec.Exit.Stopped.Timeout():
		return fault.New(fault.Unmeasured, lang.TimedOut, "%s did not end within %s", what, rec.Limits.Wall).Hint("proveto config get isolation.wall")
	case rec.Exit.Stopped != "":
		return fault.New(fault.Unmeasured, lang.Configuration, "%s hit our %s", what, strings.ReplaceAll(string(rec.Exit.Stopped), "_", " "))
	case rec.Report == evidence.ReportTampered:
		return fault.New(fault.Unmeasured, evidence.CodeTampered, "the report of %s was tampered with", what)
	case rec.Report != evidence.ReportComplete:
		return fault.New(fault.Unmeasured, evidence.CodeIncomplete, "%s left before the end of the suite (%s)", what, exitText(rec.Exit))
	}
	return nil
}

func exitText(e evidence.Exit) string {
	if e.Signal != "" {
		return e.Signal
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// secondBaseline runs the suite again in another environment, shuffled. Where
// the order makes a difference it is run once more in order: every test is judged
// alone in the end, so that only those which need another one before them are
// lost. Which these are is found out here, each alone in a fresh process.
func (u *Unit) secondBaseline(ctx context.Context, first evidence.Run, chosen []string) (evidence.Run, error) {
	req := lang.Request{
		Purpose: evidence.PurposeBaseline, Tests: chosen, Shuffle: seed(), Reach: true, OtherEnv: true, Limits: baselineLimits(),
	}
	shuffled, err := u.Suite.Run(ctx, req)
	if err != nil {
		return evidence.Run{}, err
	}
	if stop := shuffled.Record().Exit.Stopped; stop != "" {
		return evidence.Run{}, ended(shuffled, "the second, shuffled baseline")
	}
	one, two := outcomes(first), outcomes(shuffled)
	suspects := []string{}
	for name, o := range two {
		if o == evidence.Failed && one[name] == evidence.Passed {
			suspects = append(suspects, name)
		}
	}
	if last := unfinished(shuffled); last != "" && shuffled.Record().Report == evidence.ReportIncomplete {
		suspects = append(suspects, last)
	}
	if len(suspects) == 0 {
		return shuffled, ended(shuffled, "the second, shuffled baseline")
	}
	req.Shuffle = 0
	ordered, err := u.Suite.Run(ctx, req)
	if err != nil {
		return evidence.Run{}, err
	}
	if err := ended(ordered, "the second baseline, in order,"); err != nil {
		return evidence.Run{}, err
	}
	three := outcomes(ordered)
	slices.Sort(suspects)
	for _, name := range suspects[:min(len(suspects), maxSuspects)] {
		if three[name] != evidence.Passed {
			continue // sortTests says why
		}
		red, chance, err := u.redAlone(ctx, name)
		switch {
		case err != nil:
			return evidence.Run{}, err
		case red:
			u.orderDependent(name)
		case chance:
			u.Unfit = append(u.Unfit, TestState{Test: name, Code: evidence.CodeFlaky, Detail: "it passed and failed in runs of the same inputs"})
		}
	}
	return ordered, nil
}

// orderDependent sets a test aside that passes only after another one.
func (u *Unit) orderDependent(test string) {
	u.Unfit = append(u.Unfit, TestState{Test: test, Code: evidence.CodeOrderDependent, Detail: "it passes after other tests, and fails alone in a fresh process"})
}

// controls makes the null run and the planted run, and refuses the unit when
// either shows that its results cannot be believed.
func (u *Unit) controls(ctx context.Context, chosen []string) error {
	var err error
	u.Null, err = u.Suite.Run(ctx, lang.Request{Purpose: evidence.PurposeNull, Tests: chosen, Limits: u.limits(u.Tests)})
	if err != nil {
		return err
	}
	if err := ended(u.Null, "the null run (switch on, nothing changed)"); err != nil {
		return err
	}
	var fit, red []string
	null := outcomes(u.Null)
	for _, name := range u.Tests {
		if null[name] == evidence.Passed {
			fit = append(fit, name)
		} else {
			red = append(red, name)
		}
	}
	codes, err := u.whyNull(ctx, red)
	if err != nil {
		return err
	}
	for _, name := range red {
		switch codes[name] {
		case evidence.CodeOrderDependent:
			u.orderDependent(name)
		case evidence.CodeFlaky:
			u.Unfit = append(u.Unfit, TestState{Test: name, Code: evidence.CodeFlaky, Detail: "it passed and failed in runs of the same inputs"})
		default:
			u.Unfit = append(u.Unfit, TestState{
				Test: name, Code: evidence.CodeSwitchSensitive,
				Detail: "it fails whenever a probe is switched on, also one that changes nothing",
			})
		}
	}
	if u.Tests = fit; len(fit) == 0 {
		return u.nothingVouches()
	}
	u.index()
	plant := u.fastest()
	u.Planted, err = u.Suite.Run(ctx, lang.Request{
		Purpose: evidence.PurposePlanted, Tests: []string{plant}, Plant: plant, Limits: u.limits([]string{plant}),
	})
	if err != nil {
		return err
	}
	if u.Planted.Record().Exit.Stopped != "" { // a limit of ours ended it, so it says nothing of the runner
		return ended(u.Planted, "the planted run (a failing assertion in "+plant+")")
	}
	return evidence.HonestRunner(u.Planted)
}

// index turns the baselines' reach around: symbol → tests that execute it,
// fastest first.
func (u *Unit) index() {
	u.durations = map[string]time.Duration{}
	for _, e := range u.Baselines[0].Events() {
		if e.Kind == evidence.EventPass {
			u.durations[e.Test] = time.Duration(e.Duration)
		}
	}
	u.executed = [2]evidence.Reach{u.Baselines[0].Reach(), u.Baselines[1].Reach()}
	u.reach = map[string][]string{}
	for _, test := range u.Tests {
		for _, id := range union(u.executed[0].By(test), u.executed[1].By(test)) {
			u.reach[id] = append(u.reach[id], test)
		}
	}
	u.early = map[string]bool{}
	for _, id := range union(u.executed[0].Init(), u.executed[1].Init()) {
		u.early[id] = true
		if len(u.reach[id]) == 0 {
			// It runs before the tests: any of them may notice.
			u.reach[id] = slices.Clone(u.Tests)
		}
	}
	for _, tests := range u.reach {
		sort.SliceStable(tests, func(i, j int) bool { return u.durations[tests[i]] < u.durations[tests[j]] })
	}
}

// Reaching lists the tests that were measured to execute the symbol themselves,
// fastest first; of code that only runs before the tests, all of them.
func (u *Unit) Reaching(symbol string) []string { return u.reach[symbol] }

// Hindered is a test that reaches a symbol and cannot vouch, for a symbol that
// no other test reaches: the reason for which it is not measured. Of a test that
// was skipped, or that ended the process, the calls in its source must do.
func (u *Unit) Hindered(symbol string) (TestState, bool) {
	for _, t := range u.CannotVouch() {
		if slices.Contains(u.Executed(t.Test), symbol) || (t.Code == evidence.CodeIncomplete && u.Today.Calls(u.ID, t.Test, symbol)) {
			return t, true
		}
	}
	for _, name := range u.Skipped {
		if u.Today.Calls(u.ID, name, symbol) {
			return TestState{Test: name, Code: evidence.CodeTestsNotRun, Detail: name + " is skipped"}, true
		}
	}
	return TestState{}, false
}

// Executed lists the project symbols that run when the test is selected.
func (u *Unit) Executed(test string) []string {
	return union(u.executed[0].Of(test), u.executed[1].Of(test))
}

// Consulted lists the files and variables that are read when the test is
// selected, by the names of [evidence.EventReads], and those that the
// configuration gives to every test.
func (u *Unit) Consulted(test string) []string {
	return union(union(u.executed[0].Reads(test), u.executed[1].Reads(test)), []string{configured})
}

func (u *Unit) fastest() string {
	best := u.Tests[0]
	for _, t := range u.Tests {
		if u.durations[t] < u.durations[best] {
			best = t
		}
	}
	return best
}

// names lists every test that began, in order, and which of them have subtests.
func names(r evidence.Run) (order []string, parents map[string]bool) {
	parents = map[string]bool{}
	seen := map[string]bool{}
	for _, e := range r.Events() {
		if e.Kind != evidence.EventBegin || seen[e.Test] {
			continue
		}
		seen[e.Test] = true
		order = append(order, e.Test)
		for p := e.Test; strings.Contains(p, "/"); {
			p = p[:strings.LastIndexByte(p, '/')]
			parents[p] = true
		}
	}
	return order, parents
}

func union(a, b []string) []string {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

func topLevel(test string) string { top, _, _ := strings.Cut(test, "/"); return top }

func seed() int64 {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("no randomness: " + err.Error())
	}
	return int64(binary.LittleEndian.Uint64(b[:])>>1) | 1
}
