package policy

import (
	"strconv"
	"strings"
	"time"
)

// longest is the longest duration that a policy may name.
const longest = 3650 * day

const day = 24 * time.Hour

// units of durations, largest first.
var units = []struct {
	name string
	size time.Duration
}{{"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}

// parseSpan reads whole numbers with units, largest unit first: 90s, 1h30m, 14d.
// A bare 0 is nothing; any other number without a unit is refused.
func parseSpan(s string) (time.Duration, bool) {
	if s == "0" {
		return 0, true
	}
	var sum time.Duration
	next := 0
	for s != "" {
		end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		if end <= 0 {
			return 0, false
		}
		n, err := strconv.ParseInt(s[:end], 10, 32)
		if err != nil {
			return 0, false
		}
		for next < len(units) && units[next].name != s[end:end+1] {
			next++
		}
		if next == len(units) || time.Duration(n) > longest/units[next].size {
			return 0, false
		}
		if sum += time.Duration(n) * units[next].size; sum > longest {
			return 0, false
		}
		s, next = s[end+1:], next+1
	}
	return sum, sum > 0
}

// spanText writes a duration as parseSpan reads it. Days are used from two on.
func spanText(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	var b strings.Builder
	for _, u := range units {
		if u.size == day && (d < 2*day || d%day != 0) {
			continue
		}
		if d >= u.size {
			b.WriteString(strconv.FormatInt(int64(d/u.size), 10))
			b.WriteString(u.name)
			d %= u.size
		}
	}
	return b.String()
}
