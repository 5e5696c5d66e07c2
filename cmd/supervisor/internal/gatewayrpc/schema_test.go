package gatewayrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document is openrpc.json with its schemas compiled.
type document struct {
	methods map[string]*documented
	errors  *jsonschema.Schema // ErrorData
	request *jsonschema.Schema
	answer  *jsonschema.Schema
	codes   []int
}

type documented struct {
	direction      string
	notification   bool
	params, result *jsonschema.Schema
	paramSchema    map[string]any
}

const (
	fromClient     = "client-to-supervisor"
	fromSupervisor = "supervisor-to-client"
)

// readDocument compiles all schemas of the document. The compiler checks each against
// the meta-schema of 2020-12.
func readDocument(t testing.TB) *document {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	root := parsed.(map[string]any)
	methods := root["methods"].([]any)
	params := map[string]any{} // what a message of a method has as its params
	for _, m := range methods {
		m := m.(map[string]any)
		properties, required := map[string]any{}, []any{}
		for _, p := range m["params"].([]any) {
			p := p.(map[string]any)
			properties[p["name"].(string)] = p["schema"]
			if p["required"] == true {
				required = append(required, p["name"])
			}
		}
		params[fmt.Sprint(len(params))] = map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	}
	root["x-params"] = params
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("mem:///openrpc.json", root); err != nil {
		t.Fatal(err)
	}
	compile := func(pointer string) *jsonschema.Schema {
		s, err := c.Compile("mem:///openrpc.json#" + pointer)
		if err != nil {
			t.Fatalf("%s: %v", pointer, err)
		}
		return s
	}
	d := &document{methods: map[string]*documented{}}
	for name := range root["components"].(map[string]any)["schemas"].(map[string]any) {
		compile("/components/schemas/" + name)
	}
	d.errors, d.request, d.answer = compile("/components/schemas/ErrorData"), compile("/components/schemas/Request"), compile("/components/schemas/Response")
	for _, e := range root["components"].(map[string]any)["errors"].(map[string]any) {
		n, _ := e.(map[string]any)["code"].(json.Number).Int64()
		d.codes = append(d.codes, int(n))
	}
	for i, m := range methods {
		m := m.(map[string]any)
		doc := &documented{direction: m["x-direction"].(string), params: compile(fmt.Sprintf("/x-params/%d", i)), paramSchema: params[fmt.Sprint(i)].(map[string]any)}
		if _, ok := m["result"]; ok {
			doc.result = compile(fmt.Sprintf("/methods/%d/result/schema", i))
		} else {
			doc.notification = true
		}
		if d.methods[m["name"].(string)] != nil {
			t.Errorf("%s is there twice", m["name"])
		}
		d.methods[m["name"].(string)] = doc
	}
	return d
}

