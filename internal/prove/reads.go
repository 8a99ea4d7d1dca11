package prove

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

// configured is the name under which the variables that the configuration gives
// to tests are bound, whether a test asks for one by name or lists them all.
const configured = "test_env"

// places are variables that say where things are on a machine: what is found
// there is bound by other digests, or is no part of the project.
var places = []string{"PATH", "HOME", "PWD", "TMPDIR", "GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE"}

// Surroundings are the variables of a workspace that can change what its tests
// do, without those that only say where things are.
func Surroundings(w lang.Workspace) []string {
	return slices.DeleteFunc(slices.Clone(w.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(places, name) && !slices.Contains(w.Configured, name)
	})
}

// reads are the digests of what tests consult beside the sources: files of the
// checkout and variables, by the names of [evidence.EventReads]. Each is looked
// at once.
type reads struct {
	w  lang.Workspace
	mu sync.Mutex
	of map[string]evidence.Digest
	// outside says that a file of the checkout leads out of it: then an equal tree
	// does not say that nothing changed.
	outside bool
}

// digest is today's digest of one name.
func (r *reads) digest(name string) evidence.Digest {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d, ok := r.of[name]; ok {
		return d
	}
	d := r.look(name)
	if r.of == nil {
		r.of = map[string]evidence.Digest{}
	}
	r.of[name] = d
	return d
}

func (r *reads) look(name string) evidence.Digest {
	kind, what, _ := strings.Cut(name, " ")
	switch kind {
	case "file":
		return r.file(what)
	case "env":
		return r.variable(what)
	case evidence.ReadProcess:
		return evidence.DigestParts(evidence.ReadProcess)
	case configured:
		parts := []string{configured}
		for _, n := range r.w.Configured {
			parts = append(parts, n, string(r.variable(n)))
		}
		return evidence.DigestParts(parts...)
	}
	return evidence.DigestParts("tree", string(r.w.Tree))
}

func (r *reads) variable(name string) evidence.Digest {
	if !slices.Contains(places, name) || slices.Contains(r.w.Configured, name) {
		for _, kv := range slices.Backward(r.w.Env) {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return evidence.DigestParts("env", v)
			}
		}
	}
	return evidence.DigestParts("unset")
}

// file looks at a path as the test wrote it: links are followed like the kernel
// does, so nothing is cleaned beforehand. Where a link leads counts beside what
// is there, of a link to nowhere its text. Of a directory the names count. What
// lies outside the checkout is not opened: of that, place, size and time count.
func (r *reads) file(rel string) evidence.Digest {
	name := r.w.Root + "/" + filepath.FromSlash(rel)
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		if text, err := os.Readlink(name); err == nil {
			return evidence.DigestParts("leads nowhere", text)
		}
		return evidence.DigestParts("absent")
	}
	root, err := filepath.EvalSymlinks(r.w.Root)
	if err != nil {
		root = r.w.Root
	}
	st, err := os.Stat(real)
	if err != nil {
		return evidence.DigestParts("absent")
	}
	below, err := filepath.Rel(root, real)
	if err != nil || !filepath.IsLocal(below) {
		r.outside = true
		return evidence.DigestParts("outside", real, st.Mode().String(), st.ModTime().UTC().String(), strconv.FormatInt(st.Size(), 10))
	}
	switch {
	case st.IsDir():
		entries, err := os.ReadDir(real)
		parts := []string{"directory", below}
		for _, e := range entries {
			parts = append(parts, e.Name(), e.Type().String())
		}
		if err != nil {
			parts = append(parts, "unreadable")
		}
		return evidence.DigestParts(parts...)
	case st.Mode().IsRegular():
		f, err := os.Open(real)
		if err != nil {
			return evidence.DigestParts("unreadable")
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return evidence.DigestParts("unreadable")
		}
		return evidence.DigestParts("file", below, st.Mode().Perm().String(), hex.EncodeToString(h.Sum(nil)))
	}
	return evidence.DigestParts("special", below, st.Mode().String())
}
