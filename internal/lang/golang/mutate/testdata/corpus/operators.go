package corpus

import "fmt"

type flag bool

type bits uint

const debug = false

func compare(a, b int) []bool {
	return []bool{
		a == b, // want CONDITIONALS_NEGATION
		a != b, // want CONDITIONALS_NEGATION
		a < b,  // want CONDITIONALS_NEGATION CONDITIONALS_BOUNDARY
		a <= b, // want CONDITIONALS_NEGATION CONDITIONALS_BOUNDARY
		a > b,  // want CONDITIONALS_NEGATION CONDITIONALS_BOUNDARY
		a >= b, // want CONDITIONALS_NEGATION CONDITIONALS_BOUNDARY
	}
}

func arithmetic(a, b int) []int {
	return []int{
		a + b, // want ARITHMETIC_BASE
		a - b, // want ARITHMETIC_BASE
		a * b, // want ARITHMETIC_BASE
		a / b, // want ARITHMETIC_BASE
		a % b, // want ARITHMETIC_BASE
		-a,    // want INVERT_NEGATIVES
		+a,    // want ARITHMETIC_BASE
		a+-b,  // want ARITHMETIC_BASE INVERT_NEGATIVES
		a - +b,
		a*0 + b, // the division does not compile, want CONSTANTS ARITHMETIC_BASE
	}
}

func bitwise(a, b bits, n uint) []bits {
	return []bits{
		a & b,  // want INVERT_BITWISE
		a | b,  // want INVERT_BITWISE
		a ^ b,  // want INVERT_BITWISE
		a &^ b, // want INVERT_BITWISE
		a << n, // want INVERT_BITWISE
		a >> n, // want INVERT_BITWISE
		1 << n, // want INVERT_BITWISE
		a | b*2 + a&b,
		(a | b) & (a + b),
	}
}

func logical(a, b, c bool) []bool {
	return []bool{
		a && b,      // want INVERT_LOGICAL
		a || b,      // want INVERT_LOGICAL
		a && b && c, // want INVERT_LOGICAL INVERT_LOGICAL
		a || b && c,
		!(a || b) && c,
		(a && b) == c, // want INVERT_LOGICAL CONDITIONALS_NEGATION
	}
}

func typed(a, b int) flag { return a < b }

func typedCalls(f func() int, b int) flag { return f() < b }

func calls(f func(int) int, a int) int {
	if f(a) > f(2) && f(a) != 3 {
		return f(a) - f(1)
	}
	return -f(a)
}

func constants(x interface{}) string {
	const size = 3 + 4
	var block [size * 2]int // nothing here
	if debug {              // want NEGATE_CONDITION
		return "debug"
	}
	s := fmt.Sprint(len(block), 1+2, 10) // want ARITHMETIC_BASE CONSTANTS
	if x == 5 {                          // want CONDITIONALS_NEGATION CONSTANTS
		s += ", five"
	}
	return s + string(rune('a'+1))
}

func multiline(a, b,
	c int) bool {
	return a < // want CONDITIONALS_NEGATION CONDITIONALS_BOUNDARY
		b && // want INVERT_LOGICAL
		b < /* two
		lines */c &&
		func() bool {
			x := a

			return x != // odd
				4
		}() && `raw
string` != fmt.Sprint(a)
}

func increments(n int) int {
	sum := 0
	for i := 0; i < n; i++ { // want CONSTANTS CONDITIONALS_NEGATION CONDITIONALS_BOUNDARY INCREMENT_DECREMENT
		sum += i
		sum++ // want INCREMENT_DECREMENT
	}
	if sum--; sum > 3 { // want INCREMENT_DECREMENT CONDITIONALS_NEGATION CONDITIONALS_BOUNDARY CONSTANTS
		sum *= 2
	}
	a := []int{1, 2, 3}
	a[n%3]++
	return sum + a[0]*10 + a[1]*100 + a[2]*1000
}

func shadow(bool, string int) int {
	if bool < string {
		return 1
	}
	int := 3
	return int * bool
}

func operators() {
	try("compare", func() interface{} { return [][]bool{compare(1, 2), compare(2, 2), compare(3, 2)} })
	try("arithmetic", func() interface{} { return arithmetic(7, 3) })
	try("bitwise", func() interface{} { return bitwise(0x5a, 0x33, 2) })
	for i := 0; i < 8; i++ {
		i := i
		try("logical", func() interface{} { return logical(i&1 != 0, i&2 != 0, i&4 != 0) })
	}
	try("typed", func() interface{} { return []flag{typed(1, 2), typed(2, 2)} })
	try("typedCalls", func() interface{} { return typedCalls(func() int { return 1 }, 2) })
	n := 0
	try("calls", func() interface{} {
		f := func(a int) int { n++; return a*2 + n }
		return []int{calls(f, 3), calls(f, 1), n}
	})
	try("constants", func() interface{} { return []string{constants(5), constants(6)} })
	try("multiline", func() interface{} { return []bool{multiline(1, 2, 3), multiline(2, 2, 3), multiline(1, 3, 3), multiline(4, 5, 6)} })
	try("increments", func() interface{} { return []int{increments(2), increments(4)} })
	try("shadow", func() interface{} { return []int{shadow(1, 2), shadow(2, 1), shadow(2, 2)} })
}
