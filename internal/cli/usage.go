package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proveto/proveto/internal/fault"
)

// misuse is a refusal of the command line, with the page that explains it.
func misuse(cmd *cobra.Command, format string, args ...any) *fault.Error {
	return fault.New(fault.Usage, "usage", format, args...).Hint("%s --help", cmd.CommandPath())
}

// usage makes a fault of what cobra itself refuses: nothing has begun then.
func (c *command) usage(cmd *cobra.Command, err error) error {
	var f *fault.Error
	if err == nil || c.begun || errors.As(err, &f) {
		return err
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return misuse(cmd, "%s: %s", cmd.CommandPath(), first)
}

// exactly takes n arguments; what says which.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return surplus(cmd, n, args)
		}
		if len(args) < n {
			return misuse(cmd, "%s", what)
		}
		return nil
	}
}

// atMost takes up to n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return surplus(cmd, n, args)
		}
		return nil
	}
}

func surplus(cmd *cobra.Command, n int, args []string) error {
	takes := "no argument"
	if n == 1 {
		takes = "one argument"
	} else if n > 1 {
		takes = fmt.Sprintf("%d arguments", n)
	}
	return misuse(cmd, "%s takes %s; %q is one too many", cmd.CommandPath(), takes, args[n])
}

// someOf takes any number of the words of ValidArgs.
func someOf(noun string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for _, a := range args {
			if err := among(cmd, noun, a, cmd.ValidArgs); err != nil {
				return err
			}
		}
		return nil
	}
}

func among(cmd *cobra.Command, what, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return misuse(cmd, "%s %q: want %s", what, word, strings.Join(words, ", "))
}

// wordsKey is the annotation of a flag that takes one of a few words.
const wordsKey = "proveto_words"

// words limits a flag to a few words: others are refused, and shells offer them.
func words(cmd *cobra.Command, fs *pflag.FlagSet, name string, of ...string) {
	err := errors.Join(fs.SetAnnotation(name, wordsKey, of),
		cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(of, cobra.ShellCompDirectiveNoFileComp)))
	if err != nil {
		panic(err) // there is no such flag
	}
}

// checkWords refuses words that a flag does not have.
func checkWords(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		of := f.Annotations[wordsKey]
		if of == nil {
			return
		}
		given := []string{f.Value.String()}
		if s, ok := f.Value.(pflag.SliceValue); ok {
			given = s.GetSlice()
		}
		for _, w := range given {
			errs = append(errs, among(cmd, "--"+f.Name, w, of))
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// swallowed refuses a flag in the place of another one's value: what stands behind
// --task is forgotten more often than it begins with two dashes. A value like that
// is given as --task=--json.
func swallowed(root *cobra.Command, args []string) (*cobra.Command, error) {
	if completing(args) {
		return root, nil
	}
	cmd, _, err := root.Find(args)
	if err != nil {
		return cmd, nil //nolint:nilerr // an unknown command is refused where it is run
	}
	cmd.InheritedFlags() // joins them into Flags
	named := func(arg string) *pflag.Flag {
		if name, long := strings.CutPrefix(arg, "--"); long {
			name, _, _ = strings.Cut(name, "=")
			return cmd.Flags().Lookup(name)
		}
		if len(arg) == 2 && arg[0] == '-' {
			return cmd.Flags().ShorthandLookup(arg[1:])
		}
		return nil
	}
	for i := 0; i < len(args)-1 && args[i] != "--"; i++ {
		f := named(args[i])
		if f == nil || f.NoOptDefVal != "" || strings.HasPrefix(args[i], "--") && strings.Contains(args[i], "=") {
			continue
		}
		i++ // the value
		if named(args[i]) != nil {
			value, _ := pflag.UnquoteUsage(f)
			return cmd, misuse(cmd, "--%s needs a value: %s; %s is a flag", f.Name, strings.ToUpper(value), args[i])
		}
	}
	return cmd, nil
}

// wants are the values of a flag by the name of its type.
var wants = map[string]string{
	"int": "a whole number", "int64": "a whole number", "float64": "a number", "bool": "true or false",
	"duration": "a duration such as 90s or 5m", "stringSlice": "a list separated by commas",
}

// atLeast refuses a number of a flag that is given and too small.
func atLeast(cmd *cobra.Command, flag string, least, n int) error {
	if n >= least || !cmd.Flags().Changed(flag) {
		return nil
	}
	return misuse(cmd, "--%s wants a whole number, at least %d, not %d", flag, least, n)
}

// flagFault says what is wrong with a flag, and names the nearest one that
// exists.
func flagFault(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &empty):
		value, _ := pflag.UnquoteUsage(empty.GetFlag())
		return misuse(cmd, "--%s needs a value: %s", empty.GetFlag().Name, strings.ToUpper(value))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return misuse(cmd, "--%s wants %s, not %q", f.Name, wants[f.Value.Type()], invalid.GetValue())
	case errors.As(err, &syntax):
		return misuse(cmd, "%q is not a flag", syntax.GetSpecifiedFlag())
	}
	return misuse(cmd, "%s: %s", cmd.CommandPath(), err)
}

func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		return misuse(cmd, "%s has no flag -%s", cmd.CommandPath(), name)
	}
	var names []string
	add := func(f *pflag.Flag) { names = append(names, f.Name) }
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	e := fault.New(fault.Usage, "usage", "%s has no flag --%s", cmd.CommandPath(), name)
	if near := nearest(name, names); near != "" {
		e = e.Hint("did you mean --%s?", near)
	}
	return e.Hint("%s --help", cmd.CommandPath())
}
