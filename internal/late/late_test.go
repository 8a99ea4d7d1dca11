package late

import "testing"

func TestRegexpIsMadeOnce(t *testing.T) {
	t.Parallel()
	re := Regexp(`^a+$`)
	if !re().MatchString("aa") || re().MatchString("ab") {
		t.Error("it is not the expression that was asked for")
	}
	first, second := re(), re()
	if first != second {
		t.Error("it is compiled anew each time")
	}
}

func TestABadTextCostsNothingUntilItIsAskedFor(t *testing.T) {
	t.Parallel()
	re := Regexp(`(`)
	defer func() {
		if recover() == nil {
			t.Error("no panic for a text that is no expression")
		}
	}()
	re()
}
