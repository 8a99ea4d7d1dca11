// Package sample is the smallest project with a behaviour that a test guards and
// one that no test guards; proveto doctor proves it.
package sample

// Fee is two percent, rounded up to whole cents.
func Fee(cents int) int { return (cents*2 + 99) / 100 }

// Label is never looked at by the test that calls it.
func Label(cents int) string {
	if cents < 0 {
		return "refund"
	}
	return "charge"
}
