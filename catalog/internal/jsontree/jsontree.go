// Package jsontree reads JSON text that is not trusted into a tree of places in
// that text.
//
//	root, err := jsontree.Parse(data, jsontree.Limits{Depth: 1000, Values: 1e5, Work: 1e6})
//	root.Members[0].Value.Raw // the bytes as they came: 9007199254740993, "\ud800"
//	v := root.Any()           // as encoding/json would decode it, with json.Number
//
// It is stricter than encoding/json where two readers of the same bytes could
// disagree: a key that is given twice and text that is not UTF-8 are errors. It
// bounds depth, number of values and the size of numbers before anything is
// allocated for them.
package jsontree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is the type of a [Node].
type Kind uint8

// The kinds of a node.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Node is one value, with the bytes that it was read from.
type Node struct {
	Kind    Kind
	Raw     []byte   // part of the parsed text, without space around it
	Members []Member // of an Object, in the order of the text
	Items   []Node   // of an Array
}

// Member is one key of an object.
type Member struct {
	Key    string // decoded
	RawKey []byte // with its quotes
	Value  Node
}

// Limits bound what Parse accepts. All must be set.
type Limits struct {
	Depth  int // nesting of arrays and objects
	Values int // values in total
	Work   int // sum over all values of the depth that they stand at
}

const (
	// A number that JavaScript wrote has at most 25 characters. Longer ones are
	// legal, but working with them exactly takes time that grows with the exponent.
	maxNumberBytes = 1024
	maxExponent    = 400
)

// Parse reads one JSON text. Errors say what is wrong and at which byte.
func Parse(text []byte, limits Limits) (*Node, error) {
	p := parser{text: text, limits: limits, keep: true}
	return p.root()
}

// Check finds what Parse would find wrong, in less than half of the time, and returns the kind
// of the value.
func Check(text []byte, limits Limits) (Kind, error) {
	p := parser{text: text, limits: limits}
	n, err := p.root()
	if err != nil {
		return 0, err
	}
	return n.Kind, nil
}

type parser struct {
	text         []byte
	pos          int
	values, work int
	limits       Limits
	keep         bool     // make the tree
	keys         []string // of the objects from the root to the one at hand
}

func (p *parser) root() (*Node, error) {
	if !utf8.Valid(p.text) {
		return nil, fmt.Errorf("the text is not UTF-8")
	}
	// The standard library's grammar check goes first; what follows relies on it.
	// It does not recurse, so depth is not its problem.
	if !json.Valid(p.text) {
		var v json.RawMessage
		return nil, fmt.Errorf("not JSON: %w", json.Unmarshal(p.text, &v))
	}
	n, err := p.value(1)
	if err != nil {
		return nil, err
	}
	return &n, nil
}

func (p *parser) value(depth int) (n Node, err error) {
	p.space()
	start := p.pos
	if p.values++; p.values > p.limits.Values {
		return n, fmt.Errorf("more than %d values", p.limits.Values)
	}
	if p.work += depth; p.work > p.limits.Work {
		return n, fmt.Errorf("too many values at too great a depth")
	}
	switch c := p.text[p.pos]; c {
	case '{', '[':
		if depth > p.limits.Depth {
			return n, fmt.Errorf("nested deeper than %d levels at byte %d", p.limits.Depth, start)
		}
		if c == '{' {
			n.Kind = Object
			n.Members, err = p.members(depth)
		} else {
			n.Kind = Array
			n.Items, err = p.items(depth)
		}
	case '"':
		n.Kind = String
		p.str()
	case 'n':
		p.pos += len("null")
	case 't':
		n.Kind = Bool
		p.pos += len("true")
	case 'f':
		n.Kind = Bool
		p.pos += len("false")
	default:
		n.Kind = Number
		err = p.number()
	}
	n.Raw = p.text[start:p.pos]
	return n, err
}

