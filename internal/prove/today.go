package prove

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

// Today is what the sealed tree holds now: every digest to which evidence can be
// bound.
type Today struct {
	Scan    *lang.Scan
	symbols map[string]lang.Symbol
	units   map[string]lang.Unit
	tests   map[string]lang.Test // by unit and top-level name
	suites  map[string]evidence.Digest
	setups  map[string]evidence.Digest
	calls   map[string][]string // static edges between symbols
	reads   reads
}

// NewToday indexes a scan of a workspace.
func NewToday(s *lang.Scan, w lang.Workspace) *Today {
	t := &Today{
		reads: reads{w: w},
		Scan:  s, symbols: map[string]lang.Symbol{}, units: map[string]lang.Unit{},
		tests: map[string]lang.Test{}, suites: map[string]evidence.Digest{},
		setups: map[string]evidence.Digest{}, calls: map[string][]string{},
	}
	for _, c := range s.Calls {
		t.calls[c.From] = append(t.calls[c.From], c.To)
	}
	code := map[string][]string{}
	for _, sy := range s.Symbols {
		t.symbols[sy.ID] = sy
		if sy.TestCode {
			code[sy.Unit] = append(code[sy.Unit], sy.ID+" "+string(sy.Digest))
		}
	}
	for _, te := range s.Tests {
		t.tests[te.Unit+" "+te.Name] = te
	}
	for _, u := range s.Units {
		t.units[u.ID] = u
		sort.Strings(code[u.ID])
		t.suites[u.ID] = evidence.DigestParts(append([]string{"suite/v1", u.ID}, code[u.ID]...)...)
	}
	for _, u := range s.Units {
		parts := []string{"setup/v1", u.ID, string(u.TestSetup)}
		for _, id := range Reachable([]string{u.ID}, func(id string) []string { return t.units[id].Imports }) {
			if d := t.units[id].Setup; d != "" {
				parts = append(parts, id, string(d))
			}
		}
		t.setups[u.ID] = evidence.DigestParts(parts...)
	}
	return t
}

