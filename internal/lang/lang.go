// Package lang is the seam between the prove job and the languages: what a
// driver must tell about a checkout, and how it runs one test against one
// sabotaged copy.
//
// A driver translates; it decides nothing. It reports symbols, tests, calls and
// entry points ([Scan]), builds one [Suite] a unit of tests with every probe
// switchable, and runs it in fresh processes, each giving an [evidence.Run].
// Ranking, budgets, verdicts and words belong to the packages above.
package lang

import (
	"context"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/sandbox"
)

// Driver is one language.
type Driver interface {
	// Language is the stored name: go, python, javascript, java.
	Language() string
	// Fingerprint names the toolchain and the driver without running anything;
	// equal prints give equal results. Its error has code tool_missing.
	Fingerprint() (string, error)
	// Detect lists the projects below root (an absolute path of a checkout or of
	// a working copy) by their manifests, without running anything.
	Detect(root string) ([]Project, error)
	// TestFile tells a file of tests by its name, a slash-separated path.
	TestFile(path string) bool
	// TestData tells a data file of tests by its name, and the directory whose
	// tests it is for.
	TestData(path string) (dir string, ok bool)
	// Scan parses a project. Files that do not parse are Problems, not errors.
	// An error with kind unmeasured and a Category as its code means that the
	// project cannot be loaded at all.
	Scan(ctx context.Context, w Workspace, p Project) (*Scan, error)
	// Build makes the suite of one unit. Its error has kind unmeasured and a
	// Category as its code. The scan is the one of the same project.
	Build(ctx context.Context, w Workspace, s *Scan, unit string) (Suite, error)
}

// Explainer is a driver that can tell from the output of failing tests what they
// lack around them: a database, a tool, a permission. The error has a Category
// as its code; ok is false when the output shows nothing of the kind.
type Explainer interface {
	Explain(output []byte) (err *fault.Error, ok bool)
}

// Commander is a driver that can say how a person runs one test without us: the
// command line of the project's own runner, in the project at the absolute path
// dir, for the unit in unitDir below it, a test by its full name, so many times.
type Commander interface {
	TestCommand(dir, unitDir, test string, times int) string
}

// Toolbox is a driver that can equip commands of a project: what its toolchain
// needs to see and to write, and the commands that build all of it.
type Toolbox interface {
	// Tools equips commands in a checkout. Its error has kind unmeasured.
	Tools(ctx context.Context, w Workspace, p Project) (Tools, error)
}

// Tools are the walls and the environment of a project's own commands.
type Tools struct {
	Spec sandbox.Spec
	Env  []string
	// Build are commands that end with 0 only when every package builds, with its
	// tests, and run no code of the project. Argv[0] is an absolute path.
	Build [][]string
}

// Saboteur is a driver that can write the bad sources that a gate must refuse. ok
// is false where it cannot.
type Saboteur interface {
	// SyntaxError is the source with an error that no compiler accepts.
	SyntaxError(path string, src []byte) (bad []byte, ok bool)
	// SkipTest is the source in which a top-level test skips itself.
	SkipTest(path string, src []byte, test string) (bad []byte, ok bool)
}

// Origins is a driver that can tell where the code of other projects comes from,
// by reading alone: a dependency's name to its version, or to what stands in its
// place. A dependency that is byte for byte what its version names counts as that.
type Origins interface {
	Origins(w Workspace, p Project) (map[string]string, error)
}

// Bound applies the limits of the workspace to those that a run asks for.
func (w Workspace) Bound(p evidence.Purpose, l evidence.Limits) evidence.Limits {
	if w.Limits.Wall > 0 && (p == evidence.PurposeBaseline || l.Wall > w.Limits.Wall) {
		l.Wall = w.Limits.Wall
		l.CPU = min(l.CPU, 2*l.Wall)
		if p == evidence.PurposeBaseline {
			l.CPU = 2 * l.Wall
		}
	}
	if w.Limits.MemoryBytes > 0 {
		l.MemoryBytes = w.Limits.MemoryBytes
	}
	if w.Limits.Processes > 0 {
		l.Processes = w.Limits.Processes
	}
	return l
}

// Workspace is where a driver works: a sealed checkout and the walls around it.
type Workspace struct {
	Root    string        // absolute path of the checkout; never written to
	Tree    evidence.Tree // what is checked out
	Cache   string        // absolute path of a directory for the driver's builds, kept between invocations
	Origin  string        // absolute path of the working copy that was sealed: no tool is taken from it; empty: none
	Hidden  []string      // directories that judged code must not see
	Min     evidence.Level
	Max     evidence.Level
	Network sandbox.Network
	Builds  bool     // suites will be built: a driver may make its probes while it scans
	Env     []string // allow-listed environment for the project's tests, as KEY=VALUE
	// Configured are the names in Env that the project's configuration sets.
	Configured []string
	// Limits are the most that one run of a suite may take; a zero field sets
	// nothing. A baseline may take all of it, other runs what they ask for.
	Limits evidence.Limits
	// Record receives every run that is evidence, with its output, before the
	// driver uses what it shows.
	Record func(evidence.Run, sandbox.Output) error
}

// Project is one module or package that is built as a whole.
type Project struct {
	Language  string
	Dir       string // relative to the checkout, "." for its root; slash-separated
	Name      string // module path
	Manifest  string // relative path of the manifest
	Runner    string // go test
	TestFiles int    // files of tests that were found by name
}

