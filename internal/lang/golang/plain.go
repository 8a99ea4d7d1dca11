package golang

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang/mutate"
)

// Plain implements [lang.Suite]: the probe is written into the source, and
// nothing else of ours is in the build but the controller in package testing.
func (s *suite) Plain(ctx context.Context, p lang.Probe) (lang.Suite, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	_, site, err := s.m.site(p.Switch)
	if err != nil {
		return nil, err
	}
	if site.Digest() != p.Digest() {
		return nil, fault.New(fault.Internal, "internal", "switch %d is another probe than %q", p.Switch, p.Summary)
	}
	original := filepath.Join(s.w.Root, filepath.FromSlash(site.File))
	src, err := os.ReadFile(original)
	if err != nil {
		return nil, fmt.Errorf("plain probe: %w", err)
	}
	replace := maps.Clone(s.m.testing)
	if err := s.m.controllerFirst(s.w.Cache, replace); err != nil {
		return nil, err
	}
	edited := mutate.Apply(src, site.Plain)
	to := filepath.Join(s.w.Cache, "go", "plain", evidence.DigestOf(edited).Hex()+".go")
	if err := writeOnce(to, edited); err != nil {
		return nil, err
	}
	replace[original] = to
	o, err := writeOverlay(s.w.Cache, replace)
	if err != nil {
		return nil, err
	}
	bin, _, err := s.m.compile(ctx, s.d, s.w, s.unit, o)
	if err != nil {
		return nil, fmt.Errorf("plain probe %q: %w", p.Summary, err)
	}
	plain := newSuite(s.d, s.w, s.m, s.unit, bin)
	plain.plain = &p.Probe
	return plain, nil
}

// controllerFirst makes every package of the module import package testing, as
// the instrumented ones do: otherwise code of the project could run, and read
// the instructions, before the controller.
func (m *module) controllerFirst(cache string, replace map[string]string) error {
	for _, p := range m.packages {
		for path, extra := range p.Extra {
			src, err := os.ReadFile(extra)
			if err != nil {
				return fmt.Errorf("plain probe: %w", err)
			}
			f, err := parser.ParseFile(token.NewFileSet(), extra, src, parser.PackageClauseOnly)
			if err != nil {
				return fmt.Errorf("plain probe: %w", err)
			}
			body := []byte("package " + f.Name.Name + "\n\nimport _ \"testing\"\n")
			to := filepath.Join(cache, "go", "plain", evidence.DigestOf(body).Hex()+".go")
			if err := writeOnce(to, body); err != nil {
				return err
			}
			replace[path] = to
		}
	}
	return nil
}
