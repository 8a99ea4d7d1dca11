package prove

import (
	"context"
	"slices"

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
// those that pass then once more with it. A test that counts allocations or
// measures time is green for its owner, and is not called red; one that passes
// the last time fails by chance. Tests that stay red are not in the answer.
func (u *Unit) whyRed(ctx context.Context, one, two map[string]evidence.Outcome) (map[string]fault.Code, error) {
	again := func(tests []string, observe bool) (map[string]evidence.Outcome, error) {
		r, err := u.Suite.Run(ctx, lang.Request{Purpose: evidence.PurposeControl, Tests: tests, Observe: observe, Limits: baselineLimits()})
		if err != nil {
			return nil, err
		}
		return outcomes(r), nil
	}
	var red, green []string
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
			green = append(green, name)
		}
	}
	if len(green) == 0 {
		return nil, nil
	}
	seen, err := again(green, true)
	if err != nil {
		return nil, err
	}
	codes := map[string]fault.Code{}
	for _, name := range green {
		codes[name] = evidence.CodeSwitchSensitive
		if seen[name] == evidence.Passed {
			codes[name] = evidence.CodeFlaky
		}
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
// second: the environment, the order, or chance.
func (u *Unit) whyDiffers(ctx context.Context, test string) (fault.Code, error) {
	alone := lang.Request{Purpose: evidence.PurposeControl, Tests: []string{test}, Limits: baselineLimits()}
	here, err := u.Suite.Run(ctx, alone)
	if err != nil {
		return "", err
	}
	alone.OtherEnv = true
	there, err := u.Suite.Run(ctx, alone)
	if err != nil {
		return "", err
	}
	switch a, b := here.Outcome(test), there.Outcome(test); {
	case a == evidence.Passed && b != evidence.Passed:
		return evidence.CodeEnvSensitive, nil
	case a != evidence.Passed:
		// It needs what another test leaves behind.
		return evidence.CodeOrderDependent, nil
	}
	return evidence.CodeFlaky, nil
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
