package catalog

import (
	"slices"

	"github.com/openclaw/codemode-supervisor/catalog/words"
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

// ConvenienceName turns a tool's name into the JavaScript identifier that it is called by, if
// nothing else is: [words.Identifier] (SPEC 6.4). Words such as `delete` are returned as they
// are: a member may have them for a name.
func ConvenienceName(name string) string { return words.Identifier(name) }

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
