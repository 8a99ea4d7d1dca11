// Command compare lays the verdicts of proveto start beside those of others.
//
//	proveto start --score --json >start.json
//	compare -start start.json -verdicts ours.jsonl      write a verdict file
//	compare -start start.json -peer gremlins.jsonl      agreement, mutant by mutant
//	compare -start start.json -truth truth.jsonl        recall, symbol by symbol
//
// A peer's mutant is ours when file, line, column and operator are equal. Both
// agree when both noticed the sabotage (killed, killed_by_error, timeout) or
// both did not (survived, no_coverage): a peer does not tell an assertion from a
// crash. Mutants of a symbol that no test reaches were never run by us; they
// count as no_coverage.
//
// Recall is the share of the symbols which the ground truth saw killed by an
// assertion that we prove. A symbol that we prove and that it saw survive is
// listed too: one of both is wrong, or the probes differ.
//
// Every disagreement is a line of the output. Exit: 0; 1 for an error.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
)

// start is the part of an answer of proveto start that is read.
type start struct {
	Data struct {
		Symbols []symbol `json:"symbols"`
	} `json:"data"`
}

type symbol struct {
	Name    string   `json:"name"`
	Package string   `json:"package"`
	File    string   `json:"file"`
	Line    int      `json:"line"`
	EndLine int      `json:"end_line"`
	Word    string   `json:"word"`
	Reason  string   `json:"reason"`
	Detail  string   `json:"detail"`
	Mutants []mutant `json:"mutants"`
}

