package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/proveto/proveto/internal/attest"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/prove"
	"github.com/proveto/proveto/internal/view"
)

// VerifyOptions name what is verified and how.
type VerifyOptions struct {
	Target string // an id, or a file that ledger export wrote
	Rerun  bool
	Times  int
	// VerifierKey is the engine key to trust for an exported file; empty takes the
	// one inside, which says only that the file is whole.
	VerifierKey string
}

// Verify derives a certificate again from its stored runs, or checks an exported
// one; with Rerun it makes every run again. A disagreement of a rerun is an
// entry: the certificate loses its credit.
func (a *App) Verify(ctx context.Context, o VerifyOptions, p Progress) (*view.Verified, error) {
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	if o.VerifierKey != "" {
		if _, _, err := identity.ParseVerifierKey(o.VerifierKey); err != nil {
			return nil, fault.New(fault.Usage, "usage", "--signer %.100q is no engine key: want the verifier_key that the other machine shows", o.VerifierKey).
				Hint("proveto ledger head --json=verifier_key")
		}
	}
	v := &view.Verified{}
	var rec evidence.CertificateRecord
	if raw, rerr := os.ReadFile(a.dir(o.Target)); rerr == nil {
		if !bytes.Contains(raw, []byte(`"payload`)) {
			return nil, fault.New(fault.Usage, "bad_id", "%s is a file, and neither an exported certificate nor an attestation", o.Target).
				Hint("proveto ledger export ID -o FILE").Hint("proveto flow attest RUN -o FILE").Hint("proveto ledger log --kind certificate")
		}
		if attest.Is(raw) {
			return verifyAttestation(ctx, raw, o)
		}
		c, st, err := ledger.OpenExport(ctx, raw, o.VerifierKey)
		if err != nil {
			e := fault.From(err)
			return nil, e.Hint("have it exported again: proveto ledger export ID -o FILE").Hint("proveto ledger log --kind certificate")
		}
		rec = c.Record()
		v.Kind, v.ID, v.Signed, v.Signer = "export", string(c.Digest()), true, st.Predicate.Ledger.VerifierKey
		v.Trusted = o.VerifierKey != ""
		v.Check = "proveto verify " + quoteArg(o.Target) + " --rerun"
		if v.Trusted {
			v.Check += " --signer " + quoteArg(o.VerifierKey)
		}
	} else if o.VerifierKey != "" {
		return nil, fault.New(fault.Usage, "usage", "--signer is for an exported certificate, and there is no file %s", o.Target).Hint("proveto verify FILE --signer KEY")
	} else {
		id, err := led.Resolve(ctx, o.Target)
		if err != nil {
			if errors.Is(rerr, os.ErrNotExist) && fault.Has(err, "bad_id") {
				return nil, fault.New(fault.Usage, "bad_id", "%q is neither an id nor a file", o.Target).Hint("proveto ledger log --kind certificate")
			}
			return nil, err
		}
		switch id.What {
		case string(ledger.KindCertificate):
			c, err := led.Certificate(ctx, id.Digest)
			if err != nil {
				return nil, err
			}
			rec = c.Record()
			if g := rec.Gate; g != nil {
				if o.Rerun {
					return nil, fault.New(fault.Usage, "bad_id", "%s is about a gate; only a certificate of a test can be run again", o.Target).
						Hint("proveto verify %s", quoteArg(o.Target))
				}
				v.Kind, v.ID, v.Sound = evidence.KindGate, id.String(), true
				v.Text = fmt.Sprintf("the stored runs derive this certificate: gate %s accepted tree %.12s and refused a bad one (%s)", g.Gate, rec.Snapshot, g.Sabotage.Summary)
				return v, nil
			}
		case string(ledger.KindMeasurement):
			if o.Rerun {
				return nil, fault.New(fault.Usage, "bad_id", "%s is a measurement; only a certificate can be run again", o.Target).
					Hint("proveto verify %s", quoteArg(o.Target))
			}
			m, err := led.Measurement(ctx, id.Digest)
			if err != nil {
				return nil, err
			}
			v.Kind, v.ID, v.Sound = id.What, id.String(), true
			v.Text = fmt.Sprintf("the stored runs derive this measurement: %s is %s", nameOf(m.Record().Target.Unit, m.Record().Target.Symbol), strings.ReplaceAll(string(m.Record().Word), "_", " "))
			return v, nil
		default:
			return nil, fault.New(fault.Usage, "bad_id", "%s is a %s; verify takes a certificate, a measurement or an exported file", o.Target, id.What).
				Hint("proveto ledger verify checks everything")
		}
		v.Kind, v.ID = id.What, id.String()
		v.Check = "proveto verify " + id.Digest.Short() + " --rerun"
	}
	v.Sound = true
	st := stored{Digest: evidence.Digest(v.ID), Record: rec}
	if v.Kind != "export" {
		if st.Seq, err = led.SeqOf(ctx, ledger.Ref{What: v.Kind, Digest: st.Digest}); err != nil {
			return nil, err
		}
	}
	v.Certificate = certificateView(st, nameOf(rec.Facts.Unit, rec.Facts.Symbol), nil, true)
	v.Text = "the stored runs derive this certificate"
	if v.Kind == "export" {
		v.Text = "the signature is good and the exported runs derive this certificate"
	}
	if !o.Rerun {
		return v, nil
	}
	for range max(1, o.Times) {
		r, err := a.rerun(ctx, rec, p)
		if r != nil {
			v.Reruns = append(v.Reruns, *r)
		}
		if err != nil {
			return v, err
		}
	}
	v.Text += fmt.Sprintf("; %s here agreed", plural(len(v.Reruns), "rerun"))
	return v, nil
}

