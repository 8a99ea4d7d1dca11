// Package source reads Go modules: it reports the symbols, tests, calls, entry
// points and digests of one module, and writes its instrumented sources.
//
// The work is done by [Serve], which runs inside a box: package go/packages
// starts the go command, so our own executable is started again with a hidden
// first argument ([Reexec]), reads a [Request] on its standard input and prints
// a short JSON document that [Decode] turns into an [Answer]. The answer itself
// is a file in the out directory, because an output stream has a limit.
//
// Every package is parsed and type-checked alone, against the export data of
// everything it imports, packages of the same project included: memory is
// bounded by the largest package, the standard library is never read as source,
// and a package whose files and imported declarations are unchanged is taken
// from the cache in the out directory.
//
// # Digests
//
// The digest of a symbol covers the tokens of its declaration, without comments
// and layout, the meaning of the names in them (import paths, the ids of the
// functions referred to), and the closure of the package-level constants,
// variables and types of the project that it names or whose values it handles.
// Constants count by value and type. A type counts with the signatures of its
// methods, since a new method can change what an interface conversion does. A
// function named in the initialiser of a variable counts by its id alone: when
// it is executed, reach reports it with a digest of its own. Declarations of
// other modules are covered by [lang.Scan.Locks], which also holds the contents
// of dependencies that no version names: replaced by a directory, vendored, or
// members of the same workspace.
//
// The package is part of the judged side of the wall: what it reports orders and
// names things, and decides no verdict.
package source

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang/mutate"
	"github.com/proveto/proveto/internal/wholefile"
)

// Argument is the hidden first argument that makes our executable a helper.
const Argument = "__proveto_go_source"

// Driver is the name and version of the Go driver. The number grows when
// symbols, digests or probes change for the same sources.
const Driver = "go 3"

// Request says what to load. All paths are absolute.
type Request struct {
	Root    string       // of the checkout; never written to
	Project lang.Project // Dir is relative to Root
	Out     string       // directory for the answer, the cache and instrumented files; created when missing
	Env     []string     // environment of the go command; nil: that of the process
	Tags    []string     // build tags
	// Instrument asks for instrumented files; without it the answer has no Packages.
	Instrument bool
	Drop       []evidence.Digest // sites to leave out, because they did not compile
}

// Answer is what a module contains.
type Answer struct {
	Scan     *lang.Scan
	Packages []Package
	// Env must be added to the environment of later builds of the project:
	// GOWORK=off when a go.work above does not use the module.
	Env []string
	// Reused counts the packages that were taken from the cache, Loaded the
	// others.
	Reused, Loaded int
}

// Package is one instrumented package. A directory can have two: the package
// with its in-package tests, and its external tests, whose Path ends in _test.
type Package struct {
	Path    string            // as given to the controller
	Unit    string            // id of its unit
	Files   map[string]string // original to instrumented file; both absolute
	Extra   map[string]string // files to add to the package, likewise
	Symbols []string          // ids; the index is the number in Hit
	// SitesFile holds the sites as JSON, SitesDigest its digest; see [Package.Sites].
	SitesFile   string
	SitesDigest evidence.Digest
	Skipped     []mutate.Skip
}

// Sites reads the probes of the package: the index + 1 is the number in On. A
// file that was changed since it was written is an error.
func (p Package) Sites() ([]mutate.Site, error) {
	b, err := readChecked(p.SitesFile, p.SitesDigest)
	if err != nil {
		return nil, fmt.Errorf("sites of %s: %w", p.Path, err)
	}
	var sites []mutate.Site
	if err := json.Unmarshal(b, &sites); err != nil {
		return nil, fmt.Errorf("sites of %s: %w", p.Path, err)
	}
	return sites, nil
}

// reply is the document on the standard output: where the answer is, or why
// there is none.
type reply struct {
	Answer string          `json:"answer,omitempty"`
	Digest evidence.Digest `json:"digest,omitempty"`
	Error  *replyError     `json:"error,omitempty"`
}

type replyError struct {
	Kind  fault.Kind `json:"kind"`
	Code  fault.Code `json:"code"`
	What  string     `json:"what"`
	Hints []string   `json:"hints,omitempty"`
}

// Reexec serves a request when args, the arguments after the program's name,
// begin with [Argument]. handled is false for every other command line.
func Reexec(args []string) (code int, handled bool) {
	if len(args) == 0 || args[0] != Argument {
		return 0, false
	}
	return Serve(os.Stdin, os.Stdout), true
}

// Serve reads a request, loads the module and prints the reply. The result is
// the exit code: that of the error's kind, which the reply carries too.
func Serve(stdin io.Reader, stdout io.Writer) int {
	rep, code := serve(stdin)
	if err := json.NewEncoder(stdout).Encode(rep); err != nil {
		return fault.Internal.Exit()
	}
	return code
}

func serve(stdin io.Reader) (reply, int) {
	var req Request
	if err := json.NewDecoder(stdin).Decode(&req); err != nil {
		return refuse(fault.Wrap(err, fault.Usage, "bad_request", "request of the Go helper"))
	}
	ans, err := Load(req)
	if err != nil {
		return refuse(err)
	}
	b, err := json.Marshal(ans)
	if err != nil {
		return refuse(fmt.Errorf("encode answer: %w", err))
	}
	d := evidence.DigestOf(b)
	name := filepath.Join(req.Out, "answers", d.Hex()+".json")
	if err := writeFile(name, b); err != nil {
		return refuse(err)
	}
	return reply{Answer: name, Digest: d}, 0
}

func refuse(err error) (reply, int) {
	e := fault.From(err)
	return reply{Error: &replyError{Kind: e.Kind, Code: e.Code, What: e.Error(), Hints: e.Hints}}, e.Kind.Exit()
}

// Decode reads what [Serve] printed. A refusal becomes the error that the helper
// had; output that is no reply is an internal error.
func Decode(stdout []byte) (*Answer, error) {
	var rep reply
	if err := json.Unmarshal(stdout, &rep); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "bad_reply", "the Go helper printed %.200q", stdout)
	}
	if e := rep.Error; e != nil {
		return nil, &fault.Error{Kind: e.Kind, Code: e.Code, What: e.What, Hints: e.Hints}
	}
	b, err := readChecked(rep.Answer, rep.Digest)
	if err != nil {
		return nil, fmt.Errorf("answer of the Go helper: %w", err)
	}
	var ans Answer
	if err := json.Unmarshal(b, &ans); err != nil {
		return nil, fmt.Errorf("answer of the Go helper: %w", err)
	}
	return &ans, nil
}

// readChecked reads a file whose digest is known.
func readChecked(name string, want evidence.Digest) ([]byte, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if got := evidence.DigestOf(b); got != want {
		return nil, fault.New(fault.Tampered, "digest_mismatch", "%s has digest %s, want %s", name, got.Short(), want.Short())
	}
	return b, nil
}

// writeFile writes a file whole or not at all, with its directories.
func writeFile(name string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return wholefile.Write(name, b, 0o600, false)
}
