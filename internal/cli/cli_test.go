package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		{"start --limit x", "proveto: proveto start: invalid argument \"x\" for \"-n, --limit\" flag: strconv.ParseInt: parsing \"x\": invalid syntax\nhint: proveto start --help\n"},
		{"statsu", "proveto: proveto has no command \"statsu\"\nhint: proveto status\nhint: proveto --help\n"},
		{"ledger shwo", "proveto: proveto ledger has no command \"shwo\"\nhint: proveto ledger show --help\nhint: proveto ledger --help\n"},
		{"gaps --color=pink", "proveto: --color=pink: want auto, always, never\nhint: proveto help flags\n"},
		{"help strat", "proveto: no help on \"strat\"\nhint: proveto help start\nhint: proveto help\n"},
		{"status more", "proveto: unknown command \"more\" for \"proveto status\"\nhint: proveto status --help\n"},
		{"start a b", "proveto: accepts at most 1 arg(s), received 2\nhint: proveto start --help\n"},
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
