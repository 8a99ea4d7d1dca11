package store

import (
	"context"
	"math"
)

func (tx *Tx) insertFlow(ctx context.Context, rows Rows) error {
	for _, r := range rows.FlowEntries {
		if err := tx.exec(ctx, "flow_entry_insert", r.Seq, r.Run, r.Kind, r.Stage, r.Idem); err != nil {
			return err
		}
	}
	for _, r := range rows.FlowOpened {
		if err := tx.exec(ctx, "flow_run_insert", r.Run, r.OpenedSeq, r.LastSeq, r.Opened, r.Updated, r.Project, r.Repo,
			r.Target, r.Status, r.Reason, r.CurrentStage, r.Needs, r.Expires, r.Task); err != nil {
			return err
		}
	}
	for _, r := range rows.FlowMoved {
		if err := tx.execOne(ctx, "flow_run_update", r.Run, r.LastSeq, r.Updated, r.Repo, r.Target, r.Status, r.Reason,
			r.CurrentStage, r.Needs, r.Expires); err != nil {
			return err
		}
	}
	return nil
}

// FlowEntries lists up to limit entries of a run after the given one, in order; one
// that is projected and not there has its number only.
// The empty run has the entries of principals.
func (tx *Tx) FlowEntries(ctx context.Context, run string, after int64, limit int) ([]EntryRow, error) {
	return many[EntryRow](ctx, tx, "flow_entries_of_run", run, after, limit)
}

// FlowEntryRows lists projected entries of flows; see [Tx.Runs].
func (tx *Tx) FlowEntryRows(ctx context.Context, after int64, limit int) ([]FlowEntryRow, error) {
	return many[FlowEntryRow](ctx, tx, "flow_entries_page", after, limit)
}

// FlowIdemSeq is the entry of a run that was written under a caller's key, or
// [ErrNoRow]. With an empty run it is the opening of any run under the key.
func (tx *Tx) FlowIdemSeq(ctx context.Context, run, idem string) (int64, error) {
	if run == "" {
		return tx.number(ctx, "flow_opened_by_idem", idem)
	}
	return tx.number(ctx, "flow_entry_by_idem", idem, run)
}

// FlowRun is the row of a run, or [ErrNoRow].
func (tx *Tx) FlowRun(ctx context.Context, run string) (FlowRunRow, error) {
	return one[FlowRunRow](ctx, tx, "flow_run", run)
}

// LatestFlowRun is the run that was opened last, of one repository unless repo is
// empty; or [ErrNoRow].
func (tx *Tx) LatestFlowRun(ctx context.Context, repo string) (FlowRunRow, error) {
	if repo == "" {
		return one[FlowRunRow](ctx, tx, "flow_run_latest")
	}
	return one[FlowRunRow](ctx, tx, "flow_run_latest_of_repo", repo)
}

// FlowRunFilter selects runs. Zero values select all.
type FlowRunFilter struct {
	Status, Project string
	Since           int64 // moved at or after: nanoseconds since 1970
	Before          int64 // last entry before this one; 0: from the newest
	Limit           int   // at most
}

// FlowRuns lists runs, the one that moved last first.
func (tx *Tx) FlowRuns(ctx context.Context, f FlowRunFilter) ([]FlowRunRow, error) {
	if f.Before == 0 {
		f.Before = math.MaxInt64
	}
	name, args := "flow_runs_page", []any{f.Since, f.Before, f.Limit}
	switch {
	case f.Status != "" && f.Project != "":
		name, args = name+"_of_status_and_project", append(args, f.Status, f.Project)
	case f.Status != "":
		name, args = name+"_of_status", append(args, f.Status)
	case f.Project != "":
		name, args = name+"_of_project", append(args, f.Project)
	}
	return many[FlowRunRow](ctx, tx, name, args...)
}

// FlowRunsEnding lists up to limit runs whose id ends so.
func (tx *Tx) FlowRunsEnding(ctx context.Context, suffix string, limit int) ([]string, error) {
	return tx.texts(ctx, "flow_runs_ending", suffix, limit)
}
