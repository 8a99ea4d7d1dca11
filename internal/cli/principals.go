package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/app/flows"
	"github.com/proveto/proveto/internal/render"
)

func newPrincipals(c *command) *cobra.Command {
	cmd := &cobra.Command{
		Use: "principals", Short: "Say who may act, and with which keys",
		Long: "Principals are people, services and agents. A repository names them in .proveto/principals.yaml, and their keys in\n" +
			".proveto/allowed_signers, which git reads as well. A run counts those of its base commit, without what its target has\n" +
			"taken back since. Without the files whoever is at this machine is the principal local, in every role.",
		Example: "  proveto principals list\n  proveto principals add bob --role reviewer --key bob.pub\n  proveto principals revoke bob --reason 'laptop stolen' --since 24h",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPrincipalsList(c), newPrincipalsAdd(c), newPrincipalsRevoke(c))
	return cmd
}

func newPrincipalsList(c *command) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List principals, their keys, and what is revoked",
		Long:    "List who is who for a run that begins now: as the checked-out commit says, with what is revoked in the ledger.",
		Example: "  proveto principals list",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Principals(cmd.Context())
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/principals.list/v1", data: v,
				text: func(out io.Writer, s render.Style) error { return render.Principals(out, *v, s) },
			})
		},
	}
}

