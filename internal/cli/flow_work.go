package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/app/flows"
	"github.com/proveto/proveto/internal/render"
)

func newFlowPlan(c *command) *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan", Short: "Write, check and hand in the contract of a run",
		Long:    "A contract says what must hold afterwards and what may change for it. What it does not name is denied.",
		Example: "  proveto flow plan new @latest > ../plan.yaml\n  proveto flow plan submit @latest ../plan.yaml",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFlowPlanNew(c), newFlowPlanLint(c), newFlowPlanSubmit(c), newFlowPlanShow(c), newFlowPlanDiff(c))
	return cmd
}

func newFlowPlanNew(c *command) *cobra.Command {
	return &cobra.Command{
		Use: "new RUN", Short: "Print a contract to fill in", Long: "Print a commented contract with the task as its goal. Keep it outside the checkout, or it is part of the work.",
		Example: "  proveto flow plan new @latest > ../plan.yaml",
		Args:    exactly(1, "plan new needs a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.flows()
			if err != nil {
				return err
			}
			b, err := f.PlanSkeleton(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			c.answer = &answer{
				schema: "proveto/flow.plan.new/v1", data: map[string]any{"yaml": string(b)},
				text: func(out io.Writer, _ render.Style) error { _, err := out.Write(b); return err },
			}
			return nil
		},
	}
}

func newFlowPlanLint(c *command) *cobra.Command {
	return &cobra.Command{
		Use: "lint RUN FILE", Short: "Check a contract without handing it in", Long: "Check a contract against the base and the policy of a run. Nothing is recorded.\n\nExit codes: 0 it would be taken · 3 it would be refused · 64 it does not parse",
		Example: "  proveto flow plan lint @latest ../plan.yaml",
		Args:    exactly(2, "plan lint needs a run and a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := c.input(args[1], flows.MaxNote)
			if err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.PlanLint(cmd.Context(), args[0], args[1], b)
			if v != nil {
				c.answer = &answer{
					schema: "proveto/flow.plan.lint/v1", data: v,
					text: func(out io.Writer, s render.Style) error { return render.FlowLint(out, *v, s) },
				}
			}
			return err
		},
	}
}

func newFlowPlanSubmit(c *command) *cobra.Command {
	var o flows.SubmitOptions
	var note noteFlags
	cmd := &cobra.Command{
		Use: "submit RUN FILE", Short: "Hand in a contract, signed",
		Long:    "Hand in a contract at the planner's stage. Its gates are measured; the token of the plan exists once it is accepted.",
		Example: "  proveto flow plan submit @latest ../plan.yaml",
		Args:    exactly(2, "plan submit needs a run and a file (- for stdin)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			o.Run = args[0]
			if o.Plan, err = c.input(args[1], flows.MaxNote); err != nil {
				return err
			}
			if o.Note, err = note.text(c, cmd); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.SubmitPlan(cmd.Context(), o)
			return c.advanced(cmd.Context(), "plan.submit", v, err)
		},
	}
	note.flags(cmd, "note", "what to know about it")
	cmd.Flags().BoolVar(&o.NoWait, "no-wait", false, "do not wait for measurements")
	requestFlags(cmd, &o.Request)
	return cmd
}

func newFlowPlanShow(c *command) *cobra.Command {
	return &cobra.Command{
		Use: "show RUN", Short: "Print the contract of a run", Long: "Print the contract that binds, or the one that was handed in last, as JSON.",
		Example: "  proveto flow plan show @latest",
		Args:    exactly(1, "plan show needs a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.PlanShow(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			c.answer = &answer{
				schema: "proveto/flow.plan.show/v1", data: v,
				text: func(out io.Writer, _ render.Style) error {
					b, err := json.MarshalIndent(v.Contract, "", "  ")
					if err != nil {
						return err
					}
					_, err = fmt.Fprintf(out, "%s\n", b)
					return err
				},
			}
			return nil
		},
	}
}

