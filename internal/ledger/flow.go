package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

// The kinds of entries that the runs of a flow are made of. All are appended with
// [NewDraft]; their bodies begin with a [FlowHead].
const (
	KindFlowOpened       Kind = "flow.opened"
	KindPrincipalAdded   Kind = "principal.added"
	KindPrincipalRevoked Kind = "principal.revoked"
)

// flowKinds lists all kinds of entries of flows.
var flowKinds = []Kind{
	KindFlowOpened, "flow.plan.submitted", "flow.plan.accepted", "flow.taken", "flow.lease.lost", "flow.launched", "flow.launch.ended",
	"flow.submitted", "flow.claim", "flow.gate.probed", "flow.measured", "flow.decided", "flow.withdrawn", "flow.passed", "flow.carried",
	"flow.rebased", "flow.stale", "flow.reopened", "flow.feedback.delivered", "flow.finding.opened", "flow.finding.answered",
	"flow.finding.closed", "flow.waived", "flow.waiver.used", "flow.paused", "flow.resumed", "flow.cancelled", "flow.expired", "flow.capped",
	"flow.delivered", "flow.exported", "flow.attested", "flow.refused", KindPrincipalAdded, KindPrincipalRevoked,
}

// FlowKinds lists the kinds of entries of flows: flow.* belong to a run,
// principal.* to none.
func FlowKinds() []Kind { return slices.Clone(flowKinds) }

const (
	flowPrefix      = "flow."
	principalPrefix = "principal."
	// RunPrefix is what the id of a run begins with; a ULID follows.
	RunPrefix = "run_"
	// maxTask is how many bytes of a task a list shows.
	maxTask = 200
	// maxHead is the most bytes of a text of a head.
	maxHead = 4096
)

// FlowHead is what the body of each entry of a flow begins with. An entry of kind
// principal.* has neither run nor after.
type FlowHead struct {
	Schema  string     `json:"schema"`
	Run     string     `json:"run,omitempty"`     // run_<ULID>
	Stage   string     `json:"stage,omitempty"`   // that the entry is about
	Idem    string     `json:"idem,omitempty"`    // the caller's key: once in a run
	Project string     `json:"project,omitempty"` // flow.opened only
	Task    string     `json:"task,omitempty"`    // flow.opened only
	After   *FlowAfter `json:"after,omitempty"`
}

// FlowAfter is the run as the entry leaves it: what lists show. It is derived by
// whoever appends; [Options.Fold] compares.
type FlowAfter struct {
	Status       string   `json:"status"`
	Reason       string   `json:"reason"`
	CurrentStage string   `json:"current_stage"`
	Needs        []string `json:"needs"`   // principals that it waits for
	Expires      string   `json:"expires"` // RFC 3339; empty: never
	Target       string   `json:"target"`
	Repo         string   `json:"repo"`
}

// FlowRun is a run as its last entry leaves it.
type FlowRun struct {
	ID              string
	Opened, Updated time.Time // of the first and the last entry
	OpenedSeq       int64
	LastSeq         int64
	Project         string
	Task            string // at most 200 bytes of it
	FlowAfter
}

func isFlow(k Kind) bool {
	return strings.HasPrefix(string(k), flowPrefix) || strings.HasPrefix(string(k), principalPrefix)
}

// ValidRun tells whether a text is the full id of a run.
func ValidRun(id string) bool {
	u, ok := strings.CutPrefix(id, RunPrefix)
	_, err := ulid.ParseStrict(u)
	return ok && err == nil && u == strings.ToUpper(u)
}