// rerun makes the runs of a certificate again in a fresh checkout of its tree.
func (a *App) rerun(ctx context.Context, rec evidence.CertificateRecord, p Progress) (*view.Rerun, error) {
	f := rec.Facts
	inv, err := a.invoke(ctx, StartOptions{Limit: -1}, p)
	if err != nil {
		return nil, err
	}
	defer inv.close()
	snaps, err := a.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	if inv.snap.Tree != rec.Snapshot {
		if _, err := snaps.Files(ctx, inv.repo, rec.Snapshot); err != nil {
			return nil, fault.Wrap(err, fault.Unmeasured, "tree_missing", "tree %.12s is not in %s", rec.Snapshot, inv.repo.Root).
				Hint("run it inside a clone that has the commit the certificate is about")
		}
		inv.snap.Tree = rec.Snapshot
	}
	p.Phase("checkout", "")
	if inv.checkout, err = snaps.Checkout(ctx, inv.repo, inv.snap.Tree); err != nil {
		return nil, err
	}
	ready, err := inv.readyUnit(ctx, f)
	if err == nil {
		defer ready.Suite.Close() //nolint:errcheck // the verdict stands; the box ends with the process
		p.Phase("rerun", f.Test)
		var c evidence.Certificate
		if c, err = ready.Reproduce(ctx, f); err == nil {
			if err := inv.commit(ctx, []ledger.Draft{ledger.CertificateDraft(c)}, nil); err != nil {
				return nil, err
			}
			return &view.Rerun{Agrees: true, Code: string(fault.OK), Text: "every run again, the same verdict", ID: string(c.Digest())}, nil
		}
	}
	e := fault.From(err)
	r := &view.Rerun{Code: string(e.Code), Text: e.Error()}
	if !credibleSetup(err) && e.Kind != fault.Negative {
		return r, err
	}
	if !disagrees(e) {
		return r, errors.Join(err, inv.commit(ctx, nil, nil))
	}
	draft, err2 := rerunDraft(digestOf(rec), string(e.Code), e.Error())
	if err2 != nil {
		return r, err2
	}
	if err := inv.commit(ctx, []ledger.Draft{draft}, nil); err != nil {
		return r, err
	}
	return r, fault.Wrap(err, fault.Negative, "rerun_differs", "the rerun does not agree; the certificate has lost its credit").
		Hint("proveto prove %s", quoteArg(f.Symbol))
}

// disagrees tells a verdict against the certificate from a reason for which it
// could not be tried.
func disagrees(e *fault.Error) bool {
	switch e.Code {
	case evidence.CodeSurvived, evidence.CodeKilledByError, evidence.CodeFlaky, evidence.CodeRunnerBlind, evidence.CodeSwitchSensitive,
		evidence.CodeFastLane, evidence.CodeTimeout, evidence.CodeOrderDependent, evidence.CodeEnvSensitive, evidence.CodeTampered:
		return true
	}
	return false
}

func digestOf(rec evidence.CertificateRecord) evidence.Digest {
	b, err := evidence.Canonical(rec)
	if err != nil {
		panic("a stored certificate does not encode: " + err.Error())
	}
	return evidence.DigestOf(b)
}

// readyUnit scans the project of a certificate and prepares its unit.
func (inv *invocation) readyUnit(ctx context.Context, f evidence.Facts) (*prove.Unit, error) {
	for _, d := range inv.app.Drivers {
		if d.Language() != f.Language {
			continue
		}
		found, err := d.Detect(inv.checkout.Dir())
		if err != nil {
			return nil, err
		}
		for _, lp := range found {
			if lp.Dir != f.Project {
				continue
			}
			return inv.readyIn(ctx, d, lp, f.Unit)
		}
	}
	return nil, fault.New(fault.Unmeasured, "not_the_same", "this tree has no %s project in %s", f.Language, f.Project)
}

func (inv *invocation) readyIn(ctx context.Context, d lang.Driver, lp lang.Project, unitID string) (*prove.Unit, error) {
	s, err := d.Scan(ctx, inv.workspace(), lp)
	if err != nil {
		return nil, err
	}
	suite, err := d.Build(ctx, inv.workspace(), s, unitID)
	if err != nil {
		return nil, err
	}
	ready, err := prove.Prepare(ctx, suite, prove.NewToday(s, inv.workspace()), inv.snap.Tree)
	if err != nil {
		return nil, errors.Join(err, suite.Close())
	}
	return ready, nil
}
