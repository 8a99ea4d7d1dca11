package evidence

import "github.com/proveto/proveto/internal/fault"

// SteadyRounds is how often a test runs alone on the original, and as often on a
// probe that it noticed, in random order, before it may vouch. A test that fails
// by chance answers all of them as a steady one would with a probability of at
// most 4^-SteadyRounds, whatever its chance of failing; see
// docs/decisions/steady-tests.md.
const SteadyRounds = 6

// expectedSteady says what the steady runs must be about: the original or one
// probe, one run after the other.
func expectedSteady(runs []Run) ([]expected, error) {
	var out []expected
	var probe Digest
	for i, r := range runs {
		if i > 0 && !r.rec.Started.After(runs[i-1].rec.Started) {
			return nil, fault.New(fault.Unmeasured, CodeMismatch, "the steady runs are not in the order in which they were made")
		}
		if r.rec.Purpose == PurposeControl {
			out = append(out, expected{"steady run on the original", r, PurposeControl, "", true})
			continue
		}
		if probe == "" {
			probe = r.rec.Probe
		}
		out = append(out, expected{"steady run on a probe", r, PurposeProbe, probe, true})
	}
	return out, nil
}

// steady checks that the test gave the same answer often enough: green on the
// original, red by its own assertion on the probe.
func steady(test string, runs []Run) error {
	original := 0
	for _, r := range runs {
		if r.rec.Purpose == PurposeControl {
			original++
		}
		if err := Steady(test, r); err != nil {
			return err
		}
	}
	if changed := len(runs) - original; original != SteadyRounds || changed != SteadyRounds {
		return fault.New(fault.Unmeasured, CodeMismatch, "%d runs on the original and %d on a probe do not show that a test is steady: want %d of each",
			original, changed, SteadyRounds)
	}
	return nil
}

// Steady checks one of the runs that show a test to be steady. The error has
// code flaky.
func Steady(test string, r Run) error {
	if r.rec.Purpose != PurposeControl {
		if _, err := killedBy(test, r); err != nil {
			return fault.Wrap(err, fault.Unmeasured, CodeFlaky, "%s does not notice the same probe every time", test)
		}
		return nil
	}
	if got := r.Outcome(test); got != Passed || r.rec.Report != ReportComplete {
		return fault.New(fault.Unmeasured, CodeFlaky, "%s %s when it ran alone on the original once more", test, got)
	}
	return nil
}
