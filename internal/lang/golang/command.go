package golang

import (
	"fmt"
	"regexp"
	"strings"
)

// TestCommand implements [lang.Commander].
func (*Driver) TestCommand(dir, unitDir, test string, times int) string {
	names := strings.Split(test, "/")
	for i, n := range names {
		names[i] = "^" + regexp.QuoteMeta(n) + "$"
	}
	unit := "."
	if unitDir != "." {
		unit = "./" + unitDir
	}
	return fmt.Sprintf("go -C %s test -count=%d -v -run %s %s", quote(dir), times, quote(strings.Join(names, "/")), quote(unit))
}

// quote makes a word safe to paste into a shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:=@") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
