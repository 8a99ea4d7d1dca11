package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/app/flows"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store/storetest"
)

// fiveStages are the stages of the policy manual, which are its roles too.
var fiveStages = []string{"planner", "developer", "verifier", "tester", "reviewer"}

// plainWorld is a user in an empty directory: no git, nothing set up.
func plainWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		t: t, repo: filepath.Join(dir, "empty"), state: filepath.Join(dir, "state"), cache: filepath.Join(dir, "cache"), tmp: filepath.Join(dir, "tmp"),
	}
	if err := errors.Join(os.Mkdir(w.repo, 0o755), os.Mkdir(w.tmp, 0o755)); err != nil {
		t.Fatal(err)
	}
	return w
}

// flowData is what the answers about runs hold.
type flowData struct {
	RunID     string  `json:"run_id"`
	RunStatus string  `json:"run_status"`
	Stage     string  `json:"current_stage"`
	Token     *string `json:"plan_token_issued"`
	Replayed  bool    `json:"replayed"`
}

func (a answer) flow() flowData {
	a.t.Helper()
	var doc struct {
		Data flowData `json:"data"`
	}
	if err := json.Unmarshal([]byte(a.stdout), &doc); err != nil {
		a.t.Fatal(err)
	}
	return doc.Data
}

// manualRun opens a run and approves the planner's stage; it gives the token.
func (w *world) manualRun(task string) (run, token string) {
	w.t.Helper()
	run = w.must(0, "flow", "init", "--policy", "manual", "--task", task).flow().RunID
	d := w.must(0, "flow", "advance", run, "--stage", "planner", "--actor", "planner", "--decision", "approve").flow()
	if d.Token == nil {
		w.t.Fatal("an accepted plan has no token")
	}
	return run, *d.Token
}

// kv reads the four lines of status.
func (w *world) kv(run string) map[string]string {
	w.t.Helper()
	out, err := w.command(w.t.Context(), "flow", "status", run, "--format", "kv").Output()
	if err != nil {
		w.t.Fatalf("flow status %s: %v", run, err)
	}
	m := map[string]string{}
	for line := range strings.Lines(string(out)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		m[k] = v
	}
	return m
}

// facts are all entries of a run, read beside the product.
func (w *world) facts(run string) []ledger.Entry {
	w.t.Helper()
	url := ""
	for _, kv := range w.env {
		if v, ok := strings.CutPrefix(kv, "PROVETO_STORE_DATABASE_URL="); ok {
			url = v
		}
	}
	a, err := app.New(app.Settings{Dir: w.repo, State: w.state, DatabaseURL: url, Getenv: func(string) string { return "" }})
	if err != nil {
		w.t.Fatal(err)
	}
	led, err := a.Ledger(w.t.Context())
	var out []ledger.Entry
	if err == nil {
		out, err = led.RunEntries(w.t.Context(), run)
	}
	if err == nil {
		err = flows.Derive(led.ID(), run, out)
	}
	if err := errors.Join(err, a.Close()); err != nil {
		w.t.Fatal(err)
	}
	return out
}

