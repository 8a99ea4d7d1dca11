package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/app"
)

// completing tells the hidden commands by which a shell asks for words.
func completing(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// offer completes with names of the last saved result; chosenFunc takes those
// that fit. An error offers nothing: a prompt is no place for it.
func (c *command) offer(chosenFunc func(app.Offers) []app.Named, other cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c.anyConfig = true
		a, err := c.open()
		if err != nil {
			return nil, other
		}
		o, err := a.Offer(cmd.Context())
		if err != nil {
			return nil, other
		}
		return fitting(chosenFunc(o), begun), other
	}
}

// fitting are the names that begin as the word does; without any, the ends of
// names after a dot that do.
func fitting(names []app.Named, begun string) []cobra.Completion {
	var whole, ends []cobra.Completion
	for _, n := range names {
		if strings.HasPrefix(n.Word, begun) {
			whole = append(whole, cobra.CompletionWithDesc(n.Word, n.What))
		}
		if _, end, ok := strings.Cut(n.Word, "."); ok && strings.HasPrefix(end, begun) {
			ends = append(ends, cobra.CompletionWithDesc(end, n.Word+", "+n.What))
		}
	}
	if len(whole) > 0 {
		return whole
	}
	return ends
}

func symbols(o app.Offers) []app.Named   { return o.Symbols }
func tests(o app.Offers) []app.Named     { return o.Tests }
func survivors(o app.Offers) []app.Named { return o.Survivors }

// once completes the first argument only.
func once(fn cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return fn(cmd, args, begun)
	}
}

// offers completes the values of a flag, and refuses none.
func offers(cmd *cobra.Command, name string, fn cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, fn); err != nil {
		panic(err) // there is no such flag
	}
}
