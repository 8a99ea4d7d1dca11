package source

import (
	"go/scanner"
	"go/token"
	"sort"

	"github.com/proveto/proveto/internal/evidence"
)

// tok is one token that counts: comments are gone, and so are the semicolons
// and commas that only a layout needs.
type tok struct {
	off int
	tok token.Token
	lit string
}

// text is how the token enters a digest.
func (t tok) text() string {
	if t.tok == token.SEMICOLON {
		return ";" // written or inserted at the end of a line
	}
	if t.lit != "" {
		return t.lit
	}
	return t.tok.String()
}

// tokens scans a file. Errors are the parser's business and ignored here: what
// cannot be scanned is an ILLEGAL token, which counts like any other.
func tokens(src []byte) []tok {
	fset := token.NewFileSet()
	f := fset.AddFile("", fset.Base(), len(src))
	var s scanner.Scanner
	s.Init(f, src, func(token.Position, string) {}, 0)
	var out []tok
	for {
		pos, t, lit := s.Scan()
		if t == token.EOF {
			return out
		}
		if n := len(out); n > 0 && closes(out[n-1].tok, t) {
			out = out[:n-1]
		}
		out = append(out, tok{f.Offset(pos), t, lit})
	}
}

// closes tells whether prev is optional before next: "f(a,\n)" is "f(a)", and
// "{ return; }" is "{ return }". A comma before "]" stays: "[P *T,]" declares a
// type parameter where "[P *T]" is an array.
func closes(prev, next token.Token) bool {
	switch next {
	case token.RBRACE:
		return prev == token.COMMA || prev == token.SEMICOLON
	case token.RPAREN:
		return prev == token.COMMA || prev == token.SEMICOLON
	}
	return false
}

// tokenDigest is the digest of the tokens in the bytes [start, end) and of what
// else belongs to the declaration.
func tokenDigest(toks []tok, start, end int, more ...string) evidence.Digest {
	i := sort.Search(len(toks), func(i int) bool { return toks[i].off >= start })
	parts := append([]string{"tokens/v1"}, more...)
	last := len(parts)
	for ; i < len(toks) && toks[i].off < end; i++ {
		parts = append(parts, toks[i].text())
	}
	// The end of the last line of a declaration may fall inside the range.
	for len(parts) > last && parts[len(parts)-1] == ";" {
		parts = parts[:len(parts)-1]
	}
	return evidence.DigestParts(parts...)
}
