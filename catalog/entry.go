package catalog

import (
	"bytes"
	"encoding/json"
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
