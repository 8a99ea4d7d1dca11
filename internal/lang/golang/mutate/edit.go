package mutate

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
)

// Apply makes the edits in src and returns the new text; src is not changed.
// Edits must not overlap. Insertions at one place keep the order in which they
// are given.
func Apply(src []byte, edits []Edit) []byte {
	sorted := append([]Edit(nil), edits...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Start < sorted[j].Start })
	var out bytes.Buffer
	at := 0
	for _, e := range sorted {
		out.Write(src[at:e.Start])
		out.WriteString(e.Text)
		at = e.End
	}
	out.Write(src[at:])
	return out.Bytes()
}

// context is the number of unchanged lines around a change in a diff.
const context = 3

// lineTable holds where the lines of a source begin.
type lineTable []int

func newLineTable(src []byte) lineTable {
	t := lineTable{0}
	for i, b := range src {
		if b == '\n' && i+1 < len(src) {
			t = append(t, i+1)
		}
	}
	return t
}

// line is the index of the line that contains the offset; the end of a source
// without final newline belongs to its last line.
func (t lineTable) line(offset int) int {
	return sort.SearchInts(t, offset+1) - 1
}

func (t lineTable) start(line, size int) int {
	if line < len(t) {
		return t[line]
	}
	return size
}

// lineChange replaces the lines [from, to) by text.
type lineChange struct {
	from, to int
	text     string
}

// changes joins edits into changed line ranges, in order.
func changes(src []byte, lines lineTable, edits []Edit) []lineChange {
	sorted := append([]Edit(nil), edits...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Start < sorted[j].Start })
	var out []lineChange
	var parts [][]Edit
	for _, e := range sorted {
		from, to := lines.line(e.Start), lines.line(max(e.Start, e.End-1))+1
		if e.Start == len(src) && (len(src) == 0 || src[len(src)-1] == '\n') {
			from, to = len(lines), len(lines) // after the last line
			if len(src) == 0 {
				from, to = 0, 0
			}
		}
		if n := len(out); n > 0 && from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, to)
			parts[n-1] = append(parts[n-1], e)
			continue
		}
		out, parts = append(out, lineChange{from: from, to: to}), append(parts, []Edit{e})
	}
	for i := range out {
		a, b := lines.start(out[i].from, len(src)), lines.start(out[i].to, len(src))
		moved := make([]Edit, len(parts[i]))
		for j, e := range parts[i] {
			moved[j] = Edit{Start: e.Start - a, End: e.End - a, Text: e.Text}
		}
		out[i].text = string(Apply(src[a:b], moved))
	}
	return out
}

// unified is the diff that the edits make in the file named path, with three
// lines of context and no time stamps.
func unified(path string, src []byte, lines lineTable, edits []Edit) string {
	all := changes(src, lines, edits)
	if len(all) == 0 {
		return ""
	}
	total := len(lines)
	if len(src) == 0 {
		total = 0
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- a/%s\n+++ b/%s\n", path, path)
	shift := 0
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].from-all[j-1].to <= 2*context {
			j++
		}
		shift += hunk(&out, src, lines, all[i:j], total, shift)
		i = j
	}
	return out.String()
}

// hunk writes one hunk and returns by how many lines it makes the file longer.
func hunk(out *strings.Builder, src []byte, lines lineTable, group []lineChange, total, shift int) int {
	from := max(group[0].from-context, 0)
	to := min(group[len(group)-1].to+context, total)
	var body strings.Builder
	oldN, newN, at := 0, 0, from
	text := func(a, b int) string { return string(src[lines.start(a, len(src)):lines.start(b, len(src))]) }
	for _, c := range group {
		n := prefixed(&body, " ", text(at, c.from))
		oldN, newN = oldN+n, newN+n
		oldN += prefixed(&body, "-", text(c.from, c.to))
		newN += prefixed(&body, "+", c.text)
		at = c.to
	}
	n := prefixed(&body, " ", text(at, to))
	oldN, newN = oldN+n, newN+n
	fmt.Fprintf(out, "@@ -%s +%s @@\n%s", lineRange(from, oldN), lineRange(from+shift, newN), body.String())
	return newN - oldN
}

// lineRange writes a line range as diff does: an empty one names the line before it.
func lineRange(from, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, n)
}

// prefixed writes every line of text with the prefix and counts them.
func prefixed(out *strings.Builder, prefix, text string) int {
	n := 0
	for text != "" {
		line, rest, found := strings.Cut(text, "\n")
		out.WriteString(prefix + line + "\n")
		if !found {
			out.WriteString("\\ No newline at end of file\n")
		}
		text, n = rest, n+1
	}
	return n
}
