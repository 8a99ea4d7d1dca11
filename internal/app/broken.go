package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/prove"
	"github.com/proveto/proveto/internal/view"
)

// functionValue is why a variable that holds code is no target.
const functionValue = "function_value"

// failedProject is a project that could not be loaded at all.
type failedProject struct {
	lang.Project
	view.Broken
}

// breaks notes the symbols for which nothing holds because a suite does not
// build: that of their own package, or the one by which they were proven.
func (p *project) breaks() {
	for _, k := range p.known {
		b := p.today.Broken(k.ranked.Unit)
		if b == nil && k.live == nil && k.stale != nil {
			b = p.today.Broken(k.stale.Record.Facts.Unit)
		}
		switch {
		case b == nil:
		case b.Code == lang.BuildFailed:
			k.broken = b
		case k.bare(): // it can be built elsewhere: what is known holds
			k.reason, k.detail, k.command = string(b.Code), b.Text, b.Hint
		}
	}
}

// changeAsked tells whether the base is compared: see [invocation.findTouched].
func (inv *invocation) changeAsked() bool {
	return len(inv.changed) > 0 && (inv.o.Base != "" || inv.o.Gate || inv.o.ChangedOnly)
}

// fail keeps a project that could not be loaded, with why, and whether the change
// did it.
func (inv *invocation) fail(ctx context.Context, d lang.Driver, p lang.Project, err error) error {
	e := fault.From(err)
	f := failedProject{Project: p, Broken: view.Broken{Code: string(e.Code), File: p.Manifest, Text: firstLine(e.Error())}}
	if !strings.Contains(f.Text, p.Manifest) {
		f.Text = p.Manifest + ": " + f.Text
	}
	if len(e.Hints) > 0 {
		f.Command = e.Hints[0]
	}
	if _, after, ok := strings.Cut(f.Text, p.Manifest+":"); ok {
		n, _, _ := strings.Cut(after, ":")
		f.Line, _ = strconv.Atoi(n) // 0 where no line follows
	}
	for name := range inv.changed {
		f.Changed = f.Changed || name == p.Manifest || below(p.Dir, name)
	}
	if inv.changeAsked() {
		if err := inv.projectThen(ctx, d, p, func(then *prove.Today) { f.Changed = f.Changed || then != nil }); err != nil {
			return err
		}
	}
	inv.failed = append(inv.failed, f)
	return nil
}

// below tells whether a slash-separated path is in a directory.
func below(dir, name string) bool { return dir == "." || strings.HasPrefix(name, dir+"/") }

// findLeftOver finds the files that held targets at the base, are still there, and
// are in no package any more: their module lost its manifest, or a constraint
// leaves them out.
func (inv *invocation) findLeftOver(ctx context.Context, d lang.Driver, found []lang.Project) error {
	if !inv.changeAsked() {
		return nil
	}
	if err := inv.goneProjects(ctx, d, found); err != nil {
		return err
	}
	read := map[string]bool{}
	for _, p := range inv.projects {
		for _, u := range p.today.Scan.Units {
			for _, f := range u.Files {
				read[f] = true
			}
		}
	}
	var left []string
	for f := range inv.then {
		st, err := os.Lstat(filepath.Join(inv.checkout.Dir(), filepath.FromSlash(f)))
		if read[f] || err != nil || !st.Mode().IsRegular() {
			continue
		}
		if !slices.ContainsFunc(inv.failed, func(p failedProject) bool { return below(p.Dir, f) }) {
			left = append(left, f)
		}
	}
	slices.Sort(left)
	for _, f := range left {
		inv.leftOver = append(inv.leftOver, view.Broken{
			Code: string(lang.Configuration), File: f, Text: f + " was built at " + orText(inv.o.Base, "HEAD") + " and is in no package now", Changed: true,
		})
	}
	return nil
}

// goneProjects reads the projects of the base that are no projects any more.
func (inv *invocation) goneProjects(ctx context.Context, d lang.Driver, found []lang.Project) error {
	gone := false
	for name, lines := range inv.changed {
		if len(lines) == 0 && !gone {
			_, err := os.Lstat(filepath.Join(inv.checkout.Dir(), filepath.FromSlash(name)))
			gone = err != nil
		}
	}
	if !gone {
		return nil
	}
	return inv.withBase(ctx, d, func(was []lang.Project, w lang.Workspace) error {
		for _, p := range was {
			if slices.ContainsFunc(found, func(now lang.Project) bool { return now.Dir == p.Dir }) {
				continue
			}
			if err := inv.readThen(ctx, d, w, p, inv.noteThen); err != nil {
				return err
			}
		}
		return nil
	})
}

