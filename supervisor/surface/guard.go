package surface

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openclaw/codemode-supervisor/limits/json5"
)

// MaxPayloadBytes is how long a payload may be that is checked. Providers take 20 to 50 MB.
const MaxPayloadBytes = 64 << 20

var payloadBounds = bounds{bytes: MaxPayloadBytes, depth: 256, values: 500_000}

// CheckPayload is the payload guard (SPEC 2.6), for runs whose code mode is engaged: the
// tools in the final payload, JSON as it is about to be sent, must be exactly one exec and
// one wait. Anything else is an *[Error] with the code [RuntimeUnavailable] that names what was
// found, and the request must not be sent. It takes nothing out: that would hide the
// mistake that put it in.
//
// The payload is of shape s, or, with [Detect], of any. Tools are looked for wherever a
// provider or a lenient reader might: in the list of the shape ("tools", the legacy
// "functions" of OpenAI, Gemini's groups in both spellings, also under "config" of its SDK and
// "request" of its code assist API), in other fields (hosted tools, MCP servers, a second list), in the
// items of the conversation, under keys that differ in case only. What the conversation
// says, schemas and metadata are not looked into: there, "tools" is just a word. A tool whose
// schema has no code (exec) or runId (wait) is another tool of that name.
//
// It is safe for concurrent use, takes time in proportion to the payload, and never panics.
func CheckPayload(payload []byte, s Shape) error {
	if s != Detect && !slices.Contains(Shapes(), s) {
		return guardError("unknown payload shape " + quote(string(s)))
	}
	root, err := readJSON(payload, payloadBounds)
	if err != nil {
		return guardError("the payload cannot be checked: " + err.Error())
	}
	if root.Kind != json5.Object {
		return guardError("the payload is no JSON object")
	}
	g := guard{shape: s}
	g.walk(root, "")
	for _, l := range g.lists {
		g.read(l)
	}
	return g.verdict()
}

func guardError(found string) *Error {
	return errorf(RuntimeUnavailable, "the request was not sent: code mode shows a model exactly one exec and one wait; %s", found)
}

// guard collects what a payload declares.
type guard struct {
	shape Shape
	lists []list
	tools []tool
	odd   []string // what may not be there, each with its place
	more  int      // what was left out of odd
}

// list is a list of tools, and where it stands.
type list struct {
	path    string
	entries []json5.Value
}

// tool is an entry that has the form of an ordinary tool.
type tool struct{ name, path string }

// places are where a list of tools may stand, and the shapes that have it there.
var places = map[string][]Shape{
	"tools":         {OpenAIChat, OpenAIResponses, Anthropic, Gemini},
	"functions":     {OpenAIChat},
	"config.tools":  {Gemini},
	"request.tools": {Gemini},
}

// The keys that matter, folded.
var (
	// declaring keys give a model tools, at whichever depth.
	declaring = set("tools", "functions", "functionDeclarations", "toolSpec", "toolDefinitions", "customTools", "serverTools", "hostedTools",
		"mcpServers", "mcpTools", "connectors", "webSearchOptions", "searchParameters")
	// choosing keys say which tool must be called.
	choosing = set("tool_choice", "function_call")
	// conversation keys hold what was said.
	conversation = set("messages", "input", "contents", "content", "history")
	// opaque keys hold schemas of answers and what the caller notes for itself.
	opaque = set("schema", "json_schema", "responseSchema", "responseJsonSchema", "format", "guided_json", "metadata", "labels")
)

func set(keys ...string) map[string]bool {
	m := map[string]bool{}
	for _, k := range keys {
		m[fold(k)] = true
	}
	return m
}

// report notes what may not be there. The first ones are kept.
func (g *guard) report(format string, args ...any) {
	const most = 8 // with what is missing they fit into an error
	if len(g.odd) == most {
		g.more++
		return
	}
	g.odd = append(g.odd, oneLine(fmt.Sprintf(format, args...), 200))
}

// walk looks for declarations in an object or array and what it holds. Its depth is bounded by
// the payload's.
func (g *guard) walk(v *json5.Value, path string) {
	for i := range v.Items {
		item, at := &v.Items[i], index(path, i)
		if toolLike(item) {
			g.report("what looks like a tool at %s%s", at, namesIn(item))
		}
		g.walk(item, at)
	}
	g.twins(v, path)
	for i := range v.Members {
		m := &v.Members[i]
		full := join(path, m.Key)
		switch key := fold(m.Key); {
		case declaring[key]:
			g.declared(&m.Value, full)
		case choosing[key]:
			g.choice(&m.Value, full)
		case conversation[key]:
			g.items(&m.Value, full)
		case full == "prompt" && given(m.Value.Get("id")):
			g.report("a stored prompt in prompt.id, whose tools cannot be seen")
		case !opaque[key]:
			g.walk(&m.Value, full)
		}
	}
}

