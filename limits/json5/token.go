package json5

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// space steps over white space and comments (JSON5 sections 7 and 8).
func (p *parser) space() error {
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		switch {
		case c == ' ' || '\t' <= c && c <= '\r':
			p.pos++
		case c == '/' && p.pos+1 < len(p.src) && p.src[p.pos+1] == '/':
			p.pos = p.lineEnd()
		case c == '/' && p.pos+1 < len(p.src) && p.src[p.pos+1] == '*':
			end := bytes.Index(p.src[p.pos+2:], []byte("*/"))
			if end < 0 {
				return p.errorf("the comment that begins here has no end")
			}
			p.pos += 2 + end + 2
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(p.src[p.pos:])
			if !unicode.Is(unicode.Zs, r) && r != '\ufeff' && r != '\u2028' && r != '\u2029' {
				return nil
			}
			p.pos += size
		default:
			return nil
		}
	}
	return nil
}

// lineEnd returns the offset of the line terminator after pos, or of the end.
func (p *parser) lineEnd() int {
	rest := p.src[p.pos:]
	end := len(rest)
	for _, terminator := range []string{"\n", "\r", "\u2028", "\u2029"} {
		if i := bytes.Index(rest[:end], []byte(terminator)); i >= 0 {
			end = i
		}
	}
	return p.pos + end
}

// identifier reads an ECMAScript 5.1 IdentifierName; \u escapes are allowed in it.
func (p *parser) identifier() (string, error) {
	var b strings.Builder
	for p.pos < len(p.src) {
		start := p.pos
		r, size := utf8.DecodeRune(p.src[p.pos:])
		if r == utf8.RuneError && size < 2 {
			break
		}
		p.pos += size
		if r == '\\' {
			if p.peek() != 'u' {
				return "", p.errorf("expected 'u' after '\\' in a key, found %s", p.here())
			}
			p.pos++
			var err error
			if r, err = p.hex(4); err != nil {
				return "", err
			}
		}
		if !identifierRune(r, b.Len() == 0) {
			p.pos = start
			break
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return "", p.errorf("expected a key, found %s", p.here())
	}
	return b.String(), nil
}

func identifierRune(r rune, first bool) bool {
	if r == '$' || r == '_' || unicode.In(r, unicode.L, unicode.Nl) {
		return true
	}
	return !first && (r == '\u200c' || r == '\u200d' || unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc))
}

// str reads a string in single or double quotes. A line may be continued with a
// backslash at its end.
func (p *parser) str() (string, error) {
	open := p.pos
	quote := p.src[p.pos]
	p.pos++
	var b []byte
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		switch {
		case c == quote:
			p.pos++
			return string(b), nil
		case c == '\n' || c == '\r':
			return "", p.errorf("a line break inside text; end the line with '\\' to continue it, or write \\n")
		case c == '\\':
			p.pos++
			var err error
			if b, err = p.escape(b); err != nil {
				return "", err
			}
		case c < utf8.RuneSelf:
			b = append(b, c)
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.src[p.pos:])
			if r == utf8.RuneError && size < 2 {
				return "", p.errorf("%s", p.here())
			}
			b = append(b, p.src[p.pos:p.pos+size]...)
			p.pos += size
		}
	}
	p.pos = open
	return "", p.errorf("the text that begins here has no closing %c", quote)
}

// escape appends what the escape sequence after a backslash stands for.
func (p *parser) escape(b []byte) ([]byte, error) {
	if p.pos >= len(p.src) {
		return nil, p.errorf("the text ends inside an escape")
	}
	r, size := utf8.DecodeRune(p.src[p.pos:])
	if r == utf8.RuneError && size < 2 {
		return nil, p.errorf("%s", p.here())
	}
	switch {
	case r == 'x':
		p.pos++
		r, err := p.hex(2)
		return utf8.AppendRune(b, r), err
	case r == 'u':
		p.pos++
		return p.unicodeEscape(b)
	case r == '\r' && bytes.HasPrefix(p.src[p.pos:], []byte("\r\n")):
		p.pos += 2
		return b, nil
	case r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029':
		p.pos += size
		return b, nil
	case r == '0' && (p.pos+1 >= len(p.src) || p.src[p.pos+1] < '0' || p.src[p.pos+1] > '9'):
		p.pos++
		return append(b, 0), nil
	case '0' <= r && r <= '9':
		return nil, p.errorf("a backslash before a digit has no meaning in JSON5; write \\x%02x or the digit alone", r)
	}
	if i := strings.IndexRune("bfnrtv", r); i >= 0 {
		p.pos++
		return append(b, "\b\f\n\r\t\v"[i]), nil
	}
	b = append(b, p.src[p.pos:p.pos+size]...)
	p.pos += size
	return b, nil
}

// unicodeEscape appends the character of \uXXXX, or of two that are a surrogate
// pair. A lone surrogate is appended as WTF-8: JSON can say it, UTF-8 cannot.
func (p *parser) unicodeEscape(b []byte) ([]byte, error) {
	r, err := p.hex(4)
	if err != nil {
		return nil, err
	}
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(b, r), nil
	}
	if after := p.pos; bytes.HasPrefix(p.src[p.pos:], []byte(`\u`)) {
		p.pos += 2
		low, err := p.hex(4)
		if err != nil {
			return nil, err
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return utf8.AppendRune(b, pair), nil
		}
		p.pos = after
	}
	return append(b, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f), nil
}

func (p *parser) hex(digits int) (rune, error) {
	var r rune
	for range digits {
		d, ok := hexDigit(p.peek())
		if !ok {
			return 0, p.errorf("expected %d hexadecimal digits, found %s", digits, p.here())
		}
		r = r<<4 | rune(d)
		p.pos++
	}
	return r, nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