type mutant struct {
	Operator string `json:"operator"`
	Summary  string `json:"summary"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Status   string `json:"status"`
	Code     string `json:"code"`
}

// place is what a verdict is about; with status it is a line of a verdict file.
type place struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Col      int    `json:"col"`
	Operator string `json:"operator"`
}

type verdict struct {
	place
	Status string `json:"status"`
}

// truth is a line of groundtruth.
type truth struct {
	verdict
	Symbol   string `json:"symbol"`
	Package  string `json:"package"`
	Variants []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
		Test   string `json:"test"`
	} `json:"variants"`
}

func main() {
	from := flag.String("start", "", "`file` with the JSON answer of proveto start")
	verdicts := flag.String("verdicts", "", "write our verdicts to `file`")
	peer := flag.String("peer", "", "verdict `file` of another tool")
	known := flag.String("truth", "", "`file` of groundtruth")
	flag.Parse()
	if *from == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(64)
	}
	if err := run(os.Stdout, *from, *verdicts, *peer, *known); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, from, to, peer, known string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var s start
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if len(s.Data.Symbols) == 0 {
		return fmt.Errorf("%s has no symbols: is it the answer of proveto start --json?", from)
	}
	if to != "" {
		if err := write(to, ours(s.Data.Symbols)); err != nil {
			return err
		}
	}
	if peer != "" {
		vs, err := lines[verdict](peer)
		if err != nil {
			return err
		}
		agreement(w, s.Data.Symbols, vs)
	}
	if known != "" {
		ts, err := lines[truth](known)
		if err != nil {
			return err
		}
		recall(w, s.Data.Symbols, ts)
	}
	return nil
}

// ours are our verdicts, sorted by place. Probes of results have several forms
// at one place and no counterpart elsewhere; they are left out.
func ours(symbols []symbol) []verdict {
	var out []verdict
	for _, s := range symbols {
		for _, m := range s.Mutants {
			if shared[m.Operator] {
				out = append(out, verdict{place{m.File, m.Line, m.Column, m.Operator}, m.Status})
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].less(out[j].place) })
	return out
}

// shared are the operators that gremlins has too.
var shared = map[string]bool{
	"ARITHMETIC_BASE": true, "CONDITIONALS_BOUNDARY": true, "CONDITIONALS_NEGATION": true, "INCREMENT_DECREMENT": true,
	"INVERT_ASSIGNMENTS": true, "INVERT_BITWISE": true, "INVERT_BWASSIGN": true, "INVERT_LOGICAL": true,
	"INVERT_LOOPCTRL": true, "INVERT_NEGATIVES": true, "REMOVE_SELF_ASSIGNMENTS": true,
}

func (p place) less(q place) bool {
	switch {
	case p.File != q.File:
		return p.File < q.File
	case p.Line != q.Line:
		return p.Line < q.Line
	case p.Col != q.Col:
		return p.Col < q.Col
	}
	return p.Operator < q.Operator
}

// minus is the place under the other name of a minus that becomes a plus; a
// place of its own for other operators.
func (p place) minus() place {
	switch p.Operator {
	case "ARITHMETIC_BASE":
		p.Operator = "INVERT_NEGATIVES"
	case "INVERT_NEGATIVES":
		p.Operator = "ARITHMETIC_BASE"
	}
	return p
}

func (p place) String() string { return fmt.Sprintf("%s:%d:%d %s", p.File, p.Line, p.Col, p.Operator) }

func write(name string, vs []verdict) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for _, v := range vs {
		err = errors.Join(err, enc.Encode(v))
	}
	return errors.Join(err, w.Flush(), f.Close())
}

func lines[T any](name string) ([]T, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []T
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for n := 1; sc.Scan(); n++ {
		var v T
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		out = append(out, v)
	}
	return out, sc.Err()
}

// noticed sorts a status: yes, no, or nothing that can be compared.
func noticed(status string) (yes, comparable bool) {
	switch status {
	case "killed", "killed_by_error", "timeout":
		return true, true
	case "survived", "no_coverage":
		return false, true
	}
	return false, false
}

func agreement(w io.Writer, symbols []symbol, peer []verdict) {
	mine, unmet := map[place]verdict{}, map[place]bool{}
	for _, v := range ours(symbols) {
		mine[v.place], unmet[v.place] = v, true
	}
	var common, agreed, open, missing int
	for _, p := range peer {
		v, ok := mine[p.place]
		if !ok {
			// gremlins makes a minus a plus under two names, we under one.
			v, ok = mine[p.minus()]
		}
		if !ok {
			v = verdict{p.place, unreached(symbols, p.place)}
		}
		delete(unmet, v.place)
		if v.Status == "" {
			missing++
			fmt.Fprintf(w, "only the peer: %s: %s\n", p.place, p.Status)
			continue
		}
		a, okA := noticed(p.Status)
		b, okB := noticed(v.Status)
		switch {
		case !okA || !okB:
			open++
			fmt.Fprintf(w, "not comparable: %s: peer %s, we %s\n", p.place, p.Status, v.Status)
			continue
		case a == b:
			agreed++
		default:
			fmt.Fprintf(w, "differs: %s: peer %s, we %s\n", p.place, p.Status, v.Status)
		}
		common++
	}
	fmt.Fprintf(w, "peer's mutants %d: common %d, agreed %d (%s), not comparable %d, only the peer %d; only we %d\n",
		len(peer), common, agreed, share(agreed, common), open, missing, len(unmet))
}

// unreached is no_coverage when the place lies in a symbol that no test reaches.
func unreached(symbols []symbol, p place) string {
	for _, s := range symbols {
		if s.File == p.File && s.Line <= p.Line && p.Line <= s.EndLine && s.Reason == "no_coverage" {
			return "no_coverage"
		}
	}
	return ""
}

func recall(w io.Writer, symbols []symbol, known []truth) {
	type at struct {
		file string
		line int
	}
	mine := map[at]symbol{}
	for _, s := range symbols {
		mine[at{s.File, s.Line}] = s
	}
	last := map[at]truth{} // a symbol that was tried again has a later line
	for _, t := range known {
		last[at{t.File, t.Line}] = t
	}
	places := make([]at, 0, len(last))
	for p := range last {
		places = append(places, p)
	}
	sort.Slice(places, func(i, j int) bool {
		return places[i].file < places[j].file || (places[i].file == places[j].file && places[i].line < places[j].line)
	})
	var killable, proven, more int
	for _, p := range places {
		t := last[p]
		s, ok := mine[p]
		switch {
		case t.Status == "killed":
			killable++
			if s.Word == "proven" {
				proven++
				continue
			}
			word := s.Word + " " + s.Reason
			if !ok {
				word = "not among our symbols"
			}
			v := t.Variants[len(t.Variants)-1]
			fmt.Fprintf(w, "missed: %s:%d %s: %s; %s notices %s\n", p.file, p.line, t.Symbol, word, v.Test, v.Name)
		case s.Word == "proven":
			more++
			fmt.Fprintf(w, "beyond: %s:%d %s: the ground truth says %s; we: %s\n", p.file, p.line, t.Symbol, t.Status, s.Detail)
		}
	}
	fmt.Fprintf(w, "ground truth %d symbols, %d killed by assertion; of these proven %d (%s); proven beyond it %d\n",
		len(last), killable, proven, share(proven, killable), more)
}

func share(n, of int) string {
	if of == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}
