package limits

import (
	"math"
	"runtime"
	"slices"
	"time"
)

// The places of the two config objects in a config file.
const (
	codeModePath   = "tools.codeMode"
	supervisorPath = "supervisor"
)

// Field describes one config field for documents, schemas and `config show`.
type Field struct {
	// Path is where the field stands in a config file, such as
	// "tools.codeMode.timeoutMs".
	Path string

	// Type is the JSON Schema type: "boolean", "integer", "string" or "array"
	// (of strings).
	Type string

	// Default is the value of a config that does not set the field: bool, int64,
	// string or []string.
	Default any

	// DefaultDoc says the default where it depends on the machine; else it is empty.
	DefaultDoc string

	// Min and Max are the range of an integer, both inclusive; whole numbers
	// outside are clamped. MaxField names the field of the same object whose value
	// is the real upper bound; else it is empty.
	Min, Max int64
	MaxField string

	// Enum lists the texts that are allowed; empty means any.
	Enum []string

	// Doc is one sentence for people.
	Doc string
}

// field is a row of the table: what the world may know of it, and where the
// value lives.
type field struct {
	Field

	// ref points at the value inside a config. The pointer's type decides how the
	// field is read: *bool, *int, *int64, *uint32, *string, *[]string, *Languages,
	// *time.Duration, or nil for a field that has one legal value and is not kept.
	ref func(*Config) any

	unit    time.Duration     // what 1 means, for a *time.Duration
	boolFor map[string]bool   // the texts that stand for a *bool which is written as text
	check   func(string) bool // a text that Enum cannot describe; want says what it must be
	want    string
}

