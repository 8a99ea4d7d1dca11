package source

import (
	"encoding/json"
	"errors"
	"go/scanner"
	"os"
	"path/filepath"
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang/golang/mutate"
)

// entry is one package in the cache.
type entry struct {
	Facts   *facts
	Package *instrumented `json:",omitempty"`

	reused bool
}

// instrumented is a package's part of the answer with names relative to the
// checkout (originals) and to the out directory.
type instrumented struct {
	Path        string
	Unit        string
	Files       map[string]string
	Extra       map[string]string
	Symbols     []string
	SitesFile   string
	SitesDigest evidence.Digest
	Sites       []evidence.Digest // of the probes, to know which drops concern the package
	Skipped     []mutate.Skip
}

func (e *entry) answer(m *module) Package {
	p := e.Package
	out := Package{
		Path: p.Path, Unit: p.Unit, Files: map[string]string{}, Extra: map[string]string{}, Symbols: p.Symbols,
		SitesFile: filepath.Join(m.req.Out, filepath.FromSlash(p.SitesFile)), SitesDigest: p.SitesDigest, Skipped: p.Skipped,
	}
	for from, to := range map[*map[string]string]map[string]string{&out.Files: p.Files, &out.Extra: p.Extra} {
		for k, v := range to {
			(*from)[filepath.Join(m.req.Root, filepath.FromSlash(k))] = filepath.Join(m.req.Out, filepath.FromSlash(v))
		}
	}
	return out
}

func (m *module) cacheName(key evidence.Digest) string {
	return filepath.Join(m.req.Out, "packages", key.Hex()+".json")
}

// cached is the entry of a key; nil when there is none or when it is damaged:
// then the package is read again.
func (m *module) cached(key evidence.Digest) *entry {
	b, err := os.ReadFile(m.cacheName(key))
	if err != nil {
		return nil
	}
	var c struct {
		Digest evidence.Digest
		Entry  json.RawMessage
	}
	if json.Unmarshal(b, &c) != nil || evidence.DigestOf(c.Entry) != c.Digest {
		return nil
	}
	var e entry
	if json.Unmarshal(c.Entry, &e) != nil || e.Facts == nil {
		return nil
	}
	if e.Package != nil {
		for _, name := range m.written(e.Package) {
			if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
				return nil
			}
		}
	}
	return &e
}

func (m *module) written(p *instrumented) []string {
	names := []string{filepath.Join(m.req.Out, filepath.FromSlash(p.SitesFile))}
	for _, files := range []map[string]string{p.Files, p.Extra} {
		for _, to := range files {
			names = append(names, filepath.Join(m.req.Out, filepath.FromSlash(to)))
		}
	}
	return names
}

func (m *module) keep(key evidence.Digest, e *entry) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	b, err := json.Marshal(struct {
		Digest evidence.Digest
		Entry  json.RawMessage
	}{evidence.DigestOf(raw), raw})
	if err != nil {
		return err
	}
	return writeFile(m.cacheName(key), b)
}

// relevantDrops are the sites to leave out that the package has, sorted.
func (m *module) relevantDrops(e *entry) []evidence.Digest {
	if e.Package == nil {
		return nil
	}
	var out []evidence.Digest
	for _, d := range m.req.Drop {
		if slices.Contains(e.Package.Sites, d) {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (m *module) dropsFrom(e *entry) bool { return len(m.relevantDrops(e)) > 0 }

func dropText(ds []evidence.Digest) string {
	parts := make([]string, len(ds))
	for i, d := range ds {
		parts[i] = string(d)
	}
	return string(evidence.DigestParts(parts...))
}

// parseError is the first complaint of the parser.
func parseError(err error) (line int, msg string) {
	var list scanner.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		return list[0].Pos.Line, list[0].Msg
	}
	return 0, err.Error()
}
