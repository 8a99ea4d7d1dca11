// Command table runs proveto start on modules and prints one row each: what was
// found, and what it cost.
//
//	table -bin bin/proveto [-keep DIR] NAME=DIR… [-- FLAGS]
//
// DIR is a directory of sources, as in the module cache; it is copied, committed
// to a new git repository and measured there with state and cache of its own.
// The build cache of Go is the user's. CPU seconds are those of the process tree
// (user and system), peak memory is that of its largest process. With -keep the
// JSON answers stay in DIR, for compare.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
)

// answer is the part of an answer of proveto start that is read.
type answer struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Data    struct {
		FirstProofMS int64 `json:"first_proof_ms"`
		Counts       struct {
			Proven  int `json:"proven"`
			Refuted int `json:"refuted"`
			Total   int `json:"total"`
		} `json:"counts"`
		Unmeasured []struct {
			Reason string `json:"reason"`
			Count  int    `json:"count"`
		} `json:"unmeasured"`
	} `json:"data"`
}

// row is one module.
type row struct {
	name string
	answer
	cpu float64 // seconds
	rss int64   // KiB
}

func main() {
	bin := flag.String("bin", "proveto", "`path` of proveto")
	keep := flag.String("keep", "", "keep the JSON answers in `directory`")
	flag.Parse()
	modules, flags := split(flag.Args())
	if len(modules) == 0 {
		flag.Usage()
		os.Exit(64)
	}
	var rows []row
	for _, m := range modules {
		name, dir, ok := strings.Cut(m, "=")
		if !ok {
			flag.Usage()
			os.Exit(64)
		}
		r, err := measure(*bin, name, dir, *keep, flags)
		if err != nil {
			fmt.Fprintf(os.Stderr, "table: %s: %v\n", name, err)
			os.Exit(1)
		}
		rows = append(rows, r)
	}
	show(os.Stdout, rows)
}

// split parts the arguments at "--".
func split(args []string) (modules, flags []string) {
	for i, a := range args {
		if a == "--" {
			return args[:i], args[i+1:]
		}
	}
	return args, nil
}

func measure(bin, name, dir, keep string, flags []string) (row, error) {
	bin, err := exec.LookPath(bin)
	if err == nil {
		bin, err = filepath.Abs(bin)
	}
	if err != nil {
		return row{}, err
	}
	work, err := os.MkdirTemp("", "table-")
	if err != nil {
		return row{}, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a leftover temporary directory harms nobody
	module := filepath.Join(work, "module")
	if err := commit(dir, module); err != nil {
		return row{}, err
	}
	cmd := exec.Command(bin, append([]string{"start", "--json", "--quiet"}, flags...)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(work, "state"), "XDG_CACHE_HOME="+filepath.Join(work, "cache"))
	if os.Getenv("GOCACHE") == "" {
		// The default lies below XDG_CACHE_HOME, which is another one here.
		user, err := os.UserCacheDir()
		if err != nil {
			return row{}, err
		}
		cmd.Env = append(cmd.Env, "GOCACHE="+filepath.Join(user, "go-build"))
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		return row{}, err
	}
	r := row{name: name, cpu: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.rss = ru.Maxrss
	}
	if keep != "" {
		if err := os.MkdirAll(keep, 0o755); err != nil {
			return row{}, err
		}
		if err := os.WriteFile(filepath.Join(keep, name+".json"), out, 0o644); err != nil {
			return row{}, err
		}
	}
	if err := json.Unmarshal(out, &r.answer); err != nil {
		return row{}, fmt.Errorf("answer of %s: %w", bin, err)
	}
	if r.Data.Counts.Total == 0 {
		return row{}, fmt.Errorf("no symbol was found: %s: %s", r.Code, r.Message)
	}
	return r, nil
}

// commit copies sources, which may be read-only, and makes them a repository.
func commit(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"add", "-A"},
		{"-c", "user.name=table", "-c", "user.email=table@localhost", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "as released"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stderr = to, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("git %s: %w", args[0], err)
		}
	}
	return nil
}

func show(w io.Writer, rows []row) {
	fmt.Fprintln(w, "| module | symbols | proven | refuted | not measured | first proof s | CPU s | peak MiB |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		c := r.Data.Counts
		fmt.Fprintf(w, "| %s | %d | %d | %d | %s | %.1f | %.1f | %d |\n",
			r.name, c.Total, c.Proven, c.Refuted, r.reasons(), float64(r.Data.FirstProofMS)/1000, r.cpu, r.rss/1024)
	}
}

// reasons are the counts of what was not measured, by reason.
func (r row) reasons() string {
	by := map[string]int{}
	for _, u := range r.Data.Unmeasured {
		by[u.Reason] += u.Count
	}
	names := make([]string, 0, len(by))
	for n := range by {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool {
		return by[names[i]] > by[names[j]] || (by[names[i]] == by[names[j]] && names[i] < names[j])
	})
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprintf("%d %s", by[n], n))
	}
	if out == nil {
		return "0"
	}
	return strings.Join(out, ", ")
}
