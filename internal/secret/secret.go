// Package secret knows the shapes of keys: what must not be committed, printed or
// sent. The gate that looks at a change uses it, and whatever redacts text.
//
// It decides by the text alone, asks nobody whether a key is live, and stores
// nothing. A hit never holds the key itself outside of this package's callers:
// print [Hit.Masked].
package secret

import (
	"math"
	"regexp"
	"strings"
	"sync"

	"github.com/proveto/proveto/internal/evidence"
)

// Hit is one key in a text.
type Hit struct {
	Shape string // name of the shape: aws_access_key
	Line  int    // from 1
	Text  string // the key; do not print it
}

// Masked is the key for people: its first four characters and its length.
func (h Hit) Masked() string {
	head := h.Text
	if len(head) > 4 {
		head = head[:4]
	}
	return head + "[redacted]"
}

// Digest identifies the key without telling it.
func (h Hit) Digest() evidence.Digest { return evidence.DigestParts("secret/v1", h.Shape, h.Text) }

// shape is one kind of key. The first group of the expression, or all of it, is
// the key.
type shape struct {
	name    string
	needle  string // a text without which there can be no match; empty: none
	re      func() *regexp.Regexp
	checked func(key string) bool
}

func of(name, needle, re string, checked func(string) bool) shape {
	return shape{name, needle, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(re) }), checked}
}

// shapes, the narrow ones first: a stretch of text is reported once.
var shapes = []shape{
	of("private_key", "PRIVATE KEY", `-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`, nil),
	of("aws_access_key", "", `\b((?:AKIA|ASIA)[A-Z2-7]{16})\b`, nil),
	of("github_token", "gh", `\b(gh[pousr]_[A-Za-z0-9]{36,251})\b`, nil),
	of("github_token", "github_pat_", `\b(github_pat_[A-Za-z0-9_]{60,251})\b`, nil),
	of("gitlab_token", "glpat-", `\b(glpat-[A-Za-z0-9_-]{20,})`, nil),
	of("slack_token", "xox", `\b(xox[abeoprs]-[A-Za-z0-9-]{20,})`, nil),
	of("slack_webhook", "hooks.slack.com", `(https://hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{16,})`, nil),
	of("google_api_key", "AIza", `\b(AIza[A-Za-z0-9_-]{35})`, nil),
	of("anthropic_key", "sk-ant-", `\b(sk-ant-[A-Za-z0-9_-]{32,})`, nil),
	of("openai_key", "sk-", `\b(sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{32,})`, random),
	of("proveto_capability", "proveto_cap_", `\b(proveto_cap_[A-Za-z0-9_-]{43})`, nil),
	of("stripe_key", "_live_", `\b((?:sk|rk)_live_[A-Za-z0-9]{20,})\b`, nil),
	of("jwt", "eyJ", `\b(eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,})`, nil),
	of("assigned_secret", "", `(?i)\b[\w.-]{0,40}(?:secret|passwd|password|api_?key|access_?key|auth_?token|private_?token)[\w.-]{0,20}["']?\s*(?::=|=>|[:=])\s*["']([A-Za-z0-9+/_=.-]{20,200})["']`, random),
}

// Find lists the keys in a text, in the order of lines.
func Find(text string) []Hit {
	var out []Hit
	n := 0
	for line := range strings.Lines(text) {
		n++
		if len(line) > maxLine {
			line = line[:maxLine]
		}
		taken := [][2]int{}
		for _, s := range shapes {
			if s.needle != "" && !strings.Contains(line, s.needle) {
				continue
			}
			for _, at := range s.re().FindAllStringSubmatchIndex(line, -1) {
				from, to := at[0], at[1]
				if len(at) > 3 && at[2] >= 0 {
					from, to = at[2], at[3]
				}
				key := line[from:to]
				if overlaps(taken, from, to) || placeholder(key) || (s.checked != nil && !s.checked(key)) {
					continue
				}
				taken = append(taken, [2]int{from, to})
				out = append(out, Hit{Shape: s.name, Line: n, Text: key})
			}
		}
	}
	return out
}

// maxLine bounds what is looked at of one line: minified files have no more keys
// than others, and a regular expression need not walk megabytes.
const maxLine = 64 << 10

func overlaps(taken [][2]int, from, to int) bool {
	for _, t := range taken {
		if from < t[1] && t[0] < to {
			return true
		}
	}
	return false
}

// placeholder tells a text that stands for a key in documentation.
func placeholder(key string) bool {
	low := strings.ToLower(key)
	for _, w := range []string{"example", "xxxxxx", "placeholder", "changeme", "your_", "your-", "redacted", "dummy"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// random tells a text that no person chose: many different characters, digits
// among letters.
func random(key string) bool {
	return strings.ContainsAny(key, "0123456789") && strings.ContainsAny(strings.ToLower(key), "abcdefghijklmnopqrstuvwxyz") && entropy(key) >= 3.5
}

// entropy is that of the characters, in bits for each.
func entropy(s string) float64 {
	counts := map[rune]int{}
	for _, r := range s {
		counts[r]++
	}
	sum := 0.0
	for _, n := range counts {
		p := float64(n) / float64(len(s))
		sum -= p * math.Log2(p)
	}
	return sum
}
