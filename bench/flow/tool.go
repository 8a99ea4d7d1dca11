//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tool is one of the two that are measured.
type tool interface {
	name() string
	version() string
	open() (run string, s Sample, err error)
	// approve gives the token that was issued, if one was.
	approve(run, stage, token string) (issued string, s Sample, err error)
	status(run string) (word string, s Sample, err error)
	finished() string // the word of a run whose stages are all approved
	reject(run, note string) (verdict, Sample, error)
	notes(run string) (map[string]bool, error) // of the decisions on record
	atOnce(all, burst int) int
}

// home gives a tool a directory of its own and the environment to stay in it.
func home(dir string, more ...string) ([]string, error) {
	if err := os.MkdirAll(filepath.Join(dir, "work"), 0o700); err != nil {
		return nil, err
	}
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8"}, more...), nil
}

// wanted runs a command that must end with 0.
func wanted(dir string, env []string, argv ...string) (answer, error) {
	a, err := start(dir, env, argv...)
	if err == nil && a.Exit != 0 {
		err = fmt.Errorf("%s ends with %d: %s", strings.Join(argv, " "), a.Exit, bytes.TrimSpace(a.stderr))
	}
	return a, err
}

type proveto struct {
	bin, dir string
	env      []string
}

func newProveto(bin, dir, database string) (*proveto, error) {
	abs, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	env, err := home(dir, "PROVETO_STATE="+filepath.Join(dir, "state"), "PROVETO_CACHE="+filepath.Join(dir, "cache"))
	if database != "" {
		env = append(env, "PROVETO_DATABASE_URL="+database)
	}
	return &proveto{bin: abs, dir: filepath.Join(dir, "work"), env: env}, err
}

// envelope is the part of an answer of Proveto that is read here.
type envelope struct {
	Data struct {
		RunID string  `json:"run_id"`
		Token *string `json:"plan_token_issued"`
		Runs  []any   `json:"runs"`
	} `json:"data"`
}

func (p *proveto) flow(args ...string) (e envelope, s Sample, err error) {
	s, err = p.ask(&e, args...)
	return e, s, err
}

func (p *proveto) ask(into any, args ...string) (Sample, error) {
	a, err := wanted(p.dir, p.env, append([]string{p.bin, "flow"}, append(args, "--json")...)...)
	if err == nil {
		err = json.Unmarshal(a.stdout, into)
	}
	return a.Sample, err
}

func (p *proveto) name() string     { return "proveto" }
func (p *proveto) finished() string { return "approved" }

func (p *proveto) atOnce(all, _ int) int { return all }

func (p *proveto) version() string {
	a, err := start(p.dir, p.env, p.bin, "version")
	if err != nil {
		return err.Error()
	}
	line, _, _ := strings.Cut(string(a.stdout), "\n")
	return line
}

func (p *proveto) open() (string, Sample, error) {
	e, s, err := p.flow("init", "--task", "Add OAuth login", "--policy", "manual")
	return e.Data.RunID, s, err
}

func (p *proveto) approve(run, stage, token string) (string, Sample, error) {
	args := []string{"advance", run, "--stage", stage, "--actor", stage, "--decision", "approve", "--note", "done: " + stage}
	if stage == "developer" {
		args = append(args, "--plan-token", token)
	}
	e, s, err := p.flow(args...)
	if err != nil || e.Data.Token == nil {
		return "", s, err
	}
	return *e.Data.Token, s, nil
}

func (p *proveto) status(run string) (string, Sample, error) {
	var e struct {
		Data struct {
			Run struct {
				Status string `json:"status"`
			} `json:"run"`
		} `json:"data"`
	}
	s, err := p.ask(&e, "status", run)
	return e.Data.Run.Status, s, err
}

func (p *proveto) reject(run, note string) (verdict, Sample, error) {
	a, err := start(p.dir, p.env, p.bin, "flow", "advance", run, "--stage", "planner", "--actor", "planner", "--decision", "reject", "--note", note)
	switch {
	case err != nil:
		return crashed, a.Sample, err
	case a.Exit == 2:
		return acknowledged, a.Sample, nil
	case a.Exit == 1 && bytes.HasPrefix(a.stderr, []byte("proveto: ")):
		return refused, a.Sample, nil
	}
	return crashed, a.Sample, nil
}

func (p *proveto) notes(run string) (map[string]bool, error) {
	var e struct {
		Data struct {
			Entries []struct {
				Decision string `json:"decision"`
				Note     string `json:"note"`
			} `json:"entries"`
		} `json:"data"`
	}
	_, err := p.ask(&e, "log", run)
	out := map[string]bool{}
	for _, x := range e.Data.Entries {
		if x.Decision != "" {
			out[x.Note] = true
		}
	}
	return out, err
}

