// Package late makes things when they are first asked for. The command line is
// started for a few milliseconds of work; what it does not need it must not pay
// for.
package late

import (
	"regexp"
	"sync"
)

// Regexp gives an expression that is compiled when it is first asked for, and
// then kept. A text that is no expression panics at that time.
func Regexp(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
