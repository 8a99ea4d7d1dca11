package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/proveto/proveto/internal/app"
)

// TestHelpFits holds every -h to a screen, and every example to the command
// tree.
func TestHelpFits(t *testing.T) {
	for _, c := range every(newRoot(&command{})) {
		args := append(strings.Fields(c.CommandPath())[1:], "-h")
		var out, stderr bytes.Buffer
		code := Run(context.Background(), Env{Stdout: &out, Stderr: &stderr, Getenv: func(string) string { return "" }}, args)
		if n := strings.Count(out.String(), "\n"); code != 0 || n > 40 || n < 4 {
			t.Errorf("%s -h: exit %d, %d lines, want 0 and at most 40", c.CommandPath(), code, n)
		}
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			if err := checkHint(strings.TrimSpace(line)); err != nil || !strings.HasPrefix(strings.TrimSpace(line), "proveto") {
				t.Errorf("%s, example %q: %v", c.CommandPath(), line, err)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"start", "status", "prove", "why", "gaps"}
	for word, want := range map[string]string{"stat": "status", "statsu": "status", "strat": "start", "provee": "prove", "wyh": "why", "colour": "", "": ""} {
		if got := nearest(word, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestSelectFields(t *testing.T) {
	data := map[string]int{"a": 1, "b": 2}
	got, warnings := selectFields(data, "a,c")
	if text := jsonOf(t, got); text != `{"a":1}` {
		t.Errorf("selectFields(a,c) = %s", text)
	}
	if len(warnings) != 1 || warnings[0].Code != "unknown_field" || !strings.Contains(warnings[0].Message, `"c"`) || !strings.Contains(warnings[0].Message, "a, b") {
		t.Errorf("selectFields(a,c) warns %v", warnings)
	}
	if got, _ := selectFields(data, "help"); jsonOf(t, got) != `{"fields":["a","b"]}` {
		t.Errorf("selectFields(help) = %s", jsonOf(t, got))
	}
	if got, _ := selectFields([]int{1}, "a"); jsonOf(t, got) != `[1]` {
		t.Errorf("selectFields of a list = %s", jsonOf(t, got))
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestUsageFaults(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"start --budgt 3s", "proveto: proveto start has no flag --budgt\nhint: did you mean --budget?\nhint: proveto start --help\n"},
		{"start --limit x", "proveto: --limit wants a whole number, not \"x\"\nhint: proveto start --help\n"},
		{"statsu", "proveto: proveto has no command \"statsu\"\nhint: proveto status\nhint: proveto --help\n"},
		{"ledger shwo", "proveto: proveto ledger has no command \"shwo\"\nhint: proveto ledger show --help\nhint: proveto ledger --help\n"},
		{"gaps --color=pink", "proveto: --color \"pink\": want auto, always, never\nhint: proveto gaps --help\n"},
		{"help strat", "proveto: no help on \"strat\"\nhint: proveto help start\nhint: proveto help\n"},
		{"status more", "proveto: proveto status takes no argument; \"more\" is one too many\nhint: proveto status --help\n"},
		{"start a b", "proveto: proveto start takes one argument; \"b\" is one too many\nhint: proveto start --help\n"},
		{"start --budget", "proveto: --budget needs a value: D\nhint: proveto start --help\n"},
		{"start -Z", "proveto: proveto start has no flag -Z\nhint: proveto start --help\n"},
		{"gaps --quiet=perhaps", "proveto: --quiet wants true or false, not \"perhaps\"\nhint: proveto gaps --help\n"},
		{"gaps ---x", "proveto: \"---x\" is not a flag\nhint: proveto gaps --help\n"},
	} {
		var out, stderr bytes.Buffer
		code := Run(context.Background(), Env{Stdout: &out, Stderr: &stderr, Getenv: func(string) string { return "" }}, strings.Fields(c.args))
		if code != 64 || out.Len() > 0 {
			t.Errorf("%s: exit %d, stdout %q, want 64 and none", c.args, code, out.String())
		}
		if diff := cmp.Diff(c.want, stderr.String()); diff != "" {
			t.Errorf("%s: stderr (-want +got)\n%s", c.args, diff)
		}
	}
}

func TestCommandOf(t *testing.T) {
	for hint, want := range map[string]bool{
		"proveto start": true, "proveto start -C DIR": true, "PROVETO_ISOLATION_NETWORK=host proveto start": true, "go mod download": true,
		"proveto reads Go modules": false, "proveto start goes on": false, "did you mean --budget?": false, "": false, "go": false,
	} {
		if got := commandOf(hint); got != want {
			t.Errorf("commandOf(%q) = %v, want %v", hint, got, want)
		}
	}
}

// TestMisuseIsOurs gives every command a flag that it does not have, every flag
// without a value and with a wrong one, and too many and too few arguments: each
// is refused in our words, with a command that exists, before anything begins.
func TestMisuseIsOurs(t *testing.T) {
	refused := func(args ...string) {
		t.Helper()
		var out, stderr bytes.Buffer
		begun := func(app.Settings) (*app.App, error) { return nil, errors.New("it began") }
		code := Run(context.Background(), Env{Stdout: &out, Stderr: &stderr, Getenv: func(string) string { return "" }, New: begun}, args)
		first, hints, _ := strings.Cut(stderr.String(), "\n")
		if code != 64 || out.Len() > 0 || !strings.HasPrefix(first, "proveto: ") || !strings.HasPrefix(hints, "hint: ") {
			t.Errorf("%q: exit %d, stdout %q, stderr %q; want 64, nothing, a sentence and a hint", args, code, out.String(), stderr.String())
		}
		for line := range strings.Lines(hints) {
			if err := checkHint(strings.TrimPrefix(strings.TrimSpace(line), "hint: ")); err != nil {
				t.Errorf("%q: %s: %v", args, line, err)
			}
		}
		for _, foreign := range []string{"unknown", "arg(s)", "invalid argument", "strconv", "shorthand", "needs an argument", "syntax"} {
			if strings.Contains(stderr.String(), foreign) {
				t.Errorf("%q: %q is not how we speak", args, stderr.String())
			}
		}
	}
	commands := every(newRoot(&command{}))
	flags := 0
	for _, c := range commands {
		path := strings.Fields(c.CommandPath())[1:]
		with := func(args ...string) []string { return append(slices.Clone(path), args...) }
		refused(with("--no-such-flag")...)
		refused(with("-Z")...)
		if !strings.Contains(c.Use, "...") {
			refused(with("x", "y", "z")...)
		}
		if _, args, ok := strings.Cut(c.Use, " "); ok && !strings.HasPrefix(args, "[") {
			refused(path...)
		}
		c.InheritedFlags() // joins them into Flags
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" {
				return
			}
			flags++
			if f.NoOptDefVal == "" {
				refused(with("--" + f.Name)...)
			}
			if wants[f.Value.Type()] != "" && f.Value.Type() != "stringSlice" || f.Annotations[wordsKey] != nil {
				// The right number of arguments, so that the flag is what is wrong.
				refused(with("--"+f.Name+"=@", "x")[:len(path)+1+strings.Count(c.Use, " ")%2]...)
			}
		})
	}
	if len(commands) < 20 || flags < 20*len(commands)/2 {
		t.Errorf("%d commands with %d flags were tried: is the search broken?", len(commands), flags)
	}
}
