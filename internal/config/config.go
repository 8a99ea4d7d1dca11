// Package config reads the settings of Proveto: proveto.yaml in a repository,
// the user's own file, the environment and flags.
//
// One table of keys ([Keys]) feeds the parser, the schema and the reference.
// Every value keeps its origin. A layer that comes later wins, except that a
// flag or a variable can only tighten the gate and the least isolation. Unknown
// keys and wrong values are usage errors with code config_invalid that name the
// file, the line, the column and the nearest name that exists.
//
// The package reads bytes that it is given, and files in [ReadFile] only; which
// commit a file is taken from is the caller's business. It writes nothing.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/fault"
)

// FileName is the name of the repository's file.
const FileName = "proveto.yaml"

// CodeInvalid is the code of every error about a setting.
const CodeInvalid fault.Code = "config_invalid"

// Config is the effective configuration.
type Config struct {
	Prove     Prove
	Gate      Gate
	Isolation Isolation
	Reports   Reports
	Store     Store
	origins   map[string]Origin
	written   map[string]string
}

// Prove are the settings of the prove job.
type Prove struct {
	Include, Exclude []string
	Budget           time.Duration // 0: none was set
	Limit            int           // -1: none was set; 0 attempts nothing
	Operators        []string      // empty: all
	MinStrength      float64
	TestEnv          map[string]string
}

// Gate is the bar over the changed scope.
type Gate struct {
	MinProven      float64
	MaxRefuted     int
	MaxNotMeasured float64
	OnUnmeasured   string // fail, note
}

// Isolation are the walls around tests.
type Isolation struct {
	Min      string // limits, landlock, namespaces
	Network  string // none, host
	MemBytes int64
	PIDs     int
	Wall     time.Duration
}

// Reports are the files that a start writes.
type Reports struct {
	Formats []string
	Dir     string // empty: below the state directory
}

// Store are settings of this machine.
type Store struct {
	DatabaseURL Secret
}

// Secret is a text that never prints itself.
type Secret string

// String hides the secret; an empty one shows as empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// GoString hides the secret too.
func (s Secret) GoString() string { return s.String() }

// Layer is where a value comes from, in the order of precedence.
type Layer string

// The layers, weakest first.
const (
	LayerDefault     Layer = "default"
	LayerUser        Layer = "user"
	LayerRepository  Layer = "repository"
	LayerEnvironment Layer = "environment"
	LayerFlag        Layer = "flag"
)

// Origin says where a value was set: a file with line and column, a variable or
// a flag.
type Origin struct {
	Layer  Layer
	Name   string // file name, variable, --flag; empty for defaults
	Line   int
	Column int
}

// String is the origin as people write it: proveto.yaml:3:9, $PROVETO_GATE_MIN_PROVEN, --budget.
func (o Origin) String() string {
	switch {
	case o.Layer == LayerDefault:
		return "default"
	case o.Line > 0:
		return fmt.Sprintf("%s:%d:%d", o.Name, o.Line, o.Column)
	}
	return o.Name
}

// Setting is one effective value as it was written, with its origin.
type Setting struct {
	Key    Key
	Value  string // as written; empty: not set
	Origin Origin
}

// Sources are the layers above the defaults. All may be empty.
type Sources struct {
	User       *Document
	Repository *Document
	// Env reads one environment variable; nil: none is read.
	Env func(string) string
	// Flags are values by key name, as they were written on the command line.
	Flags map[string]string
}