// large times what grows: the status of a long run, the list of many.
func (p *proveto) large(r *result, o options) error {
	if o.entries > 0 {
		id, _, err := p.open()
		if err != nil {
			return err
		}
		for i := 1; i < o.entries; i++ {
			if _, _, err := p.flow("claim", id, "--text", fmt.Sprint("claim ", i)); err != nil {
				return err
			}
		}
		for range o.n {
			_, s, err := p.status(id)
			if err != nil {
				return err
			}
			r.add("status of a long run", p.name(), s)
		}
	}
	if o.runs == 0 {
		return nil
	}
	for range o.runs {
		if _, _, err := p.open(); err != nil {
			return err
		}
	}
	for range o.n {
		e, s, err := p.flow("list", "--limit", fmt.Sprint(o.runs))
		if err == nil && len(e.Data.Runs) != o.runs {
			err = fmt.Errorf("the list has %d runs, want %d", len(e.Data.Runs), o.runs)
		}
		if err != nil {
			return err
		}
		r.add("list of many runs", p.name(), s)
	}
	return nil
}

type lacp struct {
	root, script, dir string
	env               []string
}

func newLACP(root, dir string) (*lacp, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	l := &lacp{root: root, script: filepath.Join(root, "bin", "lacp-workflow-run"), dir: filepath.Join(dir, "work")}
	if _, err := os.Stat(l.script); err != nil {
		return nil, err
	}
	for _, needed := range []string{"bash", "jq", "python3"} {
		if _, err := exec.LookPath(needed); err != nil {
			return nil, err
		}
	}
	l.env, err = home(dir, "LACP_SKIP_DOTENV=1", "LACP_KNOWLEDGE_ROOT="+filepath.Join(dir, "knowledge"))
	return l, err
}

func (l *lacp) name() string     { return "lacp" }
func (l *lacp) finished() string { return "completed" }

func (l *lacp) atOnce(all, burst int) int { return min(all, burst) }

func (l *lacp) version() string {
	own, err := os.ReadFile(filepath.Join(l.root, "version"))
	if err != nil {
		own = []byte("unknown")
	}
	where, _ := exec.LookPath("python3") // newLACP has found it
	a, err := start(l.dir, l.env, "python3", "--version")
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, %s at %s", bytes.TrimSpace(own), bytes.TrimSpace(a.stdout), where)
}

func (l *lacp) open() (string, Sample, error) {
	a, err := wanted(l.dir, l.env, l.script, "init", "--task", "Add OAuth login", "--json")
	var out struct {
		RunID string `json:"run_id"`
	}
	if err == nil {
		err = json.Unmarshal(a.stdout, &out)
	}
	return out.RunID, a.Sample, err
}

func (l *lacp) approve(run, stage, token string) (string, Sample, error) {
	args := []string{l.script, "advance", "--run-id", run, "--stage", stage, "--actor", stage, "--decision", "approve", "--note", "done: " + stage, "--json"}
	if stage == "developer" {
		args = append(args, "--plan-token", token)
	}
	a, err := wanted(l.dir, l.env, args...)
	if err != nil {
		return "", a.Sample, err
	}
	// The answer and the whole state, one after the other.
	var out struct {
		Token string `json:"plan_token_issued"`
	}
	if err := json.NewDecoder(bytes.NewReader(a.stdout)).Decode(&out); err != nil {
		return "", a.Sample, err
	}
	if out.Token == "" {
		return "", a.Sample, errors.New("lacp: no token was issued")
	}
	return out.Token, a.Sample, nil
}

// state is the part of LACP's state that is read here.
type state struct {
	Status  string `json:"status"`
	History []struct {
		Decision string `json:"decision"`
		Note     string `json:"note"`
	} `json:"history"`
}

func (l *lacp) read(run string) (state, Sample, error) {
	var s state
	a, err := wanted(l.dir, l.env, l.script, "status", "--run-id", run, "--json")
	if err == nil {
		err = json.Unmarshal(a.stdout, &s)
	}
	return s, a.Sample, err
}

func (l *lacp) status(run string) (string, Sample, error) {
	s, m, err := l.read(run)
	return s.Status, m, err
}

func (l *lacp) reject(run, note string) (verdict, Sample, error) {
	a, err := start(l.dir, l.env, l.script, "advance", "--run-id", run, "--stage", "planner", "--actor", "planner", "--decision", "reject", "--note", note)
	switch {
	case err != nil:
		return crashed, a.Sample, err
	case a.Exit == 2:
		return acknowledged, a.Sample, nil
	case a.Exit == 1 && !bytes.Contains(a.stderr, []byte("Traceback")):
		return refused, a.Sample, nil
	}
	return crashed, a.Sample, nil
}

func (l *lacp) notes(run string) (map[string]bool, error) {
	s, _, err := l.read(run)
	out := map[string]bool{}
	for _, x := range s.History {
		if x.Decision != "" {
			out[x.Note] = true
		}
	}
	return out, err
}
