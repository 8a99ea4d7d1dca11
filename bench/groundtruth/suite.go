package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// listed is the part of go list's answer that is used.
type listed struct {
	ImportPath, Name, Dir              string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// list names the packages of a module that have tests.
func list(module string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Dir,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = module
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var out []listed
	for dec := json.NewDecoder(bytes.NewReader(b)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			out = append(out, p)
		}
	}
}

type runner struct {
	work, module string
	timeout      time.Duration
	cpu          float64 // seconds of all runs
}

// test runs a package's suite with some files replaced.
func (r *runner) test(p listed, replace map[string][]byte) (Variant, error) {
	overlay := map[string]map[string]string{"Replace": {}}
	files := map[string][]byte{filepath.Join(p.Dir, helperFile): helper(p.Name)}
	for path, src := range replace {
		files[path] = src
	}
	for path, src := range files {
		to := filepath.Join(r.work, filepath.Base(path))
		if err := os.WriteFile(to, src, 0o600); err != nil {
			return Variant{}, err
		}
		overlay["Replace"][path] = to
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		return Variant{}, err
	}
	file := filepath.Join(r.work, "overlay.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return Variant{}, err
	}
	cmd := exec.Command("go", "test", "-json", "-count=1", "-vet=off", "-timeout="+r.timeout.String(), "-overlay="+file, p.ImportPath)
	cmd.Dir = r.module
	out, err := cmd.CombinedOutput()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		return Variant{}, err
	}
	v := classify(out, err == nil)
	v.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	r.cpu += v.CPU
	return v, nil
}

// event is a line of go test -json.
type event struct {
	Action, Test, Output, FailedBuild string
}

// crash is what a process prints that did not end by itself.
var crash = regexp.MustCompile(`(?m)^\s*(panic: |fatal error: |unexpected fault address|SIGSEGV|exit status [^1])`)

// classify reads what go test -json said. Killed needs a leaf test that failed
// and in whose own output nothing crashed; a test that failed before another one
// crashed counts.
func classify(out []byte, green bool) Variant {
	failed := []string{}
	output := map[string]*strings.Builder{}
	var all strings.Builder
	for line := range bytes.Lines(out) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			all.Write(line) // what the go command itself printed
			continue
		}
		switch e.Action {
		case "build-fail":
			return Variant{Status: "invalid"}
		case "fail":
			if e.FailedBuild != "" {
				return Variant{Status: "invalid"}
			}
			if e.Test != "" {
				failed = append(failed, e.Test)
			}
		case "output":
			all.WriteString(e.Output)
			if output[e.Test] == nil {
				output[e.Test] = &strings.Builder{}
			}
			output[e.Test].WriteString(e.Output)
		}
	}
	if green {
		return Variant{Status: "survived"}
	}
	for _, t := range failed {
		if leaf(t, failed) && (output[t] == nil || !crash.MatchString(output[t].String())) {
			return Variant{Status: "killed", Test: t}
		}
	}
	text := all.String()
	v := Variant{Status: "killed_by_error"}
	if len(failed) > 0 {
		v.Test = failed[0]
	}
	switch {
	case strings.Contains(text, "panic: test timed out after"):
		v.Status = "timeout"
	case strings.Contains(text, "[build failed]"), strings.Contains(text, "[setup failed]"):
		v.Status = "invalid"
	}
	return v
}

func leaf(test string, failed []string) bool {
	for _, o := range failed {
		if strings.HasPrefix(o, test+"/") {
			return false
		}
	}
	return true
}
