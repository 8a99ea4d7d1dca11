package prove

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

// sortTests tells the tests that can vouch from those that cannot, and says why.
func (u *Unit) sortTests(ctx context.Context) error {
	first, second := u.Baselines[0], u.Baselines[1]
	fails := map[string]evidence.Event{}
	for _, e := range append(first.Failures(), second.Failures()...) {
		if _, seen := fails[e.Test]; !seen {
			fails[e.Test] = e
		}
	}
	order, parents := names(first)
	one, two := outcomes(first), outcomes(second)
	unfit := map[string]bool{}
	for _, t := range u.Unfit {
		unfit[t.Test] = true
	}
	notRed, err := u.whyRed(ctx, one, two)
	if err != nil {
		return err
	}
	for _, name := range order {
		if unfit[name] {
			continue
		}
		a, b := one[name], two[name]
		st := TestState{Test: name, Detail: fails[name].Message, File: fails[name].File, Line: fails[name].Line}
		switch {
		case a == evidence.Passed && b == evidence.Passed:
			u.Tests = append(u.Tests, name)
			if !parents[name] {
				u.Leaves++
			}
			continue
		case parents[name] && fails[name].Test == "":
			continue // it failed through a subtest, which is listed
		case a == evidence.Skipped:
			u.Skipped = append(u.Skipped, name)
			continue
		case notRed[name] == evidence.CodeSwitchSensitive:
			st.Code, st.Detail = evidence.CodeSwitchSensitive, "it fails while what it executes is recorded, and passes otherwise: "+st.Detail
		case notRed[name] != "":
			st.Code = notRed[name]
		case a == evidence.Failed && b == evidence.Failed:
			st.Code = evidence.CodeBaselineRed
		case a == evidence.Failed:
			st.Code = evidence.CodeFlaky
		default:
			code, err := u.whyDiffers(ctx, name)
			if err != nil {
				return err
			}
			st.Code = code
		}
		u.Unfit = append(u.Unfit, st)
	}
	return nil
}

// whyRed tells tests that are red from those that only look so: the tests that
// failed in both baselines run once more without recording what they execute, and
// those that pass then again and again with it and without. A test that counts
// allocations or measures time is green for its owner, and is not called red; one
// that does not answer in the same way every time fails by chance. Tests that stay
// red are not in the answer.
func (u *Unit) whyRed(ctx context.Context, one, two map[string]evidence.Outcome) (map[string]fault.Code, error) {
	again := func(tests []string, observe bool) (map[string]evidence.Outcome, error) {
		r, err := u.Suite.Run(ctx, lang.Request{Purpose: evidence.PurposeControl, Tests: tests, Observe: observe, Limits: baselineLimits()})
		if err != nil {
			return nil, err
		}
		return outcomes(r), nil
	}
	var red []string
	passing := map[string]bool{} // without being observed, every time so far
	for name, o := range one {
		if o == evidence.Failed && two[name] == evidence.Failed {
			red = append(red, name)
		}
	}
	if len(red) == 0 {
		return nil, nil
	}
	slices.Sort(red)
	unseen, err := again(red, false)
	if err != nil {
		return nil, err
	}
	for _, name := range red {
		if unseen[name] == evidence.Passed {
			passing[name] = true
		}
	}
	codes := map[string]fault.Code{}
	for round := range evidence.SteadyRounds {
		tests := slices.Sorted(maps.Keys(passing))
		if len(tests) == 0 {
			return codes, nil
		}
		seen, err := again(tests, true)
		if err != nil {
			return nil, err
		}
		if round > 0 {
			if unseen, err = again(tests, false); err != nil {
				return nil, err
			}
		}
		for _, name := range tests {
			if seen[name] == evidence.Passed || unseen[name] != evidence.Passed {
				codes[name] = evidence.CodeFlaky
				delete(passing, name)
			}
		}
	}
	for name := range passing {
		codes[name] = evidence.CodeSwitchSensitive
	}
	return codes, nil
}

// outcomes is [evidence.Run.Outcome] for all tests in one pass.
func outcomes(r evidence.Run) map[string]evidence.Outcome {
	out := map[string]evidence.Outcome{}
	for _, e := range r.Events() {
		switch e.Kind {
		case evidence.EventPass:
			out[e.Test] = evidence.Passed
		case evidence.EventFailed:
			out[e.Test] = evidence.Failed
		case evidence.EventSkip:
			out[e.Test] = evidence.Skipped
		}
	}
	return out
}

