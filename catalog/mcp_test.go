package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// SPEC 7.1: identifiers, by the rules of upstream and with the letters of all scripts.
func TestIdentifier(t *testing.T) {
	for name, want := range map[string]string{
		"create_issue": "createIssue", "chrome-devtools": "chromeDevtools", "GitHub": "gitHub", "get.user": "getUser", "get user": "getUser",
		"URL_fetch": "uRLFetch", "already": "already", "camelCase": "camelCase", "a__b--c": "aBC", "_x": "x", "9patch": "patch", "3d_render": "dRender",
		"$api": "api", "__proto__": "proto", "查询天气": "查询天气", "查询_天气": "查询天气", "straße_1": "straße1", "🚀": "tool", "🚀launch": "launch", "123": "tool",
		"": "tool", "---": "tool", "a\u0301b": "a\u0301b", "\u0301a": "a", "x·y": "xY", "a\u200db": "aB", "a\x00b": "aB",
	} {
		if got := identifier(name, "tool"); got != want {
			t.Errorf("identifier(%q) = %q, want %q", name, got, want)
		}
	}
}

// SPEC 7.1: collisions and reserved words, in the order of ids.
func TestMCPNames(t *testing.T) {
	tool := func(server, name string) Entry { return Entry{Name: name, Source: MCP, SourceName: server} }
	long := strings.Repeat("x", 300)
	entries := []Entry{
		tool("a-b", "run"), tool("a_b", "run"), tool("a_b", "RUN"),
		tool("s", "get-user"), tool("s", "get_user"), tool("s", "get.user"),
		tool("s", "then"), tool("s", "constructor"), tool("s", "__proto__"), tool("s", "toString"), tool("s", "toJSON"), tool("s", "delete"), tool("s", "$api"),
		tool("s", "resources"), tool("s", "prompts"), tool("s", "查询天气"), tool("s", "🚀"), tool("s", "🎉"), tool("s", long), tool("s", "delete2"),
		tool("then", "x"), tool("index", "x"), tool("delete", "x"), tool("🚀", "x"), tool("constructor", "x"),
		{Source: MCP, SourceName: "s", Operation: ResourcesList}, {Source: MCP, SourceName: "s", Operation: PromptsGet},
	}
	want := map[string]string{
		"mcp:a-b:run": "aB.run", "mcp:a_b:RUN": "aB2.rUN", "mcp:a_b:run": "aB2.run",
		"mcp:s:get-user": "s.getUser", "mcp:s:get.user": "s.getUser2", "mcp:s:get_user": "s.getUser3",
		"mcp:s:then": "s.then2", "mcp:s:constructor": "s.constructor2", "mcp:s:__proto__": "s.proto", "mcp:s:toString": "s.toString2", "mcp:s:toJSON": "s.toJSON2",
		"mcp:s:delete": "s.delete2", "mcp:s:delete2": "s.delete22", "mcp:s:$api": "s.api",
		"mcp:s:resources": "s.resources2", "mcp:s:prompts": "s.prompts2", "mcp:s:查询天气": "s.查询天气", "mcp:s:🎉": "s.tool", "mcp:s:🚀": "s.tool2", "mcp:s:" + long: "s." + long,
		"mcp:then:x": "then2.x", "mcp:index:x": "index2.x", "mcp:delete:x": "delete2.x", "mcp:🚀:x": "server.x", "mcp:constructor:x": "constructor2.x",
		"mcp:s:resources/list": "s.resources.list", "mcp:s:prompts/get": "s.prompts.get",
	}
	for range 5 {
		c, warnings := build(t, entries...)
		got := map[string]string{}
		for _, tool := range c.MCP() {
			got[tool.ID] = tool.Path()
			if found, err := c.ResolveMCP(tool.Path()); err != nil || found != tool {
				t.Errorf("ResolveMCP(%q) = %v, %v", tool.Path(), found, err)
			}
			if c.Get(tool.ID) != tool {
				t.Errorf("%s is not reachable by its id", tool.ID)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(warnings) > 0 {
			t.Fatalf("%q (-want +got):\n%s", warnings, diff)
		}
		slices.Reverse(entries)
	}
}

// Ten thousand tools that all want one name cost no more than others.
func TestMCPNamesCollide(t *testing.T) {
	var entries []Entry
	for i := range 10_000 {
		entries = append(entries, Entry{ID: fmt.Sprintf("mcp:s:%05d", i), Name: strings.Repeat("🚀", 1+i%3), Source: MCP, SourceName: "s"})
	}
	c, _ := build(t, entries...)
	seen := map[string]bool{}
	for _, tool := range c.MCP() {
		seen[tool.Path()] = true
	}
	if len(seen) != len(entries) || !seen["s.tool"] || !seen["s.tool10000"] {
		t.Errorf("%d names", len(seen))
	}
}

// SPEC 6.2: the tool of one owner cannot have the id of another's.
func TestIDsOfOddOwners(t *testing.T) {
	c, warnings := build(t, Entry{Name: "c", Source: MCP, SourceName: "a:b"}, Entry{Name: "b:c", Source: MCP, SourceName: "a"}, Entry{Name: "c", Source: MCP, SourceName: "a%3Ab"})
	if diff := cmp.Diff([]string{"mcp:a%253Ab:c", "mcp:a%3Ab:c", "mcp:a:b:c"}, ids(c.MCP())); diff != "" || len(warnings) > 0 {
		t.Errorf("%q (-want +got):\n%s", warnings, diff)
	}
}

// SPEC 7.1, 4.4: wrong paths.
func TestResolveMCP(t *testing.T) {
	c, _ := build(t, Entry{Name: "create_issue", Source: MCP, SourceName: "github"}, Entry{Name: "close_issue", Source: MCP, SourceName: "gitlab"},
		Entry{Name: "web_search", Source: Client}, Entry{Source: MCP, SourceName: "github", Operation: ResourcesRead})
	for path, suggestions := range map[string][]string{
		"github.creatIssue": {"MCP.github.createIssue(…)"}, "gitlab.createIssue": {"MCP.github.createIssue(…)"}, "github.create_issue": {"MCP.github.createIssue(…)"},
		"": nil, "github": nil, "github.": nil, ".createIssue": {"MCP.github.createIssue(…)"}, "github.createIssue.x": {"MCP.github.createIssue(…)"},
		"client:app:web_search": nil, "mcp:github:create_issue": nil, "github.resources": {"MCP.github.resources.read(…)"}, "github.__proto__": nil, "zzz.qqq": nil,
	} {
		tool, err := c.ResolveMCP(path)
		var lookup *LookupError
		if !errors.As(err, &lookup) || tool != nil {
			t.Errorf("ResolveMCP(%q) = %v, %v", path, tool, err)
			continue
		}
		if len(suggestions) > 0 && !slices.Contains(lookup.Suggestions(), suggestions[0]) {
			t.Errorf("ResolveMCP(%q): %v, want %s", path, err, suggestions)
		}
	}
	if _, err := c.Resolve("mcp:github:create_issue"); err == nil || !strings.Contains(err.Error(), "MCP.github.createIssue(…)") {
		t.Errorf("an MCP tool in tools.call: %v", err)
	}
}

// SPEC 7.3: what a cell gets.
func TestMCPResult(t *testing.T) {
	for value, want := range map[string]string{
		`{"content":[{"type":"text","text":"a<b"}],"structuredContent":{"n":9007199254740993},"isError":false,"_meta":{"x":1},"more":2}`: `{"content":[{"type":"text","text":"a<b"}],"structuredContent":{"n":9007199254740993}}`,
		`{"content":[],"isError":true}`:                           `{"content":[],"isError":true}`,
		`{"content":[],"isError":"yes","structuredContent":null}`: `{"content":[]}`,
		`{"content":[1]}`:                                         `{"content":[{"type":"text","text":"{\"content\":[1]}"}],"structuredContent":{"content":[1]}}`,
		`{"structuredContent":{"a":1},"isError":true}`:            `{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1},"isError":true}`,
		`{"structuredContent":{"a":1}}`:                           `{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`,
		`{"content":"went wrong","isError":true}`:                 `{"content":[{"type":"text","text":"went wrong"}],"isError":true}`,
		`{"isError":true}`:                                        `{"content":[],"isError":true}`,
		`{"isError":false,"x":1}`:                                 `{"content":[{"type":"text","text":"{\"isError\":false,\"x\":1}"}],"structuredContent":{"isError":false,"x":1}}`,
		`{"toolResult":{"toolResult":{"a":1}}}`:                   `{"content":[{"type":"text","text":"{\"toolResult\":{\"a\":1}}"}],"structuredContent":{"toolResult":{"a":1}}}`,
		`{"toolResult":{"a":1}}`:                                  `{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`,
		`"plain \u00e9"`:                                          `{"content":[{"type":"text","text":"plain é"}]}`,
		`[1,2]`:                                                   `{"content":[{"type":"text","text":"[1,2]"}]}`,
		`null`:                                                    `{"content":[{"type":"text","text":"null"}]}`,
		`{"content":[{"type":"image","data":"","mimeType":"x","_meta":{"kept":1}}],"structuredContent":[1]}`: `{"content":[{"type":"image","data":"","mimeType":"x","_meta":{"kept":1}}],"structuredContent":[1]}`,
	} {
		got := MCPResult(json.RawMessage(value))
		if string(got) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", value, got, want)
		}
		if again := MCPResult(got); string(again) != string(got) && !strings.Contains(value, "toolResult") {
			t.Errorf("%s: twice gives %s", value, again)
		}
	}
	// A result as deep as JSON may be costs no more than any other of its size.
	MCPResult(json.RawMessage(strings.Repeat(`{"toolResult":`, 9900) + `{"p":"` + strings.Repeat("x", 1<<20) + `"}` + strings.Repeat("}", 9900)))
	c, _ := build(t, Entry{Source: MCP, SourceName: "s", Operation: ResourcesRead}, Entry{Name: "x", Source: Client})
	if got, err := c.Get("mcp:s:resources/read").Result(json.RawMessage(`{"contents":[],"_meta":{}}`)); err != nil || string(got) != `{"contents":[]}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := c.Get("mcp:s:resources/read").Result(json.RawMessage(`[1]`)); err == nil || !strings.Contains(err.Error(), "no object") {
		t.Error(err)
	}
	if got, err := c.Get("client:app:x").Result(json.RawMessage(`{"_meta":1}`)); err != nil || string(got) != `{"_meta":1}` {
		t.Errorf("%s, %v", got, err)
	}
}

// SPEC 7.2: operations have schemas of their own, and are offered once.
func TestOperations(t *testing.T) {
	c, warnings := build(t,
		Entry{Source: MCP, SourceName: "s", Operation: ResourcesRead},
		Entry{ID: "mcp:s:again", Source: MCP, SourceName: "s", Operation: ResourcesRead},
		Entry{Source: MCP, SourceName: "s", Operation: "tools/call"},
		Entry{Name: "x", Source: Client, Operation: ResourcesList},
	)
	if diff := cmp.Diff([]string{"mcp:s:again"}, ids(c.MCP())); diff != "" || len(warnings) != 3 {
		t.Errorf("%q (-want +got):\n%s", warnings, diff)
	}
	tool := c.MCP()[0]
	if !tool.Annotations.ReadOnly {
		t.Error("a read that may not be repeated")
	}
	if _, err := tool.CheckInput(json.RawMessage(`{}`)); err == nil {
		t.Error("a read without uri")
	}
	if c.Len() != 1 || len(c.Entries()) != 1 || c.Get("mcp:s:resources/read") != nil {
		t.Error("what was left out is still there")
	}
}

// SPEC 7.4, 7.8, 7.9: the files of servers.
func TestServerFiles(t *testing.T) {
	c, _, err := Build([]Entry{
		{Name: "create_issue", Source: MCP, SourceName: "git*/hub", Description: "d */ e", Parameters: json.RawMessage(`{"type":"object","properties":{"labels":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"null"}]}}},"required":["labels"]}`)},
		{Name: "x", Source: MCP, SourceName: "index"}, {Name: "native", Source: Client},
	}, Options{Unavailable: []Unavailable{{Name: "zulu", Reason: "no */ such file"}, {Name: "linear", Reason: "exited"}}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range c.Surface().Files {
		files[f.Path] = string(f.Text)
	}
	if diff := cmp.Diff([]string{"mcp/gitHub.d.ts", "mcp/index.d.ts", "mcp/index2.d.ts"}, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := files["mcp/gitHub.d.ts"]; !strings.Contains(text, "(string | null)[]") || !strings.Contains(text, "createIssue(") || strings.Contains(text, "d */ e") {
		t.Errorf("got %s", text)
	}
	if text := files["mcp/index.d.ts"]; !strings.Contains(text, "linear") || !strings.Contains(text, "exited") || !strings.Contains(text, "mcp/gitHub.d.ts") {
		t.Errorf("got %s", text)
	}
	none, _ := build(t, Entry{Name: "native", Source: Client})
	if len(none.Surface().Files) != 0 || len(none.Surface().MCP) != 0 {
		t.Error("files without servers")
	}
	down, _, _ := Build(nil, Options{Unavailable: []Unavailable{{Name: "linear", Reason: "exited"}}})
	if files := down.Surface().Files; len(files) != 1 || !strings.Contains(string(files[0].Text), "linear") {
		t.Errorf("got %v", files)
	}
}

// Servers with very many tools share a bounded room, and every tool is declared.
func TestServerFilesAreBounded(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"` + strings.Repeat("x", 500) + `":{"type":"string","description":"` + strings.Repeat("y", 500) + `"}}}`)
	var entries []Entry
	for i := range 10_000 {
		entries = append(entries, Entry{Name: fmt.Sprintf("tool_%d", i), Source: MCP, SourceName: fmt.Sprintf("s%d", i%4), Parameters: schema})
	}
	c, _ := build(t, entries...)
	unpacker, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unpacker.Close()
	total, declared := 0, 0
	for _, f := range c.Surface().Files {
		text, err := unpacker.DecodeAll(f.Text, nil)
		if len(f.Text) < packFrom && err != nil {
			text = f.Text
		}
		total += len(text)
		declared += strings.Count(string(text), "function tool")
		if len(text) != f.Bytes {
			t.Errorf("%s has %d bytes, listed are %d", f.Path, len(text), f.Bytes)
		}
	}
	if total > maxServerFiles+2<<20 || declared != len(entries) {
		t.Errorf("%d bytes, %d tools", total, declared)
	}
}

