package gates

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/late"
	"github.com/proveto/proveto/internal/sandbox"
)

// step is one command on a tree.
type step struct {
	name string
	p    *project // whose tools it uses; nil: none
	dir  string   // where it runs, from the root of the tree
	argv []string
}

// build builds every project of the tree, by its driver or by the policy's
// command. The probe is a syntax error in a changed file.
func (m *measurement) build(ctx context.Context) (found, error) {
	b, err := m.bench(ctx, m.r.Tree)
	if err != nil {
		return found{}, err
	}
	if len(b.projects) == 0 && len(m.r.Policy.Argv) == 0 {
		return found{Answer: gate.Answer{Outcome: gate.Empty, Code: "empty", Reason: "the tree has no project that could be built"}}, nil
	}
	f, runs, err := m.steps(ctx, b, b.buildSteps)
	if err != nil {
		return found{}, err
	}
	f.metrics = map[string]float64{"projects": float64(len(b.projects)), "commands": float64(len(runs))}
	f.probeFunc = func(ctx context.Context) (evidence.Certificate, error) {
		s, err := m.syntaxError(ctx, b)
		if err != nil {
			return evidence.Certificate{}, err
		}
		m.sabotage = s
		return m.refused(ctx, runs, s, (*bench).buildSteps)
	}
	return f, nil
}

// buildSteps are the commands that build everything.
func (b *bench) buildSteps(ctx context.Context) ([]step, error) {
	if argv := b.m.r.Policy.Argv; len(argv) > 0 {
		return b.oneStep(argv), nil
	}
	var out []step
	for _, p := range b.projects {
		t, ok := p.driver.(lang.Toolbox)
		if !ok {
			return nil, fault.New(fault.Unmeasured, gate.CodeToolMissing, "no commands build %s projects", p.Language)
		}
		tools, err := t.Tools(ctx, b.w, p.Project)
		if err != nil {
			return nil, err
		}
		for _, argv := range tools.Build {
			name := filepath.Base(argv[0]) + " " + argv[1]
			if p.Dir != "." {
				name += " in " + p.Dir
			}
			out = append(out, step{name: name, p: p, dir: slashDir(p.Dir), argv: argv})
		}
	}
	return out, nil
}

// oneStep is a command of the policy or of the contract, at the root of the tree.
func (b *bench) oneStep(argv []string) []step {
	return []step{{name: strings.Join(argv, " "), p: b.first(), argv: argv}}
}

func (b *bench) first() *project {
	if len(b.projects) == 0 {
		return nil
	}
	return b.projects[0]
}

// steps runs commands on a tree until one is refused, and reads their exit codes.
func (m *measurement) steps(ctx context.Context, b *bench, stepsFunc func(context.Context) ([]step, error)) (found, []evidence.UnitRun, error) {
	steps, err := stepsFunc(ctx)
	if err != nil {
		return found{}, nil, err
	}
	var runs []evidence.UnitRun
	for _, s := range steps {
		u, err := b.step(ctx, s)
		if err != nil {
			return found{}, runs, err
		}
		runs = append(runs, u)
		if v := evidence.JudgeGate(evidence.RuleExit, nil, runs); !v.Accepted {
			f := found{Answer: gate.Of(v), outputs: outputsOf(runs)}
			f.issues = m.stepIssues(b, s, u, f.Answer)
			return f, runs, nil
		}
	}
	return found{Answer: gate.Of(evidence.JudgeGate(evidence.RuleExit, nil, runs)), outputs: outputsOf(runs)}, runs, nil
}

// place is where a compiler complains.
var place = late.Regexp(`(?m)^(?:vet: )?(?:\./)?([^\s:][^:\n]*\.\w+):(\d+)(?::\d+)?: (.*)$`)

// stepIssues makes issues of what a refused command printed: a place for each
// line that names one, else all of it.
func (m *measurement) stepIssues(b *bench, s step, u evidence.UnitRun, a gate.Answer) []gate.Issue {
	words := m.printed(u.Run.Digest())
	argv := slices.Clone(s.argv)
	if filepath.IsAbs(argv[0]) {
		argv[0] = filepath.Base(argv[0])
	}
	i := gate.Issue{
		Category: gate.Defect, Code: a.Code, Repro: argv, Expected: "exit 0", Actual: fmt.Sprintf("exit %d", u.Run.Record().Exit.Code),
		Message: s.name + ": " + cut(words, 12),
	}
	if a.Outcome == gate.NotMeasured {
		i.Category, i.Message = gate.Environment, a.Reason
		return []gate.Issue{i}
	}
	var out []gate.Issue
	for _, g := range place().FindAllStringSubmatch(words, 20) {
		line, err := strconv.Atoi(g[2])
		if err != nil {
			continue
		}
		at := i
		at.File, at.Line, at.Message = g[1], line, g[3]
		if s.p != nil && s.p.Dir != "." {
			at.File = s.p.Dir + "/" + at.File
		}
		out = append(out, at)
	}
	if len(out) == 0 {
		out = []gate.Issue{i}
	}
	return out
}

