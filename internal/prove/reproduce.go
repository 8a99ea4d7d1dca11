package prove

import (
	"context"
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// Reproduce makes every run of a certificate again, here, with the plain build
// always. It returns the certificate that these runs earn. An error with code
// not_the_same means that this tree or this driver does not have what the facts
// name, so that nothing was tried; another [fault.Unmeasured] or
// [fault.Negative] error means that the runs disagree.
func (u *Unit) Reproduce(ctx context.Context, f evidence.Facts) (evidence.Certificate, error) {
	differs := func(format string, args ...any) error {
		return fault.New(fault.Unmeasured, "not_the_same", format, args...)
	}
	s, ok := u.Today.Symbol(f.Symbol)
	switch {
	case !ok:
		return evidence.Certificate{}, differs("this tree has no %s", f.Symbol)
	case s.Digest != f.SymbolDigest:
		return evidence.Certificate{}, differs("%s is not the code that the certificate is about", s.Name)
	case u.Today.Scan.Driver != f.Driver:
		return evidence.Certificate{}, differs("the certificate is by driver %s, this is %s", f.Driver, u.Today.Scan.Driver)
	}
	own, ok := u.Today.TestSymbol(u.ID, f.Test)
	if !ok || own.Digest != f.TestDigest {
		return evidence.Certificate{}, differs("%s is not the test that the certificate is about", f.Test)
	}
	want := f.Probe.Digest()
	for _, p := range u.Suite.Probes(f.Symbol, u.Baselines[:], true) {
		if !slices.Contains(p.Digests(), want) {
			continue
		}
		a := &attempt{unit: u, symbol: s}
		kill, err := u.alone(ctx, f.Test, &p)
		if err != nil {
			return evidence.Certificate{}, err
		}
		return a.convict(ctx, charge{probe: p, test: f.Test, kill: kill})
	}
	return evidence.Certificate{}, differs("the driver makes no probe %s of %s", want.Short(), s.Name)
}
