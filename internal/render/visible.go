package render

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible shows control, bidirectional and other invisible characters as escapes
// (\x1b, \u202e), and bytes that are not UTF-8 as \xNN. Tabs and line feeds stay.
func Visible(s string) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || hidden(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	return b.String()
}

// Line is [Visible] for text that must stay on one line: line feeds and tabs
// become escapes too.
func Line(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Visible(s))
}

// hidden says which characters a reader cannot see or that reorder others:
// controls, format characters (bidi marks and overrides, zero width, tags),
// line and paragraph separators.
func hidden(r rune) bool {
	if r == '\t' || r == '\n' || r >= ' ' && r < 0x7f {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// visible is a deep copy of a view with [Visible] on every string, so that no
// template can forget one.
func visible[T any](v T) T { return deepCopy(v, Visible, false) }

// noNulls is a deep copy of a view in which lists and maps are empty, not nil.
func noNulls[T any](v T) T { return deepCopy(v, func(s string) string { return s }, true) }

func deepCopy[T any](v T, textFunc func(string) string, fill bool) T {
	var out T
	copier{textFunc, fill}.copy(reflect.ValueOf(&out).Elem(), reflect.ValueOf(&v).Elem())
	return out
}

type copier struct {
	textFunc func(string) string
	fill     bool
}

func (c copier) copy(dst, src reflect.Value) {
	switch src.Kind() {
	case reflect.String:
		dst.SetString(c.textFunc(src.String()))
	case reflect.Pointer:
		if !src.IsNil() {
			dst.Set(reflect.New(src.Type().Elem()))
			c.copy(dst.Elem(), src.Elem())
		}
	case reflect.Interface:
		if !src.IsNil() {
			v := reflect.New(src.Elem().Type()).Elem()
			c.copy(v, src.Elem())
			dst.Set(v)
		}
	case reflect.Slice:
		if src.Type().Elem().Kind() == reflect.Uint8 || src.IsNil() && !c.fill {
			dst.Set(src)
			return
		}
		dst.Set(reflect.MakeSlice(src.Type(), src.Len(), src.Len()))
		for i := range src.Len() {
			c.copy(dst.Index(i), src.Index(i))
		}
	case reflect.Map:
		if src.IsNil() && !c.fill {
			return
		}
		dst.Set(reflect.MakeMapWithSize(src.Type(), src.Len()))
		for it := src.MapRange(); it.Next(); {
			k, v := reflect.New(src.Type().Key()).Elem(), reflect.New(src.Type().Elem()).Elem()
			c.copy(k, it.Key())
			c.copy(v, it.Value())
			dst.SetMapIndex(k, v)
		}
	case reflect.Struct:
		dst.Set(src)
		for i := range src.NumField() {
			if src.Type().Field(i).IsExported() {
				c.copy(dst.Field(i), src.Field(i))
			}
		}
	default:
		dst.Set(src)
	}
}
