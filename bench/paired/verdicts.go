//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
)

// place is what a verdict is about.
type place struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Col      int    `json:"col"`
	Operator string `json:"operator"`
}

type verdict struct {
	place
	Status string `json:"status"`
}

// readVerdicts reads a verdict file; two verdicts about one place are an error.
func readVerdicts(name string) (map[place]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[place]string{}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for n := 1; sc.Scan(); n++ {
		var v verdict
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if _, twice := out[v.place]; twice {
			return nil, fmt.Errorf("%s:%d: a second verdict about %s:%d:%d %s", name, n, v.File, v.Line, v.Col, v.Operator)
		}
		out[v.place] = v.Status
	}
	return out, sc.Err()
}

type comparison struct {
	common, agreed, onlyA, onlyB int
	differ                       []string
}

func compare(a, b map[place]string) comparison {
	var c comparison
	for p, sa := range a {
		sb, ok := b[p]
		switch {
		case !ok:
			c.onlyA++
		case sa == sb:
			c.common++
			c.agreed++
		default:
			c.common++
			c.differ = append(c.differ, fmt.Sprintf("%s:%d:%d %s: %s, %s", p.File, p.Line, p.Col, p.Operator, sa, sb))
		}
	}
	c.onlyB = len(b) - c.common
	sort.Strings(c.differ)
	return c
}
