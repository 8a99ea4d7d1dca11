package golang

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/late"
)

// sign is a text by which a category is known.
type sign struct {
	text func() *regexp.Regexp // compiled when first asked
	code fault.Code
	hint string // a command that helps; empty when only a person can tell
}

func words(text string, code fault.Code, hint string) sign {
	return sign{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) }), code, hint}
}

// buildSigns are words of the go command and the compilers. The first match
// counts, so the narrow ones come first.
var buildSigns = []sign{
	words(`running go \S+; GOTOOLCHAIN=local`, lang.ToolMissing, "GOTOOLCHAIN=auto go version"),
	words(`toolchain not available`, lang.ToolMissing, "GOTOOLCHAIN=auto go version"),
	words(`C compiler "[^"]*" not found`, lang.ToolMissing, "CGO_ENABLED=0 go test ./..."),
	words(`pkg-config.*executable file not found`, lang.ToolMissing, ""),
	words(`Package .* was not found in the pkg-config search path`, lang.DependencyMissing, ""),
	words(`fatal error: \S+\.h: No such file or directory`, lang.DependencyMissing, ""),
	words(`build constraints exclude all Go files`, lang.Configuration, "go list -f '{{.IgnoredGoFiles}}' ./..."),
	words(`inconsistent vendoring`, lang.Configuration, "go mod vendor"),
	words(`updates to go\.mod needed`, lang.Configuration, "go mod tidy"),
	words(`errors parsing go\.(mod|work)`, lang.Configuration, ""),
	words(`overlay contains a replacement`, lang.UnsupportedRunner, ""),
	words(`checksum mismatch`, lang.Configuration, "go mod verify"),
	words(`missing go\.sum entry`, lang.DependencyMissing, "go mod download"),
	words(`module lookup disabled by GOPROXY=off`, lang.DependencyMissing, "go mod download"),
	words(`no required module provides package|cannot find module providing package|is not in std`, lang.DependencyMissing, "go mod tidy"),
	// Our builds fetch nothing: what the go command sets out to download is missing,
	// whatever stops it first, a proxy that is off or a module cache that is read-only.
	words(`go: downloading \S+`, lang.DependencyMissing, "go mod download"),
	words(`replacement directory \S+ does not exist`, lang.DependencyMissing, ""),
	words(`no space left on device`, lang.Configuration, "proveto gc"),
	words(`[Pp]ermission denied`, lang.Permission, ""),
	words(`no test files`, lang.NoTests, ""),
}

// testSigns are words of failing tests that lack something around them.
var testSigns = []sign{
	words(`connect: connection refused|connection refused|no such host|network is unreachable|i/o timeout|server misbehaving`, lang.DatabaseOrNetwork, "PROVETO_ISOLATION_NETWORK=host proveto start"),
	words(`dial (tcp|udp|unix) .*: connect: no such file or directory`, lang.DatabaseOrNetwork, ""),
	words(`exec: "[^"]+": executable file not found in \$PATH`, lang.ToolMissing, ""),
	words(`[Pp]ermission denied|operation not permitted|read-only file system`, lang.Permission, ""),
	words(`(environment variable|env var) \S+ (is )?(not set|required|missing)|(?i:missing required (environment|env))`, lang.Configuration, ""),
	words(`panic: test timed out after|context deadline exceeded`, lang.TimedOut, ""),
}

// classify gives the words of a failed build a category; what is not known is
// build_failed.
func classify(output []byte, what string) *fault.Error {
	code, hint, line, ok := match(buildSigns, output)
	if !ok {
		code, line = lang.BuildFailed, telling(output)
	}
	if g := remedy().FindSubmatch(output); g != nil && code == lang.DependencyMissing {
		hint = string(g[1])
	}
	e := fault.New(fault.Unmeasured, code, "%s: %s", what, strings.TrimSuffix(line, "; to add it:"))
	if hint != "" {
		e.Hint("%s", hint)
	}
	return e
}

// remedy is the command by which the go command would add what is missing.
var remedy = late.Regexp(`; to add it:\s+(go get \S+)`)

// Explain says what the failing tests of a baseline lack: a database, a tool, a
// permission. ok is false when their output shows nothing of the kind.
func Explain(output []byte) (err *fault.Error, ok bool) {
	code, hint, line, ok := match(testSigns, output)
	if !ok {
		return nil, false
	}
	e := fault.New(fault.Unmeasured, code, "%s", line)
	if hint != "" {
		e.Hint("%s", hint)
	}
	return e, true
}

// match finds the first sign, and the line that shows it.
func match(signs []sign, output []byte) (code fault.Code, hint, line string, ok bool) {
	for _, s := range signs {
		if at := s.text().FindIndex(output); at != nil {
			start := bytes.LastIndexByte(output[:at[0]], '\n') + 1
			end := len(output)
			if n := bytes.IndexByte(output[at[1]:], '\n'); n >= 0 {
				end = at[1] + n
			}
			return s.code, s.hint, strings.TrimSpace(string(output[start:end])), true
		}
	}
	return "", "", "", false
}

// telling is the first line that says something: not the name of a package.
func telling(output []byte) string {
	for line := range bytes.Lines(output) {
		if l := strings.TrimSpace(string(line)); l != "" && !strings.HasPrefix(l, "#") {
			return l
		}
	}
	return "it failed without a word"
}
