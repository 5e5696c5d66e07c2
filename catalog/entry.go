package catalog

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Source says where a tool comes from (SPEC 6.1).
type Source string

// The sources of a tool.
const (
	OpenClaw Source = "openclaw" // built into the gateway
	Plugin   Source = "plugin"   // from a plugin of the gateway
	MCP      Source = "mcp"      // from an MCP server; reached through MCP alone
	Client   Source = "client"   // from the client that opened the run
)

// owner is the middle part of the ids of tools whose entry names no owner.
func (s Source) owner() string {
	switch s {
	case OpenClaw:
		return "core"
	case Client:
		return "app"
	}
	return "default"
}

func (s Source) valid() bool {
	return s == OpenClaw || s == Plugin || s == MCP || s == Client
}

// Entry is one tool as its owner declares it (SPEC 6.1). It is plain data.
type Entry struct {
	// ID is `<source>:<owner>:<tool-name>`, at most 512 bytes. Empty means that
	// [Build] puts it together from the fields below.
	ID string

	// Name is the tool's own name. It must not be empty.
	Name string

	// Label is a name for people; optional.
	Label string

	// Description is what the model reads. Build cuts it at 16 KiB.
	Description string

	// Source is where the tool comes from; one of the constants.
	Source Source

	// SourceName is the plugin, MCP server or client that owns the tool; optional.
	// In ids its place is taken by "core" (openclaw), "app" (client) or "default".
	SourceName string

	// Parameters is the JSON Schema of the input (draft-07 or 2020-12). Empty means
	// that any input will do.
	Parameters json.RawMessage

	// OutputSchema is the JSON Schema of the result; optional. It is shown, never
	// enforced.
	OutputSchema json.RawMessage

	// Annotations are the owner's hints.
	Annotations Annotations

	// Operation is for entries of MCP servers that are no tools: what else the server
	// offers, under MCP.<server>.resources and .prompts (SPEC 7.2). Name and Parameters
	// may then be empty.
	Operation Operation

	// Denied is the verdict of policy: nobody may see or call the tool. The catalog keeps
	// the entry for one purpose, to tell an attempt on it from any other wrong name
	// ([LookupError.Denied]); everywhere else it does not exist (SPEC 6.5). It wins over an
	// entry with the same id that is not denied. See [Policy].
	Denied bool

	// Approval says that each call needs an approval before the tool is started, whichever
	// way the cell named it (SPEC 10.1). See [Policy].
	Approval bool

	// Control marks a control tool of the surface itself, such as code mode's own
	// exec. It is left out of the catalog, and that is no warning (SPEC 2.4). A
	// shell tool that happens to be called exec leaves it false.
	Control bool
}

// Annotations are what a tool's owner says about its side effects. False is the
// careful answer for the first two; a tool with neither is never repeated on its
// own (SPEC 14.5).
type Annotations struct {
	ReadOnly    bool // changes nothing
	Idempotent  bool // twice is as good as once
	Destructive bool // may delete or overwrite
}

// Operation is what an MCP server offers beside its tools.
type Operation string

// The operations; each takes and returns what MCP's method of that name does.
const (
	ResourcesList Operation = "resources/list"
	ResourcesRead Operation = "resources/read"
	PromptsList   Operation = "prompts/list"
	PromptsGet    Operation = "prompts/get"
)

// operationInput has the schema of an operation's input, where the entry has none.
var operationInput = map[Operation]string{
	ResourcesList: `{"type":"object","properties":{"cursor":{"type":"string"}},"additionalProperties":false}`,
	ResourcesRead: `{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"],"additionalProperties":false}`,
	PromptsList:   `{"type":"object","properties":{"cursor":{"type":"string"}},"additionalProperties":false}`,
	PromptsGet: `{"type":"object","properties":{"name":{"type":"string"},` +
		`"arguments":{"type":"object","additionalProperties":{"type":"string"}}},"required":["name"],"additionalProperties":false}`,
}

// ID returns the id of a tool whose owner gives it none: `<source>:<owner>:<name>` (SPEC
// 6.2). An owner without a name is "core" (openclaw), "app" (client) or "default". A colon
// in the owner's name is written %3A: it must not make the tool of one owner that of
// another.
func ID(source Source, owner, name string) string {
	if owner == "" {
		owner = source.owner()
	}
	return string(source) + ":" + ownerEscape.Replace(owner) + ":" + name
}

var ownerEscape = strings.NewReplacer("%", "%25", ":", "%3A")

// compact is the entry as ALL_TOOLS and search hits show it, in this field order.
type compact struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Label       string `json:"label,omitempty"`
	Description string `json:"description"`
	Source      Source `json:"source"`
	SourceName  string `json:"sourceName,omitempty"`
}

func (e *Entry) compact() compact {
	return compact{e.ID, e.Name, e.Label, e.Description, e.Source, e.SourceName}
}

// Compact returns the entry as JSON with the fields id, name, label?,
// description, source and sourceName?, in this order: an element of ALL_TOOLS.
func (t *Tool) Compact() json.RawMessage { return encode(t.compact()) }

// Describe returns what tools.describe resolves to: the fields of [Tool.Compact],
// then parameters ({} if the tool has no usable schema) and, where declared,
// outputSchema.
func (t *Tool) Describe() json.RawMessage {
	d := struct {
		compact
		Parameters   json.RawMessage `json:"parameters"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	}{t.compact(), t.Parameters, t.OutputSchema}
	if len(d.Parameters) == 0 {
		d.Parameters = json.RawMessage("{}")
	}
	return encode(d)
}

// encode is json.Marshal without its HTML escapes. Its arguments always encode:
// texts, and schemas that Build has checked to be JSON.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("catalog: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}
