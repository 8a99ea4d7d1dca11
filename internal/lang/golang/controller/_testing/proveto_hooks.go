// The controller: added to package testing in every judged test binary. It
// tells on the report descriptor what each test did, and switches probes.
//
// The hooks below are called from places that are inserted into this package's
// own files. The controller imports only what package testing imports already,
// so that it can neither make an import cycle nor change which packages run
// before the tests. Without PROVETO_REPORT in the environment every hook returns
// at once.
package testing

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"time"
)

const (
	provetoInit        = "(init)" // code that runs before any test
	provetoMaxMessage  = 2 << 10  // bytes of a failure's message
	provetoMaxFailures = 50       // assertions told per test; other failures are always told
)

// provetoCommon is the controller's part of a test; guarded by proveto.mu.
type provetoCommon struct {
	last     string // what the last log call wrote
	failures int
	planting bool
	dead     *provetoCrash // set when the process is about to die in this test
	began    bool
	ended    bool
	seen     provetoSeen
}

type provetoCrash struct {
	file    string
	line    int
	message string
}

// provetoBegin is called when a test, a subtest or a fuzz seed starts.
func provetoBegin(c *common) {
	if !proveto.on || c.name == "" || provetoBubble(c) {
		return
	}
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	c.proveto.began = true
	provetoSwitchTo(c)
	proveto.event(provetoEvent{kind: "begin", test: c.name})
	// What follows may leave the process at any point.
	proveto.flush()
}

// provetoEnd is called when a test and its subtests and cleanups are over.
func provetoEnd(c *common) {
	if !proveto.on || !c.proveto.began {
		return
	}
	kind := "pass"
	if c.Failed() {
		kind = "failed"
	} else if c.Skipped() {
		kind = "skip"
	}
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	provetoOver(c, kind)
}

// provetoOver tells the end of a test once; proveto.mu is held.
func provetoOver(c *common, kind string) {
	if c.proveto.ended {
		return
	}
	c.proveto.ended = true
	c.proveto.seen.tell(c.name)
	if proveto.current == c {
		provetoSwitchTo(provetoParent(c))
	}
	proveto.event(provetoEvent{kind: kind, test: c.name, duration: int64(c.duration)})
}

// provetoParent is the enclosing test that has a name, or nil.
func provetoParent(c *common) *common {
	for p := c.parent; p != nil; p = p.parent {
		if p.proveto.began {
			return p
		}
	}
	return nil
}

// provetoBubble tells a test made by testing/synctest, which has the name of its
// parent and is no test of its own.
func provetoBubble(c *common) bool { return c.parent != nil && c.parent.name == c.name }

// provetoChosen tells whether the instructions choose a test: it is named, it is
// below one that is, or (partial) above one. Without names nothing is told, and
// -test.run decides. Looking names up costs the same for one test and for
// thousands, which patterns do not.
func provetoChosen(name string) (ok, partial, told bool) {
	if !proveto.on || len(proveto.chosen) == 0 {
		return false, false, false
	}
	if proveto.chosen[name] {
		return true, false, true
	}
	for i := range name {
		if name[i] == '/' && proveto.chosen[name[:i]] {
			return true, false, true
		}
	}
	return proveto.above[name], proveto.above[name], true
}

// provetoPause and provetoResume surround the wait of a parallel test.
func provetoPause(c *common) {
	if !proveto.on {
		return
	}
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	if proveto.current == c {
		provetoSwitchTo(provetoParent(c))
	}
}

func provetoResume(c *common) {
	if !proveto.on {
		return
	}
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	provetoSwitchTo(c)
}

// provetoLog is called with the text of every log call.
func provetoLog(c *common, s string) {
	if !proveto.on {
		return
	}
	s = strings.TrimSuffix(s, "\n")
	if len(s) > provetoMaxMessage {
		s = s[:provetoMaxMessage]
	}
	proveto.mu.Lock()
	c.proveto.last = s
	proveto.mu.Unlock()
}

// provetoPlant fails the test that the instructions name before it starts.
func provetoPlant(c *common) {
	if !proveto.on || proveto.plant == "" || c.name != proveto.plant || provetoBubble(c) {
		return
	}
	proveto.mu.Lock()
	c.proveto.planting = true
	proveto.mu.Unlock()
	c.Errorf("proveto: planted failing assertion")
	proveto.mu.Lock()
	c.proveto.planting = false
	proveto.mu.Unlock()
}

// provetoPanic is called when testing found that a test panicked, before it
// fails the test and lets the process die.
func provetoPanic(c *common, value any) {
	if !proveto.on {
		return
	}
	crash := &provetoCrash{message: fmt.Sprint(value)}
	crash.file, crash.line = provetoPanicSite()
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	c.proveto.dead = crash
	proveto.fatal = true
}

// provetoFail is called first in every Fail.
func provetoFail(c *common) {
	if !proveto.on || c.name == "" {
		return
	}
	by, file, line := provetoCaller()
	if by == "" {
		return
	}
	c.mu.RLock()
	late := c.done
	c.mu.RUnlock()
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	e := provetoEvent{kind: "fail", test: c.name, by: by, file: file, line: line, message: c.proveto.last}
	dying := c.proveto.dead != nil || late && !c.proveto.planting
	if crash := c.proveto.dead; crash != nil {
		e.by, e.file, e.line, e.message = "panic", crash.file, crash.line, crash.message
	} else if c.proveto.planting {
		e.by = "planted"
	} else if late {
		e.by, e.message = "panic", "Fail in goroutine after "+c.name+" has completed"
	}
	if e.by == "assertion" {
		if c.proveto.failures++; c.proveto.failures > provetoMaxFailures {
			return
		}
	}
	proveto.event(e)
	if dying {
		// Parents do not end in an orderly way either.
		for p := c; p != nil; p = p.parent {
			if p.proveto.began {
				provetoOver(p, "failed")
			}
		}
		proveto.flush()
	}
}