// Reachable lists what can be come to from some ids, these included; sorted.
func Reachable(from []string, next func(string) []string) []string {
	seen := map[string]bool{}
	for work := from; len(work) > 0; {
		id := work[len(work)-1]
		work = work[:len(work)-1]
		if !seen[id] {
			seen[id] = true
			work = append(work, next(id)...)
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Read is the digest of a file or a variable that a test consults, by a name of
// [evidence.EventReads].
func (t *Today) Read(name string) evidence.Digest { return t.reads.digest(name) }

// Outside tells whether a file that was looked at leads out of the checkout: then
// an equal tree does not say that it is the same.
func (t *Today) Outside() bool {
	t.reads.mu.Lock()
	defer t.reads.mu.Unlock()
	return t.reads.outside
}

// Setup is the digest of the code of the project that runs before and around the
// tests of a unit: what its packages and those that it imports do when the
// process starts, and its TestMain.
func (t *Today) Setup(unit string) evidence.Digest { return t.setups[unit] }

// Calls tells whether a test can come to call the symbol, by the source.
func (t *Today) Calls(unit, test, symbol string) bool {
	own, ok := t.TestSymbol(unit, test)
	if !ok {
		return false
	}
	_, found := slices.BinarySearch(Reachable([]string{own.ID}, func(id string) []string { return t.calls[id] }), symbol)
	return found
}

// Symbol is the symbol with the id, if the tree still has it.
func (t *Today) Symbol(id string) (lang.Symbol, bool) { s, ok := t.symbols[id]; return s, ok }

// TestSymbol is the function of the top-level test that the full name belongs to.
func (t *Today) TestSymbol(unit, test string) (lang.Symbol, bool) {
	top, _, _ := strings.Cut(test, "/")
	te, ok := t.tests[unit+" "+top]
	if !ok {
		return lang.Symbol{}, false
	}
	return t.Symbol(te.Symbol)
}

// Broken says why the suite of a unit cannot be built; nil when it can.
func (t *Today) Broken(unit string) *lang.Broken { return t.units[unit].Broken }

// SuiteDigest covers all test code of a unit.
func (t *Today) SuiteDigest(unit string) evidence.Digest { return t.suites[unit] }

// Cause is one reason for which a certificate is no longer live.
type Cause struct {
	Code string // build_failed, test_missing, symbol_changed, test_changed, reached_changed, setup_changed, data_changed, read_changed, locks_changed, toolchain_changed, driver_changed
	Text string
}

// Lapses compares a certificate with today. No cause: it is live.
func (t *Today) Lapses(c evidence.CertificateRecord) []Cause {
	f := c.Facts
	var out []Cause
	add := func(code, format string, args ...any) {
		out = append(out, Cause{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	if b := t.Broken(f.Unit); b != nil && b.Code == lang.BuildFailed {
		// Nothing holds for a tree that cannot be built, whatever else is as it was.
		add(string(b.Code), "%s", b.Text)
	}
	switch s, ok := t.symbols[f.Symbol]; {
	case !ok:
		add("symbol_missing", "%s is gone", f.Symbol)
	case s.Digest != f.SymbolDigest:
		add("symbol_changed", "%s was edited", s.Name)
	}
	switch s, ok := t.TestSymbol(f.Unit, f.Test); {
	case !ok:
		add("test_missing", "%s is gone", f.Test)
	case s.Digest != f.TestDigest:
		add("test_changed", "%s was edited", s.Name)
	}
	for _, id := range sortedIDs(f.Reached) {
		if id == f.Symbol {
			continue
		}
		s, ok := t.symbols[id]
		if ts, isTest := t.TestSymbol(f.Unit, f.Test); isTest && ts.ID == id {
			continue
		}
		switch {
		case !ok:
			add("reached_changed", "%s, which %s executed, is gone", id, f.Test)
		case s.Digest != f.Reached[id]:
			add("reached_changed", "%s, which %s executes, was edited", s.Name, f.Test)
		}
	}
	if d, ok := t.setups[f.Unit]; ok && d != f.Setup {
		add("setup_changed", "what runs before or around the tests of %s (init, initialisers, TestMain) changed", f.Unit)
	}
	if u, ok := t.units[f.Unit]; ok && u.Data != f.Data {
		add("data_changed", "a file beside the sources of %s changed", f.Unit)
	}
	for _, name := range sortedIDs(f.Reads) {
		if t.Read(name) != f.Reads[name] {
			add("read_changed", "%s, changed", readText(f.Test, name))
		}
	}
	if t.Scan.Locks != f.Locks {
		add("locks_changed", "a manifest, a lock file or a module beside this one changed")
	}
	switch now := t.Scan.Toolchain; {
	case now == f.Toolchain:
	case now == "":
		add("toolchain_changed", "the toolchain was %s; no package here builds to say which one it is", f.Toolchain)
	default:
		add("toolchain_changed", "the toolchain was %s, it is %s", f.Toolchain, now)
	}
	if t.Scan.Driver != f.Driver {
		add("driver_changed", "the driver was %s, it is %s", f.Driver, t.Scan.Driver)
	}
	return out
}

// Inputs is the digest of everything that can change what is measured about a
// symbol with the tests of a unit that were seen to execute reached.
func (t *Today) Inputs(symbol, unit string, reached, reads []string) evidence.Digest {
	parts := []string{
		"inputs/v1", symbol, string(t.symbols[symbol].Digest), unit, string(t.suites[unit]), string(t.setups[unit]), string(t.units[unit].Data),
		string(t.Scan.Locks), t.Scan.Toolchain, t.Scan.Driver,
	}
	for _, id := range reached {
		parts = append(parts, id, string(t.symbols[id].Digest))
	}
	for _, name := range reads {
		parts = append(parts, name, string(t.Read(name)))
	}
	return evidence.DigestParts(parts...)
}

// readText words what a test consults.
func readText(test, name string) string {
	kind, what, _ := strings.Cut(name, " ")
	switch kind {
	case "file":
		return path.Clean(what) + ", which " + test + " reads"
	case "env":
		return "the variable " + what + ", which " + test + " reads"
	case configured:
		return "prove.test_env, which gives " + test + " variables"
	}
	return "the tree, of which " + test + " reads more than is seen"
}

// Unchanged tells whether a stored measurement would be made from the same
// inputs today, so that trying again cannot give another answer.
func (t *Today) Unchanged(m evidence.MeasurementRecord) bool {
	return m.Target.Inputs == t.Inputs(m.Target.Symbol, m.Target.Unit, m.Target.Reached, m.Target.Reads)
}

func sortedIDs(m map[string]evidence.Digest) []string {
	out := make([]string, 0, len(m))
	for id := range m {
		out = append(out, id)
	}
	sort.Strings(out)
	return out
}