// whyDiffers finds out why a test passed in the first baseline and not in the
// second: the environment, the order, or chance. It runs the test alone in one
// environment and in the other, in turn: only what is seen every time is a reason.
func (u *Unit) whyDiffers(ctx context.Context, test string) (fault.Code, error) {
	var passed, failed [2]int // here, there
	for range evidence.SteadyRounds {
		for i, other := range []bool{false, true} {
			r, err := u.Suite.Run(ctx, lang.Request{Purpose: evidence.PurposeControl, Tests: []string{test}, OtherEnv: other, Limits: baselineLimits()})
			if err != nil {
				return "", err
			}
			if r.Outcome(test) == evidence.Passed {
				passed[i]++
			} else {
				failed[i]++
			}
		}
		switch {
		case passed[0]*failed[0] > 0, passed[1]*failed[1] > 0, passed[0]*passed[1] > 0:
			return evidence.CodeFlaky, nil
		case failed[0] > 0 && !u.hasOthers(test):
			return evidence.CodeFlaky, nil // it passed alone before: there is no other
		}
	}
	if passed[0] > 0 {
		return evidence.CodeEnvSensitive, nil
	}
	return evidence.CodeOrderDependent, nil // it needs what another test leaves behind
}

// hasOthers tells whether another test ran beside one and its subtests in the
// first baseline.
func (u *Unit) hasOthers(test string) bool {
	return slices.ContainsFunc(u.Baselines[0].Events(), func(e evidence.Event) bool {
		return e.Kind == evidence.EventBegin && e.Test != test && !strings.HasPrefix(e.Test, test+"/") && !strings.HasPrefix(test, e.Test+"/")
	})
}

// redAlone tells whether a test that passes with the others fails alone, every
// time; chance says that it gave both answers, or that there are no others.
func (u *Unit) redAlone(ctx context.Context, test string) (red, chance bool, err error) {
	for round := range 2 * evidence.SteadyRounds {
		r, err := u.Suite.Run(ctx, lang.Request{Purpose: evidence.PurposeControl, Tests: []string{test}, Limits: baselineLimits()})
		if err != nil {
			return false, false, err
		}
		switch {
		case r.Outcome(test) == evidence.Passed:
			return false, round > 0, nil
		case !u.hasOthers(test):
			return false, true, nil
		}
	}
	return true, false, nil
}

// whyNull finds out why tests failed with the switch on and nothing changed: it
// runs them with the switch and without, in turn.
func (u *Unit) whyNull(ctx context.Context, tests []string) (map[string]fault.Code, error) {
	codes := map[string]fault.Code{}
	open := slices.Clone(tests)
	var passed map[string]bool // without the switch
	for round := range evidence.SteadyRounds {
		if len(open) == 0 {
			break
		}
		plain, err := u.Suite.Run(ctx, lang.Request{Purpose: evidence.PurposeControl, Tests: open, Limits: u.limits(tests)})
		if err != nil {
			return nil, err
		}
		null, err := u.Suite.Run(ctx, lang.Request{Purpose: evidence.PurposeNull, Tests: open, Limits: u.limits(tests)})
		if err != nil {
			return nil, err
		}
		off, on := outcomes(plain), outcomes(null)
		if round == 0 {
			passed = map[string]bool{}
			for _, name := range open {
				passed[name] = off[name] == evidence.Passed
			}
		}
		open = slices.DeleteFunc(open, func(name string) bool {
			if on[name] != evidence.Passed && (off[name] == evidence.Passed) == passed[name] {
				return false
			}
			codes[name] = evidence.CodeFlaky
			return true
		})
	}
	for _, name := range open {
		codes[name] = evidence.CodeSwitchSensitive
		if !passed[name] {
			codes[name] = evidence.CodeOrderDependent
			if !u.hasOthers(name) {
				codes[name] = evidence.CodeFlaky
			}
		}
	}
	return codes, nil
}

func (u *Unit) nothingVouches() error {
	if len(u.Unfit) > 0 {
		s := u.Unfit[0]
		return fault.Wrap(&UnfitError{u.Unfit}, fault.Unmeasured, s.Code, "no test of %s can vouch", u.ID)
	}
	if len(u.Skipped) > 0 {
		return fault.New(fault.Unmeasured, evidence.CodeNoTestsRan, "every test of %s is skipped", u.ID)
	}
	return fault.New(fault.Unmeasured, lang.NoTests, "no test of %s ran", u.ID)
}
