package testing

import (
	"reflect"
	"strconv"
	"sync/atomic"
)

// ProvetoPackage is an instrumented package. Its methods work on a nil receiver,
// which is what code sees that runs before its package registered, and cost one
// load of a global when idle.
type ProvetoPackage struct {
	path    string
	symbols []string
	base    int64    // of the symbols' indices in this process
	told    bool     // the symbols' names were told
	target  bool     // the switched probe is in this package
	sites   int64    // of the sites' numbers, given by the instructions
	hit     []uint32 // epoch in which the symbol was last seen
	site    []uint32
}

// provetoState says what instrumented code has to do.
var provetoState atomic.Uint32

const (
	provetoObserving = 1 << iota
	provetoProbing
	provetoValuing
)

// provetoEpoch changes with the running test; a symbol marked with it was told
// already.
var provetoEpoch atomic.Uint32

var provetoBase atomic.Int64

// ProvetoRegister is called by the initialisation of an instrumented package.
func ProvetoRegister(path string, symbols []string, sites int) *ProvetoPackage {
	p := &ProvetoPackage{path: path, symbols: symbols, target: proveto.probe && path == proveto.pkg}
	if proveto.observe {
		p.base = provetoBase.Add(int64(len(symbols))) - int64(len(symbols))
		p.sites = proveto.bases[path]
		p.hit, p.site = make([]uint32, len(symbols)), make([]uint32, sites+1)
	}
	return p
}

// Hit says that the function with this number was entered.
func (p *ProvetoPackage) Hit(symbol int) {
	if provetoState.Load()&provetoObserving != 0 {
		p.hitSlow(symbol)
	}
}

// On tells whether the probe with this number is switched on.
func (p *ProvetoPackage) On(site int) bool {
	return provetoState.Load()&(provetoProbing|provetoValuing) != 0 && p.onSlow(site)
}

// Watch tells whether values are wanted.
func (p *ProvetoPackage) Watch() bool {
	return provetoState.Load()&provetoValuing != 0
}

// Values gives the values seen at a value site.
func (p *ProvetoPackage) Values(site int, values ...any) {
	if p == nil || provetoState.Load()&provetoValuing == 0 {
		return
	}
	proveto.values.add(p.sites+int64(site), values)
}

// Saw is called with what a switched probe changed.
func (p *ProvetoPackage) Saw(site int, original, changed any) {
	if p == nil || !proveto.differ {
		return
	}
	proveto.values.saw(original, changed)
}

func (p *ProvetoPackage) onSlow(site int) bool {
	if p == nil {
		return false
	}
	if provetoState.Load()&provetoProbing != 0 {
		if p.target && site == proveto.site {
			proveto.fired.Store(true)
			return true
		}
		return false
	}
	epoch := provetoEpoch.Load()
	if atomic.LoadUint32(&p.site[site]) != epoch {
		atomic.StoreUint32(&p.site[site], epoch)
		proveto.mu.Lock()
		provetoCurrent().site(p.sites + int64(site))
		proveto.mu.Unlock()
	}
	return false
}

func (p *ProvetoPackage) hitSlow(symbol int) {
	if p == nil {
		return
	}
	epoch := provetoEpoch.Load()
	if atomic.LoadUint32(&p.hit[symbol]) == epoch {
		return
	}
	atomic.StoreUint32(&p.hit[symbol], epoch)
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	if !p.told {
		p.told = true
		proveto.event(provetoEvent{kind: "symbols", base: p.base, names: p.symbols})
	}
	provetoCurrent().symbol(p.base + int64(symbol))
}

// provetoStart switches what was asked for on; proveto.mu is held.
func provetoStart() {
	switch {
	case proveto.observe:
		if provetoEpoch.Load() == 0 {
			provetoEpoch.Store(1)
		}
		state := uint32(provetoObserving)
		if proveto.valuing {
			state |= provetoValuing
		}
		provetoState.Store(state)
	case proveto.probe:
		provetoState.Store(provetoProbing)
	}
}

// provetoStop switches a probe off again when the tests are over.
func provetoStop() {
	if proveto.probe && !proveto.atInit {
		provetoState.Store(0)
	}
}

// provetoSwitchTo makes c the running test; proveto.mu is held.
func provetoSwitchTo(c *common) {
	proveto.current = c
	if proveto.observe {
		provetoEpoch.Add(1)
	}
}

func provetoCurrent() *provetoSeen {
	if proveto.current == nil {
		return &proveto.initial
	}
	return &proveto.current.proveto.seen
}

// provetoSeen is what one test executed.
type provetoSeen struct {
	hits, marks map[int64]bool
	read        map[string]bool // files and variables, as told
	reads       []string        // likewise, in order
}

