package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/snapshot"
	"github.com/proveto/proveto/internal/view"
)

// LogOptions select entries.
type LogOptions struct {
	Kind  string
	Limit int
	From  int64 // newest entry to show; 0: the head
}

// LedgerLog lists entries, newest first.
func (a *App) LedgerLog(ctx context.Context, o LogOptions) (*view.Log, error) {
	if kinds := LogKinds(); o.Kind != "" && !slices.Contains(kinds, o.Kind) {
		return nil, fault.New(fault.Usage, "usage", "no entries of kind %q: want %s", o.Kind, strings.Join(kinds, ", ")).Hint("proveto ledger log --kind certificate")
	}
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	h, err := led.Head(ctx)
	if err != nil {
		return nil, err
	}
	from := h.Seq
	if o.From > 0 && o.From < from {
		from = o.From
	}
	out := &view.Log{Total: h.Seq, Entries: []view.LogEntry{}}
	limit := max(1, o.Limit)
	// A page at a time from the end, so that a long ledger costs no more; one entry
	// beyond the limit says that the list goes on.
	for to := from; to >= 1 && len(out.Entries) <= limit; to -= logPage {
		entries, err := led.Entries(ctx, max(1, to-logPage+1), to, ledger.Kind(o.Kind))
		if err != nil {
			return nil, err
		}
		for i := len(entries) - 1; i >= 0 && len(out.Entries) <= limit; i-- {
			out.Entries = append(out.Entries, logEntry(entries[i]))
		}
	}
	if len(out.Entries) > limit {
		out.Next = out.Entries[limit].Seq
		out.Entries = out.Entries[:limit]
		more := fmt.Sprintf("proveto ledger log --from %d", out.Next)
		if o.Kind != "" {
			more += " --kind " + o.Kind
		}
		a.warn("cut", fmt.Sprintf("%s shown; %s goes on from there", plural(limit, "entry"), more))
	}
	return out, a.newer(ctx, led, out.Entries)
}

// LedgerHead is the head with the key that its checkpoint is signed with.
func (a *App) LedgerHead(ctx context.Context) (*view.LedgerHead, error) {
	h, err := a.Head(ctx)
	if err != nil {
		return nil, err
	}
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	return &view.LedgerHead{Head: *h, Ledger: led.ID(), VerifierKey: led.VerifierKey()}, nil
}

// logKinds are the kinds of entries that can be asked for.
var logKinds = []string{
	string(ledger.KindGenesis), string(ledger.KindSnapshot), string(ledger.KindRun), string(ledger.KindCertificate), string(ledger.KindMeasurement),
	string(ledger.KindWaiver), string(ledger.KindStart), string(ledger.KindRefusal), string(kindRerun),
}

// LogKinds lists the kinds of entries that can be asked for: our own first, then
// those of flows.
func LogKinds() []string {
	out := slices.Clone(logKinds)
	for _, k := range ledger.FlowKinds() {
		out = append(out, string(k))
	}
	return out
}

// logPage is how many entries are read at once.
const logPage = 500

func logEntry(e ledger.Entry) view.LogEntry {
	out := view.LogEntry{Seq: e.Seq, Time: e.Time, Kind: string(e.Kind), Leaf: e.LeafHash()}
	switch e.Kind {
	case ledger.KindRun, ledger.KindCertificate, ledger.KindMeasurement:
		out.ID = string(evidence.DigestOf(e.Body))
	}
	out.Summary = entrySummary(e)
	return out
}

