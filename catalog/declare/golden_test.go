package declare

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got), go test -update writes it:\n%s", name, diff)
	}
}

var github = Server{Identifier: "github", Name: "GitHub MCP", Methods: []Method{
	{
		Path: []string{"createIssue"}, Name: "create_issue",
		Description: "Create an issue in a repository.\r\n\r\n   Needs write access.   \nMarkdown */ is understood.\n@deprecated for `${x}`",
		Input: json.RawMessage(`{"type":"object","properties":{
			"title":{"type":"string","minLength":1,"maxLength":256,"description":"What it is about,\nin one line"},
			"owner":{"type":"string","description":"Owner */ of the repository"},
			"state":{"enum":["open","closed"],"default":"open"},
			"labels":{"type":"array","items":{"type":["string","null"],"pattern":"^[a-z]+$"},"uniqueItems":true},
			"auth-method":{"type":"string","description":"How to sign in"},
			"milestone":{"type":"integer","minimum":1,"maximum":9007199254740991},
			"meta":{"type":"object","additionalProperties":{"type":"string"}}},
			"required":["owner","title","state"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"},"url":{"type":"string","format":"uri"}},"required":["number","url"]}`),
	},
	{Path: []string{"search"}, Name: "search", Input: json.RawMessage(`{"type":"object","properties":{"filter":{"$ref":"#/$defs/Filter"}},"$defs":{
		"Filter":{"anyOf":[
			{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#/$defs/Filter"}}},"required":["and"],"additionalProperties":false},
			{"type":"object","properties":{"field":{"type":"string"},"value":{}},"required":["field","value"],"additionalProperties":false}]}}}`)},
	{Path: []string{"ping"}, Name: "ping", Description: "Is it there?"},
	{Path: []string{"broken"}, Name: "broken", Input: json.RawMessage(`{"type":`), Output: json.RawMessage(`nonsense`)},
	{Path: []string{"Result"}, Name: "Result", Description: "*\u200b/ declare var x: 1;\u2028// \u202Etxt", Input: json.RawMessage(`{"type":"object","additionalProperties":false}`)},
	{Path: []string{"resources", "list"}, Name: "resources/list", Kind: "resources/list", Description: "Lists the resources."},
	{Path: []string{"resources", "read"}, Name: "resources/read", Kind: "resources/read"},
	{Path: []string{"prompts", "list"}, Name: "prompts/list", Kind: "prompts/list"},
	{Path: []string{"prompts", "get"}, Name: "prompts/get", Kind: "prompts/get"},
}}

// SPEC 7.4 to 7.8: the files of a server and the index.
func TestServerFiles(t *testing.T) {
	golden(t, "github.d.ts", github.File(64<<10))
	golden(t, "github-small.d.ts", github.File(2600))
	golden(t, "github-header.d.ts", github.Header(64<<10, func(m Method) bool { return m.Path[0] == "createIssue" || m.Path[0] == "resources" }))
	other := Server{Identifier: "größe", Name: "größe \n*/", Methods: github.Methods[:1]}
	golden(t, "index.d.ts", Index([]Server{github, other}, []Unavailable{{"jira", "exec: \"jira-mcp\": not found\nin $PATH */"}}))
	golden(t, "index-empty.d.ts", Index(nil, nil))
	unicode := Server{Identifier: "größe", Name: "größe", Methods: []Method{{Path: []string{"名前"}, Name: "名前"}}}
	golden(t, "unicode.d.ts", unicode.File(1<<20))
}

// Files that have no room for the types still have every function.
func TestServerFileRoom(t *testing.T) {
	for _, max := range []int{-1, 0, 1000, 2500, 3000, 4000, 6000} {
		text := github.File(max)
		if len(text) > max+2500 {
			t.Errorf("File(%d) has %d bytes", max, len(text))
		}
		for _, want := range []string{"createIssue(", "search(", "ping(", "broken(", "Result(", "list(", "read(", "get("} {
			if !strings.Contains(text, "function "+want) {
				t.Errorf("File(%d) has no %s\n%s", max, want, text)
			}
		}
		if said := strings.Count(text, "$api(name)"); said != 0 && max >= 6000 || said != 1 && max < 1500 {
			t.Errorf("File(%d) says %d times where the types are\n%s", max, said, text)
		}
	}
}