func newFlowPlanDiff(c *command) *cobra.Command {
	return &cobra.Command{
		Use: "diff RUN OLD NEW", Short: "Compare two revisions of a contract", Long: "List where two revisions of a run's contract differ, by their numbers.",
		Example: "  proveto flow plan diff @latest 1 2",
		Args:    exactly(3, "plan diff needs a run and two revisions"),
		RunE: func(cmd *cobra.Command, args []string) error {
			old, err1 := strconv.Atoi(args[1])
			now, err2 := strconv.Atoi(args[2])
			if err1 != nil || err2 != nil {
				return misuse(cmd, "revisions are numbers: %q %q", args[1], args[2])
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.PlanDiff(cmd.Context(), args[0], old, now)
			if err != nil {
				return err
			}
			c.answer = &answer{
				schema: "proveto/flow.plan.diff/v1", data: v,
				text: func(out io.Writer, s render.Style) error { return render.FlowPlanDiff(out, *v, s) },
			}
			return nil
		},
	}
}

func newFlowSubmit(c *command) *cobra.Command {
	var (
		run  runArg
		note noteFlags
		o    flows.SubmitOptions
	)
	cmd := &cobra.Command{
		Use: "submit [RUN] --snapshot REF|.", Short: "Hand in work, and measure it",
		Long: "Seal the working copy (.) or a commit and hand it in at the developer's stage. Index, branch and files stay as they\n" +
			"are. What breaks the plan is refused before anything is built.\n\n" +
			"Exit codes: 0 measured and passed on · 2 not measured yet · 3 a gate says no · 4 not measured",
		Example: "  proveto flow submit @latest --snapshot .\n  proveto flow submit @latest --snapshot my-branch",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Run, err = run.take(cmd, args); err != nil {
				return err
			}
			if o.Note, err = note.text(c, cmd); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			ctx, stop := c.bounded(cmd.Context())
			defer stop()
			v, err := f.Submit(ctx, o)
			return c.advanced(cmd.Context(), "submit", v, err)
		},
	}
	run.flag(cmd)
	note.flags(cmd, "note", "what was done, as a claim")
	f := cmd.Flags()
	f.StringVar(&o.Snapshot, "snapshot", ".", "the work (`REF`, or . for the working copy)")
	f.StringVar(&o.Stage, "stage", "", "the stage, where the policy has several (`NAME`)")
	f.StringVar(&o.Token, "plan-token", "", "the token of the plan (`TOKEN`)")
	f.BoolVar(&o.NoWait, "no-wait", false, "do not wait for measurements")
	requestFlags(cmd, &o.Request)
	return cmd
}

func newFlowMeasure(c *command) *cobra.Command {
	var run runArg
	var o flows.MeasureOptions
	cmd := &cobra.Command{
		Use: "measure [RUN]", Short: "Measure what a run misses",
		Long:    "Measure the gates that have no outcome yet, and try those again that could not be measured. Live results are used again.\n\nExit codes: 0 passed · 3 a gate says no · 4 not measured",
		Example: "  proveto flow measure @latest\n  proveto flow measure @latest --gate prove.changed",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Run, err = run.take(cmd, args); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			ctx, stop := c.bounded(cmd.Context())
			defer stop()
			v, err := f.Measure(ctx, o)
			return c.advanced(cmd.Context(), "measure", v, err)
		},
	}
	run.flag(cmd)
	cmd.Flags().StringVar(&o.Gate, "gate", "", "only this gate (`NAME`)")
	requestFlags(cmd, &o.Request)
	return cmd
}

func newFlowFeedback(c *command) *cobra.Command {
	var run runArg
	var o flows.FeedbackOptions
	cmd := &cobra.Command{
		Use: "feedback [RUN]", Short: "Show what has to be answered",
		Long:    "Show the findings that need an answer, with what shows them. That you got them is recorded: work is taken again only then.",
		Example: "  proveto flow feedback @latest",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Run, err = run.take(cmd, args); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Feedback(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/flow.feedback/v1", data: v,
				text: func(out io.Writer, s render.Style) error { return render.FlowFeedback(out, *v, s) },
			})
		},
	}
	run.flag(cmd)
	cmd.Flags().StringVar(&o.Stage, "stage", "", "for this stage (`NAME`)")
	requestFlags(cmd, &o.Request)
	return cmd
}

func newFlowDeliver(c *command) *cobra.Command {
	var run runArg
	var o flows.DeliverOptions
	cmd := &cobra.Command{
		Use: "deliver [RUN]", Short: "Put the approved tree on a branch",
		Long: "Write one commit with exactly the approved tree, and move a branch to it by compare-and-swap. Index, files, stash and\n" +
			"the current branch stay as they are. A target that moved makes the review stale: nothing is written.\n\n" +
			"Exit codes: 0 delivered, now or before · 1 refused, or the tree is another one · 3 the merge conflicts",
		Example: "  proveto flow deliver @latest\n  proveto flow deliver @latest --branch oauth-login",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Run, err = run.take(cmd, args); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Deliver(cmd.Context(), o)
			return c.advanced(cmd.Context(), "deliver", v, err)
		},
	}
	run.flag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Branch, "branch", "", "make this branch (`NAME`; default proveto/TASK-RUN)")
	f.StringVar(&o.Onto, "onto", "", "move this branch, which nobody has checked out (`REF`)")
	f.StringVar(&o.Strategy, "strategy", "squash", "`HOW`: squash, merge")
	words(cmd, f, "strategy", "squash", "merge")
	f.BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
	requestFlags(cmd, &o.Request)
	return cmd
}

