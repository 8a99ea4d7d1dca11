package sandbox

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if code, handled := Reexec(os.Args[1:]); handled {
		os.Exit(code)
	}
	if code, handled := helper(os.Args[1:]); handled {
		os.Exit(code)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
