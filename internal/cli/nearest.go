package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/view"
)

// nearest is the name within an edit distance of two (Levenshtein), or that
// begins with the word; empty when there is none.
func nearest(word string, names []string) string {
	best, distance := "", 3
	slices.Sort(names)
	for _, n := range names {
		if len(word) >= 3 && strings.HasPrefix(n, word) {
			return n
		}
		if d := editDistance(word, n); d < distance {
			best, distance = n, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// selectFields keeps the named fields of a JSON object; "help" lists the names. A
// name that the object does not have is a warning with those that it has.
func selectFields(data any, want string) (any, []view.Warning) {
	raw, err := json.Marshal(data)
	if err != nil {
		return data, nil // the renderer reports it
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return data, nil // not an object: nothing to select from
	}
	names := slices.Sorted(maps.Keys(fields))
	if want == "help" {
		return map[string][]string{"fields": names}, nil
	}
	var warnings []view.Warning
	out := map[string]json.RawMessage{}
	for _, n := range strings.Split(want, ",") {
		if v, ok := fields[n]; ok {
			out[n] = v
			continue
		}
		warnings = append(warnings, view.Warning{
			Code: "unknown_field", Message: fmt.Sprintf("data has no field %q (empty fields are left out); it has %s", n, strings.Join(names, ", ")),
		})
	}
	return out, warnings
}