// join makes paths that cannot be mistaken: a key with a dot in it is no path.
func join(path, key string) string {
	if strings.ContainsAny(key, ".[…") || len(key) > 60 {
		key = quote(key)
	}
	if path == "" {
		return key
	}
	return short(path) + "." + key
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", short(path), i) }

// short bounds the work on the paths of a deep payload.
func short(path string) string {
	if len(path) <= 160 {
		return path
	}
	return "…" + path[len(path)-100:]
}

// toolLike tells a tool in a field that we do not know.
func toolLike(v *json5.Value) bool {
	if v.Kind != json5.Object {
		return false
	}
	_, named := text(v.Get("name"))
	function := v.Get("function")
	return function != nil && function.Get("name") != nil || named && len(schemas(v)) > 0
}

// schemas returns the schemas of a tool's input, by all names that they have.
func schemas(v *json5.Value) (all []*json5.Value) {
	for i := range v.Members {
		switch m := &v.Members[i]; fold(m.Key) {
		case "parameters", "inputschema", "parametersjsonschema":
			if given(&m.Value) {
				all = append(all, &m.Value)
			}
		}
	}
	return all
}

func (g *guard) twins(v *json5.Value, path string) {
	if a, b := twin(v); b != "" || a != "" {
		g.report("two keys that can be read as one, %s and %s, in %s", quote(a), quote(b), where(path))
	}
}

func where(path string) string {
	if path == "" {
		return "the payload"
	}
	return path
}

// declared takes what stands under a declaring key.
func (g *guard) declared(v *json5.Value, path string) {
	if nothing(v) {
		return
	}
	shapes, known := places[path]
	switch {
	case !known || g.shape != Detect && !slices.Contains(shapes, g.shape):
		g.report("tools in the field %s%s", path, namesIn(v))
	case v.Kind != json5.Array:
		g.report("%s is no list but of type %s", path, v.Kind)
	default:
		g.lists = append(g.lists, list{path, v.Items})
	}
}

// nothing tells whether a field declares no tool: null, false or an empty list. An empty
// object does: that is how web_search_options is switched on.
func nothing(v *json5.Value) bool {
	return v.Kind == json5.Null || v.Kind == json5.Array && len(v.Items) == 0 || v.Kind == json5.Bool && v.Text == "false"
}

// namesIn lists the names that a smuggled list has, to help who looks for the culprit.
func namesIn(v *json5.Value) string {
	var found []string
	collect(v, "name", 4, func(name *json5.Value) {
		if s, ok := text(name); ok && len(found) < 5 {
			found = append(found, quote(s))
		}
	})
	if len(found) == 0 {
		return ""
	}
	return " (" + strings.Join(found, ", ") + ")"
}

// collect calls f with what stands under key in v, levels deep.
func collect(v *json5.Value, key string, levels int, f func(*json5.Value)) {
	if levels == 0 {
		return
	}
	for i := range v.Items {
		collect(&v.Items[i], key, levels, f) // arrays end by the depth of the payload
	}
	for i := range v.Members {
		if m := &v.Members[i]; fold(m.Key) == key {
			f(&m.Value)
		} else {
			collect(&m.Value, key, levels-1, f)
		}
	}
}

// choice takes tool_choice and function_call: who must call another tool has one.
func (g *guard) choice(v *json5.Value, path string) {
	collect(v, "name", 8, func(name *json5.Value) {
		if s, ok := text(name); !ok || s != ExecName && s != WaitName {
			g.report("%s names the tool %s", path, quote(s))
		}
	})
}

// items takes a conversation. Some APIs read tools from its items (tool_search_output of
// OpenAI's responses, system messages elsewhere). Deeper are arguments and results, which
// may say anything.
func (g *guard) items(v *json5.Value, path string) {
	if v.Kind == json5.Object {
		g.item(v, path)
	}
	for i := range v.Items {
		g.item(&v.Items[i], index(path, i))
	}
}

func (g *guard) item(v *json5.Value, path string) {
	for i := range v.Members {
		m := &v.Members[i]
		if declaring[fold(m.Key)] && !nothing(&m.Value) {
			g.report("tools in the field %s%s", join(path, m.Key), namesIn(&m.Value))
		}
	}
}

// verdict is the error, or nil (SPEC 2.6).
func (g *guard) verdict() error {
	counts := map[string]int{}
	for _, t := range g.tools {
		counts[t.name]++
		if t.name != ExecName && t.name != WaitName {
			g.report("the tool %s at %s", quote(t.name), t.path)
		}
	}
	if len(g.lists) > 1 {
		g.report("lists of tools in %s and in %s", g.lists[0].path, g.lists[1].path)
	}
	for _, name := range []string{ExecName, WaitName} {
		if counts[name] > 1 {
			g.report("%d tools called %s", counts[name], name)
		}
	}
	if len(g.odd) == 0 && counts[ExecName] == 1 && counts[WaitName] == 1 {
		return nil
	}
	return guardError("found " + g.found(counts))
}

// found lists all that is wrong, worst last: what is missing follows what is too much.
func (g *guard) found(counts map[string]int) string {
	parts := g.odd
	if g.more > 0 {
		parts = append(parts, fmt.Sprintf("%d more such things", g.more))
	}
	if len(g.lists) == 0 {
		parts = append(parts, "no list of tools")
	}
	for _, name := range []string{ExecName, WaitName} {
		if counts[name] == 0 {
			parts = append(parts, "no "+name)
		}
	}
	return strings.Join(parts, "; ")
}
