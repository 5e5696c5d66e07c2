package workerproto

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Bounds of what a message may hold, in bytes unless said otherwise.
const (
	MaxSource       = 8 << 20  // source of a cell
	MaxTools        = 16 << 20 // compact catalog of a cell; each of the tables of its names, too
	MaxFile         = 8 << 20  // text of one declaration file
	MaxScopes       = 2 << 20  // JSON of a run's namespaces
	MaxToolInput    = 8 << 20  // JSON of one call's input
	MaxWaitingInput = 64 << 20 // inputs of calls that are not settled, all together
	MaxToolResult   = 16 << 20 // JSON of one call's result
	MaxItem         = 11 << 20 // JSON of one output item or of the value: above the largest maxOutputBytes
	MaxError        = 11 << 20 // text of an error, for the same reason
	MaxName         = 4096     // a tool's id or name, a search query
	MaxMissed       = 4096     // Missed events of one leg
	MaxNote         = 1024     // what a guest says when it yields
	MaxPart         = 1 << 20  // one part of a snapshot
	maxText         = 64 << 10 // other texts
	MaxIsolation    = 32 << 10 // Ready.Isolation
	envelope        = 4096     // keys, numbers and short texts around the big field of a body
)

// Type is the type of a frame: commands are below 128, events from 128 on.
type Type uint8

// NoTimer stands for the time until the next timer of a guest that has none.
const NoTimer = math.MaxUint32

// The frame types.
const (
	TypeStart      Type = 1
	TypeToolResult Type = 2
	TypeInterrupt  Type = 3
	TypeResume     Type = 4
	TypeResumePart Type = 5
	TypePark       Type = 6
	TypeSurface    Type = 7
	TypeFile       Type = 8
	TypeNamespaces Type = 9
	TypeReady      Type = 128
	TypeStage      Type = 129
	TypePrepared   Type = 130
	TypeOutput     Type = 131
	TypeToolCall   Type = 132
	TypeIdle       Type = 133
	TypeDone       Type = 134
	TypeFailed     Type = 135
	TypeParkPart   Type = 136
	TypeParked     Type = 137
	TypeResumed    Type = 138
	TypeMissed     Type = 139
)

type kind struct {
	name    string
	event   bool
	maxBody uint32
	new     func() Message
}

var kinds = map[Type]kind{
	TypeStart:      {"start", false, MaxSource + envelope, func() Message { return new(Start) }},
	TypeToolResult: {"tool result", false, MaxToolResult + maxText + MaxName + envelope, func() Message { return new(ToolResult) }},
	TypeInterrupt:  {"interrupt", false, envelope, func() Message { return new(Interrupt) }},
	TypeResume:     {"resume", false, envelope, func() Message { return new(Resume) }},
	TypeResumePart: {"resume part", false, MaxPart + envelope, func() Message { return new(ResumePart) }},
	TypePark:       {"park", false, envelope, func() Message { return new(Park) }},
	TypeSurface:    {"surface", false, 4*MaxTools + envelope, func() Message { return new(Surface) }},
	TypeFile:       {"file", false, MaxFile + 2*MaxName + envelope, func() Message { return new(File) }},
	TypeNamespaces: {"namespaces", false, MaxScopes + envelope, func() Message { return new(Namespaces) }},
	TypeReady:      {"ready", true, maxText, func() Message { return new(Ready) }},
	TypeStage:      {"stage", true, envelope, func() Message { return new(Stage) }},
	TypePrepared:   {"prepared", true, envelope, func() Message { return new(Prepared) }},
	TypeOutput:     {"output", true, MaxItem + envelope, func() Message { return new(Output) }},
	TypeToolCall:   {"tool call", true, MaxToolInput + MaxName + envelope, func() Message { return new(ToolCall) }},
	TypeIdle:       {"idle", true, envelope, func() Message { return new(Idle) }},
	TypeDone:       {"done", true, MaxItem + envelope, func() Message { return new(Done) }},
	TypeFailed:     {"failed", true, MaxError + envelope, func() Message { return new(Failed) }},
	TypeParkPart:   {"park part", true, MaxPart + envelope, func() Message { return new(ParkPart) }},
	TypeParked:     {"parked", true, envelope, func() Message { return new(Parked) }},
	TypeResumed:    {"resumed", true, envelope, func() Message { return new(Resumed) }},
	TypeMissed:     {"missed", true, MaxName + envelope, func() Message { return new(Missed) }},
}

