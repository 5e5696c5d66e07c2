package declare

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog/words"
)

// comment makes text fit for one line of a comment, in at most max bytes or a little more:
// no line breaks, no control characters, none that are invisible or change the
// direction of the text, nothing that ends the comment.
func comment(text string, max int) string {
	if cleanLine(text) && len(text) <= max {
		return text
	}
	b := make([]byte, 0, min(len(text), max)+8)
	space := false
	for _, r := range text {
		switch {
		case ' ' < r && r <= '~': // most of most text; the tables are slow
		case unicode.IsSpace(r), unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			space = len(b) > 0
			continue
		case unicode.In(r, unicode.Cf), r == '\u034f', r == '\u115f', r == '\u1160', r == '\u3164', r == '\uffa0':
			continue // invisible
		}
		if space {
			b = append(b, ' ')
			space = false
		}
		if len(b) >= max {
			b = append(b, "…"...)
			break
		}
		b = breakUp(b, r)
		b = utf8.AppendRune(b, r)
	}
	return disarm(string(b))
}

// cleanLine is true for most text: a line without anything that needs a second look.
func cleanLine(text string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c < ' ' || c > '~' || c == '@' || c == '/' && i > 0 && text[i-1] == '*' || c == ' ' && (i == 0 || text[i-1] == ' ') {
			return false
		}
	}
	return !strings.HasSuffix(text, " ")
}

// breakUp puts a space in front of r where it would end the comment, or make a tag at the
// beginning of a line.
func breakUp(b []byte, r rune) []byte {
	if n := len(b); n > 0 && (b[n-1] == '*' && r == '/' || n == 1 && b[0] == '@') {
		return append(b, ' ')
	}
	return b
}

// disarm takes their meaning from the tags that the compiler looks for anywhere in a
// comment: @ts-ignore and its like, @jsx and its like.
func disarm(text string) string {
	for i := 0; i+4 <= len(text); i++ {
		if text[i] == '@' && (strings.EqualFold(text[i+1:i+4], "ts-") || strings.EqualFold(text[i+1:i+4], "jsx")) {
			return text[:i+1] + " " + disarm(text[i+1:])
		}
	}
	return text
}

// lines splits a description into lines fit for a comment: at most maxLines, about
// maxText bytes together.
func lines(text string) []string {
	const (
		maxLines = 12
		maxText  = 600
		maxInput = 64 << 10
	)
	text = cut(text, maxInput)
	var list []string
	room := maxText
	for len(text) > 0 {
		i := strings.IndexFunc(text, isLineBreak)
		line := text
		if i >= 0 {
			_, size := utf8.DecodeRuneInString(text[i:])
			line, text = text[:i], text[i+size:]
		} else {
			text = ""
		}
		line = comment(line, room)
		if line == "" {
			continue
		}
		if len(list) == maxLines || room <= 0 {
			if last := &list[len(list)-1]; !strings.HasSuffix(*last, "…") {
				*last += " …"
			}
			break
		}
		list = append(list, line)
		room -= len(line)
	}
	return list
}

func isLineBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\v' || r == '\f' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// cut returns the beginning of s, at most max bytes, with "…" if that is not all.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}

// propertyName returns a key as it stands in a type.
func propertyName(key string, raw []byte) string {
	if isIdentifier(key) {
		return key
	}
	return stringLiteral(key, raw)
}

// isIdentifier reports whether s is an identifier of ASCII letters. Those of other
// letters are quoted, which is always right.
func isIdentifier(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// stringLiteral makes a TypeScript string of a JSON string, text when decoded.
func stringLiteral(text string, raw []byte) string {
	for _, c := range raw {
		if c < ' ' || c > '~' || c == '\\' {
			return quote(text)
		}
	}
	return string(raw)
}

// escape replaces characters that cannot be seen in a string literal.
func escape(s string) string {
	b := make([]byte, 0, len(s)+16)
	for _, r := range s {
		if unicode.IsPrint(r) {
			b = utf8.AppendRune(b, r)
		} else {
			b = appendEscape(b, r)
		}
	}
	return string(b)
}

func appendEscape(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	units := []rune{r}
	if r > 0xffff {
		r -= 0x10000
		units = []rune{0xd800 + r>>10, 0xdc00 + r&0x3ff}
	}
	for _, u := range units {
		b = append(b, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	return b
}

// quote makes a TypeScript string of any text.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""` // cannot be: any string can be encoded
	}
	return escape(strings.TrimSuffix(b.String(), "\n"))
}

// name shows the name of a server or tool in a comment, in quotes unless it is a plain
// word.
func name(s string) string {
	plain := s != "" && len(s) <= 80
	for i := 0; i < len(s) && plain; i++ {
		plain = isIdentifier(s[i:i+1]) || s[i] >= '0' && s[i] <= '9' || s[i] == '-' || s[i] == '.'
	}
	if plain {
		return s
	}
	return comment(quote(cut(s, 160)), 200)
}

// identifier returns s, or what can be made of it if it is no identifier or a reserved
// word. Callers give identifiers; this is for the day that one does not.
func identifier(s string) string {
	switch id := words.Identifier(s); {
	case id == "":
		return "_"
	case words.Reserved[id]:
		return id + "_"
	default:
		return id
	}
}

func set(text string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(text) {
		m[w] = true
	}
	return m
}
