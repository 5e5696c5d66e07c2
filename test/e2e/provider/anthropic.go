package provider

import (
	"encoding/json"
	"net/http"
)

// anthropic is the messages API.
type anthropic struct{}

func (anthropic) idPrefix() string { return "toolu_" }

func (anthropic) key(h http.Header) string { return h.Get("X-Api-Key") }

func (anthropic) failure(text string) any {
	return map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": text}}
}

func (anthropic) results(body []byte) (texts []string, err error) {
	var in struct {
		Messages []struct {
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	var p pairs
	for _, m := range in.Messages {
		var blocks []struct {
			Type, ID  string
			ToolUseID string `json:"tool_use_id"`
			Content   json.RawMessage
		}
		_ = json.Unmarshal(m.Content, &blocks) // a string has none
		for _, b := range blocks {
			if b.Type == "tool_result" {
				if err := p.result(b.ToolUseID); err != nil {
					return nil, err
				}
				texts = append(texts, text(b.Content))
			}
		}
		if err := p.closed(); err != nil { // all results are in the message after the calls
			return nil, err
		}
		for _, b := range blocks {
			if b.Type == "tool_use" {
				p.call(b.ID)
			}
		}
	}
	return texts, p.closed()
}

func stopReason(m message) string {
	if len(m.Calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func (anthropic) message(model string, m message) any {
	content := []any{}
	if m.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": m.Text})
	}
	for _, c := range m.Calls {
		content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
	}
	return map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content, "stop_reason": stopReason(m)}
}

func (anthropic) events(model string, m message) (events []event) {
	add := func(name string, data map[string]any) {
		data["type"] = name
		events = append(events, event{name, data})
	}
	add("message_start", map[string]any{"message": map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []any{}}})
	n := 0
	block := func(start map[string]any, deltas ...map[string]any) {
		add("content_block_start", map[string]any{"index": n, "content_block": start})
		for _, d := range deltas {
			add("content_block_delta", map[string]any{"index": n, "delta": d})
		}
		add("content_block_stop", map[string]any{"index": n})
		n++
	}
	if m.Text != "" {
		block(map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": m.Text})
	}
	for _, c := range m.Calls {
		var deltas []map[string]any
		for _, piece := range halves(c.Arguments) {
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": piece})
		}
		block(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}}, deltas...)
	}
	add("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stopReason(m)}})
	add("message_stop", map[string]any{})
	return events
}
