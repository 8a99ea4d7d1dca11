package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/proveto/proveto/internal/blob"
	"github.com/proveto/proveto/internal/config"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/queue"
	"github.com/proveto/proveto/internal/snapshot"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/view"
)

// ErrInterrupted is the cause of a context that the user ended.
var ErrInterrupted = fault.New(fault.Interrupted, "interrupted", "stopped by you")

// Settings are the common flags and the world around them.
type Settings struct {
	Dir         string // -C
	ConfigFile  string
	AnyConfig   bool // go on without what is wrong with the configuration; the doctor says what that is
	State       string
	DatabaseURL string
	Principal   string
	ExpectHead  string
	Getenv      func(string) string
	Environ     []string
	Version     string
	Interactive bool
	Drivers     []lang.Driver
	MaxLevel    evidence.Level // use at most this isolation; for tests
	Log         *slog.Logger
	Now         func() time.Time
}

// Paths are the directories that proveto owns.
type Paths struct {
	State string // database, keys, blobs, object stores, reports
	Cache string // checkouts and builds; may be deleted at any time
}

// App joins everything. Create it with [New]; it opens nothing until a use case
// needs it. Safe for use by several goroutines.
type App struct {
	Settings
	Paths  Paths
	Config *config.Config

	configErr error // with AnyConfig: what is wrong with the configuration

	mu       sync.Mutex
	db       *store.DB
	blobs    *blob.Store
	keys     *identity.Keys
	ledger   *ledger.Ledger
	snaps    *snapshot.Store
	queue    *queue.Queue
	after    int64                             // the sequence number that the first entry of this process follows; 0: any
	checked  bool                              // the head was compared with ExpectHead
	waivers  map[evidence.Digest]ledger.Waiver // by probe; loaded with the stored evidence
	warnings []view.Warning
}

// New reads the configuration and nothing else.
func New(s Settings) (*App, error) {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	a := &App{Settings: s}
	home, err := os.UserHomeDir()
	if err != nil && (s.State == "" || s.Getenv("PROVETO_CACHE") == "") {
		return nil, fault.Wrap(err, fault.Usage, "usage", "no home directory").Hint("proveto --state DIR")
	}
	if a.Paths.State, err = directory(s.State, s.Getenv("PROVETO_STATE"), s.Getenv("XDG_STATE_HOME"), filepath.Join(home, ".local", "state")); err != nil {
		return nil, err
	}
	if a.Paths.Cache, err = directory("", s.Getenv("PROVETO_CACHE"), s.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")); err != nil {
		return nil, err
	}
	a.Config, err = loadConfig(s, a.dir(""))
	if err != nil && s.AnyConfig {
		a.configErr = err
		a.Config, err = soundConfig(s)
	}
	near, _ := config.CheckVariables(s.Environ) // what is wrong with them loadConfig said
	for _, text := range near {
		a.warn("variable", text)
	}
	return a, err
}

// directory applies the precedence flag, variable, XDG, default; the last two
// get a directory of ours.
func directory(flag, variable, xdg, fallback string) (string, error) {
	for _, own := range []string{flag, variable} {
		if own != "" {
			return filepath.Abs(own)
		}
	}
	if xdg != "" && filepath.IsAbs(xdg) {
		return filepath.Join(xdg, "proveto"), nil
	}
	return filepath.Join(fallback, "proveto"), nil
}

