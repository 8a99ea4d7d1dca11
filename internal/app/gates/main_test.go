package gates_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/app/gates"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/gate"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang"
	"github.com/proveto/proveto/internal/lang/golang/source"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/sandbox"
	"github.com/proveto/proveto/internal/snapshot"
)

func TestMain(m *testing.M) {
	for _, reexec := range []func([]string) (int, bool){sandbox.Reexec, source.Reexec, gates.Reexec} {
		if code, handled := reexec(os.Args[1:]); handled {
			os.Exit(code)
		}
	}
	os.Exit(m.Run())
}

// world is a repository with a base commit and the engine's own state.
type world struct {
	t    *testing.T
	dir  string
	app  *app.App
	repo snapshot.Repo
	base evidence.Tree
}

// setup commits the files of an archive of testdata as the base.
func setup(t *testing.T, archive string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.git("init", "-q", "-b", "main")
	w.unpack(archive)
	state, cache := t.TempDir(), t.TempDir()
	var err error
	w.app, err = app.New(app.Settings{
		Dir: w.dir, State: state, Environ: os.Environ(), Version: "test", Drivers: []lang.Driver{golang.New()},
		Getenv: func(name string) string {
			switch name {
			case "PROVETO_CACHE":
				return cache
			case "XDG_CONFIG_HOME":
				return state
			}
			return ""
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.app.Close(); err != nil {
			t.Error(err)
		}
	})
	snaps, err := w.app.Snapshots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w.repo, err = snaps.Locate(t.Context(), w.dir); err != nil {
		t.Fatal(err)
	}
	w.base = w.commit()
	return w
}

func (w *world) git(args ...string) {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = w.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (w *world) unpack(archive string) {
	w.t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("testdata", archive))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range ar.Files {
		w.write(f.Name, string(f.Data))
	}
}

func (w *world) write(name, body string) {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(body), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) edit(name, old, replacement string) {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(name)))
	if err != nil {
		w.t.Fatal(err)
	}
	if strings.Count(string(raw), old) != 1 {
		w.t.Fatalf("%s holds %q %d times, want once", name, old, strings.Count(string(raw), old))
	}
	w.write(name, strings.Replace(string(raw), old, replacement, 1))
}

// commit seals what the directory holds now.
func (w *world) commit() evidence.Tree {
	w.t.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "--allow-empty", "-m", "state")
	snaps, err := w.app.Snapshots(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := snaps.Seal(w.t.Context(), w.repo, snapshot.Options{Rev: "HEAD"})
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Tree
}

// tree is the base with a change.
func (w *world) tree(change func()) evidence.Tree {
	w.t.Helper()
	change()
	return w.commit()
}

var policies = map[string]gates.Policy{
	"baseline":           {Kind: gate.KindSuite, At: "base", Repeat: 2},
	"build":              {Kind: gate.KindBuild},
	"secrets":            {Kind: gate.KindSecrets},
	"suite.kept":         {Kind: gate.KindSuite, Tests: "base"},
	"suite.full":         {Kind: gate.KindSuite, Tests: "all", Repeat: 2},
	"prove.changed":      {Kind: gate.KindProve, MinProven: 0.8, MaxNotMeasured: 0.2, WhenEmpty: "pass"},
	"prove.requirements": {Kind: gate.KindProve},
	"merge.preview":      {Kind: gate.KindMerge},
}

func (w *world) measure(name string, tree evidence.Tree, edit func(*gates.Request)) gates.Result {
	w.t.Helper()
	r := gates.Request{Gate: name, Policy: policies[name], Repo: w.repo, BaseTree: w.base, Tree: tree, Run: "run_01ARZ3NDEKTSV4RRFFQ69G5FAV", Stage: "developer", Attempt: 1}
	if edit != nil {
		edit(&r)
	}
	res, err := gates.Measure(w.t.Context(), w.app, r)
	if err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	return res
}

// want checks the outcome, and of a pass that the gate refused its probe and that
// the ledger derives the certificate.
func (w *world) want(res gates.Result, outcome gate.Outcome, code string) {
	w.t.Helper()
	e := res.Evidence
	if e.Outcome != outcome || string(e.Code) != code {
		w.t.Errorf("%s: %s %s (%s), want %s %s; probe %+v; issues %+v", e.Gate, e.Outcome, e.Code, e.Reason, outcome, code, res.Probe, res.Issues)
		return
	}
	if _, err := e.Canonical(); err != nil {
		w.t.Error(err)
	}
	led, err := w.app.Ledger(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range e.Runs {
		if _, err := led.Run(w.t.Context(), d); err != nil {
			w.t.Errorf("%s: run %s is not in the ledger: %v", e.Gate, d.Short(), err)
		}
	}
	if e.Probe != "" {
		if c, err := led.Certificate(w.t.Context(), e.Probe); err != nil || c.Record().Gate == nil || c.Record().Gate.Digest != e.GateDigest {
			w.t.Errorf("%s: its certificate: %v", e.Gate, err)
		}
	}
	if outcome == gate.No && len(res.Issues) == 0 {
		w.t.Errorf("%s says no, and no issue says why", e.Gate)
	}
}

func (w *world) proven(res gates.Result) {
	w.t.Helper()
	w.want(res, gate.Pass, "")
	if res.Evidence.Probe == "" || !res.Probe.Refused {
		w.t.Errorf("%s passed and was not seen to refuse: %+v", res.Evidence.Gate, res.Probe)
	}
}

func (w *world) sound() {
	w.t.Helper()
	led, err := w.app.Ledger(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if r, err := led.Verify(context.WithoutCancel(w.t.Context()), ledger.Options{}); err != nil {
		w.t.Errorf("the ledger does not verify: %v %+v", err, r.Findings)
	}
}

type ctx = context.Context
