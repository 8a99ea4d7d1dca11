package gates

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/late"
	"github.com/proveto/proveto/internal/snapshot"
)

// filePatch is what a unified diff says about one file.
type filePatch struct {
	from, to string // empty: the file is not there
	hunks    []hunk
}

type hunk struct {
	line     int // of the old text, from 1
	old, new []string
}

var hunkHead = late.Regexp(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// parsePatch reads a unified diff as git and diff write it. Renames, modes and
// binary files are refused: a sabotage needs none.
func parsePatch(text string) ([]filePatch, error) {
	var out []filePatch
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		l := strings.TrimRight(lines[i], "\r\n")
		for _, bad := range []string{"rename ", "copy ", "old mode ", "Binary files ", "GIT binary patch"} {
			if strings.HasPrefix(l, bad) {
				return nil, fmt.Errorf("line %d: %q is not supported", i+1, l)
			}
		}
		switch {
		case strings.HasPrefix(l, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			f := filePatch{from: patchName(l[4:]), to: patchName(strings.TrimRight(lines[i+1][4:], "\r\n"))}
			out = append(out, f)
			i++
		case strings.HasPrefix(l, "@@ "):
			if len(out) == 0 {
				return nil, fmt.Errorf("line %d: a hunk without a file", i+1)
			}
			h, next, err := parseHunk(lines, i)
			if err != nil {
				return nil, err
			}
			f := &out[len(out)-1]
			f.hunks = append(f.hunks, h)
			i = next - 1
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it is no unified diff")
	}
	return out, nil
}

func patchName(s string) string {
	name, _, _ := strings.Cut(s, "\t")
	if name == "/dev/null" {
		return ""
	}
	if rest, ok := strings.CutPrefix(name, "a/"); ok {
		return path.Clean(rest)
	}
	if rest, ok := strings.CutPrefix(name, "b/"); ok {
		return path.Clean(rest)
	}
	return path.Clean(name)
}

func parseHunk(lines []string, at int) (h hunk, next int, err error) {
	g := hunkHead().FindStringSubmatch(lines[at])
	if g == nil {
		return h, 0, fmt.Errorf("line %d: %.80q is no hunk", at+1, lines[at])
	}
	number := func(s string) int {
		if s == "" {
			return 1
		}
		n, aerr := strconv.Atoi(s)
		if aerr != nil {
			err = fmt.Errorf("line %d: %w", at+1, aerr)
		}
		return n
	}
	h.line = number(g[1])
	olds, news := number(g[2]), number(g[4])
	if g[2] == "0" {
		h.line++ // it stands after the line that is named
	}
	if err != nil {
		return h, 0, err
	}
	i := at + 1
	for ; len(h.old) < olds || len(h.new) < news; i++ {
		if i >= len(lines) || lines[i] == "" {
			return h, 0, fmt.Errorf("line %d: the hunk of line %d ends early", i+1, at+1)
		}
		switch body := lines[i][1:]; lines[i][0] {
		case ' ':
			h.old, h.new = append(h.old, body), append(h.new, body)
		case '-':
			h.old = append(h.old, body)
		case '+':
			h.new = append(h.new, body)
		case '\n':
			h.old, h.new = append(h.old, "\n"), append(h.new, "\n")
		case '\\':
		default:
			return h, 0, fmt.Errorf("line %d: %.80q is no line of a hunk", i+1, lines[i])
		}
	}
	return h, i, nil
}

// apply makes the new text of a file. A hunk whose lines have moved is found where
// they stand now, nearest first.
func (f filePatch) apply(src []byte) ([]byte, error) {
	lines := strings.SplitAfter(string(src), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	moved := 0
	for _, h := range f.hunks {
		at := -1
		want := min(max(h.line-1+moved, 0), len(lines))
		for off := 0; at < 0 && off <= len(lines); off++ {
			for _, try := range []int{want + off, want - off} {
				if at < 0 && fits(lines, try, h.old) {
					at = try
				}
			}
		}
		if at < 0 {
			return nil, fmt.Errorf("%s: the hunk of line %d does not apply", orElse(f.to, f.from), h.line)
		}
		lines = slices.Concat(lines[:at], h.new, lines[at+len(h.old):])
		moved = at + len(h.new) - (h.line - 1 + len(h.old))
	}
	return []byte(strings.Join(lines, "")), nil
}

func fits(lines []string, at int, old []string) bool {
	if at < 0 || at+len(old) > len(lines) {
		return false
	}
	for i, o := range old {
		if strings.TrimRight(lines[at+i], "\n") != strings.TrimRight(o, "\n") {
			return false
		}
	}
	return true
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// patched seals a tree with a unified diff applied.
func (m *measurement) patched(ctx context.Context, tree evidence.Tree, diff string) (evidence.Tree, error) {
	bad := func(err error) error {
		return fault.Wrap(err, fault.Unmeasured, gate.CodeNotProven, "the probe's patch cannot be applied to tree %.12s", tree)
	}
	patches, err := parsePatch(diff)
	if err != nil {
		return "", bad(err)
	}
	files, err := m.site.Snapshots().Files(ctx, m.r.Repo, tree)
	if err != nil {
		return "", err
	}
	var edits []snapshot.Edit
	for _, f := range patches {
		var src []byte
		mode := snapshot.Regular
		if f.from != "" {
			i := slices.IndexFunc(files, func(x snapshot.File) bool { return x.Path == f.from })
			if i < 0 || (files[i].Mode != snapshot.Regular && files[i].Mode != snapshot.Executable) {
				return "", bad(fmt.Errorf("there is no file %q", f.from))
			}
			mode = files[i].Mode
			if src, err = m.file(ctx, tree, f.from); err != nil {
				return "", err
			}
		}
		if f.to == "" {
			edits = append(edits, snapshot.Edit{Path: f.from})
			continue
		}
		body, err := f.apply(src)
		if err != nil {
			return "", bad(err)
		}
		edits = append(edits, snapshot.Edit{Path: f.to, Mode: mode, Content: body})
	}
	made, err := m.compose(ctx, tree, edits...)
	if err == nil && made == tree {
		err = bad(errors.New("it changes nothing"))
	}
	return made, err
}
