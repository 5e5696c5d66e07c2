package json5

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// maxHexDigits bounds hexadecimal numbers. Turning them into decimal takes time
// that grows faster than their length; nobody writes more than 64 digits.
const maxHexDigits = 64

// number reads a number (JSON5 section 6) and returns it as a JSON literal, or
// as NaN, Infinity or -Infinity.
func (p *parser) number() (string, error) {
	sign := ""
	if c := p.peek(); c == '+' || c == '-' {
		p.pos++
		if c == '-' {
			sign = "-"
		}
	}
	text, err := p.magnitude()
	if err != nil {
		return "", err
	}
	if r, _ := utf8.DecodeRune(p.src[p.pos:]); p.pos < len(p.src) && (identifierRune(r, false) || r == '\\' || r == '.') {
		return "", p.errorf("unexpected %s in a number", p.here())
	}
	if text == "NaN" {
		return text, nil
	}
	return sign + text, nil
}

func (p *parser) magnitude() (string, error) {
	c := p.peek()
	switch {
	case c == 'I' || c == 'N':
		start := p.pos
		if id, err := p.identifier(); err == nil && (id == "Infinity" || id == "NaN") {
			return id, nil
		}
		p.pos = start
	case c == '0' && p.pos+1 < len(p.src) && p.src[p.pos+1]|0x20 == 'x':
		p.pos += 2
		return p.hexadecimal()
	case c == '.' || '0' <= c && c <= '9':
		return p.decimal()
	}
	return "", p.errorf("expected a number after the sign, found %s", p.here())
}

func (p *parser) hexadecimal() (string, error) {
	start := p.pos
	for {
		if _, ok := hexDigit(p.peek()); !ok {
			break
		}
		p.pos++
	}
	digits := string(p.src[start:p.pos])
	if digits == "" {
		return "", p.errorf("expected hexadecimal digits, found %s", p.here())
	}
	if len(digits) > maxHexDigits {
		return "", p.errorf("a hexadecimal number of more than %d digits", maxHexDigits)
	}
	n, _ := new(big.Int).SetString(digits, 16)
	return n.String(), nil
}

func (p *parser) decimal() (string, error) {
	var b strings.Builder
	whole := p.digits()
	if len(whole) > 1 && whole[0] == '0' {
		return "", p.errorf("a number with a leading 0; write it without")
	}
	b.WriteString(whole)
	fraction := ""
	if p.peek() == '.' {
		p.pos++
		fraction = p.digits()
		if whole == "" {
			if fraction == "" {
				return "", p.errorf("expected digits after '.', found %s", p.here())
			}
			b.WriteByte('0') // JSON has no .5
		}
		if fraction != "" { // and no 5.
			b.WriteString("." + fraction)
		}
	}
	if e := p.peek(); e|0x20 == 'e' {
		b.WriteByte(e)
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			b.WriteByte(c)
			p.pos++
		}
		exponent := p.digits()
		if exponent == "" {
			return "", p.errorf("expected digits in the exponent, found %s", p.here())
		}
		b.WriteString(exponent)
	}
	return b.String(), nil
}

func (p *parser) digits() string {
	start := p.pos
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		p.pos++
	}
	return string(p.src[start:p.pos])
}