// Scan is what a driver knows about a project without running its tests.
type Scan struct {
	Project     Project
	Toolchain   string // "go1.26.8 linux/amd64"
	Driver      string // name and version of the driver: changes when its probes do
	Locks       evidence.Digest
	Units       []Unit
	Symbols     []Symbol
	Tests       []Test
	Calls       []Call
	EntryPoints []EntryPoint
	Problems    []Problem
	// Values are the variables that hold code of their own, a function literal:
	// behaviours for which the driver has no probe, and no targets.
	Values []Symbol
}

// Unit is what one suite is built from: a Go package with its tests.
type Unit struct {
	ID    string // import path
	Dir   string // relative to the checkout
	Files []string
	// Imports are the ids of the units of the same project that it imports, in
	// its tests as well.
	Imports []string
	Tests   int             // test functions, examples and fuzz targets
	Data    evidence.Digest // of files beside the sources that tests can read
	// Undefined is a name in the sources that nothing defines, with its place; empty
	// when there is none. A suite that builds all the same knows it from the driver's
	// own additions, and is about something else than the project.
	Undefined string
	// Broken says why the suite of the unit cannot be built; nil when it can.
	Broken *Broken
	// Setup covers the code outside tests that runs when a process with this unit
	// starts; empty when there is none. TestSetup covers the same in its tests, and
	// what surrounds them (TestMain with all that it can call).
	Setup, TestSetup evidence.Digest
}

// Symbol is a behaviour that can be proven: a function or method with a body,
// or test code, which is listed so that its changes are seen.
type Symbol struct {
	ID         string // SCIP-style, stable across machines
	Name       string // for people: semver.Version.Compare
	Kind       string // function, method, test, closure holder …
	Unit       string
	File       string // relative to the checkout
	Line       int
	EndLine    int
	Digest     evidence.Digest // of its normalised tokens and of the declarations (constants, variables, types) that it uses
	Values     evidence.Digest // of the constants and variables among them, and of those that their initialisers use; empty: none
	Exported   bool
	TestCode   bool
	Generated  bool
	Statements int
	Excluded   string // why it is never a target; empty for targets
}

// Test is a test function; subtests are found by running.
type Test struct {
	Name string // TestCompare
	Kind string // test, example, fuzz
	Unit string
	File string
	Line int
	// Symbol is the id of the test's own function in Symbols.
	Symbol string
}

// Call is a static edge between two symbols.
type Call struct{ From, To string }

// EntryPoint is a place where the outside reaches the code.
type EntryPoint struct {
	Kind   string // exported_api, http_route, cli_command
	Name   string // GET /refunds
	Symbol string
	File   string
	Line   int
}

// Problem is a file or declaration that could not be used.
type Problem struct {
	File   string
	Line   int
	Reason string
}

// Broken is why a suite cannot be built, and where: in the unit itself or in one
// that it imports.
type Broken struct {
	Code fault.Code // a category; build_failed: it can be built nowhere
	File string
	Line int    // 0: the file as a whole
	Text string // with the place: "a/f.go:6 does not parse: expected declaration"
	Hint string // a command that shows or mends it
	// Tests says that the unit builds for others: what is wrong concerns its tests.
	Tests bool
}

// The categories of needs_setup; they are the codes of the errors that a driver
// returns from Scan, Build and Baseline.
const (
	DependencyMissing fault.Code = "dependency_missing"
	ToolMissing       fault.Code = "tool_missing"
	BuildFailed       fault.Code = "build_failed"
	DatabaseOrNetwork fault.Code = "database_or_network"
	Configuration     fault.Code = "configuration"
	TimedOut          fault.Code = "timeout"
	Permission        fault.Code = "permission"
	UnsupportedRunner fault.Code = "unsupported_runner"
	NoTests           fault.Code = "no_tests"
)

// Suite is one unit's tests, compiled or loaded once with every probe
// switchable. Every call of Run is a fresh process. A suite may be used by
// several goroutines.
type Suite interface {
	Unit() string
	// Probes lists the probes of a symbol, best first. Values of result probes
	// are chosen against what the given baselines saw; without any the choice is
	// by type alone. all adds the kinds after the first.
	Probes(symbol string, seen []evidence.Run, all bool) []Probe
	// Run executes tests once. The run was recorded (Workspace.Record) when it
	// returns. An error means that no run could be made, not that it was red.
	Run(ctx context.Context, r Request) (evidence.Run, error)
	// Plain is the same suite with the probe written into the source: no switch,
	// no other probe. Close it after use.
	Plain(ctx context.Context, p Probe) (Suite, error)
	// Close ends the processes and removes the temporary files of the suite.
	Close() error
}

// Probe is a sabotage that a suite can switch on.
type Probe struct {
	evidence.Probe
	Switch int64 // the driver's own number; 0 in a plain suite
	// AtInit says that the symbol runs before the tests start: the switch is on
	// from the start of the process.
	AtInit bool
}

// Request is one run of a suite.
type Request struct {
	Purpose evidence.Purpose
	Tests   []string // full names; empty: all. A parent selects its subtests
	Probe   *Probe   // switched on; nil for the original
	Plant   string   // plant a failing assertion in this test
	Shuffle int64    // seed; 0: in order
	// OtherEnv runs in a second environment: another user name, home, host name,
	// time zone and CI variables. Code that behaves by them is found out.
	OtherEnv bool
	// Observe records reach and reads per test, sites and values seen. Only on the
	// original.
	Observe bool
	// Reach records reach and reads alone, at a fraction of the cost. Only on the
	// original.
	Reach bool
	// FailFast stops after the first failing test.
	FailFast bool
	// Differ, with a probe on, records whether original and changed value ever
	// differed.
	Differ bool
	Limits evidence.Limits
}
