// Package cli is the command line: it parses, calls one use case of package app
// and shows the view that comes back through package render.
//
// The result goes to stdout, everything else to stderr. With --json exactly one
// document is written to stdout in every case, refusals included. The package
// never exits: [Run] returns the exit code, which comes from the kind of the
// error and from nothing else.
package cli

//go:generate go test -run TestDocsCLI -update .

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/render"
	"github.com/proveto/proveto/internal/view"
)

// Env is the world of one invocation.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Environ        []string
	StdoutTerminal bool
	StderrTerminal bool
	Version        string
	// New makes the application for the common flags; it opens nothing.
	New func(app.Settings) (*app.App, error)
}

// common are the flags that every command has.
type common struct {
	dir, output, color, progress, config, state, database, as, expectHead string
	json                                                                  string
	quiet, verbose, debug, noInput                                        bool
	timeout                                                               time.Duration
}

// command is one invocation: its world, its flags and its answer.
type command struct {
	env    Env
	flags  common
	app    *app.App
	answer *answer
	begun  bool // the command line was understood

	anyConfig bool // the command goes on without what is wrong with the configuration
}

// answer is what a command shows: one view as data, and how it reads as text.
type answer struct {
	schema   string
	subject  *view.Subject
	head     *view.Head
	data     any
	text     func(io.Writer, render.Style) error
	warnings []view.Warning
	next     []view.Next
	message  string
}

// Run parses the arguments, runs the command and returns the exit code.
func Run(ctx context.Context, env Env, args []string) int {
	c := &command{env: env}
	root := newRoot(c)
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	if completing(args) {
		root.SetErr(io.Discard)
		// A topic of the help with the name of a command must not be found instead of
		// it: completion looks through the commands in an order that does not tell them
		// apart.
		for _, topic := range root.Commands() {
			if topic.IsAdditionalHelpTopicCommand() {
				root.RemoveCommand(topic)
			}
		}
	}
	wantJSON := slices.ContainsFunc(args, func(a string) bool { return a == "--json" || strings.HasPrefix(a, "--json=") })
	if wantJSON && c.flags.json == "" {
		c.flags.json = "*" // a refusal of the flags themselves is a document too
	}
	cmd, err := swallowed(root, args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if c.app != nil {
		err = errors.Join(err, c.app.Close())
	}
	if completing(args) {
		return exit(fault.From(c.usage(cmd, err)))
	}
	return c.finish(cmd, c.usage(cmd, err))
}

// newRoot builds the tree. Every command file adds one line here.
func newRoot(c *command) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "proveto",
		Short: "Prove which behaviours your tests really guard",
		Long: "Proveto (prove or veto) shows which behaviours of a checkout are guarded by a test:\n" +
			"nothing is credited until the check that vouches for it has been seen to reject.",
		Example:           "  proveto start\n  proveto why semver.Version.Compare\n  proveto start --base main --gate",
		Args:              onlySubcommands,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return c.runVersion()
			}
			return c.runStatus(cmd.Context())
		},
	}
	root.Flags().BoolVar(&version, "version", false, "show the version, as proveto version does")
	root.AddGroup(
		&cobra.Group{ID: "prove", Title: "Prove:"},
		&cobra.Group{ID: "flow", Title: "Flow:"},
		&cobra.Group{ID: "evidence", Title: "Evidence:"},
		&cobra.Group{ID: "machine", Title: "Machine:"},
	)
	f := root.PersistentFlags()
	f.StringVarP(&c.flags.dir, "directory", "C", "", "work in `DIR` instead of the working directory")
	f.StringVar(&c.flags.json, "json", "", "answer with one JSON document; =a,b selects fields of data, =help lists them")
	f.Lookup("json").NoOptDefVal = "*"
	f.StringVarP(&c.flags.output, "output", "o", "", "write the result to `FILE`")
	f.BoolVarP(&c.flags.quiet, "quiet", "q", false, "no progress, no remarks")
	f.BoolVarP(&c.flags.verbose, "verbose", "v", false, "more detail on stderr")
	f.BoolVar(&c.flags.debug, "debug", false, "show the chain of causes of an error")
	f.StringVar(&c.flags.color, "color", "auto", "`WHEN` to colour: auto, always, never")
	f.StringVar(&c.flags.progress, "progress", "auto", "`HOW` to show progress: auto, plain, json, none")
	f.StringVar(&c.flags.config, "config", "", "read `FILE` instead of proveto.yaml")
	f.StringVar(&c.flags.state, "state", "", "keep the ledger and reports in `DIR`")
	f.StringVar(&c.flags.database, "database-url", "", "use the PostgreSQL database at `URL`")
	f.DurationVar(&c.flags.timeout, "timeout", 0, "stop after `D`, keeping what was measured")
	f.BoolVar(&c.flags.noInput, "no-input", false, "never ask")
	f.StringVar(&c.flags.as, "as", "", "act as `PRINCIPAL`")
	f.StringVar(&c.flags.expectHead, "expect-head", "", "refuse to record unless the ledger's head is `SEQ:ROOT`")
	root.AddCommand(
		newStart(c), newProve(c), newWhy(c), newGaps(c), newReport(c), newStatus(c), newWaive(c),
		newFlow(c), grouped(newPrincipals(c), "flow"),
		newVerify(c), newLedger(c), newRebuild(c),
		newDoctor(c), newGC(c), newConfig(c), newVersion(c), newCompletion(c),
	)
	words(root, f, "color", "auto", "always", "never")
	words(root, f, "progress", "auto", "plain", "json", "none")
	root.SetFlagErrorFunc(flagFault)
	root.SetHelpCommand(newHelp(c))
	root.SetHelpFunc(c.documented(root.HelpFunc()))
	root.SetUsageTemplate(usageTemplate)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		c.begun = true
		return checkWords(cmd)
	}
	addHelpTopics(root)
	root.InitDefaultHelpCmd()
	return root
}

