package golang

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang/controller"
	"github.com/proveto/proveto/internal/lang/golang/source"
)

// Fingerprint implements [lang.Driver]: version of the go command on PATH, the
// driver with its controller, and the settings that change a build.
func (d *Driver) Fingerprint() (string, error) {
	s, err := newSettings(lang.Workspace{})
	if err != nil {
		return "", err
	}
	bin := findGo(trustedPath(s.get("PATH")))
	if bin == "" {
		return "", noGo()
	}
	resolved, err := filepath.EvalSymlinks(bin)
	if err != nil {
		return "", fault.Wrap(err, fault.Unmeasured, lang.ToolMissing, "go command")
	}
	// A go command that is a script of some manager has no VERSION beside it:
	// then its own bytes must do.
	name := filepath.Join(filepath.Dir(filepath.Dir(resolved)), "VERSION")
	b, err := os.ReadFile(name)
	if err != nil {
		if b, err = os.ReadFile(resolved); err != nil {
			return "", fault.Wrap(err, fault.Unmeasured, lang.ToolMissing, "go command")
		}
		b = []byte("go " + evidence.DigestOf(b).Short())
	}
	release, _, _ := strings.Cut(string(b), "\n")
	ours, err := controller.Digest()
	if err != nil {
		return "", err
	}
	parts := []string{string(ours)}
	for _, k := range kept {
		parts = append(parts, k+"="+s.get(k))
	}
	return fmt.Sprintf("%s %s/%s, %s, %s", release, runtime.GOOS, runtime.GOARCH, source.Driver, evidence.DigestParts(parts...).Short()), nil
}

func noGo() *fault.Error {
	return fault.New(fault.Unmeasured, lang.ToolMissing, "no go command on PATH").Hint("install Go: https://go.dev/dl")
}
