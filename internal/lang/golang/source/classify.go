package source

import (
	"strings"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/late"
)

// signs are words of the go command, by category; the first match counts.
var signs = []struct {
	word string
	code fault.Code
	hint string
}{
	{"(running go ", lang.ToolMissing, "install the Go toolchain that go.mod names"},
	{"toolchain not available", lang.ToolMissing, "install the Go toolchain that go.mod names"},
	{"invalid go version", lang.Configuration, "go list -m"},
	{"\"go\": executable file not found", lang.ToolMissing, "install Go: https://go.dev/dl"},
	{"C compiler ", lang.ToolMissing, "install a C compiler, or set CGO_ENABLED=0"},
	{"inconsistent vendoring", lang.Configuration, "go mod vendor"},
	{"updates to go.mod needed", lang.Configuration, "go mod tidy"},
	{"errors parsing go.", lang.Configuration, "go list -m"},
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
func classify(msg string, p lang.Project) *fault.Error {
	code, hint := lang.BuildFailed, ""
	for _, s := range signs {
		if strings.Contains(msg, s.word) {
			code, hint = s.code, s.hint
			break
		}
	}
	name := p.Name
	if name == "" {
		name = p.Dir
	}
	if g := remedy().FindStringSubmatch(msg); g != nil && code == lang.DependencyMissing {
		hint = "go " + g[1]
	}
	if args, ok := strings.CutPrefix(hint, "go "); ok && !strings.Contains(hint, "&&") {
		hint = inProject(p, args)
	}
	e := fault.New(fault.Unmeasured, code, "load Go module %s: %s", name, saying(msg, p))
	if hint != "" {
		e.Hint("%s", hint)
	}
	return e
}

// remedy is the command by which the go command would add what is missing.
var remedy = late.Regexp(`; to add it:\s+go (get \S+)`)

// saying is the line of the go command's words that says what is wrong: package
// go/packages puts a status before them, and the go command a heading.
func saying(msg string, p lang.Project) string {
	if _, stderr, ok := strings.Cut(msg, ": stderr: "); ok {
		msg = stderr
	}
	msg = strings.TrimSpace(msg)
	head, rest, more := strings.Cut(msg, "\n")
	if more && strings.HasPrefix(head, "go: errors parsing ") {
		head = strings.TrimSpace(rest)
		if strings.HasPrefix(head, "go.mod:") && p.Manifest != "" {
			head = p.Manifest + strings.TrimPrefix(head, "go.mod")
		}
	}
	head = firstLine(head)
	for _, heading := range []string{"; to add it:", "; to add:"} {
		head = strings.TrimSuffix(head, heading)
	}
	return head
}