// check holds that the head is one for the kind.
func (h FlowHead) check(k Kind) error {
	bad := func(what string) error {
		return fault.New(fault.Internal, "internal", "a body of kind %s %s", k, what)
	}
	switch {
	case !slices.Contains(flowKinds, k):
		return bad("is of no kind that a flow has")
	case h.Schema == "":
		return bad("has no schema")
	case strings.HasPrefix(string(k), principalPrefix):
		if h.Run != "" || h.After != nil {
			return bad("belongs to no run")
		}
	case !ValidRun(h.Run):
		return bad("names no run")
	case h.After == nil || h.After.Status == "":
		return bad("does not say how it leaves the run")
	}
	texts := []string{h.Stage, h.Idem, h.Project}
	if a := h.After; a != nil {
		texts = append(append(texts, a.Status, a.Reason, a.CurrentStage, a.Expires, a.Target, a.Repo), a.Needs...)
	}
	for _, s := range append(texts, h.Task) {
		if strings.ContainsRune(s, 0) {
			return fault.New(fault.Usage, "bad_utf8", "%.80q holds a NUL character", s)
		}
	}
	for _, s := range texts {
		if len(s) > maxHead {
			return fault.New(fault.Usage, "too_large", "%.40q… has %d bytes, want at most %d", s, len(s), maxHead)
		}
	}
	return nil
}

// projectFlow folds an entry of a flow into rows.
func projectFlow(e Entry) (store.Rows, error) {
	var rows store.Rows
	h, err := decode[FlowHead](e)
	if err != nil {
		return rows, err
	}
	if err := h.check(e.Kind); err != nil {
		return rows, fault.Wrap(err, fault.Tampered, CodeBroken, "ledger entry %d", e.Seq)
	}
	rows.FlowEntries = []store.FlowEntryRow{{Seq: e.Seq, Run: h.Run, Kind: string(e.Kind), Stage: h.Stage, Idem: h.Idem}}
	if h.Run == "" {
		return rows, nil
	}
	a := h.After
	needs, err := evidence.Canonical(slices.Concat([]string{}, a.Needs))
	if err != nil {
		return rows, err
	}
	r := store.FlowRunRow{
		Run: h.Run, LastSeq: e.Seq, Updated: e.Time.UnixNano(), Repo: a.Repo, Target: a.Target, Status: a.Status, Reason: a.Reason,
		CurrentStage: a.CurrentStage, Needs: string(needs), Expires: a.Expires,
	}
	if e.Kind != KindFlowOpened {
		rows.FlowMoved = []store.FlowRunRow{r}
		return rows, nil
	}
	r.OpenedSeq, r.Opened, r.Project, r.Task = e.Seq, r.Updated, h.Project, cutText(h.Task, maxTask)
	rows.FlowOpened = []store.FlowRunRow{r}
	return rows, nil
}

// cutText is the longest beginning of whole characters in n bytes.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// RunEntries lists all entries of a run of a flow, in order; none when there is
// no such run.
func (l *Ledger) RunEntries(ctx context.Context, run string) (out []Entry, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		out, err = l.RunEntriesIn(ctx, tx, run, 0)
		return err
	})
	return out, err
}

// RunEntriesIn is [Ledger.RunEntries] in a transaction, of the entries after one.
// An entry that is missing, or a row of the run that is not about the last of them,
// is tampered.
func (l *Ledger) RunEntriesIn(ctx context.Context, tx *store.Tx, run string, after int64) ([]Entry, error) {
	var out []Entry
	from := after
	for {
		rows, err := tx.FlowEntries(ctx, run, after, pageSize)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.LeafHash == "" {
				return nil, fault.New(fault.Tampered, CodeBroken, "ledger entry %d is missing; run %s had it", r.Seq, run).Hint("proveto ledger verify")
			}
			e, err := entryOf(r)
			if err != nil {
				return nil, err
			}
			if !isFlow(e.Kind) {
				return nil, differs("entry %d is projected as one of run %s and is %s", e.Seq, run, e.Kind)
			}
			out = append(out, e)
			after = e.Seq
		}
		if len(rows) < pageSize {
			return out, l.lastIs(ctx, tx, run, from, out)
		}
	}
}

