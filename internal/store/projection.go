package store

import (
	"context"
)

// InsertRows writes projections. The first entry of a run, a certificate or a
// probe wins; the last waiver of a probe wins. A run of a flow that moves and was
// not opened is [ErrNoRow].
func (tx *Tx) InsertRows(ctx context.Context, rows Rows) error {
	for _, r := range rows.Runs {
		if err := tx.exec(ctx, "run_insert", r.Digest, r.Seq, r.Purpose, r.Snapshot, r.Started); err != nil {
			return err
		}
	}
	for _, r := range rows.Certificates {
		if err := tx.exec(ctx, "certificate_insert", r.Digest, r.Seq, r.Language, r.Project, r.Unit,
			r.Symbol, r.SymbolDigest, r.Test, r.Snapshot); err != nil {
			return err
		}
	}
	for _, r := range rows.Measurements {
		if err := tx.exec(ctx, "measurement_insert", r.Seq, r.Digest, r.Language, r.Project, r.Symbol,
			r.Inputs, r.Word, r.Reason); err != nil {
			return err
		}
	}
	for _, r := range rows.Probes {
		if err := tx.exec(ctx, "probe_insert", r.Digest, r.Seq, r.Symbol); err != nil {
			return err
		}
	}
	for _, r := range rows.Waivers {
		if err := tx.exec(ctx, "waiver_upsert", r.Probe, r.Seq, r.Reason, r.Until, r.Principal); err != nil {
			return err
		}
	}
	for _, r := range rows.Starts {
		if err := tx.exec(ctx, "start_insert", r.Seq, r.RunKey, r.Invocation, r.Result, r.Tree, r.Repo); err != nil {
			return err
		}
	}
	return tx.insertFlow(ctx, rows)
}

// ClearProjections removes every projection row.
func (tx *Tx) ClearProjections(ctx context.Context) error {
	for _, name := range []string{"runs_clear", "certificates_clear", "measurements_clear", "probes_clear", "waivers_clear", "starts_clear", "flow_entries_clear", "flow_runs_clear"} {
		if err := tx.exec(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// RunSeq is the entry of a run, or [ErrNoRow].
func (tx *Tx) RunSeq(ctx context.Context, digest string) (int64, error) {
	return tx.number(ctx, "run_seq", digest)
}

// CertificateSeq is the entry of a certificate, or [ErrNoRow].
func (tx *Tx) CertificateSeq(ctx context.Context, digest string) (int64, error) {
	return tx.number(ctx, "certificate_seq", digest)
}

// MeasurementSeq is the last entry of a measurement, or [ErrNoRow].
func (tx *Tx) MeasurementSeq(ctx context.Context, digest string) (int64, error) {
	return tx.number(ctx, "measurement_seq", digest)
}

// ProbeSeq is the first entry that cites a probe, or [ErrNoRow].
func (tx *Tx) ProbeSeq(ctx context.Context, digest string) (int64, error) {
	return tx.number(ctx, "probe_seq", digest)
}

// CertificateEntries lists the entries of a project's certificates, oldest first.
func (tx *Tx) CertificateEntries(ctx context.Context, language, project string) ([]EntryRow, error) {
	return many[EntryRow](ctx, tx, "certificates_of_project", language, project)
}

// MeasurementEntries lists the entries of a project's measurements, newest first.
func (tx *Tx) MeasurementEntries(ctx context.Context, language, project string) ([]EntryRow, error) {
	return many[EntryRow](ctx, tx, "measurements_of_project", language, project)
}

// SymbolsSince lists the symbols of which an entry after the given one is a
// certificate or a measurement, in no order.
func (tx *Tx) SymbolsSince(ctx context.Context, after int64) ([]string, error) {
	return tx.texts(ctx, "symbols_since", after)
}

// StartEntries lists the entries of a repository's starts, newest first.
func (tx *Tx) StartEntries(ctx context.Context, repo string) ([]EntryRow, error) {
	return many[EntryRow](ctx, tx, "starts_of_repo", repo)
}

// Runs lists up to limit projected runs after the entry, in order of entries. So
// do the functions that follow.
func (tx *Tx) Runs(ctx context.Context, after int64, limit int) ([]RunRow, error) {
	return many[RunRow](ctx, tx, "runs_page", after, limit)
}

// Certificates lists projected certificates; see [Tx.Runs].
func (tx *Tx) Certificates(ctx context.Context, after int64, limit int) ([]CertificateRow, error) {
	return many[CertificateRow](ctx, tx, "certificates_page", after, limit)
}

// Measurements lists projected measurements; see [Tx.Runs].
func (tx *Tx) Measurements(ctx context.Context, after int64, limit int) ([]MeasurementRow, error) {
	return many[MeasurementRow](ctx, tx, "measurements_page", after, limit)
}

// Probes lists probes after the given one in the order of (seq, digest).
func (tx *Tx) Probes(ctx context.Context, after int64, digest string, limit int) ([]ProbeRow, error) {
	return many[ProbeRow](ctx, tx, "probes_page", after, digest, limit)
}

// Waivers lists the waivers in force or expired; see [Tx.Runs].
func (tx *Tx) Waivers(ctx context.Context, after int64, limit int) ([]WaiverRow, error) {
	return many[WaiverRow](ctx, tx, "waivers_page", after, limit)
}

// Starts lists starts; see [Tx.Runs].
func (tx *Tx) Starts(ctx context.Context, after int64, limit int) ([]StartRow, error) {
	return many[StartRow](ctx, tx, "starts_page", after, limit)
}

// StartOfRepo is the last start of the repository, or [ErrNoRow].
func (tx *Tx) StartOfRepo(ctx context.Context, repo string) (StartRow, error) {
	return one[StartRow](ctx, tx, "start_of_repo", repo)
}

// Found is a digest that an id may mean.
type Found struct{ What, Digest string }

// DigestsBetween lists up to limit digests of each kind with from <= digest < to:
// certificates, runs, measurements, probes. The digits of a digest are 0-9 and
// a-f, which every collation orders alike.
func (tx *Tx) DigestsBetween(ctx context.Context, from, to string, limit int) ([]Found, error) {
	var out []Found
	for _, k := range []struct{ what, name string }{
		{"certificate", "certificates_between"},
		{"run", "runs_between"},
		{"measurement", "measurements_between"},
		{"probe", "probes_between"},
	} {
		ds, err := tx.texts(ctx, k.name, from, to, limit)
		if err != nil {
			return nil, err
		}
		for _, d := range ds {
			out = append(out, Found{k.what, d})
		}
	}
	return out, nil
}

// InvocationsEnding lists up to limit invocations of starts whose id ends so.
func (tx *Tx) InvocationsEnding(ctx context.Context, suffix string, limit int) ([]string, error) {
	return tx.texts(ctx, "invocations_ending", suffix, limit)
}