// consulted notes a file or a variable. A test that consults too much depends on
// the whole tree.
func (s *provetoSeen) consulted(name string) {
	if len(s.reads) >= provetoMaxReads {
		name = "tree"
	}
	if s.read[name] {
		return
	}
	if s.read == nil {
		s.read = map[string]bool{}
	}
	s.read[name] = true
	s.reads = append(s.reads, name)
}

func (s *provetoSeen) symbol(i int64) {
	if s.hits == nil {
		s.hits = map[int64]bool{}
	}
	s.hits[i] = true
}

func (s *provetoSeen) site(i int64) {
	if s.marks == nil {
		s.marks = map[int64]bool{}
	}
	s.marks[i] = true
}

// tell reports what was seen under a test's name and forgets it; proveto.mu is
// held.
func (s *provetoSeen) tell(test string) {
	if len(s.hits) > 0 {
		proveto.event(provetoEvent{kind: "reach", test: test, index: provetoSorted(s.hits)})
	}
	if len(s.marks) > 0 {
		proveto.event(provetoEvent{kind: "sites", test: test, index: provetoSorted(s.marks)})
	}
	for rest := s.reads; len(rest) > 0; {
		n := min(len(rest), provetoReadsFrame)
		proveto.event(provetoEvent{kind: "reads", test: test, names: rest[:n]})
		rest = rest[n:]
	}
	*s = provetoSeen{}
}

