package cli

import (
	"sync"
	"time"

	"github.com/proveto/proveto/internal/render"
	"github.com/proveto/proveto/internal/view"
)

// progress turns what app tells into lines on stderr.
type progress struct {
	lines  *render.Progress
	style  render.Style
	budget time.Duration
	began  time.Time
	stop   func()
}

func (c *command) newProgress(budget time.Duration) *progress {
	style := c.stderrStyle()
	mode := render.DetectProgress(c.env.Getenv, c.env.StderrTerminal, c.flags.progress, c.flags.quiet)
	lines := render.NewProgress(c.env.Stderr, mode, style, time.Now)
	return &progress{lines: lines, style: style, budget: budget, began: time.Now(), stop: ticking(render.TickInterval, lines.Tick)}
}

// ticking calls fn at an interval until stop was called, which waits for the last
// call.
func ticking(interval time.Duration, fn func()) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(interval)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				fn()
			case <-done:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
}

func (p *progress) left() time.Duration {
	if p.budget == 0 {
		return 0
	}
	return max(0, p.budget-time.Since(p.began))
}

// Phase implements [app.Progress].
func (p *progress) Phase(name, detail string) {
	p.lines.Update(view.Progress{Phase: name, Subject: detail, Left: p.left()})
}

// Count implements [app.Progress].
func (p *progress) Count(phase string, done, total int, subject string) {
	p.lines.Update(view.Progress{Phase: phase, Done: done, Total: total, Subject: subject, Left: p.left()})
}

// Proven implements [app.Progress]: a result appears the moment it is certified.
func (p *progress) Proven(c view.Certificate, after time.Duration) {
	p.lines.Print(render.FirstResult(c, after, p.style))
}

// Note implements [app.Progress].
func (p *progress) Note(text string) { p.lines.Print(render.Line(text)) }

// close removes the live line. A stderr that nobody reads is no reason to fail.
func (p *progress) close() {
	p.stop()
	_ = p.lines.Close()
}