// Load puts the layers together.
func Load(src Sources) (*Config, error) {
	c := &Config{origins: make(map[string]Origin, len(keys)), written: make(map[string]string, len(keys))}
	c.Prove.Limit = -1
	for _, k := range keys {
		if err := c.resolve(k, src); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// resolve finds the value of one key in the strongest layer that has it.
func (c *Config) resolve(k Key, src Sources) error {
	var from value
	from.origin = Origin{Layer: LayerDefault}
	if k.Default != "" {
		v, err := fromText(k, k.Default, from.origin)
		if err != nil {
			return fault.Wrap(err, fault.Internal, "internal", "the default of %s", k.Name)
		}
		from = v
	}
	if v, ok := src.User.value(k.Name); ok {
		from = v
	}
	if v, ok := src.Repository.value(k.Name); ok {
		if k.User {
			return invalid(v.origin, "%s belongs to one machine and is read from the user's own file only", k.Name).
				Hint("move it to %s", "$XDG_CONFIG_HOME/proveto/config.yaml")
		}
		from = v
	}
	if src.Env != nil {
		for _, name := range []string{k.Alias, k.Variable()} {
			if name == "" || src.Env(name) == "" {
				continue
			}
			if err := c.override(k, &from, src.Env(name), Origin{Layer: LayerEnvironment, Name: "$" + name}); err != nil {
				return err
			}
		}
	}
	if text, ok := src.Flags[k.Name]; ok {
		if err := c.override(k, &from, text, Origin{Layer: LayerFlag, Name: flagName(k)}); err != nil {
			return err
		}
	}
	c.origins[k.Name], c.written[k.Name] = from.origin, from.text
	c.set(k, from)
	return nil
}

// override applies a flag or a variable: freely, or only towards stricter.
func (c *Config) override(k Key, from *value, text string, o Origin) error {
	v, err := fromText(k, text, o)
	if err != nil {
		return err
	}
	if k.Tighten != "" && looser(k, v, *from) {
		return invalid(o, "%s = %s would loosen %s, which is %s (%s)", o.Name, text, k.Name, from.text, from.origin).
			Hint("a flag or a variable can only tighten the gate and the least isolation; change %s in %s", k.Name, FileName)
	}
	*from = v
	return nil
}

// looser compares in the direction of the key.
func looser(k Key, v, than value) bool {
	switch k.Tighten {
	case "up":
		return v.number() < than.number()
	case "down":
		return v.number() > than.number()
	}
	return index(k.Values, v.str) < index(k.Values, than.str)
}

func flagName(k Key) string { return "--" + strings.ReplaceAll(k.Leaf(), "_", "-") }

func index(list []string, s string) int {
	for i, x := range list {
		if x == s {
			return i
		}
	}
	return -1
}

// set puts a value into its field. A key that is not set anywhere leaves the
// zero value.
func (c *Config) set(k Key, v value) {
	if v.text == "" && v.list == nil && v.dict == nil {
		return
	}
	switch k.Name {
	case "prove.include":
		c.Prove.Include = v.list
	case "prove.exclude":
		c.Prove.Exclude = v.list
	case "prove.budget":
		c.Prove.Budget = v.span
	case "prove.limit":
		c.Prove.Limit = int(v.integer)
	case "prove.operators":
		c.Prove.Operators = v.list
	case "prove.min_strength":
		c.Prove.MinStrength = v.fraction
	case "prove.test_env":
		c.Prove.TestEnv = v.dict
	case "gate.min_proven":
		c.Gate.MinProven = v.fraction
	case "gate.max_refuted":
		c.Gate.MaxRefuted = int(v.integer)
	case "gate.max_not_measured":
		c.Gate.MaxNotMeasured = v.fraction
	case "gate.on_unmeasured":
		c.Gate.OnUnmeasured = v.str
	case "isolation.min":
		c.Isolation.Min = v.str
	case "isolation.network":
		c.Isolation.Network = v.str
	case "isolation.mem":
		c.Isolation.MemBytes = v.integer
	case "isolation.pids":
		c.Isolation.PIDs = int(v.integer)
	case "isolation.wall":
		c.Isolation.Wall = v.span
	case "reports.formats":
		c.Reports.Formats = v.list
	case "reports.dir":
		c.Reports.Dir = v.str
	case "store.database_url":
		c.Store.DatabaseURL = Secret(v.str)
	default:
		panic("config: no field for " + k.Name)
	}
}

// Origin tells where the value of a key comes from; the zero origin for a key
// that does not exist.
func (c *Config) Origin(name string) Origin { return c.origins[name] }

// Settings lists every key with its effective value and origin. The database
// address is a secret and shows as one.
func (c *Config) Settings() []Setting {
	out := make([]Setting, 0, len(keys))
	for _, k := range keys {
		s := Setting{k, c.written[k.Name], c.origins[k.Name]}
		if k.Name == "store.database_url" {
			s.Value = Secret(s.Value).String()
		}
		out = append(out, s)
	}
	return out
}

// UserFile is the user's own file: $XDG_CONFIG_HOME/proveto/config.yaml, or
// below $HOME/.config. Empty when neither variable is set.
func UserFile(env func(string) string) string {
	if d := env("XDG_CONFIG_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "proveto", "config.yaml")
	}
	if h := env("HOME"); h != "" {
		return filepath.Join(h, ".config", "proveto", "config.yaml")
	}
	return ""
}

// ReadFile parses a file of a layer. A file that does not exist is no error and
// no document.
func ReadFile(path string, layer Layer) (*Document, error) {
	if path == "" {
		return nil, nil
	}
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Usage, CodeInvalid, "read the configuration")
	}
	return parse(path, body, layer)
}

func invalid(o Origin, format string, args ...any) *fault.Error {
	what := fmt.Sprintf(format, args...)
	if o.Line > 0 {
		what = o.String() + ": " + what
	}
	return fault.New(fault.Usage, CodeInvalid, "%s", what)
}
