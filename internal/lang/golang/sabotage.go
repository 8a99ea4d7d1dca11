package golang

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	modules "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

var (
	_ lang.Toolbox  = (*Driver)(nil)
	_ lang.Saboteur = (*Driver)(nil)
	_ lang.Origins  = (*Driver)(nil)
)

// Tools implements [lang.Toolbox]. The second command compiles every test, too,
// and links and runs none.
func (d *Driver) Tools(ctx context.Context, w lang.Workspace, p lang.Project) (lang.Tools, error) {
	m := d.module(w, p)
	m.mu.Lock()
	defer m.mu.Unlock()
	tc, err := m.tools(ctx, d, w)
	if err != nil {
		return lang.Tools{}, err
	}
	return lang.Tools{
		Spec: tc.spec(w), Env: tc.environ(w),
		Build: [][]string{{tc.goBin, "build", "./..."}, {tc.goBin, "list", "-export", "-test", "-f", "{{.ImportPath}}", "./..."}},
	}, nil
}

// SyntaxError implements [lang.Saboteur].
func (d *Driver) SyntaxError(name string, src []byte) ([]byte, bool) {
	if path.Ext(name) != ".go" {
		return nil, false
	}
	return append(slices.Clone(src), "\n}{ // no compiler accepts this\n"...), true
}

// SkipTest implements [lang.Saboteur].
func (d *Driver) SkipTest(name string, src []byte, test string) ([]byte, bool) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, false
	}
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Name.Name != test || fn.Body == nil || len(fn.Type.Params.List) != 1 {
			continue
		}
		names := fn.Type.Params.List[0].Names
		if len(names) != 1 || names[0].Name == "_" {
			return nil, false
		}
		at := set.Position(fn.Body.Lbrace).Offset + 1
		return slices.Concat(src[:at], []byte("\n\t"+names[0].Name+".SkipNow()\n"), src[at:]), true
	}
	return nil, false
}

// Origins implements [lang.Origins]: required modules with their versions. A
// replacement by a directory, and a vendored copy, count as the version when they
// hold the very files that its sum names or the module cache holds.
func (d *Driver) Origins(w lang.Workspace, p lang.Project) (map[string]string, error) {
	dir := filepath.Join(w.Root, filepath.FromSlash(p.Dir))
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, fault.Wrap(err, fault.Unmeasured, lang.Configuration, "read go.mod of %s", p.Name)
	}
	f, err := modfile.Parse("go.mod", b, nil) // ParseLax leaves out replacements
	if err != nil {
		return nil, fault.Wrap(err, fault.Unmeasured, lang.Configuration, "read go.mod of %s", p.Name)
	}
	sums, err := readSums(filepath.Join(dir, "go.sum"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, r := range f.Require {
		out[r.Mod.Path] = r.Mod.Version
	}
	replaces := f.Replace
	work := filepath.Join(w.Root, "go.work")
	if b, err := os.ReadFile(work); err == nil {
		if f, err := modfile.ParseWork(work, b, nil); err == nil {
			replaces = append(replaces, f.Replace...)
		}
	}
	for _, r := range replaces {
		version, required := out[r.Old.Path]
		if !required || (r.Old.Version != "" && r.Old.Version != version) {
			continue
		}
		if r.New.Version != "" {
			out[r.Old.Path] = r.New.String()
			continue
		}
		at := r.New.Path
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, filepath.FromSlash(at))
		}
		mod := modules.Version{Path: r.Old.Path, Version: version}
		if got, err := dirhash.HashDir(at, mod.String(), dirhash.Hash1); err != nil || sums[mod.String()] == "" || got != sums[mod.String()] {
			out[r.Old.Path] = "directory " + r.New.Path
		}
	}
	for name := range out {
		edited, err := d.vendorDiffers(w, filepath.Join(dir, "vendor"), name, out[name])
		if err != nil {
			return nil, err
		}
		if edited {
			out[name] = "edited copy in vendor/" + name
		}
	}
	return out, nil
}

func readSums(name string) (map[string]string, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unmeasured, lang.Configuration, "read go.sum")
	}
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && !strings.HasSuffix(f[1], "/go.mod") {
			out[f[0]+"@"+f[1]] = f[2]
		}
	}
	return out, nil
}

// vendorDiffers tells whether a file of a vendored module is not as in the module
// cache. What the cache lacks cannot be compared, and counts as the same.
func (d *Driver) vendorDiffers(w lang.Workspace, vendor, name, version string) (bool, error) {
	copied := filepath.Join(vendor, filepath.FromSlash(name))
	if st, err := os.Lstat(copied); err != nil || !st.IsDir() {
		return false, nil //nolint:nilerr // not vendored
	}
	s, err := newSettings(w)
	if err != nil {
		return false, err
	}
	var tc toolchain
	if err := tc.caches(s, w); err != nil {
		return false, err
	}
	escaped, err1 := modules.EscapePath(name)
	at, err2 := modules.EscapeVersion(version)
	if err1 != nil || err2 != nil {
		return false, nil //nolint:nilerr // no version of a module: nothing to compare with
	}
	original := filepath.Join(tc.modCache, filepath.FromSlash(escaped)+"@"+at)
	if _, err := os.Stat(original); err != nil {
		return false, nil //nolint:nilerr // it is not in the cache
	}
	differs := false
	err = filepath.WalkDir(copied, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || differs {
			return err
		}
		rel, err := filepath.Rel(copied, file)
		if err != nil {
			return err
		}
		mine, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		theirs, err := os.ReadFile(filepath.Join(original, rel))
		if errors.Is(err, fs.ErrNotExist) {
			// A module nested in this one by its path is compared by itself.
			_, nested := nestedModule(tc.modCache, name, filepath.ToSlash(filepath.Dir(rel)))
			differs = !nested
			return nil
		}
		differs = err == nil && string(mine) != string(theirs)
		return err
	})
	if err != nil {
		return false, fault.Wrap(err, fault.Unmeasured, lang.Configuration, "compare vendor/%s", name)
	}
	return differs, nil
}

// nestedModule finds a module in the cache whose path goes on below another's.
func nestedModule(cache, name, dir string) (string, bool) {
	for ; dir != "."; dir = path.Dir(dir) {
		escaped, err := modules.EscapePath(name + "/" + dir)
		if err != nil {
			return "", false
		}
		if found, err := filepath.Glob(filepath.Join(cache, filepath.FromSlash(escaped)+"@*")); err == nil && len(found) > 0 {
			return name + "/" + dir, true
		}
	}
	return "", false
}