// step runs one command in a box of its own.
func (b *bench) step(ctx context.Context, s step) (evidence.UnitRun, error) {
	spec := sandbox.Spec{Min: b.w.Min, Max: b.w.Max, Network: b.w.Network, Hidden: b.w.Hidden, Sources: []string{b.w.Root}}
	env := b.w.Env
	if s.p != nil {
		if t, ok := s.p.driver.(lang.Toolbox); ok {
			tools, err := t.Tools(ctx, b.w, s.p.Project)
			if err != nil {
				return evidence.UnitRun{}, err
			}
			spec, env = tools.Spec, tools.Env
			spec.Network = b.w.Network
		}
	}
	argv := slices.Clone(s.argv)
	var err error
	if argv[0], err = b.executable(argv[0], env); err != nil {
		return evidence.UnitRun{}, err
	}
	l := b.limits()
	l.Processes, l.Wall = 2048, max(b.m.r.Policy.Time, 0)
	if l.Wall == 0 {
		l.Wall = DefaultTime
	}
	l.CPU = 8 * l.Wall
	return b.inBox(ctx, s.name, spec, sandbox.Command{Purpose: evidence.PurposeBuild, Argv: argv, Dir: s.dir, Env: env, Limits: l})
}

// inBox runs one command and records it.
func (b *bench) inBox(ctx context.Context, name string, spec sandbox.Spec, c sandbox.Command) (u evidence.UnitRun, err error) {
	c.Snapshot, c.Root = b.tree, b.w.Root
	box, err := sandbox.Open(ctx, spec)
	if err != nil {
		return u, err
	}
	run, out, err := box.Run(ctx, c)
	if cerr := box.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = b.w.Record(run, out)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return evidence.UnitRun{Unit: name, Run: run}, err
}

// executable finds the program of a command: a path of the tree, or a name on the
// PATH of the environment; a program of the tree is not found by its name.
func (b *bench) executable(name string, env []string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if strings.ContainsRune(name, '/') {
		if !filepath.IsLocal(name) {
			return "", fault.New(fault.Usage, "policy_invalid", "command %q leaves the tree", name)
		}
		return filepath.Join(b.w.Root, filepath.FromSlash(name)), nil
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || within(b.w.Root, dir) || within(b.w.Origin, dir) {
			continue
		}
		at := filepath.Join(dir, name)
		if st, err := os.Stat(at); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return at, nil
		}
	}
	return "", fault.New(fault.Unmeasured, gate.CodeToolMissing, "there is no program %q on PATH outside the tree", name)
}

func within(root, dir string) bool {
	if root == "" {
		return false
	}
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

// refused runs the commands of a gate on a sabotaged tree and derives the
// certificate.
func (m *measurement) refused(ctx context.Context, good []evidence.UnitRun, s evidence.Sabotage, stepsFunc func(*bench, context.Context) ([]step, error)) (evidence.Certificate, error) {
	b, err := m.bench(ctx, s.Tree)
	if err != nil {
		return evidence.Certificate{}, err
	}
	_, bad, err := m.steps(ctx, b, func(ctx context.Context) ([]step, error) { return stepsFunc(b, ctx) })
	if err != nil {
		return evidence.Certificate{}, err
	}
	return evidence.NewGate(m.facts(evidence.RuleExit, s), evidence.GateRuns{Good: good, Bad: bad})
}

func (m *measurement) facts(rule evidence.GateRule, s evidence.Sabotage) evidence.GateFacts {
	f := evidence.GateFacts{Gate: m.r.Gate, Digest: m.digest, Rule: rule, Sabotage: s}
	if rule == evidence.RuleKept || rule == evidence.RuleHeld {
		f.Base = m.r.BaseTree
	}
	return f
}

// syntaxError seals the tree with a syntax error in a changed source that is
// built; where the change has none, in another one.
func (m *measurement) syntaxError(ctx context.Context, b *bench) (evidence.Sabotage, error) {
	if err := b.scan(ctx); err != nil {
		return evidence.Sabotage{}, err
	}
	changed := m.changedPaths()
	type candidate struct {
		path string
		s    lang.Saboteur
	}
	var first, rest []candidate
	for _, p := range b.projects {
		s, ok := p.driver.(lang.Saboteur)
		if !ok || p.scan == nil {
			continue
		}
		for _, u := range p.scan.Units {
			for _, file := range u.Files {
				if slices.Contains(changed, file) {
					first = append(first, candidate{file, s})
				} else {
					rest = append(rest, candidate{file, s})
				}
			}
		}
	}
	for _, c := range append(first, rest...) {
		src, err := m.file(ctx, b.tree, c.path)
		if err != nil {
			return evidence.Sabotage{}, err
		}
		bad, ok := c.s.SyntaxError(c.path, src)
		if !ok {
			continue
		}
		tree, err := m.replaced(ctx, b.tree, c.path, bad)
		if err != nil {
			return evidence.Sabotage{}, err
		}
		return evidence.Sabotage{Kind: evidence.SabotageSyntax, Summary: "syntax error in " + c.path, Tree: tree, Diff: DiffText(c.path, src, bad)}, nil
	}
	return evidence.Sabotage{}, fault.New(fault.Unmeasured, gate.CodeNotProven, "the tree has no source in which a syntax error could be put")
}

func (m *measurement) file(ctx context.Context, tree evidence.Tree, path string) ([]byte, error) {
	return m.site.Snapshots().File(ctx, m.r.Repo, tree, path)
}
