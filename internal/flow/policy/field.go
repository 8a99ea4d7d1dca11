package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/strictyaml"
)

// reader remembers, while the layers of a policy are read one over the other,
// where each value was last written and in which layer.
type reader struct {
	layer int
	where map[string]written
}

type written struct {
	node  strictyaml.Node
	layer int
}

func (r *reader) note(path string, n strictyaml.Node) { r.where[path] = written{n, r.layer} }

// at finds where a value, or the nearest thing around it, is written.
func (r *reader) at(path string) written {
	for {
		if w, ok := r.where[path]; ok {
			return w
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return r.where[""]
		}
		path = path[:i]
	}
}

// direction says which changes of a value make a policy stricter.
type direction string

const (
	free   direction = "free"   // no change loosens
	fixed  direction = "fixed"  // every change may loosen
	up     direction = "up"     // larger is stricter
	down   direction = "down"   // smaller is stricter
	later  direction = "later"  // of the known words, a later one is stricter
	grow   direction = "grow"   // a list may only get longer
	shrink direction = "shrink" // a list may only get shorter
)

// loosened collects the values that a change made looser.
type loosened []looseValue

type looseValue struct{ key, was, is string }

func (l *loosened) add(key string, was, is any) {
	*l = append(*l, looseValue{key, flow(was), flow(is)})
}

// field is one key of a T: how it is read, shown and compared.
type field[T any] struct {
	name string
	dir  direction // for the table of keys
	read func(r *reader, into *T, n strictyaml.Node, path string) error
	show func(*T) any // nil: the key is left out
	// loosens adds what is looser in the second T.
	loosens func(l *loosened, path string, a, b *T)
}

// shape is all keys of a T in the order in which they are shown.
type shape[T any] []field[T]

func (s shape[T]) names() []string {
	out := make([]string, len(s))
	for i, f := range s {
		out[i] = f.name
	}
	return out
}

