package corpus

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

type level int

type name string

type inner struct{ N int }

type point struct {
	hidden func()
	X, Y   int
}

type outer struct {
	inner
	Ok []bool
}

type locked struct {
	sync.Mutex
	n int
}

type list []string

type table map[string]int

func yes(a int) bool { return a > 3 } // want NEGATE_RETURNS FALSE_RETURNS TRUE_RETURNS CONDITIONALS_NEGATION CONDITIONALS_BOUNDARY CONSTANTS

func plus(a, b int) int { return a + b } // want INCREMENT_RETURNS PRIMITIVE_RETURNS ONE_RETURNS CONSTANT_RETURNS NEGATE_RETURNS ARITHMETIC_BASE

func unsigned(a uint8) uint8 { return a } // want INCREMENT_RETURNS PRIMITIVE_RETURNS ONE_RETURNS CONSTANT_RETURNS

func half(a float64) float64 { return a / 2 } // want INCREMENT_RETURNS PRIMITIVE_RETURNS ARITHMETIC_BASE CONSTANTS

func greet(who string) string { return "hello " + who } // want APPEND_RETURNS EMPTY_RETURNS CONSTANT_RETURNS STRINGS

func named(a level) (l level) { // want INCREMENT_RETURNS PRIMITIVE_RETURNS ONE_RETURNS CONSTANT_RETURNS NEGATE_RETURNS
	l = a // want REMOVE_STATEMENT
	return
}

func fails(bad bool) error { // want ERROR_RETURNS
	if bad { // want NEGATE_CONDITION
		return errors.New("bad") // want STRINGS
	}
	return nil
}

func parse(s string) (n int, err error) { // want INCREMENT_RETURNS ERROR_RETURNS PRIMITIVE_RETURNS ONE_RETURNS CONSTANT_RETURNS NEGATE_RETURNS
	_, err = fmt.Sscanf(s, "%d", &n) // want REMOVE_STATEMENT STRINGS
	return
}

func both(s string) (int, error) { return parse(s) }

func blank(s string) (_ string, _ bool) { // want APPEND_RETURNS NEGATE_RETURNS EMPTY_RETURNS CONSTANT_RETURNS FALSE_RETURNS TRUE_RETURNS
	if s == "" { // want CONDITIONALS_NEGATION STRINGS
		return
	}
	return s, true
}

func deferred() (n int, err error) { // want INCREMENT_RETURNS ERROR_RETURNS PRIMITIVE_RETURNS ONE_RETURNS CONSTANT_RETURNS NEGATE_RETURNS
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("recovered: %v", r)
			n = 7
		}
	}()
	if recover() != nil {
		return 1, nil
	}
	panic("boom")
}

func blankDeferred() (_ int, s string) {
	defer func() { s += "!" }()
	return 3, "three"
}

func words(s string) []string { return strings.Fields(s) } // want SHORTEN_RETURNS EMPTY_RETURNS FIRST_ELEMENT_RETURNS

func named2(s string) list { return list(strings.Fields(s)) }

func bytesOf(s string) []byte { return []byte(s) }

func errorsOf() []error { return []error{io.EOF} } // want SHORTEN_RETURNS EMPTY_RETURNS

func count(s string) table { // want EMPTY_RETURNS
	t := table{}
	for _, w := range strings.Fields(s) {
		t[w]++ // want INCREMENT_DECREMENT
	}
	return t
}

func grid() [2]int { return [2]int{1, 2} } // want FIRST_ELEMENT_RETURNS ZERO_RETURNS CONSTANTS CONSTANTS

func origin() point { return point{X: 1, Y: 2} } // want FIELD_RETURNS ZERO_RETURNS CONSTANTS CONSTANTS

func nested() outer { return outer{inner{1}, nil} }

func pointer() *point { return &point{X: 4} } // want FIELD_RETURNS ZERO_RETURNS NULL_RETURNS CONSTANTS

func counter() *int { n := 5; return &n }

func lock() *locked { return &locked{n: 3} } // want ZERO_RETURNS NULL_RETURNS CONSTANTS