// entrySummary is an entry in a line.
func entrySummary(e ledger.Entry) string {
	var b struct {
		Purpose string          `json:"purpose"`
		Argv    []string        `json:"argv"`
		Facts   evidence.Facts  `json:"facts"`
		Gate    json.RawMessage `json:"gate"` // of a certificate: an object
		Target  evidence.Target `json:"target"`
		Word    string          `json:"word"`
		Reason  string          `json:"reason"`
		Tree    string          `json:"tree"`
		Repo    string          `json:"repo"`
		Probe   json.RawMessage `json:"probe"`
		Exit    evidence.Exit   `json:"exit"`
		Until   string          `json:"until"`
		Code    string          `json:"code"`
		Text    string          `json:"text"`
		Ledger  string          `json:"ledger_id"`
		Invoked string          `json:"invocation"`
	}
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return "body does not parse: " + err.Error()
	}
	switch e.Kind {
	case ledger.KindRun:
		return fmt.Sprintf("%s: %s, exit %d", b.Purpose, filepath.Base(strings.Join(b.Argv[:min(1, len(b.Argv))], "")), b.Exit.Code)
	case ledger.KindCertificate:
		var g evidence.GateRecord
		if len(b.Gate) > 0 && json.Unmarshal(b.Gate, &g) == nil {
			return fmt.Sprintf("gate %s refuses %q", g.Gate, g.Sabotage.Summary)
		}
		return fmt.Sprintf("%s rejects %q in %s", b.Facts.Test, b.Facts.Probe.Summary, nameOf(b.Facts.Unit, b.Facts.Symbol))
	case ledger.KindMeasurement:
		return strings.TrimSpace(fmt.Sprintf("%s is %s %s", nameOf(b.Target.Unit, b.Target.Symbol), strings.ReplaceAll(b.Word, "_", " "), b.Reason))
	case ledger.KindSnapshot:
		return "tree " + b.Tree
	case ledger.KindStart:
		return "start " + b.Invoked + " of tree " + b.Tree
	case ledger.KindWaiver:
		return "until " + b.Until + ": " + b.Reason
	case ledger.KindGenesis:
		return "ledger " + b.Ledger
	}
	var h ledger.FlowHead
	if err := json.Unmarshal(e.Body, &h); err == nil && h.Run != "" && h.After != nil {
		return strings.Join(strings.Fields(h.Run+" "+h.Stage+" "+b.Code+" "+h.After.Status+" "+h.After.Reason), " ")
	}
	return strings.TrimSpace(b.Code + " " + b.Text)
}

// LedgerEntry shows one entry with its body.
func (a *App) LedgerEntry(ctx context.Context, word string) (*view.LogEntry, error) {
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	seq, err := strconv.ParseInt(word, 10, 64)
	if err != nil || (len(word) >= 6 && seq > 1<<40) {
		id, err := led.Resolve(ctx, word)
		if err != nil {
			return nil, err
		}
		if seq, err = led.SeqOf(ctx, id); err != nil {
			return nil, err
		}
	}
	var entries []ledger.Entry
	if seq > 0 {
		if entries, err = led.Entries(ctx, seq, seq, ""); err != nil {
			return nil, err
		}
	}
	if len(entries) == 0 {
		return nil, fault.New(fault.NotFound, "not_found", "the ledger has no entry %d", seq).Hint("proveto ledger log")
	}
	out := logEntry(entries[0])
	out.Body = entries[0].Body
	return &out, nil
}

// LedgerVerifyOptions say what the ledger is compared with besides itself.
type LedgerVerifyOptions struct {
	Against string // SEQ:ROOT
	// Derive derives a run of a flow from all its entries and says what is wrong with
	// it; nil: runs are not derived.
	Derive func(ledgerID, run string, entries []ledger.Entry) error
}

