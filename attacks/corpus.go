// Package attacks is the catalogue of ways to cheat a check: each folder holds
// one attack, its honest twin, and what must happen to both.
//
// An attack earns nothing, for the reason that its row names; the twin, which
// looks like it, is credited in full by the same commands. [Load] reads the
// catalogue, [Case.Lay] writes the repository of one case; the tests of this
// package build every fixture, run every case through the product's own binary,
// and keep README.md, the table of rows, current. The format is described in
// README.md.
package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"golang.org/x/tools/txtar"
)

// Row is one attack: the content of its attack.yaml.
type Row struct {
	ID        string   `yaml:"id"` // the folder's name up to the first hyphen
	Title     string   `yaml:"title"`
	Job       string   `yaml:"job"` // prove, flow, lab
	Languages []string `yaml:"languages"`
	Needs     []string `yaml:"needs"`  // namespaces: unprotected at lower levels of isolation
	Attack    string   `yaml:"attack"` // what the attacker does
	Twin      string   `yaml:"twin"`   // what honest people do that looks like it
	Must      string   `yaml:"must"`   // what must happen to the attack
	Source    string   `yaml:"source"` // a public incident
	// DefendedIn are packages below internal/. The case runs as soon as all of
	// them exist.
	DefendedIn []string `yaml:"defended_in"`
	// Waits says what the defence still lacks; the row is not run until then.
	Waits   string `yaml:"waits"`
	Guard   string `yaml:"guard"` // package.Name of the declaration without which the attack is credited
	Layered bool   `yaml:"layered"`
	Second  string `yaml:"second"` // the second layer of a layered row
	// Flaky lists the archives (base, attack, twin) whose suites fail by chance.
	Flaky []string `yaml:"flaky"`

	Name  string `yaml:"-"` // of the folder
	Cases []Case `yaml:"-"` // one a language
}

// Case is an attack in one language.
type Case struct {
	Language           string
	Base, Attack, Twin *txtar.Archive
	Before, After      string // commands run before (often none) and after the change
	Expect             Expect
}

// Expect is what must be seen after the commands.
type Expect struct {
	Attack Outcome `yaml:"attack"`
	Twin   Outcome `yaml:"twin"`
}

// Outcome is what the last command must answer.
type Outcome struct {
	Exit        int             `yaml:"exit"`
	Code        string          `yaml:"code"` // of the whole answer; empty: not compared
	Evidence    map[string]Word `yaml:"evidence"`
	NotCredited []string        `yaml:"not_credited"` // symbols that must not be proven
	Credited    []string        `yaml:"credited"`     // symbols that must be proven
}

// Word is what a symbol must be shown as.
type Word struct {
	Word     OneOf  `yaml:"word"`
	Code     OneOf  `yaml:"code"`     // the answer's code or reason; empty: not compared
	Mentions string `yaml:"mentions"` // must occur in the symbol's part of the answer
}

// OneOf is a word or a list of words of which one must be met.
type OneOf []string

// UnmarshalYAML accepts a string or a list.
func (o *OneOf) UnmarshalYAML(unmarshal func(any) error) error {
	var one string
	if err := unmarshal(&one); err == nil {
		*o = OneOf{one}
		return nil
	}
	var list []string
	if err := unmarshal(&list); err != nil {
		return err
	}
	*o = list
	return nil
}

// Has tells whether s is allowed; an empty OneOf allows everything.
func (o OneOf) Has(s string) bool { return len(o) == 0 || slices.Contains(o, s) }

// Load reads every folder below dir that has an attack.yaml, in the order of
// their names. Unknown keys and missing files are errors.
func Load(dir string) ([]Row, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "attack.yaml"))
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, file := range files {
		folder := filepath.Dir(file)
		r := Row{Name: filepath.Base(folder)}
		if err := readYAML(file, &r); err != nil {
			return nil, err
		}
		for _, lang := range r.Languages {
			c, err := loadCase(filepath.Join(folder, lang), lang)
			if err != nil {
				return nil, err
			}
			r.Cases = append(r.Cases, c)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func loadCase(dir, lang string) (Case, error) {
	c := Case{Language: lang}
	for name, to := range map[string]**txtar.Archive{"base": &c.Base, "attack": &c.Attack, "twin": &c.Twin} {
		ar, err := txtar.ParseFile(filepath.Join(dir, name+".txtar"))
		if err != nil {
			return Case{}, err
		}
		*to = ar
	}
	script, err := txtar.ParseFile(filepath.Join(dir, "script.txtar"))
	if err != nil {
		return Case{}, err
	}
	c.After = string(script.Comment)
	for _, f := range script.Files {
		if f.Name != "before.txt" {
			return Case{}, fmt.Errorf("%s/script.txtar: unknown file %s; only before.txt has a meaning", dir, f.Name)
		}
		c.Before = string(f.Data)
	}
	return c, readYAML(filepath.Join(dir, "expect.yaml"), &c.Expect)
}

func readYAML(file string, to any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalWithOptions(b, to, yaml.Strict()); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Lay changes the files below dir as the archives say, one after the other: a
// line "delete PATH" before the first file deletes, a file replaces. Files that
// begin with #! become executable.
func Lay(dir string, archives ...*txtar.Archive) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, ar := range archives {
		for line := range strings.Lines(string(ar.Comment)) {
			path, ok := strings.CutPrefix(strings.TrimSpace(line), "delete ")
			if !ok {
				continue
			}
			if err := root.Remove(path); err != nil {
				return err
			}
		}
		for _, f := range ar.Files {
			if err := root.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
				return err
			}
			mode := os.FileMode(0o644)
			if strings.HasPrefix(string(f.Data), "#!") {
				mode = 0o755
			}
			if err := root.WriteFile(f.Name, f.Data, mode); err != nil {
				return err
			}
		}
	}
	return nil
}

// Archives are what makes the tree of a side: base, attack or twin.
func (c Case) Archives(side string) []*txtar.Archive {
	switch side {
	case "attack":
		return []*txtar.Archive{c.Base, c.Attack}
	case "twin":
		return []*txtar.Archive{c.Base, c.Twin}
	default:
		return []*txtar.Archive{c.Base}
	}
}

// Table is README.md's table of rows.
func Table(rows []Row) string {
	var b strings.Builder
	b.WriteString("| row | attack | honest twin | must happen | defended in |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		name := r.Name
		if slices.Contains(r.Needs, "namespaces") {
			name += " **N**"
		}
		fmt.Fprintf(&b, "| %s | %s: %s | %s | %s | %s |\n", name, r.Title, r.Attack, r.Twin, r.Must, strings.Join(r.DefendedIn, ", "))
	}
	return b.String()
}
