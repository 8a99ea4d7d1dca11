package app

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
)

// tellApart says which value would tell a surviving probe from the original,
// where the changed line shows it: at a boundary, and at a number that something
// is compared with. Empty where it does not.
func tellApart(t evidence.TrialRecord) string {
	if t.Status != evidence.Survived {
		return ""
	}
	p := t.Probe
	line, ok := removedLine(p.Diff)
	at := p.Column - 1
	if !ok || at < 0 || at > len(line) {
		return ""
	}
	word, _, _ := strings.Cut(p.Summary, " ")
	if !strings.HasPrefix(line[at:], word) {
		return ""
	}
	before, after := line[:at], line[at+len(word):]
	switch {
	case p.Kind == evidence.ProbeBoundary && t.Note == "not_infected":
		x, y := leftOperand(before), rightOperand(after)
		if x == "" || y == "" {
			return "they differ where both sides are equal: test that"
		}
		return fmt.Sprintf("they differ where %s is %s: test that", x, y)
	case p.Kind == evidence.ProbeConstant && strings.HasSuffix(p.Summary, " incremented"):
		n, err := strconv.ParseInt(word, 0, 63)
		if err != nil {
			return ""
		}
		x, beyond := compared(before, word, after)
		if x == "" {
			return ""
		}
		if beyond {
			n++
		}
		return fmt.Sprintf("they differ where %s is %d: test that", x, n)
	}
	return ""
}

// compared is what the literal is compared with; beyond says that the first value
// for which a literal greater by one decides otherwise is one more than it.
func compared(before, literal, after string) (operand string, beyond bool) {
	head := strings.TrimRight(before, " \t")
	for _, op := range []string{"<=", ">=", "==", "!=", "<", ">"} {
		if left, ok := strings.CutSuffix(head, op); ok {
			if rightOperand(literal+after) != literal {
				return "", false
			}
			return leftOperand(left), op == "<=" || op == ">"
		}
	}
	tail := strings.TrimLeft(after, " \t")
	for _, op := range []string{"<=", ">=", "==", "!=", "<", ">"} {
		if right, ok := strings.CutPrefix(tail, op); ok {
			if leftOperand(before+literal) != literal {
				return "", false
			}
			return rightOperand(right), op == ">=" || op == "<"
		}
	}
	return "", false
}

// removedLine is the one line that a diff changes.
func removedLine(diff string) (line string, ok bool) {
	n := 0
	for l := range strings.Lines(diff) {
		if strings.HasPrefix(l, "-") && !strings.HasPrefix(l, "--- ") {
			line, n = strings.TrimRight(l[1:], "\r\n"), n+1
		}
	}
	return line, n == 1
}

// longestOperand is how long an operand may be to help in a sentence.
const longestOperand = 40

// leftOperand is the operand of a comparison that ends where s does; empty where
// its beginning is not certain.
func leftOperand(s string) string {
	s = strings.TrimRight(s, " \t")
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch c := s[i]; {
		case strings.IndexByte("\"'`<>", c) >= 0:
			return ""
		case strings.IndexByte(")]}", c) >= 0:
			depth++
		case strings.IndexByte("([{", c) >= 0:
			if depth == 0 {
				return operand(s[i+1:])
			}
			depth--
		case depth > 0:
		case c == ',' || c == ';' || c == ':' || c == '=' || strings.HasSuffix(s[:i+1], "&&") || strings.HasSuffix(s[:i+1], "||"):
			return operand(s[i+1:])
		case c == ' ' || c == '\t':
			words := strings.Fields(s[:i])
			if len(words) > 0 && beginners[words[len(words)-1]] {
				return operand(s[i+1:])
			}
		}
	}
	return ""
}

// beginners are the words after which an expression begins.
var beginners = map[string]bool{"if": true, "for": true, "return": true, "case": true, "switch": true, "while": true}

// rightOperand is the operand of a comparison that begins where s does; empty
// where its end is not certain.
func rightOperand(s string) string {
	s = strings.TrimLeft(s, " \t")
	depth := 0
	for i := range len(s) {
		switch c := s[i]; {
		case strings.IndexByte("\"'`<>=", c) >= 0:
			return ""
		case c == '{' && depth == 0 && i > 0 && s[i-1] == ' ':
			return operand(s[:i])
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			if depth == 0 {
				return operand(s[:i])
			}
			depth--
		case depth > 0:
		case c == ',' || c == ';' || c == ':' || strings.HasPrefix(s[i:], "&&") || strings.HasPrefix(s[i:], "||") || strings.HasPrefix(s[i:], "//"):
			return operand(s[:i])
		}
	}
	if depth > 0 || s == "" || strings.IndexByte("+-*/%&|^.!", s[len(s)-1]) >= 0 {
		return ""
	}
	return operand(s)
}

func operand(s string) string {
	if s = strings.TrimSpace(s); len(s) > longestOperand {
		return ""
	}
	return s
}
