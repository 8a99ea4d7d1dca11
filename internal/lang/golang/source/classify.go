package source

import (
	"strings"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

// signs are words of the go command, by category; the first match counts.
var signs = []struct {
	word string
	code fault.Code
	hint string
}{
	{"(running go ", lang.ToolMissing, "install the Go toolchain that go.mod names"},
	{"toolchain not available", lang.ToolMissing, "install the Go toolchain that go.mod names"},
	{"invalid go version", lang.ToolMissing, "install the Go toolchain that go.mod names"},
	{"\"go\": executable file not found", lang.ToolMissing, "install Go: https://go.dev/dl"},
	{"C compiler ", lang.ToolMissing, "install a C compiler, or set CGO_ENABLED=0"},
	{"inconsistent vendoring", lang.Configuration, "go mod vendor"},
	{"updates to go.mod needed", lang.Configuration, "go mod tidy"},
	{"errors parsing go.", lang.Configuration, ""},
	{"go.work: ", lang.Configuration, "go work sync"},
	{"missing go.sum entry", lang.DependencyMissing, "go mod download"},
	{"checksum mismatch", lang.Configuration, "go clean -modcache && go mod download"},
	{"no required module provides package", lang.DependencyMissing, "go mod tidy"},
	{"cannot find module providing package", lang.DependencyMissing, "go mod tidy"},
	{"module lookup disabled", lang.DependencyMissing, "go mod download"},
	{"is not in std", lang.DependencyMissing, "go mod tidy"},
	{"cannot find package", lang.DependencyMissing, "go mod download"},
	{"does not contain package", lang.DependencyMissing, "go mod tidy"},
	{"replacement directory", lang.DependencyMissing, ""},
	{"could not import", lang.DependencyMissing, "go mod download"},
	{"permission denied", lang.Permission, ""},
	{"pattern ", lang.BuildFailed, ""}, // an embed pattern without a match
}

// classify gives what the go command said a category.
func classify(msg string, p lang.Project, cause error) *fault.Error {
	code, hint := lang.BuildFailed, ""
	for _, s := range signs {
		if strings.Contains(msg, s.word) {
			code, hint = s.code, s.hint
			break
		}
	}
	text, own := remedy(msg)
	if own != "" {
		hint = own
	}
	name := p.Name
	if name == "" {
		name = p.Dir
	}
	var e *fault.Error
	if cause != nil {
		e = fault.Wrap(cause, fault.Unmeasured, code, "load Go module %s", name)
	} else {
		e = fault.New(fault.Unmeasured, code, "load Go module %s: %s", name, text)
	}
	if hint != "" {
		e.Hint("%s", hint)
	}
	return e
}

// remedy is the first line of what the go command said, and the command that it
// names itself below a line that ends in "to add it:"; empty when it names none.
func remedy(msg string) (text, command string) {
	text, below, _ := strings.Cut(strings.TrimSpace(msg), "\n")
	text = strings.TrimSpace(text)
	text = strings.TrimSuffix(text, "; to add:") // of a missing sum: go mod download does
	i := strings.LastIndex(text, "; to ")
	if command, _, _ = strings.Cut(strings.TrimSpace(below), "\n"); i < 0 || !strings.HasSuffix(text, "to add it:") || !strings.HasPrefix(command, "go ") {
		return text, ""
	}
	return text[:i], strings.TrimSpace(command)
}