// table is the one list of all config fields, in the order in which they are shown.
var table = []field{
	{Field: Field{Path: "tools.codeMode.enabled", Type: "boolean", Default: false,
		Doc: "Switches code mode on; the only field that does."},
		ref: func(c *Config) any { return &c.Enabled }},
	{Field: Field{Path: "tools.codeMode.runtime", Type: "string", Default: "quickjs-wasi", Enum: []string{"quickjs-wasi"},
		Doc: "The guest runtime."}},
	{Field: Field{Path: "tools.codeMode.mode", Type: "string", Default: "only", Enum: []string{"only"},
		Doc: "The model sees exec and wait only."}},
	{Field: Field{Path: "tools.codeMode.languages", Type: "array", Default: languageNames, Enum: languageNames,
		Doc: "The languages that exec accepts; at least one."},
		ref: func(c *Config) any { return &c.Limits.Languages }},
	{Field: Field{Path: "tools.codeMode.timeoutMs", Type: "integer", Default: int64(10_000), Min: 100, Max: 60_000,
		Doc: "Time for one exec or wait, from the request to the answer, in milliseconds."},
		ref: func(c *Config) any { return &c.Limits.Timeout }, unit: time.Millisecond},
	{Field: Field{Path: "tools.codeMode.memoryLimitBytes", Type: "integer", Default: int64(64 << 20), Min: 1 << 20, Max: 1 << 30,
		Doc: "Heap of the guest, in bytes."},
		ref: func(c *Config) any { return &c.Limits.MemoryBytes }},
	{Field: Field{Path: "tools.codeMode.maxOutputBytes", Type: "integer", Default: int64(64 << 10), Min: 1 << 10, Max: 10 << 20,
		Doc: "Output, value and error of a run together, in bytes of their JSON."},
		ref: func(c *Config) any { return &c.Limits.OutputBytes }},
	{Field: Field{Path: "tools.codeMode.onOutputLimit", Type: "string", Default: "fail", Enum: []string{"fail", "truncate"},
		Doc: "What a run over maxOutputBytes does: fail, or complete with its output cut."},
		ref:     func(c *Config) any { return &c.Limits.TruncateOutput },
		boolFor: map[string]bool{"fail": false, "truncate": true}},
	{Field: Field{Path: "tools.codeMode.maxSnapshotBytes", Type: "integer", Default: int64(10 << 20), Min: 1 << 10, Max: 256 << 20,
		Doc: "Size of a parked run as it is stored, in bytes."},
		ref: func(c *Config) any { return &c.Limits.SnapshotBytes }},
	{Field: Field{Path: "tools.codeMode.snapshotTtlSeconds", Type: "integer", Default: int64(900), Min: 1, Max: 86_400,
		Doc: "How long a run may stay parked, in seconds."},
		ref: func(c *Config) any { return &c.Limits.SnapshotTTL }, unit: time.Second},
	{Field: Field{Path: "tools.codeMode.maxPendingToolCalls", Type: "integer", Default: int64(16), Min: 1, Max: 128,
		Doc: "Nested tool calls in flight at once."},
		ref: func(c *Config) any { return &c.Limits.PendingToolCalls }},
	{Field: Field{Path: "tools.codeMode.maxQueuedToolCalls", Type: "integer", Default: int64(1024), Min: 0, Max: 65_536,
		Doc: "Nested tool calls that wait for a place among those in flight."},
		ref: func(c *Config) any { return &c.Limits.QueuedToolCalls }},
	{Field: Field{Path: "tools.codeMode.maxToolCalls", Type: "integer", Default: int64(0), Min: 0, Max: math.MaxInt32,
		Doc: "Nested tool calls of a run in total; 0 means no limit."},
		ref: func(c *Config) any { return &c.Limits.ToolCalls }},
	{Field: Field{Path: "tools.codeMode.searchDefaultLimit", Type: "integer", Default: int64(8), Min: 1, Max: 50, MaxField: "maxSearchLimit",
		Doc: "Hits of tools.search when the cell gives no limit."},
		ref: func(c *Config) any { return &c.Limits.SearchDefault }},
	{Field: Field{Path: "tools.codeMode.maxSearchLimit", Type: "integer", Default: int64(50), Min: 1, Max: 50,
		Doc: "Hits of tools.search at most."},
		ref: func(c *Config) any { return &c.Limits.SearchMax }},

	{Field: Field{Path: "supervisor.worker", Type: "string", Default: "",
		Doc: "Path of the worker program; empty means beside this program, then PATH."},
		ref: func(c *Config) any { return &c.Supervisor.Worker }},
	{Field: Field{Path: "supervisor.workerSHA256", Type: "string", Default: "",
		Doc: "SHA-256 that the worker program must have; empty means any."},
		ref:   func(c *Config) any { return &c.Supervisor.WorkerSHA256 },
		check: isSHA256, want: "64 hexadecimal digits"},
	{Field: Field{Path: "supervisor.pool", Type: "integer", Default: int64(1), Min: 0, Max: 64,
		Doc: "Spare workers that are started ahead."},
		ref: func(c *Config) any { return &c.Supervisor.Pool }},
	{Field: Field{Path: "supervisor.maxWorkers", Type: "integer", Default: int64(2 * runtime.NumCPU()), DefaultDoc: "2 × CPUs", Min: 1, Max: 1024,
		Doc: "Workers that live at once, spares included."},
		ref: func(c *Config) any { return &c.Supervisor.MaxWorkers }},
	{Field: Field{Path: "supervisor.maxParkedRuns", Type: "integer", Default: int64(64), Min: 1, Max: 65_536,
		Doc: "Runs that are parked at once."},
		ref: func(c *Config) any { return &c.Supervisor.MaxParkedRuns }},
	{Field: Field{Path: "supervisor.maxParkedBytes", Type: "integer", Default: int64(512 << 20), Min: 1 << 20, Max: 1 << 40,
		Doc: "Size of all parked runs together, in bytes."},
		ref: func(c *Config) any { return &c.Supervisor.MaxParkedBytes }},
	{Field: Field{Path: "supervisor.stateKeyFile", Type: "string", Default: "",
		Doc: "File with the key that seals a state directory; empty means the file key in it, made at the first use."},
		ref: func(c *Config) any { return &c.Supervisor.StateKeyFile }},
	{Field: Field{Path: "supervisor.isolation.preset", Type: "string", Default: "best-effort", Enum: []string{"best-effort", "strict"},
		Doc: "best-effort takes every layer that the host offers; strict starts no worker without all of them."},
		ref: func(c *Config) any { return &c.Supervisor.Isolation.Preset }},
	{Field: Field{Path: "supervisor.isolation.require", Type: "array", Default: []string{},
		Doc: "Layers without which no worker starts."},
		ref: func(c *Config) any { return &c.Supervisor.Isolation.Require }},
	{Field: Field{Path: "supervisor.isolation.cgroupParent", Type: "string", Default: "",
		Doc: "Cgroup under which workers get theirs; empty means the supervisor's own."},
		ref: func(c *Config) any { return &c.Supervisor.Isolation.CgroupParent }},
	{Field: Field{Path: "supervisor.isolation.uid", Type: "integer", Default: int64(0), Min: 0, Max: math.MaxUint32 - 1,
		Doc: "User id of workers when the supervisor is root; 0 means one for each run."},
		ref: func(c *Config) any { return &c.Supervisor.Isolation.UID }},
	{Field: Field{Path: "supervisor.isolation.gid", Type: "integer", Default: int64(0), Min: 0, Max: math.MaxUint32 - 1,
		Doc: "Group id of workers when the supervisor is root; 0 means one for each run."},
		ref: func(c *Config) any { return &c.Supervisor.Isolation.GID }},
}

// Fields lists all config fields in the order in which they are shown. The caller
// owns the slice.
func Fields() []Field {
	fields := make([]Field, len(table))
	for i, f := range table {
		f.Enum = slices.Clone(f.Enum)
		if list, ok := f.Default.([]string); ok {
			f.Default = slices.Clone(list)
		}
		fields[i] = f.Field
	}
	return fields
}

func isSHA256(s string) bool {
	if len(s) != 64 && s != "" {
		return false
	}
	for _, c := range s {
		if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
			return false
		}
	}
	return true
}
