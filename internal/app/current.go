package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/view"
)

// silent is a [Progress] that nobody listens to.
type silent struct{}

func (silent) Phase(string, string)                   {}
func (silent) Count(string, int, int, string)         {}
func (silent) Proven(view.Certificate, time.Duration) {}
func (silent) Note(string)                            {}

// current is the evidence of the working copy as it is now; see
// [invocation.standing].
func (a *App) current(ctx context.Context) (*view.Start, view.Subject, error) {
	inv, err := a.invoke(ctx, StartOptions{StaticOnly: true, Limit: -1}, silent{})
	if err != nil {
		return nil, subjectOf(inv), err
	}
	defer inv.close()
	v, err := inv.standing(ctx)
	return v, inv.subject, err
}

// carryReasons keeps what the last start said about symbols without evidence,
// where carryFunc wants it.
func (inv *invocation) carryReasons(carryFunc func(*known) bool) {
	if inv.past.near == nil {
		return
	}
	before := map[string]view.Symbol{}
	for _, s := range inv.past.near.Symbols {
		before[s.ID] = s
	}
	for _, p := range inv.projects {
		for id, k := range p.known {
			if s, ok := before[id]; ok && s.Word == string(evidence.NotMeasured) && k.bare() && carryFunc(k) {
				k.reason, k.detail, k.command = s.Reason, s.Detail, s.Command
			}
		}
	}
}

// bare tells a symbol without any evidence.
func (k *known) bare() bool { return k.live == nil && k.stale == nil && k.measurement == nil }

// latestHere is [App.latest] of the repository where the command works.
func (a *App) latestHere(ctx context.Context) (*savedStart, error) {
	snaps, err := a.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	repo, err := snaps.Locate(ctx, a.dir(""))
	if err != nil {
		return nil, err
	}
	return a.latest(ctx, repo.ID)
}