// refuses tells whether a schema refuses a text.
func refuses(s *jsonschema.Schema, raw json.RawMessage) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// SPEC 21: the document lists the methods that there are, in both directions.
func TestDocumentListsTheMethods(t *testing.T) {
	want := map[string]string{}
	for name := range methods {
		want[name] = fromClient
	}
	for name := range notifications {
		want[name] = fromClient + " notification"
	}
	for _, name := range []string{toolCall, toolApprove, hookBefore} {
		want[name] = fromSupervisor
	}
	for _, name := range []string{toolCancel, runOutput, runEvent} {
		want[name] = fromSupervisor + " notification"
	}
	got := map[string]string{}
	d := readDocument(t)
	for name, doc := range d.methods {
		got[name] = doc.direction
		if doc.notification {
			got[name] += " notification"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("methods (-code +document):\n%s", diff)
	}
	codes := []int{int(codeParse), int(codeInvalidRequest), int(codeNoMethod), int(codeInvalidParams), int(codeInternal),
		int(codeBusy), int(codeInitialize), int(codeNoHandle), int(codeNotEngaged), int(codeInvalidConfig), int(codeUnavailable)}
	slices.Sort(codes)
	slices.Sort(d.codes)
	if diff := cmp.Diff(codes, d.codes); diff != "" {
		t.Errorf("codes of errors (-code +document):\n%s", diff)
	}
}

// good are parameters that have everything. handle h1 is engaged.
var good = map[string]string{
	"initialize": `{"protocolVersion":1,"client":{"name":"n","version":"v"},"capabilities":{"hooks":true,"approvals":false,"output":true,"events":"digest"}}`,
	"run/open": `{"scope":{"agentId":"a","sessionId":"s","sessionKey":"k","agentRunId":"r","sender":"x","channel":"c"},"config":{"enabled":true},"agentConfig":true,
		"context":{"rawModelCall":false,"toolsDisabled":false,"allowListEmpty":false},
		"tools":[{"id":"client:app:t","name":"t","label":"T","description":"d","source":"client","sourceName":"app","parameters":{},"outputSchema":{},"annotations":{"readOnlyHint":true,"idempotentHint":true,"destructiveHint":false},"control":false,"policy":"allow"},
			{"source":"mcp","sourceName":"m","operation":"resources/list"}],
		"unavailable":[{"name":"m2","reason":"down"}],
		"namespaces":[{"id":"n","pluginId":"p","globalName":"forge","description":"d","prompt":"q","requiredToolNames":["x"],"scope":{"a":{"$tool":"x","args":["k"]},"b":[1,null,"s"]}}],
		"policy":{"allow":["*"],"deny":["no"],"approve":["yes"]},"shapes":["gemini"],"strict":true}`,
	"run/exec":        `{"handle":"h1","callId":"c","arguments":{"code":"1"}}`,
	"run/wait":        `{"handle":"h1","callId":"c","arguments":"{\"runId\":\"x\"}"}`,
	"run/abort":       `{"handle":"h1","runId":"r"}`,
	"run/close":       `{"handle":"h1"}`,
	"surface/check":   `{"handle":"h1","payload":{},"shape":"openai-chat"}`,
	"$/cancelRequest": `{"id":7}`,
	"tool/park":       `{"callId":"c","reason":"r"}`,
	"tool/update":     `{"callId":"c","value":[1]}`,
}

// accepts runs what the code does with parameters, up to where it would begin to work.
func accepts(t testing.TB, name, params string) error {
	t.Helper()
	cfg := limits.DefaultConfig()
	c := newConn(New(Options{Config: cfg}), t.Context(), nil, New(Options{}).log)
	defer c.stop(nil)
	if name != initialize {
		c.client = &clientInfo{}
		o, err := c.readOpening(readObject("", json.RawMessage(`{"scope":{},"config":true,"tools":[{"name":"t","source":"client"}]}`)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.openHandle(o); err != nil {
			t.Fatal(err)
		}
	}
	if note, ok := notifications[name]; ok {
		return note(c, readObject("", json.RawMessage(params)))
	}
	r := &request{ctx: t.Context()}
	body, err := methods[name](c, r, readObject("", json.RawMessage(params)))
	if err == nil && name == "run/open" { // which looks at the config there
		_, err = body(t.Context())
	}
	return err
}

// mutants gives each value that is like v but for one place.
func mutants(v any) (all []any) {
	all = append(all, nil, true, json.Number("1"), json.Number("1.5"), "", "x", []any{}, []any{json.Number("1")}, map[string]any{}, map[string]any{"$tool": json.Number("1")})
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			without, renamed := clone(v), clone(v)
			delete(without, key)
			delete(renamed, key)
			renamed[strings.ToUpper(key[:1])+key[1:]] = member
			all = append(all, without, renamed)
			for _, m := range mutants(member) {
				with := clone(v)
				with[key] = m
				all = append(all, with)
			}
		}
		extra := clone(v)
		extra["unknownMember"] = json.Number("1")
		all = append(all, extra)
	case []any:
		for i, e := range v {
			for _, m := range mutants(e) {
				with := slices.Clone(v)
				with[i] = m
				all = append(all, with)
			}
		}
	}
	return all
}

func clone(m map[string]any) map[string]any {
	c := map[string]any{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

// SPEC 21: what the document refuses the code refuses, too; and what the code refuses for its
// form is refused by the document, but for what a schema cannot say.
func TestCodeAndDocumentAgree(t *testing.T) {
	d := readDocument(t)
	for name, params := range good {
		t.Run(name, func(t *testing.T) {
			doc := d.methods[name]
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(params))
			if err != nil {
				t.Fatal(err)
			}
			if err := doc.params.Validate(v); err != nil {
				t.Fatalf("the document refuses what is right: %v", err)
			}
			if err := accepts(t, name, params); err != nil {
				t.Fatalf("the code refuses what is right: %v", err)
			}
			tried := 0
			for _, m := range mutants(v) {
				raw, _ := json.Marshal(m)
				if _, isObject := m.(map[string]any); !isObject {
					continue // the envelope says so
				}
				tried++
				byDocument, byCode := doc.params.Validate(m), accepts(t, name, string(raw))
				switch {
				case byDocument != nil && byCode == nil:
					t.Errorf("the code takes what the document refuses: %s\n%v", raw, byDocument)
				case byDocument == nil && byCode != nil && !finer(byCode):
					t.Errorf("the document allows what the code refuses: %s\n%v", raw, byCode)
				}
			}
			if tried < 3 {
				t.Errorf("only %d mutants: the test tests nothing", tried)
			}
		})
	}
}

// finer tells that a refusal is about more than the form: a handle or a config that there
// is not, a namespace that its registry does not take.
func finer(err error) bool {
	text := messageOf(err)
	for _, part := range []string{"there is no handle", "namespaces[0]", "protocolVersion", "tools.codeMode cannot be used"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// The answers of clients, good and bad: the document and the code agree about them.
func TestAnswersOfClients(t *testing.T) {
	d := readDocument(t)
	verdict := func(raw string) error {
		p := readObject("result", json.RawMessage(raw))
		_, err := readVerdict(p)
		return err
	}
	decision := func(raw string) error {
		_, _, err := readDecision(readObject("result", json.RawMessage(raw)))
		return err
	}
	call := func(raw string) error {
		_, err := readAnswer(json.RawMessage(raw))
		if err != nil && !strings.Contains(err.Error(), "no answer") {
			return nil // the tool's own failure
		}
		return err
	}
	for _, test := range []struct {
		method string
		code   func(string) error
		good   []string
		bad    []string
	}{
		{toolCall, call, []string{`{"value":null}`, `{"value":[1]}`, `{"error":{"message":"m"}}`, `{"error":{"message":"m","code":"c","started":"no"}}`},
			[]string{`null`, `1`, `[]`, `"x"`, `{}`, `{"value":1,"error":{"message":"m"}}`, `{"error":null}`, `{"error":"m"}`, `{"error":{}}`, `{"error":{"message":""}}`,
				`{"error":{"message":"m","started":"maybe"}}`, `{"error":{"message":"m","code":1}}`, `{"error":{"message":"m","x":1}}`, `{"Value":1}`, `{"value":1,"x":1}`}},
		{hookBefore, verdict, []string{`{}`, `{"block":true,"reason":"r"}`, `{"params":{"a":1}}`, `{"approve":true}`},
			[]string{`null`, `true`, `[]`, `{"block":"yes"}`, `{"block":null}`, `{"reason":1}`, `{"Block":true}`, `{"allow":true}`}},
		{toolApprove, decision, []string{`{"approved":true}`, `{"approved":false,"reason":"r"}`},
			[]string{`{}`, `null`, `true`, `{"approved":"true"}`, `{"approved":null}`, `{"approved":1}`, `{"approved":true,"reason":1}`, `{"Approved":true}`, `{"approved":true,"x":1}`}},
	} {
		for _, raw := range test.good {
			if err := refuses(d.methods[test.method].result, json.RawMessage(raw)); err != nil {
				t.Errorf("%s: the document refuses %s: %v", test.method, raw, err)
			}
			if err := test.code(raw); err != nil {
				t.Errorf("%s: the code refuses %s: %v", test.method, raw, err)
			}
		}
		for _, raw := range test.bad {
			if refuses(d.methods[test.method].result, json.RawMessage(raw)) == nil {
				t.Errorf("%s: the document allows %s", test.method, raw)
			}
			if test.code(raw) == nil {
				t.Errorf("%s: the code takes %s", test.method, raw)
			}
		}
	}
}