func newFlowExport(c *command) *cobra.Command {
	var run runArg
	var o flows.ExportOptions
	cmd := &cobra.Command{
		Use: "export [RUN] --branch NAME", Short: "Put the snapshot of a run on a branch, without credit",
		Long:    "Put the last snapshot on a new branch. It says of itself that it was not approved.",
		Example: "  proveto flow export @latest --branch look-at-this --unapproved",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Run, err = run.take(cmd, args); err != nil {
				return err
			}
			if o.Branch == "" {
				return misuse(cmd, "export needs --branch")
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Export(cmd.Context(), o)
			return c.advanced(cmd.Context(), "export", v, err)
		},
	}
	run.flag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Branch, "branch", "", "the branch to make (`NAME`, required)")
	f.BoolVar(&o.Unapproved, "unapproved", false, "the run is not approved, and the commit says so")
	f.BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
	requestFlags(cmd, &o.Request)
	return cmd
}

func newFlowRebase(c *command) *cobra.Command {
	var run runArg
	var o flows.RebaseOptions
	cmd := &cobra.Command{
		Use: "rebase [RUN]", Short: "Let a run stand on another base",
		Long: "Pin another base, with the policy and the principals that it has, and replay the work on it. What does not hold there\n" +
			"is measured again; a conflict sends the work back to its developer.",
		Example: "  proveto flow rebase @latest\n  proveto flow rebase @latest --base main",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Run, err = run.take(cmd, args); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Rebase(cmd.Context(), o)
			return c.advanced(cmd.Context(), "rebase", v, err)
		},
	}
	run.flag(cmd)
	cmd.Flags().StringVar(&o.Base, "base", "", "commit to stand on (`REF`; default the target)")
	requestFlags(cmd, &o.Request)
	return cmd
}

func newFlowPolicy(c *command) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Show and check the policy of a flow", Long: "A policy says which stages there are, which gates open them, and who decides. It is read from the base commit.",
		Example: "  proveto flow policy show\n  proveto flow policy show manual\n  proveto flow policy explain @latest",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFlowPolicyShow(c), newFlowPolicyCheck(c), newFlowPolicyExplain(c))
	return cmd
}

func newFlowPolicyShow(c *command) *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "Print a policy with every value", Long: "Print a policy of this repository, or a built-in one, with every value written out.",
		Example: "  proveto flow policy show\n  proveto flow policy show manual",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.flows()
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			v, err := f.PolicyShow(cmd.Context(), name)
			if err != nil {
				return err
			}
			c.answer = &answer{
				schema: "proveto/flow.policy.show/v1", data: v,
				text: func(out io.Writer, _ render.Style) error { _, err := io.WriteString(out, v.Text); return err },
			}
			return nil
		},
	}
}

func newFlowPolicyExplain(c *command) *cobra.Command {
	return &cobra.Command{
		Use: "explain RUN", Short: "Say what a run needs, has and lacks", Long: "Say, stage by stage and gate by gate, what the policy asks for, what is there and what is missing.",
		Example: "  proveto flow policy explain @latest",
		Args:    exactly(1, "policy explain needs a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.PolicyExplain(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/flow.policy.explain/v1", data: v,
				text: func(out io.Writer, s render.Style) error { return render.FlowExplained(out, *v, s) },
			})
		},
	}
}

func newFlowPolicyCheck(c *command) *cobra.Command {
	return &cobra.Command{
		Use: "check [NAME]", Short: "Try the command gates of a policy on their probes",
		Long: "Run every command gate of a policy on the base, and on the bad tree that it must refuse, before a run needs it.\n\n" +
			"Exit codes: 0 every gate counts · 3 a gate refuses the base · 4 a gate accepts its bad tree (gate_blind), or could not be tried",
		Example: "  proveto flow policy check",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.flows()
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			v, err := f.PolicyCheck(cmd.Context(), name)
			if v != nil {
				c.answer = &answer{
					schema: "proveto/flow.policy.check/v1", data: v,
					text: func(out io.Writer, s render.Style) error { return render.FlowPolicyCheck(out, *v, s) },
				}
			}
			return err
		},
	}
}
