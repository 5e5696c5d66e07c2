package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/openclaw/codemode-supervisor/catalog/declare"
	"github.com/openclaw/codemode-supervisor/catalog/words"

	"github.com/klauspost/compress/zstd"
)

// Bounds of declarations, in bytes.
const (
	// maxServerFile is about how long the file of one server may be, and maxServerFiles the
	// files of all together: a model cannot read more, and each worker gets them. Beyond,
	// tools are declared in one line, and $api has the rest.
	maxServerFile  = 256 << 10
	maxServerFiles = 1 << 20

	maxToolFile = 128 << 10
	maxHeader   = 256 << 10

	maxHintInput  = 300 // of a search hit and a line of the quick index (one line of TypeScript)
	maxHintOutput = 850
)

// FileInfo is what API.list says of a declaration file (SPEC 7.4).
type FileInfo struct {
	Path        string `json:"path"`        // mcp/index.d.ts, mcp/<server>.d.ts, tools/<name>.d.ts
	Description string `json:"description"` // one line
	Bytes       int    `json:"bytes"`       // of its text
}

// File is a declaration file with its text: TypeScript.
type File struct {
	FileInfo
	Text string
}

// Surface is what a worker needs of a catalog: what the guest sees without asking, in the
// forms in which the worker passes it on. Long parts, and long texts of files, are zstd
// frames: each worker gets them, and few cells read them. Nothing of it may be changed.
type Surface struct {
	// List is ALL_TOOLS: a JSON array of compact entries.
	List []byte
	// Functions has a line `<name> <id>` for each convenience function, by name: the id is
	// a JSON string.
	Functions []byte
	// MCP has such a line for each path under MCP, by path.
	MCP []byte
	// Down has a line `<name> <reason>` for each server that failed to start, under the name
	// that it would have; the reason is a JSON string.
	Down []byte
	// Files are those of MCP servers, by path; none if there are no servers.
	Files []PackedFile
	// Largest is how many bytes the longest of the first three has when it is not packed.
	Largest int
}

// PackedFile is a File whose text may be packed.
type PackedFile struct {
	FileInfo
	Text []byte
}

// packFrom is from how many bytes on a text is packed.
const packFrom = 16 << 10

// pack gives a text as a zstd frame, if it is long.
func pack(text []byte) []byte {
	if len(text) < packFrom {
		return text
	}
	return encoder().EncodeAll(text, nil)
}

// encoder packs for all catalogs; EncodeAll may be called at any time.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("catalog: " + err.Error()) // the options are constants
	}
	return e
})

// Surface returns what a worker needs of the catalog.
func (c *Catalog) Surface() Surface { return c.surface }

func (c *Catalog) newSurface() Surface {
	var list bytes.Buffer
	list.WriteByte('[')
	for i, t := range c.native {
		if i > 0 {
			list.WriteByte(',')
		}
		list.Write(t.Compact())
	}
	list.WriteByte(']')
	functions, mcp := lines(c.native, (*Tool).Function), lines(c.mcp, (*Tool).Path)
	return Surface{
		List:      pack(list.Bytes()),
		Functions: pack(functions),
		MCP:       pack(mcp),
		Down:      pack(down(c.opts.Unavailable)),
		Files:     c.serverFiles(),
		Largest:   max(list.Len(), len(functions), len(mcp)),
	}
}

// down gives the names of servers that failed to start, each with the reason.
func down(servers []Unavailable) []byte {
	var b bytes.Buffer
	for _, s := range servers {
		fmt.Fprintf(&b, "%s %s\n", identifier(s.Name, "server"), encode(s.Reason))
	}
	return b.Bytes()
}

// maxReason bounds what is said of a server that failed to start, in bytes.
const maxReason = 500

// unavailable sorts servers that failed to start by name, and makes their texts lines that can
// be shown anywhere: reasons are often what a program wrote as it died.
func unavailable(servers []Unavailable) []Unavailable {
	clean := make([]Unavailable, len(servers))
	for i, s := range servers {
		clean[i] = Unavailable{Name: cut(oneLine(s.Name), MaxIDBytes), Reason: cut(oneLine(s.Reason), maxReason)}
	}
	slices.SortFunc(clean, func(a, b Unavailable) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Reason, b.Reason))
	})
	return clean
}

// oneLine takes out what breaks a line, drives a terminal or cannot be seen.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	return strings.Join(strings.Fields(text), " ")
}

