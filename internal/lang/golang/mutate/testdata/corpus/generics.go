package corpus

import (
	"cmp"
	"fmt"
	"slices"
)

type number interface {
	~int | ~int64 | ~float64
}

type stack[T any] struct {
	items []T
	less  func(a, b T) bool
}

func (s *stack[T]) Push(v T) *stack[T] {
	s.items = append(s.items, v)
	return s
}

func (s *stack[E]) Pop() (v E, ok bool) {
	if len(s.items) == 0 {
		return
	}
	v = s.items[len(s.items)-1]
	s.items = s.items[:len(s.items)-1]
	return v, true
}

func (s *stack[_]) Len() int { return len(s.items) }

func sum[T number](xs ...T) T { // want INCREMENT_RETURNS ZERO_RETURNS
	var total T
	for _, x := range xs {
		total += x * 2
	}
	return total
}

func biggest[K comparable, V cmp.Ordered](m map[K]V) (K, V) {
	var key K
	var best V
	first := true
	for k, v := range m {
		if first || v > best {
			key, best, first = k, v, false
		}
	}
	return key, best
}

func keys[M ~map[K]V, K cmp.Ordered, V any](m M) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func shadowed[T any](v T) T {
	{
		type T int
		return v
	}
}

func local() string {
	type pair struct{ a, b int }
	eq := func(x, y pair) bool { return x == y }
	type small int
	var n small = 3
	return fmt.Sprint(eq(pair{1, 2}, pair{1, 2}), n+1)
}

func generics() {
	try("stack", func() interface{} {
		s := new(stack[string])
		a, ok := s.Push("x").Push("y").Pop()
		return fmt.Sprint(a, ok, s.Len())
	})
	try("stack empty", func() interface{} { s := new(stack[int]); v, ok := s.Pop(); return fmt.Sprint(v, ok) })
	try("sum", func() interface{} { return fmt.Sprint(sum(1, 2, 3), sum(1.5)) })
	try("biggest", func() interface{} { k, v := biggest(map[string]int{"a": 1, "b": 5}); return fmt.Sprint(k, v) })
	try("keys", func() interface{} { return keys(map[string]bool{"b": true, "a": false}) })
	try("shadowed", func() interface{} { return shadowed(3) })
	try("local", func() interface{} { return local() })
}
