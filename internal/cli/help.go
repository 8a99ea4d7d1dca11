package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/view"
)

func rawJSON(b []byte) json.RawMessage { return json.RawMessage(b) }

// addHelpTopics adds the pages that belong to no command.
func addHelpTopics(root *cobra.Command) {
	topics := []struct{ name, short, text string }{
		{"evidence", "The four words, and what proven does not say", "Every behaviour has exactly one word:\n\n" +
			"  proven        a test failed by its own assertion on a copy with this behaviour broken,\n" +
			"                twice, in fresh processes, with a green control between\n" +
			"  refuted       measured and reached, and every changed result survived\n" +
			"  stale         it was proven; something that its certificate is bound to has changed\n" +
			"  not measured  with the reason, always\n\n" +
			"The words are never merged into a percentage.\n\n" + view.Says},
		{"exit-codes", "What each exit code means", exitCodes()},
		{"environment", "The variables that are read", "  PROVETO_STATE         where the ledger, keys and reports are\n" +
			"  PROVETO_CACHE         where checkouts and builds are; may be deleted at any time\n" +
			"  PROVETO_DATABASE_URL  a PostgreSQL database instead of the embedded one\n" +
			"  PROVETO_SECTION_KEY   every configuration key, as PROVETO_GATE_MIN_PROVEN; one that is no key is refused\n" +
			"  NO_COLOR, CLICOLOR_FORCE, TERM=dumb, CI\n\nNo variable switches a check off."},
		{"codes", "Every code of an answer, and what it means", codesText()},
		{"config", "The keys of proveto.yaml", configText()},
		{"flags", "The flags that every command has", root.PersistentFlags().FlagUsages()},
		{"isolation", "What keeps judged code in", "namespaces  own users, mounts, processes and network; read-only root, private /tmp, loopback only\n" +
			"landlock    file system and TCP rules of the kernel; no loopback\n" +
			"limits      resource limits only; the network is open\n\n" +
			"The best level of the machine is used. It is proven when the sandbox opens, by a child that\n" +
			"tries a forbidden write and a forbidden connection, and recorded with every run."},
	}
	for _, t := range topics {
		root.AddCommand(&cobra.Command{Use: t.name, Short: t.short, Long: t.text, GroupID: ""})
	}
}

func exitCodes() string {
	names := map[int]string{
		1: "failed: refused, or an unexpected error; nothing was credited", 2: "not yet: recorded, not passed",
		3: "no: measured, and the answer is no", 4: "unmeasured: it could not be measured", 5: "tampered: it does not verify",
		64: "usage: flags, arguments or configuration invalid; nothing happened", 130: "interrupted: stopped by you; resumable",
	}
	var b strings.Builder
	b.WriteString("  0    ok: done, and what was asked holds\n")
	seen := map[int]bool{}
	for _, k := range fault.Kinds() {
		if e := k.Exit(); !seen[e] {
			seen[e] = true
			fmt.Fprintf(&b, "  %-4d %s\n", e, names[e])
		}
	}
	return b.String()
}