// lines gives the names that tools have, each with its id.
func lines(tools []*Tool, name func(*Tool) string) []byte {
	named := slices.DeleteFunc(slices.Clone(tools), func(t *Tool) bool { return name(t) == "" })
	slices.SortFunc(named, func(a, b *Tool) int { return strings.Compare(name(a), name(b)) })
	var b bytes.Buffer
	for _, t := range named {
		b.WriteString(name(t))
		b.WriteByte(' ')
		b.Write(encode(t.ID))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// declare gives what the declarations of a server are made of.
func (s *server) declare() declare.Server {
	d := declare.Server{Identifier: s.identifier, Name: s.name}
	for _, t := range s.tools {
		d.Methods = append(d.Methods, t.method(strings.Split(t.path, ".")[1:]))
	}
	slices.SortFunc(d.Methods, func(a, b declare.Method) int { return slices.Compare(a.Path, b.Path) })
	return d
}

func (t *Tool) method(path []string) declare.Method {
	return declare.Method{Path: path, Name: t.Name, Description: t.Description, Input: t.Parameters, Output: t.OutputSchema, Kind: string(t.Operation)}
}

// serverFiles renders the files of MCP servers. What is left of the room for all is shared
// by those that come; they come by identifier.
func (c *Catalog) serverFiles() []PackedFile {
	if len(c.servers) == 0 && len(c.opts.Unavailable) == 0 {
		return nil
	}
	declared := make([]declare.Server, len(c.servers))
	for i, s := range c.servers {
		declared[i] = s.declare()
	}
	c.header = declare.Index(declared, c.opts.Unavailable)
	files := []PackedFile{packed("mcp/index.d.ts", indexDescription(len(c.servers), len(c.opts.Unavailable)), c.header)}
	room := maxServerFiles
	for i, s := range c.servers {
		text := declared[i].File(min(maxServerFile, max(room, 0)))
		room -= len(text)
		files = append(files, packed("mcp/"+s.identifier+".d.ts", fmt.Sprintf("MCP server %q: %s", cut(s.name, 80), count(len(s.tools), "function")), text))
	}
	slices.SortFunc(files[1:], func(a, b PackedFile) int { return strings.Compare(a.Path, b.Path) })
	return files
}

func packed(path, description, text string) PackedFile {
	return PackedFile{FileInfo{path, description, len(text)}, pack([]byte(text))}
}

func indexDescription(servers, unavailable int) string {
	text := "MCP servers: " + count(servers, "server")
	if unavailable > 0 {
		text += fmt.Sprintf(", %d unavailable", unavailable)
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// toolFiles are the names under which tools that no MCP server has can be read. They are
// made when they are first asked for.
type toolFiles struct {
	once   sync.Once
	byName map[string]*Tool
	infos  []FileInfo // by path; made by the first list

	listOnce sync.Once
}

func (c *Catalog) toolNames() map[string]*Tool {
	c.files.once.Do(func() {
		c.files.byName = make(map[string]*Tool, len(c.native))
		taken := identifiers{}
		for _, t := range c.native {
			if t.function != "" {
				c.files.byName[taken.take(t.function, nil)] = t
			}
		}
		for _, t := range c.native {
			if t.function == "" {
				c.files.byName[taken.take(ConvenienceName(t.ID), nil)] = t
			}
		}
	})
	return c.files.byName
}

func (t *Tool) declaration(fileName string) File {
	description := t.Description
	if i := strings.IndexByte(description, '\n'); i >= 0 {
		description = description[:i]
	}
	text := declare.ToolFile(t.ID, t.function, t.method(nil), maxToolFile)
	return File{FileInfo{"tools/" + fileName + ".d.ts", cut(strings.TrimSpace(description), 200), len(text)}, text}
}

// ToolFiles lists the declaration files of the tools that no MCP server has, by path. The slice
// must not be changed.
func (c *Catalog) ToolFiles() []FileInfo {
	c.files.listOnce.Do(func() {
		byName := c.toolNames()
		c.files.infos = make([]FileInfo, 0, len(byName))
		for name, t := range byName {
			c.files.infos = append(c.files.infos, t.declaration(name).FileInfo)
		}
		slices.SortFunc(c.files.infos, func(a, b FileInfo) int { return strings.Compare(a.Path, b.Path) })
	})
	return c.files.infos
}

// ToolFile returns one of them. In place of <name> in tools/<name>.d.ts an id or a unique
// name is understood, too. The error is a *[LookupError].
func (c *Catalog) ToolFile(path string) (File, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(path, "tools/"), ".d.ts")
	byName := c.toolNames()
	if t := byName[name]; t != nil {
		return t.declaration(name), nil
	}
	if t, err := c.Resolve(name); err == nil {
		for file, other := range byName {
			if other == t {
				return t.declaration(file), nil
			}
		}
	}
	suggest := func() []string {
		known := make([]words.Candidate, 0, len(byName))
		for name := range byName {
			known = append(known, words.Candidate{Name: name, Show: "tools/" + name + ".d.ts"})
		}
		return words.Nearest(name, maxSuggestions, known)
	}
	return File{}, &LookupError{
		Name: cut(strings.ToValidUTF8(path, "\ufffd"), 80), suggest: suggest,
		hint: `API.list("tools") lists the files`, denied: c.Denied(name),
	}
}

// APIServer is a server as $api describes it (SPEC 7.5).
type APIServer struct {
	Identifier string `json:"identifier"`
	Name       string `json:"name"`
	Functions  int    `json:"functions"`
	File       string `json:"file"`
}

// APITool is a function of a server as $api describes it.
type APITool struct {
	Method      string `json:"method"` // createIssue, resources.read
	Name        string `json:"name"`   // the tool's own
	Description string `json:"description"`
	Callable    string `json:"callable"`
}

// API answers MCP.<server>.$api(tool, {schema}), and MCP.$api() if server is empty (SPEC
// 7.5): the declarations of the server, or of one of its tools, as text; what they are of;
// and with schema the JSON schemas by method. tool is a method, or the tool's own name; empty
// means all. The error is a *[LookupError].
func (c *Catalog) API(serverName, tool string, schema bool) (json.RawMessage, error) {
	if serverName == "" {
		answer := struct {
			Servers     []APIServer   `json:"servers"`
			Unavailable []Unavailable `json:"unavailable,omitempty"`
			Header      string        `json:"header"`
		}{[]APIServer{}, c.opts.Unavailable, c.header}
		for _, s := range c.servers {
			answer.Servers = append(answer.Servers, s.describe())
		}
		return encode(answer), nil
	}
	i := slices.IndexFunc(c.servers, func(s *server) bool { return s.identifier == serverName })
	if i < 0 {
		return nil, &LookupError{Name: "MCP." + cut(strings.ToValidUTF8(serverName, "\ufffd"), 80), hint: "MCP.$api() lists the servers", denied: c.Denied("MCP." + serverName)}
	}
	s := c.servers[i]
	chosen := s.choose(tool)
	if len(chosen) == 0 {
		return nil, &LookupError{
			Name: "MCP." + serverName + "." + cut(strings.ToValidUTF8(tool, "\ufffd"), 80), suggest: func() []string { return c.suggestMCP(serverName + "." + tool) },
			hint: "MCP." + serverName + ".$api() lists its functions", denied: c.Denied("MCP." + serverName + "." + tool),
		}
	}
	answer := struct {
		Server  APIServer                             `json:"server"`
		Header  string                                `json:"header"`
		Tools   []APITool                             `json:"tools"`
		Schemas map[string]map[string]json.RawMessage `json:"schemas,omitempty"`
	}{Server: s.describe()}
	if schema {
		answer.Schemas = map[string]map[string]json.RawMessage{}
	}
	paths := map[string]bool{}
	for _, t := range chosen {
		_, method, _ := strings.Cut(t.path, ".")
		paths[method] = true
		answer.Tools = append(answer.Tools, APITool{method, t.Name, t.Description, t.Callable()})
		if schema {
			answer.Schemas[method] = t.schemas()
		}
	}
	answer.Header = s.declare().Header(maxHeader, func(m declare.Method) bool { return paths[strings.Join(m.Path, ".")] })
	return encode(answer), nil
}

func (t *Tool) schemas() map[string]json.RawMessage {
	schemas := map[string]json.RawMessage{"input": json.RawMessage("{}")}
	if len(t.Parameters) > 0 {
		schemas["input"] = t.Parameters
	}
	if len(t.OutputSchema) > 0 {
		schemas["output"] = t.OutputSchema
	}
	return schemas
}

func (s *server) describe() APIServer {
	return APIServer{s.identifier, s.name, len(s.tools), "mcp/" + s.identifier + ".d.ts"}
}

// choose gives the functions that a selector means: a method first, then tools' own names.
func (s *server) choose(selector string) []*Tool {
	if selector == "" {
		return s.tools
	}
	for _, t := range s.tools {
		if t.path == s.identifier+"."+selector {
			return []*Tool{t}
		}
	}
	var named []*Tool
	for _, t := range s.tools {
		if t.Name == selector {
			named = append(named, t)
		}
	}
	return named
}
