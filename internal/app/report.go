package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/config"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/render"
	"github.com/proveto/proveto/internal/view"
	"github.com/proveto/proveto/internal/wholefile"
)

// reportFiles are the kinds of reports and the names of their files.
var reportFiles = []struct {
	kind, file string
	write      func(io.Writer, view.Start, render.Meta) error
}{
	{"html", "behaviours.html", render.HTML},
	{"md", "behaviours.md", render.Markdown},
	{"json", "behaviours.json", func(w io.Writer, v view.Start, m render.Meta) error { return render.JSON(w, reportAnswer(v, m)) }},
	{"mutation", "mutation.json", render.MutationReport},
}

// ReportKinds lists the kinds of reports.
func ReportKinds() []string {
	out := []string{}
	for _, r := range reportFiles {
		out = append(out, r.kind)
	}
	return out
}

func reportAnswer(v view.Start, m render.Meta) view.Answer {
	return view.Answer{
		Schema: StartSchema, OK: true, Code: string(fault.OK), Subject: &m.Subject, Head: m.Head, Data: v,
		Warnings: []view.Warning{}, Hints: []string{}, Next: []view.Next{}, Version: m.Version,
	}
}

// report writes the reports of this invocation and lists what was really
// written.
func (inv *invocation) report(ctx context.Context, v *view.Start) error {
	if inv.o.Trees != nil {
		return nil // nobody asked for a page
	}
	kinds := inv.o.Formats
	if len(kinds) == 0 {
		kinds = inv.app.Config.Reports.Formats
	}
	dir := orText(inv.o.ReportDir, inv.app.reportDir(inv.repo.Root, inv.repo.ID, v.Narrow))
	meta, err := inv.app.meta(ctx, inv.subject)
	if err != nil {
		return err
	}
	v.Artifacts, err = writeReports(*v, meta, kinds, dir)
	return err
}

func (a *App) meta(ctx context.Context, s view.Subject) (render.Meta, error) {
	h, err := a.Head(ctx)
	if err != nil {
		return render.Meta{}, err
	}
	return render.Meta{Subject: s, Head: h, Version: a.Version}, nil
}

