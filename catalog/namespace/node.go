package namespace

import (
	"bytes"
	"encoding/json"
)

// node is one value of a scope, ready to be written.
type node struct {
	kind     kind
	scalar   []byte // the JSON of a scalar
	keys     []string
	children []node // of an object, in the order of keys; of an array
	marked   bool   // it is a marker or has one below it
}

type kind uint8

const (
	scalar kind = iota
	object
	array
	marker
)

// add appends a child.
func (n *node) add(child node) {
	n.children = append(n.children, child)
	n.marked = n.marked || child.marked
}

// appendNode adds the NODE of n to b (see [Scopes.JSON]). Where no marker is below, the
// plain JSON is shorter and is all that the guest has to parse.
func (n *node) appendNode(b []byte) []byte {
	switch {
	case n.kind == marker:
		return append(b, `{"t":true}`...)
	case !n.marked:
		return append(n.appendPlain(append(b, `{"v":`...)), '}')
	case n.kind == array:
		return append(n.appendChildren(append(b, `{"a":[`...), (*node).appendNode), "]}"...)
	}
	b = append(b, `{"o":[`...)
	for i := range n.children {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		b = append(b, quote(n.keys[i])...)
		b = append(b, ',')
		b = append(n.children[i].appendNode(b), ']')
	}
	return append(b, "]}"...)
}

// appendPlain adds n as ordinary JSON. There is no marker in it.
func (n *node) appendPlain(b []byte) []byte {
	switch n.kind {
	case array:
		return append(n.appendChildren(append(b, '['), (*node).appendPlain), ']')
	case object:
		b = append(b, '{')
		for i := range n.children {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, quote(n.keys[i])...)
			b = append(b, ':')
			b = n.children[i].appendPlain(b)
		}
		return append(b, '}')
	}
	return append(b, n.scalar...)
}

func (n *node) appendChildren(b []byte, one func(*node, []byte) []byte) []byte {
	for i := range n.children {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(&n.children[i], b)
	}
	return b
}

// quote returns s as a JSON string.
func quote(s string) []byte {
	b, err := encode(s)
	if err != nil {
		panic("namespace: " + err.Error()) // a string always encodes
	}
	return b
}

// encode is json.Marshal without its HTML escapes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
