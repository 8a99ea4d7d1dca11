package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

// TestMain makes the test binary the helper, as cmd does with ours.
func TestMain(m *testing.M) {
	if code, handled := Reexec(os.Args[1:]); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestHelperProcessAnswersAndRefuses(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	helper := func(root string) (*Answer, int, error) {
		in, err := json.Marshal(Request{Root: root, Out: t.TempDir(), Project: lang.Project{Dir: "."}})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, Argument)
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=")
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.Output()
		if exited := new(exec.ExitError); err != nil && !errors.As(err, &exited) {
			t.Fatal(err)
		}
		ans, err := Decode(out)
		return ans, cmd.ProcessState.ExitCode(), err
	}
	ans, code, err := helper(unpack(t, dependent))
	if err != nil || code != 0 || len(ans.Scan.Units) != 3 {
		t.Errorf("helper = %+v, exit %d, %v", ans, code, err)
	}
	_, code, err = helper(unpack(t, "-- go.mod --\nmodule example.com/m\n\ngo 1.99\n-- a.go --\npackage m\n"))
	if !fault.Has(err, lang.ToolMissing) || code != fault.Unmeasured.Exit() {
		t.Errorf("helper of a newer module: exit %d, %v", code, err)
	}
	if _, handled := Reexec([]string{"prove"}); handled {
		t.Error("Reexec took a command that is not its own")
	}
}
