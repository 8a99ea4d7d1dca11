package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

// Module is what is checked: a module's packages with their parsed files.
type Module struct {
	Path     string
	Packages []Package
}

// Package is one directory of Go files.
type Package struct {
	Path  string // relative to the module
	Files []File
}

// File is one parsed source file. All files of a directory are here, those of
// other platforms too; only files marked to be ignored are left out.
type File struct {
	Name    string // base name
	Test    bool
	Syntax  *ast.File
	Imports []string
	fset    *token.FileSet
}

// listed is the part of go list's answer that is used.
type listed struct {
	ImportPath, Dir                                              string
	Module                                                       *struct{ Path string }
	GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
	Error                                                        *struct{ Err string }
}

// Load parses the files that `go list -e -json ./...` named. A file that does
// not parse and a package without files are errors.
func Load(list []byte) (Module, error) {
	var m Module
	for dec := json.NewDecoder(bytes.NewReader(list)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return Module{}, fmt.Errorf("read the list of packages: %w", err)
		}
		if l.Module == nil {
			return Module{}, fmt.Errorf("%s belongs to no module", l.ImportPath)
		}
		m.Path = l.Module.Path
		p := Package{Path: strings.TrimPrefix(strings.TrimPrefix(l.ImportPath, m.Path), "/")}
		for _, group := range [][]string{l.GoFiles, l.CgoFiles, l.IgnoredGoFiles, l.TestGoFiles, l.XTestGoFiles} {
			for _, name := range group {
				f, ignored, err := parse(filepath.Join(l.Dir, name))
				if err != nil {
					return Module{}, err
				}
				if !ignored {
					p.Files = append(p.Files, f)
				}
			}
		}
		if len(p.Files) == 0 {
			return Module{}, fmt.Errorf("%s has no files", l.ImportPath)
		}
		m.Packages = append(m.Packages, p)
	}
	if len(m.Packages) == 0 {
		return Module{}, errors.New("the module has no packages")
	}
	return m, nil
}

func parse(path string) (f File, ignored bool, err error) {
	f = File{Name: filepath.Base(path), Test: strings.HasSuffix(path, "_test.go"), fset: token.NewFileSet()}
	f.Syntax, err = parser.ParseFile(f.fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, false, fmt.Errorf("parse %s: %w", path, err)
	}
	for _, im := range f.Syntax.Imports {
		ip, err := strconv.Unquote(im.Path.Value)
		if err != nil {
			return File{}, false, fmt.Errorf("import of %s: %w", path, err)
		}
		f.Imports = append(f.Imports, ip)
	}
	return f, alwaysIgnored(f.Syntax), nil
}

// alwaysIgnored tells a file with the build constraint "ignore": it belongs to
// no package.
func alwaysIgnored(f *ast.File) bool {
	for _, g := range f.Comments {
		if g.Pos() > f.Package {
			break
		}
		for _, c := range g.List {
			if x, err := constraint.Parse(c.Text); err == nil {
				if tag, ok := x.(*constraint.TagExpr); ok && tag.Tag == "ignore" {
					return true
				}
			}
		}
	}
	return false
}
