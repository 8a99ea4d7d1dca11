package identity

import "strings"

// matchList is match_pattern_list of OpenSSH: patterns with commas between them,
// * and ? in each; one that begins with ! and fits excludes, whatever else fits.
func matchList(text, patterns string) bool {
	fits := false
	for p := range strings.SplitSeq(patterns, ",") {
		p, negated := strings.CutPrefix(p, "!")
		if !match(text, p) {
			continue
		}
		if negated {
			return false
		}
		fits = true
	}
	return fits
}

// match fits a whole text to a pattern in a time linear in their product.
func match(text, pattern string) bool {
	t, p := 0, 0
	star, from := -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			t, p = t+1, p+1
		case star >= 0:
			from++
			t, p = from, star+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
