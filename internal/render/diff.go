package render

import (
	"slices"
	"strconv"
	"strings"
)

// diffLine is one line of a unified diff without its file headers.
type diffLine struct {
	Op   byte // '-', '+', ' ' or '@' for a hunk header
	Text string
	Old  int // line number in the original; of the next line for additions
}

// parseDiff reads a unified diff; what is not one comes back as context lines,
// so that nothing that was handed over is hidden.
func parseDiff(diff string) []diffLine {
	var out []diffLine
	old, started := 0, false
	for _, l := range strings.Split(strings.TrimRight(diff, "\n"), "\n") {
		switch {
		case strings.HasPrefix(l, "@@"):
			old, started = hunkStart(l), true
			out = append(out, diffLine{'@', l, old})
		case !started && (strings.HasPrefix(l, "--- ") || strings.HasPrefix(l, "+++ ") || strings.HasPrefix(l, "diff ") || strings.HasPrefix(l, "index ")):
		case strings.HasPrefix(l, `\`): // no newline at end of file
		case strings.HasPrefix(l, "+"):
			out = append(out, diffLine{'+', l[1:], old})
		case strings.HasPrefix(l, "-"):
			out = append(out, diffLine{'-', l[1:], old})
			old++
		case l == "" && len(out) == 0:
		default:
			out = append(out, diffLine{' ', strings.TrimPrefix(l, " "), old})
			old++
		}
	}
	return out
}

// hunkStart reads the old start line of "@@ -41,3 +41,3 @@"; 1 when it is not
// there.
func hunkStart(l string) int {
	_, rest, ok := strings.Cut(l, "-")
	if !ok {
		return 1
	}
	end := strings.IndexAny(rest, ", ")
	if end < 0 {
		return 1
	}
	n, err := strconv.Atoi(rest[:end])
	if err != nil {
		return 1
	}
	return n
}

// changed keeps the removed and added lines only.
func changed(lines []diffLine) []diffLine {
	var out []diffLine
	for _, l := range lines {
		if l.Op == '+' || l.Op == '-' {
			out = append(out, l)
		}
	}
	return out
}

// without are the lines that the other diff of the same place does not have; all
// of them when that leaves none.
func without(lines, other []diffLine) []diffLine {
	var out []diffLine
	for _, l := range lines {
		if !slices.Contains(other, l) {
			out = append(out, l)
		}
	}
	if len(out) == 0 {
		return lines
	}
	return out
}
