package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/fault"
)

// Here makes a command of ours work where the user stands: it repeats the flags
// that chose the repository, its state and its configuration.
func (c *command) Here(run string) string {
	at := strings.Index(run, "proveto ")
	if at < 0 || (at > 0 && !settings(run[:at])) {
		return run
	}
	args := run[at+len("proveto "):]
	var flags []string
	for _, f := range []struct{ name, value string }{{"-C", c.flags.dir}, {"--state", c.flags.state}, {"--config", c.flags.config}} {
		if f.value != "" && !slices.Contains(strings.Fields(args), f.name) {
			flags = append(flags, f.name+" "+shellQuoted(f.value))
		}
	}
	if len(flags) == 0 || strings.HasPrefix(args, "help ") {
		return run
	}
	return run[:at] + "proveto " + strings.Join(flags, " ") + " " + args
}

// settings tells variables in front of a command from other text.
func settings(before string) bool {
	for _, w := range strings.Fields(before) {
		if name, _, ok := strings.Cut(w, "="); !ok || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != "" {
			return false
		}
	}
	return true
}

// hereFault is an error whose hints work where the user stands.
func (c *command) hereFault(f *fault.Error) *fault.Error {
	if f == nil {
		return nil
	}
	out := *f
	out.Hints = nil
	for _, h := range f.Hints {
		if commandOf(h) {
			h = c.Here(h)
		}
		out.Hints = append(out.Hints, h)
	}
	return &out
}

// commandFields are the fields of data that hold a command.
var commandFields = []string{"command", "commands", "run", "fix", "check"}

// hereData is data whose commands work where the user stands.
func (c *command) hereData(data any) any {
	if c.Here("proveto status") == "proveto status" {
		return data
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return data // the renderer reports it
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // large numbers stay as they are
	var tree any
	if dec.Decode(&tree) != nil {
		return data
	}
	return c.hereTree("", tree)
}

func (c *command) hereTree(field string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			v[name] = c.hereTree(name, x)
		}
	case []any:
		for i, x := range v {
			v[i] = c.hereTree(field, x)
		}
	case string:
		if slices.Contains(commandFields, field) {
			return c.Here(v)
		}
	}
	return v
}

// shellQuoted makes a word safe to paste into a shell.
func shellQuoted(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:=@") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
