package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/app/flows"
	"github.com/proveto/proveto/internal/render"
)

func newLedger(c *command) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ledger",
		GroupID: "evidence",
		Short:   "Read, verify, export and anchor the record of everything",
		Long:    "The ledger is the append-only, hash-chained record of every run, certificate, measurement and waiver.",
		Args:    onlySubcommands,
		Example: "  proveto ledger log\n  proveto ledger verify",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLedgerLog(c), newLedgerShow(c), newLedgerHead(c), newLedgerVerify(c), newLedgerExport(c), newLedgerAnchor(c))
	return cmd
}

func newLedgerLog(c *command) *cobra.Command {
	o := app.LogOptions{}
	cmd := &cobra.Command{
		Use:     "log",
		Short:   "List entries, newest first",
		Long:    "List the entries of the ledger, newest first.",
		Example: "  proveto ledger log\n  proveto ledger log --kind certificate --limit 5",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			if err := atLeast(cmd, "limit", 1, o.Limit); err != nil {
				return err
			}
			if err := atLeast(cmd, "from", 0, int(o.From)); err != nil {
				return err
			}
			l, err := a.LedgerLog(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/ledger.log/v1", data: l, warnings: a.Warnings(),
				text: func(out io.Writer, s render.Style) error { return render.Log(out, *l, s) },
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Kind, "kind", "", "only entries of this `KIND`: "+strings.Join(ownKinds(), ", ")+", or a kind of flow.… or principal.…")
	words(cmd, f, "kind", app.LogKinds()...)
	f.IntVarP(&o.Limit, "limit", "n", 50, "show at most `N`")
	f.Int64Var(&o.From, "from", 0, "show entries from `SEQ` downwards")
	return cmd
}

func newLedgerShow(c *command) *cobra.Command {
	return &cobra.Command{
		Use:     "show SEQ|ID",
		Short:   "Show one entry in full",
		Long:    "Show one entry with its canonical body and its leaf hash.",
		Example: "  proveto ledger show 1\n  proveto ledger show 5f1c0a9e",
		Args:    exactly(1, "ledger show needs a sequence number or an id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			e, err := a.LedgerEntry(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/ledger.show/v1", data: e,
				text: func(out io.Writer, s render.Style) error { return render.Entry(out, *e, s) },
			})
		},
	}
}

func newLedgerHead(c *command) *cobra.Command {
	return &cobra.Command{
		Use:     "head",
		Short:   "Show the head, as SEQ:ROOT",
		Long:    "Show the number of the last entry and the root of the Merkle tree, as --expect-head takes it.",
		Example: "  proveto ledger head",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			h, err := a.LedgerHead(cmd.Context())
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/ledger.head/v1", data: h, head: &h.Head,
				text: func(out io.Writer, s render.Style) error { return render.Head(out, h.Head, s) },
			})
		},
	}
}

func newLedgerVerify(c *command) *cobra.Command {
	o := app.LedgerVerifyOptions{Derive: flows.Derive}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Derive every hash, signature and verdict again",
		Long: "Derive every leaf, every checkpoint, every certificate and every measurement again, and hash\n" +
			"every blob that a run cites. Works offline.\n\nExit codes: 0 sound · 5 it does not verify",
		Example: "  proveto ledger verify",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			v, err := a.LedgerVerify(cmd.Context(), o)
			if v != nil {
				c.answer = &answer{
					schema: "proveto/ledger.verify/v1", data: v, head: v.Head, message: v.Text,
					text: func(out io.Writer, s render.Style) error { return render.LedgerVerified(out, *v, s) },
				}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&o.Against, "against", "", "compare with the head `SEQ:ROOT` noted before")
	return cmd
}

func newLedgerExport(c *command) *cobra.Command {
	return &cobra.Command{
		Use:     "export CERTIFICATE",
		Short:   "Write a certificate as a signed in-toto statement",
		Long:    "Write a certificate with its runs as a DSSE-wrapped in-toto statement, signed by the engine key. Another machine verifies it, or runs it again.",
		Example: "  proveto ledger export 5f1c0a9e -o certificate.json",
		Args:    exactly(1, "ledger export needs the id of a certificate"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			e, err := a.LedgerExport(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/ledger.export/v1", data: e,
				text: func(out io.Writer, _ render.Style) error { _, err := out.Write(append(e.Envelope, '\n')); return err },
			})
		},
	}
}

func newLedgerAnchor(c *command) *cobra.Command {
	o := app.AnchorOptions{}
	cmd := &cobra.Command{
		Use:   "anchor",
		Short: "Put the signed head into a git ref of this repository",
		Long: "Write the signed checkpoint to refs/proveto/anchor/<ledger id> of this repository. Pushed elsewhere,\n" +
			"it shows a later rewrite of the ledger: ledger verify compares with it.",
		Example: "  proveto ledger anchor --dry-run\n  proveto ledger anchor",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			r, err := a.LedgerAnchor(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/ledger.anchor/v1", data: r, message: r.Text,
				text: func(out io.Writer, s render.Style) error { return render.Sentence(out, r.Text, s) },
			})
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "show what would be written")
	return cmd
}

// ownKinds are the kinds that a help text has room for.
func ownKinds() []string {
	return slices.DeleteFunc(app.LogKinds(), func(k string) bool { return strings.Contains(k, ".") })
}
