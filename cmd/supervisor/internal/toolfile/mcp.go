package toolfile

import (
	"bytes"
	"encoding/json"
	"errors"
)

// mcpResult turns what a behaviour gave into the result of an MCP tool call
// (MCP 2025-06-18, server/tools: CallToolResult). A value that is one already is
// kept; any other becomes text content, and structured content if it is an
// object. A failure of the tool is a result with isError; a call that was given
// up has no result.
func mcpResult(value json.RawMessage, err error) (json.RawMessage, error) {
	if err != nil {
		var failed *ToolError
		if !errors.As(err, &failed) {
			return nil, err
		}
		return encode(callResult{Content: []textContent{{"text", failed.Message}}, IsError: true}), nil
	}
	if isCallResult(value) {
		return value, nil
	}
	r := callResult{Content: []textContent{{"text", string(value)}}}
	if bytes.HasPrefix(value, []byte("{")) {
		r.StructuredContent = value
	}
	return encode(r), nil
}

type callResult struct {
	Content           []textContent   `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	IsError           bool            `json:"isError,omitempty"`
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// isCallResult reports whether value is an object whose content is a list of
// content blocks.
func isCallResult(value json.RawMessage) bool {
	var r struct {
		Content *[]struct {
			Type string `json:"type"`
		} `json:"content"`
	}
	if json.Unmarshal(value, &r) != nil || r.Content == nil {
		return false
	}
	for _, block := range *r.Content {
		if block.Type == "" {
			return false
		}
	}
	return true
}

// encode is json.Marshal without its HTML escapes, for values that always encode.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("toolfile: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}
