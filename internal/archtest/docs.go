package archtest

import (
	"fmt"
	"strings"
)

// Markdown is the table as docs/concepts.md shows it: floors from the top, one
// line a package.
func Markdown(table []Row) string {
	var b strings.Builder
	b.WriteString("| floor | package | responsibility | beside lower floors may import | alone may |\n|---|---|---|---|---|\n")
	for f := Tools; f >= Words; f-- {
		for _, r := range table {
			if r.Floor == f {
				fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", f, r.Path, r.Why, arrowsText(r), powersText(r))
			}
		}
	}
	return b.String()
}

func arrowsText(r Row) string {
	var parts []string
	if len(r.Along) > 0 {
		parts = append(parts, code(r.Along))
	}
	if r.Only != nil {
		only := "no other package of ours"
		if len(r.Only) > 0 {
			only = "of ours only " + code(r.Only)
		}
		parts = append(parts, only)
	}
	if len(r.Never) > 0 {
		parts = append(parts, "never reaches "+code(r.Never))
	}
	return strings.Join(parts, "; ")
}

func code(paths []string) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = "`" + strings.TrimPrefix(p, "internal/") + "`"
	}
	return strings.Join(out, ", ")
}

func powersText(r Row) string {
	var parts []string
	for _, p := range []Power{StartsProcesses, SpeaksSQL, UsesSQLTypes, Exits, RecordsRuns, LoadsRuns, HasInit} {
		if why, ok := r.May[p]; ok {
			parts = append(parts, fmt.Sprintf("%s (%s)", strings.ReplaceAll(string(p), "_", " "), why))
		}
	}
	return strings.Join(parts, "; ")
}
