package cli

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli and docs/codes.md again")

// every lists the commands of the tree with those below them, topics excluded.
func every(root *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{root}
	for _, c := range root.Commands() {
		if c.Runnable() {
			out = append(out, every(c)...)
		}
	}
	return out
}

// TestDocsCLI compares the pages below docs/cli, and docs/codes.md, with the
// command tree.
func TestDocsCLI(t *testing.T) {
	want := map[string]string{"../../docs/codes.md": codesPage()}
	for _, c := range every(newRoot(&command{})) {
		want["../../docs/cli/"+strings.ReplaceAll(c.CommandPath(), " ", "_")+".md"] = page(c)
	}
	if *update {
		for name, text := range want {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	have, err := filepath.Glob("../../docs/cli/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range have {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is about no command: remove it", name)
		}
	}
	for name, text := range want {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%v: run go generate ./internal/cli", err)
			continue
		}
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("%s differs from the command tree (-tree +page): run go generate ./internal/cli\n%s", name, diff)
		}
	}
}

const generated = "<!-- Generated from the command tree by go generate ./internal/cli. Do not edit. -->\n\n"

func codesPage() string {
	var b strings.Builder
	b.WriteString("# Codes\n\n" + generated + "The field `code` of a JSON answer. The exit code says the class (`proveto help exit-codes`), the code says the rest.\n\n| code | meaning |\n| --- | --- |\n")
	for _, c := range slices.Sorted(maps.Keys(codes)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c, codes[c])
	}
	return b.String()
}

func page(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s%s\n\n```text\n%s\n```\n", c.CommandPath(), generated, strings.TrimSpace(c.Long), c.UseLine())
	if c.Example != "" {
		b.WriteString("\n## Examples\n\n```sh\n")
		for line := range strings.Lines(c.Example + "\n") {
			b.WriteString(strings.TrimPrefix(line, "  "))
		}
		b.WriteString("```\n")
	}
	flags := c.NonInheritedFlags()
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			f.Hidden = true
		}
	})
	if usage := flags.FlagUsages(); usage != "" {
		b.WriteString("\n## Flags\n\n```text\n" + usage + "```\n")
	}
	var below []string
	for _, s := range c.Commands() {
		if s.Runnable() {
			below = append(below, fmt.Sprintf("- [%s](%s.md): %s\n", s.CommandPath(), strings.ReplaceAll(s.CommandPath(), " ", "_"), s.Short))
		}
	}
	if len(below) > 0 {
		b.WriteString("\n## Commands\n\n" + strings.Join(below, ""))
	}
	if c.HasParent() {
		b.WriteString("\nThe flags that every command has are on the page of [proveto](proveto.md).\n")
	}
	return b.String()
}

var fence = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

// TestDocumentedCommands parses every command of ours that a document shows.
func TestDocumentedCommands(t *testing.T) {
	files, err := filepath.Glob("../../*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fence.FindAllSubmatch(text, -1) {
			for line := range bytes.Lines(block[1]) {
				cmd := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(string(line)), "$ "))
				if strings.HasPrefix(cmd, "proveto") {
					n++
				}
				if err := checkHint(cmd); err != nil {
					t.Errorf("%s: %s: %v", name, cmd, err)
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d commands found in the documents, want at least 20: is the search broken?", n)
	}
}

// TestCodes compares the table of codes with the literals in the packages.
func TestCodes(t *testing.T) {
	found := map[string]string{}
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") || strings.Contains(path, "/_") {
			return err
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			for _, e := range codeExprs(n) {
				if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if s, err := strconv.Unquote(l.Value); err == nil {
						found[s] = fset.Position(l.Pos()).String()
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for c, where := range found {
		if codes[c] == "" {
			t.Errorf("%s: code %s is not in the table of internal/cli/codes.go", where, c)
		}
	}
	for c := range codes {
		if _, ok := found[c]; !ok && c != "ok" {
			t.Errorf("nothing returns code %s", c)
		}
	}
}

// codeExprs are the places of a code in a node: the second argument of fault.New,
// the third of fault.Wrap, and the value of a constant of type fault.Code.
func codeExprs(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return nil
		}
		if x, ok := s.X.(*ast.Ident); !ok || x.Name != "fault" {
			return nil
		}
		if s.Sel.Name == "New" && len(n.Args) > 2 {
			return n.Args[1:2]
		}
		if s.Sel.Name == "Wrap" && len(n.Args) > 3 {
			return n.Args[2:3]
		}
	case *ast.ValueSpec:
		if s, ok := n.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Code" {
			return n.Values
		}
	}
	return nil
}