func newPrincipalsAdd(c *command) *cobra.Command {
	var o flows.AddOptions
	cmd := &cobra.Command{
		Use: "add NAME --role R… --key FILE|LINE", Short: "Write a principal into the repository, for you to commit",
		Long: "Add a principal and their key to .proveto/principals.yaml and .proveto/allowed_signers in the working copy, and show\n" +
			"the difference. It counts for runs that begin on a commit that has it. For somebody who is there already, give the\n" +
			"key alone. An agent holds no key; it acts for its operator.\n\n" +
			"--generate makes an ed25519 key without passphrase in the state directory (keys/NAME.key); use it by --key or\n" +
			"PROVETO_KEY.",
		Example: "  proveto principals add alice --role planner,developer --right deliver,principals --from-git\n" +
			"  proveto principals add bob --role reviewer --key 'ssh-ed25519 AAAA…' --dry-run\n" +
			"  proveto principals add coder --kind agent --role developer --operator alice",
		Args: exactly(1, "principals add needs a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.AddPrincipal(cmd.Context(), o)
			if err != nil {
				return err
			}
			c.answer = &answer{
				schema: "proveto/principals.add/v1", data: v, message: v.Text,
				text: func(out io.Writer, s render.Style) error { return render.PrincipalAdded(out, *v, s) },
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Kind, "kind", "", "what they are (`KIND`): human, agent, service (default human)")
	words(cmd, f, "kind", "human", "agent", "service")
	f.StringSliceVar(&o.Roles, "role", nil, "a role (`ROLE,…`): planner, developer, verifier, tester, reviewer")
	f.StringSliceVar(&o.Rights, "right", nil, "a right (`RIGHT,…`): reopen, cancel, deliver, principals, claim, release, waive:NAME, waive:*")
	f.StringVar(&o.Key, "key", "", "their key: a file, or the line of one (`FILE|LINE`)")
	f.BoolVar(&o.FromGit, "from-git", false, "the key with which git signs here (user.signingkey)")
	f.BoolVar(&o.Generate, "generate", false, "make a key on this machine")
	f.StringVar(&o.Operator, "operator", "", "the human for whom an agent acts (`NAME`)")
	f.BoolVar(&o.DryRun, "dry-run", false, "only show what would be written")
	return cmd
}

func newPrincipalsRevoke(c *command) *cobra.Command {
	var (
		o     flows.RevokeOptions
		since string
	)
	cmd := &cobra.Command{
		Use: "revoke NAME|SHA256:… --reason TEXT", Short: "Believe a principal, or a key, no longer",
		Long: "Record, at once and for every run of this ledger, that a principal or one key is not to be believed any more. Their\n" +
			"leases end and later statements are refused. With --since, decisions, waivers and contracts from that time on do not\n" +
			"count: their stages are stale, and what stands on them. Without it earlier ones stay, and are flagged. Needs the right\n" +
			"principals. It cannot be taken back: give the person another key.",
		Example: "  proveto principals revoke bob --reason 'laptop stolen' --since 2030-01-31T08:00:00Z\n" +
			"  proveto principals revoke SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU --reason 'key rotated'",
		Args: exactly(1, "principals revoke needs a principal or the fingerprint of a key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Who = args[0]
			if !cmd.Flags().Changed("reason") {
				return misuse(cmd, "revoke needs --reason")
			}
			var err error
			if o.Since, err = flows.ParseSince(since, time.Now()); err != nil {
				return err
			}
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Revoke(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/principals.revoke/v1", data: v, message: v.Text,
				text: func(out io.Writer, s render.Style) error { return render.PrincipalRevoked(out, *v, s) },
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Reason, "reason", "", "why (`TEXT`, required)")
	f.StringVar(&since, "since", "", "what was said from then on does not count (`WHEN`: a date, a time, or a duration such as 24h)")
	f.StringVar(&o.Actor, "actor", "", "act as this principal (`NAME`); it grants nothing")
	f.StringVar(&o.Key, "key", "", "sign with the key in `FILE`, or with SHA256:… of the agent")
	return cmd
}

func newFlowSign(c *command) *cobra.Command {
	var (
		run      runArg
		note     noteFlags
		o        flows.AdvanceOptions
		decision string
		found    []string
		file     string
		planFile string
	)
	cmd := &cobra.Command{
		Use: "sign [RUN] --stage S --actor A --decision D", Short: "Print the statement of a decision, to be signed elsewhere",
		Long: "Print exactly the bytes that a decision signs, for a key that is on another machine. Nothing is recorded. Sign them with\n" +
			"ssh-keygen -Y sign -n proveto-flow-v1 -f KEY FILE, then hand statement and signature in with the same flags; what changed in between is refused, and a\n" +
			"statement is taken once.",
		Example: "  proveto flow sign @latest --stage reviewer --actor bob --decision approve -o s.json\n" +
			"  proveto flow advance @latest --stage reviewer --actor bob --decision approve --statement s.json --signature s.json.sig",
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"stage", "actor", "decision"} {
				if !cmd.Flags().Changed(name) {
					return misuse(cmd, "sign needs --%s", name)
				}
			}
			var err error
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
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Sign(cmd.Context(), o)
			if err != nil {
				return err
			}
			c.answer = &answer{
				schema: "proveto/flow.sign/v1", data: v,
				text: func(out io.Writer, _ render.Style) error { _, err := io.WriteString(out, v.Statement); return err },
			}
			return nil
		},
	}
	run.flag(cmd)
	note.flags(cmd, "note", "why; required but for an approval")
	f := cmd.Flags()
	f.StringVar(&o.Stage, "stage", "", "the stage (`NAME`, required)")
	f.StringVar(&o.Actor, "actor", "", "the principal who will sign (`NAME`, required)")
	f.StringVar(&decision, "decision", "", "the decision (`WORD`, required): approve, request_changes, reject, abstain")
	f.StringArrayVar(&found, "finding", nil, "a finding, as severity:category:file:line: message (`FINDING`, repeatable)")
	f.StringVar(&file, "findings", "", "read findings from the JSON in `FILE`")
	f.StringVar(&o.Token, "plan-token", "", "the token of the plan (`TOKEN`)")
	f.BoolVar(&o.Unplanned, "allow-unplanned", false, "go ahead without the token of the plan, where the policy lets you")
	f.StringVar(&planFile, "plan", "", "the contract, at the planner's stage (`FILE`, or - for stdin)")
	f.StringVar(&o.Snapshot, "snapshot", "", "the work, at the developer's stage (`REF`, or . for the working copy)")
	return cmd
}

func newFlowDecision(c *command) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "decision RUN ID", Short: "Show a signed decision, for ssh-keygen to verify",
		Long: "Show the statement of a recorded decision, its signature, and what it is worth today. --to writes them as files, with\n" +
			"the allowed signers of the run, so that anybody can run ssh-keygen on them. An id is what flow status --json shows\n" +
			"(dec_…), or its unique end.",
		Example: "  proveto flow decision @latest dec_01J9ZK3V7Q0000000000000000 --to audit",
		Args:    exactly(2, "decision needs a run and the id of a decision"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.flows()
			if err != nil {
				return err
			}
			v, err := f.Decision(cmd.Context(), args[0], args[1], dir)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/flow.decision/v1", data: v,
				text: func(out io.Writer, s render.Style) error { return render.FlowSigned(out, *v, s) },
			})
		},
	}
	cmd.Flags().StringVar(&dir, "to", "", "write statement, signature and allowed signers into `DIR`")
	return cmd
}

// signedElsewhere reads what --statement and --signature name.
func (c *command) signedElsewhere(cmd *cobra.Command, q *flows.Request, statement, signature string) (err error) {
	if (statement == "") != (signature == "") {
		return misuse(cmd, "a decision that was signed elsewhere needs --statement and --signature")
	}
	if statement == "" {
		return nil
	}
	if q.Key != "" {
		return misuse(cmd, "--key signs here, and --signature was made elsewhere: give one of them")
	}
	if q.Statement, err = c.input(statement, flows.MaxNote); err != nil {
		return err
	}
	q.Signature, err = c.input(signature, flows.MaxNote)
	return err
}

// grouped puts a command of a job among those of the root.
func grouped(cmd *cobra.Command, group string) *cobra.Command {
	cmd.GroupID = group
	return cmd
}
