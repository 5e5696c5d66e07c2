package words

import (
	"strings"
	"unicode"
)

// Reserved are the words that cannot be the name of a variable, in sloppy code, strict code or
// modules (ECMA-262 section 12.7.2), or that mean something else inside of a function.
var Reserved = set(`
	arguments await break case catch class const continue debugger default delete do else enum eval export extends
	false finally for function if implements import in instanceof interface let new null package private protected
	public return static super switch this throw true try typeof var void while with yield`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// Identifier turns a name into a JavaScript identifier: a character that cannot stand there
// becomes `_`, and what cannot come first gets `_` in front. Letters of all scripts stay, and
// so do reserved words. The result is empty only for an empty name.
func Identifier(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case i == 0 && !IdentifierStart(r) && IdentifierPart(r):
			b.WriteByte('_')
			b.WriteRune(r)
		case IdentifierPart(r):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// IdentifierStart tells whether a character can begin an identifier: ECMAScript's
// IdentifierStartChar (ECMA-262 section 12.7; Unicode's ID_Start).
func IdentifierStart(r rune) bool {
	if r < 0x80 { // the tables are slow, and most names are ASCII
		return 'a' <= r|0x20 && r|0x20 <= 'z' || r == '$' || r == '_'
	}
	return unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start) && !patternSyntax(r)
}

// IdentifierPart tells whether a character can stand in an identifier: IdentifierPartChar
// (Unicode's ID_Continue).
func IdentifierPart(r rune) bool {
	if r < 0x80 {
		return IdentifierStart(r) || '0' <= r && r <= '9'
	}
	return IdentifierStart(r) || r == '\u200c' || r == '\u200d' ||
		unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue) && !patternSyntax(r)
}

// patternSyntax are the characters that Unicode takes out of ID_Start and
// ID_Continue again (UAX #31).
func patternSyntax(r rune) bool {
	return unicode.In(r, unicode.Pattern_Syntax, unicode.Pattern_White_Space)
}
