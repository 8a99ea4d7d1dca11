//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// Sample is one process, with what it started and waited for.
type Sample struct {
	Wall float64 `json:"wall_ms"`
	CPU  float64 `json:"cpu_ms"` // user and system
	Exit int     `json:"exit"`
}

// answer is what a process wrote.
type answer struct {
	Sample
	stdout, stderr []byte
}

// start runs a command to its end. That it ends with another code than 0 is no
// error.
func start(dir string, env []string, argv ...string) (answer, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begun := time.Now()
	err := cmd.Run()
	a := answer{stdout: stdout.Bytes(), stderr: stderr.Bytes()}
	a.Wall = float64(time.Since(begun)) / 1e6
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return a, err
	}
	a.Exit = cmd.ProcessState.ExitCode()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		a.CPU = float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
	}
	return a, nil
}

// quantile of values in any order; 0 without any.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	return v[min(len(v)-1, int(q*float64(len(v))))]
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	switch {
	case n == 0:
		return 0
	case n%2 == 0:
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[n/2]
}

func pick(list []Sample, of func(Sample) float64) []float64 {
	out := make([]float64, len(list))
	for i, s := range list {
		out[i] = of(s)
	}
	return out
}

func wall(s Sample) float64 { return s.Wall }
func cpu(s Sample) float64  { return s.CPU }

// operations in the order in which they are shown.
var operations = []string{"init", "advance", "status", "status of a long run", "list of many runs"}

func (r *result) show(out io.Writer, tools []tool) {
	fmt.Fprintf(out, "%s, load average %s before and %s after\n\n", r.Machine, r.Load[0], r.Load[1])
	const row = "%-22s %-8s %5d %9.1f %9.1f %9.1f %9.1f %9.1f\n"
	fmt.Fprintf(out, "%-22s %-8s %5s %9s %9s %9s %9s %9s\n", "ms", "", "n", "p50", "p95", "least", "most", "CPU p50")
	for _, op := range operations {
		for _, t := range tools {
			s := r.Samples[op][t.name()]
			if len(s) == 0 {
				continue
			}
			w, c := pick(s, wall), pick(s, cpu)
			fmt.Fprintf(out, row, op, t.name(), len(s), median(w), quantile(w, 0.95), quantile(w, 0), quantile(w, 1), median(c))
		}
		if len(tools) == 2 {
			a, b := r.Samples[op][tools[1].name()], r.Samples[op][tools[0].name()]
			if len(a) > 0 && len(b) > 0 {
				fmt.Fprintf(out, "%-22s %s takes %.1f times as long, %.1f times the CPU\n", "", tools[1].name(),
					median(pick(a, wall))/median(pick(b, wall)), median(pick(a, cpu))/median(pick(b, cpu)))
			}
		}
	}
	for _, t := range tools {
		c, ok := r.Crowds[t.name()]
		if !ok {
			continue
		}
		w, u := pick(c.Samples, wall), pick(c.Samples, cpu)
		fmt.Fprintf(out, "\n%s, %d decisions by as many processes, %d at once: %.1f s in all, p50 %.1f, p95 %.1f, most %.1f ms, CPU p50 %.1f ms\n",
			t.name(), len(c.Samples), c.AtOnce, c.Seconds, median(w), quantile(w, 0.95), quantile(w, 1), median(u))
		fmt.Fprintf(out, "  acknowledged %d, of these lost %d; refused %d; crashed %d\n", c.Acknowledged, c.Lost, c.Refused, c.Crashed)
		if !c.Readable {
			fmt.Fprintf(out, "  the record cannot be read: %s\n", c.Trouble)
		}
	}
}
