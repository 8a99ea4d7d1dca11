package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/config"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/view"
)

// loadConfig reads the user's file, the repository's and the environment. No
// file costs a few failed opens.
func loadConfig(s Settings, dir string) (*config.Config, error) {
	if _, err := config.CheckVariables(s.Environ); err != nil {
		return nil, err
	}
	src := config.Sources{Env: s.Getenv, Flags: map[string]string{}}
	if s.DatabaseURL != "" {
		src.Flags["store.database_url"] = s.DatabaseURL
	}
	var err error
	if src.User, err = config.ReadFile(config.UserFile(s.Getenv), config.LayerUser); err != nil {
		return nil, err
	}
	path := s.ConfigFile
	if path == "" {
		if path, err = findConfig(dir); err != nil {
			return nil, err
		}
	} else if _, err := os.Stat(path); err != nil {
		return nil, fault.Wrap(err, fault.Usage, config.CodeInvalid, "--config %s", path).Hint("proveto config check")
	}
	if src.Repository, err = config.ReadFile(path, config.LayerRepository); err != nil {
		return nil, err
	}
	return config.Load(src)
}

// soundConfig is the configuration without the repository's file, and without
// the other layers when one of those is what is wrong.
func soundConfig(s Settings) (*config.Config, error) {
	user, err := config.ReadFile(config.UserFile(s.Getenv), config.LayerUser)
	if err != nil {
		user = nil
	}
	for _, src := range []config.Sources{{User: user, Env: s.Getenv}, {User: user}, {Env: s.Getenv}} {
		if c, err := config.Load(src); err == nil {
			return c, nil
		}
	}
	return config.Load(config.Sources{})
}

// findConfig looks for the repository's file upwards from dir, no further than
// the directory that holds .git.
func findConfig(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fault.Wrap(err, fault.Usage, "usage", "directory %s", dir)
	}
	for d := abs; ; d = filepath.Dir(d) {
		path := filepath.Join(d, config.FileName)
		if _, err := os.Lstat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return "", nil // not a directory: Locate says so
		}
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil || d == filepath.Dir(d) {
			return "", nil
		}
	}
}

// configKey is the digest of every setting that can change a result.
func (a *App) configKey() string {
	var parts []string
	for _, s := range a.Config.Settings() {
		if s.Key.Section() != "store" {
			parts = append(parts, s.Key.Name, s.Value)
		}
	}
	return string(evidence.DigestParts(parts...))
}

// ConfigShow lists keys with value and origin; one of them when key is given.
func (a *App) ConfigShow(key string) ([]view.ConfigKey, error) {
	out := []view.ConfigKey{}
	for _, s := range a.Config.Settings() {
		if key == "" || s.Key.Name == key || s.Key.Section() == key {
			out = append(out, view.ConfigKey{Key: s.Key.Name, Value: s.Value, Origin: s.Origin.String()})
		}
	}
	if len(out) == 0 {
		e := fault.New(fault.Usage, "usage", "no configuration key %q", key)
		if near := config.Nearest(key); near != "" {
			e = e.Hint("proveto config get %s", near)
		}
		return nil, e.Hint("proveto config show")
	}
	return out, nil
}

// ConfigSources are the files that were read.
func (a *App) ConfigSources() []string {
	out := []string{}
	for _, s := range a.Config.Settings() {
		if s.Origin.Line > 0 && !slices.Contains(out, s.Origin.Name) {
			out = append(out, s.Origin.Name)
		}
	}
	return out
}

// ConfigFiles says in a sentence which files were read and found right.
func (a *App) ConfigFiles() string {
	files := a.ConfigSources()
	if len(files) == 0 {
		return "no configuration file sets anything; the defaults hold"
	}
	return strings.Join(files, ", ") + ": valid"
}

// ConfigSchema is the JSON Schema of proveto.yaml.
func ConfigSchema() ([]byte, error) { return config.Schema() }
