package prove

import (
	"context"
	"crypto/rand"
	"math/big"
	"slices"
	"sync"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

// steadiness remembers which tests were seen to give the same answer every
// time, and which were not: each is asked once.
type steadiness struct {
	mu    sync.Mutex
	tests map[string]*steadyTest
	aside []TestState
}

type steadyTest struct {
	mu   sync.Mutex // held while the runs are made
	runs []evidence.Run
}

func (s *steadiness) of(test string) *steadyTest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tests == nil {
		s.tests = map[string]*steadyTest{}
	}
	t := s.tests[test]
	if t == nil {
		t = &steadyTest{}
		s.tests[test] = t
	}
	return t
}

// setAside notes that a test cannot vouch after all: it was red alone on the
// original.
func (s *steadiness) setAside(test string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := fault.From(why)
	if !slices.ContainsFunc(s.aside, func(t TestState) bool { return t.Test == test }) {
		s.aside = append(s.aside, TestState{Test: test, Code: e.Code, Detail: e.What})
	}
}

// refused is the reason for which a test was set aside; nil while it may vouch.
func (s *steadiness) refused(test string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.aside {
		if t.Test == test {
			return fault.New(fault.Unmeasured, t.Code, "%s", t.Detail)
		}
	}
	return nil
}

// CannotVouch lists the tests that cannot vouch for anything: those that the
// baselines showed, and those that disagreed with themselves later.
func (u *Unit) CannotVouch() []TestState {
	u.steadiness.mu.Lock()
	defer u.steadiness.mu.Unlock()
	return append(slices.Clone(u.Unfit), u.steadiness.aside...)
}

// steady returns the runs that show a test to be steady. They are made once a
// test, when it has killed for the first time: on the original and on the probe
// that it noticed, in random order. The first answer that differs ends them: red
// on the original sets the test aside, green on the probe says nothing about the
// test yet, since what the probe does may depend on chance.
func (u *Unit) steady(ctx context.Context, p lang.Probe, test string) ([]evidence.Run, error) {
	t := u.steadiness.of(test)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := u.steadiness.refused(test); err != nil || t.runs != nil {
		return t.runs, err
	}
	var runs []evidence.Run
	for _, changed := range inRandomOrder(evidence.SteadyRounds) {
		var on *lang.Probe
		if changed {
			on = &p
		}
		r, err := u.alone(ctx, test, on)
		if err != nil {
			return nil, err
		}
		if err := evidence.Steady(test, r); err != nil {
			if !changed {
				u.steadiness.setAside(test, err)
			}
			return nil, err
		}
		runs = append(runs, r)
	}
	t.runs = runs
	return runs, nil
}

// inRandomOrder holds n times true and n times false.
func inRandomOrder(n int) []bool {
	out := make([]bool, 2*n)
	for i := range n {
		out[i] = true
	}
	for i := len(out) - 1; i > 0; i-- {
		j, err := rand.Int(rand.Reader, big.NewInt(int64(i+1)))
		if err != nil {
			panic("no randomness: " + err.Error())
		}
		k := int(j.Int64())
		out[i], out[k] = out[k], out[i]
	}
	return out
}