func TestToolFiles(t *testing.T) {
	tree := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"tree":{"$ref":"#/$defs/Tree"}},"required":["tree"],
		"$defs":{"Tree":{"type":"object","properties":{"left":{"$ref":"#/$defs/Tree"},"right":{"$ref":"#/$defs/Tree"}}}}}`)
	m := Method{Name: "get-user", Description: "Get a user.", Input: tree, Output: json.RawMessage(`{"type":"array","items":{"type":["string","null"]}}`)}
	golden(t, "tool.d.ts", ToolFile("plugin:users:get-user", "get_user", m, 16<<10))
	golden(t, "tool-delete.d.ts", ToolFile("plugin:users:delete", "delete", Method{Name: "delete"}, 16<<10))
	golden(t, "tool-new.d.ts", ToolFile("plugin:users:new", "new", Method{Name: "new", Description: "Make one."}, 16<<10))
	golden(t, "tool-call.d.ts", ToolFile("client:app:then", "", Method{Name: "then", Description: "What comes then.", Input: tree}, 16<<10))
	golden(t, "tool-small.d.ts", ToolFile("plugin:users:get-user", "get_user", m, 100))
}

// What the golden files show compiles.
func TestGoldenCompiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/golden/*.d.ts")
	if err != nil || len(paths) < 10 {
		t.Fatal(paths, err)
	}
	// The files of one server declare the same things: each has a program of its own server.
	files := map[string]string{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		text := strings.ReplaceAll(string(raw), "MCP.github {", "MCP."+strings.NewReplacer("-", "_", ".", "_").Replace(name)+" {")
		files["/"+name] = text
	}
	delete(files, "/index-empty.d.ts")
	delete(files, "/tool-small.d.ts")
	compile(t, files).report(t, files)
}

// Each hard case as a type and on one line (SPEC 7.6).
func TestHardCases(t *testing.T) {
	var b strings.Builder
	for _, c := range hardCases(t) {
		fmt.Fprintf(&b, "%s\n\t%s\n\t%s\n", c.Name, typeText(c.Schema), Inline(c.Schema, 300))
	}
	golden(t, "hard.txt", b.String())
}

// typeText is the type of a schema on one line, with the aliases that it needs.
func typeText(schema json.RawMessage) string {
	d := declaration{Method: &Method{}, input: anyObject, output: build(parse(schema), false, maxNodes)}
	d.aliases = namedAliases(d.output, nil)
	d.nameAliases("", "", map[string]bool{})
	var p printer
	p.node(d.output, oneLine)
	for _, a := range d.aliases {
		p.str("; type ", a.name, " = ")
		p.node(a.node, oneLine)
	}
	return string(p.b)
}

func TestInline(t *testing.T) {
	schema := `{"type":"object","properties":{"owner":{"type":"string"},"labels":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"object","properties":{"name":{"type":"string"}}}]}},
		"state":{"enum":["open","closed"]},"repo":{"type":"string"},"n":{"type":"integer","default":1}},"required":["owner","repo","n"]}`
	tests := []struct {
		schema string
		max    int
		want   string
	}{
		{"", 300, "unknown"}, {"true", 300, "unknown"}, {"{}", 300, "unknown"}, {"{", 300, "unknown"}, {"", 3, ""}, {schema, 5, ""},
		{schema, 300, `{ owner: string; repo: string; labels?: (string | { name?: string })[]; state?: "open" | "closed"; n?: number }`},
		{schema, 100, `{ owner: string; repo: string; labels?: (string | { name?: string })[]; … }`},
		{schema, 60, `{ owner: string; repo: string; … }`},
		{schema, 32, `object`},
		{`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"string"}}}}}},"required":["a"]}`, 20, `{ a: object }`},
		{`{"type":"object"}`, 300, "object"},
		{`{"type":"object","additionalProperties":false}`, 300, "{}"},
		{`{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}`, 300, "Record<string, string[]>"},
		{`{"type":"object","properties":{"a":{"$ref":"#"}}}`, 300, "{ a?: object }"},
		{`{"properties":{"a":{"type":"string"}}}`, 300, "{ a?: string } | …"},
	}
	for _, test := range tests {
		if got := Inline(json.RawMessage(test.schema), test.max); got != test.want {
			t.Errorf("Inline(%.60s, %d)\n got %s\nwant %s", test.schema, test.max, got, test.want)
		}
	}
}