func folded(t *testing.T, entries []ledger.Entry) flow.Run {
	t.Helper()
	var list []flow.Entry
	for _, e := range entries {
		list = append(list, flow.Entry{Seq: e.Seq, Kind: flow.Kind(e.Kind), Leaf: e.LeafHash(), Body: e.Body})
	}
	r, err := flow.Fold(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// attempt is one process of a burst.
type attempt struct {
	run, stage, note string
	decision         flow.Decision
	exit             int
	code             string
}

// TestBurstOfDecisions lets many processes decide at once, on one run and on
// twenty. Each answer that says that it is recorded is recorded, once; nothing
// crashes; each refusal is one that the run explains; and what is shown at the end
// is what the entries fold to.
func TestBurstOfDecisions(t *testing.T) {
	n, bursts := 40, 2
	if long() {
		n, bursts = 200, 10
	}
	url := storetest.PostgreSQL(t).DatabaseURL
	for _, backend := range []string{"sqlite", "postgresql"} {
		t.Run(backend, func(t *testing.T) {
			r := draws(t)
			w := plainWorld(t)
			if backend == "postgresql" {
				w.env = append(w.env, "PROVETO_STORE_DATABASE_URL="+url)
			}
			for i := range bursts {
				runs := 1
				if i%2 == 1 {
					runs = 20
				}
				burst(t, w, r, n, runs)
			}
			w.sound()
		})
	}
}

func burst(t *testing.T, w *world, r *rand.Rand, n, runs int) {
	t.Helper()
	tokens := map[string]string{}
	for i := range runs {
		run, token := w.manualRun(fmt.Sprintf("task %d of a burst", i))
		tokens[run] = token
	}
	ids := slices.Sorted(maps.Keys(tokens))
	all := make([]*attempt, n)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range all {
		a := &attempt{
			run: ids[i%runs], stage: fiveStages[min(r.IntN(len(fiveStages)), 1+r.IntN(4))], note: fmt.Sprintf("word %d of %d at once", i, n),
			decision: []flow.Decision{flow.Approve, flow.Approve, flow.Approve, flow.Reject, flow.Abstain}[r.IntN(5)],
		}
		all[i] = a
		args := []string{"flow", "advance", a.run, "--stage", a.stage, "--actor", a.stage, "--decision", string(a.decision), "--note", a.note, "--json"}
		if a.stage == "developer" {
			args = append(args, "--plan-token", tokens[a.run])
		}
		cmd := w.command(t.Context(), args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			var ended *exec.ExitError
			if err := cmd.Wait(); err != nil && !errors.As(err, &ended) {
				t.Error(err)
			}
			a.exit = cmd.ProcessState.ExitCode()
			var doc struct{ Code string }
			if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
				t.Errorf("%+v: no document: %v\n%s\n%s", a, err, clip(stdout.String()), clip(stderr.String()))
			}
			a.code = doc.Code
			if a.exit < 0 || a.exit > 2 {
				t.Errorf("%+v: exit %d\n%s", a, a.exit, clip(stderr.String()))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	codes := map[string]int{}
	for _, a := range all {
		codes[a.code]++
	}
	for _, run := range ids {
		judge(t, w, run, all)
	}
	t.Logf("%d processes on %d runs in %s: %v", n, runs, took.Round(time.Millisecond), codes)
	if codes["busy"] > 0 {
		t.Errorf("%d of %d gave up on a busy database", codes["busy"], n)
	}
}

// judge compares the answers about a run with what is recorded of it.
func judge(t *testing.T, w *world, run string, all []*attempt) {
	t.Helper()
	entries := w.facts(run)
	recorded := map[string]int{}
	was := map[string]map[flow.StageState]bool{} // the states that a stage ever had
	decided := map[string]int{}                  // decisions on a stage
	revisions := 0
	for i, e := range entries {
		var body struct{ Note, Stage string }
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatal(err)
		}
		if flow.Kind(e.Kind) == flow.KindDecided {
			recorded[body.Note]++
			decided[body.Stage]++
		}
		r := folded(t, entries[:i+1])
		revisions = len(r.Plans)
		for _, s := range r.Stages {
			if was[s.ID] == nil {
				was[s.ID] = map[flow.StageState]bool{}
			}
			was[s.ID][s.State] = true
		}
	}
	for _, a := range all {
		if a.run != run {
			continue
		}
		want := 0
		if a.exit == 0 || a.exit == 2 {
			want = 1
		}
		if recorded[a.note] != want {
			t.Errorf("%+v: %d entries, want %d", a, recorded[a.note], want)
		}
		s := was[a.stage]
		explained := map[string]bool{
			"already_passed":     s[flow.Passed],
			"veto_stands":        s[flow.Rejected] || s[flow.Returned],
			"already_rejected":   s[flow.Rejected],
			"stage_out_of_order": s[flow.Locked] || s[flow.Stale] || s[flow.Passed] || s[flow.Rejected] || s[flow.Returned] || s[flow.Ready],
			"stale_subject":      decided[a.stage] > 0 || revisions > 1, // somebody else's word came between
			"token_invalid":      a.stage == "developer" && revisions > 1,
			"busy":               true, // is counted
		}
		if a.exit == 1 && !explained[a.code] {
			t.Errorf("%+v: the states %v of the stage do not explain the refusal", a, slices.Collect(maps.Keys(s)))
		}
	}
	final := folded(t, entries)
	st := final.StatusAt(final.Last)
	shown := w.kv(run)
	word := string(st.Word)
	if st.Word == flow.StatusApproved {
		word = "completed"
	}
	if shown["status"] != word || shown["current_stage"] != st.Stage {
		t.Errorf("run %s is shown as %v, its entries fold to %s at %s", run, shown, st.Word, st.Stage)
	}
}
