package cli

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/render"
	"github.com/proveto/proveto/internal/view"
)

func newWhy(c *command) *cobra.Command {
	return &cobra.Command{
		Use:     "why ID|SYMBOL|FILE:LINE",
		GroupID: "prove",
		Short:   "Show the chain behind an evidence word",
		Long: "Show the certificate step by step, the digest that lapsed it, the survivor as a diff\n" +
			"with the values that the tests saw, or the measurement that is missing.",
		Example: "  proveto why uuid.UUID.String\n  proveto why uuid.go:187\n  proveto why 5f1c0a",
		Args:    exactly(1, "why needs a symbol, a file:line or an id"),

		ValidArgsFunction: once(c.offer(symbols, cobra.ShellCompDirectiveNoFileComp)),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			w, subject, err := a.Why(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/prove.why/v1", subject: &subject, data: w, next: w.Next,
				text: func(out io.Writer, s render.Style) error { return render.Why(out, *w, s) },
			})
		},
	}
}

func newGaps(c *command) *cobra.Command {
	o := app.GapOptions{}
	cmd := &cobra.Command{
		Use:     "gaps",
		GroupID: "prove",
		Short:   "List what a bug could break unseen, worst first",
		Long:    "List the behaviours that no live certificate covers: refuted, stale, not measured; by risk, with the reason and the command.",
		Example: "  proveto gaps\n  proveto gaps --min-risk 0.5\n  proveto gaps --all --json",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			if err := atLeast(cmd, "limit", 1, o.Limit); err != nil {
				return err
			}
			g, subject, err := a.Gaps(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/prove.gaps/v1", subject: &subject, data: g, warnings: a.Warnings(),
				text: func(out io.Writer, s render.Style) error { return render.Gaps(out, *g, s) },
			})
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.MinRisk, "min-risk", 0, "only behaviours whose risk is at least `R` (0 to 1)")
	f.IntVarP(&o.Limit, "limit", "n", 50, "show at most `N`")
	f.BoolVar(&o.All, "all", false, "show all of them")
	f.StringVar(&o.By, "by", "", "group by `KEY`: file")
	words(cmd, f, "by", "file")
	return cmd
}

func newStatus(c *command) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		GroupID: "prove",
		Short:   "Show the evidence of this repository at a glance",
		Long:    "Show the four counts, what changed since the last start, the worst gap, the head of the ledger and the one next command.",
		Example: "  proveto status\n  proveto status --json=counts",
		Args:    atMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.runStatus(cmd.Context()) },
	}
}

func (c *command) runStatus(ctx context.Context) error {
	a, err := c.open()
	if err != nil {
		return err
	}
	st, err := a.Status(ctx)
	if err != nil {
		return err
	}
	c.answer = &answer{
		schema: "proveto/status/v1", subject: &st.Subject, head: st.Head, data: st, next: []view.Next{st.Next},
		text: func(out io.Writer, s render.Style) error { return render.Status(out, *st, s) },
	}
	return nil
}

func newReport(c *command) *cobra.Command {
	o := app.ReportOptions{}
	cmd := &cobra.Command{
		Use:     "report [KIND...]",
		GroupID: "prove",
		Short:   "Write reports of the last start",
		Long: "Write the reports again: html, md, json, mutation. They say what status and gaps say, when a start was\n" +
			"about the tree as it is now; else they are those of the last start. With one kind and -o, that file is written.",
		Example:   "  proveto report\n  proveto report md -o -\n  proveto report html mutation --report-dir build",
		ValidArgs: app.ReportKinds(),
		Args:      someOf("no report of kind"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			o.Kinds = args
			if c.flags.output != "" {
				if len(args) != 1 {
					return fault.New(fault.Usage, "usage", "-o takes exactly one kind of report").Hint("proveto report html -o report.html")
				}
				return c.writeReport(cmd.Context(), a, args[0])
			}
			r, subject, err := a.Report(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/prove.report/v1", subject: &subject, data: r, warnings: a.Warnings(),
				text: func(out io.Writer, s render.Style) error { return render.Artifacts(out, r.Artifacts, s) },
			})
		},
	}
	cmd.Flags().StringVar(&o.Dir, "report-dir", "", "write to `DIR` (default below the state directory)")
	return cmd
}

// writeReport writes one report to the file of -o. The document of --json then
// says so on stdout.
func (c *command) writeReport(ctx context.Context, a *app.App, kind string) error {
	toStdout := c.flags.output == "-"
	if toStdout && c.jsonWanted() {
		return fault.New(fault.Usage, "usage", "--json and -o - both want stdout").Hint("proveto report %s -o FILE --json", kind)
	}
	// Nothing is created before there is something to write.
	var buf bytes.Buffer
	if err := a.WriteReport(ctx, kind, &buf); err != nil {
		c.flags.output = ""
		return err
	}
	err := c.write(func(w io.Writer) error { _, err := w.Write(buf.Bytes()); return err })
	if c.jsonWanted() {
		c.answer = &answer{schema: "proveto/prove.report/v1", data: view.Reports{Artifacts: []view.Artifact{{Kind: kind, Path: c.flags.output, Bytes: int64(buf.Len())}}}}
		c.flags.output = ""
	}
	return err
}

