package golang

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang/source"
	"github.com/proveto/proveto/internal/sandbox"
)

func TestMain(m *testing.M) {
	if code, handled := sandbox.Reexec(os.Args[1:]); handled {
		os.Exit(code)
	}
	if code, handled := source.Reexec(os.Args[1:]); handled {
		os.Exit(code)
	}
	code := m.Run()
	for _, dir := range shared.dirs {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// shared is the checkout of testdata/suite.txtar that several tests use: loading
// it once is enough.
var shared struct {
	once sync.Once
	dirs []string
	err  error
	d    *Driver
	w    lang.Workspace
}

// setupShared gives a test its own record of runs on the shared checkout.
func setupShared(t *testing.T) *bundle {
	t.Helper()
	shared.once.Do(func() {
		for range 2 {
			dir, err := os.MkdirTemp("", "golang") //nolint:usetesting // shared by all tests of the package
			if err != nil {
				shared.err = err
				return
			}
			shared.dirs = append(shared.dirs, dir)
		}
		shared.d = New()
		shared.w, shared.err = unpack("testdata/suite.txtar", shared.dirs[0], shared.dirs[1])
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return newBundle(t, shared.d, shared.w)
}

// bundle is one checkout with a driver, and every run that was recorded.
type bundle struct {
	t *testing.T
	d *Driver
	w lang.Workspace

	mu      sync.Mutex
	runs    []evidence.Run
	outputs map[evidence.Digest]sandbox.Output
}

// setup unpacks an archive as a sealed checkout.
func setup(t *testing.T, archive string) *bundle {
	t.Helper()
	w, err := unpack(archive, t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return newBundle(t, New(), w)
}

func newBundle(t *testing.T, d *Driver, w lang.Workspace) *bundle {
	b := &bundle{t: t, d: d, w: w, outputs: map[evidence.Digest]sandbox.Output{}}
	b.w.Record = func(r evidence.Run, out sandbox.Output) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.runs = append(b.runs, r)
		b.outputs[r.Digest()] = out
		return nil
	}
	return b
}

func unpack(archive, root, cache string) (lang.Workspace, error) {
	ar, err := txtar.ParseFile(archive)
	if err != nil {
		return lang.Workspace{}, err
	}
	var parts []string
	for _, f := range ar.Files {
		name := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return lang.Workspace{}, err
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			return lang.Workspace{}, err
		}
		parts = append(parts, f.Name, string(f.Data))
	}
	return lang.Workspace{Root: root, Cache: cache, Tree: evidence.Tree(evidence.DigestParts(parts...).Hex())}, nil
}

// project is the one in the given directory.
func (b *bundle) project(dir string) lang.Project {
	b.t.Helper()
	ps, err := b.d.Detect(b.w.Root)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range ps {
		if p.Dir == dir {
			return p
		}
	}
	b.t.Fatalf("no project in %s: %+v", dir, ps)
	return lang.Project{}
}

func (b *bundle) scan(dir string) *lang.Scan {
	b.t.Helper()
	s, err := b.d.Scan(b.t.Context(), b.w, b.project(dir))
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bundle) suite(dir, unit string) lang.Suite {
	b.t.Helper()
	s, err := b.d.Build(b.t.Context(), b.w, b.scan(dir), unit)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return s
}

var limits = evidence.Limits{CPU: time.Minute, Wall: time.Minute, OutputBytes: 1 << 20, Processes: 256}

func (b *bundle) run(s lang.Suite, r lang.Request) evidence.Run {
	b.t.Helper()
	if r.Purpose == "" {
		r.Purpose = evidence.PurposeControl
	}
	r.Limits = limits
	run, err := s.Run(context.WithoutCancel(b.t.Context()), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return run
}

// words are the streams of a run, for the text of a failure.
func (b *bundle) words(r evidence.Run) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.outputs[r.Digest()]
	return string(o.Stdout) + string(o.Stderr)
}

// symbol finds a symbol by its name for people.
func symbol(t *testing.T, s *lang.Scan, name string) lang.Symbol {
	t.Helper()
	for _, sym := range s.Symbols {
		if sym.Name == name {
			return sym
		}
	}
	var all []string
	for _, sym := range s.Symbols {
		all = append(all, sym.Name)
	}
	t.Fatalf("no symbol %s among %s", name, strings.Join(all, ", "))
	return lang.Symbol{}
}