// open makes the application for the flags; the first thing a command does.
func (c *command) open() (*app.App, error) {
	log := slog.New(slog.DiscardHandler)
	if c.flags.verbose {
		log = slog.New(slog.NewTextHandler(c.env.Stderr, nil))
	}
	a, err := c.env.New(app.Settings{
		Log: log, AnyConfig: c.anyConfig,
		Dir: c.flags.dir, ConfigFile: c.flags.config, State: c.flags.state, DatabaseURL: c.flags.database,
		Principal: c.flags.as, ExpectHead: c.flags.expectHead, Getenv: c.env.Getenv, Environ: c.env.Environ,
		Version: c.env.Version, Interactive: c.env.StderrTerminal && c.env.Getenv("CI") == "",
	})
	if err != nil {
		return nil, err
	}
	c.app = a
	return a, nil
}

// bounded applies --timeout.
func (c *command) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.flags.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, c.flags.timeout,
		fault.New(fault.Interrupted, "interrupted", "--timeout %s has passed", c.flags.timeout))
}

func (c *command) jsonWanted() bool { return c.flags.json != "" }

func (c *command) stdoutStyle() render.Style {
	s := render.DetectStyle(c.env.Getenv, c.env.StdoutTerminal && c.flags.output == "", c.flags.color)
	s.Commands = c
	return s
}

func (c *command) stderrStyle() render.Style {
	return render.DetectStyle(c.env.Getenv, c.env.StderrTerminal, c.flags.color)
}

// finish writes the answer and the error, and returns the exit code.
func (c *command) finish(cmd *cobra.Command, err error) int {
	f := c.hereFault(spaceless(fault.From(err)))
	if c.app != nil && c.answer != nil && c.answer.warnings == nil {
		c.answer.warnings = c.app.Warnings()
	}
	if c.jsonWanted() {
		if werr := c.write(func(w io.Writer) error { return render.JSON(w, c.envelope(cmd, f)) }); werr != nil {
			return c.lastResort(werr)
		}
		if f != nil && !c.flags.quiet {
			c.complain(f)
		}
		return exit(f)
	}
	if a := c.answer; a != nil && a.text != nil {
		if werr := c.write(func(w io.Writer) error { return a.text(w, c.stdoutStyle()) }); werr != nil {
			return c.lastResort(werr)
		}
	}
	if a := c.answer; a != nil && !c.flags.quiet {
		for _, w := range a.warnings {
			fmt.Fprintf(c.env.Stderr, "warning: %s\n", render.Line(w.Message))
		}
	}
	if f != nil {
		c.complain(f)
	}
	return exit(f)
}