// latest is the last saved result of a repository, of whatever tree; nil when
// there is none.
func (a *App) latest(ctx context.Context, repo string) (*savedStart, error) {
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	row, err := led.LastStart(ctx, repo)
	if fault.Has(err, ledger.CodeNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return a.loadSaved(row)
}

func (a *App) loadSaved(row ledger.Start) (*savedStart, error) {
	saved, err := a.loadResult(row.Result)
	if err != nil {
		return nil, fmt.Errorf("result of start %s: %w", row.Invocation, err)
	}
	return saved, nil
}

func (a *App) loadResult(d evidence.Digest) (*savedStart, error) {
	raw, err := a.blobs.Get(d)
	if err != nil {
		return nil, err
	}
	saved := &savedStart{Start: &view.Start{}}
	if err := json.Unmarshal(raw, saved); err != nil {
		return nil, fmt.Errorf("saved result %s: %w", d.Short(), err)
	}
	saved.Start.Sources = saved.Sources
	return saved, nil
}

// Why explains one symbol, certificate, mutant or measurement.
func (a *App) Why(ctx context.Context, word string) (*view.Why, view.Subject, error) {
	v, subject, err := a.current(ctx)
	if err != nil {
		return nil, subject, err
	}
	s, err := a.pick(ctx, v, word)
	w := &view.Why{Next: []view.Next{}}
	if fault.Has(err, "not_found") {
		var olderErr error
		if s, w.Certificate, olderErr = a.older(ctx, v, word); s != nil || olderErr != nil {
			err = olderErr
		}
	}
	if err != nil {
		return nil, subject, err
	}
	w.Symbol = *s
	for _, c := range v.Certificates {
		if w.Certificate == nil && c.ID == s.Certificate {
			w.Certificate = &c
		}
	}
	switch {
	case w.Certificate != nil && w.Certificate.Newer != "":
		w.Next = append(w.Next, view.Next{Why: "the newer certificate", Run: "proveto why " + evidence.Digest(w.Certificate.Newer).Short()})
	case w.Certificate != nil && w.Certificate.Live:
		w.Next = append(w.Next, view.Next{Why: "run it again, here or on another machine", Run: "proveto verify " + evidence.Digest(s.Certificate).Short() + " --rerun"})
	default:
		w.Next = append(w.Next, afterwards(v.Symbols, *s)...)
	}
	return w, subject, nil
}

// pick finds the symbol that a word names: a symbol, FILE:LINE, or an id.
func (a *App) pick(ctx context.Context, v *view.Start, word string) (*view.Symbol, error) {
	if file, line, ok := fileLine(word); ok {
		for i, s := range v.Symbols {
			if (s.File == file || strings.HasSuffix(s.File, "/"+file)) && s.Line <= line && line <= s.EndLine {
				return &v.Symbols[i], nil
			}
		}
	}
	var whole, ends []int
	for i, s := range v.Symbols {
		switch {
		case s.ID == word:
			return &v.Symbols[i], nil
		case s.Name == word:
			whole = append(whole, i)
		case strings.HasSuffix(s.Name, "."+word):
			ends = append(ends, i)
		}
	}
	found := whole
	if len(found) == 0 {
		found = ends
	}
	switch len(found) {
	case 1:
		return &v.Symbols[found[0]], nil
	case 0:
		if err := excludedError(word, v.Excluded); err != nil {
			return nil, err
		}
	default:
		e := fault.New(fault.Usage, "ambiguous_id", "%q names %d symbols", word, len(found))
		for _, i := range found[:min(5, len(found))] {
			e = e.Hint("proveto why %s", called(v.Symbols, v.Symbols[i]))
		}
		return nil, e
	}
	return a.pickByID(ctx, v, word)
}

func (a *App) pickByID(ctx context.Context, v *view.Start, word string) (*view.Symbol, error) {
	if len(word) < 6 || strings.Trim(strings.TrimPrefix(word, "sha256:"), "0123456789abcdef") != "" {
		return nil, nameError(word, v.Symbols)
	}
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	id, err := led.Resolve(ctx, word)
	if err != nil {
		return nil, err
	}
	for i, s := range v.Symbols {
		if s.Certificate == id.String() || s.Measurement == id.String() || slices.ContainsFunc(s.Mutants, func(m view.Mutant) bool { return m.ID == id.String() || m.Run == id.String() }) {
			return &v.Symbols[i], nil
		}
	}
	return nil, fault.New(fault.NotFound, "not_found", "%s is a %s that says nothing about a symbol of this tree", word, id.What).Hint("proveto ledger show %s", word)
}

func fileLine(word string) (file string, line int, ok bool) {
	i := strings.LastIndexByte(word, ':')
	if i <= 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(word[i+1:])
	return strings.TrimPrefix(word[:i], "./"), n, err == nil && n > 0
}

// GapOptions select gaps.
type GapOptions struct {
	MinRisk float64
	Limit   int
	All     bool
	By      string // "" or file
}

// Gaps lists what a bug could break unseen, worst first.
func (a *App) Gaps(ctx context.Context, o GapOptions) (*view.Gaps, view.Subject, error) {
	if o.By != "" && o.By != "file" {
		return nil, view.Subject{}, fault.New(fault.Usage, "usage", "--by %q: want file", o.By).Hint("proveto gaps --by file")
	}
	if !(o.MinRisk >= 0 && o.MinRisk <= 1) {
		return nil, view.Subject{}, fault.New(fault.Usage, "usage", "--min-risk %g is no risk: want 0 to 1", o.MinRisk).Hint("proveto gaps --min-risk 0.5")
	}
	v, subject, err := a.current(ctx)
	if err != nil {
		return nil, subject, err
	}
	g := &view.Gaps{Scope: v.Scope, Gaps: []view.Gap{}}
	for _, gap := range v.Gaps {
		if gap.Risk >= o.MinRisk {
			g.Gaps = append(g.Gaps, gap)
		}
	}
	if o.By == "file" {
		slices.SortStableFunc(g.Gaps, func(x, y view.Gap) int { return strings.Compare(x.File, y.File) })
	}
	g.Total = len(g.Gaps)
	if !o.All && o.Limit > 0 && len(g.Gaps) > o.Limit {
		a.warn("cut", fmt.Sprintf("%d of %d gaps are shown, the worst first; proveto gaps --all shows every one", o.Limit, g.Total))
		g.Gaps = g.Gaps[:o.Limit]
	}
	return g, subject, nil
}

// Status is the repository at a glance.
func (a *App) Status(ctx context.Context) (*view.Status, error) {
	inv, err := a.invoke(ctx, StartOptions{Limit: -1}, silent{})
	if err != nil {
		return nil, err
	}
	defer inv.close()
	st := &view.Status{Subject: inv.subject}
	if st.Head, err = a.Head(ctx); err != nil {
		return nil, err
	}
	if inv.past, err = inv.remember(ctx); err != nil {
		return nil, err
	}
	if len(inv.past.starts) == 0 {
		return a.firstStatus(ctx, st, inv)
	}
	now, err := inv.standing(ctx)
	if err != nil {
		return nil, err
	}
	st.Measured, st.Isolation, st.Counts, st.Gaps = true, orText(now.Isolation, inv.past.near.Isolation), now.Counts, len(now.Gaps)
	if len(now.Gaps) > 0 {
		st.Worst = &now.Gaps[0]
	}
	st.Next = inv.past.next(now)
	return st, nil
}

// next is the command that gets on from what stands now.
func (p past) next(now *view.Start) view.Next {
	stopped := 0
	for _, u := range now.Unmeasured {
		if u.Reason == "interrupted" {
			stopped += u.Count
		}
	}
	switch {
	case len(now.Broken) > 0 && now.Broken[0].Command != "":
		return view.Next{Why: now.Broken[0].Text, Run: now.Broken[0].Command}
	case now.Counts.Total == 0:
		return view.Next{Why: "there is nothing here to measure", Run: "proveto start"}
	case p.same == nil && now.Counts.Stale > 0:
		return view.Next{Why: plural(now.Counts.Stale, "behaviour") + " went stale since the last start", Run: "proveto start"}
	case p.same == nil:
		return view.Next{Why: "the tree changed since the last start", Run: "proveto start"}
	case stopped > 0:
		return view.Next{Why: "the last start was stopped before " + plural(stopped, "behaviour"), Run: "proveto start"}
	case !p.around:
		return view.Next{Why: "a waiver, or what is around the tree, changed since the last start", Run: "proveto start"}
	case len(now.Gaps) > 0:
		return now.NextSteps()[0]
	}
	return view.Next{Why: "everything is proven; run the verdicts again", Run: "proveto ledger verify"}
}

// firstStatus answers before anything was measured: what is here, what start
// will do.
func (a *App) firstStatus(ctx context.Context, st *view.Status, inv *invocation) (*view.Status, error) {
	for _, d := range a.Drivers {
		found, err := d.Detect(inv.repo.Root)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			st.Found = append(st.Found, view.Found{Language: p.Language, Dir: p.Dir, Runner: p.Runner, TestFiles: p.TestFiles})
		}
		if _, err := d.Fingerprint(); err != nil && len(found) > 0 {
			e := fault.From(err)
			c := view.Check{Name: d.Language(), State: view.CheckFail, Detail: e.Error()}
			if len(e.Hints) > 0 {
				c.Fix = e.Hints[0]
			}
			st.Missing = append(st.Missing, c)
		}
	}
	if len(st.Found) == 0 {
		return nil, noProject(inv.repo.Root)
	}
	st.Next = view.Next{Why: "see which behaviours the tests guard", Run: "proveto start"}
	return st, a.borrowed(ctx, st, inv)
}

