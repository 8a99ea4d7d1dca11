package deps

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/late"
)

var (
	pipName  = late.Regexp(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`)
	pipHash  = late.Regexp(`\s--hash[= ](\S+)`)
	pipRuns  = late.Regexp(`[-_.]+`)
	pipNotes = late.Regexp(`(^|\s)#.*$`)
)

// requirements reads a requirements or constraints file of pip. Its options, such
// as another index, are names of their own.
func requirements(body []byte) (Set, error) {
	s := newSet()
	text := strings.NewReplacer("\r\n", "\n", "\\\r\n", " ", "\\\n", " ").Replace(string(body))
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(pipNotes().ReplaceAllString(line, ""))
		switch {
		case line == "":
		case strings.HasPrefix(line, "-"):
			option, value, _ := strings.Cut(strings.Replace(line, "=", " ", 1), " ")
			s.add("option "+option, Pin{Source: strings.TrimSpace(value)})
		default:
			if err := s.required(line); err != nil {
				return Set{}, fmt.Errorf("line %d: %w", i+1, err)
			}
		}
	}
	return s, nil
}

// required reads one requirement: name, extras, versions, markers, hashes.
func (s Set) required(line string) error {
	var hashes []string
	for _, m := range pipHash().FindAllStringSubmatch(line, -1) {
		hashes = append(hashes, m[1])
	}
	slices.Sort(hashes)
	line = strings.TrimSpace(pipHash().ReplaceAllString(line, ""))
	name := pipName().FindString(line)
	rest := strings.Join(strings.Fields(line[len(name):]), "")
	if name == "" || rest != "" && strings.ContainsAny(rest[:1], ":+/") {
		s.add(line, Pin{Version: "path"}) // a place without a name stands for itself
		return nil
	}
	if rest != "" && !strings.ContainsAny(rest[:1], "[<>=!~;@(,") {
		return fmt.Errorf("%.80q is no requirement", line)
	}
	if rest == "" {
		rest = "*"
	}
	s.add(strings.ToLower(pipRuns().ReplaceAllString(name, "-")), Pin{Version: rest, Checksum: strings.Join(hashes, " "), Locked: len(hashes) > 0})
	return nil
}
