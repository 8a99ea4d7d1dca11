package cli

import (
	"context"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/render"
)

const startLong = `Seal the checkout, run its tests on the original, sabotage one behaviour at a time, and
see which test refuses: a behaviour is proven when a test failed by its own assertion on
a copy with that behaviour broken, twice, with a green control between.

Nothing is written into the checkout. An interrupted start is resumed by the next one.

Exit codes: 0 done · 3 the gate or the strength says no · 4 nothing could be measured`

func newStart(c *command) *cobra.Command {
	o := app.StartOptions{Limit: -1}
	var budget string
	cmd := &cobra.Command{
		Use:     "start [PATH]",
		GroupID: "prove",
		Short:   "Show which behaviours of this checkout are guarded by a test",
		Long:    startLong,
		Example: "  proveto start\n  proveto start --budget 5m\n  proveto start --only semver.Version\n  proveto start --base main --gate",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 { // as with -C: the configuration is that of PATH, too
				path := args[0]
				if !filepath.IsAbs(path) {
					path = filepath.Join(c.flags.dir, path)
				}
				c.flags.dir = path
			}
			var err error
			if o.Budget, err = parseBudget(budget); err != nil {
				return err
			}
			o.NoBudget = cmd.Flags().Changed("budget") && o.Budget == 0
			return c.runStart(cmd.Context(), o, "proveto/prove.start/v1")
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Base, "base", "", "the changed scope is what differs from `REF`; only that is measured")
	f.StringVar(&budget, "budget", "", "stop proving after `D`; 0 is no limit (default 60s on a terminal, else none)")
	f.IntVarP(&o.Limit, "limit", "n", -1, "attempt at most `N` behaviours; 0 makes no attempt")
	f.StringSliceVar(&o.Only, "only", nil, "only this `SYMBOL`, file or package; may be repeated")
	offers(cmd, "only", c.offer(symbols, cobra.ShellCompDirectiveDefault))
	f.StringVar(&o.Rev, "rev", "", "measure commit `REV` instead of the working copy")
	f.BoolVar(&o.NoProof, "no-proof", false, "run the tests on the original, and no probe")
	f.BoolVar(&o.StaticOnly, "static-only", false, "run no code of the project")
	f.BoolVar(&o.Score, "score", false, "try every probe of every kind")
	f.Float64Var(&o.Strength, "require-strength", 0, "exit 3 when a behaviour's killed share is below `S`; implies --score")
	f.BoolVar(&o.Gate, "gate", false, "exit 3 when what changed (since --base, else uncommitted) is not guarded as proveto.yaml asks; without --base and changes, all that was asked for")
	addReportFlags(cmd, &o)
	return cmd
}

func addReportFlags(cmd *cobra.Command, o *app.StartOptions) {
	cmd.Flags().StringSliceVar(&o.Formats, "format", nil, "reports to write: html, md, json, mutation (default all)")
	words(cmd, cmd.Flags(), "format", app.ReportKinds()...)
	cmd.Flags().StringVar(&o.ReportDir, "report-dir", "", "write the reports to `DIR` (default below the state directory)")
}

// parseBudget reads --budget; 0 is none.
func parseBudget(s string) (time.Duration, error) {
	if s == "" || s == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fault.New(fault.Usage, "usage", "--budget %q is not a duration", s).Hint("proveto start --budget 5m")
	}
	return d, nil
}

func (c *command) runStart(ctx context.Context, o app.StartOptions, schema string) error {
	if o.Strength < 0 || o.Strength > 1 {
		return fault.New(fault.Usage, "usage", "--require-strength %g is no share: want 0 to 1", o.Strength).Hint("proveto start --require-strength 0.8")
	}
	a, err := c.open()
	if err != nil {
		return err
	}
	o.ChangedOnly = o.ChangedOnly || o.Base != ""
	ctx, stop := c.bounded(ctx)
	defer stop()
	p := c.newProgress(o.Budget)
	v, subject, err := a.Start(ctx, o, p)
	p.close()
	c.answer = &answer{schema: schema, subject: &subject, warnings: a.Warnings()}
	if h, herr := a.Head(context.WithoutCancel(ctx)); herr == nil {
		c.answer.head = h
	}
	if v != nil {
		c.answer.data = v
		c.answer.next = v.NextSteps()
		c.answer.text = func(w io.Writer, s render.Style) error { return render.Start(w, *v, s) }
	}
	return err
}

func newProve(c *command) *cobra.Command {
	o := app.StartOptions{Limit: -1, Again: true, NoBudget: true}
	var diff string
	cmd := &cobra.Command{
		Use:     "prove [TARGET...]",
		GroupID: "prove",
		Short:   "Measure named symbols, files or packages again",
		Long: "Measure the named symbols, files or packages, also those that have evidence already.\n" +
			"With --diff measure what the working copy, or the change since a base, touches.\n\n" +
			"Exit codes: 0 done · 3 the gate says no · 4 nothing could be measured",
		Example: "  proveto prove uuid.UUID.String\n  proveto prove --score uuid.Parse\n  proveto prove --diff\n  proveto prove --diff=main",
		Args:    cobra.ArbitraryArgs,

		ValidArgsFunction: c.offer(symbols, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			isDiff := cmd.Flags().Changed("diff")
			switch {
			case !isDiff && len(args) == 0:
				return fault.New(fault.Usage, "usage", "prove needs a target or --diff").Hint("proveto prove --diff").Hint("proveto gaps")
			case isDiff:
				o.ChangedOnly, o.Again = true, false
				if diff != "HEAD" {
					o.Base, o.Rev, _ = cutRange(diff)
				}
			}
			o.Only = args
			return c.runStart(cmd.Context(), o, "proveto/prove.prove/v1")
		},
	}
	f := cmd.Flags()
	f.StringVar(&diff, "diff", "", "measure what changed since HEAD, or since =`BASE`, or in =BASE..REV")
	f.Lookup("diff").NoOptDefVal = "HEAD"
	f.BoolVar(&o.Score, "score", false, "try every probe of every kind")
	f.StringVar(&o.Test, "test", "", "only this `TEST` may vouch")
	f.StringSliceVar(&o.Mutants, "mutant", nil, "only probes of this `OPERATOR` or kind, or the one with this digest; may be repeated")
	offers(cmd, "test", c.offer(tests, cobra.ShellCompDirectiveNoFileComp))
	offers(cmd, "mutant", cobra.FixedCompletions(app.ProbeKinds(), cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&o.Gate, "gate", false, "exit 3 when what changed is not guarded as proveto.yaml asks; without --diff, what was asked for")
	addReportFlags(cmd, &o)
	return cmd
}

func cutRange(s string) (base, rev string, ok bool) {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '.' && s[i+1] == '.' {
			return s[:i], s[i+2:], true
		}
	}
	return s, "", false
}
