package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/app/flows"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/render"
	"github.com/proveto/proveto/internal/view"
)

func newFlow(c *command) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "flow",
		GroupID: "flow",
		Short:   "Carry a task through gated stages",
		Long: "Carry a task from planner to developer, verifier, tester and reviewer. Each hand-over is a verdict over\n" +
			"exact inputs: measured by proveto, decided by principals who sign. RUN is a run's id, its unique end, or @latest.\n\n" +
			"Exit codes: 0 it holds · 1 refused · 2 recorded, not passed · 3 measured: no · 4 not measured · 5 tampered",
		Example: "  proveto flow init --task 'Add OAuth login' --policy manual\n  proveto flow status @latest\n  proveto flow list --needs me",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	groups(cmd,
		group{"daily", "Daily:", []*cobra.Command{
			newFlowInit(c), newFlowPlan(c), newFlowSubmit(c), newFlowAdvance(c), newFlowStatus(c), newFlowList(c), newFlowFeedback(c), newFlowMeasure(c), newFlowDeliver(c),
		}},
		group{".steer", "Steer:", []*cobra.Command{
			newFlowTake(c), newFlowRelease(c), newFlowAmend(c), newFlowReopen(c), newFlowWithdraw(c), newFlowRebase(c), newFlowPause(c), newFlowResume(c), newFlowCancel(c),
		}},
		group{".say", "Say and sign:", []*cobra.Command{newFlowAnswer(c), newFlowClaim(c), newFlowWaive(c), newFlowSign(c), newFlowDecision(c)}},
		group{".look", "Look up and take along:", []*cobra.Command{newFlowLog(c), newFlowEvidence(c), newFlowWatch(c), newFlowReplay(c), newFlowReport(c), newFlowPolicy(c), newPrincipals(c), newFlowExport(c), newFlowAttest(c)}},
	)
	return cmd
}

// group is some of the commands below another. An id that begins with a dot shows
// only their names.
type group struct {
	id, title string
	commands  []*cobra.Command
}

func groups(cmd *cobra.Command, all ...group) {
	for _, g := range all {
		cmd.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
		}
		cmd.AddCommand(g.commands...)
	}
}

// flows opens the use cases of flow.
func (c *command) flows() (*flows.Flows, error) {
	a, err := c.open()
	if err != nil {
		return nil, err
	}
	f := flows.New(a)
	f.Passphrase = c.passphrase()
	return f, nil
}

// runArg adds RUN as an argument, which --run-id can be as well.
type runArg struct{ id string }

func (r *runArg) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.id, "run-id", "", "the run, where it is not an argument (`RUN`)")
}

func (r *runArg) take(cmd *cobra.Command, args []string) (string, error) {
	switch {
	case len(args) > 0 && r.id != "" && args[0] != r.id:
		return "", misuse(cmd, "%s names two runs: %q and %q", cmd.CommandPath(), args[0], r.id)
	case len(args) > 0:
		return args[0], nil
	case r.id != "":
		return r.id, nil
	}
	return "", misuse(cmd, "%s needs a run: its id, its unique end, or @latest", cmd.CommandPath())
}

// requestFlags are the flags of every verb that writes.
func requestFlags(cmd *cobra.Command, q *flows.Request) {
	f := cmd.Flags()
	f.StringVar(&q.Actor, "actor", "", "act as this principal, or in this role (`NAME`); it grants nothing")
	f.StringVar(&q.Key, "key", "", "sign with the key in `FILE`, or with SHA256:… of the agent")
	f.StringVar(&q.Idem, "idem", "", "a repetition with the same `KEY` gets the same answer")
}

// noteFlags add --note and --note-file.
type noteFlags struct{ note, file string }

func (n *noteFlags) flags(cmd *cobra.Command, name, what string) {
	f := cmd.Flags()
	f.StringVar(&n.note, name, "", what+" (`TEXT`)")
	f.StringVar(&n.file, name+"-file", "", "read it from `FILE`, or from stdin with -")
}

func (n *noteFlags) text(c *command, cmd *cobra.Command) (string, error) {
	if n.file == "" {
		return n.note, nil
	}
	if n.note != "" {
		return "", misuse(cmd, "--note and --note-file are two notes: give one")
	}
	b, err := c.input(n.file, flows.MaxNote)
	return string(b), err
}

