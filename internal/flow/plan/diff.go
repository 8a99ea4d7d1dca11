package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Delta is one place where two revisions differ.
type Delta struct {
	Where string `json:"where"`         // scope.S1.paths, requirements.R1.text
	Old   string `json:"old,omitempty"` // JSON; empty: it was not there
	New   string `json:"new,omitempty"` // JSON; empty: it is gone
}

// String is the delta in one line, as people read it.
func (d Delta) String() string {
	switch {
	case d.Old == "":
		return "+ " + d.Where + ": " + d.New
	case d.New == "":
		return "- " + d.Where + ": " + d.Old
	}
	return "~ " + d.Where + ": " + d.Old + " -> " + d.New
}

// Diff lists where two revisions differ, sorted by place. Requirements,
// acceptances, scope rules and invariants are told by their ids, interfaces by
// their symbols; other lists are compared entry by entry without regard to order.
func Diff(old, now *Contract) ([]Delta, error) {
	a, err := leaves(old)
	if err != nil {
		return nil, err
	}
	b, err := leaves(now)
	if err != nil {
		return nil, err
	}
	var out []Delta
	for _, at := range slices.Sorted(maps.Keys(a)) {
		if b[at] != a[at] {
			out = append(out, Delta{at, a[at], b[at]})
		}
	}
	for at, v := range b {
		if _, ok := a[at]; !ok {
			out = append(out, Delta{at, "", v})
		}
	}
	slices.SortFunc(out, func(x, y Delta) int { return strings.Compare(x.Where, y.Where) })
	return out, nil
}

// leaves are the values of a contract by their places.
func leaves(c *Contract) (map[string]string, error) {
	raw, err := c.Canonical()
	if err != nil {
		return nil, err
	}
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read a contract back: %w", err)
	}
	out := map[string]string{}
	return out, flatten("", doc, out)
}

func flatten(at string, v any, out map[string]string) error {
	below := func(name string) string {
		if at == "" {
			return name
		}
		return at + "." + name
	}
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			if err := flatten(below(name), x, out); err != nil {
				return err
			}
		}
		return nil
	case []any:
		for i, x := range v {
			if err := flatten(below(entryName(x, i)), x, out); err != nil {
				return err
			}
		}
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", at, err)
	}
	for base, n := at, 2; ; n++ { // one entry twice is two
		if _, taken := out[at]; !taken {
			break
		}
		at = fmt.Sprintf("%s#%d", base, n)
	}
	out[at] = string(b)
	return nil
}

// entryName is what tells an entry of a list: its id, its symbol, itself.
func entryName(v any, i int) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		for _, key := range []string{"id", "symbol"} {
			if s, ok := v[key].(string); ok && s != "" {
				return s
			}
		}
	}
	return fmt.Sprint(i + 1)
}
