package render

import "strings"

// Style is how text looks on one stream. It is computed once, by [DetectStyle],
// and passed on. The zero value is plain ASCII for a pipe.
type Style struct {
	Terminal bool // aligned tables and relative facts; otherwise tab-separated full values
	Color    bool
	Unicode  bool // shapes; otherwise their ASCII twins
	Header   bool // of tab-separated tables
	Width    int  // columns; 0 when not known: nothing is clipped

	Commands Commands // nil: every command works as it is
}

// Commands makes commands work where the user stands.
type Commands interface{ Here(command string) string }

// command is a command as it works where the user stands.
func (s Style) command(c string) string {
	if s.Commands == nil {
		return c
	}
	return s.Commands.Here(c)
}

// DetectStyle follows the conventions of terminals: flag is --color (auto,
// always, never or empty) and wins over CLICOLOR_FORCE, which wins over NO_COLOR
// and TERM=dumb. env reads one variable. It never asks the terminal itself.
func DetectStyle(env func(string) string, isTerminal bool, flag string) Style {
	s := Style{Terminal: isTerminal, Unicode: utf8Locale(env)}
	force := env("CLICOLOR_FORCE")
	switch {
	case flag == "always":
		s.Color = true
	case flag == "never":
	case force != "" && force != "0":
		s.Color = true
	case env("NO_COLOR") != "" || env("TERM") == "dumb":
	default:
		s.Color = isTerminal
	}
	return s
}

// utf8Locale applies the precedence of POSIX: the first that is set decides.
func utf8Locale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := env(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

type tint string

const (
	plain  tint = ""
	green  tint = "32"
	red    tint = "31"
	yellow tint = "33"
	grey   tint = "90"
	cyan   tint = "36"
	bold   tint = "1"
)

func (s Style) paint(t tint, text string) string {
	if !s.Color || t == plain || text == "" {
		return text
	}
	return "\x1b[" + string(t) + "m" + text + "\x1b[0m"
}

func (s Style) shape(m mark) string {
	if s.Unicode {
		return s.paint(m.tint, m.Shape)
	}
	return s.paint(m.tint, m.ASCII)
}

// word is shape and label of an evidence word.
func (s Style) word(w string) string {
	m := lookup(words, w)
	return s.shape(m) + " " + s.paint(m.tint, Line(m.Label))
}

func (s Style) ellipsis() string {
	if s.Unicode {
		return "…"
	}
	return "..."
}