// input reads a document from a file, or from stdin for -. One byte more than the
// most is read, so that a text that is too long is seen to be.
func (c *command) input(name string, most int64) (_ []byte, err error) {
	in := c.env.Stdin
	if name == "-" {
		name = "stdin"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, fault.Wrap(err, fault.Usage, "usage", "read %s", name)
		}
		defer f.Close() // was only read
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, fault.Wrap(err, fault.Usage, "usage", "read %s", name)
	}
	if int64(len(b)) > most {
		return nil, fault.New(fault.Usage, "too_large", "%s has more than %d bytes", name, most)
	}
	return b, nil
}

// advanced shows what a verb did; a view beside an error is shown as well.
func (c *command) advanced(ctx context.Context, schema string, v *view.FlowAdvance, err error) error {
	if v == nil {
		return err
	}
	a := &answer{schema: "proveto/flow." + schema + "/v1", data: v, head: v.Head, message: v.Text}
	if v.Text != "" { // a refusal is said on stderr
		a.text = func(out io.Writer, s render.Style) error { return render.FlowAdvance(out, *v, s) }
	}
	if v.CurrentStage != "done" {
		a.next = []view.Next{{Why: "see what the run needs", Run: "proveto flow status " + v.RunID}}
	}
	if serr := c.show(ctx, a); serr != nil {
		return serr
	}
	return err
}