// read sets the fields that a mapping names and leaves the others.
func (s shape[T]) read(r *reader, into *T, n strictyaml.Node, path string) error {
	pairs, err := n.Pairs(called(path))
	if err != nil {
		return err
	}
	for _, p := range pairs {
		i := slices.IndexFunc(s, func(f field[T]) bool { return f.name == p.Name })
		if i < 0 {
			return n.Unknown(p.Key, "key", join(path, p.Name), s.names())
		}
		if p.Value.Empty() {
			continue
		}
		r.note(join(path, p.Name), p.Value)
		if err := s[i].read(r, into, p.Value, join(path, p.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (s shape[T]) show(v *T) mapping {
	m := mapping{}
	for _, f := range s {
		if x := f.show(v); x != nil {
			m = append(m, entry{f.name, x})
		}
	}
	return m
}

func (s shape[T]) loosens(l *loosened, path string, a, b *T) {
	for _, f := range s {
		f.loosens(l, join(path, f.name), a, b)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func called(path string) string {
	if path == "" {
		return "the policy"
	}
	return path
}

// wants is the error of a value that does not fit.
func wants(n strictyaml.Node, path, want string) error {
	got := n.Kind()
	if s, ok := n.Text(); ok {
		got = strconv.Quote(s)
	}
	return n.Errorf("%s is %s, want %s", path, got, want)
}

// word is one of a closed list of words, from the loosest to the strictest where
// the direction says so. A zero value is not shown.
func word[T any, W ~string](name string, dir direction, get func(*T) *W, known ...W) field[T] {
	return field[T]{
		name: name, dir: dir,
		read: func(_ *reader, into *T, n strictyaml.Node, path string) error {
			w, err := readWord(n, path, known)
			*get(into) = w
			return err
		},
		show: func(v *T) any { return shown(*get(v)) },
		loosens: func(l *loosened, path string, a, b *T) {
			x, y := *get(a), *get(b)
			if x == y || dir == free {
				return
			}
			if dir == later && slices.Index(known, y) > slices.Index(known, x) {
				return
			}
			l.add(path, shown(x), shown(y))
		},
	}
}

func shown[W ~string](w W) any {
	if w == "" {
		return nil
	}
	return string(w)
}

func readWord[W ~string](n strictyaml.Node, path string, known []W) (W, error) {
	s, ok := n.Text()
	if ok && slices.Contains(known, W(s)) {
		return W(s), nil
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	if !ok {
		return "", wants(n, path, "one of: "+strings.Join(names, ", "))
	}
	e := n.Errorf("%s is %q, want one of: %s", path, s, strings.Join(names, ", "))
	if near := strictyaml.Nearest(s, names); near != "" {
		e = e.Hint("did you mean %s?", near)
	}
	return "", e
}

// text is any one-line string that is not empty.
func text[T any](name string, dir direction, get func(*T) *string, check func(string) string) field[T] {
	return field[T]{
		name: name, dir: dir,
		read: func(_ *reader, into *T, n strictyaml.Node, path string) error {
			s, err := readText(n, path, check)
			*get(into) = s
			return err
		},
		show: func(v *T) any { return shown(*get(v)) },
		loosens: func(l *loosened, path string, a, b *T) {
			if *get(a) != *get(b) && dir != free {
				l.add(path, shown(*get(a)), shown(*get(b)))
			}
		},
	}
}

// readText reads a string; check returns what would be right, or nothing.
func readText(n strictyaml.Node, path string, check func(string) string) (string, error) {
	s, ok := n.Text()
	if !ok || s == "" || strings.ContainsAny(s, "\x00\n\r") {
		return "", wants(n, path, "a text on one line")
	}
	if check != nil {
		if want := check(s); want != "" {
			return "", wants(n, path, want)
		}
	}
	return s, nil
}

// numeric are the kinds of values that have an order.
type numeric interface {
	~int | ~int64 | ~float64
}

// number is a value with an order. noLimit says that 0 stands for no limit at
// all, which is the loosest. hideZero leaves a zero value out when shown.
type number[T any, N numeric] struct {
	name              string
	dir               direction
	get               func(*T) *N
	parse             func(string) (N, bool)
	show              func(N) any
	want              string
	noLimit, hideZero bool
}

func (f number[T, N]) field() field[T] {
	return field[T]{
		name: f.name, dir: f.dir,
		read: func(_ *reader, into *T, n strictyaml.Node, path string) error {
			s, ok := n.Text()
			if ok {
				var v N
				if v, ok = f.parse(s); ok {
					*f.get(into) = v
					return nil
				}
			}
			return wants(n, path, f.want)
		},
		show: func(v *T) any {
			if f.hideZero && *f.get(v) == 0 {
				return nil
			}
			return f.show(*f.get(v))
		},
		loosens: func(l *loosened, path string, a, b *T) {
			x, y := *f.get(a), *f.get(b)
			stricter := x == y || f.dir == free || f.dir == up && y > x || f.dir == down && y < x
			if f.noLimit && x != y {
				stricter = y != 0 && (x == 0 || stricter)
			}
			if !stricter {
				l.add(path, f.show(x), f.show(y))
			}
		},
	}
}

func count[T any](name string, dir direction, least, most int, get func(*T) *int) number[T, int] {
	return number[T, int]{
		name: name, dir: dir, get: get,
		parse: func(s string) (int, bool) {
			n, err := strconv.Atoi(s)
			return n, err == nil && n >= least && n <= most
		},
		show: func(n int) any { return n },
		want: fmt.Sprintf("a whole number from %d to %d", least, most),
	}
}

func share[T any](name string, dir direction, get func(*T) *float64) number[T, float64] {
	f := amount(name, dir, get)
	f.parse = func(s string) (float64, bool) {
		v, ok := parseAmount(s)
		return v, ok && v <= 1
	}
	f.want = "a share from 0 to 1"
	return f
}

func amount[T any](name string, dir direction, get func(*T) *float64) number[T, float64] {
	return number[T, float64]{
		name: name, dir: dir, get: get, parse: parseAmount,
		show: func(v float64) any { return v },
		want: "a number of at least 0",
	}
}

func parseAmount(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && v >= 0 && v <= 1e12
}

func span[T any](name string, dir direction, get func(*T) *time.Duration) number[T, time.Duration] {
	return number[T, time.Duration]{
		name: name, dir: dir, get: get, parse: parseSpan,
		show: func(d time.Duration) any { return plain(spanText(d)) },
		want: "a duration with units such as 90s, 30m, 24h or 14d",
	}
}

// list is a list of texts, each checked.
func list[T any](name string, dir direction, get func(*T) *[]string, check func(string) string) field[T] {
	return field[T]{
		name: name, dir: dir,
		read: func(_ *reader, into *T, n strictyaml.Node, path string) error {
			items, ok := n.Items()
			if !ok {
				return wants(n, path, "a list")
			}
			out := make([]string, 0, len(items))
			for _, item := range items {
				s, err := readText(item, "an entry of "+path, check)
				if err != nil {
					return err
				}
				if dir != fixed && slices.Contains(out, s) {
					return item.Errorf("%s has %s twice", path, s)
				}
				out = append(out, s)
			}
			*get(into) = out
			return nil
		},
		show: func(v *T) any { return listShown(*get(v)) },
		loosens: func(l *loosened, path string, a, b *T) {
			if x, y := *get(a), *get(b); listLoosened(dir, x, y) {
				l.add(path, listShown(x), listShown(y))
			}
		},
	}
}

// listShown leaves a list out that was never set.
func listShown[S ~string](v []S) any {
	if v == nil {
		return nil
	}
	out := make([]any, len(v))
	for i, s := range v {
		out[i] = string(s)
	}
	return out
}

func listLoosened[S ~string](dir direction, a, b []S) bool {
	switch dir {
	case free:
		return false
	case grow:
		return slices.ContainsFunc(a, func(s S) bool { return !slices.Contains(b, s) })
	case shrink:
		return slices.ContainsFunc(b, func(s S) bool { return !slices.Contains(a, s) })
	}
	return !slices.Equal(a, b)
}

// wordList is a list of known words.
func wordList[T any, W ~string](name string, dir direction, get func(*T) *[]W, known ...W) field[T] {
	return field[T]{
		name: name, dir: dir,
		read: func(_ *reader, into *T, n strictyaml.Node, path string) error {
			out, err := readWords(n, path, known)
			*get(into) = out
			return err
		},
		show: func(v *T) any { return listShown(*get(v)) },
		loosens: func(l *loosened, path string, a, b *T) {
			if x, y := *get(a), *get(b); listLoosened(dir, x, y) {
				l.add(path, listShown(x), listShown(y))
			}
		},
	}
}

func readWords[W ~string](n strictyaml.Node, path string, known []W) ([]W, error) {
	items, ok := n.Items()
	if !ok {
		return nil, wants(n, path, "a list")
	}
	out := make([]W, 0, len(items))
	for _, item := range items {
		w, err := readWord(item, "an entry of "+path, known)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, w) {
			return nil, item.Errorf("%s has %s twice", path, w)
		}
		out = append(out, w)
	}
	return out, nil
}

// object is a mapping with a shape of its own.
func object[T, U any](name string, s shape[U], get func(*T) *U) field[T] {
	return field[T]{
		name: name,
		read: func(r *reader, into *T, n strictyaml.Node, path string) error { return s.read(r, get(into), n, path) },
		show: func(v *T) any {
			if m := s.show(get(v)); len(m) > 0 {
				return m
			}
			return nil
		},
		loosens: func(l *loosened, path string, a, b *T) { s.loosens(l, path, get(a), get(b)) },
	}
}

// named is a mapping from free names to values that are read by one function. An
// entry is laid over the one of the same name that an earlier layer has.
type named[T any, K ~string, V any] struct {
	name    string
	dir     direction
	get     func(*T) *map[K]V
	key     func(string) string // what would be right; empty: it is
	read    func(r *reader, old V, n strictyaml.Node, path string) (V, error)
	show    func(V) any
	loosens func(l *loosened, path string, a, b V, had, has bool)
}

func (f named[T, K, V]) field() field[T] {
	return field[T]{
		name: f.name, dir: f.dir,
		read: func(r *reader, into *T, n strictyaml.Node, path string) error {
			pairs, err := n.Pairs(path)
			if err != nil {
				return err
			}
			m := f.get(into)
			if *m == nil {
				*m = map[K]V{}
			}
			for _, p := range pairs {
				at := join(path, p.Name)
				if want := f.key(p.Name); want != "" {
					return n.ErrorAt(p.Key, "%s is named %q, want %s", at, p.Name, want)
				}
				if p.Value.Empty() {
					continue
				}
				r.note(at, p.Value)
				v, err := f.read(r, (*m)[K(p.Name)], p.Value, at)
				if err != nil {
					return err
				}
				(*m)[K(p.Name)] = v
			}
			return nil
		},
		show: func(v *T) any {
			m := *f.get(v)
			if m == nil {
				return nil
			}
			out := mapping{}
			for _, k := range slices.Sorted(maps.Keys(m)) {
				out = append(out, entry{string(k), f.show(m[k])})
			}
			return out
		},
		loosens: func(l *loosened, path string, a, b *T) {
			x, y := *f.get(a), *f.get(b)
			all := maps.Clone(x)
			if all == nil {
				all = map[K]V{}
			}
			maps.Copy(all, y)
			for _, k := range slices.Sorted(maps.Keys(all)) {
				va, had := x[k]
				vb, has := y[k]
				f.loosens(l, join(path, string(k)), va, vb, had, has)
			}
		},
	}
}
