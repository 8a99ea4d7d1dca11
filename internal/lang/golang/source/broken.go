package source

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/late"
)

// How the reasons of problems begin.
const (
	notParsed = "does not parse: "
	typeError = "type error: "
)

// torn is what the parser makes of a file with errors; nil when that is nothing.
// What stands before the package clause (the marker of a conflict) hides the rest
// of a file from it, so it is blanked.
func (c *checker) torn(fset *token.FileSet, name string, src []byte) *ast.File {
	const mode = parser.ParseComments | parser.SkipObjectResolution | parser.AllErrors
	f, _ := parser.ParseFile(token.NewFileSet(), name, src, mode) // the caller has its errors
	if f != nil && len(f.Decls) == 0 {
		if at := packageClause().FindIndex(src); at != nil {
			src = bytes.Clone(src)
			for i := range at[0] {
				if src[i] != '\n' {
					src[i] = ' '
				}
			}
		}
	}
	f, _ = parser.ParseFile(fset, name, src, mode)
	if f == nil || len(f.Decls) == 0 || f.Name == nil {
		return nil
	}
	return f
}

var packageClause = late.Regexp(`(?m)^package [\pL_]`)

// compilerPlace is where the compiler complains: file.go:12:34: words.
var compilerPlace = late.Regexp(`^(?:vet: )?([^\s:][^:\n]*\.go|go\.mod|go\.work):(\d+)(?::\d+)?: (.*)`)

// failure is what the go command says of a unit as a reason for which its suite
// cannot be built.
func (m *module) failure(u *unitSource, e unitError, err *fault.Error) lang.Broken {
	out := lang.Broken{Code: err.Code, Tests: e.test, Hint: m.vet(u)}
	if len(err.Hints) > 0 {
		out.Hint = err.Hints[0]
	}
	msg := saying(e.Msg, m.req.Project)
	out.File, out.Line = m.place(e.Pos)
	if g := compilerPlace().FindStringSubmatch(msg); g != nil {
		out.File, out.Line = m.place(g[1] + ":" + g[2])
		msg = g[3]
	}
	if out.File == "" {
		out.File = m.rel(u.dir)
	}
	if syntax, ok := strings.CutPrefix(msg, "syntax error: "); ok {
		out.Text = placed(out.File, out.Line) + " " + notParsed + syntax
	} else {
		out.Text = placed(out.File, out.Line) + ": " + msg
	}
	return out
}

// vet is the command that shows what is wrong with a package and its tests.
func (m *module) vet(u *unitSource) string {
	dir := dirOf(m.path, u.path)
	if dir == "" || dir == "." {
		return inProject(m.req.Project, "vet .")
	}
	return inProject(m.req.Project, "vet ./"+dir)
}

// inProject is a go command for the root of the checkout.
func inProject(p lang.Project, args string) string {
	if p.Dir == "" || p.Dir == "." {
		return "go " + args
	}
	return "go -C " + p.Dir + " " + args
}

func placed(file string, line int) string {
	if line > 0 {
		return file + ":" + strconv.Itoa(line)
	}
	return file
}

// broken says why the suite of a unit cannot be built; nil when the go command
// built all that it is made of.
func (m *module) broken(u *unitSource, all []*facts) *lang.Broken {
	if u.builds() {
		return nil
	}
	seen := map[*unitSource]bool{u: true}
	for work := []*unitSource{u}; len(work) > 0; work = work[1:] {
		if b := m.cause(work[0], all, work[0] != u); b != nil {
			b.Tests = u.buildsAlone()
			return b
		}
		imports := m.imports(work[0])
		for _, v := range m.units {
			if !seen[v] && !v.buildsAlone() && slices.Contains(imports, v.path) {
				seen[v] = true
				work = append(work, v)
			}
		}
	}
	file := m.rel(u.dir)
	return &lang.Broken{Code: lang.BuildFailed, File: file, Text: u.path + " does not build", Hint: m.vet(u), Tests: u.buildsAlone()}
}

// cause is the first thing that is wrong in the files of a unit itself: what it
// lacks, then what does not parse, then what has no meaning, then what else the go
// command said; each outside its tests first. imported leaves its tests out.
func (m *module) cause(u *unitSource, all []*facts, imported bool) *lang.Broken {
	var found []lang.Broken
	for _, f := range u.failures {
		if f.Code != lang.BuildFailed {
			found = append(found, f)
		}
	}
	for _, prefix := range []string{notParsed, typeError} {
		for _, f := range all {
			if f.Unit != u.path {
				continue
			}
			for _, p := range f.Problems {
				msg, ok := strings.CutPrefix(p.Reason, prefix)
				if !ok || p.File == "" {
					continue
				}
				text := placed(p.File, p.Line) + ": " + msg
				if prefix == notParsed {
					text = placed(p.File, p.Line) + " " + p.Reason
				}
				b := lang.Broken{
					Code: lang.BuildFailed, File: p.File, Line: p.Line, Text: text, Hint: m.vet(u), Tests: f.XTest || strings.HasSuffix(p.File, "_test.go"),
				}
				if path := notImported(msg); path != "" && !m.isUnit(path) {
					b.Code, b.Hint = lang.DependencyMissing, inProject(m.req.Project, "mod download")
					b.Text = placed(p.File, p.Line) + ": could not import " + path + ": it is not in the module cache, or does not build"
				}
				found = append(found, b)
			}
		}
	}
	for _, f := range u.failures {
		if f.Code == lang.BuildFailed {
			found = append(found, f)
		}
	}
	for _, test := range []bool{false, true} {
		for _, f := range found {
			if f.Tests == test && (!test || !imported) {
				return &f
			}
		}
	}
	return nil
}

// notImported is the package that a type error is about the lack of; empty for
// other errors.
func notImported(msg string) string {
	rest, ok := strings.CutPrefix(msg, "could not import ")
	if !ok {
		return ""
	}
	path, _, _ := strings.Cut(rest, " (")
	return path
}

// isUnit tells a package of this module.
func (m *module) isUnit(path string) bool {
	return slices.ContainsFunc(m.units, func(u *unitSource) bool { return u.path == path })
}

// builds tells whether the go command built everything that the suite is made of:
// it has export data of a package only then.
func (u *unitSource) builds() bool {
	for _, p := range []*packages.Package{u.pkg, u.plain, u.xtest} {
		if p != nil && p.ExportFile == "" {
			return false
		}
	}
	return len(u.failures) == 0
}

// buildsAlone tells the same of the package without its tests.
func (u *unitSource) buildsAlone() bool {
	return (u.plain == nil || u.plain.ExportFile != "") && !slices.ContainsFunc(u.failures, func(f lang.Broken) bool { return !f.Tests })
}