// lastIs compares the row of a run with its entries after one: what lists show must
// be what the last entry says.
func (l *Ledger) lastIs(ctx context.Context, tx *store.Tx, run string, from int64, entries []Entry) error {
	if run == "" {
		return nil
	}
	row, err := tx.FlowRun(ctx, run)
	switch {
	case errors.Is(err, store.ErrNoRow) && len(entries) == 0:
		return nil // there is no such run
	case errors.Is(err, store.ErrNoRow):
		return differs("run %s has entries and no row", run)
	case err != nil:
		return err
	case len(entries) == 0:
		if row.LastSeq > from {
			return differs("entry %d of run %s is not projected as one of it", row.LastSeq, run)
		}
		return nil
	}
	last := entries[len(entries)-1]
	if row.LastSeq != last.Seq {
		return differs("the row of run %s ends with entry %d, its entries with %d", run, row.LastSeq, last.Seq)
	}
	h, err := decode[FlowHead](last)
	if err != nil {
		return err
	}
	if a := h.After; a == nil || a.Status != row.Status || a.Reason != row.Reason || a.CurrentStage != row.CurrentStage {
		return differs("the row of run %s says that it is %s, its last entry says otherwise", run, row.Status)
	}
	return nil
}

// Update reads the entries of a run and appends what fn makes of them, in one
// write transaction: of two updates the later one sees what the first appended.
// The head is the one before. Fn may be run again, so it must have no effect but
// on the transaction; with an error, or no drafts, nothing is appended.
func (l *Ledger) Update(ctx context.Context, run string, fn func(tx *store.Tx, head Head, entries []Entry) ([]Draft, error)) (out []Entry, err error) {
	err = l.db.Write(ctx, func(tx *store.Tx) error {
		head, err := l.head(ctx, tx)
		if err != nil {
			return err
		}
		entries, err := l.RunEntriesIn(ctx, tx, run, 0)
		if err != nil {
			return err
		}
		drafts, err := fn(tx, head, entries)
		if err != nil {
			return err
		}
		out, err = l.Append(ctx, tx, drafts...)
		return err
	})
	return out, err
}

// ByIdem finds the entry of a run that was appended under a caller's key; with an
// empty run, the opening of any run under it. False when there is none.
func (l *Ledger) ByIdem(ctx context.Context, tx *store.Tx, run, idem string) (Entry, bool, error) {
	if idem == "" {
		return Entry{}, false, nil
	}
	seq, err := tx.FlowIdemSeq(ctx, run, idem)
	if errors.Is(err, store.ErrNoRow) {
		return Entry{}, false, nil
	}
	if err != nil {
		return Entry{}, false, err
	}
	row, err := tx.Entry(ctx, seq)
	if errors.Is(err, store.ErrNoRow) {
		return Entry{}, false, differs("key %.80q is projected from entry %d, which is not there", idem, seq)
	}
	if err != nil {
		return Entry{}, false, err
	}
	e, err := entryOf(row)
	return e, err == nil, err
}

// RunFilter selects runs. Zero values select all.
type RunFilter struct {
	Status, Project string
	Needs           string    // a principal that the run waits for
	Since           time.Time // moved at or after
	Before          int64     // last entry before this one: where a page before ended
	Limit           int       // at most; 0: all
}

// Runs lists runs of flows, the one that moved last first.
func (l *Ledger) Runs(ctx context.Context, f RunFilter) (out []FlowRun, err error) {
	limit := f.Limit
	if limit <= 0 {
		limit = math.MaxInt
	}
	sf := store.FlowRunFilter{Status: f.Status, Project: f.Project, Before: f.Before, Limit: pageSize}
	if !f.Since.IsZero() {
		sf.Since = f.Since.UnixNano()
	}
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		out = nil
		for sf := sf; ; {
			if f.Needs == "" {
				sf.Limit = min(pageSize, limit-len(out))
			}
			rows, err := tx.FlowRuns(ctx, sf)
			if err != nil {
				return err
			}
			for _, r := range rows {
				run, err := flowRun(r)
				if err != nil {
					return err
				}
				if f.Needs != "" && !slices.Contains(run.Needs, f.Needs) {
					continue
				}
				if out = append(out, run); len(out) == limit {
					return nil
				}
			}
			if len(rows) < sf.Limit {
				return nil
			}
			sf.Before = rows[len(rows)-1].LastSeq
		}
	})
	return out, err
}

