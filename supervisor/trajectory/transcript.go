package trajectory

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Message is an entry of a gateway's transcript: a tool call of the assistant's, or a
// tool's result, in the gateway's own form (SPEC 18.1):
//
//	{"role":"assistant","content":[{"type":"toolCall","id":…,"name":…,"arguments":{…}}],"timestamp":…}
//	{"role":"toolResult","toolCallId":…,"toolName":…,"content":[{"type":"text","text":…}],"isError":…,"timestamp":…}
//
// exec and wait are the control calls that the model made, and have no mark. A nested call
// is a tool call like any other, with the member codeMode: its [Mark]. What was read from
// a transcript is written again byte for byte, whatever else the gateway
// had put into it, and so are messages of which nothing is known here.
type Message struct {
	Role      string // assistant or toolResult; of a message that was read, whatever it has
	CallID    string
	Name      string          // of the tool: exec, wait, or the nested call's
	Arguments json.RawMessage // of a call: an object
	Text      string          // of a result
	IsError   bool            // of a result
	Time      time.Time
	Mark      *Mark // of a nested call and its result

	raw json.RawMessage // as it was read
}

// Mark says that a tool call was made by a cell, and not by the model.
type Mark struct {
	ParentCallID string `json:"parentCallId"` // the original exec call, also after resumes
	CatalogID    string `json:"catalogId"`    // the tool's exact id
	RunID        string `json:"runId"`
	State        string `json:"state,omitempty"` // of a result: done, failed, or denied
	Code         string `json:"code,omitempty"`
	Data         *Data  `json:"data,omitempty"` // stands for arguments or a result whose content was not kept
}

// The roles.
const (
	RoleAssistant  = "assistant"
	RoleToolResult = "toolResult"
)

// Nested tells that the message is of a nested call. A gateway shows it to people and
// leaves it out of what the model gets: the model made exec and wait.
func (m Message) Nested() bool { return m.Mark != nil }

