package sandbox

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"strconv"

	"github.com/proveto/proveto/internal/evidence"
)

// maxReport bounds the bytes of one report; what goes on after them is tampered.
const maxReport = 64 << 20

// instructions is the document on descriptor 3.
type instructions struct {
	Key          string          `json:"key"`
	Instructions json.RawMessage `json:"instructions"`
}

// reader checks the frames of one report. See docs/formats/report-descriptor.md.
type reader struct {
	mac    hash.Hash
	limit  int64 // bytes accepted
	size   int64
	next   uint64
	ended  bool
	state  evidence.ReportState
	events []evidence.Event
}

// newReader starts a report under a key; descriptor 3 shows it in hexadecimal.
func newReader(key []byte) *reader {
	return &reader{mac: hmac.New(sha256.New, key), limit: maxReport, state: evidence.ReportIncomplete}
}

// read takes frames from r up to its end, and goes on reading without use when a
// frame was wrong, so that the writer is never blocked. An error of r itself
// leaves the report incomplete at best.
func (p *reader) read(r io.Reader) {
	br := bufio.NewReaderSize(r, 32<<10)
	for {
		line, err := readLine(br, p.limit-p.size)
		p.size += int64(len(line))
		switch {
		case errors.Is(err, errLong):
			p.state = evidence.ReportTampered
		case err != nil:
			return // a line without its newline is not a frame: the process left early
		case p.state == evidence.ReportTampered:
		default:
			p.frame(line[:len(line)-1])
		}
		if p.state == evidence.ReportTampered {
			// The writer must not block on a full pipe; what it writes is of no use.
			_, _ = io.Copy(io.Discard, br)
			return
		}
	}
}

var errLong = errors.New("line over the limit")

// readLine returns a line with its newline, at most limit bytes.
func readLine(br *bufio.Reader, limit int64) ([]byte, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		line = append(line, part...)
		if int64(len(line)) > limit {
			return nil, errLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// frame checks one line and keeps its event.
func (p *reader) frame(line []byte) {
	ev, ok := p.parse(line)
	if !ok || p.ended {
		p.state = evidence.ReportTampered
		return
	}
	p.next++
	p.events = append(p.events, ev)
	if ev.Kind == evidence.EventEnd {
		p.ended = true
		p.state = evidence.ReportComplete
	}
}

func (p *reader) parse(line []byte) (evidence.Event, bool) {
	var ev evidence.Event
	seq, rest, ok1 := bytes.Cut(line, []byte(" "))
	code, event, ok2 := bytes.Cut(rest, []byte(" "))
	if !ok1 || !ok2 || string(seq) != strconv.FormatUint(p.next, 10) {
		return ev, false
	}
	p.mac.Reset()
	p.mac.Write(seq)
	p.mac.Write([]byte(" "))
	p.mac.Write(event)
	want := hex.EncodeToString(p.mac.Sum(nil))[:32]
	if !hmac.Equal([]byte(want), code) {
		return ev, false
	}
	if err := json.Unmarshal(event, &ev); err != nil || ev.Kind == "" {
		return ev, false
	}
	return ev, true
}
