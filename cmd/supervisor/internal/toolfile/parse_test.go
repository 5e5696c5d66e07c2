package toolfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/catalog"
)

// SPEC 20: fields and their defaults.
func TestParse(t *testing.T) {
	text := `// tools
	{tools: [
		{name: 'plain', result: 1},
		{name: "read", source: "mcp", sourceName: "files", description: "d", label: "L",
		 parameters: {type: "object", properties: {n: {default: 9007199254740993}}}, outputSchema: true,
		 annotations: {readOnlyHint: true, idempotentHint: true, destructiveHint: false}, policy: "approve", echo: true},
		{name: "own", id: "plugin:x:y", source: "plugin", sourceName: "x", policy: "deny", error: "e", annotations: {destructiveHint: true}},
	]}`
	path := filepath.Join(t.TempDir(), "tools.json5")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tools, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []catalog.Entry
	var policies []Policy
	for _, tool := range tools {
		got = append(got, tool.Entry)
		policies = append(policies, tool.Policy)
	}
	want := []catalog.Entry{
		{ID: "client:app:plain", Name: "plain", Source: "client", SourceName: "app"},
		{ID: "mcp:files:read", Name: "read", Label: "L", Description: "d", Source: "mcp", SourceName: "files",
			Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"default":9007199254740993}}}`), OutputSchema: json.RawMessage(`true`),
			Annotations: catalog.Annotations{ReadOnly: true, Idempotent: true}},
		{ID: "plugin:x:y", Name: "own", Source: "plugin", SourceName: "x", Annotations: catalog.Annotations{Destructive: true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Policy{Allow, Approve, Deny}, policies); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if _, warnings, err := catalog.Build(got, catalog.Options{}); err != nil || len(warnings) > 0 {
		t.Errorf("the catalog says %v, %v", warnings, err)
	}
	if _, err := Load(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	if tools, err := Parse("t", []byte(`{tools: []}`)); err != nil || len(tools) != 0 {
		t.Errorf("no tools: %v, %v", tools, err)
	}
}

// SPEC 20: mistakes are said with file, place, tool and field.
func TestParseErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{``, `t.json5:1:1: the document is empty`},
		{"{tools: [\n {name: 'a' result: 1}]}", `t.json5:2:13: expected ',' or '}'`},
		{`[]`, `t.json5:1:1: expected an object {tools: […]}, got a list`},
		{`{}`, `t.json5:1:1: there is no list of tools`},
		{`{tool: []}`, `t.json5:1:2: field tool: unknown field; did you mean "tools"?`},
		{`{tools: {}}`, `t.json5:1:9: field tools: expected a list, got an object`},
		{`{tools: [1]}`, `t.json5:1:10: tool #1: expected an object, got 1`},
		{`{tools: [{result: 1}]}`, `t.json5:1:10: tool #1, field name: missing`},
		{`{tools: [{name: "", result: 1}]}`, `tool "", field name: must not be empty`},
		{`{tools: [{name: 5, result: 1}]}`, `tool #1, field name: expected text, got 5`},
		{`{tools: [{name: "a", result: 1}, {name: "b"}]}`, `t.json5:1:34: tool "b": it has no behaviour; give it one of result, echo, error, sequence, command`},
		{`{tools: [{name: "a", result: 1, error: "x"}]}`, `t.json5:1:40: tool "a", field error: there is result already`},
		{`{tools: [{name: "a", resutl: 1}]}`, `t.json5:1:22: tool "a", field resutl: unknown field; did you mean "result"?`},
		{`{tools: [{name: "a", descripton: "x", result: 1}]}`, `did you mean "description"?`},
		{`{tools: [{name: "a", xyz: "x", result: 1}]}`, `field xyz: unknown field; the fields are id, name`},
		{`{tools: [{name: "a", echo: false}]}`, `field echo: expected true, got false`},
		{`{tools: [{name: "a", error: ""}]}`, `field error: expected a text`},
		{`{tools: [{name: "a", error: {}}]}`, `field error: expected a text that is not empty, got an object`},
		{`{tools: [{name: "a", result: [NaN]}]}`, `t.json5:1:31: tool "a": JSON has no NaN`},
		{`{tools: [{name: "a", command: "ls"}]}`, `field command: expected a list ["program", "argument"…], got the text "ls"`},
		{`{tools: [{name: "a", command: []}]}`, `field command: expected a list`},
		{`{tools: [{name: "a", command: ["ls", 1]}]}`, `field command[1]: expected text, got 1`},
		{`{tools: [{name: "a", command: [""]}]}`, `field command[0]: the program must not be empty`},
		{`{tools: [{name: "a", command: ["ls", "\0"]}]}`, `field command[1]: must not contain NUL`},
		{`{tools: [{name: "a", sequence: []}]}`, `field sequence: expected a list of at least one behaviour`},
		{`{tools: [{name: "a", sequence: [{result: 1}, 2]}]}`, `field sequence[1]: expected an object with a behaviour, got 2`},
		{`{tools: [{name: "a", sequence: [{}]}]}`, `field sequence[0]: it has no behaviour`},
		{`{tools: [{name: "a", sequence: [{result: 1, eror: "x"}]}]}`, `field sequence[0].eror: unknown field; did you mean "error"?`},
		{`{tools: [{name: "a", sequence: [{name: "b", result: 1}]}]}`, `field sequence[0].name: unknown field`},
		{`{tools: [{name: "a", sequence: [{result: 1, delayMs: "5"}]}]}`, `field sequence[0].delayMs: expected a whole number`},
		{`{tools: [{name: "a", sequence: [{sequence: [{result: 1}]}]}]}`, `field sequence[0].sequence: a sequence cannot stand inside a sequence`},
		{`{tools: [{name: "a", result: 1, delayMs: -1}]}`, `field delayMs: expected a whole number from 0 to 86400000, got -1`},
		{`{tools: [{name: "a", result: 1, delayMs: 1.5}]}`, `field delayMs`},
		{`{tools: [{name: "a", result: 1, delayMs: 1e400}]}`, `field delayMs`},
		{`{tools: [{name: "a", result: 1, delayMs: NaN}]}`, `field delayMs`},
		{`{tools: [{name: "a", result: 1, park: 1}]}`, `field park: expected true or false, got 1`},
		{`{tools: [{name: "a", result: 1, policy: "ask"}]}`, `field policy: expected allow, deny, approve, got "ask"`},
		{`{tools: [{name: "a", result: 1, policy: "aprove"}]}`, `did you mean "approve"?`},
		{`{tools: [{name: "a", result: 1, source: "MCP"}]}`, `field source: expected openclaw, plugin, mcp, client, got "MCP"; did you mean "mcp"?`},
		{`{tools: [{name: "a", result: 1, sourceName: ""}]}`, `field sourceName: must not be empty`},
		{`{tools: [{name: "a", result: 1, parameters: "x"}]}`, `field parameters: expected a JSON Schema`},
		{`{tools: [{name: "a", result: 1, outputSchema: []}]}`, `field outputSchema: expected a JSON Schema`},
		{`{tools: [{name: "a", result: 1, parameters: {minimum: Infinity}}]}`, `JSON has no Infinity`},
		{`{tools: [{name: "a", result: 1, annotations: {readOnly: true}}]}`, `field annotations.readOnly: unknown field; did you mean "readOnlyHint"?`},
		{`{tools: [{name: "a", result: 1, annotations: {readOnlyHint: "yes"}}]}`, `field annotations.readOnlyHint: expected true or false`},
		{`{tools: [{name: "a", result: 1, annotations: true}]}`, `field annotations: expected an object`},
		{`{tools: [{name: "a", name: "b", result: 1}]}`, `the key "name" was given before`},
		{`{tools: [{name: "` + strings.Repeat("n", 600) + `", result: 1}]}`, `at most 512`},
		{`{tools: [{name: "a", result: ` + strings.Repeat("[", 2000), `nested deeper`},
		{`{tools: [{name: "a", sequence: [` + strings.Repeat("{result: 1},", 1001) + `]}]}`, `at most 1000`},
		{`{tools: [` + strings.Repeat("1,", 10_001) + `]}`, `at most 10000`},
		{strings.Repeat(" ", MaxFileBytes+1), `more than 16777216 bytes`},
	}
	for _, tt := range tests {
		_, err := Parse("t.json5", []byte(tt.text))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.80s: got %v, want an *Error", tt.text, err)
			continue
		}
		if text := err.Error(); !strings.Contains(text, tt.want) || !strings.HasPrefix(text, "t.json5") || len(text) > 600 {
			t.Errorf("%.80s:\ngot  %.300s\nwant %s", tt.text, text, tt.want)
		}
	}
}

// Parse never panics, and what it takes can be called.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{tools: [{name: "a", sequence: [{result: {a: [1]}}, {error: "x", delayMs: 5, park: true}]}]}`))
	f.Add([]byte(`{tools: [{name: "a", source: "mcp", echo: true, parameters: {type: "object"}, annotations: {readOnlyHint: true}, policy: "deny"}]}`))
	f.Add([]byte(`{tools: [{name: "a", command: ["x"]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tools, err := Parse("f", data)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Parse(%q): %T", data, err)
			}
			return
		}
		for _, tool := range tools {
			if tool.Entry.Name == "" || tool.Entry.ID == "" || tool.Policy == "" || len(tool.steps) == 0 {
				t.Fatalf("Parse(%q): %+v", data, tool)
			}
		}
	})
}