// LedgerVerify derives everything again. The view is returned also beside the
// error that says that something does not verify.
func (a *App) LedgerVerify(ctx context.Context, o LedgerVerifyOptions) (*view.LedgerVerified, error) {
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	opts := ledger.Options{}
	if o.Derive != nil {
		opts.Fold = func(run string, entries []ledger.Entry) error { return o.Derive(led.ID(), run, entries) }
	}
	anchored := "no outside anchor"
	if o.Against != "" {
		if opts.Expect, err = parseHead(o.Against); err != nil {
			return nil, err
		}
		anchored = "compared with the head " + o.Against
	}
	if raw := a.anchorHere(ctx, led); raw != nil {
		opts.Anchor = raw
		anchored = "compared with the anchor of this repository"
	}
	r, err := led.Verify(ctx, opts)
	v := &view.LedgerVerified{
		Sound: err == nil, Entries: r.Entries, Derived: int64(r.Certificates + r.Measurements), Blobs: int64(r.Blobs), Anchored: anchored,
		FirstBad: -1, Problems: []string{},
	}
	if r.Head.Root != "" {
		v.Head = &view.Head{Seq: r.Head.Seq, Root: string(r.Head.Root)}
	}
	for _, f := range r.Findings {
		where := ""
		if f.Seq > 0 {
			where = fmt.Sprintf("entry %d: ", f.Seq)
		}
		v.Problems = append(v.Problems, fmt.Sprintf("%s: %s%s", f.Code, where, f.What))
	}
	if r.More > 0 {
		v.Problems = append(v.Problems, fmt.Sprintf("and %d more", r.More))
	}
	if err != nil {
		v.FirstBad = r.FirstBad
		v.Text = err.Error()
		return v, err
	}
	folded := ""
	if opts.Fold != nil && r.Flows > 0 {
		folded = fmt.Sprintf(" %s of flows folded with their signatures,", plural(r.Flows, "run"))
	}
	v.Text = fmt.Sprintf("%d entries, %d verdicts derived again,%s %d blobs: all sound (%s)", v.Entries, v.Derived, folded, v.Blobs, anchored)
	return v, nil
}

// parseHead reads a head as ledger head writes it.
func parseHead(s string) (*ledger.Head, error) {
	seq, root, ok := strings.Cut(s, ":")
	n, err := strconv.ParseInt(seq, 10, 64)
	d, derr := evidence.ParseDigest(root)
	if !ok || err != nil || derr != nil {
		return nil, fault.New(fault.Usage, "bad_id", "%.90q is not a head: want SEQ:sha256:…", s).Hint("proveto ledger head")
	}
	return &ledger.Head{Seq: n, Root: d}, nil
}

// anchorHere is the checkpoint in this repository's anchor ref; nil when there
// is none or this is no repository.
func (a *App) anchorHere(ctx context.Context, led *ledger.Ledger) []byte {
	snaps, err := a.Snapshots(ctx)
	if err != nil {
		return nil
	}
	repo, err := snaps.Locate(ctx, a.dir(""))
	if err != nil {
		return nil
	}
	kept, err := snaps.ReadAnchor(ctx, repo, led.ID())
	if err != nil {
		return nil
	}
	return kept.Content
}

// LedgerExport writes a certificate as a signed statement.
func (a *App) LedgerExport(ctx context.Context, word string) (*view.Export, error) {
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	id, err := led.Resolve(ctx, word)
	if err != nil {
		return nil, err
	}
	if id.What != string(ledger.KindCertificate) {
		return nil, fault.New(fault.Usage, "bad_id", "%s is a %s, not a certificate", word, id.What).Hint("proveto ledger log --kind certificate")
	}
	raw, err := led.Export(ctx, id.Digest)
	if err != nil {
		return nil, err
	}
	return &view.Export{Certificate: id.String(), Envelope: raw}, nil
}

// AnchorOptions say whether anything is written.
type AnchorOptions struct{ DryRun bool }

// LedgerAnchor puts the signed checkpoint into the anchor ref of the repository.
func (a *App) LedgerAnchor(ctx context.Context, o AnchorOptions) (*view.Sentence, error) {
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	snaps, err := a.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	repo, err := snaps.Locate(ctx, a.dir(""))
	if err != nil {
		return nil, err
	}
	an, err := led.Anchor(ctx, nil)
	if err != nil {
		return nil, err
	}
	h := an.Head
	s := &view.Sentence{Facts: map[string]any{"ref": an.Ref, "head": view.Head{Seq: h.Seq, Root: string(h.Root)}, "written": !o.DryRun}}
	if o.DryRun {
		s.Text = fmt.Sprintf("would write the checkpoint of #%d to %s", h.Seq, an.Ref)
		return s, nil
	}
	kept, err := snaps.ReadAnchor(ctx, repo, led.ID())
	if err != nil && !fault.Has(err, snapshot.CodeAnchorMissing) {
		return nil, err
	}
	if _, err := snaps.Anchor(ctx, repo, led.ID(), kept.Commit, an.Checkpoint); err != nil {
		return nil, err
	}
	s.Text = fmt.Sprintf("the checkpoint of #%d is in %s; push it to keep it outside: git push REMOTE %s", h.Seq, an.Ref, an.Ref)
	return s, nil
}

