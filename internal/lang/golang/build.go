package golang

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/late"
	"github.com/proveto/proveto/internal/sandbox"
)

// binary is a test binary in the cache.
type binary struct {
	Path     string          `json:"path"`
	Artifact evidence.Digest `json:"artifact"` // of its bytes
	Key      evidence.Digest `json:"key"`      // of everything that it was built from
}

// build makes the instrumented test binary of a unit, or takes it from the
// cache. When probes do not compile they are dropped, and it is built once more
// from the instrumentation that it returns. Units are built side by side: m.mu is
// not held.
func (m *module) build(ctx context.Context, d *Driver, w lang.Workspace, tc *toolchain, p *probed, u lang.Unit) (binary, *probed, error) {
	bin, out, err := m.compile(ctx, d, w, tc, u, p.answer.Env, p.overlay)
	if err == nil {
		return bin, p, nil
	}
	drop, derr := p.broken(w, m.project, out)
	if derr != nil || len(drop) == 0 {
		return binary{}, nil, err
	}
	if p, err = m.without(ctx, d, w, p, drop); err != nil {
		return binary{}, nil, err
	}
	bin, _, err = m.compile(ctx, d, w, tc, u, p.answer.Env, p.overlay)
	return bin, p, err
}

// compile runs go test -c with an overlay and what the loader adds to the
// environment. With an error come the words of the compiler. The binary is built where the go command finds its last one, so that
// it links only when something changed, and then kept under its digest: suites
// in use are never overwritten.
func (m *module) compile(ctx context.Context, d *Driver, w lang.Workspace, tc *toolchain, u lang.Unit, more []string, o overlay) (binary, []byte, error) {
	args := []string{"test", "-c", "-vet=off", "-overlay=" + o.file, "-ldflags=-s -w"}
	env := slices.Concat(tc.environ(w), more)
	place := evidence.DigestParts(w.Root, m.project.Dir, u.ID, tc.GOROOT)
	dir := filepath.Join(w.Cache, "go", "unit", place.Hex())
	unlock, err := lock(dir)
	if err != nil {
		return binary{}, nil, err
	}
	defer unlock()
	key := evidence.DigestParts(string(w.Tree), m.project.Dir, u.ID, tc.GOROOT, tc.GOVERSION, string(o.digest), strings.Join(args, " "), strings.Join(env, "\n"))
	note := filepath.Join(dir, key.Hex()+".json")
	if bin, ok := cached(note, key); ok {
		return bin, nil, nil
	}
	target := filepath.Join(dir, "unit.test")
	run, out, err := d.run(ctx, w, tc.spec(w, dir), sandbox.Command{
		Purpose: evidence.PurposeBuild, Snapshot: w.Tree, Root: w.Root, Dir: slashDir(m.project.Dir),
		Argv: append(append([]string{tc.goBin}, args...), "-o", target, u.ID), Env: env, Limits: toolLimits,
	})
	if err != nil {
		return binary{}, nil, fmt.Errorf("build tests of %s: %w", u.ID, err)
	}
	words := slices.Concat(out.Stderr, out.Stdout)
	if rec := run.Record(); rec.Exit.Code != 0 || rec.Exit.Stopped != "" {
		return binary{}, words, stopped(rec, "build tests of "+u.ID, words)
	}
	b, err := os.ReadFile(target)
	if err != nil {
		return binary{}, words, fault.New(fault.Unmeasured, lang.NoTests, "the go command built no test binary of %s", u.ID)
	}
	bin := binary{Artifact: evidence.DigestOf(b), Key: key}
	bin.Path = filepath.Join(dir, bin.Artifact.Hex(), pathBase(u.ID)+".test")
	if err := writeOnce(bin.Path, b); err != nil {
		return binary{}, nil, err
	}
	if err := os.Chmod(bin.Path, 0o755); err != nil {
		return binary{}, nil, fmt.Errorf("test binary: %w", err)
	}
	body, err := json.Marshal(bin)
	if err != nil {
		return binary{}, nil, fmt.Errorf("test binary: %w", err)
	}
	return bin, nil, writeOnce(note, body)
}

// pathBase names the binary as go test does.
func pathBase(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// cached is a binary that was built before from the same inputs; its bytes are
// digested again.
func cached(note string, key evidence.Digest) (binary, bool) {
	var bin binary
	body, err := os.ReadFile(note)
	if err != nil || json.Unmarshal(body, &bin) != nil || bin.Key != key {
		return binary{}, false
	}
	b, err := os.ReadFile(bin.Path)
	if err != nil || evidence.DigestOf(b) != bin.Artifact {
		return binary{}, false
	}
	return bin, true
}

// lock keeps two processes from building in one directory.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("build directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("build directory: %w", err)
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close() // nothing was written
		return nil, fmt.Errorf("lock build directory: %w", err)
	}
	return func() { f.Close() }, nil // closing unlocks; nothing was written
}

// position is where the compiler complains: file.go:12:34: words.
var position = late.Regexp(`(?m)^(?:vet: )?([^\s:][^:\n]*\.go):(\d+)(?::(\d+))?: `)

// broken finds the probes that stand where the compiler complains. A complaint after the end of the original file is about text that was
// appended for result probes; which one cannot be told, so all of that file go.
func (p *probed) broken(w lang.Workspace, project lang.Project, words []byte) ([]evidence.Digest, error) {
	type place struct {
		file string
		line int
	}
	bad, appended := map[place]bool{}, map[string]bool{}
	ends := map[string]int{}
	for _, g := range position().FindAllSubmatch(words, -1) {
		file := string(g[1])
		if !filepath.IsAbs(file) {
			file = filepath.Join(w.Root, filepath.FromSlash(project.Dir), filepath.FromSlash(file))
		}
		rel, err := filepath.Rel(w.Root, file)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		line, err := strconv.Atoi(string(g[2]))
		if err != nil {
			continue
		}
		rel = filepath.ToSlash(rel)
		if _, ok := ends[rel]; !ok {
			b, err := os.ReadFile(file)
			if err != nil {
				continue // a file of ours alone
			}
			ends[rel] = strings.Count(string(b), "\n")
		}
		if line > ends[rel] {
			appended[rel] = true
		}
		bad[place{rel, line}] = true
	}
	var out []evidence.Digest
	for _, pkg := range p.packages {
		sites, err := p.sitesOf(pkg)
		if err != nil {
			return nil, err
		}
		for _, s := range sites {
			if bad[place{s.File, s.Line}] || (appended[s.File] && s.Kind == evidence.ProbeResult) {
				out = append(out, s.Digest())
			}
		}
	}
	return out, nil
}