func reader(s string) io.Reader { return strings.NewReader(s) } // want NULL_RETURNS

func anything() interface{} { return 5 } // want CONSTANT_RETURNS NULL_RETURNS CONSTANTS

func action() func() int { return func() int { return 3 } } // want EMPTY_RETURNS NULL_RETURNS CONSTANTS

func channel() chan int { return make(chan int, 2) } // want EMPTY_RETURNS NULL_RETURNS

func wait() time.Duration { return 5 * time.Second } // want INCREMENT_RETURNS PRIMITIVE_RETURNS ONE_RETURNS CONSTANT_RETURNS NEGATE_RETURNS ARITHMETIC_BASE

func when() time.Time { return time.Unix(1, 0).UTC() }

func structOf() struct {
	A int // a
	B string
} {
	return struct {
		A int // a
		B string
	}{1, "b"}
}

func multi() (a, b int, s string) {
	a, b = 1, 2
	return a,
		b, // second
		"three"
}

func store(p *point) { // want VOID_BODY
	p.X = 9 // want REMOVE_STATEMENT CONSTANTS
	p.Y -= 2
}

func empty() {}

func never() int { panic("never") }

func (p point) Sum() int { return p.X + p.Y } // want INCREMENT_RETURNS PRIMITIVE_RETURNS ONE_RETURNS CONSTANT_RETURNS NEGATE_RETURNS ARITHMETIC_BASE

func (p *point) Set(x int) *point {
	p.X = x
	return p
}

func (point) String() string { return "point" }

func values() {
	try("yes", func() interface{} { return []bool{yes(3), yes(4), yes(5)} })
	try("plus", func() interface{} { return plus(2, 3) })
	try("unsigned", func() interface{} { return unsigned(255) })
	try("half", func() interface{} { return half(5) })
	try("greet", func() interface{} { return greet("you") })
	try("named", func() interface{} { return named(6) })
	try("fails", func() interface{} { return fmt.Sprint(fails(true), fails(false)) })
	try("parse", func() interface{} { n, err := parse("12"); m, err2 := parse("x"); return fmt.Sprint(n, err, m, err2) })
	try("both", func() interface{} { n, err := both("12"); return fmt.Sprint(n, err) })
	try("blank", func() interface{} { a, b := blank(""); c, d := blank("c"); return fmt.Sprint(a, b, c, d) })
	try("deferred", func() interface{} { n, err := deferred(); return fmt.Sprint(n, err) })
	try("blankDeferred", func() interface{} { n, s := blankDeferred(); return fmt.Sprint(n, s) })
	try("words", func() interface{} { return [][]string{words("a b"), words("")} })
	try("named2", func() interface{} { return named2("a b") })
	try("bytesOf", func() interface{} { return bytesOf("ab") })
	try("errorsOf", func() interface{} { return len(errorsOf()) })
	try("count", func() interface{} { return fmt.Sprint(count("a b a"), count("")) })
	try("grid", func() interface{} { return grid() })
	try("origin", func() interface{} { p := origin(); return []int{p.X, p.Y} })
	try("nested", func() interface{} { return nested() })
	try("pointer", func() interface{} { return pointer().X })
	try("counter", func() interface{} { return *counter() })
	try("lock", func() interface{} { return lock().n })
	try("reader", func() interface{} { b, err := io.ReadAll(reader("abc")); return fmt.Sprint(string(b), err) })
	try("anything", func() interface{} { return anything() })
	try("action", func() interface{} { return action()() })
	try("channel", func() interface{} { return cap(channel()) })
	try("wait", func() interface{} { return wait() })
	try("when", func() interface{} { return when().String() })
	try("structOf", func() interface{} { return structOf() })
	try("multi", func() interface{} { a, b, s := multi(); return fmt.Sprint(a, b, s) })
	try("store", func() interface{} { p := point{Y: 5}; store(&p); empty(); return p.X*10 + p.Y })
	try("never", func() interface{} { return never() })
	try("methods", func() interface{} { p := &point{X: 1, Y: 2}; return fmt.Sprint(p.Set(7).Sum(), point.Sum(*p), p.String()) })
}
