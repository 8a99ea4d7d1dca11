// Package sandbox runs one command under limits and returns an [evidence.Run].
//
// A [Box] is a set of walls put up once (by a supervisor process: our own
// executable, started again) in which many commands run, each a fresh process
// with its own limits and its own run; between two the process tree is proven
// empty. Levels, best available first: namespaces, landlock, limits. A level is
// proven when the box opens, by a child that tries a forbidden write and a
// forbidden connection; what is recorded is the level proven.
//
// Results of a command come back on an inherited descriptor with a key of its
// own (see docs/formats/report-descriptor.md), never by reading what it printed.
//
// The package starts processes and mounts; it stores nothing. Whoever calls
// [Box.Run] keeps the blobs of the run that it returns.
package sandbox

import (
	"encoding/json"

	"github.com/proveto/proveto/internal/evidence"
)

// Network is what the commands of a box may reach.
type Network string

// The networks that can be asked for.
const (
	NetworkLoopback Network = ""     // default: a private loopback interface only
	NetworkHost     Network = "host" // opened by the user; recorded as open
)

// Spec describes the walls of a box. The zero value is a box on the best level
// of this machine with a private loopback network, read-only root and a private
// /tmp.
type Spec struct {
	Min     evidence.Level // refuse (isolation_too_low) below this; zero: any
	Max     evidence.Level // use at most this level; zero: the best. For tests and for machines where a level misbehaves
	Network Network
	// Sources are directories whose writes must not last: at level namespaces an
	// overlay gives each command a fresh writable view; elsewhere they are
	// read-only (landlock) or unprotected (limits).
	Sources []string
	// Writable directories keep what commands write: a build cache.
	Writable []string
	// ReadOnly directories stay visible inside a hidden one: a toolchain or a
	// module cache below the home directory.
	ReadOnly []string
	// Hidden directories look empty (namespaces) or cannot be opened (landlock):
	// the state directory, the home directory.
	Hidden []string
	// Env is the whole environment of every command, as KEY=VALUE. TMPDIR, HOME
	// and the report variable are set by the box.
	Env []string
}

// Command is one process to run in a box.
type Command struct {
	Purpose  evidence.Purpose
	Snapshot evidence.Tree
	Argv     []string // Argv[0] is an absolute path
	Root     string   // the checkout; Dir and recorded paths are relative to it
	Dir      string   // working directory, relative to Root; "" is Root
	Env      []string // added to the environment of the box
	Stdin    []byte
	Artifact evidence.Digest // of the executable, when it was built for this run
	Probe    evidence.Digest
	Tests    []string
	Planted  string
	Limits   evidence.Limits
	// Report, when not nil, gives the process the results descriptor and these
	// instructions for its controller.
	Report json.RawMessage
}

// Output are the bytes of a run's streams, up to the limit.
type Output struct {
	Stdout, Stderr []byte
}