func (p *parser) members(depth int) ([]Member, error) {
	var members []Member
	var seen map[string]bool // once there are many
	first := len(p.keys)
	for p.next('}') {
		start := p.pos
		p.str()
		m := Member{RawKey: p.text[start:p.pos]}
		m.Key = unquote(m.RawKey)
		if twice(p.keys[first:], m.Key, &seen) {
			return nil, fmt.Errorf("the key %q is given twice in one object", m.Key)
		}
		p.keys = append(p.keys, m.Key)
		p.space()
		p.pos++ // :
		var err error
		if m.Value, err = p.value(depth + 1); err != nil {
			return nil, err
		}
		if p.keep {
			members = append(members, m)
		}
	}
	p.keys = p.keys[:first]
	return members, nil
}

// fewMembers is how many members are compared one by one: most objects have fewer, and a
// set costs more than comparing them.
const fewMembers = 16

// twice reports whether key is among keys, and puts it into seen once they are many.
func twice(keys []string, key string, seen *map[string]bool) bool {
	if len(keys) < fewMembers {
		return slices.Contains(keys, key)
	}
	if *seen == nil {
		*seen = make(map[string]bool, 2*fewMembers)
		for _, k := range keys {
			(*seen)[k] = true
		}
	}
	if (*seen)[key] {
		return true
	}
	(*seen)[key] = true
	return false
}

func (p *parser) items(depth int) ([]Node, error) {
	var items []Node
	for p.next(']') {
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.keep {
			items = append(items, item)
		}
	}
	return items, nil
}

// next steps over the opening bracket or a comma, and over the closing bracket,
// after which it reports false.
func (p *parser) next(closing byte) bool {
	p.space()
	if p.text[p.pos] == closing {
		p.pos++
		return false
	}
	p.pos++ // the opening bracket, or a comma
	p.space()
	if p.text[p.pos] == closing { // an empty array or object
		p.pos++
		return false
	}
	return true
}

func (p *parser) space() {
	for {
		switch p.text[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) str() {
	for p.pos++; p.text[p.pos] != '"'; p.pos++ {
		if p.text[p.pos] == '\\' {
			p.pos++
		}
	}
	p.pos++
}

func (p *parser) number() error {
	start := p.pos
	for p.pos < len(p.text) && strings.IndexByte("+-.eE0123456789", p.text[p.pos]) >= 0 {
		p.pos++
	}
	text := string(p.text[start:p.pos])
	if len(text) > maxNumberBytes {
		return fmt.Errorf("a number of %d characters, at most %d are possible", len(text), maxNumberBytes)
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if e, err := strconv.Atoi(text[i+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return fmt.Errorf("the number %.40s has an exponent beyond ±%d", text, maxExponent)
		}
	}
	return nil
}

// unquote decodes a JSON string. Lone surrogates become U+FFFD, as they do in
// encoding/json.
func unquote(raw []byte) string {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return string(inner) // cannot be: the text was checked
	}
	return s
}

// Text returns the decoded text of a String.
func (n *Node) Text() string {
	if n.Kind != String {
		return ""
	}
	return unquote(n.Raw)
}

// Get returns the member called key, or nil.
func (n *Node) Get(key string) *Node {
	for i := range n.Members {
		if n.Members[i].Key == key {
			return &n.Members[i].Value
		}
	}
	return nil
}

// Any returns the value as nil, bool, json.Number, string, []any or
// map[string]any.
func (n *Node) Any() any {
	switch n.Kind {
	case Bool:
		return n.Raw[0] == 't'
	case Number:
		return json.Number(n.Raw)
	case String:
		return unquote(n.Raw)
	case Array:
		items := make([]any, len(n.Items))
		for i := range n.Items {
			items[i] = n.Items[i].Any()
		}
		return items
	case Object:
		members := make(map[string]any, len(n.Members))
		for i := range n.Members {
			members[n.Members[i].Key] = n.Members[i].Value.Any()
		}
		return members
	}
	return nil
}

// Append adds the JSON of n to b. A node whose Raw is nil is written from its
// members or items, in their order; all others as they came.
func (n *Node) Append(b []byte) []byte {
	switch {
	case n.Raw != nil:
		return append(b, n.Raw...)
	case n.Kind == Array:
		b = append(b, '[')
		for i := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = n.Items[i].Append(b)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i := range n.Members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, n.Members[i].RawKey...)
		b = append(b, ':')
		b = n.Members[i].Value.Append(b)
	}
	return append(b, '}')
}
