package json5

import (
	"fmt"
	"unicode/utf8"
)

// JSON returns v as compact JSON: keys in their order, numbers digit for digit,
// lone surrogates as \u escapes. NaN and ±Infinity, which JSON cannot say, give a
// *[SyntaxError] with their position.
func (v *Value) JSON() ([]byte, error) {
	return v.append(nil)
}

func (v *Value) append(b []byte) (_ []byte, err error) {
	switch v.Kind {
	case Null:
		return append(b, "null"...), nil
	case String:
		return appendString(b, v.Text), nil
	case Bool:
		return append(b, v.Text...), nil
	case Number:
		if !v.Finite() {
			return nil, &SyntaxError{int(v.Line), int(v.Column), fmt.Sprintf("JSON has no %s", v.Text)}
		}
		return append(b, v.Text...), nil
	case Array:
		b = append(b, '[')
		for i := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = v.Items[i].append(b); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	b = append(b, '{')
	for i := range v.Members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, v.Members[i].Key), ':')
		if b, err = v.Members[i].Value.append(b); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendString quotes s. It is not encoding/json's, which would replace the
// WTF-8 bytes of a lone surrogate by U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
			i++
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
			i++
		case c < utf8.RuneSelf:
			b = append(b, c)
			i++
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 { // only unicodeEscape makes these
				b = fmt.Appendf(b, `\u%04x`, rune(c&0xf)<<12|rune(s[i+1]&0x3f)<<6|rune(s[i+2]&0x3f))
				i += 3
				continue
			}
			b = append(b, s[i:i+size]...)
			i += size
		}
	}
	return append(b, '"')
}
