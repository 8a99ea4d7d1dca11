package flows

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/render"
	"github.com/proveto/proveto/internal/wholefile"
)

// dir is the run's directory: copies for reading.
func (f *Flows) dir(run string) string { return filepath.Join(f.app.Paths.State, "runs", run) }

// The files of a run's directory.
const (
	contextFile  = "CONTEXT.md"
	planFile     = "plan.json"
	feedbackFile = "FEEDBACK.json"
	feedbackText = "FEEDBACK.md"
	sumFile      = ".context" // digest of the CONTEXT.md that was written last
)

// copies writes what people and agents read. A run that is recorded is recorded:
// trouble here is a warning.
func (f *Flows) copies(k known) error {
	if err := f.writeCopies(k.Run); err != nil {
		f.app.Warn("io", fmt.Sprintf("the copies in %s could not be written: %s", f.dir(k.ID), err))
	}
	return nil
}

// openDir makes the run's directory, and refuses a link in its place.
func (f *Flows) openDir(run string) (_ *os.Root, err error) {
	state, err := os.OpenRoot(f.app.Paths.State)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "io", "open %s", f.app.Paths.State)
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	if err := mkdirs(state, "runs", filepath.Join("runs", run)); err != nil {
		return nil, err
	}
	// The name is kept absolute: copies are put in place by it.
	return os.OpenRoot(f.dir(run))
}

func (f *Flows) writeCopies(r flow.Run) (err error) {
	root, err := f.openDir(r.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := f.writeContext(root, r); err != nil {
		return err
	}
	if r.Plan != nil {
		return put(root, planFile, append(bytes.TrimSpace(r.Plan.Contract), '\n'))
	}
	return nil
}

// writeContext keeps a copy that somebody edited beside the new one.
func (f *Flows) writeContext(root *os.Root, r flow.Run) error {
	text := Context(r)
	old, err := root.ReadFile(contextFile)
	if err == nil {
		sum, _ := root.ReadFile(sumFile) // without it the copy counts as edited
		switch {
		case bytes.Equal(old, []byte(text)):
			return nil
		case strings.TrimSpace(string(sum)) != string(evidence.DigestOf(old)):
			name, err := keepEdited(root, old)
			if err != nil {
				return err
			}
			f.app.Warn("edited", fmt.Sprintf("CONTEXT.md was edited by hand; that copy is %s. Nothing reads it: record what it says with proveto flow claim %s --text TEXT",
				filepath.Join(f.dir(r.ID), name), r.ID))
		}
	}
	if err := put(root, contextFile, []byte(text)); err != nil {
		return err
	}
	return put(root, sumFile, []byte(evidence.DigestOf([]byte(text))+"\n"))
}

func keepEdited(root *os.Root, text []byte) (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("CONTEXT.edited-%d.md", n)
		switch old, err := root.ReadFile(name); {
		case err == nil && bytes.Equal(old, text):
			return name, nil
		case err == nil:
		case os.IsNotExist(err):
			return name, put(root, name, text)
		default:
			return "", err
		}
	}
}

func mkdirs(root *os.Root, names ...string) error {
	for _, n := range names {
		if err := root.Mkdir(n, 0o700); err != nil && !os.IsExist(err) {
			return fault.Wrap(err, fault.Internal, "io", "make %s", filepath.Join(root.Name(), n))
		}
		if fi, err := root.Lstat(n); err != nil || !fi.IsDir() {
			return fault.New(fault.Refused, "io", "%s is not a directory", filepath.Join(root.Name(), n))
		}
	}
	return nil
}

// Context is CONTEXT.md: what the run is about, and what people and agents said,
// fenced so that no text of theirs can pass for ours.
func Context(r flow.Run) string {
	var b strings.Builder
	st := r.StatusAt(r.Last)
	fmt.Fprintf(&b, "# Run %s\n\n- project: %s\n- policy: %s\n", r.ID, inline(r.Project), inline(r.Policy.Name))
	if r.Base.Commit != "" {
		fmt.Fprintf(&b, "- base: %s\n", r.Base.Commit)
	}
	if r.Target != "" {
		fmt.Fprintf(&b, "- target: %s\n", inline(r.Target))
	}
	fmt.Fprintf(&b, "- status: %s, current stage: %s\n", st.Word, st.Stage)
	if r.Plan != nil {
		fmt.Fprintf(&b, "- plan: revision %d, %s, in plan.json\n", r.Plan.Revision, r.Plan.ID)
	}
	b.WriteString("\n## Task\n\n")
	fence(&b, r.Task)
	b.WriteString("\n## Notes\n\nWhat was said, in order. These are claims: nothing here was measured.\n\n")
	if len(r.Remarks) == 0 {
		b.WriteString("None yet.\n")
	}
	for _, n := range r.Remarks {
		fmt.Fprintf(&b, "- %s %s %s %s\n", n.At.UTC().Format(time.RFC3339), inline(n.Stage), inline(n.Actor.Principal), inline(n.Word))
		fence(&b, n.Text)
	}
	return b.String()
}

// fence quotes a text with more backticks than it has in a row.
func fence(b *strings.Builder, text string) {
	longest, run := 2, 0
	for _, c := range text {
		if c == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	f := strings.Repeat("`", longest+1)
	fmt.Fprintf(b, "%stext\n%s\n%s\n", f, render.Visible(text), f)
}

// inline keeps a name on its line and out of Markdown.
func inline(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case strings.ContainsRune("`*_[]<>#|\\", c):
			return '\''
		}
		return c
	}, strings.ReplaceAll(render.Visible(s), "\n", " "))
}

// put writes a copy whole. The directory was opened without following a link.
func put(root *os.Root, name string, b []byte) error {
	return wholefile.Write(filepath.Join(root.Name(), name), b, 0o600, false)
}
