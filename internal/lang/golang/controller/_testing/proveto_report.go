package testing

import (
	"math/bits"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"unicode/utf8"
)

// proveto is the state of the controller in this process.
var proveto provetoReport

// provetoReport writes the frames of docs/formats/report-descriptor.md and holds
// the instructions.
type provetoReport struct {
	on bool // set once, before any project code runs

	mu           sync.Mutex
	buf          []byte
	seq          int
	inner, outer provetoSHA // of the key
	fatal        bool       // the process is about to die: no end mark
	ended        bool       // the end mark was written: nothing may follow

	observe, probe bool
	valuing        bool // with observe: the sites and values too
	pkg            string
	site           int
	atInit         bool
	differ         bool
	plant          string
	chosen, above  map[string]bool // tests to run, and those that have one of them below
	root           string
	bases          map[string]int64

	current *common // the running test; nil: none
	example *common
	initial provetoSeen
	values  provetoValues
	fired   atomic.Bool // the switched probe was executed
}

const (
	provetoInstructionsFD = 3
	provetoFramesFD       = 4
	provetoBufferBytes    = 32 << 10
)

func init() {
	if v, ok := syscall.Getenv("PROVETO_REPORT"); !ok || v != "1" {
		return
	}
	// The process is single-threaded enough here: nothing else has the
	// descriptors, and children must see neither them nor the variable.
	syscall.Unsetenv("PROVETO_REPORT")
	syscall.CloseOnExec(provetoFramesFD)
	var doc []byte
	chunk := make([]byte, 16<<10)
	for {
		n, err := syscall.Read(provetoInstructionsFD, chunk)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			break
		}
		doc = append(doc, chunk[:n]...)
	}
	syscall.Close(provetoInstructionsFD)
	if syscall.SetNonblock(provetoFramesFD, false) != nil {
		return // no descriptor: the sandbox sees an empty report
	}
	proveto.instruct(provetoParse(doc))
	// Nobody finds them in the memory of the process by their text.
	clear(doc[:cap(doc)])
	clear(chunk)
}

// instruct takes the instructions: flattened, "instructions.mode" = "observe".
func (r *provetoReport) instruct(in map[string]string) {
	key := provetoUnhex(in["key"])
	if len(key) != 32 {
		return
	}
	var block [64]byte
	for i := range block {
		block[i] = 0x36
		if i < len(key) {
			block[i] ^= key[i]
		}
	}
	r.inner.reset()
	r.inner.block(block[:])
	for i := range block {
		block[i] ^= 0x36 ^ 0x5c
	}
	r.outer.reset()
	r.outer.block(block[:])

	const p = "instructions."
	mode := in[p+"mode"]
	r.valuing, r.probe = mode == "observe", mode == "probe"
	r.observe = r.valuing || mode == "reach"
	r.pkg, r.plant, r.root = in[p+"package"], in[p+"plant"], in[p+"root"]
	r.site, _ = strconv.Atoi(in[p+"site"]) // absent: no site
	r.atInit, r.differ = in[p+"at_init"] == "true", in[p+"differ"] == "true"
	r.chosen, r.above = map[string]bool{}, map[string]bool{}
	const t = p + "tests."
	for k := range in {
		if len(k) <= len(t) || k[:len(t)] != t {
			continue
		}
		name := k[len(t):]
		r.chosen[name] = true
		for i := range name {
			if name[i] == '/' {
				r.above[name[:i]] = true
			}
		}
	}
	r.bases = map[string]int64{}
	const b = p + "bases."
	for k, v := range in {
		if len(k) > len(b) && k[:len(b)] == b {
			r.bases[k[len(b):]], _ = strconv.ParseInt(v, 10, 64) // ours: always a number
		}
	}
	r.on = true
	if r.observe {
		provetoListen()
	}
	if r.observe || r.atInit {
		provetoStart()
	}
}

// provetoEvent has the fields of evidence.Event.
type provetoEvent struct {
	kind, test, by, file string
	line                 int
	message              string
	duration, base       int64
	names                []string
	index                []int64
	values               []string
}

// event appends one frame; mu is held. After the end mark, in a second M.Run, it
// does nothing.
func (r *provetoReport) event(e provetoEvent) {
	if r.ended {
		return
	}
	r.ended = e.kind == "end"
	js := e.json()
	seq := strconv.Itoa(r.seq)
	r.seq++
	in, out := r.inner, r.outer
	sum := in.sum(append(append(append(make([]byte, 0, len(js)+32), seq...), ' '), js...))
	code := out.sum(sum[:])
	const digits = "0123456789abcdef"
	r.buf = append(append(r.buf, seq...), ' ')
	for _, b := range code[:16] {
		r.buf = append(r.buf, digits[b>>4], digits[b&15])
	}
	r.buf = append(append(append(r.buf, ' '), js...), '\n')
	if len(r.buf) > provetoBufferBytes {
		r.flush()
	}
}

// flush writes what is buffered; mu is held. Whoever reads has gone when a write
// fails: the report stays incomplete, which is what it is.
func (r *provetoReport) flush() {
	for len(r.buf) > 0 {
		n, err := syscall.Write(provetoFramesFD, r.buf)
		if err == syscall.EINTR || err == syscall.EAGAIN {
			continue
		}
		if err != nil {
			break
		}
		r.buf = r.buf[n:]
	}
	r.buf = r.buf[:0]
}

