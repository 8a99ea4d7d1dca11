package controller

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

// overlay is the file for -overlay with the patched package testing, written
// once.
var overlay = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	files, err := Patch(strings.TrimSpace(string(out)))
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "controller")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, src := range files {
		to := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(to, src, 0o600); err != nil {
			return "", err
		}
		replace[path] = to
	}
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, body, 0o600)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if name, err := overlay(); err == nil {
		os.RemoveAll(filepath.Dir(name))
	}
	os.Exit(code)
}

// unpack writes an archive into a fresh directory.
func unpack(t *testing.T, archive string) (string, *txtar.Archive) {
	t.Helper()
	ar, err := txtar.ParseFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range ar.Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if bytes.HasPrefix(f.Data, []byte("#!")) {
			mode = 0o700
		}
		if err := os.WriteFile(name, f.Data, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir, ar
}

// compile builds the test binaries of the module in dir, one per directory.
func compile(t *testing.T, dir string, args ...string) string {
	t.Helper()
	name, err := overlay()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir() + string(filepath.Separator)
	args = append([]string{"test", "-c", "-vet=off", "-overlay=" + name, "-ldflags=-s -w", "-o", bin}, args...)
	cmd := exec.Command("go", append(args, "./...")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOPROXY=off", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return bin
}

// report is what one judged process did.
type report struct {
	events []evidence.Event
	state  evidence.ReportState
	exit   int
	out    string
}

// judge runs a test binary with instructions and reads its report, checking
// every frame with the standard library's own HMAC.
func judge(t *testing.T, dir, binary string, in Instructions, args ...string) report {
	t.Helper()
	key := sha256.Sum256([]byte(t.Name()))
	in.Root = filepath.Dir(dir)
	doc, err := json.Marshal(map[string]any{"key": hex.EncodeToString(key[:]), "instructions": in})
	if err != nil {
		t.Fatal(err)
	}
	r3, w3, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r4, w4, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	cmd.ExtraFiles = []*os.File{r3, w4}
	cmd.Env = append(os.Environ(), "PROVETO_REPORT=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r3.Close()
	w4.Close()
	go func() {
		io.Copy(w3, bytes.NewReader(doc)) // the child may leave before it reads
		w3.Close()
	}()
	var rep report
	rep.events, rep.state = frames(r4, key[:])
	r4.Close()
	var ee *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	rep.exit, rep.out = cmd.ProcessState.ExitCode(), out.String()
	return rep
}

func frames(r io.Reader, key []byte) ([]evidence.Event, evidence.ReportState) {
	var evs []evidence.Event
	state := evidence.ReportIncomplete
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 64<<20)
	for seq := 0; sc.Scan(); seq++ {
		n, rest, _ := strings.Cut(sc.Text(), " ")
		code, event, _ := strings.Cut(rest, " ")
		mac := hmac.New(sha256.New, key)
		io.WriteString(mac, n+" "+event)
		var e evidence.Event
		if n != strconv.Itoa(seq) || code != hex.EncodeToString(mac.Sum(nil))[:32] || json.Unmarshal([]byte(event), &e) != nil {
			io.Copy(io.Discard, r)
			return evs, evidence.ReportTampered
		}
		state = evidence.ReportIncomplete
		if e.Kind == evidence.EventEnd {
			state = evidence.ReportComplete
		}
		evs = append(evs, e)
	}
	return evs, state
}

// lines writes a report one event a line, without durations.
func (r report) lines() string {
	var b strings.Builder
	names := map[int64]string{}
	for _, e := range r.events {
		switch e.Kind {
		case evidence.EventEnd:
			continue
		case evidence.EventSymbols:
			for i, n := range e.Names {
				names[e.Base+int64(i)] = n
			}
			continue
		}
		fmt.Fprintf(&b, "%s", e.Kind)
		if e.Test != "" {
			fmt.Fprintf(&b, " %s", e.Test)
		}
		if e.Kind == evidence.EventFail {
			fmt.Fprintf(&b, " %s %s:%d %q", e.By, e.File, e.Line, e.Message)
		}
		if e.Base != 0 {
			fmt.Fprintf(&b, " #%d", e.Base)
		}
		for _, i := range e.Index {
			if e.Kind == evidence.EventReach {
				fmt.Fprintf(&b, " %s", names[i])
			} else {
				fmt.Fprintf(&b, " %d", i)
			}
		}
		for _, n := range e.Names {
			fmt.Fprintf(&b, " %s", n)
		}
		for _, v := range e.Values {
			fmt.Fprintf(&b, " %s", v)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "exit %d %s\n", r.exit, r.state)
	return b.String()
}

// Each directory of the archive is a package of tests with a file want.txt.
func TestReport(t *testing.T) {
	dir, ar := unpack(t, "testdata/report.txtar")
	bin := compile(t, dir)
	for _, f := range ar.Files {
		if pkg, ok := strings.CutSuffix(f.Name, "/want.txt"); ok {
			t.Run(pkg, func(t *testing.T) { compare(t, dir, bin, pkg, string(f.Data)) })
		}
	}
}

// The archive is one instrumented package and the reports of several runs.
func TestReachValuesAndProbes(t *testing.T) {
	dir, ar := unpack(t, "testdata/observe.txtar")
	bin := compile(t, dir)
	for _, f := range ar.Files {
		if name, ok := strings.CutSuffix(f.Name, ".want"); ok {
			t.Run(name, func(t *testing.T) { compare(t, dir, bin, "calc", string(f.Data)) })
		}
	}
}

// compare runs the tests of a package. want has the exact events, then exit code
// and state of the report; its first lines may give arguments and instructions.
func compare(t *testing.T, dir, bin, pkg, want string) {
	t.Helper()
	var in Instructions
	args, sorted := []string{"-test.parallel=1"}, false
	for {
		line, rest, _ := strings.Cut(want, "\n")
		if a, ok := strings.CutPrefix(line, "args: "); ok {
			args = append(args, strings.Fields(a)...)
		} else if j, ok := strings.CutPrefix(line, "instructions: "); ok {
			if err := json.Unmarshal([]byte(j), &in); err != nil {
				t.Fatal(err)
			}
		} else if strings.HasPrefix(line, "sorted: ") {
			sorted = true
		} else {
			break
		}
		want = rest
	}
	got := judge(t, filepath.Join(dir, pkg), filepath.Join(bin, pkg+".test"), in, args...)
	lines := got.lines()
	if sorted {
		ls := strings.SplitAfter(lines, "\n")
		slices.Sort(ls)
		lines = strings.Join(ls, "")
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Errorf("report (-want +got):\n%s\noutput:\n%s", d, got.out)
	}
}

func TestPatchNamesTheMissingHook(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "src", "testing")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const src = "package testing\ntype common struct {\n}\nfunc (c *common) Fail() {\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "testing.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Patch(root)
	if !fault.Has(err, lang.UnsupportedRunner) || !strings.Contains(err.Error(), `"common.log"`) {
		t.Errorf("Patch = %v, want unsupported_runner naming common.log", err)
	}
}
