package render

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Table is rows under named columns. A cell is foreign text; the first column
// may carry an evidence word, which is shown with its shape.
type Table struct {
	Columns []string
	Rows    [][]string
	Word    int          // column of the evidence word; -1: none
	Right   map[int]bool // columns of numbers
}

// Write lays the table out: aligned on a terminal; elsewhere tab-separated with
// the full values, and a header only when the style asks.
func (t Table) Write(w io.Writer, s Style) error {
	if !s.Terminal {
		return t.writeTSV(w, s)
	}
	widths := make([]int, len(t.Columns))
	cells := make([][]string, 0, len(t.Rows)+1)
	cells = append(cells, t.Columns)
	for _, r := range t.Rows {
		line := make([]string, len(t.Columns))
		for i := range min(len(r), len(line)) {
			line[i] = t.cell(i, r[i], s)
		}
		cells = append(cells, line)
	}
	for _, r := range cells {
		for i, c := range r {
			widths[i] = max(widths[i], columns(c))
		}
	}
	var b strings.Builder
	for n, r := range cells {
		var line strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-columns(c))
			if i > 0 {
				line.WriteString("  ")
			}
			switch {
			case t.Right[i]:
				line.WriteString(pad + t.tinted(i, n, c, s))
			case i == len(r)-1:
				line.WriteString(t.tinted(i, n, c, s))
			default:
				line.WriteString(t.tinted(i, n, c, s) + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell is the plain text of a cell, without colour.
func (t Table) cell(i int, v string, s Style) string {
	if i == t.Word && t.Word >= 0 {
		plain := s
		plain.Color = false
		return plain.word(v)
	}
	return Line(v)
}

func (t Table) tinted(i, row int, c string, s Style) string {
	switch {
	case row == 0:
		return s.paint(grey, c)
	case i == t.Word && t.Word >= 0:
		return s.paint(lookup(words, t.Rows[row-1][i]).tint, c)
	}
	return c
}

func (t Table) writeTSV(w io.Writer, s Style) error {
	var b strings.Builder
	if s.Header {
		b.WriteString(strings.Join(t.Columns, "\t") + "\n")
	}
	for _, r := range t.Rows {
		for i, c := range r {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(Line(c))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// columns counts characters; escape sequences of our own take no room.
func columns(s string) int {
	n := 0
	for {
		at := strings.Index(s, "\x1b[")
		if at < 0 {
			return n + utf8.RuneCountInString(s)
		}
		n += utf8.RuneCountInString(s[:at])
		end := strings.IndexByte(s[at:], 'm')
		if end < 0 {
			return n
		}
		s = s[at+end+1:]
	}
}

// clip shortens a line to the width of the terminal; colour is closed again.
func (s Style) clip(line string) string {
	if s.Width <= 0 || columns(line) <= s.Width {
		return line
	}
	var b strings.Builder
	room, colored := s.Width-columns(s.ellipsis()), false
	for i := 0; i < len(line) && room > 0; {
		if strings.HasPrefix(line[i:], "\x1b[") {
			end := strings.IndexByte(line[i:], 'm')
			b.WriteString(line[i : i+end+1])
			i, colored = i+end+1, true
			continue
		}
		r, n := utf8.DecodeRuneInString(line[i:])
		b.WriteRune(r)
		i, room = i+n, room-1
	}
	b.WriteString(s.ellipsis())
	if colored {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}
