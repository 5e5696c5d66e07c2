package catalog

import (
	"slices"
	"strings"
	"unicode"
)

// reserved are the names that no convenience function may hide: what `tools`
// itself has, the members of Object.prototype, and `then`, which would make
// `await tools` call a tool (SPEC 6.4).
var reserved = slices.Concat([]string{"search", "describe", "call"}, objectMembers)

// objectMembers are names that mean something on every object: to await it or to convert it
// must call no tool.
var objectMembers = []string{
	"then", "toJSON", "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
	"__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
}

// ConvenienceName turns a tool's name into a JavaScript identifier: a character
// that cannot stand there becomes `_`, and what cannot come first gets `_` in
// front (SPEC 6.4). Letters of all scripts stay. Words such as `delete` are
// returned as they are: a member may have them for a name. The result is empty
// only for an empty name.
func ConvenienceName(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case i == 0 && !identifierStart(r) && identifierPart(r):
			b.WriteByte('_')
			b.WriteRune(r)
		case identifierPart(r):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// identifierStart and identifierPart are ECMAScript's IdentifierStartChar and
// IdentifierPartChar (ECMA-262 section 12.7; Unicode's ID_Start and ID_Continue).
func identifierStart(r rune) bool {
	return r == '$' || r == '_' || unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start) && !patternSyntax(r)
}

func identifierPart(r rune) bool {
	return identifierStart(r) || r == '\u200c' || r == '\u200d' ||
		unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue) && !patternSyntax(r)
}

// patternSyntax are the characters that Unicode takes out of ID_Start and
// ID_Continue again (UAX #31).
func patternSyntax(r rune) bool {
	return unicode.In(r, unicode.Pattern_Syntax, unicode.Pattern_White_Space)
}

// nameFunctions gives each tool its convenience function, where exactly one tool
// has a claim to the name.
func nameFunctions(tools []*Tool) {
	claims := make(map[string]int, len(tools))
	for _, t := range tools {
		t.function = ConvenienceName(t.Name)
		claims[t.function]++
	}
	for _, t := range tools {
		if claims[t.function] > 1 || slices.Contains(reserved, t.function) {
			t.function = ""
		}
	}
}

// Function returns the name of the tool's convenience function, tools.<name>, or
// "" if it has none: its name collides with another tool's or hides a member of
// `tools`, or it is an MCP tool (SPEC 6.4).
func (t *Tool) Function() string { return t.function }

// Callable returns the expression that calls the tool: `tools.web_search(…)`,
// `MCP.github.createIssue(…)`, or `tools.call("plugin:x:then", …)` where it has no
// convenience function.
func (t *Tool) Callable() string {
	switch {
	case t.function != "":
		return "tools." + t.function + "(…)"
	case t.Source == MCP:
		return "MCP." + t.Path() + "(…)"
	}
	return "tools.call(" + string(encode(t.ID)) + ", …)"
}
