//go:build linux

package main

import (
	"fmt"
	"sync"
	"time"
)

// Crowd is what came of many decisions at once.
type Crowd struct {
	AtOnce       int      `json:"at_once"`
	Seconds      float64  `json:"seconds"` // all bursts
	Acknowledged int      `json:"acknowledged"`
	Lost         int      `json:"lost"`    // acknowledged, and not in the record
	Refused      int      `json:"refused"` // the tool said why
	Crashed      int      `json:"crashed"` // any other end
	Readable     bool     `json:"readable"`
	Trouble      string   `json:"trouble,omitempty"` // why it does not read
	Samples      []Sample `json:"samples"`
}

// verdict is how one decision of a crowd ended.
type verdict int

const (
	acknowledged verdict = iota
	refused
	crashed
)

// crowd lets n processes reject the first stage of one run, so many at once. Each
// has a note of its own, by which it is looked up afterwards. The stage was rejected
// once before, so that all of them judge the same thing, whoever comes first.
func crowd(t tool, n, atOnce int) (Crowd, error) {
	c := Crowd{AtOnce: atOnce}
	id, _, err := t.open()
	if err != nil {
		return c, err
	}
	if end, _, err := t.reject(id, "no, says the first"); err != nil || end != acknowledged {
		return c, fmt.Errorf("%s: the first rejection was not taken: %w", t.name(), err)
	}
	ends := make([]verdict, n)
	samples := make([]Sample, n)
	errs := make([]error, n)
	for from := 0; from < n; from += atOnce {
		var ready, done sync.WaitGroup
		begin := make(chan struct{})
		for i := from; i < min(from+atOnce, n); i++ {
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				<-begin
				ends[i], samples[i], errs[i] = t.reject(id, note(i))
			})
		}
		ready.Wait()
		begun := time.Now()
		close(begin)
		done.Wait()
		c.Seconds += time.Since(begun).Seconds()
	}
	for _, err := range errs {
		if err != nil {
			return c, err
		}
	}
	c.Samples = samples
	notes, err := t.notes(id)
	if c.Readable = err == nil; err != nil {
		c.Trouble = err.Error()
	}
	c.count(ends, notes)
	return c, nil
}

func note(i int) string { return fmt.Sprintf("no, says number %d", i) }

// count compares what was answered with the notes in the record.
func (c *Crowd) count(ends []verdict, notes map[string]bool) {
	for i, e := range ends {
		switch e {
		case acknowledged:
			c.Acknowledged++
			if !notes[note(i)] {
				c.Lost++
			}
		case refused:
			c.Refused++
		default:
			c.Crashed++
		}
	}
}
