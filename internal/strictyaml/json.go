package strictyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// ParseJSON reads a document that a program wrote as JSON. It gives what
// [Source.Parse] gives for the same text, in a tenth of the time, but knows no
// places in it.
func (s Source) ParseJSON(body []byte) (Node, error) {
	if !utf8.Valid(body) {
		return Node{}, s.bad("%s: the file is not valid UTF-8", s.Name)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	n, err := value(dec, 0)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something after the document")
		}
	}
	if err != nil {
		return Node{}, s.bad("%s: %s", s.Name, oneLine(err.Error()))
	}
	return Node{src: s, n: n, at: Place{Name: s.Name}}, nil
}

// value reads the next value, at a depth.
func value(dec *json.Decoder, depth int) (ast.Node, error) {
	if depth > maxDepth {
		return nil, errors.New("values lie too deep in each other")
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	base := &ast.BaseNode{}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return sequence(dec, depth)
		}
		return mapping(dec, depth)
	case string:
		return &ast.StringNode{BaseNode: base, Value: t}, nil
	case json.Number:
		return &ast.FloatNode{BaseNode: base, Token: &token.Token{Value: t.String()}}, nil
	case bool:
		text := map[bool]string{true: "true", false: "false"}[t]
		return &ast.BoolNode{BaseNode: base, Token: &token.Token{Value: text}, Value: t}, nil
	}
	return &ast.NullNode{BaseNode: base}, nil
}

func sequence(dec *json.Decoder, depth int) (ast.Node, error) {
	out := &ast.SequenceNode{BaseNode: &ast.BaseNode{}}
	for dec.More() {
		v, err := value(dec, depth+1)
		if err != nil {
			return nil, err
		}
		out.Values = append(out.Values, v)
	}
	_, err := dec.Token()
	return out, err
}

func mapping(dec *json.Decoder, depth int) (ast.Node, error) {
	out := &ast.MappingNode{BaseNode: &ast.BaseNode{}}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string) // a key always is one
		v, err := value(dec, depth+1)
		if err != nil {
			return nil, err
		}
		out.Values = append(out.Values, &ast.MappingValueNode{
			BaseNode: &ast.BaseNode{}, Key: &ast.StringNode{BaseNode: &ast.BaseNode{}, Value: name}, Value: v,
		})
	}
	_, err := dec.Token()
	return out, err
}
