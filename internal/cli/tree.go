package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/fault"
)

// parses tells whether the command tree accepts the words, without running them.
func parses(args []string) error {
	root := newRoot(&command{})
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(rest, func(a string) bool { return a == "-h" || a == "--help" }) {
		return nil
	}
	if cmd.Name() == "help" {
		return helpTopic(root, rest)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// commandOf tells a hint that is a command from one that is a sentence. Settings
// in front of the command are part of it.
func commandOf(hint string) bool {
	words := strings.Fields(hint)
	for len(words) > 0 && strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-") {
		words = words[1:]
	}
	switch {
	case len(words) == 0:
		return false
	case words[0] == "go", words[0] == "chmod", words[0] == "git":
		return len(words) > 1
	case words[0] != "proveto":
		return false
	}
	return parses(words[1:]) == nil || strings.ContainsAny(hint, "'\"")
}

// onlySubcommands refuses the arguments of a command that only groups others,
// and names the nearest one that exists.
func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := []string{}
	for _, c := range cmd.Commands() {
		if c.Runnable() {
			names = append(names, c.Name())
		}
	}
	e := fault.New(fault.Usage, "usage", "%s has no command %q", cmd.CommandPath(), args[0])
	if near := nearest(args[0], names); near != "" {
		hint := cmd.CommandPath() + " " + near
		if parses(strings.Fields(hint)[1:]) != nil {
			hint += " --help" // it needs arguments that nobody knows yet
		}
		e = e.Hint("%s", hint)
	}
	return e.Hint("%s --help", cmd.CommandPath())
}

// newHelp replaces cobra's help: an unknown topic is a usage error there too.
func newHelp(c *command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND|TOPIC]",
		GroupID: "machine",
		Short:   "Explain a command or a topic",
		Long:    "Explain a command, or one of the topics: evidence, exit-codes, codes, environment, config, flags, isolation.",
		Example: "  proveto help start\n  proveto help evidence",
		Args:    func(cmd *cobra.Command, args []string) error { return helpTopic(cmd.Root(), args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			of, _, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

func helpTopic(root *cobra.Command, args []string) error {
	of := root
	for _, a := range args {
		var next *cobra.Command
		names := []string{}
		for _, c := range of.Commands() {
			if names = append(names, c.Name()); c.Name() == a {
				next = c
			}
		}
		if next == nil {
			e := fault.New(fault.Usage, "usage", "no help on %q", strings.Join(args, " "))
			if near := nearest(a, names); near != "" {
				e = e.Hint("%s", strings.Replace(of.CommandPath()+" "+near, "proveto", "proveto help", 1))
			}
			return e.Hint("proveto help")
		}
		of = next
	}
	return nil
}

// documented makes help a document too, where one is asked for.
func (c *command) documented(show func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		if !c.jsonWanted() {
			show(cmd, args)
			return
		}
		var page strings.Builder
		cmd.SetOut(&page)
		show(cmd, args)
		cmd.SetOut(nil)
		c.answer = &answer{schema: "proveto/help/v1", data: map[string]any{"topic": strings.TrimPrefix(cmd.CommandPath(), "proveto "), "text": page.String()}}
	}
}

// usageTemplate leaves the common flags to their own page, and shows of the groups
// whose id begins with a dot only the names, so that the help of every command
// fits a screen.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{range $group := .Groups}}

{{.Title}}{{if eq (slice $group.ID 0 1) "."}}
 {{range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}} {{.Name}}{{end}}{{end}}{{else}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{if not .Groups}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{if and .HasParent .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if not .HasParent}}

Topics: evidence, exit-codes, codes, environment, config, flags, isolation (proveto help TOPIC){{end}}

Common flags, as -C DIR, --json, -o FILE, -q: proveto help flags
`