func flowRun(r store.FlowRunRow) (FlowRun, error) {
	out := FlowRun{
		ID: r.Run, Opened: time.Unix(0, r.Opened).UTC(), Updated: time.Unix(0, r.Updated).UTC(), OpenedSeq: r.OpenedSeq, LastSeq: r.LastSeq,
		Project: r.Project, Task: r.Task,
		FlowAfter: FlowAfter{Status: r.Status, Reason: r.Reason, CurrentStage: r.CurrentStage, Expires: r.Expires, Target: r.Target, Repo: r.Repo},
	}
	if err := json.Unmarshal([]byte(r.Needs), &out.Needs); err != nil {
		return out, differs("the row of run %s names whom it waits for in no list", r.Run)
	}
	return out, nil
}

// ResolveRun reads what names a run: its full id, the unique end of one (six
// characters or more, with or without run_ in front of a whole ULID), or @latest,
// the run that was opened last, of one repository unless repo is empty. Errors as
// those of [Ledger.Resolve].
func (l *Ledger) ResolveRun(ctx context.Context, id, repo string) (run FlowRun, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		run, err = l.ResolveRunIn(ctx, tx, id, repo)
		return err
	})
	return run, err
}

// ResolveRunIn is [Ledger.ResolveRun] in a transaction.
func (l *Ledger) ResolveRunIn(ctx context.Context, tx *store.Tx, id, repo string) (FlowRun, error) {
	row, err := resolveRun(ctx, tx, id, repo)
	if errors.Is(err, store.ErrNoRow) {
		if ValidRun(id) { // of one that is there but for its row, that is said
			if _, err := l.RunEntriesIn(ctx, tx, id, 0); err != nil {
				return FlowRun{}, err
			}
		}
		return FlowRun{}, fault.New(fault.NotFound, CodeNotFound, "no run %.80s in the ledger", id).Hint("proveto flow list")
	}
	if err != nil {
		return FlowRun{}, err
	}
	return flowRun(row)
}

// Latest is what stands for the run that was opened last.
const Latest = "@latest"

func resolveRun(ctx context.Context, tx *store.Tx, id, repo string) (store.FlowRunRow, error) {
	if id == Latest {
		return tx.LatestFlowRun(ctx, repo)
	}
	if ValidRun(id) {
		return tx.FlowRun(ctx, id)
	}
	if !isULIDEnd(id) {
		return store.FlowRunRow{}, fault.New(fault.Usage, CodeBadID, "%.80q names no run: want run_ and a ULID, the last six characters or more, or %s", id, Latest).Hint("proveto flow list")
	}
	found, err := tx.FlowRunsEnding(ctx, id, maxShown)
	if err != nil {
		return store.FlowRunRow{}, err
	}
	switch len(found) {
	case 0:
		return store.FlowRunRow{}, store.ErrNoRow
	case 1:
		return tx.FlowRun(ctx, found[0])
	}
	f := fault.New(fault.Usage, CodeAmbiguous, "%s may be %d runs or more", id, len(found))
	for _, r := range found {
		f.Hint("%s", r)
	}
	return store.FlowRunRow{}, f
}

// isULIDEnd tells whether a text may be the end of a ULID, or a whole one.
func isULIDEnd(id string) bool {
	return len(id) >= minID && len(id) <= ulid.EncodedSize && strings.Trim(id, ulid.Encoding) == ""
}
