package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/openclaw/codemode-supervisor/supervisor/surface"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// openAI is the chat completions API.
type openAI struct{}

func (openAI) path() string         { return "/v1/chat/completions" }
func (openAI) shape() surface.Shape { return surface.OpenAIChat }

func (openAI) authorize(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

func (openAI) tool(name, description string, parameters json.RawMessage) any {
	return map[string]any{"type": "function", "function": map[string]any{"name": name, "description": description, "parameters": parameters}}
}

type openAICall struct {
	Index    int    `json:"index"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openAIMessage struct {
	Role       string       `json:"role"`
	Content    *string      `json:"content"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
	ToolCalls  []openAICall `json:"tool_calls,omitempty"`
}

func (openAI) messages(history []trajectory.Message) any {
	var all []openAIMessage
	for _, m := range history {
		out := openAIMessage{Role: m.Role, Content: &m.Text}
		if m.Role == trajectory.RoleToolResult {
			out.Role, out.ToolCallID = "tool", m.CallID
		}
		if m.Role == trajectory.RoleAssistant && m.CallID != "" {
			call := openAICall{ID: m.CallID, Type: "function"}
			call.Function.Name, call.Function.Arguments = m.Name, string(m.Arguments)
			if n := len(all); n > 0 && all[n-1].Role == m.Role { // one message has all the calls
				call.Index = len(all[n-1].ToolCalls)
				all[n-1].ToolCalls = append(all[n-1].ToolCalls, call)
				continue
			}
			out.Content, out.ToolCalls = nil, []openAICall{call}
		}
		all = append(all, out)
	}
	return all
}

func (openAI) parse(body []byte) (r reply, err error) {
	var in struct {
		Choices []struct{ Message openAIMessage }
	}
	if err := json.Unmarshal(body, &in); err != nil || len(in.Choices) != 1 {
		return r, errors.New("the model's answer is not one choice")
	}
	m := in.Choices[0].Message
	if m.Content != nil {
		r.Text = *m.Content
	}
	for _, c := range m.ToolCalls {
		r.Calls = append(r.Calls, toolCall{c.ID, c.Function.Name, []byte(c.Function.Arguments)})
	}
	return r, nil
}

func (openAI) join(r *reply, data []byte) error {
	if string(data) == "[DONE]" {
		return errDone
	}
	var in struct {
		Choices []struct{ Delta openAIMessage }
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("an event of the model's stream is not understood: %w", err)
	}
	for _, choice := range in.Choices {
		if text := choice.Delta.Content; text != nil {
			r.Text += *text
		}
		for _, c := range choice.Delta.ToolCalls {
			switch {
			case c.Index == len(r.Calls):
				r.Calls = append(r.Calls, toolCall{ID: c.ID, Name: c.Function.Name})
			case c.Index < 0 || c.Index > len(r.Calls):
				return fmt.Errorf("the model's stream goes on with call %d, there are %d", c.Index, len(r.Calls))
			}
			r.Calls[c.Index].Arguments = append(r.Calls[c.Index].Arguments, c.Function.Arguments...)
		}
	}
	return nil
}