// provetoCaller says who called Fail and where: the first frame in a test file,
// else the first frame outside this package. The first result is empty when a
// subtest passes its failure up.
func provetoCaller() (by, file string, line int) {
	var pcs [128]uintptr
	n := runtime.Callers(3, pcs[:]) // Callers, provetoCaller, provetoFail
	frames := runtime.CallersFrames(pcs[:n])
	f, more := frames.Next() // Fail itself
	if more {
		f, more = frames.Next()
	}
	if f.Function == "testing.(*common).Fail" {
		return "", "", 0
	}
	for more && provetoFailing(f.Function) {
		f, more = frames.Next()
	}
	by = "assertion"
	if f.Function == "testing.(*common).checkRaces" {
		by = "race"
	} else if strings.HasPrefix(f.Function, "testing.") && f.Function != "testing.provetoPlant" {
		by = "harness"
	}
	found := false
	deferred := f.File // of the function that runs because of a panic
	for ; more; f, more = frames.Next() {
		if f.Function == "runtime.gopanic" {
			f, more = frames.Next()
			if by == "assertion" && provetoCrashed(f.Function, deferred) {
				by = "panic"
			}
		}
		deferred = f.File
		if strings.HasPrefix(f.Function, "testing.") || strings.HasPrefix(f.Function, "runtime.") {
			continue
		}
		if file == "" {
			file, line = f.File, f.Line
		}
		if strings.HasSuffix(f.File, "_test.go") && !found {
			file, line, found = f.File, f.Line, true
		}
	}
	return by, provetoRelative(file), line
}

// provetoCrashed tells whether a failure that is reported while a panic unwinds
// is the report of a crash. A test may assert on what a panic says: that panic is
// a call in the source, and the function that looks at it is test code. What the
// runtime panics of, and what a library's rescue turns into a failure, nobody
// asserted on.
func provetoCrashed(panicking, deferred string) bool {
	return strings.HasPrefix(panicking, "runtime.") || strings.HasPrefix(panicking, "internal/runtime/") ||
		strings.HasPrefix(panicking, "reflect.") || !strings.HasSuffix(deferred, "_test.go")
}

func provetoFailing(function string) bool {
	name, ok := strings.CutPrefix(function, "testing.(*common).")
	if !ok {
		return false
	}
	switch name {
	case "FailNow", "Error", "Errorf", "Fatal", "Fatalf":
		return true
	}
	return false
}

// provetoPanicSite is the place that panicked, as long as its frames are there.
func provetoPanicSite() (string, int) {
	var pcs [128]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(f.Function, "runtime.") && !strings.HasPrefix(f.Function, "testing."):
			return provetoRelative(f.File), f.Line
		}
		if !more {
			return "", 0
		}
	}
}

func provetoRelative(file string) string {
	if proveto.root != "" {
		if rel, ok := strings.CutPrefix(file, proveto.root+"/"); ok {
			return rel
		}
	}
	return file
}

// provetoExampleBegin is called when an example starts.
func provetoExampleBegin(eg *InternalExample) {
	if !proveto.on {
		return
	}
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	proveto.example = &common{name: eg.Name}
	proveto.example.proveto.began = true
	provetoSwitchTo(proveto.example)
	proveto.event(provetoEvent{kind: "begin", test: eg.Name})
	proveto.flush()
}

// provetoExampleEnd is called with the verdict of package testing on an example
// and returns the verdict to use: the same, unless a failure is planted.
func provetoExampleEnd(eg *InternalExample, stdout string, spent time.Duration, passed, finished bool, recovered any) bool {
	if !proveto.on {
		return passed
	}
	e := provetoEvent{kind: "fail", test: eg.Name, by: "assertion"}
	crashed := recovered != nil || !finished
	if crashed {
		e.by, e.message = "panic", "test executed panic(nil) or runtime.Goexit"
		if recovered != nil {
			e.message = fmt.Sprint(recovered) // may call project code: not under the lock
		}
		e.file, e.line = provetoPanicSite()
	}
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	c := proveto.example
	if c == nil || c.name != eg.Name {
		return passed
	}
	switch {
	case crashed:
		proveto.fatal = true
	case !passed:
		e.message = "got:\n" + strings.TrimSpace(stdout) + "\nwant:\n" + strings.TrimSpace(eg.Output)
	case proveto.plant == eg.Name:
		e.by, e.message = "planted", "proveto: planted failing assertion"
		passed = false
	}
	if f := runtime.FuncForPC(reflect.ValueOf(eg.F).Pointer()); f != nil && e.file == "" {
		file, line := f.FileLine(f.Entry())
		e.file, e.line = provetoRelative(file), line
	}
	c.duration = spent
	if passed {
		provetoOver(c, "pass")
	} else {
		proveto.event(e)
		provetoOver(c, "failed")
		proveto.flush()
	}
	return passed
}

// provetoRun is called when M.Run starts, provetoRan when it returns. The end
// mark is written then: what a TestMain does afterwards cannot take it back.
func provetoRun() {
	if !proveto.on {
		return
	}
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	proveto.initial.tell(provetoInit)
	provetoStart()
	proveto.flush()
}

func provetoRan() {
	if !proveto.on {
		return
	}
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	provetoStop()
	proveto.initial.tell(provetoInit)
	provetoTellValues()
	if !proveto.fatal {
		proveto.event(provetoEvent{kind: "end"})
	}
	proveto.flush()
}
