package cell

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// excerptWidth is how much of a long line an excerpt shows, in code points.
const excerptWidth = 100

// syntaxError is an error of the parser's at an offset in what the model wrote.
func syntaxError(code, message, source string, at int) *Error {
	return errorAt(code, "SyntaxError: "+message, source, at)
}

// errorAt puts position and excerpt behind a message.
func errorAt(code, message, source string, at int) *Error {
	m := newPositions("", source, nil, nil)
	at = min(at, len(source))
	line, column := m.at(at)
	return &Error{
		Code: code, Line: line, Column: column,
		Message: fmt.Sprintf("%s (%d:%d)\n%s", clip(message, maxMessage), line, column, excerpt(source, line, column)),
	}
}

// excerpt shows a line of source, and a caret under a column (SPEC 4.4):
//
//	2 | const x = ;
//	  |           ^
func excerpt(source string, line, column int) string {
	rest := source
	text, ok := "", true
	for n := 0; n < line && ok; n++ {
		text, rest, ok = cutLine(rest)
	}
	runes := []rune(strings.TrimPrefix(text, "\ufeff"))
	column -= utf8.RuneCountInString(text) - len(runes) + 1 // an index into runes now
	column = max(0, min(column, len(runes)))
	dots := ""
	if start := column - excerptWidth*3/4; start > 0 && len(runes) > excerptWidth {
		start = min(start, len(runes)-excerptWidth)
		runes, column, dots = runes[start:], column-start, "…"
	}
	tail := ""
	if len(runes) > excerptWidth {
		runes, tail = runes[:excerptWidth], "…"
	}
	pad := []rune(strings.Repeat(" ", utf8.RuneCountInString(dots)))
	for i, r := range runes {
		switch {
		case r == '\t' && i < column:
			pad = append(pad, '\t') // the caret moves as the text does
		case i < column:
			pad = append(pad, ' ')
		}
		if r != '\t' && !unicode.IsPrint(r) {
			runes[i] = ' ' // U+2028, NUL: nothing that breaks the picture
		}
	}
	gutter := fmt.Sprintf("%3d | ", line)
	return gutter + dots + string(runes) + tail + "\n" + strings.Repeat(" ", len(gutter)-2) + "| " + string(pad) + "^"
}

// clip bounds a text from the guest at n bytes, at a character boundary, and says what it left out.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := n
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes more)", s[:cut], len(s)-cut)
}
