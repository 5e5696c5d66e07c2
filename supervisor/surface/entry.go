package surface

import "github.com/openclaw/codemode-supervisor/limits/json5"

// read takes the entries of one list. All must be of one shape.
func (g *guard) read(l list) {
	reader := readers[g.shape]
	if l.path == "functions" {
		reader = (*guard).legacyEntry
	} else if g.shape == Detect {
		reader = readers[detect(l)]
	}
	for i := range l.entries {
		e, path := &l.entries[i], index(l.path, i)
		if e.Kind != json5.Object {
			g.report("a tool without a name at %s: it is of type %s", path, e.Kind)
			continue
		}
		g.twins(e, path)
		reader(g, e, path)
	}
}

// readers take an entry as each shape has it.
var readers = map[Shape]func(g *guard, e *json5.Value, path string){
	OpenAIChat:      (*guard).chatEntry,
	OpenAIResponses: (*guard).responsesEntry,
	Anthropic:       (*guard).anthropicEntry,
	Gemini:          (*guard).geminiGroup,
}

// detect tells the shape of a list by the first entry that has one. An entry of another
// shape then has no name where one is looked for, or a type that is not known.
func detect(l list) Shape {
	if l.path != "tools" {
		return Gemini
	}
	for i := range l.entries {
		e := &l.entries[i]
		kind, typed := text(e.Get("type"))
		switch {
		case given(e.Get("function")):
			return OpenAIChat
		case given(e.Get("functionDeclarations")) || given(e.Get("function_declarations")):
			return Gemini
		case given(e.Get("input_schema")) || typed && kind == "custom":
			return Anthropic
		case typed && kind == "function":
			return OpenAIResponses
		}
	}
	for i := range l.entries {
		if e := &l.entries[i]; given(e.Get("name")) || given(e.Get("type")) {
			return Anthropic // {"name": …} alone, or a server tool
		}
	}
	return Gemini
}

// chatEntry takes {"type": "function", "function": {"name": …}}.
func (g *guard) chatEntry(e *json5.Value, path string) {
	if g.hosted(e, path, "function") || g.nested(e, path, "function") {
		return
	}
	function := e.Get("function")
	if function == nil {
		function = &json5.Value{}
	}
	g.twins(function, path+".function")
	if given(e.Get("name")) {
		g.report("two names in the tool at %s: name and function.name", path)
	}
	g.named(function, path)
}

// responsesEntry takes {"type": "function", "name": …}.
func (g *guard) responsesEntry(e *json5.Value, path string) {
	if !given(e.Get("type")) {
		g.report("a tool without a type at %s%s", path, namesIn(e))
		return
	}
	if g.hosted(e, path, "function") || g.nested(e, path, "") {
		return
	}
	g.named(e, path)
}

// anthropicEntry takes {"name": …, "input_schema": …}. Entries of another type are run by the
// provider, or have a schema of the provider's.
func (g *guard) anthropicEntry(e *json5.Value, path string) {
	if g.hosted(e, path, "custom") || g.nested(e, path, "") {
		return
	}
	g.named(e, path)
}

// legacyEntry takes an element of OpenAI's old "functions".
func (g *guard) legacyEntry(e *json5.Value, path string) {
	if g.hosted(e, path, "") || g.nested(e, path, "") {
		return
	}
	g.named(e, path)
}

// geminiGroup takes {"functionDeclarations": [{"name": …}]}. Every other key is a tool of the
// provider's: googleSearch, codeExecution, urlContext, and those that are yet to come.
func (g *guard) geminiGroup(e *json5.Value, path string) {
	if len(e.Members) == 0 {
		g.report("a tool without a name at %s", path)
	}
	for i := range e.Members {
		m := &e.Members[i]
		full := join(path, m.Key)
		switch {
		case m.Value.Kind == json5.Null:
		case m.Key != "functionDeclarations" && m.Key != "function_declarations":
			g.report("the hosted tool %s%s", full, namesIn(&m.Value))
		case m.Value.Kind != json5.Array:
			g.report("%s is no list but of type %s", full, m.Value.Kind)
		default:
			g.declarations(m.Value.Items, full)
		}
	}
}

func (g *guard) declarations(all []json5.Value, path string) {
	for i := range all {
		d, at := &all[i], index(path, i)
		g.twins(d, at)
		g.named(d, at)
	}
}

// hosted reports an entry whose type is not the ordinary one: web_search, mcp, bash_20250124,
// namespace. No type is the ordinary one.
func (g *guard) hosted(e *json5.Value, path, ordinary string) bool {
	kind := e.Get("type")
	if s, ok := text(kind); !given(kind) || ok && s == ordinary {
		return false
	}
	g.report("a tool of type %s at %s%s", quote(kind.Text), path, namesIn(e))
	return true
}

// nested reports an entry that holds tools of its own, or a tool in another shape.
func (g *guard) nested(e *json5.Value, path, except string) bool {
	for i := range e.Members {
		m := &e.Members[i]
		key := fold(m.Key)
		if m.Key != except && (declaring[key] || key == "function" || key == "custom") && !nothing(&m.Value) {
			g.report("another tool within the one at %s, in %s%s", path, quote(m.Key), namesIn(&m.Value))
			return true
		}
	}
	return false
}

// proof is the property without which a tool of that name is not ours.
var proof = map[string]string{ExecName: "code", WaitName: "runId"}

// named takes a tool by the name that v has. A gateway may have a shell tool called exec; its
// schema gives it away. A schema without properties proves nothing.
func (g *guard) named(v *json5.Value, path string) {
	name, ok := text(v.Get("name"))
	if !ok || name == "" {
		g.report("a tool without a name at %s", path)
		return
	}
	for _, schema := range schemas(v) {
		properties := schema.Get("properties")
		if want := proof[name]; want != "" && properties != nil && len(properties.Members) > 0 && properties.Get(want) == nil {
			g.report("another tool called %s at %s: its schema has no %s", name, path, want)
		}
	}
	g.tools = append(g.tools, tool{name, path})
}
