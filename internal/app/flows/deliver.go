package flows

import (
	"context"
	"fmt"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/snapshot"
	"github.com/proveto/proveto/internal/view"
)

// DeliverOptions say where the approved tree goes.
type DeliverOptions struct {
	Request
	Branch   string // new branch; empty with Onto empty: proveto/<slug>-<end of the run's id>
	Onto     string // existing branch
	Strategy string // merge or squash
	DryRun   bool
}

// The codes of a delivery that is not what was approved.
const (
	CodeTreeMismatch     fault.Code = "tree_mismatch"
	CodeMergeConflict    fault.Code = "merge_conflict"
	CodeAlreadyDelivered fault.Code = "already_delivered"
)

// Deliver puts the approved tree on a ref as one commit: exactly the tree that
// the reviewer's preview had. When target or work moved since, the reviewer's
// pass is stale and nothing is written.
func (f *Flows) Deliver(ctx context.Context, o DeliverOptions) (*view.FlowAdvance, error) {
	k, err := f.load(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	if k.Delivered != nil {
		v := f.answer(done{known: k}, "")
		v.Replayed = true
		v.Text = fmt.Sprintf("run %s is delivered already: %.12s on %s", k.ID, k.Delivered.Commit, k.Delivered.Ref)
		return v, nil
	}
	if k, err = f.takeBack(ctx, k); err != nil {
		return nil, err
	}
	ev, _, err := f.event(ctx, k, o.Request, "")
	if err != nil {
		return nil, f.refused(ctx, o.Request, k, flow.Event{Do: flow.Deliver{}}, err)
	}
	snaps, repo, err := f.repoOf(ctx, k)
	if err != nil {
		return nil, err
	}
	// The rules are asked before anything is written.
	ev.Do = flow.Deliver{}
	if _, _, ferr := flow.Next(k.Run, ev); ferr != nil {
		return nil, f.refused(ctx, o.Request, k, ev, ferr)
	}
	merge, err := f.preview(ctx, o.Request, k, snaps, repo)
	if err != nil {
		return nil, err
	}
	d, err := f.delivery(ctx, o, k, snaps, repo, merge)
	if err != nil {
		return nil, err
	}
	if o.DryRun {
		v := f.answer(done{known: k}, "")
		v.Text = fmt.Sprintf("would put tree %.12s on %s, after %.12s", d.Tree, d.Ref, orText(d.Old, "nothing"))
		return v, nil
	}
	out, err := snaps.Deliver(ctx, repo, d)
	if err != nil {
		return nil, f.refused(ctx, o.Request, k, ev, err)
	}
	old := out.Old
	if old == "" {
		old = strings.Repeat("0", len(out.Commit))
	}
	ev.Do = flow.Deliver{Delivered: flow.Delivered{Commit: out.Commit, Tree: out.Tree, Ref: out.Ref, Old: old, Revert: out.Revert}}
	done, err := f.change(ctx, o.Request, k, func(known) (flow.Event, error) { return ev, nil })
	if err != nil {
		return nil, err
	}
	v := f.answer(done, "")
	v.Text = fmt.Sprintf("run %s is delivered: commit %.12s on %s; while it stands there, %s takes it back", k.ID, out.Commit, out.Ref, strings.Join(out.Revert, " "))
	return v, nil
}

// preview merges the work with the target again. A tree that is not the one that
// was approved makes the reviewer's pass stale.
func (f *Flows) preview(ctx context.Context, q Request, k known, snaps *snapshot.Store, repo snapshot.Repo) (snapshot.Merge, error) {
	work := k.Work()
	if work.Tree == "" {
		return snapshot.Merge{}, fault.New(fault.Refused, flow.CodeNothingSubmitted, "run %s holds no snapshot: there is nothing to deliver", k.ID).
			Hint("proveto flow report %s", k.ID)
	}
	m, err := f.merged(ctx, k, snaps, repo, work.Tree)
	if err != nil {
		return m, err
	}
	approved := k.Approved()
	if approved == "" { // without a merge gate the work itself was judged, and nothing else
		approved = work.Tree
	}
	if len(m.Conflicts) == 0 && m.Tree == approved {
		return m, nil
	}
	reviewer := k.StageOf(policy.Reviewer)
	why := fmt.Sprintf("the target moved: the merged tree is %.12s, and %.12s was approved", orText(string(m.Tree), "in conflict"), approved)
	if reviewer != "" {
		if _, err := f.change(ctx, q, k, func(known) (flow.Event, error) {
			digests, err := f.gateDigests(k.Policy)
			return flow.Event{Now: f.app.Now(), Actor: flow.Engine(), Gates: digests, Do: flow.Invalidate{Stage: reviewer, Because: why}}, err
		}); err != nil {
			return m, err
		}
	}
	if len(m.Conflicts) > 0 {
		var paths []string
		for _, c := range m.Conflicts {
			paths = append(paths, c.Path)
		}
		return m, fault.New(fault.Negative, CodeMergeConflict, "the work of run %s conflicts with %s in %s", k.ID, f.targetOf(k), flow.Some(paths)).
			Hint("proveto flow rebase %s", k.ID)
	}
	return m, fault.New(fault.Refused, CodeTreeMismatch, "%s; stage %s has to look again", why, reviewer).
		Hint("proveto flow measure %s", k.ID).Hint("proveto flow rebase %s", k.ID)
}

// merged is the work together with the target as it is now.
func (f *Flows) merged(ctx context.Context, k known, snaps *snapshot.Store, repo snapshot.Repo, tree evidence.Tree) (snapshot.Merge, error) {
	target, err := snaps.Resolve(ctx, repo, f.targetOf(k))
	if err != nil {
		return snapshot.Merge{}, err
	}
	return snaps.MergePreview(ctx, repo, target.Commit, k.Base.Commit, tree)
}

// targetOf is the ref that the work is for, or the base where it is for none.
func (f *Flows) targetOf(k known) string {
	if k.Target != "" {
		return k.Target
	}
	return k.Base.Commit
}

// delivery is the commit to write.
func (f *Flows) delivery(ctx context.Context, o DeliverOptions, k known, snaps *snapshot.Store, repo snapshot.Repo, m snapshot.Merge) (snapshot.Delivery, error) {
	d := snapshot.Delivery{Tree: m.Tree, Time: k.Run.Last}
	who, err := snaps.Identity(ctx, repo)
	if err != nil {
		return d, err
	}
	d.By = who.Person
	target, err := snaps.Resolve(ctx, repo, f.targetOf(k))
	if err != nil {
		return d, err
	}
	d.Parents = []string{target.Commit}
	switch {
	case o.Branch != "" && o.Onto != "":
		return d, fault.New(fault.Usage, "usage", "--branch makes a branch, --onto moves one: give one of them")
	case o.Onto != "":
		p, err := snaps.Resolve(ctx, repo, o.Onto)
		if err != nil {
			return d, err
		}
		if d.Ref, d.Old = p.Ref, p.Commit; p.Ref == "" {
			return d, fault.New(fault.Usage, "usage", "--onto %.80q is a commit, not a branch", o.Onto).Hint("git branch --list")
		}
		if p.Commit != target.Commit {
			return d, fault.New(fault.Refused, CodeTreeMismatch, "%s is at %.12s, and the approved tree was merged with %s at %.12s", p.Ref, p.Commit, f.targetOf(k), target.Commit).
				Hint("proveto flow deliver %s", k.ID)
		}
	case o.Branch != "":
		d.Ref = "refs/heads/" + strings.TrimPrefix(o.Branch, "refs/heads/")
	default:
		d.Ref = fmt.Sprintf("refs/heads/proveto/%s-%s", slug(k.Task), strings.ToLower(k.ID[len(k.ID)-6:]))
	}
	if o.Strategy == "merge" {
		d.Parents = append(d.Parents, k.Work().Commit)
	}
	d.Message = fmt.Sprintf("%s\n\nProveto-Run: %s\nProveto-Plan: %s\nProveto-Tree: %s\nProveto-Head: %d:%s\n",
		subject(k.Task), k.ID, k.planID(), m.Tree, k.head.Seq, k.head.Root)
	return d, nil
}

func (k known) planID() string {
	if k.Plan == nil {
		return "none"
	}
	return k.Plan.ID
}

// slug is the beginning of a task as a branch may be named.
func slug(task string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(task) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 32 {
			break
		}
	}
	return orText(strings.Trim(b.String(), "-"), "task")
}