// dir is where a command works.
func (a *App) dir(path string) string {
	base := orText(a.Settings.Dir, ".")
	if path == "" {
		return base
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

func (a *App) now() time.Time { return a.Settings.Now() }

// slots is how many jobs run at once.
func (a *App) slots() int { return max(1, runtime.NumCPU()) }

func newID() string { return ulid.Make().String() }

// lazily opens a part once.
func lazily[T any](a *App, field **T, open func() (*T, error)) (*T, error) {
	if *field != nil {
		return *field, nil
	}
	v, err := open()
	if err != nil {
		return nil, err
	}
	*field = v
	return v, nil
}

// Ledger opens the ledger with its database, blobs and keys.
func (a *App) Ledger(ctx context.Context) (*ledger.Ledger, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.openLedger(ctx)
}

func (a *App) openLedger(ctx context.Context) (*ledger.Ledger, error) {
	return lazily(a, &a.ledger, func() (*ledger.Ledger, error) {
		if err := os.MkdirAll(a.Paths.State, 0o700); err != nil {
			return nil, fault.Wrap(err, fault.Internal, "io", "state directory %s", a.Paths.State).Hint("proveto --state DIR")
		}
		var err error
		if a.blobs, err = blob.Open(filepath.Join(a.Paths.State, "blobs")); err != nil {
			return nil, err
		}
		if a.keys, err = identity.Open(a.Paths.State); err != nil {
			return nil, err
		}
		url := orText(a.DatabaseURL, string(a.Config.Store.DatabaseURL))
		where := store.Config{DatabaseURL: url}
		if url == "" {
			where.Path = filepath.Join(a.Paths.State, store.FileName)
		}
		if a.db, err = store.Open(ctx, where); err != nil {
			return nil, err
		}
		return ledger.Open(ctx, a.db, a.blobs, a.keys.Engine)
	})
}

// Queue opens the job queue on the ledger's database.
func (a *App) Queue(ctx context.Context) (*queue.Queue, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.openLedger(ctx); err != nil {
		return nil, err
	}
	return lazily(a, &a.queue, func() (*queue.Queue, error) { return queue.Open(ctx, a.db) })
}

// Snapshots opens the object stores and the checkouts.
func (a *App) Snapshots(ctx context.Context) (*snapshot.Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return lazily(a, &a.snaps, func() (*snapshot.Store, error) {
		return snapshot.Open(ctx, snapshot.Config{State: a.Paths.State, Cache: a.Paths.Cache})
	})
}

// append writes entries in a transaction of their own.
func (a *App) append(ctx context.Context, drafts ...ledger.Draft) error {
	led, err := a.Ledger(ctx)
	if err != nil {
		return err
	}
	if err := a.checkHead(ctx, led); err != nil {
		return err
	}
	return a.db.Write(ctx, func(tx *store.Tx) error {
		entries, err := led.Append(ctx, tx, drafts...)
		if err != nil {
			return err
		}
		return a.follows(entries)
	})
}

// loadWaivers reads the waivers once.
func (a *App) loadWaivers(ctx context.Context) error {
	led, err := a.Ledger(ctx)
	if err != nil {
		return err
	}
	all, err := led.Waivers(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waivers = map[evidence.Digest]ledger.Waiver{}
	for _, w := range all {
		a.waivers[w.Probe] = w
	}
	return nil
}

// Close releases what was opened.
func (a *App) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	if a.blobs != nil {
		errs = append(errs, a.blobs.Close())
	}
	if a.db != nil {
		errs = append(errs, a.db.Close())
	}
	return errors.Join(errs...)
}

// Head is the ledger's head; nil before the first entry.
func (a *App) Head(ctx context.Context) (*view.Head, error) {
	led, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	h, err := led.Head(ctx)
	if err != nil {
		return nil, err
	}
	return &view.Head{Seq: h.Seq, Root: string(h.Root)}, nil
}

// Warnings are what did not stop the work, in order.
func (a *App) Warnings() []view.Warning {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.warnings)
}

// warn keeps a warning; said twice, it is kept once.
func (a *App) warn(code, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := (view.Warning{Code: code, Message: message}); !slices.Contains(a.warnings, w) {
		a.warnings = append(a.warnings, w)
	}
}

func (inv *invocation) warn(code, message string) { inv.app.warn(code, message) }

// hidden are the directories that judged code must not see: our own, and those
// that hold the user's secrets.
func (a *App) hidden() []string {
	out := []string{a.Paths.State}
	if home, err := os.UserHomeDir(); err == nil {
		out = append(out, home)
	}
	return out
}

// testVariables are the names that the configuration sets for tests, sorted.
func (a *App) testVariables() []string { return slices.Sorted(maps.Keys(a.Config.Prove.TestEnv)) }

// testEnv is the environment of the project's tests: an allow-list of the
// user's, and what proveto.yaml adds.
func (a *App) testEnv() []string {
	var out []string
	for _, kv := range a.Environ {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(allowedEnv, name) || strings.HasPrefix(name, "LC_") {
			out = append(out, kv)
		}
	}
	for _, name := range a.testVariables() {
		out = append(out, name+"="+a.Config.Prove.TestEnv[name])
	}
	return out
}

// allowedEnv are the variables of the user that tests may see.
var allowedEnv = []string{
	"PATH", "LANG", "TZ", "TERM", "GOPATH", "GOMODCACHE", "GOCACHE", "GOFLAGS", "GOROOT", "GOPRIVATE", "GOEXPERIMENT", "GOTOOLCHAIN", "GOWORK",
	"CGO_ENABLED", "CC", "CXX", "GOOS", "GOARCH", "GOAMD64", "GOARM64",
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// matchesProbe tells whether the user named this probe: by operator or kind, or
// by the beginning of its digest.
func matchesProbe(p lang.Probe, want string) bool {
	if strings.EqualFold(p.Operator, want) || strings.EqualFold(string(p.Kind), want) {
		return true
	}
	hex := strings.TrimPrefix(strings.ToLower(want), "sha256:")
	return len(hex) >= 6 && slices.ContainsFunc(p.Digests(), func(d evidence.Digest) bool { return strings.HasPrefix(d.Hex(), hex) })
}

// names tells whether the user's word names the symbol: its id, its name or the
// end of it, its file, a line of it, its directory or its package.
func names(s lang.Symbol, want string) bool {
	if file, line, ok := fileLine(want); ok && s.File == file {
		return s.Line <= line && line <= s.EndLine
	}
	want = strings.TrimPrefix(strings.TrimSuffix(want, "/"), "./")
	switch {
	case want == "" || want == ".":
		return true
	case s.ID == want, s.Name == want, s.Unit == want, s.File == want:
		return true
	case strings.HasSuffix(s.Name, "."+want), strings.HasPrefix(s.Name, want+"."):
		return true
	}
	return strings.HasPrefix(s.File, want+"/")
}

// nameError says that a word names nothing, with the nearest names.
func nameError(word string, symbols []view.Symbol) error {
	e := fault.New(fault.NotFound, "not_found", "no symbol, file or id %q here", word)
	lower := strings.ToLower(word)
	shown := 0
	for _, s := range symbols {
		if shown < 3 && strings.Contains(strings.ToLower(s.Name), lower) {
			e = e.Hint("proveto why %s", called(symbols, s))
			shown++
		}
	}
	if shown == 0 {
		e = e.Hint("proveto gaps --all")
	}
	return e
}

func plural(n int, one string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", one)
	}
	if strings.HasSuffix(one, "y") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(one, "y"))
	}
	return fmt.Sprintf("%d %ss", n, one)
}
