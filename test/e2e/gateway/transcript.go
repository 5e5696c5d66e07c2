package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// transcript is a session's conversation, in a file of JSON lines. It is read back for each
// request: what the file does not keep the model does not get.
type transcript struct {
	file string

	mu        sync.Mutex
	projector trajectory.Projector // guarded by mu
}

func (t *transcript) add(messages ...trajectory.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.write(messages)
}

// nested takes an event of a run: the sink of the session's recorder. Calls settle while a run is
// parked, too, and then stand between the model's calls.
func (t *transcript) nested(e trajectory.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.write(t.projector.Nested(e))
}

// write appends messages. The caller holds mu.
func (t *transcript) write(messages []trajectory.Message) error {
	if len(messages) == 0 {
		return nil
	}
	f, err := os.OpenFile(t.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = trajectory.WriteMessages(f, messages)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func (t *transcript) read() ([]trajectory.Message, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, err := os.Open(t.file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	messages, skipped, err := trajectory.ReadMessages(f)
	if err == nil && skipped > 0 {
		err = fmt.Errorf("%d lines of the transcript %s are no messages", skipped, t.file)
	}
	return messages, err
}

// said is a message of text. The library's have calls and results only, and keep all others.
func said(role, text string) (m trajectory.Message) {
	b, _ := json.Marshal(map[string]any{ // of strings and a number
		"role": role, "content": []any{map[string]any{"type": "text", "text": text}}, "timestamp": time.Now().UnixMilli(),
	})
	_ = m.UnmarshalJSON(b) // an object
	return m
}

func answered(c toolCall, text string, failed bool) trajectory.Message {
	return trajectory.Message{Role: trajectory.RoleToolResult, CallID: c.ID, Name: c.Name, Text: text, IsError: failed, Time: time.Now()}
}
