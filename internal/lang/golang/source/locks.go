package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"

	"github.com/proveto/proveto/internal/evidence"
)

// locks is the digest of everything that fixes the code of other modules: the
// directives of go.mod and go.work without comments and layout, the lines of the
// sum files in any order, vendor/modules.txt, the versions that the go command
// chose, and the files of those imported packages that no version names.
func (m *module) locks() (evidence.Digest, error) {
	parts := []string{"locks/v1"}
	add := func(name string, normal func(string, []byte) string) error {
		b, err := os.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		parts = append(parts, m.rel(name), normal(name, b))
		return nil
	}
	err := errors.Join(
		add(filepath.Join(m.dir, "go.mod"), normalMod),
		add(filepath.Join(m.dir, "go.sum"), normalLines),
		add(filepath.Join(m.dir, "vendor", "modules.txt"), normalLines),
	)
	if work := m.workFile(m.env); work != "" {
		err = errors.Join(err, add(work, normalWork), add(strings.TrimSuffix(work, ".work")+".work.sum", normalLines))
	}
	if err != nil {
		return "", err
	}
	parts = append(parts, m.chosen()...)
	for _, p := range m.unversioned() {
		d, err := m.filesDigest(slices.Concat(p.GoFiles, p.OtherFiles, p.EmbedFiles))
		if err != nil {
			return "", err
		}
		parts = append(parts, p.ID, string(d))
	}
	return evidence.DigestParts(append(parts, m.req.Tags...)...), nil
}

// chosen lists the modules of all imported packages, sorted, each with the
// version that the go command chose and that of its language. In a workspace the
// files of another member decide over both.
func (m *module) chosen() []string {
	var out []string
	for _, p := range m.all {
		if mod := p.Module; mod != nil {
			version := mod.Version
			if r := mod.Replace; r != nil {
				version += " => " + r.Path + " " + r.Version
			}
			out = append(out, mod.Path+" "+version+" go "+mod.GoVersion)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unversioned lists the imported packages of other modules whose contents no
// version fixes, sorted by ID: members of the workspace, replacements by a
// directory, vendored packages.
func (m *module) unversioned() []*packages.Package {
	own := map[string]bool{}
	for _, u := range m.units {
		own[u.path] = true
	}
	var out []*packages.Package
	for _, p := range m.all {
		if own[p.PkgPath] || p.ForTest != "" || isTestMain(p) || p.Dir == "" {
			continue
		}
		below := filepath.IsLocal(filepath.FromSlash(m.rel(p.Dir)))
		if below || p.Module != nil && (p.Module.Main || p.Module.Version == "" || p.Module.Replace != nil && p.Module.Replace.Version == "") {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *packages.Package) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// normalMod keeps what changes a build. A file that does not parse counts as it is.
func normalMod(name string, b []byte) string {
	f, err := modfile.Parse(name, b, nil)
	if err != nil {
		return string(b)
	}
	var out []string
	if f.Module != nil {
		out = append(out, "module "+f.Module.Mod.Path)
	}
	if f.Go != nil {
		out = append(out, "go "+f.Go.Version)
	}
	if f.Toolchain != nil {
		out = append(out, "toolchain "+f.Toolchain.Name)
	}
	for _, g := range f.Godebug {
		out = append(out, "godebug "+g.Key+"="+g.Value)
	}
	for _, r := range f.Require {
		out = append(out, "require "+r.Mod.String())
	}
	for _, r := range f.Exclude {
		out = append(out, "exclude "+r.Mod.String())
	}
	out = append(out, replaceLines(f.Replace)...)
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func normalWork(name string, b []byte) string {
	f, err := modfile.ParseWork(name, b, nil)
	if err != nil {
		return string(b)
	}
	var out []string
	if f.Go != nil {
		out = append(out, "go "+f.Go.Version)
	}
	if f.Toolchain != nil {
		out = append(out, "toolchain "+f.Toolchain.Name)
	}
	for _, g := range f.Godebug {
		out = append(out, "godebug "+g.Key+"="+g.Value)
	}
	for _, u := range f.Use {
		out = append(out, "use "+u.Path)
	}
	out = append(out, replaceLines(f.Replace)...)
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func replaceLines(rs []*modfile.Replace) []string {
	var out []string
	for _, r := range rs {
		out = append(out, "replace "+r.Old.String()+" => "+r.New.String())
	}
	return out
}

func normalLines(_ string, b []byte) string {
	var out []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), "\n")
}

// workFile is the go.work that the go command will use; empty when there is none
// within the checkout.
func (m *module) workFile(env []string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, "GOWORK="); ok && v != "" {
			if v == "off" {
				return ""
			}
			return v
		}
	}
	for dir := m.dir; ; dir = filepath.Dir(dir) {
		name := filepath.Join(dir, "go.work")
		if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
			return name
		}
		if dir == m.req.Root || dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// outsideWorkspace tells whether a go.work applies that does not use the module:
// then the go command would refuse to load it.
func (m *module) outsideWorkspace(env []string) bool {
	work := m.workFile(env)
	if work == "" {
		return false
	}
	b, err := os.ReadFile(work)
	if err != nil {
		return false // the go command will say so
	}
	f, err := modfile.ParseWork(work, b, nil)
	if err != nil {
		return false // likewise
	}
	for _, u := range f.Use {
		p := filepath.FromSlash(u.Path)
		if !filepath.IsAbs(p) {
			p = filepath.Join(filepath.Dir(work), p)
		}
		if filepath.Clean(p) == m.dir {
			return false
		}
	}
	return true
}
