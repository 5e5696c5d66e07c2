// Package trajectory records what a run did: one ordered stream of events, nested calls
// as children of the exec call that the model made (SPEC 18.1).
//
//	rec := trajectory.New(trajectory.JSONLines(file), trajectory.Policy{})
//	… Program{Trajectory: rec} …
//	err := rec.Err()
//
// Inputs, results and output are recorded by size and hash unless the policy lets them
// through. A Recorder may be shared by runs; events of one run keep their order.
package trajectory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Kind is what an event tells.
type Kind string

// The kinds.
const (
	Exec       Kind = "exec"        // a cell begins
	ToolCall   Kind = "tool_call"   // a nested call is sent to its executor
	ToolResult Kind = "tool_result" // a nested call settled
	Output     Kind = "output"      // the cell emitted an item
	Yield      Kind = "yield"       // the cell called yield_control
	Park       Kind = "park"        // the run was suspended, and its worker is dead
	Resume     Kind = "resume"      // it goes on in another one
	End        Kind = "end"         // the run is over
)

// Event is one line of a trajectory.
type Event struct {
	Seq    uint64    `json:"seq"` // 1, 2, 3 … in the recorder
	Time   time.Time `json:"time"`
	RunID  string    `json:"runId"`
	Kind   Kind      `json:"kind"`
	Parent string    `json:"parent,omitempty"` // the exec call's id
	CallID string    `json:"callId,omitempty"` // the nested call's
	ToolID string    `json:"toolId,omitempty"`
	Status string    `json:"status,omitempty"` // of a result or an end
	Code   string    `json:"code,omitempty"`
	Millis *float64  `json:"ms,omitempty"`
	Data   *Data     `json:"data,omitempty"` // source, input, result, output or value
}

// Data stands for content.
type Data struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Content is the content itself, only if the policy lets it through.
	Content json.RawMessage `json:"content,omitempty"`
}

// Policy says what of the content is kept. The zero value keeps none.
type Policy struct {
	// Content keeps sources, inputs, results and output.
	Content bool
}

// Sink takes events. A Recorder calls it under its lock, one event at a time.
type Sink interface {
	Write(Event) error
}

// Recorder gives events their number and time and hands them to a sink.
type Recorder struct {
	policy Policy

	mu      sync.Mutex
	sink    Sink   // guarded by mu
	seq     uint64 // guarded by mu
	err     error  // guarded by mu: the sink's first error
	dropped uint64 // guarded by mu
}

// New makes a Recorder. It does not own what the sink writes to.
func New(sink Sink, policy Policy) *Recorder { return &Recorder{sink: sink, policy: policy} }

// Record adds an event; Seq is filled in, and Time if it is zero. A nil Recorder drops it.
// Once the sink has failed, events are counted and dropped: a full disk must not stop a
// run.
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
	if r.err != nil {
		r.dropped++
		return
	}
	if err := r.sink.Write(e); err != nil {
		r.err = fmt.Errorf("writing the trajectory: %w", err)
		r.dropped++
	}
}

// Drop counts an event that did not reach the sink.
func (r *Recorder) Drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped++
}

// Describe gives the data that the policy allows to be recorded of content. content must
// be JSON.
func (r *Recorder) Describe(content []byte) *Data {
	if r == nil {
		return nil
	}
	sum := sha256.Sum256(content)
	d := &Data{Bytes: len(content), SHA256: hex.EncodeToString(sum[:])}
	if r.policy.Content {
		d.Content = content
	}
	return d
}

// Err gives how many events were dropped, and the sink's first error.
func (r *Recorder) Err() (dropped uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped, r.err
}

// JSONLines writes one event a line.
func JSONLines(w io.Writer) Sink { return jsonLines{w} }

type jsonLines struct{ w io.Writer }

func (s jsonLines) Write(e Event) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = s.w.Write(append(b, '\n'))
	return err
}
