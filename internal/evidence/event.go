package evidence

import (
	"encoding/json"
	"fmt"
)

// EventKind is what a language's controller reports about a test.
type EventKind string

// The kinds of events. The controller inside the judged process writes them on
// the results descriptor; see docs/formats/report-descriptor.md.
const (
	EventBegin   EventKind = "begin"   // Test starts
	EventFail    EventKind = "fail"    // Test itself failed (not through a subtest); By, File, Line, Message say how
	EventPass    EventKind = "pass"    // Test ended, not failed
	EventFailed  EventKind = "failed"  // Test ended failed, by itself or through a subtest
	EventSkip    EventKind = "skip"    // Test ended skipped
	EventSymbols EventKind = "symbols" // Names: symbol ids; the first has index Base
	EventReach   EventKind = "reach"   // Test executed the symbols with the indices in Index
	EventReads   EventKind = "reads"   // Test consulted what Names names: "file PATH" below the checkout, "env NAME", "process", "tree"
	EventSites   EventKind = "sites"   // Test executed the probe sites with the numbers in Index
	EventValue   EventKind = "value"   // Values seen at probe site Base
	EventDiffer  EventKind = "differ"  // a probe that was on changed a value: Values are original, changed; Base counts the calls
	EventEnd     EventKind = "end"     // the suite ended in an orderly way; last frame
)

// By says what made a test fail.
type By string

// The ways a test fails. Only an assertion can be credited.
const (
	ByAssertion By = "assertion" // the test's own assertion
	ByPanic     By = "panic"     // exception, panic, crash
	ByRace      By = "race"      // reported by a race detector
	ByHarness   By = "harness"   // the runner's own complaint: misuse of its API, no result
	ByPlanted   By = "planted"   // the failing assertion that we planted
)

// ReadProcess is the name under which a test is reported that looks at processes.
// It may have found the switch in its own: only a build without one convicts.
const ReadProcess = "process"

// InitTest is the name under which code that runs before any test is reported.
const InitTest = "(init)"

// Event is one frame of a report. Which fields are set depends on Kind.
type Event struct {
	Kind     EventKind `json:"kind"`
	Test     string    `json:"test,omitempty"` // full name, subtests joined by "/"
	By       By        `json:"by,omitempty"`
	File     string    `json:"file,omitempty"` // relative to the checkout, or absolute outside it
	Line     int       `json:"line,omitempty"`
	Message  string    `json:"message,omitempty"` // first 2 KiB
	Duration int64     `json:"duration_ns,omitempty"`
	Base     int64     `json:"base,omitempty"`
	Names    []string  `json:"names,omitempty"`
	Index    []int64   `json:"index,omitempty"`
	Values   []string  `json:"values,omitempty"`
}

// EncodeEvents is the stored form of a run's events: one JSON array.
func EncodeEvents(evs []Event) ([]byte, error) {
	b, err := json.Marshal(evs)
	if err != nil {
		return nil, fmt.Errorf("encode events: %w", err)
	}
	return b, nil
}

// DecodeEvents reads what [EncodeEvents] wrote.
func DecodeEvents(b []byte) ([]Event, error) {
	var evs []Event
	if err := json.Unmarshal(b, &evs); err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	return evs, nil
}

// Outcome is how one test ended in one run.
type Outcome string

// The outcomes of a test.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
	NotRun  Outcome = "not_run" // no end event: not selected, or the process left first
)

// Outcome of the named test in this run.
func (r Run) Outcome(test string) Outcome {
	out := NotRun
	for _, e := range r.events {
		if e.Test != test {
			continue
		}
		switch e.Kind {
		case EventPass:
			out = Passed
		case EventFailed:
			out = Failed
		case EventSkip:
			out = Skipped
		}
	}
	return out
}

// Failures are the fail events of leaf tests, in order.
func (r Run) Failures() []Event {
	var out []Event
	for _, e := range r.events {
		if e.Kind == EventFail {
			out = append(out, e)
		}
	}
	return out
}

// Reach is what the tests of one run executed; see [Run.Reach].
type Reach struct {
	byTest map[string]map[string]bool // name as reported → symbol ids
	init   map[string]bool
	reads  map[string]map[string]bool // name as reported, InitTest too → what was consulted
}

// Reach indexes the run's reach events. It is empty unless the run recorded
// reach.
func (r Run) Reach() Reach {
	names := map[int64]string{}
	for _, e := range r.events {
		if e.Kind == EventSymbols {
			for i, n := range e.Names {
				names[e.Base+int64(i)] = n
			}
		}
	}
	out := Reach{byTest: map[string]map[string]bool{}, init: map[string]bool{}, reads: map[string]map[string]bool{}}
	for _, e := range r.events {
		if e.Kind == EventReads {
			if out.reads[e.Test] == nil {
				out.reads[e.Test] = map[string]bool{}
			}
			for _, n := range e.Names {
				out.reads[e.Test][n] = true
			}
		}
		if e.Kind != EventReach {
			continue
		}
		set := out.init
		if e.Test != InitTest {
			if set = out.byTest[e.Test]; set == nil {
				set = map[string]bool{}
				out.byTest[e.Test] = set
			}
		}
		for _, i := range e.Index {
			if n, ok := names[i]; ok {
				set[n] = true
			}
		}
	}
	return out
}

// Of lists the ids of the symbols that run when the named test is selected: by
// the test itself, its parents and its subtests, and before any test. Sorted,
// without duplicates.
func (r Reach) Of(test string) []string {
	seen := map[string]bool{}
	for n := range r.init {
		seen[n] = true
	}
	for name, set := range r.byTest {
		if covers(test, name) {
			for n := range set {
				seen[n] = true
			}
		}
	}
	return sortedKeys(seen)
}

// Reads lists the files and variables that are consulted when the named test is
// selected, as [EventReads] names them. Sorted, without duplicates.
func (r Reach) Reads(test string) []string {
	seen := map[string]bool{}
	for name, set := range r.reads {
		if name == InitTest || covers(test, name) {
			for n := range set {
				seen[n] = true
			}
		}
	}
	return sortedKeys(seen)
}

// Init lists the ids of the symbols that run before any test; sorted.
func (r Reach) Init() []string { return sortedKeys(r.init) }

// By lists the ids that were reported under exactly this name; sorted.
func (r Reach) By(test string) []string { return sortedKeys(r.byTest[test]) }

// covers tells whether code reported under name runs when test is selected:
// the test itself, its parents, and its subtests.
func covers(test, name string) bool {
	return name == test || hasParent(test, name) || hasParent(name, test)
}

func hasParent(test, parent string) bool {
	return len(test) > len(parent) && test[:len(parent)] == parent && test[len(parent)] == '/'
}
