package source

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang/golang/mutate"
)

// instrument writes the instrumented files of a package below the out directory,
// under its key, and records them in its entry.
func (m *module) instrument(r *reader, e *entry, key evidence.Digest) error {
	target := map[string]bool{}
	for _, f := range r.out.Funcs {
		target[f.Symbol.ID] = f.Symbol.Excluded == ""
	}
	drop := map[evidence.Digest]bool{}
	for _, d := range m.req.Drop {
		drop[d] = true
	}
	out, err := mutate.Instrument(mutate.Input{
		Path: r.out.Path, Fset: r.fset, Files: r.files, Sources: r.sources, Types: r.pkg, Info: r.info,
		SymbolFunc: func(d *ast.FuncDecl) string { return r.ids[d] },
		RelFunc:    m.rel,
		TargetFunc: func(d *ast.FuncDecl) bool { return target[r.ids[d]] },
		Drop:       drop,
	})
	if err != nil {
		return fmt.Errorf("instrument: %w", err)
	}
	dir := "overlay/" + key.Hex()
	p := &instrumented{Path: r.out.Path, Unit: r.j.unit.path, Files: map[string]string{}, Extra: map[string]string{}, Symbols: out.Symbols, Skipped: out.Skipped}
	for name, src := range out.Files {
		to := dir + "/" + filepath.Base(name)
		if err := writeFile(filepath.Join(m.req.Out, filepath.FromSlash(to)), src); err != nil {
			return err
		}
		p.Files[m.rel(name)] = to
	}
	if len(out.Extra) > 0 {
		name, err := r.extraName()
		if err != nil {
			return err
		}
		to := dir + "/" + name
		if err := writeFile(filepath.Join(m.req.Out, filepath.FromSlash(to)), out.Extra); err != nil {
			return err
		}
		p.Extra[m.rel(filepath.Join(r.j.unit.dir, name))] = to
	}
	sites := out.Sites
	if sites == nil {
		sites = []mutate.Site{}
	}
	b, err := json.Marshal(sites)
	if err != nil {
		return err
	}
	for _, s := range sites {
		p.Sites = append(p.Sites, s.Probe.Digest())
	}
	p.SitesFile, p.SitesDigest = dir+"/sites.json", evidence.DigestOf(b)
	if err := writeFile(filepath.Join(m.req.Out, filepath.FromSlash(p.SitesFile)), b); err != nil {
		return err
	}
	e.Package = p
	return nil
}

// extraName is a file name that the package does not have, sorted before all
// others like [mutate.ExtraName], and a test file when the package has no other.
func (r *reader) extraName() (string, error) {
	test := true
	for _, f := range r.files {
		test = test && strings.HasSuffix(r.fileName(f), "_test.go")
	}
	name := strings.TrimSuffix(mutate.ExtraName, ".go")
	for ; ; name += "0" {
		full := name + ".go"
		if r.j.xtest {
			full = name + "_x_test.go"
		} else if test {
			full = name + "_in_test.go"
		}
		_, err := os.Lstat(filepath.Join(r.j.unit.dir, full))
		if os.IsNotExist(err) {
			return full, nil
		}
		if err != nil {
			return "", err
		}
	}
}
