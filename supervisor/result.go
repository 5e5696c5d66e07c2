package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Status is how an exec or a wait ended (SPEC 11.1).
type Status string

// The statuses.
const (
	Completed Status = "completed"
	Waiting   Status = "waiting" // parked: Wait goes on
	Failed    Status = "failed"
)

// Why a run is [Waiting].
const (
	ReasonYield        = "yield"         // the cell called yield_control
	ReasonPendingTools = "pending_tools" // nothing can go on before a nested call settles
)

// PendingCall is a nested call that has not settled (SPEC 11.4).
type PendingCall struct {
	ID     string    `json:"id"`
	ToolID string    `json:"toolId"`
	State  CallState `json:"state"`            // NotStarted or InFlight
	Reason string    `json:"reason,omitempty"` // what the executor said of its waiting
}

// Code says why a run failed (SPEC 11.2). A guest exception has none.
type Code string

// The codes.
const (
	RuntimeUnavailable        Code = "runtime_unavailable"
	InvalidConfig             Code = "invalid_config"
	InvalidInput              Code = "invalid_input"
	UnsupportedLanguage       Code = "unsupported_language"
	TypeScriptTransformFailed Code = "typescript_transform_failed"
	ModuleAccessDenied        Code = "module_access_denied"
	Timeout                   Code = "timeout"
	MemoryLimitExceeded       Code = "memory_limit_exceeded"
	OutputLimitExceeded       Code = "output_limit_exceeded"
	SnapshotLimitExceeded     Code = "snapshot_limit_exceeded"
	SnapshotExpired           Code = "snapshot_expired"
	SnapshotRestoreFailed     Code = "snapshot_restore_failed"
	TooManyPendingToolCalls   Code = "too_many_pending_tool_calls"
	NestedToolFailed          Code = "nested_tool_failed"
	Aborted                   Code = "aborted"
	InternalError             Code = "internal_error"
)

// Phase says whose failure it was (SPEC 11.1).
type Phase string

// The phases.
const (
	PhaseInput Phase = "input" // refused before any guest code ran
	PhaseGuest Phase = "guest" // the guest's own exception
	PhaseTool  Phase = "tool"  // an uncaught failure of a nested call
	PhaseLimit Phase = "limit"
	PhaseHost  Phase = "host" // ours, the worker's, or an abort
)

// Result is what an exec or a wait gives. Its JSON is what the model sees.
type Result struct {
	Status Status `json:"status"`
	// RunID names the run: random, never used again, the same in all results of the run
	// (SPEC 12.2). In JSON it is runId, and only there while there is something to wait for.
	RunID string `json:"-"`
	// Reason is ReasonYield or ReasonPendingTools, Note what the cell said when it yielded,
	// PendingToolCalls what it waits for; set when Status is [Waiting].
	Reason           string        `json:"reason,omitempty"`
	Note             string        `json:"note,omitempty"`
	PendingToolCalls []PendingCall `json:"pendingToolCalls,omitempty"`
	// Value is the cell's value, JSON; set when Status is [Completed].
	Value json.RawMessage `json:"value,omitempty"`
	// Error, Code and Phase are set when Status is [Failed].
	Error string `json:"error,omitempty"`
	Code  Code   `json:"code,omitempty"`
	Phase Phase  `json:"phase,omitempty"`
	// Output is what the cell emitted since the run's result before this one, in order
	// (SPEC 9.3); it stays when the cell fails.
	Output    []Item    `json:"output,omitempty"`
	Telemetry Telemetry `json:"telemetry"`
}

// MarshalJSON writes the result as SPEC 11.1 has it.
func (r *Result) MarshalJSON() ([]byte, error) {
	type plain Result // without this method
	shown := struct {
		Status Status `json:"status"`
		RunID  string `json:"runId,omitempty"`
		*plain
	}{Status: r.Status, plain: (*plain)(r)}
	if r.Status == Waiting {
		shown.RunID = r.RunID
	}
	return encodeJSON(shown), nil
}

// JSON gives the result as one line of compact JSON, without HTML escapes.
func (r *Result) JSON() []byte { return encodeJSON(r) }

// Item is one output item: {"type":"text","text":…} or {"type":"json","value":…}.
type Item struct {
	// Type is "text" or "json".
	Type string
	// JSON is a JSON string for text, any JSON value for json.
	JSON json.RawMessage
}

// Text gives a text item's text, and a json item's JSON.
func (i Item) Text() string {
	var s string
	if i.Type == "text" && json.Unmarshal(i.JSON, &s) == nil {
		return s
	}
	return string(i.JSON)
}

// MarshalJSON writes the item as results show it (SPEC 9.1).
func (i Item) MarshalJSON() ([]byte, error) {
	key := "value"
	if i.Type == "text" {
		key = "text"
	}
	return fmt.Appendf(nil, `{"type":%q,%q:%s}`, i.Type, key, i.JSON), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (i *Item) UnmarshalJSON(b []byte) error {
	var w struct {
		Type  string          `json:"type"`
		Text  json.RawMessage `json:"text"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	i.Type, i.JSON = w.Type, w.Value
	if w.Type == "text" {
		i.JSON = w.Text
	}
	return nil
}

// failure is an end that is not a completion, on its way into a Result.
type failure struct {
	code  Code
	phase Phase
	text  string
}

func inputf(code Code, format string, args ...any) *failure {
	return &failure{code, PhaseInput, fmt.Sprintf(format, args...)}
}

func limitf(code Code, format string, args ...any) *failure {
	return &failure{code, PhaseLimit, fmt.Sprintf(format, args...)}
}

func hostf(code Code, format string, args ...any) *failure {
	return &failure{code, PhaseHost, fmt.Sprintf(format, args...)}
}

func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("supervisor: " + err.Error()) // our own types, and raw JSON that was checked
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func quoteJSON(s string) []byte { return encodeJSON(s) }
