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
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang/mutate"
)

// Plain implements [lang.Suite]: the probe is written into the source, and
// nothing else of ours is in the build but the controller in package testing.
func (s *suite) Plain(ctx context.Context, p lang.Probe) (lang.Suite, error) {
	_, site, err := s.p.site(p)
	if err != nil {
		return nil, err
	}
	original := filepath.Join(s.w.Root, filepath.FromSlash(site.File))
	src, err := os.ReadFile(original)
	if err != nil {
		return nil, fmt.Errorf("plain probe: %w", err)
	}
	replace := maps.Clone(s.p.testing)
	if err := s.p.controllerFirst(s.w.Cache, replace); err != nil {
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
	bin, _, err := s.m.compile(ctx, s.d, s.w, s.tc, s.unit, s.p.answer.Env, o)
	if err != nil {
		return nil, fmt.Errorf("plain probe %q: %w", p.Summary, err)
	}
	plain := newSuite(s.d, s.w, s.m, s.tc, s.p, s.unit, bin)
	plain.plain = &p.Probe
	return plain, nil
}

// controllerFirst makes every package of the module import package testing, as
// the instrumented ones do: otherwise code of the project could run, and read
// the instructions, before the controller.
func (p *probed) controllerFirst(cache string, replace map[string]string) error {
	for _, pkg := range p.packages {
		for path, extra := range pkg.Extra {
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