func newFlowInit(c *command) *cobra.Command {
	o := flows.InitOptions{}
	var file string
	cmd := &cobra.Command{
		Use:   "init --task TEXT",
		Short: "Open a run for a task",
		Long: "Open a run: base commit, policy and principals are pinned now. Without --policy the repository's default\n" +
			"holds, which needs a git repository; the policy manual works anywhere and measures nothing.",
		Example: "  proveto flow init --task 'Add OAuth login' --policy manual\n  proveto flow init --task-file task.md --base main",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file != "" {
				if o.Task != "" {
					return misuse(cmd, "--task and --task-file are two tasks: give one")
				}
				b, err := c.input(file, flows.MaxTask)
				if err != nil {
					return err
				}
				o.Task = strings.TrimRight(string(b), "\n")
			}
			if strings.TrimSpace(o.Task) == "" {
				return misuse(cmd, "init needs a task: --task or --task-file")
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Init(cmd.Context(), o)
			return c.advanced(cmd.Context(), "init", v, err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Task, "task", "", "what is to be done (`TEXT`)")
	f.StringVar(&file, "task-file", "", "read the task from `FILE`, or from stdin with -")
	f.StringVar(&o.Project, "project", "default", "name of the project (`NAME`)")
	f.StringVar(&o.Base, "base", "", "commit to stand on (`REF`; default HEAD)")
	f.StringVar(&o.Target, "target", "", "branch that the work is for (`REF`; default the current one)")
	f.StringVar(&o.Policy, "policy", "", "policy to hold to (`NAME`: default, manual, or one of .proveto/flow.yaml)")
	f.StringSliceVar(&o.After, "after", nil, "runs that have to be delivered first (`RUN,…`)")
	requestFlags(cmd, &o.Request)
	return cmd
}

func newFlowStatus(c *command) *cobra.Command {
	var run runArg
	var format string
	var gate bool
	cmd := &cobra.Command{
		Use:     "status [RUN]",
		Short:   "Show where a run stands and what it needs",
		Long:    "Show the stages of a run, their gates, decisions and findings, and the commands that move it. Nothing is written.",
		Example: "  proveto flow status @latest\n  proveto flow status @latest --format kv\n  proveto flow status @latest --gate",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := run.take(cmd, args)
			if err != nil {
				return err
			}
			if format == "json" && c.flags.json == "" {
				c.flags.json = "*"
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, head, err := f.Status(cmd.Context(), id)
			if v == nil {
				return err
			}
			c.answer = &answer{
				schema: "proveto/flow.status/v1", data: v, head: head, next: flowNext(v),
				text: func(out io.Writer, s render.Style) error { return render.FlowStatus(out, *v, format, s) },
			}
			if err == nil && gate {
				err = flows.GateFault(v)
			}
			return err
		},
	}
	run.flag(cmd)
	f := cmd.Flags()
	f.StringVar(&format, "format", "text", "`FORMAT`: text, kv, json, md")
	words(cmd, f, "format", "text", "kv", "json", "md")
	f.BoolVar(&gate, "gate", false, "exit 0 only when the run is approved or delivered")
	return cmd
}

func flowNext(v *view.FlowRun) []view.Next {
	out := []view.Next{}
	for _, u := range v.Run.Unblock {
		out = append(out, view.Next{Why: "the run is blocked: " + v.Run.Reason, Run: u})
	}
	return append(out, flows.NextSteps(v)...)
}

func newFlowAdvance(c *command) *cobra.Command {
	var (
		run      runArg
		note     noteFlags
		o        flows.AdvanceOptions
		decision string
		found    []string
		file     string
		planFile string

		statement, signature string
	)
	cmd := &cobra.Command{
		Use:   "advance [RUN] --stage S --actor A --decision D",
		Short: "Record a signed decision on a stage",
		Long: "Record a decision: approve, request_changes, reject, abstain. On a stage that hands something in and has gates,\n" +
			"an approval hands in and measures; it judges nothing.\n\n" +
			"Exit codes: 0 passed · 1 refused · 2 recorded, not passed (a rejection, approvals missing) · 3 a gate says no",
		Example: "  proveto flow advance @latest --stage planner --actor planner --decision approve\n" +
			"  proveto flow advance @latest --stage reviewer --actor reviewer --decision reject --note 'the error is swallowed'",
		Args: atMost(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := spacedBool(cmd, args, "allow-unplanned")
			if err != nil {
				return err
			}
			for _, name := range []string{"stage", "actor", "decision"} {
				if !cmd.Flags().Changed(name) {
					return misuse(cmd, "advance needs --%s", name)
				}
			}
			if o.Run, err = run.take(cmd, args); err != nil {
				return err
			}
			if o.Decision, err = flows.ParseDecision(decision); err != nil {
				return err
			}
			if o.Note, err = note.text(c, cmd); err != nil {
				return err
			}
			if o.Findings, err = c.findings(found, file); err != nil {
				return err
			}
			if planFile != "" {
				if o.Plan, err = c.input(planFile, flows.MaxNote); err != nil {
					return err
				}
			}
			if err := c.signedElsewhere(cmd, &o.Request, statement, signature); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Advance(cmd.Context(), o)
			return c.advanced(cmd.Context(), "advance", v, err)
		},
	}
	run.flag(cmd)
	note.flags(cmd, "note", "why; required but for an approval")
	f := cmd.Flags()
	f.StringVar(&o.Stage, "stage", "", "the stage (`NAME`, required)")
	f.StringVar(&decision, "decision", "", "the decision (`WORD`, required): approve, request_changes, reject, abstain")
	f.StringArrayVar(&found, "finding", nil, "a finding, as severity:category:file:line: message (`FINDING`, repeatable)")
	f.StringVar(&file, "findings", "", "read findings from the JSON in `FILE`")
	f.StringVar(&o.Token, "plan-token", "", "the token of the plan (`TOKEN`)")
	f.BoolVar(&o.Unplanned, "allow-unplanned", false, "go ahead without the token of the plan, where the policy lets you")
	f.StringVar(&planFile, "plan", "", "the contract, at the planner's stage (`FILE`, or - for stdin)")
	f.StringVar(&o.Snapshot, "snapshot", "", "the work, at the developer's stage (`REF`, or . for the working copy)")
	f.BoolVar(&o.NoWait, "no-wait", false, "do not wait for measurements")
	f.StringVar(&statement, "statement", "", "the statement that flow sign printed, when it was signed elsewhere (`FILE`)")
	f.StringVar(&signature, "signature", "", "its signature by ssh-keygen -Y sign (`FILE`)")
	requestFlags(cmd, &o.Request)
	return cmd
}

// spacedBool takes the value of a boolean flag that stands apart from it: true or
// false as the last argument.
func spacedBool(cmd *cobra.Command, args []string, flag string) ([]string, error) {
	if n := len(args); n > 0 && cmd.Flags().Changed(flag) && (args[n-1] == "true" || args[n-1] == "false") {
		if err := cmd.Flags().Set(flag, args[n-1]); err != nil {
			return nil, err
		}
		args = args[:n-1]
	}
	return args, atMost(1)(cmd, args)
}

// findings reads the findings of the command line and of a file.
func (c *command) findings(texts []string, file string) (out []flows.Finding, err error) {
	for _, t := range texts {
		x, err := flows.ParseFinding(t)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	if file == "" {
		return out, nil
	}
	b, err := c.input(file, flows.MaxNote)
	if err != nil {
		return nil, err
	}
	more, err := flows.ParseFindings(file, b)
	return append(out, more...), err
}

// verb builds a command that says something about a run or a stage.
func (c *command) verb(use, short, example string, run func(*flows.Flows, context.Context, flows.VerbOptions) (*view.FlowAdvance, error), stage, needsNote bool, noteWhat string) *cobra.Command {
	var (
		id   runArg
		note noteFlags
		o    flows.VerbOptions
	)
	name, _, _ := strings.Cut(use, " ")
	cmd := &cobra.Command{
		Use: use, Short: short, Long: short + ".", Example: example, Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Run, err = id.take(cmd, args); err != nil {
				return err
			}
			if stage && o.Stage == "" {
				return misuse(cmd, "%s needs --stage", name)
			}
			if o.Note, err = note.text(c, cmd); err != nil {
				return err
			}
			if needsNote && strings.TrimSpace(o.Note) == "" {
				return fault.New(fault.Usage, "note_missing", "%s needs a note that says why", name).Hint("proveto flow %s %s --note TEXT", name, o.Run)
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := run(f, cmd.Context(), o)
			return c.advanced(cmd.Context(), name, v, err)
		},
	}
	id.flag(cmd)
	text := "note"
	if name == "claim" {
		text = "text"
	}
	note.flags(cmd, text, noteWhat)
	switch {
	case name == "reopen":
		cmd.Flags().StringVar(&o.Stage, "to", "", "the stage to go back to (`NAME`, required)")
	case stage || name == "claim":
		cmd.Flags().StringVar(&o.Stage, "stage", "", "the stage (`NAME`)")
	}
	if name == "withdraw" {
		cmd.Flags().StringVar(&o.Decision, "veto", "", "the veto to take back (`ID`; default your newest)")
	}
	requestFlags(cmd, &o.Request)
	return cmd
}

func newFlowTake(c *command) *cobra.Command {
	return c.verb("take [RUN] --stage S", "Take a lease on a stage", "  proveto flow take @latest --stage developer",
		(*flows.Flows).Take, true, false, "why")
}

func newFlowRelease(c *command) *cobra.Command {
	return c.verb("release [RUN] --stage S", "Give a lease back", "  proveto flow release @latest --stage developer",
		(*flows.Flows).Release, true, false, "why; required for somebody else's lease")
}

func newFlowReopen(c *command) *cobra.Command {
	cmd := c.verb("reopen [RUN] --to S", "Send a run back to a stage", "  proveto flow reopen @latest --to developer --note 'the fix is not enough'",
		(*flows.Flows).Reopen, true, true, "why")
	return cmd
}

func newFlowWithdraw(c *command) *cobra.Command {
	return c.verb("withdraw [RUN] --stage S", "Take back your submission, or your veto", "  proveto flow withdraw @latest --stage reviewer --note 'I misread the diff'",
		(*flows.Flows).Withdraw, true, true, "why")
}

func newFlowPause(c *command) *cobra.Command {
	return c.verb("pause [RUN]", "Stop a run for a while", "  proveto flow pause @latest --note 'release week'", (*flows.Flows).Pause, false, true, "why")
}

func newFlowResume(c *command) *cobra.Command {
	return c.verb("resume [RUN]", "Let a paused run go on", "  proveto flow resume @latest --note 'release is out'", (*flows.Flows).Resume, false, true, "why")
}

func newFlowCancel(c *command) *cobra.Command {
	return c.verb("cancel [RUN]", "End a run for good", "  proveto flow cancel @latest --note 'not needed any more'", (*flows.Flows).Cancel, false, true, "why")
}

func newFlowAmend(c *command) *cobra.Command {
	return c.verb("amend [RUN]", "Say that the plan does not fit, so that the planner signs a new revision",
		"  proveto flow amend @latest --note 'go.sum has to change too'", (*flows.Flows).Amend, false, true, "what the plan lacks")
}

func newFlowClaim(c *command) *cobra.Command {
	cmd := c.verb("claim [RUN] --text TEXT", "Record what somebody says; it counts for nothing", "  proveto flow claim @latest --text 'all tests pass on my machine'",
		(*flows.Flows).Claim, false, false, "the claim")
	return cmd
}

func newFlowAnswer(c *command) *cobra.Command {
	var (
		note noteFlags
		o    flows.AnswerOptions
	)
	cmd := &cobra.Command{
		Use:   "answer RUN FINDING --addressed|--disputed|--close",
		Short: "Answer a finding",
		Long: "Say that a finding is addressed, or that it is disputed. An answer is a claim: a finding of the engine closes when\n" +
			"its gate does not find it any more, one of a person when its author closes it.",
		Example: "  proveto flow answer @latest F-2 --addressed --paths auth/oauth.go",
		Args:    exactly(2, "answer needs a run and a finding"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			o.Run, o.Finding = args[0], args[1]
			if o.Note, err = note.text(c, cmd); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Answer(cmd.Context(), o)
			return c.advanced(cmd.Context(), "answer", v, err)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Addressed, "addressed", false, "something was changed for it")
	f.BoolVar(&o.Disputed, "disputed", false, "it is wrong; needs a note")
	f.BoolVar(&o.Close, "close", false, "as its author: it is settled; needs a note")
	f.StringSliceVar(&o.Paths, "paths", nil, "where (`PATH,…`)")
	note.flags(cmd, "note", "what was done, or what is wrong with it")
	requestFlags(cmd, &o.Request)
	return cmd
}

func newFlowWaive(c *command) *cobra.Command {
	var (
		run runArg
		o   flows.WaiveOptions
	)
	cmd := &cobra.Command{
		Use:   "waive [RUN] --gate G --reason TEXT --expires D",
		Short: "Sign an exception for a gate",
		Long: "Sign, as a human with the right to, that a gate or a code of the diff check need not hold. Every view shows it\n" +
			"as waived, it ends within 30 days, and nobody waives what judges their own work. --gate unplanned lets work go\n" +
			"ahead without the token of the plan.",
		Example: "  proveto flow waive @latest --gate secrets --reason 'the key is a published test vector' --expires 24h",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Run, err = run.take(cmd, args); err != nil {
				return err
			}
			for _, name := range []string{"gate", "reason", "expires"} {
				if !cmd.Flags().Changed(name) {
					return misuse(cmd, "waive needs --%s", name)
				}
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Waive(cmd.Context(), o)
			return c.advanced(cmd.Context(), "waive", v, err)
		},
	}
	run.flag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Gate, "gate", "", "the gate, the code (P001 …), or unplanned (`NAME`, required)")
	f.StringVar(&o.Stage, "stage", "", "only at this stage (`NAME`)")
	f.StringVar(&o.Reason, "reason", "", "why it need not hold (`TEXT`, required)")
	f.StringSliceVar(&o.Paths, "paths", nil, "only for these paths (`PATH,…`)")
	f.DurationVar(&o.Expires, "expires", 0, "how long it holds (`D`, required): 24h, at most 720h")
	requestFlags(cmd, &o.Request)
	return cmd
}

func newFlowList(c *command) *cobra.Command {
	var o flows.ListOptions
	var since string
	cmd := &cobra.Command{
		Use: "list", Short: "List runs, newest first", Long: "List runs, newest first; --needs me lists those that wait for you.",
		Example: "  proveto flow list --needs me\n  proveto flow list --status blocked --limit 10",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := atLeast(cmd, "limit", 1, o.Limit); err != nil {
				return err
			}
			var err error
			if o.Since, err = flows.ParseSince(since, time.Now()); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.List(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/flow.list/v1", data: v,
				text: func(out io.Writer, s render.Style) error { return render.FlowList(out, *v, s) },
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Status, "status", "", "only runs with this status (`WORD`)")
	words(cmd, f, "status", flows.Statuses()...)
	f.StringVar(&o.Needs, "needs", "", "only runs that this principal can move (`NAME`, or me)")
	f.StringVar(&o.Project, "project", "", "only runs of this project (`NAME`)")
	f.StringVar(&since, "since", "", "only runs that moved since (`WHEN`: a date, a time, or a duration such as 24h)")
	f.IntVarP(&o.Limit, "limit", "n", 50, "show at most `N`")
	f.Int64Var(&o.Before, "before", 0, "only runs that moved before this entry (`SEQ`)")
	return cmd
}

func newFlowLog(c *command) *cobra.Command {
	var run runArg
	var from int64
	cmd := &cobra.Command{
		Use: "log [RUN]", Short: "Show what happened to a run", Long: "List the entries of a run in order, refused requests included.",
		Example: "  proveto flow log @latest",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := run.take(cmd, args)
			if err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Log(cmd.Context(), id, from)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/flow.log/v1", data: v,
				text: func(out io.Writer, s render.Style) error { return render.FlowLog(out, *v, s) },
			})
		},
	}
	run.flag(cmd)
	cmd.Flags().Int64Var(&from, "from", 0, "only entries after this one (`SEQ`)")
	return cmd
}
