package declare

import (
	"encoding/json"
	"strings"
)

// Method is one function of a declaration file.
type Method struct {
	Path        []string        // identifiers under the server: {"createIssue"}, {"resources", "read"}
	Name        string          // the tool's own name; said in the comment where it differs from the identifier
	Description string          // of the tool, any text
	Input       json.RawMessage // JSON Schema of the one argument; empty: any object
	Output      json.RawMessage // JSON Schema of structuredContent (MCP tools) or of the result (others); empty: unknown

	// Kind is empty for a tool. For what an MCP server offers besides tools it is
	// "resources/list", "resources/read", "prompts/list" or "prompts/get"; those
	// resolve to MCP's own types.
	Kind string
}

// Server is what a declaration file of an MCP server is made of.
type Server struct {
	Identifier string   // MCP.<Identifier>; letters of all scripts are possible
	Name       string   // the server's own name, any text
	Methods    []Method // in the order of the file
}

// resultTypes are MCP's own (specification 2025-06-18, "Tool Result").
const resultTypes = `  /** What every tool resolves to. isError: true is no exception. */
  type Result<T = unknown> = { content: Content[]; structuredContent?: T; isError?: boolean };
  type Content =
    | { type: "text"; text: string }
    | { type: "image" | "audio"; data: string /* base64 */; mimeType: string }
    | { type: "resource"; resource: { uri: string; mimeType?: string; text?: string; blob?: string } }
    | { type: "resource_link"; uri: string; name: string; title?: string; description?: string; mimeType?: string; size?: number };
`

// apiFunction is what $api of a server answers (SPEC 7.5).
const apiFunction = `  /** These declarations for one tool, or for all; with { schema: true } the JSON schemas, too. */
  function $api(tool?: string, options?: { schema?: boolean }): Promise<{
    server: { identifier: string; name: string; functions: number; file: string };
    header: string;
    tools: { method: string; name: string; description: string; callable: string }[];
    schemas?: Record<string, { input: unknown; output?: unknown }>;
  }>;
`

// operation is the type of something that MCP servers offer besides tools.
type operation struct{ input, output string }

var operations = map[string]operation{
	"resources/list": {
		"input?: { cursor?: string }",
		"{ resources: { uri: string; name: string; title?: string; description?: string; mimeType?: string; size?: number }[]; nextCursor?: string }",
	},
	"resources/read": {
		"input: { uri: string }",
		"{ contents: { uri: string; mimeType?: string; text?: string; blob?: string /* base64 */ }[] }",
	},
	"prompts/list": {
		"input?: { cursor?: string }",
		"{ prompts: { name: string; title?: string; description?: string; arguments?: { name: string; description?: string; required?: boolean }[] }[]; nextCursor?: string }",
	},
	"prompts/get": {
		"input: { name: string; arguments?: Record<string, string> }",
		`{ description?: string; messages: { role: "user" | "assistant"; content: Content }[] }`,
	},
}

// File renders mcp/<identifier>.d.ts, which needs no other file. max is about how many
// bytes it has. Functions that do not fit are declared all the same, on one line without
// their types, and a comment says where those are.
func (s Server) File(max int) string {
	return s.render(max, s.Methods, "their types: await MCP."+identifier(s.Identifier)+".$api(name)")
}

// Header renders the methods that match, in the form of a file. max is as for File; a
// type that is too long for it alone is shortened.
func (s Server) Header(max int, match func(Method) bool) string {
	var methods []Method
	for _, m := range s.Methods {
		if match(m) {
			methods = append(methods, m)
		}
	}
	return s.render(max, methods, "their types: await MCP."+identifier(s.Identifier)+".$api(name, { schema: true })")
}