func (t Type) String() string {
	if k, ok := kinds[t]; ok {
		return k.name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Message is one of this package's message types, as a pointer.
type Message interface {
	// Type is the message's frame type.
	Type() Type
	// check gives the rule that the message breaks, or "".
	check() string
}

// Surface is the command that tells what of the catalog the guest sees without asking. It
// comes before Start or Resume, once or not at all. Each part is text or a zstd frame of
// it; no UTF-8 text begins as those do.
type Surface struct {
	Tools     []byte `msgpack:"tools"`     // ALL_TOOLS: JSON array of compact catalog entries
	Functions []byte `msgpack:"functions"` // a line `<name> <id>` for each convenience function; the id is a JSON string
	MCP       []byte `msgpack:"mcp"`       // such a line for each path under MCP
	Down      []byte `msgpack:"down"`      // a line `<name> <reason>` for each server that failed to start; the reason is a JSON string
}

// File is the command that brings a declaration file. Files come behind Surface.
type File struct {
	Path        string `msgpack:"path"`
	Description string `msgpack:"description"`
	Bytes       uint32 `msgpack:"bytes"` // of the text
	Text        []byte `msgpack:"text"`  // the text, or a zstd frame of it
}

// Namespaces is the command that brings the scopes of plugin namespaces. A Start that
// announces it makes the worker wait for it, between Prepared and the first guest code.
type Namespaces struct {
	Scopes []byte `msgpack:"scopes"` // JSON
}

// Start is the command to run one cell. It is sent once.
type Start struct {
	Source         []byte `msgpack:"source"`   // as the model wrote it (SPEC 3.3)
	Language       string `msgpack:"language"` // "", "javascript" or "typescript"
	BudgetMillis   uint32 `msgpack:"budgetMillis"`
	MemoryBytes    uint64 `msgpack:"memoryBytes"` // guest heap
	OutputBytes    uint64 `msgpack:"outputBytes"`
	TruncateOutput bool   `msgpack:"truncateOutput"`
	MaxPending     uint32 `msgpack:"maxPending"` // calls of one burst: in flight and queued together
	Namespaces     bool   `msgpack:"namespaces"` // wait for them, once the source is prepared
}

// ToolResult is the command that settles a nested call: with JSON in Value, or with a
// message in Error.
type ToolResult struct {
	ID      uint64 `msgpack:"id"`
	Value   []byte `msgpack:"value"`
	Failed  bool   `msgpack:"failed"`
	Error   string `msgpack:"error"`
	ToolID  string `msgpack:"toolId"`
	Code    string `msgpack:"code"`    // of a failure
	Started string `msgpack:"started"` // of a failure: "yes", "no" or "unknown"
}

// Interrupt is the command to stop guest code: the soft half of a stop.
type Interrupt struct {
	Reason string `msgpack:"reason"`
}

// Resume is the command to go on with a parked cell, instead of Start. Its snapshot
// follows in parts; what settled meanwhile follows those.
type Resume struct {
	BudgetMillis   uint32 `msgpack:"budgetMillis"`
	MemoryBytes    uint64 `msgpack:"memoryBytes"` // guest heap
	OutputBytes    uint64 `msgpack:"outputBytes"` // of the whole run; what is spent of it the snapshot knows
	TruncateOutput bool   `msgpack:"truncateOutput"`
	MaxPending     uint32 `msgpack:"maxPending"`
	ElapsedMillis  uint64 `msgpack:"elapsedMillis"` // since the run began; parked time counts
}

// ResumePart is a part of the snapshot, in order.
type ResumePart struct {
	Data []byte `msgpack:"data"`
	Last bool   `msgpack:"last"`
}

// Park is the command to serialise the guest: with parts and Parked, unless the cell ends
// first. The worker is over then, unless it is to stay.
type Park struct {
	MaxBytes uint64 `msgpack:"maxBytes"` // of all parts together
	Stay     bool   `msgpack:"stay"`     // go on afterwards: a checkpoint
}

// Ready is the first event: the worker waits for its Start or Resume.
type Ready struct {
	Version string `msgpack:"version"` // build of the worker
	Engine  string `msgpack:"engine"`  // SHA-256 of the engine's wasm and start image, in hex: what a snapshot fits
	Fault   string `msgpack:"fault"`   // not empty: the worker cannot run cells, and why
	// Isolation is what the worker did to itself: the JSON of an isolation.Report.
	Isolation []byte `msgpack:"isolation"`
}

// Stage tells what the worker does next, so that a death can be laid at its door.
type Stage struct {
	Name string `msgpack:"name"` // "transform"
}

// Prepared tells what the source was found to be; guest code runs from here on.
type Prepared struct {
	Language        string `msgpack:"language"`
	Form            string `msgpack:"form"` // SPEC 4.1
	Fenced          bool   `msgpack:"fenced"`
	TransformMicros uint64 `msgpack:"transformMicros"`
}

// Output is one output item.
type Output struct {
	Kind string `msgpack:"kind"` // "text" or "json"
	JSON []byte `msgpack:"json"` // a JSON string for text, a JSON value for json
}

// ToolCall is a nested call. It belongs to the burst that the next Idle ends.
type ToolCall struct {
	ID     uint64 `msgpack:"id"`     // 1, 2, 3 … in a run
	Method string `msgpack:"method"` // "call", "mcp", "namespace", "search", "describe" or "api"
	// Tool is the id or name as the guest gave it; the path of a call under MCP or of a
	// namespace; the query of a search; "list", "read" or "$api".
	Tool  string `msgpack:"tool"`
	Input []byte `msgpack:"input"` // JSON: the input; a namespace call's arguments; options
}

// Missed tells that the guest read a member of tools or MCP that does not exist. The worker
// says so once for each name, MaxMissed times at most.
type Missed struct {
	Name string `msgpack:"name"` // tools.<name>, MCP.<server>, MCP.<server>.<name>
}

// Idle ends a burst: guest code has nothing to do until a call settles or a timer is
// due.
type Idle struct {
	Pending     uint32 `msgpack:"pending"`     // calls that are not settled
	Settled     uint64 `msgpack:"settled"`     // tool results that the worker has taken, in this leg
	Yielded     bool   `msgpack:"yielded"`     // the guest waits for a yield_control
	Note        string `msgpack:"note"`        // what it said with it, cut at MaxNote bytes
	Timer       uint32 `msgpack:"timer"`       // milliseconds until the next timer is due, or NoTimer
	MemoryBytes uint64 `msgpack:"memoryBytes"` // what would have to be looked at to park it
}

// Done ends a cell that completed. It is the last event.
type Done struct {
	Value   []byte `msgpack:"value"`   // JSON
	Omitted uint64 `msgpack:"omitted"` // output and value bytes that were cut
	Stats   Stats  `msgpack:"stats"`
}

// Failed ends a cell that failed. It is the last event.
type Failed struct {
	Code    string `msgpack:"code"`  // SPEC 11.2, "" for a guest exception
	Phase   string `msgpack:"phase"` // SPEC 11.1
	Error   string `msgpack:"error"`
	Shell   bool   `msgpack:"shell"`   // the source looks like a shell command (SPEC 3.4)
	Omitted uint64 `msgpack:"omitted"` // output and error bytes that were cut
	Stats   Stats  `msgpack:"stats"`
}

// ParkPart is a part of the snapshot, in order.
type ParkPart struct {
	Data []byte `msgpack:"data"`
}

// Parked is behind the last part of a snapshot. It is the last event of a leg whose cell
// does not stay.
type Parked struct {
	Timer    uint32 `msgpack:"timer"`    // as in Idle
	Omitted  uint64 `msgpack:"omitted"`  // output bytes that were cut so far
	Overflow bool   `msgpack:"overflow"` // of one that stays: it would be too large; the parts are of no use
	Stats    Stats  `msgpack:"stats"`
}

// Resumed tells that the snapshot was restored; guest code runs from here on.
type Resumed struct {
	RestoreMicros uint64 `msgpack:"restoreMicros"`
}

// Stats is what a leg cost, as the worker says: for telemetry only.
type Stats struct {
	GuestMicros uint64 `msgpack:"guestMicros"`
	HeapBytes   uint64 `msgpack:"heapBytes"`
}

func (*Start) Type() Type      { return TypeStart }
func (*ToolResult) Type() Type { return TypeToolResult }
func (*Interrupt) Type() Type  { return TypeInterrupt }
func (*Ready) Type() Type      { return TypeReady }
func (*Stage) Type() Type      { return TypeStage }
func (*Prepared) Type() Type   { return TypePrepared }
func (*Output) Type() Type     { return TypeOutput }
func (*ToolCall) Type() Type   { return TypeToolCall }
func (*Idle) Type() Type       { return TypeIdle }
func (*Done) Type() Type       { return TypeDone }
func (*Failed) Type() Type     { return TypeFailed }
func (*Resume) Type() Type     { return TypeResume }
func (*ResumePart) Type() Type { return TypeResumePart }
func (*Park) Type() Type       { return TypePark }
func (*ParkPart) Type() Type   { return TypeParkPart }
func (*Parked) Type() Type     { return TypeParked }
func (*Resumed) Type() Type    { return TypeResumed }
func (*Surface) Type() Type    { return TypeSurface }
func (*File) Type() Type       { return TypeFile }
func (*Namespaces) Type() Type { return TypeNamespaces }
func (*Missed) Type() Type     { return TypeMissed }

func (m *Start) check() string {
	return first(atMost("source", len(m.Source), MaxSource), oneOf("language", m.Language, "", "javascript", "typescript"))
}

func (m *ToolResult) check() string {
	return first(atMost("value", len(m.Value), MaxToolResult), text("error", m.Error, maxText), text("toolId", m.ToolID, MaxName),
		text("code", m.Code, 64), oneOf("started", m.Started, "", "yes", "no", "unknown"))
}

func (m *Interrupt) check() string { return text("reason", m.Reason, 256) }

func (m *Ready) check() string {
	return first(text("version", m.Version, 256), text("engine", m.Engine, 64), text("fault", m.Fault, 4096),
		atMost("isolation", len(m.Isolation), MaxIsolation), utf8Bytes("isolation", m.Isolation))
}

func (m *Stage) check() string { return oneOf("name", m.Name, "transform") }

func (m *Prepared) check() string {
	return first(oneOf("language", m.Language, "javascript", "typescript"), oneOf("form", m.Form, "statements", "expression", "function"))
}

func (m *Output) check() string {
	return first(oneOf("kind", m.Kind, "text", "json"), atMost("json", len(m.JSON), MaxItem), utf8Bytes("json", m.JSON))
}

func (m *ToolCall) check() string {
	return first(oneOf("method", m.Method, "call", "mcp", "namespace", "search", "describe", "api"), text("tool", m.Tool, MaxName),
		atMost("input", len(m.Input), MaxToolInput), utf8Bytes("input", m.Input))
}

func (m *Idle) check() string { return text("note", m.Note, MaxNote) }

func (m *Done) check() string {
	return first(atMost("value", len(m.Value), MaxItem), utf8Bytes("value", m.Value))
}

func (m *Failed) check() string {
	return first(text("code", m.Code, 64), oneOf("phase", m.Phase, "input", "guest", "tool", "limit", "host"), text("error", m.Error, MaxError))
}

func (m *Resume) check() string { return "" }

func (m *ResumePart) check() string { return atMost("data", len(m.Data), MaxPart) }

func (m *Park) check() string { return "" }

func (m *ParkPart) check() string { return atMost("data", len(m.Data), MaxPart) }

func (m *Parked) check() string { return "" }

func (m *Resumed) check() string { return "" }

func (m *Surface) check() string {
	return first(atMost("tools", len(m.Tools), MaxTools), atMost("functions", len(m.Functions), MaxTools), atMost("mcp", len(m.MCP), MaxTools),
		atMost("down", len(m.Down), MaxTools))
}

func (m *File) check() string {
	return first(text("path", m.Path, MaxName), text("description", m.Description, MaxName), atMost("text", len(m.Text), MaxFile))
}

func (m *Namespaces) check() string {
	return first(atMost("scopes", len(m.Scopes), MaxScopes), utf8Bytes("scopes", m.Scopes))
}

func (m *Missed) check() string { return text("name", m.Name, MaxName) }

func first(reasons ...string) string {
	for _, r := range reasons {
		if r != "" {
			return r
		}
	}
	return ""
}

func atMost(field string, n, limit int) string {
	if n > limit {
		return fmt.Sprintf("%s has %d bytes, at most %d are allowed", field, n, limit)
	}
	return ""
}

func text(field, s string, limit int) string {
	if !utf8.ValidString(s) {
		return field + " is not UTF-8"
	}
	return atMost(field, len(s), limit)
}

func utf8Bytes(field string, b []byte) string {
	if !utf8.Valid(b) {
		return field + " is not UTF-8"
	}
	return ""
}

func oneOf(field, s string, allowed ...string) string {
	if slices.Contains(allowed, s) {
		return ""
	}
	return fmt.Sprintf("%s is %.40q, allowed are %q", field, s, allowed)
}
