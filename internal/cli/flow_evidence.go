package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/app/flows"
	"github.com/proveto/proveto/internal/render"
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
