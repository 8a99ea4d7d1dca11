package sample

import "testing"

func TestFee(t *testing.T) {
	if got := Fee(1250); got != 25 {
		t.Errorf("Fee(1250) = %d, want 25", got)
	}
	Label(1250)
}
