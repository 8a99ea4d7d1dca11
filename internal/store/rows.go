package store

// Rows of the tables. Digests are "sha256:…", hashes base64, times RFC 3339 in
// UTC; an absent value is the empty string.
type (
	// EntryRow is one entry of the ledger.
	EntryRow struct {
		Seq                        int64
		Time, Kind, Body, LeafHash string
	}
	// HashRow is one stored hash of the tree.
	HashRow struct {
		Index int64
		Hash  string
	}
	// CheckpointRow is a signed note about the first Size entries.
	CheckpointRow struct {
		Size int64
		Note string
	}
	// RunRow projects a run entry.
	RunRow struct {
		Digest                     string
		Seq                        int64
		Purpose, Snapshot, Started string
	}
	// CertificateRow projects a certificate entry.
	CertificateRow struct {
		Digest                                                        string
		Seq                                                           int64
		Language, Project, Unit, Symbol, SymbolDigest, Test, Snapshot string
	}
	// MeasurementRow projects a measurement entry.
	MeasurementRow struct {
		Seq                                                     int64
		Digest, Language, Project, Symbol, Inputs, Word, Reason string
	}
	// ProbeRow names the first entry that cites a probe.
	ProbeRow struct {
		Digest string
		Seq    int64
		Symbol string
	}
	// WaiverRow is the last waiver of a probe.
	WaiverRow struct {
		Probe                    string
		Seq                      int64
		Reason, Until, Principal string
	}
	// StartRow projects a start entry.
	StartRow struct {
		Seq                                    int64
		RunKey, Invocation, Result, Tree, Repo string
	}
	// FlowEntryRow projects an entry of a flow run, or of a principal (whose run is
	// empty).
	FlowEntryRow struct {
		Seq                    int64
		Run, Kind, Stage, Idem string
	}
	// FlowRunRow is a run of a flow as its last entry leaves it. Times are
	// nanoseconds since 1970, Needs is a JSON list of principals.
	FlowRunRow struct {
		Run                                                                       string
		OpenedSeq, LastSeq                                                        int64
		Opened, Updated                                                           int64
		Project, Repo, Target, Status, Reason, CurrentStage, Needs, Expires, Task string
	}
)

// Rows are the projections of some entries.
type Rows struct {
	Runs         []RunRow
	Certificates []CertificateRow
	Measurements []MeasurementRow
	Probes       []ProbeRow
	Waivers      []WaiverRow
	Starts       []StartRow
	FlowEntries  []FlowEntryRow
	FlowOpened   []FlowRunRow // new runs
	FlowMoved    []FlowRunRow // runs that are there: what was there since the opening is not set
}

func (r *EntryRow) dest() []any      { return []any{&r.Seq, &r.Time, &r.Kind, &r.Body, &r.LeafHash} }
func (r *HashRow) dest() []any       { return []any{&r.Index, &r.Hash} }
func (r *CheckpointRow) dest() []any { return []any{&r.Size, &r.Note} }
func (r *RunRow) dest() []any {
	return []any{&r.Digest, &r.Seq, &r.Purpose, &r.Snapshot, &r.Started}
}

func (r *CertificateRow) dest() []any {
	return []any{&r.Digest, &r.Seq, &r.Language, &r.Project, &r.Unit, &r.Symbol, &r.SymbolDigest, &r.Test, &r.Snapshot}
}

func (r *MeasurementRow) dest() []any {
	return []any{&r.Seq, &r.Digest, &r.Language, &r.Project, &r.Symbol, &r.Inputs, &r.Word, &r.Reason}
}
func (r *ProbeRow) dest() []any { return []any{&r.Digest, &r.Seq, &r.Symbol} }
func (r *WaiverRow) dest() []any {
	return []any{&r.Probe, &r.Seq, &r.Reason, &r.Until, &r.Principal}
}

func (r *StartRow) dest() []any {
	return []any{&r.Seq, &r.RunKey, &r.Invocation, &r.Result, &r.Tree, &r.Repo}
}

func (r *FlowEntryRow) dest() []any { return []any{&r.Seq, &r.Run, &r.Kind, &r.Stage, &r.Idem} }

func (r *FlowRunRow) dest() []any {
	return []any{
		&r.Run, &r.OpenedSeq, &r.LastSeq, &r.Opened, &r.Updated, &r.Project, &r.Repo, &r.Target, &r.Status, &r.Reason,
		&r.CurrentStage, &r.Needs, &r.Expires, &r.Task,
	}
}

// Move is the row after an entry that moved the run: what the opening said stays.
func (r FlowRunRow) Move(to FlowRunRow) FlowRunRow {
	to.OpenedSeq, to.Opened, to.Project, to.Task = r.OpenedSeq, r.Opened, r.Project, r.Task
	return to
}
