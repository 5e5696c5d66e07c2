package provider

import (
	"encoding/json"
	"net/http"
	"strings"
)

// openAI is the chat completions API.
type openAI struct{}

func (openAI) idPrefix() string { return "call_" }

func (openAI) key(h http.Header) string {
	key, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return key
}

func (openAI) failure(text string) any {
	return map[string]any{"error": map[string]any{"message": text, "type": "invalid_request_error"}}
}

func (openAI) results(body []byte) (texts []string, err error) {
	var in struct {
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCallID string                `json:"tool_call_id"`
			ToolCalls  []struct{ ID string } `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	var p pairs
	for _, m := range in.Messages {
		if m.Role == "tool" {
			if err := p.result(m.ToolCallID); err != nil {
				return nil, err
			}
			texts = append(texts, text(m.Content))
			continue
		}
		if err := p.closed(); err != nil {
			return nil, err
		}
		for _, c := range m.ToolCalls {
			p.call(c.ID)
		}
	}
	return texts, p.closed()
}

func finish(m message) string {
	if len(m.Calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func (openAI) message(model string, m message) any {
	said := map[string]any{"role": "assistant", "content": m.Text}
	if len(m.Calls) > 0 {
		var calls []any
		for _, c := range m.Calls {
			calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Arguments}})
		}
		said["tool_calls"], said["content"] = calls, nil
	}
	return map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "model": model,
		"choices": []any{map[string]any{"index": 0, "message": said, "finish_reason": finish(m)}},
	}
}

func (openAI) events(model string, m message) (events []event) {
	add := func(delta map[string]any, finish any) {
		events = append(events, event{Data: map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		}})
	}
	add(map[string]any{"role": "assistant", "content": ""}, nil)
	if m.Text != "" {
		add(map[string]any{"content": m.Text}, nil)
	}
	for i, c := range m.Calls {
		add(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}}}}, nil)
		for _, piece := range halves(c.Arguments) {
			add(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": piece}}}}, nil)
		}
	}
	add(map[string]any{}, finish(m))
	return append(events, event{Data: "[DONE]"})
}
