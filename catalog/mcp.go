package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/openclaw/codemode-supervisor/catalog/declare"
	"github.com/openclaw/codemode-supervisor/catalog/words"
)

// Unavailable is an MCP server that failed to start, and why.
type Unavailable = declare.Unavailable

// server is one MCP server with what it offers.
type server struct {
	identifier string
	name       string
	tools      []*Tool // by id
}

// What a server, and what a tool of a server, is never called (SPEC 7.1). The index has a
// file of its own beside those of the servers.
var (
	reservedServers = slices.Concat([]string{"index"}, objectMembers)
	reservedMethods = slices.Concat([]string{"resources", "prompts"}, objectMembers)
)

// identifier turns a name into camelCase: create_issue → createIssue, chrome-devtools →
// chromeDevtools. Words end at what is neither letter nor digit; letters of all scripts
// stay, and inside of a word their case. What cannot come first is left out; fallback
// is what a name without any letter becomes.
func identifier(name, fallback string) string {
	var b strings.Builder
	first, start := true, true // of the words, of a word
	for _, r := range name {
		switch {
		case !words.Letter(r) || !words.IdentifierPart(r) || r > 0xffff: // tsc knows no others as identifiers unless it is told to
			start = true
			continue
		case b.Len() == 0 && !words.IdentifierStart(r):
			continue
		case start && first:
			r = unicode.ToLower(r)
		case start:
			r = unicode.ToUpper(r)
		}
		first, start = false, false
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return fallback
	}
	return b.String()
}

// identifiers are those that are taken, each with the number that the next one who wants it
// tries first: ten thousand tools may have one name.
type identifiers map[string]int

// take returns name, or name with the first number from 2 that makes it one that is neither
// taken nor reserved: by the language or by the list. Without a list nothing is.
func (taken identifiers) take(name string, reserved []string) string {
	free, n := name, max(2, taken[name])
	for ; taken[free] > 0 || reserved != nil && words.Reserved[free] || slices.Contains(reserved, free); n++ {
		free = name + strconv.Itoa(n)
	}
	taken[free] = max(2, taken[free])
	taken[name] = max(n, taken[name])
	return free
}

// member is what the entry is called under its server, if nothing else wants the name.
func (e *Entry) member() string {
	if e.Operation != "" {
		return strings.ReplaceAll(string(e.Operation), "/", ".")
	}
	return identifier(e.Name, "tool")
}

// namer gives what MCP servers offer the names that it has under MCP. It is asked in the
// order of ids (SPEC 7.1).
type namer struct {
	taken   identifiers
	servers map[string]string      // own name → identifier
	methods map[string]identifiers // by own name of the server
}

func newNamer() *namer {
	return &namer{identifiers{}, map[string]string{}, map[string]identifiers{}}
}

// name returns the identifiers of the entry's server and of the entry under it. An operation
// that the server has already has none.
func (n *namer) name(e *Entry) (server, member string) {
	server, ok := n.servers[e.SourceName]
	if !ok {
		server = n.taken.take(identifier(e.SourceName, "server"), reservedServers)
		n.servers[e.SourceName], n.methods[e.SourceName] = server, identifiers{}
	}
	methods, member := n.methods[e.SourceName], e.member()
	switch {
	case e.Operation == "":
		return server, methods.take(member, reservedMethods)
	case methods[member] > 0:
		return server, ""
	}
	methods[member] = 2
	return server, member
}

// nameMCP gives servers and their tools the names that they have under MCP.
func (b *builder) nameMCP() {
	c, names := b.catalog, newNamer()
	servers := map[string]*server{}
	var kept []*Tool
	for _, t := range c.mcp {
		identifier, member := names.name(&t.Entry)
		s := servers[identifier]
		if s == nil {
			s = &server{identifier: identifier, name: t.SourceName}
			servers[identifier] = s
			c.servers = append(c.servers, s)
		}
		if member == "" {
			b.warnf(t.ID, "left out: server %q offers %s twice", t.SourceName, t.Operation)
			delete(c.byID, t.ID)
			continue
		}
		t.path = identifier + "." + member
		c.byPath[t.path] = t
		s.tools = append(s.tools, t)
		kept = append(kept, t)
	}
	c.mcp = kept
	c.sweep()
	slices.SortFunc(c.servers, func(a, b *server) int { return strings.Compare(a.identifier, b.identifier) })
}

