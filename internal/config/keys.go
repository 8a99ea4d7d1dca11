package config

import (
	"strconv"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/strictyaml"
)

// Kind is the type of a key's value.
type Kind string

// The kinds of values.
const (
	Strings  Kind = "strings"  // a list of strings
	Map      Kind = "map"      // names to strings
	Text     Kind = "string"   // any string, or one of Values
	Integer  Kind = "integer"  // within Min and Max
	Fraction Kind = "fraction" // 0 to 1
	Span     Kind = "duration" // 60s, 5m, 1h30m
	Size     Kind = "size"     // 512MiB, 2GiB; a bare number is bytes
)

// Key is one setting. The table of keys is the only place that knows them: the
// parser, the schema and the reference are made from it.
type Key struct {
	Name    string // section.key
	Kind    Kind
	Default string // as it would be written; empty: nothing
	Values  []string
	Min     int64  // Integer; also the least of Span in seconds and of Size in bytes
	Max     int64  // 0: no upper bound
	User    bool   // only in the user's own file
	Alias   string // a second, shorter environment variable
	Doc     string
	// Tighten says in which direction a flag or a variable may change the value:
	// "up", "down" or, for Values, "later". Empty: freely.
	Tighten string
}

// Section is the part of the name before the dot.
func (k Key) Section() string { s, _, _ := strings.Cut(k.Name, "."); return s }

// Leaf is the part of the name after the dot.
func (k Key) Leaf() string { _, l, _ := strings.Cut(k.Name, "."); return l }

// Variable is the name of the environment variable.
func (k Key) Variable() string {
	return "PROVETO_" + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

// operatorNames are the kinds of probes that can be chosen.
var operatorNames = []string{"result", "condition", "boundary", "arithmetic", "statement", "constant"}

var keys = []Key{
	{Name: "prove.include", Kind: Strings, Doc: "Path patterns of the code that is measured, as internal/** or *.go. Empty: everything."},
	{Name: "prove.exclude", Kind: Strings, Doc: "Path patterns of code that is never a target. It is listed as excluded, with this reason."},
	{Name: "prove.budget", Kind: Span, Min: 1, Doc: "How long a start may take. Without it: 60s on a terminal, no limit elsewhere."},
	{Name: "prove.limit", Kind: Integer, Doc: "The most targets that one start attempts. Without it all are; 0 attempts none."},
	{Name: "prove.operators", Kind: Strings, Values: operatorNames, Doc: "The kinds of probes. Empty: all of them."},
	{Name: "prove.min_strength", Kind: Fraction, Default: "0", Doc: "The share of mutants that must be killed for a behaviour to pass. Above 0 every probe is tried."},
	{Name: "prove.test_env", Kind: Map, Doc: "Variables that tests get beside the allow-list. Values are not secrets: they are recorded."},

	{Name: "gate.min_proven", Kind: Fraction, Default: "0.8", Tighten: "up", Doc: "The least share of the changed behaviours that must be proven."},
	{Name: "gate.max_refuted", Kind: Integer, Default: "0", Tighten: "down", Doc: "The most changed behaviours that may be refuted."},
	{Name: "gate.max_not_measured", Kind: Fraction, Default: "0.2", Tighten: "down", Doc: "The largest share of the changed behaviours that may be not measured."},
	{Name: "gate.on_unmeasured", Kind: Text, Values: []string{"note", "fail"}, Default: "fail", Tighten: "later", Doc: "What happens when only the share of not measured is over: fail exits with 4, note says so."},

	{Name: "isolation.min", Kind: Text, Values: []string{"limits", "landlock", "namespaces"}, Default: "limits", Tighten: "later", Doc: "The weakest isolation under which tests may run. Below it nothing is measured."},
	{Name: "isolation.network", Kind: Text, Values: []string{"none", "host"}, Default: "none", Doc: "What tests may reach: none is a private loopback interface only, host is everything."},
	{Name: "isolation.mem", Kind: Size, Min: 16 << 20, Default: "8GiB", Doc: "The most memory of one test process tree."},
	{Name: "isolation.pids", Kind: Integer, Min: 1, Max: 1 << 20, Default: "512", Doc: "The most processes of one test process tree."},
	{Name: "isolation.wall", Kind: Span, Min: 1, Default: "5m", Doc: "The longest that one run of a suite may take."},

	{Name: "reports.formats", Kind: Strings, Values: []string{"html", "md", "json", "mutation"}, Default: "[html, json, mutation]", Doc: "The reports that a start writes."},
	{Name: "reports.dir", Kind: Text, Doc: "Where reports go, relative to the root of the repository. Without it: reports/ in the state directory."},

	{Name: "store.database_url", Kind: Text, User: true, Alias: "PROVETO_DATABASE_URL", Doc: "A PostgreSQL database for a team. Without it: one file in the state directory."},
}

// Keys lists every key in the order of the reference.
func Keys() []Key { return keys }

func lookupKey(name string) (Key, bool) {
	for _, k := range keys {
		if k.Name == name {
			return k, true
		}
	}
	return Key{}, false
}

// parseSize reads 512MiB, 2GiB, 10MB or plain bytes.
func parseSize(s string) (int64, bool) {
	units := []struct {
		suffix string
		factor int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}}
	factor := int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(s, u.suffix); ok {
			s, factor = strings.TrimSpace(n), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > (1<<63-1)/factor {
		return 0, false
	}
	return n * factor, true
}

func parseSpan(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0
}

// Nearest is the name of the key that is most like name; empty when none is.
func Nearest(name string) string {
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return strictyaml.Nearest(name, names)
}
