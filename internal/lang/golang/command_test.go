package golang

import "testing"

func TestTestCommand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		dir, unit, test string
		times           int
		want            string
	}{
		{"/src/pay", ".", "TestFee", 1, `go -C /src/pay test -count=1 -v -run '^TestFee$' .`},
		{"/my src", "a/b", "TestFee/half_(up)", 20, `go -C '/my src' test -count=20 -v -run '^TestFee$/^half_\(up\)$' ./a/b`},
	} {
		if got := New().TestCommand(tt.dir, tt.unit, tt.test, tt.times); got != tt.want {
			t.Errorf("TestCommand(%s) = %s, want %s", tt.test, got, tt.want)
		}
	}
}

// The go command names a remedy itself; ours is for where it names none.
func TestClassifyKeepsTheGoCommandsRemedy(t *testing.T) {
	t.Parallel()
	e := classify([]byte("# x\na.go:3:8: no required module provides package example.com/y; to add it:\n\tgo get example.com/y\nFAIL\n"), "build")
	if want := "build: a.go:3:8: no required module provides package example.com/y"; e.What != want || len(e.Hints) != 1 || e.Hints[0] != "go get example.com/y" {
		t.Errorf("classify = %q, hints %q", e.What, e.Hints)
	}
}