// complain writes the error for people. Nothing can be done about a stderr that
// is closed.
func (c *command) complain(f *fault.Error) { _ = render.Error(c.env.Stderr, f, c.flags.debug) }

func (c *command) lastResort(err error) int {
	f := fault.From(fault.Wrap(err, fault.Internal, "io", "write the answer"))
	c.complain(f)
	return f.Kind.Exit()
}

func exit(f *fault.Error) int {
	if f == nil {
		return 0
	}
	return f.Kind.Exit()
}

// write sends the result to stdout or to the file of -o.
func (c *command) write(fn func(io.Writer) error) error {
	if c.flags.output == "" || c.flags.output == "-" {
		return fn(c.env.Stdout)
	}
	f, err := os.OpenFile(c.flags.output, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "io", "-o %s", c.flags.output)
	}
	return errors.Join(fn(f), f.Close())
}

func (c *command) envelope(cmd *cobra.Command, f *fault.Error) view.Answer {
	a := c.answer
	if a == nil {
		a = &answer{schema: schemaOf(cmd)}
	}
	out := view.Answer{
		Schema: a.schema, OK: f == nil, Code: string(fault.OK), Subject: a.subject, Head: a.head, Data: c.hereData(a.data),
		Warnings: a.warnings, Message: a.message, Hints: []string{}, Version: c.env.Version,
	}
	if out.Data == nil {
		out.Data = struct{}{}
	}
	if out.Warnings == nil {
		out.Warnings = []view.Warning{}
	}
	for _, n := range a.next {
		out.Next = append(out.Next, view.Next{Why: n.Why, Run: c.Here(n.Run)})
	}
	if f != nil {
		out.Code, out.Exit, out.Message = string(f.Code), f.Kind.Exit(), f.Error()
		out.Hints = append(out.Hints, f.Hints...)
		for _, h := range f.Hints {
			if commandOf(h) && !slices.ContainsFunc(out.Next, func(n view.Next) bool { return n.Run == h }) {
				out.Next = append(out.Next, view.Next{Why: out.Message, Run: h})
			}
		}
		if len(out.Next) == 0 && out.Exit >= 1 && out.Exit <= 5 {
			out.Next = []view.Next{{Why: "see what this machine and this repository lack", Run: c.Here("proveto doctor")}}
		}
	}
	if out.Next == nil {
		out.Next = []view.Next{}
	}
	if want := c.flags.json; want != "*" {
		var unknown []view.Warning
		out.Data, unknown = selectFields(out.Data, want)
		if f == nil {
			out.Warnings = append(out.Warnings, unknown...)
		}
	}
	return out
}

// schemaOf is the schema of a command's answer: a refusal has the one of success.
func schemaOf(cmd *cobra.Command) string {
	name := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "proveto"), " "), " ", ".")
	switch name {
	case "":
		name = "status"
	case "start", "prove", "why", "gaps", "report", "waive":
		name = "prove." + name
	case "config.get":
		name = "config.show"
	}
	return "proveto/" + name + "/v1"
}

// spaceless names the one thing that helps when a disk is full, wherever that
// showed: in a write of ours, or in the words of a tool.
func spaceless(f *fault.Error) *fault.Error {
	if f == nil || slices.Contains(f.Hints, "proveto gc") || !errors.Is(f, syscall.ENOSPC) && !strings.Contains(strings.ToLower(f.Error()), "no space left on device") {
		return f
	}
	out := *f
	out.Code, out.Hints = "no_space", append(slices.Clone(f.Hints), "proveto gc", "PROVETO_CACHE=DIR proveto start")
	return &out
}
