package json5

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxDepth is how deep a document may nest. The parser recurses, and a Go
	// stack that overflows ends the process.
	MaxDepth = 1000

	// MaxValues is how many values a document may hold. A value takes about 100
	// bytes of memory and as little as two of text.
	MaxValues = 2_000_000
)

// Parse reads one JSON5 document. Anything that is not JSON5, a key given twice,
// nesting past [MaxDepth], more than [MaxValues] values, and text that is not
// UTF-8 give a *[SyntaxError]. An empty document is not JSON5.
func Parse(src []byte) (*Value, error) {
	p := &parser{src: bytes.TrimPrefix(src, []byte("\ufeff"))}
	v, err := p.document()
	if err != nil {
		return nil, err
	}
	return v, nil
}

// parser walks src once. Positions are counted only when they are needed for an
// error or a value: lineStart and line move forward in advanceLine.
type parser struct {
	src       []byte
	pos       int
	values    int
	line      int // index from 0 of the line that pos was last seen in
	lineStart int // offset of its first byte
	counted   int // everything before this offset has been looked at for line ends
}

func (p *parser) document() (*Value, error) {
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.pos == len(p.src) {
		return nil, p.errorf("the document is empty; expected a value")
	}
	v, err := p.value(1)
	if err != nil {
		return nil, err
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.pos < len(p.src) {
		return nil, p.errorf("unexpected %s after the document", p.here())
	}
	return &v, nil
}

func (p *parser) value(depth int) (v Value, err error) {
	if depth > MaxDepth {
		return v, p.errorf("nested deeper than %d levels", MaxDepth)
	}
	if p.values++; p.values > MaxValues {
		return v, p.errorf("more than %d values", MaxValues)
	}
	v.Line, v.Column = p.position()
	switch c := p.peek(); {
	case c == '{':
		v.Kind = Object
		v.Members, err = p.object(depth)
	case c == '[':
		v.Kind = Array
		v.Items, err = p.array(depth)
	case c == '"' || c == '\'':
		v.Kind = String
		v.Text, err = p.str()
	case c == '-' || c == '+' || c == '.' || '0' <= c && c <= '9':
		v.Kind = Number
		v.Text, err = p.number()
	default:
		v.Kind, v.Text, err = p.word()
	}
	return v, err
}

func (p *parser) object(depth int) ([]Member, error) {
	p.pos++ // {
	var members []Member
	seen := map[string]int32{}
	for {
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.peek() == '}' {
			p.pos++
			return members, nil
		}
		var m Member
		m.Line, m.Column = p.position()
		var err error
		if m.Key, err = p.key(); err != nil {
			return nil, err
		}
		if line, ok := seen[m.Key]; ok {
			return nil, &SyntaxError{int(m.Line), int(m.Column), fmt.Sprintf("the key %q was given before, on line %d", m.Key, line)}
		}
		seen[m.Key] = m.Line
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.peek() != ':' {
			return nil, p.errorf("expected ':' after the key %q, found %s", m.Key, p.here())
		}
		p.pos++
		if err := p.space(); err != nil {
			return nil, err
		}
		if m.Value, err = p.value(depth + 1); err != nil {
			return nil, err
		}
		members = append(members, m)
		if err := p.separator('}'); err != nil {
			return nil, err
		}
	}
}

func (p *parser) array(depth int) ([]Value, error) {
	p.pos++ // [
	items := []Value{}
	for {
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.peek() == ']' {
			p.pos++
			return items, nil
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
		if err := p.separator(']'); err != nil {
			return nil, err
		}
	}
}

// separator steps over the comma after an element; it leaves the closing bracket
// for the caller, who accepts it after a comma too.
func (p *parser) separator(closing byte) error {
	if err := p.space(); err != nil {
		return err
	}
	switch p.peek() {
	case ',':
		p.pos++
		return nil
	case closing:
		return nil
	}
	return p.errorf("expected ',' or '%c', found %s", closing, p.here())
}

func (p *parser) key() (string, error) {
	if c := p.peek(); c == '"' || c == '\'' {
		return p.str()
	}
	return p.identifier()
}

// word reads a value that is spelled out: null, true, false, NaN, Infinity.
func (p *parser) word() (Kind, string, error) {
	start := p.pos
	id, err := p.identifier()
	if err == nil {
		switch id {
		case "null":
			return Null, "", nil
		case "true", "false":
			return Bool, id, nil
		case "NaN", "Infinity":
			return Number, id, nil
		}
		p.pos = start
		return 0, "", p.errorf("%q is no value; text needs quotes", clip(id))
	}
	p.pos = start
	return 0, "", p.errorf("expected a value, found %s", p.here())
}

// peek returns the byte at pos, 0 at the end. No token starts with NUL, so the
// two need not be told apart.
func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

// here names what stands at pos, for messages.
func (p *parser) here() string {
	if p.pos >= len(p.src) {
		return "the end of the text"
	}
	r, size := utf8.DecodeRune(p.src[p.pos:])
	if r == utf8.RuneError && size < 2 {
		return fmt.Sprintf("the byte 0x%02x, which is not UTF-8", p.src[p.pos])
	}
	return fmt.Sprintf("%q", r)
}

// position returns where pos is. Callers ask in ascending order; only an error
// at an earlier place starts over.
func (p *parser) position() (line, column int32) {
	if p.pos < p.counted {
		p.line, p.lineStart, p.counted = 0, 0, 0
	}
	for i := p.counted; i < p.pos; i++ {
		if p.src[i] == '\n' || p.src[i] == '\r' && (i+1 >= len(p.src) || p.src[i+1] != '\n') {
			p.line++
			p.lineStart = i + 1
		}
	}
	p.counted = p.pos
	// A line may be as long as the document (generated files), so columns past
	// 4,096 bytes are counted in bytes: exact columns would make parsing quadratic.
	if p.pos-p.lineStart > 4096 {
		return int32(p.line + 1), int32(p.pos - p.lineStart + 1)
	}
	return int32(p.line + 1), int32(utf8.RuneCount(p.src[p.lineStart:p.pos]) + 1)
}

func (p *parser) errorf(format string, args ...any) error {
	line, column := p.position()
	return &SyntaxError{int(line), int(column), fmt.Sprintf(format, args...)}
}

// clip shortens what a message quotes.
func clip(s string) string {
	if len(s) <= 40 {
		return s
	}
	return strings.ToValidUTF8(s[:40], "") + "…"
}
