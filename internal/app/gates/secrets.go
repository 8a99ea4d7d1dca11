package gates

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/sandbox"
	"github.com/proveto/proveto/internal/secret"
	"github.com/proveto/proveto/internal/snapshot"
)

// scanArgument starts our executable as the scanner of secrets.
const scanArgument = "proveto-scan-secrets"

// maxScanned bounds what is read of one file, in bytes.
const maxScanned = 32 << 20

// scanRequest says which files of the checkout are read, and which keys each held
// before: what was there is no part of the change.
type scanRequest struct {
	Files []scanFile `json:"files"`
}

type scanFile struct {
	Path  string                  `json:"path"`
	Known map[evidence.Digest]int `json:"known,omitempty"`
}

// scanHit is one line of the scanner's answer. It never holds the key.
type scanHit struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	Shape  string `json:"shape"`
	Masked string `json:"masked"`
}

// Reexec handles an invocation of our executable as a helper of this package:
// handled says that it was one, code is its exit code. The scanner runs in the
// sandbox at the root of a checkout, takes its request on standard input and ends
// with 1 when it found a key.
func Reexec(args []string) (code int, handled bool) {
	if len(args) != 1 || args[0] != scanArgument {
		return 0, false
	}
	hits, err := scanHere(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2, true
	}
	out := json.NewEncoder(os.Stdout)
	for _, h := range hits {
		if err := out.Encode(h); err != nil {
			return 2, true
		}
	}
	if len(hits) > 0 {
		return 1, true
	}
	return 0, true
}

func scanHere(in io.Reader) ([]scanHit, error) {
	var r scanRequest
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return nil, fmt.Errorf("request to the scanner: %w", err)
	}
	root, err := os.OpenRoot(".")
	if err != nil {
		return nil, fmt.Errorf("open the checkout: %w", err)
	}
	defer root.Close()
	var out []scanHit
	for _, f := range r.Files {
		text, err := readFile(root, f.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		for _, h := range secret.Find(text) {
			if f.Known[h.Digest()] > 0 {
				f.Known[h.Digest()]--
				continue
			}
			out = append(out, scanHit{f.Path, h.Line, h.Shape, h.Masked()})
		}
	}
	return out, nil
}

func readFile(root *os.Root, name string) (string, error) {
	st, err := root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() {
		return "", nil
	}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxScanned))
	return string(b), err
}

// secrets looks for keys in what the change adds. The probe is a file with a
// made-up key.
func (m *measurement) secrets(ctx context.Context) (found, error) {
	runs, hits, n, err := m.scanTree(ctx, m.r.Tree)
	if err != nil {
		return found{}, err
	}
	v := evidence.JudgeGate(evidence.RuleExit, nil, runs)
	f := found{Answer: gate.Of(v), metrics: map[string]float64{"files": float64(n), "found": float64(len(hits))}}
	if f.Outcome == gate.No && len(hits) == 0 {
		return found{}, fault.New(fault.Internal, "internal", "the scanner of secrets failed: %s", cut(m.printed(runs[0].Run.Digest()), 5))
	}
	for _, h := range hits {
		f.Reason = fmt.Sprintf("%s:%d holds a %s", hits[0].Path, hits[0].Line, hits[0].Shape)
		f.issues = append(f.issues, gate.Issue{
			Category: gate.Defect, Code: gate.CodeFailed, File: h.Path, Line: h.Line, Message: fmt.Sprintf("it looks like a %s: %s", h.Shape, h.Masked),
			Expected: "no key in the tree", Actual: h.Masked,
		})
	}
	f.probeFunc = func(ctx context.Context) (evidence.Certificate, error) {
		const path = "proveto-probe-key.txt"
		// Put together here, so that our own sources hold no key.
		body := []byte("aws_access_key_id = AKIA" + "Q3EGVXR7YTMN2LKD\n")
		tree, err := m.compose(ctx, m.r.Tree, snapshot.Edit{Path: path, Mode: snapshot.Regular, Content: body})
		if err != nil {
			return evidence.Certificate{}, err
		}
		m.sabotage = evidence.Sabotage{Kind: evidence.SabotageKey, Summary: "a file with a made-up key", Tree: tree, Diff: DiffText(path, nil, body)}
		bad, _, _, err := m.scanTree(ctx, tree)
		if err != nil {
			return evidence.Certificate{}, err
		}
		return evidence.NewGate(m.facts(evidence.RuleExit, m.sabotage), evidence.GateRuns{Good: runs, Bad: bad})
	}
	return f, nil
}

// scanTree runs the scanner over what a tree adds to the base.
func (m *measurement) scanTree(ctx context.Context, tree evidence.Tree) (runs []evidence.UnitRun, hits []scanHit, files int, err error) {
	b, err := m.bench(ctx, tree)
	if err != nil {
		return nil, nil, 0, err
	}
	changes, err := m.site.Snapshots().Diff(ctx, m.r.Repo, m.r.BaseTree, tree)
	if err != nil {
		return nil, nil, 0, err
	}
	var req scanRequest
	for _, c := range changes {
		if c.NewMode != snapshot.Regular && c.NewMode != snapshot.Executable {
			continue
		}
		f := scanFile{Path: c.Path, Known: map[evidence.Digest]int{}}
		if c.OldMode == snapshot.Regular || c.OldMode == snapshot.Executable {
			was, err := m.file(ctx, m.r.BaseTree, c.Path)
			if err != nil {
				return nil, nil, 0, err
			}
			for _, h := range secret.Find(string(was[:min(len(was), maxScanned)])) {
				f.Known[h.Digest()]++
			}
		}
		req.Files = append(req.Files, f)
	}
	in, err := json.Marshal(req)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("request to the scanner: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, 0, fmt.Errorf("own executable: %w", err)
	}
	spec := sandbox.Spec{Min: b.w.Min, Max: b.w.Max, Hidden: b.w.Hidden, Sources: []string{b.w.Root}, ReadOnly: []string{filepath.Dir(self)}}
	u, err := b.inBox(ctx, "scan", spec, sandbox.Command{
		Purpose: evidence.PurposeTool, Argv: []string{self, scanArgument}, Stdin: in,
		Limits: evidence.Limits{CPU: 5 * time.Minute, Wall: 5 * time.Minute, OutputBytes: 4 << 20, Processes: 64, MemoryBytes: 4 << 30},
	})
	if err != nil {
		return nil, nil, 0, err
	}
	for _, r := range m.site.Runs() {
		if r.Run.Digest() != u.Run.Digest() {
			continue
		}
		for dec := json.NewDecoder(bytes.NewReader(r.Stdout)); dec.More(); {
			var h scanHit
			if err := dec.Decode(&h); err != nil {
				return nil, nil, 0, fmt.Errorf("answer of the scanner: %w", err)
			}
			hits = append(hits, h)
		}
	}
	if code := u.Run.Record().Exit.Code; code != 0 && len(hits) == 0 && u.Run.Record().Exit.Stopped == "" {
		return nil, nil, 0, fault.New(fault.Internal, "internal", "the scanner of secrets ended with %d: %s", code, cut(m.printed(u.Run.Digest()), 5))
	}
	return []evidence.UnitRun{u}, hits, len(req.Files), nil
}
