// Command gremlins runs an installed gremlins on a Go module and writes its
// verdicts as a verdict file: one JSON object a line, sorted by place, with file,
// line, col, operator and status.
//
//	GOBIN=/tmp/bin go install github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
//	gremlins -bin /tmp/bin/gremlins -module DIR -o verdicts.jsonl [-- FLAGS]
//
// The statuses of gremlins become ours: KILLED killed, LIVED survived, NOT
// COVERED no_coverage, TIMED OUT timeout, NOT VIABLE invalid, SKIPPED pending.
// An unknown status is an error.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// verdict is one line of a verdict file.
type verdict struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Col      int    `json:"col"`
	Operator string `json:"operator"`
	Status   string `json:"status"`
}

// report is the part of gremlins' JSON that is read.
type report struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
			Line   int    `json:"line"`
			Column int    `json:"column"`
		} `json:"mutations"`
	} `json:"files"`
}

var statuses = map[string]string{
	"KILLED": "killed", "LIVED": "survived", "NOT COVERED": "no_coverage",
	"TIMED OUT": "timeout", "NOT VIABLE": "invalid", "SKIPPED": "pending", "RUNNABLE": "pending",
}

func main() {
	bin := flag.String("bin", "gremlins", "`path` of the installed gremlins")
	module := flag.String("module", ".", "`directory` of the Go module")
	out := flag.String("o", "", "verdict `file`; standard output when empty")
	flag.Parse()
	if err := run(*bin, *module, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "gremlins:", err)
		os.Exit(1)
	}
}

func run(bin, module, out string, flags []string) error {
	dir, err := os.MkdirTemp("", "gremlins-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover temporary directory harms nobody
	raw := filepath.Join(dir, "report.json")
	cmd := exec.Command(bin, append([]string{"unleash", "-o", raw, "."}, flags...)...)
	cmd.Dir = module
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s unleash in %s: %w", bin, module, err)
	}
	fmt.Fprintf(os.Stderr, "CPU %.1f s\n", (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	b, err := os.ReadFile(raw)
	if err != nil {
		return err
	}
	vs, err := verdicts(b)
	if err != nil {
		return err
	}
	if out == "" {
		return write(os.Stdout, vs)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(write(f, vs), f.Close())
}

// verdicts reads gremlins' JSON report.
func verdicts(b []byte) ([]verdict, error) {
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("gremlins' report: %w", err)
	}
	var vs []verdict
	for _, f := range r.Files {
		for _, m := range f.Mutations {
			status, ok := statuses[m.Status]
			if !ok {
				return nil, fmt.Errorf("%s:%d:%d: unknown status %q", f.Name, m.Line, m.Column, m.Status)
			}
			vs = append(vs, verdict{filepath.ToSlash(f.Name), m.Line, m.Column, m.Type, status})
		}
	}
	if len(vs) == 0 {
		return nil, errors.New("gremlins' report has no mutations")
	}
	slices.SortFunc(vs, func(a, b verdict) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Operator, b.Operator))
	})
	return vs, nil
}

func write(w io.Writer, vs []verdict) error {
	bw := bufio.NewWriter(w)
	enc := json.NewEncoder(bw)
	for _, v := range vs {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return bw.Flush()
}