// SPEC 7.5: $api.
func TestAPI(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}`)
	c, _ := build(t,
		Entry{Name: "create_issue", Source: MCP, SourceName: "github", Description: "Create one.", Parameters: schema, OutputSchema: json.RawMessage(`{"type":"object"}`)},
		Entry{Name: "list", Source: MCP, SourceName: "github"}, Entry{Name: "x", Source: MCP, SourceName: "b"},
		Entry{Name: "secret", Source: MCP, SourceName: "github", Denied: true},
	)
	type answer struct {
		Server  APIServer
		Servers []APIServer
		Header  string
		Tools   []APITool
		Schemas map[string]map[string]json.RawMessage
	}
	ask := func(server, tool string, schema bool) (a answer) {
		t.Helper()
		raw, err := c.API(server, tool, schema)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := ask("", "", false); len(a.Servers) != 2 || a.Servers[1] != (APIServer{"github", "github", 2, "mcp/github.d.ts"}) || !strings.Contains(a.Header, "MCP.github") {
		t.Errorf("got %+v", a)
	}
	for _, selector := range []string{"createIssue", "create_issue"} {
		a := ask("github", selector, true)
		if len(a.Tools) != 1 || a.Tools[0] != (APITool{"createIssue", "create_issue", "Create one.", "MCP.github.createIssue(…)"}) || !strings.Contains(a.Header, "createIssue(input: { title: string") || strings.Contains(a.Header, "function list") {
			t.Errorf("%s: got %+v", selector, a)
		}
		if string(a.Schemas["createIssue"]["input"]) != string(schema) || string(a.Schemas["createIssue"]["output"]) != `{"type":"object"}` {
			t.Errorf("%s: schemas %s", selector, a.Schemas)
		}
	}
	if a := ask("github", "", false); len(a.Tools) != 2 || a.Schemas != nil || strings.Contains(a.Header, "secret") {
		t.Errorf("got %+v", a)
	}
	for _, wrong := range [][2]string{{"githb", ""}, {"github", "createIsue"}, {"github", "secret"}, {"github", "mcp:github:create_issue"}, {"__proto__", "x"}} {
		if raw, err := c.API(wrong[0], wrong[1], true); err == nil {
			t.Errorf("API(%q) = %s", wrong, raw)
		}
	}
	empty, _ := build(t)
	if raw, err := empty.API("", "", false); err != nil || !json.Valid(raw) {
		t.Errorf("%s, %v", raw, err)
	}
}

// SPEC 7.4 for tools of other sources.
func TestToolFiles(t *testing.T) {
	c, _ := build(t,
		Entry{Name: "get-user", Source: Client, Description: "A user.\nMore.", Parameters: json.RawMessage(`{"type":"object","properties":{"id":{"type":"number"}},"required":["id"]}`)},
		Entry{Name: "get_user", Source: Plugin, SourceName: "p"}, Entry{Name: "then", Source: Client}, Entry{Name: "delete", Source: Client}, Entry{Name: "client_app_then", Source: Client},
		Entry{Name: "../../etc/passwd", Source: Client}, Entry{Name: "secret", Source: Client, Denied: true}, Entry{Name: "m", Source: MCP},
	)
	var paths []string
	for _, f := range c.ToolFiles() {
		paths = append(paths, f.Path)
		file, err := c.ToolFile(f.Path)
		if err != nil || len(file.Text) != f.Bytes || file.Description != f.Description {
			t.Errorf("%s: %v, %d bytes, listed %d", f.Path, err, len(file.Text), f.Bytes)
		}
	}
	want := []string{"tools/______etc_passwd.d.ts", "tools/client_app_get_user.d.ts", "tools/client_app_then.d.ts", "tools/client_app_then2.d.ts", "tools/delete.d.ts", "tools/plugin_p_get_user.d.ts"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for asked, path := range map[string]string{
		"tools/client:app:get-user.d.ts": "tools/client_app_get_user.d.ts", "tools/then.d.ts": "tools/client_app_then2.d.ts", "tools/delete.d.ts": "tools/delete.d.ts", "tools/delete": "tools/delete.d.ts",
	} {
		if f, err := c.ToolFile(asked); err != nil || f.Path != path {
			t.Errorf("ToolFile(%q) = %s, %v; want %s", asked, f.Path, err, path)
		}
	}
	for _, asked := range []string{"tools/delte.d.ts", "tools/secret.d.ts", "tools/m.d.ts", "tools/", "", "mcp/index.d.ts", "tools/client:app:secret.d.ts"} {
		if f, err := c.ToolFile(asked); err == nil {
			t.Errorf("ToolFile(%q) = %s", asked, f.Path)
		}
	}
}

func BenchmarkBuildMCP10000(b *testing.B) {
	entries := manyEntries(10_000)
	for i := range entries {
		entries[i].Source, entries[i].SourceName = MCP, fmt.Sprintf("s%d", i%20)
	}
	for b.Loop() {
		Build(entries, Options{})
	}
}
