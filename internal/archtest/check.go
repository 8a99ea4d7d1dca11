package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Violation is one place where the code leaves the architecture.
type Violation struct {
	Rule  string // no_row, arrow, reaches, dot_import, or a Power
	Where string // package, or package/file.go:line
	What  string
}

// String is one line for people.
func (v Violation) String() string { return v.Where + ": " + v.Rule + ": " + v.What }

// Check compares a module with the table: every violation, sorted by place, and
// the rows of packages that do not exist.
func Check(m Module, table []Row) (bad []Violation, absent []string) {
	c := checker{module: m, rows: map[string]Row{}, imports: map[string][]string{}}
	for _, r := range table {
		c.rows[r.Path] = r
	}
	for _, p := range m.Packages {
		for _, f := range p.Files {
			if !f.Test {
				c.imports[p.Path] = append(c.imports[p.Path], c.ours(f)...)
			}
		}
	}
	exists := map[string]bool{}
	for _, p := range m.Packages {
		exists[p.Path] = true
		row, ok := c.rows[p.Path]
		if !ok {
			c.add("no_row", p.Path, "package has no row in the table of internal/archtest")
			continue
		}
		c.arrows(row)
		c.reaches(row)
		for _, f := range p.Files {
			if !f.Test {
				c.file(row, f)
			}
			c.runs(row, f)
		}
	}
	for _, r := range table {
		if !exists[r.Path] {
			absent = append(absent, r.Path)
		}
	}
	sort.SliceStable(c.bad, func(i, j int) bool { return c.bad[i].Where < c.bad[j].Where })
	return c.bad, absent
}

type checker struct {
	module  Module
	rows    map[string]Row
	imports map[string][]string // ours, by package, without tests
	bad     []Violation
}

func (c *checker) add(rule, where, format string, args ...any) {
	c.bad = append(c.bad, Violation{rule, where, fmt.Sprintf(format, args...)})
}

// ours are the packages of the module that the file imports.
func (c *checker) ours(f File) []string {
	var out []string
	for _, ip := range f.Imports {
		if rest, ok := strings.CutPrefix(ip, c.module.Path+"/"); ok {
			out = append(out, rest)
		}
	}
	return out
}

// arrows checks direct imports. Test files are free: they may build the world
// around the package that they test.
func (c *checker) arrows(row Row) {
	seen := map[string]bool{}
	for _, to := range c.imports[row.Path] {
		if seen[to] {
			continue
		}
		seen[to] = true
		target, ok := c.rows[to]
		switch {
		case !ok:
			// The target is refused for its missing row.
		case slices.Contains(row.Along, to):
		case row.Only != nil && !slices.Contains(row.Only, to):
			c.add("arrow", row.Path, "imports %s; its row allows only %s", to, strings.Join(append(slices.Clone(row.Only), row.Along...), ", "))
		case row.Only == nil && target.Floor >= row.Floor:
			c.add("arrow", row.Path, "imports %s; %s may not import %s", to, row.Floor, target.Floor)
		}
	}
}

// reaches checks what must not be reached by any path.
func (c *checker) reaches(row Row) {
	if len(row.Never) == 0 {
		return
	}
	from := map[string]string{row.Path: ""}
	for todo := []string{row.Path}; len(todo) > 0; todo = todo[1:] {
		for _, to := range c.imports[todo[0]] {
			if _, seen := from[to]; seen {
				continue
			}
			from[to] = todo[0]
			todo = append(todo, to)
			if !slices.Contains(row.Never, to) {
				continue
			}
			way := to
			for at := todo[0]; at != ""; at = from[at] {
				way = at + " → " + way
			}
			c.add("reaches", row.Path, "reaches %s: %s", to, way)
		}
	}
}

// query is the beginning of a statement in a string.
var query = regexp.MustCompile(`(?is)^\s*(select\s.+\sfrom\s|insert\s+(or\s+\w+\s+)?into\s|update\s+\w+\s+set\s|delete\s+from\s|(create|drop|alter)\s+(unique\s+)?(table|index|view|trigger)\s|pragma\s+\w|begin\s+(immediate|exclusive))`)

// calls that need a power, by import path and name.
var calls = map[string]map[string]Power{
	"os":                         {"StartProcess": StartsProcesses, "Exit": Exits},
	"syscall":                    {"ForkExec": StartsProcesses, "StartProcess": StartsProcesses, "Exec": StartsProcesses, "Exit": Exits},
	"golang.org/x/sys/unix":      {"Exec": StartsProcesses, "Exit": Exits},
	"log":                        {"Fatal": Exits, "Fatalf": Exits, "Fatalln": Exits},
	"golang.org/x/sys/execabs":   {"Command": StartsProcesses, "CommandContext": StartsProcesses},
	"github.com/spf13/cobra":     {"CheckErr": Exits},
	"github.com/sirupsen/logrus": {"Fatal": Exits},
}

// file checks the powers of one file that is not a test.
func (c *checker) file(row Row, f File) {
	names := c.names(row, f)
	need := func(p Power, pos token.Pos, what string) {
		if _, ok := row.May[p]; !ok {
			c.add(string(p), c.at(row, f, pos), "%s, which the row does not allow", what)
		}
	}
	for _, im := range f.Syntax.Imports {
		ip, _ := strconv.Unquote(im.Path.Value) // Load has unquoted it before
		for prefix, p := range drivers {
			if ip == prefix || strings.HasPrefix(ip, prefix+"/") {
				need(p, im.Pos(), "imports "+ip)
			}
		}
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				need(HasInit, n.Pos(), "has an init function")
			}
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok {
				if p, ok := calls[names[id.Name]][n.Sel.Name]; ok {
					need(p, n.Pos(), "uses "+id.Name+"."+n.Sel.Name)
				}
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				if s, err := strconv.Unquote(n.Value); err == nil && query.MatchString(s) {
					need(SpeaksSQL, n.Pos(), "contains SQL")
				}
			}
		}
		return true
	})
}

// runs checks who makes and who reads back runs. A test may record one; none
// but the ledger's reads one back, and evidence tests itself.
func (c *checker) runs(row Row, f File) {
	if row.Path == "internal/evidence" {
		return
	}
	names := c.names(row, f)
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := sel.X.(*ast.Ident)
		if !ok || names[id.Name] != c.module.Path+"/internal/evidence" {
			return true
		}
		p := map[string]Power{"RecordRun": RecordsRuns, "LoadRun": LoadsRuns}[sel.Sel.Name]
		if p == "" || f.Test {
			return true
		}
		if _, ok := row.May[p]; !ok {
			c.add(string(p), c.at(row, f, n.Pos()), "uses evidence.%s, which the row does not allow", sel.Sel.Name)
		}
		return true
	})
}

// names maps the names that a file gives to its imports to their paths. A dot
// import would hide a call from every rule, so it is refused outside tests.
func (c *checker) names(row Row, f File) map[string]string {
	out := map[string]string{}
	for i, im := range f.Syntax.Imports {
		ip := f.Imports[i]
		name := path.Base(ip)
		if im.Name != nil {
			name = im.Name.Name
		}
		if name == "." && !f.Test {
			v := Violation{"dot_import", c.at(row, f, im.Pos()), "imports " + ip + " with a dot"}
			if !slices.Contains(c.bad, v) {
				c.bad = append(c.bad, v)
			}
		}
		out[name] = ip
	}
	return out
}

func (c *checker) at(row Row, f File, pos token.Pos) string {
	return fmt.Sprintf("%s/%s:%d", row.Path, f.Name, f.fset.Position(pos).Line)
}