func newWaive(c *command) *cobra.Command {
	o := app.WaiveOptions{}
	var until string
	cmd := &cobra.Command{
		Use:     "waive MUTANT",
		GroupID: "prove",
		Short:   "Sign that a surviving mutant does not matter",
		Long: "Sign, as a person, that a mutant is equivalent or that its survival is accepted. The waiver\n" +
			"stays visible in every report, never becomes credit, and ends on its date.",
		Example: "  proveto waive 5f1c0a9e --reason 'both branches give the same value' --until 2030-01-31",
		Args:    exactly(1, "waive needs a mutant"),

		ValidArgsFunction: once(c.offer(survivors, cobra.ShellCompDirectiveNoFileComp)),
		RunE: func(cmd *cobra.Command, args []string) error {
			day, err := time.Parse(time.DateOnly, until)
			if err != nil {
				return fault.New(fault.Usage, "usage", "--until %q is not a date", until).Hint("proveto waive %s --reason TEXT --until 2030-01-31", args[0])
			}
			a, err := c.open()
			if err != nil {
				return err
			}
			o.Mutant, o.Until = args[0], day
			w, err := a.Waive(cmd.Context(), o)
			if err != nil {
				return err
			}
			next := []view.Next{{Why: "count the waiver", Run: "proveto start"}}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/prove.waive/v1", data: w, message: w.Text, next: next,
				text: func(out io.Writer, s render.Style) error { return render.Sentence(out, w.Text+": "+next[0].Run, s) },
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Reason, "reason", "", "why its survival does not matter (`TEXT`, required)")
	f.StringVar(&until, "until", "", "the `DATE` on which the waiver ends, as 2030-01-31 (required)")
	return cmd
}

func newVerify(c *command) *cobra.Command {
	o := app.VerifyOptions{}
	cmd := &cobra.Command{
		Use:     "verify ID|FILE",
		GroupID: "evidence",
		Short:   "Derive a verdict again from its stored runs, or run it again",
		Long: "Derive a certificate or a measurement again from the runs in the ledger, or check an\n" +
			"exported certificate or the attestation of a run of a flow, offline. With --rerun make every run again in a clean sandbox, on this machine.\n\n" +
			"Exit codes: 0 it holds · 3 the rerun says no · 4 it could not be run · 5 it does not verify",
		Example: "  proveto verify 5f1c0a9e\n  proveto verify 5f1c0a9e --rerun\n  proveto verify certificate.json --rerun\n  proveto verify run.intoto.jsonl",
		Args:    exactly(1, "verify needs the id of a certificate or an exported file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			if err := atLeast(cmd, "times", 1, o.Times); err != nil {
				return err
			}
			ctx, stop := c.bounded(cmd.Context())
			defer stop()
			p := c.newProgress(0)
			o.Target = args[0]
			v, err := a.Verify(ctx, o, p)
			p.close()
			if v != nil {
				c.answer = &answer{
					schema: "proveto/verify/v1", data: v, message: v.Text,
					text: func(out io.Writer, s render.Style) error { return render.Verified(out, *v, s) },
				}
				if !o.Rerun && v.Check != "" {
					c.answer.next = []view.Next{{Why: "make every run again on this machine", Run: v.Check}}
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.Rerun, "rerun", false, "make every run again in a clean sandbox")
	cmd.Flags().StringVar(&o.VerifierKey, "signer", "", "trust only this engine `KEY` (as ledger head --json of the other machine shows it)")
	cmd.Flags().IntVar(&o.Times, "times", 1, "with --rerun: repeat `N` times")
	return cmd
}

func newRebuild(c *command) *cobra.Command {
	return &cobra.Command{
		Use:     "rebuild",
		GroupID: "evidence",
		Short:   "Rebuild everything that follows from the ledger",
		Long:    "Fold the entries of the ledger into the tables that answers are read from. The ledger itself is not changed.",
		Example: "  proveto rebuild",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			r, err := a.Rebuild(cmd.Context())
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/rebuild/v1", data: r, message: r.Text,
				text: func(out io.Writer, s render.Style) error { return render.Sentence(out, r.Text, s) },
			})
		},
	}
}

// show keeps the answer and adds the ledger's head to it.
func (c *command) show(ctx context.Context, a *answer) error {
	if a.head == nil && c.app != nil {
		if h, err := c.app.Head(ctx); err == nil {
			a.head = h
		}
	}
	c.answer = a
	return nil
}