// Path returns where a tool of an MCP server is under MCP: "github.createIssue",
// "github.resources.list". It is empty for all other tools.
func (t *Tool) Path() string { return t.path }

// ResolveMCP finds what MCP.<path> calls (SPEC 7.1). Only the paths that [Tool.Path]
// gives are known. The error is a *[LookupError].
func (c *Catalog) ResolveMCP(path string) (*Tool, error) {
	if t := c.byPath[path]; t != nil {
		return t, nil
	}
	return nil, &LookupError{
		Name: "MCP." + cut(strings.ToValidUTF8(path, "\ufffd"), 80), suggest: func() []string { return c.suggestMCP(path) },
		hint: "API.read(\"mcp/index.d.ts\") lists the servers", denied: c.Denied("MCP." + path),
	}
}

// Result gives what a tool of an MCP server returned the form that cells are promised (SPEC
// 7.3), as [MCPResult] does. What an operation returned loses its top-level _meta and
// must be an object. For all other tools the value is returned as it is.
func (t *Tool) Result(value json.RawMessage) (json.RawMessage, error) {
	switch {
	case t.Source != MCP:
		return value, nil
	case t.Operation == "":
		return MCPResult(value), nil
	}
	object := members(value)
	if object == nil {
		return nil, fmt.Errorf("MCP server %q answered %s with what is no object", t.SourceName, t.Operation)
	}
	delete(object, "_meta")
	return encode(object), nil
}

// members gives the members of a JSON object, or nil if the value is none.
func members(value json.RawMessage) map[string]json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) != nil {
		return nil
	}
	return object
}

// callResult is CallToolResult of MCP 2025-06-18 (server/tools), as cells see it.
type callResult struct {
	Content           json.RawMessage `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	IsError           bool            `json:"isError,omitempty"`
}

// block is a part of a result's content.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// MCPResult gives any JSON the form of an MCP tool's result. Of one that has it, content,
// structuredContent and isError stay, and _meta with all else goes; missing or wrong content
// is made of the rest. Any other value becomes text, and structured content if it is an
// object. The result of protocol 2024-10-07 is understood.
func MCPResult(value json.RawMessage) json.RawMessage {
	object := members(value)
	if old, ok := object["toolResult"]; ok && object["content"] == nil {
		value, object = old, members(old)
	}
	content, structured := object["content"], object["structuredContent"]
	if string(structured) == "null" {
		structured = nil
	}
	failed := string(object["isError"]) == "true"
	switch {
	case isContent(content):
	case failed && len(content) > 0, len(structured) > 0:
		text := content
		if len(text) == 0 {
			text = structured
		}
		content = textContent(text)
	case failed:
		content = json.RawMessage("[]")
	default:
		r := callResult{Content: textContent(value)}
		if object != nil {
			r.StructuredContent = value
		}
		return encode(r)
	}
	return encode(callResult{content, structured, failed})
}

// textContent is a value as content: a text as it is, all else as JSON.
func textContent(value json.RawMessage) json.RawMessage {
	text := string(value)
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return encode([]block{{"text", text}})
}

// MCPError is the result of a tool that failed, as MCP servers give it: to the cell it is a
// value, not an exception (SPEC 7.3).
func MCPError(text string) json.RawMessage {
	return encode(callResult{Content: encode([]block{{"text", text}}), IsError: true})
}

// isContent reports whether a value is a list of content blocks.
func isContent(value json.RawMessage) bool {
	var blocks []struct {
		Type string `json:"type"`
	}
	if len(value) == 0 || value[0] != '[' || json.Unmarshal(value, &blocks) != nil {
		return false
	}
	for _, b := range blocks {
		if b.Type == "" {
			return false
		}
	}
	return true
}
