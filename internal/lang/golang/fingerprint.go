package golang

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang/source"
)

// Fingerprint implements [lang.Driver]: the version that the toolchain on PATH
// carries in its VERSION file, and the driver's. A toolchain without one (built
// from a checkout) is told by the size and time of its go command.
func (d *Driver) Fingerprint() (string, error) {
	path := os.Getenv("PATH")
	if path == "" {
		path = defaultPath
	}
	bin := findGo(path, "")
	if bin == "" {
		return "", fault.New(fault.Unmeasured, lang.ToolMissing, "no go command on PATH").Hint("install Go: https://go.dev/dl")
	}
	if real, err := filepath.EvalSymlinks(bin); err == nil {
		bin = real
	}
	if b, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(bin)), "VERSION")); err == nil {
		version, _, _ := strings.Cut(string(b), "\n")
		return strings.TrimSpace(version) + ", driver " + source.Driver, nil
	}
	st, err := os.Stat(bin)
	if err != nil {
		return "", fault.Wrap(err, fault.Unmeasured, lang.ToolMissing, "go command %s", bin)
	}
	return fmt.Sprintf("%s %d %d, driver %s", bin, st.Size(), st.ModTime().UnixNano(), source.Driver), nil
}
