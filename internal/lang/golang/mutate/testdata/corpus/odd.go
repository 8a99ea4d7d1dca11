package corpus // the clause has a comment

import (
	"fmt"
	"runtime"
	str "strings"
)

var initial = plus(1, 2) * 3

var order = func() string { return fmt.Sprint("first", initial) }()

func init() { order += "!" }

func where() int {
	_, _, line, _ := runtime.Caller(0)
	return line
}

func caller(skip int) string {
	pc, _, line, _ := runtime.Caller(skip)
	return fmt.Sprint(runtime.FuncForPC(pc).Name(), line)
}

func calledFrom() bool { return str.HasSuffix(caller(1), "30") && caller(1) == "x" }

func callerName() string {
	s := "no"
	if name := caller(1); str.Contains(name, "callerName") { s = "yes" }; if caller(1) != "" && !str.Contains(caller(1), "func1") { s += "!" }
	return s
}

func len2(cap []int) int { len := func([]int) int { return 4 }; return len(cap) + 1 }

func variadic(xs ...int) (n int) { for _, x := range xs { n += x }; return }

func nestedReturns() int {
	f := func() (int, string) { return 1, "x" }
	n, s := f()
	return n + len(s)
}

type embedded struct{ *point }

func (e embedded) Twice() int { return e.Sum() * 2 }

func expr() func(point) int { return point.Sum }

func odd() {
	try("initial", func() interface{} { return fmt.Sprint(initial, order) })
	try("where", func() interface{} { return where() })
	try("calledFrom", func() interface{} { return calledFrom() })
	try("callerName", func() interface{} { return callerName() })
	try("len2", func() interface{} { return len2(nil) })
	try("variadic", func() interface{} { return variadic(1, 2) })
	try("nestedReturns", func() interface{} { return nestedReturns() })
	try("embedded", func() interface{} { return embedded{&point{X: 1, Y: 2}}.Twice() })
	try("expr", func() interface{} { return expr()(point{X: 3, Y: 4}) })
	try("windows", func() interface{} { return []int{windows(1), windows(2)} })
	try("marked", func() interface{} { return []string{marked(1), marked(2)} })
	try("made", func() interface{} { return made(1) })
	try("last", func() interface{} { return last(1) })
}

//go:nosplit
func tight(a int) int { return a + 1 }