// Rebuild folds the entries into the projections again.
func (a *App) Rebuild(ctx context.Context) (*view.Sentence, error) {
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	if err := led.Rebuild(ctx); err != nil {
		return nil, err
	}
	h, err := led.Head(ctx)
	if err != nil {
		return nil, err
	}
	return &view.Sentence{Text: fmt.Sprintf("rebuilt from %d entries", h.Seq), Facts: map[string]any{"entries": h.Seq}}, nil
}

// GCOptions choose what is removed.
type GCOptions struct{ DryRun bool }

// GC removes checkouts and builds from the cache and blobs that no entry cites.
func (a *App) GC(ctx context.Context, o GCOptions) (_ *view.Sentence, err error) {
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	snaps, err := a.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	if !o.DryRun {
		var release snapshot.Release
		if release, err = snaps.Alone(); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	blobs, err := led.Uncited(ctx)
	if err != nil {
		return nil, err
	}
	builds := filepath.Join(a.Paths.Cache, "go")
	freed, err := dirSize(builds)
	if err != nil {
		return nil, err
	}
	s := &view.Sentence{Facts: map[string]any{"build_bytes": freed, "blobs": len(blobs), "removed": !o.DryRun}}
	if o.DryRun {
		s.Text = fmt.Sprintf("would remove %d MiB of builds, %s that nothing cites, and every checkout that is not in use", freed>>20, plural(len(blobs), "blob"))
		return s, nil
	}
	cited, err := a.citedTrees(ctx, led)
	if err != nil {
		return nil, err
	}
	done, err := snaps.GC(ctx, func(_ snapshot.Repo, t evidence.Tree) bool { return cited[t] }, 0)
	if err != nil {
		return nil, err
	}
	errs := []error{os.RemoveAll(builds)}
	for _, d := range blobs {
		errs = append(errs, a.blobs.Remove(d))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "io", "remove from %s", a.Paths.Cache)
	}
	s.Facts["checkout_bytes"], s.Facts["trees"] = done.Bytes, done.Trees
	s.Text = fmt.Sprintf("removed %d MiB of builds, %d MiB of checkouts, %s and %s that nothing cites", freed>>20, done.Bytes>>20, plural(len(blobs), "blob"), plural(done.Trees, "tree"))
	return s, nil
}

// citedTrees are the trees that a certificate, a measurement or a result is
// about: without them nothing could be run again.
func (a *App) citedTrees(ctx context.Context, led *ledger.Ledger) (map[evidence.Tree]bool, error) {
	out := map[evidence.Tree]bool{}
	for _, kind := range []ledger.Kind{ledger.KindCertificate, ledger.KindMeasurement, ledger.KindStart} {
		entries, err := led.Entries(ctx, 1, 0, kind)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			var b struct {
				Snapshot evidence.Tree `json:"snapshot"`
				Tree     evidence.Tree `json:"tree"`
			}
			if err := json.Unmarshal(e.Body, &b); err != nil {
				return nil, fmt.Errorf("ledger entry %d: %w", e.Seq, err)
			}
			out[b.Snapshot], out[b.Tree] = true, true
		}
	}
	return out, nil
}

// dirSize sums the files below a directory; none is 0.
func dirSize(dir string) (int64, error) {
	var n int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		fi, err := d.Info()
		if err == nil {
			n += fi.Size()
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fault.Wrap(err, fault.Internal, "io", "size of %s", dir)
	}
	return n, nil
}