// borrowed fills a status with evidence that was measured in another checkout of
// the same module with the same state: it counts here as far as the digests are
// those of today, and why shows it.
func (a *App) borrowed(ctx context.Context, st *view.Status, inv *invocation) error {
	led, err := a.Ledger(ctx)
	if err != nil {
		return err
	}
	var from evidence.Tree
	for _, d := range a.Drivers {
		found, err := d.Detect(inv.repo.Root)
		if err != nil {
			return err
		}
		for _, p := range found {
			certs, err := led.CertificatesFor(ctx, p.Language, p.Dir)
			if err != nil {
				return err
			}
			for _, c := range certs {
				if unit := c.Record.Facts.Unit; unit == p.Name || strings.HasPrefix(unit, p.Name+"/") {
					from = c.Record.Snapshot
				}
			}
		}
	}
	if from == "" {
		return nil
	}
	now, _, err := a.current(ctx)
	if err != nil {
		if credibleSetup(err) {
			return nil // start says what is missing
		}
		return err
	}
	c := now.Counts
	if c.Proven+c.Refuted+c.Stale == 0 {
		return nil
	}
	st.Measured, st.Counts, st.Gaps = true, c, len(now.Gaps)
	if len(now.Gaps) > 0 {
		st.Worst = &now.Gaps[0]
	}
	st.Next.Why = "nothing was started in this checkout yet"
	st.Borrowed, err = a.checkoutOf(ctx, led, from)
	return err
}

// checkoutOf says where a tree was measured.
func (a *App) checkoutOf(ctx context.Context, led *ledger.Ledger, tree evidence.Tree) (string, error) {
	entries, err := led.Entries(ctx, 1, 0, ledger.KindSnapshot)
	if err != nil {
		return "", err
	}
	for i := len(entries) - 1; i >= 0; i-- {
		var s ledger.Snapshot
		if err := json.Unmarshal(entries[i].Body, &s); err != nil {
			return "", fmt.Errorf("ledger entry %d: %w", entries[i].Seq, err)
		}
		if s.Tree != tree {
			continue
		}
		if saved, err := a.latest(ctx, s.Repo); err != nil || saved != nil {
			return orText(subjectDir(saved), "another checkout"), err
		}
	}
	return "another checkout", nil
}

func subjectDir(saved *savedStart) string {
	if saved == nil {
		return ""
	}
	return saved.Subject.Dir
}