// writeReports writes each kind to a temporary file and renames it, so that a
// reader never sees half a report. What was written is returned also beside an
// error.
func writeReports(v view.Start, meta render.Meta, kinds []string, dir string) ([]view.Artifact, error) {
	out := []view.Artifact{}
	v.Artifacts = nil
	if len(kinds) == 0 {
		kinds = ReportKinds()
	}
	for _, k := range kinds {
		if !slices.Contains(ReportKinds(), k) {
			return out, fault.New(fault.Usage, "usage", "no report of kind %q: want %s", k, strings.Join(ReportKinds(), ", ")).Hint("proveto report html")
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return out, fault.Wrap(err, fault.Internal, "io", "report directory %s", dir).Hint("proveto report --report-dir DIR")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return out, fault.Wrap(err, fault.Internal, "io", "report directory %s", dir)
	}
	for _, r := range reportFiles {
		if !slices.Contains(kinds, r.kind) {
			continue
		}
		var buf bytes.Buffer
		if err := r.write(&buf, v, meta); err != nil {
			return out, fmt.Errorf("%s report: %w", r.kind, err)
		}
		path := filepath.Join(abs, r.file)
		if err := writeFile(path, buf.Bytes()); err != nil {
			return out, err
		}
		out = append(out, view.Artifact{Kind: r.kind, Path: path, Digest: string(evidence.DigestOf(buf.Bytes())), Bytes: int64(buf.Len())})
	}
	return out, nil
}

func writeFile(path string, b []byte) error {
	if err := wholefile.Write(path, b, 0o644, false); err != nil {
		return fault.Wrap(err, fault.Internal, "io", "write %s", path)
	}
	return nil
}

// artifactsWhole tells whether every report is still there as it was written.
func artifactsWhole(as []view.Artifact) bool {
	for _, a := range as {
		b, err := os.ReadFile(a.Path)
		if err != nil || string(evidence.DigestOf(b)) != a.Digest {
			return false
		}
	}
	return len(as) > 0
}

// sources reads the files that the report shows, from the checkout.
func (inv *invocation) sources(v *view.Start) map[string][]string {
	out := map[string][]string{}
	for _, s := range v.Symbols {
		if _, ok := out[s.File]; ok || len(s.Mutants) == 0 {
			continue
		}
		b, err := os.ReadFile(filepath.Join(inv.checkout.Dir(), filepath.FromSlash(s.File)))
		if err != nil {
			inv.warn("source_missing", fmt.Sprintf("%s: %v", s.File, err))
			continue
		}
		out[s.File] = strings.Split(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n")
	}
	return out
}

// ReportOptions choose reports and where they go.
type ReportOptions struct {
	Kinds []string
	Dir   string
}

// Report writes the reports of the last start again, from the ledger.
func (a *App) Report(ctx context.Context, o ReportOptions) (*view.Reports, view.Subject, error) {
	v, meta, err := a.lastResult(ctx)
	if err != nil {
		return nil, meta.Subject, err
	}
	root, id := a.repoOf(ctx)
	dir := orText(o.Dir, a.reportDir(root, id, v.Narrow))
	as, err := writeReports(*v, meta, o.Kinds, dir)
	if err != nil {
		return nil, meta.Subject, err
	}
	return &view.Reports{Artifacts: as}, meta.Subject, nil
}

// WriteReport writes one report of the last start to w.
func (a *App) WriteReport(ctx context.Context, kind string, w io.Writer) error {
	v, meta, err := a.lastResult(ctx)
	if err != nil {
		return err
	}
	for _, r := range reportFiles {
		if r.kind == kind {
			return r.write(w, *v, meta)
		}
	}
	return fault.New(fault.Usage, "usage", "no report of kind %q: want %s", kind, strings.Join(ReportKinds(), ", ")).Hint("proveto report html")
}

func (a *App) repoOf(ctx context.Context) (root, id string) {
	snaps, err := a.Snapshots(ctx)
	if err != nil {
		return "", ""
	}
	repo, err := snaps.Locate(ctx, a.dir(""))
	if err != nil {
		return "", ""
	}
	return repo.Root, repo.ID
}

// reportDir is where reports go when no flag says it. Those of a narrow run have
// a directory of their own, so that they replace no report about everything.
func (a *App) reportDir(root, id string, narrow bool) string {
	dir := a.Config.Reports.Dir
	switch {
	case dir == "":
		dir = filepath.Join(a.Paths.State, "reports", id)
	case !filepath.IsAbs(dir):
		dir = filepath.Join(root, filepath.FromSlash(dir))
	}
	if narrow {
		dir = filepath.Join(dir, "narrow")
	}
	return dir
}

// lastResult is what [invocation.reported] says, of the working copy.
func (a *App) lastResult(ctx context.Context) (*view.Start, render.Meta, error) {
	inv, err := a.invoke(ctx, StartOptions{StaticOnly: true, Limit: -1}, silent{})
	if err != nil {
		return nil, render.Meta{Subject: subjectOf(inv)}, err
	}
	defer inv.close()
	v, subject, err := inv.reported(ctx)
	if err != nil {
		return nil, render.Meta{Subject: subject}, err
	}
	if subject.Tree != inv.subject.Tree {
		a.warn("older_tree", "the report is about the last start; the tree is another one now: proveto start")
	}
	meta, err := a.meta(ctx, subject)
	return v, meta, err
}

// DefaultFormats are the reports that are written where nothing else is set.
func DefaultFormats() string {
	for _, k := range config.Keys() {
		if k.Name == "reports.formats" {
			return strings.Trim(k.Default, "[]")
		}
	}
	return ""
}
