package sandbox

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/evidence"
)

func TestReportExampleOfTheFormatParses(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/formats/report-descriptor.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^0 [0-9a-f]{32} \{.*\}$`).Find(doc)
	if line == nil {
		t.Fatal("the format has no example frame")
	}
	key, err := hex.DecodeString(strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := newReader(key).parse(line); !ok {
		t.Errorf("parse(%s) refused under the key of the format", line)
	}
}

func TestReportStates(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		b := open(t, level, Spec{})
		for _, c := range []struct {
			mode   string
			want   evidence.ReportState
			events int
		}{
			{"complete", evidence.ReportComplete, 3},
			{"early", evidence.ReportIncomplete, 1},
			{"torn", evidence.ReportIncomplete, 1},
			{"gap", evidence.ReportTampered, 1},
			{"forged", evidence.ReportTampered, 1},
			{"garbage", evidence.ReportTampered, 1},
			{"replayed", evidence.ReportTampered, 1},
			{"late", evidence.ReportTampered, 2},
		} {
			run, out := self(t, b, func(c *Command) { c.Report = []byte(`{"mode":1}`) }, "helper-report", c.mode)
			r := run.Record()
			if r.Report != c.want || len(run.Events()) != c.events || r.Exit.Code != 0 {
				t.Errorf("%s: report %s with %d events, exit %+v, want %s with %d; output %s", c.mode, r.Report, len(run.Events()), r.Exit, c.want, c.events, out)
			}
			if want := `{"mode":1}`; out != want {
				t.Errorf("%s: instructions %q, want %q", c.mode, out, want)
			}
		}
		run, _ := self(t, b, func(c *Command) { c.Report = []byte(`{}`) }, "helper-report", "complete")
		if got := run.Outcome("TestA"); got != evidence.Passed {
			t.Errorf("outcome = %s", got)
		}
		if run, _ = sh(t, b, "true"); run.Record().Report != evidence.ReportNone {
			t.Errorf("without descriptor: report %s", run.Record().Report)
		}
		if run, _ = sh(t, b, "true", func(c *Command) { c.Report = []byte(`{}`) }); run.Record().Report != evidence.ReportIncomplete {
			t.Errorf("nothing written: report %s", run.Record().Report)
		}
	})
}

func TestReportDescriptorsAreNotInherited(t *testing.T) {
	left, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0) // as a shell or an editor leaves one open for us
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(left)
	each(t, func(t *testing.T, level evidence.Level) {
		b := open(t, level, Spec{})
		run, out := self(t, b, func(c *Command) { c.Report = []byte(`{}`) }, "helper-report", "descriptors")
		// The shell's child has the directory that it lists open as 3.
		if want := "{}\n0\n1\n2\n3"; out != want || run.Record().Report != evidence.ReportComplete {
			t.Errorf("a grandchild has %q, report %s", out, run.Record().Report)
		}
		if _, out := sh(t, b, "ls /proc/self/fd; echo $PROVETO_REPORT"); out != "0\n1\n2\n3" {
			t.Errorf("a command without report has %q", out)
		}
	})
}

func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	p := newReader(make([]byte, 32))
	p.limit = 1000
	frames := frame(p.mac, 0, `{"kind":"begin","test":"T"}`)
	rest := strings.NewReader(frames + strings.Repeat("x", 5000) + "\n")
	p.read(rest)
	if p.state != evidence.ReportTampered || len(p.events) != 1 || rest.Len() != 0 {
		t.Errorf("state %s, %d events, %d bytes unread", p.state, len(p.events), rest.Len())
	}
	p = newReader(make([]byte, 32))
	p.limit = int64(len(frames))
	p.read(strings.NewReader(frames))
	if p.state != evidence.ReportIncomplete || len(p.events) != 1 {
		t.Errorf("at the limit: state %s, %d events", p.state, len(p.events))
	}
}

func frame(mac hash.Hash, n int, event string) string {
	text := fmt.Sprintf("%d %s", n, event)
	mac.Reset()
	io.WriteString(mac, text)
	return fmt.Sprintf("%d %x %s\n", n, mac.Sum(nil)[:16], event)
}

func TestInstructionsAndInputOfAnySize(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		b := open(t, level, Spec{})
		big := bytes.Repeat([]byte("x"), 1<<20)
		if _, out := sh(t, b, "wc -c", func(c *Command) { c.Stdin = big }); out != "1048576" {
			t.Errorf("read %s bytes", out)
		}
		if _, out := sh(t, b, "head -c 1", func(c *Command) { c.Stdin = big }); out != "x" {
			t.Errorf("read %q", out)
		}
		if _, out := sh(t, b, "wc -c"); out != "0" {
			t.Errorf("without input read %s bytes", out)
		}
		doc := []byte(`"` + string(big) + `"`)
		if run, out := self(t, b, func(c *Command) { c.Report = doc }, "helper-report", "complete"); out != string(doc) || run.Record().Report != evidence.ReportComplete {
			t.Errorf("instructions of %d bytes, report %s", len(out), run.Record().Report)
		}
	})
}
