package testing

import (
	provetolog "internal/testlog" // package testing has a variable of this name
	"os"
	"strings"
	"syscall"
)

const (
	provetoMaxReads   = 10_000 // names told per test; with one more it is the whole tree
	provetoReadsFrame = 500    // names told per frame
)

// provetoReads hears from package os which files and variables are consulted,
// the way in which the go command learns it for its cache of results.
type provetoReads struct {
	dir string // the working directory; guarded by proveto.mu
}

// provetoListen is called before any project code runs, in a run that observes.
func provetoListen() {
	dir, err := os.Getwd()
	if err != nil {
		dir = proveto.root
	}
	provetolog.SetLogger(&provetoReads{dir: dir})
}

func (r *provetoReads) Getenv(name string) {
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	provetoCurrent().consulted("env " + name)
}

func (r *provetoReads) Stat(name string) {
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	r.file(name)
}

// Open is also told the programs that are started: what such a process reads and
// executes is not seen, so whoever starts one depends on the whole tree.
func (r *provetoReads) Open(name string) {
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	name = r.file(name)
	var st syscall.Stat_t
	if syscall.Stat(name, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Mode&0o111 != 0 {
		provetoCurrent().consulted("tree")
	}
}

// file is told the name as the project wrote it, and makes it absolute. Files
// outside the checkout are no part of what is judged. proveto.mu is held.
func (r *provetoReads) file(name string) string {
	if name == "" {
		return name
	}
	if name[0] != '/' {
		name = r.dir + "/" + name
	}
	if strings.HasPrefix(name, "/proc/") {
		// It looks at processes, its own as well, where it can find our switch.
		provetoCurrent().consulted("process")
	}
	if name == proveto.root {
		name += "/."
	}
	if rel, ok := strings.CutPrefix(name, proveto.root+"/"); ok && proveto.root != "" {
		provetoCurrent().consulted("file " + rel)
	}
	return name
}

func (r *provetoReads) Chdir(dir string) {
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	r.dir = dir
}
