package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// tree is every process below the supervisor. At level namespaces that is
// everything in the pid namespace; elsewhere the supervisor is the subreaper of
// what its commands leave behind, so that nothing can leave its descent.
type tree struct {
	whole bool // the pid namespace is ours
	self  int
}

// process is one live process of a tree.
type process struct {
	pid, ppid int
	group     int
	zombie    bool
	cpu       time.Duration // user and system, with the children it waited for
	rss       int64         // bytes
}

// use is what a tree takes at one moment.
type use struct {
	cpu       time.Duration
	rss       int64
	processes int
}

// clockTick is the unit of times in /proc/*/stat on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

var pageSize = int64(os.Getpagesize())

// processes lists the tree without the supervisor.
func (t tree) processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == t.self {
			continue
		}
		if p, ok := readProcess(pid); ok {
			all = append(all, p)
		}
	}
	if t.whole {
		return all, nil
	}
	return below(t.self, all), nil
}

// below keeps the descendants of root.
func below(root int, all []process) []process {
	children := map[int][]process{}
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p)
	}
	out := append([]process(nil), children[root]...)
	for i := 0; i < len(out); i++ {
		out = append(out, children[out[i].pid]...)
	}
	return out
}

// readProcess reads /proc/PID/stat; a process that has just gone is not ok.
func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(pid, b)
}

// parseStat reads the fields behind the name, which may hold anything.
func parseStat(pid int, b []byte) (process, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return process{}, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 22 {
		return process{}, false
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(f[i]), 10, 64) // the kernel writes numbers
		return n
	}
	p := process{pid: pid, ppid: int(number(1)), group: int(number(2)), zombie: f[0][0] == 'Z' || f[0][0] == 'X'}
	p.cpu = time.Duration(number(11)+number(12)+number(13)+number(14)) * clockTick
	p.rss = number(21) * pageSize
	return p, true
}

// measure adds up the tree.
func (t tree) measure() (use, []process, error) {
	ps, err := t.processes()
	if err != nil {
		return use{}, nil, err
	}
	var u use
	for _, p := range ps {
		u.cpu += p.cpu
		if !p.zombie {
			u.rss += p.rss
			u.processes++
		}
	}
	return u, ps, nil
}

// resident is the memory of processes with shared pages counted once. A process
// that cannot be asked counts with all its pages.
func resident(ps []process) int64 {
	var sum int64
	for _, p := range ps {
		sum += proportional(p)
	}
	return sum
}

func proportional(p process) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/smaps_rollup")
	if err != nil {
		return p.rss
	}
	for line := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(line, []byte("Pss:"))
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
		if err != nil {
			return p.rss
		}
		return kib << 10
	}
	return p.rss
}

// kill sends SIGKILL to the tree, once. In a pid namespace one call reaches
// everything at once and no fork can slip through. Elsewhere the same holds for
// each process group; a process that leaves its group between listing and signal
// is met by the next call, so callers repeat it until nothing is left.
func (t tree) kill() error {
	if t.whole {
		if err := unix.Kill(-1, unix.SIGKILL); err != nil && err != unix.ESRCH {
			return fmt.Errorf("end the process tree: %w", err)
		}
		return nil
	}
	ps, err := t.processes()
	if err != nil {
		return err
	}
	killGroups(ps)
	return nil
}

// killGroups ends processes below a supervisor with their groups. Each command
// begins a session, so no such group has a process that is not below; only
// between fork and that moment can a command still be in its supervisor's own.
func killGroups(ps []process) {
	own := unix.Getpgrp()
	done := map[int]bool{own: true, 0: true, 1: true}
	for _, p := range ps {
		if !done[p.group] {
			done[p.group] = true
			_ = unix.Kill(-p.group, unix.SIGKILL) // gone already
		}
		_ = unix.Kill(p.pid, unix.SIGKILL)
	}
}

// endMarked kills the processes that carry the private directory of a dead box
// in their environment. It is for the case that a supervisor was killed below
// level namespaces, where nothing else ties its commands to it. An empty mark
// marks nothing.
func endMarked(scratch string) error {
	if scratch == "" {
		return nil
	}
	mark := []byte("TMPDIR=" + scratch + "/tmp\x00")
	for {
		ps, err := marked(mark)
		if err != nil || len(ps) == 0 {
			return err
		}
		killGroups(ps)
		time.Sleep(time.Millisecond)
	}
}

// marked lists the live processes whose environment has the mark.
func marked(mark []byte) ([]process, error) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var ps []process
	for _, n := range names {
		pid, err := strconv.Atoi(n.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + n.Name() + "/environ") // empty for a zombie, closed for other users
		if err != nil || !bytes.Contains(append([]byte{0}, env...), append([]byte{0}, mark...)) {
			continue
		}
		if p, ok := readProcess(pid); ok {
			ps = append(ps, p)
		}
	}
	return ps, nil
}
