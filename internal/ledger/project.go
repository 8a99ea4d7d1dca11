package ledger

import (
	"slices"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

// project folds one entry into rows. It is pure; what happens when a row is
// there already is said at [store.Tx.InsertRows].
func project(e Entry) (store.Rows, error) {
	var rows store.Rows
	if isFlow(e.Kind) {
		return projectFlow(e)
	}
	switch e.Kind {
	case KindRun:
		r, err := decode[struct {
			Purpose, Snapshot string
			Started           time.Time
		}](e)
		if err != nil {
			return rows, err
		}
		rows.Runs = []store.RunRow{{
			Digest: digestOf(e), Seq: e.Seq, Purpose: r.Purpose, Snapshot: r.Snapshot, Started: r.Started.UTC().Format(timeFormat),
		}}
	case KindCertificate:
		c, err := decode[evidence.CertificateRecord](e)
		if err != nil {
			return rows, err
		}
		if g := c.Gate; g != nil {
			// Of no language and no project: a gate vouches for no symbol.
			rows.Certificates = []store.CertificateRow{{
				Digest: digestOf(e), Seq: e.Seq, Unit: g.Gate, Symbol: string(g.Digest), SymbolDigest: string(g.Digest), Test: string(g.Rule), Snapshot: string(c.Snapshot),
			}}
			break
		}
		f := c.Facts
		rows.Certificates = []store.CertificateRow{{
			Digest: digestOf(e), Seq: e.Seq, Language: f.Language, Project: f.Project, Unit: f.Unit, Symbol: f.Symbol,
			SymbolDigest: string(f.SymbolDigest), Test: f.Test, Snapshot: string(c.Snapshot),
		}}
		rows.Probes = probes(e.Seq, f.Probe)
	case KindMeasurement:
		m, err := decode[evidence.MeasurementRecord](e)
		if err != nil {
			return rows, err
		}
		t := m.Target
		rows.Measurements = []store.MeasurementRow{{
			Seq: e.Seq, Digest: digestOf(e), Language: t.Language, Project: t.Project, Symbol: t.Symbol,
			Inputs: string(t.Inputs), Word: string(m.Word), Reason: m.Reason,
		}}
		var ps []evidence.Probe
		for _, tr := range m.Trials {
			ps = append(ps, tr.Probe)
		}
		rows.Probes = probes(e.Seq, ps...)
	case KindWaiver:
		w, err := decode[Waiver](e)
		if err != nil {
			return rows, err
		}
		rows.Waivers = []store.WaiverRow{{
			Probe: string(w.Probe), Seq: e.Seq, Reason: w.Reason, Until: w.Until.UTC().Format(timeFormat), Principal: w.Principal,
		}}
	case KindStart:
		s, err := decode[Start](e)
		if err != nil {
			return rows, err
		}
		rows.Starts = []store.StartRow{{
			Seq: e.Seq, RunKey: string(s.Key), Invocation: s.Invocation, Result: string(s.Result), Tree: string(s.Tree), Repo: s.Repo,
		}}
	}
	return rows, nil
}

func digestOf(e Entry) string { return string(evidence.DigestOf(e.Body)) }

// probes are sorted by digest and without repetitions.
func probes(seq int64, ps ...evidence.Probe) []store.ProbeRow {
	var out []store.ProbeRow
	for _, p := range ps {
		out = append(out, store.ProbeRow{Digest: string(p.Digest()), Seq: seq, Symbol: p.Symbol})
	}
	slices.SortFunc(out, func(a, b store.ProbeRow) int { return strings.Compare(a.Digest, b.Digest) })
	return slices.CompactFunc(out, func(a, b store.ProbeRow) bool { return a.Digest == b.Digest })
}

// cited lists the blobs that an entry needs.
func cited(e Entry) ([]evidence.Digest, error) {
	var ds []evidence.Digest
	switch e.Kind {
	case KindRun:
		r, err := decode[struct {
			Events         evidence.Digest
			Stdout, Stderr evidence.Output
		}](e)
		if err != nil {
			return nil, err
		}
		ds = []evidence.Digest{r.Events, r.Stdout.Digest, r.Stderr.Digest}
	case KindStart:
		s, err := decode[Start](e)
		if err != nil {
			return nil, err
		}
		ds = []evidence.Digest{s.Result}
	}
	return slices.DeleteFunc(ds, func(d evidence.Digest) bool { return d == "" }), nil
}

// storable refuses what one of the databases cannot keep in a text column: only
// hostile input has a NUL in a name.
func storable(rows store.Rows) error {
	var all []string
	for _, r := range rows.Runs {
		all = append(all, r.Purpose, r.Snapshot)
	}
	for _, r := range rows.Certificates {
		all = append(all, r.Language, r.Project, r.Unit, r.Symbol, r.SymbolDigest, r.Test, r.Snapshot)
	}
	for _, r := range rows.Measurements {
		all = append(all, r.Language, r.Project, r.Symbol, r.Inputs, r.Word, r.Reason)
	}
	for _, r := range rows.Probes {
		all = append(all, r.Symbol)
	}
	for _, r := range rows.Waivers {
		all = append(all, r.Reason, r.Principal)
	}
	for _, r := range rows.Starts {
		all = append(all, r.Repo)
	}
	for _, s := range all {
		if strings.ContainsRune(s, 0) {
			return fault.New(fault.Usage, "bad_utf8", "%.80q holds a NUL character", s)
		}
	}
	return nil
}
