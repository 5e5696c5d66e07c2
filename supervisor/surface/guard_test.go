package surface_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

// real are requests as each provider's API has them, long enough to be believed. %s is
// where the tools are put; each has what a careless guard would trip over: the word tools in
// what was said, in a schema, in metadata.
var real = map[surface.Shape]string{
	surface.OpenAIChat: `{"model": "gpt-5.4", "stream": true, "stream_options": {"include_usage": true}, "parallel_tool_calls": false, "tool_choice": "auto",
		"messages": [{"role": "system", "content": "You have tools."}, {"role": "user", "content": [{"type": "text", "text": "list the tools"}]},
			{"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "exec", "arguments": "{\"code\": \"return {tools: [{name: 1}]}\"}"}}]},
			{"role": "tool", "tool_call_id": "call_1", "content": "{\"tools\": []}"}],
		"response_format": {"type": "json_schema", "json_schema": {"name": "r", "schema": {"type": "object", "properties": {"tools": {"type": "array"}, "functions": {"type": "object"}}}}},
		"metadata": {"tools": "two"}, "max_completion_tokens": 1000, "functions": [], "tools": %s}`,
	surface.OpenAIResponses: `{"model": "gpt-5.4", "store": false, "include": ["reasoning.encrypted_content"], "instructions": "Use your tools.", "reasoning": {"effort": "low"},
		"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "exec"}, {"type": "function", "name": "wait"}]},
		"input": [{"role": "user", "content": [{"type": "input_text", "text": "functions"}]}, {"type": "function_call", "call_id": "c", "name": "exec", "arguments": "{}"},
			{"type": "function_call_output", "call_id": "c", "output": "{\"tools\": [1]}"}],
		"text": {"format": {"type": "json_schema", "name": "a", "schema": {"properties": {"tools": {"type": "string"}}}}, "verbosity": "low"}, "tools": %s}`,
	surface.Anthropic: `{"model": "claude-opus-4-6", "max_tokens": 1000, "system": [{"type": "text", "text": "tools", "cache_control": {"type": "ephemeral"}}], "thinking": {"type": "adaptive"},
		"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "list_tools", "input": {"tools": [{"name": "shell", "input_schema": {}}], "mcp_servers": ["a"]}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "{}"}]}]}],
		"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}, "mcp_servers": [], "metadata": {"user_id": "tools"}, "tools": %s}`,
	surface.Gemini: `{"systemInstruction": {"parts": [{"text": "tools"}]}, "generationConfig": {"temperature": 0, "responseJsonSchema": {"properties": {"tools": {"type": "array"}}}},
		"contents": [{"role": "user", "parts": [{"text": "x"}]}, {"role": "model", "parts": [{"functionCall": {"name": "exec", "args": {"tools": [{"name": "a"}]}}}]},
			{"role": "user", "parts": [{"functionResponse": {"name": "exec", "response": {"functions": {"a": 1}}}}]}],
		"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["exec", "wait"]}}, "tools": %s}`,
}

// third is a tool called shell as each shape has it.
var third = map[surface.Shape]string{
	surface.OpenAIChat:      `{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}`,
	surface.OpenAIResponses: `{"type": "function", "name": "shell", "parameters": {"type": "object"}}`,
	surface.Anthropic:       `{"name": "shell", "input_schema": {"type": "object"}}`,
	surface.Gemini:          `{"functionDeclarations": [{"name": "shell", "parameters": {"type": "OBJECT"}}]}`,
}

// hosted are tools that providers run.
var hosted = map[surface.Shape][]string{
	surface.OpenAIChat:      {`{"type": "custom", "custom": {"name": "exec"}}`, `{"type": "web_search"}`, `{"type": "builtin_function", "function": {"name": "$web_search"}}`},
	surface.OpenAIResponses: {`{"type": "web_search"}`, `{"type": "web_search_preview", "name": "exec"}`, `{"type": "mcp", "server_label": "s", "server_url": "https://x"}`, `{"type": "code_interpreter", "container": {"type": "auto"}}`, `{"type": "shell"}`, `{"type": "custom", "name": "exec"}`, `{"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "shell"}]}`, `{"type": "tool_search"}`},
	surface.Anthropic:       {`{"type": "web_search_20250305", "name": "web_search"}`, `{"type": "bash_20250124", "name": "bash"}`, `{"type": "bash_20250124", "name": "exec"}`, `{"type": "mcp_toolset", "mcp_server_name": "s"}`},
	surface.Gemini:          {`{"googleSearch": {}}`, `{"google_search": {}}`, `{"codeExecution": {}}`, `{"urlContext": {}}`, `{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}`, `{"tomorrowsTool": {}}`},
}

