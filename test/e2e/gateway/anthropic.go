package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/openclaw/codemode-supervisor/supervisor/surface"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// anthropic is the messages API.
type anthropic struct{}

func (anthropic) path() string         { return "/v1/messages" }
func (anthropic) shape() surface.Shape { return surface.Anthropic }

func (anthropic) authorize(h http.Header, key string) {
	h.Set("X-Api-Key", key)
	h.Set("Anthropic-Version", "2023-06-01")
}

func (anthropic) tool(name, description string, parameters json.RawMessage) any {
	return map[string]any{"name": name, "description": description, "input_schema": parameters}
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

func (anthropic) messages(history []trajectory.Message) any {
	var all []anthropicMessage
	for _, m := range history {
		role, block := m.Role, anthropicBlock{Type: "text", Text: m.Text}
		switch {
		case m.Role == trajectory.RoleToolResult:
			role, block = "user", anthropicBlock{Type: "tool_result", ToolUseID: m.CallID, Content: m.Text, IsError: m.IsError}
		case m.CallID != "":
			block = anthropicBlock{Type: "tool_use", ID: m.CallID, Name: m.Name, Input: m.Arguments}
		case m.Text == "":
			continue // empty text is refused
		}
		if n := len(all); n > 0 && all[n-1].Role == role { // roles take turns
			all[n-1].Content = append(all[n-1].Content, block)
			continue
		}
		all = append(all, anthropicMessage{role, []anthropicBlock{block}})
	}
	return all
}

func (anthropic) parse(body []byte) (r reply, err error) {
	var m anthropicMessage
	if err := json.Unmarshal(body, &m); err != nil {
		return r, fmt.Errorf("the model's answer is not understood: %w", err)
	}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			r.Text += b.Text
		case "tool_use":
			r.Calls = append(r.Calls, toolCall{b.ID, b.Name, b.Input})
		}
	}
	return r, nil
}

func (anthropic) join(r *reply, data []byte) error {
	var in struct {
		Type  string
		Block anthropicBlock `json:"content_block"`
		Delta struct {
			Type        string
			Text        string
			PartialJSON string `json:"partial_json"`
		}
		Error struct{ Message string }
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("an event of the model's stream is not understood: %w", err)
	}
	switch {
	case in.Type == "message_stop":
		return errDone
	case in.Type == "error":
		return fmt.Errorf("the model's stream ended with an error: %.200s", in.Error.Message)
	case in.Type == "content_block_start" && in.Block.Type == "tool_use":
		r.Calls = append(r.Calls, toolCall{ID: in.Block.ID, Name: in.Block.Name})
	case in.Delta.Type == "text_delta":
		r.Text += in.Delta.Text
	case in.Delta.Type == "input_json_delta": // blocks come one after the other
		if len(r.Calls) == 0 {
			return fmt.Errorf("the model's stream has arguments of no call")
		}
		last := &r.Calls[len(r.Calls)-1]
		last.Arguments = append(last.Arguments, in.Delta.PartialJSON...)
	}
	return nil
}