// noteThen keeps which files held targets at the base.
func (inv *invocation) noteThen(then *prove.Today) {
	if then == nil {
		return
	}
	if inv.then == nil {
		inv.then = map[string]bool{}
	}
	for _, s := range then.Scan.Symbols {
		if !s.TestCode && s.Excluded == "" && inv.leftOut(s.File) == "" {
			inv.then[s.File] = true
		}
	}
}

// brokenView lists what could not be read or built, each cause once, and gives
// the behaviours of projects that could not be loaded the reason.
func (inv *invocation) brokenView(v *view.Start) {
	at := map[string]int{}
	for _, p := range inv.projects {
		for _, u := range p.today.Scan.Units {
			b := u.Broken
			if b == nil {
				continue
			}
			i, ok := at[b.Text]
			if !ok {
				i, at[b.Text] = len(v.Broken), len(v.Broken)
				v.Broken = append(v.Broken, view.Broken{Code: string(b.Code), File: b.File, Line: b.Line, Text: b.Text, Command: b.Hint})
			}
			v.Broken[i].Changed = v.Broken[i].Changed || inv.brokeIt(p, u)
		}
	}
	for _, f := range inv.failed {
		at[f.Text] = len(v.Broken)
		v.Broken = append(v.Broken, f.Broken)
		if inv.past.near == nil {
			continue
		}
		for _, s := range inv.past.near.Symbols {
			if s.Language == f.Language && s.Project == f.Dir {
				v.Symbols = append(v.Symbols, view.Symbol{
					ID: s.ID, Name: s.Name, Language: s.Language, Project: s.Project, Package: s.Package, File: s.File, Line: s.Line, EndLine: s.EndLine,
					Exported: s.Exported, Risk: s.Risk, EntryPoint: s.EntryPoint, Changed: f.Changed,
					Word: string(evidence.NotMeasured), Reason: f.Code, Detail: f.Text, Command: f.Command,
				})
			}
		}
	}
	v.Broken = append(v.Broken, inv.leftOver...)
	for _, s := range v.Symbols {
		if i, ok := at[s.Detail]; ok && s.Word == string(evidence.NotMeasured) {
			v.Broken[i].Behaviours++
		}
	}
	slices.SortStableFunc(v.Broken, func(a, b view.Broken) int {
		switch {
		case a.Changed == b.Changed:
			return 0
		case a.Changed:
			return -1
		}
		return 1
	})
}

// brokeIt tells whether the change is in what does not build, or made it so. Where
// the base could not be read, it is taken to have been whole.
func (inv *invocation) brokeIt(p *project, u lang.Unit) bool {
	if _, ok := inv.changed[u.Broken.File]; ok {
		return true
	}
	if !inv.changeAsked() {
		return false
	}
	if p.base == nil {
		return true
	}
	return !slices.ContainsFunc(p.base.Units, func(then lang.Unit) bool { return then.ID == u.ID && then.Broken != nil })
}

// brokenInScope is what a gate cannot judge because it could not be read or built.
func (inv *invocation) brokenInScope(v *view.Start) []view.Broken {
	texts := map[string]bool{}
	for _, s := range inv.gated(v) {
		if s.Word == string(evidence.NotMeasured) {
			texts[s.Detail] = true
		}
	}
	var out []view.Broken
	for _, b := range v.Broken {
		all := len(inv.o.Only) == 0 && (b.Changed || !inv.gatesChange())
		named := slices.ContainsFunc(inv.o.Only, func(want string) bool { return names(lang.Symbol{File: b.File}, want) })
		if all || named || texts[b.Text] {
			out = append(out, b)
		}
	}
	return out
}

// withoutProbe is the code in the changed scope that is in no function: a gate
// counts it as not measured.
func (inv *invocation) withoutProbe(v *view.Start) []view.Symbol {
	var out []view.Symbol
	for _, x := range v.Excluded {
		if x.Reason == functionValue && x.Changed && inv.gatesChange() && inv.asked(lang.Symbol{Name: x.Name, File: x.File}) {
			out = append(out, view.Symbol{Name: x.Name, File: x.File, Line: x.Line, Word: string(evidence.NotMeasured), Reason: functionValue})
		}
	}
	return out
}