func provetoSorted(m map[int64]bool) []int64 {
	out := make([]int64, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	// Heap sort: this package may not import sort in every Go version.
	down := func(i, n int) {
		for c := 2*i + 1; c < n; c = 2*i + 1 {
			if c+1 < n && out[c] < out[c+1] {
				c++
			}
			if out[i] >= out[c] {
				return
			}
			out[i], out[c] = out[c], out[i]
			i = c
		}
	}
	for i := len(out)/2 - 1; i >= 0; i-- {
		down(i, len(out))
	}
	for n := len(out) - 1; n > 0; n-- {
		out[0], out[n] = out[n], out[0]
		down(0, n)
	}
	return out
}

const (
	provetoMaxValues = 64       // distinct values told per value site and result
	provetoMaxCalls  = 10_000   // calls looked at per value site
	provetoMaxText   = 200      // bytes of a value
	provetoMaxDepth  = 4        // levels of a value
	provetoMaxCmp    = 64 << 10 // bytes of a value that are compared
)

// provetoValues are the values seen; guarded by proveto.mu.
type provetoValues struct {
	sites  map[int64]*provetoSite
	order  []int64
	counts int64 // calls of saw
	pair   []string
	hidden bool // a value had parts that were not compared
}

type provetoSite struct {
	calls   int
	results []provetoDistinct
}

type provetoDistinct struct {
	seen  map[string]bool
	order []string
}

func (v *provetoValues) add(site int64, values []any) {
	proveto.mu.Lock()
	s := v.sites[site]
	if s == nil {
		if v.sites == nil {
			v.sites = map[int64]*provetoSite{}
		}
		s = &provetoSite{results: make([]provetoDistinct, len(values))}
		v.sites[site] = s
		v.order = append(v.order, site)
	}
	s.calls++
	full := s.calls > provetoMaxCalls
	proveto.mu.Unlock()
	if full {
		return
	}
	for i, value := range values {
		text, _ := provetoRender(value, provetoMaxText)
		proveto.mu.Lock()
		if i < len(s.results) {
			s.results[i].add(text)
		}
		proveto.mu.Unlock()
	}
}

func (d *provetoDistinct) add(text string) {
	if d.seen[text] || len(d.order) >= provetoMaxValues {
		return
	}
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	d.seen[text] = true
	d.order = append(d.order, text)
}

// saw keeps the first pair that differed. Values too long to compare are taken
// as different: they were changed, and nothing shows that they are equal.
func (v *provetoValues) saw(original, changed any) {
	a, part1 := provetoRender(original, provetoMaxCmp)
	b, part2 := provetoRender(changed, provetoMaxCmp)
	proveto.mu.Lock()
	defer proveto.mu.Unlock()
	v.counts++
	if v.pair == nil && (a != b || len(a) >= provetoMaxCmp) {
		v.pair = []string{provetoShort(a), provetoShort(b)}
		// Tell at once: a probe often ends the process.
		proveto.event(provetoEvent{kind: "differ", base: v.counts, values: v.pair})
		proveto.flush()
	}
	v.hidden = v.hidden || part1 || part2
}

func provetoShort(s string) string {
	if len(s) <= provetoMaxText {
		return s
	}
	return provetoClip(s, provetoMaxText) + "…"
}

// provetoTellValues reports the values seen, in the order in which the sites
// were first reached, and how often a probe was seen to change a value. A probe
// that was executed without showing whether it changed anything is reported as a
// site. proveto.mu is held.
func provetoTellValues() {
	v := &proveto.values
	for _, site := range v.order {
		for i, d := range v.sites[site].results {
			proveto.event(provetoEvent{kind: "value", base: site, index: []int64{int64(i)}, values: d.order})
		}
	}
	switch {
	case !proveto.differ:
	case v.pair != nil:
		proveto.event(provetoEvent{kind: "differ", base: v.counts, values: v.pair})
	case proveto.fired.Load() && (v.counts == 0 || v.hidden):
		proveto.event(provetoEvent{kind: "sites", index: []int64{proveto.bases[proveto.pkg] + int64(proveto.site)}})
	}
	*v = provetoValues{}
}

// provetoRender writes a value like %#v, in at most limit bytes and a mark. It
// calls no method of the value. Maps are shown by their length, and nothing
// behind a lock is read: other goroutines may be writing there. partial says that
// parts of the value were left out so.
func provetoRender(value any, limit int) (text string, partial bool) {
	r := provetoRenderer{limit: limit}
	r.value(reflect.ValueOf(value), 0)
	if len(r.b) > limit {
		return provetoClip(string(r.b), limit) + "…", r.partial
	}
	return string(r.b), r.partial
}

type provetoRenderer struct {
	b       []byte
	limit   int
	partial bool
}

func (r *provetoRenderer) value(v reflect.Value, depth int) {
	if len(r.b) > r.limit {
		return
	}
	if !v.IsValid() {
		r.b = append(r.b, "nil"...)
		return
	}
	t := v.Type()
	if depth > provetoMaxDepth {
		r.hide(t, "{…}")
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		r.b = strconv.AppendBool(r.b, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		r.b = strconv.AppendInt(r.b, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		r.b = strconv.AppendUint(r.b, v.Uint(), 10)
	case reflect.Float32:
		r.b = strconv.AppendFloat(r.b, v.Float(), 'g', -1, 32)
	case reflect.Float64:
		r.b = strconv.AppendFloat(r.b, v.Float(), 'g', -1, 64)
	case reflect.Complex64, reflect.Complex128:
		r.b = append(r.b, strconv.FormatComplex(v.Complex(), 'g', -1, t.Bits())...)
	case reflect.String:
		r.b = strconv.AppendQuote(r.b, provetoClip(v.String(), r.limit))
	case reflect.Interface:
		if v.IsNil() {
			r.b = append(r.b, "nil"...)
			return
		}
		r.value(v.Elem(), depth)
	case reflect.Pointer:
		r.pointer(v, depth)
	case reflect.Slice, reflect.Array:
		r.list(v, depth)
	case reflect.Struct:
		r.structure(v, depth)
	case reflect.Map:
		if v.IsNil() {
			r.b = append(r.b, "nil"...)
			return
		}
		r.hide(t, "{len ")
		r.b = append(strconv.AppendInt(r.b, int64(v.Len()), 10), '}')
	default: // func, chan, unsafe pointer
		if v.IsZero() {
			r.b = append(r.b, "nil"...)
			return
		}
		r.hide(t, "(…)")
	}
}

// hide writes a type in the place of a value.
func (r *provetoRenderer) hide(t reflect.Type, mark string) {
	r.partial = true
	r.b = append(append(r.b, t.String()...), mark...)
}

func (r *provetoRenderer) pointer(v reflect.Value, depth int) {
	if v.IsNil() {
		r.b = append(r.b, "nil"...)
		return
	}
	r.b = append(r.b, '&')
	if provetoGuarded(v.Type().Elem()) {
		r.hide(v.Type().Elem(), "{…}")
		return
	}
	r.value(v.Elem(), depth+1)
}

func (r *provetoRenderer) list(v reflect.Value, depth int) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		r.b = append(r.b, "nil"...)
		return
	}
	r.b = append(append(r.b, v.Type().String()...), '{')
	for i := 0; i < v.Len() && len(r.b) <= r.limit; i++ {
		if i > 0 {
			r.b = append(r.b, ", "...)
		}
		r.value(v.Index(i), depth+1)
	}
	r.b = append(r.b, '}')
}

func (r *provetoRenderer) structure(v reflect.Value, depth int) {
	t := v.Type()
	r.b = append(append(r.b, t.String()...), '{')
	for i := 0; i < v.NumField() && len(r.b) <= r.limit; i++ {
		if i > 0 {
			r.b = append(r.b, ", "...)
		}
		r.b = append(append(r.b, t.Field(i).Name...), ':')
		r.value(v.Field(i), depth+1)
	}
	r.b = append(r.b, '}')
}

// provetoGuarded tells a struct that holds a lock or an atomic.
func provetoGuarded(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	if t.PkgPath() == "sync" || t.PkgPath() == "sync/atomic" {
		return true
	}
	for i := 0; i < t.NumField(); i++ {
		if provetoGuarded(t.Field(i).Type) {
			return true
		}
	}
	return false
}
