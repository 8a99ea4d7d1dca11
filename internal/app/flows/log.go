package flows

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/view"
)

// Log lists what happened to a run, oldest first.
func (f *Flows) Log(ctx context.Context, ref string, from int64) (*view.FlowLog, error) {
	var out *view.FlowLog
	id, err := f.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	err = f.app.Read(ctx, func(led *ledger.Ledger, tx *store.Tx) error {
		out = &view.FlowLog{Run: id, Entries: []view.FlowLogLine{}}
		entries, err := led.RunEntriesIn(ctx, tx, id, from)
		if err != nil {
			return err
		}
		for _, e := range entries {
			line, err := logLine(e)
			if err != nil {
				return err
			}
			out.Entries = append(out.Entries, line)
		}
		return nil
	})
	return out, err
}

func logLine(e ledger.Entry) (view.FlowLogLine, error) {
	var b struct {
		Stage     string     `json:"stage"`
		Attempt   int        `json:"attempt"`
		Actor     flow.Actor `json:"actor"`
		Decision  string     `json:"decision"`
		Note      string     `json:"note"`
		Text      string     `json:"text"`
		Token     string     `json:"token"`
		Unplanned bool       `json:"unplanned"`
		Code      string     `json:"code"`
		What      string     `json:"what"`
		Verb      string     `json:"verb"`
		Task      string     `json:"task"`
		Gate      string     `json:"gate"`
		Why       string     `json:"why"`
		Because   string     `json:"because"`
		Reason    string     `json:"reason"`
		Ref       string     `json:"ref"`
		By        string     `json:"by"`
		Plan      string     `json:"plan"`
		Evidence  struct {
			Outcome string `json:"outcome"`
			Reason  string `json:"reason"`
		} `json:"evidence"`
		Finding json.RawMessage `json:"finding"`
		Refused *bool           `json:"refused"`
	}
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return view.FlowLogLine{}, fault.Wrap(err, fault.Tampered, "ledger_broken", "ledger entry %d is no %s", e.Seq, e.Kind)
	}
	v := view.FlowLogLine{
		Seq: e.Seq, Time: e.Time, Kind: string(e.Kind), Stage: b.Stage, Attempt: b.Attempt, Principal: b.Actor.Principal, Key: b.Actor.Key,
		Launch: b.Actor.Launch, Decision: b.Decision, Note: b.Note + b.Text, Token: b.Token, Unplanned: b.Unplanned, Code: b.Code,
	}
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(strings.TrimPrefix(v.Kind, "flow."))
	add(b.Stage)
	add(strings.TrimSpace(b.Gate + " " + b.Evidence.Outcome))
	add(strings.ReplaceAll(b.Decision, "_", " "))
	if b.Refused != nil {
		add(map[bool]string{true: "refused its probe", false: "accepted its probe"}[*b.Refused])
	}
	var x flow.Finding
	if json.Unmarshal(b.Finding, &x) == nil && x.ID != "" {
		add(x.ID + " " + x.Message)
	} else {
		add(strings.Trim(string(b.Finding), `"`))
	}
	add(b.Ref)
	for _, s := range []string{b.Code, b.What, b.Why, b.Because, b.Reason, b.Evidence.Reason} {
		add(s)
	}
	v.Summary = strings.Join(parts, ": ")
	return v, nil
}

// ListOptions select runs.
type ListOptions struct {
	Status  string
	Needs   string // principal, or "me"
	Project string
	Since   time.Time
	Limit   int
	Before  int64 // entry: where a list before ended
}

// List lists runs, newest first.
func (f *Flows) List(ctx context.Context, o ListOptions) (*view.FlowList, error) {
	if o.Status != "" && !isStatus(o.Status) {
		return nil, fault.New(fault.Usage, "usage", "no run has status %.40q: want %s", o.Status, strings.Join(Statuses(), ", ")).Hint("proveto flow list")
	}
	if o.Needs == "me" {
		who, err := f.me(ctx)
		if err != nil {
			return nil, err
		}
		o.Needs = who
	}
	out := &view.FlowList{Runs: []view.FlowListed{}}
	led, err := f.app.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	limit := max(1, o.Limit)
	rows, err := led.Runs(ctx, ledger.RunFilter{Status: o.Status, Project: o.Project, Needs: o.Needs, Since: o.Since, Before: o.Before, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Next = rows[limit-1].LastSeq
		f.app.Warn("cut", fmt.Sprintf("%d runs shown; proveto flow list --before %d goes on from there", limit, out.Next))
	}
	now := f.app.Now()
	for _, r := range rows {
		x := view.FlowListed{
			ID: r.ID, Project: r.Project, Task: r.Task, Status: r.Status, Reason: r.Reason, CurrentStage: r.CurrentStage, Needs: r.Needs,
			Updated: r.Updated, Seq: r.LastSeq,
		}
		// Time alone can end a run; nobody writes that down.
		if t, err := time.Parse(time.RFC3339Nano, r.Expires); err == nil && !now.Before(t) && !flow.Status(r.Status).Closed() {
			x.Status, x.Reason, x.Needs = string(flow.StatusExpired), "", []string{}
		}
		out.Runs = append(out.Runs, x)
	}
	return out, nil
}

// Statuses lists the statuses of runs.
func Statuses() []string {
	var out []string
	for _, s := range flow.Statuses() {
		out = append(out, string(s))
	}
	return out
}

func isStatus(s string) bool {
	for _, x := range Statuses() {
		if x == s {
			return true
		}
	}
	return false
}
