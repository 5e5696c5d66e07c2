package limits

import (
	"strings"
	"time"
)

// Limits is what one run may use (SPEC 13). The value is comparable, and copying
// it is all that is needed to freeze it. The zero value is not useful; start from
// [Default].
type Limits struct {
	// Languages are those that exec accepts; never empty. Default: both.
	Languages Languages

	// Timeout bounds one exec or wait from the request to the answer: queueing,
	// start, transform, guest and inline tools. Default 10 s, 100 ms to 60 s.
	// Config: timeoutMs.
	Timeout time.Duration

	// MemoryBytes bounds the guest's heap. Default 64 MiB, 1 MiB to 1 GiB.
	// Config: memoryLimitBytes.
	MemoryBytes int64

	// OutputBytes bounds output, value and error of a run together, in UTF-8 bytes
	// of their JSON. Default 64 KiB, 1 KiB to 10 MiB. Config: maxOutputBytes.
	OutputBytes int64

	// TruncateOutput makes a run that is over OutputBytes complete with its output
	// cut; otherwise it fails (SPEC 9.2). Config: onOutputLimit.
	TruncateOutput bool

	// SnapshotBytes bounds a parked run in its stored form. Default 10 MiB, 1 KiB
	// to 256 MiB. Config: maxSnapshotBytes.
	SnapshotBytes int64

	// SnapshotTTL is how long a run may stay parked. Default 15 min, 1 s to 24 h.
	// Config: snapshotTtlSeconds.
	SnapshotTTL time.Duration

	// PendingToolCalls bounds the nested calls in flight. Default 16, 1 to 128.
	// Config: maxPendingToolCalls.
	PendingToolCalls int

	// QueuedToolCalls bounds the nested calls that wait for one of those places;
	// past it the cell fails (SPEC 10.2). Default 1,024, 0 to 65,536.
	// Config: maxQueuedToolCalls.
	QueuedToolCalls int

	// ToolCalls bounds all nested calls of a run. 0, the default, means no limit.
	// Config: maxToolCalls.
	ToolCalls int

	// SearchDefault is how many hits tools.search returns when the cell does not
	// say; never more than SearchMax. Default 8. Config: searchDefaultLimit.
	SearchDefault int

	// SearchMax is the most that it returns. Default 50, 1 to 50.
	// Config: maxSearchLimit.
	SearchMax int
}

// Default returns the limits of a config that sets none.
func Default() Limits { return DefaultConfig().Limits }

// Languages is a set of cell languages, one bit each.
type Languages uint8

// The languages that a cell can be written in (SPEC 2.5).
const (
	JavaScript Languages = 1 << iota
	TypeScript
)

// languageNames lists them by the position of their bit.
var languageNames = []string{"javascript", "typescript"}

// Has reports whether the language called name ("javascript", "typescript") is in
// the set. It is false for a name that is no language.
func (l Languages) Has(name string) bool {
	for i, n := range languageNames {
		if n == name {
			return l&(1<<i) != 0
		}
	}
	return false
}

// Names lists the set, JavaScript first.
func (l Languages) Names() []string {
	names := []string{}
	for i, n := range languageNames {
		if l&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// String returns the names with commas between them.
func (l Languages) String() string { return strings.Join(l.Names(), ", ") }
