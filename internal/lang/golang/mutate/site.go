// Package mutate writes probes into Go source: it takes type-checked files and
// returns the same files with every probe of every function present and
// switched off, by insertions only, so that line numbers stay.
//
// A site is one probe: a number that the controller in package testing can
// switch on, and the diff that makes the same sabotage in plain source, without
// a switch. The package is pure: no files, no processes, no clock.
package mutate

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/proveto/proveto/internal/evidence"
)

// Input is one type-checked package.
type Input struct {
	Path    string // import path
	Fset    *token.FileSet
	Files   []*ast.File       // parsed with comments; test files included
	Sources map[string][]byte // by the file name that Fset reports
	Types   *types.Package
	Info    *types.Info
	// SymbolFunc is the id of a function with a body; empty: leave it alone.
	SymbolFunc func(*ast.FuncDecl) string
	// RelFunc makes a file name relative to the checkout.
	RelFunc func(string) string
	// TargetFunc tells whether probes may be written into the function; the
	// others only report that they ran.
	TargetFunc func(*ast.FuncDecl) bool
	// Drop lists sites (by evidence digest) that must be left out, because they
	// did not compile.
	Drop map[evidence.Digest]bool
}

// Site is one probe.
type Site struct {
	evidence.Probe
	// Value names the value site whose observed values tell whether this probe
	// changes anything; 0 when there is none. Const is the constant that the
	// probe puts in the place of result Result, as observed values are written;
	// empty when the probe derives its value from the original.
	Value  int
	Result int
	Const  string
	// Plain are the insertions (and, for operators, replacements) that make the
	// sabotage in the original source of File.
	Plain []Edit
}

// Edit replaces the bytes [Start, End) of a file's original source by Text.
type Edit struct {
	Start, End int
	Text       string
}

// Output is the instrumented package.
type Output struct {
	Files map[string][]byte // by file name: instrumented source
	// Extra is the source of the file to add to the package: it registers the
	// package with the controller.
	Extra   []byte
	Symbols []string // symbol ids; the index is the number in Hit
	Sites   []Site   // the index + 1 is the number in On: 0 is nothing
	Skipped []Skip
}

// Skip says why a place is not mutated. It is listed, never counted.
type Skip struct {
	Symbol string
	File   string
	Line   int
	Reason string // constant_expression, multi_line, logging, closing_call, capacity_hint, unnamed_type …
}