// The forms in which messages are stored.
type (
	wireMessage struct {
		Role       string          `json:"role"`
		ToolCallID string          `json:"toolCallId,omitempty"`
		ToolName   string          `json:"toolName,omitempty"`
		Content    json.RawMessage `json:"content,omitempty"` // blocks, or of somebody else's messages a string
		IsError    *bool           `json:"isError,omitempty"`
		Timestamp  json.RawMessage `json:"timestamp,omitempty"` // ms since 1970
		CodeMode   *Mark           `json:"codeMode,omitempty"`
	}
	wireBlock struct {
		Type      string          `json:"type"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Text      string          `json:"text,omitempty"`
	}
)

// MarshalJSON writes the gateway's form.
func (m Message) MarshalJSON() ([]byte, error) {
	if m.raw != nil {
		return m.raw, nil
	}
	w := wireMessage{Role: m.Role, CodeMode: m.Mark}
	block := wireBlock{Type: "text", Text: m.Text}
	switch m.Role {
	case RoleAssistant:
		block = wireBlock{Type: "toolCall", ID: m.CallID, Name: m.Name, Arguments: m.Arguments}
		if len(m.Arguments) == 0 {
			block.Arguments = json.RawMessage("{}")
		}
	case RoleToolResult:
		w.ToolCallID, w.ToolName, w.IsError = m.CallID, m.Name, &m.IsError
	default:
		return nil, fmt.Errorf("a message with role %.40q cannot be written to a transcript: it is neither %s nor %s", m.Role, RoleAssistant, RoleToolResult)
	}
	var err error
	if w.Content, err = marshal([]wireBlock{block}); err != nil {
		return nil, err
	}
	if !m.Time.IsZero() {
		w.Timestamp = fmt.Append(nil, m.Time.UnixMilli())
	}
	return marshal(w)
}

// marshal is json.Marshal without the escapes for HTML, which would change contents.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// UnmarshalJSON reads a message of a transcript. It fails only if it is no object: what is
// in it may be the gateway's, and is kept.
func (m *Message) UnmarshalJSON(b []byte) error {
	if trimmed := bytes.TrimSpace(b); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("a message of a transcript must be a JSON object")
	}
	*m = Message{raw: bytes.Clone(b)}
	var w wireMessage
	if json.Unmarshal(b, &w) != nil {
		return nil // members of our names with other types: somebody else's
	}
	m.Role, m.CallID, m.Name, m.Mark = w.Role, w.ToolCallID, w.ToolName, w.CodeMode
	m.IsError = w.IsError != nil && *w.IsError
	var ms int64
	if json.Unmarshal(w.Timestamp, &ms) == nil {
		m.Time = time.UnixMilli(ms).UTC()
	}
	var blocks []wireBlock
	if json.Unmarshal(w.Content, &blocks) != nil {
		return nil
	}
	for _, block := range blocks {
		switch {
		case block.Type == "toolCall" && m.Role == RoleAssistant && m.CallID == "":
			m.CallID, m.Name, m.Arguments = block.ID, block.Name, block.Arguments
		case block.Type == "text" && m.Text == "":
			m.Text = block.Text
		}
	}
	return nil
}

// Projector gives nested calls as messages as they happen. Behind a [SinkFunc] it lets a
// gateway write them into its transcript: an exec or a wait returns after the last of them,
// so they stand between the control call, which the gateway writes itself, and its result.
//
// The zero value is ready. It is for one goroutine, which a sink is.
type Projector struct {
	calls map[string]map[string]string // of a run that has not ended: the calls that were given, with their tools
}

// Nested gives the messages of an event: none unless it is of a nested call. Each call has
// one message and at most one result, also if it was refused before it was sent, or sent
// again after a kill.
func (p *Projector) Nested(e Event) []Message {
	if e.Kind == End {
		delete(p.calls, e.RunID)
	}
	if e.CallID == "" || e.Kind != ToolCall && e.Kind != ToolResult {
		return nil
	}
	if p.calls == nil {
		p.calls = map[string]map[string]string{}
	}
	if p.calls[e.RunID] == nil {
		p.calls[e.RunID] = map[string]string{}
	}
	tool, known := p.calls[e.RunID][e.CallID]
	if known {
		e.ToolID = tool // a denied one is known to the guest by another name
	}
	p.calls[e.RunID][e.CallID] = e.ToolID
	if e.Kind == ToolCall {
		if known {
			return nil
		}
		return []Message{nestedCall(e)}
	}
	messages := []Message{nestedResult(e)}
	if !known {
		call := e
		call.Status, call.Code, call.Data = "", "", nil
		messages = append([]Message{nestedCall(call)}, messages...)
	}
	return messages
}

// nestedMessage is what a nested call and its result have in common.
func nestedMessage(e Event, role string) (m Message, content json.RawMessage) {
	m = Message{
		Role: role, CallID: e.CallID, Name: e.ToolID, Time: e.Time,
		Mark: &Mark{ParentCallID: e.Parent, CatalogID: e.ToolID, RunID: e.RunID, State: e.Status, Code: e.Code},
	}
	if e.Data != nil && len(e.Data.Content) > 0 {
		return m, e.Data.Content
	}
	m.Mark.Data = e.Data
	return m, nil
}

func nestedCall(e Event) Message {
	m, input := nestedMessage(e, RoleAssistant)
	if m.Arguments = input; input != nil && !isObject(input) { // as of namespaces
		m.Arguments, _ = marshal(map[string]json.RawMessage{"input": input})
	}
	return m
}

func nestedResult(e Event) Message {
	m, result := nestedMessage(e, RoleToolResult)
	m.IsError = e.Status == "failed"
	if result != nil {
		m.Text = plainText(result)
	}
	return m
}

// plainText is a JSON string as what it says, and anything else as it is.
func plainText(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	return string(content)
}

func isObject(content json.RawMessage) bool {
	b := bytes.TrimSpace(content)
	return len(b) > 0 && b[0] == '{'
}

// WriteMessages writes a transcript as JSON lines.
func WriteMessages(w io.Writer, messages []Message) error {
	for _, m := range messages {
		b, err := m.MarshalJSON()
		if err == nil {
			_, err = w.Write(append(bytes.Clone(b), '\n'))
		}
		if err != nil {
			return fmt.Errorf("writing the transcript: %w", err)
		}
	}
	return nil
}

// ReadMessages reads a transcript that is stored as JSON lines, with the bounds of [Read];
// what is over MaxEvents is an error. Lines that are no messages are counted.
func ReadMessages(r io.Reader) (messages []Message, skipped int, err error) {
	in := bufio.NewReaderSize(&io.LimitedReader{R: r, N: MaxFile}, 64<<10)
	for {
		line, tooLong, err := readLine(in)
		if line = bytes.TrimSpace(line); len(line) > 0 || tooLong {
			var m Message
			switch {
			case tooLong || !json.Valid(line) || m.UnmarshalJSON(line) != nil:
				skipped++
			case len(messages) == MaxEvents:
				return messages, skipped, fmt.Errorf("reading the transcript: more than %d messages", MaxEvents)
			default:
				messages = append(messages, m)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return messages, skipped, nil
		case err != nil:
			return messages, skipped, fmt.Errorf("reading the transcript: %w", err)
		}
	}
}

// Project gives the transcript of events that a gateway did not follow as they happened,
// such as those of a file: exec with the id that the model gave it, a wait for each
// resume, their results, and the nested calls between them. A wait whose id the stream
// does not know becomes RUN:wait:N. A run whose end is missing has a
// last control call without a result.
func Project(events []Event) []Message {
	var messages []Message
	open := map[string]control{} // by run
	var p Projector
	for _, e := range events {
		messages = append(messages, p.Nested(e)...)
		c := open[e.RunID]
		switch e.Kind {
		case Exec:
			c = control{id: e.Parent, name: "exec", waits: c.waits}
			messages = append(messages, c.call("code", e))
		case Resume:
			c = control{id: cmp.Or(e.CallID, fmt.Sprintf("%s:wait:%d", e.RunID, c.waits+1)), name: "wait", waits: c.waits + 1}
			messages = append(messages, c.call("runId", e))
		case Park, End:
			if c.id != "" {
				messages = append(messages, c.result(e))
			}
			c.id = ""
		}
		open[e.RunID] = c
	}
	return messages
}

// control is a control call that has no result yet; waits counts those of the run.
type control struct {
	id, name string
	waits    int
}

func (c control) call(argument string, e Event) Message {
	value, _ := marshal(e.RunID)
	if e.Kind == Exec {
		value = nil
		if e.Data != nil {
			value = e.Data.Content
		}
	}
	m := Message{Role: RoleAssistant, CallID: c.id, Name: c.name, Time: e.Time}
	if len(value) > 0 {
		m.Arguments, _ = marshal(map[string]json.RawMessage{argument: value})
	}
	return m
}

// result is what the stream knows of the control call's result.
func (c control) result(e Event) Message {
	out := struct {
		Status string          `json:"status"`
		RunID  string          `json:"runId"`
		Reason string          `json:"reason,omitempty"`
		Code   string          `json:"code,omitempty"`
		Value  json.RawMessage `json:"value,omitempty"`
		Error  json.RawMessage `json:"error,omitempty"`
	}{Status: e.Status, RunID: e.RunID, Code: e.Code}
	switch {
	case e.Kind == Park:
		out.Status, out.Reason = "waiting", e.Status
	case e.Data == nil:
	case e.Part() == PartError:
		out.Error = e.Data.Content
	default:
		out.Value = e.Data.Content
	}
	text, _ := marshal(out)
	return Message{Role: RoleToolResult, CallID: c.id, Name: c.name, Time: e.Time, IsError: e.Kind == End && e.Status == "failed", Text: string(text)}
}
