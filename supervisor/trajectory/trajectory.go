// Package trajectory records what a run did, and reads it back: one ordered stream of
// events, nested calls as children of the exec call that the model made (SPEC 18.1).
//
//	rec := trajectory.New(trajectory.JSONLines(file), trajectory.Policy{})
//	… Program{Trajectory: rec} …
//	dropped, err := rec.Err()
//
//	log, err := trajectory.Read(file)
//	tree := log.Tree() // exec → legs → calls
//
// Contents are recorded by size and hash unless the [Policy] keeps more, or less. A
// [Recorder] may be shared by runs; events of one run keep their order. It owns nothing:
// who opened the file closes it, when the run's last result is there.
//
// It does not protect what it was told to keep: a trajectory with contents holds the
// secrets that the cell saw. What [Read] gives is checked and bounded, and still a
// stranger's word.
//
// Package view draws the tree; [NewRecording] makes what the cell can be run again with, with the
// answers that were recorded; [Projector] and [Project] put nested calls into the transcript of a
// gateway. docs/trajectory.md has the format.
package trajectory

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Kind is what an event tells.
type Kind string

// The kinds. A reader leaves those that it does not know as they are.
const (
	Exec       Kind = "exec"        // a cell begins
	ToolCall   Kind = "tool_call"   // a nested call is sent to its executor
	ToolResult Kind = "tool_result" // a nested call settled
	Hook       Kind = "hook"        // the before-tool hook did not let a nested call through as it was
	Approval   Kind = "approval"    // a nested call needs somebody's approval, or got an answer
	Update     Kind = "update"      // an executor told something of a nested call
	Output     Kind = "output"      // the cell emitted an item
	Yield      Kind = "yield"       // the cell called yield_control
	Park       Kind = "park"        // the run was suspended, and its worker is dead
	Resume     Kind = "resume"      // it goes on in another one
	End        Kind = "end"         // the run is over
)

// Denied is the status of a [ToolCall] that policy denied: nothing was sent.
const Denied = "denied"

// The statuses of [Hook] and [Approval]. Nothing is sent while an approval is asked for, or
// after a call was blocked or refused; the [ToolResult] says so, too.
const (
	HookBlocked   = "blocked"
	HookRewritten = "rewritten"
	HookApproval  = "approval" // the hook wants one

	ApprovalAsked   = "asked"
	ApprovalGranted = "granted"
	ApprovalRefused = "refused"
)

// Event is one line of a trajectory.
type Event struct {
	Seq    uint64    `json:"seq"` // 1, 2, 3 … in the recorder; a process that goes on with a run begins anew
	Time   time.Time `json:"time"`
	RunID  string    `json:"runId"`
	Kind   Kind      `json:"kind"`
	Parent string    `json:"parent,omitempty"` // the original exec call's id, also after resumes
	CallID string    `json:"callId,omitempty"` // the nested call's; of a resume, the model's wait call
	ToolID string    `json:"toolId,omitempty"` // the exact id in the catalog
	Status string    `json:"status,omitempty"` // of a call, result, item, park or end; of an exec, the language that was given
	Code   string    `json:"code,omitempty"`
	Millis *float64  `json:"ms,omitempty"`
	Data   *Data     `json:"data,omitempty"` // see Part
}

// Part tells what the event's data is; "" if it has none.
func (e Event) Part() Part {
	switch e.Kind {
	case Exec:
		return PartSource
	case ToolCall:
		return PartInput
	case Output:
		return PartOutput
	case Yield, Park, Hook, Approval:
		return PartNote
	case Update:
		return PartUpdate
	case ToolResult:
		if e.Status == "failed" {
			return PartError
		}
		return PartResult
	case End:
		if e.Status == "failed" {
			return PartError
		}
		return PartValue
	}
	return ""
}

// Data stands for content.
type Data struct {
	Bytes  int    `json:"bytes"`  // of the content as JSON
	SHA256 string `json:"sha256"` // of the same, in hex
	// Content is the content itself, as JSON, only if the policy keeps it.
	Content json.RawMessage `json:"content,omitempty"`
}

// Recorder gives events their number and time and hands them to sinks. A nil one records
// nothing. It may be used from anywhere at any time.
type Recorder struct {
	policy Policy

	mu      sync.Mutex
	sinks   []Sink  // guarded by mu: nil where one has failed
	seq     uint64  // guarded by mu
	errs    []error // guarded by mu: the first of each sink that failed
	dropped uint64  // guarded by mu
}

// New makes a Recorder. More sinks get the same events; each of them fails for itself. It
// does not own what the sinks write to.
func New(sink Sink, policy Policy, more ...Sink) *Recorder {
	return &Recorder{sinks: append([]Sink{sink}, more...), policy: policy}
}

// Record adds an event; Seq is filled in, and Time if it is zero. Once a sink has failed,
// what it misses is counted: a full disk must not stop a run.
func (r *Recorder) Record(e Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	if e.Seq = r.seq; e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	for i, sink := range r.sinks {
		if sink == nil {
			r.dropped++
			continue
		}
		if err := sink.Write(e); err != nil {
			r.dropped++
			if !errors.Is(err, ErrDropped) {
				r.sinks[i] = nil
				r.errs = append(r.errs, fmt.Errorf("writing the trajectory: %w", err))
			}
		}
	}
}

// Drop counts an event that did not reach the sinks.
func (r *Recorder) Drop() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped++
}

// Describe gives the data that the policy keeps of a content, which must be JSON and stay
// as it is; nil if that is nothing. toolID is the nested call's, or empty.
func (r *Recorder) Describe(part Part, toolID string, content []byte) *Data {
	if r == nil {
		return nil
	}
	return describe(content, r.policy.Of(part, toolID))
}

// Err gives how many events were dropped, one for each sink that missed it, and the first
// error of each sink that failed.
func (r *Recorder) Err() (dropped uint64, err error) {
	if r == nil {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped, errors.Join(r.errs...)
}