func (e provetoEvent) json() []byte {
	b := append(make([]byte, 0, 256), `{"kind":`...)
	b = provetoQuote(b, e.kind)
	text := func(name, s string) {
		if s != "" {
			b = provetoQuote(append(append(append(b, `,"`...), name...), `":`...), s)
		}
	}
	number := func(name string, n int64) {
		if n != 0 {
			b = strconv.AppendInt(append(append(append(b, `,"`...), name...), `":`...), n, 10)
		}
	}
	list := func(name string, ss []string) {
		for i, s := range ss {
			if i == 0 {
				b = append(append(append(b, `,"`...), name...), `":[`...)
			} else {
				b = append(b, ',')
			}
			b = provetoQuote(b, s)
		}
		if len(ss) > 0 {
			b = append(b, ']')
		}
	}
	text("test", e.test)
	text("by", e.by)
	text("file", e.file)
	number("line", int64(e.line))
	text("message", provetoClip(e.message, provetoMaxMessage))
	number("duration_ns", e.duration)
	number("base", e.base)
	list("names", e.names)
	for i, n := range e.index {
		if i == 0 {
			b = append(b, `,"index":[`...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	if len(e.index) > 0 {
		b = append(b, ']')
	}
	list("values", e.values)
	return append(b, '}')
}

// provetoClip cuts s to n bytes without cutting a character.
func provetoClip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// provetoQuote appends s as a JSON string; what is not UTF-8 becomes U+FFFD.
func provetoQuote(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return append(b, '"')
}

// provetoParse reads a JSON document of objects, strings, numbers and booleans
// into a flat map: keys joined by a dot. Anything else ends the reading.
func provetoParse(doc []byte) map[string]string {
	out := map[string]string{}
	i := 0
	space := func() {
		for i < len(doc) && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
			i++
		}
	}
	text := func() (string, bool) {
		start := i
		if i >= len(doc) || doc[i] != '"' {
			return "", false
		}
		for i++; i < len(doc) && doc[i] != '"'; i++ {
			if doc[i] == '\\' {
				i++
			}
		}
		if i >= len(doc) {
			return "", false
		}
		i++
		// What encoding/json writes is a Go string, too.
		s, err := strconv.Unquote(string(doc[start:i]))
		return s, err == nil
	}
	var object func(prefix string) bool
	object = func(prefix string) bool {
		i++ // the brace
		for {
			space()
			if i < len(doc) && doc[i] == '}' {
				i++
				return true
			}
			if i < len(doc) && doc[i] == ',' {
				i++
				space()
			}
			name, ok := text()
			if !ok {
				return false
			}
			space()
			if i >= len(doc) || doc[i] != ':' {
				return false
			}
			i++
			space()
			switch {
			case i >= len(doc):
				return false
			case doc[i] == '{':
				if !object(prefix + name + ".") {
					return false
				}
			case doc[i] == '"':
				s, ok := text()
				if !ok {
					return false
				}
				out[prefix+name] = s
			default:
				start := i
				for i < len(doc) && doc[i] != ',' && doc[i] != '}' && doc[i] != ' ' && doc[i] != '\n' {
					i++
				}
				out[prefix+name] = string(doc[start:i])
			}
		}
	}
	space()
	if i < len(doc) && doc[i] == '{' && object("") {
		return out
	}
	return map[string]string{}
}

func provetoUnhex(s string) []byte {
	out := make([]byte, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		n, err := strconv.ParseUint(s[i:i+2], 16, 8)
		if err != nil {
			return nil
		}
		out = append(out, byte(n))
	}
	return out
}

// provetoSHA is SHA-256 after a whole number of blocks. It is here because
// package testing must not import package crypto.
type provetoSHA struct {
	h [8]uint32
	n uint64 // bytes so far
}

func (s *provetoSHA) reset() {
	s.n = 0
	s.h = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
}

// sum is the digest of what came before, followed by p.
func (s *provetoSHA) sum(p []byte) (out [32]byte) {
	for len(p) >= 64 {
		s.block(p[:64])
		p = p[64:]
	}
	length := (s.n + uint64(len(p))) * 8
	var tail [128]byte
	n := copy(tail[:], p)
	tail[n] = 0x80
	end := 64
	if n >= 56 {
		end = 128
	}
	for i := 0; i < 8; i++ {
		tail[end-1-i] = byte(length >> (8 * i))
	}
	for i := 0; i < end; i += 64 {
		s.block(tail[i : i+64])
	}
	for i, v := range s.h {
		out[4*i], out[4*i+1], out[4*i+2], out[4*i+3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
	}
	return out
}

func (s *provetoSHA) block(p []byte) {
	var w [64]uint32
	for i := 0; i < 16; i++ {
		w[i] = uint32(p[4*i])<<24 | uint32(p[4*i+1])<<16 | uint32(p[4*i+2])<<8 | uint32(p[4*i+3])
	}
	for i := 16; i < 64; i++ {
		a, b := w[i-15], w[i-2]
		s0 := bits.RotateLeft32(a, -7) ^ bits.RotateLeft32(a, -18) ^ a>>3
		s1 := bits.RotateLeft32(b, -17) ^ bits.RotateLeft32(b, -19) ^ b>>10
		w[i] = w[i-16] + s0 + w[i-7] + s1
	}
	a, b, c, d, e, f, g, h := s.h[0], s.h[1], s.h[2], s.h[3], s.h[4], s.h[5], s.h[6], s.h[7]
	for i := range w {
		t1 := h + (bits.RotateLeft32(e, -6) ^ bits.RotateLeft32(e, -11) ^ bits.RotateLeft32(e, -25)) + (e&f ^ ^e&g) + provetoK[i] + w[i]
		t2 := (bits.RotateLeft32(a, -2) ^ bits.RotateLeft32(a, -13) ^ bits.RotateLeft32(a, -22)) + (a&b ^ a&c ^ b&c)
		h, g, f, e, d, c, b, a = g, f, e, d+t1, c, b, a, t1+t2
	}
	for i, v := range [8]uint32{a, b, c, d, e, f, g, h} {
		s.h[i] += v
	}
	s.n += 64
}

var provetoK = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}
