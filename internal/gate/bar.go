package gate

import "fmt"

// Bar is what a proof must reach.
type Bar struct {
	MinProven      float64 // share
	MaxRefuted     int     // count
	MaxNotMeasured float64 // share
}

// Proof counts the changed behaviours that a mutant can change. Unguarded are those
// that were not measured because of the tests themselves: none reaches them, those
// that do are skipped, or they notice only by crashing. Unmeasured are those for
// which something around them is the reason.
type Proof struct{ Proven, Refuted, Unguarded, Unmeasured int }

// Total is the denominator.
func (p Proof) Total() int { return p.Proven + p.Refuted + p.Unguarded + p.Unmeasured }

// Judge compares a proof with a bar. It says not_measured only where what could
// not be measured decides: if all of it were proven the bar would be reached.
func (b Bar) Judge(p Proof) Answer {
	total := p.Total()
	if total == 0 {
		return Answer{Empty, "empty", "the change has no behaviour that a mutant can change"}
	}
	if p.Refuted > b.MaxRefuted {
		return Answer{No, CodeFailed, fmt.Sprintf("%d changed behaviours are refuted, %d are allowed", p.Refuted, b.MaxRefuted)}
	}
	few := float64(p.Proven) < b.MinProven*float64(total)
	unseen := float64(p.Unguarded+p.Unmeasured) > b.MaxNotMeasured*float64(total)
	if !few && !unseen {
		return Answer{Outcome: Pass}
	}
	reason := fmt.Sprintf("%d of %d changed behaviours are proven, the bar is a share of %g", p.Proven, total, b.MinProven)
	if !few {
		reason = fmt.Sprintf("%d of %d changed behaviours are not measured, a share of %g is allowed", p.Unguarded+p.Unmeasured, total, b.MaxNotMeasured)
	}
	if float64(p.Proven+p.Unmeasured) >= b.MinProven*float64(total) && float64(p.Unguarded) <= b.MaxNotMeasured*float64(total) {
		return Answer{NotMeasured, CodeUnmeasured, reason}
	}
	return Answer{No, CodeFailed, reason}
}
