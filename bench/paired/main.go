//go:build linux

// Command paired measures two commands in turn, so that a change of the machine
// meets both alike, and prints medians, spread and ratio.
//
//	paired -n 5 -a 'gremlins …' -b 'proveto …' [-va a.jsonl -vb b.jsonl]
//
// What is measured is CPU seconds of the whole process tree (user and system,
// orphans included: paired is their subreaper) and the peak resident size of the
// largest process. Before any number is shown the verdict files, when given, are
// compared: a faster command with other verdicts is not faster. A verdict file
// has one JSON object a line: file, line, col, operator, status.
//
// Exit: 0; 1 when a command fails to start; 3 when fewer verdicts agree than
// -agree asks for; 64 for a usage error.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
)

type options struct {
	n      int
	a, b   string
	va, vb string
	agree  float64
	out    string
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 5, "pairs")
	flag.StringVar(&o.a, "a", "", "first `command`, run by sh -c")
	flag.StringVar(&o.b, "b", "", "second `command`, run by sh -c")
	flag.StringVar(&o.va, "va", "", "verdict `file` that the first command writes")
	flag.StringVar(&o.vb, "vb", "", "verdict `file` that the second command writes")
	flag.Float64Var(&o.agree, "agree", 0.99, "smallest share of common verdicts that must agree")
	flag.StringVar(&o.out, "o", "", "write every measurement as JSON to `file`")
	flag.Parse()
	if o.a == "" || o.b == "" || o.n < 1 || flag.NArg() > 0 || (o.va == "") != (o.vb == "") {
		flag.Usage()
		os.Exit(64)
	}
	err := run(os.Stdout, o)
	var d disagreement
	switch {
	case errors.As(err, &d):
		fmt.Fprintln(os.Stderr, "paired:", err)
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, "paired:", err)
		os.Exit(1)
	}
}

// disagreement is the share of common verdicts that agree, when it is too low.
type disagreement struct{ agreed, common int }

func (d disagreement) Error() string {
	return fmt.Sprintf("only %d of %d common verdicts agree", d.agreed, d.common)
}

func run(out io.Writer, o options) error {
	if err := adoptOrphans(); err != nil {
		return err
	}
	var as, bs []Sample
	for i := range o.n {
		// The order changes from pair to pair.
		first, second := &as, &bs
		cmds := [2]string{o.a, o.b}
		if i%2 == 1 {
			first, second = second, first
			cmds[0], cmds[1] = cmds[1], cmds[0]
		}
		for j, to := range []*[]Sample{first, second} {
			s, err := Measure(cmds[j])
			if err != nil {
				return fmt.Errorf("%s: %w", cmds[j], err)
			}
			*to = append(*to, s)
		}
	}
	if o.va != "" {
		if err := agree(out, o); err != nil {
			return err
		}
	}
	show(out, "a", o.a, as)
	show(out, "b", o.b, bs)
	var ratios []float64
	for i := range as {
		ratios = append(ratios, as[i].CPU/bs[i].CPU)
	}
	fmt.Fprintf(out, "ratio a/b of CPU: median %.2f, from %.2f to %.2f over %d pairs\n",
		median(ratios), quantile(ratios, 0), quantile(ratios, 1), len(ratios))
	if o.out == "" {
		return nil
	}
	b, err := json.MarshalIndent(map[string]any{"a": o.a, "b": o.b, "samples_a": as, "samples_b": bs}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, append(b, '\n'), 0o644)
}

func agree(out io.Writer, o options) error {
	a, err := readVerdicts(o.va)
	if err != nil {
		return err
	}
	b, err := readVerdicts(o.vb)
	if err != nil {
		return err
	}
	c := compare(a, b)
	fmt.Fprintf(out, "verdicts: %d in both, %d agree, %d only in a, %d only in b\n", c.common, c.agreed, c.onlyA, c.onlyB)
	for _, line := range c.differ {
		fmt.Fprintln(out, "  differs:", line)
	}
	if c.common == 0 || float64(c.agreed) < o.agree*float64(c.common) {
		return disagreement{c.agreed, c.common}
	}
	return nil
}

func show(out io.Writer, name, cmd string, ss []Sample) {
	var cpu, rss, wall []float64
	failed := 0
	for _, s := range ss {
		cpu, rss, wall = append(cpu, s.CPU), append(rss, float64(s.RSS)/(1<<20)), append(wall, s.Wall)
		if s.Exit != 0 {
			failed++
		}
	}
	fmt.Fprintf(out, "%s: %s\n   CPU s  median %.3f, from %.3f to %.3f\n   wall s median %.3f\n   peak   median %.1f MiB, exits other than 0: %d of %d\n",
		name, cmd, median(cpu), quantile(cpu, 0), quantile(cpu, 1), median(wall), median(rss), failed, len(ss))
}

func median(xs []float64) float64 { return quantile(xs, 0.5) }

// quantile interpolates between the two nearest of the sorted values.
func quantile(xs []float64, q float64) float64 {
	s := append([]float64(nil), xs...)
	sort.Float64s(s)
	at := q * float64(len(s)-1)
	low := int(at)
	if low+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[low] + (at-float64(low))*(s[low+1]-s[low])
}