func render(s surface.Shape) string {
	return string(surface.Define(surface.View{Limits: limits.Default()}).Render(s, true))
}

// elements takes a JSON array apart.
func elements(t testing.TB, array string) (all []string) {
	t.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(array), &raw); err != nil {
		t.Fatal(err)
	}
	for _, r := range raw {
		all = append(all, string(r))
	}
	return all
}

func array(elements ...string) string { return "[" + strings.Join(elements, ",") + "]" }

// with puts a member in front of those of an object.
func with(object, member string) string { return "{" + member + "," + object[1:] }

// checkBoth checks a payload as its shape and as an unknown one.
func checkBoth(t *testing.T, s surface.Shape, payload, what string, want ...string) {
	t.Helper()
	if !json.Valid([]byte(payload)) {
		t.Fatalf("%s, %s: the test's payload is no JSON: %s", s, what, payload)
	}
	for _, shape := range []surface.Shape{s, surface.Detect} {
		err := surface.CheckPayload([]byte(payload), shape)
		if len(want) == 0 {
			if err != nil {
				t.Errorf("%s as %q, %s: %v", s, shape, what, err)
			}
			continue
		}
		e, ok := errors.AsType[*surface.Error](err)
		if !ok || e.Code != surface.RuntimeUnavailable || len(e.Text) > surface.MaxErrorBytes {
			t.Errorf("%s as %q, %s: %v, want a bounded *Error with runtime_unavailable", s, shape, what, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(e.Text, w) {
				t.Errorf("%s as %q, %s: %s\nwant it to name %s", s, shape, what, e.Text, w)
			}
		}
	}
}

// SPEC 2.6: exec and wait, in either order, and what must not disturb.
func TestPayloadGood(t *testing.T) {
	for _, s := range surface.Shapes() {
		checkBoth(t, s, fmt.Sprintf(real[s], render(s)), "the real thing")
		tools := elements(t, render(s))
		slices.Reverse(tools)
		checkBoth(t, s, fmt.Sprintf(real[s], array(tools...)), "the other order")
	}
	checkBoth(t, surface.OpenAIChat, `{"messages": [], "function_call": {"name": "exec"}, "functions": [{"name": "exec", "parameters": {}}, {"name": "wait"}]}`, "legacy")
	checkBoth(t, surface.OpenAIChat, `{"tools": [{"type":"function","function":{"name":"exec"}},{"type":"function","function":{"name":"wait"}}], "tool_choice": {"type": "function", "function": {"name": "wait"}}}`, "no schemas")
	checkBoth(t, surface.Anthropic, `{"tools": [{"name":"exec","type":"custom","cache_control":{"type":"ephemeral"}},{"name":"wait"}], "tool_choice": {"type": "tool", "name": "exec"}}`, "custom")
	checkBoth(t, surface.Gemini, `{"tools": [{"functionDeclarations": [{"name": "exec"}]}, {"function_declarations": [{"name": "wait"}], "googleSearch": null}]}`, "two groups, two spellings")
	checkBoth(t, surface.Gemini, `{"model": "m", "contents": [], "config": {"tools": [{"functionDeclarations": [{"name": "exec"}, {"name": "wait"}]}]}}`, "the SDK's form")
	checkBoth(t, surface.Gemini, `{"model": "m", "request": {"contents": [], "tools": [{"functionDeclarations": [{"name": "exec"}, {"name": "wait"}]}]}}`, "code assist")
}

// SPEC 2.6: a third tool at every place where there can be one, and what is missing or twice.
// Validation 3: an enabled config shows the model exec and wait only, if the run has tools
func TestPayloadSmuggled(t *testing.T) {
	for _, s := range surface.Shapes() {
		tools := elements(t, render(s))
		payload := func(tools ...string) string { return fmt.Sprintf(real[s], array(tools...)) }
		good := payload(tools...)
		for i := range len(tools) + 1 {
			checkBoth(t, s, payload(slices.Insert(slices.Clone(tools), i, third[s])...), fmt.Sprintf("third at %d", i), `"shell"`)
			for _, h := range hosted[s] {
				checkBoth(t, s, payload(slices.Insert(slices.Clone(tools), i, h)...), fmt.Sprintf("%s at %d", h, i), "tools[")
			}
			for _, odd := range []string{`{}`, `null`, `"shell"`, `[]`, `5`, `{"type": "function"}`, `{"name": 5}`, `{"name": ""}`, `{"name": null, "function": {}}`, `{"function": {"name": ["shell"]}}`} {
				checkBoth(t, s, payload(slices.Insert(slices.Clone(tools), i, odd)...), fmt.Sprintf("%s at %d", odd, i), "tools[")
			}
			for other, tool := range third {
				checkBoth(t, s, payload(slices.Insert(slices.Clone(tools), i, tool)...), fmt.Sprintf("a tool of %s at %d", other, i), "tools[")
			}
		}
		checkBoth(t, s, payload(), "empty list", "no list of tools", "no exec", "no wait")
		checkBoth(t, s, fmt.Sprintf(real[s], "null"), "null", "no list of tools")
		checkBoth(t, s, fmt.Sprintf(real[s], "{}"), "object", "tools is no list")
		checkBoth(t, s, fmt.Sprintf(real[s], `"none"`), "text", "tools is no list")
		checkBoth(t, s, payload(append(tools, tools...)...), "all twice", "2 tools called exec", "2 tools called wait")
		checkBoth(t, s, payload(third[s]), "only another", `"shell"`, "no exec", "no wait")
		for _, name := range []string{"EXEC", "exec ", "ехес", "exec\u200b", "functions.exec"} { // the third one is Cyrillic
			checkBoth(t, s, strings.Replace(good, `"name":"exec"`, fmt.Sprintf(`"name":%q`, name), 1), "almost exec", "no exec", "the tool")
		}
		checkBoth(t, s, strings.Replace(good, `"code":`, `"command":`, 1), "a shell tool called exec", "another tool called exec", "no code")
		checkBoth(t, s, strings.Replace(good, `"runId":`, `"seconds":`, 1), "another tool called wait", "another tool called wait")
		for member, want := range map[string]string{
			`"Tools": ` + array(third[s]):                                                                            "Tools",
			`"tool\u017f": ` + array(third[s]):                                                                       "toolſ",
			`"TOOLS": ` + array(third[s]):                                                                            "TOOLS",
			`"extra_body": {"tools": ` + array(third[s]) + `}`:                                                       "extra_body.tools",
			`"a.b": [{"c": {"tools": ` + array(third[s]) + `}}]`:                                                     `"a.b"[0].c.tools`,
			`"toolConfig2": {"tools": [{"toolSpec": {"name": "shell"}}]}`:                                            "toolConfig2.tools",
			`"config": {"tools": ` + array(third[s]) + `}`:                                                           "config.tools",
			`"request": {"tools": ` + array(third[s]) + `}`:                                                          "request.tools",
			`"functionDeclarations": [{"name": "shell"}]`:                                                            "functionDeclarations",
			`"function_declarations": [{"name": "shell"}]`:                                                           "function_declarations",
			`"mcpServers": {"s": {"url": "https://x"}}`:                                                              "mcpServers",
			`"prompt": {"id": "pmpt_1", "version": "2"}`:                                                             "prompt.id",
			`"web_search_options": {}`:                                                                               "web_search_options",
			`"agents": [{"name": "shell", "parameters": {"type": "object"}}]`:                                        "agents[0]",
			`"agents": [{"type": "function", "function": {"name": "shell"}}]`:                                        "agents[0]",
			`"history": [{"role": "system", "tools": ` + array(third[s]) + `}]`:                                      "history[0].tools",
			`"function_call": {"name": "shell"}`:                                                                     `function_call names the tool "shell"`,
			`"functionCall": {"x": {"name": 5}}`:                                                                     "functionCall names",
			`"toolChoice": {"tools": [{"name": "exec"}, {"function": {"name": "shell"}}]}`:                           `"shell"`,
			`"messages2": 1, "Messages": [{"type": "tool_search_output", "functions": {"a": {"name": "shell"}}}]`:    "Messages[0].functions",
			`"Input": {"type": "tool_search_output", "tools": [{"type": "function", "name": "shell"}], "name": "x"}`: "Input.tools",
		} {
			checkBoth(t, s, with(good, member), member, want)
		}
		if s != surface.OpenAIChat {
			checkBoth(t, s, with(good, `"functions": [{"name": "shell"}]`), "functions beside tools", "functions")
		}
		if s != surface.Anthropic {
			checkBoth(t, s, with(good, `"mcp_servers": [{"type": "url", "name": "s"}]`), "mcp_servers", `mcp_servers ("s")`)
		}
	}
	chat := fmt.Sprintf(real[surface.OpenAIChat], render(surface.OpenAIChat))
	checkBoth(t, surface.OpenAIChat, strings.Replace(chat, `"functions": []`, `"functions": [{"name": "shell"}]`, 1), "functions beside tools", `"shell"`, "lists of tools in functions and in tools")
	checkBoth(t, surface.OpenAIChat, `{"functions": [{"name": "exec"}], "tools": [{"type": "function", "function": {"name": "wait"}}]}`, "split in two", "lists of tools in")
	checkBoth(t, surface.OpenAIChat, strings.Replace(chat, `{"role": "system"`, `{"role": "system", "tools": [{"name": "shell"}]`, 1), "in a message", "messages[0].tools", `"shell"`)
	checkBoth(t, surface.OpenAIChat, strings.Replace(chat, `"name":"exec"`, `"name":"exec","Name":"shell"`, 1), "two spellings of name", "can be read as one")
	checkBoth(t, surface.OpenAIChat, strings.Replace(chat, `"type":"function",`, `"type":"function","name":"shell",`, 1), "a name beside function", "two names")
	checkBoth(t, surface.OpenAIChat, strings.Replace(chat, `"type":"function",`, `"type":"function","tools":[{"name":"shell"}],`, 1), "a tool with tools", `"shell"`)
	responses := fmt.Sprintf(real[surface.OpenAIResponses], render(surface.OpenAIResponses))
	checkBoth(t, surface.OpenAIResponses, strings.Replace(responses, `"input": [`, `"input": [{"type": "tool_search_output", "tools": [{"type": "function", "name": "shell"}]},`, 1), "found by search", "input[0].tools", `"shell"`)
	anthropic := fmt.Sprintf(real[surface.Anthropic], render(surface.Anthropic))
	checkBoth(t, surface.Anthropic, strings.Replace(anthropic, `"mcp_servers": []`, `"mcp_servers": [{"type": "url", "url": "https://x", "name": "crm"}]`, 1), "MCP connector", `mcp_servers ("crm")`)
	gemini := fmt.Sprintf(real[surface.Gemini], render(surface.Gemini))
	checkBoth(t, surface.Gemini, strings.Replace(gemini, `[{"functionDeclarations":[`, `[{"googleSearch":{},"functionDeclarations":[`, 1), "search in the same group", "hosted tool tools[0].googleSearch")
	checkBoth(t, surface.Gemini, strings.Replace(gemini, `[{"functionDeclarations":[`, `[{"function_declarations":[{"name":"shell"}],"functionDeclarations":[`, 1), "two spellings in one group", `"shell"`)
	checkBoth(t, surface.Gemini, strings.Replace(gemini, `"functionDeclarations":[`, `"functionDeclarations":[{"description":"no name"},`, 1), "nameless declaration", "without a name at tools[0].functionDeclarations[0]")
}

// SPEC 2.6: what cannot be checked is not sent.
func TestPayloadHostile(t *testing.T) {
	tools := render(surface.OpenAIChat)
	for name, payload := range map[string]string{
		"empty": ``, "not JSON": `{"tools": ` + tools, "JSON5": `{tools: ` + tools + `}`, "two documents": `{"tools": ` + tools + `} {}`,
		"a list": tools, "null": `null`, "byte order mark": "\ufeff{\"tools\": " + tools + `}`,
		"not UTF-8":         `{"model": "` + "\xff" + `", "tools": ` + tools + `}`,
		"tools given twice": `{"tools": [{"name": "shell"}], "tools": ` + tools + `}`, "twice, escaped": `{"tools": ` + tools + `, "\u0074ools": []}`,
		"a name given twice": `{"tools": ` + strings.Replace(tools, `"name":"exec"`, `"name":"shell","name":"exec"`, 1) + `}`,
		"deep":               `{"tools": ` + tools + `, "x": ` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
		"very deep":          strings.Repeat(`{"tools":[`, 3_000_000),
		"many values":        `{"tools": ` + tools + `, "x": [0` + strings.Repeat(",0", 600_000) + `]}`,
		"many tools":         `{"tools": [` + strings.Repeat(third[surface.OpenAIChat]+",", 5000) + `{}]}`,
		"long names":         `{"tools": [{"name": "` + strings.Repeat(`a\u001b[31m\n`, 100_000) + `"}]}`,
		"long keys":          `{"` + strings.Repeat(`k\n`, 100_000) + `": {"tools": [1]}}`,
		"too long":           `{"model": "` + strings.Repeat("x", surface.MaxPayloadBytes) + `"}`,
	} {
		start := time.Now()
		err := surface.CheckPayload([]byte(payload), surface.Detect)
		e, ok := errors.AsType[*surface.Error](err)
		if !ok || len(e.Text) > surface.MaxErrorBytes || strings.ContainsAny(e.Text, "\n\x1b") {
			t.Errorf("%s: %v, want one bounded line", name, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	if err := surface.CheckPayload([]byte(`{}`), "cohere"); err == nil || !strings.Contains(err.Error(), `"cohere"`) {
		t.Errorf("an unknown shape: %v", err)
	}
	// A key may be long and the nesting deep: paths must not make that quadratic.
	long := strings.Repeat("k", 60)
	nested := strings.Repeat(`{"`+long+`":`, 200) + `[{}` + strings.Repeat(",{}", 100_000) + `]` + strings.Repeat("}", 200)
	start := time.Now()
	if err := surface.CheckPayload([]byte(`{"tools": `+tools+`, "x": `+nested+`}`), surface.OpenAIChat); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("deep paths took %v", took)
	}
}

// A guard that lets a payload pass has seen what a lenient reader sees: encoding/json, which
// takes keys of any case.
func FuzzCheckPayload(f *testing.F) {
	short := surface.Definitions{Exec: surface.Definition{Name: "exec", Parameters: json.RawMessage(`{}`)}, Wait: surface.Definition{Name: "wait", Parameters: json.RawMessage(`{}`)}}
	for _, s := range surface.Shapes() {
		tools := short.Render(s, false)
		f.Add(fmt.Appendf(nil, real[s], tools))
		f.Add(fmt.Appendf(nil, `{"tools": [%s, %s]}`, third[s], strings.Join(hosted[s], ",")))
		f.Add(fmt.Appendf(nil, `{"tools": %s, "config": {"tools": []}}`, tools))
		f.Add(fmt.Appendf(nil, `{"functions": %s, "x": {"request": {"tools": [%s]}}}`, tools, third[s]))
	}
	f.Add([]byte(`{"functions": [{"name": "exec"}, {"name": "wait"}], "tools": null}`))
	f.Add([]byte(`{"tools": [{"name": "exec"}, {"name": "wait"}], "Tools": [], "tool_choice": {"name": "exec"}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, s := range append(surface.Shapes(), surface.Detect) {
			err := surface.CheckPayload(payload, s)
			if err == nil {
				if names := lenient(payload); !slices.Equal(names, []string{"exec", "wait"}) {
					t.Fatalf("%q passes with %q", s, names)
				}
				continue
			}
			e, ok := errors.AsType[*surface.Error](err)
			if !ok || len(e.Text) > surface.MaxErrorBytes || strings.ContainsAny(e.Text, "\n\r\x1b\x00") {
				t.Fatalf("%q: %v", s, err)
			}
			if again := surface.CheckPayload(payload, s); again == nil || again.Error() != e.Text {
				t.Fatalf("%q: first %v, then %v", s, e, again)
			}
		}
	})
}

// lenient lists the tools of a payload, sorted, as a server in Go would see them.
func lenient(payload []byte) (names []string) {
	type entry struct {
		Name, Type any
		Function   *struct{ Name any }
		Camel      []entryName `json:"functionDeclarations"`
		Snake      []entryName `json:"function_declarations"`
	}
	type lists struct {
		Tools     []entry
		Functions []entry
	}
	var p struct {
		lists
		Config, Request *lists
	}
	_ = json.Unmarshal(payload, &p) // what does not fit is left out
	for _, l := range []*lists{&p.lists, p.Config, p.Request} {
		if l == nil {
			continue
		}
		for _, e := range append(l.Tools, l.Functions...) {
			for _, n := range append(e.Camel, e.Snake...) {
				names = append(names, fmt.Sprint(n.Name))
			}
			if e.Function != nil {
				names = append(names, fmt.Sprint(e.Function.Name))
			}
			if e.Name != nil {
				names = append(names, fmt.Sprint(e.Name))
			}
		}
	}
	slices.Sort(names)
	return names
}

type entryName struct{ Name any }

func BenchmarkCheckPayload(b *testing.B) {
	long := fmt.Sprintf(`{"role": "user", "content": %q},`, strings.Repeat("a long message. ", 500))
	payload := fmt.Appendf(nil, `{"messages": [%s {"role": "user"}], "tools": %s}`, strings.Repeat(long, 200), render(surface.OpenAIChat))
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		if err := surface.CheckPayload(payload, surface.OpenAIChat); err != nil {
			b.Fatal(err)
		}
	}
}
