package corpus

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strconv"
	"strings"
	"sync"
)

func chain(a int) string {
	if a < 0 {
		return "negative"
	} else if a == 0 { // want CONDITIONALS_NEGATION CONSTANTS
		return "zero"
	} else if b := a * 2; b > 10 { // want ARITHMETIC_BASE CONSTANTS CONDITIONALS_NEGATION CONDITIONALS_BOUNDARY CONSTANTS
		return "big"
	} else {
		return "small"
	}
}

func choose(a int, ok bool) int {
	switch {
	case a > 10 && ok: // want CONDITIONALS_NEGATION CONDITIONALS_BOUNDARY CONSTANTS INVERT_LOGICAL NEGATE_CONDITION
		return 1
	case !ok: // want NEGATE_CONDITION
		return 2
	}
	switch b := a + 1; b {
	case 1, 2:
		return 3
	case a + 1:
		a++
		fallthrough
	default:
		return a
	}
}

func dispatch(v interface{}) string {
	switch x := v.(type) {
	case int, int64:
		return fmt.Sprint("int", x)
	case string:
		if !strings.HasPrefix(x, "a") { // want NEGATE_CONDITION STRINGS
			break
		}
		return x
	case fmt.Stringer:
		return x.String()
	}
	return "other"
}

func loops(n int) (total int) {
outer:
	for i := 0; i < n; i++ {
		for j := 0; ; j++ {
			switch {
			case j == 2:
				continue outer // want INVERT_LOOPCTRL
			case j == 5:
				break outer
			case i == 3:
				break // nothing: it leaves the switch alone, want INVERT_LOOPCTRL
			}
			if i+j == 4 {
				break // want INVERT_LOOPCTRL
			}
			total += i + j // want REMOVE_STATEMENT ARITHMETIC_BASE
		}
	}
	return total
}

func endless(n int) int {
	for {
		n++
		if n%2 == 0 {
			continue
		}
		if n > 9 {
			return n
		}
	}
}

func jump(n int) int {
	i := 0
loop:
	if i < n {
		i += 2
		goto loop
	}
	if n == 0 {
		goto end
	}
	i *= 3
end:
	return i
}

func selects(a, b chan int) (s string) {
	select {
	case x := <-a:
		s = "a" + strconv.Itoa(x)
	case b <- len(s) + 1:
		s = "sent"
	default:
		s = "none"
	}
	return s
}

func must(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil { // want DROP_ERROR_PATH CONDITIONALS_NEGATION
		return -1 // want INVERT_NEGATIVES
	}
	if _, err := strconv.Atoi(s + "0"); err != nil || n > 5 {
		return -2
	}
	return n
}

func guard(n int) int {
	if n < 0 {
		panic("negative") // want REMOVE_STATEMENT STRINGS
	}
	if n > 5 {
		return n
	} else {
		panic("small")
	}
}

type box struct {
	mu  sync.Mutex
	log []string
}

func (b *box) add(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.note("added " + s) // want REMOVE_STATEMENT STRINGS
	b.log = append(b.log, s)   // want REMOVE_STATEMENT
	log.Printf("added %s", s)
	func() { b.log = append(b.log, "lit") }()
}

func (b *box) note(s string) { b.log = append(b.log, s) }

func work(n int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	out := make([]int, 2, 2+n)
	wg.Add(1)
	go func() {
		defer wg.Done()
		out[0] = n
		if ctx.Err() == nil {
			out[1] = n + 1
		}
	}()
	wg.Wait()
	return out[0] * out[1]
}

func closures(n int) []func() int {
	var fs []func() int
	for i := 0; i < n; i++ {
		fs = append(fs, func() int { return i * i })
	}
	return fs
}

func wrap(err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("wrapped: %w", err)
	}
	return err
}

func ints(n int) (s int) {
	for i := range n {
		s += i
	}
	for i := range 3 {
		s += i
	}
	for range n + 1 { // want ARITHMETIC_BASE CONSTANTS
		s++
	}
	return
}

func flow() {
	log.SetOutput(discard{})
	try("chain", func() interface{} { return []string{chain(-1), chain(0), chain(5), chain(6)} })
	try("choose", func() interface{} { return []int{choose(11, true), choose(10, false), choose(0, true), choose(5, true), choose(10, true)} })
	try("dispatch", func() interface{} {
		return []string{dispatch(1), dispatch("ab"), dispatch("b"), dispatch(point{}), dispatch(nil)}
	})
	try("loops", func() interface{} { return []int{loops(2), loops(5), loops(9)} })
	try("endless", func() interface{} { return []int{endless(2), endless(20)} })
	try("jump", func() interface{} { return []int{jump(0), jump(3)} })
	try("selects", func() interface{} {
		a, b := make(chan int, 1), make(chan int, 1)
		a <- 3
		return []string{selects(a, nil), selects(nil, b), selects(nil, nil), strconv.Itoa(<-b)}
	})
	try("must", func() interface{} { return []int{must("x"), must("3"), must("7")} })
	try("guard", func() interface{} { return guard(6) })
	try("guard small", func() interface{} { return guard(1) })
	try("guard negative", func() interface{} { return guard(-1) })
	try("box", func() interface{} { b := &box{}; b.add("x"); return b.log })
	try("work", func() interface{} { return work(3) })
	try("closures", func() interface{} { fs := closures(3); return []int{fs[0](), fs[1](), fs[2]()} })
	try("wrap", func() interface{} { return fmt.Sprint(wrap(context.Canceled), wrap(nil)) })
	try("ints", func() interface{} { return []int{ints(0), ints(3)} })
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
