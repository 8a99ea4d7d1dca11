package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/app/flows"
	"github.com/proveto/proveto/internal/render"
	"github.com/proveto/proveto/internal/view"
)

func newFlowAttest(c *command) *cobra.Command {
	var run runArg
	var q flows.Request
	cmd := &cobra.Command{
		Use: "attest [RUN]", Short: "Write what was shown of an approved run, signed, for another machine",
		Long: "Write the attestation of an approved run as lines of DSSE-wrapped in-toto statements, signed by the engine key: the run with\n" +
			"all its entries and their places in the ledger, and a Simple Verification Result with the properties that hold.\n" +
			"proveto verify FILE checks every byte of it offline. A policy that asks for no evidence gets no result.\n\n" +
			"Exit codes: 0 written and recorded · 1 the run is not approved · 5 something in the ledger does not verify",
		Example: "  proveto flow attest @latest -o run.intoto.jsonl\n  proveto verify run.intoto.jsonl",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if q.Run, err = run.take(cmd, args); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			file, v, err := f.Attest(cmd.Context(), q)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/flow.attest/v1", data: v, message: v.Text,
				text: func(out io.Writer, _ render.Style) error { _, err := out.Write(file); return err },
			})
		},
	}
	run.flag(cmd)
	requestFlags(cmd, &q)
	return cmd
}

func newFlowEvidence(c *command) *cobra.Command {
	var o flows.EvidenceOptions
	cmd := &cobra.Command{
		Use: "evidence RUN [EVIDENCE]", Short: "Show what the gates of a run measured",
		Long: "List the evidence of a run, oldest first, with what each gate did with an input that it must refuse; or show one\n" +
			"record whole, by its id or the first six characters or more of it. Nothing is written.",
		Example: "  proveto flow evidence @latest\n  proveto flow evidence @latest --gate suite.full\n  proveto flow evidence @latest ev_5f1c0a9e",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse(cmd, "evidence needs a run: its id, its unique end, or @latest")
			}
			return atMost(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Run = args[0]
			if len(args) > 1 {
				o.ID = args[1]
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Evidence(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/flow.evidence/v1", data: v,
				text: func(out io.Writer, s render.Style) error { return render.FlowEvidence(out, *v, s) },
			})
		},
	}
	cmd.Flags().StringVar(&o.Gate, "gate", "", "only of this gate (`NAME`)")
	return cmd
}

func newFlowReplay(c *command) *cobra.Command {
	var run runArg
	var o flows.ReplayOptions
	cmd := &cobra.Command{
		Use: "replay [RUN]", Short: "Measure a run again, and compare",
		Long: "Measure the gates of the current attempts again, in clean checkouts, and say of each record of evidence whether it is the\n" +
			"same, differs, or cannot be measured again. The run stays as it is; the processes that ran are in the ledger.\n\n" +
			"Exit codes: 0 all the same · 3 something differs · 4 something cannot be measured again",
		Example: "  proveto flow replay @latest\n  proveto flow replay @latest --gate suite.full",
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
			p := c.newProgress(0)
			v, err := f.Replay(ctx, o, func(gate string) { p.Phase("replay", gate) })
			p.close()
			if v == nil {
				return err
			}
			if serr := c.show(cmd.Context(), &answer{
				schema: "proveto/flow.replay/v1", data: v, message: v.Text,
				text: func(out io.Writer, s render.Style) error { return render.FlowReplay(out, *v, s) },
			}); serr != nil {
				return serr
			}
			return err
		},
	}
	run.flag(cmd)
	cmd.Flags().StringVar(&o.Gate, "gate", "", "only this gate (`NAME`)")
	return cmd
}

func newFlowWatch(c *command) *cobra.Command {
	var run runArg
	var from int64
	cmd := &cobra.Command{
		Use: "watch [RUN]", Short: "Follow a run, as JSON Lines",
		Long: "Write every entry of a run as a line of JSON, by its number in the ledger, and go on with those to come until the run is\n" +
			"delivered, cancelled or expired. Ctrl-C ends it; --from goes on where a watch ended. Nothing is recorded.\n\n" +
			"Exit codes: 0 the run is closed · 130 ended by Ctrl-C or --timeout",
		Example: "  proveto flow watch @latest\n  proveto flow watch @latest --from 41",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := run.take(cmd, args)
			if err != nil {
				return err
			}
			if err := atLeast(cmd, "from", 0, int(from)); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			ctx, stop := c.bounded(cmd.Context())
			defer stop()
			return c.write(func(out io.Writer) error {
				err := f.Watch(ctx, id, from, func(w view.FlowWatched) error {
					c.flags.json = "" // the lines are the answer; nothing follows them
					return render.JSONLine(out, w)
				})
				if err == nil {
					c.flags.json = ""
				}
				return err
			})
		},
	}
	run.flag(cmd)
	cmd.Flags().Int64Var(&from, "from", 0, "only entries after this one (`SEQ`)")
	return cmd
}

func newFlowReport(c *command) *cobra.Command {
	var run runArg
	var format string
	cmd := &cobra.Command{
		Use: "report [RUN]", Short: "Tell a run from its verdict down",
		Long: "Write the verdict, what is missing, what changed, every attempt with its gates and decisions, findings, waivers, refused\n" +
			"requests, claims, and where each word comes from. The report is as of the run's last entry: the same ledger head\n" +
			"gives the same bytes. Nothing is recorded.",
		Example: "  proveto flow report @latest\n  proveto flow report @latest --format html -o run.html",
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
			v, head, err := f.Report(cmd.Context(), id)
			if v == nil {
				return err
			}
			c.answer = &answer{
				schema: "proveto/flow.report/v1", data: v, head: head,
				text: func(out io.Writer, _ render.Style) error {
					if format == "html" {
						return render.FlowReportHTML(out, *v)
					}
					return render.FlowReportMarkdown(out, *v)
				},
			}
			return err
		},
	}
	run.flag(cmd)
	f := cmd.Flags()
	f.StringVar(&format, "format", "md", "`FORMAT`: md, html, json")
	words(cmd, f, "format", "md", "html", "json")
	return cmd
}