func (s Server) render(max int, methods []Method, elsewhere string) string {
	f := file{names: set("Result Content Promise Record"), elsewhere: elsewhere}
	size := 2000
	for i := range methods {
		size += 400 + len(methods[i].Input) + len(methods[i].Output)
	}
	f.p.b = make([]byte, 0, min(size, 1<<20))
	f.p.str("/** MCP server ", comment(quote(cut(s.Name, 160)), 200), ": ", count(len(methods), len(s.Methods), "function"), ". */\n")
	f.p.str("declare namespace MCP.", identifier(s.Identifier), " {\n", resultTypes, apiFunction)
	root := group(methods)
	f.room = max - len(f.p.b) - len(elsewhere) - 8
	root.each(func(m *method) { f.room -= len(m.short()) + 2*len(m.Path) })
	f.namespace(root, 2)
	f.p.str("}\n")
	return string(f.p.b)
}

// file is a declaration file in the making.
type file struct {
	p         printer
	names     map[string]bool // of types that the file declares
	room      int             // bytes that are left besides the short forms
	elsewhere string          // where the types are that did not fit
	misses    int             // functions that did not fit
	said      bool
}

// method is a function at its place in a file.
type method struct {
	*Method
	name string
}

// space is a namespace with its functions and namespaces.
type space struct {
	name    string
	methods []*method
	spaces  []*space
}

// group puts methods into the namespaces that their paths name, in the order that they
// come.
func group(methods []Method) *space {
	root := &space{}
	byPath := map[string]*space{"": root}
	for i := range methods {
		m := &methods[i]
		path := m.Path
		if len(path) == 0 {
			path = []string{m.Name}
		}
		at, key := root, ""
		for _, word := range path[:len(path)-1] {
			word = identifier(word)
			key += "." + word
			if byPath[key] == nil {
				byPath[key] = &space{name: word}
				at.spaces = append(at.spaces, byPath[key])
			}
			at = byPath[key]
		}
		at.methods = append(at.methods, &method{m, identifier(path[len(path)-1])})
	}
	return root
}

func (s *space) each(do func(*method)) {
	for _, m := range s.methods {
		do(m)
	}
	for _, sub := range s.spaces {
		sub.each(do)
	}
}

// namespace writes what is in a namespace: functions with their types, those that did
// not fit, namespaces.
func (f *file) namespace(s *space, indent int) {
	var short []*method
	for _, m := range s.methods {
		if !f.function(m, indent) {
			short = append(short, m)
		}
	}
	margin := strings.Repeat(" ", indent)
	if len(short) > 0 && !f.said {
		f.said = true
		f.p.str(margin, "// Not all fit here; ", f.elsewhere, "\n")
	}
	for _, m := range short {
		f.p.str(margin, m.short(), "\n")
	}
	for _, sub := range s.spaces {
		f.p.str(margin, "namespace ", sub.name, " {\n")
		f.namespace(sub, indent+2)
		f.p.str(margin, "}\n")
	}
}

// short is a function without its types.
func (m *method) short() string {
	if op, ok := operations[m.Kind]; ok {
		return "function " + m.name + "(" + op.input + "): Promise<unknown>;"
	}
	return "function " + m.name + "(input?: Record<string, unknown>): Promise<Result>;"
}

// smallNodes is what is left of a type that has no room in full.
const smallNodes = 120

// maxMisses is how many functions may be too long for the room that is left. Those behind
// are not tried any more: to see that one does not fit it has to be rendered.
const maxMisses = 8

// function writes a function with its comment and types, if there is room.
func (f *file) function(m *method, indent int) bool {
	if f.misses == maxMisses {
		return false
	}
	start := len(f.p.b)
	for _, nodes := range []int{maxNodes, smallNodes} {
		d := newDeclaration(m.Method, nodes)
		d.mcp = true
		given := d.nameAliases(pascal(m.name), "", f.names)
		d.write(&f.p, m.name, "function "+m.name+"(", indent)
		size := len(f.p.b) - start
		if size <= f.room {
			f.room -= size
			return true
		}
		f.p.b = f.p.b[:start]
		for _, name := range given {
			delete(f.names, name)
		}
	}
	f.misses++
	return false
}
