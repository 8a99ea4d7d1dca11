package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/proveto/proveto/internal/view"
)

// ProgressMode is how progress is shown.
type ProgressMode string

// The modes of progress.
const (
	ProgressOff   ProgressMode = "none"
	ProgressLive  ProgressMode = "live"  // one line that is rewritten
	ProgressLines ProgressMode = "plain" // one line a phase, and one every 30 seconds
	ProgressJSON  ProgressMode = "json"  // JSON Lines
)

const (
	// PlainInterval is the longest silence of plain progress within a phase.
	PlainInterval = 30 * time.Second
	liveInterval  = 100 * time.Millisecond
	// TickInterval is how often [Progress.Tick] is to be called.
	TickInterval = time.Second
)

// DetectProgress follows the conventions: flag is --progress (auto, plain,
// json, none or empty), quiet is -q; a stream that is no terminal, a dumb one and
// CI get plain lines.
func DetectProgress(env func(string) string, isTerminal bool, flag string, quiet bool) ProgressMode {
	switch {
	case quiet:
		return ProgressOff
	case flag == string(ProgressLines), flag == string(ProgressJSON), flag == string(ProgressOff):
		return ProgressMode(flag)
	case !isTerminal, env("CI") != "", env("TERM") == "dumb":
		return ProgressLines
	}
	return ProgressLive
}

// Progress writes the progress of a job to one stream. It may be used by several
// goroutines. An error of the stream is kept and returned by Close, so that a
// job does not stop because nobody watches.
type Progress struct {
	mu      sync.Mutex
	w       io.Writer
	mode    ProgressMode
	style   Style
	nowFunc func() time.Time

	phase string
	last  time.Time // of the last line written
	since time.Time // of the last step
	live  bool      // a live line stands at the cursor
	shown view.Progress
	err   error
}

// NewProgress makes a writer; nowFunc is the clock.
func NewProgress(w io.Writer, mode ProgressMode, style Style, nowFunc func() time.Time) *Progress {
	return &Progress{w: w, mode: mode, style: style, nowFunc: nowFunc}
}

// Update shows a step. Live and plain modes leave steps out when they come too
// fast; the first of a phase and the last are always shown.
func (p *Progress) Update(e view.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.Type = "progress"
	now := p.nowFunc()
	fresh := e.Phase != p.phase || e.Total > 0 && e.Done == e.Total && p.shown != e
	switch p.mode {
	case ProgressJSON:
		line, err := json.Marshal(e)
		if err != nil {
			p.err = err
			return
		}
		p.write(string(escapeHidden(line)) + "\n")
	case ProgressLines:
		if fresh || now.Sub(p.last) >= PlainInterval {
			p.write(p.text(e) + "\n")
			p.last = now
		}
	case ProgressLive:
		if fresh || now.Sub(p.last) >= liveInterval {
			p.write("\r\x1b[K" + p.style.clip(p.text(e)))
			p.live, p.last = true, now
		}
	}
	p.phase, p.shown, p.since = e.Phase, e, now
}

// Tick shows the last step again, with how long it has lasted, when nothing new
// came: a long build must not look like a standstill.
func (p *Progress) Tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.nowFunc()
	if p.phase == "" {
		return
	}
	lasted := "  " + took(now.Sub(p.since).Truncate(time.Second))
	switch idle := now.Sub(p.last); {
	case p.mode == ProgressLive && idle >= TickInterval:
		p.write("\r\x1b[K" + p.style.clip(p.text(p.shown)+lasted))
		p.live, p.last = true, now
	case p.mode == ProgressLines && idle >= PlainInterval:
		p.write(p.text(p.shown) + lasted + "\n")
		p.last = now
	}
}

// Print writes a line that stays, such as a first result, above the live line.
// The line may carry colours of ours: foreign parts are the caller's to escape.
func (p *Progress) Print(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.mode == ProgressOff, p.mode == ProgressJSON:
	case p.live:
		p.write("\r\x1b[K" + line + "\n" + p.style.clip(p.text(p.shown)))
	default:
		p.write(line + "\n")
	}
}

// Close removes the live line and returns the first error of the stream.
func (p *Progress) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live {
		p.write("\r\x1b[K")
		p.live = false
	}
	return p.err
}

func (p *Progress) write(s string) {
	if _, err := io.WriteString(p.w, s); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *Progress) text(e view.Progress) string {
	parts := []string{Line(e.Phase)}
	if e.Total > 0 {
		parts = append(parts, fmt.Sprintf("%s/%s", thousands(e.Done), thousands(e.Total)))
	} else if e.Done > 0 {
		parts = append(parts, thousands(e.Done))
	}
	if e.Subject != "" {
		parts = append(parts, Line(e.Subject))
	}
	if e.Left > 0 {
		parts = append(parts, took(e.Left.Truncate(time.Second))+" left")
	}
	return strings.Join(parts, "  ")
}

// FirstResult is the line of a behaviour the moment it is certified.
func FirstResult(c view.Certificate, after time.Duration, s Style) string {
	return fmt.Sprintf("%s  %s  %s  %s fails: %s  %s", s.word("proven"), s.paint(bold, Line(c.SymbolName)), took(after), Line(c.Test), Line(c.Summary), s.paint(grey, "[why "+Line(short(c.ID))[:min(6, len(Line(short(c.ID))))]+"]"))
}