// subject is the first line of a commit's message.
func subject(task string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(task), "\n")
	line = strings.Join(strings.FieldsFunc(line, func(c rune) bool { return c < ' ' || c == 0x7f }), " ")
	if r := []rune(line); len(r) > 72 {
		line = string(r[:71]) + "…"
	}
	return orText(line, "Deliver a run")
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// ExportOptions say where a snapshot goes.
type ExportOptions struct {
	Request
	Branch     string
	Unapproved bool
	DryRun     bool
}

// Export puts the snapshot of a run on a new branch, without credit.
func (f *Flows) Export(ctx context.Context, o ExportOptions) (*view.FlowAdvance, error) {
	k, err := f.load(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	if st := k.StatusAt(f.app.Now()); st.Word != flow.StatusApproved && st.Word != flow.StatusDelivered && !o.Unapproved {
		return nil, fault.New(fault.Refused, flow.CodeOutOfOrder, "run %s is %s: its snapshot leaves only as unapproved", k.ID, st.Word).
			Hint("proveto flow status %s", k.ID).Hint("proveto flow export %s --branch NAME --unapproved", k.ID)
	}
	work := k.Work()
	if work.Tree == "" {
		return nil, fault.New(fault.Refused, flow.CodeNothingSubmitted, "run %s holds no snapshot", k.ID).Hint("proveto flow status %s", k.ID)
	}
	snaps, repo, err := f.repoOf(ctx, k)
	if err != nil {
		return nil, err
	}
	who, err := snaps.Identity(ctx, repo)
	if err != nil {
		return nil, err
	}
	d := snapshot.Delivery{
		Ref: "refs/heads/" + strings.TrimPrefix(o.Branch, "refs/heads/"), Tree: work.Tree, Parents: []string{k.Base.Commit}, By: who.Person, Time: k.Run.Last,
		Message: fmt.Sprintf("%s\n\nThis snapshot was not approved: nothing about it is credited.\n\nProveto-Run: %s\nProveto-Tree: %s\nProveto-Unapproved: true\n", subject(k.Task), k.ID, work.Tree),
	}
	if o.DryRun {
		v := f.answer(done{known: k}, "")
		v.Text = fmt.Sprintf("would put tree %.12s on %s, without credit", d.Tree, d.Ref)
		return v, nil
	}
	out, err := snaps.Deliver(ctx, repo, d)
	if err != nil {
		return nil, err
	}
	done, err := f.change(ctx, o.Request, k, func(k known) (flow.Event, error) {
		ev, _, err := f.event(ctx, k, o.Request, "")
		ev.Do = flow.Export{Exported: flow.Exported{Commit: out.Commit, Tree: out.Tree, Ref: out.Ref, Unapproved: o.Unapproved}}
		return ev, err
	})
	if err != nil {
		return nil, err
	}
	v := f.answer(done, "")
	v.Text = fmt.Sprintf("the snapshot of run %s is on %s, commit %.12s, without credit", k.ID, out.Ref, out.Commit)
	return v, nil
}

// RebaseOptions say what a run stands on next.
type RebaseOptions struct {
	Request
	Base string // rev; empty: the target
	Note string
}

// Rebase pins another base, with its policy and its principals, and replays the
// work on it.
func (f *Flows) Rebase(ctx context.Context, o RebaseOptions) (*view.FlowAdvance, error) {
	k, err := f.load(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	if k.Repo == "" {
		return nil, fault.New(fault.Refused, "base_unresolved", "run %s stands in no repository", k.ID).Hint("proveto flow status %s", k.ID)
	}
	base := o.Base
	if base == "" {
		base = f.targetOf(k)
	}
	g, err := f.ground(ctx, k.Policy.Name, base, k.Target)
	if err != nil {
		return nil, err
	}
	if g.repo.ID != k.Repo {
		return nil, fault.New(fault.Refused, "base_unresolved", "run %s is about another repository than %s", k.ID, g.repo.Root).Hint("proveto -C DIR flow rebase %s", k.ID)
	}
	pinned, err := g.opened(f.app.Now())
	if err != nil {
		return nil, err
	}
	act := flow.Rebase{Rebased: flow.Rebased{
		Base: pinned.Base, PolicyDigest: pinned.PolicyDigest, PolicyBody: pinned.PolicyBody, Roster: pinned.Roster, RosterDigest: pinned.RosterDigest,
		Enforced: pinned.Enforced, Holders: pinned.Holders,
	}, Note: o.Note}
	if g.base.Tree == k.Base.Tree && g.base.Commit == k.Base.Commit {
		v := f.answer(done{known: k}, "")
		v.Text = fmt.Sprintf("run %s stands on %.12s already", k.ID, k.Base.Commit)
		return v, nil
	}
	if work := k.Work(); work.Tree != "" {
		if err := f.replayed(ctx, k, g, work, &act); err != nil {
			return nil, err
		}
	}
	d, err := f.change(ctx, o.Request, k, func(k known) (flow.Event, error) {
		ev, _, err := f.event(ctx, k, o.Request, "")
		ev.Do, ev.Gates = act, g.gates
		return ev, err
	})
	if err != nil {
		return nil, err
	}
	v, err := f.measured(ctx, d, "", false)
	if v != nil {
		v.Text = fmt.Sprintf("run %s stands on %.12s now; it is %s, current stage %s", k.ID, g.base.Commit, v.RunStatus, v.CurrentStage)
	}
	return v, err
}

// replayed puts the work on the new base, or says where it conflicts.
func (f *Flows) replayed(ctx context.Context, k known, g ground, work flow.Subject, act *flow.Rebase) error {
	snaps, err := f.app.Snapshots(ctx)
	if err != nil {
		return err
	}
	m, err := snaps.Replay(ctx, g.repo, k.Base.Tree, g.base.Tree, work.Tree)
	if err != nil {
		return err
	}
	for _, c := range m.Conflicts {
		act.Conflicts = append(act.Conflicts, c.Path)
	}
	if len(m.Conflicts) > 0 {
		return nil
	}
	kept, err := snaps.Keep(ctx, g.repo, m.Tree, snapshot.Keep{
		Run: k.ID, N: int(k.Seq) + 1, Parents: []string{g.base.Commit}, Message: "snapshot of run " + k.ID + ", rebased\n", Time: f.app.Now(),
	})
	if err != nil {
		return err
	}
	deltas, err := snaps.Deltas(ctx, g.repo, g.base.Tree, m.Tree)
	if err != nil {
		return err
	}
	diff, err := diffDigest(deltas)
	act.Subject = &flow.Subject{Plan: work.Plan, Tree: m.Tree, Commit: kept.Commit, Ref: kept.Ref, Diff: diff}
	return err
}
