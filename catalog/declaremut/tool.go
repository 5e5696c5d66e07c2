package declare

import (
	"crypto/sha256"
	"encoding/hex"
)

// ToolFile renders tools/<name>.d.ts of a tool that is not an MCP tool. function is its
// name under `tools`; a tool without one ("") is declared as what tools.call does for its
// id. Files of different tools compile together. max is about how many bytes the file
// has: a type that is too long is shortened, and if that is not enough left out.
func ToolFile(id, function string, m Method, max int) string {
	m.Kind = "" // there are no such tools
	for _, nodes := range []int{maxNodes, smallNodes} {
		if text := toolFile(id, function, newDeclaration(&m, nodes)); len(text) <= max {
			return text
		}
	}
	return "// The types of this tool do not fit here: await tools.describe(" + comment(quote(id), 600) + ") has its schemas.\n" +
		toolFile(id, function, newDeclaration(&Method{Name: m.Name}, smallNodes))
}

func toolFile(id, function string, d *declaration) string {
	var p printer
	shown, head := function, function+"("
	switch {
	case function == "":
		shown, head = d.Name, "call(id: "+quote(id)+", "
	case function == "new" || function == "constructor" || !isIdentifier(function):
		head = quote(function) + "("
	}
	if len(d.aliases) > 0 {
		d.nameAliases(pascal(shown), "_"+sum(id), map[string]bool{})
		d.writeAliases(&p, 0)
	}
	p.str("interface Tools {\n")
	d.writeFunction(&p, shown, head, 2)
	p.str("}\ndeclare var tools: Tools;\n")
	return string(p.b)
}

// sum tells the types of a tool from those of others: all files share one namespace.
func sum(id string) string {
	h := sha256.Sum256([]byte(id))
	return hex.EncodeToString(h[:5])
}
