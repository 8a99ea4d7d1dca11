// Command groundtruth finds, the slow and simple way, what a module's tests can
// notice: it replaces the result of one function at a time in the source, runs
// the package's whole suite by plain go test, and writes down how it ended.
//
//	groundtruth -module DIR -o truth.jsonl [-only NAME] [-all]
//
// It shares no code with the product: its rewriting is text inserted at the
// positions that go/ast gives, its other values are made by reflection, and its
// verdicts are read from go test -json. That makes it the measure of recall: a
// symbol with status killed is one that a test notices by its own assertion.
//
// The output has one JSON object a symbol (see [Line]). A symbol whose line is
// there already, with the same digest, is not tried again, so the command can be
// stopped and started at any time. Without -all the variants of a symbol end
// with the first that is killed.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"
)

// Line is what was found out about one symbol. Its first five fields are those
// of a verdict file.
type Line struct {
	File     string    `json:"file"` // relative to the module
	Line     int       `json:"line"`
	Col      int       `json:"col"`
	Operator string    `json:"operator"` // RESULT
	Status   string    `json:"status"`   // killed, killed_by_error, timeout, survived, invalid
	Symbol   string    `json:"symbol"`   // package name, receiver's type, name
	Package  string    `json:"package"`
	Digest   string    `json:"digest"` // of the package's files and its directory's other files
	Variants []Variant `json:"variants"`
}

// Variant is one replacement.
type Variant struct {
	Name   string  `json:"name"` // other value of result 0; zero results; body removed
	Status string  `json:"status"`
	Test   string  `json:"test,omitempty"` // leaf test that failed first
	CPU    float64 `json:"cpu_s"`
}

type options struct {
	module, out, only string
	all               bool
	timeout           time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.module, "module", ".", "`directory` of the Go module; it is copied, never written to")
	flag.StringVar(&o.out, "o", "truth.jsonl", "`file` of lines; appended to")
	flag.StringVar(&o.only, "only", "", "one `symbol`, as in the output")
	flag.BoolVar(&o.all, "all", false, "try every variant")
	flag.DurationVar(&o.timeout, "timeout", 60*time.Second, "limit of one run of a suite, as go test -timeout")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "groundtruth:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	work, err := os.MkdirTemp("", "groundtruth-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a leftover temporary directory harms nobody
	module := filepath.Join(work, "module")
	if err := os.CopyFS(module, os.DirFS(o.module)); err != nil {
		return err
	}
	done, err := readLines(o.out)
	if err != nil {
		return err
	}
	packages, err := list(module)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(o.out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	r := runner{work: work, module: module, timeout: o.timeout}
	for _, p := range packages {
		if err := judge(&r, p, o, done, out); err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	return summary(o.out, r.cpu)
}

// judge tries every symbol of a package. A suite that is red, or that does not
// build, as it stands has nothing to say: it is named and left out.
func judge(r *runner, p listed, o options, done map[string]string, out *os.File) error {
	digest, err := digestOf(p)
	if err != nil {
		return err
	}
	symbols, err := find(p, r.module)
	if err != nil {
		return err
	}
	base := Variant{}
	for _, s := range symbols {
		key := p.ImportPath + " " + s.name
		if done[key] == digest || (o.only != "" && o.only != s.name) {
			continue
		}
		if base.Status == "" {
			if base, err = r.test(p, nil); err != nil {
				return err
			}
		}
		if base.Status != "survived" {
			fmt.Fprintf(os.Stderr, "%s is left out: its suite is %s (%s) as it stands\n", p.ImportPath, base.Status, base.Test)
			return nil
		}
		l := Line{File: s.file, Line: s.line, Col: s.col, Operator: "RESULT", Symbol: s.name, Package: p.ImportPath, Digest: digest}
		for _, v := range s.variants {
			got, err := r.test(p, map[string][]byte{s.path: v.source})
			if err != nil {
				return err
			}
			got.Name = v.name
			l.Variants = append(l.Variants, got)
			if got.Status == "killed" && !o.all {
				break
			}
		}
		l.Status = conclude(l.Variants)
		b, err := json.Marshal(l)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%-16s %s\n", l.Status, l.Symbol)
	}
	return nil
}

// conclude is the best that any variant showed: one kill by assertion is enough.
func conclude(vs []Variant) string {
	for _, status := range []string{"killed", "killed_by_error", "timeout", "survived"} {
		for _, v := range vs {
			if v.Status == status {
				return status
			}
		}
	}
	return "invalid"
}

// digestOf covers what the suite of a package is built from and can read beside
// its sources; testdata included, packages below it not.
func digestOf(p listed) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(p.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != p.Dir && d.Name() != "testdata" && filepath.Dir(path) == p.Dir {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n", d.Name(), len(b))
		h.Write(b)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// readLines gives the digest of each symbol that has a line. An incomplete last
// line, of a command that was killed, is an error that names it.
func readLines(name string) (map[string]string, error) {
	done := map[string]string{}
	err := eachLine(name, func(l Line) { done[l.Package+" "+l.Symbol] = l.Digest })
	if errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	return done, err
}

func eachLine(name string, f func(Line)) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	sc := bufio.NewScanner(file)
	sc.Buffer(nil, 1<<24)
	for n := 1; sc.Scan(); n++ {
		var l Line
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			return fmt.Errorf("%s:%d: %w; delete the line", name, n, err)
		}
		f(l)
	}
	return sc.Err()
}

// summary counts the last line of each symbol.
func summary(name string, cpu float64) error {
	last := map[string]string{}
	variants := 0
	if err := eachLine(name, func(l Line) {
		last[l.Package+" "+l.Symbol] = l.Status
		variants += len(l.Variants)
	}); err != nil {
		return err
	}
	counts := map[string]int{}
	for _, s := range last {
		counts[s]++
	}
	statuses := make([]string, 0, len(counts))
	for s := range counts {
		statuses = append(statuses, s)
	}
	sort.Strings(statuses)
	for _, s := range statuses {
		fmt.Printf("%-16s %d\n", s, counts[s])
	}
	fmt.Printf("%d symbols, %d variants, %.1f CPU s in this invocation\n", len(last), variants, cpu)
	return nil
}
