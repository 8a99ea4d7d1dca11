//go:build linux

// Command flow measures `proveto flow` beside the `workflow-run` of an installed
// LACP, in turn, so that a change of the machine meets both alike.
//
//	flow -proveto bin/proveto [-lacp DIR] [-n 20] [-concurrent 200] [-database-url URL]
//
// Each round opens a run with the policy manual, approves its five stages and
// reads its status, by one process a step. Then -concurrent processes decide on
// one run at once (LACP in bursts of -burst), and what was answered is looked up
// in the record: a decision that was acknowledged and is not there is lost. An
// answer that is not the right one ends the program: no number is shown for it.
//
// With -entries and -runs it also times, of Proveto alone, the status of a run of
// so many entries and the list of so many runs.
//
// Medians, 95th percentile and spread are printed, and the ratios. CPU is user and
// system time of the whole process tree. The database of -database-url must be
// empty; so is the state directory, which is a temporary one.
//
// Exit: 0; 1 when something fails or answers wrongly; 64 for a usage error.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

type options struct {
	proveto, lacp, database, out string
	n, concurrent, burst         int
	entries, runs                int
}

func main() {
	var o options
	flag.StringVar(&o.proveto, "proveto", "bin/proveto", "the `binary` of Proveto")
	flag.StringVar(&o.lacp, "lacp", "", "a checkout of LACP in `DIR`; without, Proveto alone is measured")
	flag.StringVar(&o.database, "database-url", "", "an empty PostgreSQL database for Proveto at `URL`")
	flag.StringVar(&o.out, "o", "", "write every measurement as JSON to `file`")
	flag.IntVar(&o.n, "n", 20, "rounds")
	flag.IntVar(&o.concurrent, "concurrent", 200, "processes that decide at once; 0: none")
	flag.IntVar(&o.burst, "burst", 20, "LACP's processes at once")
	flag.IntVar(&o.entries, "entries", 0, "time the status of a run of so many entries")
	flag.IntVar(&o.runs, "runs", 0, "time the list of so many runs")
	flag.Parse()
	if o.n < 1 || o.concurrent < 0 || o.burst < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(64)
	}
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "flow:", err)
		os.Exit(1)
	}
}

// result is everything that was measured.
type result struct {
	Machine string                         `json:"machine"`
	Load    [2]string                      `json:"load_average"` // before and after
	Samples map[string]map[string][]Sample `json:"samples"`      // by operation and tool
	Crowds  map[string]Crowd               `json:"crowds"`       // by tool
}

func (r *result) add(operation, tool string, s Sample) {
	if r.Samples[operation] == nil {
		r.Samples[operation] = map[string][]Sample{}
	}
	r.Samples[operation][tool] = append(r.Samples[operation][tool], s)
}

func run(out io.Writer, o options) (err error) {
	dir, err := os.MkdirTemp("", "bench-flow-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ours, err := newProveto(o.proveto, filepath.Join(dir, "proveto"), o.database)
	if err != nil {
		return err
	}
	tools := []tool{ours}
	if o.lacp != "" {
		theirs, err := newLACP(o.lacp, filepath.Join(dir, "lacp"))
		if err != nil {
			return err
		}
		tools = append(tools, theirs)
	}
	for _, t := range tools {
		fmt.Fprintf(out, "%s: %s\n", t.name(), t.version())
	}
	r := &result{
		Machine: fmt.Sprintf("%d processors, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
		Samples: map[string]map[string][]Sample{}, Crowds: map[string]Crowd{},
	}
	r.Load[0] = load()
	for i := range o.n {
		for j := range tools {
			if err := round(r, tools[(i+j)%len(tools)]); err != nil { // the order changes from round to round
				return err
			}
		}
	}
	if o.concurrent > 0 {
		for _, t := range tools {
			c, err := crowd(t, o.concurrent, t.atOnce(o.concurrent, o.burst))
			if err != nil {
				return err
			}
			r.Crowds[t.name()] = c
		}
	}
	if err := ours.large(r, o); err != nil {
		return err
	}
	r.Load[1] = load()
	r.show(out, tools)
	if o.out == "" {
		return nil
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, append(b, '\n'), 0o644)
}

// stages are the stages of both tools, which are the roles of their owners.
var stages = []string{"planner", "developer", "verifier", "tester", "reviewer"}

// round takes one run from the first stage to the last.
func round(r *result, t tool) error {
	id, s, err := t.open()
	if err != nil {
		return err
	}
	r.add("init", t.name(), s)
	token := ""
	for _, stage := range stages {
		issued, s, err := t.approve(id, stage, token)
		if err != nil {
			return err
		}
		if issued != "" {
			token = issued
		}
		r.add("advance", t.name(), s)
	}
	word, s, err := t.status(id)
	if err != nil {
		return err
	}
	if word != t.finished() {
		return fmt.Errorf("%s: after five approvals the run is %q, want %q", t.name(), word, t.finished())
	}
	r.add("status", t.name(), s)
	return nil
}

func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
