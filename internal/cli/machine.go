package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/config"
	"github.com/proveto/proveto/internal/render"
)

func newDoctor(c *command) *cobra.Command {
	o := app.DoctorOptions{}
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: "machine",
		Short:   "Check what this machine has and what it lacks",
		Long: "Check the configuration, toolchains, git, isolation, disk, keys and the ledger, each with the command that would fix it,\n" +
			"and prove one behaviour of a small package that comes with proveto.\n\nExit codes: 0 all well · 4 something is missing",
		Example: "  proveto doctor\n  proveto doctor --proof",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.anyConfig = true
			a, err := c.open()
			if err != nil {
				return err
			}
			d, err := a.Doctor(cmd.Context(), o)
			if d != nil {
				c.answer = &answer{
					schema: "proveto/doctor/v1", data: d,
					text: func(out io.Writer, s render.Style) error { return render.Doctor(out, *d, s) },
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.Proof, "proof", false, "show what stopped proof in the last start of this repository")
	return cmd
}

func newGC(c *command) *cobra.Command {
	o := app.GCOptions{}
	cmd := &cobra.Command{
		Use:     "gc",
		GroupID: "machine",
		Short:   "Remove caches, and blobs that nothing cites",
		Long:    "Remove checkouts and builds from the cache, and blobs that no entry of the ledger cites. Nothing cited is ever removed.",
		Example: "  proveto gc --dry-run\n  proveto gc",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			r, err := a.GC(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), &answer{
				schema: "proveto/gc/v1", data: r, message: r.Text,
				text: func(out io.Writer, s render.Style) error { return render.Sentence(out, r.Text, s) },
			})
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "show what would be removed")
	return cmd
}

func newConfig(c *command) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		GroupID: "machine",
		Short:   "Show and check the configuration",
		Long: "Settings come, strongest first, from flags, from variables PROVETO_SECTION_KEY (as\n" +
			"PROVETO_GATE_MIN_PROVEN), from proveto.yaml at the root of the repository, from\n" +
			"$XDG_CONFIG_HOME/proveto/config.yaml, and from the defaults. No file is needed.\n\n" +
			"Judging a change, the gate and isolation.min are read from the base; flags and variables\n" +
			"can only tighten them. proveto help config explains every key.",
		Args:    onlySubcommands,
		Example: "  proveto config show\n  proveto config get gate.min_proven\n  proveto config check",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	show := &cobra.Command{
		Use: "show", Short: "Show every key with its value and where it comes from",
		Long: "Show every key with the value that holds in this directory and where it comes from: default,\n" +
			"a file with its line, a variable, or a flag.",
		Example: "  proveto config show\n  proveto -C ../other config show\n  proveto config show --json=keys", Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runConfig("") },
	}
	get := &cobra.Command{
		Use: "get KEY", Short: "Show one key",
		Long: "Show the value of one key and nothing else, for scripts; --json adds where it comes from. With\n" +
			"the name of a section, as gate, show all of its keys.",
		Example: "  proveto config get gate.min_proven\n  proveto config get gate\n  proveto config get prove.budget --json", Args: exactly(1, "config get needs a key, as gate.min_proven"),
		ValidArgsFunction: once(cobra.FixedCompletions(configKeys(), cobra.ShellCompDirectiveNoFileComp)),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.runConfig(args[0]) },
	}
	check := &cobra.Command{
		Use: "check", Short: "Check the configuration files",
		Long: "Read every configuration file and variable strictly. The first thing that is wrong is said with\n" +
			"file, line, column and the nearest key that exists.\n\nExit codes: 0 valid · 64 something is wrong",
		Example: "  proveto config check\n  proveto config check --config draft.yaml", Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.open()
			if err != nil {
				return err
			}
			text := a.ConfigFiles()
			c.answer = &answer{schema: "proveto/config.check/v1", data: map[string]any{"files": a.ConfigSources()}, message: text, text: func(out io.Writer, s render.Style) error {
				return render.Sentence(out, text, s)
			}}
			return nil
		},
	}
	schema := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of proveto.yaml", Long: "Print the JSON Schema of proveto.yaml. An editor that knows it completes keys and marks mistakes;\n" +
			"name it in the first line of proveto.yaml: # yaml-language-server: $schema=proveto.schema.json",
		Example: "  proveto config schema -o proveto.schema.json", Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw, err := app.ConfigSchema()
			if err != nil {
				return err
			}
			c.answer = &answer{schema: "proveto/config.schema/v1", data: rawJSON(raw), text: func(out io.Writer, _ render.Style) error {
				_, err := out.Write(raw)
				return err
			}}
			return nil
		},
	}
	cmd.AddCommand(show, get, check, schema)
	return cmd
}

func (c *command) runConfig(key string) error {
	a, err := c.open()
	if err != nil {
		return err
	}
	rows, err := a.ConfigShow(key)
	if err != nil {
		return err
	}
	c.answer = &answer{
		schema: "proveto/config.show/v1", data: map[string]any{"keys": rows},
		text: func(out io.Writer, s render.Style) error { return render.Config(out, rows, key != "", s) },
	}
	return nil
}

func newVersion(c *command) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		GroupID: "machine",
		Short:   "Show the version",
		Long:    "Show version, commit, Go version and the versions of what is stored.",
		Example: "  proveto version\n  proveto version --json",
		Args:    atMost(0),
		RunE:    func(*cobra.Command, []string) error { return c.runVersion() },
	}
}

func (c *command) runVersion() error {
	v := app.BuildVersion(c.env.Version)
	c.answer = &answer{
		schema: "proveto/version/v1", data: v,
		text: func(out io.Writer, s render.Style) error { return render.Version(out, v, s) },
	}
	return nil
}

func newCompletion(c *command) *cobra.Command {
	return &cobra.Command{
		Use:       "completion SHELL",
		GroupID:   "machine",
		Short:     "Print the completion script of a shell",
		Long:      "Print the completion script for bash, zsh, fish or powershell.",
		Example:   "  proveto completion bash",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args: func(cmd *cobra.Command, args []string) error {
			if err := exactly(1, "completion needs a shell: bash, zsh, fish or powershell")(cmd, args); err != nil {
				return err
			}
			return someOf("no completion for")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			write := map[string]func(io.Writer) error{
				"bash":       func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
				"zsh":        root.GenZshCompletion,
				"fish":       func(w io.Writer) error { return root.GenFishCompletion(w, true) },
				"powershell": root.GenPowerShellCompletionWithDesc,
			}[args[0]]
			c.answer = &answer{schema: "proveto/completion/v1", text: func(out io.Writer, _ render.Style) error { return write(out) }}
			return nil
		},
	}
}

func configKeys() []cobra.Completion {
	var out []cobra.Completion
	for _, k := range config.Keys() {
		out = append(out, cobra.CompletionWithDesc(k.Name, k.Doc))
	}
	return out
}
