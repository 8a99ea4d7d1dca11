package prove

import (
	"context"
	"errors"
	"sync"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

// plainCheck confirms one certificate a unit on a build into which the probe is
// written plainly, without a switch. If that build disagrees, the switchable
// build shows something else than the source, and nothing of the unit counts. A
// symbol that already runs before the tests is no subject for the comparison: a
// switch goes on when the tests begin, what is written into the source is there
// from the start.
type plainCheck struct {
	once sync.Once
	err  error
}

// confirm returns the certificate, the unit's first one with its plain run.
func (c *plainCheck) confirm(ctx context.Context, u *Unit, p lang.Probe, cert evidence.Certificate, f evidence.Facts, rs evidence.Runs) (evidence.Certificate, error) {
	if u.early[p.Symbol] && !p.AtInit {
		return cert, nil
	}
	c.once.Do(func() {
		var with evidence.Certificate
		if with, c.err = u.onPlain(ctx, p, f, rs); c.err == nil {
			cert = with
		}
	})
	if c.err != nil {
		return evidence.Certificate{}, c.err
	}
	return cert, nil
}

// onPlain derives a certificate with a plain run among its runs.
func (u *Unit) onPlain(ctx context.Context, p lang.Probe, f evidence.Facts, rs evidence.Runs) (evidence.Certificate, error) {
	run, err := u.runPlain(ctx, p, f.Test)
	if err != nil {
		return evidence.Certificate{}, err
	}
	rs.Plain = &run
	return evidence.NewDiscrimination(f, rs)
}

func (u *Unit) runPlain(ctx context.Context, p lang.Probe, test string) (evidence.Run, error) {
	s, err := u.Suite.Plain(ctx, p)
	if err != nil {
		return evidence.Run{}, err
	}
	run, err := s.Run(ctx, lang.Request{Purpose: evidence.PurposePlain, Probe: &p, Tests: []string{test}, Limits: u.limits([]string{test})})
	return run, errors.Join(err, s.Close())
}
