// Package controller is our code inside package testing of judged Go test
// binaries: it tells on the report descriptor how each test ended and what it
// executed, and switches probes on.
//
// [Patch] returns the overlay that puts it there: the files of
// GOROOT/src/testing with calls of hooks inserted, found by the names of
// functions and checked one by one, and the controller's own files, which are in
// _testing. The overlay depends on the Go release and on this package alone, so
// the compiled package is shared by all projects through the build cache.
//
// The package starts no process and writes no file.
package controller

import (
	"bytes"
	"embed"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

//go:embed _testing/*.go
var sources embed.FS

// Mode says what instrumented code does in a run.
type Mode string

// The modes of a run.
const (
	Quiet   Mode = ""        // report tests only
	Observe Mode = "observe" // report what each test executes and the values seen
	Reach   Mode = "reach"   // report what each test executes and consults, and no values
	Probe   Mode = "probe"   // one probe is switched on; site 0 is none
)

// Instructions are what the controller of one process is told on descriptor 3.
type Instructions struct {
	Mode    Mode   `json:"mode,omitempty"`
	Package string `json:"package,omitempty"` // import path of the probe's package
	Site    int    `json:"site,omitempty"`    // number of the probe in its package
	AtInit  bool   `json:"at_init,omitempty"` // on from the start of the process
	Differ  bool   `json:"differ,omitempty"`  // report whether the probe changed a value
	Plant   string `json:"plant,omitempty"`   // the test that fails before it starts
	// Tests are the full names of the tests to run, with all that is below them;
	// none: what -test.run says.
	Tests map[string]bool `json:"tests,omitempty"`
	Root  string          `json:"root,omitempty"` // file names are reported relative to it
	// Bases are added to the numbers of sites in reports, by import path, so
	// that no two packages share a number.
	Bases map[string]int64 `json:"bases,omitempty"`
}

// Digest identifies the controller: it changes when its code or its hooks do.
func Digest() (evidence.Digest, error) {
	files, err := own()
	if err != nil {
		return "", err
	}
	var parts []string
	for _, f := range files {
		parts = append(parts, f.name, string(f.src))
	}
	for _, h := range hooks {
		parts = append(parts, h.name)
	}
	return evidence.DigestParts(parts...), nil
}

type file struct {
	name string
	src  []byte
}

func own() ([]file, error) {
	names, err := fs.Glob(sources, "_testing/*.go")
	if err != nil {
		return nil, fmt.Errorf("embedded controller: %w", err)
	}
	var out []file
	for _, n := range names {
		src, err := sources.ReadFile(n)
		if err != nil {
			return nil, fmt.Errorf("embedded controller: %w", err)
		}
		out = append(out, file{name: filepath.Base(n), src: src})
	}
	return out, nil
}

// Patch returns the files of package testing to overlay, by absolute path below
// goroot. A Go release whose package testing lacks the place of a hook is
// unmeasured with code unsupported_runner.
func Patch(goroot string) (map[string][]byte, error) {
	dir := filepath.Join(goroot, "src", "testing")
	p, err := parse(dir)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, h := range hooks {
		if err := h.insert(p); err != nil {
			return nil, fault.Wrap(err, fault.Unmeasured, lang.UnsupportedRunner,
				"package testing in %s has no place for hook %q", goroot, h.name).
				Hint("use a Go release that this version knows: 1.21 or newer")
		}
	}
	for name, f := range p.files {
		if len(f.edits) == 0 {
			continue
		}
		src := f.apply()
		if bytes.Count(src, []byte("\n")) != bytes.Count(f.src, []byte("\n")) {
			return nil, fault.New(fault.Internal, "internal", "hooks moved the lines of %s", name)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution); err != nil {
			return nil, fault.Wrap(err, fault.Unmeasured, lang.UnsupportedRunner, "package testing in %s does not parse with hooks", goroot)
		}
		out[filepath.Join(dir, name)] = src
	}
	files, err := own()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		out[filepath.Join(dir, f.name)] = f.src
	}
	return out, nil
}

// sourceFile is one file of package testing and the texts to insert.
type sourceFile struct {
	src   []byte
	ast   *ast.File
	edits []edit
}

type edit struct {
	at   int
	text string
}

func (f *sourceFile) apply() []byte {
	slices.SortStableFunc(f.edits, func(a, b edit) int { return a.at - b.at })
	var out []byte
	last := 0
	for _, e := range f.edits {
		out = append(append(out, f.src[last:e.at]...), e.text...)
		last = e.at
	}
	return append(out, f.src[last:]...)
}

// pkg is package testing of one Go release, without its tests and without files
// for other systems.
type pkg struct {
	fset  *token.FileSet
	files map[string]*sourceFile
}

func parse(dir string) (*pkg, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unmeasured, lang.ToolMissing, "read package testing").
			Hint("install the Go toolchain with its standard library sources")
	}
	p := &pkg{fset: token.NewFileSet(), files: map[string]*sourceFile{}}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if ok, err := build.Default.MatchFile(dir, name); err != nil || !ok {
			continue // for another system; one that cannot be read fails below or in the build
		}
		src, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read package testing: %w", err)
		}
		f, err := parser.ParseFile(p.fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse package testing: %w", err)
		}
		p.files[name] = &sourceFile{src: src, ast: f}
	}
	return p, nil
}

// insert puts text before (or after) pos.
func (p *pkg) insert(pos token.Pos, text string) {
	at := p.fset.Position(pos)
	f := p.files[at.Filename]
	f.edits = append(f.edits, edit{at: at.Offset, text: text})
}

// function finds the one function with a body by receiver type and name.
func (p *pkg) function(receiver, name string) (*ast.FuncDecl, error) {
	var found *ast.FuncDecl
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			fd, ok := d.(*ast.FuncDecl)
			if !ok || fd.Body == nil || fd.Name.Name != name || receiverOf(fd) != receiver {
				continue
			}
			if found != nil {
				return nil, fmt.Errorf("two functions %s", name)
			}
			found = fd
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no function %s", name)
	}
	return found, nil
}

func receiverOf(fd *ast.FuncDecl) string {
	if fd.Recv == nil || len(fd.Recv.List) != 1 {
		return ""
	}
	t := fd.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
